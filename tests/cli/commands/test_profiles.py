"""`jurygraph profiles`, and `score` with its file: profiles in text are read, edited and shown."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.parser import (
    ANN,
    BEN,
    NEEDS,
    asks_about_tensions,
    constraint,
    constraints_reply,
    fenced_text,
    parser_script,
    settings,
    tension,
    trip,
)
from tests.cli.conftest import Command, CommandResult, folder_contents
from tests.models.server import Answer, Server, run_server, status

TENSIONS = [tension(1, 2, "high", "stakeholder_1 loves the sea, and it is dear")]
CALLS = 6
"""What the two tasks of the project need: one for each profile, and one for what pulls them apart."""


FOUND = """\
task  stakeholder  constraint                           quote                                  kind       α
────  ───────────  ───────────────────────────────────  ─────────────────────────────────────  ────  ──────
t0    ann          c1: No nuts are served.              I am allergic to nuts                  hard  1.5000
t0    ann          c2: It is near the sea.              I would love to be near the sea        soft  1.0000
t0    ben          c1: A night costs 90 euros at most.  cannot pay more than 90 euros a night  hard  1.0000
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(parser_script(tensions=TENSIONS)) as running:
        yield running


class Project:
    """A project in a folder, and the commands on it."""

    def __init__(self, folder: Path, run: Command) -> None:
        self.folder, self._run = folder, run
        self.write([self.line(f"t{t}", ANN, BEN) for t in range(2)])

    @staticmethod
    def line(name: str, *profiles: str, **fields: Any) -> dict[str, Any]:
        task = trip(*profiles, name=name, query=f"Plan {name}.", **fields).model_dump(mode="json")
        return {
            **task,
            "responses": [{"id": f"{name}/a", "text": "A plan.", "data": {"kind@ann": 1.0, "kind@ben": 0.5}}],
        }

    def write(self, lines: list[dict[str, Any]], name: str = "tasks.jsonl") -> Path:
        (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return self.folder / name

    def write_config(self, url: str, **fields: Any) -> "Project":
        fields.setdefault("calls", {"cache": True})
        (self.folder / "jury.yaml").write_text(json.dumps(settings(url, **fields)))
        return self

    def profiles(self, *more: object) -> CommandResult:
        return self._run("profiles", self.folder / "tasks.jsonl", "--out", self.folder / "profiles.jsonl", *more)

    def score(self, name: str, *more: object) -> CommandResult:
        return self._run("score", self.folder / "tasks.jsonl", "--out", self.folder / name, *more)

    @property
    def by_hand(self) -> tuple[str, Path]:
        return "--profiles-from", self.folder / "profiles.jsonl"

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "profiles.jsonl").read_text().splitlines()]


@pytest.fixture
def project(tmp_path: Path, run: Command) -> Project:
    return Project(tmp_path, run)


class TestWritten:
    def test_the_line_of_a_task_has_everything_that_a_person_needs_to_edit_it(self, project: Project, server: Server):
        ended = project.write_config(server.url).profiles()
        assert (ended.code, server.count) == (0, CALLS)
        assert project.lines[0] == {
            "task": "t0",
            "stakeholders": [
                {
                    "id": "ann",
                    "profile": ANN,
                    "constraints": [
                        {
                            "id": "c1",
                            "text": "No nuts are served.",
                            "kind": "hard",
                            "restrictiveness": 1.5,
                            "quote": "I am allergic to nuts",
                        },
                        {
                            "id": "c2",
                            "text": "It is near the sea.",
                            "kind": "soft",
                            "restrictiveness": 1.0,
                            "quote": "I would love to be near the sea",
                        },
                    ],
                },
                {
                    "id": "ben",
                    "profile": BEN,
                    "constraints": [
                        {
                            "id": "c1",
                            "text": "A night costs 90 euros at most.",
                            "kind": "hard",
                            "restrictiveness": 1.0,
                            "quote": "cannot pay more than 90 euros a night",
                        }
                    ],
                },
            ],
            "tensions": [{"between": ["ann", "ben"], "strength": 1.5, "reason": "ann loves the sea, and it is dear"}],
        }
        assert [line["task"] for line in project.lines] == ["t0", "t1"]
        before = (project.folder / "profiles.jsonl").read_bytes()
        again = project.profiles()
        assert (again.code, server.count) == (0, CALLS), "the same command sends nothing"
        assert "requests: none by this command" in again.out
        assert (project.folder / "profiles.jsonl").read_bytes() == before

    def test_the_result_is_a_table_with_tensions_and_dropped_constraints(self, project: Project):
        invented = constraint("I love ghosts", "There are ghosts.")
        with run_server(parser_script({**NEEDS, BEN: [*NEEDS[BEN], invented]}, TENSIONS)) as server:
            ended = project.write_config(server.url).profiles()
        assert ended.out.startswith(FOUND)
        assert "t0: tension between ann and ben: 1.5000, ann loves the sea, and it is dear" in ended.out
        why = "“There are ghosts.” rests on “I love ghosts”, which does not stand in the profile"
        assert f"t1: dropped of ben: {why}" in ended.out
        assert "2 tasks written, 0 omitted" in ended.err
        assert f"next: jurygraph score {project.folder}/tasks.jsonl --profiles-from" in ended.err
        found = json.loads(project.profiles("--json").out)
        assert found["profiles_file"] == str(project.folder / "profiles.jsonl")
        assert [one["task"] for one in found["profiles"]] == ["t0", "t1"]
        assert found["profiles"][0]["by"] == {"ann": "tiny, prompt profile 2", "ben": "tiny, prompt profile 2"}
        assert found["profiles"][0]["stakeholders"][1]["constraints"][0]["kind"] == "hard"
        assert (found["left_out"], found["requests"]["number"]) == ([], 0)


class TestNotWritten:
    def test_a_config_without_a_model_is_refused(self, project: Project, server: Server):
        project.write_config(server.url)
        ended = project.profiles("--model", "none")
        assert (ended.code, ended.out) == (2, "")
        assert "error: model: none answers nothing; name one in the config or with --model" in ended.err
        assert not (project.folder / "profiles.jsonl").exists()

    def test_a_task_that_cannot_be_read_is_omitted_and_named(self, project: Project):
        read = parser_script(tensions=TENSIONS)

        def script(body: dict[str, Any], number: int) -> Answer:
            odd = fenced_text(body, "task") == "Plan t0." and not asks_about_tensions(body)
            return constraints_reply() if odd and fenced_text(body, "profile") == BEN else read(body, number)

        with run_server(script) as server:
            ended = project.write_config(server.url).profiles()
        assert ended.code == 1
        assert [line["task"] for line in project.lines] == ["t1"]
        assert "omitted, line 1: task 't0': " in ended.err
        assert "stakeholder 'ben'" in ended.err
        assert "1 tasks written, 1 omitted" in ended.err

    def test_an_unreachable_model_writes_nothing_and_the_same_command_continues(self, project: Project):
        read, down = parser_script(tensions=TENSIONS), True

        def script(body: dict[str, Any], number: int) -> Answer:
            return status(503) if down and fenced_text(body, "task") == "Plan t1." else read(body, number)

        with run_server(script) as server:
            ended = project.write_config(server.url, calls={"cache": True, "concurrency": 1}).profiles()
            assert (ended.code, ended.out) == (3, "")
            assert "error: tasks.jsonl, line 2: task 't1': the profile of stakeholder 'ann' could not be" in ended.err
            assert "nothing was written; run the same command again: it continues from the cache" in ended.err
            assert not (project.folder / "profiles.jsonl").exists()
            down, before = False, server.count
            assert project.profiles().code == 0
            assert server.count - before == CALLS / 2

    def test_input_files_and_files_of_a_run_are_not_overwritten(self, project: Project, server: Server, run: Command):
        project.write_config(server.url)
        tasks = project.folder / "tasks.jsonl"
        before = tasks.read_bytes()
        ended = run("profiles", tasks, "--out", tasks)
        assert (ended.code, tasks.read_bytes()) == (2, before)
        assert "is an input file; name another file to write" in ended.err
        assert project.score("run").code == 0
        before_run = folder_contents(project.folder / "run")
        assert run("profiles", tasks, "--out", project.folder / "run" / "config.yaml").code == 2
        assert folder_contents(project.folder / "run") == before_run


class TestScoredBy:
    @pytest.fixture
    def read(self, project: Project, server: Server) -> Project:
        assert project.write_config(server.url).profiles().code == 0
        return project

    def test_show_names_the_source_of_constraints(self, read: Project, run: Command):
        lines = read.lines
        del lines[1]["stakeholders"][0], lines[1]["tensions"]
        read.write(lines, "profiles.jsonl")
        assert read.score("run", *read.by_hand).code == 0
        first, second = (run("show", read.folder / "run", "--response", f"t{t}/a").out for t in range(2))
        assert "constraints of ben: from a file of profiles\ntensions: from a file of profiles" in first
        assert "constraints of ben: from a file of profiles" in second
        assert "constraints of ann: profile parsed by tiny, prompt profile 2" in second
        assert "tensions: profile parsed by tiny, prompt tensions 1" in second
        assert "tension between ann and ben: 1.5000, ann loves the sea, and it is dear" in second
        shown = run("show", read.folder / "run", "--response", "t0/a", "--json").out
        assert not re.search(r'"c1\b', shown)

    def test_tasks_and_profiles_cannot_both_come_from_standard_input(
        self, read: Project, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        config = read.folder / "jury.yaml"
        with (read.folder / "tasks.jsonl").open() as tasks:
            monkeypatch.setattr(sys, "stdin", tasks)
            ended = run("score", "-", "--config", config, "--out", read.folder / "run", "--profiles-from", "-")
        assert ended.code == 2
        assert "tasks, responses and profiles cannot share standard input; put all but one in a file" in ended.err
