"""A branch requests only what changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from tests.graphs.scripted import ScriptedEvaluator
from tests.runs.sample_runs import (
    FULL_CONFIG,
    REQUESTED,
    SIMPLE_CONFIG,
    evaluator_config,
    make_tasks,
    score,
    trace_contents,
    traces_of,
    verify_run,
    write_tasks,
)
from tests.runs.store.test_ledger import execute_sql
from tests.runs.workflows.test_rescoring import rescore_run


def requests_of_branch(
    old: Path, new: Path, tasks: Path, config: dict[str, Any]
) -> list[tuple[str, tuple[str, ...], int]]:
    """Score a branch and return its requests; the new run must equal one scored from scratch."""
    score(new, tasks, config, branch=old)
    requests = list(REQUESTED)
    score(new.parent / "from nothing", tasks, config)
    assert trace_contents(new) == trace_contents(new.parent / "from nothing")
    verify_run(new)
    return requests


@pytest.mark.parametrize("config", [SIMPLE_CONFIG, FULL_CONFIG], ids=["plain", "rich"])
def test_without_changes_nothing_is_requested(
    request: Any, tmp_path: Path, tasks: Path, config: dict
) -> None:
    old = request.getfixturevalue("plain" if config is SIMPLE_CONFIG else "rich")
    assert requests_of_branch(old, tmp_path / "new", tasks, config) == []


def test_another_version_of_an_evaluator_requests_only_its_questions(
    rich: Path, tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ScriptedEvaluator,
        "version",
        property(lambda self: "2" if self.name == "same" else "1"),
        raising=False,
    )
    requests = requests_of_branch(rich, tmp_path / "new", tasks, FULL_CONFIG)
    assert {question for question, _, _ in requests} == {"same"}
    assert len(requests) == 12


def test_only_an_additional_sample_is_requested(plain: Path, tmp_path: Path) -> None:
    given = make_tasks()
    for line in given:
        for response in line["responses"]:
            if response["data"]["tone"] != "abstained":
                response["data"]["tone"].append(0.5)
    tasks = write_tasks(tmp_path / "given", given)
    score(tmp_path / "old", tasks)
    config = {
        **SIMPLE_CONFIG,
        "evaluators": [evaluator_config("tone", samples=3), *SIMPLE_CONFIG["evaluators"][1:]],
    }
    requests = requests_of_branch(tmp_path / "old", tmp_path / "new", tasks, config)
    assert {(question, sample) for question, _, sample in requests} == {("tone", 2)}


def test_a_new_evaluator_and_a_condition_that_now_holds_are_requested(
    plain: Path, tmp_path: Path, tasks: Path
) -> None:
    late = evaluator_config("late", when={"question": "same", "threshold": 0.0})
    evaluators = [*SIMPLE_CONFIG["evaluators"][1:2], late, evaluator_config("place", scope="group")]
    config = {
        "evaluators": evaluators,
        "reward": {"same": 0.5, "place": 1.0},
        "failure": {"rule": "gear"},
    }
    requests = requests_of_branch(plain, tmp_path / "new", tasks, config)
    held_back = [
        t for t in traces_of(plain) if any(v.status == "not_applicable" for v in t.verdicts)
    ]
    found = {about for question, about, _ in requests if question == "late"}
    assert found == {(trace.response_id,) for trace in held_back}
    assert [question for question, _, _ in requests if question != "late"] == ["place"] * 4


def test_a_verdict_that_is_not_applicable_is_reused(tmp_path: Path) -> None:
    given = make_tasks()
    for line in given:
        line["responses"][0]["data"]["same"] = {
            "status": "not_applicable",
            "reason": "no number is needed",
        }
    tasks = write_tasks(tmp_path, given)
    score(tmp_path / "old", tasks)
    assert requests_of_branch(tmp_path / "old", tmp_path / "new", tasks, SIMPLE_CONFIG) == []
    reasons = {
        v.reason for t in traces_of(tmp_path / "new") for v in t.verdicts if v.question == "same"
    }
    assert "no number is needed" in reasons


def test_a_changed_response_is_requested_with_its_pairs_and_group(
    rich: Path, tmp_path: Path
) -> None:
    given = make_tasks()
    given[1]["responses"][0]["text"] = "another text altogether"
    requests = requests_of_branch(rich, tmp_path / "new", write_tasks(tmp_path, given), FULL_CONFIG)
    assert all("t1/r0" in shown for _, shown, _ in requests)
    assert {question for question, _, _ in requests} >= {"tone", "rank", "place"}


def test_only_a_changed_task_is_requested(rich: Path, tmp_path: Path) -> None:
    given = make_tasks()
    given[2]["query"] = "Another question?"
    requests = requests_of_branch(rich, tmp_path / "new", write_tasks(tmp_path, given), FULL_CONFIG)
    assert {shown[0][:2] for _, shown, _ in requests} == {"t2"}


def without_a_response(given: list[dict[str, Any]]) -> None:
    del given[0]["responses"][1]


def with_other_labels_in_another_order(given: list[dict[str, Any]]) -> None:
    for line in given:
        for response in line["responses"]:
            response |= {"agent": "dora", "labels": {"gold": 1}}
    given.reverse()
    given[1]["responses"].reverse()


@pytest.mark.parametrize("change", [without_a_response, with_other_labels_in_another_order])
def test_what_changes_no_question_requests_nothing(
    plain: Path, tmp_path: Path, change: Callable[[list[dict[str, Any]]], None]
) -> None:
    given = make_tasks()
    change(given)
    assert (
        requests_of_branch(plain, tmp_path / "new", write_tasks(tmp_path, given), SIMPLE_CONFIG)
        == []
    )


def test_branches_and_rescored_runs_can_be_branched_from(
    plain: Path, tmp_path: Path, tasks: Path
) -> None:
    score(tmp_path / "second", tasks, branch=plain)
    rescore_run(plain, tmp_path / "rescored", "scale=2")
    for old in ("second", "rescored"):
        score(tmp_path / f"from {old}", tasks, branch=tmp_path / old)
        assert REQUESTED == []
        assert trace_contents(tmp_path / f"from {old}") == trace_contents(plain)
    origin = Run.open(tmp_path / "second").header.branch
    assert origin is not None
    assert (origin.run, origin.folder) == (Run.open(plain).id, "../plain")


def test_a_stopped_run_gives_the_verdicts_that_it_has(tmp_path: Path, tasks: Path) -> None:
    score(tmp_path / "part", tasks, limit=2)
    requests = requests_of_branch(tmp_path / "part", tmp_path / "new", tasks, SIMPLE_CONFIG)
    assert {shown[0][:2] for _, shown, _ in requests} == {"t2", "t3"}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = replace(body, '0.', '1.') WHERE key = 't1/r1'",
        "UPDATE texts SET content = CAST(replace(CAST(content AS TEXT), 'same', 'other') AS BLOB)",
    ],
    ids=["a verdict", "a reason"],
)
def test_a_changed_run_cannot_be_branched_from(
    plain: Path, tmp_path: Path, tasks: Path, statement: str
) -> None:
    execute_sql(plain / "run.sqlite", statement)
    with pytest.raises(TraceMismatch, match=r"differs from what was written"):
        score(tmp_path / "new", tasks, branch=plain)


def test_a_branch_can_be_interrupted_and_resumed(rich: Path, tmp_path: Path, tasks: Path) -> None:
    config = {**FULL_CONFIG, "reward": {"rubric": 1.0}}
    with pytest.raises(KeyboardInterrupt):
        score(tmp_path / "new", tasks, config, branch=rich, stop_after=2)
    scored = score(tmp_path / "new", tasks, config, branch=rich)
    assert REQUESTED == []
    assert scored.summary.responses == 12


def test_infrastructure_failures_are_requested_again(tmp_path: Path) -> None:
    given = make_tasks()
    given[1]["responses"][1]["data"]["same"] = "infrastructure"
    given[1]["responses"][2]["data"]["same"] = "response"
    tasks = write_tasks(tmp_path / "given", given)
    score(tmp_path / "old", tasks)
    requests = requests_of_branch(tmp_path / "old", tmp_path / "new", tasks, SIMPLE_CONFIG)
    assert requests == [("same", ("t1/r1",), 0)]


def test_erased_verdicts_are_not_carried_over(rich: Path, tmp_path: Path, tasks: Path) -> None:
    erase(rich, "response", "t1/r0", "")
    score(tmp_path / "new", tasks, FULL_CONFIG, branch=rich)
    score(tmp_path / "from nothing", tasks, FULL_CONFIG)
    assert trace_contents(tmp_path / "new") == trace_contents(tmp_path / "from nothing")
