"""An evaluator of one's own, which asks about a stakeholder as a whole."""

from jurygraph import Evaluator, EvaluatorInput


class Kind(Evaluator):
    name = "kind"
    audience = "stakeholder"

    def answer(self, inputs: EvaluatorInput) -> float:
        return 1.0
