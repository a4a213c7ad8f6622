"""`jurygraph import`: all or nothing is written, and the next command is named.

What the importers make of their rows is tested in `tests/interchange`.
"""

import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.commands.import_data import IMPORT_FORMATS
from tests.cli.conftest import Command, folder_contents
from tests.interchange.published import (
    HEALTHBENCH,
    JUDGEBENCH,
    PLAWBENCH,
    REWARDBENCH,
    write_rows,
)
from tests.interchange.test_qags import CNN, XSUM
from tests.interchange.test_rated_table import RATED
from tests.interchange.test_trials import ROWS
from tests.rows import all_rows

RENAMED = ("--column", "label=stars", "--column", "annotator=who", "--column", "prompt=question")


@pytest.fixture(autouse=True)
def _in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def parse_lines(content: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def test_import_writes_tasks_and_prints_the_next_command(run: Command, tmp_path: Path) -> None:
    write_rows(tmp_path / "in.jsonl", *JUDGEBENCH[:2])
    ended = run("import", "judgebench", "in.jsonl", "--out", "tasks.jsonl")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == (
        "2 tasks, 4 responses, 2 tasks with responses, 0 omitted\n"
        "next: jurygraph score tasks.jsonl --config jury.yaml --out run\n"
    )
    found = parse_lines((tmp_path / "tasks.jsonl").read_text())
    assert [task["id"] for task in found] == [line["pair_id"] for line in JUDGEBENCH[:2]]
    ended = run("import", "judgebench", "in.jsonl", "--out", "t.jsonl", "--json")
    counted = {"tasks": 2, "responses": 4, "tasks_with_responses": 2, "omitted": 0, "notes": {}}
    assert json.loads(ended.out) == {"tasks_file": "t.jsonl", **counted}


def test_a_file_of_another_form_is_led_to_it(run: Command, tmp_path: Path) -> None:
    content = (ROWS / "langsmith.jsonl").read_bytes()
    (tmp_path / "in.jsonl").write_bytes(content)
    ended = run("import", "inspect", "in.jsonl", "--out", "tasks.jsonl")
    assert ended.code == 2
    assert ended.err.splitlines()[1:] == [
        "it has the form of langsmith: jurygraph import langsmith in.jsonl"
    ]
    (tmp_path / "in.jsonl").write_text("{}")
    assert "has the form of" not in run("import", "inspect", "in.jsonl", "--out", "t.jsonl").err


def test_a_name_ending_in_gz_is_compressed_reproducibly_and_a_dash_is_standard_output(
    run: Command, tmp_path: Path
) -> None:
    write_rows(tmp_path / "in.jsonl", *JUDGEBENCH[:2])
    for name in ("t.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        assert run("import", "judgebench", "in.jsonl", "--out", name).code == 0
    one, other = ((tmp_path / name).read_bytes() for name in ("a.jsonl.gz", "b.jsonl.gz"))
    assert one == other
    assert gzip.decompress(one) == (tmp_path / "t.jsonl").read_bytes()
    assert (
        run("import", "judgebench", "in.jsonl", "--out", "-", "--json").out
        == (tmp_path / "t.jsonl").read_text()
    )


@all_rows(
    "form, lines, options, message",
    [
        (
            "gsm8k",
            [],
            [],
            f"unknown format 'gsm8k'; known: {', '.join(IMPORT_FORMATS)} (OpenAI's messages are chats)",
        ),
        ("judgebnch", [], [], "unknown format 'judgebnch'; did you mean judgebench?"),
        (
            "judgebench",
            JUDGEBENCH,
            ["-o", "in.jsonl"],
            "in.jsonl: is an input file; name another file to write",
        ),
        (
            "plawbench",
            [*PLAWBENCH, {**PLAWBENCH[0], "rubrics": "1. (+3 points)"}],
            [],
            "in.jsonl, line 4, field rubrics: is the text '1. (+3 points)'; write a list",
        ),
        ("rewardbench", [REWARDBENCH[4]], [], "in.jsonl: has no row that makes a task"),
        (
            "plawbench",
            PLAWBENCH,
            ["--only", "answered"],
            "none of the 3 tasks has a response; remove --only answered",
        ),
        (
            "rewardbench",
            [],
            ["other.jsonl"],
            "other.jsonl: rewardbench takes one file; import each by itself",
        ),
        (
            "qags",
            CNN,
            ["-o", "t.csv.gz"],
            "t.csv.gz: is written as JSONL; name the file t.jsonl",
        ),
        ("qags", CNN, ["--only", "tasks"], "--only: selects tasks, and qags has none; remove it"),
        ("qags", CNN, ["--ratings", "r.jsonl"], "--ratings: only for ratings; remove it for qags"),
        ("qags", CNN, ["--id-column", "id"], "--id-column: only for label-studio, argilla, qual"),
        ("argilla", [], ["--rater-columns", "a"], "--rater-columns: only for wide; remove it"),
        ("ratings", [], [], "--ratings: name a second output file"),
        ("ratings", [], ["--ratings", "-"], "--ratings: name a second output file"),
        (
            "ratings",
            [],
            ["--column", "label", "--ratings", "r"],
            "--column label: expected NAME=COLUMN, such as",
        ),
    ],
)
def test_wrong_input_is_one_error_and_writes_nothing(
    run: Command, tmp_path: Path, form: str, lines: list[Any], options: list[str], message: str
) -> None:
    write_rows(tmp_path / "in.jsonl", *lines)
    (tmp_path / "people.csv").write_text(RATED)
    (tmp_path / "t.jsonl").write_text("old")
    before = folder_contents(tmp_path)
    source = ("people.csv", *RENAMED) if form == "ratings" else ("in.jsonl",)
    output = [] if "-o" in options else ["-o", "t.jsonl"]
    ended = run("import", form, *source, *options, *output)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert ended.err.count("\n") == 1
    assert folder_contents(tmp_path) == before


def test_omitted_data_is_counted_with_examples(run: Command, tmp_path: Path) -> None:
    worthless = [{"criterion": f"Nil {n}.", "points": 0, "tags": []} for n in range(7)]
    write_rows(tmp_path / "in.jsonl", HEALTHBENCH[0], {**HEALTHBENCH[1], "rubrics": worthless})
    ended = run("import", "healthbench", "in.jsonl", "--out", "t.jsonl", "--json")
    assert list(json.loads(ended.out)["notes"].values()) == [7, 1]
    places = ", ".join(f"22222222-bbbb: criterion-{n}" for n in range(1, 6))
    assert (
        f"criteria without words, or of 0 points, are left out: 7 ({places}, 2 more)\n" in ended.err
    )


def test_only_answered_omits_tasks_without_a_response_and_only_tasks_the_responses(
    run: Command, tmp_path: Path
) -> None:
    write_rows(tmp_path / "in.jsonl", *HEALTHBENCH)
    command = ("import", "healthbench", "in.jsonl", "--out", "t.jsonl")
    assert "import with --only answered" in run(*command).err
    ended = run(*command, "--only", "answered")
    assert [task["id"] for task in parse_lines((tmp_path / "t.jsonl").read_text())] == [
        "11111111-aaaa",
        "3",
    ]
    assert ended.err.splitlines()[0] == "2 tasks, 4 responses, 2 tasks with responses, 1 omitted"
    ended = run(*command, "--only", "tasks")
    written = parse_lines((tmp_path / "t.jsonl").read_text())
    assert [task.keys() & {"id", "responses"} for task in written] == [{"id"}] * 3
    assert ended.err.endswith("--config jury.yaml --responses RESPONSES --out run\n")


def test_a_table_of_ratings_names_the_option_of_a_missing_column(
    run: Command, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("q,text,who,label\nq1,Yes.,ann,3\n")
    command = ("import", "ratings", "people.csv", "--out", "t.jsonl", "--ratings", "r.jsonl")
    (tmp_path / "ids.csv").write_text("text_id,text,who,label\nq1,Yes.,ann,3\n")
    lacking = run("study", "reviewers", "ids.csv")
    assert "has no column 'item'; did you mean text_id?" in lacking.err
    ended = run(*command, "--id-column", "q")
    assert (
        "has no column 'reviewer' or 'annotator'; name one that is there with --reviewer-column"
        in ended.err
    )
    ended = run(*command, "--id-column", "q", "--reviewer-column", "who")
    assert ended.err.splitlines()[1:] == [
        "next: jurygraph study reviewers r.jsonl",
        "next: jurygraph score t.jsonl --config CONFIG --out run",
    ]


def test_votes_of_several_files_are_written_as_ratings(run: Command, tmp_path: Path) -> None:
    write_rows(tmp_path / "cnn.jsonl", *CNN)
    write_rows(tmp_path / "xsum.jsonl", *XSUM)
    ended = run("import", "qags", "cnn.jsonl", "xsum.jsonl", "--out", "ratings.jsonl", "--json")
    assert ended.err.splitlines() == [
        "11 votes, 4 items, 4 annotators, 0 omitted",
        "next: jurygraph consensus ratings.jsonl",
    ]
    counted = {"votes": 11, "items": 4, "annotators": 4, "omitted": 0, "screened_out": {}}
    assert json.loads(ended.out) == {"ratings_file": "ratings.jsonl", **counted}
    assert len(parse_lines((tmp_path / "ratings.jsonl").read_text())) == 11


def test_blanks_around_the_name_of_a_column_do_not_count(run: Command, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    for row in (["Draft ID ", "ann", "Mei "], ["a", 3, 4], ["b", 2, 5]):
        workbook.active.append(row)
    workbook.save(tmp_path / "wide.xlsx")
    (tmp_path / "wide.csv").write_text("Draft ID ,ann,Mei \na,3,4\nb,2,5\n")
    (tmp_path / "wide.json").write_text(json.dumps([{"Draft ID ": "a", "ann": 3, "Mei ": 4}]))
    for name in ("wide.xlsx", "wide.csv", "wide.json"):
        for option, raters in (("Draft ID", "ann,Mei"), ("Draft ID ", "ann,Mei=Mei ")):
            command = ("import", "wide", name, "--id-column", option, "--rater-columns", raters)
            ended = run(*command, "--out", "r.jsonl")
            assert ended.code == 0, ended.err
            _, vote, *_ = parse_lines((tmp_path / "r.jsonl").read_text())
            assert vote == {"item": "a", "label": 4.0, "annotator": "Mei"}


def test_words_without_agents_need_no_classes_and_a_long_table_is_not_wide(
    run: Command, tmp_path: Path
) -> None:
    (tmp_path / "wide.csv").write_text("item,ann,bo\na,Yes,yes\nb,n/a,no\nc,,No\n")
    command = ("import", "wide", "wide.csv", "--rater-columns", "ann,bo", "--out", "r.jsonl")
    assert run(*command).err.splitlines()[-1] == "next: jurygraph consensus r.jsonl"
    (tmp_path / "wide.csv").write_text("item,ann,bo\na,1,2\nb,n/a,1\n")
    assert run(*command).err.splitlines()[-1] == "next: jurygraph consensus r.jsonl"
    (tmp_path / "rated.csv").write_text(
        "item,text,annotator,label\na,A,ann,yes\na,A,bo,\nb,B,bo,no\n"
    )
    ended = run("import", "ratings", "rated.csv", "--out", "t.jsonl", "--ratings", "r.jsonl")
    assert "next: jurygraph consensus r.jsonl" in ended.err.splitlines(), (
        "an empty label is no number"
    )
    (tmp_path / "wide.csv").write_text("item,ann,bo\na,1,2\na,2,2\na,2,1\n")
    assert (
        "wide.csv: 4 of 6 votes repeat an item and annotator; a file with a row for each label "
        in run(*command).err
    )


def test_columns_of_a_wide_table_have_people_and_dimensions_and_its_texts_make_tasks(
    run: Command, tmp_path: Path
) -> None:
    header = "item,Anna Müller (1-5),José: clear,José: kind,prompt,answer\n"
    (tmp_path / "wide.csv").write_text(f"{header}a,5,4,3,Why?,So.\n", encoding="utf-8")
    raters = "Anna Müller:clear=Anna Müller (1-5),José Pérez:clear=José: clear,José: kind"
    ended = run(
        *("import", "wide", "wide.csv", "--rater-columns", raters, "--out", "r.jsonl"),
        *("--column", "text=answer"),
    )
    assert ended.code == 0, ended.err
    votes = parse_lines((tmp_path / "r.jsonl").read_text(encoding="utf-8"))
    assert [(vote["annotator"], vote.get("dimension"), vote["label"]) for vote in votes] == [
        ("Anna Müller", "clear", 5),
        ("José Pérez", "clear", 4),
        ("José: kind", None, 3),
    ]
    assert (votes[0]["prompt"], votes[0]["text"]) == ("Why?", "So.")
    ended = run("import", "ratings", "r.jsonl", "--out", "t.jsonl", "--ratings", "h.jsonl")
    assert ended.err.startswith("1 tasks, 1 responses, 3 votes, 3 annotators")


def test_columns_of_a_wide_table_that_are_not_read_are_said(
    run: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "wide.csv").write_text("id,Agent,Question,text,ann\na,x,Why?,So.,5\n,,,Stars.,\n")
    command = ("import", "wide", "wide.csv", "--rater-columns", "ann", "--out", "r.jsonl")
    assert run(*command).code == run(*command, "--column", "agent=Agent").code == 0
    notes, first, _, second = caplog.messages
    assert first.startswith("wide.csv: not read: Agent, Question; --column agent=C names one of ")
    assert second.startswith("wide.csv: not read: Question; ")
    assert notes == "wide.csv: rows left out without an item and ratings: 1"
    (tmp_path / "named.csv").write_text("Reply ID,anna\na,5\n")
    refused = run("import", "wide", "named.csv", "--rater-columns", "ann", "--out", "n.jsonl")
    assert "named.csv, line 1: has no column 'ann'; did you mean anna?" in refused.err


def test_reasons_of_a_wide_table_are_their_persons_and_offered_where_a_column_has_a_raters_name(
    run: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = "id,text,A,A comment,B,b_reason,note\na,So.,5,Short.,4,,x\nb,No.,2,,3,Dull,y\n"
    (tmp_path / "wide.csv").write_text(table)
    command = ("import", "wide", "wide.csv", "--rater-columns", "A:stars=A,B", "--out", "r.jsonl")
    assert run(*command).code == 0
    assert caplog.messages[0].startswith(
        "wide.csv: not read: A comment, b_reason, note; if these are reasons, --reason-columns "
        "'A=A comment,B=b_reason'; --column agent=C names"
    )
    assert run(*command, "--reason-columns", "A=A comment,B=b_reason").code == 0
    votes = parse_lines((tmp_path / "r.jsonl").read_text())
    assert [(vote["annotator"], vote["label"], vote.get("reason")) for vote in votes] == [
        ("A", 5, "Short."),
        ("B", 4, None),
        ("A", 2, None),
        ("B", 3, "Dull"),
    ]
    for option, value, message in (
        ("--reason-columns", "A comment", "nobody in --rater-columns is 'A comment'"),
        ("--reason-columns", "A=comment", "line 1: has no column 'comment'"),
        ("--column", "reason=A comment", "--reason-columns PERSON=COLUMN"),
    ):
        ended = run(*command, option, value)
        assert ended.code == 2
        assert message in ended.err


def test_the_next_command_of_labels_without_a_dimension_beside_others_runs(
    run: Command, tmp_path: Path
) -> None:
    rows = "".join(f"i{item},{item % 3},{(item + 1) % 3},{item % 2}\n" for item in range(9))
    (tmp_path / "wide.csv").write_text(f"item,ann,bo,tone\n{rows}")
    raters = "ann,bo,ann:tone=tone,bo:tone=tone"
    ended = run("import", "wide", "wide.csv", "--rater-columns", raters, "--out", "r.jsonl")
    commands = [line for line in ended.err.splitlines() if line.startswith("next: ")]
    assert [shlex.split(line)[-1] for line in commands] == ["label", "tone"]
    for line in commands:
        assert run(*shlex.split(line)[2:]).code == 0


def test_a_label_unlike_all_others_is_refused_with_its_place(run: Command, tmp_path: Path) -> None:
    rows = [f"i{item},{item % 5 + 1},{item % 4 + 1}" for item in range(12)]
    rows[3] = "i3,22,good"
    rows[5] = "i5,3,3.5"
    table = tmp_path / "wide.csv"
    table.write_text("\n".join(("item,ann,bo", *rows)))
    command = ("import", "wide", "wide.csv", "--rater-columns", "ann,bo", "--out", "r.jsonl")
    ended = run(*command)
    assert ended.code == 2
    assert not Path("r.jsonl").exists()
    assert ended.err == (
        "error: words among numbers, without a place on the scale: 'good' (i3, bo, wide.csv, line 5, field bo); "
        "fractions among whole numbers: 3.5 (i5, bo, wide.csv, line 7, field bo); "
        "far from all other labels: 22 (i3, ann, wide.csv, line 5, field ann); write another number, or nothing, and "
        "import again; numbers that are right pass with --scale LOWEST,HIGHEST\n"
    )
    table.write_text(table.read_text().replace("good", "4"))
    ended = run(*command, "--scale", "1,5")
    assert ended.err.startswith(
        "error: not on the scale 1,5: 22 (i3, ann, wide.csv, line 5, field ann); write "
    )
    for scale in ("5", "5,1", "nan,5"):
        refused = run(*command, "--scale", scale)
        assert "the lowest label and the highest, such as 1,7" in refused.err
    assert run(*command, "--scale", "0,22").code == 0
    refused = run("import", "writingbench", "wide.csv", "--out", "t.jsonl", "--scale", "tenth")
    assert "--scale: there is no 'tenth'; did you mean tenths?" in refused.err


def test_words_for_a_decision_are_refused_among_other_numbers_and_one_pair_with_1_and_0(
    run: Command, tmp_path: Path
) -> None:
    table = tmp_path / "wide.csv"
    command = ("import", "wide", "wide.csv", "--rater-columns", "ann,bo", "--out", "r.jsonl")
    table.write_text("item,ann,bo\ni1,yes,no\ni2,1,0\ni3,TRUE,5\n")
    refused = run(*command)
    assert refused.code == 2
    assert refused.err.startswith("error: words among numbers, without a place on the scale: 'yes'")
    table.write_text("item,ann,bo\ni1,yes,1\ni2,1,0\ni3,0,0\ni4,1,1\ni5,1,1\n")
    assert run(*command).code == 0
    ended = run("consensus", "r.jsonl")
    assert "4 of 5 items with two labels or more are unanimous (80.0%)" in ended.out
    assert "in another spelling: '0' as no (3), '1' as yes (6)\n" in ended.err


def test_a_wide_table_counts_labels_and_says_what_was_pasted_twice(
    run: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As `consensus` counts them: n/a is no label, and remains in the file, as --classes may name it."""
    table = tmp_path / "wide.csv"
    table.write_text("id,system,ann,bo\na,x,yes,no\nb,x,n/a,no\na,x,yes,no\nc,x,no,no\n")
    command = ("import", "wide", "wide.csv", "--rater-columns", "ann,bo", "--out", "r.jsonl")
    ended = run(*command, "--column", "agent=system")
    copies = "rows left out that repeat another one in everything, as if pasted twice: 1"
    assert caplog.messages == [f"wide.csv: {copies}"]
    assert ended.err.splitlines()[:2] == [
        "5 votes, 3 items, 2 annotators, 1 omitted",
        "omitted answers have no label (an empty cell, or n/a, NA, unsure, ? or -), or several",
    ]
    votes = parse_lines((tmp_path / "r.jsonl").read_text())
    assert (len(votes), votes[0]["agent"]) == (6, "x")
    table.write_text("id,system,ann,bo\na,x,yes,no\na,x ,yes,yes\na,X,yes,yes\n")
    ended = run(*command, "--column", "agent=system")
    assert ended.err.splitlines()[1:3] == [
        "'X' and 'x' differ only in case, spaces or Unicode form, and count as two; write one name if they are one",
        "votes that repeat an item and annotator, and count, too, unless they repeat all else: 2, on a_x by ann, a_x "
        "by bo; keep one of each, or import the file of each person by itself",
    ]
    table.write_text("")
    assert "wide.csv: is empty, or nobody answered; " in run(*command).err
    table.write_text("id,system,ann,bo\na,x,yes,no\n")
    refused = run(*command, "--column", "agnt=system")
    assert "--column: wide has no field 'agnt'; did you mean agent?" in refused.err


def test_a_table_of_ratings_is_written_as_tasks_and_as_ratings(
    run: Command, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(RATED)
    files = ("--out", "tasks.jsonl", "--ratings", "ratings.jsonl")
    ended = run("import", "ratings", "people.csv", *RENAMED, *files, "--json")
    counts = {"tasks": 2, "responses": 3, "votes": 3, "annotators": 2, "omitted": 1}
    assert json.loads(ended.out) == {
        "tasks_file": "tasks.jsonl",
        "ratings_file": "ratings.jsonl",
        **counts,
    }
    assert [task["id"] for task in parse_lines((tmp_path / "tasks.jsonl").read_text())] == [
        "q1",
        "q2",
    ]
    ratings = parse_lines((tmp_path / "ratings.jsonl").read_text())
    assert [rating["prompt"] for rating in ratings] == ["What?", "What?", "What?"]


def test_a_table_of_ratings_counts_labels_and_says_which_rows_are_repeated(
    run: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = (
        "a,A,ann,4.5",
        "a,A,bo,n/a",
        "a,A,cy,",
        "b,B,ann,2",
        "b,B,ann,2",
        "b,B,bo,1",
        "b,B,bo,3",
        "c,C,ann,five",
        "d,D,ann,5",
    )
    Path("rated.csv").write_text("\n".join(("item,text,annotator,label", *rows)))
    command = ("import", "ratings", "rated.csv", "--out", "t.jsonl", "--ratings", "r.jsonl")
    refused = run(*command)
    assert refused.code == 2
    assert "without a place on the scale: 'five' (c, ann, line 9); write another" in refused.err
    assert not Path("t.jsonl").exists()
    Path("rated.csv").write_text(Path("rated.csv").read_text().replace("five", "5"))
    caplog.clear()
    ended = run(*command)
    copies = "rows left out that repeat another one in everything, as if pasted twice: 1"
    assert caplog.messages == [f"rated.csv: {copies}"]
    assert ended.err.splitlines()[:3] == [
        "4 tasks, 4 responses, 6 votes, 3 annotators, 2 omitted",
        "omitted answers have no label (an empty cell, or n/a, NA, unsure, ? or -), or several",
        "votes that repeat an item and annotator, and count, too, unless they repeat all else: 1, on b by bo; "
        "keep one of each, or import the "
        "file of each person by itself, or name the "
        "column of agents (--column agent=C)",
    ]


def test_an_import_does_not_replace_the_rows_of_another_one(run: Command, tmp_path: Path) -> None:
    command = ("import", "wide", "wide.csv", "--rater-columns", "ann", "--out", "r.jsonl")
    Path("wide.csv").write_text("id,ann\na,5\nb,4\n")
    assert run(*command).code == 0
    Path("wide.csv").write_text("id,ann\na,3\n")
    assert run(*command).code == 0  # of a table that was corrected
    written = Path("r.jsonl").read_bytes()
    Path("wide.csv").write_text("id,ann\nc,5\n")
    ended = run(*command)
    assert ended.code == 2
    assert "r.jsonl: exists, and has rows that would be lost; name another file" in ended.err
    assert Path("r.jsonl").read_bytes() == written
    for strange in ('{"id":["a"]}\n', "[" * 100_000, "[1]\n"):  # no file of ours
        Path("r.jsonl").write_text(strange)
        assert "rows that would be lost" in run(*command).err


def test_the_next_command_of_each_question_of_a_table_runs(run: Command, tmp_path: Path) -> None:
    rows = "item,agent,text,annotator,stars,tone\n"
    for item in range(6):
        for name in ("ann", "bo", "cy"):
            rows += f"i{item},x,T,{name},{item % 4 + (name == 'bo')},{('Cold', 'warm')[item % 2]}\n"
    rows += "i6,x,T,ann,2,cold\n"  # another spelling is no other class
    Path("rated.csv").write_text(rows)
    files = ("--out", "t.jsonl", "--ratings", "r.jsonl")
    ended = run("import", "ratings", "rated.csv", "--target-column", "stars,tone", *files)
    steps = [line for line in ended.err.splitlines() if "jurygraph consensus" in line]
    assert steps == [
        "next: jurygraph consensus r.jsonl --dimension stars",
        "next (put the classes in order, the lowest first): jurygraph consensus r.jsonl --dimension tone --classes "
        "Cold,warm",
    ]
    for step in steps:
        _, arguments = step.split(": jurygraph ")
        assert run(*arguments.split(), "--subsets", 0).code == 0
