"""`jurygraph power`: equal seeds give equal answers; these are tested in `tests/studies/test_power.py`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.rows import all_rows
from tests.runs.sample_runs import write_tasks
from tests.studies.reviewers.test_baselines import random_rows


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, random_rows(3, items=80), "ratings.jsonl")


def test_the_command_repeats_itself(run: Command, ratings: Path) -> None:
    options = ("--width", 0.2, "--difference", 0.3, "--seed", 5)
    first = run("power", ratings, *options, "--json")
    assert (first.code, run("power", ratings, *options, "--json").out) == (0, first.out)
    found = json.loads(first.out)
    assert [one["per_item"] for one in found["alpha"]] == [2, 3]
    (difference,) = found["differences"]
    assert difference["reviewers"] > 1
    assert "reviewers for power 0.8" in run("power", ratings, *options).out
    fewer = json.loads(run("power", ratings, *options, "--without", "r0", "--json").out)
    assert [one["differences"][0]["reviewers_now"] for one in (found, fewer)] == [5, 4]


def test_too_few_items_are_said(run: Command, tmp_path: Path) -> None:
    ended = run("power", write_tasks(tmp_path, random_rows(3, items=20), "ratings.jsonl"))
    assert ended.code == 0
    assert (
        "fewer than 30 items (of a group, one) have two ratings, too few to draw studies from; have so many rated"
        in ended.out + ended.err
    )


@all_rows(
    "options, problem",
    [
        (
            ("--difference", 1, "--judges", "item-mean"),
            "--judges: is 'item-mean'; name two of own-history, item-mean, rater-offset",
        ),
        (
            ("--difference", 1, "--judges", "item-mean,item-mean"),
            "name two of own-history, item-mean, rater-offset",
        ),
        (("--difference", 0), "--difference: is 0; write a finite number above 0"),
        (("--difference", "inf"), "--difference: is inf; write a finite number above 0"),
        (("--judges", "item-mean,own-history"), "--judges: needs --difference"),
        (("--power", 1), "--power: is 1; write a number between 0 and 1"),
    ],
)
def test_wrong_input_is_refused(
    run: Command, ratings: Path, options: tuple[object, ...], problem: str
) -> None:
    ended = run("power", ratings, *options)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err
