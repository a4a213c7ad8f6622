"""`jurygraph assign`: responses of a run become sheets, these become ratings, and those labels for `study judge`."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Command, write_project
from tests.rows import all_rows
from tests.sources.test_ratings import table
from tests.studies.consensus.made import PANEL

TASKS = [
    {
        "id": f"t{task}",
        "query": "How much is 6 x 7?",
        "reference": "42",
        "responses": [
            {"id": f"t{task}/{agent}", "agent": agent, "text": f"A: {answer}"}
            for agent, answer in (("m1", 42), ("m2", 7))
        ],
    }
    for task in range(6)
]


def test_from_a_run_to_labels_of_its_judge(run: Command, tmp_path: Path) -> None:
    project = write_project(
        tmp_path, TASKS, "evaluators: [maths.accuracy]\nreward: {accuracy: 1.0}\n"
    )
    folder = project / "run"
    assert run("score", project / "tasks.jsonl", "--out", folder).code == 0
    out = tmp_path / "assigned"
    made = run(
        "assign", folder, "--reviewers", "ann,bob,cy", "--per-item", 2, "--out", out, "--json"
    )
    assert json.loads(made.out) == {
        "items": 12,
        "gold": 0,
        "reviewers": 3,
        "per_item": 2,
        "least_items": 8,
        "most_items": 8,
        "seed": 0,
        "least_shared": 4,
        "most_shared": 4,
        "repeated": 0,
        "labels": 24,
    }
    sheets = sorted((out / "sheets").iterdir())
    ratings = tmp_path / "ratings.jsonl"
    unfilled = run("import", "sheets", out / "key.jsonl", *sheets, "--out", ratings)
    assert (unfilled.code, "no row has a label; fill in" in unfilled.err, ratings.exists()) == (
        2,
        True,
        False,
    )
    for sheet in sheets:
        assert "How much is 6 x 7?" in sheet.read_text(encoding="utf-8")
        rows = sheet.read_text(encoding="utf-8").splitlines()
        assert sum("A: 42" in row for row in rows) == 4, "as many of each agent"
        scored = [row.replace('"",""', '"1",""' if "42" in row else '"0",""') for row in rows]
        sheet.write_text("\n".join(scored[:-1]), encoding="utf-8")
    read = run("import", "sheets", out / "key.jsonl", *sheets, "--out", ratings)
    assert "21 votes, 12 items, 3 annotators, 0 omitted" in read.err
    cleared = sheets[0].read_text(encoding="utf-8").replace('"1",""', '"",""', 1)
    sheets[0].write_text(cleared, encoding="utf-8")
    again = run("import", "sheets", out / "key.jsonl", *sheets, "--out", ratings)
    assert "20 votes, 12 items, 3 annotators, 1 omitted" in again.err, "an answer was taken back"
    forgotten = run("import", "sheets", out / "key.jsonl", *sheets[1:], "--out", ratings)
    assert "has rows that would be lost" in forgotten.err
    twice = run(
        "import",
        "sheets",
        out / "key.jsonl",
        sheets[0],
        sheets[0],
        "--out",
        tmp_path / "twice.jsonl",
    )
    assert (twice.code, "keep one of them" in twice.err) == (2, True)
    judged = run("study", "judge", folder, "--labels", ratings, "--json")
    assert judged.code == 0, judged.err
    (judge,) = json.loads(judged.out)["judges"]
    assert (judge["n"], judge["accuracy"]["value"]) == (12, 1.0)


def test_from_doubt_to_a_refit(
    run: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The labels are words of one of two questions; Bo, who labelled all items before, labels the ambiguous ones again.

    The last command that is printed is complete: it has the files, columns and options of the consensus.
    """
    monkeypatch.chdir(tmp_path)
    words = ("bad", "good")
    rows = []
    for item, who, label in PANEL:
        row = {"reply": item, "annotator": who, "dimension": "tone", "label": words[int(label)]}
        rows += [row, {**row, "dimension": "length", "label": "long"}]
    table(Path("ratings.csv"), *rows)
    table(Path("items.csv"), *({"reply": f"i{number}", "text": "A"} for number in range(12)))
    named = ("--id-column", "reply")
    options = ("--classes", "bad,good", "--method", "stableval", "--subsets", 0, *named)
    options += ("--dimension", "tone")
    first = run("consensus", "ratings.csv", *options, "--json")
    Path("consensus.json").write_text(first.out, encoding="utf-8")
    doubtful = ("--ambiguous", "consensus.json", "--above", 1e-9)
    made = run(
        "assign",
        "items.csv",
        *named,
        *doubtful,
        "--reviewers",
        "bo",
        "--per-item",
        1,
        "--out",
        "out",
    )
    assert made.code == 0, made.err
    assert "\nlast: " in made.out
    assert "rated again by who rated the item before, for want of others: " in made.out
    sheet = Path("out/sheets/bo.csv")
    filled = sheet.read_text(encoding="utf-8").replace('"",""', '"good",""')
    sheet.write_text(filled, encoding="utf-8")
    read = run("import", "sheets", "out/key.jsonl", sheet, "--out", "out/adjudicated.jsonl")
    assert read.code == 0, read.err
    chosen = " ".join(map(str, options))
    step = f"jurygraph consensus ratings.csv {chosen} --before consensus.json --keep-last out/adjudicated.jsonl"
    assert f"last: {step}\n" in made.out
    assert f"next: {step}\n" in read.err
    key = Path("out/key.jsonl").read_text(encoding="utf-8")
    file_of_key = re.sub(r'"consensus":"[^"]*"', '"consensus":"consensus.json"', key)
    Path("earlier.jsonl").write_text(file_of_key, encoding="utf-8")  # as earlier versions wrote it
    earlier = run("import", "sheets", "earlier.jsonl", sheet, "--out", "earlier-labels.jsonl")
    comparison = "jurygraph consensus RATINGS --before consensus.json"
    assert f"next: {comparison} earlier-labels.jsonl\n" in earlier.err
    assert '"score","reason"' in filled
    assert '"bad, good"' in filled
    turned = run("import", "sheets", sheet, "out/key.jsonl", "--out", "turned.jsonl")
    assert "out/sheets/bo.csv: is a sheet; the key comes first: out/key.jsonl" in turned.err
    keyless = run("import", "sheets", sheet, "out/sheets/ann.csv", "--out", "turned.jsonl")
    assert "out/sheets/bo.csv: is a sheet; the key comes first: the key.jsonl" in keyless.err
    second = run(*shlex.split(step)[1:])
    assert second.code == 0, second.err
    assert "person labelled the item again: 12; " in caplog.text
    assert second.out.startswith("labels more than before: 0; likeliest labels that changed: ")
    assert "\nitem  label before  label  ambiguity before  ambiguity\n" in second.out
    assert "scores by posterior expected credit (method stableval, " in second.out


def test_the_widest_doubt_is_labelled_first_and_the_last_command_runs_with_files_that_lack_a_column(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ratings call each column otherwise, and the items, of which sheets are made, have no group."""
    monkeypatch.chdir(tmp_path)
    stars = {"near": (3, 4), "far": (4, 1, 4), "sure": (2, 2, 2)}
    rows = [
        {"Id": item, "System": f"bot {item}", "Question": f"Q {item}", "Who": who, "Stars": label}
        for item, labels in stars.items()
        for who, label in zip(("ann", "bo", "cy"), labels, strict=False)
    ]
    table(Path("ratings.csv"), *rows)
    items = [{"item": item, "agent": f"bot {item}", "text": "A text"} for item in stars]
    table(Path("items.csv"), *items)
    named = ("--id-column", "Id", "--agent", "System", "--group", "Question")
    named += ("--annotator", "Who", "--label", "Stars", "--subsets", 0, "--method", "majority")
    first = run("consensus", "ratings.csv", *named, "--json")
    Path("consensus.json").write_text(first.out, encoding="utf-8")
    printed = run("consensus", "ratings.csv", *named).out
    assert re.findall("^(near|far)", printed.partition("items in doubt")[2], re.M) == [
        "far",
        "near",
    ]
    asked = ("--ambiguous", "consensus.json", "--reviewers", "dee", "--per-item", 1)
    made = run("assign", "items.csv", *asked, "--limit", 1, "--out", "out")
    assert "are in doubt, too: 1; the widest spread of labels comes first\n" in made.err
    key = Path("out/key.jsonl")
    assert json.loads(key.read_text("utf-8"))["item"] == "far"
    sheet = Path("out/sheets/dee.csv")
    sheet.write_text(sheet.read_text("utf-8").replace('"",""', '"4",""'), "utf-8")
    read = run("import", "sheets", key, sheet, "--out", "new.jsonl")
    assert json.loads(Path("new.jsonl").read_text("utf-8")).keys() == {
        *("item", "agent", "annotator", "dimension", "label", "text")
    }
    (command,) = re.findall("^next: jurygraph (.*)$", read.err, re.M)
    second = run(*shlex.split(command))
    assert second.code == 0, second.err
    counts = "items in doubt: 2 before, 1 now; of those before, "
    assert counts in second.out
    table(Path("new.jsonl"), {"item": "new", "agent": "bot", "annotator": "dee", "label": 4})
    refused = run(*shlex.split(command)).err
    assert "new.jsonl, line 1, field group: is empty, and other rows have one" in refused


SCORES = {
    "vague": {"specificity": "2"},
    "good": {
        "specificity": "4",
        "technical-validity": "3",
        "innovativeness": "5",
        "competitive-advantage": "",  # an abstention
        "need-validity": "0",
        "market-size": "2",
    },
    "impossible": {"specificity": "3", "technical-validity": "1", "need-validity": "2"},
    "unread": {},
}
"""What Ann gives four ideas: market-size of the third is forgotten, and the last is left out."""


def fill_in(folder: Path, scores: dict[str, dict[str, str]]) -> Path:
    """Return Ann's sheet with these scores, sorted by dimension, as a spreadsheet may leave it."""
    lines = (folder / "key.jsonl").read_text(encoding="utf-8").splitlines()
    key = {row["id"]: row for row in map(json.loads, lines)}
    with (folder / "sheets" / "ann.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["score"] = scores[key[row["item"]]["item"]].get(row["dimension"], "")
    filled = Path("ann.csv")
    table(filled, *sorted(rows, key=lambda row: row["dimension"]))
    return filled


def test_what_is_screened_out_is_no_abstention_and_no_score(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(Path("items.csv"), *({"item": name, "text": f"The idea {name}"} for name in SCORES))
    asked = ("--dimensions", "ideas", "--reviewers", "ann", "--per-item", 1, "--out", "out")
    assert run("assign", "items.csv", *asked).code == 0
    with Path("out/sheets/ann.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))[:6]
    assert [(row["dimension"], row["scale"], row["skip_if"]) for row in rows] == [
        ("specificity", "from 1 to 4", ""),
        ("technical-validity", "from 1 to 4", "specificity is 2 or less, or empty"),
        ("innovativeness", "from 1 to 5", "technical-validity is 2 or less, or empty"),
        ("competitive-advantage", "from 1 to 4", "technical-validity is 2 or less, or empty"),
        ("need-validity", "from 0 to 3", "specificity is 2 or less, or empty"),
        ("market-size", "from 0 to 3", "specificity is 2 or less, or empty"),
    ]
    reading = ("import", "sheets", "out/key.jsonl", fill_in(Path("out"), SCORES))
    read = run(*reading, "--out", "r.jsonl", "--json")
    assert read.code == 0, read.err
    figures = json.loads(read.out)
    screened_out = {
        "technical-validity": 1,
        "innovativeness": 2,
        "competitive-advantage": 2,
        "need-validity": 1,
        "market-size": 1,
    }
    assert figures["screened_out"] == screened_out
    # Of 24 rows, the other two without a score are the abstention and the forgotten one, and six are of the last idea.
    # Two questions have one label alone, which `consensus` refuses: no command of theirs is printed.
    assert (figures["votes"], figures["omitted"], len(read.err.splitlines())) == (9, 8, 12)
    assert "next: jurygraph study reviewers r.jsonl\n" in read.err
    assert "jurygraph export RUN -o F.xlsx --labels r.jsonl\n" in read.err
    assert "screened out, and not omitted: " in read.err
    assert "2 innovativeness" in read.err
    named = re.findall(r"ann.csv, line (\d+), field score: is empty, and was not", read.err)
    assert sorted(named) == ["10", "3"]
    written = [json.loads(line) for line in Path("r.jsonl").read_text("utf-8").splitlines()]
    assert [row["label"] for row in written if row["item"] == "vague"] == [2.0]


def test_sheets_that_come_back_in_part_name_the_rows_that_are_missing_or_empty_and_items_without_a_label(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(Path("items.csv"), *({"item": f"i{number}", "text": "A text"} for number in range(6)))
    asked = ("--reviewers", "ann,bo,cy", "--per-item", 1, "--out", "out")
    assert run("assign", "items.csv", *asked).code == 0
    key = [json.loads(line) for line in Path("out/key.jsonl").read_text("utf-8").splitlines()]
    names = {row["id"]: row["item"] for row in key}
    items_by_reviewer = {}
    for reviewer in ("ann", "bo", "cy"):
        sheet = Path(f"out/sheets/{reviewer}.csv")
        header, first, second = sheet.read_text("utf-8").splitlines()
        items_by_reviewer[reviewer] = [names[line.split('"')[1]] for line in (first, second)]
        scored = first.replace('"",""', '"4",""')
        sheet.write_text("\n".join((header, scored, *[second] * (reviewer == "ann"))), "utf-8")
    returned = ("out/sheets/ann.csv", "out/sheets/bo.csv")
    read = run("import", "sheets", "out/key.jsonl", *returned, "--out", "r.jsonl")
    assert read.code == 0, read.err
    ann, bo, cy = items_by_reviewer.values()
    unlabelled = [row["item"] for row in key if row["item"] in (ann[1], bo[1], *cy)]
    cy = [item for item in unlabelled if item in cy]
    for note in (
        f"ann: 1 of 2 rows are empty: {ann[1]}",
        f"bo: 1 of 2 rows are missing: {bo[1]}",
        f"cy: 2 of 2 rows are missing: {', '.join(cy)}",
        f"items without a label: 4 of 6: {', '.join(unlabelled)}",
    ):
        assert note in read.err.splitlines()


@all_rows(
    "idea, dimension, score, problem",
    [
        ("vague", "market-size", "1", "has a score, and that of 'specificity' is not above 2; em"),
        ("vague", "innovativeness", "1", "that of 'technical-validity' is not above 2; empty it"),
        ("unread", "need-validity", "3", "that of 'specificity' is not above 2; empty it, or cor"),
        ("good", "specificity", "5", "is '5'; write one of 1, 2, 3, 4, or leave it empty"),
        ("good", "specificity", "2.5", "is '2.5'; write one of 1, 2, 3, 4, or leave it empty"),
    ],
)
def test_a_score_that_was_to_be_skipped_or_is_off_the_scale_is_refused(
    run: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    idea: str,
    dimension: str,
    score: str,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    table(Path("items.csv"), *({"item": name, "text": "An idea"} for name in SCORES))
    out = Path(f"{idea}-{dimension}-{score}")
    asked = ("--dimensions", "ideas", "--reviewers", "ann", "--per-item", 1, "--out", out)
    assert run("assign", "items.csv", *asked).code == 0
    sheet = fill_in(out, {**SCORES, idea: {**SCORES[idea], dimension: score}})
    read = run("import", "sheets", out / "key.jsonl", sheet, "--out", "r.jsonl")
    assert (read.code, Path("r.jsonl").exists()) == (2, False)
    assert re.search(rf"ann.csv, line \d+, field score: .*{re.escape(problem)}", read.err)


DIMENSION = "{{text: T, scale: [0, 1], step: {step}{more}}}"


@all_rows(
    "dimensions, problem",
    [
        ({"a": ("0.1", ""), "b": (".5", ", above: {a: 0.5}")}, ""),
        ({"c": ("0.1", ""), "d": (".5", "")}, ""),
        ({"b": (".5", ", above: {a: 0.5}"), "a": ("0.1", "")}, "b has no `step`, or stands above"),
        ({"a": ("null", "")}, "a has no `step`, or stands above the dimension that it depends on;"),
        ({}, "jury.yaml, field dimensions: "),
    ],
)
def test_dimensions_of_a_config_are_those_of_its_judge_whose_history_need_not_exist(
    run: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dimensions: dict[str, tuple[str, str]],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    table(Path("items.csv"), {"item": "a", "text": "A"})
    table(Path("pairs.csv"), {"item": "a", "first": "A", "second": "B"})
    lines = ["evaluators:", "  - use: personalized", "    params:", "      history: later.csv"]
    lines += ["      dimensions:"] if dimensions else []
    for name, (step, more) in dimensions.items():
        lines.append(f"        {name}: {DIMENSION.format(step=step, more=more)}")
    Path("jury.yaml").write_text("\n".join(lines), encoding="utf-8")
    out = Path("-".join(["out", *dimensions, problem[:3]]))
    asked = ("--dimensions", "jury.yaml", "--reviewers", "ann", "--per-item", 1, "--out", out)
    made = run("assign", "items.csv", *asked)
    assert (made.code, problem in made.err) == (2 if problem else 0, True)
    if not problem:
        key = [json.loads(line) for line in (out / "key.jsonl").read_text("utf-8").splitlines()]
        assert [row["classes"][-3:] for row in key] == [[0.8, 0.9, 1.0], [0.0, 0.5, 1.0]]
        header = (out / "sheets" / "ann.csv").read_text("utf-8").splitlines()[0]
        assert ("skip_if" in header) == ("above" in Path("jury.yaml").read_text("utf-8"))
        pairs = run("assign", "pairs.csv", *asked[:-1], "pairs")
        assert (pairs.code, "pairs have scores of their own" in pairs.err) == (2, True)


def test_a_dimension_is_named_once(run: Command, tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("item,text\na,A\n", encoding="utf-8")
    words = ("--reviewers", "ann,bob", "--out", tmp_path / "new", "--dimensions", "taste,taste")
    ended = run("assign", items, *words)
    assert (ended.code, "names 'taste' twice" in ended.err) == (2, True)
    ended = run("assign", items, *words[:-1], "taste;length")
    assert (ended.code, "separate names by commas" in ended.err) == (2, True)
    ended = run("assign", items, *words[:-2], "--classes", "taste=bad,good")
    (row, *_) = (tmp_path / "new" / "key.jsonl").read_text(encoding="utf-8").splitlines()
    assert (ended.code, json.loads(row)["dimension"]) == (0, "taste"), "classes name it, too"


@all_rows(
    "reviewers, out, problem",
    [
        ("ann", "new", "--per-item: is 2, and --reviewers names 1"),
        ("ann,Ann", "new", "--reviewers: 'Ann' is there twice"),
        ("ann,b\tob", "new", r"--reviewers: 'b\tob' cannot be a name"),
        ("ann;bob", "new", "a comma separates names, or a line in a file"),
        ("nams.txt", "new", "nams.txt: there is no such file; name one that is there"),
        (" , ", "new", "--reviewers: names nobody"),
        ("", "new", "names.txt, line 2: byte 4 (0xe9) is not UTF-8; save the file as UTF-8"),
        ("ann,bob", "full", "full: exists; name a new folder"),
    ],
)
def test_what_would_be_unfair_or_lost_is_refused(
    run: Command, tmp_path: Path, reviewers: str, out: str, problem: str
) -> None:
    items = tmp_path / "items.csv"
    items.write_text("item,text\na,A\nb,B\n", encoding="utf-8")
    (tmp_path / "full").mkdir(exist_ok=True)
    (tmp_path / "full" / "key.jsonl").touch()
    names = tmp_path / "names.txt"
    names.write_bytes(b"ann\nJos\xe9\n")
    ended = run("assign", items, "--reviewers", reviewers or names, "--out", tmp_path / out)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err
    assert not (tmp_path / "new").exists()


def test_a_name_that_no_file_can_have_is_that_of_the_key_and_its_file_has_another(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(Path("items.csv"), {"item": "a", "text": "A"})
    names = ["../bob", "Nora (new)", "nora [new]"]
    asked = ("--reviewers", ",".join(names), "--per-item", 3, "--out", "out")
    assert run("assign", "items.csv", *asked).code == 0
    sheets = sorted(Path("out/sheets").iterdir())
    assert [sheet.name for sheet in sheets] == ["Nora _new_.csv", "_._bob.csv", "nora _new__.csv"]
    for sheet in sheets:
        row, *_ = csv.DictReader(sheet.read_text(encoding="utf-8-sig").splitlines())
        table(sheet, {**row, "score": "3"})
    assert run("import", "sheets", "out/key.jsonl", *sheets, "--out", "r.jsonl").code == 0
    lines = Path("r.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["annotator"] for line in lines) == names


def test_a_bound_of_ambiguity_needs_a_consensus(run: Command, tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("item,text\na,A\n", encoding="utf-8")
    ended = run(
        "assign",
        items,
        "--above",
        0.2,
        "--reviewers",
        "ann",
        "--per-item",
        1,
        "--out",
        tmp_path / "new",
    )
    assert (ended.code, ended.err) == (
        2,
        "error: --above and --limit: need a saved consensus; name it with --ambiguous\n",
    )


def test_reviewers_see_the_prompt_and_may_write_classes_in_any_case(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("no", "yes")
    rows = [{"item": i, "annotator": who, "label": words[int(label)]} for i, who, label in PANEL]
    rows[0]["label"] = rows[0]["label"].upper()
    table(Path("ratings.csv"), *rows)
    items = [{"item": f"i{n}", "asked": f"Why {n}?", "reply": "A", "bot": "b"} for n in range(12)]
    table(Path("items.csv"), *items)
    named = ("--column", "prompt=asked", "--column", "text=reply")
    options = ("--classes", "no,yes", "--method", "stableval", "--subsets", 0)
    first = run("consensus", "ratings.csv", *options, "--json")
    assert first.code == 0, first.err
    Path("consensus.json").write_text(first.out, encoding="utf-8")
    doubtful = ("--ambiguous", "consensus.json", *named, "--above", 1e-9, "--per-item", 1)
    refused = run("assign", "items.csv", *doubtful, "--reviewers", "boo", "-o", "out")
    assert refused.err.endswith(
        "error: --reviewers: 'boo' has rated nothing in consensus.json; did you mean bo? Whoever is new needs a name "
        "that is less alike\n"
    )
    assert not Path("out").exists()
    made = run("assign", "items.csv", *doubtful, "--reviewers", "b+o@acme.io,bo2", "-o", "out")
    assert made.code == 0, made.err
    assert "items.csv: reviewers do not see 'bot'" in made.err
    assert "'b+o@acme.io' has rated nothing in consensus.json" in made.err
    assert "'bo2' has rated nothing in consensus.json; check the name, " in made.err
    for asked, problem in (
        (("--limit", 1), "--limit: the 1 most doubtful of "),
        (
            ("--dimensions", "tone"),
            "labelled as in consensus.json, by no dimension; leave",
        ),
    ):
        limited = run("assign", "items.csv", *doubtful, *asked, "--reviewers", "bo", "-o", asked[0])
        assert problem in limited.err
    key = Path("--limit/key.jsonl").read_text(encoding="utf-8")
    saved = json.loads(first.out)
    ambiguity = {name: item["ambiguity"] for name, item in saved["items"].items()}
    assert json.loads(key)["item"] == max(ambiguity, key=lambda name: ambiguity[name])
    saved["annotators"]["bo"]["correlation"] = {"value": -0.5, "low": -0.8, "high": -0.2}
    Path("turned.json").write_text(json.dumps(saved), encoding="utf-8")
    warned = ("--ambiguous", "turned.json", *doubtful[2:], "--reviewers", "bo,cy", "-o", "turned")
    distrust = "Warning: judges the other way round (correlation surely below the 0 of guessing): bo -0.500"
    assert distrust in run("assign", "items.csv", *warned).err
    sheet = Path("out/sheets/b+o@acme.io.csv")
    content = sheet.read_text(encoding="utf-8")
    assert content.startswith('"item","prompt","text","scale","score","reason"\n')
    assert '"Why ' in content
    sheet.write_text(content.replace('"",""', '"Yes",""'), encoding="utf-8")
    assert run("import", "sheets", "out/key.jsonl", sheet, "--out", "new.jsonl").code == 0
    assert {json.loads(line)["label"] for line in Path("new.jsonl").read_text().splitlines()} == {
        "yes"
    }
    high = run(
        "assign", "items.csv", *doubtful[:6], "--above", 30, "--reviewers", "bo,cy", "-o", "x"
    )
    assert (high.code, "which is from 0 to 1, above " in high.err) == (2, True)
    other = run("consensus", "ratings.csv", "--classes", "yes,no", "--before", "consensus.json")
    problem = "--before: has other classes; give the options of that consensus: jurygraph consensus"
    assert f"{problem} ratings.csv --classes no,yes --method stableval --subsets 0\n" in other.err


def test_a_sheet_of_excel_offers_the_scores_and_is_read_back_as_one_of_csv(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    table(Path("items.csv"), {"item": "i0", "text": "=A"})
    options = ("--reviewers", "ann", "--per-item", 1, "--to", "xlsx", "--out", "out")
    made = run("assign", "items.csv", "--dimensions", "ideas", *options)
    assert made.code == 0, made.err
    book = openpyxl.load_workbook("out/sheets/ann.xlsx")
    sheet = book.active
    titles = [cell.value for cell in sheet[1]]
    assert titles[:3] == ["item", "dimension", "text"]
    cell = sheet["C2"]
    assert (sheet.freeze_panes, cell.value, cell.alignment.wrap_text) == ("A2", "=A", True)
    letter = sheet.cell(1, titles.index("score") + 1).column_letter
    drop_downs = sheet.data_validations.dataValidation
    assert {one.formula1: sorted(map(str, one.sqref)) for one in drop_downs} == {
        '"1,2,3,4"': [f"{letter}{row}" for row in (2, 3, 5)],
        '"1,2,3,4,5"': [f"{letter}4"],
        '"0,1,2,3"': [f"{letter}{row}" for row in (6, 7)],
    }
    sheet[f"{letter}2"] = 4
    book.save("out/sheets/ann.xlsx")
    sheets = ("out/key.jsonl", "out/sheets/ann.xlsx")
    assert run("import", "sheets", *sheets, "--out", "r.jsonl").code == 0
    assert json.loads(Path("r.jsonl").read_text("utf-8"))["label"] == 4.0
    tone = ("--dimensions", "tone,length,depth", *options[:-1], "words")
    for asked, problem in (
        (("--classes", "lenght=bad,good"), "no dimension is 'lenght'; did you mean length?"),
        (("--classes", "bad,good", "--dimensions", "ideas"), "has its own; leave it out"),
    ):
        assert problem in run("assign", "items.csv", *tone, *asked).err
    classes = ("--classes", "length=short,so so", "--classes", "depth=1,2")
    assert run("assign", "items.csv", *tone, *classes).code == 0
    book = openpyxl.load_workbook("words/sheets/ann.xlsx")
    sheet = book.active
    drop_downs = sheet.data_validations.dataValidation
    assert [one.formula1 for one in drop_downs] == ['"short,so so"', '"1,2"']
    assert [cell.value for cell in sheet[1]][3:5] == ["scale", "score"]
    sheet["E2"], sheet["E3"], sheet["E4"] = 7, "So so", 2
    book.save("words/sheets/ann.xlsx")
    sheets = ("words/key.jsonl", "words/sheets/ann.xlsx")
    read = run("import", "sheets", *sheets, "--out", "new.jsonl")
    assert read.err.endswith(
        "next: jurygraph consensus --classes 'length=short,so so' --classes depth=1,2 new.jsonl\n"
    )
    rows = map(json.loads, Path("new.jsonl").read_text("utf-8").splitlines())
    assert [row["label"] for row in rows] == [7, "so so", 2]
