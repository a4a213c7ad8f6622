"""An evaluator of one's own, which asks about a stakeholder as a whole."""

from jurygraph import Ask, Evaluator


class Kind(Evaluator):
    name = "kind"
    audience = "stakeholder"

    def answer(self, ask: Ask) -> float:
        return 1.0
