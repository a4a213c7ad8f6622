"""A run as a training loop would have seen it: its responses one by one, cut into steps."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jurygraph.errors import InputError
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.schema import Trace


@dataclass(frozen=True, slots=True)
class StepRule:
    """Rule for cutting a run into steps: by a response label that holds the step number, or every N tasks.

    With neither there are no steps. Tasks are counted in the order of the run, including tasks with failed rewards.

    Raises:
        InputError: both are set, or `every` is below 1.
    """

    label: str | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        if self.label is not None and self.every is not None:
            raise InputError("steps are cut by a label or every N tasks, not both; leave one of them out")
        if self.every is not None and self.every < 1:
            raise InputError(f"steps cannot be cut every {self.every} tasks; name a number from 1")

    @property
    def has_steps(self) -> bool:
        """Return True if the run is cut into steps."""
        return self.label is not None or self.every is not None


@dataclass(frozen=True, slots=True)
class Row:
    """One response of a run.

    Attributes:
        step: the label's number, or 1, 2, … for every N tasks; None if the run is not cut, or if the response lacks the
            label.
        group: id of its task. All responses to one task are one group, as in GRPO.
        response: id of the response.
        reward: None if it failed.
        components: value of each component; None if it was not judged. A component that the task does not have is
            missing.
        text: the judged text; None if it was erased.
    """

    step: float | None
    group: str
    response: str
    reward: float | None
    components: Mapping[str, float | None]
    text: str | None

    @property
    def length(self) -> int | None:
        """Return the number of characters of the text; None if it was erased."""
        return None if self.text is None else len(self.text)


def read_rows(run: Run, cut: StepRule, report: Callable[[int], None] = lambda tasks: None) -> Iterator[Row]:
    """Yield the responses of a run in the order of its tasks; `report` is called with 1 for each task.

    A re-scored run gives its own rewards and components.

    Raises:
        InputError: a response's label is not a finite number; the response is named.
        TraceMismatch: a record of the run has been changed.
    """
    for index, group in enumerate(run.source.ledger.records("group", up_to=run.last_base_record)):
        for scored in run.group(group):
            yield _make_row(scored, cut, index)
        report(1)


def _make_row(scored: ScoredResponse, cut: StepRule, index: int) -> Row:
    trace, response = scored
    return Row(
        step=_step_of(trace, cut, index),
        group=trace.task_id,
        response=trace.response_id,
        reward=trace.reward.value,
        components=trace.reward.components,
        text=None if response is None else response.text,
    )


def _step_of(trace: Trace, cut: StepRule, index: int) -> float | None:
    if cut.every is not None:
        return float(index // cut.every + 1)
    if cut.label is None or cut.label not in trace.labels:
        return None
    value = trace.labels[cut.label]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        problem = f"label {cut.label!r} of response {trace.response_id!r} is {value!r}"
        raise InputError(f"{problem}, which is no step; name a label that holds a number, such as 12")
    return float(value)
