"""Batch evaluators: each of the answers is validated alone."""

import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest

from jurygraph import Evaluator, EvaluatorInput, Jury, RecordedVerdict, Verdict
from jurygraph.models.request import Fault
from tests.models.judge_scripts import responses, rubric


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module in which a test plants its evaluator: a config names it as `planted.it`."""
    module = ModuleType("planted")
    monkeypatch.setitem(sys.modules, "planted", module)
    return module


class Together(Evaluator):
    """Answers all its inputs in one call."""

    name = "own"
    version = "1"
    audience = "criterion"
    batched = True

    def answer(self, inputs: EvaluatorInput) -> float:
        raise AssertionError("asked one by one")


def verdicts_of(planted: ModuleType, answer_all: Any, *names: str) -> list[RecordedVerdict]:
    """Return the verdicts on these criteria, in the order of their ids."""
    body = {} if answer_all is None else {"answer_all": answer_all}
    planted.it = type("Own", (Together,), body)  # type: ignore[attr-defined]
    with Jury.from_config({"evaluators": ["planted.it"]}) as jury:
        (trace,) = jury.score(rubric(*(names or ("a", "b", "c"))), responses("Dear Ann"))
    return sorted(trace.verdicts, key=lambda verdict: verdict.subject)


def test_a_batched_evaluator_gets_all_inputs_at_once_and_answers_in_order(
    planted: ModuleType,
) -> None:
    async def answer_all(self: Evaluator, batch: Sequence[EvaluatorInput]) -> list[Any]:
        return [
            {"a": 0.25, "b": True, "c": Verdict.abstain("who knows")}[inputs.question.subject]
            for inputs in batch
        ]

    verdicts = verdicts_of(planted, answer_all)
    assert [(one.subject, one.score, one.status) for one in verdicts] == [
        ("a", 0.25, "ok"),
        ("b", 1.0, "ok"),
        ("c", None, "abstained"),
    ]


class Broken(Sequence[float]):
    """A sequence that says it has three, and breaks where it is read."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, place: Any) -> Any:
        raise RuntimeError("cannot be read")


class Longer(Broken):
    def __iter__(self) -> Iterator[float]:
        return iter([0.5] * 5)


@pytest.mark.parametrize(
    "given",
    [
        [],
        [0.5],
        [0.5] * 4,
        None,
        0.5,
        True,
        {0.1, 0.2, 0.3},
        {"a": 1, "b": 1, "c": 1},
        iter([0.5] * 3),
        Longer(),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_batch_with_another_number_of_answers_fails_completely(
    planted: ModuleType, given: Any
) -> None:
    for verdict in verdicts_of(planted, lambda self, asks: given):
        assert (verdict.status, verdict.score) == ("failed", None)
        assert verdict.reason == "expected 3 answers from `answer_all`, one for each input"
        assert verdict.failure is not None
        assert verdict.failure.cause == "evaluator"


def test_an_invalid_answer_in_a_batch_leaves_the_others_valid(planted: ModuleType) -> None:
    verdicts = verdicts_of(planted, lambda self, asks: [0.5, ValueError("lost"), 0.7])
    assert [(one.status, one.score, one.reason) for one in verdicts] == [
        ("ok", 0.5, ""),
        ("failed", None, "lost"),
        ("ok", 0.7, ""),
    ]


@pytest.mark.parametrize(
    ("error", "kind", "cause"),
    [
        (ValueError("lost"), "ValueError", "evaluator"),
        (SystemExit(3), "SystemExit", "evaluator"),
        (Fault("malformed", "no JSON"), "malformed", "response"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
@pytest.mark.parametrize("waits", [False, True])
def test_an_exception_of_a_batched_evaluator_fails_all_its_verdicts(
    planted: ModuleType, error: BaseException, kind: str, cause: str, waits: bool
) -> None:
    def now(self: Evaluator, batch: Sequence[EvaluatorInput]) -> Any:
        raise error

    async def later(self: Evaluator, batch: Sequence[EvaluatorInput]) -> Any:
        raise error

    for verdict in verdicts_of(planted, later if waits else now):
        assert verdict.status == "failed"
        assert verdict.failure is not None
        assert (verdict.failure.kind, verdict.failure.cause) == (kind, cause)


def test_a_batched_evaluator_without_answer_all_fails_with_a_reason(planted: ModuleType) -> None:
    for verdict in verdicts_of(planted, None):
        assert verdict.status == "failed"
        assert verdict.reason == "evaluator 'planted.it' is `batched`, and has no `answer_all`"


@pytest.mark.parametrize("empty", [True, False])
def test_an_evaluator_cannot_change_its_input(planted: ModuleType, empty: bool) -> None:
    def answer_all(self: Evaluator, batch: Any) -> list[float]:
        answers = [0.5 for _ in batch]
        batch.clear()
        return [] if empty else answers

    verdicts = verdicts_of(planted, answer_all)
    assert [verdict.failure and verdict.failure.kind for verdict in verdicts] == [
        "AttributeError"
    ] * 3
