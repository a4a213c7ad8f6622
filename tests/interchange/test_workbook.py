"""What `export --to xlsx` writes: a sheet to read, and one with everything, in which a text stays a text."""

import csv
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

import jurygraph as jg
from jurygraph.display import format_number
from jurygraph.runs.run import Run
from tests.command import run_command
from tests.viewer.conftest import LETTERS, record

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)")
TEXTS = ("_x003D_1+1 please; =1", f"please {'😀' * 20_000}", "quixotic \x1b[31m\u202e\x0b please")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "run"
    record(folder, {**LETTERS, "odd": TEXTS, **dict.fromkeys(FORMULAS, ("please",))})
    return folder


def export(folder: Path, *options: str) -> Any:
    written = folder.parent / "rewards.xlsx"
    assert run_command("export", folder, "--to", "xlsx", "-o", written, *options).code == 0
    return load_workbook(written)


def as_written(value: float) -> float:
    """A number in the digits that openpyxl writes."""
    return float(f"{value:.16g}")


def test_the_sheet_of_rewards_can_be_read_by_somebody_who_does_not_know_jurygraph(
    folder: Path,
) -> None:
    sheet = export(folder)["Rewards"]
    assert sheet.freeze_panes == "A2"
    head, *rows = sheet.iter_rows(values_only=True)
    assert head == (
        "Response",
        "Task",
        "Question",
        "Answer, up to 1,000 characters",
        "Agent",
        "Reward",
        "Judged, or set by a gate",
        "What was lost, or why there is no reward",
        "polite",
        "brief",
    )
    assert sheet.auto_filter.ref == f"A1:J{len(rows) + 1}"
    with closing(Run.open(folder)) as run:
        rewards = {
            trace.response_id: (
                trace.task_id,
                trace.reward.value and round(trace.reward.value, 4),
            )
            for trace in run.traces()
        }
    assert {row[0]: (row[1], row[5]) for row in rows} == rewards
    values = [row[5] for row in rows if row[5] is not None]
    assert values == sorted(values)
    assert [row[0] for row in rows[len(values) :]] == ["bob/1", "odd/2"]  # they have no reward
    by_name = {row[0]: row[7] for row in rows}
    assert all(row[2].startswith("Write to ") for row in rows)
    answers = {row[0]: row[3] for row in rows}
    assert answers["ann/1"] == "come"
    assert (len(answers["odd/1"]), answers["odd/1"][-1]) == (1000, "…")
    assert [row[8:] for row in rows if row[0] == "ann/1"] == [(0, 0.98)]
    assert by_name["ann/1"].splitlines() == [
        "Lost 0.7: polite 0 of 1, weight 0.7 (counted in come)",
        "Lost 0.006: brief 0.98 of 1, weight 0.3",
        "Sum: 1 at best - 0.7 - 0.006 = 0.294",
    ]
    failure = "Not scored: brief: RuntimeError as the response wished"
    assert by_name["bob/1"].startswith(failure)
    assert by_name["bob/1"].endswith("; it would be between 0 and 0.3")
    assert [cell.number_format for cell in sheet[2]] == [
        *["General"] * 5,
        "0.0000",
        "0%",
        "General",
        *["0.0000"] * 2,
    ]
    assert sheet.column_dimensions["H"].width > sheet.column_dimensions["F"].width
    assert all(cell.alignment.wrap_text for row in sheet["A1:H2"] for cell in row)


def test_the_first_sheet_has_the_agents_with_their_means_over_tasks(folder: Path) -> None:
    book = export(folder)
    assert book.sheetnames == ["Agents", "Rewards", "Everything"]
    sheet = book.active
    assert sheet.title == "Agents"
    head, *rows = sheet.iter_rows(values_only=True)
    first_fact = [row[0] for row in rows].index("Not finished: 7 groups so far")
    assert rows[first_fact - 1][0].startswith("No agent is shown to be better than the next")
    del rows[first_fact - 1 :]
    columns = "Agent", "Mean reward", "From (95 %)", "To (95 %)", "Responses", "Tasks", "Failed"
    sentences = "Is it better than the next?", "Is the best better than it?"
    assert head[:9] == (*columns, *sentences)
    ranking = json.loads(run_command("study", "ranking", folder, "--json").out)
    expected = {}
    for agent in ranking["agents"]:
        mean = agent["mean"]
        figures = [mean[name] and as_written(mean[name]) for name in ("value", "low", "high")]
        expected[agent["agent"]] = (*figures, agent["responses"], agent["left_out"])
    assert [row[0] for row in rows] == list(expected)
    assert {row[0]: (*row[1:5], row[6]) for row in rows} == expected
    leads, gaps = ([row[column] for row in rows if row[column]] for column in (7, 8))
    for sentence, pair in zip(leads + gaps, ranking["pairs"] + ranking["gaps"], strict=True):
        assert sentence.startswith(f"{pair['first']} is ahead of {pair['second']}")
        assert f": the difference is {format_number(pair['difference'])}" in sentence
    assert sheet[2][1].number_format == "0.0000"
    # the components as study ranking has them, those in which the agents differ most first
    titles = []
    for row in ranking["components"]:
        parts = ("mean of the judged", "points behind", "left out")
        titles += [f"{row['component']}: {part}" for part in parts]
    assert list(head[9:]) == titles
    for number, row in enumerate(rows):
        figures = []
        for component in ranking["components"]:
            mean = component["agents"][number]
            figures += [
                as_written(mean["mean"]),
                as_written(mean["points"]),
                mean["left_out"],
            ]
        assert list(row[9:]) == figures


def test_a_run_of_one_agent_has_no_sheets_of_comparison_and_names_its_models(
    tmp_path: Path,
) -> None:
    judge = jg.testing.ScriptedJudge({"polite": True})
    criteria = jg.criteria({"polite": "It is polite."})
    with jg.Jury(model=judge, evaluators=[criteria]) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="ann", query="Write to Ann."), ["Dear Ann, please come."])
    book = export(tmp_path / "run")
    assert book.sheetnames == ["Rewards", "Run", "Everything"]
    *_, last_row = book["Run"].iter_rows(values_only=True)
    assert last_row[:3] == ("Models", "scripted-judge", None)


def test_what_does_not_apply_and_what_no_model_judged_is_told_beside_a_reward(
    tmp_path: Path,
) -> None:
    @jg.evaluator(layer="check")
    def dated(task: jg.Task, response: jg.Response) -> jg.Verdict:
        return jg.Verdict.not_applicable("no date was wanted")

    @jg.evaluator(layer="check")
    def kind(task: jg.Task, response: jg.Response) -> float:
        raise RuntimeError("no dictionary")

    judge = jg.testing.ScriptedJudge({"polite": True})
    polite = jg.criteria({"polite": "It is polite."})
    with (
        jg.Jury(
            model=judge,
            evaluators=[dated, kind, polite],
            reward={"dated": 1, "criteria": 4, "kind": 1},
        ) as jury,
        jury.record(tmp_path / "run"),
    ):
        jury.score(jg.Task(id="ann", query="Write to Ann."), ["Dear Ann, please come."])
    book = export(tmp_path / "run")
    (row,) = book["Rewards"].iter_rows(min_row=2, values_only=True)
    *_, skipped, total, missing = row[7].splitlines()
    assert (skipped, total) == (
        "Not applicable, no effect: dated",
        "Sum: 5 at best - 1 = 4",
    )
    assert missing.startswith("Not all was judged: kind: RuntimeError no dictionary")
    assert missing.endswith("; it would be between 4 and 5")


def test_the_last_sheet_has_the_cells_of_csv(folder: Path) -> None:
    options = ("--questions", "--reasons", "--texts")
    head, *rows = export(folder, *options)["Everything"].iter_rows(values_only=True)
    printed = run_command("export", folder, "--to", "csv", *options).out
    expected_head, *expected = csv.reader(printed.splitlines())
    assert list(head) == expected_head
    assert len(rows) == len(expected)
    numbers = [index for index, name in enumerate(head) if name.startswith(("reward", "question."))]
    for row, cells in zip(rows, expected, strict=True):
        for index in numbers:
            assert row[index] == (as_written(float(cells[index])) if cells[index] else None)


def test_chosen_responses_are_listed_and_all_count_for_who_is_better(folder: Path) -> None:
    agents, *lists = export(folder, "--where", "polite<0.5")
    whole, rewards, everything = export(folder)
    for sheet in (whole, rewards, everything):
        assert sheet.page_setup.orientation == "landscape"
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
    chosen = {
        row[0]
        for row in rewards.iter_rows(min_row=2, values_only=True)
        if row[8] is not None and row[8] < 0.5
    }
    for sheet, column in zip(lists, (0, 1), strict=True):
        rows = sheet.iter_rows(min_row=2, values_only=True)
        assert {row[column] for row in rows} == chosen, sheet.title
    (note,) = {*agents.values} - {*whole.values}
    assert note[0] == f"The other sheets have {len(chosen)} of {rewards.max_row - 1} responses"


def test_no_text_is_a_formula_and_every_character_can_be_seen(folder: Path) -> None:
    book = export(folder, "--texts")
    for sheet in book:
        cells = [cell for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)]
        assert {cell.data_type for cell in cells} <= {"s", "inlineStr"}
        if sheet.title == "Agents":
            continue  # which has no response
        marked = [cell for cell in cells if cell.value.startswith(("=", "+", "-", "@"))]
        assert {cell.value.partition("/")[0] for cell in marked} == set(FORMULAS)
        assert all(cell.quotePrefix for cell in marked)
        after_a_break = [cell for cell in cells if "; =1" in cell.value]  # as in a CSV file
        assert after_a_break
        assert all(cell.quotePrefix for cell in after_a_break)
    head, *rows = book["Everything"].iter_rows(values_only=True)
    texts = {row[head.index("response")]: row[head.index("text")] for row in rows}
    assert texts["odd/0"] == TEXTS[0].replace("_x", "_x005F_x")  # as Excel reads it: the text
    assert texts["odd/1"].endswith("😀…")
    assert len(texts["odd/1"].encode("utf-16-le")) // 2 <= 32_767
    assert texts["odd/2"] == json.dumps(TEXTS[2])[1:-1]


def test_without_the_library_its_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    ended = run_command("export", folder, "-o", folder.parent / "none.xlsx")
    assert (ended.code, ended.err) == (
        2,
        "error: this needs openpyxl: pip install 'jurygraph[xlsx]'\n",
    )


def test_an_open_run_shows_its_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurygraph.cli.render.text._MIN_SECONDS_BETWEEN_REPORTS", 0.0)
    ended = run_command("export", folder, "--to", "csv")
    assert ended.code == 0
    assert "reading: 12 of 12 responses (100%)" in ended.err
