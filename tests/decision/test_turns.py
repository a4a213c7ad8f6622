"""The value of a response from the verdicts on its turns, and what missing verdicts leave open."""

from typing import Any

import pytest

from jurygraph.decision.table import build_verdict_table
from jurygraph.schema import ComponentInput, Question, RecordedVerdict, Verdict
from tests.graphs.scripted import ABSTENTION, INFRASTRUCTURE_FAILURE
from tests.rows import all_rows

SKIPPED = Verdict.not_applicable("it is a greeting")
EMPTY = RecordedVerdict(score=0.0, met=False, gated_by="empty-turn")
LOST = INFRASTRUCTURE_FAILURE
SCENARIOS = ("counted", "low", "high", "partial")

# Scores of the turns, weight, reduction, and the values: as counted, and where the missing are 0, 1 or left out.
REDUCED = {
    "mean": ([0.5, 0.25, 0.75], 1, "mean", [0.5] * 4),
    "mean, one is missing": ([1.0, LOST, 0.5], 1, "mean", [0.5, 0.5, 2.5 / 3, 0.75]),
    "mean of a penalty": ([1.0, ABSTENTION], -1, "mean", [1.0, 0.5, 1.0, 1.0]),
    "a turn that does not apply": ([1.0, SKIPPED, 0.5], 1, "mean", [0.75] * 4),
    "an empty turn": ([1.0, EMPTY, 0.5], 1, "mean", [0.5] * 4),
    "an empty turn of a penalty": ([1.0, EMPTY, 0.5], -1, "mean", [0.75] * 4),
    "the last is empty": ([1.0, EMPTY], 1, "last", [0.0] * 4),
    "the last is empty, of a penalty": ([1.0, EMPTY], -1, "last", [1.0] * 4),
    "an empty one before a fault": ([EMPTY, 0.0, 1.0], -1, "first_failure", [0.5] * 4),
    "min": ([0.5, 0.25, 0.75], 1, "min", [0.25] * 4),
    "min, one is missing": ([0.5, LOST], 1, "min", [0.0, 0.0, 0.5, 0.5]),
    "min of a penalty is its worst": ([0.0, 1.0], -1, "min", [1.0] * 4),
    "last": ([0.5, 0.25, 0.75], 1, "last", [0.75] * 4),
    "last, an earlier one is missing": ([LOST, 0.75], 1, "last", [0.75] * 4),
    "last is missing": ([0.75, LOST], 1, "last", [0.0, 0.0, 1.0, None]),
    "last does not apply": ([0.75, 0.25, SKIPPED], 1, "last", [0.25] * 4),
    "no failure": ([0.5, 0.75], 1, "first_failure", [1.0] * 4),
    "second of four": ([0.5, 0.25, 1.0, 1.0], 1, "first_failure", [0.25] * 4),
    "first": ([0.0, 1.0], 1, "first_failure", [0.0] * 4),
    "missing before": ([1.0, LOST, 0.0], 1, "first_failure", [1 / 3, 1 / 3, 2 / 3, 0.5]),
    "missing after": ([1.0, 0.0, LOST, 1.0], 1, "first_failure", [0.25, 0.25, 0.25, 1 / 3]),
    "first fault": ([0.0, 1.0, 0.0, 0.0], -1, "first_failure", [0.75] * 4),
    "no fault": ([0.0, 0.25], -1, "first_failure", [0.0] * 4),
    "nothing applies": ([SKIPPED, SKIPPED], 1, "min", [None] * 4),
}


def make_question(**fields: Any) -> Question:
    return Question(
        id="q", evaluator="e", version="1", subject="s", view="v", scope="turn", **fields
    )


def make_verdict(about: str, turn: int, score: Any, judge: str | None = None) -> RecordedVerdict:
    made = score if isinstance(score, Verdict) else RecordedVerdict(score=score)
    place = {"question": "q", "about": about, "responses": (about,), "turn": turn, "judge": judge}
    return RecordedVerdict(**{**vars(made), **place})


@all_rows(("scores", "weight", "reduction", "values"), REDUCED.values())
def test_turns_become_one_value(
    scores: list[Any], weight: int, reduction: Any, values: list[float | None]
) -> None:
    """Whatever other responses of the group have: here one with more turns."""
    given = [make_verdict("a", 3 * turn, score) for turn, score in enumerate(scores)]
    longer = [make_verdict("b", turn, 0.5) for turn in range(7)]
    entry = ComponentInput(questions=("q",), weights=(weight,), turns={"q": reduction})
    table = build_verdict_table([make_question()], ["a", "b"], [*reversed(given), *longer])
    for scenario, value in zip(SCENARIOS, values, strict=True):
        cells = table.score_matrix(entry, "conservative", 1, scenario)  # type: ignore[arg-type]
        assert cells.value.shape == (2, 1)
        assert cells.applicable[0, 0] == (value is not None)
        assert cells.value[0, 0] == pytest.approx(value or 0.0)
    settled, requested = table.judged_and_requested_weight(entry, 1)
    is_complete = LOST not in scores and ABSTENTION not in scores
    assert (settled[0] == requested[0]) == (is_complete or values == [0.75] * 4)


def test_a_verdict_without_a_turn_comes_before_those_on_turns() -> None:
    """As a foreign record may have it: a program's own records name a turn, or none for a response."""
    no_turn = make_verdict("a", 0, 1.0).model_copy(update={"turn": None})
    given = [make_verdict("a", 3, 0.5), make_verdict("a", 1, 0.25), no_turn]
    table = build_verdict_table([make_question()], ["a"], given)
    assert table.columns["q"].value.tolist() == [[1.0, 0.25, 0.5]]


def test_judges_vote_on_each_turn_before_turns_are_reduced() -> None:
    votes = [(True, True, False), (True, False, False), (True, True, True)]
    given = [
        make_verdict("a", turn, Verdict(score=float(met), met=met), judge)
        for turn, of_turn in enumerate(votes)
        for judge, met in zip("xyz", of_turn, strict=True)
    ]
    entry = ComponentInput(
        questions=("q",),
        weights=(1.0,),
        reduce="majority",
        has_judges=True,
        turns={"q": "first_failure"},
    )
    table = build_verdict_table([make_question(judges=("x", "y", "z"))], ["a"], given)
    cells = table.score_matrix(entry, "conservative", 1, "counted")
    assert cells.value.tolist() == [[1 / 3]]
    alone = table.score_matrix(
        entry.model_copy(update={"judge": "y"}), "conservative", 1, "counted"
    )
    assert alone.value.tolist() == [[1 / 3]]
    assert table.score_matrix(
        entry.model_copy(update={"judge": "z", "turns": {"q": "last"}}),
        "conservative",
        1,
        "counted",
    ).value.tolist() == [[1.0]]
