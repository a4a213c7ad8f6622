"""`jurygraph show`, `explain` and `export`."""

import csv
import io
import json
import os
import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from jurygraph.schema import Trace
from tests.cli.conftest import Command, change_ledger, folder_contents, write_project
from tests.cli.render.test_text import run_on_terminal


def test_show_is_a_table_of_rewards_with_their_components(scored_folder: Path, run: Command):
    assert run("show", scored_folder).out.splitlines() == [
        "response  agent  status   reward  coverage  polite   shaky",
        "────────  ─────  ──────  ───────  ────────  ──────  ──────",
        "door/a    alice  ok       0.5000    1.0000  1.0000  1.0000",
        "door/b    bob    ok       0.0000    1.0000  0.0000  0.0000",
        "salt/a    alice  ok      -0.2500    1.0000  0.2500  1.0000",
        "salt/b    bob    ok      -0.5000    1.0000  0.0000  1.0000",
    ]


def test_show_can_be_limited_to_the_first_responses(scored_folder: Path, run: Command):
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


def test_a_trace_has_the_contract_s_fields(scored_folder: Path, run: Command):
    trace = json.loads(run("show", scored_folder, "--response", "door/b", "--json").out)
    fields = "task_id response_id agent group labels plan_digest reward verdicts material statistics digest previous"
    assert set(fields.split()) <= set(trace)
    reward = "value status partial coverage range components terms counts"
    assert set(reward.split()) <= set(trace["reward"])
    verdict = "question evaluator version layer subject stakeholder reviewer about responses sample score met native"
    assert set(verdict.split()) <= set(trace["verdicts"][0])


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
    assert (given["best"], given["total"]) == (1.0, -0.25)
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


def test_many_what_ifs_report_their_progress(scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jurygraph.cli.render.progress._MIN_SECONDS", 0.0)
    lines = run("explain", scored_folder, "--what-if", "--status", "ok").err.splitlines()
    assert lines == [f"deciding again: {place} of 4 responses ({place * 25}%)" for place in range(1, 5)]
    assert run("explain", scored_folder).err == ""


def test_explain_takes_many_responses_as_show_does(scored_folder: Path, run: Command):
    names = ["door/a", "door/b", "salt/a", "salt/b"]
    single = {name: run("explain", scored_folder, "--response", name).out for name in names}
    assert run("explain", scored_folder).out == "\n".join(single.values())
    ended = run("explain", scored_folder, "--sort", "reward", "--limit", 2)
    assert ended.out == f"{single['salt/b']}\n{single['salt/a']}"
    lines = run("explain", scored_folder, "--agent", "bob", "--status", "ok", "--what-if", "--json").out.splitlines()
    assert [json.loads(line)["response_id"] for line in lines] == ["door/b", "salt/b"]
    ended = run("explain", scored_folder, "--response", "door/a", "--limit", 1)
    assert (ended.code, "--limit is about many responses" in ended.err) == (2, True)


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


def test_an_unknown_choice_is_named_with_those_there_are(scored_folder: Path, run: Command):
    ended = run("show", scored_folder, "--status", "nope")
    expected = "Error: Invalid value for '--status': 'nope' is not one of 'ok', 'degraded', 'failed', 'gated'.\n"
    assert (ended.code, ended.err.endswith(expected)) == (2, True)


UNSURE = """
import jurygraph as jg


def kind(task, response):
    return jg.Verdict(score=0.0, confidence=0.9)
"""


def test_show_and_explain_list_discarded_verdicts(tmp_path: Path, run: Command):
    config = """
evaluators: [{use: manners.kind, samples: 2}]
components: {kind: {inputs: {kind: {verdicts_of: manners.kind, min_confidence: 0.95}}}}
reward: {kind: 1.0}
"""
    project = write_project(tmp_path / "project", config=config, evaluators=UNSURE)
    scored = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert "4 of 4 rewards failed" in scored.err
    shown = run("show", project / "run", "--response", "salt/a").out
    assert "kind, sample 2 of 2  0.0000" in shown
    assert shown.count("discarded: confidence 0.9000 is below 0.9500") == 2
    text = run("explain", project / "run", "--response", "salt/a").out
    assert "kind (manners.kind), sample 2 scored 0, but confidence 0.9000 is below 0.9500." in text
    assert "rror: " not in text


@pytest.mark.parametrize("command", ["show", "explain"])
def test_an_unknown_response_is_refused_with_the_nearest(scored_folder: Path, run: Command, command: str):
    ended = run(command, scored_folder, "--response", "salt/aa")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no response 'salt/aa'; did you mean salt/a?" in ended.err


@pytest.mark.parametrize("command", [("show", "--response"), ("explain", "--response"), ("erase", "--task")])
def test_an_id_that_is_not_valid_text_is_unknown(scored_folder: Path, run: Command, command: tuple[str, str]):
    ended = run(command[0], scored_folder, command[1], "\udcff")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no" in ended.err


@pytest.mark.parametrize("command", [("show",), ("explain", "--response", "x"), ("export", "--to", "csv")])
def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path, run: Command, command: tuple[str, ...]):
    ended = run(*command, tmp_path)
    assert ended.code == 2
    assert "contains no run; name the folder that `jurygraph score --out` made" in ended.err


def test_export_gives_jsonl_as_shown_and_csv_with_one_row_per_response(scored_folder: Path, run: Command):
    assert run("export", scored_folder, "--to", "jsonl").out == run("show", scored_folder, "--json").out
    rows = list(csv.DictReader(io.StringIO(run("export", scored_folder, "--to", "csv").out)))
    assert [(row["response_id"], row["value"], row["component.polite"]) for row in rows] == [
        ("door/a", "0.5", "1.0"),
        ("door/b", "0.0", "0.0"),
        ("salt/a", "-0.25", "0.25"),
        ("salt/b", "-0.5", "0.0"),
    ]


def test_export_to_a_file_prints_no_result(scored_folder: Path, run: Command, tmp_path: Path):
    ended = run("export", scored_folder, "--to", "csv", "-o", tmp_path / "rewards.csv")
    assert ended.out == ""
    assert (tmp_path / "rewards.csv").read_text() == run("export", scored_folder, "--to", "csv").out


def test_a_failed_export_leaves_the_old_file(scored_folder: Path, run: Command, tmp_path: Path):
    (tmp_path / "rewards.csv").write_text("old")
    change_ledger(scored_folder, "UPDATE records SET key = 'salt/c' WHERE key = 'salt/b'")
    assert run("export", scored_folder, "--to", "csv", "-o", tmp_path / "rewards.csv").code == 5
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == {"rewards.csv": "old"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to", "csv", "-o", "x.parquet"), "x.parquet: is the name of a parquet file; use --to parquet, or name"),
        (("--to", "parquet", "-o", "x.CSV"), "x.CSV: is the name of a csv file; use --to csv, or name another file"),
        (("--to", "csv", "-o", "x.jsonl.gz"), "x.jsonl.gz: is the name of a jsonl file; use --to jsonl"),
        (("--to", "jsonl", "--questions"), "--questions: --to jsonl has no rows of responses to add to"),
    ],
)
def test_an_export_that_contradicts_itself_is_refused(
    scored_folder: Path, run: Command, tmp_path: Path, options: tuple[str, ...], message: str
):
    ended = run("export", scored_folder, *options[:-1], tmp_path / options[-1] if "-o" in options else options[-1])
    assert (ended.code, ended.out, message in ended.err) == (2, "", True)
    assert not [path for path in tmp_path.iterdir() if path.name.lower().startswith("x.")]


def test_an_export_can_be_written_to_a_pipe(scored_folder: Path, run: Command, tmp_path: Path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert run("export", scored_folder, "--to", "jsonl", "-o", pipe).code == 0
    reader.join(timeout=30)
    assert read == [run("show", scored_folder, "--json").out.encode()]
    assert pipe.is_fifo()


@pytest.mark.parametrize("there", [True, False])
def test_an_export_follows_a_link(scored_folder: Path, run: Command, tmp_path: Path, there: bool):
    target, link = tmp_path / "target.jsonl", tmp_path / "link"
    if there:
        target.write_text("old")
    link.symlink_to("target.jsonl")
    assert run("export", scored_folder, "--to", "jsonl", "-o", link).code == 0
    assert link.is_symlink()
    assert target.read_text() == run("show", scored_folder, "--json").out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "error: the name of the output file is empty; name a file"),
        ("folder", "folder: is a folder; name a file in it"),
        ("new/", "new/: is a folder; name a file in it"),
        ("none/x.csv", "none/x.csv: its folder does not exist"),
        ("file/x.csv", "file/x.csv: its folder does not exist"),
        ("loop", "loop: cannot be written"),
    ],
)
def test_an_export_to_an_impossible_path_is_refused(
    scored_folder: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, message: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.rglob("*"))
    ended = run("export", scored_folder, "--to", "csv", "-o", given)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", [("show",), ("export", "--to", "csv"), ("show", "--response", "salt/b")])
def test_a_lost_trace_gives_exit_code_5(scored_folder: Path, run: Command, command: tuple[str, ...]):
    change_ledger(scored_folder, "DELETE FROM records WHERE key = 'salt/b'")
    ended = run(command[0], scored_folder, *command[1:])
    assert (ended.code, "record 11" in ended.err or "1 of its 4 traces" in ended.err) == (5, True), ended


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("run", "record 1 is missing"),
        ("survey", "has no survey"),
        ("decision", "has no decision"),
        ("task", "has no task 'salt'; records of it are lost"),
        ("group", "is missing"),
    ],
)
def test_a_lost_record_gives_exit_code_5(scored_folder: Path, run: Command, kind: str, message: str):
    change_ledger(scored_folder, "DELETE FROM records WHERE kind = ?", kind)
    ended = run("explain", scored_folder, "--response", "salt/a")
    assert (ended.code, ended.out) == (5, "")
    assert message in ended.err


CHANGED = {
    "a reward": "UPDATE records SET body = replace(body, '0.25', '0.75') WHERE key = 'salt/a'",
    "an id": "UPDATE records SET key = 'salt/A' WHERE key = 'salt/a'",
    "a time": "UPDATE records SET at = at + 1 WHERE key = 'salt/a'",
    "a group's statistics": "UPDATE records SET body = replace(body, '0.125', '0.625') WHERE key = 'salt'",
    "weights": "UPDATE records SET body = replace(body, '-0.5', '-5.0') WHERE kind = 'decision'",
    "a question": "UPDATE records SET body = replace(body, 'polite', 'po1ite') WHERE kind = 'survey'",
    "a reason": "UPDATE texts SET content = CAST(replace(CAST(content AS TEXT), 'counted', 'guessed') AS BLOB)",
    "a plan": 'UPDATE texts SET content = CAST(replace(CAST(content AS TEXT), \'"plan":"\', \'"plan":"0\') AS BLOB)',
}


@pytest.mark.parametrize("statement", CHANGED.values(), ids=CHANGED)
def test_a_changed_record_is_never_shown_as_valid(scored_folder: Path, run: Command, statement: str):
    before = run("show", scored_folder, "--json")
    change_ledger(scored_folder, statement)
    for command in (("show", "--json"), ("export", "--to", "jsonl")):
        ended = run(command[0], scored_folder, *command[1:])
        assert ended.code == 5 or ended == before, command


def test_a_folder_without_a_ledger_is_not_a_run(scored_folder: Path, run: Command):
    (scored_folder / "run.sqlite").unlink()
    ended = run("explain", scored_folder, "--response", "salt/a")
    assert (ended.code, ended.out) == (2, "")
    assert "contains no run" in ended.err


@pytest.mark.parametrize("damaged", [b"", b"no database at all", b"SQLite format 3\0" + bytes(4080)])
@pytest.mark.parametrize("command", [("show",), ("verify",), ("export", "--to", "csv")])
def test_a_damaged_ledger_gives_exit_code_5_with_the_reason(
    scored_folder: Path, run: Command, command: tuple[str, ...], damaged: bytes
):
    (scored_folder / "run.sqlite").write_bytes(damaged)
    ended = run(command[0], scored_folder, *command[1:])
    assert (ended.code, ended.out) == (5, "")
    assert f"{scored_folder / 'run.sqlite'}: " in ended.err
    assert "it has been changed" in ended.err
    assert ended.err.count("\n") == 1


def test_a_run_of_a_newer_version_is_not_reported_as_changed(scored_folder: Path, run: Command):
    with closing(sqlite3.connect(scored_folder / "run.sqlite")) as ledger:
        ledger.execute("PRAGMA user_version = 3")
    ended = run("show", scored_folder)
    assert (ended.code, ended.out) == (2, "")
    assert "was made by a newer jurygraph (schema version 3; this one reads 2); upgrade jurygraph" in ended.err


def test_what_reads_a_stopped_run_reports_its_progress(project: Path, run: Command):
    run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
    ended = run("show", project / "run")
    assert len(ended.out.splitlines()) == 4
    expected = "1 of 2 tasks are scored so far; the same score command continues, without --limit if it has one\n"
    assert ended.err == expected
    assert run("explain", project / "run").err == expected
    assert run("export", project / "run", "--to", "csv").err == expected


def test_a_pair_is_shown_from_the_side_of_the_response(project: Path, run: Command):
    source = "import jurygraph as jg\n\n@jg.evaluator(scope='pair', pairs='unordered')\n"
    source += "def better(task, first, second):\n    return 0.25\n"
    (project / "manners.py").write_text(source)
    (project / "jury.yaml").write_text("evaluators: [manners.better]\n")
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert "verdicts: 2 judged" in ended.out
    expected = run("score", project / "tasks.jsonl", "--out", project / "other", "--dry-run", "--json").out
    assert json.loads(expected)["verdicts"] == 2
    shown = {name: run("show", project / "run", "--response", f"door/{name}").out for name in "ab"}
    lines = sorted(line.strip() for text in shown.values() for line in text.splitlines() if "against" in line)
    scores = {line.split()[2]: line.split()[3] for line in lines}
    assert sorted(scores) == ["door/a", "door/b"]
    assert sorted(scores.values()) == ["0.2500", "0.7500"]


HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/]\r\u202e\x9b31m"


def test_a_hostile_response_is_escaped_on_a_terminal(project: Path, run: Command):
    response = {"id": f"r{HOSTILE}", "agent": HOSTILE, "text": f"please {HOSTILE}"}
    task = {"id": f"t{HOSTILE}", "query": "?", "responses": [response, {"id": "other", "text": f"crash {HOSTILE}"}]}
    write_project(project, [task])
    ended = [run("score", project / "tasks.jsonl", "--out", project / "run")]
    ended += [run("show", project / "run"), run("show", project / "run", "--json")]
    for command in ("show", "explain"):
        ended.append(run(command, project / "run", "--response", response["id"]))
        ended.append(run(command, project / "run", "--response", response["id"], "--json"))
    ended.append(run("show", project / "run", "--response", HOSTILE))
    for one in ended:
        assert not set("\x1b\x07\r\u202e\x9b") & set(one.out + one.err)
    assert "\\u001b[2J" in ended[1].out
    assert "[bold red]x[/]" in ended[1].out


OWN_FILES = ["run.sqlite", "run.sqlite-wal", "run.sqlite-shm", "run.sqlite-journal", "config.yaml", "run.lock"]


@pytest.mark.parametrize("name", [*OWN_FILES, "seal.json", "link"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_never_overwrites_a_file_of_the_run(
    scored_folder: Path, run: Command, tmp_path: Path, name: str, form: str
):
    (tmp_path / "link").symlink_to(scored_folder / "run.sqlite")
    before = folder_contents(scored_folder)
    ended = run(
        "export", scored_folder, "--to", form, "-o", tmp_path / "link" if name == "link" else scored_folder / name
    )
    assert (ended.code, "a file of the run;" in ended.err) == (2, True)
    assert folder_contents(scored_folder) == before


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
