"""Whatever asks a model, with a real engine whose model says noise: nothing crashes or is believed."""

from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Planner, Response, Task
from jurygraph.agents.graph_annotator.validation import CriterionPair, kinds_between
from jurygraph.aggregation import gear
from jurygraph.errors import ModelError, PlanError
from jurygraph.schema import Rubric
from tests.agents.judging.people import RESPONSE_TEXT, people
from tests.models.tiny_gguf import write_tiny

pytestmark = pytest.mark.heavy

PROSE = "Day 1: we fly to New Orleans. Lunch at Roma, New Orleans; dinner at Town Table Restaurant, New Orleans."
RECORDS = {"meals": {"name": "the restaurant", "city": {"about": "its city", "context": True}}}
SEEDS = range(4)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny.gguf")


def calls(seed: int, tokens: int = 300) -> dict[str, Any]:
    """Noise that ends: a byte's token has its number, and the ends of texts, lists and objects are likely."""
    bias = {str(ord(sign)): weight for sign, weight in {'"': 10.0, "}": 10.0, "]": 1.0}.items()}
    return {"max_tokens": tokens, "parameters": {"temperature": 1.0, "seed": seed, "logit_bias": bias}}


@pytest.mark.parametrize("seed", SEEDS)
def test_noisy_extraction_yields_only_grounded_values(tiny: Path, seed: int) -> None:
    config = {
        "model": f"gguf:{tiny}",
        "derivers": [{"use": "extract", "params": {"records": RECORDS}}],
        "evaluators": ["maths.format"],
        "calls": calls(seed),
    }
    with Jury.from_config(config) as jury:
        (trace,) = jury.score(Task(id="trip", query="Plan a trip."), [Response(id="r", text=PROSE)])
    (material,) = trace.material
    if material.failure is not None:
        assert material.failure.cause == "response"
        assert material.data is None
    for evidence in material.evidence:
        assert evidence.verified
        assert PROSE[evidence.start : evidence.end] == evidence.quote
    assert [call.provider for call in trace.calls] == ["gguf"] * len(trace.calls)
    assert trace.calls


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_invents_no_constraint_of_a_profile(tiny: Path, seed: int) -> None:
    config = {"model": f"gguf:{tiny}", "evaluators": ["preferences"], "calls": calls(seed)}
    profile = "She travels with a cat and never flies before noon."
    person = {"id": "ann", "profile": profile}
    task = Task.model_validate({"id": "trip", "query": "Plan a trip.", "stakeholders": [person]})
    with Jury.from_config(config) as jury, pytest.raises((PlanError, ModelError), match="ann"):
        jury.prepare(task)


CRITERIA = [
    {"id": "a-clear", "text": "It is clear.", "weight": 1.0},
    {"id": "b-kind", "text": "How kind?", "weight": 1.0, "scale": [1, 5], "anchors": {"1": "not", "5": "very"}},
    {"id": "c-whole", "text": "All is said.", "weight": 1.0, "parts": [{"text": "when"}, {"text": "where"}]},
]


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_is_credited_only_with_a_verified_quotation(tiny: Path, seed: int) -> None:
    config = {
        "model": f"gguf:{tiny}",
        "evaluators": ["criteria", "preferences", {"use": "checklist", "params": {"audience": "task"}}],
        "weights": {"method": "uniform"},
        "reward": {"rubric": 1.0, "stakeholders": 1.0, "checklist": 1.0},
        "failure": {"min_coverage": 0.0001},
        "calls": calls(seed, 400),
    }
    with Jury.from_config(config) as jury:
        (trace,) = jury.score(people("ann", rubric={"criteria": CRITERIA}), [Response(id="r", text=RESPONSE_TEXT)])
    assert len(trace.verdicts) == 6
    for verdict in trace.verdicts:
        assert verdict.failure is None or verdict.failure.cause == "response"
        is_positive = verdict.met if verdict.scale is None else (verdict.score or 0.0) > 0.0
        assert bool(is_positive) <= any(evidence.verified for evidence in verdict.evidence)
        for evidence in verdict.evidence:
            assert (RESPONSE_TEXT[evidence.start : evidence.end] == evidence.quote) == evidence.verified


RUBRICS = [
    {"facts": 2.0, "story": 3.0, "rude": -1.0},
    {"claim": 1.0, "proof": 1.0},
    {"诗": 1.0, "韵 律": 1.0},
    {'a "quoted" id': 1.0, "b\\c": 1.0, "d": -2.0},
    {"one": 1.0, "two": 1.0, "three": 1.0},
]


def graph_of(tiny: Path, weights: dict[str, float], seed: int) -> Rubric:
    """Return the rubric that noise with a bias for w and s annotates; its last criterion has no role yet."""
    criteria = [
        {"id": name, "text": f"It has {name}.", "weight": weight, "role": "core" if weight > 0 else "penalty"}
        for name, weight in weights.items()
    ]
    del criteria[-1]["role"]
    task = Task.model_validate({"id": "t", "query": "Write it.", "rubric": {"criteria": criteria}})
    asking = calls(seed, tokens=800)
    asking["parameters"]["logit_bias"] |= {str(ord("w")): 6.0, str(ord("s")): 5.0}
    config = {"model": f"gguf:{tiny}", "evaluators": ["criteria"], "annotation": {"batch": 2}, "calls": asking}
    with Jury.from_config(config) as jury:
        return Planner(jury).annotate(task)


def is_a_graph_of(rubric: Rubric, weights: dict[str, float]) -> bool:
    """Each edge is one that the roles allow, there is no cycle, and no pair counts twice."""
    record, roles = rubric.annotation, {one.id: one.role for one in rubric.criteria if one.role is not None}
    assert record is not None
    assert [one.id for one in rubric.criteria] == list(weights)
    assert {*roles} | {*record.unassigned} == {*weights}
    for edge in rubric.edges:
        assert edge.kind in kinds_between(roles, CriterionPair(edge.parent, edge.child))
        assert edge.model == "tiny.gguf"
    gear.compile(len(weights), *gear.edges(list(weights), [(e.parent, e.child, e.kind) for e in rubric.edges])[:2])
    assert len(rubric.edges) + len(record.unanswered) <= record.candidates
    return True


def test_noise_gives_five_rubrics_valid_graphs_and_some_edges(tiny: Path) -> None:
    graphs = [graph_of(tiny, weights, 6) for weights in RUBRICS]
    assert all(is_a_graph_of(*each) for each in zip(graphs, RUBRICS, strict=True))
    assert any(graph.edges for graph in graphs)
