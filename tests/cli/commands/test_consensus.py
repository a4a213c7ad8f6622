"""`jurygraph consensus`: what is computed of which votes is tested in `tests/studies/consensus`."""

import csv
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from jurygraph.sources.artifacts import read_confusions
from jurygraph.sources.ratings import read_judged_labels
from tests.cli.conftest import Command, folder_contents
from tests.rows import all_rows
from tests.sources.test_ratings import table
from tests.studies.consensus.made import AGENTS, PANEL

ROWS = [
    {"item": item, "agent": agent, "annotator": annotator, "label": label}
    for (item, annotator, label), agent in zip(PANEL, AGENTS, strict=True)
]
QUICK = ("--subsets", 0, "--preset", "converged")
PRINTED = """\
large is level with small, though how sure that is cannot be told from 4 answers or more of each: the difference is \
0.0000 (-1.0000 to 1.0000, all that is possible, unpaired over 4 answers or more of each; rough, with fewer than 20). \
No task, by its id, has answers of both, so that a harder one counts for one of them alone. \
The difference is in units of the labels, such as stars.
guessing is not ruled out, and more labels would tell: cy 0.000 (-0.752 to 0.752)
probabilities, 1.000 on average, are too sure: the model has too few labels
5 of 12 items with two labels or more are unanimous (41.7%), and of the pairs of labels of such an item 68.1% agree; \
items decided by one vote: 0, ties: 2; items in doubt: 0 of 12 (by stableval: no class has a probability of 0.7).
labels: 48, items: 12, annotators: 4
classes and credit: 0 (0), 1 (1)
scores by posterior expected credit (method stableval, preset converged)

agent  score (95 %, t, with refits)  items
─────  ────────────────────────────  ─────
small        0.500 (0.123 to 0.877)      8
large        0.500 (0.000 to 1.000)      4

agent     MV     DS    PEC  Δ(PEC-MV)  items  ranks MV, DS, PEC
─────  ─────  ─────  ─────  ─────────  ─────  ─────────────────
small  0.438  0.500  0.500     +0.062      8        1, 1.5, 1.5
large  0.375  0.500  0.500     +0.125      4        2, 1.5, 1.5

Δ: difference of an agent's scores

posterior (PEC) against majority (MV)
─────────────────────────────────────  ──────
pearson correlation                         -
largest change                         0.1250
rank changes                                2
mean ambiguity                         0.0000
ambiguous items                             0
ambiguous share                        0.0000

annotator  accuracy (95 %, refits)  rank correlation with the others (95 %)  leniency  strictness  labels
─────────  ───────────────────────  ───────────────────────────────────────  ────────  ──────────  ──────
cy          0.500 (0.250 to 0.777)                  0.000 (-0.752 to 0.752)     0.334       0.666      12
"""


@pytest.fixture(autouse=True)
def _votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a file of votes into the folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "votes.csv", *ROWS)


def consensus_json(run: Command, *arguments: object) -> dict[str, Any]:
    ended = run("consensus", *arguments, *QUICK, "--json")
    assert ended.code == 0, ended.err
    (line,) = ended.out.splitlines()
    answer: dict[str, Any] = json.loads(line)
    words = [*map(str, [*arguments, *QUICK])]
    if "--artifact" in words:  # which another round would write over
        place = words.index("--artifact")
        del words[place : place + 2]
    assert answer.pop("command") == shlex.join(["jurygraph", "consensus", *words])
    return answer


def test_the_agents_are_compared_by_all_methods(run: Command) -> None:
    ended = run("consensus", "votes.csv", *QUICK, "--compare")
    assert ended.code == 0
    assert ended.out.startswith(PRINTED)
    assert "\nmost ambiguous items  ambiguity  posterior  class  adjusted mean\n" in ended.out
    assert ended.err.splitlines() == [
        "too few labels to learn how each annotator errs: the panel's depth is 12, and 75 is needed, which takes "
        "about 252 more labels, of new items (now 48)",
        "no stability of a ranking: --subsets is 0",
        "next: add --labels-out F for a label of each item, --table F for a table of all, --gold F of known labels for "
        "which method is right",
    ]
    assert ", --compare for other methods, --gold F of" in run("consensus", "votes.csv", *QUICK).err


def test_methods_are_not_compared_without_agents_and_labels_that_are_words_name_the_rates(
    run: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "w.csv").write_text("item,annotator,label\na,x,mild\na,y,rude\nb,x,rude\nb,y\n")
    command = ("consensus", "w.csv", *QUICK, "--classes", "mild,rude", "--labels-out", "l.csv")
    ended = run(*command, "--compare", "--method", "stableval")
    assert (
        ": no row has an agent, and --compare needs agents, too; without, --gold tells methods apart\n"
    ) in ended.err
    table(tmp_path / "g.csv", {"item": "a", "label": "mild"})
    known = run("consensus", "w.csv", *QUICK, "--classes", "mild,rude", "--gold", "g.csv")
    assert (
        "of 1 known item, held out in up to ten parts: majority right 0, tied 1, wrong 0; "
        in known.out
    )
    assert (
        "next: add --labels-out F for a label of each item, --table F for a table of all\n"
        in known.err
    )
    assert "w.csv: ends before a cell that is read, as an empty one: line 5\n" in caplog.text
    (tmp_path / "w.csv").write_text("item,annotator,label\nR-1,x,mild\nr 01,y,rude\nb,y")
    assert run("consensus", "w.csv", *QUICK, "--classes", "mild,rude").code == 0
    assert "ends within this line: was it cut off, and the label of 'b' with it?" in caplog.text
    assert "'R-1' and 'r 01' differ only in case, blanks, signs or zeros in front" in caplog.text
    assert "next:" not in ended.err
    assert "\nleniency, strictness: share of rude, of mild given, were all classes" in ended.out


def test_words_without_an_order_have_labels_accuracy_and_doubt_but_no_credit(
    run: Command, tmp_path: Path
) -> None:
    words = {0: "bug", 1: "question"}
    plain = [{key: row[key] for key in ("item", "annotator")} for row in ROWS]
    rows = [
        {**one, "label": words[int(row["label"])]} for one, row in zip(plain, ROWS, strict=True)
    ]
    rows[0]["label"] = rows[0]["label"].upper()
    for item in range(40):
        rows += [
            {"item": f"n{item}", "annotator": name, "label": words[item % 2]}
            for name in ("ada", "dee")
        ]
        rows.append({"item": f"n{item}", "annotator": "f", "label": words[item // 2 % 2]})
    table(tmp_path / "words.csv", *rows)
    ended = run("consensus", "words.csv", "--subsets", 0, "--labels-out", "l.csv")
    assert ended.code == 0, ended.err
    assert (
        "\nclasses: bug, question\norder does not matter for labels, accuracy and doubt; "
        in ended.out
    )
    assert "credit:" not in ended.out
    assert "strictness  labels" not in ended.out
    assert "\nannotator  accuracy (95 %, refits)  labels\n" in ended.out
    assert (
        "what is in doubt: `jurygraph consensus words.csv --subsets 0 --json > consensus.json`, then `jurygraph assign "
        "ITEMS_WITH_TEXTS --ambiguous consensus.json --reviewers A,B --out again`"
    ) in ended.err
    # cy labelled twelve items, which tell too little
    assert " (accuracy near 0.5, surely below 0.75): f 0.500 (" in ended.out
    assert "); to leave out: --without f\n" in ended.out
    assert "omitted abstentions" not in ended.out
    assert "stability" not in ended.err
    assert "or as one in another spelling: 'BUG' as bug (1)\n" in ended.err
    assert "\nwrote l.csv\n" in f"\n{ended.err}"
    answer = consensus_json(run, "words.csv")
    assert (answer["values"], answer["annotators"]["ada"]["leniency"]) == ([], None)
    (tmp_path / "earlier.json").write_text(json.dumps(answer))
    abstention = {"item": "i1", "annotator": "eve", "label": ""}
    table(tmp_path / "more.csv", {**abstention, "item": "i0", "label": "question"}, abstention)
    more = run("consensus", "words.csv", "more.csv", "--before", "earlier.json", "--subsets", 0)
    assert (more.code, "labels more than before: 1; " in more.out) == (0, True), more.err
    respelt = [{"item": f"i{item}", "annotator": "eve", "label": "Question"} for item in range(99)]
    table(tmp_path / "more.csv", *respelt)
    words = ("consensus", "words.csv", "more.csv", "--before", "earlier.json", "--subsets", 0)
    more = run(*words)
    assert (more.code, "\nclasses: bug, question\n" in more.out) == (0, True), more.err
    ordered = run(*words, "--classes", "bug,question")
    assert (ordered.code, ordered.out) == (2, "")
    assert "--before: has other values; give the options of that consensus: " in ordered.err
    table(tmp_path / "wide.csv", {"item": "a", "ann": "", "bo": "bug"})
    wide = run("consensus", "wide.csv", "--annotator", "ann", "--label", "bo")
    assert (
        "; or if each person has a column, or a file, make a label of each cell by `jurygraph import"
        in wide.err
    )
    table(tmp_path / "gold.csv", {"item": "i0", "label": "question"})
    table(tmp_path / "named.csv", *({"Ticket ID": one.pop("item"), **one} for one in rows))
    known = ("consensus", "named.csv", "--item", "Ticket ID", "--gold", "gold.csv")
    assert "gold items: 1\n" in run(*known).out
    for option, value in (("--values", "0,1"), ("--artifact", "a.json")):
        refused = run("consensus", "words.csv", option, value)
        assert refused.code == 2
        assert f"{option}: these labels have no order; name them by --classes" in refused.err


def test_json_has_the_documented_fields_and_the_artifact_the_confusions(run: Command) -> None:
    answer = consensus_json(run, "votes.csv", "--artifact", "confusions.json")
    assert set(answer["agents"]["small"]) == {"score", "low", "high", "items"}
    assert {"accuracy", "leniency", "strictness"} <= set(answer["annotators"]["ada"])
    assert set(answer["items"]["i0_large"]) == {
        *("posterior", "ambiguity", "labels", "spread", "mean", "adjusted_mean", "annotators")
    }
    assert {
        "log_likelihood",
        "agreement",
        "decided_by_one",
        "ties",
        "converged",
        "warnings",
    } <= set(answer)
    known = read_confusions("confusions.json")
    assert list(known.prior) == answer["prior"]
    for name, one in answer["annotators"].items():
        (strict, _), (_, lenient) = known.annotators[name]
        assert one["accuracy"] == pytest.approx((strict + lenient) / 2)


def test_the_same_votes_in_other_files_columns_and_words_give_the_same_answer(
    run: Command, tmp_path: Path
) -> None:
    plain = consensus_json(run, "votes.csv")
    table(tmp_path / "first.csv", *ROWS[:20])
    table(tmp_path / "second.jsonl", *ROWS[20:])
    assert consensus_json(run, "first.csv", "second.jsonl") == plain
    other = [
        {
            "i": one["item"],
            "m": one["agent"],
            "who": one["annotator"],
            "mark": ("bad", "good")[int(one["label"])],
        }
        for one in ROWS
    ]
    table(tmp_path / "other.csv", *other)
    named = (
        "--item",
        "i",
        "--agent",
        "m",
        "--reviewer",
        "who",
        "--score",
        "mark",
        "--classes",
        "bad, good",
    )
    words = consensus_json(run, "other.csv", *named)
    assert (words["classes"], words["agents"]) == (["bad", "good"], plain["agents"])


def test_credit_gold_and_method_are_options(run: Command, tmp_path: Path) -> None:
    table(tmp_path / "gold.csv", {"item": "i0", "agent": "large", "label": 1})
    answer = consensus_json(
        run, "votes.csv", "--method", "dawid-skene", "--values", "0,10", "--gold", "gold.csv"
    )
    assert (answer["method"], answer["values"], answer["counts"]["gold"]) == (
        "dawid-skene",
        [0.0, 10.0],
        1,
    )
    assert answer["items"]["i0_large"] == {
        "posterior": [0.0, 1.0],
        "ambiguity": 0.0,
        "labels": 4,
        "spread": 0.0,
        "mean": 0.0,
        "adjusted_mean": 0.0,
        "annotators": ["ada", "bo", "cy", "dee"],
    }


def test_the_papers_parameters_are_options_and_recorded(run: Command) -> None:
    changes = ("--prior-mu", 2, "--prior-confusion", 1.5, "--diagonal", 0.7, "--tol", 0.001)
    answer = consensus_json(run, "votes.csv", *changes, "--bootstrap", 40)
    expected = {"prior_mu": 2.0, "prior_confusion": 1.5, "diagonal": 0.7, "tol": 0.001}
    assert answer["settings"].items() >= expected.items()
    assert (answer["preset"], answer["bootstrap"]) == ("converged", 40)
    printed = run("consensus", "votes.csv", *QUICK, *changes, "--bootstrap", 0).out
    assert "preset converged, prior_mu 2, prior_confusion 1.5, diagonal 0.7, tol 0.001" in printed


@all_rows(
    "arguments, message",
    [
        (["nowhere.csv"], "nowhere.csv: there is no such file; "),
        (
            ["votes.csv", "--classes", "1,2"],
            "votes.csv, line 2 (i0_large, ada), field label: is the number 0, which is off the scale",
        ),
        (
            ["votes.csv", "--values", "0,half"],
            "--values: expected the credit of each class, such as 0,0.5,1, got 'ha",
        ),
        (["votes.csv", "--values", "0,0.5,1"], "--values: gives 3 credits to 2 classes (0, 1); "),
        (["votes.csv", "--item", "idx"], "votes.csv, line 1: has no column 'idx'; "),
        (["votes.csv", "--plot", "a.bmp"], "a.bmp: pictures end in .svg, .png, .pdf; "),
        (["votes.csv", "--artifact", "no/where.json"], "no/where.json: its folder does not exist"),
        (
            ["votes.csv", "--artifact", "votes.csv"],
            "votes.csv: is an input file; name another file to write",
        ),
        (
            ["votes.csv", "--artifact", "a.svg", "--plot", "a.svg"],
            "a.svg: --artifact and --plot name the same file",
        ),
        (["votes.csv", "--subsets", "1"], "--subsets: one draw tells no spread"),
        (["votes.csv", "--bootstrap", "1"], "--bootstrap: one resample tells no spread"),
        (["votes.csv", "--prior-mu", "0.5"], "prior_mu is 0.5: at least 1 is needed, which is no"),
        (["votes.csv", "--diagonal", "1"], "diagonal is 1.0: more than 0 and less than 1 is need"),
        (["votes.csv", "--before", "gold.csv"], "gold.csv: is not valid JSON "),
        (
            ["votes.csv", "--gold", "gold.csv"],
            "gold.csv, line 2, field item: nobody labelled item 'q'; ",
        ),
        (["empty.csv"], "empty.csv: has no rows; "),
    ],
)
def test_wrong_input_is_one_clear_error(
    run: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    table(tmp_path / "gold.csv", {"item": "q", "label": 1})
    (tmp_path / "empty.csv").write_text("")
    before = folder_contents(tmp_path)
    ended = run("consensus", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith(f"error: {message}")
    assert folder_contents(tmp_path) == before


def test_a_column_for_each_person_is_named_with_the_way(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wide.csv").write_text("item,ann,bo\na,no,yes\n")
    refused = run("consensus", "wide.csv")
    remedy = (
        "make a label of each cell by `jurygraph import wide FILE --rater-columns PERSON=COLUMN`\n"
    )
    assert remedy in refused.err
    Path("scores.csv").write_text("item,ann,bo\na,1,2\n")
    assert remedy in run("study", "reviewers", "scores.csv").err


def test_labels_are_written_for_study_judge_and_words_for_none_are_said(
    run: Command, tmp_path: Path
) -> None:
    cells = {"a": ("no", "no", "n/a"), "b": ("yes", "no", "-"), "c": ("yes", "yes", "yes")}
    rows = []
    for item, labels in cells.items():
        for number, label in enumerate(labels):
            row = {"item": item, "annotator": f"p{number}", "label": label, "text": item.upper()}
            rows.append(row)
    table(tmp_path / "words.csv", *rows)
    same = run("consensus", "words.csv", "--labels-out", "x.svg", "--plot", "x.svg")
    assert same.err.startswith("error: x.svg: --labels-out and --plot name the same file")
    quick = ("--bootstrap", 10, "--subsets", 0)
    command = ("consensus", "words.csv", "--classes", "no,yes", *quick)
    ended = run(*command, "--labels-out", "labels.csv")
    assert ended.err.startswith("words.csv: 2 rows have no label (n/a, NA, unsure, ? or -, ")
    read = read_judged_labels([Path("labels.csv")])
    assert [(row.id, row.target) for _, row in read.rows] == [("a", False), ("c", True)]
    assert read.empty == 1
    with Path("labels.csv").open(newline="") as file:
        cells = {row["item"]: (row["label"], row["certainty"]) for row in csv.DictReader(file)}
    assert cells == {"a": ("no", "1.0"), "b": ("", "0.5"), "c": ("yes", "1.0")}
    assert (
        "`jurygraph assign words.csv --ambiguous consensus.json --reviewers A,B --out again`; a "
        "tie has no label until then, or until an expert decides it: --gold FILE\n"
    ) in ended.err
    Path("consensus.json").write_text(run("consensus", "words.csv", *quick, "--json").out)
    table(tmp_path / "new.csv", {"item": "d", "annotator": "p0", "label": "no"})
    again = run("consensus", "words.csv", "new.csv", "--before", "consensus.json", *quick)
    # a shell empties what it writes to before the command reads it
    assert "> consensus-2.json`" in again.err
    table(tmp_path / "polite.csv", *({**row, "dimension": "polite"} for row in rows))
    command = ("consensus", "polite.csv", "--classes", "no,yes", "--dimension", "polite", *quick)
    assert run(*command, "--labels-out", "polite-labels.csv").code == 0
    assert {row.question for _, row in read_judged_labels([Path("polite-labels.csv")]).rows} == {
        "polite"
    }


def test_what_the_ratings_say_of_an_item_is_in_its_row_and_a_repeated_label_counts_once(
    run: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same rows for `study agreement` and `power`, whose reader says the same."""
    rows = []
    for item, stars in {"a": (1, 2), "b": (3, 3)}.items():
        for name, star in zip(("x", "y"), stars, strict=True):
            rows.append(
                {"item": item, "annotator": name, "stars": star, "source": item.upper()}
                | ({"text": f"Text {item}", "prompt": "Why?"} if name == "x" else {})
            )
    table(tmp_path / "stars.csv", *rows, rows[0])
    table(
        tmp_path / "more.csv",
        {"item": "a", "annotator": "z", "label": 2, "group": "B", "dimension": "stars"},
    )
    columns = ("--target-column", "stars", "--group", " source")
    ended = run("consensus", "stars.csv", *columns, "--labels-out", "labels.csv", *QUICK)
    assert ended.code == 0, ended.err
    said = "stars.csv: rows left out that repeat another one in everything, as if pasted twice: 1\n"
    assert said in caplog.text
    assert "labels: 4, items: 2, annotators: 2\n" in ended.out
    with Path("labels.csv").open(newline="") as file:
        found = {row["item"]: row for row in csv.DictReader(file)}
    assert [found["a"][name] for name in ("group", "prompt", "text")] == ["A", "Why?", "Text a"]
    assert read_judged_labels([Path("labels.csv")]).rows[0][1].question is None
    for command in (("study", "agreement"), ("power",)):
        caplog.clear()
        both = (*command, "stars.csv", "more.csv", *columns)
        assert "item 'a' has the group B, and A in stars.csv, line 2; " in run(*both).err
        assert said in caplog.text
        ungrouped = run(*both[:-2])
        assert "item 'a' has the group B, and (none) in stars.csv, line 2; " in ungrouped.err
        ended = run(*both, "--dimension", "stars", "--without", "z", "--json")
        assert ended.code == 0, ended.err
        assert '"dimension":null' not in ended.out.replace(" ", "")


@pytest.mark.parametrize("responses", [("q1-alpha", "q1-beta"), ("q1_alpha", "q1_beta")])
def test_labels_of_agents_join_the_responses_however_these_are_named(
    run: Command, tmp_path: Path, responses: tuple[str, str]
) -> None:
    """An item may be named as a response already is, or be what several agents answered."""
    rows = []
    for response, label in zip(responses, (1, 0), strict=True):
        item, agent = (response, response[3:]) if "-" in response else response.split("_")
        for name in ("ann", "bo", "cy"):
            rows.append({"item": item, "agent": agent, "annotator": name, "label": label})
    table(tmp_path / "agents.csv", *rows)
    ended = run("consensus", "agents.csv", "--labels-out", "labels.csv")
    assert ended.code == 0, ended.err
    read = read_judged_labels([Path("labels.csv")], responses={name: name for name in responses})
    assert {row.id: row.target for _, row in read.rows} == {responses[0]: 1, responses[1]: 0}


def test_stars_have_a_mean_without_leniency_the_lowest_first_and_why_an_item_is_in_doubt(
    run: Command, tmp_path: Path
) -> None:
    """Dora gives 1.5 stars more than the others do, and has not seen b; nobody gives a star to `empty`."""
    stars = {
        "a": (4, 4, 5),
        "b": (3, 2, None),
        "c": (2, 2, 3),
        "d": (1, 2, 4),
        "empty": (None,) * 3,
    }
    rows = []
    for item, labels in stars.items():
        for name, label in zip(("ann", "bo", "dora"), labels, strict=True):
            rows.append({"item": item, "annotator": name, "label": label})
    table(tmp_path / "stars.csv", *rows)
    command = ("consensus", "stars.csv", *QUICK, "--labels-out", "labels.csv", "--method")
    assert run(*command, "majority").code == 0
    with Path("labels.csv").open(newline="") as file:
        labels_by_item = {row.pop("item"): row for row in csv.DictReader(file)}
    assert list(labels_by_item) == ["c", "d", "b", "a", "empty"]
    # b, without the lenient dora, is higher than its two labels, and what she rated is lower
    assert labels_by_item["c"] == {
        "label": "2",
        "certainty": "0.667",
        "mean": "2.33333",
        "adjusted_mean": "2.26515",
        "labels": "3",
        "spread": "0.118",
        "doubt": "one vote decides",
    }
    assert labels_by_item["b"]["adjusted_mean"] == "2.80682"
    assert (labels_by_item["b"]["label"], labels_by_item["b"]["doubt"]) == ("", "tie")
    assert [labels_by_item["empty"][name] for name in ("mean", "adjusted_mean", "labels")] == [
        "",
        "",
        "0",
    ]
    assert run(*command, "stableval").code == 0
    ambiguity = {
        name: item["ambiguity"]
        for name, item in consensus_json(run, *command[1:2])["items"].items()
    }
    with Path("labels.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            assert (row["doubt"] == "ambiguous") == (ambiguity[row["item"]] > 0.3)
            assert float(row["certainty"]) == pytest.approx(1 - ambiguity[row["item"]], abs=5e-4)


def test_people_are_left_out_by_name_and_half_stars_are_taken_as_the_nearest_class(
    run: Command, tmp_path: Path
) -> None:
    stars = {"a": (3.5, 4, 1), "b": (2.5, 2, 5), "c": (1, 1.5, 4)}
    rows = []
    for item, labels in stars.items():
        for name, label in zip(("ann", "bo", "zoe"), labels, strict=True):
            rows.append({"item": item, "annotator": name, "label": label})
    table(tmp_path / "stars.csv", *rows)
    scale = ("--classes", "1,2,3,4,5", "--method", "majority")
    answer = consensus_json(run, "stars.csv", "--without", "zoe", *scale)
    assert (set(answer["annotators"]), answer["counts"]["rows"]) == ({"ann", "bo"}, 6)
    assert [item["posterior"].index(1.0) + 1 for item in answer["items"].values()] == [4, 2, 1]
    assert (
        "labels read as the nearest class (half way as the one farther from the middle), or as one in another "
        "spelling: '1.5' as 1 (1), '2.5' as 2 (1), '3.5' as 4 (1)"
    ) in answer["warnings"]
    for command in (("consensus",), ("study", "agreement")):
        refused = run(*command, "stars.csv", "--without", "zoey")
        assert refused.err == "error: --without: nobody is 'zoey'; did you mean zoe?\n"
        nobody = run(*command, "stars.csv", "--without", "ann,bo,zoe")
        assert (
            nobody.err == "error: --without: is ann,bo,zoe, and nobody is left; leave out fewer\n"
        )
    agreement = json.loads(run("study", "agreement", "stars.csv", "--without", "zoe", "--json").out)
    assert [row["reviewer"] for row in agreement["parts"][0]["reviewers"]] == ["ann", "bo"]
    for row in rows:
        row["annotator"] = str(row["annotator"]).replace("zoe", "Doe, Zoe")
    table(tmp_path / "commas.csv", *rows)
    answer = consensus_json(run, "commas.csv", "--without", "Doe, Zoe", *scale)
    assert set(answer["annotators"]) == {"ann", "bo"}


def test_classes_that_differ_only_in_case_are_said_to_be_two(run: Command, tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text(
        "item,annotator,label\na,ann,No\na,bo,no\nb,ann,yes\nb,bo,no\n"
    )
    ended = run("consensus", "words.csv", "--subsets", 0, "--classes", "No,no,yes")
    assert (
        "'No' and 'no' differ only in case, spaces or Unicode form, and count as two; write one"
        in ended.err
    )


def check_certainties_of_stars(rows: Iterable[Mapping[str, str]]) -> None:
    """Each is the probability that the mean is nearer to its star than to another."""
    for row in rows:
        label, mean, error = (
            float(row[name]) for name in ("label", "adjusted_mean", "standard_error")
        )
        lower, upper = (-99 if label == 1 else label - 0.5), (99 if label == 5 else label + 0.5)
        known = NormalDist(mean, error)
        probability = known.cdf(upper) - known.cdf(lower)
        assert float(row["certainty"]) == pytest.approx(probability, abs=2e-3)


def test_stars_of_a_small_panel_are_labelled_again_where_their_adjusted_mean_is_least_sure(
    run: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Len gives a star more than the others; one item has his label alone, and of one two labels are far apart."""
    rows = []
    for item in range(20):
        for name in ("ann", "bo", "len")[item % 2 : 2 + item % 2]:
            star = 1 + item % 4 + (name == "len")
            rows.append({"item": f"i{item}", "annotator": name, "label": star})
    rows += [{"item": "one", "annotator": "len", "label": 4}]
    rows += [
        {"item": "far", "annotator": name, "label": star}
        for name, star in zip("ab", (1, 5), strict=True)
    ]
    rows[-2]["annotator"], rows[-1]["annotator"] = "ann", "bo"
    rows += [{"item": "i0", "annotator": "zoe", "label": 5}]
    table(tmp_path / "stars.csv", *({**row, "model": "m"} for row in rows))
    named = ("consensus", "stars.csv", "--subsets", 0, "--without", "zoe")
    ended = run(*named)
    assert (
        "43 labels are too few to learn which labels each person takes for which, but " in ended.err
    )
    assert "scores by adjusted mean, without each annotator's leniency (method adj" in ended.out
    (doubtful,) = re.findall(
        "^annotator +other +both labelled +alike, %$(?s:.*)"  # without κ
        "^items in doubt .*\n.*\n(.*)\n(.*)\n\n",
        ended.out,
        re.M,
    )
    assert [row.split()[:2] for row in doubtful] == [["far", "2"], ["one", "1"]]
    saved = run(*named, "--json").out
    now, then = (row["standard_error"] for row in json.loads(saved)["further_labels"])
    assert f"standard error of these from {now:.3f} to {then:.3f}." in ended.out
    (tmp_path / "c.json").write_text(saved)
    assert json.loads(saved)["items"]["i0"]["left_out"] == ["zoe"]
    table(tmp_path / "items.csv", *({"item": name, "text": name} for name in ("one", "far")))
    again = ("assign", "items.csv", "--ambiguous", "c.json", "--reviewers", "ann,bo")
    refused = run(*again[:-1], "ann,bo,Zoe", "--per-item", 1, "--out", "out")
    assert "error: --reviewers: 'Zoe' was left out of c.json by --without" in refused.err
    twice = run(*again, "--ambiguous", "c.json", "--out", "none").err
    assert "--ambiguous: is given twice, under this name or another of it; give it once" in twice
    highest = run(*again, "--out", "none", "--above", 4).err
    assert "--above: no adjusted mean has a standard error above 4; here it is 0.9" in highest
    table(tmp_path / "new.csv", {"item": "one", "annotator": "ann", "label": 3})
    second = (*named[:2], "new.csv", *named[2:], "--before", "c.json")
    moved = run(*second, "--labels-out", "labels.csv")
    assert moved.out.startswith(
        "labels more than before: 1; likeliest labels that changed: 0, ties that are resolved: "
    )
    assert (
        "\nitems in doubt: 2 before, 1 now; of those before, 1 still are\nstandard error of those that were in"
        in moved.out
    )
    assert "item  label before  label  adjusted mean before  adjusted mean  standard" in moved.out
    assert "study judge RUN --labels labels.csv --target-column adjusted_mean\n" in moved.err
    assert "too few labels" not in moved.err
    with (tmp_path / "labels.csv").open(newline="") as file:
        labels_by_item = {row["item"]: row for row in csv.DictReader(file)}
    assert labels_by_item["far"]["label"] == "3"
    assert labels_by_item["far"]["doubt"] == "unsure mean"
    check_certainties_of_stars(labels_by_item.values())
    refused = run(*second, "--method", "majority")
    assert refused.err == "error: --before: has other method; give --method adjusted-mean\n"
    words = run("consensus", "votes.csv", "--method", "adjusted-mean")
    assert "error: --method: adjusted-mean needs more than two classes, all numbers" in words.err


def test_who_labelled_another_dimension_alone_is_not_left_out(run: Command, tmp_path: Path) -> None:
    """Zoe, who labelled facts, may label the style of the same items; nobody has labelled with Ann or Bo."""
    rows = [
        {"item": item, "annotator": name, "label": label, "dimension": dimension}
        for item, name, label, dimension in (
            ("a", "ann", 1, "style"),
            ("a", "zoe", 5, "facts"),
            ("b", "bo", 3, "style"),
            ("c", "ann", 2, "style"),
        )
    ]
    table(tmp_path / "stars.csv", *rows)
    ended = run("consensus", "stars.csv", "--dimension", "style", "--json")
    assert "left_out" not in json.loads(ended.out)["items"]["a"]
    assert (
        "no item connects the others with bo: all are taken as equally lenient on average\n"
        in ended.err
    )


def test_a_consensus_that_an_earlier_version_saved_by_majority_is_compared_by_majority(
    run: Command, tmp_path: Path
) -> None:
    stars = [("a", "x", 1), ("a", "y", 2), ("b", "x", 3), ("b", "y", 3)]
    rows = [dict(zip(("item", "annotator", "label"), row, strict=True)) for row in stars]
    table(tmp_path / "stars.csv", *rows)
    saved = json.loads(run("consensus", "stars.csv", "--method", "majority", "--json").out)
    (tmp_path / "old.json").write_text(json.dumps(saved))
    table(tmp_path / "more.csv", {"item": "a", "annotator": "z", "label": 2})
    command = ("consensus", "stars.csv", "more.csv", "--before", "old.json")
    moved = run(*command)
    assert "scores by majority vote (method majority, preset converged)\n" in moved.out
    refused = run(*command, "--method", "adjusted-mean")
    assert refused.err == "error: --before: has other method; give --method majority\n"


def test_rows_that_repeat_an_item_and_annotator_are_named_with_the_column_of_the_agents(
    run: Command, tmp_path: Path
) -> None:
    rows = [
        {"item": item, "model": model, "annotator": name, "label": label}
        for item, model, label in (("a", "m", 1), ("a", "n", 2), ("b", "m", 3))
        for name in ("x", "y")
    ]
    table(tmp_path / "stars.csv", *rows)
    assert (
        "Warning: labelled again by the same annotator: 2, with another label: 2; each counts (--keep-last keeps the "
        "last): line 4 of stars.csv, line 5 of stars.csv; if 'model' names whose answer it is, add --agent-column "
        "model\n"
    ) in run("consensus", "stars.csv").out
    kept = consensus_json(run, "stars.csv", "--keep-last")
    assert {name: (item["mean"], item["labels"]) for name, item in kept["items"].items()} == {
        "a": (2.0, 2),
        "b": (3.0, 2),
    }
