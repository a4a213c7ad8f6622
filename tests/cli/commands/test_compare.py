"""`jurygraph compare`."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.rows import all_rows


@pytest.fixture
def runs(project: Path, run: Command) -> tuple[Path, Path]:
    """Two runs under configs that differ in a weight."""
    (project / "kind.yaml").write_text(
        "evaluators: [manners.polite, manners.shaky]\nreward: {polite: 1.0, shaky: 0.5}\n"
    )
    assert run("score", project / "tasks.jsonl", "--out", project / "a").code == 0
    assert (
        run(
            "score",
            project / "tasks.jsonl",
            "--config",
            project / "kind.yaml",
            "--out",
            project / "b",
        ).code
        == 0
    )
    return project / "a", project / "b"


def test_two_runs_are_compared_as_text_markdown_and_json(runs: tuple[Path, Path], run: Command):
    shown = run("compare", *runs, "--gate", "mean_delta==0.75, flips==0")
    assert shown.code == 0
    parts = [
        "agents are in the same order; the first leads by 0.3750 in a, 0.8750 in b; b is 0.7500 ",
        "The gate is met.",
        "changed between the runs",
        "reward.shaky ",
        "mean_delta == 0.75  met",
        "No verdict flipped.",
        "agent ",
        "no verdict differs in 2 questions",
        "statistic ",
    ]
    positions = [shown.out.index(part) for part in parts]
    assert positions == sorted(positions)
    assert positions[0] == 0
    assert "mean_a                 mean reward in A" in shown.out
    assert "| mean\\_a | mean reward in A |" in run("compare", *runs, "--markdown").out
    found = json.loads(run("compare", *runs, "--json").out)
    assert (found["paired"], found["judged_both"], found["mean_a"], found["mean_b"]) == (
        4,
        8,
        -0.0625,
        0.6875,
    )
    assert [(row["agent"], row["mean_delta"]) for row in found["agents"]] == [
        ("alice", 1.0),
        ("bob", 0.5),
    ]


def test_a_comparison_is_a_page_too_in_any_form(
    runs: tuple[Path, Path], run: Command, tmp_path: Path
):
    for form in ("--markdown", "--json"):
        page = tmp_path / f"page{form}.html"
        gate = ("--gate", "n>4, flips<=0")
        assert run("compare", *runs, form, *gate, "--html", page).code == 1
        text = page.read_text()
        assert f"<h1>A {runs[0]}, B {runs[1]}</h1>" in text
        assert "b is 0.7500 higher (" in text
        assert re.search("reward.shaky</th><td >A</td><td >-0.5</td>", text)
        assert '<p class="lede damage"><strong>The gate is missed: 1 of 2 conditions.<' in text
        assert text.index("n &gt; 4") < text.index("No verdict flipped")


def test_a_comment_begins_with_the_result_the_flips_and_the_gate(
    runs: tuple[Path, Path], run: Command, monkeypatch: pytest.MonkeyPatch
):
    gate = ("--gate", "mean_delta>=0, flips<=9, n>4, no_worse_than=0.1")
    commented = run("compare", *runs, "--markdown", *gate)
    assert commented.code == 1
    shown, fold = commented.out.split("<details>")
    first, *blocks = shown.split("\n\n")
    assert "; b is 0.7500 higher (" in first
    assert first.endswith("** The gate is missed: 2 of 4 conditions.")
    assert blocks[0].splitlines()[2:4] == ["| reward.shaky | A | -0.5 |", "|  | B | 0.5 |"]
    assert blocks[2] == "No verdict flipped."
    assert blocks[1].splitlines()[2:] == [
        "| mean\\_delta \\>= 0 | met | 0.7500 |",
        "| flips \\<= 9 | met | 0 |",
        "| n \\> 4 | missed | 4 |",
        "| no\\_worse\\_than = 0.1 | missed | p = 0.3039 |",
    ]
    assert fold.rstrip().endswith("</details>")
    monkeypatch.setattr("jurygraph.studies.comparison._MAX_COMMENT_CHARACTERS", 1000)
    cut = run("compare", *runs, "--markdown", *gate).out
    assert cut.startswith(first)
    assert "<details>" not in cut


def test_a_missed_condition_exits_with_1_and_says_what_it_would_take(
    runs: tuple[Path, Path], run: Command
):
    missed = run("compare", *runs, "--gate", "n>4, mean_delta_p>1")
    assert (missed.code, missed.err.splitlines()[-2:]) == (
        1,
        [
            "threshold missed: n > 4, but n is 4",
            "threshold missed: mean_delta_p > 1, but mean_delta_p is 0.5",
        ],
    )
    alike = run("compare", runs[0], runs[0], "--gate", "mean_delta_low>=0")
    assert alike.code == 1
    assert alike.err.endswith(
        "threshold missed: mean_delta_low >= 0, but there is no mean_delta_low\n"
        "conditions on an interval need tasks that differ from each other; of several alike, "
        "no_worse_than=MARGIN can hold\n"
    )
    margin = run("compare", runs[0], runs[0], "--gate", "no_worse_than=0.1")
    assert margin.code == 1
    assert margin.err.endswith(
        "as a rare task may lose 1.5; about 54 tasks like these would do with a chance of 80%\n"
    )


@all_rows(
    ("arguments", "message"),
    [
        (("nowhere", "after", "--gate", "no_worse_than=-0.02"), "must be above 0, got -0.02"),
        (("nowhere", "after"), "nowhere"),
        (("before",), "RUN_B"),
    ],
)
def test_wrong_input_exits_with_2_and_prints_no_result(
    run: Command, arguments: tuple[str, ...], message: str
):
    ended = run("compare", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
