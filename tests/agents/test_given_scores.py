"""Scores that come with the response are its criteria's, and nothing else is."""

from typing import Any

from jurygraph import Criterion, EvaluatorInput, Response, TaskView, Verdict
from jurygraph.agents.given_scores import GivenScores
from tests.rows import all_rows


def judge(data: Any) -> Verdict:
    evaluator = GivenScores()
    criterion = Criterion(id="depth", text="It goes into depth.", weight=1.0)
    view = TaskView(about=criterion, id="letter", query="Write.", audience="criterion")
    (question,) = evaluator.questions(view)
    return evaluator.answer(
        EvaluatorInput(question, view, (Response(id="a", text="x", data=data),), ({},))
    )


@all_rows(
    ("value", "score", "met"),
    [(0.3, 0.3, None), (1, 1.0, None), (True, 1.0, True), (False, 0.0, False)],
)
def test_a_score_is_a_number_or_a_decision(value: Any, score: float, met: bool | None) -> None:
    found = judge({"scores": {"depth": value}})
    assert (found.score, found.met) == (score, met)


def test_a_score_may_come_with_a_decision_of_its_own() -> None:
    found = judge({"scores": {"depth": {"score": 0.6, "met": False}}})
    assert (found.score, found.met) == (0.6, False)


@all_rows(
    "data", [None, [], "depth", {}, {"scores": None}, {"scores": {}}, {"scores": {"depth": None}}]
)
def test_a_criterion_without_a_score_is_not_judged(data: Any) -> None:
    assert judge(data).status == "abstained"


@all_rows("value", [1.2, -0.1, "0.5", {"met": True}, {"score": 0.5, "weight": 2}])
def test_what_is_no_score_never_becomes_credit(value: Any) -> None:
    found = judge({"scores": {"depth": value}})
    assert (found.status, found.score) == ("failed", None)
    assert judge({"scores": [value]}).status == "failed"
    assert found.failure is not None
    assert found.failure.message.startswith("data.scores['depth']: ")
