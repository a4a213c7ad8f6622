"""The command that converts TravelPlanner's files writes tasks, and lists what it skips."""

import json
from pathlib import Path

import pytest

from examples.group_trip.travelplanner.__main__ import main
from jurygraph.errors import InputError
from tests.travelplanner.train import TRAIN, lines


def test_every_row_becomes_a_task_with_its_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(TRAIN), str(tmp_path / "tasks.jsonl")) == 0
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert [task["responses"][0]["data"] for task in tasks] == [
        line["plan"] for line in lines().values()
    ]
    assert capsys.readouterr().out.startswith("30 tasks; next: jurygraph score ")


def test_a_row_that_cannot_be_read_is_listed_and_a_file_of_such_rows_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = list(lines().values())[:2]
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(good) + "\n" + json.dumps({**bad, "query": "Plan a trip."}) + "\n")
    assert main(str(source), str(tmp_path / "tasks.jsonl")) == 1
    assert "skipped: in.jsonl, line 2, field query: has no budget" in capsys.readouterr().err
    assert len((tmp_path / "tasks.jsonl").read_text().splitlines()) == 1
    source.write_text(json.dumps({**bad, "query": "Plan a trip."}) + "\n")
    with pytest.raises(InputError, match="has no budget"):
        main(str(source), str(tmp_path / "other.jsonl"))
    assert not (tmp_path / "other.jsonl").exists()
