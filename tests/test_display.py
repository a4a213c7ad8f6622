"""Every public object but errors prints as one short line, whatever it contains."""

from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jurygraph as jg
from jurygraph.cli import main
from jurygraph.display import format_number, format_value
from jurygraph.schema import FrozenModel
from jurygraph.testing import ScriptedJudge
from tests.graphs.scripted import evaluator_use, jury, response, task
from tests.rows import all_rows
from tests.schema.strategies import made

HOSTILE = st.one_of(
    st.text(min_size=1),
    st.sampled_from(
        [
            "\u2028\u202e\x85\x1b[31m",
            "<script>alert(1)</script>",
            "</td>\"'&",
            "'\\" * 300,
            "a\n" * 9000,
        ]
    ),
)


def evaluator_input(text: str) -> jg.EvaluatorInput:
    question = jg.Question(
        id=text, evaluator=text[:500], version=text, subject=text[:500], view=text
    )
    view = jg.TaskView(id=text[:500], query=text)
    return jg.EvaluatorInput(question, view, (jg.Response(id=text[:500], text=text),), ({},))


def deriver_input(text: str) -> jg.DeriverInput:
    return jg.DeriverInput(
        evaluator_input(text).task, evaluator_input(text).response, {text: jg.Material(name="m")}
    )


def named(kind: type, text: str) -> Any:
    """Return an instance of a subclass whose name and `name` are the text."""
    subclass = type(
        text.replace("\x00", "").encode("utf-8", "ignore").decode() or "x", (kind,), {"name": text}
    )
    subclass.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    return object.__new__(subclass)


CELLS = np.zeros((3, 2))
CLASSES = {name: value for name in jg.__all__ if isinstance(value := getattr(jg, name), type)}
PUBLIC = {
    name: value for name, value in CLASSES.items() if not issubclass(value, jg.JurygraphError)
}
MAKE: Mapping[str, Callable[[str], object]] = {
    "Binary": lambda text: jg.Binary(),
    "Combiner": lambda text: named(jg.Combiner, text),
    "Component": lambda text: jg.Component(np.zeros(3), np.zeros(3) > 0, {text: np.zeros(3)}),
    "Deriver": lambda text: named(jg.Deriver, text),
    "DeriverInput": deriver_input,
    "Evaluator": lambda text: named(jg.Evaluator, text),
    "EvaluatorInput": evaluator_input,
    "Group": lambda text: jg.Group(
        jg.Task(id=text[:500], query=text), [jg.Response(id=text[:500], text=text)] * 99
    ),
    "Item": lambda text: jg.Item(text, jg.Scale(0, 1), (text,), ((text, text),)),
    "JudgeEvaluator": lambda text: named(jg.JudgeEvaluator, text),
    "PartialCredit": lambda text: jg.PartialCredit((1 / 3,) * 20),
    "Prompt": lambda text: jg.Prompt(
        id=text[:500], version="1", purpose=text[:500], variables=(), sections=(("user", text),)
    ),
    "Scale": lambda text: jg.Scale(-1e300, 1e300),
    "ScoreMatrix": lambda text: jg.ScoreMatrix(CELLS, CELLS > 0, CELLS > 0, CELLS > 0, CELLS[0]),
    "Tool": lambda text: named(jg.Tool, text),
    "ToolInput": lambda text: jg.ToolInput(
        evaluator_input(text).task, evaluator_input(text).responses * 9
    ),
}
MODELS = [
    name
    for name, value in PUBLIC.items()
    if issubclass(value, FrozenModel) and value not in (jg.ParamsModel, jg.ToolArguments)
]


def check(shown: Any) -> None:
    line = repr(shown)
    assert len(line) < 200
    assert line.isprintable()


@all_rows("name", MAKE)
def test_an_object_prints_as_one_short_line_whatever_it_contains(name: str) -> None:
    @given(text=HOSTILE)
    def check_texts(text: str) -> None:
        check(MAKE[name](text))

    check_texts()


@pytest.mark.landing
@pytest.mark.parametrize("name", MODELS)
@given(text=HOSTILE, data=st.data())
def test_a_model_prints_as_one_short_line_whatever_it_contains(
    name: str, text: str, data: st.DataObject
) -> None:
    model = data.draw(made(PUBLIC[name]))
    check(model)
    larger = {field: text for field, value in model if isinstance(value, str)}
    larger |= {field: value * 50 for field, value in model if isinstance(value, tuple)}
    for field, value in model:
        if isinstance(value, dict):
            larger[field] = value | {text: text if field == "files" else 1 / 3}
    check(model.model_copy(update=larger))


LEAVES = HOSTILE | st.integers() | st.floats() | st.none() | st.builds(lambda: 10**5000)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(HOSTILE, inner) | st.sets(HOSTILE)
)


@given(value=VALUES)
def test_a_value_is_shortened_to_its_limit(value: Any) -> None:
    shown = format_value(value, 40)
    assert len(shown) <= 40
    assert shown.isprintable()


def test_juries_planners_judges_and_runs_print_shortly_open_or_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{'long' * 20}-{n}" for n in range(30)]
    with jury(*map(evaluator_use, names), reward=dict.fromkeys(names, 1.0)) as made:
        for shown in (made, jg.Planner(made), ScriptedJudge({"<b>": True})):
            check(shown)
    check(made)
    monkeypatch.chdir(tmp_path)
    for command in (("init", "p"), ("score", "p/tasks.jsonl", "--out", "p/<b>run")):
        with pytest.raises(SystemExit):
            main(list(command))
    with jg.Run.open("p/<b>run") as run:
        explanation = run.explain(next(run.traces()).response_id)
        for shown in (
            run,
            next(run.verdicts()),
            next(run.scored_responses()),
            *explanation.what_if(),
        ):
            check(shown)
        check(explanation)
    check(run)


def test_every_public_class_is_tried() -> None:
    assert PUBLIC.keys() == MAKE.keys() | {
        *MODELS,
        "Explanation",
        "Jury",
        "ParamsModel",
        "ToolArguments",
        "Planner",
        "Run",
    }


def test_a_trace_shows_its_reward_and_its_terms() -> None:
    with jury(evaluator_use("tone")) as made:
        (one,) = made.score(task(), [response("<i>", tone=0.5)])
    assert repr(one) == (
        "Trace(task='task', response='<i>', reward=0.5, status='ok', components={'tone': 0.5}, verdicts=1)"
    )
    assert str(one) == repr(one)
    assert one.model_copy(update={"plan": None})._repr_html_() is None
    assert one._repr_html_() == one.explain()._repr_html_()


@given(st.floats() | st.integers(-(10**9), 10**9) | st.floats(-1e-3, 1e-3))
def test_numbers_have_four_decimals_and_are_never_minus_zero(value: float) -> None:
    assert format_number(value) == (
        f"{value:.4e}" if 1e15 <= abs(value) < inf else f"{round(value, 4) + 0.0:.4f}"
    )


def test_huge_numbers_have_an_exponent() -> None:
    assert [format_number(value) for value in (-1e300, 1e15, 9e14)] == [
        "-1.0000e+300",
        "1.0000e+15",
        f"{9 * 10**14}.0000",
    ]
