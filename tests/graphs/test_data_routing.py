"""Where data is derived, whoever reads it waits for it, fails with it, and cannot change it for others."""

from collections.abc import Mapping
from typing import Any

import pytest

from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput
from jurygraph.schema import Material, Response, Trace, Variant, Verdict
from tests.graphs.cast import RAISED, planned, scored, task, verdict_on

HERE = __name__
DERIVED: list[str] = []
"""The texts of which data was derived."""


class Structured(Deriver):
    """Makes a list of the words of a text; a text that names an exception raises it."""

    gives = "data"

    def derive(self, inputs: DeriverInput) -> Material:
        DERIVED.append(inputs.response.text)
        if inputs.response.text in RAISED:
            raise RAISED[inputs.response.text]("the deriver broke")
        return Material(name="data", data=list(inputs.response.text.split()))


class Counted(Deriver):
    """How many words there are in the data."""

    gives = "counted"
    reads_data = True

    def derive(self, inputs: DeriverInput) -> Material:
        assert isinstance(inputs.response.data, list)
        return Material(name="counted", data=len(inputs.response.data))


class Longer(Deriver):
    """Variants: one with data of its own, and one without."""

    gives = "longer"

    def derive(self, inputs: DeriverInput) -> Material:
        own = Response(id="own", text="x", data=["one", "two", "three", "four"])
        return Material(
            name="longer", variants=(Variant(response=own), Variant(response=Response(id="bare", text="x")))
        )


class Words(Evaluator):
    """A quarter for each word of the data; 0 where it is shown none. It spoils what it is shown."""

    def __init__(self, reads_data: bool = True, needs: tuple[str, ...] = (), material: str = "submitted") -> None:
        self.reads_data, self.needs, self.of = reads_data, tuple(needs), of

    def question(self, view: Any, subject: str | None = None, **fields: Any) -> Any:
        return super().question(view, subject, material=self.material, **fields)

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        data: Any = inputs.response.data
        verdict = Verdict(score=len(data or ()) / 4, reason=f"{sorted(inputs.material[0])}")
        if data:
            data.clear()
        return verdict


def words(name: str, **params: Any) -> dict[str, Any]:
    return {"use": f"{HERE}:Words", "name": name, "params": params}


def config(*uses: Mapping[str, Any], derivers: tuple[str, ...] = ("Structured",)) -> dict[str, Any]:
    DERIVED.clear()
    reward = {str(use["name"]): 1.0 for use in uses}
    return {"evaluators": list(uses), "derivers": [f"{HERE}:{name}" for name in derivers], "reward": reward}


def only(stated: Mapping[str, Any], text: str, data: Any = None) -> Trace:
    (trace,) = scored(stated, task(), Response(id="a", text=text, data=data))
    return trace


def test_who_reads_it_waits_for_it() -> None:
    survey = planned(config(words("reads"), words("blind", reads_data=False)), task()).survey
    assert {question.id: question.needs for question in survey.questions} == {"reads": ("data",), "blind": ()}
    assert [(wave.materials, wave.questions) for wave in survey.waves] == [(("data",), ("blind",)), ((), ("reads",))]


def test_where_nobody_derives_any_nothing_is_waited_for() -> None:
    stated = config(words("reads"), derivers=())
    assert planned(stated, task()).survey.questions[0].needs == ()
    assert verdict_on(only(stated, "one two", data=["one"]), "reads").score == 0.25


def test_data_that_is_empty_is_data() -> None:
    assert verdict_on(only(config(words("reads")), "one two", data=[]), "reads").score == 0.0
    assert DERIVED == []


def test_changes_by_one_evaluator_do_not_reach_another() -> None:
    trace = only(config(words("first"), words("second")), "one two")
    assert [verdict.score for verdict in trace.verdicts] == [0.5, 0.5]
    assert trace.material[0].data == ["one", "two"]


def test_a_deriver_that_reads_data_waits_for_it_too() -> None:
    stated = config(words("reads", reads_data=False, needs=["counted"]), derivers=("Structured", "Counted"))
    trace = only(stated, "one two three")
    assert {one.name: one.data for one in trace.material} == {"counted": 3, "data": ["one", "two", "three"]}
    assert verdict_on(trace, "reads").reason == "['counted']"


@pytest.mark.parametrize(("text", "cause"), [("Exception", "infrastructure"), ("TimeLimitExceeded", "response")])
def test_where_it_cannot_be_derived_those_who_read_it_fail_for_its_cause(text: str, cause: str) -> None:
    trace = only(config(words("reads"), words("blind", reads_data=False)), text)
    failed = verdict_on(trace, "reads")
    assert (failed.status, failed.failure and (failed.failure.cause, failed.failure.kind)) == (
        "failed",
        (cause, "material"),
    )
    assert verdict_on(trace, "blind").status == "ok"


def test_a_variant_keeps_data_of_its_own_and_else_is_shown_that_of_its_response() -> None:
    trace = only(config(words("reads", material="longer"), derivers=("Structured", "Longer")), "one two")
    assert {verdict.responses: verdict.score for verdict in trace.verdicts} == {("own",): 1.0, ("bare",): 0.5}
