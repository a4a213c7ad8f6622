"""The example of rubrics: made from WritingBench's own, unasked without a model, and judged with any."""

import gzip
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Response, Task
from jurygraph.sources import read_tasks
from tests.cli import conftest as command_line
from tests.cli.conftest import Command, traces
from tests.models.judging import asked_for, judged
from tests.models.server import Answer, Server, serving

ROOT = Path(__file__).parent.parent
RUBRIC = ROOT / "examples" / "rubric"
TEMPLATE = ROOT / "jurygraph" / "cli" / "templates" / "rubric"
RAW = ROOT / "tests" / "data" / "writingbench" / "rubrics.jsonl.gz"
SCORE = ("score", RUBRIC / "tasks.jsonl.gz", "--config", RUBRIC / "jury.yaml", "--out")

run = command_line.run


@pytest.fixture(scope="module")
def groups() -> list[tuple[Task, tuple[Response, ...]]]:
    return list(read_tasks(RUBRIC / "tasks.jsonl.gz"))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[Server]:
    """A model that finds what is evasive wanting, whatever it says of itself."""

    def script(body: dict[str, Any], number: int) -> Answer:
        assert 1 <= len(asked_for(body)) <= 4
        evasive = "meets every expectation that one could have" in body["messages"][-1]["content"]
        return judged(body, met=not evasive, probability=0.25 if evasive else 0.75)

    with serving(script) as server:
        yield server


def test_the_tasks_are_what_the_script_makes_of_the_rubrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = runpy.run_path(str(RUBRIC / "build.py"))["main"]
    monkeypatch.setitem(main.__globals__, "HERE", tmp_path)
    main(RAW)
    made, shipped = (gzip.decompress((folder / "tasks.jsonl.gz").read_bytes()) for folder in (tmp_path, RUBRIC))
    assert made == shipped


def test_ten_queries_with_five_binary_criteria_and_two_responses_that_say_what_they_are(
    groups: list[tuple[Task, tuple[Response, ...]]],
) -> None:
    assert len(groups) == 10
    for task, responses in groups:
        assert task.rubric is not None
        assert len({criterion.id for criterion in task.rubric.criteria}) == 5
        assert all("It is met where the response reaches at least" in one.text for one in task.rubric.criteria)
        assert all(criterion.scale is None for criterion in task.rubric.criteria)
        assert [response.agent for response in responses] == ["outline", "evasive"]
        assert all(str(response.labels["made"]).split()[-1] in ("written", "none") for response in responses)


def test_the_criteria_are_those_of_writingbench(groups: list[tuple[Task, tuple[Response, ...]]]) -> None:
    with gzip.open(RAW, "rt", encoding="utf-8") as file:
        raw = [json.loads(line) for line in file]
    for (task, _), row in zip(groups, raw, strict=True):
        assert (task.id, task.query) == (f"writingbench-{row['index']}", row["query"])
        assert task.rubric is not None
        for criterion, stated in zip(task.rubric.criteria, row["checklist"], strict=True):
            assert criterion.text.startswith(stated["criteria_description"])
            assert criterion.text.endswith(stated["7-8"])


def test_without_a_model_every_question_abstains_and_the_command_says_so(tmp_path: Path, run: Command) -> None:
    ended = run(*SCORE, tmp_path / "run")
    assert ended.code == 1
    assert "0 judged + 100 abstained + 0 failed + 0 not applicable = 100 asked" in ended.out
    assert "20 of 20 rewards failed: they have no value" in ended.err
    assert {trace["reward"]["value"] for trace in traces(run, tmp_path / "run")} == {None}


def test_with_a_model_and_nothing_else_changed_there_are_rewards(tmp_path: Path, run: Command, server: Server) -> None:
    ended = run(*SCORE, tmp_path / "run", "--model", f"openai-compatible:{server.url}#tiny")
    assert ended.code == 0, ended.err
    assert "100 judged + 0 abstained" in ended.out
    found = {trace["response_id"]: trace["reward"]["value"] for trace in traces(run, tmp_path / "run")}
    assert len(found) == 20
    assert all(value == (0.75 if name.endswith("/outline") else 0.25) for name, value in found.items())
    assert server.count == 40


def test_the_dry_run_foretells_the_calls_and_sends_none(tmp_path: Path, run: Command, server: Server) -> None:
    model = f"openai-compatible:{server.url}#tiny"
    ended = run(*SCORE, tmp_path / "run", "--model", model, "--dry-run", "--json")
    assert json.loads(ended.out)["model"]["expected"]["calls"] == 40
    assert server.count == 0


def test_the_template_has_two_of_the_tasks(groups: list[tuple[Task, tuple[Response, ...]]]) -> None:
    there = list(read_tasks(TEMPLATE / "tasks.jsonl"))
    assert len(there) == 2
    assert all(one in groups for one in there)
