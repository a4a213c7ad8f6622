"""A group: a task and all its responses, which are scored together, as callers give it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from jurygraph.display import Displayed
from jurygraph.errors import InputError
from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults, sort_responses
from jurygraph.graphs.state import PlannedGroup
from jurygraph.messages import require_type
from jurygraph.schema import Plan, Response, Task

T = TypeVar("T")

TASK_HINT = 'write jg.Task(id="a", query="…")'
_ITEM_HINT = "give a list of Groups, or of pairs (task, responses)"


@dataclass(frozen=True, slots=True, repr=False)
class Group(Displayed):
    """A task and all its responses, which are scored together. Without a plan, one is made.

    A response may be its text alone: the third of task `a` is then `a/3`. Raises InputError for a wrong type.
    """

    task: Task
    responses: Sequence[Response]
    plan: Plan | None = None
    reused_results: ReusedResults = NO_REUSED_RESULTS

    def __post_init__(self) -> None:
        require_type("task", self.task, Task, TASK_HINT)
        require_type("plan", self.plan, Plan | None, "give one of jury.prepare(task), or none")
        require_type("reused_results", self.reused_results, ReusedResults, "leave it out, or give ReusedResults")
        if isinstance(self.responses, str) or not isinstance(self.responses, Sequence):
            require_type("responses", self.responses, (), "give a list of Responses, or of their texts")
        responses: list[Response] = []
        for place, response in enumerate(self.responses):
            if isinstance(response, str):
                response = Response(id=f"{self.task.id}/{place + 1}", text=response)
            require_type(f"responses[{place}]", response, Response, 'write jg.Response(id="a", text="…"), or a text')
            responses.append(response)
        object.__setattr__(self, "responses", responses)

    def _repr_parts(self) -> Iterable[tuple[str, Any]]:
        return [("task", self.task.id), ("responses", self.responses)]


def plan_group(group: Group, plan: Plan) -> PlannedGroup:
    """Return the group with its plan, as the score graph takes it."""
    return PlannedGroup(plan, group.responses, sort_responses(group.responses), group.reused_results)


GroupLike = Group | tuple[Task, Sequence[Response | str]]


def read_groups(argument: str, items: Any) -> Iterator[Group]:
    """Return an argument's Groups and pairs as groups. Raises InputError with the place of a wrong one."""
    require_type(argument, items, Iterable, _ITEM_HINT)
    return (_read_group(f"{argument}[{place}]", item) for place, item in enumerate(items))


def _read_group(where: str, item: Any) -> Group:
    if isinstance(item, Group):
        return item
    require_type(where, item, tuple, _ITEM_HINT)
    if len(item) != 2:
        raise InputError(f"{where}: has {len(item)} entries; {_ITEM_HINT}")
    try:
        return Group(*item)
    except InputError as error:
        raise InputError(f"{where}.{error}") from None


def split_into_batches(items: Iterable[T], count: Callable[[T], int], size: int) -> Iterator[list[T]]:
    """Yield the items in lists whose counts sum up to this size or just above; the last list may have less."""
    batch: list[T] = []
    filled = 0
    for item in items:
        batch.append(item)
        filled += count(item)
        if filled >= size:
            yield batch
            batch = []
            filled = 0
    if batch:
        yield batch
