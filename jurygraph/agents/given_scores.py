"""The evaluator of scores that were judged elsewhere and come with the response: rubric scores in, reward out."""

from jurygraph.agents.roles import CodeEvaluator, EvaluatorInput
from jurygraph.messages import Problem, did_you_mean, quote, shorten, validate
from jurygraph.schema import FrozenModel, Verdict
from jurygraph.schema.frozen_model import StrictBool, UnitInterval


class GivenScore(FrozenModel):
    score: UnitInterval
    met: StrictBool | None = None


class GivenScores(CodeEvaluator):
    """Take each criterion's score from the response's `data.scores`, by the criterion's id.

    A score is a number in [0, 1], a decision (`true`, `false`), or both: `{score: 0.8, met: true}`. A criterion without
    one is not judged.
    """

    name = "scores"
    audience = "criterion"

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        data = inputs.response.data
        scores = data.get("scores") if isinstance(data, dict) else None
        if scores is None:
            return Verdict.abstain("the response's data has no `scores`")
        if not isinstance(scores, dict):
            problem = "data.scores: is no object; write a score for each criterion, by its id"
            return Verdict.fail("invalid score", problem, cause="response")
        criterion_id = inputs.question.subject
        value = scores.get(criterion_id)
        if value is None:
            hint = did_you_mean(criterion_id, scores) or f"it has {', '.join(scores) or 'none'}"
            return Verdict.abstain(f"`scores` has none for {quote(criterion_id)}; {shorten(hint)}")
        if isinstance(value, bool):
            value = {"score": float(value), "met": value}
        elif not isinstance(value, dict):
            value = {"score": value}
        given_score = validate(GivenScore, value)
        if isinstance(given_score, Problem):
            problem = f"data.scores[{quote(criterion_id)}]: {given_score}"
            return Verdict.fail("invalid score", problem, cause="response")
        return Verdict(
            score=given_score.score, met=given_score.met, reason="given with the response"
        )
