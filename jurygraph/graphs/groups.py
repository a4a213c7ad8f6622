"""Groups: a task and all its responses, which are planned and scored together."""

import asyncio
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from jurygraph.display import ShortRepr
from jurygraph.errors import InputError
from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults, sort_responses_by_content
from jurygraph.schema import Plan, Response, Task, Trace
from jurygraph.schema.frozen_model import require_argument_type

T = TypeVar("T")


class PlannedGroup(NamedTuple):
    """A task's plan, and its whole group of responses: as submitted, and in canonical order without their metadata.

    Evaluators are shown the latter; agents and labels come back with the traces.
    """

    plan: Plan
    submitted_responses: Sequence[Response]
    responses: tuple[Response, ...]
    reused_results: ReusedResults


GroupOutcome = list[Trace] | BaseException
"""A group's traces, or the error because of which it has none."""


def make_settled_future(outcome: GroupOutcome) -> "asyncio.Future[GroupOutcome]":
    """Return a future that has the outcome already, of a group that is not judged."""
    future = asyncio.get_running_loop().create_future()
    future.set_result(outcome)
    return future


TASK_EXAMPLE_HINT = 'write jg.Task(id="a", query="…")'
_GROUP_ITEM_HINT = "give a list of Groups, or of pairs (task, responses)"


@dataclass(frozen=True, slots=True, repr=False)
class Group(ShortRepr):
    """A task and all its responses, which are scored together. Without a plan, one is made.

    A response may be its text alone, or have no id: the third of task `a` is then `a/3`. A recorded group has a `step`
    of its task, and a `phase`, such as an evaluation: the third of `a` at step 7 is `a@7/3`, and `a@test:7/3` in phase
    `test`. Where each `rank` records apart, its name is `a@7#0/3`. Raises InputError for a wrong type.
    """

    task: Task
    responses: Sequence[Response]
    plan: Plan | None = None
    reused_results: ReusedResults = NO_REUSED_RESULTS
    step: int | None = None
    phase: str | None = None
    rank: str | None = None
    unnamed: frozenset[int] = field(default=frozenset(), init=False)
    """The positions of the responses whose ids come from the group."""

    def __post_init__(self) -> None:
        require_argument_type("task", self.task, Task, TASK_EXAMPLE_HINT)
        if self.step is not None:
            object.__setattr__(self, "step", _to_step_number(self.step))
        require_argument_type(
            "phase", self.phase, str | None, "give a name, such as 'test', or none"
        )
        if self.phase == "":
            raise InputError("phase: is empty; give a name, such as 'test', or none")
        require_argument_type(
            "plan", self.plan, Plan | None, "give one of jury.prepare(task), or none"
        )
        require_argument_type(
            "reused_results",
            self.reused_results,
            ReusedResults,
            "leave it out, or give ReusedResults",
        )
        if isinstance(self.responses, str) or not isinstance(self.responses, Sequence):
            require_argument_type(
                "responses", self.responses, (), "give a list of Responses, or of their texts"
            )
        name = self.name
        responses = []
        unnamed = set()
        for position, response in enumerate(self.responses):
            if isinstance(response, str):
                response = Response(text=response)
            require_argument_type(
                f"responses[{position}]",
                response,
                Response,
                'write jg.Response(id="a", text="…"), or a text',
            )
            if not response.id:
                response = response.model_copy(update={"id": f"{name}/{position + 1}"})
                unnamed.add(position)
            responses.append(response)
        object.__setattr__(self, "responses", responses)
        object.__setattr__(self, "unnamed", frozenset(unnamed))

    @property
    def name(self) -> str:
        """The name of the group in messages and in ids of its responses: the task's id, with its phase and step."""
        parts = [str(part) for part in (self.phase, self.step) if part is not None]
        name = "@".join([self.task.id, ":".join(parts)] if parts else [self.task.id])
        return name if self.rank is None else f"{name}#{self.rank}"

    def at(
        self, step: int, phase: str | None, rank: str | None, task: Task, plan: Plan | None
    ) -> "Group":
        """Return the group under the name of a step and a phase, with its completed task and the plan of that.

        The ids that come from its name are new.
        """
        responses = [
            response.model_copy(update={"id": ""}) if position in self.unnamed else response
            for position, response in enumerate(self.responses)
        ]
        return Group(task, responses, plan, self.reused_results, step, phase, rank)

    def _repr_parts(self) -> Iterable[tuple[str, Any]]:
        return [("task", self.task.id), ("responses", self.responses)]


def _to_step_number(step: Any) -> int:
    """Return a step as an int, which a counter of NumPy or torch is not."""
    hint = "give a whole number from 0 on, or none"
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        require_argument_type("step", step, (), hint)
    number = operator.index(step)
    if number < 0:
        raise InputError(f"step: is {number}; {hint}")
    return number


def make_planned_group(group: Group, plan: Plan) -> PlannedGroup:
    return PlannedGroup(
        plan, group.responses, sort_responses_by_content(group.responses), group.reused_results
    )


GroupLike = Group | tuple[Task, Sequence[Response | str]]


def to_groups(argument: str, items: Any, step: int | None = None) -> Iterator[Group]:
    """Return an argument's Groups and pairs as groups, at this step if they have none of their own.

    Raises InputError with the place of a wrong one.
    """
    require_argument_type(argument, items, Iterable, _GROUP_ITEM_HINT)
    return (_to_group(f"{argument}[{index}]", item, step) for index, item in enumerate(items))


def _to_group(where: str, item: Any, step: int | None) -> Group:
    if isinstance(item, Group):
        if step is None or item.step is not None:
            return item
        return item.at(step, item.phase, item.rank, item.task, item.plan)
    require_argument_type(where, item, tuple, _GROUP_ITEM_HINT)
    if len(item) != 2:
        raise InputError(f"{where}: has {len(item)} entries; {_GROUP_ITEM_HINT}")
    task, responses = item
    try:
        return Group(task, responses, step=step)
    except InputError as error:
        raise InputError(f"{where}.{error}") from None


def split_into_batches(
    items: Iterable[T], count: Callable[[T], int], size: int
) -> Iterator[list[T]]:
    """Yield the items in lists whose counts sum up to this size or just above; the last list may have less."""
    batch = []
    batch_size = 0
    for item in items:
        batch.append(item)
        batch_size += count(item)
        if batch_size >= size:
            yield batch
            batch = []
            batch_size = 0
    if batch:
        yield batch
