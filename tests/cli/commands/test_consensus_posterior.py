"""`jurygraph consensus --posterior gibbs`."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.sources.ratings import read_confusions
from tests.cli.conftest import Command
from tests.rows import all_rows
from tests.sources.test_ratings import table
from tests.studies.consensus.made import AGENTS, PANEL

ROWS = [
    {"item": item, "agent": agent, "annotator": annotator, "label": label, "group": f"g{item[1:]}"}
    for (item, annotator, label), agent in zip(PANEL, AGENTS, strict=True)
]
GIBBS = ("--posterior", "gibbs", "--chains", 2, "--draws", 100, "--jobs", 1)


@pytest.fixture
def votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return table(tmp_path / "votes.csv", *ROWS)


def posterior_json(run: Command, *arguments: object) -> dict[str, Any]:
    ended = run("consensus", *arguments, *GIBBS, "--json")
    assert ended.code == 0, ended.err
    answer: dict[str, Any] = json.loads(ended.out)
    return answer


def test_agents_annotators_and_chains_are_printed(votes: Path, run: Command) -> None:
    ended = run("consensus", votes, *GIBBS)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[:2] == ["labels: 48, items: 12, annotators: 4", "classes and credit: 0 (0), 1 (1)"]
    assert lines[2] == "full posterior by Gibbs sampling: 2 chains of 100 draws"
    assert lines[3].startswith("largest R-hat 1.")
    agents = next(line for line in lines if line.startswith("agent"))
    assert agents.split("  ")[-3:] == ["95 % credible (these items)", "95 % credible (population)", "items"]
    assert "the chains are too short or disagree: " in ended.err


def test_json_has_the_documented_fields_and_the_artifact_the_mean_confusions(votes: Path, run: Command) -> None:
    answer = posterior_json(run, votes, "--artifact", "confusions.json")
    assert answer["posterior"] == "gibbs"
    population = {"population_low", "population_high"}
    assert set(answer["agents"]["small"]) == {"score", "low", "high", "items"} | population
    assert set(answer["sampling"]) == {"chains", "draws", "r_hat", "bulk_ess", "tail_ess", "guessing"}
    assert set(answer["annotators"]) == {"ada", "bo", "cy", "dee"}
    assert len(answer["items"]) == 12
    known = read_confusions("confusions.json")
    assert list(known.prior) == pytest.approx(answer["prior"])
    for name, one in answer["annotators"].items():
        (strict, _), (_, lenient) = known.annotators[name]
        assert one["accuracy"] == pytest.approx((strict + lenient) / 2)


@all_rows(
    "options, wrong",
    [
        (("--posterior", "gibbs", "--refit", 20), "--refit: does not apply to --posterior gibbs; "),
        (("--posterior", "gibbs", "--method", "majority"), "--method: does not apply to --posterior gibbs; "),
        (("--posterior", "gibbs", "--preset", "paper"), "--preset: does not apply to --posterior gibbs; "),
        (("--posterior", "gibbs", "--compare"), "--compare: does not apply to --posterior gibbs; "),
        (("--posterior", "gibbs", "--draws", 5), "--draws: expected at least 100, got 5"),
        (("--posterior", "gibbs", "--chains", 0), "--chains: expected at least 2, got 0"),
        (("--draws", 500), "--draws: does not apply to --posterior em; "),
        (("--chains", 4, "--posterior", "em"), "--chains: does not apply to --posterior em; "),
    ],
)
def test_options_that_do_not_combine_are_one_error(
    votes: Path, run: Command, options: tuple[object, ...], wrong: str
) -> None:
    ended = run("consensus", votes, *options)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith(f"error: {wrong}")
