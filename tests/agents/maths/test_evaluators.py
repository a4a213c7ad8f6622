"""The evaluators `maths.*`, used through a jury as users do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import Jury, Response, Task, Verdict
from jurygraph.agents.maths.answer import count_ordered_steps
from jurygraph.agents.maths.comparison import make_comparison_pool
from jurygraph.agents.maths.evaluators import Accuracy, Format, Length, Repetition
from jurygraph.agents.registry import BUILTIN_EVALUATOR_PATHS
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.agents.worker_pool import WorkerPool
from jurygraph.conformance import check_evaluator
from jurygraph.schema import TaskView
from jurygraph.sources import read_tasks
from tests.rows import all_rows

SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"
SUM = Task(id="sum", query="What is 17 + 25?", reference="17 + 25 = <<17+25=42>>42\nA: 42")


NAMES = sorted(name for name in BUILTIN_EVALUATOR_PATHS if name.startswith("maths."))


@pytest.fixture(scope="module")
def jury() -> Iterator[Jury]:
    with Jury.from_config({"evaluators": NAMES, "reward": {"accuracy": 1.0}}) as made:
        yield made


def verdict(jury: Jury, name: str, text: str, task: Task = SUM) -> Verdict:
    trace = jury.score(task, [Response(id="r", text=text)])[0]
    return next(v for v in trace.verdicts if v.evaluator == f"maths.{name}")


def test_each_jury_has_worker_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[WorkerPool] = []

    def make_pool(*settings: Any) -> WorkerPool:
        made.append(make_comparison_pool(*settings))
        return made[-1]

    monkeypatch.setattr("jurygraph.agents.maths.evaluators.make_comparison_pool", make_pool)
    evaluator = Accuracy()
    for _ in range(2):
        with Jury(evaluators=[evaluator]) as opened:
            opened.open()
    assert len(made) == 2


@pytest.mark.landing
@pytest.mark.parametrize("name", NAMES)
def test_every_evaluator_conforms(name: str) -> None:
    assert check_evaluator(name, read_tasks(SOLUTIONS)[:3]) > 3


def test_accuracy_quotes_the_final_answer(jury: Jury) -> None:
    given = verdict(jury, "accuracy", "17 + 25 = 42\nA: 42.0")
    assert (given.score, given.met) == (1.0, True)
    assert [(e.quote, e.verified) for e in given.evidence] == [("42.0", True)]
    for text in ("", "I do not know.", "A: 43", "A: not 42"):
        assert verdict(jury, "accuracy", text).score == 0.0
    for reference in (None, "It depends on who asks, and on many things.\nNobody can say."):
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
    assert {failures[name].kind for name in ("megabyte", "brackets", "fractions")} == {
        "answer-too-long"
    }
    assert {failure.cause for failure in failures.values()} == {"response"}


def test_calculation_is_the_share_of_right_steps_and_quotes_the_wrong_ones(jury: Jury) -> None:
    given = verdict(jury, "calculation", "Two: 17 + 25 = <<17+25=42>>42\nThen 42 * 2 = 85\nA: 85")
    assert (given.score, given.native, given.scale) == (0.5, 1, (0, 2))
    assert [(e.quote, e.verified) for e in given.evidence] == [("42 * 2 = 85", True)]
    assert given.reason.endswith("calculation 2 is wrong: '42 * 2 = 85', but it is 84")


def test_length_falls_to_one_half_and_scales_accuracy() -> None:
    config = {
        "evaluators": ["maths.accuracy", {"use": "maths.length", "params": {"limit": 100}}],
        "components": {
            "concise": {
                "combiner": "product",
                "inputs": {"a": "maths.accuracy", "b": "maths.length"},
            }
        },
        "reward": {"concise": 1.0},
    }
    texts = {"short": "A: 42", "long": "\n" * 95 + "A: 42", "wrong": "A: 43"}
    with Jury.from_config(config) as jury:
        traces = jury.score(SUM, [Response(id=name, text=text) for name, text in texts.items()])
    value = {t.response_id: t.reward.value for t in traces}
    assert value["short"] == pytest.approx(1.0, abs=0.01)
    assert value["long"] == pytest.approx(0.5)
    assert value["wrong"] == 0.0


def score_of(evaluator: Evaluator, text: str) -> float:
    view = TaskView(id="sum", query="What is 17 + 25?")
    (question,) = evaluator.questions(view)
    verdict = evaluator.answer(
        EvaluatorInput(question, view, (Response(id="r", text=text),), ({},))
    )
    assert isinstance(verdict, Verdict)
    assert verdict.score is not None
    return verdict.score


FULL = "<think>because</think>\n<answer>18</answer>\n"

FORMATS = {
    FULL: 1.0,
    "": 0.0,
    "18": 0.0,
    "<answer>18</answer>": 0.4,
    f"so {FULL}": 0.8,
    "<think>a</think> b <answer>18</answer>": 0.8,
    "<answer>18</answer><think>a</think>": 0.8,
    f"{FULL}<answer>19</answer>": 0.8,
    "<think>a<answer>18</answer>": 0.6,
}


@all_rows(("text", "score"), FORMATS.items())
def test_format(text: str, score: float) -> None:
    assert score_of(Format(), text) == score


STEPS = {
    "": 0,
    "one line only": 1,
    "one\ntwo\n\ntwo\nA: 18": 2,
    "A: 18": 0,
    "1. a\n2. b\n3. c": 3,
    "1) a\n2) b": 2,
    "(1) a\n(2) b": 2,
    "Step 1: a\n### Step 2\n**Step 3:** c": 3,
    "First, a\nSecondly, b\nThird c": 3,
    "1. a\n3. b\n2. c\n3. d": 3,
    "2. a\n3. b": 0,
    "1. a\n1. b\n2. c": 2,
    "First he eats 3.\nThen 4.\nSo 9 are left.\nA: 9": 3,
    "1. a\nA: 4": 1,
    "Step 2\nA: 4": 1,
    "First a\nFirst b\nc": 1,
    "1.5 is a number\n2.5 too\nA: 4": 2,
    "<think>1. a\n2. b</think><answer>3. c</answer>": 2,
    "<think>a\nb\nc\nd</think><answer>3</answer>": 4,
}


@all_rows(("text", "count"), STEPS.items())
def test_ordered_steps(text: str, count: int) -> None:
    assert count_ordered_steps(text) == count


@all_rows(
    ("text", "n", "share"),
    [
        ("a b", 3, 0),
        ("a b c", 3, 0),
        ("A b c a B c", 3, 0.25),
        ("no " * 100, 3, 1 - 1 / 98),
        ("a a", 1, 0.5),
    ],
)
def test_repetition(text: str, n: int, share: float) -> None:
    assert score_of(Repetition(n=n), text) == pytest.approx(share)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 1000))
def test_the_factor_of_length_falls_from_1_to_a_half(a: int, b: int, limit: int) -> None:
    shorter, longer = (
        score_of(Length(limit=limit), "x" * length) for length in (min(a, b), max(a, b))
    )
    assert 0.5 <= longer <= shorter <= 1
    assert score_of(Length(limit=limit), "x" * limit) == pytest.approx(0.5)
    assert score_of(Length(limit=2 * limit), "x" * limit) == pytest.approx(0.75)
