"""A branch asks just what changed."""

from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from tests.graphs.cast import Told
from tests.runs.made import ASKED, PLAIN, RICH, checked, contents, counted, lines, score, write_tasks


def branched(old: Path, new: Path, tasks: Path, config: dict[str, Any]) -> list[tuple[str, tuple[str, ...], int]]:
    """What was asked on the way; the new run is what scoring from nothing gives."""
    score(new, tasks, config, branch=old)
    asked = list(ASKED)
    score(new.parent / "from nothing", tasks, config)
    assert contents(new) == contents(new.parent / "from nothing")
    checked(new)
    return asked


@pytest.mark.parametrize("config", [PLAIN, RICH], ids=["plain", "rich"])
def test_where_nothing_changed_nothing_is_asked(request: Any, tmp_path: Path, tasks: Path, config: dict) -> None:
    old = request.getfixturevalue("plain" if config is PLAIN else "rich")
    assert branched(old, tmp_path / "new", tasks, config) == []


def test_other_weights_ask_nothing(rich: Path, tmp_path: Path, tasks: Path) -> None:
    assert branched(rich, tmp_path / "new", tasks, {**RICH, "reward": {"rubric": 1.0, "rank": 3.0}}) == []


def test_another_version_of_an_evaluator_asks_its_questions_alone(
    rich: Path, tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Told, "version", property(lambda self: "2" if self.name == "same" else "1"), raising=False)
    asked = branched(rich, tmp_path / "new", tasks, RICH)
    assert {question for question, _, _ in asked} == {"same"}
    assert len(asked) == 12


def test_a_new_evaluator_is_asked_alone(plain: Path, tmp_path: Path, tasks: Path) -> None:
    config = {**PLAIN, "evaluators": [*PLAIN["evaluators"], counted("place", scope="group")]}
    asked = branched(plain, tmp_path / "new", tasks, {**config, "reward": {**PLAIN["reward"], "place": 1.0}})
    assert [question for question, _, _ in asked] == ["place"] * 4


def test_another_sample_is_asked_beside_those_that_are_there(plain: Path, tmp_path: Path) -> None:
    given = lines()
    for line in given:
        for response in line["responses"]:
            if response["data"]["tone"] != "abstained":
                response["data"]["tone"].append(0.5)
    tasks = write_tasks(tmp_path / "given", given)
    score(tmp_path / "old", tasks)
    config = {**PLAIN, "evaluators": [counted("tone", samples=3), *PLAIN["evaluators"][1:]]}
    asked = branched(tmp_path / "old", tmp_path / "new", tasks, config)
    assert {(question, sample) for question, _, sample in asked} == {("tone", 2)}


def test_a_gate_that_opens_asks_what_it_held_back(plain: Path, tmp_path: Path, tasks: Path) -> None:
    config = {
        **PLAIN,
        "evaluators": [*PLAIN["evaluators"][:2], counted("late", when={"question": "same", "threshold": 0.0})],
    }
    asked = branched(plain, tmp_path / "new", tasks, config)
    assert {question for question, _, _ in asked} == {"late"}
    held_back = [t for t in Run.open(plain).traces() if any(v.status == "not_applicable" for v in t.verdicts)]
    assert {about for _, (about,), _ in asked} == {trace.response_id for trace in held_back}


def test_a_changed_response_is_asked_about_with_all_that_it_stands_beside(rich: Path, tmp_path: Path) -> None:
    given = lines()
    given[1]["responses"][0]["text"] = "another text altogether"
    asked = branched(rich, tmp_path / "new", write_tasks(tmp_path, given), RICH)
    assert all("t1/r0" in shown for _, shown, _ in asked)
    assert {question for question, _, _ in asked} >= {"tone", "rank", "place"}


def test_a_changed_task_is_asked_about_and_the_others_are_not(rich: Path, tmp_path: Path) -> None:
    given = lines()
    given[2]["query"] = "Another question?"
    asked = branched(rich, tmp_path / "new", write_tasks(tmp_path, given), RICH)
    assert {shown[0][:2] for _, shown, _ in asked} == {"t2"}


def test_new_tasks_and_responses_are_asked_about(plain: Path, tmp_path: Path) -> None:
    asked = branched(plain, tmp_path / "new", write_tasks(tmp_path, lines(tasks=5)), PLAIN)
    assert {shown[0] for _, shown, _ in asked} == {"t4/r0", "t4/r1", "t4/r2"}


def test_the_branch_names_where_it_came_from(plain: Path, tmp_path: Path, tasks: Path) -> None:
    score(tmp_path / "new", tasks, branch=plain)
    origin = Run.open(tmp_path / "new").header.branch
    assert origin is not None
    assert (origin.run, origin.folder, origin.head) == (
        Run.open(plain).id,
        "../plain",
        Run.open(plain).ledger.head.hex(),
    )


def test_a_branch_can_be_interrupted_and_resumed(rich: Path, tmp_path: Path, tasks: Path) -> None:
    config = {**RICH, "reward": {"rubric": 1.0}}
    with pytest.raises(KeyboardInterrupt):
        score(tmp_path / "new", tasks, config, branch=rich, stop_after=2)
    session = score(tmp_path / "new", tasks, config, branch=rich)
    assert ASKED == []
    assert session.summary.responses == 12


def test_what_failed_by_our_own_trouble_is_asked_again(tmp_path: Path) -> None:
    given = lines()
    given[1]["responses"][1]["data"]["same"] = "infrastructure"
    given[1]["responses"][2]["data"]["same"] = "response"
    tasks = write_tasks(tmp_path / "given", given)
    score(tmp_path / "old", tasks)
    asked = branched(tmp_path / "old", tmp_path / "new", tasks, PLAIN)
    assert asked == [("same", ("t1/r1",), 0)]


def test_what_was_erased_is_never_carried_over(rich: Path, tmp_path: Path, tasks: Path) -> None:
    erase(rich, "response", "t1/r0", "")
    score(tmp_path / "new", tasks, RICH, branch=rich)
    score(tmp_path / "from nothing", tasks, RICH)
    assert contents(tmp_path / "new") == contents(tmp_path / "from nothing")
