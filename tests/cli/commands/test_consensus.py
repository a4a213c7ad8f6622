"""`jurygraph consensus`."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.sources.ratings import read_confusions
from tests.cli.conftest import Command
from tests.rows import all_rows
from tests.sources.test_ratings import table
from tests.studies.consensus.made import AGENTS, PANEL

ROOT = Path(__file__).parents[3]
MSLR = ROOT / "examples" / "consensus" / "mslr.csv.gz"
ROWS = [
    {"item": item, "agent": agent, "annotator": annotator, "label": label}
    for (item, annotator, label), agent in zip(PANEL, AGENTS, strict=True)
]
SCORES = ("--subsets", 0)
QUICK = ("--subsets", 3)
MODEL = (*QUICK, "--preset", "converged")


@pytest.fixture
def votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of votes, in the folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    return table(tmp_path / "votes.csv", *ROWS)


def consensus_json(run: Command, *arguments: object) -> dict[str, Any]:
    ended = run("consensus", *arguments, "--json")
    assert ended.code == 0, ended.err
    (line,) = ended.out.splitlines()
    answer: dict[str, Any] = json.loads(line)
    return answer


def table_rows(lines: list[str], header: str) -> list[list[str]]:
    """Return the rows of the table whose header begins with `header`."""
    start = next(place for place, line in enumerate(lines) if line.startswith(header)) + 2
    end = next((place for place, line in enumerate(lines) if place > start and not line), len(lines))
    return [line.split() for line in lines[start:end]]


# The published set


@pytest.mark.landing
def test_the_tables_have_the_published_numbers(run: Command) -> None:
    ended = run("consensus", MSLR, "--preset", "paper", "--compare")
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    heading = "scores by posterior expected credit (method stableval); model fitted with preset paper: "
    assert lines[2].startswith(heading), lines[2]
    compared = table_rows(lines, "agent      MV")
    assert compared[0] == ["VNCH8M", "0.700", "0.900", "0.848", "+0.148", "5", "2,", "1,", "1"]
    assert compared[-1] == ["8FWF5T", "0.562", "0.562", "0.547", "-0.015", "8", "5.5,", "6,", "6"]
    best = table_rows(lines, "annotator")[0]
    assert best[:5] == ["annotator_0", "0.794", "-", "0.253", "0.219"]
    assert table_rows(lines, "most ambiguous items")[0][1:] == ["0.261", "0.739", "1"]
    stable = table_rows(lines, "stability (50 subsets)")
    assert [row[-3:-1] for row in stable] == [["0.503", "1.000"], ["0.503", "1.000"], ["0.587", "1.167"]]
    assert table_rows(lines, "agreement")[0][-1] == "69.2%"
    assert "2 annotators are not identifiable: 8 free cells for 14 unknowns" in ended.err


# Output


@pytest.mark.landing
def test_json_has_the_documented_fields_and_the_artifact_the_confusions(votes: Path, run: Command) -> None:
    answer = consensus_json(run, votes, *MODEL, "--artifact", "confusions.json")
    assert set(answer["agents"]) == {"small", "large"}
    assert set(answer["agents"]["small"]) == {"score", "low", "high", "items"}
    assert set(answer["annotators"]) == {"ada", "bo", "cy", "dee"}
    assert {"accuracy", "leniency", "strictness"} <= set(answer["annotators"]["ada"])
    assert set(answer["items"]["i0_large"]) == {"posterior", "ambiguity"}
    assert set(answer["stability"]) == {"majority", "dawid-skene", "stableval"}
    assert set(answer["stability"]["stableval"]) == {"tau_b", "rank_sd", "rank_range", "score_shift", "subsets"}
    assert answer["intervals"] == "t, with refits"
    assert answer["counts"] == {
        "rows": 48,
        "repeated": 0,
        "abstained": 0,
        "items": 12,
        "unlabelled": 0,
        "annotators": 4,
        "agents": 2,
        "gold": 0,
    }
    assert answer["classes"] == [0.0, 1.0]
    assert {"log_likelihood", "agreement", "decided_by_one", "ties", "converged", "warnings"} <= set(answer)

    known = read_confusions("confusions.json")
    assert known.classes == (0.0, 1.0)
    assert list(known.prior) == answer["prior"]
    for name, one in answer["annotators"].items():
        (strict, _), (_, lenient) = known.annotators[name]
        assert one["accuracy"] == pytest.approx((strict + lenient) / 2)


def test_the_same_votes_in_other_files_columns_and_words_give_the_same_answer(votes: Path, run: Command) -> None:
    plain = consensus_json(run, votes, *SCORES, "--preset", "converged")
    folder = votes.parent
    table(folder / "first.csv", *ROWS[:20])
    table(folder / "second.jsonl", *ROWS[20:])
    table(folder / "other.csv", *[dict(zip(("i", "m", "who", "mark"), one.values(), strict=True)) for one in ROWS])
    table(folder / "words.csv", *[one | {"label": ("bad", "good")[int(one["label"])]} for one in ROWS])
    named = ("--item", "i", "--agent", "m", "--reviewer", "who", "--score", "mark")
    for arguments in (("votes.csv",), ("first.csv", "second.jsonl"), ("other.csv", *named)):
        assert consensus_json(run, *arguments, *SCORES, "--preset", "converged") == plain
    words = consensus_json(run, "words.csv", "--classes", "bad, good", *SCORES, "--preset", "converged")
    assert words["classes"] == ["bad", "good"]
    assert words["agents"] == plain["agents"]


def test_credit_gold_and_method_are_options(votes: Path, run: Command) -> None:
    table(votes.parent / "gold.csv", {"item": "i0", "agent": "large", "label": 1})
    answer = consensus_json(run, votes, *SCORES, "--method", "dawid-skene", "--values", "0,10", "--gold", "gold.csv")
    assert (answer["method"], answer["values"], answer["counts"]["gold"]) == ("dawid-skene", [0.0, 10.0], 1)
    assert answer["items"]["i0_large"] == {"posterior": [0.0, 1.0], "ambiguity": 0.0}
    assert answer["agents"]["small"]["score"] == answer["comparison"]["small"]["dawid_skene"]


def test_without_agents_there_are_no_scores_and_a_message(votes: Path, run: Command) -> None:
    table(votes, *[{name: value for name, value in one.items() if name != "agent"} for one in ROWS])
    ended = run("consensus", votes, *SCORES, "--json")
    answer = json.loads(ended.out)
    assert (answer["agents"], answer["stability"]) == ({}, None)
    assert "no stability of a ranking: no row has an agent" in ended.err
    assert "agent " not in run("consensus", votes, *SCORES, "--compare").out


# Files


@pytest.mark.landing
def test_a_plot_can_be_drawn(votes: Path, run: Command) -> None:
    assert run("consensus", votes, *MODEL, "--plot", "a.png").code == 0
    assert (votes.parent / "a.png").read_bytes().startswith(b"\x89PNG")


# Invalid input


@all_rows(
    "arguments, message",
    [
        (["nowhere.csv"], "nowhere.csv: there is no such file; "),
        (["votes.csv", "--classes", "1,2"], "votes.csv, line 2, field label: is the number 0, which is off the scale"),
        (
            ["votes.csv", "--values", "0,half"],
            "--values: expected the credit of each class, such as 0,0.5,1, got 'half'",
        ),
        (["votes.csv", "--values", "0,0.5,1"], "--values: gives 3 credits to 2 classes (0, 1); "),
        (["votes.csv", "--item", "idx"], "votes.csv, line 1: has no column 'idx'; "),
        (["votes.csv", "--plot", "a.bmp"], "a.bmp: pictures end in .svg, .png, .pdf; "),
        (["votes.csv", "--artifact", "no/where.json"], "no/where.json: its folder does not exist"),
        (["votes.csv", "--gold", "gold.csv"], "gold.csv, line 2, field item: nobody labelled item 'q'; "),
        (["empty.csv"], "empty.csv: has no rows; "),
    ],
)
def test_wrong_input_is_one_clear_error(votes: Path, run: Command, arguments: list[str], message: str) -> None:
    table(votes.parent / "gold.csv", {"item": "q", "label": 1})
    (votes.parent / "empty.csv").write_text("")
    ended = run("consensus", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith(f"error: {message}")


@all_rows(
    "options, wrong",
    [
        (["--artifact", "votes.csv"], "votes.csv: is an input file; name another file to write"),
        (
            ["--artifact", "same.svg", "--plot", "same.svg"],
            "same.svg: --artifact and --plot name the same file; name two files",
        ),
        (["--subsets", "1"], "--subsets: one draw tells no spread"),
    ],
)
def test_options_without_an_effect_are_refused(votes: Path, run: Command, options: list[str], wrong: str) -> None:
    before = votes.read_bytes()
    ended = run("consensus", votes, *options)
    assert ended.code == 2
    assert wrong in ended.err
    assert votes.read_bytes() == before
