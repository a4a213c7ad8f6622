"""Where data is derived, whoever reads it waits for it, fails with it, and cannot change it for others."""

from collections.abc import Mapping
from typing import Any

import pytest

from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput
from jurygraph.schema import Material, Response, Trace, Variant, Verdict
from tests.graphs.scripted import EXCEPTIONS, find_verdict, make_plan, score_responses, task

HERE = __name__
DERIVED: list[str] = []
"""The texts of which data was derived."""


class Structured(Deriver):
    """Makes a list of the words of a text; a text that names an exception raises it."""

    gives = "data"

    def derive(self, inputs: DeriverInput) -> Material:
        DERIVED.append(inputs.response.text)
        if inputs.response.text in EXCEPTIONS:
            raise EXCEPTIONS[inputs.response.text]("the deriver broke")
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
            name="longer",
            variants=(Variant(response=own), Variant(response=Response(id="bare", text="x"))),
        )


class Words(Evaluator):
    """A quarter for each word of the data; 0 where it is shown none. It spoils what it is shown."""

    def __init__(
        self, reads_data: bool = True, needs: tuple[str, ...] = (), material: str = "submitted"
    ) -> None:
        self.reads_data, self.needs, self.material = reads_data, tuple(needs), material

    def question(self, view: Any, subject: str | None = None, **fields: Any) -> Any:
        return super().question(view, subject, material=self.material, **fields)

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        data: Any = inputs.response.data
        verdict = Verdict(score=len(data or ()) / 4, reason=f"{sorted(inputs.material[0])}")
        if data:
            data.clear()
        return verdict


def words_evaluator(name: str, **params: Any) -> dict[str, Any]:
    return {"use": f"{HERE}:Words", "name": name, "params": params}


def config_with(
    *uses: Mapping[str, Any], derivers: tuple[str, ...] = ("Structured",)
) -> dict[str, Any]:
    DERIVED.clear()
    reward = {str(use["name"]): 1.0 for use in uses}
    return {
        "evaluators": list(uses),
        "derivers": [f"{HERE}:{name}" for name in derivers],
        "reward": reward,
    }


def score_text(config: Mapping[str, Any], text: str, data: Any = None) -> Trace:
    (trace,) = score_responses(config, task(), Response(id="a", text=text, data=data))
    return trace


def test_an_evaluator_that_reads_data_waits_for_its_derivation() -> None:
    survey = make_plan(
        config_with(words_evaluator("reads"), words_evaluator("blind", reads_data=False)), task()
    ).survey
    assert {question.id: question.needs for question in survey.questions} == {
        "reads": ("data",),
        "blind": (),
    }
    assert [(wave.materials, wave.questions) for wave in survey.waves] == [
        (("data",), ("blind",)),
        ((), ("reads",)),
    ]


def test_without_a_deriver_of_data_no_evaluator_waits() -> None:
    config = config_with(words_evaluator("reads"), derivers=())
    assert make_plan(config, task()).survey.questions[0].needs == ()
    assert find_verdict(score_text(config, "one two", data=["one"]), "reads").score == 0.25


def test_empty_data_of_a_response_counts_as_data() -> None:
    assert (
        find_verdict(
            score_text(config_with(words_evaluator("reads")), "one two", data=[]), "reads"
        ).score
        == 0.0
    )
    assert DERIVED == []


def test_data_changed_by_one_evaluator_does_not_change_for_another() -> None:
    trace = score_text(config_with(words_evaluator("first"), words_evaluator("second")), "one two")
    assert [verdict.score for verdict in trace.verdicts] == [0.5, 0.5]
    assert trace.material[0].data == ["one", "two"]


def test_a_deriver_that_reads_data_waits_for_it_too() -> None:
    config = config_with(
        words_evaluator("reads", reads_data=False, needs=["counted"]),
        derivers=("Structured", "Counted"),
    )
    trace = score_text(config, "one two three")
    assert {one.name: one.data for one in trace.material} == {
        "counted": 3,
        "data": ["one", "two", "three"],
    }
    assert find_verdict(trace, "reads").reason == "['counted']"


@pytest.mark.parametrize(
    ("text", "cause"), [("Exception", "evaluator"), ("TimeLimitExceeded", "response")]
)
def test_evaluators_that_read_data_fail_with_the_cause_of_its_derivation(
    text: str, cause: str
) -> None:
    trace = score_text(
        config_with(words_evaluator("reads"), words_evaluator("blind", reads_data=False)), text
    )
    failed = find_verdict(trace, "reads")
    assert (failed.status, failed.failure and (failed.failure.cause, failed.failure.kind)) == (
        "failed",
        (cause, "material"),
    )
    assert find_verdict(trace, "blind").status == "ok"


def test_a_variant_without_data_gets_the_data_of_its_response() -> None:
    trace = score_text(
        config_with(words_evaluator("reads", material="longer"), derivers=("Structured", "Longer")),
        "one two",
    )
    assert {verdict.responses: verdict.score for verdict in trace.verdicts} == {
        ("own",): 1.0,
        ("bare",): 0.5,
    }
