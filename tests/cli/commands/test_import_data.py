"""`jurygraph import`: whole or nothing, and what comes out can be scored."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.commands.import_data import FORMATS, TRAVELPLANNER
from jurygraph.sources.importers import READERS, VOTE_READERS
from jurygraph.sources.ratings import read_ratings
from tests.cli.conftest import Command, called, contents
from tests.models.server import serving
from tests.sources.importers.published import HEALTHBENCH, PLAWBENCH, REWARDBENCH, ROWS
from tests.sources.importers.test_qags import CNN, XSUM
from tests.sources.importers.test_scoring import eight
from tests.sources.importers.test_writingbench import REAL
from tests.sources.travelplanner.train import TRAIN, lines

LINES = list(lines().values())


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A file of two lines."""
    return written(tmp_path / "two.jsonl", *LINES[:2])


def written(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def read(content: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def test_it_writes_tasks_and_says_what_to_do_next(run: Command, tmp_path: Path) -> None:
    ended = run("import", "travelplanner", TRAIN, "--out", tmp_path / "tasks.jsonl")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == (
        f"30 tasks with 30 responses\nnext: jurygraph score {tmp_path / 'tasks.jsonl'} --config jury.yaml --out run\n"
    )
    found = read((tmp_path / "tasks.jsonl").read_text())
    assert [task["id"] for task in found] == [line["id"] for line in LINES]
    assert [task["responses"][0]["data"] for task in found] == [line["plan"] for line in LINES]
    assert [key for task in found for key in task if key == "reference"] == []


def test_what_it_writes_can_be_scored(two: Path, run: Command, tmp_path: Path) -> None:
    (tmp_path / "jury.yaml").write_text("evaluators: [checks.constraints]\nderivers: [facts.claims]\n")
    assert run("import", "travelplanner", two, "--out", tmp_path / "tasks.jsonl").code == 0
    ended = run("score", tmp_path / "tasks.jsonl", "--config", tmp_path / "jury.yaml", "--out", tmp_path / "run")
    assert ended.code == 0
    shown = [json.loads(line) for line in run("show", tmp_path / "run", "--json").out.splitlines()]
    assert [trace["reward"]["value"] for trace in shown] == [1.0, 1.0]


def test_json_says_where_they_are_and_how_many(two: Path, run: Command, tmp_path: Path) -> None:
    ended = run("import", "travelplanner", two, "--out", tmp_path / "t.jsonl", "--json")
    counted = {"tasks": 2, "responses": 2, "tasks_with_responses": 2, "omitted": 0, "notes": {}}
    assert json.loads(ended.out) == {"tasks_file": str(tmp_path / "t.jsonl"), **counted}


def test_a_name_that_ends_so_is_written_with_gzip_the_same_bytes_every_time(
    two: Path, run: Command, tmp_path: Path
) -> None:
    for name in ("t.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        assert run("import", "travelplanner", two, "--out", tmp_path / name).code == 0
    one, other = ((tmp_path / name).read_bytes() for name in ("a.jsonl.gz", "b.jsonl.gz"))
    assert one == other
    assert gzip.decompress(one) == (tmp_path / "t.jsonl").read_bytes()


def test_the_file_that_is_read_is_not_written_over(two: Path, run: Command) -> None:
    before = two.read_bytes()
    ended = run("import", "travelplanner", two, "--out", two)
    assert (ended.code, ended.err) == (2, f"error: {two}: is an input file; name another file to write\n")
    assert two.read_bytes() == before


def test_what_no_rule_reads_in_a_query_is_told(run: Command, tmp_path: Path) -> None:
    query = f"{LINES[0]['query']} We want no smoking in our rooms."
    source = written(tmp_path / "one.jsonl", {**LINES[0], "query": query})
    ended = run("import", "travelplanner", source, "--out", tmp_path / "t.jsonl")
    assert "phrases in queries that no rule parses were not imported as constraints: 1\n" in ended.err
    assert f"  {LINES[0]['id']}: smoking" in ended.err
    (task,) = read((tmp_path / "t.jsonl").read_text())
    assert task["metadata"] == {"unread": ["smoking"]}


def test_without_plans_the_next_command_asks_for_responses(run: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "one.jsonl", {**LINES[0], "plan": None})
    ended = run("import", "travelplanner", source, "--out", tmp_path / "t.jsonl")
    assert ended.err.endswith("--config jury.yaml --responses RESPONSES --out run\n")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_dash_is_standard_output(two: Path, run: Command, tmp_path: Path, options: list[str]) -> None:
    run("import", "travelplanner", two, "--out", tmp_path / "t.jsonl")
    ended = run("import", "travelplanner", two, "--out", "-", *options)
    assert ended.out == (tmp_path / "t.jsonl").read_text()
    assert ended.err == "2 tasks with 2 responses\n"


def test_a_dash_is_standard_input(two: Path, run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(two.read_bytes())))
    assert run("import", "travelplanner", "-", "--out", tmp_path / "t.jsonl").code == 0
    assert len(read((tmp_path / "t.jsonl").read_text())) == 2


def test_stakeholders_come_from_a_file_of_their_own(two: Path, run: Command, tmp_path: Path) -> None:
    profiles = written(
        tmp_path / "p.jsonl", *({"task": line["id"], "stakeholders": [{"id": "ann"}]} for line in LINES[:2])
    )
    ended = run("import", "travelplanner", two, "--out", "-", "--stakeholders", profiles)
    assert [task["stakeholders"] for task in read(ended.out)] == [[{"id": "ann"}]] * 2


@pytest.mark.parametrize("out", ["tasks.jsonl", "-"])
def test_nothing_is_written_where_a_line_is_bad(run: Command, tmp_path: Path, out: str) -> None:
    written(tmp_path / "in.jsonl", LINES[0], {**LINES[1], "query": "Plan a trip."})
    (tmp_path / "tasks.jsonl").write_text("old")
    before = contents(tmp_path)
    ended = run("import", "travelplanner", tmp_path / "in.jsonl", "--out", out if out == "-" else tmp_path / out)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: in.jsonl, line 2, field query: has no budget such as $1,700\n"
    assert contents(tmp_path) == before


def test_nothing_is_written_where_a_profile_is_of_no_task(two: Path, run: Command, tmp_path: Path) -> None:
    """Which is known only once the whole file was read."""
    tasks = [*(line["id"] for line in LINES[:2]), "nowhere"]
    profiles = written(tmp_path / "p.jsonl", *({"task": task, "stakeholders": [{"id": "ann"}]} for task in tasks))
    before = contents(tmp_path)
    ended = run("import", "travelplanner", two, "--out", tmp_path / "t.jsonl", "--stakeholders", profiles)
    assert (ended.code, ended.out) == (2, "")
    assert (
        ended.err
        == "error: p.jsonl, line 3, field task: is 'nowhere', which two.jsonl does not have; leave the line out\n"
    )
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("travelplaner", "unknown format 'travelplaner'; did you mean travelplanner?"),
        ("gsm8k", f"unknown format 'gsm8k'; known: {', '.join(FORMATS)}"),
        ("judgebnch", "unknown format 'judgebnch'; did you mean judgebench?"),
    ],
)
def test_an_unknown_format_is_refused(two: Path, run: Command, tmp_path: Path, form: str, words: str) -> None:
    ended = run("import", form, two, "--out", tmp_path / "t.jsonl")
    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {words}\n")
    assert not (tmp_path / "t.jsonl").exists()


def test_a_file_that_is_not_there_is_named(run: Command, tmp_path: Path) -> None:
    ended = run("import", "travelplanner", tmp_path / "none.jsonl", "--out", tmp_path / "t.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no such file" in ended.err


@pytest.mark.parametrize("form", FORMATS)
def test_what_it_writes_is_never_taken_for_what_was_meant(run: Command, tmp_path: Path, form: str) -> None:
    ended = run("import", form, tmp_path / "xsum.jsonl", "--out", tmp_path / "xsums.jsonl")
    assert ended.err.endswith("xsum.jsonl: there is no such file; name one that is there\n")
    assert contents(tmp_path) == {}


def test_it_says_where_to_write(two: Path, run: Command) -> None:
    ended = run("import", "travelplanner", two)
    assert ended.code == 2
    assert "--out" in ended.err


def test_what_a_run_is_made_of_is_never_written_over(scored: Path, two: Path, run: Command) -> None:
    before = contents(scored)
    ended = run("import", "travelplanner", two, "--out", scored / "run.sqlite")
    assert (ended.code, ended.out) == (2, "")
    assert "is a file of the run;" in ended.err
    assert contents(scored) == before


# Benchmarks in their published formats


def test_every_format_that_is_read_is_known() -> None:
    assert (TRAVELPLANNER, *READERS, *VOTE_READERS) == FORMATS


@pytest.mark.parametrize("form", READERS)
def test_every_format_is_imported(form: str, run: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *ROWS[form])
    ended = run("import", form, source, "--out", tmp_path / "t.jsonl", "--json")
    assert ended.code == 0, ended.err
    found, counted = read((tmp_path / "t.jsonl").read_text()), json.loads(ended.out)
    assert counted["tasks"] == len(found) > 0
    assert counted["responses"] == sum(len(task.get("responses", ())) for task in found)
    assert ended.err.startswith(f"{counted['tasks']} tasks with {counted['responses']} responses\n")


def test_what_is_left_out_is_counted_and_the_first_of_it_named(run: Command, tmp_path: Path) -> None:
    worthless = [{"criterion": f"Nil {n}.", "points": 0, "tags": []} for n in range(7)]
    source = written(tmp_path / "in.jsonl", HEALTHBENCH[0], {**HEALTHBENCH[1], "rubrics": worthless})
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


def test_where_only_some_tasks_have_responses_it_says_how_they_can_be_scored(run: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *HEALTHBENCH)
    ended = run("import", "healthbench", source, "--out", tmp_path / "t.jsonl")
    assert ended.err.splitlines() == [
        "3 tasks with 4 responses",
        "tasks without a response: 1; `score` needs one for each: import with --only answered, or with --only tasks to "
        "score your own responses",
    ]


def test_answered_leaves_out_the_tasks_without_a_response(run: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *HEALTHBENCH)
    ended = run("import", "healthbench", source, "--out", tmp_path / "t.jsonl", "--only", "answered", "--json")
    assert [task["id"] for task in read((tmp_path / "t.jsonl").read_text())] == ["11111111-aaaa", "3"]
    assert json.loads(ended.out)["omitted"] == 1
    assert ended.err.splitlines() == [
        "2 tasks with 4 responses",
        "tasks without a response, omitted by --only answered: 1",
        f"next: jurygraph score {tmp_path / 't.jsonl'} --config jury.yaml --out run",
    ]


def test_nothing_is_written_where_no_task_is_answered(run: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *PLAWBENCH)
    ended = run("import", "plawbench", source, "--out", tmp_path / "t.jsonl", "--only", "answered")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: none of the 3 tasks has a response; remove --only answered\n"
    assert not (tmp_path / "t.jsonl").exists()


def test_tasks_leaves_out_the_responses(run: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *HEALTHBENCH)
    ended = run("import", "healthbench", source, "--out", tmp_path / "t.jsonl", "--only", "tasks")
    assert [task.keys() & {"id", "responses"} for task in read((tmp_path / "t.jsonl").read_text())] == [{"id"}] * 3
    assert ended.err.splitlines()[0] == "3 tasks with 0 responses"
    assert ended.err.endswith("--config jury.yaml --responses RESPONSES --out run\n")


@pytest.mark.parametrize("out", ["tasks.jsonl", "-"])
def test_nothing_is_written_where_the_last_row_is_bad(run: Command, tmp_path: Path, out: str) -> None:
    written(tmp_path / "in.jsonl", *PLAWBENCH, {**PLAWBENCH[0], "rubrics": "1. (+3 points)"})
    (tmp_path / "tasks.jsonl").write_text("old")
    before = contents(tmp_path)
    ended = run("import", "plawbench", tmp_path / "in.jsonl", "--out", out if out == "-" else tmp_path / out)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: in.jsonl, line 4, field rubrics: is the text '1. (+3 points)'; write a list\n"
    assert contents(tmp_path) == before


def test_nothing_is_written_where_no_row_makes_a_task(run: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", REWARDBENCH[4])
    ended = run("import", "rewardbench", source, "--out", tmp_path / "t.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert "has no row that makes a task" in ended.err
    assert not (tmp_path / "t.jsonl").exists()


def test_stakeholders_go_with_travelplanner_alone(run: Command, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *PLAWBENCH)
    ended = run("import", "plawbench", source, "--out", tmp_path / "t.jsonl", "--stakeholders", source)
    assert (ended.code, ended.err) == (
        2,
        "error: --stakeholders: only for travelplanner; remove it for plawbench\n",
    )


@pytest.mark.parametrize("form", READERS)
def test_tasks_are_made_of_one_file(form: str, two: Path, run: Command, tmp_path: Path) -> None:
    ended = run("import", form, two, "other.jsonl", "--out", tmp_path / "t.jsonl")
    assert (ended.code, ended.err) == (
        2,
        f"error: other.jsonl: {form} takes one file; import each by itself\n",
    )


# Votes


def test_votes_are_written_as_ratings_of_both_sets(run: Command, tmp_path: Path) -> None:
    cnn, xsum = written(tmp_path / "mturk_cnndm.jsonl", *CNN), written(tmp_path / "mturk_xsum.jsonl", *XSUM)
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "t.csv"], "t.csv: RATINGS are written as JSONL; name the file t.jsonl"),
        (["--out", "t.csv.gz"], "t.csv.gz: RATINGS are written as JSONL; name the file t.jsonl"),
        (
            ["--out", "t.jsonl", "--only", "tasks"],
            "--only: selects tasks, and qags has none; remove it",
        ),
    ],
)
def test_what_votes_are_not_written_with_is_refused(
    options: list[str], words: str, run: Command, tmp_path: Path
) -> None:
    source = written(tmp_path / "cnn.jsonl", *CNN)
    ended = run("import", "qags", source, *options)
    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {words}\n")


def test_no_votes_are_written_where_a_later_file_is_bad(run: Command, tmp_path: Path) -> None:
    cnn, xsum = written(tmp_path / "cnn.jsonl", *CNN), written(tmp_path / "xsum.jsonl", {"article": "a"})
    before = contents(tmp_path)
    ended = run("import", "qags", cnn, xsum, "--out", tmp_path / "ratings.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: xsum.jsonl, line 1, field summary_sentences: is missing; every summary needs it\n"
    assert contents(tmp_path) == before


def test_real_queries_can_be_scored_from_the_command_line(run: Command, tmp_path: Path) -> None:
    assert run("import", "writingbench", REAL, "--out", tmp_path / "tasks.jsonl").code == 0
    ids = [task["id"] for task in read((tmp_path / "tasks.jsonl").read_text())]
    answers = written(tmp_path / "answers.jsonl", *({"id": f"{i}/a", "task": i, "text": "A story."} for i in ids))
    with serving(eight) as server:
        config = {"model": f"openai-compatible:{server.url}#tiny", "evaluators": ["criteria"]}
        (tmp_path / "jury.yaml").write_text(json.dumps(config))
        where = ("--config", tmp_path / "jury.yaml", "--out", tmp_path / "run", "--responses", answers)
        assert run("score", tmp_path / "tasks.jsonl", *where).code == 0
    shown = [json.loads(line) for line in run("show", tmp_path / "run", "--json").out.splitlines()]
    assert [trace["reward"]["value"] for trace in shown] == pytest.approx([7 / 9] * len(ids))


def test_help_tells_what_was_never_run_on_published_data(run: Command) -> None:
    shown = " ".join(run("import", "--help").out.split())
    assert "healthbench and rewardbench follow the published schema and were never run on" in shown


def test_help_shows_how(run: Command) -> None:
    assert "jurygraph import travelplanner train.jsonl --out tasks.jsonl" in run("import", "--help").out


def test_it_is_a_command_of_the_console_script(two: Path, tmp_path: Path) -> None:
    ended = called("import", "travelplanner", two, "--out", "-")
    assert (ended.code, len(read(ended.out))) == (0, 2)
