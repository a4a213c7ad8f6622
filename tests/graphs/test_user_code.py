"""Exceptions of user code that end a run: the error names the owner."""

import asyncio
import re
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import jurygraph as jg
from jurygraph.arrays import Bools, Floats
from jurygraph.errors import PlanError
from jurygraph.graphs.active_groups import ActiveGroups
from jurygraph.graphs.groups import GroupOutcome, make_planned_group
from jurygraph.graphs.score_graph import run_score_graph

TASK = jg.Task(id="t", query="q")
RESPONSES = [jg.Response(id="a", text="one"), jg.Response(id="b", text="two")]


class UserCombiner(jg.Combiner):
    """Does in `freeze` and `combine` as `does` says."""

    name = "own"
    frozen: Any = staticmethod(dict)
    combined: Any = None

    def freeze(self, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = self.frozen()
        return result

    def combine(
        self, cells: Mapping[str, jg.ScoreMatrix], params: Mapping[str, Any]
    ) -> jg.Component:
        result: jg.Component = self.combined(*next(iter(cells.values())).mean())
        return result


class UserEvaluator(jg.Evaluator):
    def answer(self, inputs: jg.EvaluatorInput) -> float:
        return 1.0


class UserDeriver(jg.Deriver):
    """Uses the config's model, and does not declare it."""

    gives = "rash"

    def derive(self, inputs: jg.DeriverInput) -> jg.Material:
        return jg.Material(name="rash", data=inputs.client.model)


def half(task: jg.TaskView, response: jg.Response) -> float:
    return 0.5


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("planted")
    for name, part in {
        "Own": UserCombiner,
        "Asker": UserEvaluator,
        "half": half,
        "Rash": UserDeriver,
    }.items():
        setattr(module, name, part)
    monkeypatch.setitem(sys.modules, "planted", module)
    return module


def score_task(**config: Any) -> list[jg.Trace]:
    with jg.Jury.from_config({"evaluators": ["planted.half"], **config}) as jury:
        return list(jury.score(TASK, RESPONSES))


def score_with_combiner() -> list[jg.Trace]:
    inputs = {"half": {"verdicts_of": "planted.half"}}
    return score_task(
        components={"it": {"combiner": "planted.Own", "inputs": inputs}}, reward={"it": 1.0}
    )


def test_a_combiner_that_returns_a_number_for_each_response_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        UserCombiner, "combined", staticmethod(lambda value, some: jg.Component(value, some, {}))
    )
    assert [trace.reward.value for trace in score_with_combiner()] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (
            lambda value, some: 1 / 0,
            "ZeroDivisionError: division by zero; fix it, or use another one",
        ),
        (lambda value, some: None, "AttributeError"),
        (lambda value, some: jg.Component(value[:1], some, {}), "one number for each response"),
        (
            lambda value, some: jg.Component(value, some, {"part": value[:1]}),
            "one number for each response",
        ),
    ],
)
def test_an_exception_in_a_combiner_ends_scoring_and_names_it(
    made: Any, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UserCombiner, "combined", staticmethod(made))
    with pytest.raises(PlanError, match=rf"combiner 'planted\.Own' failed: .*{wrong}"):
        score_with_combiner()


def test_a_group_of_a_batch_that_fails_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def combine_one(value: Floats, some: Bools) -> jg.Component:
        (one,) = value
        return jg.Component(value, some, {"seen": np.array([one])})

    monkeypatch.setattr(UserCombiner, "combined", staticmethod(combine_one))
    inputs = {"half": {"verdicts_of": "planted.half"}}
    components = {"it": {"combiner": "planted.Own", "inputs": inputs}}
    with jg.Jury(evaluators=["planted.half"], components=components, reward={"it": 1.0}) as jury:
        plan, context = jury.prepare(TASK), jury.context
    groups = [make_planned_group(jg.Group(TASK, RESPONSES[:size]), plan) for size in (1, 2, 1)]

    async def score() -> list[GroupOutcome]:
        active_groups = ActiveGroups()
        outcome_futures = [active_groups.admit_group(group, context) for group in groups]
        active_groups.close()
        await run_score_graph(active_groups)
        return [outcome_future.result() for outcome_future in outcome_futures]

    first, second, third = asyncio.run(score())
    assert [[trace.response_id for trace in traces] for traces in (first, third)] == [["a"], ["a"]]  # type: ignore[union-attr]
    assert re.match(
        r"combiner 'planted\.Own' failed: ValueError: too many values to unpack", str(second)
    )


def test_a_combiner_that_raises_in_freeze_is_named_with_its_component(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(UserCombiner, "frozen", staticmethod(lambda: {}["weights"]))
    with pytest.raises(
        PlanError,
        match=r"task 't', component 'it': combiner 'planted\.Own' failed: KeyError: 'weights'",
    ):
        score_with_combiner()


@pytest.mark.parametrize("method", ["questions", "check", "open", "close"])
def test_an_evaluator_that_raises_outside_of_a_question_is_named_with_its_method(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, *arguments: Any) -> None:
        raise KeyError("nobody")

    fail.__name__ = method
    monkeypatch.setattr(UserEvaluator, method, fail)
    with pytest.raises(
        PlanError, match=rf"^`{method}` of 'planted\.Asker' failed: KeyError: 'nobody'; fix it"
    ):
        score_task(evaluators=["planted.Asker"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: 5, "failed: TypeError: 'int' object is not iterable; fix it"),
        (lambda: (1 / zero for zero in [0]), "failed: ZeroDivisionError"),
        (lambda: ["polite"], "returns a str; return a list of `self.question"),
    ],
)
def test_an_evaluator_that_returns_no_questions_is_named(
    given: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UserEvaluator, "questions", lambda self, view: given())
    with pytest.raises(PlanError, match=rf"^`questions` of 'planted\.Asker' {message}"):
        score_task(evaluators=["planted.Asker"])


def test_all_evaluators_are_closed_though_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    def close(self: jg.Evaluator) -> None:
        closed.append(self.name)
        raise KeyError(self.name)

    monkeypatch.setattr(UserEvaluator, "close", close)
    made = jg.Jury(
        evaluators=[{"use": UserEvaluator, "name": name} for name in "abc"], reward={"a": 1.0}
    )
    with pytest.raises(PlanError, match="`close` of"):
        made.close()
    assert sorted(closed) == ["a", "b", "c"]


def test_a_deriver_that_does_not_declare_the_model_gets_none_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(UserEvaluator, "needs", ("rash",))
    with jg.Jury.from_config(
        {"evaluators": ["planted.Asker"], "derivers": ["planted.Rash"]}
    ) as jury:
        (material,) = jury.score(TASK, RESPONSES)[0].material
    assert material.failure is not None
    assert "uses the config's model and does not declare it" in material.failure.message
