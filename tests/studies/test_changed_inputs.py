"""What was changed between two runs: questions in both wordings, and settings."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.judges.criteria import Criteria
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.studies.changed_inputs import InputChange, find_changed_inputs
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


def changes_between(folder_a: Path, folder_b: Path) -> list[InputChange]:
    with closing(Run.open(folder_a)) as a, closing(Run.open(folder_b)) as b:
        return find_changed_inputs(a, b)


def rubric(*criteria: dict[str, Any]) -> dict[str, Any]:
    return {"rubric": {"criteria": list(criteria)}}


def person(profile: str = ANN["profile"], **wish: str) -> dict[str, Any]:
    return {"stakeholders": [{**ANN, "profile": profile, "constraints": [{**WISH, **wish}]}]}


@all_rows(
    ("change", "name", "before", "after"),
    [
        (
            rubric({**POLITE, "text": "It greets."}, BRIEF),
            "criterion polite, reworded",
            POLITE["text"],
            "It greets.",
        ),
        (rubric({**POLITE, "weight": 2.0}, BRIEF), "criterion polite.weight", "1.0", "2.0"),
        (rubric(BRIEF), "criterion polite, removed", "It is polite.", "none"),
        (
            rubric({**POLITE, "id": "kind", "text": "It is kind."}, POLITE, BRIEF),
            "criterion kind, added",
            "none",
            "It is kind.",
        ),
        (rubric(BRIEF, POLITE), "", "", ""),
        ({"query": "Where now?"}, "query, reworded", "Where to?", "Where now?"),
        (
            person("A heavy sleeper."),
            "stakeholder ann.profile, reworded",
            ANN["profile"],
            "A heavy sleeper.",
        ),
        (
            person(text="It is silent."),
            "stakeholder ann.constraint quiet, reworded",
            WISH["text"],
            "It is silent.",
        ),
        (person(kind="hard"), "stakeholder ann.constraint quiet.kind", "soft", "hard"),
    ],
)
def test_the_changed_part_of_the_tasks_is_named_with_both_wordings(
    tmp_path: Path, change: dict[str, Any], name: str, before: str, after: str
) -> None:
    folder = tmp_path / f"changed {name}"
    a = record(folder / "a", [TASK, TASK])
    b = record(folder / "b", [{**TASK, **change}] * 2)
    found = [(str(change), *change.shortened_values) for change in changes_between(a, b)]
    assert found == ([(f"{name} in 2 tasks", before, after)] if name else [])


def test_equal_changes_are_counted_and_the_most_frequent_come_first(tmp_path: Path) -> None:
    kind = {**TASK, **rubric({**POLITE, "text": "It is kind."}, BRIEF)}
    a = record(tmp_path / "a", [TASK] * 3)
    b = record(tmp_path / "b", [{**TASK, "query": "When?"}, kind, kind, TASK])
    assert [str(change) for change in changes_between(a, b)] == [
        "criterion polite, reworded in 2 tasks",
        "query, reworded in task t0",
    ]


def test_responses_with_other_texts_are_counted(tmp_path: Path) -> None:
    a = record(tmp_path / "a", [TASK] * 3)
    b = tmp_path / "b"
    with jg.Jury(**SETTINGS, record=b) as jury:
        for number, text in enumerate(["To Rome.", "To Bari.", "To Pisa."]):
            jury.score(jg.Task.model_validate({"id": f"t{number}", **TASK}), [text])
    (change,) = changes_between(a, b)
    assert str(change) == "2 responses, with other texts in 2 tasks"
    assert change.shortened_values == ("To Rome.", "To Bari.")


def test_a_rubric_of_the_config_is_named_once_as_that_of_the_tasks(tmp_path: Path) -> None:
    defaults = [{"rubric": {"criteria": [{**POLITE, "text": text}]}} for text in ("Kind.", "Mild.")]
    a, b = (
        record(tmp_path / name, [{"query": "Where?", **person()}], task_defaults=given)
        for name, given in zip("ab", defaults, strict=True)
    )
    assert [str(change) for change in changes_between(a, b)] == [
        "criterion polite, reworded in task t0"
    ]


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
    found = {str(change): change.shortened_values for change in changes_between(a, b)}
    assert found.pop("model") == ("old", "new")
    assert found.pop("rubric.kappa") == ("1.0", "0.5")
    assert list(found) == ["evaluator maths.length, added"]


def test_another_prompt_is_named_by_its_evaluator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = record(tmp_path / "a", [TASK])
    reworded = Criteria.prompt.model_copy(update={"version": "gentle"})
    monkeypatch.setattr(Criteria, "prompt", reworded)
    (change,) = changes_between(a, record(tmp_path / "b", [TASK]))
    assert change.what == "evaluators.criteria: code or prompt"
    before, after = change.shortened_values
    assert ("prompt gentle in" in before, "prompt gentle in" in after) == (False, True)


def test_long_wordings_are_cut_before_their_first_difference() -> None:
    start = "The answer names the day and the hour " * 4
    change = InputChange("criterion when, reworded", f"{start}of it.", f"{start}of all.\n" * 9)
    before, after = change.shortened_values
    assert before == "…the day and the hour of it."
    assert after.startswith("…the day and the hour of all. The answer")
    assert len(after) == 76


def test_erased_texts_are_no_change(tmp_path: Path) -> None:
    a = record(tmp_path / "a", [TASK])
    b = record(tmp_path / "b", [{**TASK, "query": "When?"}])
    erase(b, "task", "t0", "")
    assert changes_between(a, b) == []
