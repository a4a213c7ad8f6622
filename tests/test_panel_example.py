"""The example in which every family takes part: one plan, one trace, one reward; and what must not matter."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from examples.panel.build import line
from examples.panel.scripted_judge import NAME, Unscripted, replied
from examples.panel.trips import TOWNS
from jurygraph import Jury, Response, Task, Trace
from tests.models.server import Server, reply_with, run_server, status

ROOT = Path(__file__).parent.parent
PANEL = ROOT / "examples" / "panel"
CONFIG: dict[str, Any] = YAML(typ="safe").load((PANEL / "jury.yaml").read_text(encoding="utf-8"))
LINES = [
    json.loads(row) for row in (PANEL / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
]
JUDGES = ("personalized", "aggregate", "zero-shot")
SAMPLES = 3
FAMILIES: Mapping[str, Sequence[str]] = {
    "facts": ("facts.confirmed",),
    "checks": ("checks.constraints",),
    "preferences": ("preferences",),
    "rubric": ("criteria",),
    "annotator": (),
    "quality assessor": ("quality.reasoning",),
    "data optimizer": ("optimizer.efficiency", "optimizer.diversity"),
    "data synthesizer": ("quality.arithmetic-of-contrasts",),
    "rules": ("maths.repetition",),
    **{name: (name,) for name in JUDGES},
    "consensus": (),
}
"""Each family, with the names of the evaluators that are its own."""


def settings(url: str | None = None) -> dict[str, Any]:
    """The example's config, with the scripted judge at this address, and with nothing kept of its replies."""
    config = copy.deepcopy(CONFIG)
    for use in config["evaluators"]:
        if isinstance(use, dict) and use["use"] in JUDGES:
            files = {name: str(PANEL / use["params"][name]) for name in ("history", "texts")}
            use["params"] = {**use["params"], **files}
    model = {} if url is None else {"model": f"openai-compatible:{url}#{NAME}"}
    return {**config, **model, "calls": {"cache": False}}


@pytest.fixture(scope="module")
def judge() -> Iterator[Server]:
    """The scripted judge, in this process, so that its requests can be counted."""

    def answer(body: dict[str, Any], number: int) -> Any:
        try:
            return reply_with(json.dumps(replied(body), ensure_ascii=False), served=NAME)
        except Unscripted as unscripted:
            return status(400, body={"error": {"message": str(unscripted), "type": "unscripted"}})

    with run_server(answer) as server:
        yield server


def read(row: Mapping[str, Any]) -> tuple[Task, list[Response]]:
    responses = [Response.model_validate(one) for one in row["responses"]]
    return Task.model_validate(
        {key: value for key, value in row.items() if key != "responses"}
    ), responses


def scored(config: Mapping[str, Any], row: Mapping[str, Any] = LINES[0]) -> dict[str, Trace]:
    with Jury.from_config(dict(config)) as jury:
        return {trace.response_id: trace for trace in jury.score(*read(row))}


@pytest.fixture(scope="module")
def whole(judge: Server) -> dict[str, Trace]:
    """The traces of the first trip, by response."""
    return scored(settings(judge.url))


def test_the_tasks_are_what_the_build_writes() -> None:
    assert [line(town) for town in TOWNS] == LINES


# One trace with everything in it


def test_every_family_has_judged_verdicts_in_one_trace(whole: Mapping[str, Trace]) -> None:
    asked = {verdict.evaluator for verdict in whole["sandhaven/careful"].verdicts}
    assert asked == {name for names in FAMILIES.values() for name in names} | {"quality.arithmetic"}
    for trace in whole.values():
        assert (trace.reward.status, trace.reward.coverage) == ("ok", 1.0)
        assert {
            v.status for v in trace.verdicts if v.evaluator not in FAMILIES["data synthesizer"]
        } == {"ok"}


def test_who_is_harder_to_please_weighs_more_and_the_careful_plan_is_the_best(
    whole: Mapping[str, Trace],
) -> None:
    plan = whole["sandhaven/careful"].plan
    assert plan is not None
    (spec,) = (one for one in plan.decision.specs if one.name == "stakeholders")
    weights = {name: one.input_weight for name, one in spec.inputs.items()}
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["mara"] > weights["lin"] > weights["oke"]
    worth = {str(trace.agent): trace.reward.value or 0.0 for trace in whole.values()}
    assert sorted(worth, key=worth.__getitem__) == [
        "talkative",
        "inventive",
        "lavish",
        "terse",
        "careful",
    ]


def test_credit_that_no_plan_licenses_is_held_back_by_the_annotated_graph(
    whole: Mapping[str, Trace],
) -> None:
    plan = whole["sandhaven/talkative"].plan
    assert plan is not None
    assert plan.rubric is not None
    assert {(one.parent, one.child) for one in plan.rubric.edges} == {
        ("days", child) for child in ("total", "rain", "for-whom", "given-up")
    }
    met = {
        v.subject: v.score
        for v in whole["sandhaven/talkative"].verdicts
        if v.evaluator == "criteria"
    }
    assert (met["days"], met["rain"]) == (0.1, 0.9)
    assert whole["sandhaven/talkative"].reward.parts["rubric"]["rain"] < 0.9


def test_each_fault_costs_what_hangs_on_it(whole: Mapping[str, Trace]) -> None:
    """An invented table is quoted, and a wrong sum found; where nothing is calculated, nothing is made wrong."""
    verdicts = {
        (v.evaluator, v.subject, v.stakeholder): v for v in whole["sandhaven/inventive"].verdicts
    }
    assert verdicts["checks.constraints", "no-meat", "oke"].met is False
    fault = verdicts["quality.reasoning", "facts", None]
    assert [(one.quote, one.verified) for one in fault.evidence] == [
        ("dinner at The Gilded Lantern", True)
    ]
    lavish, careful = whole["sandhaven/lavish"].reward, whole["sandhaven/careful"].reward
    assert lavish.components["arithmetic"] < 1.0
    assert (careful.components["arithmetic"], careful.components["enhanced"]) == (1.0, 1.0)
    for name in ("inventive", "talkative", "terse"):
        trace = whole[f"sandhaven/{name}"]
        (verdict,) = (v for v in trace.verdicts if v.evaluator == "quality.arithmetic-of-contrasts")
        assert (verdict.status, verdict.score, verdict.gated_by) == (
            "not_applicable",
            None,
            "no-variant",
        )
        assert (
            trace.reward.components["enhanced"],
            trace.reward.components["arithmetic-of-contrasts"],
        ) == (None, None)


def test_the_judges_of_each_reviewer_are_fused_by_consensus_and_the_reviewers_by_their_mean(
    whole: Mapping[str, Trace],
) -> None:
    """Whatever examples were drawn: each panel has nine votes, and those on its own reviewer alone."""
    for trace in whole.values():
        parts, figures = trace.reward.parts["reviewers"], trace.reward.diagnostics["reviewers"]
        assert sorted(parts) == ["hana", "ivo", "jun"]
        for reviewer, part in parts.items():
            votes = [
                v.score > 0.5
                for v in trace.verdicts
                if v.reviewer == reviewer and v.score is not None
            ]
            assert len(votes) == len(JUDGES) * SAMPLES
            assert part == figures[f"p(1) of {reviewer}"] == float(2 * sum(votes) > len(votes))
        assert trace.reward.components["reviewers"] == pytest.approx(sum(parts.values()) / 3)
