"""Score the planned tasks of a job into its run: existing results are kept, and only missing ones are requested."""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain

from jurygraph.display import ProgressCallback
from jurygraph.errors import (
    BudgetExceeded,
    EvaluatorError,
    ModelAccessError,
    ModelError,
    UnusableRepliesError,
)
from jurygraph.graphs.groups import Group
from jurygraph.messages import shell_quote
from jurygraph.runs.store.ledger import Writer
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.runs.workflows.planning import PlannedTasks
from jurygraph.runs.workflows.stored_work import StoredJobProgress
from jurygraph.runs.workflows.task_file_job import StopSwitch, TaskFileJob
from jurygraph.runs.writable_run import CallStore
from jurygraph.schema import Trace

_SETUP_ERRORS = (UnusableRepliesError, EvaluatorError)
"""Errors that end a run until a setting or an evaluator is changed."""


@dataclass(frozen=True, kw_only=True)
class JobScorer:
    """Scores the groups of the planned tasks, each of which is stored once it is finished."""

    job: TaskFileJob
    stored_work: StoredJobProgress
    planned_tasks: PlannedTasks
    stop_switch: StopSwitch

    async def score(self, report: ProgressCallback) -> None:
        """Score all groups; `report` receives the size of each. Results are durable when this returns.

        Raises the errors that end a run; finished groups are kept, and the next session does the rest.
        """
        try:
            await self._score_remaining_groups(report)
        except (BudgetExceeded, EvaluatorError, ModelError) as error:
            self.stop_switch.cancel_if_stopped(error)
            self._add_advice_to_error(error)
            raise
        self.stored_work.close_run_if_complete()

    async def _score_remaining_groups(self, report: ProgressCallback) -> None:
        jury = self.job.jury
        branch = self.job.branch
        ledger = self.planned_tasks.run.ledger
        writer = Writer(ledger)
        sink = CallStore(ledger, *(branch.reusable_ledgers if branch else ()), writer=writer)
        try:
            scoring = jury.ascore_as_finished(self._remaining_groups(), sink)
            async with aclosing(scoring) as batches:
                async for finished in batches:
                    for _, group, outcome in finished:
                        if isinstance(outcome, list):
                            self._store_group(writer, group, outcome)
                            report(len(outcome))
                    for _, _, outcome in finished:
                        if isinstance(outcome, BaseException):
                            raise outcome
            self.stop_switch.raise_if_cut_short()
        except (BudgetExceeded, EvaluatorError, ModelError):
            await jury.gateways.wait_for_pending()
            raise
        finally:
            await jury.gateways.close()
            writer.close()

    def _remaining_groups(self) -> Iterator[Group]:
        for task, responses in self.stop_switch.items_until_stopped(
            self.stored_work.remaining_pairs()
        ):
            plan = self.planned_tasks.pop_plan(task)
            reusable_results = self.job.find_reusable_results(task, responses, plan)
            yield Group(task, responses, plan, reusable_results)

    def _store_group(self, writer: Writer, group: Group, traces: Sequence[Trace]) -> None:
        assert group.plan is not None, "every group starts with its plan"
        writer.append(self.planned_tasks.run.group_drafts(group.plan, traces, group.responses))
        if self.job.branch is not None:
            self.job.branch.count(traces, group.reused_results.verdicts)

    def _add_advice_to_error(self, error: Exception) -> None:
        """Add to an error that ends the run what is kept and how to continue; a run without any result is removed."""
        is_setup_error = isinstance(error, _SETUP_ERRORS)
        if is_setup_error and self._has_nothing_to_keep(error):
            self.planned_tasks.run.discard()
            error.args = (
                f"{error}; nothing was scored; run the same command again once that is changed",
            )
            return
        if is_setup_error:
            remedy = (
                "once that is changed, continue in another --out with --branch "
                f"{shell_quote(self.job.folder)}"
            )
            if isinstance(error, UnusableRepliesError):
                remedy += ", or without it if the config stays, since it reuses unusable replies"
        elif isinstance(error, ModelAccessError):
            remedy = (
                "run the same command again once that is mended; another model needs another --out"
            )
        else:
            remedy = "run the same command again to continue"
        # an answered call is something that is kept, and a refused one is not
        run = self.planned_tasks.run
        is_begun = run.tasks_scored or any(
            record.content["call"].get("fault") is None for record in run.ledger.records("call")
        )
        progress = f"{run.tasks_scored} of {run.header.extent.tasks} tasks"
        kept = f"finished groups are kept ({progress}); " if is_begun else ""
        error.args = (f"{error}; {kept}{remedy}",)

    def _has_nothing_to_keep(self, error: Exception) -> bool:
        """Return whether no reward has a value, and no reply that could be used would be lost with the run."""
        jury = self.job.jury
        has_no_usable_reply = isinstance(error, UnusableRepliesError) or not jury.gateways
        if self.planned_tasks.has_calls or not (has_no_usable_reply or jury.config.calls.cache):
            return False
        groups = read_stored_groups(self.planned_tasks.run)
        traces = chain.from_iterable(group.traces for group in groups)
        return all(trace.value is None for trace in traces)
