"""What a sitting would ask, before anything is asked."""

from dataclasses import asdict, dataclass
from typing import Any

from jurygraph.runs.session import Session
from jurygraph.schema import Question


@dataclass(frozen=True)
class Forecast:
    """How much is still to do. `asked_of_model` is the part of `verdicts` that a model would give.

    `verdicts` is the most that can be asked: staged screening (`when`) may ask less. Variants, which are not known
    before they are made, count as one.
    """

    tasks: int
    responses: int
    questions: int
    verdicts: int
    asked_of_model: int
    model_calls: int = 0

    def plain(self) -> dict[str, Any]:
        """The forecast as JSON gives it."""
        return asdict(self)


def forecast(session: Session) -> Forecast:
    """What a prepared session is about to ask."""
    responses = questions = verdicts = of_model = 0
    for (_, group), plan in zip(session.pending, session.plans, strict=True):
        responses += len(group)
        questions += len(plan.survey.questions)
        for question in plan.survey.questions:
            asked = _verdicts(question, len(group))
            verdicts += asked
            of_model += asked * session.jury.evaluators[question.evaluator].asks_model
    return Forecast(len(session.pending), responses, questions, verdicts, of_model)


def _verdicts(question: Question, size: int) -> int:
    if question.scope == "response":
        return size * question.samples
    if size == 1:
        return 1  # there is nothing to compare with, which is said once
    pairs = size * (size - 1) // (1 if question.pairs == "ordered" else 2)
    asked = (pairs if question.scope == "pair" else size) * question.samples
    # A response that the question cannot be asked of gets one verdict that says so, instead of those of its pairs.
    screened = question.when is not None or question.needs or question.of != "submitted"
    return max(asked, size) if screened else asked
