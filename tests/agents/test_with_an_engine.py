"""Extracting, and reading profiles, with a real engine whose model says noise: nothing crashes or is believed."""

from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Response, Task
from jurygraph.errors import ModelError, PlanError
from tests.models.tiny_gguf import write_tiny

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
def test_what_noise_extracts_is_nothing_that_does_not_stand_in_the_response(tiny: Path, seed: int) -> None:
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
def test_of_a_profile_that_noise_reads_no_need_is_made_up(tiny: Path, seed: int) -> None:
    config = {"model": f"gguf:{tiny}", "evaluators": ["preferences"], "calls": calls(seed)}
    profile = "She travels with a cat and never flies before noon."
    person = {"id": "ann", "profile": profile}
    task = Task.model_validate({"id": "trip", "query": "Plan a trip.", "stakeholders": [person]})
    with Jury.from_config(config) as jury, pytest.raises((PlanError, ModelError), match="ann"):
        jury.prepare(task)
