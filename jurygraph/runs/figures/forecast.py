"""What a sitting would ask, before anything is asked."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from jurygraph.agents.roles import Evaluator
from jurygraph.schema import Plan, Question, Verdict

if TYPE_CHECKING:
    from jurygraph.runs.figures.estimate import Estimate


@dataclass(frozen=True)
class Forecast:
    """How much is still to do. `asked_of_model` is the part of `verdicts` that a model would give.

    `verdicts` is the most that can be asked: staged screening (`when`) may ask less. Variants, which are not known
    before they are made, count as one. `model` is what asking a model would come to, or None under model none.
    """

    tasks: int = 0
    responses: int = 0
    questions: int = 0
    verdicts: int = 0
    asked_of_model: int = 0
    model: "Estimate | None" = None

    def with_group(
        self, plan: Plan, size: int, evaluators: Mapping[str, Evaluator], known: Iterable[Verdict] = ()
    ) -> "Forecast":
        """The forecast with one more task, and a group of this size; verdicts that are known are not asked for."""
        questions = plan.survey.questions
        carried = Counter(verdict.question for verdict in known)
        asked = {question.id: max(0, _verdicts(question, size) - carried[question.id]) for question in questions}
        return replace(
            self,
            tasks=self.tasks + 1,
            responses=self.responses + size,
            questions=self.questions + len(questions),
            verdicts=self.verdicts + sum(asked.values()),
            asked_of_model=self.asked_of_model
            + sum(asked[q.id] for q in questions if evaluators[q.evaluator].asks_model),
        )

    def plain(self) -> dict[str, Any]:
        """The forecast as JSON gives it."""
        return asdict(self)


def unscreened(plan: Plan, evaluators: Mapping[str, Evaluator]) -> Plan:
    """The plan with every question asked for which a model's verdict would have to pass (`when`)."""
    questions = plan.survey.questions
    judged = {question.id for question in questions if evaluators[question.evaluator].asks_model}
    asked = [
        question.model_copy(update={"when": None}) if question.when and question.when.question in judged else question
        for question in questions
    ]
    return plan.model_copy(update={"survey": plan.survey.model_copy(update={"questions": tuple(asked)})})


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
