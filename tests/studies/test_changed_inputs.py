"""What was changed between two runs: settings, and the number of tasks."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.judges.criteria import Criteria
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.studies.changed_inputs import ChangedInputs, find_changed_inputs
from tests.rows import all_rows

POLITE = {"id": "polite", "text": "It is polite.", "weight": 1.0}
BRIEF = {"id": "brief", "text": "It is brief.", "weight": 1.0}
WISH = {"id": "quiet", "text": "The hotel is quiet.", "kind": "soft"}
ANN: dict[str, Any] = {"id": "ann", "profile": "Ann sleeps badly.", "constraints": [WISH]}
SETTINGS = {
    "evaluators": ["criteria", "preferences"],
    "reward": {"rubric": 1.0, "stakeholders": 1.0},
}
TASK = {"query": "Where to?", "rubric": {"criteria": [POLITE, BRIEF]}, "stakeholders": [ANN]}


def record(folder: Path, tasks: Sequence[dict[str, Any]], **settings: Any) -> Path:
    with jg.Jury(**{**SETTINGS, **settings}, record=folder) as jury:
        for number, fields in enumerate(tasks):
            jury.score(jg.Task.model_validate({"id": f"t{number}", **fields}), ["To Rome."])
    return folder


def changes_between(folder_a: Path, folder_b: Path) -> ChangedInputs:
    with closing(Run.open(folder_a)) as a, closing(Run.open(folder_b)) as b:
        return find_changed_inputs(a, b)


@all_rows(
    ("name", "change", "is_changed"),
    [
        ("weight", {"rubric": {"criteria": [{**POLITE, "weight": 2.0}, BRIEF]}}, True),
        ("order", {"rubric": {"criteria": [BRIEF, POLITE]}}, False),
        ("query", {"query": "Where now?"}, True),
        ("profile", {"stakeholders": [{**ANN, "profile": "A heavy sleeper."}]}, True),
    ],
)
def test_tasks_with_another_content_are_counted(
    tmp_path: Path, name: str, change: dict[str, Any], is_changed: bool
) -> None:
    folder = tmp_path / name
    a = record(folder / "a", [TASK] * 3)
    b = record(folder / "b", [{**TASK, **change}, {**TASK, **change}, TASK, TASK], clip=[0.0, 1.0])
    assert changes_between(a, b).tasks == 2 * is_changed


def test_tasks_with_other_responses_are_counted(tmp_path: Path) -> None:
    a = record(tmp_path / "a", [TASK] * 3)
    b = tmp_path / "b"
    with jg.Jury(**SETTINGS, record=b) as jury:
        for number, text in enumerate(["To Rome.", "To Bari.", "To Pisa."]):
            jury.score(jg.Task.model_validate({"id": f"t{number}", **TASK}), [text])
    assert changes_between(a, b) == ([], 2, 2)


def test_settings_have_both_values_and_a_model_is_named_once(tmp_path: Path) -> None:
    judges = [
        jg.testing.ScriptedJudge({"It is": True, "quiet": 0.5}, name=name)
        for name in ("old", "new")
    ]
    a = record(tmp_path / "a", [TASK], model=judges[0])
    b = record(
        tmp_path / "b",
        [TASK],
        model=judges[1],
        evaluators=["maths.length", "criteria", "preferences"],
        rubric={"kappa": 0.5},
    )
    settings, tasks, _ = changes_between(a, b)
    found = {setting: values for setting, *values in settings}
    assert found.pop("model") == ["old", "new"]
    assert found.pop("rubric.kappa") == [1.0, 0.5]
    before, after = found.pop("evaluators.maths.length")
    assert (before, after["use"]) == (None, "maths.length")
    assert (found, tasks) == ({}, 0)


def test_another_prompt_is_named_by_its_evaluator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = record(tmp_path / "a", [TASK])
    reworded = Criteria.prompt.model_copy(update={"version": "gentle"})
    monkeypatch.setattr(Criteria, "prompt", reworded)
    ((setting, before, after),) = changes_between(a, record(tmp_path / "b", [TASK])).settings
    assert setting == "evaluators.criteria: code or prompt"
    assert ("prompt gentle in" in before, "prompt gentle in" in after) == (False, True)


def test_erased_texts_are_no_change(tmp_path: Path) -> None:
    a = record(tmp_path / "a", [TASK])
    b = record(tmp_path / "b", [{**TASK, "query": "When?"}])
    erase(b, "task", "t0", "")
    assert changes_between(a, b) == ([], 0, 0)
