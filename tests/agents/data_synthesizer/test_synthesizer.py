"""The deriver: its contrasts by rule and by a model, and its notes if it makes none."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

import jurygraph as jg
from jurygraph import Response, Task
from jurygraph.agents.data_synthesizer import MAX_RESPONSE_CHARACTERS, Synthesizer
from jurygraph.agents.roles import DeriverInput
from jurygraph.schema import Material, TaskView
from tests.models.server import Answer, reply_with, run_server

QUERY = "Ann has 3 boxes of 4 eggs, and two more. She sells half. How many are left?"
RIGHT = "There are 3*4=<<3*4=12>>12 eggs.\nWith two more there are 12+2=14 eggs.\nSo 14/2=7 hours are left.\nA: 7"
TASK = Task(id="eggs", query=QUERY, reference="A: 7")


def derive(text: str, task: Task = TASK, **params: Any) -> Material:
    view = TaskView(
        id=task.id, audience="task", query=task.query, reference=task.reference, facts=task.facts
    )
    return asyncio.run(
        Synthesizer(**params).derive(DeriverInput(view, Response(id="r", text=text), {}))
    )


def kinds(material: Material) -> list[str]:
    return [variant.edit["kind"] for variant in material.variants]  # type: ignore[index,call-overload]


# By rule


def test_a_right_solution_gives_a_contrast_of_each_kind() -> None:
    assert kinds(derive(RIGHT)) == ["number", "step", "answer"]


def test_a_wrong_solution_gets_no_contrast_and_gains_nothing() -> None:
    made = derive(RIGHT.replace("A: 7", "A: 8"))
    assert made.variants == ()
    assert made.note == "its answer is not known to be right: no edit surely makes it worse"


def test_without_a_reference_calculations_alone_are_known_to_be_right() -> None:
    assert kinds(derive(RIGHT, TASK.model_copy(update={"reference": None}))) == ["number"]


def test_prose_and_very_long_texts_get_no_contrast() -> None:
    plain = TASK.model_copy(update={"reference": None})
    assert (
        derive("It is kind.", plain).note
        == "nothing in the response could be made worse by a known edit"
    )
    assert "no contrast is made" in derive("1+1=2\n" * MAX_RESPONSE_CHARACTERS, plain).note


def test_config_sets_kinds_and_numbers_and_the_seed_chooses() -> None:
    assert kinds(derive(RIGHT, kinds=["step", "number"], each=3)) == ["number"] * 3 + ["step"] * 2
    assert derive(RIGHT, seed=1) == derive(RIGHT, seed=1)
    assert (
        len(
            {tuple(v.response.text for v in derive(RIGHT, seed=seed).variants) for seed in range(8)}
        )
        > 1
    )


def test_a_variant_never_has_the_id_of_its_parent() -> None:
    view = TaskView(id="t", audience="task", query="q")
    ask = DeriverInput(view, Response(id="~number-1", text="1+1=2"), {})
    (variant,) = asyncio.run(Synthesizer().derive(ask)).variants
    assert variant.response.id == "~~number-1"


# By external knowledge (3.2)

TRAINS = Task(
    id="trip",
    query="How do I get there?",
    facts={
        "tables": {
            "trains": {
                "key": ["train"],
                "rows": [
                    {"train": "RE 7", "leaves": "09:12", "price": 35},
                    {"train": "IC 2", "leaves": "10:40", "price": 50},
                ],
            }
        }
    },
    context=({"text": "On Sundays no train leaves before ten.", "source": "timetable"},),
)


def test_a_value_that_a_table_confirms_becomes_that_of_another_row() -> None:
    made = derive(
        "Take RE 7 at 09:12, it is 35 euros.\nOr RE 7 or IC 2.", TRAINS, kinds=["fact"], each=5
    )
    texts = [variant.response.text.splitlines()[0] for variant in made.variants]
    assert texts == ["Take RE 7 at 10:40, it is 35 euros.", "Take RE 7 at 09:12, it is 50 euros."]
    assert made.variants[0].edit["says"] == "leaves of RE 7 is 09:12 in the facts (trains)"
    assert kinds(derive("Take RE 7 at 09:12.", TRAINS)) == [], "only where `kinds` names it"


def test_what_no_row_confirms_is_not_edited() -> None:
    for text in (
        "Take RE 7 at 9:12.",
        "Leave at 09:12.",
        "RE 7 or IC 2 at 09:12.",
        "RE 71 at 09:12",
    ):
        assert derive(text, TRAINS, kinds=["fact"]).variants == ()


# By a model

CONFIG: dict[str, Any] = {
    "evaluators": ["maths.accuracy", {"use": "maths.accuracy", "material": "contrasts"}],
    "derivers": [{"use": "synthesizer", "params": {"by": "model"}}],
    "components": {
        "enhanced": {
            "combiner": "contrast",
            "inputs": {
                "accuracy": "maths.accuracy",
                "accuracy-of-contrasts": "maths.accuracy-of-contrasts",
            },
        }
    },
    "reward": {"enhanced": 1.0},
}
PROPOSED = {
    "kind": "answer",
    "passage": "A: 7",
    "instead": "A: 14",
    "says": "the half was asked for",
}


def is_check(body: Mapping[str, Any]) -> bool:
    return "worse" in body["response_format"]["json_schema"]["schema"]["properties"]


def letter_of_edited(body: Mapping[str, Any]) -> str:
    """Return the letter of the edited text in a check."""
    shown = str(body["messages"][1]["content"])
    return (
        "A" if "A: 14" in shown.partition("# Response A")[2].partition("# Response B")[0] else "B"
    )


class ScriptedModel:
    """A jury, and the model that it asks: it proposes `contrasts`, and says of each that the one named is `worse`."""

    def __init__(self) -> None:
        self.contrasts: tuple[dict[str, Any], ...] = ()
        self.worse = "edited"

    def answer(self, body: dict[str, Any], number: int) -> Answer:
        if not is_check(body):
            return reply_with(json.dumps({"contrasts": self.contrasts}))
        worse = letter_of_edited(body) if self.worse == "edited" else self.worse
        return reply_with(json.dumps({"reason": "so", "worse": worse}))

    @contextmanager
    def open(self) -> Iterator["ScriptedModel"]:
        with run_server(self.answer) as self.server:
            stated = {"model": f"openai-compatible:{self.server.url}#m", "calls": {"cache": False}}
            with jg.Jury.from_config(CONFIG | stated) as self.jury:
                yield self

    def score(
        self, *contrasts: dict[str, Any], worse: str = "edited", text: str = RIGHT
    ) -> tuple[jg.Trace, int]:
        """Return the trace where the model says so, and how often it was asked."""
        self.contrasts, self.worse, before = contrasts, worse, self.server.count
        (trace,) = self.jury.score(TASK, [Response(id="r", text=text)])
        return trace, self.server.count - before


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel().open() as opened:
        yield opened


def test_an_edit_that_the_model_finds_worse_blindly_counts(model: ScriptedModel) -> None:
    trace, asked = model.score(PROPOSED)
    assert asked == 2
    assert [v.response.text for v in trace.material[0].variants] == [RIGHT.replace("A: 7", "A: 14")]
    assert trace.reward.value == 1.0
    assert trace.material[0].call is not None


def test_an_edit_that_the_model_does_not_find_worse_is_dropped(model: ScriptedModel) -> None:
    trace, _ = model.score(PROPOSED, worse="neither")
    assert trace.material[0].variants == ()
    assert trace.material[0].note == "1 proposed that is no worse"
    assert trace.reward.value == 0.0


def test_a_passage_that_does_not_occur_once_is_omitted_after_one_repair(
    model: ScriptedModel,
) -> None:
    trace, asked = model.score({**PROPOSED, "passage": "eggs"}, {**PROPOSED, "passage": "ham"})
    assert asked == 2
    assert trace.material[0].variants == ()
    assert trace.material[0].note == "2 proposed that changes no passage"


def test_a_model_is_shown_what_the_task_knows_when_it_proposes_and_when_it_checks() -> None:
    proposal = {
        "kind": "fact",
        "passage": "09:12",
        "instead": "09:50",
        "says": "the table has 09:12",
    }
    judge = jg.testing.ScriptedJudge(
        [
            json.dumps({"contrasts": [proposal]}),
            json.dumps({"reason": "so", "worse": "A"}),
        ]
    )
    settings = {
        **CONFIG,
        "derivers": [{"use": "synthesizer", "params": {"by": "model", "kinds": ["fact"]}}],
    }
    with jg.Jury(model=judge, **settings) as jury:
        jury.score(TRAINS, [Response(id="r", text="Take RE 7 at 09:12.")])
    assert len(judge.requests) == 2
    for request in judge.requests:
        shown = request.messages[-1].content
        assert '"leaves": "10:40"' in shown
        assert "On Sundays no train leaves before ten." in shown
