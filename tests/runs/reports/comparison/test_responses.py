"""Responses as a comparison needs them: those of a stored run equal those of its traces."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import TraceMismatch
from jurygraph.runs.outline import StoredGroup, read_groups
from jurygraph.runs.reports.comparison import compare
from jurygraph.runs.reports.comparison.report import compare_responses
from jurygraph.runs.reports.comparison.responses import from_trace, read_responses
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import rescore
from tests.runs.sample_runs import FULL_CONFIG, make_tasks, score, write_tasks


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with pairs, lists, several samples, a failed verdict and one that a judge abstained from."""
    folder = tmp_path_factory.mktemp("compared")
    given = make_tasks()
    given[1]["responses"][0]["data"]["same"] = "infrastructure"
    score(folder / "run", write_tasks(folder, given), FULL_CONFIG)
    return folder / "run"


@pytest.fixture(scope="module")
def rescored(scored: Path) -> Path:
    with closing(Run.open(scored)) as run:
        weights = {**run.config.reward, "tone": -2.0}
        folder = scored.with_name("rescored")
        rescore(run, folder, run.config.model_copy(update={"reward": weights}), lambda count: None)
    return folder


@pytest.fixture(params=["scored", "rescored"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    with closing(Run.open(request.getfixturevalue(request.param))) as run:
        yield run


def test_stored_responses_equal_those_of_the_traces(run: Run):
    stored, traced = list(read_responses(run)), list(map(from_trace, run.traces()))
    assert list(map(repr, stored)) == list(map(repr, traced))  # a failed reward is NaN, which equals nothing
    assert {len(sample.slot[1] or ()) for response in stored for sample in response.samples} >= {0, 2}


def test_two_stored_runs_compare_as_their_traces_do(scored: Path, rescored: Path):
    with closing(Run.open(scored)) as a, closing(Run.open(rescored)) as b:
        assert compare_responses(read_responses(a), read_responses(b)) == compare(a.traces(), b.traces())


def test_an_erased_task_has_no_plan_and_no_group(scored: Path, tmp_path: Path):
    copied = tmp_path / "run"
    shutil.copytree(scored, copied)
    erase(copied, "task", "t0", "on request")
    with closing(Run.open(copied)) as run:
        stored, traced = list(read_responses(run)), list(map(from_trace, run.traces()))
    assert list(map(repr, stored)) == list(map(repr, traced))
    assert {(response.plan, response.group) for response in stored if response.task == "t0"} == {("erased", "erased")}


@pytest.mark.parametrize(
    "changed",
    [{"question": 99}, {"question": 0, "score": "high"}, {"question": 0, "score": float("nan")}, {"score": 1.0}, None],
)
def test_a_verdict_that_cannot_be_read_is_refused(scored: Path, monkeypatch: pytest.MonkeyPatch, changed: Any):
    """The chain proves that a record is what was written, but not that it was written by jurygraph."""

    def changed_groups(run: Run) -> Iterator[StoredGroup]:
        for group in read_groups(run):
            traces = [trace._replace(body={**trace.body, "verdicts": [changed]}) for trace in group.traces]
            yield group._replace(traces=traces)

    monkeypatch.setattr("jurygraph.runs.reports.comparison.responses.read_groups", changed_groups)
    with (
        closing(Run.open(scored)) as run,
        pytest.raises(TraceMismatch, match=r"record \d+ \(group 't0'\) and those of its traces: cannot be read"),
    ):
        list(read_responses(run))
