"""A file of tasks that a jury scores into a folder, and the switch that stops the planning and the scoring."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TypeVar

from jurygraph.decision.recipe import refuse_unknown_criteria
from jurygraph.decision.weighting import refuse_unknown_stakeholders
from jurygraph.errors import BudgetExceeded, InputError, ModelError, PlanError
from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults
from jurygraph.jury import Jury
from jurygraph.messages import (
    find_meant_field,
    format_count,
    join_names,
    nearest_name,
    notes_on_similar_names,
    quote,
)
from jurygraph.models.gateway import Gateways
from jurygraph.runs.workflows.branch import ReusedRun
from jurygraph.schema import Plan, Response, Task
from jurygraph.schema.task import ProfilesLine
from jurygraph.sources import TaskSource
from jurygraph.sources.tasks import ProfilesFile
from jurygraph.tools.workspace import open_workspace

T = TypeVar("T")

_COLUMN_REMEDIES = {
    "reference": "name it with --reference-column",
    "context": "name it with --context-column",
    "tools": "call it tools",
    "reference_actions": "call it reference_actions",
    "reference_messages": "call it reference_messages",
}
"""How a table gives the fields of a task that evaluators need."""


@dataclass(frozen=True, kw_only=True)
class TaskFileJob:
    """A jury that scores a file of tasks into the run in a folder, the first `limit` tasks if that is set.

    Results of the run in `branch` are reused; `profiles` gives the constraints and tensions of profiles in text.
    """

    folder: Path
    jury: Jury
    source: TaskSource
    limit: int | None = None
    branch: ReusedRun | None = None
    profiles: ProfilesFile | None = None

    @property
    def task_count(self) -> int:
        """The number of tasks in the file, or in its shard, whatever the limit."""
        return self.source.extent()[0]

    def profiles_of(self, task: Task) -> ProfilesLine | None:
        return None if self.profiles is None else self.profiles.profiles_of(task)

    def find_reusable_results(
        self, task: Task, responses: Sequence[Response], plan: Plan
    ) -> ReusedResults:
        if self.branch is None:
            return NO_REUSED_RESULTS
        return self.branch.find_reusable_results(task, responses, plan)

    def refuse_unknown_names(self) -> None:
        """Raise `ConfigError` if `weights.fixed` or `criteria` has a name that no task of the file has."""
        config = self.jury.config
        evaluators = self.jury.evaluators
        if any(evaluator.audience == "stakeholder" for evaluator in evaluators.values()):
            names_with_fixed_weight = config.weights.fixed.keys()
            refuse_unknown_stakeholders(
                names_with_fixed_weight,
                self._find_names_in_tasks(names_with_fixed_weight, set(), _stakeholder_ids),
            )
        evaluator_criteria: set[str] = set()
        for name in config.evaluators_with_criteria:
            evaluator_criteria.update(evaluators[name].shares)
        criteria = config.criteria.keys()
        refuse_unknown_criteria(
            criteria,
            self._find_names_in_tasks(criteria, evaluator_criteria, _criterion_ids),
            config,
        )

    def describe_misnamed_columns(self) -> Iterator[str]:
        """Yield a sentence on each column of a table that became a label, and is probably what an evaluator needs.

        The column of agents is sought, too, where responses have none; a context of chats that may be a label is named.
        """
        source = self.source
        columns = source.columns
        count = source.field_counts["context"]
        if count and columns and columns.messages and columns.context == "context":
            yield f"column 'context' has the passages of {count} tasks; rename it if it is a label"
        if not source.field_counts["agent"]:
            for column, number, _ in self._find_labels_like(("agent",)):
                if column.casefold() != "system":  # rather a system message
                    yield (
                        f"column {quote(column)} is a label of {number} responses; "
                        f"if it names their agents, add --agent-column {column}"
                    )
        task_count, _ = source.file_extent()
        for name, evaluator in self.jury.evaluators.items():
            fields = evaluator.task_fields
            set_field_count = sum(source.field_counts[field] for field in fields)
            has_default = any(getattr(self.jury.config.task_defaults, f, None) for f in fields)
            if set_field_count >= task_count or has_default:
                continue
            for column, number, field in self._find_labels_like(fields):
                yield (
                    f"column {quote(column)} is a label of {number} responses; "
                    f"if it is the {field} that {name} needs, {_COLUMN_REMEDIES[field]}"
                )

    def _find_labels_like(self, fields: Sequence[str]) -> Iterator[tuple[str, int, str]]:
        """Yield the columns that became labels and are probably one of some fields, each with its number and field."""
        for column, number in self.source.label_counts.items():
            field = find_meant_field(column, fields) or nearest_name(column, fields, 0.8)
            if field is not None:
                yield column, number, field

    def describe_unseen_context(self) -> Iterator[str]:
        """Yield a sentence where tasks have a context that no model of the config is shown.

        What judges of one's own show is not known: there is none where one asks a model.
        """
        count = self.source.field_counts["context"]
        judges = [judge for judge in self.jury.evaluators.values() if judge.uses_model]
        if (
            self.jury.gateways
            and count
            and judges
            and all(
                type(judge).__module__.startswith("jurygraph.judges.")
                and not (judge.reads_context or judge.toolset)
                for judge in judges
            )
        ):
            yield (
                f"{join_names(judge.name for judge in judges)}: {format_count(count, 'task')} with a context, which no "
                "model is shown; to judge by it, take `context`, in your own words: "
                '`evaluators: [{use: context, params: {questions: {faithful: "…"}}}]`'
            )

    def describe_unpaired_answers(self) -> Iterator[str]:
        """Yield a sentence on what breaks the pairing of agents in a table, and on answers that are empty or lack.

        What half of all tasks, or groups, have is no exception, and was meant.
        """
        answers = self.source.answers
        answered_units = Counter(unit for unit, _ in answers)
        unit_count = len(answered_units)
        if 0 < unit_count < self.source.file_extent()[0]:  # no answers of a table: lines of TASKS
            yield f"{answers.total()} responses to {unit_count} groups"
        agents = {agent for _, agent in answers if agent}
        yield from notes_on_similar_names(agents)
        repeated = [unit for (unit, agent), count in answers.items() if agent and count > 1]
        lacking = [unit for unit, count in answered_units.items() if count < len(agents)]
        for names, most, problem in (
            (repeated, unit_count / 2, "tasks, or groups, with several answers of one agent"),
            (lacking, unit_count / 2, "tasks, or groups, that only some agents answered"),
            (self.source.empty_answers, inf, "empty answers"),
            (
                self.source.unanswered_chats,
                inf,
                "conversations that end in a call of a tool or its result, so that the user got no answer",
            ),
        ):
            distinct_names = dict.fromkeys(names)  # several agents may have several answers to one
            if 0 < len(distinct_names) < most:
                yield f"{problem}: {len(distinct_names)} ({join_names(map(quote, distinct_names))})"

    def refuse_missing_workspaces(self) -> None:
        """Raise `InputError` for a response whose files are not there, before a judge is paid to look into them."""
        config = self.jury.config
        if not config.has_tools or self.jury.gateways.is_recording:
            return
        for task, responses in self.source.pairs(stop=self.limit):
            for response in responses:
                if response.workspace is None:
                    continue
                try:
                    open_workspace(config.workspaces, response.workspace)
                except InputError as error:
                    place = self.source.place(task.id)
                    raise InputError(
                        f"{self.source.tasks_file.name}, {place}, response {response.id!r}: {error}"
                    ) from None

    def _find_names_in_tasks(
        self, names: Set[str], found: set[str], read: Callable[[Task], Iterable[str]]
    ) -> set[str]:
        """Add the names that tasks have to those that were found, up to the task by which all are."""
        if names <= found:
            return found
        for task, _ in self.source.unsharded_pairs():  # a shard may have no task with a name
            found.update(read(task))
            if names <= found:  # most files need not be read to their end
                break
        return found

    @contextmanager
    def add_location_to_errors(self, tasks: Iterable[Task]) -> Iterator[None]:
        """Add the file and line of the first of the tasks to errors of planning that are raised inside."""
        try:
            yield
        except (PlanError, ModelError, BudgetExceeded) as error:
            line = self.source.place(next(iter(tasks)).id)
            location = self.source.tasks_file.name + ("" if line is None else f", {line}")
            kept = "from the cache" if self.jury.config.calls.cache else "with the stored replies"
            retry_hint = f"; nothing was written; run the same command again: it continues {kept}"
            hint = "" if isinstance(error, PlanError) else retry_hint
            # changed in place, to keep its class and attributes, such as the cycle of a GraphCycleError
            error.args = (f"{location}: {error}{hint}",)
            raise


def _stakeholder_ids(task: Task) -> Iterator[str]:
    return (person.id for person in task.stakeholders)


def _criterion_ids(task: Task) -> Iterator[str]:
    return (criterion.id for criterion in (task.rubric.criteria if task.rubric else ()))


class StopSwitch:
    """Ends the planning and the scoring of a job, which share it: a stop in the one is a stop of the other."""

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways
        self._is_stopping = self._has_cut_short = False

    def stop(self) -> None:
        """Send no further request and begin no further task; requests in flight end, and their replies are kept.

        Planning and scoring raise CancelledError if any task remains.
        """
        self._is_stopping = True
        self._gateways.stop()

    def items_until_stopped(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            if self._is_stopping:
                self._has_cut_short = True
                return
            yield item

    def raise_if_cut_short(self) -> None:
        """Raise CancelledError if `items_until_stopped` has left anything out."""
        if self._has_cut_short:
            raise asyncio.CancelledError

    def cancel_if_stopped(self, error: BaseException) -> None:
        """Raise CancelledError in place of the refusal of a request after `stop`."""
        if self._is_stopping and isinstance(error, BudgetExceeded):
            raise asyncio.CancelledError from None
