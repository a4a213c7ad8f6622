"""Derived data: it takes the place of a response's data for evaluators that read data, and only for them."""

import sys
from types import ModuleType
from typing import Any, ClassVar

import pytest

from jurygraph import Deriver, DeriverInput, Evaluator, EvaluatorInput, Jury, Material, Response, Task, Trace, Verdict
from jurygraph.schema import Evidence, RecordedVerdict

TASK = Task(id="trip", query="Where do we eat?")
PROSE = Response(id="prose", text="Lunch at Roma.")


class Reader(Deriver):
    """The words of the text, as data."""

    name = "reader"
    version = "1"
    gives = "data"
    asked: ClassVar[list[str]] = []

    def derive(self, inputs: DeriverInput) -> Material:
        self.asked.append(inputs.response.id)
        if "crash" in inputs.response.text:
            raise RuntimeError("the crash that was asked for")
        quote = (
            Evidence(quote=inputs.response.text.upper()) if "shout" in inputs.response.text else Evidence(quote="Roma")
        )
        return Material(name="data", data=inputs.response.text.split(), evidence=(quote,))


class ByModel(Reader):
    name = "by_model"
    uses_model = True


class Counting(Evaluator):
    """A tenth for every part of the data."""

    version = "1"

    def answer(self, inputs: EvaluatorInput) -> Any:
        data = inputs.response.data
        return Verdict(score=len(data) / 10 if isinstance(data, list) else 0.0, reason=repr(data))


class ReadsData(Counting):
    name = "reads_data"
    reads_data = True


class ReadsText(Counting):
    name = "reads_text"


@pytest.fixture(autouse=True)
def _evaluators_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("planted")
    for one in (Reader, ByModel, ReadsData, ReadsText):
        setattr(module, one.__name__, one)
    monkeypatch.setitem(sys.modules, "planted", module)
    Reader.asked.clear()


def score_with(*responses: Response, deriver: str = "Reader") -> dict[str, Trace]:
    config = {
        "evaluators": ["planted.ReadsData", "planted.ReadsText"],
        "derivers": [f"planted.{deriver}"],
        "reward": {"ReadsData": 1.0},
        "failure": {"min_coverage": 0.5},
    }
    with Jury.from_config(config) as jury:
        return {trace.response_id: trace for trace in jury.score(TASK, responses)}


def verdict_by(trace: Trace, evaluator: str) -> RecordedVerdict:
    return next(one for one in trace.verdicts if one.evaluator.endswith(evaluator))


def test_only_evaluators_that_read_data_get_the_derived_data() -> None:
    trace = score_with(PROSE)["prose"]
    assert verdict_by(trace, "ReadsData").score == 0.3
    assert verdict_by(trace, "ReadsText").reason == "None"


def test_a_response_with_data_keeps_it_and_no_deriver_runs() -> None:
    own = Response(id="own", text="Lunch at Roma.", data=["a"])
    assert verdict_by(score_with(own)["own"], "ReadsData").score == 0.1
    assert Reader.asked == []


def test_a_response_keeps_its_data_without_a_model_too() -> None:
    own = Response(id="own", text="Lunch at Roma.", data=["a"])
    traces = score_with(own, PROSE, deriver="ByModel")
    assert verdict_by(traces["own"], "ReadsData").score == 0.1
    lacking = verdict_by(traces["prose"], "ReadsData")
    assert (lacking.status, lacking.failure and lacking.failure.kind) == ("abstained", "no-model")


def test_without_derived_data_the_evaluators_that_read_data_cannot_judge() -> None:
    trace = score_with(Response(id="r", text="crash"))["r"]
    assert verdict_by(trace, "ReadsData").status == "failed"
    assert verdict_by(trace, "ReadsText").status == "ok"


def test_quotations_of_derived_data_are_searched_in_the_response() -> None:
    (true,) = score_with(PROSE)["prose"].material
    assert [(one.quote, one.start, one.end, one.verified) for one in true.evidence] == [("Roma", 9, 13, True)]
    (false,) = score_with(Response(id="r", text="shout it"))["r"].material
    assert [one.verified for one in false.evidence] == [False]


def test_data_changed_by_one_evaluator_is_unchanged_for_others() -> None:
    trace = score_with(PROSE)["prose"]
    assert trace.material[0].data == ["Lunch", "at", "Roma."]
