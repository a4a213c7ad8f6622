"""`jurygraph import`: all or nothing is written, and the tasks can be scored."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.commands.import_data import FORMATS, TRAVELPLANNER
from jurygraph.judges.few_shot.history import ReviewerHistory
from jurygraph.schema import Response, Task
from jurygraph.sources import read_tasks
from jurygraph.sources.importers import READERS, VOTE_READERS
from jurygraph.sources.ratings import read_ratings, read_votes
from tests.cli.conftest import Command, folder_contents
from tests.models.server import run_server
from tests.rows import all_rows
from tests.sources.importers.published import HEALTHBENCH, PLAWBENCH, REWARDBENCH, ROWS
from tests.sources.importers.test_qags import CNN, XSUM
from tests.sources.importers.test_scoring import eight
from tests.sources.importers.test_writingbench import REAL
from tests.sources.travelplanner.train import TRAIN, lines

LINES = list(lines().values())


@pytest.fixture
def two_tasks(tmp_path: Path) -> Path:
    """A file of two lines."""
    return write_lines(tmp_path / "two.jsonl", *LINES[:2])


def write_lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def parse_lines(content: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def test_import_writes_tasks_and_prints_the_next_command(run: Command, tmp_path: Path) -> None:
    ended = run("import", "travelplanner", TRAIN, "--out", tmp_path / "tasks.jsonl")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == (
        f"30 tasks with 30 responses\nnext: jurygraph score {tmp_path / 'tasks.jsonl'} --config jury.yaml --out run\n"
    )
    found = parse_lines((tmp_path / "tasks.jsonl").read_text())
    assert [task["id"] for task in found] == [line["id"] for line in LINES]
    assert [task["responses"][0]["data"] for task in found] == [line["plan"] for line in LINES]
    assert [key for task in found for key in task if key == "reference"] == []


def test_imported_tasks_can_be_scored(two_tasks: Path, run: Command, tmp_path: Path) -> None:
    (tmp_path / "jury.yaml").write_text("evaluators: [checks.constraints]\nderivers: [facts.claims]\n")
    assert run("import", "travelplanner", two_tasks, "--out", tmp_path / "tasks.jsonl").code == 0
    ended = run("score", tmp_path / "tasks.jsonl", "--config", tmp_path / "jury.yaml", "--out", tmp_path / "run")
    assert ended.code == 0
    shown = [json.loads(line) for line in run("show", tmp_path / "run", "--json").out.splitlines()]
    assert [trace["reward"]["value"] for trace in shown] == [1.0, 1.0]


def test_json_has_the_file_and_the_counts(two_tasks: Path, run: Command, tmp_path: Path) -> None:
    ended = run("import", "travelplanner", two_tasks, "--out", tmp_path / "t.jsonl", "--json")
    counted = {"tasks": 2, "responses": 2, "tasks_with_responses": 2, "omitted": 0, "skipped": [], "notes": {}}
    assert json.loads(ended.out) == {"tasks_file": str(tmp_path / "t.jsonl"), **counted}


def test_a_name_ending_in_gz_is_compressed_reproducibly(two_tasks: Path, run: Command, tmp_path: Path) -> None:
    for name in ("t.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        assert run("import", "travelplanner", two_tasks, "--out", tmp_path / name).code == 0
    one, other = ((tmp_path / name).read_bytes() for name in ("a.jsonl.gz", "b.jsonl.gz"))
    assert one == other
    assert gzip.decompress(one) == (tmp_path / "t.jsonl").read_bytes()


def test_unparsed_phrases_of_queries_are_listed(run: Command, tmp_path: Path) -> None:
    query = f"{LINES[0]['query']} We want no smoking in our rooms."
    source = write_lines(tmp_path / "one.jsonl", {**LINES[0], "query": query})
    ended = run("import", "travelplanner", source, "--out", tmp_path / "t.jsonl")
    assert "phrases in queries that no rule parses were not imported as constraints: 1\n" in ended.err
    assert f"  {LINES[0]['id']}: smoking" in ended.err
    (task,) = parse_lines((tmp_path / "t.jsonl").read_text())
    assert task["metadata"] == {"unread": ["smoking"]}


@all_rows("options", [[], ["--json"]])
def test_a_dash_is_standard_output(two_tasks: Path, run: Command, tmp_path: Path, options: list[str]) -> None:
    run("import", "travelplanner", two_tasks, "--out", tmp_path / "t.jsonl")
    ended = run("import", "travelplanner", two_tasks, "--out", "-", *options)
    assert ended.out == (tmp_path / "t.jsonl").read_text()
    assert ended.err == "2 tasks with 2 responses\n"


def test_a_dash_is_standard_input(
    two_tasks: Path, run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(two_tasks.read_bytes())))
    assert run("import", "travelplanner", "-", "--out", tmp_path / "t.jsonl").code == 0
    assert len(parse_lines((tmp_path / "t.jsonl").read_text())) == 2


def test_stakeholders_can_come_from_a_file(two_tasks: Path, run: Command, tmp_path: Path) -> None:
    profiles = write_lines(
        tmp_path / "p.jsonl", *({"task": line["id"], "stakeholders": [{"id": "ann"}]} for line in LINES[:2])
    )
    ended = run("import", "travelplanner", two_tasks, "--out", "-", "--stakeholders", profiles)
    assert [task["stakeholders"] for task in parse_lines(ended.out)] == [[{"id": "ann"}]] * 2


def test_a_row_that_cannot_be_read_is_skipped_and_listed(run: Command, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", {**LINES[0], "plan": None}, {**LINES[1], "query": "Plan a trip."})
    ended = run("import", "travelplanner", source, "--out", tmp_path / "tasks.jsonl", "--json")
    error = "in.jsonl, line 2, field query: has no budget such as $1,700"
    assert ended.code == 1
    assert ended.err.startswith(f"1 task with 0 responses\nskipped, since they cannot be read: 1 row\n  {error}\n")
    assert ended.err.endswith("--config jury.yaml --responses RESPONSES --out run\n"), "there is no plan"
    assert json.loads(ended.out)["skipped"] == [error]
    (task,) = parse_lines((tmp_path / "tasks.jsonl").read_text())
    assert task["id"] == LINES[0]["id"]
    to_output = run("import", "travelplanner", source, "--out", "-", "--json")
    assert (to_output.code, to_output.out) == (1, (tmp_path / "tasks.jsonl").read_text())


def test_assumed_people_and_columns_that_differ_are_counted(run: Command, tmp_path: Path) -> None:
    trip = "from March 1st to March 3rd, 2022, with a budget of $900"
    rows = ({"idx": 1, "query": f"A trip {trip}."}, {"idx": 2, "query": f"For us two, {trip}.", "people_number": 3})
    source = write_lines(tmp_path / "in.jsonl", *({**LINES[0], "id": None, **row} for row in rows))
    ended = run("import", "travelplanner", source, "--out", tmp_path / "t.jsonl")
    assert ended.err.splitlines()[1:5] == [
        "queries do not state how many people travel; one person is assumed: 1",
        "  1",
        "columns and queries differ; the columns count: 1",
        "  2: people: 3 in the column, 2 in the query",
    ]


STAKEHOLDERS = [{"task": task, "stakeholders": [{"id": "ann"}]} for task in (LINES[0]["id"], LINES[1]["id"], "nowhere")]
ONE_FILE = "takes one file; import each by itself"
NO_BUDGET = "in.jsonl, line 1, field query: has no budget such as $1,700"


@all_rows(
    "form, lines, options, message",
    [
        ("travelplaner", [], [], "unknown format 'travelplaner'; did you mean travelplanner?"),
        ("gsm8k", [], [], f"unknown format 'gsm8k'; known: {', '.join(FORMATS)}"),
        ("judgebnch", [], [], "unknown format 'judgebnch'; did you mean judgebench?"),
        ("travelplanner", LINES[:2], ["-o", "in.jsonl"], "in.jsonl: is an input file; name another file to write"),
        ("travelplanner", [{**LINES[1], "query": "Plan a trip."}], [], NO_BUDGET),
        ("travelplanner", [{**LINES[1], "query": "Plan a trip."}], ["-o", "-"], NO_BUDGET),
        (
            "travelplanner",
            LINES[:2],
            ["--stakeholders", "nowhere.jsonl"],
            "nowhere.jsonl, line 3, field task: there is no task 'nowhere'; name a task of in.jsonl, or leave the line "
            "out",
        ),
        (
            "plawbench",
            [*PLAWBENCH, {**PLAWBENCH[0], "rubrics": "1. (+3 points)"}],
            [],
            "in.jsonl, line 4, field rubrics: is the text '1. (+3 points)'; write a list",
        ),
        ("rewardbench", [REWARDBENCH[4]], [], "in.jsonl: has no row that makes a task"),
        ("plawbench", PLAWBENCH, ["--only", "answered"], "none of the 3 tasks has a response; remove --only answered"),
        ("plawbench", PLAWBENCH, ["--stakeholders", "in.jsonl"], "--stakeholders: only for travelplanner; remove it"),
        *(
            (form, [], ["other.jsonl"], f"other.jsonl: {form} takes one file; import each by itself")
            for form in READERS
        ),
        ("qags", CNN, ["-o", "t.csv"], "t.csv: RATINGS are written as JSONL; name the file t.jsonl"),
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
    write_lines(Path("nowhere.jsonl"), *STAKEHOLDERS)
    Path("t.jsonl").write_text("old")
    before = folder_contents(tmp_path)
    output = [] if "-o" in options else ["-o", "t.jsonl"]
    ended = run("import", form, "in.jsonl", *options, *output)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert ended.err.count("\n") == 1
    assert folder_contents(tmp_path) == before


def test_files_of_a_run_are_not_overwritten(scored_once: Path, two_tasks: Path, run: Command) -> None:
    before = folder_contents(scored_once)
    ended = run("import", "travelplanner", two_tasks, "--out", scored_once / "run.sqlite")
    assert (ended.code, ended.out) == (2, "")
    assert "is a file of the run;" in ended.err
    assert folder_contents(scored_once) == before


@all_rows("form", FORMATS)
def test_the_output_is_never_suggested_as_the_missing_input(run: Command, tmp_path: Path, form: str) -> None:
    ended = run("import", form, tmp_path / "xsum.jsonl", "--out", tmp_path / "xsums.jsonl")
    assert ended.err.endswith("xsum.jsonl: there is no such file; name one that is there\n")
    assert folder_contents(tmp_path) == {}


def test_help_has_an_example_and_names_formats_that_were_never_run_on_published_data(run: Command) -> None:
    shown = " ".join(run("import", "--help").out.split())
    assert "jurygraph import travelplanner train.jsonl --out tasks.jsonl" in shown
    assert "healthbench, rewardbench and grouptravelbench follow the published schema and were never run on" in shown
    assert "--out" in run("import", "travelplanner", "x.jsonl").err, "it is required"


# Benchmarks in their published formats


def test_the_formats_are_those_of_the_importers() -> None:
    assert (TRAVELPLANNER, *READERS, *VOTE_READERS, "ratings") == FORMATS


@all_rows("form", READERS)
def test_every_format_can_be_imported(form: str, run: Command, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", *ROWS[form])
    ended = run("import", form, source, "--out", tmp_path / "t.jsonl", "--json")
    assert ended.code == 0, ended.err
    found, counted = parse_lines((tmp_path / "t.jsonl").read_text()), json.loads(ended.out)
    assert counted["tasks"] == len(found) > 0
    assert counted["responses"] == sum(len(task.get("responses", ())) for task in found)
    assert ended.err.startswith(f"{counted['tasks']} tasks with {counted['responses']} responses\n")


def test_omitted_data_is_counted_with_examples(run: Command, tmp_path: Path) -> None:
    worthless = [{"criterion": f"Nil {n}.", "points": 0, "tags": []} for n in range(7)]
    source = write_lines(tmp_path / "in.jsonl", HEALTHBENCH[0], {**HEALTHBENCH[1], "rubrics": worthless})
    ended = run("import", "healthbench", source, "--out", tmp_path / "t.jsonl", "--json")
    what = "criteria of 0 points are left out"
    why = "tasks whose rubric has no criterion of positive weight are left out, since no reward can be formed from it"
    assert ended.err.splitlines() == [
        "1 task with 3 responses",
        f"{what}: 7",
        *(f"  22222222-bbbb: criterion-{n}" for n in range(1, 6)),
        f"{why}: 1",
        "  22222222-bbbb",
        f"next: jurygraph score {tmp_path / 't.jsonl'} --config jury.yaml --out run",
    ]
    assert json.loads(ended.out)["notes"] == {what: 7, why: 1}


def test_partly_answered_tasks_are_reported_with_advice(run: Command, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", *HEALTHBENCH)
    ended = run("import", "healthbench", source, "--out", tmp_path / "t.jsonl")
    assert ended.err.splitlines() == [
        "3 tasks with 4 responses",
        "tasks without a response: 1; `score` needs one for each: import with --only answered, or with --only tasks to "
        "score your own responses",
    ]


def test_only_answered_omits_tasks_without_a_response(run: Command, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", *HEALTHBENCH)
    ended = run("import", "healthbench", source, "--out", tmp_path / "t.jsonl", "--only", "answered", "--json")
    assert [task["id"] for task in parse_lines((tmp_path / "t.jsonl").read_text())] == ["11111111-aaaa", "3"]
    assert json.loads(ended.out)["omitted"] == 1
    assert ended.err.splitlines() == [
        "2 tasks with 4 responses",
        "tasks without a response, omitted by --only answered: 1",
        f"next: jurygraph score {tmp_path / 't.jsonl'} --config jury.yaml --out run",
    ]


def test_only_tasks_omits_the_responses(run: Command, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", *HEALTHBENCH)
    ended = run("import", "healthbench", source, "--out", tmp_path / "t.jsonl", "--only", "tasks")
    assert [task.keys() & {"id", "responses"} for task in parse_lines((tmp_path / "t.jsonl").read_text())] == [
        {"id"}
    ] * 3
    assert ended.err.splitlines()[0] == "3 tasks with 0 responses"
    assert ended.err.endswith("--config jury.yaml --responses RESPONSES --out run\n")


# Votes


def test_votes_of_several_files_are_written_as_ratings(run: Command, tmp_path: Path) -> None:
    cnn, xsum = write_lines(tmp_path / "mturk_cnndm.jsonl", *CNN), write_lines(tmp_path / "mturk_xsum.jsonl", *XSUM)
    ended = run("import", "qags", cnn, xsum, "--out", tmp_path / "ratings.jsonl", "--json")
    assert ended.err.splitlines() == [
        "11 votes of 4 annotators on 4 items",
        f"next: jurygraph consensus {tmp_path / 'ratings.jsonl'}",
    ]
    counted = {"votes": 11, "items": 4, "annotators": 4}
    assert json.loads(ended.out) == {"ratings_file": str(tmp_path / "ratings.jsonl"), **counted}
    found = read_ratings(tmp_path / "ratings.jsonl")
    assert (len(found.rows), found.unread) == (11, {})
    assert {rating.agent for _, rating in found.rows} == {"CNN", "XSUM"}


def test_an_invalid_later_file_of_votes_prevents_any_output(run: Command, tmp_path: Path) -> None:
    cnn = write_lines(tmp_path / "cnn.jsonl", *CNN)
    xsum = write_lines(tmp_path / "xsum.jsonl", {"article": "a"})
    before = folder_contents(tmp_path)
    ended = run("import", "qags", cnn, xsum, "--out", tmp_path / "ratings.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: xsum.jsonl, line 1, field summary_sentences: is missing; every summary needs it\n"
    assert folder_contents(tmp_path) == before


def test_real_queries_can_be_scored_from_the_command_line(run: Command, tmp_path: Path) -> None:
    assert run("import", "writingbench", REAL, "--out", tmp_path / "tasks.jsonl").code == 0
    ids = [task["id"] for task in parse_lines((tmp_path / "tasks.jsonl").read_text())]
    answers = write_lines(tmp_path / "answers.jsonl", *({"id": f"{i}/a", "task": i, "text": "A story."} for i in ids))
    with run_server(eight) as server:
        config = {"model": f"openai-compatible:{server.url}#tiny", "evaluators": ["criteria"]}
        (tmp_path / "jury.yaml").write_text(json.dumps(config))
        where = ("--config", tmp_path / "jury.yaml", "--out", tmp_path / "run", "--responses", answers)
        assert run("score", tmp_path / "tasks.jsonl", *where).code == 0
    shown = [json.loads(line) for line in run("show", tmp_path / "run", "--json").out.splitlines()]
    assert [trace["reward"]["value"] for trace in shown] == pytest.approx([7 / 9] * len(ids))


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


def test_a_table_of_numbers_is_a_history_with_the_printed_params(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs, start = ("--out", "t.jsonl", "--ratings", "r.jsonl"), "for a judge that predicts reviewers: params: "
    Path("people.csv").write_text(RATED.replace("bo,,", "bo,good,"))
    assert start not in run("import", "ratings", "people.csv", *RENAMED, *outputs).err
    Path("people.csv").write_text(RATED)
    ended = run("import", "ratings", "people.csv", *RENAMED, "--column", "reason=question", *outputs)
    params = json.loads(ended.err.partition(start)[2].splitlines()[0])
    history = ReviewerHistory.read(params["history"], scales={"appeal": (1, 5)})
    shown = [(one.reviewer, one.key, one.score, one.text, one.reason) for one in history.examples]
    assert shown == [
        ("ann", "q1_gpt", 4, "It is, so", "What?"),
        ("ann", "q1_qwen", 1, "No", "What?"),
        ("bo", "q1_gpt", 3, "It is, so", "What?"),
    ]
    assert history.left_out == (("no_score", 1, "r.jsonl, line 4"),)


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


def test_contradictory_ratings_and_words_as_labels_are_reported(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("import", "ratings", "people.csv", "--out", "t.jsonl", "--ratings", "r.jsonl")
    Path("people.csv").write_text("item,text,annotator,label\nq1,Four.,ann,5\nq1,Four.,ann,2\nq1,Four.,ann,5\n")
    lines = run(*command).err.splitlines()
    assert lines[:2] == ["1 task with 1 response", "3 votes of 1 annotator"]
    assert lines[2] == "contradictory: 1 vote of an annotator who gave another one before"
    Path("people.csv").write_text("item,text,annotator,label\nq1,Four.,ann,good\n")
    lines = run(*command).err.splitlines()
    assert lines[1] == "1 vote of 1 annotator"
    assert lines[-1].startswith("no history for a judge that predicts reviewers: it needs numbers")
