"""Every error that jurygraph raises on purpose.

    JurygraphError
    ├── InputError            a file of tasks, responses or ratings is wrong: file, line and field are named
    ├── ConfigError           the config is wrong, or names something that does not exist
    ├── PlanError             a task cannot be planned under this config
    │   └── GraphError        a rubric graph that cannot be aggregated
    │       └── GraphCycleError   ... because its edges form a cycle, which is named
    ├── ModelError            a model could not be reached or did not answer
    │   ├── ModelAccessError  the server refuses the key, or does not have the model
    │   ├── ModelOutageError  the server did not answer for as long as the config waits for it
    │   └── UnusableRepliesError  the first replies cannot be used, or are rejections, all for the same reason
    ├── EvaluatorError        the code of an evaluator failed at each of its first answers
    ├── BudgetExceeded        the run's limit of cost or calls is reached
    ├── NoRewardError         a trainer asked for rewards that the judge could not give
    ├── TraceMismatch         a stored reward or record does not match the data it was computed from
    ├── ToolError             a tool of a judge cannot do what the judge asked for
    └── TimeLimitExceeded     code of an evaluator or deriver ran past its time limit

A bad response is data, not an error: a judgement that fails becomes a `Verdict` of status `failed`. Only the errors in
`RUN_ENDING` never do: every other request would end with them, too.
"""

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class JurygraphError(Exception):
    """Base class of all errors that jurygraph raises on purpose."""


class InputError(JurygraphError):
    """A file of tasks, responses or ratings is wrong."""


class ConfigError(JurygraphError):
    """The config is wrong, or names something that does not exist."""


class PlanError(JurygraphError, ValueError):
    """A task cannot be planned under this config.

    `part` is the part of the task that is wrong, members by their ids: ("reviewers", "ann"); empty if it is not known.
    """

    part: tuple[str, ...] = ()


@contextmanager
def add_part_to_plan_errors(*part: str) -> "Iterator[None]":
    """Add the part of the task to a PlanError raised inside, unless it has one."""
    try:
        yield
    except PlanError as error:
        error.part = error.part or part
        raise


class GraphError(PlanError):
    """A rubric graph, its probabilities or its weights cannot be aggregated."""


class GraphCycleError(GraphError):
    """A rubric graph has a cycle: `cycle`, the node indices in the order of the edges, the first again at the end."""

    def __init__(self, cycle: list[int], names: list[str] | None = None) -> None:
        self.cycle = cycle
        cycle_names = [names[i] if names else str(i) for i in cycle]
        super().__init__(f"the rubric graph has a cycle: {' -> '.join(cycle_names)}")


class ModelError(JurygraphError):
    """A model could not be reached or did not answer."""


class ModelAccessError(ModelError):
    """The server refuses the key (401, 402, 403), or does not have the model (404): every request would fail."""


class ModelOutageError(ModelError):
    """The server did not answer for as long as the config's `calls.outage.wait` allows."""


class UnusableRepliesError(ModelError):
    """The first replies of a run could not be used, or its first requests were rejected, all for the same reason."""


class EvaluatorError(JurygraphError):
    """The code of an evaluator failed at each of its first answers."""


class BudgetExceeded(JurygraphError):
    """The run's limit of cost or calls is reached."""


RUN_ENDING = (
    ModelAccessError,
    ModelOutageError,
    UnusableRepliesError,
    EvaluatorError,
    BudgetExceeded,
)
"""Errors that end a run, because every other request would end with them, too."""


class NoRewardError(JurygraphError):
    """A trainer asked for rewards that the judge could not give, and its setting has no value in their place."""


class TraceMismatch(JurygraphError):
    """A stored reward or record does not match the data it was computed from.

    `differences` are those of the records and texts of a run, as JSON values; None where something else differs.
    """

    differences: "dict[str, Any] | None" = None


class ToolError(JurygraphError):
    """A tool cannot do what it was called for, as with a file that is not there; the message is for the judge."""


class TimeLimitExceeded(JurygraphError):
    """Code of an evaluator or deriver ran past its time limit. If it reads a response, that may have provoked it."""
