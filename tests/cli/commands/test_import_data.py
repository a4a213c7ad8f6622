"""`jurygraph import`: all or nothing is written, and the tasks can be scored."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.commands.import_data import FORMATS
from jurygraph.schema import Response, Task
from jurygraph.sources import read_tasks
from jurygraph.sources.importers import READERS
from jurygraph.sources.ratings import read_ratings, read_votes
from tests.cli.conftest import Command, folder_contents
from tests.rows import all_rows
from tests.sources.importers.published import HEALTHBENCH, JUDGEBENCH, PLAWBENCH, REWARDBENCH, ROWS
from tests.sources.importers.test_qags import CNN, XSUM


@pytest.fixture
def two_tasks(tmp_path: Path) -> Path:
    """A file of two lines."""
    return write_lines(tmp_path / "two.jsonl", *JUDGEBENCH[:2])


def write_lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def parse_lines(content: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def test_import_writes_tasks_and_prints_the_next_command(two_tasks: Path, run: Command, tmp_path: Path) -> None:
    ended = run("import", "judgebench", two_tasks, "--out", tmp_path / "tasks.jsonl")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == (
        "2 tasks, 4 responses, 2 tasks with responses, 0 omitted\n"
        f"next: jurygraph score {tmp_path / 'tasks.jsonl'} --config jury.yaml --out run\n"
    )
    found = parse_lines((tmp_path / "tasks.jsonl").read_text())
    assert [task["id"] for task in found] == [line["pair_id"] for line in JUDGEBENCH[:2]]
    ended = run("import", "judgebench", two_tasks, "--out", tmp_path / "t.jsonl", "--json")
    counted = {"tasks": 2, "responses": 4, "tasks_with_responses": 2, "omitted": 0, "notes": {}}
    assert json.loads(ended.out) == {"tasks_file": str(tmp_path / "t.jsonl"), **counted}


def test_a_name_ending_in_gz_is_compressed_reproducibly(two_tasks: Path, run: Command, tmp_path: Path) -> None:
    for name in ("t.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        assert run("import", "judgebench", two_tasks, "--out", tmp_path / name).code == 0
    one, other = ((tmp_path / name).read_bytes() for name in ("a.jsonl.gz", "b.jsonl.gz"))
    assert one == other
    assert gzip.decompress(one) == (tmp_path / "t.jsonl").read_bytes()


def test_a_dash_is_standard_output(two_tasks: Path, run: Command, tmp_path: Path) -> None:
    run("import", "judgebench", two_tasks, "--out", tmp_path / "t.jsonl")
    assert run("import", "judgebench", two_tasks, "--out", "-", "--json").out == (tmp_path / "t.jsonl").read_text()


def test_a_dash_is_standard_input(
    two_tasks: Path, run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(two_tasks.read_bytes())))
    assert run("import", "judgebench", "-", "--out", tmp_path / "t.jsonl").code == 0
    assert len(parse_lines((tmp_path / "t.jsonl").read_text())) == 2


@all_rows(
    "form, lines, options, message",
    [
        ("gsm8k", [], [], f"unknown format 'gsm8k'; known: {', '.join(FORMATS)}"),
        ("judgebnch", [], [], "unknown format 'judgebnch'; did you mean judgebench?"),
        ("judgebench", JUDGEBENCH, ["-o", "in.jsonl"], "in.jsonl: is an input file; name another file to write"),
        (
            "plawbench",
            [*PLAWBENCH, {**PLAWBENCH[0], "rubrics": "1. (+3 points)"}],
            [],
            "in.jsonl, line 4, field rubrics: is the text '1. (+3 points)'; write a list",
        ),
        ("rewardbench", [REWARDBENCH[4]], [], "in.jsonl: has no row that makes a task"),
        ("plawbench", PLAWBENCH, ["--only", "answered"], "none of the 3 tasks has a response; remove --only answered"),
        ("rewardbench", [], ["other.jsonl"], "other.jsonl: rewardbench takes one file; import each by itself"),
        ("qags", CNN, ["-o", "t.csv.gz"], "t.csv.gz: RATINGS are written as JSONL; name the file t.jsonl"),
        ("qags", CNN, ["--only", "tasks"], "--only: selects tasks, and qags has none; remove it"),
        ("qags", CNN, ["--ratings", "r.jsonl"], "--ratings: only for ratings; remove it for qags"),
    ],
)
def test_wrong_input_is_one_error_and_writes_nothing(
    run: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    lines: list[Any],
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(Path("in.jsonl"), *lines)
    Path("t.jsonl").write_text("old")
    before = folder_contents(tmp_path)
    output = [] if "-o" in options else ["-o", "t.jsonl"]
    ended = run("import", form, "in.jsonl", *options, *output)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert ended.err.count("\n") == 1
    assert folder_contents(tmp_path) == before


# Benchmarks in their published formats


@all_rows("form", READERS)
def test_every_format_can_be_imported(form: str, run: Command, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", *ROWS[form])
    ended = run("import", form, source, "--out", tmp_path / "t.jsonl", "--json")
    assert ended.code == 0, ended.err
    found, counted = parse_lines((tmp_path / "t.jsonl").read_text()), json.loads(ended.out)
    assert counted["tasks"] == len(found) > 0
    assert counted["responses"] == sum(len(task.get("responses", ())) for task in found)


def test_omitted_data_is_counted_with_examples(run: Command, tmp_path: Path) -> None:
    worthless = [{"criterion": f"Nil {n}.", "points": 0, "tags": []} for n in range(7)]
    source = write_lines(tmp_path / "in.jsonl", HEALTHBENCH[0], {**HEALTHBENCH[1], "rubrics": worthless})
    ended = run("import", "healthbench", source, "--out", tmp_path / "t.jsonl", "--json")
    assert list(json.loads(ended.out)["notes"].values()) == [7, 1]
    places = ", ".join(f"22222222-bbbb: criterion-{n}" for n in range(1, 6))
    assert f"criteria without words, or of 0 points, are left out: 7 ({places}, 2 more)\n" in ended.err


def test_only_answered_omits_tasks_without_a_response_and_only_tasks_the_responses(
    run: Command, tmp_path: Path
) -> None:
    source = write_lines(tmp_path / "in.jsonl", *HEALTHBENCH)
    target = tmp_path / "t.jsonl"
    ended = run("import", "healthbench", source, "--out", target, "--only", "answered")
    assert [task["id"] for task in parse_lines(target.read_text())] == ["11111111-aaaa", "3"]
    assert ended.err.splitlines()[0] == "2 tasks, 4 responses, 2 tasks with responses, 1 omitted"
    ended = run("import", "healthbench", source, "--out", target, "--only", "tasks")
    assert [task.keys() & {"id", "responses"} for task in parse_lines(target.read_text())] == [{"id"}] * 3
    assert ended.err.endswith("--config jury.yaml --responses RESPONSES --out run\n")
    assert "import with --only answered" in run("import", "healthbench", source, "--out", target).err


# Votes


def test_votes_of_several_files_are_written_as_ratings(run: Command, tmp_path: Path) -> None:
    cnn, xsum = write_lines(tmp_path / "mturk_cnndm.jsonl", *CNN), write_lines(tmp_path / "mturk_xsum.jsonl", *XSUM)
    ended = run("import", "qags", cnn, xsum, "--out", tmp_path / "ratings.jsonl", "--json")
    assert ended.err.splitlines() == [
        "11 votes, 4 items, 4 annotators, 0 omitted",
        f"next: jurygraph consensus {tmp_path / 'ratings.jsonl'}",
    ]
    counted = {"votes": 11, "items": 4, "annotators": 4, "omitted": 0}
    assert json.loads(ended.out) == {"ratings_file": str(tmp_path / "ratings.jsonl"), **counted}
    found = read_ratings(tmp_path / "ratings.jsonl")
    assert (len(found.rows), found.unread) == (11, {})
    assert {rating.agent for _, rating in found.rows} == {"CNN", "XSUM"}


RATED = """item,who,stars,text,agent,question
q1,ann,4,"It is, so",gpt,What?
q1,bo,3,"It is, so",gpt,What?
q1,ann,1,No,qwen,What?
q2,bo,,Because,gpt,Why?
"""
RENAMED = ("--column", "label=stars", "--column", "annotator=who", "--column", "prompt=question")


def test_a_table_of_ratings_makes_tasks_and_ratings_that_join(run: Command, tmp_path: Path) -> None:
    table, tasks, ratings = (tmp_path / name for name in ("people.csv", "tasks.jsonl", "ratings.jsonl"))
    table.write_text(RATED)
    ended = run("import", "ratings", table, *RENAMED, "--out", tasks, "--ratings", ratings, "--json")
    counts = {"tasks": 2, "responses": 3, "votes": 4, "annotators": 2}
    assert json.loads(ended.out) == {"tasks_file": str(tasks), "ratings_file": str(ratings), **counts}
    assert read_tasks(tasks) == [
        (
            Task(id="q1", query="What?", reviewers=("ann", "bo")),
            (Response(id="q1_gpt", text="It is, so", agent="gpt"), Response(id="q1_qwen", text="No", agent="qwen")),
        ),
        (Task(id="q2", query="Why?", reviewers=("bo",)), (Response(id="q2_gpt", text="Because", agent="gpt"),)),
    ]
    votes = [vote for _, vote in read_votes(ratings).rows]
    assert [(vote.key, vote.annotator, vote.label) for vote in votes] == [
        ("q1_gpt", "ann", 4.0),
        ("q1_gpt", "bo", 3.0),
        ("q1_qwen", "ann", 1.0),
        ("q2_gpt", "bo", None),
    ]


@all_rows(
    "words, change, message",
    [
        (RENAMED, ("", ""), "--ratings: name a second output file"),
        ((*RENAMED, "--ratings", "-"), ("", ""), "--ratings: name a second output file"),
        (
            ("--column", "lable=stars", "--ratings", "r"),
            ("", ""),
            "--column lable: is not a column of ratings; did you",
        ),
        (("--column", "label", "--ratings", "r"), ("", ""), "--column label: expected NAME=COLUMN, such as label=star"),
        (("--ratings", "r"), ("", ""), "people.csv, line 1: has no column "),
        ((*RENAMED, "--ratings", "r"), ("so", "no"), "people.csv, line 3, field text: is not the text that item 'q1_g"),
        ((*RENAMED, "--ratings", "r"), ("qwen,What", "qwen,Who"), "people.csv, field question: item 'q1' has two prom"),
    ],
)
def test_a_table_that_makes_no_ratings_is_refused(
    words: tuple[str, ...],
    change: tuple[str, str],
    message: str,
    run: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(RATED.replace(*change, 1) if change[0] else RATED)
    refused = run("import", "ratings", "people.csv", *words, "--out", "tasks.jsonl")
    assert (refused.code, refused.err.startswith(f"error: {message}")) == (2, True), refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
