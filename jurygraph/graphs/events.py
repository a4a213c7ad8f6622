"""The events of scoring a group, as they happen: a question sent, a verdict, a reward."""

from collections.abc import Callable, Iterable
from typing import Literal

from jurygraph.display import ReprParts
from jurygraph.schema import FrozenModel, RecordedVerdict, Trace
from jurygraph.schema.conversation import OMITTED_IF_NONE
from jurygraph.schema.frozen_model import Id, JsonFields


class QuestionSent(FrozenModel):
    """A question about responses that goes to an evaluator; `judge` is the name of one of several models.

    `turn` is the index of the message that it is about, where it is about the turns of a conversation.
    """

    event: Literal["question"] = "question"
    task_id: Id
    question: Id
    evaluator: str
    responses: tuple[Id, ...]
    sample: int = 0
    judge: str | None = None
    turn: int | None = OMITTED_IF_NONE


class VerdictGiven(FrozenModel):
    """A verdict, also one that a gate, screening or an earlier run decided without a question."""

    event: Literal["verdict"] = "verdict"
    task_id: Id
    verdict: RecordedVerdict

    def _repr_parts(self) -> ReprParts:
        return [("task", self.task_id), *self.verdict._repr_parts()]


class RewardGiven(FrozenModel):
    """The trace of a response, with its reward: the last event about it."""

    event: Literal["reward"] = "reward"
    task_id: Id
    response_id: Id
    trace: Trace

    def _repr_parts(self) -> ReprParts:
        return self.trace._repr_parts()


JuryEvent = QuestionSent | VerdictGiven | RewardGiven
EventListener = Callable[[JuryEvent], object]


def report_stored_verdicts(traces: Iterable[Trace], listener: EventListener) -> None:
    """Tell a listener the verdicts of traces that are stored; one on a pair, which both traces have, is about one of
    its responses."""
    for trace in traces:
        for verdict in trace.verdicts:
            if verdict.about == trace.response_id:
                listener(VerdictGiven(task_id=trace.task_id, verdict=verdict))


def to_dict(event: JuryEvent) -> JsonFields:
    """Return an event as JSON values, for callbacks and streams of others; a trace comes without its plan."""
    return event.model_dump(mode="json", exclude={"trace": {"plan"}})
