"""What reviewers are predicted to give, on their own scales: the result of the votes that make the reward."""

from collections.abc import Mapping, Sequence
from typing import Any

import jurygraph as jg
from jurygraph.explanation.predictions import PredictedScore, predicted_scores
from tests.judges.few_shot.reviewers import judge_use, replying_values, response, score_with, task
from tests.rows import all_rows

QUALITY: Mapping[str, Any] = {"text": "How good it is.", "scale": [1, 5]}
MARKET: Mapping[str, Any] = {"text": "How large it is.", "scale": [0, 3], "not_applicable": 0}


def predict(
    dimension: Mapping[str, Any],
    values: Sequence[float],
    confidence: Sequence[float] = (90,),
    quotes: Sequence[str] | None = None,
) -> PredictedScore:
    use = judge_use("zero-shot", dimensions={"d": dimension}, samples=len(values))
    script = replying_values(*values, confidence=confidence, quotes=quotes)
    panel = {"min_confidence": 0.8, "if_skipped": "left-out"}
    (trace,), _ = score_with(script, use, task("ann"), response(), panel=panel)
    (made,) = predicted_scores(trace.explain().explained)
    assert made.verdict.question == "zero-shot/d@ann"
    return made


@all_rows(
    "dimension, values, confidence, predicted, scale",
    [
        (QUALITY, [4], [90], 4.0, (1, 5)),
        (QUALITY, [4, 4, 2], [90], 4.0, (1, 5)),
        (QUALITY, [4, 2, 2], [90, 10, 10], 4.0, (1, 5)),  # the unsure ones are discarded
        (QUALITY, [4, 3, 2], [90], None, (1, 5)),  # no majority
        (QUALITY, [4], [10], None, (1, 5)),
        (MARKET, [1, 1, 3], [90], 1.0, (1, 3)),
        (MARKET, [0, 0, 3], [90], 0.0, (1, 3)),  # the dimension does not apply
    ],
)
def test_the_votes_that_count_give_the_score_on_the_reviewers_scale(
    dimension: Mapping[str, Any],
    values: Sequence[float],
    confidence: Sequence[float],
    predicted: float | None,
    scale: tuple[float, float],
) -> None:
    made = predict(dimension, values, confidence)
    assert (made.value, made.verdict.scale) == (predicted, scale)


@all_rows("turns, predicted", [("last", 5.0), ("mean", 3.0)])
def test_turns_are_counted_as_the_reward_does_and_one_that_does_not_apply_predicts_nothing(
    turns: str, predicted: float
) -> None:
    @jg.evaluator(audience="reviewer", name="taste")
    def taste(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        text = str(response.messages[-1].content)
        if text == "Hm.":
            return jg.Verdict(status="not_applicable")
        stars = 5 if text == "Good." else 1
        return jg.Verdict(score=(stars - 1) / 4, native=stars, scale=(1, 5))

    chat = []
    for text in ("Bad.", "Hm.", "Good."):
        chat += [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
    use = {"use": taste, "scope": "turn", "turns": turns}
    with jg.Jury(evaluators=[use]) as jury:
        (trace,) = jury.score(task("ann"), [jg.Response(id="r", messages=chat)])
    (made,) = predicted_scores(trace.explain().explained)
    assert made.value == predicted


def test_an_answer_without_a_quotation_predicts_nothing() -> None:
    assert predict(QUALITY, [5], quotes=["never said"]).value is None


def test_what_a_satisfied_reviewer_is_predicted_to_give_is_explained_on_the_own_scale() -> None:
    """ "stars of ann 1 of 1" once read as one star."""
    use = judge_use("zero-shot", dimensions={"d": QUALITY})
    (trace,), _ = score_with(replying_values(5, confidence=[90]), use, task("ann"), response())
    text = str(trace.explain())
    assert "Gained 1: zero-shot 5 on a scale of 1 to 5 (1), weight 1 (so it is, as in" in text
