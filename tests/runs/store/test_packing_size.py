"""Surveys, tasks and rewards are stored completely and without redundancy."""

import json
from typing import Any

import pytest

from jurygraph.decision.decide import RewardRow
from jurygraph.runs.store.packing import (
    ERASED_PLACEHOLDER,
    inapplicable_question_indices,
    pack_reward,
    pack_task,
    read_planning_results,
    read_views,
    unpack_reward,
    unpack_verdict,
)
from jurygraph.schema import Failure, RecordedVerdict
from jurygraph.schema.verdict import ExampleUse, Swap
from tests.graphs.scripted import criterion, decide_rewards, evaluator_use, make_plan, task
from tests.runs.store.test_packing import STAMP, SURVEY, pack, through_json, trace


def survey(**config: Any) -> Any:
    defaults = {
        "evaluators": [evaluator_use("tone", layer="model", needs=["half"])],
        "derivers": ["tests.graphs.scripted:Half"],
    }
    defaults["derivers"].append("tests.graphs.scripted:Measure")
    return make_plan({**defaults, **config}, task(criterion("x"))).survey


def test_views_store_only_their_differences_from_the_task() -> None:
    about = task(criterion("x"), query="What is right?", reference="this")
    plan = make_plan(
        {
            "evaluators": [evaluator_use("met", audience="criterion"), evaluator_use("tone")],
            "reward": {"rubric": 1.0},
        },
        about,
    )
    text = pack_task(about, plan)
    content = json.loads(text)
    assert read_views(content) == list(plan.survey.views.values())
    assert read_planning_results(content) == {}
    assert text.count(b"What is right?") == 1
    assert content["plan"] == plan.digest


def test_an_annotated_rubric_survives_with_its_task() -> None:
    about = task(criterion("x"), criterion("y"), edges=[("x", "y", "weak")])
    plan = make_plan({"evaluators": [evaluator_use("met", audience="criterion")]}, about)
    annotated = plan.model_copy(update={"rubric": about.rubric})
    assert read_planning_results(json.loads(pack_task(about, annotated))) == {
        "rubric": about.rubric
    }


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({"range": None}, {"range"}),
        ({"range": (0.25, 0.5)}, {"range"}),
        ({"partial": None}, {"partial"}),
        ({"value": 0.0, "partial": -0.0, "range": (0.0, 0.0)}, {"partial"}),
        ({"value": -0.0, "partial": -0.0, "range": (-0.0, 0.0)}, {"range"}),
        ({"coverage": 0.9}, {"coverage"}),
        ({"status": "degraded", "notes": ("it is",)}, {"notes", "status"}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else " ".join(sorted(value)),
)
def test_irregular_fields_of_a_reward_are_stored(changed: dict[str, Any], kept: set[str]) -> None:
    plan = make_plan({"evaluators": [evaluator_use("tone")]}, task())
    (reward,) = decide_rewards(plan, {("tone", "a"): 0.5}, "a").values()
    other = reward.model_copy(update=changed)
    body = pack_reward(RewardRow.from_reward(other))
    assert set(body) - {"counts", "terms", "value"} == kept
    assert (
        unpack_reward(through_json(body), plan.decision).model_dump_json()
        == other.model_dump_json()
    )


def test_a_verdict_stores_only_what_its_question_does_not_imply() -> None:
    plain = RecordedVerdict(**STAMP, about="r", responses=("r",), score=0.25)
    body, _ = pack(trace(plain))
    assert body["verdicts"] == [{"question": 0, "score": 0.25}]
    elsewhere = plain.model_copy(update={"responses": ("r", "s"), "sample": 1})
    body, _ = pack(trace(elsewhere))
    assert body["verdicts"] == [
        {"question": 0, "score": 0.25, "responses": ["r", "s"], "sample": 1}
    ]


def test_questions_that_did_not_apply_are_read_without_their_verdicts() -> None:
    judged = RecordedVerdict(**STAMP, about="r", responses=("r",), score=0.25)
    skipped = RecordedVerdict(**STAMP, about="r", responses=("r",), status="not_applicable")
    assert [
        inapplicable_question_indices(pack(trace(verdict))[0]) for verdict in (judged, skipped)
    ] == [
        set(),
        {0},
    ]


def test_an_empty_failure_message_survives_and_an_erased_one_is_marked() -> None:
    failure = Failure(cause="response", kind="k")
    verdict = RecordedVerdict(
        **STAMP, about="r", responses=("r",), status="failed", failure=failure, reason="because"
    )
    body, texts = pack(trace(verdict))
    assert unpack_verdict(body["verdicts"][0], "r", SURVEY, dict(enumerate(texts)), ()) == verdict
    erased = unpack_verdict(body["verdicts"][0], "r", SURVEY, {}, ()).failure
    assert erased is not None
    assert erased.message == ERASED_PLACEHOLDER


def test_examples_and_both_orders_of_a_verdict_survive() -> None:
    use = ExampleUse(item="i", reviewer="ann", score=4.0, fingerprint="f", dropped="it is the same")
    swap = Swap(given=0.5, swapped=1.0, call="s")
    fields = {
        "about": "r",
        "responses": ("r",),
        "score": 0.25,
        "examples": (use,),
        "swap": swap,
    }
    verdict = RecordedVerdict(**STAMP, **fields)
    body, texts = pack(trace(verdict))
    assert unpack_verdict(body["verdicts"][0], "r", SURVEY, dict(enumerate(texts)), ()) == verdict
