"""`jurygraph profiles`: profiles in text become a file of constraints that a person may edit.

How profiles are read is tested in `tests/agents/test_profile.py`, and runs over them in `tests/runs/test_profiles.py`.
"""

import json
from collections.abc import Iterator
from functools import partial
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
from tests.cli.conftest import Command, CommandResult, check_nothing_is_written, folder_contents
from tests.models.server import Answer, Server, run_server, status
from tests.rows import all_rows
from tests.runs.sample_runs import write_tasks

pytestmark = pytest.mark.usefixtures("own_cache")

TENSIONS = [tension(1, 2, "high", "stakeholder_1 loves the sea, and it is dear")]
INVENTED = constraint("I love ghosts", "There are ghosts.")
PRINTED = """\
t0: tension between ann and ben: 1.5000, ann loves the sea, and it is dear
t0: dropped of ben: “There are ghosts.” rests on “I love ghosts”, which does not stand in the profile
t1: tension between ann and ben: 1.5000, ann loves the sea, and it is dear
t1: dropped of ben: “There are ghosts.” rests on “I love ghosts”, which does not stand in the profile
"""


def answer(body: dict[str, Any], number: int) -> Answer:
    """Read profiles; a model named `down` never does, and one named `unsure` finds no needs of Ben in task t0."""
    if body["model"] == "down":
        return status(503)
    about = (
        None
        if asks_about_tensions(body)
        else (fenced_text(body, "task"), fenced_text(body, "profile"))
    )
    if body["model"] == "unsure" and about == ("Plan t0.", BEN):
        return constraints_reply()
    return parser_script({**NEEDS, BEN: [*NEEDS[BEN], INVENTED]}, TENSIONS)(body, number)


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(answer) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two tasks of two stakeholders."""
    tasks = [
        trip(ANN, BEN, name=f"t{t}", query=f"Plan t{t}.").model_dump(mode="json") for t in range(2)
    ]
    write_tasks(tmp_path, tasks)
    (tmp_path / "jury.yaml").write_text(json.dumps(settings(server.url, calls={"cache": True})))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_profiles(run: Command, *options: object) -> CommandResult:
    return run("profiles", "tasks.jsonl", "--out", "profiles.jsonl", *options)


def written(project: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project / "profiles.jsonl").read_text().splitlines()]


def found(name: str, text: str, kind: str, restrictiveness: float, quote: str) -> dict[str, Any]:
    return {
        "id": name,
        "text": text,
        "kind": kind,
        "restrictiveness": restrictiveness,
        "quote": quote,
    }


def test_profiles_are_printed_and_written_with_all_that_a_person_needs_to_edit_them(
    run: Command, project: Path
) -> None:
    ended = read_profiles(run)
    assert ended.code == 0
    assert ended.out.startswith(PRINTED)
    assert ended.err.splitlines()[-2:] == [
        "2 tasks written, 0 omitted",
        "next: jurygraph score tasks.jsonl --profiles-from profiles.jsonl --out run",
    ]
    needs_of_ann = [
        found("c1", "No nuts are served.", "hard", 1.5, "I am allergic to nuts"),
        found("c2", "It is near the sea.", "soft", 1.0, "I would love to be near the sea"),
    ]
    price = found(
        "c1",
        "A night costs 90 euros at most.",
        "hard",
        1.0,
        "cannot pay more than 90 euros a night",
    )
    assert written(project)[0] == {
        "task": "t0",
        "stakeholders": [
            {"id": "ann", "profile": ANN, "constraints": needs_of_ann},
            {"id": "ben", "profile": BEN, "constraints": [price]},
        ],
        "tensions": [
            {
                "between": ["ann", "ben"],
                "strength": 1.5,
                "reason": "ann loves the sea, and it is dear",
            }
        ],
    }
    assert [line["task"] for line in written(project)] == ["t0", "t1"]


def test_the_same_command_sends_nothing_and_json_says_so(
    run: Command, project: Path, server: Server
) -> None:
    read_profiles(run)
    before = server.count, folder_contents(project)
    given = json.loads(read_profiles(run, "--json").out)
    assert (server.count, folder_contents(project)) == before
    assert (given["profiles_file"], given["left_out"], given["requests"]["number"]) == (
        "profiles.jsonl",
        [],
        0,
    )
    assert [one["task"] for one in given["profiles"]] == ["t0", "t1"]
    assert given["profiles"][0]["by"] == {
        "ann": "tiny, prompt profile 2",
        "ben": "tiny, prompt profile 2",
    }
    assert given["profiles"][0]["stakeholders"][1]["constraints"][0]["kind"] == "hard"


def test_a_task_that_cannot_be_read_is_omitted_and_named_and_exits_with_1(
    run: Command, project: Path, server: Server
) -> None:
    ended = read_profiles(run, "--model", f"openai-compatible:{server.url}#unsure")
    assert ended.code == 1
    assert [line["task"] for line in written(project)] == ["t1"]
    assert (
        "omitted, line 1: task 't0': no constraint was found in the profile of stakeholder 'ben'"
        in ended.err
    )
    assert "1 tasks written, 1 omitted" in ended.err


@all_rows(
    "options, code, message",
    [
        (
            ["--model", "none"],
            2,
            "error: --model: none answers nothing; name one in the config or with --model",
        ),
        (
            ["--out", "tasks.jsonl"],
            2,
            "error: tasks.jsonl: is an input file; name another file to write",
        ),
        (
            ["--model", "down"],
            3,
            "error: tasks.jsonl, line 1: task 't0': the profile of stakeholder 'ann'",
        ),
        (
            ["--model", "down"],
            3,
            "nothing was written; run the same command again: it continues from the cache",
        ),
    ],
)
def test_except_with_0_and_1_nothing_is_written(
    run: Command, project: Path, server: Server, options: list[str], code: int, message: str
) -> None:
    check_nothing_is_written(project, partial(read_profiles, run), options, server, code, message)
