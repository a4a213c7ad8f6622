"""R_enhanced: the share of contrasts that score less than the response; unjudged contrasts do not count as ranked."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import PlanError, ScoreMatrix
from jurygraph.agents.data_synthesizer import ContrastRanking
from jurygraph.schema import ComponentInput
from tests.graphs.scripted import criterion, evaluator_use, response, score_responses, task

OWN, OTHER = "a", "a-of-versions"


def matrix(
    values: Any, judged: Any = True, live: Any = True, input_weight: float = 1.0
) -> ScoreMatrix:
    numbers = np.atleast_2d(np.array(values, dtype=float))
    shape = numbers.shape
    return ScoreMatrix(
        numbers,
        numbers >= 0.5,
        np.broadcast_to(np.array(judged), shape),
        np.broadcast_to(np.array(live), shape),
        np.ones(shape[1]),
        input_weight,
    )


def combine(**inputs: ScoreMatrix) -> Any:
    combiner = ContrastRanking()
    named = {name.replace("_of_", "-of-"): one for name, one in inputs.items()}
    component_inputs = {
        name: ComponentInput(questions=(name,), weights=(1.0,), input_weight=one.input_weight)
        for name, one in named.items()
    }
    return combiner.combine(named, combiner.freeze(component_inputs, {}))


def test_the_value_is_the_share_of_contrasts_that_score_less() -> None:
    found = combine(a=matrix(0.5), a_of_versions=matrix([[0.2, 0.5, 0.9, 0.4]]))
    assert found.value.tolist() == [0.5]
    assert found.present.tolist() == [True]
    margins = [float(found.diagnostics[f"pair {place}"][0]) for place in (1, 2, 3, 4)]
    assert margins == pytest.approx([0.3, 0.0, -0.4, 0.1])
    assert found.diagnostics["pairs"].tolist() == [4.0]


def test_several_evaluators_count_by_their_weights() -> None:
    one, other = (
        {"a": matrix(1.0), "a_of_versions": matrix([[0.0]])},
        {"b": matrix(0.0), "b_of_versions": matrix([[0.5]])},
    )
    assert combine(**one, **other).value.tolist() == [1.0]
    heavy = {"b": matrix(0.0, input_weight=3.0), "b_of_versions": matrix([[0.5]])}
    assert combine(**one, **heavy).value.tolist() == [0.0]


@given(
    own=st.floats(0, 1),
    others=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    unjudged=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_unjudged_contrasts_count_by_fill_value_and_never_as_ranked(
    own: float, others: list[float], unjudged: list[bool]
) -> None:
    """Filled with 0, a contrast that could not be judged scores less than the response: no credit rests on that."""
    open_ = np.array([unjudged[: len(others)]])
    ranked = sum(one < own for one, lost in zip(others, unjudged, strict=False) if not lost)
    for fill, gained in ((0.0, 0), (1.0, int(open_.sum()))):
        values = np.where(open_, fill, [others])
        found = combine(a=matrix(own), a_of_versions=matrix(values, judged=~open_))
        assert found.value[0] == pytest.approx((ranked + gained) / len(others))
        assert found.diagnostics["pairs"].tolist() == [len(others) - open_.sum()]


@pytest.mark.parametrize(
    "names", [("a",), ("a-of-x",), ("a", "b-of-x"), ("a", "a-of-x", "a-of-y"), ("a", "a-of-x", "b")]
)
def test_inputs_must_come_in_pairs(names: tuple[str, ...]) -> None:
    inputs = {name: ComponentInput(questions=(name,), weights=(1.0,)) for name in names}
    with pytest.raises(PlanError, match="in twos"):
        ContrastRanking().freeze(inputs, {})


def test_an_input_is_one_question() -> None:
    several = ComponentInput(questions=("one", "two"), weights=(1.0, 1.0))
    with pytest.raises(PlanError, match="holds 2 questions; name one of them by its id"):
        ContrastRanking().freeze({"a": several, "a-of-x": several}, {})


# In the machine

CONFIG: dict[str, Any] = {
    "evaluators": [
        evaluator_use("judge"),
        {**evaluator_use("judge"), "name": "second", "material": "versions"},
    ],
    "derivers": ["tests.graphs.scripted:Versions"],
    "components": {
        "enhanced": {
            "combiner": "contrast",
            "inputs": {"judge": "judge", "judge-of-versions": "second"},
        }
    },
    "reward": {"enhanced": 1.0},
}


def test_the_same_evaluator_judges_contrasts_in_a_second_wave() -> None:
    (trace,) = score_responses(
        CONFIG,
        task(),
        response("r", judge=0.5, versions=[["~1", {"second": 0.1}], ["~2", {"second": 0.9}]]),
    )
    assert trace.reward.value == 0.5
    assert [(v.question, v.responses, v.score) for v in trace.verdicts] == [
        ("judge", ("r",), 0.5),
        ("second", ("~1",), 0.1),
        ("second", ("~2",), 0.9),
    ]


def test_a_failed_judgement_of_a_contrast_is_no_credit_and_stays_open() -> None:
    variants = [["~1", {"second": 0.1}], ["~2", {"second": "infrastructure"}]]
    (trace,) = score_responses(
        CONFIG | {"failure": {"min_coverage": 0.5}},
        task(),
        response("r", judge=0.5, versions=variants),
    )
    assert (trace.reward.value, trace.reward.status) == (0.5, "degraded")
    assert trace.reward.range == (0.5, 1.0)


def test_a_response_of_which_no_contrast_could_be_made_gains_nothing_and_is_no_failure() -> None:
    (trace,) = score_responses(CONFIG, task(), response("r", judge=1.0, versions=[]))
    assert (trace.reward.value, trace.reward.status, trace.reward.coverage) == (0.0, "ok", 1.0)
    assert trace.reward.components == {"enhanced": None, "judge": 1.0, "second": None}
    verdicts = {verdict.question: (verdict.status, verdict.score) for verdict in trace.verdicts}
    assert verdicts == {"judge": ("ok", 1.0), "second": ("not_applicable", None)}


def test_without_contrasts_a_penalty_counts_in_full() -> None:
    """Nothing is to be won by giving nothing to ask about."""
    config = {
        "evaluators": [evaluator_use("judge", audience="criterion", material="versions")],
        "derivers": ["tests.graphs.scripted:Versions"],
    }
    about = task(criterion("good"), criterion("bad", -1.0))
    (trace,) = score_responses(config, about, response("r", versions=[]))
    assert {(v.status, v.score, v.gated_by) for v in trace.verdicts} == {
        ("not_applicable", None, "no-variant")
    }
    assert (trace.reward.value, trace.reward.parts["rubric"]) == (-1.0, {"good": 0.0, "bad": 1.0})
    (excused,) = score_responses(
        config | {"rubric": {"if_skipped": "left-out"}}, about, response("r", versions=[])
    )
    assert (excused.reward.value, excused.reward.components) == (None, {"rubric": None})


# What is no credit

SCREENED: dict[str, Any] = {
    "evaluators": [
        evaluator_use("judge"),
        evaluator_use("gate"),
        {
            **evaluator_use("judge"),
            "name": "second",
            "material": "versions",
            "when": {"question": "gate", "threshold": 0.5},
        },
        evaluator_use("other"),
        {**evaluator_use("other"), "name": "third", "material": "versions"},
    ],
    "derivers": ["tests.graphs.scripted:Versions"],
    "components": {
        "enhanced": {
            "combiner": "contrast",
            "inputs": {
                "judge": "judge",
                "judge-of-versions": {"verdicts_of": "second", "if_skipped": "left-out"},
                "other": "other",
                "other-of-versions": "third",
            },
        }
    },
    "reward": {"enhanced": 1.0},
    "failure": {"min_coverage": 0.1},
}


def versions(second: Any, third: Any) -> list[list[Any]]:
    return [[f"~{place}", {"second": second, "third": third}] for place in range(4)]


def test_unjudged_contrasts_may_not_count_as_zero() -> None:
    """Zero would be the best that a contrast can be for the response."""
    inputs = {
        **SCREENED["components"]["enhanced"]["inputs"],
        "judge-of-versions": {"verdicts_of": "second", "if_skipped": "zero"},
    }
    config = SCREENED | {"components": {"enhanced": {"combiner": "contrast", "inputs": inputs}}}
    with pytest.raises(PlanError, match="would be credit; write `if_skipped: left-out`"):
        score_responses(
            config,
            task(),
            response("r", judge=0.5, gate=1.0, other=0.5, versions=versions(0.1, 0.1)),
        )


@pytest.mark.parametrize("gate", ["infrastructure", "response"])
def test_an_unjudged_evaluator_leaves_every_pair_undecided(gate: str) -> None:
    """A gate's verdict applies to all contrasts, not only to the first."""
    (trace,) = score_responses(
        SCREENED,
        task(),
        response("r", judge=0.5, gate=gate, other=0.9, versions=versions(1.0, 0.1)),
    )
    assert trace.reward.components["enhanced"] is None or trace.reward.value in (None, 0.0)
    assert trace.reward.range == (0.0, 1.0)


def test_both_inputs_of_a_pair_must_be_the_same_evaluator() -> None:
    def config(first: str, second: str) -> dict[str, Any]:
        inputs = {"judge": first, "judge-of-versions": second}
        named = {
            "evaluators": [
                evaluator_use("judge"),
                evaluator_use("other"),
                {**evaluator_use("judge-of-versions"), "material": "versions"},
            ]
        }
        return (
            CONFIG
            | named
            | {"components": {"enhanced": {"combiner": "contrast", "inputs": inputs}}}
        )

    given = response("r", judge=0.5, other=0.5, versions=[["~1", {"judge-of-versions": 0.1}]])
    (trace,) = score_responses(config("judge", "judge-of-versions"), task(), given)
    assert trace.reward.value == 1.0
    with pytest.raises(PlanError, match="has to ask of the responses"):
        score_responses(config("judge-of-versions", "judge"), task(), given)
    with pytest.raises(PlanError, match="'other' and 'judge' are not the same evaluator"):
        score_responses(config("other", "judge-of-versions"), task(), given)
