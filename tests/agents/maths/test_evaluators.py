"""The evaluators `maths.*`, used through a jury as users do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jurygraph import Jury, Response, Task, Verdict
from jurygraph.agents.registry import BUILTIN_EVALUATORS
from jurygraph.conformance import check_evaluator
from jurygraph.sources import read_tasks

SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"
SUM = Task(id="sum", query="What is 17 + 25?", reference="17 + 25 = <<17+25=42>>42\nA: 42")


NAMES = sorted(name for name in BUILTIN_EVALUATORS if name.startswith("maths."))


@pytest.fixture(scope="module")
def jury() -> Iterator[Jury]:
    with Jury.from_config({"evaluators": NAMES, "reward": {"accuracy": 1.0}}) as made:
        yield made


def verdict(jury: Jury, name: str, text: str, task: Task = SUM) -> Verdict:
    trace = jury.score(task, [Response(id="r", text=text)])[0]
    return next(v for v in trace.verdicts if v.evaluator == f"maths.{name}")


@pytest.mark.landing
@pytest.mark.parametrize("name", NAMES)
def test_every_evaluator_conforms(name: str) -> None:
    assert check_evaluator(name, read_tasks(SOLUTIONS)[:3]) > 3


class TestAccuracy:
    def test_quotes_the_final_answer(self, jury: Jury) -> None:
        text = "17 + 25 = 42\nA: 42.0"
        given = verdict(jury, "accuracy", text)
        assert (given.score, given.met) == (1.0, True)
        assert [(e.quote, e.verified) for e in given.evidence] == [("42.0", True)]

    @pytest.mark.parametrize("text", ["", "I do not know.", "A: 43", "A: 41 or 42", "A: not 42"])
    def test_gives_nothing_for_a_wrong_or_missing_answer(self, jury: Jury, text: str) -> None:
        assert verdict(jury, "accuracy", text).score == 0.0

    @pytest.mark.parametrize("reference", [None, "It depends on who asks, and on many things.\nNobody can say."])
    def test_abstains_without_a_reference_to_compare_with(self, jury: Jury, reference: str | None) -> None:
        task = SUM.model_copy(update={"reference": reference})
        assert verdict(jury, "accuracy", "A: 42", task).status == "abstained"


HOSTILE = {
    "tower": "A: 9^{9^{9^{9}}}",
    "python tower": "A: 9**9**9**9",
    "brackets": "A: " + "(" * 100_000 + "1" + ")" * 100_000,
    "fractions": "A: " + r"\frac{1}{" * 5_000 + "1" + "}" * 5_000,
    "megabyte": "A: " + "7" * 1_000_000,
    "factorial": "A: (10^9)!",
}


def test_hostile_mathematics_is_never_credit_and_the_run_goes_on() -> None:
    use = {"use": "maths.accuracy", "params": {"time_limit": 0.5}}
    hostile = [Response(id=name, text=text) for name, text in HOSTILE.items()]
    honest = [Response(id="right", text="A: 42"), Response(id="wrong", text="A: 43")]
    with Jury.from_config({"evaluators": [use]}) as jury:
        given = {t.response_id: t.verdicts[0] for t in jury.score(SUM, [*hostile, *honest])}
    assert (given["right"].score, given["wrong"].score) == (1.0, 0.0)
    assert [given[name].score or 0.0 for name in HOSTILE] == [0.0] * len(HOSTILE)
    failures = {name: failure for name in HOSTILE if (failure := given[name].failure)}
    assert failures["tower"].kind == "time-limit"
    assert {failures[name].kind for name in ("megabyte", "brackets", "fractions")} == {"answer-too-long"}
    assert {failure.cause for failure in failures.values()} == {"response"}


class TestCalculation:
    def test_is_the_share_of_right_steps_and_quotes_the_wrong_ones(self, jury: Jury) -> None:
        text = "Two: 17 + 25 = <<17+25=42>>42\nThen 42 * 2 = 85\nA: 85"
        given = verdict(jury, "calculation", text)
        assert (given.score, given.native, given.scale) == (0.5, 1, (0, 2))
        assert [(e.quote, e.verified) for e in given.evidence] == [("42 * 2 = 85", True)]
        assert "calculation 2 is wrong" in given.reason
        assert "84" in given.reason


def test_length_falls_to_one_half_and_scales_accuracy() -> None:
    config = {
        "evaluators": ["maths.accuracy", {"use": "maths.length", "params": {"limit": 100}}],
        "components": {"concise": {"combiner": "product", "inputs": {"a": "maths.accuracy", "b": "maths.length"}}},
        "reward": {"concise": 1.0},
    }
    texts = {"short": "A: 42", "long": "\n" * 95 + "A: 42", "wrong": "A: 43"}
    with Jury.from_config(config) as jury:
        traces = jury.score(SUM, [Response(id=name, text=text) for name, text in texts.items()])
    value = {t.response_id: t.reward.value for t in traces}
    assert value["short"] == pytest.approx(1.0, abs=0.01)
    assert value["long"] == pytest.approx(0.5)
    assert value["wrong"] == 0.0
