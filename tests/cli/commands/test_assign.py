"""`jurygraph assign`: responses of a run become sheets, these become ratings, and those labels for `study judge`."""

import json
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
        rows = sheet.read_text(encoding="utf-8").splitlines()
        assert sum("A: 42" in row for row in rows) == 4, "as many of each agent"
        scored = [row.replace('"",""', '"1",""' if "42" in row else '"0",""') for row in rows]
        sheet.write_text("\n".join(scored[:-1]), encoding="utf-8")
    read = run("import", "sheets", out / "key.jsonl", *sheets, "--out", ratings)
    assert "21 votes, 12 items, 3 annotators, 0 omitted" in read.err
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
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labels are words; Bo, who labelled all items before, labels the ambiguous ones again."""
    monkeypatch.chdir(tmp_path)
    words = ("bad", "good")
    rows = [{"item": i, "annotator": who, "label": words[int(label)]} for i, who, label in PANEL]
    table(Path("ratings.csv"), *rows)
    table(Path("items.csv"), *({"item": f"i{number}", "text": "A"} for number in range(12)))
    options = ("--classes", "bad,good", "--method", "stableval", "--subsets", 0)
    first = run("consensus", "ratings.csv", *options, "--json")
    Path("consensus.json").write_text(first.out, encoding="utf-8")
    doubtful = ("--ambiguous", "consensus.json", "--above", 1e-9)
    made = run(
        "assign", "items.csv", *doubtful, "--reviewers", "bo", "--per-item", 1, "--out", "out"
    )
    assert made.code == 0, made.err
    assert "scores: bad, good\nlast: jurygraph consensus RATINGS adjudicated.jsonl" in made.out
    sheet = Path("out/sheets/bo.csv")
    filled = sheet.read_text(encoding="utf-8").replace('"",""', '"good",""')
    sheet.write_text(filled, encoding="utf-8")
    read = run("import", "sheets", "out/key.jsonl", sheet, "--out", "adjudicated.jsonl")
    assert read.code == 0, read.err
    second = run(
        "consensus",
        "ratings.csv",
        "adjudicated.jsonl",
        *options[:2],
        *options[4:],
        "--before",
        "consensus.json",
    )
    assert second.code == 0, second.err
    answers = len(Path("adjudicated.jsonl").read_text(encoding="utf-8").splitlines())
    assert second.out.startswith(f"new labels: {answers}; items with another likeliest label: ")
    assert "\nitem  label before  label  ambiguity before  ambiguity\n" in second.out
    assert "scores by posterior expected credit (method stableval)" in second.out


@all_rows(
    "reviewers, out, problem",
    [
        ("ann", "new", "--per-item: is 2, and there are 1 reviewers"),
        ("ann,Ann", "new", "--reviewers: 'Ann' is there twice"),
        ("ann,../bob", "new", "--reviewers: '../bob' cannot name a file"),
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
        "error: --above: needs a saved consensus; name it with --ambiguous\n",
    )
