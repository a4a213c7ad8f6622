"""The one renderer of reports: text, JSON, Markdown and the plot."""

import ast
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import jurygraph.studies
from jurygraph.cli.render.report import (
    METADATA_BY_SUFFIX,
    ReportOutputOptions,
    draw_plots,
    format_report_lines,
)
from jurygraph.errors import InputError
from jurygraph.studies import symbols
from jurygraph.studies.presentations import read_presentations_of_sources
from jurygraph.studies.report import (
    IntervalCell,
    Plot,
    PlotSeries,
    PlotShading,
    Report,
    ReportTable,
    describe_range,
    describe_series,
)
from jurygraph.viewer.documents import render_study
from tests.examples import one_in
from tests.rows import all_rows

NAMES = PlotSeries.from_estimates_with_intervals(
    "rate", {"a $x$": IntervalCell(0.5, 0.4, 0.7), "b": IntervalCell(None, None, None)}
)
PLOTS = (
    Plot("bars $5 or $6", "bars", [NAMES]),
    Plot("points", "points", [NAMES, PlotSeries("other", [0.1, None], ["a $x$", "b"])]),
    Plot("lines", "line", [PlotSeries("one", [0.1, None], [1, 10])], marks=[(2.0, "mark")]),
    Plot("values", "histogram", [PlotSeries("items", [0.1, 0.2, 0.2])]),
)


RATES = {"a|b": 0.25, "c": None, "d": 1.0}
MADE = Report(
    figures={"rates": RATES, "plot": PLOTS[0].marks, "estimate": IntervalCell(0.5, math.nan, None)},
    sections=[
        "one *line* of <b>text</b>\x1b[31m",
        ReportTable(
            ("name", "rate (95 %)", "tasks"),
            [
                [name, IntervalCell(rate, 0.0, 1.0 if rate else None), 3]
                for name, rate in RATES.items()
            ],
            most=2,
        ),
        ReportTable(("nothing", "here"), []),
        "the end",
    ],
    notes=["omitted, for a reason: 3"],
    plots=PLOTS,
)


def test_text_has_an_empty_line_around_each_table_and_no_control_characters() -> None:
    assert list(format_report_lines(MADE.sections)) == [
        "one *line* of <b>text</b>\\u001b[31m",
        "",
        "name                rate (95 %)  tasks",
        "────  ─────────────────────────  ─────",
        "a|b   0.2500 (0.0000 to 1.0000)      3",
        "c                             -      3",
        "... and 1 more (--json)",
        "",
        "the end",
    ]


def test_markdown_has_the_command_the_tables_and_the_notes_and_texts_add_no_markup() -> None:
    assert MADE.to_markdown("jurygraph study made 'a `run`'").splitlines() == [
        "`jurygraph study made 'a  run '`",
        "",
        r"one \*line\* of \<b\>text\</b\>\\u001b\[31m",
        "",
        "| name | rate (95 %) | tasks |",
        "| --- | ---: | ---: |",
        r"| a\|b | 0.2500 (0.0000 to 1.0000) | 3 |",
        "| c | - | 3 |",
        "",
        "... and 1 more (--json)",
        "",
        "the end",
        "",
        "- omitted, for a reason: 3",
    ]


def test_markdown_mentions_nobody_and_has_no_links() -> None:
    text = "@agent0 &#64;b ~no~ #12 GH-12 https://evil.example www.evil.example"
    page = Report({}, [text, ReportTable(("@agent1",), [["@agent2"]])]).to_markdown()
    assert page.splitlines() == [
        r"@&#8203;agent0 \&\#&#8203;64;b \~no\~ \#&#8203;12 GH-&#8203;12 https:&#8203;//evil.example "
        "www&#8203;.evil.example",
        "",
        "| @&#8203;agent1 |",
        "| --- |",
        "| @&#8203;agent2 |",
    ]


def test_json_has_the_figures_alone_and_empty_tables_are_left_out() -> None:
    estimate = {"value": 0.5, "low": None, "high": None}
    assert MADE.to_json() == {"rates": RATES, "plot": [], "estimate": estimate}
    assert [table.header[0] for table in MADE.tables] == ["name"]


@pytest.mark.landing
@pytest.mark.parametrize("suffix", one_in(3, [(suffix,) for suffix in METADATA_BY_SUFFIX]))
def test_the_same_plots_give_the_same_file(tmp_path: Path, suffix: str) -> None:
    for name in ("one", "two"):
        draw_plots(PLOTS, tmp_path / name, suffix)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_plot_has_its_titles_and_labels_and_dollar_signs_are_not_mathematics(
    tmp_path: Path,
) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_plots(PLOTS, tmp_path / "a.svg", ".svg")
    drawn = (tmp_path / "a.svg").read_text()
    for text in ("bars $5 or $6", "points", "lines", "values", "a $x$", "other", "mark"):
        assert f">{text}<" in drawn
    assert "mathdefault" not in drawn


def test_a_place_without_a_panel_is_empty(tmp_path: Path) -> None:
    for plots, has_axis in ((PLOTS, True), (PLOTS[:3], False)):
        draw_plots(plots, tmp_path / "a.svg", ".svg")
        assert ("matplotlib.axis_7" in (tmp_path / "a.svg").read_text()) == has_axis


def test_a_panel_without_a_number_or_a_change_is_left_out_and_what_was_found_is_shaded(
    tmp_path: Path,
) -> None:
    flat = Plot("flat", "line", [PlotSeries("same", [0.5, 0.5], [1, 2])])
    empty = Plot("empty", "bars", [PlotSeries("none", [None], ["a"])])
    found = [PlotShading(1.0, 2.0, "hack", True)]
    moving = Plot("moving", "line", [PlotSeries("up", [0.1, 0.5], [1, 2])], shaded_ranges=found)
    report = Report({}, plots=[flat, empty, moving])
    output = ReportOutputOptions(plot=tmp_path / "a.svg", html=tmp_path / "a.html", title="Made")
    output.write_report_files(report)
    drawn = (tmp_path / "a.svg").read_text()
    assert "axes_1" in drawn
    assert "axes_2" not in drawn
    assert "#c8452d" in drawn
    page = (tmp_path / "a.html").read_text()
    assert page.count("<figure>") == 1
    assert 'alt="moving"' in page


def test_a_page_draws_the_estimates_of_a_column_on_one_scale_and_texts_add_no_markup() -> None:
    page = render_study(MADE, "<i>Made</i>", "jurygraph study made", [("<b>seen</b>", b"<svg/>")])
    assert page.count('class="interval"') == 1  # of two rows, one has no value
    assert "from 0.00 to 1.00" in page
    for markup in ("<i>", "<b>", "<script", "http://", "https://", "onload"):
        assert markup not in page
    assert "... and 1 more (--json)" in page
    assert "omitted, for a reason: 3" in page


def test_sentences_name_the_ends_of_what_was_measured() -> None:
    missing = IntervalCell(None, None, None)
    for by_name, sentence in (
        (
            {"a": 0.5, "b": IntervalCell(0.25, 0.1, 0.4), "c": missing},
            "X is 0.25 for b, up to 0.50 for a",
        ),
        ({"a": 0.5, "c": None}, "X is 0.50 for a"),
        ({"c": missing}, "X was not measured"),
    ):
        assert describe_range("X", by_name) == sentence
    line = PlotSeries("line", [None, 0.5, 0.25], [1, 2, 3])
    assert describe_series("X", "step", line) == "X is 0.50 at step 2, and 0.25 at step 3"


def test_impossible_forms_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="--json and --markdown: one result has one form"):
        ReportOutputOptions(json=True, markdown=True)
    for name in ("boss.xlsx", "boss"):
        with pytest.raises(
            InputError, match=rf"{name}: the page is HTML; name a file that ends in \.html"
        ):
            ReportOutputOptions(html=tmp_path / name)
    with pytest.raises(InputError, match=r"a\.gif: pictures end in \.svg, \.png, \.pdf"):
        ReportOutputOptions(plot=tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'jurygraph\[plot\]'"):
        ReportOutputOptions(plot=tmp_path / "a.svg")


def test_files_are_there_before_the_first_line_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, plot = tmp_path / "page.html", tmp_path / "plot.svg"

    def close_pipe(lines: object) -> None:
        assert page.exists()
        assert plot.exists()
        raise BrokenPipeError

    monkeypatch.setattr("jurygraph.cli.render.report.print_result_lines", close_pipe)
    with pytest.raises(BrokenPipeError):
        ReportOutputOptions(html=page, plot=plot).write(replace(MADE, plots=PLOTS))


def test_a_source_that_is_named_twice_is_refused_before_it_is_read() -> None:
    with pytest.raises(InputError, match=r"^scores.csv: is named twice; name each once$"):
        read_presentations_of_sources(
            [Path("./scores.csv"), Path("scores.csv")], lambda folders, read: []
        )


def test_a_greek_letter_that_is_printed_is_explained_once_below_its_first_use() -> None:
    meanings = {"σ²_Sem": "of wordings", "σ": "a deviation", "κ": "agreement", "alpha": "chance"}
    table = ReportTable(("judge", "κ", "σ²_Sem"), [["a", 0.5, 0.1]])
    report = Report(
        {}, ["one", table, "κ = 1", table], conclusion=["a: κ 0.5"], symbol_meanings=meanings
    )
    first, explained, *rest = [part for part in report.content if isinstance(part, str)]
    assert (first, explained) == ("a: κ 0.5", "κ: agreement")
    assert rest == ["one", "σ²_Sem: of wordings", "κ = 1"]
    assert report.to_json() == {"conclusion": ["a: κ 0.5"]}
    page = render_study(report, "Made", "jurygraph study made")
    assert "κ: agreement" in page
    assert 'class="lede">a: κ 0.5<' in page
    two = render_study(Report({}, ["c"], conclusion=["a", "b"]), "Made", "jurygraph study made")
    assert re.findall(r'class="(\w+)">([abc])<', two) == [
        ("lede", "a"),
        ("lede", "b"),
        ("fine", "c"),
    ]


def test_a_wide_table_goes_on_below_with_the_columns_of_text() -> None:
    wide = ReportTable(["name", *map(str, range(25))], [["a", *range(25)], ["b", *range(25)]])
    parts = [part for part in Report({}, [wide]).content if isinstance(part, ReportTable)]
    assert [part.header[:2] for part in parts] == [["name", "0"], ["name", "11"], ["name", "22"]]
    assert [len(part.header) for part in parts] == [12, 12, 4]
    assert [part.rows[1][-1] for part in parts] == [10, 21, 24]


GREEK = re.compile(r"[α-ωΑ-Ω]")


@all_rows("module", sorted(Path(jurygraph.studies.__file__).parent.glob("*.py")))
def test_every_greek_letter_that_a_study_writes_has_a_meaning(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    written = set[str]()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in statements
        ):
            written.update(GREEK.findall(node.value))
    named = re.findall(r"symbols\.([A-Z_]+)", module.read_text(encoding="utf-8"))
    meanings = {letter for name in named for key in getattr(symbols, name) for letter in key}
    # Σ is a sum, and so in no need of words; conclusions are part of reports that explain them.
    allowed = {"Σ"} | ({*"κωρε"} if module.name == "conclusions.py" else set())
    # The sections of DecompR's theory are part of the report of `simulate`.
    is_report = module.name not in ("symbols.py", "presentations.py", "decompr_theory.py")
    assert not is_report or written <= meanings | allowed, written - meanings
