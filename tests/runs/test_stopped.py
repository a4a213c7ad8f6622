"""Responses stopped by a gate: verification, re-scoring and branches."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.sources import read_tasks
from jurygraph.sources.config import apply_settings
from tests.models.judge_scripts import response_in
from tests.models.server import Server
from tests.runs.sample_runs import traces_of, verify_deeply, verify_run, write_tasks
from tests.runs.test_calls import judge_config, run_session
from tests.runs.workflows.test_rescoring import read_rewards, rescore_run

TEXTS = ("Dear Ann, the office is closed.", "", "Solution:", "Dear Bo, it is open.")
STOPPED = ("", "Solution:")
CRITERIA = [
    {"id": "kind", "text": "It is kind.", "weight": 2.0},
    {"id": "rude", "text": "It is rude.", "weight": -1.0},
    {"id": "short", "text": "It is short.", "weight": 1.0},
]
EDGES = [
    {"parent": "kind", "child": "rude", "kind": "strong"},
    {"parent": "rude", "child": "short", "kind": "weak"},
]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(
        tmp_path,
        [
            {
                "id": f"t{number}",
                "query": f"Write letter {number}.",
                "rubric": {"criteria": CRITERIA, "edges": EDGES},
                "responses": [
                    {"id": f"t{number}/r{r}", "text": text} for r, text in enumerate(TEXTS)
                ],
            }
            for number in range(2)
        ],
    )


def gate_config(server: Server, **config: Any) -> dict[str, Any]:
    """A config with two samples per criterion from a model, and a function without a model."""
    uses = [{"use": "criteria", "samples": 2}, "maths.length"]
    return {
        **judge_config(server),
        "evaluators": uses,
        "reward": {"rubric": 1.0, "length": -0.1},
        **config,
    }


@pytest.fixture
def run(server: Server, tasks: Path, tmp_path: Path) -> Path:
    run_session(tmp_path / "run", tasks, gate_config(server))
    return tmp_path / "run"


def stored_gates(folder: Path) -> dict[str, set[str | None]]:
    """Return the gates that answered model questions, by response."""
    with closing(Run.open(folder)) as opened:
        return {
            trace.response_id: {one.gated_by for one in trace.verdicts if one.layer == "model"}
            for trace in opened.traces()
        }


def test_stopped_responses_cause_no_request_and_the_run_verifies(run: Path, server: Server) -> None:
    assert {response_in(seen.body) for seen in server.requests} == {
        text for text in TEXTS if text not in STOPPED
    }
    assert {name[-2:]: gates for name, gates in stored_gates(run).items()} == {
        "r0": {None},
        "r1": {"empty-response"},
        "r2": {"bare-opener"},
        "r3": {None},
    }
    assert verify_run(run).closed
    for trace in traces_of(run):
        assert (trace.reward.coverage, trace.reward.counts.failed) == (1.0, 0)
    # two responses of each task are stopped; each has three criteria with two samples from the model
    found = verify_deeply(run)
    assert (found.recomputed, found.needing_model) == (2 * (2 * 3 * 2 + 2 * 3 + 4), 0)


@pytest.mark.landing
@pytest.mark.parametrize(
    "changed",
    [
        ["rubric.aggregation=hard-local", "failure.rule=strict", "reward.length=0"],
        ["rubric.aggregation=flat", "reward={rubric: -1}", "failure.rule=gear"],
        ["failure.group_rule=drop-criterion"],
    ],
)
def test_rescored_stopped_responses_equal_scored_ones(
    run: Path, server: Server, tasks: Path, tmp_path: Path, changed: list[str]
) -> None:
    before = server.count
    rescore_run(run, tmp_path / "other", *changed)
    assert server.count == before
    verify_run(tmp_path / "other")
    with closing(Run.open(run)) as opened:
        config = apply_settings(opened.config, changed)
    with jg.Jury.from_config(config) as jury:
        given = [
            trace for task, responses in read_tasks(tasks) for trace in jury.score(task, responses)
        ]
    assert read_rewards(tmp_path / "other") == [trace.reward.model_dump_json() for trace in given]


def test_other_gates_refuse_a_resume_and_a_branch_requests_what_they_stopped(
    run: Path, server: Server, tasks: Path, tmp_path: Path
) -> None:
    fewer: Mapping[str, Any] = {"safety": {"gates": ["empty-response"]}}
    with pytest.raises(InputError, match=r"safety\.gates"):
        run_session(run, tasks, gate_config(server, **fewer))
    before = server.count
    run_session(tmp_path / "new", tasks, gate_config(server, **fewer), branch=run)
    assert {response_in(seen.body) for seen in server.requests[before:]} == {"Solution:"}
    assert {name[-2:]: gates for name, gates in stored_gates(tmp_path / "new").items()} == {
        "r0": {None},
        "r1": {"empty-response"},
        "r2": {None},
        "r3": {None},
    }
    verify_run(tmp_path / "new")


def test_a_branch_with_more_gates_drops_verdicts_on_stopped_responses(
    server: Server, tasks: Path, tmp_path: Path
) -> None:
    run_session(tmp_path / "old", tasks, gate_config(server, safety={"gates": []}))
    before = server.count
    run_session(tmp_path / "new", tasks, gate_config(server), branch=tmp_path / "old")
    assert server.count == before
    assert stored_gates(tmp_path / "new")["t1/r2"] == {"bare-opener"}
    verify_run(tmp_path / "new")
