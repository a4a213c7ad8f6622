"""Responses that a gate stopped, in runs: they verify, are decided anew to the bit, and are asked about in a branch."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError
from jurygraph.runs.integrity.deep_verification import DeepVerification, verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import apply_settings
from jurygraph.sources import read_tasks
from tests.models.judging import judged, response_in
from tests.models.server import Server, serving
from tests.runs.made import checked, contents, write_tasks
from tests.runs.test_calls import plain, sit
from tests.runs.workflows.test_rescoring import again, rewards

TEXTS = ("Dear Ann, the office is closed.", "", "Solution:", "Dear Bo, it is open.")
STOPPED = ("", "Solution:")
CRITERIA = [
    {"id": "kind", "text": "It is kind.", "weight": 2.0},
    {"id": "rude", "text": "It is rude.", "weight": -1.0},
    {"id": "short", "text": "It is short.", "weight": 1.0},
]
EDGES = [{"parent": "kind", "child": "rude", "kind": "strong"}, {"parent": "rude", "child": "short", "kind": "weak"}]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(
        tmp_path,
        [
            {
                "id": f"t{number}",
                "query": f"Write letter {number}.",
                "rubric": {"criteria": CRITERIA, "edges": EDGES},
                "responses": [{"id": f"t{number}/r{r}", "text": text} for r, text in enumerate(TEXTS)],
            }
            for number in range(2)
        ],
    )


def settings(server: Server, **config: Any) -> dict[str, Any]:
    """A model is asked twice about each criterion, and a function that is no model about each response."""
    uses = [{"use": "criteria", "samples": 2}, "maths.length"]
    return {**plain(server), "evaluators": uses, "reward": {"rubric": 1.0, "length": -0.1}, **config}


@pytest.fixture
def run(server: Server, tasks: Path, tmp_path: Path) -> Path:
    sit(tmp_path / "run", tasks, settings(server))
    return tmp_path / "run"


def gates_of(folder: Path) -> dict[str, set[str | None]]:
    """By which gates the questions to models about each response were answered."""
    with closing(Run.open(folder)) as opened:
        return {
            trace.response_id: {one.gated_by for one in trace.verdicts if one.layer == "model"}
            for trace in opened.traces()
        }


def test_nothing_is_sent_about_them_and_the_run_verifies(run: Path, server: Server) -> None:
    assert {response_in(seen.body) for seen in server.requests} == {text for text in TEXTS if text not in STOPPED}
    assert {name[-2:]: gates for name, gates in gates_of(run).items()} == {
        "r0": {None},
        "r1": {"empty-response"},
        "r2": {"bare-opener"},
        "r3": {None},
    }
    assert checked(run).closed
    for trace in Run.open(run).traces():
        assert (trace.reward.coverage, trace.reward.counts.failed) == (1.0, 0)


@pytest.mark.parametrize(
    "changed",
    [
        [],
        ["rubric.kappa=3", "reward.length=0"],
        ["rubric.aggregation=hard-local", "failure.rule=strict"],
        ["rubric.aggregation=flat", "reward={rubric: -1}", "failure.rule=gear"],
        ["failure.group_rule=drop-criterion"],
    ],
)
def test_decided_anew_they_get_what_scoring_so_would_give(
    run: Path, server: Server, tasks: Path, tmp_path: Path, changed: list[str]
) -> None:
    before = server.count
    again(run, tmp_path / "other", *changed)
    assert server.count == before
    checked(tmp_path / "other")
    with closing(Run.open(run)) as opened:
        config = apply_settings(opened.config, changed)
    with jg.Jury.from_config(config) as jury:
        given = [trace for task, responses in read_tasks(tasks) for trace in jury.score(task, responses)]
    assert rewards(tmp_path / "other") == [trace.reward.model_dump_json() for trace in given]
    if not changed:
        assert contents(tmp_path / "other") == contents(run)


def deep(folder: Path) -> DeepVerification:
    with closing(Run.open(folder)) as opened:
        return verify_deep(opened, lambda count: None)


def test_what_a_gate_says_is_asked_again_since_it_needs_no_model(run: Path) -> None:
    """Of each task's responses two are stopped; each has three criteria, sampled twice where a model is asked."""
    found = deep(run)
    assert (found.recomputed, found.needing_model) == (2 * (2 * 3 * 2 + 2 * 3 + 4), 0)


def test_a_resume_with_other_gates_is_refused_and_a_branch_asks_about_what_they_stopped(
    run: Path, server: Server, tasks: Path, tmp_path: Path
) -> None:
    fewer: Mapping[str, Any] = {"safety": {"gates": ["empty-response"]}}
    with pytest.raises(InputError, match=r"safety\.gates"):
        sit(run, tasks, settings(server, **fewer))
    before = server.count
    sit(tmp_path / "new", tasks, settings(server, **fewer), branch=run)
    assert {response_in(seen.body) for seen in server.requests[before:]} == {"Solution:"}
    assert {name[-2:]: gates for name, gates in gates_of(tmp_path / "new").items()} == {
        "r0": {None},
        "r1": {"empty-response"},
        "r2": {None},
        "r3": {None},
    }
    checked(tmp_path / "new")


def test_a_branch_with_more_gates_forgets_what_a_model_said_of_what_they_stop(
    server: Server, tasks: Path, tmp_path: Path
) -> None:
    sit(tmp_path / "old", tasks, settings(server, safety={"gates": []}))
    before = server.count
    sit(tmp_path / "new", tasks, settings(server), branch=tmp_path / "old")
    assert server.count == before
    assert gates_of(tmp_path / "new")["t1/r2"] == {"bare-opener"}
    checked(tmp_path / "new")


@pytest.mark.parametrize("defence", ["fence", "reminder", "whole_reply", "evidence"])
def test_a_branch_without_a_defence_asks_everything_anew(tasks: Path, tmp_path: Path, defence: str) -> None:
    with serving(lambda body, number: judged(body, met=False, probability=0.1)) as server:
        sit(tmp_path / "old", tasks, settings(server))
        before = server.count
        sit(tmp_path / "new", tasks, settings(server, safety={defence: False}), branch=tmp_path / "old")
        assert server.count == 2 * before
