"""`jurygraph study credit` and `agreement`; what all studies refuse.

The figures are tested in `tests/studies`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, folder_contents
from tests.rows import all_rows
from tests.runs.sample_runs import score, write_tasks
from tests.studies.credit.test_runs import CONFIG, task_line

CRITERIA = ("plan", "budget", "savings")
EDGES = [("plan", "budget", "strong"), ("budget", "savings", "strong")]


def task(name: str, *scores: tuple[Any, Any, Any]) -> Any:
    """A chain of three criteria, and a response for each three scores."""
    line = task_line(
        name,
        dict.fromkeys(CRITERIA, 1.0),
        EDGES,
        [dict(zip(CRITERIA, one, strict=True)) for one in scores],
    )
    line["rubric"]["edges"][1]["reason"] = "Savings are told from \x1b[31ma budget."
    return line


TASKS = [
    task("rome", (0.0, 1.0, 1.0), (1.0, 1.0, 0.5)),
    task("oslo", (1.0, 0.0, 1.0), (1.0, "response", 0.9)),
    task("pisa", ("response", "response", "response")),
]


@pytest.fixture(scope="module")
def run_with_edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of rubrics with edges, which tests only read."""
    folder = tmp_path_factory.mktemp("edges")
    score(folder / "run", write_tasks(folder, TASKS), {**CONFIG, "failure": {"min_coverage": 0.1}})
    return folder / "run"


def test_the_tables_have_leakage_and_preservation_over_the_edges(
    run_with_edges: Path, run: Command
):
    ended = run("study", "credit", run_with_edges)
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0].endswith("cannot be told: leakage has no interval.")
    assert lines[2] == "4 responses to 2 rubrics, 2 of them with edges, 2 inferred exactly; κ = 1"
    assert lines[3].startswith("κ: how strictly")
    rules = {line.split()[0]: line.split()[1:3] for line in lines[8:12]}
    assert rules["flat"] == ["0.3333", "1.0000"]
    assert rules["hard-transitive"] == ["0.0000", "0.6667"]
    assert rules["gear"] == ["0.0667", "0.7867"]
    assert "strong 2 2 0.3333 0.0000 0.0000 0.0667" in lines
    worst = next(line.split() for line in lines if line.startswith("oslo "))
    assert (worst[:4], worst[-1]) == (["oslo", "savings", "budget", "strong"], "0.2533")
    assert ended.out.count("Savings are told from \\u001b[31ma budget.") == 2
    assert "omitted, responses whose reward failed: 1" in ended.err
    assert (
        "no cases: 2 of 8 edges with an end that was not judged, is unsupported in a sample, or does not apply"
        in ended.err
    )
    assert "tasks with a case of leakage: 2, of preservation: 1; with fewer than 20" in ended.err


def test_json_has_every_statistic_and_the_plot_is_the_only_file_written(
    run_with_edges: Path, run: Command, tmp_path: Path
):
    before = folder_contents(run_with_edges)
    found = json.loads(
        run("study", "credit", run_with_edges, "--json", "--plot", tmp_path / "credit.png").out
    )
    assert folder_contents(run_with_edges) == before
    assert (tmp_path / "credit.png").read_bytes().startswith(b"\x89PNG")
    assert found["methods"]["gear"]["leakage"]["value"] == pytest.approx(0.2 / 3)
    assert (found["losses"][0]["task"], found["losses"][0]["criterion"]) == ("oslo", "savings")


@all_rows("command", ["credit", "preference", "reliability", "stability"])
def test_every_study_draws_and_an_impossible_plot_is_refused_first(
    run: Command, tmp_path: Path, command: str
):
    ended = run("study", command, tmp_path / "nowhere", "--plot", tmp_path / "a.bmp")
    assert (ended.code, ended.out) == (2, "")
    assert "a.bmp: pictures end in .svg, .png, .pdf; name one of these" in ended.err


def test_agreement_of_reviewers(tmp_path: Path, run: Command) -> None:
    rows = [
        f"i{n},{who},{(n * step) % 7}"
        for n in range(20)
        for who, step in (("a", 1), ("b", 1), ("c", 3))
    ]
    (tmp_path / "votes.csv").write_text(
        "\n".join(["item,who,stars", *rows]) + "\n", encoding="utf-8"
    )
    columns = ("--reviewer", "who", "--score", "stars")
    ended = run("study", "agreement", tmp_path / "votes.csv", *columns, "--json")
    assert ended.code == 0
    (part,) = json.loads(ended.out)["parts"]
    assert (part["items"], part["ratings"], part["pairs"]) == (20, 60, 3)
    assert run("study", "agreement", tmp_path / "votes.csv").code == 2
    with (tmp_path / "votes.csv").open("a", encoding="utf-8") as file:
        file.write("i0,a,6\n")
    ended = run("study", "agreement", tmp_path / "votes.csv", *columns)
    assert ended.err.endswith("keep one of the scores, or the last by --keep-last\n")
    ended = run("study", "agreement", tmp_path / "votes.csv", *columns, "--keep-last", "--json")
    assert json.loads(ended.out)["parts"][0]["ratings"] == 60
