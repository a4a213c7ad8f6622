"""A run as a training loop would have seen it: its responses one by one, cut into steps."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jurygraph.errors import InputError
from jurygraph.runs.reading import Scored
from jurygraph.runs.run import Run
from jurygraph.schema import Trace


@dataclass(frozen=True, slots=True)
class Cut:
    """How a run is cut into steps: by a label of the responses that holds the step's number, or every N tasks.

    With neither there are no steps. Tasks are counted in the order of the run, those whose rewards failed too.

    Raises:
        InputError: both are given, or `every` is below 1.
    """

    label: str | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        if self.label is not None and self.every is not None:
            raise InputError("steps are cut by a label or every N tasks, not both; leave one of them out")
        if self.every is not None and self.every < 1:
            raise InputError(f"steps cannot be cut every {self.every} tasks; name a number from 1")

    @property
    def cuts(self) -> bool:
        """Whether there are steps at all."""
        return self.label is not None or self.every is not None


@dataclass(frozen=True, slots=True)
class Row:
    """One response of a run.

    Attributes:
        step: of which step it is: the label's number, or 1, 2, … for every N tasks; None where the run is not cut, or
            where this response lacks the label.
        group: id of its task. All responses to one task are one group, as in GRPO.
        response: its id.
        reward: None where it failed.
        components: each as far as it was judged; None where nobody judged it. A component is missing where the
            response's task does not have it.
        text: what was judged; None where it was erased.
    """

    step: float | None
    group: str
    response: str
    reward: float | None
    components: Mapping[str, float | None]
    text: str | None

    @property
    def length(self) -> int | None:
        """Characters of the text; None where it was erased."""
        return None if self.text is None else len(self.text)


def read_rows(run: Run, cut: Cut, report: Callable[[int], None] = lambda tasks: None) -> Iterator[Row]:
    """Every response of a run in the order of its tasks, one at a time; `report` is called for each task.

    A re-scored run gives its own rewards and components.

    Raises:
        InputError: a response's label is no finite number; the response is named.
        TraceMismatch: a record of the run has been changed.
    """
    for place, group in enumerate(run.source.ledger.records("group", up_to=run.extent)):
        for scored in run.group(group):
            yield _row(scored, cut, place)
        report(1)


def _row(scored: Scored, cut: Cut, place: int) -> Row:
    trace, response = scored
    return Row(
        step=_step(trace, cut, place),
        group=trace.task_id,
        response=trace.response_id,
        reward=trace.reward.value,
        components=trace.reward.components,
        text=None if response is None else response.text,
    )


def _step(trace: Trace, cut: Cut, place: int) -> float | None:
    if cut.every is not None:
        return float(place // cut.every + 1)
    if cut.label is None or cut.label not in trace.labels:
        return None
    value = trace.labels[cut.label]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        wrong = f"label {cut.label!r} of response {trace.response_id!r} is {value!r}"
        raise InputError(f"{wrong}, which is no step; name a label that holds a number, such as 12")
    return float(value)
