"""Every evaluator that asks a model, before llama.cpp with a tiny model whose words are noise.

What holds here holds for any model: nothing crashes, and meaningless replies are never credited
as if they had evidence.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Task, Trace, Verdict
from tests.agents.judging.people import RESPONSE_TEXT, people
from tests.models.engine import engine_over_http
from tests.models.judge_scripts import responses
from tests.models.tiny_gguf import write_tiny

pytestmark = pytest.mark.filterwarnings("ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning")

BIAS = {str(ord(sign)): weight for sign, weight in {'"': 10.0, "}": 10.0, "1": 6.0}.items()}
"""Ends texts and numbers early; a byte's token has its number."""

CRITERIA = [
    {"id": "a-clear", "text": "It is clear.", "weight": 1.0},
    {"id": "b-kind", "text": "How kind?", "weight": 1.0, "scale": [1, 5], "anchors": {"1": "not", "5": "very"}},
    {"id": "c-whole", "text": "All is said.", "weight": 1.0, "parts": [{"text": "when"}, {"text": "where"}]},
]
TASK: Task = people("ann", "bob", rubric={"criteria": CRITERIA})
EVALUATORS = ("criteria", "preferences", "checklist")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def engine_url(tiny: Path) -> Iterator[str]:
    with engine_over_http(tiny) as (url, key), pytest.MonkeyPatch.context() as patch:
        patch.setenv("JURYGRAPH_API_KEY", key)
        yield url


def score_response(model: str, profile: str, seed: int) -> Trace:
    """Return the trace of a response with every evaluator that asks a model."""
    params: dict[str, dict[str, Any]] = {name: {"profile": profile} for name in EVALUATORS}
    params["checklist"] |= {"audience": "task", "items": ["It names a day.", "It names a place."]}
    drawn = {"temperature": 1.0, "seed": seed, "logit_bias": BIAS}
    config = {
        "model": model,
        "evaluators": [{"use": name, "params": stated} for name, stated in params.items()],
        "weights": {"method": "uniform"},
        "reward": {"rubric": 1.0, "stakeholders": 1.0, "checklist": 1.0},
        "failure": {"min_coverage": 0.0001},
        "calls": {"max_tokens": 400, "parameters": drawn},
    }
    with Jury.from_config(config) as jury:
        (trace,) = jury.score(TASK, responses(RESPONSE_TEXT))
    check(trace)
    return trace


def check(trace: Trace) -> None:
    """Check that each question has a verdict, and that nothing without evidence is credited."""
    assert Counter(verdict.evaluator for verdict in trace.verdicts) == {"criteria": 3, "preferences": 4, "checklist": 1}
    for verdict in trace.verdicts:
        assert verdict.status in ("ok", "failed", "abstained")
        assert verdict.failure is None or verdict.failure.cause == "response"
        for evidence in verdict.evidence:
            assert (RESPONSE_TEXT[evidence.start : evidence.end] == evidence.quote) == evidence.verified
    assert {verdict.call for verdict in trace.verdicts} <= {call.id for call in trace.calls}


def is_positive(verdict: Verdict) -> bool:
    """Return true if the verdict is a positive finding."""
    if verdict.scale is None:
        return bool(verdict.met)
    return isinstance(verdict.native, float) and verdict.native > verdict.scale[0]


@pytest.fixture(scope="module")
def noise(tiny: Path) -> list[Verdict]:
    """Return the verdicts in this process with three seeds."""
    return [verdict for seed in (1, 2, 3) for verdict in score_response(f"gguf:{tiny}", "full", seed).verdicts]


@pytest.mark.exhaustive
def test_in_process_every_finding_has_a_verified_quotation(noise: list[Verdict]) -> None:
    for verdict in noise:
        if verdict.status == "ok":
            assert is_positive(verdict) <= any(evidence.verified for evidence in verdict.evidence)
    kinds = Counter(verdict.failure.kind for verdict in noise if verdict.failure is not None)
    assert kinds["unsupported"]
    assert kinds.keys() <= {"unsupported", "malformed", "truncated"}
    assert any(verdict.status == "ok" for verdict in noise)


@pytest.mark.exhaustive
def test_in_process_without_quotations_noise_counts_without_evidence(tiny: Path) -> None:
    trace = score_response(f"gguf:{tiny}", "compact", 1)
    judged = [verdict for verdict in trace.verdicts if verdict.status in ("ok", "abstained")]  # noise may be null
    assert {verdict.evaluator for verdict in judged} == set(EVALUATORS)
    assert {(verdict.reason, verdict.evidence) for verdict in judged if verdict.status == "ok"} == {("", ())}


@pytest.mark.parametrize("profile", ["full", "compact"])
@pytest.mark.exhaustive
def test_over_http_every_evaluator_runs(profile: str, engine_url: str) -> None:
    trace = score_response(f"openai-compatible:{engine_url}#tiny", profile, 4)
    for verdict in trace.verdicts:
        if verdict.status == "ok" and profile == "full":
            assert is_positive(verdict) <= any(evidence.verified for evidence in verdict.evidence)
    assert {call.provider for call in trace.calls} == {"openai-compatible"}
