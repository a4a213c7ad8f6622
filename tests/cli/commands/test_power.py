"""`jurygraph power`: equal seeds give equal answers."""

import json
from pathlib import Path

from tests.cli.conftest import Command
from tests.studies.reviewers.test_baselines import random_rows


def test_the_command_repeats_itself_and_says_what_it_cannot_do(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in random_rows(3, items=80)), encoding="utf-8")
    options = ("--width", 0.2, "--difference", 0.3, "--seed", 5)
    first = run("power", file, *options, "--json")
    assert (first.code, run("power", file, *options, "--json").out) == (0, first.out)
    found = json.loads(first.out)
    assert [one["per_item"] for one in found["alpha"]] == [2, 3]
    (difference,) = found["differences"]
    assert difference["reviewers"] > 1
    assert "reviewers for power 0.8" in run("power", file, *options).out
    for wrong, problem in [
        (
            ("--difference", 1, "--judges", "item-mean"),
            "--judges: is 'item-mean'; name two of own-history, item-mean, rater-offset",
        ),
        (("--difference", 1, "--judges", "item-mean,item-mean"), "name two of own-history, item-mean, rater-offset"),
        (("--judges", "item-mean,own-history"), "--judges: needs --difference"),
        (("--power", 1), "--power: is 1; write a number between 0 and 1"),
    ]:
        refused = run("power", file, *wrong)
        assert (refused.code, problem in refused.err) == (2, True)


def test_too_few_items_are_said(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in random_rows(3, items=20)), encoding="utf-8")
    ended = run("power", file)
    assert "fewer than 30 items have two ratings, too few to draw studies from" in ended.out + ended.err
