"""Scores the requests of all protocols: finds the plan, waits for the cohort, and fills in what failed.

It knows nothing of HTTP. Everything that goes wrong is raised: a `RequestRefusedError` with a status, or an error of
the jury.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from weakref import WeakValueDictionary

from jurygraph.decision.recipe import component_names
from jurygraph.errors import RUN_ENDING, JurygraphError, NoRewardError
from jurygraph.graphs.groups import Group
from jurygraph.integrations.failed_rewards import (
    MAX_WITHOUT_REWARD,
    FailedRewardRule,
    OutageGuard,
    OutageUnit,
    describe_first_failure,
    fill_failed,
    is_power_of_ten,
)
from jurygraph.integrations.lazy_jury import MissingStepWarning, compares_responses
from jurygraph.jury import Jury
from jurygraph.messages import quote
from jurygraph.runs.open_ended_recorder import GroupName
from jurygraph.runs.reports.summary import count_trace_findings
from jurygraph.runs.workflows.plans_file import PlannedTask, PlansFile
from jurygraph.schema import Response, Task, Trace, digest_of
from jurygraph.server.cohorts import (
    CohortKey,
    CohortTable,
    CohortTraces,
    response_content_digest,
)
from jurygraph.server.group_scorer import GroupScorer
from jurygraph.server.settings import (
    CODE_BATCH_WINDOW_SECONDS,
    MODEL_BATCH_WINDOW_SECONDS,
    RequestRefusedError,
    ServerSettings,
)
from jurygraph.server.task_plans import TaskPlans

log = logging.getLogger(__name__)

_FAILURE_HINT = "with --out, `jurygraph show RUN --status failed` lists the responses"


class Submission(NamedTuple):
    """Responses of one task as a request brings them. The task comes whole, or is one of the server's by its id."""

    responses: Sequence[Response]
    task: Task | None = None
    task_id: str | None = None
    step: int | None = None
    policy: str | None = None
    cohort_size: int | None = None


class ScoredSubmission(NamedTuple):
    """The traces and the rewards of a submission, in its order.

    `filled` and `factor` are those of its whole group (see `FilledRewards`), which has the `group_traces`.
    """

    traces: list[Trace]
    rewards: list[float | None]
    filled: int
    factor: float | None
    group_traces: list[Trace]


@dataclass
class RewardServiceCounts:
    """Counts of groups, rewards, and findings that need a quotation, since the server began.

    Each is a metric by its name. A group counts when it is scored, and not when it is stored and comes again.
    """

    groups: int = 0
    rewards: int = 0
    failed_rewards: int = 0
    degraded_rewards: int = 0
    filled_rewards: int = 0
    findings: int = 0
    unsupported_findings: int = 0


class RewardService:
    """The jury of a server, with its tasks and its cohorts."""

    def __init__(
        self,
        jury: Jury,
        settings: ServerSettings,
        tasks: PlansFile | None = None,
    ) -> None:
        self.settings = settings
        self.plans = TaskPlans(jury, tasks)
        window = settings.window
        if window is None:
            window = MODEL_BATCH_WINDOW_SECONDS if jury.gateways else CODE_BATCH_WINDOW_SECONDS
        self.scorer = GroupScorer(jury, window)
        self.cohorts = CohortTable(settings.cohort_wait)
        self.jury = jury
        self.counts = RewardServiceCounts()
        self.reward_sum = 0.0
        self.failure_counts: Counter[tuple[str, str, str]] = Counter()
        self._last_outage: str | None = None
        """Why groups got no rewards; None since one got some."""
        records = {name: evaluator.record for name, evaluator in jury.evaluators.items()}
        self.component_names = component_names(jury.config, records)
        """Every component that a reward of the jury can have: a task may lack some."""
        self._compares = compares_responses(jury)
        self._locks = WeakValueDictionary[GroupName, asyncio.Lock]()
        self._missing_step_warning = MissingStepWarning()
        self._outage_guard = OutageGuard()
        self._unrewarded_digests = deque[str](maxlen=max(MAX_WITHOUT_REWARD.values()))
        """The groups without a reward since the last one with some."""

    @property
    def outage(self) -> str | None:
        """Why there are no rewards at present; None while the judge works."""
        return self._last_outage or self.jury.gateways.outage

    def completes_waiting_cohort(self, submission: Submission) -> bool:
        """Return whether the responses of a submission are members that others wait for."""
        task_id = submission.task_id if submission.task is None else submission.task.id
        return submission.cohort_size is not None and self.cohorts.waits_for_member(
            str(task_id), submission.policy, submission.step
        )

    async def score(self, submission: Submission, rule: FailedRewardRule) -> ScoredSubmission:
        """Return the scored submission; failed rewards are as the rule has them.

        Raises `RequestRefusedError`, `NoRewardError` by the rule, and whatever `Jury.ascore` raises.
        """
        self._check_group_size(submission)
        if submission.task is not None:
            planned_task = await self.plans.plan(submission.task)
        else:
            planned_task = self.plans.find(str(submission.task_id))
        task = planned_task.task
        key = CohortKey(task.id, task.content_digest, submission.policy, submission.step)
        if submission.cohort_size is None:
            cohort_traces = await self._score_group(planned_task, submission, submission.responses)
        else:
            cohort_traces = await self.cohorts.join(
                key,
                submission.cohort_size,
                submission.responses,
                lambda members: self._score_group(planned_task, submission, members),
            )
        try:
            rewards = [trace.reward.value for trace in cohort_traces.traces]
            why = describe_first_failure(cohort_traces.traces)
            filled_rewards = fill_failed(
                rewards, rule, why=why, setting=self._explain_raise_setting()
            )
        except NoRewardError:
            self.cohorts.forget(key)
            raise
        # no position is None: `join` refuses late members
        positions = [position for position in cohort_traces.positions if position is not None]
        traces = [cohort_traces.traces[position] for position in positions]
        if filled_rewards.filled and not cohort_traces.is_stored:
            # each part of a group counts its own
            self.counts.filled_rewards += [trace.reward.value for trace in traces].count(None)
        return ScoredSubmission(
            traces,
            [filled_rewards.values[position] for position in positions],
            filled_rewards.filled,
            filled_rewards.factor,
            cohort_traces.traces,
        )

    def _explain_raise_setting(self) -> str:
        """Return why the rule is `raise` where it is."""
        chosen = self.settings.failed
        if chosen is None:
            return "`auto` without a cohort is `raise` (give --group-size N, or --failed a number)"
        if chosen == "raise":
            return "`failed` is `raise`"
        return f"this protocol has no `{chosen}`, which is `raise` here"

    def _check_group_size(self, submission: Submission) -> None:
        """Refuse more responses than are allowed, and one alone where the config compares responses."""
        max_responses = self.settings.max_responses
        size = submission.cohort_size
        if len(submission.responses) > max_responses or (size is not None and size > max_responses):
            raise RequestRefusedError(
                413, f"a group has more than {max_responses} responses; send smaller ones"
            )
        if size is not None and size < len(submission.responses):
            raise RequestRefusedError(
                422, f"cohort.size: is {size}, and the request has more responses than that"
            )
        if self._compares and size is None and len(submission.responses) == 1:
            raise RequestRefusedError(
                422,
                "the config compares the responses of a group, and this request has one alone; "
                "send the group in one request, or name its size: `cohort`, or --group-size",
            )

    async def _score_group(
        self, planned_task: PlannedTask, submission: Submission, responses: Sequence[Response]
    ) -> CohortTraces:
        """Return the traces of a whole group, which may be stored in another order, or with more members."""
        group = Group(
            planned_task.task,
            responses,
            planned_task.plan,
            step=submission.step,
            phase=submission.policy,
        )
        recorder = self.jury.open_recorder()
        if recorder is not None:
            self._missing_step_warning.observe([group])
        # Single responses are no session each: whoever forgets the cohort is refused.
        is_group = submission.cohort_size is not None or len(responses) > 1
        if recorder is None or group.step is None or not is_group:
            return await self._judge_group(group, range(len(responses)))
        # one at a time, so that what comes again meanwhile finds it stored
        async with self._locks.setdefault(GroupName.of(group), asyncio.Lock()):
            group, positions = recorder.find_recurring(group, submission.cohort_size)
            return await self._judge_group(group, positions)

    async def _judge_group(self, group: Group, positions: Sequence[int | None]) -> CohortTraces:
        """Return the traces of a group, which counts once, and take note of whether the judge works."""
        recorder = self.jury.open_recorder()
        is_stored = recorder is not None and recorder.is_stored(group)
        try:
            traces = await self.scorer.score(group)
        except RUN_ENDING as error:
            self._begin_outage(error)
            raise
        rewards = [trace.reward.value for trace in traces]
        if not is_stored:
            self._log_failures(traces)
            self.reward_sum += sum(filter(None, rewards))
            self.counts.groups += 1
            self.counts.rewards += len(rewards)
            self.counts.failed_rewards += rewards.count(None)
            self.counts.degraded_rewards += [trace.reward.status for trace in traces].count(
                "degraded"
            )
            findings = count_trace_findings(traces)
            self.counts.findings += findings.quotable
            self.counts.unsupported_findings += findings.unsupported
        self._observe_rewards(group, traces)
        return CohortTraces(traces, positions, is_stored)

    def _observe_rewards(self, group: Group, traces: Sequence[Trace]) -> None:
        """Take note of whether the judge works. Raises `NoRewardError` for too many groups in a row without a reward.

        A group that comes again says nothing new of the judge: clients repeat what they got no reward for.
        """
        rewards = [trace.reward.value for trace in traces]
        if rewards.count(None) < len(rewards):
            self._outage_guard.observe(rewards)
            self._unrewarded_digests.clear()
            self._last_outage = None
            return
        responses = sorted(map(response_content_digest, group.responses))
        digest = digest_of([group.task.content_digest, *responses])
        if digest in self._unrewarded_digests:
            if self._last_outage is not None:
                raise NoRewardError(self._last_outage)
            return
        self._unrewarded_digests.append(digest)
        unit: OutageUnit = "samples" if len(rewards) == 1 else "groups"
        try:
            self._outage_guard.observe(rewards, describe_first_failure(traces), unit=unit)
        except NoRewardError as error:
            self._begin_outage(error)
            raise

    def _log_failures(self, traces: Sequence[Trace]) -> None:
        """Log the judgements that failed, by evaluator and kind: the first, the tenth, the hundredth and so on.

        A line has no message of a fault, which may quote a response.
        """
        for verdict in chain.from_iterable(trace.verdicts for trace in traces):
            failure = verdict.failure
            if failure is None or verdict.superseded:
                continue
            key = verdict.evaluator, failure.cause, failure.kind
            self.failure_counts[key] += 1
            count = self.failure_counts[key]
            if is_power_of_ten(count):
                what = "a judgement" if count == 1 else f"{count} judgements so far"
                log.warning(
                    "%s: %s failed (%s, cause %s), the last of response %s; %s",
                    *(verdict.evaluator, what, failure.kind, failure.cause),
                    *(quote(verdict.about), _FAILURE_HINT),
                )

    def _begin_outage(self, error: JurygraphError) -> None:
        if self._last_outage is None:
            log.warning("no rewards at present (%s); /readyz has the reason", type(error).__name__)
        self._last_outage = str(error)

    async def close(self) -> None:
        """End what is in work, and the cohorts that wait."""
        self.cohorts.end_waiting_cohorts()
        await asyncio.sleep(0)  # those who waited for a cohort get its error
        await self.scorer.close()
