"""Exports of a run."""

import csv
import io
import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.interchange.tables import table_to_csv, write_parquet
from jurygraph.interchange.traces import export_traces_as_jsonl
from jurygraph.interchange.votes import export_votes
from jurygraph.runs.export_table import TableName
from jurygraph.runs.run import Run
from jurygraph.runs.table_reader import TableOptions, open_export_table
from jurygraph.sources.csv_text import escape_formulas, unescape_formulas
from jurygraph.testing import ScriptedJudge
from jurygraph.views.rewards import ResponseSelection, build_reward_table
from tests.runs.sample_runs import (
    RECORDING,
    make_tasks,
    score,
    scored_session,
    traces_of,
    write_tasks,
)


def export_csv(run: Run, name: TableName = "rewards", texts: bool = False) -> str:
    with closing(open_export_table(run, name, TableOptions(texts=texts))) as table:
        return b"".join(table_to_csv(table)).decode()


def csv_rows(
    folder: Path, name: TableName = "rewards", texts: bool = False
) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export_csv(Run.open(folder), name, texts), newline="")))


def test_jsonl_escapes_invisible_characters(tmp_path: Path) -> None:
    given = make_tasks(tasks=1, size=1)
    given[0]["responses"][0]["text"] = "a\u202eb\u2028c"
    score(tmp_path / "run", write_tasks(tmp_path / "given", given))
    (line,) = export_traces_as_jsonl(Run.open(tmp_path / "run"))
    assert "\u202e".encode() not in line
    assert b"a\\u202eb\\u2028c" in line


def test_a_run_without_votes_of_judges_is_refused(plain: Path) -> None:
    with (
        closing(Run.open(plain)) as run,
        pytest.raises(InputError, match="has no votes, since no judge"),
    ):
        list(export_votes(run))


def test_a_judge_without_a_name_votes_under_that_of_its_evaluator(tmp_path: Path) -> None:
    model = ScriptedJudge({"It answers.": True})
    use = {"use": "criteria", "params": {"criteria": {"ok": "It answers."}}}
    tasks = write_tasks(tmp_path, make_tasks(tasks=1, size=2))
    with scored_session(tmp_path / "run", tasks, {"model": model, "evaluators": [use]}):
        pass
    with closing(Run.open(tmp_path / "run")) as run:
        votes = list(map(json.loads, export_votes(run)))
    assert [(vote["annotator"], vote["label"]) for vote in votes] == [("criteria", 1.0)] * 2


def test_csv_has_one_row_per_response(plain: Path) -> None:
    found, traces = csv_rows(plain), list(traces_of(plain))
    assert list(found[0]) == [
        *("task", "response", "agent", "reward", "status", "coverage", "low", "high"),
        *("component.late", "component.same", "component.tone"),
        *("term.late", "term.same", "term.tone"),
        *("judged", "gated", "abstained", "failed", "not_applicable", "label.gold"),
    ]
    for row, trace in zip(found, traces, strict=True):
        assert (row["response"], row["agent"], row["status"]) == (
            trace.response_id,
            trace.agent,
            trace.reward.status,
        )
        assert row["reward"] == ("" if trace.reward.value is None else repr(trace.reward.value))
        assert int(row["judged"]) == trace.reward.counts.judged


def test_what_show_has_is_called_the_same_in_csv(plain: Path) -> None:
    columns = set(csv_rows(plain)[0])
    with closing(Run.open(plain)) as run:
        shown = [
            column.name for column in build_reward_table(run, ResponseSelection(), None).columns
        ]
    assert {"response", "reward"} <= set(shown)
    assert [name for name in shown if not {name, f"component.{name}"} & columns] == []


def test_csv_counts_scores_set_by_a_gate_apart_from_judgements(tmp_path: Path) -> None:
    (task,) = make_tasks(tasks=1, size=2)
    task["responses"][0]["text"] = ""
    config = {"evaluators": [{"use": RECORDING, "name": "tone", "params": {"layer": "model"}}]}
    score(tmp_path / "run", write_tasks(tmp_path / "given", [task]), config)
    assert [(row["judged"], row["gated"]) for row in csv_rows(tmp_path / "run")] == [
        ("0", "1"),
        ("1", "0"),
    ]


@pytest.mark.parametrize(
    "name",
    ["a\r=1+1", "a\n@SUM(A1)", "a\t-1", "a;=1", "\r\n+1", "a\u2028=1", "tab\there", "cr\rhere"],
)
def test_csv_quotes_line_breaks_and_escapes_formulas_after_them(tmp_path: Path, name: str) -> None:
    given = make_tasks(tasks=1, size=1)
    given[0]["id"] = given[0]["responses"][0]["id"] = given[0]["responses"][0]["agent"] = name
    score(tmp_path / "run", write_tasks(tmp_path / "given", given))
    content = export_csv(Run.open(tmp_path / "run"))
    cell = escape_formulas(name)
    assert content.split("\n", 1)[1].startswith(f'"{cell}","{cell}","{cell}",')
    for separator in ",;\t":
        table = csv.reader(io.StringIO(content, newline=""), delimiter=separator)
        assert not [
            one for row in table for one in row if re.match(r"[=+\-@](?!\d)|[\t\r\n]+[=+\-@]", one)
        ]
    assert unescape_formulas(csv_rows(tmp_path / "run")[0]["agent"]) == name


def test_parquet_has_the_same_rows_with_types(plain: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    with closing(open_export_table(Run.open(plain))) as table:
        write_parquet(table, tmp_path / "rewards.parquet")
    found = pq.read_table(tmp_path / "rewards.parquet").to_pylist()
    shown = [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in found
    ]
    assert shown == csv_rows(plain)
    assert {type(row["coverage"]) for row in found} == {float}
    assert {type(row["judged"]) for row in found} == {int}
