"""The consensus of judges is the posterior of a response's level by the plan's confusions; no failure gains."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import PlanError, ScoreMatrix
from jurygraph.judges.panel import ConsensusOfJudges
from jurygraph.schema import ComponentInput
from tests.rows import all_rows

LEVELS = (0.0, 0.5, 1.0)
HONEST = [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
LIAR = [[0.05, 0.15, 0.8], [0.1, 0.8, 0.1], [0.8, 0.15, 0.05]]
KNOWN = {
    "classes": list(LEVELS),
    "prior": [0.5, 0.2, 0.3],
    "annotators": {"a": HONEST, "b": HONEST, "liar": LIAR},
}
COMBINER = ConsensusOfJudges()


def inputs(
    *judges: str, weight: float = 1.0, input_weight: float = 1.0
) -> dict[str, ComponentInput]:
    return {
        one: ComponentInput(questions=(one,), weights=(weight,), input_weight=input_weight)
        for one in judges
    }


def freeze_params(*judges: str, **params: Any) -> dict[str, Any]:
    return COMBINER.freeze(inputs(*judges), params)


def score_matrices(
    votes: Mapping[str, Sequence[float | None]], fill: float = 0.0
) -> dict[str, ScoreMatrix]:
    """Return the matrices of one response; None is a requested vote without a verdict."""
    return {
        judge: ScoreMatrix(
            value=np.array([[fill if one is None else one for one in given]]),
            met=np.zeros((1, len(given)), dtype=np.bool_),
            judged=np.array([[one is not None for one in given]]),
            applicable=np.ones((1, len(given)), dtype=np.bool_),
            weight=np.ones(len(given)),
        )
        for judge, given in votes.items()
    }


def value(
    votes: Mapping[str, Sequence[float | None]], params: Mapping[str, Any], fill: float = 0.0
) -> float:
    return float(COMBINER.combine(score_matrices(votes, fill), params).value[0])


def posterior_by_hand(votes: Mapping[str, Sequence[float]]) -> list[Fraction]:
    """Return the posterior by Bayes' rule in fractions."""
    shares = [Fraction(one) for one in KNOWN["prior"]]  # type: ignore[attr-defined]
    for judge, said in votes.items():
        matrix = KNOWN["annotators"][judge]  # type: ignore[index]
        for one in said:
            shares = [
                share * Fraction(row[LEVELS.index(one)])
                for share, row in zip(shares, matrix, strict=True)
            ]
    return [share / sum(shares) for share in shares]


levels = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=3)
panels = st.fixed_dictionaries({"a": levels, "b": levels, "liar": levels})


@given(panels)
def test_the_value_is_the_mean_level_by_bayes_rule(votes: dict[str, list[float]]) -> None:
    made = COMBINER.combine(
        score_matrices(votes), freeze_params("a", "b", "liar", confusions=KNOWN)
    )
    posterior = posterior_by_hand(votes)
    assert made.value[0] == pytest.approx(
        float(sum(p * Fraction(v) for p, v in zip(posterior, LEVELS, strict=True)))
    )
    for level, share in zip(LEVELS, posterior, strict=True):
        assert made.diagnostics[f"p({level:g})"][0] == pytest.approx(float(share))
    assert made.diagnostics["ambiguity"][0] == pytest.approx(float(1 - max(posterior)))
    assert made.present[0]


@given(panels, st.data())
def test_a_discarded_judge_gives_no_credit(
    votes: dict[str, list[float]], data: st.DataObject
) -> None:
    """Whatever it could have said, the response gets no more without it; the liar's silence gains nothing either."""
    params = freeze_params("a", "b", "liar", confusions=KNOWN)
    silent = data.draw(st.sampled_from(sorted(votes)))
    without_judge = {
        judge: [None] * len(given) if judge == silent else given for judge, given in votes.items()
    }
    could = [
        value({**votes, silent: list(said)}, params)
        for said in product(LEVELS, repeat=len(votes[silent]))
    ]
    assert value(without_judge, params) == pytest.approx(min(could))
    low, high = COMBINER.bounds(
        score_matrices(without_judge, 0.0), score_matrices(without_judge, 1.0), params
    )
    assert low[0] == pytest.approx(min(could))
    assert high[0] == pytest.approx(max(could))


@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_without_counted_judges_the_failure_rule_applies(fill: float) -> None:
    """Also where a gate stopped every judge: nothing good is found in such a response."""
    for params in (
        freeze_params("a", "b", confusions=KNOWN),
        freeze_params("a", "b", levels=[0.2, 0.9]),
    ):
        made = COMBINER.combine(score_matrices({"a": [None] * 9, "b": [None] * 9}, fill), params)
        assert made.value[0] == fill
        assert np.isnan(made.diagnostics["ambiguity"][0])


def test_votes_of_a_judge_have_no_order_and_too_many_cases_count_the_lowest_level() -> None:
    params = freeze_params("a", "b", "liar", confusions=KNOWN)
    assert 0.0 < value({"a": [None] * 9, "b": [1.0]}, params) < 1e-6  # 55 ways
    assert value({"a": [None] * 9, "b": [None] * 9, "liar": [0.0]}, params) == 0.0  # 3,025 ways


@given(panels, st.lists(st.integers(0, 2), min_size=1, max_size=3), st.data())
def test_each_row_depends_on_itself_alone(
    votes: dict[str, list[float]], missing: list[int], data: st.DataObject
) -> None:
    params = freeze_params("a", "b", "liar", confusions=KNOWN)
    same: dict[str, list[float | None]] = {
        judge: [*said, *said, *said][:3] for judge, said in sorted(votes.items())
    }
    partly = {
        judge: [None if place in missing else one for place, one in enumerate(said)]
        for judge, said in same.items()
    }
    silent: dict[str, list[float | None]] = {judge: [None] * 3 for judge in same}
    rows = [
        score_matrices(one)
        for one in data.draw(st.permutations([same, partly, silent, {**same, "liar": [None] * 3}]))
    ]
    together = {
        judge: ScoreMatrix(
            *(
                np.concatenate([getattr(one[judge], name) for one in rows])
                for name in ("value", "met", "judged", "applicable")
            ),
            np.ones(3),
        )
        for judge in rows[0]
    }
    assert COMBINER.combine(together, params).value.tolist() == [
        COMBINER.combine(one, params).value[0] for one in rows
    ]


def test_gated_and_failed_votes_count_as_the_worst_case() -> None:
    """A penalty under rule gear: what a gate stopped is filled with 1, what failed with 0."""
    params = freeze_params("a", "b", confusions=KNOWN)
    both = score_matrices({"a": [1.0, None], "b": [None]})
    both["a"].value[0, 1] = 1.0  # stopped
    could = {
        failed: max(value({"a": [1.0, stopped], "b": [failed]}, params) for stopped in LEVELS)
        for failed in LEVELS
    }
    assert COMBINER.combine(both, params).value[0] == pytest.approx(min(could.values()))


@given(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=7))
def test_without_confusions_the_most_votes_win_and_a_tie_is_shared(said: list[float]) -> None:
    params = freeze_params(*(f"j{place}" for place in range(len(said))), levels=list(LEVELS))
    most = max(said.count(level) for level in LEVELS)
    leaders = [level for level in LEVELS if said.count(level) == most]
    assert value({f"j{place}": [one] for place, one in enumerate(said)}, params) == pytest.approx(
        sum(leaders) / len(leaders)
    )


@pytest.mark.parametrize(
    ("score", "level"), [(0.0, 0.0), (0.25, 0.0), (0.26, 0.5), (0.75, 0.5), (0.76, 1.0), (1.0, 1.0)]
)
def test_a_score_counts_as_the_nearest_level_and_between_two_as_the_lower(
    score: float, level: float
) -> None:
    assert value({"a": [score]}, freeze_params("a", levels=list(LEVELS))) == level


# Judges who predict different reviewers

REVIEWERS = {"a/x": "ann", "a/y": "bob", "b/x": "ann", "b/y": "bob", "liar": None}
"""Whom each question predicts: the judges `a` and `b` ann and bob, the liar nobody in particular."""
SPLIT = ("a@ann", "a@bob", "b@ann", "b@bob", "liar")


def judges_of_reviewers() -> dict[str, ComponentInput]:
    both = {
        name: ComponentInput(questions=(f"{name}/x", f"{name}/y"), weights=(1.0, 1.0))
        for name in "ab"
    }
    return {**both, **inputs("liar")}


def freeze_panels(**params: Any) -> dict[str, Any]:
    return COMBINER.freeze(
        COMBINER.arrange_inputs(judges_of_reviewers(), REVIEWERS, params), params
    )


votes_of_reviewers = st.fixed_dictionaries(
    dict.fromkeys(SPLIT, st.lists(st.sampled_from([*LEVELS, None]), min_size=1, max_size=2))
)


@given(
    votes_of_reviewers,
    st.sampled_from([{"confusions": KNOWN}, {"levels": list(LEVELS)}]),
    st.sampled_from([0.0, 1.0]),
)
def test_each_reviewer_has_a_panel_and_the_value_is_their_mean(
    votes: dict[str, list[float | None]], params: dict[str, Any], fill: float
) -> None:
    """Also where votes are missing: each panel counts them as the worst for itself. The liar votes in every panel."""
    made = COMBINER.combine(score_matrices(votes, fill), freeze_panels(**params))
    alone = {
        reviewer: COMBINER.combine(
            score_matrices(
                {"a": votes[f"a@{reviewer}"], "b": votes[f"b@{reviewer}"], "liar": votes["liar"]},
                fill,
            ),
            freeze_params("a", "b", "liar", **params),
        )
        for reviewer in ("ann", "bob")
    }
    assert {name: part[0] for name, part in made.parts.items()} == {
        name: one.value[0] for name, one in alone.items()
    }
    assert made.value[0] == pytest.approx((alone["ann"].value[0] + alone["bob"].value[0]) / 2)
    for name, one in alone.items():
        for figure, values in one.diagnostics.items():
            np.testing.assert_array_equal(made.diagnostics[f"{figure} of {name}"], values)


def test_reviewers_who_differ_stay_apart() -> None:
    """Ann's judges agree on 1, bob's on 0: that is no ambiguity of one truth."""
    says = {"a@ann": [1.0], "b@ann": [1.0], "a@bob": [0.0], "b@bob": [0.0]}
    per_reviewer = freeze_panels(confusions=KNOWN)
    votes = score_matrices({**says, "liar": [0.5]})
    made = COMBINER.combine(votes, per_reviewer)
    assert made.parts["ann"][0] > 0.9
    assert made.parts["bob"][0] < 0.1


def test_a_reviewer_of_whom_nothing_applies_is_no_part_and_does_not_count() -> None:
    arranged = COMBINER.arrange_inputs({"a": judges_of_reviewers()["a"]}, REVIEWERS, {})
    votes = score_matrices({"a@ann": [1.0], "a@bob": [0.0]})
    votes["a@bob"].applicable[:] = False
    made = COMBINER.combine(votes, COMBINER.freeze(arranged, {}))
    assert (made.value[0], made.parts["ann"][0], np.isnan(made.parts["bob"][0])) == (1.0, 1.0, True)


class TestFreezing:
    def test_levels_are_classes_in_the_unit_interval_or_evenly_spaced(self) -> None:
        assert freeze_params("a", confusions=KNOWN)["levels"] == list(LEVELS)
        words = {**KNOWN, "classes": ["bad", "ok", "good"]}
        assert freeze_params("a", confusions=words)["levels"] == [0.0, 0.5, 1.0]
        assert freeze_params("a", confusions=words, levels=[0, 0.1, 1])["levels"] == [0.0, 0.1, 1.0]
        assert freeze_params("a")["levels"] == [0.0, 1.0]

    @all_rows(
        ("params", "wrong"),
        [
            ({"confusions": KNOWN, "levels": [0, 1]}, "2 levels for 3 classes"),
            (
                {"confusions": KNOWN, "levels": [0, 0.25, 1]},
                "the confusions are of .*; learn them of these levels",
            ),
            (
                {"confusions": {**KNOWN, "classes": [1.0, 0.5, 0.0]}},
                "do not rise; name them from low to high",
            ),
            (
                {"confusions": {**KNOWN, "prior": [1.0, 1.0, 0.0]}},
                r"params.confusions.prior: sums to 2",
            ),
            (
                {"confusions": {**KNOWN, "annotators": {"b": HONEST}}},
                "say nothing of input 'a'.*: b",
            ),
        ],
    )
    def test_invalid_params_are_refused(self, params: dict[str, Any], wrong: str) -> None:
        with pytest.raises(PlanError, match=wrong):
            freeze_params("a", **params)

    def test_an_input_skipped_to_zero_is_refused(self) -> None:
        given = {"a": ComponentInput(questions=("a",), weights=(1.0,), if_skipped="zero")}
        with pytest.raises(
            PlanError,
            match="input 'a': a judge that was left out has no vote; write `if_skipped: left-out`",
        ):
            COMBINER.freeze(given, {})
