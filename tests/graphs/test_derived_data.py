"""Data that a deriver made of a response's text stands as its own, for those who read data and for nobody else."""

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
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("planted")
    for one in (Reader, ByModel, ReadsData, ReadsText):
        setattr(module, one.__name__, one)
    monkeypatch.setitem(sys.modules, "planted", module)
    Reader.asked.clear()


def scored(*responses: Response, deriver: str = "Reader") -> dict[str, Trace]:
    config = {
        "evaluators": ["planted.ReadsData", "planted.ReadsText"],
        "derivers": [f"planted.{deriver}"],
        "reward": {"ReadsData": 1.0},
        "failure": {"min_coverage": 0.5},
    }
    with Jury.from_config(config) as jury:
        return {trace.response_id: trace for trace in jury.score(TASK, responses)}


def verdict(trace: Trace, evaluator: str) -> RecordedVerdict:
    return next(one for one in trace.verdicts if one.evaluator.endswith(evaluator))


def test_who_reads_data_is_shown_what_was_made_of_the_text_and_nobody_else_is() -> None:
    trace = scored(PROSE)["prose"]
    assert verdict(trace, "ReadsData").score == 0.3
    assert verdict(trace, "ReadsText").reason == "None"


def test_a_response_with_data_keeps_it_and_no_deriver_runs() -> None:
    own = Response(id="own", text="Lunch at Roma.", data=["a"])
    assert verdict(scored(own)["own"], "ReadsData").score == 0.1
    assert Reader.asked == []


def test_a_response_keeps_its_data_without_a_model_too() -> None:
    own = Response(id="own", text="Lunch at Roma.", data=["a"])
    traces = scored(own, PROSE, deriver="ByModel")
    assert verdict(traces["own"], "ReadsData").score == 0.1
    lacking = verdict(traces["prose"], "ReadsData")
    assert (lacking.status, lacking.failure and lacking.failure.kind) == ("abstained", "no-model")


def test_where_no_data_can_be_made_those_who_read_it_have_nothing_to_judge() -> None:
    trace = scored(Response(id="r", text="crash"))["r"]
    assert verdict(trace, "ReadsData").status == "failed"
    assert verdict(trace, "ReadsText").status == "ok"


def test_quotations_behind_data_are_searched_in_the_response() -> None:
    (true,) = scored(PROSE)["prose"].material
    assert [(one.quote, one.start, one.end, one.verified) for one in true.evidence] == [("Roma", 9, 13, True)]
    (false,) = scored(Response(id="r", text="shout it"))["r"].material
    assert [one.verified for one in false.evidence] == [False]


def test_data_changed_by_one_evaluator_is_unchanged_for_others() -> None:
    trace = scored(PROSE)["prose"]
    assert trace.material[0].data == ["Lunch", "at", "Roma."]
