"""Cohorts: the members of a group that come in separate requests, and wait for each other.

Trainers send one sample a request, from processes that know nothing of each other; a judge that compares, and the mean
of a group, need all of them. A cohort has a size. It is scored once that many members are there, or when it has waited
long enough: then those that are present are the group, and the others are late.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from jurygraph.messages import quote
from jurygraph.schema import Response, Trace, digest_of
from jurygraph.server.settings import RequestRefusedError, build_unavailable_error

log = logging.getLogger(__name__)

MAX_KEPT_SCORED_MEMBERS = 4096
"""Members of scored cohorts that are kept, so that late ones are told so."""

ScoreMembersFunction = Callable[[Sequence[Response]], Awaitable[list[Trace]]]


class CohortKey(NamedTuple):
    """The task of the members with its content, their policy and their step.

    Without a step, a full cohort is followed by that of the task's next epoch.
    """

    task: str
    content: str
    policy: str | None
    step: int | None


def response_content_digest(response: Response) -> str:
    """Return the digest of a response without its id."""
    return digest_of(response.model_dump(mode="json", exclude={"id"}))


@dataclass(eq=False)
class Cohort:
    """Members, and the traces of all of them once they are scored, in the order of `members`."""

    key: CohortKey
    size: int
    traces_future: "asyncio.Future[list[Trace]]"
    members: list[Response] = field(default_factory=list)
    is_closed: bool = False
    missing_until: float = inf
    """Time of the loop until which those that are missing may come late: what comes then is of the next epoch."""
    late_digests: set[str] = field(default_factory=set)
    timer_or_task: Any = None
    """The timer of its deadline, then the last task that scores it."""
    failed_positions: dict[str, int] = field(default_factory=dict)
    """Members without a reward, by their content, once the cohort is scored."""

    @property
    def missing(self) -> int:
        return self.size - len(self.members)

    @property
    def name(self) -> str:
        """Its name in messages."""
        step = "" if self.key.step is None else f" at step {self.key.step}"
        return f"the cohort of task {quote(self.key.task)}{step}"


class CohortTraces(NamedTuple):
    """The traces of a whole cohort, and the positions of the members that a request brought."""

    traces: list[Trace]
    positions: list[int]


class CohortTable:
    """Brings members together by their key."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._cohorts: OrderedDict[CohortKey, Cohort] = OrderedDict()
        self._kept = 0
        self.incomplete_count = 0

    @property
    def waiting_member_count(self) -> int:
        """The number of members that wait for others."""
        cohorts = self._cohorts.values()
        return sum(len(cohort.members) for cohort in cohorts if not cohort.is_closed)

    def waits_for_member(self, task: str, policy: str | None, step: int | None) -> bool:
        """Return whether members of such a cohort wait for others: if one is refused, they wait in vain."""
        return any(
            (key.task, key.policy, key.step) == (task, policy, step) and not cohort.is_closed
            for key, cohort in self._cohorts.items()
        )

    async def join(
        self,
        key: CohortKey,
        size: int,
        responses: Sequence[Response],
        score: ScoreMembersFunction,
    ) -> CohortTraces:
        """Return the traces of the cohort that the responses belong to, once it is scored; `score` does that.

        It is scored again for members whose rewards failed. Raises `RequestRefusedError` with status 409 for late
        members and for those that do not fit, and whatever scoring raises.
        """
        digests = [response_content_digest(response) for response in responses]
        cohort = self._find_or_open_cohort(key, size, digests)
        if cohort.failed_positions.keys() >= {*digests}:
            positions = [cohort.failed_positions[digest] for digest in digests]
            scored = cohort.timer_or_task
            if scored.done() and (
                scored.exception()
                or any(scored.result()[position].reward.value is None for position in positions)
            ):
                scored = cohort.timer_or_task = asyncio.ensure_future(score(cohort.members))
            return CohortTraces(await asyncio.shield(scored), positions)
        self._refuse_unfitting_responses(cohort, size, responses, digests)
        cohort.members += responses
        if not cohort.missing:
            self._close_cohort(cohort, score)
        elif cohort.timer_or_task is None:
            loop = asyncio.get_running_loop()
            cohort.timer_or_task = loop.call_later(self._wait, self._close_cohort, cohort, score)
        traces = await asyncio.shield(cohort.traces_future)
        # by identity, because two members may be equal
        position_by_id = {id(member): position for position, member in enumerate(cohort.members)}
        return CohortTraces(traces, [position_by_id[id(response)] for response in responses])

    def _find_or_open_cohort(self, key: CohortKey, size: int, digests: Sequence[str]) -> Cohort:
        """Return the cohort of a key; a new one where there is none, or these digests begin the next epoch."""
        cohort = self._cohorts.get(key)
        if cohort is not None:
            if not self._begins_next_epoch(cohort, digests):
                return cohort
            self._forget_cohort(cohort)
        cohort = self._cohorts[key] = Cohort(key, size, asyncio.get_running_loop().create_future())
        return cohort

    def _begins_next_epoch(self, cohort: Cohort, digests: Sequence[str]) -> bool:
        """Return whether responses begin the next epoch of a task, for which its protocol has no step."""
        if cohort.key.step is not None or not cohort.is_closed:
            return False
        if cohort.late_digests.issuperset(digests):
            return False
        now = asyncio.get_running_loop().time()
        return now >= cohort.missing_until or len(cohort.late_digests) >= cohort.missing

    def _forget_cohort(self, cohort: Cohort) -> None:
        del self._cohorts[cohort.key]
        if cohort.traces_future.done():
            self._kept -= len(cohort.members)

    def _refuse_unfitting_responses(
        self, cohort: Cohort, size: int, responses: Sequence[Response], digests: Sequence[str]
    ) -> None:
        name = cohort.name
        if size != cohort.size:
            raise RequestRefusedError(
                409, f"{name} has size {cohort.size}, not {size}; send one size"
            )
        if cohort.is_closed:
            cohort.late_digests.update(digests)
            when = f"after {self._wait:g} s" if cohort.missing else "when it was complete"
            raise RequestRefusedError(
                409,
                f"{name} was scored with {len(cohort.members)} of {cohort.size} members {when}; "
                "this one came later and has no reward",
            )
        if len(responses) > cohort.missing:
            raise RequestRefusedError(
                409,
                f"{name} has room for {cohort.missing} of these {len(responses)} responses; "
                f"its size is {cohort.size}",
            )
        ids = {member.id for member in cohort.members}
        for response in responses:
            if response.id and response.id in ids:
                raise RequestRefusedError(
                    409,
                    f"{name} has a response {quote(response.id)} already; "
                    "a request that is sent again has the same Idempotency-Key",
                )

    def _close_cohort(self, cohort: Cohort, score: ScoreMembersFunction) -> None:
        """Let no more members in, and score those that are there."""
        cohort.is_closed = True
        if cohort.timer_or_task is not None:
            cohort.timer_or_task.cancel()
        # the order of arrival must not name responses, or the same cohort would be another one after a restart
        cohort.members.sort(key=lambda member: (member.id, response_content_digest(member)))
        loop = asyncio.get_running_loop()
        cohort.missing_until = loop.time() + self._wait
        if cohort.missing:
            self.incomplete_count += 1
            log.warning(
                "%s is scored with %d of %d members after %g s",
                *(cohort.name, len(cohort.members), cohort.size, self._wait),
            )
        # kept there, as the loop holds tasks weakly
        cohort.timer_or_task = loop.create_task(self._score(cohort, score))

    async def _score(self, cohort: Cohort, score: ScoreMembersFunction) -> list[Trace]:
        try:
            traces = await score(cohort.members)
        except Exception as error:  # noqa: BLE001 - raised to all members
            self._fail_cohort(cohort, error)
            return []
        cohort.traces_future.set_result(traces)
        for position, trace in enumerate(traces):
            if trace.reward.value is None:
                cohort.failed_positions[response_content_digest(cohort.members[position])] = (
                    position
                )
        if self._cohorts.get(cohort.key) is cohort:
            self._kept += len(cohort.members)
        while self._kept > MAX_KEPT_SCORED_MEMBERS:
            finished = (other for other in self._cohorts.values() if other.traces_future.done())
            self._forget_cohort(next(finished))
        return traces

    def _fail_cohort(self, cohort: Cohort, error: Exception) -> None:
        """Give an error to all members; when they are sent again they are a cohort again."""
        cohort.is_closed = True
        if self._cohorts.get(cohort.key) is cohort:
            del self._cohorts[cohort.key]
        cohort.traces_future.set_exception(error)
        cohort.traces_future.exception()  # nobody may wait for it any more

    def forget(self, key: CohortKey, traces: list[Trace]) -> None:
        """Forget a cohort with these traces: when its members are sent again they are judged again."""
        cohort = self._cohorts.get(key)
        if (
            cohort is not None
            and cohort.traces_future.done()
            and cohort.traces_future.result() is traces
        ):
            self._forget_cohort(cohort)

    def end_waiting_cohorts(self) -> None:
        """End the cohorts that wait for members: those that are there are not scored."""
        for cohort in list(self._cohorts.values()):
            if not cohort.is_closed:
                cohort.timer_or_task.cancel()
                self._fail_cohort(
                    cohort, build_unavailable_error("the server ends; send the group again")
                )
