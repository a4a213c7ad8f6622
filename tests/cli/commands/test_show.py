"""`jurygraph show`, `explain` and `export`."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from jurygraph.schema import Trace
from tests.cli.conftest import Command, change_ledger, write_project
from tests.cli.render.test_text import run_on_terminal
from tests.rows import all_rows


def test_show_is_a_table_of_rewards_with_their_components(scored_folder: Path, run: Command):
    assert run("show", scored_folder).out.splitlines() == [
        "response  agent  status   reward  coverage  polite   shaky",
        "────────  ─────  ──────  ───────  ────────  ──────  ──────",
        "door/a    alice  ok       0.5000    1.0000  1.0000  1.0000",
        "door/b    bob    ok       0.0000    1.0000  0.0000  0.0000",
        "salt/a    alice  ok      -0.2500    1.0000  0.2500  1.0000",
        "salt/b    bob    ok      -0.5000    1.0000  0.0000  1.0000",
    ]
    assert len(run("show", scored_folder, "--limit", 1).out.splitlines()) == 3


def test_show_of_one_response_is_the_whole_trace(scored_folder: Path, run: Command):
    shown = run("show", scored_folder, "--response", "salt/a").out
    for part in (
        "response  salt/a",
        "reward    -0.2500  (ok, coverage 1.0000)",
        "range     -0.2500 to -0.2500",
        "verdicts  2 = 2 judged + 0 abstained + 0 failed + 0 not applicable",
        "polite   1.0000  0.2500        0.2500",
        "shaky   -0.5000  1.0000       -0.5000",
        "manners.polite  0.2500",
        "counted",
        '"please"  (response at 6-12)',
    ):
        assert part in shown


def test_show_of_one_response_begins_with_its_texts(tmp_path: Path, run: Command):
    text = "salt, please\n" + "and pepper " * 40
    response = {"id": "a", "text": text, "labels": {"step": 3, "who": "ann\x1b"}}
    project = write_project(tmp_path / "project", [{"id": "salt", "query": "Ask for it.", "responses": [response]}])
    run("score", project / "tasks.jsonl", "--out", project / "run")
    lines = run("show", project / "run", "--response", "a").out.splitlines()
    assert lines[2:4] == ["labels    step 3, who ann\\u001b", "query     Ask for it."]
    assert lines[4].startswith("text      salt, please and pepper and")
    assert (len(lines[4]), lines[4][-1]) == (310, "…")
    whole = run("show", project / "run", "--response", "a", "--texts").out
    assert f"query\n    Ask for it.\ntext\n    {'    '.join(text.splitlines(keepends=True))}\nreward" in whole
    run("erase", project / "run", "--response", "a")
    assert "text      erased" in run("show", project / "run", "--response", "a").out


def test_show_json_prints_one_trace_per_line(scored_folder: Path, run: Command):
    shown = run("show", scored_folder, "--json").out.splitlines(keepends=True)
    names = ["door/a", "door/b", "salt/a", "salt/b"]
    assert [Trace.model_validate_json(line).response_id for line in shown] == names
    assert [run("show", scored_folder, "--response", name, "--json").out for name in names] == shown


def test_explain_prints_sentences(scored_folder: Path, run: Command):
    assert run("explain", scored_folder, "--response", "salt/a").out.splitlines() == [
        "Response salt/a by alice to task salt gets -0.25.",
        "Lost 0.75: polite 0.25 of 1, weight 1 (counted, as in “please”).",
        "Lost 0.5: penalty shaky 1, weight -0.5.",
        "Sum: 1 at best - 0.75 - 0.5 = -0.25.",
        "Verdicts: 2 requested; 2 judged, 0 abstained, 0 failed, 0 not applicable.",
        "All verdicts are present.",
    ]


def test_explain_json_gives_the_same_sentences_and_the_points_behind_them(scored_folder: Path, run: Command):
    plain = run("explain", scored_folder, "--response", "salt/a").out.splitlines()
    given = json.loads(run("explain", scored_folder, "--response", "salt/a", "--json").out)
    assert given["sentences"] == plain
    assert (given["task_id"], given["response_id"], given["reward"]) == ("salt", "salt/a", -0.25)
    fields = "component", "points", "lost", "value", "weight", "reason"
    assert [[line[field] for field in fields] for line in given["lines"]] == [
        ["polite", 0.25, 0.75, 0.25, 1.0, "counted, as in “please”"],
        ["shaky", -0.5, 0.5, 1.0, -0.5, ""],
    ]


def test_what_if_decides_again_with_one_verdict_changed(scored_folder: Path, run: Command):
    assert run("explain", scored_folder, "--response", "salt/a", "--what-if").out.splitlines() == [
        "Response salt/a by alice to task salt gets -0.25.",
        "If polite were 1: 0.5 (+0.75).",
        "If shaky were not met: 0.25 (+0.5).",
        "2 of 2 single changes would raise it.",
    ]
    given = json.loads(run("explain", scored_folder, "--response", "door/a", "--what-if", "--json").out)
    assert [(one["name"], one["value"], one["gain"]) for one in given["what_if"]] == [
        ("shaky", 1.0, 0.5),
        ("polite", 0.5, 0.0),
    ]


@pytest.mark.landing
def test_on_a_terminal_explain_breaks_lines_at_its_width(
    scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "40")
    shown = run_on_terminal("explain", scored_folder, "--response", "salt/a").splitlines()
    assert max(map(len, shown)) <= 40
    assert shown[2:4] == ["Lost 0.75: polite 0.25 of 1, weight 1", "  (counted, as in “please”)."]
    whole = run("explain", scored_folder, "--response", "salt/a").out
    assert " ".join(" ".join(shown).split()) == " ".join(whole.split())


def test_export_gives_jsonl_as_shown_and_csv_with_one_row_per_response(scored_folder: Path, run: Command):
    assert run("export", scored_folder, "--to", "jsonl").out == run("show", scored_folder, "--json").out
    rows = list(csv.DictReader(io.StringIO(run("export", scored_folder, "--to", "csv").out)))
    assert [(row["response_id"], row["value"], row["component.polite"]) for row in rows] == [
        ("door/a", "0.5", "1.0"),
        ("door/b", "0.0", "0.0"),
        ("salt/a", "-0.25", "0.25"),
        ("salt/b", "-0.5", "0.0"),
    ]


CHANGED = [
    "UPDATE records SET body = replace(body, '0.25', '0.75') WHERE key = 'salt/a'",
    "UPDATE records SET key = 'salt/A' WHERE key = 'salt/a'",
    "UPDATE records SET at = at + 1 WHERE key = 'salt/a'",
    "UPDATE records SET body = replace(body, '0.125', '0.625') WHERE key = 'salt'",
    "UPDATE records SET body = replace(body, '-0.5', '-5.0') WHERE kind = 'decision'",
    "UPDATE records SET body = replace(body, 'polite', 'po1ite') WHERE kind = 'survey'",
    "UPDATE texts SET content = CAST(replace(CAST(content AS TEXT), 'counted', 'guessed') AS BLOB)",
    'UPDATE texts SET content = CAST(replace(CAST(content AS TEXT), \'"plan":"\', \'"plan":"0\') AS BLOB)',
]
LOST = [
    ("DELETE FROM records WHERE kind = 'run'", "record 1 is missing"),
    ("DELETE FROM records WHERE kind = 'survey'", "has no survey"),
    ("DELETE FROM records WHERE kind = 'decision'", "has no decision"),
    ("DELETE FROM records WHERE kind = 'task'", "has no task 'salt'; records of it are lost"),
    ("DELETE FROM records WHERE kind = 'group'", "is missing"),
]


def test_what_was_changed_or_lost_is_never_shown_as_valid(scored_folder: Path, run: Command):
    ledger = scored_folder / "run.sqlite"
    kept = ledger.read_bytes()
    before = run("show", scored_folder, "--json")
    for statement in CHANGED:
        change_ledger(scored_folder, statement)
        for command in (("show", "--json"), ("export", "--to", "jsonl")):
            ended = run(command[0], scored_folder, *command[1:])
            assert ended.code == 5 or ended == before, (command, statement)
        ledger.write_bytes(kept)
    for statement, message in LOST:
        change_ledger(scored_folder, statement)
        ended = run("explain", scored_folder, "--response", "salt/a")
        assert (ended.code, ended.out) == (5, "")
        assert message in ended.err
        ledger.write_bytes(kept)
    change_ledger(scored_folder, "DELETE FROM records WHERE key = 'salt/b'")
    for command in (("show",), ("export", "--to", "csv"), ("show", "--response", "salt/b")):
        ended = run(command[0], scored_folder, *command[1:])
        assert ended.code == 5, command
        assert "record 11" in ended.err or "1 of its 4 traces" in ended.err


def test_a_damaged_ledger_gives_exit_code_5_with_the_reason(scored_folder: Path, run: Command):
    for damaged in (b"", b"no database at all", b"SQLite format 3\0" + bytes(4080)):
        (scored_folder / "run.sqlite").write_bytes(damaged)
        for command in (("show",), ("verify",), ("export", "--to", "csv")):
            ended = run(command[0], scored_folder, *command[1:])
            assert (ended.code, ended.out) == (5, "")
            assert f"{scored_folder / 'run.sqlite'}: " in ended.err
            assert "it has been changed" in ended.err
            assert ended.err.count("\n") == 1


@all_rows(
    "command, message",
    [
        (("show", "--response", "salt/aa"), "there is no response 'salt/aa'; did you mean salt/a?"),
        (("explain", "--response", "salt/aa"), "there is no response 'salt/aa'; did you mean salt/a?"),
        (("show", "--response", "\udcff"), "there is no response"),
        (("erase", "--task", "\udcff"), "there is no task"),
        (("show", "--status", "nope"), "'nope' is not one of 'ok', 'degraded', 'failed', 'gated'.\n"),
        (("explain",), "Missing option '--response'"),
    ],
)
def test_a_wrong_option_is_refused_with_what_there_is(
    scored_once: Path, run: Command, command: tuple[str, ...], message: str
):
    ended = run(command[0], scored_once, *command[1:])
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


JUDGED_BY_MODEL = """
import jurygraph as jg


@jg.evaluator(layer="model")
def warm(task, response):
    return 0.5


def named(task, response):
    return float("Tom" in response.text)


def base(task, response):
    return 1.0
"""
GATED_CONFIG = """
evaluators: [judges.warm, judges.named, judges.base]
reward: {warm: 0.1, named: 1, base: 1}
gates: [{kind: format, component: named, below: 0.5}]
"""


def test_responses_that_a_gate_changed_are_marked_and_can_be_selected(tmp_path: Path, run: Command):
    (tmp_path / "judges.py").write_text(JUDGED_BY_MODEL)
    (tmp_path / "jury.yaml").write_text(GATED_CONFIG)
    texts = {"empty": " ", "full": "Tom is a cat.", "other": "Who?"}
    responses = [{"id": name, "text": text} for name, text in texts.items()]
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"id": "t", "query": "Who is Tom?", "responses": responses}))
    run("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run")
    shown = run("show", tmp_path / "run", "--columns", "status,gates,query").out.splitlines()
    assert [re.split("  +", line) for line in shown[2:]] == [
        ["empty", "ok, gated", "empty-response, format gate", "Who is Tom?"],
        ["full", "degraded", "-", "Who is Tom?"],
        ["other", "degraded, gated", "format gate", "Who is Tom?"],
    ]
    selected = run("show", tmp_path / "run", "--status", "gated", "--json").out.splitlines()
    assert [json.loads(line)["response_id"] for line in selected] == ["empty", "other"]
