"""Forecast the questions and verdicts of a session before anything is requested."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from jurygraph.agents.roles import Evaluator
from jurygraph.schema import Plan, Question, RecordedVerdict

if TYPE_CHECKING:
    from jurygraph.runs.reports.estimate import CallEstimate


@dataclass(frozen=True)
class Forecast:
    """The remaining work. `model_verdicts` is the part of `verdicts` that a model would give.

    `verdicts` is an upper bound: staged screening (`when`) may leave some out. The variants of a response, whose number
    is not known in advance, count as one. `model` is the estimate of the calls to a model, None with model none.
    """

    tasks: int = 0
    responses: int = 0
    questions: int = 0
    verdicts: int = 0
    model_verdicts: int = 0
    model: "CallEstimate | None" = None

    def with_group(
        self, plan: Plan, size: int, evaluators: Mapping[str, Evaluator], known: Iterable[RecordedVerdict] = ()
    ) -> "Forecast":
        """Return the forecast with one more task and a group of this size; verdicts in `known` are not counted."""
        questions = plan.survey.questions
        known_counts = Counter(verdict.question for verdict in known)
        remaining = {
            question.id: max(0, _count_verdicts(question, size) - known_counts[question.id]) for question in questions
        }
        return replace(
            self,
            tasks=self.tasks + 1,
            responses=self.responses + size,
            questions=self.questions + len(questions),
            verdicts=self.verdicts + sum(remaining.values()),
            model_verdicts=self.model_verdicts
            + sum(remaining[q.id] for q in questions if evaluators[q.evaluator].uses_model),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as a JSON object."""
        return asdict(self)


def without_model_conditions(plan: Plan, evaluators: Mapping[str, Evaluator]) -> Plan:
    """Return the plan without the conditions (`when`) that depend on a model's verdict."""
    questions = plan.survey.questions
    model_judged = {question.id for question in questions if evaluators[question.evaluator].uses_model}
    unconditional = [
        question.model_copy(update={"when": None})
        if question.when and question.when.question in model_judged
        else question
        for question in questions
    ]
    return plan.model_copy(update={"survey": plan.survey.model_copy(update={"questions": tuple(unconditional)})})


def _count_verdicts(question: Question, size: int) -> int:
    if question.scope == "response":
        return size * question.samples
    if size == 1:
        return 1  # one verdict that there is nothing to compare with
    pairs = size * (size - 1) // (1 if question.pairs == "ordered" else 2)
    expected = (pairs if question.scope == "pair" else size) * question.samples
    # A response to which the question does not apply gets one such verdict instead of those of its pairs.
    may_be_skipped = question.when is not None or question.needs or question.of != "submitted"
    return max(expected, size) if may_be_skipped else expected
