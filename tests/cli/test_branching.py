"""`jurygraph score --branch` after a change: it requests only what changed, and needs the old run no longer.

What a change requests is tested in `tests/runs/workflows/test_branch.py`.
"""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import LETTERS, Command, folder_contents, read_calls
from tests.cli.test_templates import answer_anything
from tests.models.server import run_server
from tests.rows import all_rows

ABOUT_OTHER_TEXT = ["better letter/a letter/b", "better letter/b letter/c", "echo letter/b"]


def change_a_text() -> None:
    tasks = copy.deepcopy(LETTERS)
    tasks[0]["responses"][1]["text"] = "I am writing about the heating, which is off."
    Path("tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))


def test_a_branch_requests_what_changed_and_prints_what_a_new_run_prints(
    letters_folder: Path, run: Command
):
    read_calls(letters_folder.parent)
    before = folder_contents(letters_folder)
    change_a_text()
    command = ("score", "tasks.jsonl", "--out", "new", "--branch", "run")
    dry = run(*command, "--dry-run", "--json")
    assert (json.loads(dry.out)["verdicts"], "reused" in dry.err) == (3, False)
    assert not Path("new").exists()
    again = (
        "decided anew: 2 of manners.better (better 2)\ndecided anew: 1 of manners.echo (echo 1)\n"
    )
    assert f"\nverdicts reused from run: 6\n{again}" in run(*command, "--dry-run").out
    assert read_calls(letters_folder.parent) == []
    ended = run(*command)
    assert (ended.code, "verdicts: 6 reused from run, 3 decided anew\n" in ended.err) == (0, True)
    assert read_calls(letters_folder.parent) == ABOUT_OTHER_TEXT
    into_itself = run("score", "tasks.jsonl", "--out", "run", "--branch", "run")
    assert (into_itself.code, "--branch: is the run of --out" in into_itself.err) == (2, True)
    assert folder_contents(letters_folder) == before, "the old run stays"
    assert ended.out == run("score", "tasks.jsonl", "--out", "anew").out
    shutil.rmtree(letters_folder)
    for reading in (
        ("show", "new"),
        ("verify", "new", "--deep"),
        ("explain", "new", "--response", "letter/a"),
    ):
        assert run(*reading).code == 0, "the old run is not needed afterwards"


@all_rows(
    ("change", "reused", "again"),
    [
        ({"weight": 2.0}, 4, "nothing"),
        ({"text": "It is very kind."}, 2, "2 of criteria (kind 2)"),
        ({"id": "friendly"}, 2, "2 of criteria (friendly 2)"),
    ],
)
def test_a_dry_run_says_which_criteria_are_requested_again(
    change: dict[str, Any], reused: int, again: str, tmp_path: Path, run: Command
) -> None:
    folder = tmp_path / next(iter(change))
    folder.mkdir()
    criteria = [
        {"id": "kind", "text": "It is kind.", "weight": 1.0},
        {"id": "short", "text": "It is short.", "weight": 1.0},
    ]
    responses = [{"id": "a", "text": "Dear Ann."}, {"id": "b", "text": "Ann!"}]
    task = {"id": "t", "query": "Write.", "rubric": {"criteria": criteria}, "responses": responses}
    for file, first in {"old.jsonl": {}, "new.jsonl": change}.items():
        rubric = {"criteria": [criteria[0] | first, criteria[1]]}
        (folder / file).write_text(json.dumps(task | {"rubric": rubric}))
    with run_server(answer_anything) as server:
        model = f"openai-compatible:{server.url}#tiny"
        config = {"evaluators": ["criteria"], "model": model, "calls": {"cache": False}}
        (folder / "jury.yaml").write_text(json.dumps(config))
        command = ("score", "--config", folder / "jury.yaml")
        assert run(*command, folder / "old.jsonl", "--out", folder / "run").code == 0
        branch = ("--out", folder / "new", "--branch", folder / "run")
        dry = run(*command, folder / "new.jsonl", *branch, "--dry-run")
        assert server.count == 2
    assert f"run: {reused}\ndecided anew: {again}\n" in dry.out


def test_a_dry_run_counts_only_verdicts_of_judges_that_are_still_asked(
    tmp_path: Path, run: Command
) -> None:
    """The empty response is stopped by a gate, so that no judge is asked about it."""
    texts = {"a": "Dear Ann.", "b": "Ann!", "empty": ""}
    responses = [{"id": name, "text": text} for name, text in texts.items()]
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "t", "query": "Write.", "responses": responses}))
    with run_server(answer_anything) as server:

        def command(out: str, judges: str, *more: object) -> tuple[object, ...]:
            models = {name: f"openai-compatible:{server.url}#{name}" for name in judges}
            params = {"criteria": {"kind": "It is kind."}}
            evaluator = {"use": "criteria", "params": params, "judges": list(judges)}
            config = tmp_path / f"{out}.yaml"
            config.write_text(json.dumps({"models": models, "evaluators": [evaluator]}))
            return ("score", tasks, "--config", config, "--out", tmp_path / out, *more)

        assert run(*command("run", "abc")).code == 0
        for judges, reused, again in (
            ("ab", 4, "nothing"),
            ("abd", 4, "2 of criteria (kind 2)"),
        ):
            branch = command(f"new-{judges}", judges, "--branch", tmp_path / "run")
            dry = run(*branch, "--dry-run")
            assert f"run: {reused}\ndecided anew: {again}\n" in dry.out
            assert f"{reused} reused from" in run(*branch).err


def test_a_branch_resumes_with_the_same_command_alone(letters_folder: Path, run: Command):
    assert letters_folder.is_dir()
    command = ("score", "tasks.jsonl", "--out", "new")
    assert run(*command, "--branch", "run", "--limit", 1).code == 0
    ended = run(*command)
    assert (ended.code, ended.out, "branched from ../run" in ended.err) == (2, "", True)
    assert "1 tasks are scored already" in run(*command, "--branch", "run").err


def test_what_is_no_other_run_is_refused(letters_folder: Path, run: Command):
    before = folder_contents(letters_folder)
    for old in ("nowhere", ".", "tasks.jsonl"):
        ended = run("score", "tasks.jsonl", "--out", "new", "--branch", old)
        assert (ended.code, ended.out) == (2, "")
        assert f"error: {old}: " in ended.err
        assert not Path("new").exists()
    ended = run("score", "tasks.jsonl", "--out", "run", "--branch", "run")
    assert (ended.code, ended.out) == (2, "")
    assert folder_contents(letters_folder) == before


READING_MODULE = """
from pathlib import Path

import jurygraph as jg


class Listed(jg.Evaluator):
    reads = ("orders",)

    def __init__(self, orders: str = "orders.txt") -> None:
        self.orders = Path(orders).read_text().split()

    def answer(self, inputs: jg.EvaluatorInput) -> jg.Verdict:
        found = inputs.response.text in self.orders
        return jg.Verdict(score=found, evidence=(jg.Evidence(quote="an order"),))


@jg.evaluator(reads=("names",))
def named(task: jg.TaskView, response: jg.Response, names: str) -> bool:
    return response.text in Path(names).read_text()


def brief(task: jg.TaskView, response: jg.Response) -> bool:
    return len(response.text) < 9
"""


def test_a_file_that_an_evaluator_reads_is_part_of_its_version(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jury").mkdir()
    (tmp_path / "jury/listing.py").write_text(READING_MODULE)
    orders = tmp_path / "jury/orders.txt"
    orders.write_text("A1 A2")
    (tmp_path / "jury/names.txt").write_text("A1")
    config = tmp_path / "jury/jury.yaml"
    config.write_text(
        "evaluators: [listing.Listed, {use: listing.named, params: {names: names.txt}}, listing.brief]\n"
        "reward: {Listed: 1, named: 1, brief: 1}\n"
    )
    responses = [{"id": "a", "text": "A1"}, {"id": "b", "text": "A2"}]
    tasks = [{"id": "t", "query": "Which order?", "responses": responses}]
    (tmp_path / "tasks.jsonl").write_text(json.dumps(tasks[0]) + "\n")
    monkeypatch.chdir(tmp_path)
    command = ("score", "tasks.jsonl", "--config", "jury/jury.yaml", "--out")
    assert run(*command, "first").code == 0
    orders.write_text("A1")
    refused = run(*command, "first")
    assert refused.code == 2
    assert "evaluator listing.Listed has version" in refused.err
    assert "reads orders" in refused.err
    assert "because a file that it reads has changed" in run("verify", "first", "--deep").err
    branched = run(*command, "second", "--branch", "first")
    assert "4 reused from first, 2 decided anew" in branched.err
    assert "unsupported: 2 verdicts with a quotation that is not in the response" in branched.out
    orders.unlink()
    assert "jury/orders.txt: there is no such file" in run(*command, "third").err
