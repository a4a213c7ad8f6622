"""Ratings and texts in every file format, and errors that name the line."""

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jurygraph.errors import ConfigError, InputError
from jurygraph.schema.rating import Rating
from jurygraph.sources.csv_text import escape_formulas
from jurygraph.sources.label_words import is_negative
from jurygraph.sources.people import PeopleChoice, drop_repeated_labels, keep_last_labels
from jurygraph.sources.ratings import (
    RatingsFile,
    iter_file_columns,
    read_judged_labels,
    read_prompts,
    read_rating_files,
    read_ratings,
    read_texts,
    read_votes,
)
from jurygraph.sources.table_rows import read_rows
from tests.agents.facts.examples import SUFFIXES, write_table
from tests.rows import all_rows

FULL: Mapping[str, Any] = {
    "item": "trip-1",
    "annotator": "ada",
    "label": 4,
    "dimension": "clarity",
    "domain": "travel",
    "group": "trips",
    "agent": "small",
    "text": "Day 1: the harbour.\nDay 2: the hills.",
    "reason": "both days are told, in order",
    "time": "2026-03-01",
}
RATING = Rating(
    item="trip-1",
    reviewer="ada",
    score=4.0,
    dimension="clarity",
    domain="travel",
    group="trips",
    agent="small",
    text="Day 1: the harbour.\nDay 2: the hills.",
    reason="both days are told, in order",
    time="2026-03-01",
)
FORMS = [".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet"]
every_form = pytest.mark.parametrize("suffix", FORMS)


def table(path: Path, *rows: Mapping[str, Any]) -> Path:
    """The rows in the form that the path's suffix names."""
    if ".csv" in path.suffixes:
        with (
            gzip.open(path, "wt", newline="")
            if path.suffix == ".gz"
            else path.open("w", newline="") as file
        ):
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".xlsx":
        workbook = openpyxl.Workbook()
        for cells in ([*rows[0]], *([*row.values()] for row in rows)):
            workbook.active.append(cells)
        workbook.save(path)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def ratings(read: RatingsFile) -> Sequence[Rating]:
    return [rating for _, rating in read.rows]


def rating(**fields: Any) -> dict[str, Any]:
    return {"item": "a", "reviewer": "ada", "score": 3, **fields}


def refusal(path: Path, columns: Mapping[str, str] = {}, read: Any = read_ratings) -> str:
    """Why, after the folder."""
    with pytest.raises(InputError) as raised:
        read(path, columns)
    return str(raised.value).removeprefix(f"{path.parent}/")


# What is read


@every_form
def test_every_form_gives_the_same_ratings(suffix: str, tmp_path: Path) -> None:
    bare = {name: "" if isinstance(value, str) else value for name, value in FULL.items()}
    rows = [FULL, bare | {"item": "b", "annotator": "bo", "label": -1.5}]
    read = read_ratings(table(tmp_path / f"ratings{suffix}", *rows))
    assert read.name == f"ratings{suffix}"
    assert ratings(read) == [RATING, Rating(item="b", reviewer="bo", score=-1.5)]


@every_form
@pytest.mark.parametrize(
    ("whose", "which"), [("annotator", "label"), ("reviewer", "score"), ("reviewer", "label")]
)
def test_a_reviewer_may_be_called_annotator_and_a_score_label(
    suffix: str, whose: str, which: str, tmp_path: Path
) -> None:
    read = read_ratings(table(tmp_path / f"r{suffix}", {"item": "a", whose: "ada", which: 3}))
    assert ratings(read) == [Rating(item="a", reviewer="ada", score=3.0)]


@every_form
def test_columns_may_have_other_names(suffix: str, tmp_path: Path) -> None:
    path = table(
        tmp_path / f"r{suffix}",
        {"idx": 7, "annotator": "ada", "reviewer": "x", "mark": 2, "item": "no"},
    )
    columns = {"item": "idx", "reviewer": "annotator", "score": "mark"}
    assert ratings(read_ratings(path, columns)) == [Rating(item="7", reviewer="ada", score=2.0)]


@every_form
def test_whole_numbers_may_be_names(suffix: str, tmp_path: Path) -> None:
    path = table(tmp_path / f"r{suffix}", rating(item=12, reviewer=-3, group=2**60))
    assert ratings(read_ratings(path)) == [
        Rating(item="12", reviewer="-3", group=str(2**60), score=3.0)
    ]


@pytest.mark.parametrize(
    ("written", "score"),
    [("3", 3.0), (" 3.50 ", 3.5), ("-2", -2.0), ("+.5", 0.5), ("1e2", 100.0), ("007", 7.0)],
)
def test_a_score_in_csv_is_parsed_from_its_text(written: str, score: float, tmp_path: Path) -> None:
    assert [
        one.score for one in ratings(read_ratings(table(tmp_path / "r.csv", rating(score=written))))
    ] == [score]


@every_form
def test_an_unknown_column_is_reported_with_a_suggestion(
    suffix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = table(
        tmp_path / f"r{suffix}", {**rating(Grupo="x", wave="second", tex="y"), "Reason": "so"}
    )
    file = read_ratings(path)
    assert "reason" not in file.columns, "what was not read would change the digest of a history"
    assert file.unread_columns == {
        "Grupo": "did you mean group?",
        "Reason": "did you mean reason?",
        "tex": "did you mean text?",
        "wave": None,
    }
    row = rating(Item="a", Reason="so", Group="x", GROUP="y")
    del row["item"]
    file = read_ratings(table(tmp_path / f"s{suffix}", row))  # which would be refused
    assert (file.columns["item"], file.columns["reason"]) == ("Item", "Reason")
    assert [*file.unread_columns] == ["GROUP", "Group"], "either may be meant"
    assert [text.partition(": ")[2] for text in caplog.messages] == [
        "Item is read as item",
        "Reason is read as reason",
    ]


def test_unread_columns_are_collected_from_every_line(tmp_path: Path) -> None:
    path = table(tmp_path / "r.jsonl", rating(), rating(idx=1), rating(items="z", TIME=2))
    assert read_ratings(path).unread_columns == {
        "TIME": "did you mean time?",
        "idx": None,
        "items": None,
    }
    assert read_ratings(
        table(tmp_path / "s.jsonl", rating(idx=1)), {"item": "idx"}
    ).unread_columns == {"item": None}
    # that a few letters are those of `dimension` makes it no misspelling
    hint = read_ratings(
        table(tmp_path / "m.csv", {**rating(), "Input.question": "?"})
    ).unread_columns
    assert hint == {"Input.question": None}
    assert read_ratings(table(tmp_path / "f.csv", FULL)).unread_columns == {}


def test_rows_of_json_lines_may_have_different_columns(tmp_path: Path) -> None:
    rows = [
        rating(),
        rating(domain="x", reason=None),
        rating(domain=" "),
        {"reviewer": "bo", "score": 1, "item": "a"},
    ]
    read = ratings(read_ratings(table(tmp_path / "r.jsonl", *rows)))
    assert [(one.reviewer, one.domain, one.reason) for one in read] == [
        ("ada", None, None),
        ("ada", "x", None),
        ("ada", None, None),
        ("bo", None, None),
    ]


def test_a_score_that_a_row_of_json_leaves_out_is_empty_and_a_decimal_comma_is_named(
    tmp_path: Path,
) -> None:
    file = table(tmp_path / "r.jsonl", rating(score=2), {"item": "b", "reviewer": "bo"})
    assert [one.score for one in ratings(read_ratings(file))] == [2, None]
    problem = "line 2, field score: is '3,5', with a decimal comma; write 3.5"
    for read in (read_ratings, read_votes):
        with pytest.raises(InputError, match=problem):
            read(table(tmp_path / "r.csv", rating(score="3,5"), rating(item="b", score="4")))


def test_decimal_commas_are_read_where_semicolons_separate_cells(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "excel.csv"
    header = "sep=;\nitem;reviewer;score\n"
    path.write_text(f"{header}a;ann;3,5\nb;ann;4\nc;ann;\nd;ann;0,25\n;;\n")
    assert [rating.score for rating in ratings(read_ratings(path))] == [3.5, 4.0, None, 0.25]
    note = "excel.csv: the commas of 2 numbers are read as decimal points"
    assert [record.getMessage().endswith(note) for record in caplog.records] == [True]
    path.write_text(f"{header}a;ann;-0,5\nb;ann;-1\nc;ann;1e2\n")
    assert [rating.score for rating in ratings(read_ratings(path))] == [-0.5, -1.0, 100.0]
    caplog.clear()
    path.write_text("item;annotator;dimension;label\na;ann;tone;kind\na;ann;use;3,0\nb;ann;use;\n")
    assert [vote.label for _, vote in read_votes(path).rows] == ["kind", 3.0, None]
    excel = table(tmp_path / "r.xlsx", rating(score="3,5"), rating(score=4.5), rating(score=" "))
    assert [rating.score for rating in ratings(read_ratings(excel))] == [3.5, 4.5, None]
    assert [message[-46:] for message in caplog.messages] == [note[-46:].replace("2", "1")] * 2
    path.write_text(f"{header}a;ann;3,5\nb;ann;4,5\nc;ann;1.5\n")
    problem = "line 3, field score: is '3,5', with a decimal comma; write 3.5; so in 2 of 3 cells"
    assert problem in refusal(path)
    path.write_text('item,reviewer,score\na,ann,"3,5"\n')
    assert "with a decimal comma; write 3.5; so in 1 of 1 cells" in refusal(path)
    path.write_text("sep=;\nitem;reviewer\na;ann\n")
    assert "excel.csv, line 2: has no column" in refusal(path, {"score": "nope"})


def test_people_write_decisions_as_words(tmp_path: Path) -> None:
    words = ["yes", "No", "PASS", "fail", "met", "not  met", "true", "0"]
    rows = [{"id": f"r{place}", "target": word} for place, word in enumerate(words)]
    expected = [True, False, True, False, True, False, True, 0.0]
    file = read_judged_labels([table(tmp_path / "l.csv", *rows)])
    assert [label.target for _, label in file.rows] == expected
    file = read_judged_labels([table(tmp_path / "l.jsonl", *rows[:-1])])
    assert [label.target for _, label in file.rows] == expected[:-1]


@all_rows(
    "cells, expected",
    [
        ((True, False), [1.0, 0.0]),
        ((False, False), [0.0, 0.0]),
        (("pass", "fail", "n/a", ""), [1.0, 0.0, None, None]),
        ((0, 3, "n/a", None), [0.0, 3.0, None, None]),
        (("yes", True, 1, "Not  met", 0), [1.0, 1.0, 1.0, 0.0, 0.0]),
    ],
)
def test_scores_are_decisions_in_json_as_in_csv(
    cells: tuple[Any, ...], expected: list[float | None], tmp_path: Path
) -> None:
    rows = [{"item": f"i{n}", "reviewer": "ann", "score": cell} for n, cell in enumerate(cells)]
    for suffix in (".csv", ".jsonl"):
        file = read_ratings(table(tmp_path / f"r{suffix}", *rows))
        assert [rating.score for _, rating in file.rows] == expected


def test_decisions_of_one_dimension_are_scores_beside_the_numbers_of_another(
    tmp_path: Path,
) -> None:
    stars = {"item": "a", "reviewer": "ann", "dimension": "stars", "score": 4}
    for suffix in (".csv", ".jsonl"):
        path = table(tmp_path / f"r{suffix}", stars, {**stars, "dimension": "use", "score": "yes"})
        assert [rating.score for _, rating in read_ratings(path).rows] == [4.0, 1.0]


def test_the_score_is_refused_that_is_no_number_among_numbers(tmp_path: Path) -> None:
    rows = [{"item": f"i{n}", "reviewer": "ann", "score": cell} for n, cell in enumerate((2, True))]
    assert "line 2 (i1, ann), field score: is true; write a number" in refusal(
        table(tmp_path / "r.jsonl", *rows)
    )


def test_labels_of_an_agents_answer_to_an_item_are_of_its_response(tmp_path: Path) -> None:
    row = {"item": "q", "annotator": "ann", "label": 2}
    rows = [{**row, "agent": "m"}, {**row, "agent": "n"}, {**row, "item": "q_m2", "agent": "m"}]
    file = read_judged_labels([table(tmp_path / "l.jsonl", *rows)], responses={"q_m2": "q_m2"})
    assert [label.id for _, label in file.rows] == ["q_m", "q_n", "q_m2"]
    assert {label.reviewer for _, label in file.rows} == {"ann"}


def test_labels_of_several_questions_have_a_column_each(tmp_path: Path) -> None:
    cells = {"helpful": "yes", "stars": 4, "bo": "", "a,b": 1}
    path = table(tmp_path / "wide.csv", {"id": "r", "question": "What?", **cells})

    def read(target: str) -> Any:
        file = read_judged_labels([path], {"target": target}, {"target": "--target-column"})
        labels = [(row.question, row.reviewer, row.target) for _, row in file.rows]
        return file.empty, labels

    expected = [("helpful", None, True), ("tone", None, 4.0)]
    assert read("helpful, tone=stars") == (0, expected)
    expected = [("tone", "ann", 4.0)]
    assert read("ann:tone=stars,bo:tone=bo") == (1, expected)
    assert read("a,b") == (0, [("What?", None, 1.0)])  # the name of one column
    with pytest.raises(InputError, match="--target-column: has two columns of tone; name one, or"):
        read("tone=stars,tone=bo")
    with pytest.raises(InputError, match="no row has a label in column 'ann:tone=bo'"):
        read("ann:tone=bo")


def test_ratings_and_votes_of_several_questions_have_a_column_each(tmp_path: Path) -> None:
    cells = {"stars": 4, "bo": "", "harm": "yes"}
    path = table(tmp_path / "wide.csv", {"item": "q", "reviewer": "ann", "text": "A.", **cells})
    found = read_ratings(path, {"score": "stars,harmful=harm"})
    expected = [("stars", "ann", 4.0), ("harmful", "ann", 1.0)]
    assert [(row.dimension, row.reviewer, row.score) for _, row in found.rows] == expected
    found = read_votes(path, {"label": "stars,harmful=harm"})
    expected = [("stars", "ann", 4.0), ("harmful", "ann", "yes")]
    assert [(row.dimension, row.annotator, row.label) for _, row in found.rows] == expected
    path = table(tmp_path / "people.csv", {"item": "q", **cells})
    found = read_votes(path, {"label": "ann:fun=stars,bo:fun=bo"})  # without a column of people
    expected = [("fun", "ann", 4.0), ("fun", "bo", None)]
    assert [(row.dimension, row.annotator, row.label) for _, row in found.rows] == expected
    with pytest.raises(InputError, match="no column 'reviewer' or 'annotator'"):
        read_votes(path, {"label": "stars,bo"})


def test_columns_of_labels_may_be_in_several_files(tmp_path: Path) -> None:
    stars = table(tmp_path / "stars.csv", {"item": "q", "reviewer": "ann", "stars": 4})
    harm = table(tmp_path / "harm.csv", {"item": "q", "reviewer": "ann", "harm": 0})
    more = table(tmp_path / "more.csv", {"item": "q", "reviewer": "bo", "score": 1})
    columns = {"score": "stars,harmful=harm"}
    found = [columns for _, columns in iter_file_columns([stars, harm, more], columns)]
    assert found == [{"score": "stars,"}, {"score": "harmful=harm,"}, {}]
    assert [row.dimension for _, row in read_ratings(stars, found[0]).rows] == ["stars"]
    assert [found for _, found in iter_file_columns([stars], columns)] == [columns]


# Places of rows


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_row_has_a_place_in_every_form(suffix: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / f"t{suffix}", [{"n": "one"}, {"n": "two"}])
    first = {".csv": "line 2", ".jsonl": "line 1", ".json": "[0]"}.get(
        f".{suffix.split('.')[1]}", "row 1"
    )
    second = {"line 2": "line 3", "line 1": "line 2", "[0]": "[1]"}.get(first, "row 2")
    assert list(read_rows(path)) == [(first, {"n": "one"}), (second, {"n": "two"})]


def test_a_csv_row_has_the_line_in_which_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text('item,reviewer,"sc\nore"\n\na,ada,1\nb,"a\nd\na",2\n\n\nc,ada,3\n')
    read = read_ratings(path, {"score": "sc\nore"})
    assert [(place, one.item) for place, one in read.rows] == [
        ("line 4", "a"),
        ("line 5", "b"),
        ("line 10", "c"),
    ]


# What is wrong

NO_REVIEWER = "has no column 'annotator' or 'reviewer'; "
SAME = "has the columns 'label' and 'score', which say the same; keep one, or say which is meant"


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@all_rows(
    ("name", "content", "message"),
    [
        ("r.csv", "itm,reviewer,score\na,b,1\n", "line 1: has no column 'item'; did you mean"),
        (
            "r.csv",
            "item,anotator,label\na,b,1\n",
            f"line 1: {NO_REVIEWER}did you mean anotator? If not, name one",
        ),
        (
            "r.jsonl",
            '{"item": "a", "score": 1}\n',
            f"{NO_REVIEWER}name one that is there: item, score",
        ),
        ("r.json", '[{"item": "a"}]', f"{NO_REVIEWER}name one that"),
        (
            "r.jsonl",
            '{"item": "a", "reviewer": "b", "label": 1}\n{"item": "a", "reviewer": "c", "score": 1}\n',
            SAME,
        ),
        (
            "r.csv",
            "item,annotator,label\na,b,1\na,b,good\n",
            "line 3 (a, b), field label: is the text 'good'; write a number",
        ),
        (
            "r.csv",
            "item,annotator,label\na,b,nan\n",
            "line 2 (a, b), field label: is 'nan', not a finite number; write one",
        ),
        (
            "r.csv",
            "item,annotator,label\na,b,1e999\n",
            "line 2 (a, b), field label: is not a finite number;",
        ),
        (
            "r.csv",
            "item,annotator,label\na,b,yes\nc,b,3\n",
            "line 2 (a, b), field label: is 'yes'; write a number",
        ),
        (
            "r.jsonl",
            '{"item": "a", "reviewer": "b", "score": "1"}',
            "line 1 (a, b), field score: is the text '1'; write a num",
        ),
        (
            "r.csv",
            'item,annotator,label\n"a\nb",c,1\n,b,1\n',
            "line 4, field item: is empty; write at least one",
        ),
        (
            "r.jsonl",
            '{"item": 1.5, "reviewer": "b", "score": 1}',
            "line 1, field item: is the number 1.5; write text",
        ),
        (
            "r.jsonl",
            f'{{"item": {"9" * 4000}, "reviewer": "b", "score": 1}}',
            "line 1, field item: 9999999999999999999… has 4000 digits; write so long a number as text",
        ),
        (
            "r.csv",
            "item,reviewer,score\n",
            "has no rows; write one a line, each with `item` and `reviewer` and",
        ),
        ("r.txt", "item\n", "has no table format in its name; give .csv"),
    ],
)
def test_an_error_is_reported_with_its_line_and_field(
    name: str, content: str, message: str, packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    place, _, why = refusal(path).removeprefix(path.name).partition(" ")
    assert place in (",", ":")
    assert why.startswith(message)


@all_rows(
    ("content", "message"),
    [
        (
            "item,who,score\na,b,1\n",
            "no column 'annotator' or 'reviewer'; name one that is there with --reviewer-column: "
            "item, who, score",
        ),
        (
            "item,reviewr,score\na,b,1\n",
            "did you mean reviewr? If not, name one that is there with --reviewer-column",
        ),
        (
            "q1,ann,4\n",
            "has no rows; the first row is read as names of columns, and has values: q1, ann, 4; "
            "write names above it",
        ),
        (
            "q1,ann,4\nq2,bo,5\n",
            "line 1: has no column 'item'; the first row is read as names of columns, and has "
            "values: q1, ann, 4; write names above it",
        ),
        (
            "id,query,responses\na,b,c\n",
            "has `responses`, as TASKS; name the file of their RATINGS",
        ),
        (
            "item,reviewer,score\n,ann,4\n",
            "line 2, field item: is empty; write at least one character, or name another column",
        ),
        (
            "q1,true,true\n",
            "names column 'true' twice; the first row is read as names of columns, and has values",
        ),
    ],
)
def test_a_missing_column_is_named_by_its_option_or_the_header_is_missing(
    content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_text(content)
    options = {"reviewer": "--reviewer-column"}
    error_text = refusal(tmp_path / "r.csv", read=partial(read_ratings, options=options))
    assert message in error_text


def test_a_row_that_was_pasted_twice_counts_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,question,annotator,target\na,q,ann,1\na,q,ann,1\na,q,bo,1\na,r,ann,1\n")
    file = read_judged_labels([path])
    assert [position for position, _ in file.rows] == ["line 2", "line 4", "line 5"]
    assert file.empty == 0
    message = "rows left out that repeat another one in everything, as if pasted twice: 1"
    assert message in caplog.text
    caplog.clear()
    path.write_text("id,fair,kind\na,1,1\na,1,1\n")
    assert len(read_judged_labels([path], {"target": "fair,kind"}).rows) == 2
    assert caplog.text.count("pasted twice") == 1, "once for all columns of labels"
    path.write_text("item,reviewer,score,system\na,ann,1,x\na,ann,1,x\na,ann,1,y\n")
    kept = drop_repeated_labels(read_ratings(path)).rows
    assert [position for position, _ in kept] == ["line 2", "line 4"], "another system's answer"


@all_rows(
    "content, message",
    [
        (
            "id,target\na,good\n",
            "line 2 (a), field target: is the text 'good'; write a number, or true or false",
        ),
        ("id,target\na,1\na,0\n", "line 3, field id: 'a' has a label in line 2 already; keep one"),
        (
            "id,target,rater\na,1,x\na,0,y\n",
            "columns `reviewer` (or --reviewer-column), `question` and `agent` tell them apart",
        ),
        (
            "id,target,annotator,criterion\na,1,ann,polite\na,0,ann,clear\n",
            "line 3, field id: 'a' has a label in line 2 already; keep one of each person and question; ",
        ),
        (
            "id,target,annotator,question\na,1,ann,q\na,0,ann,q\n",
            "keep one of each person and question; columns",
        ),
        (
            "id,target,questoin\na,1,q\na,0,r\n",
            "and --keep-last keeps the last; column 'questoin' is not read: did you mean question?",
        ),
        ("id,target\na,\n", "no row has a label in column 'target'"),
    ],
)
def test_a_label_of_a_judged_response_is_a_target_and_given_once(
    content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(content)
    with pytest.raises(InputError) as refused:
        read_judged_labels([tmp_path / "people.csv"], options={"reviewer": "--reviewer-column"})
    assert message in str(refused.value)


def test_the_dimension_of_ratings_is_the_question_of_labels_that_have_none(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    ratings = "item,annotator,label,dimension{}\na,ann,yes,tone{}\na,ann,no,length{}\n"
    for columns, questions in {
        ("", "", ""): ["tone", "length"],
        (",question", ",q1", ",q2"): ["q1", "q2"],
    }.items():
        path.write_text(ratings.format(*columns))
        assert [label.question for _, label in read_judged_labels([path]).rows] == questions


def test_who_labelled_a_response_is_read_in_any_spelling_of_the_column(tmp_path: Path) -> None:
    """As of ratings and votes, where the column is required."""
    rows = ({"id": "a", "Annotator": name, "target": 1} for name in "xy")
    path = table(tmp_path / "l.csv", *rows)
    assert [label.reviewer for _, label in read_judged_labels([path]).rows] == ["x", "y"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_rows_without_a_label_are_left_out_and_counted(suffix: str, tmp_path: Path) -> None:
    without = ["", " ", None, "n/a", "NA", "#N/A", "unsure", "?", "-", " – "]
    targets = ["Y", "n", *without]
    rows = [{"id": f"r{index}", "target": target} for index, target in enumerate(targets)]
    file = read_judged_labels([table(tmp_path / f"l{suffix}", *rows)])
    assert [(row.id, row.target) for _, row in file.rows] == [("r0", True), ("r1", False)]
    assert file.empty == len(without)
    unknown = table(tmp_path / f"u{suffix}", *rows, {"id": "u", "target": "perhaps"})
    with pytest.raises(
        InputError, match=r"is the text 'perhaps'.*; write a number, or true or false"
    ):
        read_judged_labels([unknown])


def test_the_remedy_for_a_cell_of_a_table_has_no_quotes(tmp_path: Path) -> None:
    error_text = refusal(table(tmp_path / "r.csv", rating(score="high")), read=read_ratings)
    assert error_text.endswith("is the text 'high'; write a number")
    workbook = openpyxl.Workbook()
    for cells in (("item", "reviewer", "score"), ("a", "ann", 1), (None, "ann", 2)):
        workbook.active.append(cells)
    workbook.save(tmp_path / "r.xlsx")
    ending = "field item: is empty; write text, or name another column"
    assert refusal(tmp_path / "r.xlsx") == f"r.xlsx, row 3, {ending}"
    path = table(tmp_path / "r.parquet", rating(), rating(item=None))
    assert refusal(path) == f"r.parquet, row 2, {ending}"
    assert "is null; write text, in quotes" in refusal(
        table(tmp_path / "r.jsonl", rating(item=None))
    )


@every_form
def test_an_empty_score_is_none(suffix: str, tmp_path: Path) -> None:
    rows = ratings(read_ratings(table(tmp_path / f"r{suffix}", rating(), rating(score=None))))
    assert [one.score for one in rows] == [3.0, None]


@pytest.mark.parametrize("name", ["domain", "item", "text"])
@every_form
def test_a_named_column_must_exist(name: str, suffix: str, tmp_path: Path) -> None:
    path = table(tmp_path / f"r{suffix}", rating(topics="x"))
    assert refusal(path, {name: "topic"}).endswith(": has no column 'topic'; did you mean topics?")


def test_of_several_files_those_with_the_usual_name_are_read_by_it(tmp_path: Path) -> None:
    other, usual = (
        table(tmp_path / "o.csv", {"reply": "a"}),
        table(tmp_path / "u.jsonl", {"item": "a"}),
    )
    named = {"item": "reply"}
    assert list(iter_file_columns([other, usual], named)) == [(other, named), (usual, {})]
    assert list(iter_file_columns([usual], named)) == [(usual, named)]
    with pytest.raises(InputError, match=r"u\.jsonl: is named twice; name each once"):
        list(iter_file_columns([usual, other, usual], named))


def test_a_named_column_is_found_in_each_file_by_its_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its labels are of the question as the user spells it, whatever files call it; who rated may have a usual name."""
    cells = {"Rated by": "ann", "Resolved": "met", "Tone": 3}
    paths = [
        table(tmp_path / "a.csv", {"Reply ID": "a", **cells}),
        table(
            tmp_path / "b.csv", {"reply_id": "b", "reviewer": "bo", "resolved": "met", "tone": 4}
        ),
        table(
            tmp_path / "c.csv", {"Input.reply-id": "c", "WorkerId": "W1", "Answer.resolved": "no"}
        ),
    ]
    columns = {"item": "Reply ID", "reviewer": "Rated by", "score": "Resolved,Tone"}
    files = read_rating_files(paths, columns, {}, level="ordinal")
    found = [[(row.item, row.dimension, row.score) for row in ratings(file)] for file in files]
    assert found == [
        [("a", "Resolved", 1.0), ("a", "Tone", 3.0)],
        [("b", "Resolved", 1.0), ("b", "Tone", 4.0)],
        [("c", "Resolved", 0.0)],
    ]
    assert set(caplog.messages) == {
        f"{paths[1]}, line 1: reply_id is read as Reply ID",
        f"{paths[1]}, line 1: resolved is read as Resolved",
        f"{paths[1]}, line 1: tone is read as Tone",
        f"{paths[2]}, line 1: Input.reply-id is read as Reply ID",
        f"{paths[2]}, line 1: Answer.resolved is read as Resolved",
        f"{paths[2]}: WorkerId is read as Rated by",
    }
    assert ratings(files[2])[0].reviewer == "W1"
    two_names = table(tmp_path / "e.csv", {"WorkerId": "W1", "Rater": "ann"})
    *_, (_, found_columns) = iter_file_columns([*paths, two_names], columns)
    assert found_columns["reviewer"] == "Rated by", "which of two is not guessed"
    spelt = table(tmp_path / "f.csv", {"Reply": "a", "Model": "m", "Said": "x"})
    usual = table(tmp_path / "g.csv", {"Item": "a", "Input.agent": "m", "Text": "x"})
    named = {"item": "Reply", "agent": "Model", "text": "Said"}
    *_, (_, found_columns) = iter_file_columns([spelt, usual], named)
    assert found_columns == {"item": "Item", "agent": "Input.agent", "text": "Text"}
    label_columns = {"id": "Reply ID", "target": "Resolved"}
    assert read_judged_labels(paths[2:], label_columns).columns["target"] == "Resolved"
    twice = table(tmp_path / "d.csv", {"reply_id": "a", "Input.reply_id": "b", **cells})
    with pytest.raises(InputError, match=r"d\.csv, line 1: has no column 'Reply ID'"):
        read_judged_labels([twice], label_columns)


def test_only_columns_of_a_ratings_file_can_be_named(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", rating())
    with pytest.raises(
        ConfigError, match=r"columns: 'itm' is not a column of such a file; did you mean item\?"
    ):
        read_ratings(path, {"itm": "a"})


def test_a_column_of_decisions_alone_is_read_as_scores_of_1_and_0(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("item,reviewer,score\na,b,pass\nb,b,Fail\nc,b,\n")
    assert [rating.score for _, rating in read_ratings(path).rows] == [1.0, 0.0, None]


# Texts


@every_form
def test_every_form_gives_the_same_texts(suffix: str, tmp_path: Path) -> None:
    rows = [
        {"item": 1, "text": "one,\ntwo"},
        {"item": 2, "text": ""},
        {"item": 1, "text": "one,\ntwo"},
    ]
    assert read_texts(table(tmp_path / f"t{suffix}", *rows)) == {"1": "one,\ntwo", "2": ""}


def test_a_text_of_an_agent_has_the_key_that_its_ratings_have(tmp_path: Path) -> None:
    rows = [{"idx": 1, "agent": "small", "body": "x"}, {"idx": 1, "agent": "", "body": "y"}]
    texts = read_texts(table(tmp_path / "t.jsonl", *rows), {"item": "idx", "text": "body"})
    assert texts == {"1_small": "x", "1": "y"}


def test_an_item_has_one_text(tmp_path: Path) -> None:
    rows = [{"item": "a", "body": "x"}, {"item": "b", "body": "y"}, {"item": "a", "body": "z"}]
    with pytest.raises(
        ConfigError, match=r"'txt' is not a column of such a file; did you mean text\?"
    ):
        read_texts(tmp_path / "t.jsonl", {"score": "stars", "txt": "body"})
    assert refusal(table(tmp_path / "t.jsonl", *rows), {"text": "body"}, read_texts) == (
        "t.jsonl, line 3, field body: is not the text that item 'a' has in line 1; give each item one text"
    )


def test_a_prompt_that_is_missing_null_or_blank_is_none(tmp_path: Path) -> None:
    columns = {"prompt": "q", "text": "body", "score": "stars"}
    rows: list[dict[str, Any]] = [
        {"item": "a", "q": " "},
        {"item": "a", "q": "A?"},
        {"item": "a", "q": None},
        {"item": "b", "q": ""},
    ]
    for suffix in FORMS:
        assert read_prompts(table(tmp_path / f"p{suffix}", *rows), columns) == {"a": "A?"}
    path = table(tmp_path / "p.jsonl", {"item": "b"}, *rows, {"item": "a", "q": "B?"})
    assert refusal(path, columns, read_prompts) == (
        "p.jsonl, line 6, field q: is not the prompt that item 'a' has in line 3; give each item one prompt"
    )


@pytest.mark.parametrize("name", ["-7b", "=1+1", "'quoted", "'-7b", "two\nlines\n-7"])
def test_names_that_an_export_of_rewards_neutralised_are_those_of_the_run(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "ratings.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("item", "annotator", "score"), (escape_formulas(name), escape_formulas(name), "-3")]
        )
    ((_, rating),) = read_ratings(path).rows
    assert (rating.item, rating.reviewer, rating.score) == (name, name, -3.0)


def test_rejected_and_skipped_answers_of_mechanical_turk_are_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A radio button that nobody chose has false in the column of each value."""
    path = tmp_path / "batch.csv"
    path.write_text(
        "HITId,WorkerId,AssignmentStatus,Answer.send.no,Answer.send.yes\n"
        "h,A1,Approved,false,true\nh,A2,Rejected,false,true\nh,A3,Submitted,false,false\n"
    )
    columns = {"item": "HITId", "annotator": "WorkerId", "label": "Answer.send.yes"}
    file = read_votes(path, columns)
    assert [(vote.annotator, vote.label) for _, vote in file.rows] == [("A1", "true"), ("A3", None)]
    assert caplog.messages == [f"{path}: rows left out whose AssignmentStatus is Rejected: 1"]
    path.write_text("item,annotator,label,AssignmentStatus\na,ann,1,Rejected\n")
    assert len(read_votes(path).rows) == 1


def test_a_name_with_blanks_around_it_is_the_same_annotator(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,label\na, ann b,1\nb,ann  b ,2\n")
    assert {vote.annotator for _, vote in read_votes(path).rows} == {"ann b"}
    names = {rating.reviewer for rating in ratings(read_ratings(path))}
    assert names == {"ann b", "ann  b"}, "the digest of a history has the names"
    assert {label.reviewer for _, label in read_judged_labels([path]).rows} == names


def test_a_row_that_ends_before_a_needed_cell_may_be_where_the_file_was_cut_off(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("item,reason,annotator,label\na,Fine,ann,1\nb,To get a")
    with pytest.raises(InputError) as refused:
        read_votes(path)
    assert str(refused.value) == (
        f"{path}, line 3, field annotator: is empty; its line ends before it: is the file cut off there?"
    )


def test_words_are_places_of_classes_and_no_fault_of_another_dimension(tmp_path: Path) -> None:
    """Without order any words are classes; a decision remains one, unless it is named as a class."""
    rows = [("stars", 5), ("harm", "yes"), ("tone", "Warm"), ("tone", "cold"), ("tone", "n/a")]
    path = tmp_path / "r.jsonl"
    table(path, *(rating(item=f"i{n}", dimension=d, score=s) for n, (d, s) in enumerate(rows)))

    def scores(**settings: Any) -> list[float | None]:
        (file,) = read_rating_files([path], {}, {}, **{"level": "ordinal", **settings})
        return [found.score for found in ratings(file)]

    assert scores(dimension="stars") == [5]
    assert scores(classes=["tone=cold,ok,warm"]) == [5, 1, 2, 0, None]
    with pytest.raises(InputError, match="field score: is '5', which is none of --classes"):
        scores(classes=["cold,ok,warm"])
    assert scores(dimension="tone", level="nominal") == [0, 1, None]
    assert scores(dimension="harm", classes=["yes,no"]) == [0], "the order that the classes have"
    mixed = table(tmp_path / "m.csv", *(rating(item=n, score=s) for n, s in enumerate("0a1a")))
    (file,) = read_rating_files([mixed], {}, {}, level="nominal")
    assert [found.score for found in ratings(file)] == [0, 1, 2, 1], "no number is a word's place"
    partly = table(
        tmp_path / "p.csv", *(rating(item=s, score=s) for s in ("no", "partly", "yes", "NO"))
    )
    (file,) = read_rating_files([partly], {}, {}, level="nominal")
    assert [found.score for found in ratings(file)] == [0, 1, 2, 0]
    codes = [rating(item=f"i{n}", score=text) for n, text in enumerate(["3", "3.0", "3.5", " Two"])]
    written = table(tmp_path / "w.csv", *codes)
    for names, expected in (("1,two,3,4", [2, 2]), ("4,3,2,two,1", [1, 1])):
        with pytest.raises(
            InputError, match=r"line 4 .*, field score: is '3\.5', which is none of"
        ):
            read_rating_files([written], {}, {}, classes=[names], level="ordinal")
        kept = table(tmp_path / "k.csv", *codes[:2])
        (file,) = read_rating_files([kept], {}, {}, classes=[names], level="ordinal")
        assert [found.score for found in ratings(file)] == expected
    numbers = table(tmp_path / "n.csv", *codes[:3])
    (file,) = read_rating_files([numbers], {}, {}, classes=["1,2,3,4,5"], level="interval")
    assert [found.score for found in ratings(file)] == [3, 3, 4], "as a consensus reads them"
    unknown = "is the text 'Warm'; write a number, .*, or name all words by --classes tone=LOWEST"
    for settings, message in (
        ({"dimension": "tone"}, unknown),
        ({}, unknown),
        ({"classes": ["tone=cold,ok"]}, "is 'Warm', which is none of --classes; name all words"),
    ):
        with pytest.raises(InputError, match=f"field score: {message}"):
            scores(**settings)
    with pytest.raises(InputError, match=r"no rating is of 'star'; did you mean stars\?"):
        scores(dimension="star")


def test_each_question_has_its_own_classes(tmp_path: Path) -> None:
    """One command reads a table with a column for each question, whether its labels are words or numbers."""
    cells = [(4, "Kind", "yes"), (2, "rude", "no")]
    rows: list[dict[str, Any]] = []
    for number, (helpful, tone, harmful) in enumerate(cells):
        answers = {"helpful": helpful, "tone": tone, "harmful": harmful}
        rows.append({"item": f"i{number}", "reviewer": "ann", **answers})
    long_rows = []
    for row in rows:
        for name in ("helpful", "tone", "harmful"):
            names = {"item": row["item"], "reviewer": "ann", "dimension": name}
            long_rows.append({**names, "score": row[name]})
    long_path = table(tmp_path / "long.jsonl", *long_rows)

    def scores(path: Path, *classes: str, level: str = "ordinal") -> dict[str | None, list[Any]]:
        columns = {} if path == long_path else {"score": "helpful,tone,harmful"}
        files = read_rating_files([path], columns, {}, classes=classes, level=level)
        found: dict[str | None, list[Any]] = {}
        for found_rating in ratings(files[0]):
            found.setdefault(found_rating.dimension, []).append(found_rating.score)
        return found

    words = "Tone=rude,neutral,kind"
    for path in (long_path, *(table(tmp_path / f"wide{form}", *rows) for form in FORMS)):
        expected = {"helpful": [4, 2], "tone": [2, 0], "harmful": [1, 0]}
        assert scores(path, words) == expected
        turned = scores(path, words, "harmful=yes,no")
        assert turned == {**expected, "harmful": [0, 1]}
        places = {"helpful": [0, 1], "tone": [0, 1], "harmful": [0, 1]}
        assert scores(path, level="nominal") == places, "no question's words are another's"
        named = scores(path, words, level="nominal")
        assert named == {**places, "tone": [2, 0]}
        for classes, message in {
            "harm=no,yes": r"--classes: no label is of the question 'harm'; did you mean harmful\?",
            "ton=rude,kind": "'Kind'; write a number, .*--classes tone=LOWEST",
        }.items():
            with pytest.raises(InputError, match=message):
                scores(path, *[words] * ("harm" in classes), classes)


def test_classes_that_turn_decisions_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = table(tmp_path / "r.csv", rating(score="yes"), rating(item="b", score="no"))
    for classes, is_turned in {
        "no,yes": False,
        "no,partly,YES": False,
        "1,0": False,
        "yes,no": True,
        "yes,partly,no": True,
    }.items():
        caplog.clear()
        read_rating_files([path], {}, {}, classes=[classes], level="ordinal")
        message = "--classes: yes is the lowest and no the highest, the reverse of yes = 1, no = 0"
        assert caplog.messages == [message] * is_turned
    words = ["Met", "Not  met", "good", "no", "not good", "true"]  # of which classes are proposed
    assert [word for word in words if is_negative(word)] == ["Not  met", "no", "not good"]


def test_a_rating_without_a_dimension_is_of_the_only_one_that_others_of_the_file_name(
    tmp_path: Path,
) -> None:
    rows = [rating(), rating(item="b", dimension="tone")]
    for more, expected in (([], "tone"), ([rating(item="c", dimension="use")], None)):
        path = table(tmp_path / "r.jsonl", *rows, *more)
        (file,) = read_rating_files([path], {}, {})
        assert ratings(file)[0].dimension == expected


def test_of_labels_of_an_item_by_a_person_the_last_is_kept_where_it_is_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers that were changed are rows at the end; one that was changed back is no copy of the first."""
    cells = [("a", 1), ("b", 2), ("a", 3), ("b", None), ("a", 1), ("c", None)]
    rows = [rating(item=item, score=score) for item, score in cells]
    path = table(tmp_path / "r.jsonl", *rows)
    later = table(tmp_path / "later.jsonl", rating(item="b", score=5, dimension="tone"))
    files = read_rating_files(
        [path, later], {}, {}, level="ordinal", people=PeopleChoice(keep_last=True)
    )
    found = [(position, rating.item, rating.score) for position, rating in files[0].rows]
    assert found == [("line 2", "b", 2), ("line 5", "a", 1), ("line 6", "c", None)]
    assert len(files[1].rows) == 1, "of another dimension"
    assert caplog.messages == [
        "labels left out, since the person labelled the item again: 2; the last is by row and file, or by --last-by "
        "COLUMN; later rows without a label, after which the one before is kept: 1; labels with another value: 2\n"
        "  a, ada: 1 (line 1 of r.jsonl) → 3 (line 3 of r.jsonl)\n"
        "  a, ada: 3 (line 3 of r.jsonl) → 1 (line 5 of r.jsonl)"
    ]
    caplog.clear()
    pasted = table(tmp_path / "pasted.jsonl", *[rating(item="a", score=1)] * 2, rating(item="a"))
    (file,) = read_rating_files([pasted], {}, {}, people=PeopleChoice(keep_last=True))
    assert len(file.rows) == 1
    copies, repeats = caplog.messages
    assert copies.endswith("that repeat another one in everything, as if pasted twice: 1")
    assert "person labelled the item again: 1; " in repeats, "another row"
    people = tmp_path / "people.csv"
    people.write_text("item,agent,annotator,label\nq,m,ann,1\nq,m,bo,1\nq_m,,ann,0\nq,n,ann,1\n")
    file = read_judged_labels([people], people=PeopleChoice(keep_last=True))
    kept = [(label.id, label.reviewer, label.target) for _, label in file.rows]
    assert kept == [("q_m", "bo", 1), ("q_m", "ann", 0), ("q_n", "ann", 1)]
    votes = read_votes(path)
    (kept_votes,) = keep_last_labels([votes])
    assert [vote.label for _, vote in kept_votes.rows] == [2, 1, None]


def test_the_last_label_by_a_column_of_times_and_the_names_of_one_person(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As Mechanical Turk writes times, in any order of rows; no rule makes petra_h of Petra."""
    cells = [("Petra", 1, "17:05:33"), ("petra_h", 2, "09:10:33"), (" petra", 3, "10:00:00")]
    rows = [
        rating(reviewer=name, score=score, sent=f"Fri Nov 15 {time} PST 2019")
        for name, score, time in cells
    ]
    path = table(tmp_path / "r.csv", *rows)
    people = PeopleChoice(same_names=True, same_person=["petra_h=Petra"], last_by="sent")
    (file,) = read_rating_files([path], {}, {}, people)
    assert [(row.reviewer, row.score) for row in ratings(file)] == [("Petra", 1)]
    sooner = rating(reviewer="Petra", score=4, sent="Fri Nov 15 12:00:00 PST 2019")
    noon = table(tmp_path / "sooner.csv", sooner, rating(item="b", score="", sent=""))
    files = read_rating_files([path, noon], {}, {}, people)
    assert [[row.score for row in ratings(file)] for file in files] == [[1], [None]], "of all files"
    sheet = table(tmp_path / "sheet.csv", rating(reviewer="Petra", score=5))
    files = read_rating_files([sheet, path], {}, {}, people)
    assert [[row.score for row in ratings(file)] for file in files] == [[5], []], (
        "it came back later"
    )
    renamed = PeopleChoice(same_person=["petra_h=Zoe"])
    (file,) = read_rating_files([path], {}, {}, renamed)
    assert [row.reviewer for row in ratings(file)] == ["Petra", "Zoe", "petra"]
    assert caplog.messages[-1] == "--same-person: Zoe is a new name, of petra_h"
    # as a run spells them, however most rows do
    predicted = PeopleChoice(same_names=True, same_person=["petra_h=PETRA"], spellings=["PETRA"])
    caplog.clear()
    (file,) = read_rating_files([path], {}, {}, replace(predicted, last_by="sent"))
    assert [row.reviewer for row in ratings(file)] == ["PETRA"]
    assert "new name" not in caplog.text
    numbered = PeopleChoice(same_person=["petra_h=Petra 2", "Petra=Petra 1"])
    (file,) = read_rating_files([path], {}, {}, numbered)
    assert [row.reviewer for row in ratings(file)] == ["Petra 1", "Petra 2", "petra"]
    people_rows = [rating(reviewer=name, score=1) for name in ("Petra", "petra_h")]
    table(path, *({**row, "sent": "Nov 15 2019 2:00 PM"} for row in people_rows))
    with pytest.raises(InputError, match="line 2, field sent: is 'Nov 15 2019 2:00 PM'; write 20"):
        read_rating_files([path], {}, {}, PeopleChoice(last_by="sent"))
    refused: Mapping[str, Mapping[str, Any]] = {
        "--same-person: nobody is 'petra_j'": {"same_person": ["petra_j=Petra"]},
        "nobody is 'Pettra'; did you mean Petra": {"same_person": ["petra_h=Pettra"]},
        "--same-person petra_h: expected OTHER=NAME": {"same_person": ["petra_h"]},
        "has no column 'send'; did you mean sent": {"last_by": "send"},
        "r.csv, line 2, field reviewer: is 'Petra'; write 2026-11-30": {"last_by": "reviewer"},
    }
    for message, changes in refused.items():
        with pytest.raises(InputError, match=message):
            read_rating_files([path], {}, {}, PeopleChoice(**changes))


def test_named_columns_that_are_missing_are_named_at_once(tmp_path: Path) -> None:
    path = table(tmp_path / "v.csv", {"item": "a", "WorkerId": "ann", "safety": "safe"})
    with pytest.raises(InputError, match=r"'safty'; did you mean safety.* also has no column 'Wor"):
        read_votes(path, {"annotator": "WorkerName", "label": "safty"})
    titled = table(tmp_path / "t.xlsx", {"Round 1": "Reply ID"}, {"Round 1": "a"})
    message = "t.xlsx: the headings seem to be in row 2; delete the rows above"
    assert refusal(titled, {"item": "Reply ID"}) == message
    empty_row = table(tmp_path / "e.jsonl", {}, {"itm": "a"})
    assert refusal(empty_row).endswith(": has no column 'item'; did you mean itm?")


def test_ratings_without_a_dimension_are_of_what_their_column_is_called_by(tmp_path: Path) -> None:
    """So that agreement names them; not those of `score`, and not where models are asked by the dimension."""
    path = table(tmp_path / "r.csv", {"item": "a", "reviewer": "ann", "stars": 3})
    spelt = table(tmp_path / "s.csv", {"Item": "a", "Reviewer": "ann", "Score": 3})
    (file,) = read_rating_files([spelt], {}, {}, level="ordinal")
    assert (ratings(file)[0].dimension, file.columns["score"]) == (None, "score")
    for level, dimension in (("ordinal", "stars"), (None, None)):
        (file,) = read_rating_files([path], {"score": "stars"}, {}, level=level)
        assert [found.dimension for found in ratings(file)] == [dimension]
