"""Cohorts: the members of a group that come in separate requests, and wait for each other.

Trainers send one sample a request, from processes that know nothing of each other; a judge that compares, and the mean
of a group, need all of them. A cohort has a size. It is scored once that many members are there, or when it has waited
long enough: then those that are present are the group, and the others are late.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jurygraph.messages import quote
from jurygraph.schema import Response, Trace, digest_of
from jurygraph.server.settings import RequestRefusedError, build_unavailable_error

log = logging.getLogger(__name__)


class CohortTraces(NamedTuple):
    """The traces of a whole cohort, and the positions of some members in it, None for those that came late.

    One that `is_stored` was scored for an earlier request, which was counted.
    """

    traces: list[Trace]
    positions: Sequence[int | None]
    is_stored: bool = False


ScoreMembersFunction = Callable[[Sequence[Response]], Awaitable[CohortTraces]]


class CohortKey(NamedTuple):
    """The task of the members with its content, their policy and their step.

    A full cohort is followed by another one: without a step that of the task's next epoch, else one that may be the
    same again.
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
    """Members, and the traces once they are scored, with the positions of `members`."""

    key: CohortKey
    size: int
    traces_future: "asyncio.Future[CohortTraces]"
    members: list[Response] = field(default_factory=list)
    is_closed: bool = False
    late_digests: set[str] = field(default_factory=set)
    timer_or_task: Any = None
    """The timer of its deadline, then the task that scores it."""

    @property
    def missing(self) -> int:
        return self.size - len(self.members)

    @property
    def name(self) -> str:
        """Its name in messages."""
        step = "" if self.key.step is None else f" at step {self.key.step}"
        return f"the cohort of task {quote(self.key.task)}{step}"


class CohortTable:
    """Brings members together by their key."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._cohorts: dict[CohortKey, Cohort] = {}
        """Cohorts that wait for members, and for as long again those scored without some members, which may be late."""
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

        Members that are scored already come together again, and `score` finds that they are the same. Raises
        `RequestRefusedError` with status 409 for late members and for those that do not fit, and whatever scoring
        raises.
        """
        digests = [response_content_digest(response) for response in responses]
        cohort = self._find_or_open_cohort(key, size, digests)
        self._refuse_unfitting_responses(cohort, size, responses, digests)
        cohort.members += responses
        if not cohort.missing:
            self._close_cohort(cohort, score)
        elif cohort.timer_or_task is None:
            loop = asyncio.get_running_loop()
            cohort.timer_or_task = loop.call_later(self._wait, self._close_cohort, cohort, score)
        scored = await asyncio.shield(cohort.traces_future)
        # by identity, because two members may be equal
        position_by_id = dict(zip(map(id, cohort.members), scored.positions, strict=True))
        positions = [position_by_id[id(response)] for response in responses]
        if None in positions:
            raise self._build_late_error(cohort, len(scored.traces))
        return scored._replace(positions=positions)

    def _find_or_open_cohort(self, key: CohortKey, size: int, digests: Sequence[str]) -> Cohort:
        """Return the cohort of a key; a new one where there is none, or these digests begin the next one."""
        cohort = self._cohorts.get(key)
        if cohort is None or self._begins_next_cohort(cohort, digests):
            cohort = Cohort(key, size, asyncio.get_running_loop().create_future())
            self._cohorts[key] = cohort
        return cohort

    def _begins_next_cohort(self, cohort: Cohort, digests: Sequence[str]) -> bool:
        """Return whether responses are not late: they are of the next epoch, or were scored and come again."""
        if not cohort.is_closed or cohort.late_digests.issuperset(digests):
            return False
        scored_digests = map(response_content_digest, cohort.members)
        is_repeated = cohort.key.step is not None and not set(digests).isdisjoint(scored_digests)
        return is_repeated or len(cohort.late_digests) >= cohort.missing

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
            raise self._build_late_error(cohort, len(cohort.members))
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

    def _build_late_error(self, cohort: Cohort, count: int) -> RequestRefusedError:
        return RequestRefusedError(
            409,
            f"{cohort.name} was scored with {count} of {cohort.size} members after {self._wait:g} s; "
            "this one came later and has no reward",
        )

    def _close_cohort(self, cohort: Cohort, score: ScoreMembersFunction) -> None:
        """Let no more members in, and score those that are there."""
        cohort.is_closed = True
        if cohort.timer_or_task is not None:
            cohort.timer_or_task.cancel()
        # the order of arrival must not name responses, or the same cohort would be another one after a restart
        cohort.members.sort(key=lambda member: (member.id, response_content_digest(member)))
        loop = asyncio.get_running_loop()
        if cohort.missing:
            loop.call_later(self._wait, self._forget_cohort, cohort)
        else:
            self._forget_cohort(cohort)
        # kept there, as the loop holds tasks weakly
        cohort.timer_or_task = loop.create_task(self._score(cohort, score))

    async def _score(self, cohort: Cohort, score: ScoreMembersFunction) -> None:
        try:
            scored = await score(cohort.members)
        except Exception as error:  # noqa: BLE001 - raised to all members
            self._fail_cohort(cohort, error)
            return
        cohort.traces_future.set_result(scored)
        if len(scored.traces) > len(cohort.members):  # members of a stored one: none of it is late
            self._forget_cohort(cohort)
        elif cohort.missing and not scored.is_stored:
            self.incomplete_count += 1
            log.warning(
                "%s is scored with %d of %d members after %g s",
                *(cohort.name, len(cohort.members), cohort.size, self._wait),
            )

    def _forget_cohort(self, cohort: Cohort) -> None:
        if self._cohorts.get(cohort.key) is cohort:
            del self._cohorts[cohort.key]

    def _fail_cohort(self, cohort: Cohort, error: Exception) -> None:
        """Give an error to all members; when they are sent again they are a cohort again."""
        cohort.is_closed = True
        self._forget_cohort(cohort)
        cohort.traces_future.set_exception(error)
        cohort.traces_future.exception()  # nobody may wait for it any more

    def forget(self, key: CohortKey) -> None:
        """Forget a scored cohort, so that its members are not late when they are sent again."""
        cohort = self._cohorts.get(key)
        if cohort is not None and cohort.is_closed:
            self._forget_cohort(cohort)

    def end_waiting_cohorts(self) -> None:
        """End the cohorts that wait for members: those that are there are not scored."""
        for cohort in list(self._cohorts.values()):
            if not cohort.is_closed:
                cohort.timer_or_task.cancel()
                self._fail_cohort(
                    cohort, build_unavailable_error("the server ends; send the group again")
                )
