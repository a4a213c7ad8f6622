"""Redaction: results and exceptions of user code are redacted, and a plan with a secret is refused."""

from collections.abc import Mapping
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput
from jurygraph.decision.combiners import Mean
from jurygraph.errors import ConfigError, PlanError
from jurygraph.schema import Evidence, Material, RecordedVerdict, Response, Variant, Verdict
from tests.graphs.scripted import response, score_responses, task

HERE = __name__
SECRET = "sk-canary-0123456789abcdef"
NAME = "CANARY_API_KEY"
SHORT = "k3y-c4n4"


@pytest.fixture(autouse=True)
def _set_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, SECRET)


class Says(Evaluator):
    def answer(self, inputs: EvaluatorInput) -> Verdict:
        evidence = (
            Evidence(quote=f"the key {SECRET}"),
            Evidence(quote=SECRET, source="a table", verified=True, start=3, end=9),
        )
        return Verdict(
            score=0.5, reason=f"it says {SECRET}", native=SECRET, evidence=evidence, call=SECRET
        )


class Fails(Evaluator):
    def answer(self, inputs: EvaluatorInput) -> Verdict:
        return Verdict.fail(SECRET, f"401 {SECRET}")


class FailsAtLength(Evaluator):
    """The kind of its failure is as long as a kind may be; struck out, its secret would make it longer."""

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        return Verdict.fail("k" * (512 - len(SHORT)) + SHORT, "boo")


class Raises(Evaluator):
    def answer(self, inputs: EvaluatorInput) -> float:
        raise ValueError("x" * 490 + SECRET)


class Leaks(Deriver):
    name = "leaks"
    gives = "leaks"

    def derive(self, inputs: DeriverInput) -> Material:
        variant = Variant(
            response=Response(id="v", text=SECRET, data={SECRET: [SECRET]}), edit=SECRET
        )
        quoted = (Evidence(quote=SECRET),)
        return Material(
            name="leaks", data={"a": [SECRET]}, variants=(variant,), evidence=quoted, note=SECRET
        )


class Reads(Evaluator):
    needs = ("leaks",)

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        assert SECRET not in str(inputs.material)
        return Verdict(score=1.0, reason=str(inputs.material[0]["leaks"].data))


class Quiet(Evaluator):
    def answer(self, inputs: EvaluatorInput) -> float:
        return 1.0


class Breaks(Mean):
    name = f"{HERE}.Breaks"

    def combine(
        self, cells: Mapping[str, jg.ScoreMatrix], params: Mapping[str, Any]
    ) -> jg.Component:
        raise ValueError(SECRET)


BROKEN = {"combiner": f"{HERE}.Breaks", "inputs": {"all": {"verdicts_of": "quiet"}}}


def verdict_of(evaluator: str, text: str = "a") -> RecordedVerdict:
    use = {"use": f"{HERE}:{evaluator}", "name": "one"}
    (trace,) = score_responses({"evaluators": [use]}, task(), Response(id="a", text=text))
    assert SECRET in text or SECRET not in trace.model_dump_json()
    return trace.verdicts[0]


def test_every_text_of_a_verdict_is_redacted() -> None:
    verdict = verdict_of("Says")
    assert (verdict.score, verdict.reason, verdict.native) == (
        0.5,
        "it says [redacted]",
        "[redacted]",
    )
    assert verdict.call == "[redacted]"
    first, second = verdict.evidence
    assert (first.quote, first.verified) == ("the key [redacted]", False)
    assert (second.quote, second.start, second.end, second.verified) == ("[redacted]", 3, 9, True)


def test_a_quotation_of_the_response_stays_with_its_place() -> None:
    verdict = verdict_of("Says", f"Here is the key {SECRET}.")
    assert verdict.evidence[0] == Evidence(
        quote=f"the key {SECRET}", start=8, end=16 + len(SECRET), verified=True
    )
    assert verdict.reason == "it says [redacted]"


@pytest.mark.parametrize(
    ("evaluator", "kind", "message"),
    [("Fails", "[redacted]", "401 [redacted]"), ("Raises", "ValueError", "x" * 490 + "[redacted]")],
)
def test_a_failure_is_redacted_before_it_is_cut(evaluator: str, kind: str, message: str) -> None:
    failure = verdict_of(evaluator).failure
    assert failure is not None
    assert failure.kind == kind
    assert failure.message.startswith(message[:500])


def test_a_verdict_that_cannot_be_redacted_is_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, SHORT)
    verdict = verdict_of("FailsAtLength")
    assert verdict.failure is not None
    assert verdict.failure.kind == "malformed"
    assert verdict.reason.startswith(
        "it holds a secret where none can be struck out: failure.kind: String should have"
    )
    assert SHORT not in verdict.model_dump_json()


def test_material_is_redacted_before_anybody_reads_it() -> None:
    config = {"evaluators": [f"{HERE}:Reads"], "derivers": [f"{HERE}:Leaks"]}
    (trace,) = score_responses(config, task(), response("a"))
    assert SECRET not in trace.model_dump_json()
    (material,) = trace.material
    assert material.data == {"a": ["[redacted]"]}
    assert material.variants[0].response.data == {"[redacted]": ["[redacted]"]}
    assert trace.verdicts[0].reason == "{'a': ['[redacted]']}"


def test_exceptions_of_a_combiner_are_redacted() -> None:
    config = {
        "evaluators": [{"use": f"{HERE}:Quiet", "name": "quiet"}],
        "components": {"quiet": BROKEN},
    }
    with pytest.raises(PlanError, match=r"failed: ValueError: \[redacted\]; fix it"):
        score_responses(config, task(), response("a"))


def test_a_config_that_holds_a_secret_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        jg.Jury.from_config({"evaluators": [{"use": f"{HERE}:Quiet", "params": {"key": SECRET}}]})
    assert str(caught.value).startswith(
        f"evaluators[0].params.key: holds the secret of {NAME}, which a run would keep"
    )
