"""The agents of a run apart for each value of a label: who leads where, and what may be chance."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

import jurygraph as jg
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.views.labels import compare_by_label
from tests.command import run_command


def length(task: jg.TaskView, response: jg.Response) -> float:
    return len(response.text) / 10


def record(folder: Path, rows: list[tuple[Any, int, int]]) -> Path:
    """Record a task for each row: the language of both answers, and the lengths of those of `ann` and `bob`."""
    with jg.Jury(evaluators=[length], record=folder) as jury:
        for number, (language, *lengths) in enumerate(rows):
            labels = {} if language == "missing" else {"language": language}
            responses = [
                jg.Response(id=f"{number}/{agent}", agent=agent, text="x" * size, labels=labels)
                for agent, size in zip(("ann", "bob"), lengths, strict=True)
            ]
            jury.score(jg.Task(id=f"t{number}", query="?"), responses)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run in which ann is better in English, bob in German, and both alike over all."""
    english = [("en", 8 - number % 2, 3 + number % 3) for number in range(12)]
    german = [(" de ", 3 + number % 2, 8 - number % 3) for number in range(12)]
    few = [("fr", 9, 1), ("DE", 1, 2), ("missing", 3, 4), (None, 3, 4)]
    return record(tmp_path_factory.mktemp("labelled") / "run", [*english, *german, *few])


def test_another_agent_may_lead_in_each_value_and_few_tasks_show_nothing(folder: Path) -> None:
    with Run.open(folder) as run:
        by = compare_by_label(run, "language")
        with pytest.raises(InputError, match=r"'label.langage'; did you mean label.language"):
            compare_by_label(run, "langage")
    rows = by.rows
    assert [(row.value, row.units) for row in rows] == [
        ("de", 12),
        ("en", 12),
        ("DE", 1),
        ("fr", 1),
        ("(no value)", 2),
    ]
    outcomes = [row.outcome for row in rows]
    assert outcomes[0] == "bob is ahead of ann, by more than chance"
    assert outcomes[1] == "ann is ahead of bob, by more than chance"
    assert set(outcomes[2:]) == {"too few scored tasks in common"}
    assert rows[1].means == "ann 0.7500, bob 0.4000"
    assert rows[0].lead is not None
    assert rows[0].lead.pairs == 2  # only of the values with enough tasks
    assert by.conclusion == (
        "By language: bob is ahead of ann, by more than chance, in de; "
        "ann is ahead of bob, by more than chance, in en."
    )
    correction, similar = by.notes
    assert correction == "the leads in all values hold together with 95 % (Bonferroni)"
    assert similar.startswith("'DE' and 'de' differ only in case")


def test_a_condition_chooses_a_label_and_columns_without_labels_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "x.csv"
    exported = run_command("export", folder, "--where", "label.language=en", "-o", out)
    assert "24 of 56 responses" in exported.err
    assert len(out.read_text("utf-8").splitlines()) == 25
    unknown = run_command("show", folder, "--where", "label.language=eng")
    assert "no response has the label language=eng; values of language:" in unknown.err
    ignored = run_command("export", folder, "--label", "language=en", "-o", out)
    assert (ignored.code, "--where label.NAME=VALUE" in ignored.err) == (2, True)
    short = run_command("show", folder, "--columns", "langua")
    assert "did you mean label.language?" in short.err


def test_a_workbook_has_the_values_of_a_label_and_no_blanks_around_them(
    folder: Path, tmp_path: Path
) -> None:
    written = tmp_path / "x.xlsx"
    assert run_command("export", folder, "--by", "language", "-o", written).code == 0
    book = load_workbook(written)
    assert book.sheetnames[:2] == ["Agents", "By language"]
    head, first, *_ = book["By language"].values
    assert head[:2] + head[3:7] == (
        *("language", "Tasks", "Lead", "From (95 %)", "To (95 %)", "Of both"),
    )
    assert (first[:2], first[6:]) == (
        ("de", 12),
        (12, "bob is ahead of ann, by more than chance"),
    )
    assert first[3] == pytest.approx(0.35)
    assert book["By language"]["D2"].number_format == "0.0000"
    titles, *rows = book["Everything"].values
    assert {row[titles.index("label.language")] for row in rows} == {"de", "en", "fr", "DE", None}
    refused = run_command("export", folder, "--by", "language", "-o", tmp_path / "x.csv")
    assert (refused.code, "--by: is not for --to csv" in refused.err) == (2, True)


def test_a_number_for_an_id_says_which_row_it_is(tmp_path: Path) -> None:
    with jg.Jury(evaluators=[length], record=tmp_path / "run") as jury:
        jury.score(
            jg.Task(id="row-37", query="?"),
            [
                jg.Response(id=f"row-37/{name}", agent=name, text="x", labels={"a/b": 1})
                for name in "AB"
            ],
        )
    refused = run_command("explain", tmp_path / "run", "--response", "37")
    assert "row 37 below the header, row 38 of the sheet, is row-37/A, row-37/B" in refused.err
    written = tmp_path / "x.xlsx"
    assert run_command("export", tmp_path / "run", "--by", "a/b", "-o", written).code == 0
    assert load_workbook(written).sheetnames[1] == "By a b", "Excel has no / in the name of a sheet"


def test_a_ranking_and_a_brief_show_the_values_of_a_label(folder: Path, tmp_path: Path) -> None:
    printed = run_command("study", "ranking", folder, "--by", "language")
    assert re.search(
        r"language\s+tasks\s+mean rewards\s+lead\s+over tasks of both\s+that is", printed.out
    )
    assert re.search(r"en\s+12\s+ann 0.7500, bob 0.4000 .*\)\s+12\s+ann is ahead", printed.out)
    assert re.search(r"\(no value\)\s+2\s.*too few scored tasks in common", printed.out)
    figures = json.loads(run_command("study", "ranking", folder, "--by", "language", "--json").out)
    assert figures["by"]["label"] == "language"
    first, *_ = figures["by"]["values"]
    assert (first["value"], first["units"], first["agents"][0]["agent"]) == ("de", 12, "bob")
    brief = tmp_path / "brief.html"
    assert run_command("report", folder, "--brief", "--by", "language", "-o", brief).code == 0
    page = brief.read_text("utf-8")
    assert "<h2>By language</h2>" in page
    assert "bob is ahead of ann, by more than chance, in de" in page
    assert re.search(r"\(0.35; 0.\d\d to 0.\d\d; 12 of both\)", page)
    assert len(re.findall(" – (?:ann|bob): x+", page)) == 3
    chosen = ("--brief", "--most", 5, "--title", "Which bot for <us>?")
    assert run_command("report", folder, *chosen, "-o", brief).code == 0
    page = brief.read_text("utf-8")
    assert len(re.findall(" – (?:ann|bob): x+", page)) == 5
    assert "<h1>Which bot for &lt;us&gt;?</h1>" in page
    refused = run_command("report", folder, "--by", "language", "-o", brief)
    assert (refused.code, "--by is for a page of paper" in refused.err) == (2, True)
    refused = run_command(
        "study", "ranking", folder, "--by", "language", "--set", "failure.min_coverage=0.5"
    )
    assert (refused.code, "leave out --set" in refused.err) == (2, True)
    refused = run_command("report", folder, "--brief", "--by", "color", "-o", brief)
    assert (refused.code, "--by: there is no column 'label.color'" in refused.err) == (2, True)
