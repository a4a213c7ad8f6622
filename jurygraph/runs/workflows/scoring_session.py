"""Score into a run: existing results are kept, and only missing ones are requested."""

import asyncio
import uuid
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

from jurygraph.decision.decide import GroupVerdicts, PossibleRewards
from jurygraph.decision.weighting import refuse_unknown_stakeholders
from jurygraph.display import ProgressCallback
from jurygraph.errors import (
    BudgetExceeded,
    EvaluatorError,
    InputError,
    ModelAccessError,
    ModelError,
    PlanError,
    UnusableRepliesError,
)
from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults
from jurygraph.graphs.state import Group
from jurygraph.jury import Jury
from jurygraph.messages import shell_quote
from jurygraph.models.request import CallSink
from jurygraph.planner import Planner
from jurygraph.runs.outline import group_verdicts, read_groups
from jurygraph.runs.recorder import build_header
from jurygraph.runs.reports.summary import (
    Estimator,
    Forecast,
    ReadTexts,
    ReplySource,
    Summary,
    without_model_conditions,
)
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.runs.store.folder import PLANNING
from jurygraph.runs.store.header import Extent, Header, changes, differences, format_value
from jurygraph.runs.store.ledger import Ledger, Writer
from jurygraph.runs.store.packing import skipped_questions
from jurygraph.runs.workflows.branch import ReusedRun
from jurygraph.runs.writable_run import CallStore, PlanningCalls, WritableRun, append_close_record
from jurygraph.schema import Call, Plan, Response, Task, Trace
from jurygraph.schema.task import ProfilesLine
from jurygraph.sources import TaskSource
from jurygraph.sources.files import close_on_error
from jurygraph.sources.tasks import ProfilesFile

_MAX_LISTED = 3
"""Number of differing tasks and responses that are described if a run cannot be resumed."""
_MAX_KEPT_QUESTIONS = 4096
"""Number of questions in the plans that a session keeps until their tasks are scored; others are read again."""
_MAX_PLANS = 100
"""Number of plans, in the order of the tasks, whose possible rewards are computed."""
_MENDED_ELSEWHERE = (UnusableRepliesError, EvaluatorError)
"""Errors that end a run until a setting or an evaluator is changed."""


class ScoringSession:
    """A session of a jury over a file of tasks: `prepare` plans the remaining tasks, `score` scores them into the run.

    An existing run is locked until `close`; a new one leaves nothing behind unless `prepare` succeeds. `profiles` gives
    the constraints and tensions of profiles in text. `tasks_needing_model` counts the tasks of a forecast whose
    profiles or criterion roles a model must determine first: requests that depend on these are not in the forecast.
    `unanswered_annotations` counts the pairs and criteria that an annotator left unanswered in the planned tasks.
    `plan_notes` lists the notes of the planned tasks, each after the plan's checked share and the task's id.
    `possible_rewards` are those of the plans of the scored tasks, of the first 100 where there are more.
    `stored_planning_calls` is the number of calls that a stopped planning left in the folder for the next session.
    """

    def __init__(
        self,
        folder: Path,
        jury: Jury,
        source: TaskSource,
        limit: int | None = None,
        branch: ReusedRun | None = None,
        profiles: ProfilesFile | None = None,
    ) -> None:
        """Open the run in the folder, if there is one, and count its results.

        Raises `InputError` where it has other files, config, model or evaluators, or where another process writes it.
        """
        self.folder = folder
        self.jury = jury
        self._planner = Planner(jury)
        self.limit = limit
        self.summary = Summary()
        self.possible_rewards = PossibleRewards(jury.combiners, _MAX_PLANS)
        self.tasks_needing_model = self.unanswered_annotations = self.stored_planning_calls = 0
        self.plan_notes: list[tuple[float, str, str]] = []
        self._kept_plans: dict[str, Plan] = {}
        self._source = source
        self._is_stopping = self._is_cut_short = self._has_planning_calls = False
        self._branch = branch
        self._profiles = profiles
        self._run = Run.open_if_closed(folder) or WritableRun.open_for_writing(folder)
        self._first_unscored = 0
        self._scored_later = frozenset[int]()
        if self._run is not None:
            with close_on_error(self._run.close):
                self._load_run(self._run)
        self.tasks_done = self._first_unscored + len(self._scored_later)
        self.remaining = self._count_remaining()
        self.is_finished = self._run is not None and not self.remaining.tasks

    def _count_remaining(self) -> Extent:
        tasks, responses = self._source.extent(self._first_unscored, self.limit, self._scored_later)
        return Extent(tasks=tasks, responses=responses)

    def _load_run(self, run: Run) -> None:
        if run.header.is_open_ended:
            problem = "was recorded from Python, without a file of tasks"
            raise InputError(f"{self.folder}: {problem}; use another --out")
        found = list(describe_differences(run, self._build_header(), self._source))
        if found:
            hint = "use another --out, or --branch to request only what changed"
            raise InputError(
                f"{self.folder}: was started with other settings: {'; '.join(found)}; {hint}"
            )
        self._add_to_bill(run, run.planning_calls())
        scored = _scored_numbers(run)
        self._first_unscored = next(
            (n for n, number in enumerate(scored) if n != number), len(scored)
        )
        self._scored_later = frozenset(scored[self._first_unscored :])
        for group in read_groups(run):
            read_verdicts = partial(group_verdicts, run, group, run.decision(group.decision))
            self.possible_rewards.add(
                self._source.line_of(group.record.key), group.plan, read_verdicts
            )
            questions = run.source.survey_outline(group.survey).questions
            for trace in group.traces:
                name = trace.response_id
                read_texts = partial(run.source.ledger.texts_of, trace.record)
                body = trace.body
                self.summary.add(
                    group.record.key, name, questions, body, trace.reward, read_texts, trace.names
                )
                self._add_to_bill(run, map(Call.model_validate, trace.body.get("calls", ())))
        if run.is_closed and self._count_remaining().tasks:
            problem = f"was closed when {run.tasks_scored} of {self.task_count} tasks were scored"
            hint = f"score into another --out, with --branch {shell_quote(self.folder)}"
            raise InputError(f"{self.folder}: {problem}; {hint}")

    def _build_header(self) -> Header:
        source = self._source
        tasks, responses = source.extent()
        return build_header(
            self.jury,
            self.folder,
            tasks=source.tasks_file,
            responses=source.responses_file,
            profiles=None if self._profiles is None else self._profiles.file_digest,
            edges=source.edges_file,
            columns=source.columns,
            extent=Extent(tasks=tasks, responses=responses),
            branch=self._branch.run.origin(self.folder) if self._branch else None,
        )

    @property
    def task_count(self) -> int:
        return self._source.extent()[0]

    async def forecast(self, report: ProgressCallback) -> Forecast:
        """Return a forecast of the remaining work and, with a model, of its calls. Sends and writes nothing.

        `report` receives the number of responses of each group.
        """
        self._refuse_unknown_stakeholders()
        gateways = self.jury.gateways
        expected = Forecast()
        estimator = (
            Estimator(gateways, self._known_calls, self.jury.config.only_then) if gateways else None
        )
        try:
            for task, group in self._source.pairs(
                self._first_unscored, self.limit, self._scored_later
            ):
                plan = await self._dry_run_plan(task, estimator)
                reusable = (
                    NO_REUSED_RESULTS
                    if plan is None
                    else self._find_reusable_results(task, group, plan)
                )
                questions = () if plan is None else plan.survey.questions
                expected.add_group(
                    questions, len(group), self.jury.evaluators, reusable.verdicts.values()
                )
                if plan is not None and estimator is not None:
                    expected_plan = without_model_conditions(plan, self.jury.evaluators)
                    sink = self._known_calls
                    estimator.add(
                        await self._planner.aestimate_requests(
                            task, group, expected_plan, reusable, sink
                        )
                    )
                report(len(group))
        finally:
            await gateways.close()
        expected.model = None if estimator is None else estimator.estimate()
        return expected

    async def _dry_run_plan(self, task: Task, estimator: Estimator | None) -> Plan | None:
        """Return the plan of a task, without a graph that a model would have to annotate.

        None where a model must read its profiles first. The first requests are added to the estimator.
        """
        sink = None if estimator is None else self._known_calls
        with self._locate_errors([task]):
            plan, first = await self._planner.aestimate_plan(task, self._profile_line(task), sink)
        if estimator is not None:
            lacks_reply = estimator.add(first)
            # without a role for each criterion, an annotator does not know the candidate pairs of criteria
            lacks_roles = task.rubric is not None and any(
                criterion.role is None for criterion in task.rubric.criteria
            )
            self.tasks_needing_model += plan is None or (lacks_reply and lacks_roles)
        if plan is not None:
            self.plan_notes += ((plan.checked_share, plan.task_id, note) for note in plan.notes)
        return plan

    @cached_property
    def _known_calls(self) -> CallStore:
        """The recorded calls: of this run, of the branch and of a planning that was stopped."""
        runs = (self._run, self._branch.run if self._branch else None)
        ledgers = [run.ledger if run else None for run in runs]
        return CallStore(
            *(ledger for ledger in (*ledgers, self._planning_ledger) if ledger is not None)
        )

    @cached_property
    def _planning_ledger(self) -> Ledger | None:
        """The calls of a planning that was stopped; None if there are none."""
        path = self.folder / PLANNING
        return Ledger.open(path) if path.exists() else None

    async def prepare(self, report: ProgressCallback) -> None:
        """Plan all remaining tasks, or none of them; `report` receives 1 for each.

        Raises `PlanError`, and for an unreadable profile `ModelError` or `BudgetExceeded`, each with file and line;
        `ConfigError` if `weights.fixed` names a stakeholder that no task of the file has.
        """
        if self.is_finished:
            return
        self._refuse_unknown_stakeholders()
        run = self._run = self._run or WritableRun.create(
            self.folder, self._build_header(), uuid.uuid4().hex
        )
        assert isinstance(run, WritableRun), "a closed run is finished"
        gateway = self.jury.gateway
        others = [] if self._branch is None else [self._branch.run.ledger]
        calls = (
            None
            if gateway is None
            else PlanningCalls(run, *others, is_durable=gateway.cache is None)
        )
        try:
            await self._plan_tasks(run, calls, report)
        except BaseException as error:
            if isinstance(error, ModelError | BudgetExceeded):
                # The cache or the file of calls needs every reply for the next session.
                await self.jury.gateways.wait_for_pending()
            await self.jury.gateways.close()
            if calls is not None:
                self.stored_planning_calls = calls.close()
            self._cancel_if_stopping(error)
            raise
        if calls is not None:
            calls.discard()

    def _refuse_unknown_stakeholders(self) -> None:
        names = self.jury.config.weights.fixed.keys()
        known = set[str]()
        if any(evaluator.audience == "stakeholder" for evaluator in self.jury.evaluators.values()):
            pairs = self._source.pairs()
            while not names <= known and (pair := next(pairs, None)) is not None:
                known.update(person.id for person in pair[0].stakeholders)
            refuse_unknown_stakeholders(names, known)

    async def _plan_tasks(
        self, run: WritableRun, sink: CallSink | None, report: ProgressCallback
    ) -> None:
        started: deque[Task] = deque()
        room = _MAX_KEPT_QUESTIONS
        with self._locate_errors(started):
            async for plan in self.jury.aprepare_many(self._start_tasks(run, started), sink):
                task = started.popleft()
                run.ledger.append(*run.plan_drafts(task, plan))
                room -= len(plan.survey.questions)
                if room >= 0 and not plan.calls:  # which are no part of the stored plan
                    self._kept_plans[plan.task_id] = plan
                self._has_planning_calls |= bool(plan.calls)
                if task.rubric is not None and (record := task.rubric.annotation) is not None:
                    self.unanswered_annotations += len(record.unanswered) + len(record.unassigned)
                self.plan_notes += ((plan.checked_share, plan.task_id, note) for note in plan.notes)
                self._add_to_bill(run, plan.calls)
                report(1)
        if self._is_cut_short:
            raise asyncio.CancelledError
        run.ledger.commit()

    def stop(self) -> None:
        """Send no further request and begin no further task; requests in flight end, and their replies are kept.

        `prepare` and `score` raise CancelledError if any task remains.
        """
        self._is_stopping = True
        self.jury.gateways.stop()

    def _cancel_if_stopping(self, error: BaseException) -> None:
        """Raise CancelledError in place of the refusal of a request after `stop`."""
        if self._is_stopping and isinstance(error, BudgetExceeded):
            raise asyncio.CancelledError from None

    def _pairs_until_stopped(
        self, start: int, skipped: Collection[int] = ()
    ) -> Iterator[tuple[Task, tuple[Response, ...]]]:
        for pair in self._source.pairs(start, self.limit, skipped):
            if self._is_stopping:
                self._is_cut_short = True
                return
            yield pair

    @property
    def tasks_to_plan(self) -> int:
        return (
            0
            if self.is_finished
            else self._source.extent(self._run.tasks_planned if self._run else 0, self.limit)[0]
        )

    def _start_tasks(
        self, run: WritableRun, started: deque[Task]
    ) -> Iterator[tuple[Task, ProfilesLine | None]]:
        """Yield the tasks that are left to plan with their profiles, and append them to `started`."""
        for task, _ in self._pairs_until_stopped(run.tasks_planned):
            started.append(task)
            yield task, self._profile_line(task)

    def _profile_line(self, task: Task) -> ProfilesLine | None:
        return None if self._profiles is None else self._profiles.line_of(task)

    def _find_reusable_results(
        self, task: Task, responses: Sequence[Response], plan: Plan
    ) -> ReusedResults:
        return (
            self._branch.find_reusable_results(task, responses, plan)
            if self._branch
            else NO_REUSED_RESULTS
        )

    @contextmanager
    def _locate_errors(self, tasks: Sequence[Task]) -> Iterator[None]:
        """Add the file and line of the first of the tasks to errors raised inside."""
        try:
            yield
        except (PlanError, ModelError, BudgetExceeded) as error:
            where = self._source.place(tasks[0].id)
            place = self._source.tasks_file.name + ("" if where is None else f", {where}")
            kept = "from the cache" if self.jury.config.calls.cache else "with the stored replies"
            retry = f"; nothing was written; run the same command again: it continues {kept}"
            hint = "" if isinstance(error, PlanError) else retry
            # changed in place, to keep its class and attributes, such as the cycle of a GraphCycleError
            error.args = (f"{place}: {error}{hint}",)
            raise

    async def score(self, report: ProgressCallback) -> None:
        """Score the planned tasks; `report` receives the size of each group. Results are durable when this returns.

        Raises the errors that end a run; finished groups are kept, and the next session does the rest.
        """
        if self.is_finished:
            return
        run = self._run
        assert isinstance(run, WritableRun), "prepare() comes before score()"
        writer = Writer(run.ledger)
        gateways = self.jury.gateways
        reusable = self._branch.reusable_ledgers if self._branch else ()
        sink = CallStore(run.ledger, *reusable, writer=writer)
        try:
            async with aclosing(
                self.jury.ascore_as_finished(self._start_groups(run), sink)
            ) as batches:
                async for finished in batches:
                    for group, traces in finished:
                        self._store_group(run, writer, group, traces, report)
            if self._is_cut_short:
                raise asyncio.CancelledError
        except (BudgetExceeded, EvaluatorError, ModelError) as error:
            await gateways.wait_for_pending()
            self._cancel_if_stopping(error)
            if isinstance(error, _MENDED_ELSEWHERE) and self._has_nothing_to_keep(error):
                run.discard()
                error.args = (
                    f"{error}; nothing was scored; run the same command again once that is changed",
                )
                raise
            mended = "once that is mended; another model needs another --out"
            when = f"run the same command again {mended if isinstance(error, ModelAccessError) else 'to continue'}"
            if isinstance(error, _MENDED_ELSEWHERE):
                when = f"once that is changed, continue in another --out with --branch {shell_quote(self.folder)}"
            error.args = (f"{error}; finished groups are kept; {when}",)
            raise
        finally:
            await gateways.close()
            writer.close()
        self.close_if_complete()

    def _has_nothing_to_keep(self, error: Exception) -> bool:
        """Return whether no reward has a value, and no reply that could be used would be lost with the run."""
        has_none = isinstance(error, UnusableRepliesError) or not self.jury.gateways
        has_values = self.summary.failed < self.summary.responses
        return (
            (has_none or self.jury.config.calls.cache)
            and not has_values
            and not self._has_planning_calls
        )

    def _start_groups(self, run: WritableRun) -> Iterator[Group]:
        for task, responses in self._pairs_until_stopped(self._first_unscored, self._scored_later):
            plan = self._kept_plans.pop(task.id, None) or run.plan_of(task.id, known=task)
            yield Group(task, responses, plan, self._find_reusable_results(task, responses, plan))

    def _store_group(
        self,
        run: WritableRun,
        writer: Writer,
        group: Group,
        traces: Sequence[Trace],
        report: ProgressCallback,
    ) -> None:
        """Append the traces of a group, and count them."""
        plan = group.plan
        assert plan is not None
        drafts = run.group_drafts(plan, traces, group.responses)
        writer.append(drafts)
        _, *of_traces = drafts  # the first is the group's own
        skipped = frozenset(skipped_questions(draft.body) for draft in of_traces)
        key = plan.survey.outline.digest, plan.decision.digest, skipped
        self.possible_rewards.add(
            self._source.line_of(plan.task_id), key, partial(_group_verdicts, plan, traces)
        )
        if self._branch is not None:
            self._branch.count(traces, group.reused_results.verdicts)
        for trace, draft in zip(traces, of_traces, strict=True):
            texts = dict(enumerate(draft.texts))
            reward = draft.body["reward"]
            name = trace.response_id
            questions = plan.survey.questions
            read_texts: ReadTexts = partial(dict, texts)
            components = [spec.name for spec in plan.decision.specs]
            self.summary.add(
                trace.task_id, name, questions, draft.body, reward, read_texts, components
            )
            self._add_to_bill(run, trace.calls)
        report(len(traces))

    def _add_to_bill(self, run: Run, calls: Iterable[Call]) -> None:
        """Count calls by the source of their replies; a call without a record in a branched run is carried over."""
        gateways = self.jury.gateways
        for call in calls:
            name = gateways.name_of(call)
            gateway = gateways.get(name)
            source: ReplySource = "cached" if call.cache_hit else "sent"
            if call.fault is not None:
                source = "unanswered"
            elif run.header.branch is not None and run.ledger.find("call", call.id) is None:
                source = "carried"
            elif gateway is not None and gateway.backend.is_recording:
                source = "replayed"
            self.summary.bill.add(call, source, (name or "model") if len(gateways) > 1 else None)

    def close_if_complete(self) -> None:
        """Close a run that is complete; it may have been stopped just before it was closed."""
        run = self._run
        if run is not None and not run.is_closed and run.tasks_scored == self.task_count:
            append_close_record(run)

    def close(self) -> None:
        """Release the run for other processes; a new run that was not prepared is removed."""
        if self._run is not None:
            self._run.close()
            self._run = None
        if (planning := vars(self).pop("_planning_ledger", None)) is not None:
            planning.close()


def _group_verdicts(plan: Plan, traces: Sequence[Trace]) -> GroupVerdicts:
    """Return a group to be decided; a verdict on an unordered pair is in two traces."""
    verdicts = {verdict.key: verdict for trace in traces for verdict in trace.verdicts}
    names = [trace.response_id for trace in traces]
    return GroupVerdicts(plan.decision, plan.survey.questions, names, list(verdicts.values()))


def _scored_numbers(run: Run) -> list[int]:
    """Return the numbers of the scored tasks in the tasks file, from 0 and ascending: it is planned in its order."""
    ledger = run.source.ledger
    last = run.last_base_record
    scored = {task for _, task in ledger.ordered_groups(last)}
    return [number for number, task in enumerate(ledger.numbers("task", last)) if task in scored]


def describe_differences(run: Run, here: Header, source: TaskSource) -> Iterator[str]:
    """Yield one sentence for each difference; where the files differ, for the first tasks and responses that differ.

    Their contents are compared, too, after an erasure, which removes the digests of the files.
    """
    yield from differences(run.header, here)
    marks = ((header.tasks, header.responses, header.edges) for header in (run.header, here))
    in_run, current = ([mark and mark.sha256 for mark in files] for files in marks)
    if in_run != current:
        sentences = list(islice(_compare_contents(run, source), _MAX_LISTED + 1))
        yield from sentences[:_MAX_LISTED]
        if len(sentences) > _MAX_LISTED:
            yield "and more"


def _compare_contents(run: Run, source: TaskSource) -> Iterator[str]:
    planned = [record.key for record in run.ledger.records("task")]
    expected = run.header.extent.tasks
    for number, (task, responses) in enumerate(source.pairs()):
        if number >= expected or (number < len(planned) and task.id != planned[number]):
            yield f"task {task.id!r} is new, or at another position"
        elif number < len(planned):
            stored = run.task(task.id)
            if stored is not None:
                yield from _compare_task(stored, task, responses, run)
    for name in run.ledger.keys("task"):
        if source.place(name) is None:
            yield f"task {name!r} is gone"


def _compare_task(
    stored: Task, task: Task, responses: tuple[Response, ...], run: Run
) -> Iterator[str]:
    for field, before, after in changes(
        stored.model_dump(mode="json"), task.model_dump(mode="json")
    ):
        yield f"task {task.id!r}, field {field}: is {format_value(before)} in the run and {format_value(after)} here"
    if run.source.ledger.find("group", task.id) is None:
        return
    given_by_id = {response.id: response for response in responses}
    stored_by_id = {scored.trace.response_id: scored for scored in run.group_of(task.id)}
    for name in dict.fromkeys((*stored_by_id, *given_by_id)):
        if name not in given_by_id or name not in stored_by_id:
            yield f"response {name!r} is {'gone' if name in stored_by_id else 'new'}"
        elif _is_another(stored_by_id[name], given_by_id[name]):
            yield f"response {name!r} is another one now"


def _is_another(old: ScoredResponse, new: Response) -> bool:
    stored = old.response
    if stored is None:  # erased
        return old.trace.agent != new.agent
    return any(
        getattr(stored, name) != getattr(new, name)
        for name in ("content_digest", "agent", "labels", "metadata")
    )
