"""`jurygraph score` after a change: the run is refused with the difference; `--branch` requests only what changed."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import (
    CALL_LOGGING_EVALUATORS,
    LETTERS,
    LETTERS_CONFIG,
    Command,
    change_ledger,
    folder_contents,
    read_calls,
    run_command,
    traces,
    write_project,
)

ALL = [
    "better letter/a letter/b",
    "better letter/a letter/c",
    "better letter/b letter/c",
    "better note/a note/b",
    *(f"echo {name}" for name in ("letter/a", "letter/b", "letter/c", "note/a", "note/b")),
]
ABOUT_NOTE = [ALL[3], *ALL[7:]]
LONGER = "I am writing about the heating, which is off."


def tasks_with(edit: Callable[[list[dict[str, Any]]], object]) -> str:
    tasks = copy.deepcopy(LETTERS)
    edit(tasks)
    return "".join(json.dumps(task) + "\n" for task in tasks)


def other_query(tasks: list[dict[str, Any]]) -> None:
    tasks[1]["query"] = "Write a note to the neighbours, in French."


def other_text(tasks: list[dict[str, Any]]) -> None:
    tasks[0]["responses"][1]["text"] = LONGER


def other_data(tasks: list[dict[str, Any]]) -> None:
    tasks[0]["responses"][1]["data"] = {"from": "bob"}


def one_more(tasks: list[dict[str, Any]]) -> None:
    tasks[1]["responses"].append({"id": "note/c", "text": LONGER})


def one_less(tasks: list[dict[str, Any]]) -> None:
    del tasks[0]["responses"][2]


def other_agents(tasks: list[dict[str, Any]]) -> None:
    for task in tasks:
        for response in task["responses"]:
            response |= {"agent": "dora", "labels": {"gold": 1}}


def one_more_task(tasks: list[dict[str, Any]]) -> None:
    tasks.append({"id": "card", "query": "A card.", "responses": [{"id": "card/a", "text": "Get well soon, please."}]})


def other_order(tasks: list[dict[str, Any]]) -> None:
    tasks.reverse()
    tasks[1]["responses"].reverse()


ECHO_TWO, BETTER_TWO = (
    CALL_LOGGING_EVALUATORS.replace(f'@jg.evaluator(version="1"{rest}', f'@jg.evaluator(version="2"{rest}')
    for rest in (")\ndef echo", ', scope="pair"')
)
ANOTHER = f"{CALL_LOGGING_EVALUATORS}\n\ndef short(task, response):\n    note('short', response.id)\n    return 1.0\n"

CHANGES = {
    "nothing": ("jury.yaml", LETTERS_CONFIG, []),
    "a weight": ("jury.yaml", LETTERS_CONFIG.replace("0.7", "0.3"), []),
    "the failure rule": ("jury.yaml", f"{LETTERS_CONFIG}failure: {{rule: gear}}\n", []),
    "samples": (
        "jury.yaml",
        LETTERS_CONFIG.replace("manners.echo", "{use: manners.echo, samples: 2}"),
        [line for line in ALL if line.startswith("echo")],
    ),
    "one evaluator less": ("jury.yaml", "evaluators: [manners.better]\n", []),
    "one evaluator's version": ("manners.py", ECHO_TWO, [line for line in ALL if line.startswith("echo")]),
    "the other evaluator's version": ("manners.py", BETTER_TWO, [line for line in ALL if line.startswith("better")]),
    "a query": ("tasks.jsonl", tasks_with(other_query), ABOUT_NOTE),
    "a text": ("tasks.jsonl", tasks_with(other_text), [ALL[0], ALL[2], ALL[5]]),
    "a response's data": ("tasks.jsonl", tasks_with(other_data), [ALL[0], ALL[2], ALL[5]]),
    "one response more": (
        "tasks.jsonl",
        tasks_with(one_more),
        ["better note/a note/c", "better note/b note/c", "echo note/c"],
    ),
    "one response less": ("tasks.jsonl", tasks_with(one_less), []),
    "agents and labels": ("tasks.jsonl", tasks_with(other_agents), []),
    "one task more": ("tasks.jsonl", tasks_with(one_more_task), ["echo card/a"]),
    "the order of everything": ("tasks.jsonl", tasks_with(other_order), []),
}


@pytest.mark.parametrize(("name", "content", "expected_calls"), CHANGES.values(), ids=CHANGES)
@pytest.mark.exhaustive
def test_a_branch_requests_what_changed_and_equals_a_new_run(
    letters_folder: Path, run: Command, name: str, content: str, expected_calls: list[str]
):
    assert read_calls(letters_folder.parent) == ALL
    Path(name).write_text(content)
    ended = run("score", "tasks.jsonl", "--out", "new", "--branch", "run")
    assert ended.code == 0, ended.err
    assert read_calls(letters_folder.parent) == expected_calls
    anew = run("score", "tasks.jsonl", "--out", "anew")
    every = read_calls(letters_folder.parent)
    assert (
        f"verdicts: {len(every) - len(expected_calls)} reused from run, {len(expected_calls)} requested\n" in ended.err
    )
    assert ended.out == anew.out
    assert traces(run, Path("new")) == traces(run, Path("anew"))
    assert run("verify", "new", "--deep").code == 0


def test_only_a_changed_evaluator_is_called_again(letters_folder: Path, run: Command):
    read_calls(letters_folder.parent)
    Path("manners.py").write_text(ANOTHER)
    Path("jury.yaml").write_text("evaluators: [manners.echo, manners.better, manners.short]\nreward: {short: 1.0}\n")
    assert run("score", "tasks.jsonl", "--out", "new", "--branch", "run").code == 0
    assert {line.split()[0] for line in read_calls(letters_folder.parent)} == {"short"}


REFUSED = {
    "a weight": (
        "jury.yaml",
        LETTERS_CONFIG.replace("0.7", "0.3"),
        "config reward.better is 0.7 in the run and 0.3 here",
    ),
    "an evaluator's version": (
        "manners.py",
        ECHO_TWO,
        'evaluator manners.echo has version "1" in the run and "2" here',
    ),
    "an evaluator": ("jury.yaml", "evaluators: [manners.echo]\n", "evaluator manners.better has version"),
    "a query": (
        "tasks.jsonl",
        tasks_with(other_query),
        "task 'note', field query: is \"Write a note to the neighbours.\" in the run and "
        '"Write a note to the neighbours, in French." here',
    ),
    "a text": ("tasks.jsonl", tasks_with(other_text), "response 'letter/b' is another one now"),
    "one response more": ("tasks.jsonl", tasks_with(one_more), "response 'note/c' is new"),
    "one response less": ("tasks.jsonl", tasks_with(one_less), "response 'letter/c' is gone"),
    "one task more": ("tasks.jsonl", tasks_with(one_more_task), "task 'card' is new"),
}


@pytest.mark.parametrize(("name", "content", "message"), REFUSED.values(), ids=REFUSED)
def test_without_a_branch_the_run_is_refused_with_the_difference(
    letters_folder: Path, run: Command, name: str, content: str, message: str
):
    read_calls(letters_folder.parent)
    Path(name).write_text(content)
    before = folder_contents(letters_folder)
    ended = run("score", "tasks.jsonl", "--out", "run")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert "use another --out, or --branch to request only what changed" in ended.err
    assert ended.err.count("\n") == 1
    assert (folder_contents(letters_folder), read_calls(letters_folder.parent)) == (before, [])


def test_changed_agents_are_named_as_the_difference(letters_folder: Path, run: Command):
    Path("tasks.jsonl").write_text(tasks_with(other_agents))
    ended = run("score", "tasks.jsonl", "--out", "run")
    assert ended.code == 2
    assert "response 'letter/a'" in ended.err


def test_a_long_list_of_differences_is_shortened(letters_folder: Path, run: Command):
    tasks = [{**LETTERS[0], "id": f"t{i}", "responses": [{"id": f"r{i}", "text": "x"}]} for i in range(50)]
    Path("tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    ended = run("score", "tasks.jsonl", "--out", "run")
    assert "and more" in ended.err
    assert len(ended.err) < 1000


class TestWhatFailed:
    FAILING = CALL_LOGGING_EVALUATORS.replace(
        'note("echo", response.id)',
        'note("echo", response.id)\n    if Path(__file__).with_name("down").exists() and response.id == "letter/b":\n'
        '        raise ConnectionError("the service is down")',
    )

    def test_infrastructure_failures_are_requested_again(self, letters_folder: Path, run: Command):
        Path("manners.py").write_text(self.FAILING)
        Path("down").touch()
        assert run("score", "tasks.jsonl", "--out", "old").code == 3
        Path("down").unlink()
        read_calls(letters_folder.parent)
        assert run("score", "tasks.jsonl", "--out", "new", "--branch", "old").code == 0
        assert read_calls(letters_folder.parent) == ["echo letter/b"]
        assert traces(run, Path("new")) == traces(run, letters_folder)

    def test_failures_caused_by_the_response_are_kept(self, letters_folder: Path, run: Command):
        answer = "    return jg.Verdict(score=1 / 3"
        refusal = '    if "cold" in response.text:\n        return jg.Verdict.fail("cold", "brr", "response")\n'
        assert answer in CALL_LOGGING_EVALUATORS
        Path("manners.py").write_text(CALL_LOGGING_EVALUATORS.replace(answer, refusal + answer))
        assert run("score", "tasks.jsonl", "--out", "old").code in (0, 1)
        assert letters_folder.is_dir()
        read_calls(letters_folder.parent)
        run("score", "tasks.jsonl", "--out", "new", "--branch", "old")
        assert read_calls(letters_folder.parent) == []


class TestTheOldRun:
    def test_the_old_run_is_unchanged(self, letters_folder: Path, run: Command):
        before = folder_contents(letters_folder)
        Path("tasks.jsonl").write_text(tasks_with(other_text))
        run("score", "tasks.jsonl", "--out", "new", "--branch", "run")
        assert folder_contents(letters_folder) == before

    @pytest.mark.landing
    def test_the_old_run_is_not_needed_afterwards(self, letters_folder: Path, run: Command):
        run("score", "tasks.jsonl", "--out", "new", "--branch", "run")
        shutil.rmtree(letters_folder)
        for command in (("show", "new"), ("verify", "new", "--deep"), ("explain", "new", "--response", "letter/a")):
            assert run(*command).code == 0

    @pytest.mark.landing
    def test_verdicts_erased_in_the_old_run_are_requested_again(self, letters_folder: Path, run: Command):
        run("erase", "run", "--response", "letter/b")
        read_calls(letters_folder.parent)
        assert run("score", "tasks.jsonl", "--out", "new", "--branch", "run").code == 0
        assert read_calls(letters_folder.parent) == [ALL[0], ALL[2], ALL[5]]
        run("erase", "run", "--task", "letter")
        assert run("score", "tasks.jsonl", "--out", "newer", "--branch", "run").code == 0
        expected_calls = read_calls(letters_folder.parent)
        assert [line for line in expected_calls if "note" not in line] == [
            line for line in ALL if line not in ABOUT_NOTE
        ]
        assert len([line for line in expected_calls if "note" in line]) == 2, (
            "the copy in the other task was erased as well"
        )

    def test_a_rescored_run_can_be_branched_from(self, letters_folder: Path, run: Command):
        run("rescore", "run", "--out", "again", "--set", "scale=2")
        read_calls(letters_folder.parent)
        assert run("score", "tasks.jsonl", "--out", "new", "--branch", "again").code == 0
        assert read_calls(letters_folder.parent) == []
        assert traces(run, Path("new")) == traces(run, letters_folder)

    def test_a_stopped_run_gives_the_verdicts_that_it_has(self, letters_folder: Path, run: Command):
        run("score", "tasks.jsonl", "--out", "part", "--limit", 1)
        read_calls(letters_folder.parent)
        assert run("score", "tasks.jsonl", "--out", "new", "--branch", "part").code == 0
        assert read_calls(letters_folder.parent) == ABOUT_NOTE

    @pytest.mark.parametrize("statement", ["UPDATE records SET body = replace(body, '0.3333', '0.9333')"])
    def test_a_run_with_a_changed_verdict_cannot_be_branched_from(
        self, letters_folder: Path, run: Command, statement: str
    ):
        change_ledger(letters_folder, f"{statement} WHERE key = 'letter/b'")
        ended = run("score", "tasks.jsonl", "--out", "new", "--branch", "run")
        assert (ended.code, ended.out) == (5, "")
        assert "(trace 'letter/b')" in ended.err

    def test_a_run_with_a_changed_reason_cannot_be_branched_from(self, letters_folder: Path, run: Command):
        change_ledger(
            letters_folder,
            "UPDATE texts SET content = CAST(replace(CAST(content AS TEXT), 'it says', 'it sings') AS BLOB)",
        )
        ended = run("score", "tasks.jsonl", "--out", "new", "--branch", "run")
        assert (ended.code, ended.out) == (5, "")

    @pytest.mark.parametrize("old", ["nowhere", ".", "tasks.jsonl"])
    def test_a_folder_that_is_not_a_run_is_refused(self, letters_folder: Path, run: Command, old: str):
        before = folder_contents(letters_folder.parent)
        ended = run("score", "tasks.jsonl", "--out", "new", "--branch", old)
        assert (ended.code, ended.out) == (2, "")
        assert f"error: {old}: " in ended.err
        assert not Path("new").exists()
        assert {name for name in folder_contents(letters_folder.parent) if "__pycache__" not in name} == {
            name for name in before if "__pycache__" not in name
        }

    def test_a_run_cannot_branch_from_itself(self, letters_folder: Path, run: Command):
        before = folder_contents(letters_folder)
        ended = run("score", "tasks.jsonl", "--out", "run", "--branch", "run")
        assert (ended.code, ended.out) == (2, "")
        assert folder_contents(letters_folder) == before


class TestTheBranch:
    @pytest.mark.landing
    def test_a_branch_resumes_with_the_same_command(self, letters_folder: Path, run: Command):
        Path("tasks.jsonl").write_text(tasks_with(other_text))
        command = ("score", "tasks.jsonl", "--out", "new", "--branch", "run")
        assert run(*command, "--limit", 1).code == 0
        read_calls(letters_folder.parent)
        ended = run(*command)
        assert "1 tasks are scored already" in ended.err
        assert read_calls(letters_folder.parent) == []
        run("score", "tasks.jsonl", "--out", "anew")
        assert traces(run, Path("new")) == traces(run, Path("anew"))
        assert "is complete; nothing to do" in run(*command).err

    @pytest.mark.landing
    def test_a_branch_does_not_resume_without_or_from_another_run(self, letters_folder: Path, run: Command):
        assert letters_folder.is_dir()
        run("score", "tasks.jsonl", "--out", "other")
        run("score", "tasks.jsonl", "--out", "new", "--branch", "run", "--limit", 1)
        for command in ((), ("--branch", "other")):
            ended = run("score", "tasks.jsonl", "--out", "new", *command)
            assert (ended.code, ended.out) == (2, "")
            assert "branched from ../run" in ended.err or "branched from run" in ended.err

    def test_json_is_the_only_output(self, letters_folder: Path, run: Command):
        assert letters_folder.is_dir()
        ended = run("score", "tasks.jsonl", "--out", "new", "--branch", "run", "--json")
        assert json.loads(ended.out)["verdicts"]["judged"] == 9

    def test_a_dry_run_counts_the_questions_left_and_writes_nothing(self, letters_folder: Path, run: Command):
        read_calls(letters_folder.parent)
        Path("tasks.jsonl").write_text(tasks_with(other_text))
        ended = run("score", "tasks.jsonl", "--out", "new", "--branch", "run", "--dry-run", "--json")
        assert (ended.code, read_calls(letters_folder.parent), Path("new").exists()) == (0, [], False)
        assert json.loads(ended.out)["verdicts"] == 3

    def test_a_branch_can_be_inside_the_old_run(self, letters_folder: Path, run: Command):
        assert run("score", "tasks.jsonl", "--out", letters_folder / "next", "--branch", letters_folder).code == 0
        for folder in (letters_folder, letters_folder / "next"):
            assert run("verify", folder).code == 0

    def test_a_branch_of_a_branch_reuses_every_verdict(self, letters_folder: Path, run: Command):
        for old, new in (("run", "second"), ("second", "third")):
            assert run("score", "tasks.jsonl", "--out", new, "--branch", old).code == 0
        assert read_calls(letters_folder.parent) == ALL
        assert traces(run, Path("third")) == traces(run, letters_folder)

    def test_a_branch_refuses_an_unknown_model(self, letters_folder: Path, run: Command):
        assert letters_folder.is_dir()
        ended = run("score", "tasks.jsonl", "--out", "new", "--branch", "run", "--model", "gpt")
        assert ended.code == 2
        assert not Path("new").exists()


def test_a_folder_of_any_name_can_be_branched_from(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    project = write_project(tmp_path / "my project", LETTERS, LETTERS_CONFIG, CALL_LOGGING_EVALUATORS)
    monkeypatch.chdir(project)
    for name in ("my run", "-run"):
        assert run("score", "tasks.jsonl", f"--out={name}").code == 0
        read_calls(project)
        assert run("score", "tasks.jsonl", f"--out={name} 2", f"--branch={name}").code == 0
        assert read_calls(project) == []


def test_a_branch_works_from_another_folder(letters_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read_calls(letters_folder.parent)
    monkeypatch.chdir(tmp_path)
    ended = run_command("score", "letters/tasks.jsonl", "--out", "new", "--branch", "letters/run")
    assert ended.code == 0, ended.err
    assert "verdicts: 9 reused from letters/run, 0 requested" in ended.err
