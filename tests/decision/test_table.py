"""The verdict table: the position of each verdict, filled cells, and folded columns."""

from typing import Any

import numpy as np
import pytest

from jurygraph.decision.table import (
    ABSENT_CODE,
    ABSTAINED_CODE,
    FAILED_BY_INFRASTRUCTURE_CODE,
    FAILED_BY_RESPONSE_CODE,
    NOT_APPLICABLE_CODE,
    OK_CODE,
    ScoreArrays,
    build_verdict_table,
)
from jurygraph.decision.table import NO_MODEL_CODE as NO_MODEL_CODE
from jurygraph.schema import ComponentInput, Question, RecordedVerdict, ScoreCalibration, Verdict
from tests.graphs.scripted import ABSTENTION, INFRASTRUCTURE_FAILURE, NO_MODEL, RESPONSE_FAILURE
from tests.rows import all_rows


def make_question(**fields: Any) -> Question:
    return Question(id="q", evaluator="e", version="1", subject="s", view="v", **fields)


def make_verdict(about: str, score: Any, *shown: str, sample: int = 0) -> RecordedVerdict:
    made = score if isinstance(score, Verdict) else Verdict(score=score)
    place = {"question": "q", "about": about, "responses": shown or (about,), "sample": sample}
    return RecordedVerdict(**{**vars(made), **place})


def arrays_of(question: Question, names: str, *verdicts: RecordedVerdict) -> ScoreArrays:
    return build_verdict_table([question], list(names), verdicts).columns["q"]


def live_values(found: ScoreArrays) -> Any:
    return np.where(found.verdict_code > 0, found.value, np.nan)


def test_each_sample_has_its_own_column() -> None:
    found = arrays_of(
        make_question(samples=3),
        "a",
        *(make_verdict("a", s, sample=i) for i, s in enumerate((0.1, 0.2, 0.3))),
    )
    assert found.value.tolist() == [[0.1, 0.2, 0.3]]


def test_a_pair_is_in_the_column_of_its_opponent_and_no_response_opposes_itself() -> None:
    found = arrays_of(
        make_question(scope="pair"),
        "ab",
        make_verdict("a", 0.75, "a", "b"),
        make_verdict("b", 0.5, "b", "a"),
    )
    np.testing.assert_array_equal(live_values(found), [[np.nan, 0.75], [0.5, np.nan]])


def test_an_unordered_pair_counts_s_for_the_first_and_1_minus_s_for_the_second() -> None:
    question = make_question(scope="pair", pairs="unordered", samples=3)
    given = [
        make_verdict("a", s, "a", "b", sample=i)
        for i, s in enumerate((0.75, INFRASTRUCTURE_FAILURE, 0.25))
    ]
    found = arrays_of(question, "ab", *given)
    np.testing.assert_array_equal(found.value, [[0, 0, 0, 0.75, 0, 0.25], [0.25, 0, 0.75, 0, 0, 0]])
    assert found.met.tolist() == [
        [False] * 3 + [True, False, False],
        [False, False, True] + [False] * 3,
    ]
    assert (found.verdict_code > 0).tolist() == [[False] * 3 + [True] * 3, [True] * 3 + [False] * 3]


def test_variants_are_columns_sorted_by_id_in_the_row_of_their_parent() -> None:
    given = [
        make_verdict("a", 0.3, "a3"),
        make_verdict("a", 0.1, "a1"),
        make_verdict("b", 0.9, "b9"),
    ]
    found = arrays_of(make_question(material="versions"), "ab", *given)
    np.testing.assert_array_equal(live_values(found), [[0.1, 0.3], [0.9, np.nan]])


FILLS = {
    "counted": {"conservative": (0.0, 1.0), "strict": (0.0, 1.0), "gear": (0.0, 0.0)},
    "low": dict.fromkeys(("conservative", "strict", "gear"), (0.0, 0.0)),
    "high": dict.fromkeys(("conservative", "strict", "gear"), (1.0, 1.0)),
}


@all_rows("scenario", FILLS)
@all_rows("rule", ["conservative", "strict", "gear"])
@all_rows("missing", [ABSTENTION, NO_MODEL, RESPONSE_FAILURE, INFRASTRUCTURE_FAILURE])
def test_missing_values_are_filled_by_rule_and_sign(
    scenario: Any, rule: str, missing: RecordedVerdict
) -> None:
    table = build_verdict_table(
        [make_question()], ["a", "b"], [make_verdict("a", missing), make_verdict("b", 0.4)]
    )
    gain, penalty = FILLS[scenario][rule]
    for weight, direction, fill in (
        (1.0, 1, gain),
        (-1.0, 1, penalty),
        (1.0, -1, penalty),
        (-1.0, -1, gain),
    ):
        cells = table.score_matrix(
            ComponentInput(questions=("q",), weights=(weight,)), rule, direction, scenario
        )
        assert cells.value[:, 0].tolist() == [fill, 0.4]
        assert (cells.judged[:, 0].tolist(), cells.applicable.all()) == ([False, True], True)


def test_a_code_for_all_verdicts_gives_none_to_absent_ones_and_leaves_those_to_keep() -> None:
    screened = make_verdict("b", RecordedVerdict(status="not_applicable", gated_by="gate"), "b1")
    given = [make_verdict("a", 0.75, "a1"), make_verdict("a", ABSTENTION, "a2"), screened]
    table = build_verdict_table([make_question(material="versions")], ["a", "b"], given)
    changed = table.with_verdict_code(
        ["q"], FAILED_BY_INFRASTRUCTURE_CODE, kept=(NOT_APPLICABLE_CODE,)
    )
    assert changed.columns["q"].verdict_code.tolist() == [
        [FAILED_BY_INFRASTRUCTURE_CODE] * 2,
        [NOT_APPLICABLE_CODE, ABSENT_CODE],
    ]


@pytest.mark.parametrize(
    ("reduce", "folded"),
    [
        ("mean", [0.4, 0.5, 0.0]),
        ("min", [0.1, 0.1, 0.0]),
        ("max", [0.8, 0.8, 0.0]),
        ("median", [0.35, 0.6, 0.0]),
    ],
)
def test_columns_fold_into_one_over_the_live_ones(reduce: Any, folded: Any) -> None:
    scores = {"a": (0.8, 0.1, 0.5, 0.2), "b": (0.6, 0.1, 0.8)}
    given = [make_verdict(about, score, f"{score}") for about in scores for score in scores[about]]
    table = build_verdict_table([make_question(material="versions")], ["a", "b", "c"], given)
    cells = table.score_matrix(
        ComponentInput(questions=("q",), weights=(1.0,), reduce=reduce),
        "conservative",
        1,
        "counted",
    )
    np.testing.assert_allclose(cells.value[:, 0], folded)
    assert cells.applicable.tolist() == [[True], [True], [False]]


@pytest.mark.parametrize(("met", "columns", "folded"), [(1, 3, False), (1, 2, True), (2, 3, True)])
def test_folded_columns_are_met_where_half_of_them_are_or_more(
    met: int, columns: int, folded: bool
) -> None:
    given = [make_verdict("a", float(place < met), f"v{place}") for place in range(columns)]
    table = build_verdict_table([make_question(material="versions")], ["a"], given)
    cells = table.score_matrix(
        ComponentInput(questions=("q",), weights=(1.0,), reduce="mean"),
        "conservative",
        1,
        "counted",
    )
    assert cells.met.tolist() == [[folded]]


def test_a_calibrated_score_is_on_the_line_between_its_knots_and_what_is_missing_stays_so() -> None:
    given = [
        make_verdict(name, score)
        for name, score in zip("abcd", (0.1, 0.65, 0.9, ABSTENTION), strict=True)
    ]
    knots = ScoreCalibration(method="platt", labels=9, scores=(0.2, 0.8), calibrated=(0.3, 0.7))
    entry = ComponentInput(questions=("q",), weights=(1.0,), calibration={"q": knots})
    found = build_verdict_table([make_question()], list("abcd"), given).effective_columns(
        "q", entry, is_penalty=False
    )
    assert found.value[:, 0].tolist() == pytest.approx([0.3, 0.6, 0.7, 0.0])
    assert (found.met[:, 0].tolist(), found.verdict_code[3, 0]) == (
        [False, True, True, False],
        ABSTAINED_CODE,
    )


def test_a_majority_is_one_column_in_every_array() -> None:
    given = [make_verdict("a", score, sample=place) for place, score in enumerate((1.0, 1.0, 0.0))]
    entry = ComponentInput(questions=("q",), weights=(1.0,), reduce="majority")
    found = build_verdict_table([make_question(samples=3)], ["a", "b"], given).effective_columns(
        "q", entry, is_penalty=False
    )
    assert {array.shape for array in found} == {(2, 1)}
    assert (found.value[0, 0], found.verdict_code[:, 0].tolist()) == (1.0, [OK_CODE, ABSENT_CODE])


def test_the_spread_over_samples_is_that_of_each_response() -> None:
    scores = {"a": (0.25, 1.0), "b": (0.5, 0.75), "c": (0.5,)}
    given = [
        make_verdict(about, s, sample=i) for about, own in scores.items() for i, s in enumerate(own)
    ]
    table = build_verdict_table([make_question(samples=2)], list(scores), given)
    spread = table.sample_spread([ComponentInput(questions=("q",), weights=(1.0,))])
    np.testing.assert_array_equal(spread, [0.75, 0.25, np.nan])


def test_a_verdict_without_a_confidence_is_sure() -> None:
    given = [
        make_verdict("a", RecordedVerdict(score=1.0)),
        make_verdict("b", RecordedVerdict(score=1.0, confidence=0.25)),
    ]
    assert build_verdict_table([make_question()], ["a", "b"], given).columns[
        "q"
    ].confidence.tolist() == [
        [1.0],
        [0.25],
    ]


STOPPED = RecordedVerdict(score=0.0, met=False, gated_by="empty-response")


@all_rows("scenario", ["counted", "low", "high", "partial"])
@all_rows("rule", ["conservative", "strict", "gear"])
def test_a_stopped_response_counts_the_worst_under_every_rule(scenario: Any, rule: str) -> None:
    table = build_verdict_table(
        [make_question()], ["a", "b"], [make_verdict("a", STOPPED), make_verdict("b", 0.4)]
    )
    for weight, direction, worst in (
        (1.0, 1, 0.0),
        (-1.0, 1, 1.0),
        (1.0, -1, 1.0),
        (-1.0, -1, 0.0),
    ):
        cells = table.score_matrix(
            ComponentInput(questions=("q",), weights=(weight,)), rule, direction, scenario
        )
        assert cells.value[:, 0].tolist() == [worst, 0.4]
        assert cells.met[:, 0].tolist() == [worst == 1.0, False]
        assert (cells.judged[:, 0].tolist(), cells.applicable.all()) == ([False, True], True)


def test_a_stopped_response_counts_as_judged_once_for_all_samples() -> None:
    table = build_verdict_table([make_question(samples=3)], ["a"], [make_verdict("a", STOPPED)])
    for reduce in ("mean", None):
        judged, requested = table.judged_and_requested_weight(
            ComponentInput(questions=("q",), weights=(2.0,), reduce=reduce), 1
        )
        assert (judged.tolist(), requested.tolist()) == ([2.0], [2.0])


# Effective columns of an input


def effective_row(
    question: Question, *given: RecordedVerdict, **settings: Any
) -> tuple[list[float], list[int]]:
    """Return value and code of the only row, as an input uses them."""
    table = build_verdict_table([question], ["a"], given)
    found = table.effective_columns(
        "q", ComponentInput(questions=("q",), weights=(1.0,), **settings), is_penalty=False
    )
    return found.value[0].tolist(), found.verdict_code[0].tolist()


def make_votes(*scores: Any) -> list[RecordedVerdict]:
    return [make_verdict("a", score, sample=place) for place, score in enumerate(scores)]


@all_rows(
    ("given", "value", "verdict_code"),
    [
        ((0.75, 0.75, 0.25), 0.75, OK_CODE),
        ((0.75, 0.25, 0.5), 0.0, ABSTAINED_CODE),
        ((0.75, ABSTENTION, ABSTENTION), 0.75, OK_CODE),
        ((0.75, ABSTENTION, INFRASTRUCTURE_FAILURE), 0.0, FAILED_BY_INFRASTRUCTURE_CODE),
        ((0.75, ABSTENTION, NO_MODEL), 0.0, NO_MODEL_CODE),
        ((0.75, 0.75, INFRASTRUCTURE_FAILURE), 0.75, OK_CODE),
        ((0.75, RESPONSE_FAILURE, 0.25), 0.0, FAILED_BY_RESPONSE_CODE),
        ((0.75, INFRASTRUCTURE_FAILURE, RESPONSE_FAILURE), 0.0, FAILED_BY_INFRASTRUCTURE_CODE),
        ((NO_MODEL, NO_MODEL, NO_MODEL), 0.0, NO_MODEL_CODE),
    ],
)
def test_a_majority_is_one_verdict_and_without_one_the_worst_code_counts(
    given: tuple[Any, ...], value: float, verdict_code: int
) -> None:
    assert effective_row(make_question(samples=3), *make_votes(*given), reduce="majority") == (
        [value],
        [verdict_code],
    )


def test_samples_that_were_screened_out_or_absent_count_as_screened_out() -> None:
    """Of `a` there are two variants, of `b` one: its second column is absent, not left out."""
    screened = RecordedVerdict(status="not_applicable", gated_by="gate")
    given = [
        make_verdict("a", 0.75, "a1"),
        make_verdict("a", 0.75, "a2"),
        make_verdict("b", screened, "b1"),
    ]
    table = build_verdict_table([make_question(material="versions")], ["a", "b", "c"], given)
    found = table.effective_columns(
        "q", ComponentInput(questions=("q",), weights=(1.0,), reduce="majority"), is_penalty=False
    )
    assert found.verdict_code.tolist() == [[OK_CODE], [NOT_APPLICABLE_CODE], [ABSENT_CODE]]


def test_unsure_verdicts_are_discarded_before_the_majority_is_counted() -> None:
    unsure = RecordedVerdict(score=0.25, confidence=0.1)
    both = make_votes(0.75, unsure, unsure)
    assert effective_row(make_question(samples=3), *both, reduce="majority") == ([0.25], [OK_CODE])
    settings: dict[str, Any] = {"reduce": "majority", "min_confidence": 0.5}
    assert effective_row(make_question(samples=3), *both, **settings) == ([0.75], [OK_CODE])
    assert effective_row(make_question(samples=3), *both, **settings, vote="all-seats") == (
        [0.0],
        [ABSTAINED_CODE],
    )
