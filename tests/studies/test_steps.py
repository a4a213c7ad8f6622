"""Runs read row by row, and cut into steps."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import apply_settings, rescore
from jurygraph.studies.steps import Row, StepRule, read_rows
from tests.graphs.cast import told
from tests.runs.made import score, write_tasks

CONFIG: dict[str, Any] = {"evaluators": [told("right"), told("neat")], "reward": {"right": 1.0, "neat": 0.5}}


def line(name: str, *given: tuple[Any, Any], labels: dict[str, Any] | None = None) -> dict[str, Any]:
    """A task; each response says what it is to be given for `right` and `neat`."""
    return {
        "id": name,
        "query": "What is right?",
        "responses": [
            {
                "id": f"{name}/{place}",
                "text": f"answer {place}",
                "data": {"right": right, "neat": neat},
                "labels": labels or {},
            }
            for place, (right, neat) in enumerate(given)
        ],
    }


def made(folder: Path, *lines: dict[str, Any]) -> Path:
    score(folder / "run", write_tasks(folder, lines), CONFIG)
    return folder / "run"


def rows(folder: Path, **cut: Any) -> list[Row]:
    with closing(Run.open(folder)) as run:
        return list(read_rows(run, StepRule(**cut)))


def test_a_row_holds_what_a_trainer_saw_of_a_response(tmp_path: Path) -> None:
    (row,) = rows(made(tmp_path, line("a", (0.5, 1.0))))
    assert row == Row(None, "a", "a/0", 1.0, {"neat": 1.0, "right": 0.5}, "answer 0")
    assert row.length == 8


def test_a_failed_reward_is_none_and_so_is_a_component_that_nobody_judged(tmp_path: Path) -> None:
    (row,) = rows(made(tmp_path, line("a", ("response", 1.0))))
    assert row.reward is None
    assert row.components == {"neat": 1.0, "right": None}


def test_every_n_tasks_are_a_step_whatever_became_of_them(tmp_path: Path) -> None:
    folder = made(tmp_path, *(line(name, ("response" if name == "a" else 1.0, 1.0)) for name in "abcde"))
    assert [(row.group, row.step) for row in rows(folder, every=2)] == [
        ("a", 1),
        ("b", 1),
        ("c", 2),
        ("d", 2),
        ("e", 3),
    ]


def test_a_label_says_of_which_step_a_response_is(tmp_path: Path) -> None:
    labelled = (
        line(name, (1.0, 1.0), labels=given) for name, given in (("a", {"at": 7}), ("b", {"at": 2.5}), ("c", {}))
    )
    assert [row.step for row in rows(made(tmp_path, *labelled), label="at")] == [7.0, 2.5, None]


@pytest.mark.parametrize("value", ["3", True, None, [3]])
def test_a_label_that_is_no_number_is_refused(tmp_path: Path, value: Any) -> None:
    folder = made(tmp_path, line("a", (1.0, 1.0), labels={"at": value}))
    with pytest.raises(InputError, match=r"label 'at' of response 'a/0' is .*, which is no step"):
        rows(folder, label="at")


def test_of_an_erased_response_the_text_and_the_length_are_gone(tmp_path: Path) -> None:
    folder = made(tmp_path, line("a", (1.0, 1.0), (0.5, 0.5)))
    erase(folder, "response", "a/0", "")
    erased, kept = rows(folder)
    assert (erased.text, erased.length, kept.length) == (None, None, 8)
    assert erased.reward == 1.5


def test_a_rescored_run_gives_its_own_rewards(tmp_path: Path) -> None:
    folder = made(tmp_path, line("a", (0.5, 1.0)))
    with closing(Run.open(folder)) as run:
        rescore(run, tmp_path / "again", apply_settings(run.config, ["reward.right=2"]), lambda count: None)
    assert [row.reward for row in rows(tmp_path / "again")] == [1.5]


def test_each_task_is_reported(tmp_path: Path) -> None:
    seen: list[int] = []
    with closing(Run.open(made(tmp_path, line("a", (1.0, 1.0)), line("b", (1.0, 1.0), (0.0, 1.0))))) as run:
        assert len(list(read_rows(run, StepRule(), seen.append))) == 3
    assert seen == [1, 1]


def test_a_cut_is_of_one_kind() -> None:
    assert not StepRule().has_steps
    assert StepRule(label="at").has_steps
    assert StepRule(every=1).has_steps
    with pytest.raises(InputError, match="by a label or every N tasks, not both"):
        StepRule(label="at", every=2)
    with pytest.raises(InputError, match="cannot be cut every 0 tasks"):
        StepRule(every=0)
