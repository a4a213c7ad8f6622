"""Judges of one reviewer next to each other."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.runs.reports.comparison import compare
from jurygraph.runs.reports.comparison.figures import ConstructorPair
from jurygraph.schema import RecordedVerdict
from tests.runs.reports.comparison.traces import trace, traces_with_verdicts, unhurried, verdict


def predicted(evaluator: str, reviewer: str, about: str, score: float | None, sample: int = 0) -> RecordedVerdict:
    question = f"{evaluator}/appeal@{reviewer}"
    fields = {"evaluator": evaluator, "subject": "appeal", "reviewer": reviewer, "sample": sample}
    return verdict(question, about, score, **fields)


def test_two_judges_of_a_reviewer_are_compared_across_runs_that_have_one_each():
    a = traces_with_verdicts(predicted("aggregate", "ann", "r", 0.25), predicted("aggregate", "bob", "r", 0.5))
    b = traces_with_verdicts(predicted("personalized", "ann", "r", 1.0), predicted("personalized", "bob", "r", None))
    expected = ConstructorPair("ann", "appeal", "aggregate", "personalized", ("A", "B"), 1, 0.25, 1.0, 0.75)
    assert compare(a, b).constructors == (expected,)
    (turned,) = compare(b, a).constructors
    assert (turned.first, turned.runs, turned.mean_first) == ("personalized", ("A", "B"), 1.0)


def test_two_judges_of_one_run_are_compared_within_it():
    both = [predicted("personalized", "ann", "r", 0.75), predicted("zero-shot", "ann", "r", 0.5)]
    within = ConstructorPair("ann", "appeal", "personalized", "zero-shot", ("A", "A"), 1, 0.75, 0.5, 0.25)
    same = traces_with_verdicts(*both)
    assert compare(same, same).constructors == (within,)  # equal verdicts once
    later = traces_with_verdicts(both[0], predicted("zero-shot", "ann", "r", 0.75))
    assert [(pair.runs, pair.mean_distance) for pair in compare(same, later).constructors] == [
        (("A", "A"), 0.25),
        (("B", "B"), 0.0),
    ]
    one = traces_with_verdicts(both[0])
    assert compare(one, same).constructors == (dataclasses.replace(within, runs=("B", "B")),)


places = st.tuples(st.sampled_from("AB"), st.sampled_from(["ann", "bob"]), st.sampled_from(["r1", "r2"]))


@unhurried
@given(st.dictionaries(st.tuples(places, st.integers(0, 1), st.booleans()), st.integers(0, 4), min_size=1))
def test_the_pairs_are_of_the_same_reviewer_and_response(scores: dict):
    def of_judge(run: str, who: str, about: str, judge: str) -> list[float]:
        place = run, who, about
        found = [scores.get((place, sample, judge == "aggregate")) for sample in (0, 1)]
        return [score / 4 for score in found if score is not None]

    def mean_score(numbers: list[float]) -> float:
        return sum(numbers) / len(numbers)

    runs = {
        run: [
            trace("t", response, verdicts=[
                predicted("aggregate" if is_aggregate else "personalized", who, response, score / 4, sample)
                for ((of, who, about), sample, is_aggregate), score in scores.items()
                if (of, about) == (run, response)
            ])
            for response in ("r1", "r2")
        ]
        for run in "AB"
    }  # fmt: skip
    for pair in compare(runs["A"], runs["B"]).constructors:
        matched = [
            (mean_score(first), mean_score(second))
            for response in ("r1", "r2")
            if (first := of_judge(pair.runs[0], pair.reviewer, response, pair.first))
            and (second := of_judge(pair.runs[1], pair.reviewer, response, pair.second))
        ]
        assert pair.n == len(matched) > 0
        assert pair.mean_first == pytest.approx(mean_score([a for a, _ in matched]))
        assert pair.mean_distance == pytest.approx(mean_score([abs(a - b) for a, b in matched]))
