"""What user code raises where nothing but an error can come of it names whose it is."""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import PlanError

TASK = jg.Task(id="t", query="q")
RESPONSES = [jg.Response(id="a", text="one"), jg.Response(id="b", text="two")]


class Own(jg.Combiner):
    """Does what `does` says where it is asked to freeze or to combine."""

    name = "own"
    frozen: Any = staticmethod(dict)
    combined: Any = None

    def freeze(self, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = self.frozen()
        return result

    def combine(self, cells: Mapping[str, jg.ScoreMatrix], params: Mapping[str, Any]) -> jg.Component:
        result: jg.Component = self.combined(*next(iter(cells.values())).mean())
        return result


class Asker(jg.Evaluator):
    def questions(self, view: jg.TaskView) -> list[jg.Question]:
        raise KeyError("nobody")

    def answer(self, inputs: jg.EvaluatorInput) -> float:
        return 1.0


def half(task: jg.TaskView, response: jg.Response) -> float:
    return 0.5


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("planted")
    module.Own, module.Asker, module.half = Own, Asker, half  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "planted", module)
    return module


def score(**config: Any) -> list[jg.Trace]:
    with jg.Jury.from_config({"evaluators": ["planted.half"], **config}) as jury:
        return list(jury.score(TASK, RESPONSES))


def combined() -> list[jg.Trace]:
    inputs = {"half": {"verdicts_of": "planted.half"}}
    return score(components={"it": {"combiner": "planted.Own", "inputs": inputs}}, reward={"it": 1.0})


def test_a_combiner_that_gives_a_number_for_each_response_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "combined", staticmethod(lambda value, some: jg.Component(value, some, {})))
    assert [trace.reward.value for trace in combined()] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (lambda value, some: 1 / 0, "ZeroDivisionError: division by zero; fix it, or use another one"),
        (lambda value, some: None, "AttributeError"),
        (lambda value, some: jg.Component(value[:1], some, {}), "one number for each response"),
        (lambda value, some: jg.Component(value, some, {"part": value[:1]}), "one number for each response"),
    ],
)
def test_an_exception_in_a_combiner_ends_scoring_and_names_it(
    made: Any, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Own, "combined", staticmethod(made))
    with pytest.raises(PlanError, match=rf"combiner 'planted\.Own' failed: .*{wrong}"):
        combined()


def test_a_combiner_that_raises_in_freeze_is_named_with_its_component(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "frozen", staticmethod(lambda: {}["weights"]))
    with pytest.raises(
        PlanError, match=r"task 't', component 'it': combiner 'planted\.Own' failed: KeyError: 'weights'"
    ):
        combined()


def test_an_evaluator_that_raises_during_planning_is_named() -> None:
    with pytest.raises(PlanError, match=r"evaluator 'planted\.Asker' failed: KeyError: 'nobody'"):
        score(evaluators=["planted.Asker"])
