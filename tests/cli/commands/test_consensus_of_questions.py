"""Three questions about the same answers: one report, one table beside the judge, and sheets for what is in doubt."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.studies.fitted_consensus import ConsensusSettings, fit_consensus
from jurygraph.studies.judgements import Judgement
from jurygraph.studies.questions import _credit_of_judgement, format_judgement
from jurygraph.studies.votes import collect_votes
from tests.cli.commands.test_assign import TASKS
from tests.cli.conftest import Command, write_project
from tests.sources.test_ratings import table
from tests.studies.consensus.made import votes_file

ALL_REFITS = ("--target-column", "accuracy,tone,stars", "--classes", "tone=rude,neutral,kind")
COLUMNS = (*ALL_REFITS, "--bootstrap", 10, "--subsets", 0)  # where a test is not of intervals
DOUBTFUL = "t3_m2"


@pytest.fixture(autouse=True)
def labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three people label twelve answers alike, but for the tone of one and for who says yes to everything."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for task in range(6):
        for agent in ("m1", "m2"):
            for person in ("ann", "bo", "cy"):
                is_right = agent == "m1" or person == "cy"
                tone = {"ann": "rude", "bo": "Kind", "cy": ""} if task == 3 else {}
                rows.append(
                    {
                        "item": f"t{task}",
                        "agent": agent,
                        "annotator": person,
                        "accuracy": "yes" if is_right else "no",
                        "tone": tone.get(person, "kind") if agent == "m2" else "kind",
                        "stars": 1 + (task + (person == "bo")) % 5,
                        "text": f"Answer of {agent} to {task}",
                    }
                )
    table(tmp_path / "labels.csv", *rows)


def read_table(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {f"{row['item']}_{row['agent']}": row for row in csv.DictReader(file)}


def test_each_question_has_a_consensus_and_one_table_shows_them_beside_the_judge(
    run: Command, tmp_path: Path
) -> None:
    project = write_project(
        tmp_path, TASKS, "evaluators: [maths.accuracy]\nreward: {accuracy: 1.0}\n"
    )
    assert run("score", project / "tasks.jsonl", "--out", "run").code == 0
    command = ("consensus", "labels.csv", *ALL_REFITS, "--table", "table.csv", "--run", "run")
    ended = run(*command, "--labels-out", "labels-out.csv")
    assert ended.code == 0, ended.err
    assert (
        "\naccuracy: Warning: gives nearly every item one label, where others differ: cy (yes: 12 of 12)"
        in f"\n{ended.out}"
    )
    assert "; to leave out: --without cy\n" in ended.out
    assert "is in credit, as the scores are: no is 0 and yes 1.\n" in ended.out
    assert "\nquestion  labels  items  unanimous  in doubt  " in ended.out
    found = read_table(tmp_path / "table.csv")
    right, wrong = found["t0_m1"], found[DOUBTFUL]
    assert (right["accuracy"], right["accuracy judge"], right["accuracy by cy"]) == ("yes",) * 3
    assert (wrong["accuracy"], wrong["accuracy judge"], wrong["accuracy by cy"]) == (
        "no",
        "no",
        "yes",
    )
    assert (wrong["tone"], wrong["tone by bo"], wrong["tone by cy"]) == (
        "tie: rude or kind",
        "kind",
        "",
    )
    assert wrong["in doubt"].startswith("accuracy: one vote decides; tone: tie")
    assert (right["stars"], right["stars labels"], right["text"]) == ("1", "3", "Answer of m1 to 0")
    assert "tone judge" not in right, "no judge was asked that"
    with Path("labels-out.csv").open(newline="", encoding="utf-8") as file:
        questions = [row["question"] for row in csv.DictReader(file)]
    assert questions == ["accuracy"] * 12 + ["tone"] * 12 + ["stars"] * 12
    judged = run(
        "study", "judge", "run", "--labels", "labels-out.csv", "--question", "accuracy", "--json"
    )
    assert json.loads(judged.out)["judges"][0]["accuracy"]["value"] == 1.0


def test_excel_has_the_same_table_with_numbers(run: Command, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    assert run("consensus", "labels.csv", *COLUMNS, "--table", "table.xlsx").code == 0
    assert run("consensus", "labels.csv", *COLUMNS, "--table", "table.csv").code == 0
    titles, *rows = openpyxl.load_workbook("table.xlsx")["Items"].iter_rows(values_only=True)
    expected = list(read_table(tmp_path / "table.csv").values())
    assert list(titles) == list(expected[0])
    for row, texts in zip(rows, expected, strict=True):
        for cell, text in zip(row, texts.values(), strict=True):
            assert cell == (float(text) if isinstance(cell, int | float) else text or None)


def test_excel_has_a_sheet_of_people_and_one_of_what_new_labels_changed(
    run: Command, tmp_path: Path
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    long_text = "An answer that is as long as texts of answers are."
    command = ("consensus", "labels.csv", *COLUMNS, "--method", "majority")
    Path("saved.json").write_text(run(*command, "--json").out, encoding="utf-8")
    table(
        tmp_path / "new.csv",
        {
            "item": "t3",
            "agent": "m2",
            "annotator": "dee",
            "Reply": long_text,
            "accuracy": "no",
            "tone": "rude",
            "stars": 4,
        },
    )
    command = ("consensus", "labels.csv", "new.csv", *COLUMNS, "--before", "saved.json")
    ended = run(*command, "--table", "table.xlsx")
    assert (
        "the table has no texts; those of 'Reply' are added by --column text=Reply\n" in ended.err
    )
    book = openpyxl.load_workbook("table.xlsx")
    assert book.sheetnames == ["Items", "Summary", "People", "Confusions", "Changed"]
    summary = [row[0] for row in book["Summary"].iter_rows(values_only=True)]
    assert (summary[0], summary[1] in ended.out) == ("summary", True)
    assert list(book["Confusions"].iter_rows(max_row=3, max_col=5, values_only=True)) == [
        ("question", "annotator", "most others say", "says no", "says yes"),
        ("accuracy", "ann", "no", 1, 0),
        ("accuracy", "ann", "yes", 0, 6),
    ]
    titles, *people = book["People"].iter_rows(values_only=True)
    assert (titles[:3], titles[-1]) == (
        ("annotator", "accuracy: correlation (95 %)", "accuracy: labels"),
        "warning",
    )
    warnings = {row[0]: row[-1] for row in people}
    assert list(warnings) == ["ann", "bo", "cy", "dee"]
    assert all(isinstance(row[1], float | None) for row in people)
    assert [name for name, warning in warnings.items() if warning] == ["cy"]
    first, second = warnings["cy"].split("\n")
    assert first.startswith("accuracy: Warning: gives nearly every item one label")
    assert second.startswith("stars: Warning: ann and cy gave 12 of 12 items the same")
    changed = list(book["Changed"].iter_rows(values_only=True))
    assert changed == [
        ("item", "question", "label before", "label", "ambiguity before", "ambiguity"),
        ("t3_m2", "tone", "rude or kind", "rude", 0.5, 0),
    ]
    titles, *rows = book["Items"].iter_rows(values_only=True)
    place = titles.index("tone")
    assert titles[place : place + 3] == ("tone", "tone before", "tone certainty")
    tones_by_item = {row[:2]: row[place : place + 2] for row in rows}
    assert tones_by_item["t3", "m2"] == ("rude", "tie: rude or kind")


def test_a_named_column_chooses_its_question_where_a_file_of_sheets_has_more(run: Command) -> None:
    """Labels are written as JSON, numbers as numbers, and a gold item that has no label names its question."""
    votes = [
        {"item": "t3", "agent": "m2", "annotator": "ann", "dimension": name, "label": label}
        for name, label in (("stars", 2), ("length", "long"), ("length", "short"))
    ]
    table(Path("sheets.jsonl"), *votes)
    files = ("labels.csv", "sheets.jsonl", "--target-column", "stars")
    ended = run("consensus", *files, "--method", "majority", "--labels-out", "l.jsonl")
    assert ended.code == 0, ended.err
    assert "Warning: labelled again by the same annotator: 1, with another label: 1; " in ended.out
    rows = [json.loads(line) for line in Path("l.jsonl").read_text("utf-8").splitlines()]
    assert {(row["item"], row["agent"]): row["label"] for row in rows}["t0", "m1"] == 1
    again = run("consensus", *files, "--keep-last", "--method", "majority")
    assert "labelled again" not in again.out
    table(Path("gold.csv"), {"item": "t0", "agent": "m1", "length": "long"})
    lost = run(
        "consensus",
        *files,
        "--dimension",
        "length",
        "--gold",
        "gold.csv",
        "--classes",
        "short,long",
    )
    assert "gold.csv, line 2, field item: nobody labelled length of item 't0_m1'; " in lost.err


def test_a_sheet_asks_only_what_is_in_doubt_and_the_answers_show_what_moved(
    run: Command, tmp_path: Path
) -> None:
    saved = run("consensus", "labels.csv", *COLUMNS, "--without", "cy", "--json")
    Path("saved.json").write_text(saved.out, encoding="utf-8")
    assert json.loads(saved.out)["items_in_doubt"] == 3, "the stars of two, and the tone of one"
    out = ("--reviewers", "dee", "--per-item", 1, "--out", "again")
    made = run("assign", "labels.csv", "--ambiguous", "saved.json", *out)
    assert made.code == 0, made.err
    with Path("again/sheets/dee.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    asked = [row["dimension"] for row in rows if row["text"] == "Answer of m2 to 3"]
    assert "tone" in asked
    assert "accuracy" not in {row["dimension"] for row in rows}
    assert {row["scale"] for row in rows if row["dimension"] == "tone"} == {"rude, neutral, kind"}
    sheet = Path("again/sheets/dee.csv").read_text(encoding="utf-8")
    sheet = sheet.replace('"rude, neutral, kind",""', '"rude, neutral, kind","rude"')
    Path("again/sheets/dee.csv").write_text(sheet, encoding="utf-8")
    new = ("--out", "new.jsonl")
    assert run("import", "sheets", "again/key.jsonl", "again/sheets/dee.csv", *new).code == 0
    files = ("labels.csv", "new.jsonl", *COLUMNS, "--without", "cy", "--dimension", "tone")
    moved = run("consensus", *files, "--before", "saved.json")
    assert "items in doubt: 1 before, " in moved.out, moved.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ("--table", "t.parquet"),
            "t.parquet: is written as CSV, JSONL or Excel; name a file that ends in",
        ),
        (("--compare",), "--compare: is of one question, and these are accuracy, tone, stars; "),
        (
            ("--values", "0,1"),
            "--values: is of one question, and these are accuracy, tone, stars; ",
        ),
        (("--classes", "tone=a,b"), "--classes: names 'tone' twice; write --classes QUESTION="),
    ],
)
def test_what_is_of_one_question_is_refused_of_several(
    run: Command, options: tuple[str, ...], problem: str
) -> None:
    refused = run("consensus", "labels.csv", *COLUMNS, *options)
    assert (refused.code, problem in refused.err) == (2, True), refused.err


def consensus_json(run: Command, *arguments: object) -> dict[str, Any]:
    ended = run("consensus", *arguments, "--json")
    assert ended.code == 0, ended.err
    answer: dict[str, Any] = json.loads(ended.out)
    return answer


def test_gold_has_a_column_for_each_question_that_it_knows(run: Command, tmp_path: Path) -> None:
    table(tmp_path / "gold.csv", {"item": "t3", "agent": "m2", "tone": "kind"})
    command = ("consensus", "labels.csv", *COLUMNS, "--gold", "gold.csv", "--table", "table.csv")
    ended = run(*command)
    assert ended.code == 0, ended.err
    row = read_table(tmp_path / "table.csv")[DOUBTFUL]
    assert (row["tone"], row["tone gold"], row["tone certainty"]) == ("kind", "kind", "1.0")
    assert row["in doubt"] == "accuracy: one vote decides", "what is known is not"
    table(tmp_path / "both.csv", {"item": "t3", "agent": "m2", "tone": "maybe"})
    refused = run("consensus", "labels.csv", *COLUMNS, "--gold", "both.csv")
    assert (
        "both.csv, line 2, field tone: is the text 'maybe', which is off the scale" in refused.err
    )
    rows = [
        {"item": item, "annotator": person, "dimension": question, "label": label}
        for item, person, label in (("a", "ann", 0), ("a", "bo", 1), ("b", "ann", 1))
        for question in ("tone", "help")
    ]
    table(tmp_path / "long.csv", *rows)
    table(tmp_path / "wide.csv", {"item": "a", "tone": 1, "help": ""})
    questions = consensus_json(run, "long.csv", "--gold", "wide.csv")["questions"]
    counts = {name: figures["counts"]["gold"] for name, figures in questions.items()}
    assert counts == {"tone": 1, "help": 0}, "rows that name their question take columns, too"


def test_agents_are_compared_by_the_judge_as_by_people(run: Command, tmp_path: Path) -> None:
    """By people and by the judge m1 is right, and m2 is not."""
    project = write_project(
        tmp_path, TASKS, "evaluators: [maths.accuracy]\nreward: {accuracy: 1.0}\n"
    )
    assert run("score", project / "tasks.jsonl", "--out", "run").code == 0
    found = consensus_json(run, "labels.csv", *COLUMNS, "--run", "run")
    row, *others = found["judged_agents"]
    assert (row["question"], row["agent"], row["other"]) == ("accuracy", "m1", "m2")
    assert row["judge"]["value"] == 1.0
    assert {other["judge"] for other in others} == {None}
    assert "accuracy, by the judge: m1 is ahead of m2" in " ".join(found["conclusion"])
    alone = ("labels.csv", *COLUMNS, "--dimension", "tone", "--run", "run")
    assert "no judge is of tone; name questions as the run does" in run("consensus", *alone).err


def test_a_judge_is_in_words_only_where_these_have_an_order(run: Command, tmp_path: Path) -> None:
    project = write_project(
        tmp_path, TASKS, "evaluators: [maths.accuracy]\nreward: {accuracy: 1.0}\n"
    )
    assert run("score", project / "tasks.jsonl", "--out", "run").code == 0
    rows = [
        {"item": f"t{task}/m1", "annotator": person, "accuracy": word}
        for task, word in enumerate(("useless", "good", "good"))
        for person in ("ann", "bo")
    ]
    table(tmp_path / "words.csv", *rows)
    command = ("consensus", "words.csv", "--target-column", "accuracy", "--table", "t.csv")
    for order, expected in (((), "1.0"), (("--classes", "Accuracy=useless,good"), "good")):
        ended = run(*command, "--run", "run", *order)
        assert ended.code == 0, ended.err
        with Path("t.csv").open(newline="", encoding="utf-8") as file:
            assert {row["accuracy judge"] for row in csv.DictReader(file)} == {expected}
    ratings = ("consensus", "words.csv", "--target-column", "accuracy", "--ratings-out", "j.csv")
    for options in ((), ("--run", "run")):
        assert "name the judge's run by --run, and the order" in run(*ratings, *options).err
    assert run(*ratings, "--run", "run", *order).code == 0
    both = consensus_json(run, *ratings[1:4], "j.csv", *order)
    assert (both["annotators"]["judge"]["labels"], both["counts"]["items"]) == (3, 3)


def test_classes_of_no_question_and_an_earlier_consensus_of_another_one_are_refused(
    run: Command,
) -> None:
    typo = ("labels.csv", "--target-column", "accuracy,tone", "--classes", "toen=rude,neutral,kind")
    refused = run("consensus", *typo)
    assert "no label is of the question 'toen'; did you mean tone?" in refused.err
    saved = run("consensus", "labels.csv", *COLUMNS, "--dimension", "tone", "--json")
    Path("tone.json").write_text(saved.out, encoding="utf-8")
    refused = run("consensus", "labels.csv", *COLUMNS, "--before", "tone.json")
    assert "--before: is of tone, and has no consensus of accuracy" in refused.err


def test_the_last_of_several_labels_is_kept_across_files_and_else_all_are_shown(
    run: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changed = {"item": "t0", "agent": "m1", "annotator": "ann", "dimension": "stars", "score": 5}
    table(tmp_path / "again.csv", changed)
    files = ("labels.csv", "again.csv", "--target-column", "stars", "--table", "t.csv")
    for option, said in ((), "1, 5"), (("--keep-last",), "5"):
        ended = run("consensus", *files, *option)
        assert ended.code == 0, ended.err
        assert read_table(tmp_path / "t.csv")["t0_m1"]["stars by ann"] == said
    assert caplog.messages[-1].endswith(
        "is kept: 0; labels with another value: 1\n"
        "  t0_m1, stars, ann: 1 (line 2 of labels.csv) → 5 (line 2 of again.csv)"
    )


def test_one_label_is_no_habit_and_decisions_in_three_spellings_are_two_classes(
    run: Command, tmp_path: Path
) -> None:
    rows = [
        {"item": f"i{item}", "annotator": person, "label": label}
        for item in range(6)
        for person, label in (("ann", "yes"), ("bo", "y"), ("cy", "no"))
    ]
    rows.append({"item": "i0", "annotator": "dee", "label": "no"})
    table(tmp_path / "v.csv", *rows)
    found = consensus_json(run, "v.csv", *COLUMNS[4:])
    assert found["classes"] == ["no", "yes"]
    assert found["annotators"]["cy"]["always"] == {"label": "no", "labels": 6}
    assert found["annotators"]["dee"]["always"] is None


def test_sheets_of_a_run_join_labels_that_name_agents(run: Command, tmp_path: Path) -> None:
    project = write_project(
        tmp_path, TASKS, "evaluators: [maths.accuracy]\nreward: {accuracy: 1.0}\n"
    )
    assert run("score", project / "tasks.jsonl", "--out", "run").code == 0
    rows = [
        {"item": f"t{task}/{agent}", "agent": agent, "annotator": person, "label": label}
        for task in range(6)
        for agent in ("m1", "m2")
        for person, label in (("ann", 1), ("bo", task % 2))
    ]
    table(tmp_path / "v.csv", *rows)
    ended = run("consensus", "v.csv", "--run", "run", "--labels-out", "l.csv", "--json")
    assert "no judge is of label" in ended.err
    saved = run("consensus", "v.csv", "--json")
    Path("saved.json").write_text(saved.out, encoding="utf-8")
    out = ("--reviewers", "cy,dee", "--per-item", 1, "--out", "again")
    made = run("assign", "run", "--ambiguous", "saved.json", *out)
    assert made.code == 0, made.err
    assert "6 items for 2 reviewers, each item 1 times; 3 for each" in made.out
    with Path("again/key.jsonl").open(encoding="utf-8") as file:
        assert {json.loads(line)["agent"] for line in file} == {"m1", "m2"}


@pytest.mark.parametrize(
    ("gold", "options", "counts"),
    [
        ({"label": "kind"}, ("--target-column", "tone"), {None: 1}),
        ({"tone": "kind"}, ("--target-column", "tone"), {None: 1}),
        ({"label": "kind"}, ("--target-column", "mood=tone"), {None: 1}),
        ({"dimension": "tone", "label": "kind"}, COLUMNS[:2], {"accuracy": 0, "tone": 1}),
        ({"label": "kind"}, COLUMNS[:2], "--gold: its labels name no question; call their column"),
        ({"dimension": "ton", "label": "kind"}, COLUMNS[:2], "--gold: has labels of 'ton', and"),
    ],
)
def test_gold_is_of_the_question_that_it_names_or_of_the_only_one(
    run: Command, tmp_path: Path, gold: dict[str, str], options: tuple[object, ...], counts: Any
) -> None:
    table(tmp_path / "gold.csv", {"item": "t3", "agent": "m2", **gold})
    command = ("labels.csv", *options, "--classes", "rude,neutral,kind", "--gold", "gold.csv")
    if options == COLUMNS[:2]:
        command = ("labels.csv", *COLUMNS, "--gold", "gold.csv")
    if isinstance(counts, str):
        assert counts in run("consensus", *command).err
        return
    found = consensus_json(run, *command)
    for question, count in counts.items():
        figures = found["questions"][question] if question else found
        assert figures["counts"]["gold"] == count


def test_a_judge_who_says_what_people_say_has_their_lead(run: Command, tmp_path: Path) -> None:
    """Nobody gives the lowest of five stars, which the judge might; and decisions keep their meaning when turned."""
    fit = fit_consensus(
        collect_votes([votes_file(("a", "x", 2.0), ("a", "y", 4.0), ("b", "x", 5.0))]),
        ConsensusSettings(method="majority"),
    )
    said = Judgement("t", "judged", score=0.25, native=2.0, scale=(1.0, 5.0))
    assert _credit_of_judgement(said, fit) == fit.values[0]
    words = collect_votes([votes_file(("a", "x", "yes"), ("a", "y", "no"))], classes=["yes", "no"])
    decided = Judgement("t", "judged", score=0.0, decision=0.0)
    assert format_judgement(decided, fit_consensus(words, ConsensusSettings())) == "no"
    assert format_judgement(said, fit) == 2.0, "as it is on people's scale"
    assert format_judgement(said._replace(native=0.5, scale=None), fit) == 3.5


def test_two_columns_of_one_name_are_refused(run: Command, tmp_path: Path) -> None:
    rows = [
        {"item": "a", "annotator": name, "stars": star, "stars mean": 3 - star % 2, "text": "A"}
        for name, star in (("ann", 1), ("bo", 2), ("cy", 3))
    ]
    table(tmp_path / "v.csv", *rows)
    command = ("v.csv", "--target-column", "stars,stars mean", "--table", "t.csv")
    assert "--table: has a column 'stars mean' already; " in run("consensus", *command).err


def test_labels_that_nobody_else_gave_an_item_make_nobody_constant(
    run: Command, tmp_path: Path
) -> None:
    rows = [
        {"item": f"{person}{item}", "annotator": person, "label": word if item else "bad"}
        for person, word in (("ann", "good"), ("eli", "good"), ("bo", "ok"))
        for item in range(person == "eli", 9)
    ]
    table(tmp_path / "v.csv", *rows)
    found = consensus_json(run, "v.csv")
    assert {row["always"] for row in found["annotators"].values()} == {None}


def test_names_that_differ_in_case_alone_are_noted_once_for_all_questions_and_can_be_one(
    run: Command, tmp_path: Path
) -> None:
    rows = [
        {"item": f"i{item}", "annotator": person, "tone": "kind", "help": (item + turn) % 3 == 0}
        for item in range(6)
        for turn, person in enumerate(("Ann" if item else "ann ", "bo", "Cy" if item < 4 else "CY"))
    ]
    table(tmp_path / "v.csv", *rows)
    command = ("consensus", "v.csv", "--target-column", "tone,help", "--classes", "tone=rude,kind")
    noted = run(*command)
    (note,) = [line for line in noted.err.splitlines() if "differ only in case" in line]
    assert note == (
        "tone, help: 'CY' and 'Cy', 'Ann' and 'ann' differ only in case, spaces or Unicode form, and count as two; "
        "write one name if they are one, or add --same-names"
    )
    saved = run(*command, "--same-names", "--json")
    people = json.loads(saved.out)["questions"]["help"]["annotators"]
    assert {name: row["labels"] for name, row in people.items()} == {"Ann": 6, "bo": 6, "Cy": 6}
    assert "differ only in case" not in saved.err


def test_gold_may_call_its_items_item_or_id_whatever_the_ratings_do(
    run: Command, tmp_path: Path
) -> None:
    rows = [
        {"Reply ID": f"i{item}", "annotator": name, "tone": ("kind", "rude")[item % 2]}
        for item in range(4)
        for name in ("ann", "bo")
    ]
    table(tmp_path / "v.csv", *rows)
    command = ("v.csv", "--id-column", "Reply ID", "--target-column", "tone", "--gold", "gold.csv")
    for column in ("Reply ID", "item", "id", "reply id", "ID", "reply_id", "Input.reply_id"):
        table(tmp_path / "gold.csv", {column: "i0", "tone": "kind"})
        assert consensus_json(run, *command)["counts"]["gold"] == 1
    rows = [{f"Input.{name}": cell for name, cell in row.items()} for row in rows]
    table(tmp_path / "w.csv", *rows)
    columns = ("--id-column", "Input.Reply ID", "--reviewer-column", "Input.annotator")
    mapped = ("w.csv", *columns, "--target-column", "mood=Input.tone", "--gold", "gold.csv")
    for column in ("Input.tone", "tone", "mood", "Mood"):
        table(tmp_path / "gold.csv", {"Reply ID": "i0", column: "kind"})
        assert consensus_json(run, *mapped)["counts"]["gold"] == 1
    table(tmp_path / "gold.csv", {"reply": "i0", "tone": "kind"})
    assert run("consensus", *command).err == (
        "error: gold.csv, line 1: has no column 'Reply ID'; did you mean reply?\n"
    )
