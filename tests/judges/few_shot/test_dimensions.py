"""Dimensions: the paper's set for business ideas, their validation, and screening thresholds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import RecordedVerdict, Trace
from jurygraph.errors import ConfigError
from jurygraph.judges.reviewers import Dimension, ZeroShot, load_ready_dimensions
from jurygraph.schema import Condition
from tests.judges.criteria import scripted_judge
from tests.judges.few_shot.reviewers import (
    judge,
    judge_use,
    plan_questions,
    prediction_reply,
    response,
    score_with,
    task,
)
from tests.models.judge_scripts import Script
from tests.models.server import Answer
from tests.rows import all_rows

# Business ideas

SCALES = {
    "specificity": (1, 4),
    "technical-validity": (1, 4),
    "competitive-advantage": (1, 4),
    "innovativeness": (1, 5),
    "need-validity": (0, 3),
    "market-size": (0, 3),
}
AFTER = {
    "technical-validity": "specificity",
    "innovativeness": "technical-validity",
    "competitive-advantage": "technical-validity",
    "need-validity": "specificity",
    "market-size": "specificity",
}
IDEAS = load_ready_dimensions("ideas")


def test_the_papers_six_dimensions_have_its_scales_and_gates() -> None:
    assert {name: one.scale for name, one in IDEAS.items()} == SCALES
    assert {name: list(one.above) for name, one in IDEAS.items() if one.above} == {
        k: [v] for k, v in AFTER.items()
    }


# What a dimension may be

ONE: Mapping[str, Any] = {"text": "How good it is.", "scale": [1, 5]}


def dimensions_of(stated: Any) -> Mapping[str, Dimension]:
    return ZeroShot.Params.model_validate({"dimensions": stated}).resolved_dimensions


@given(
    st.integers(-20, 20),
    st.integers(1, 40),
    st.sampled_from([0.1, 0.25, 0.5, 1.0, 2.0, 3.0]),
    st.floats(-25, 65) | st.integers(-100, 300).map(lambda n: n * 0.05),
)
def test_scores_lie_on_steps_from_the_low_end(
    low: int, steps: int, step: float, value: float
) -> None:
    form = Dimension.model_validate({**ONE, "scale": [low, low + steps * step], "step": step}).form
    assert all(form.is_valid_score(low + place * step) for place in range(steps + 1))
    assert not any(
        form.is_valid_score(low + (place + 0.5) * step) for place in range(-1, steps + 1)
    )
    away = min(abs(value - (low + place * step)) for place in range(steps + 1))
    if form.is_valid_score(value):
        assert away < 1e-6
    elif low <= value <= low + steps * step:
        assert away > 1e-12


REFUSED: Mapping[str, tuple[Any, str]] = {
    "no such set": ("idea", "dimensions: is the text 'idea'; did you mean ideas? write 'ideas'"),
    "none": ({}, "dimensions: has 0 entries; give it at least 1"),
    "a slash": ({"a/b": ONE}, "dimensions.a/b: is not a valid name; write one without / and @"),
    "an at": ({"a@b": ONE}, "dimensions.a@b: is not a valid name"),
    "no text": (
        {"a": {"scale": [1, 5]}},
        "dimensions.a.text: is missing; every dimension needs it",
    ),
    "unknown field": (
        {"a": {**ONE, "scales": [1, 5]}},
        "dimensions.a.scales: unknown; did you mean scale?",
    ),
    "falling": (
        {"a": {**ONE, "scale": [5, 1]}},
        "dimensions.a.scale: does not rise; write the lower end first, such as [1, 5]",
    ),
    "off the steps": (
        {"a": {**ONE, "step": 3}},
        "dimensions.a.step: 3 does not lead from 1 to 5; choose one that does",
    ),
    "no step": ({"a": {**ONE, "step": 0}}, "dimensions.a.step: "),
    "no share": ({"a": {**ONE, "share": 0}}, "dimensions.a.share: "),
    "excluded inside": (
        {"a": {**ONE, "not_applicable": 3}},
        "is not an end of a scale in steps; write 1 or 5",
    ),
    "excluded of any number": (
        {"a": {**ONE, "step": None, "not_applicable": 1}},
        "is not an end of a scale in steps",
    ),
    "nothing but excluded": (
        {"a": {**ONE, "scale": [0, 1], "not_applicable": 0}},
        "leaves less than two scores",
    ),
    "after two": (
        {"a": {**ONE, "above": {"b": 1, "c": 1}}, "b": ONE, "c": ONE},
        "dimensions.a.above: ",
    ),
    "after nobody": (
        {"a": {**ONE, "above": {"b": 1}}},
        "dimensions.a.above: there is no dimension 'b'; name one",
    ),
    "never": (
        {"a": {**ONE, "above": {"b": 5}}, "b": ONE},
        "dimensions.a.above: no score of b is parted by 5; write one",
    ),
}


@all_rows(("stated", "said"), REFUSED.values())
def test_an_invalid_dimension_is_refused_by_name(stated: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        judge("zero-shot", dimensions=stated)
    assert str(refused.value).startswith("zero-shot: params.dimensions")
    assert said in str(refused.value)


# Screening

TASK = task("ann")
SCREENED: Mapping[str, Any] = {"panel": {"if_skipped": "left-out"}}
STAGES = {
    "depth": {"text": "How deep it is.", "scale": [1, 4]},
    "reach": {"text": "How far it reaches.", "scale": [1, 4], "above": {"depth": 2}},
    "worth": {"text": "What it is worth.", "scale": [0, 3], "above": {"reach": 2}},
}


def answering_by_dimension(
    values: Mapping[str, Any], dimensions: Mapping[str, Any] | None = None
) -> Script:
    """A model that says of every dimension its value, or its values in turn, or gives the answer that is told."""
    texts = {
        name: one.text
        for name, one in (IDEAS if dimensions is None else dimensions_of(dimensions)).items()
    }
    given: Counter[str] = Counter()

    def script(body: dict[str, Any], number: int) -> Answer:
        name = requested_dimension(body, texts)
        told = values[name]
        value = told[min(given[name], len(told) - 1)] if isinstance(told, list) else told
        given[name] += 1
        return value if callable(value) else prediction_reply(body, value)

    return script


def requested_dimension(body: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Return the dimension that a request is about."""
    (name,) = (
        name for name, text in texts.items() if f"\n{text}\n" in scripted_judge.user_message(body)
    )
    return name


def score_screened(
    values: Mapping[str, Any], samples: int = 1, dimensions: Any = STAGES, **settings: Any
) -> tuple[Trace, Counter[str]]:
    """Return the trace of one response, and the number of requests per dimension."""
    known = dimensions_of(dimensions)
    told = judge_use("zero-shot", dimensions=dimensions, samples=samples)
    script = answering_by_dimension(values, None if dimensions == "ideas" else dimensions)
    (trace,), bodies = score_with(script, told, TASK, response(), **{**SCREENED, **settings})
    return trace, Counter(
        requested_dimension(body, {name: one.text for name, one in known.items()})
        for body in bodies
    )


def statuses(trace: Trace) -> dict[str, str]:
    return {verdict.subject: verdict.status for verdict in trace.verdicts}


def verdict_on(trace: Trace, subject: str) -> RecordedVerdict:
    return next(verdict for verdict in trace.verdicts if verdict.subject == subject)


def test_a_gate_is_a_strict_threshold_on_the_median_in_units_of_its_scale() -> None:
    questions = {
        one.subject: one for one in plan_questions(judge("zero-shot", dimensions=STAGES), TASK)
    }
    assert questions["depth"].when is None
    before = questions["depth"].id
    assert questions["reach"].when == Condition(
        question=before, op=">", threshold=2, reduce="median", on="native"
    )


PASSED: Sequence[tuple[Mapping[str, int], Mapping[str, int]]] = (
    ({"depth": 1}, {"depth": 1}),
    ({"depth": 2}, {"depth": 1}),
    ({"depth": 3, "reach": 2}, {"depth": 1, "reach": 1}),
    ({"depth": 4, "reach": 3, "worth": 0}, {"depth": 1, "reach": 1, "worth": 1}),
)


@pytest.mark.parametrize(("values", "calls"), PASSED)
def test_questions_behind_a_missed_threshold_are_skipped(
    values: Mapping[str, int], calls: Mapping[str, int]
) -> None:
    trace, found = score_screened(values)
    assert found == calls
    assert statuses(trace) == {
        name: "ok" if name in values else "not_applicable" for name in STAGES
    }
    assert len(trace.calls) == len(values)


IDEA_CALLS: Sequence[tuple[Mapping[str, int], set[str]]] = (
    ({"specificity": 2}, {"specificity"}),
    (
        {"specificity": 3, "technical-validity": 2, "need-validity": 1, "market-size": 2},
        {"specificity", "technical-validity", "need-validity", "market-size"},
    ),
    (dict.fromkeys(SCALES, 3), set(SCALES)),
)


@pytest.mark.parametrize(("values", "calls"), IDEA_CALLS)
def test_ideas_are_screened_as_in_the_paper(values: Mapping[str, int], calls: set[str]) -> None:
    trace, found = score_screened(values, dimensions="ideas", samples=3)
    assert found == dict.fromkeys(calls, 3)
    assert {name for name, what in statuses(trace).items() if what == "ok"} == calls


# Category exclusion: the paper's 0 of need validity and market size

MARKET: Mapping[str, Any] = {
    "market": {"text": "How large it is.", "scale": [0, 3], "not_applicable": 0}
}


@pytest.mark.parametrize(("value", "score"), [(1, 0.0), (2, 0.5), (3, 1.0)])
def test_the_scores_are_on_the_scale_without_the_excluding_value(value: int, score: float) -> None:
    trace, _ = score_screened({"market": value}, dimensions=MARKET)
    verdict = verdict_on(trace, "market")
    assert (verdict.status, verdict.score, verdict.native, verdict.scale) == (
        "ok",
        score,
        value,
        (1, 3),
    )
    assert trace.reward.value == score


def test_an_excluding_prediction_is_not_applicable_and_never_the_worst_score() -> None:
    both = {**MARKET, "depth": {"text": "How deep it is.", "scale": [1, 4]}}
    trace, _ = score_screened({"market": 0, "depth": 4}, dimensions=both)
    verdict = verdict_on(trace, "market")
    assert (verdict.status, verdict.score, verdict.native, verdict.gated_by) == (
        "not_applicable",
        None,
        0,
        None,
    )
    assert verdict.reason
    assert verdict.evidence
    assert (trace.reward.value, trace.reward.coverage) == (1.0, 1.0)
