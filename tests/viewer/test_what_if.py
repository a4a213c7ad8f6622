"""What a page decides again has the bits of `rescore`."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from multidict import MultiDict

from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.viewer.what_if import Overtaking, WhatIf, explain_changed, find_turns, rank_agents
from tests.rows import all_rows

CHANGES = [
    ["reward.polite=0.1"],
    ["reward.polite=-1", "reward.brief=3"],
    ["failure.rule=strict"],
    ["failure.rule=gear", "failure.min_coverage=0"],
    ["scale=3", "clip=[0, 0.5]"],
]


@pytest.mark.parametrize("settings", CHANGES, ids=json.dumps)
def test_settings_give_the_rewards_of_rescore(
    settings: list[str], letters: Path, tmp_path: Path
) -> None:
    changes = WhatIf.from_url(MultiDict([("set", setting) for setting in [*settings, "scale="]]))
    with closing(Run.open(letters)) as run:
        config = changes.config_of(run)
        rescore(run, tmp_path / "again", config, lambda count: None)
        with closing(Run.open(tmp_path / "again")) as again:
            expected = {trace.response_id: trace.reward for trace in again.traces()}
        for name, reward in expected.items():
            assert explain_changed(run, name, changes).trace.reward == reward
        means = rank_agents(run, config)
    by_agent: dict[str, list[float]] = {}
    for name, reward in expected.items():
        if reward.value is not None:
            by_agent.setdefault(f"agent {name[-1]}", []).append(reward.value)
    assert means == {
        agent: pytest.approx(sum(values) / len(values)) for agent, values in by_agent.items()
    }


def test_a_score_that_is_tried_is_that_of_its_question_alone(letters: Path) -> None:
    with closing(Run.open(letters)) as run:
        before = run.find_trace("ann/1").reward
        changes = WhatIf.from_url(MultiDict(score="polite=1"))
        after = explain_changed(run, "ann/1", changes).trace.reward
    assert before.value is not None
    assert after.value == pytest.approx(before.value + 0.7)
    assert after.components["brief"] == before.components["brief"]


@all_rows(
    "slope, turns",
    [
        (1.0, [Overtaking(value=0.5, first="a", second="b")]),
        (0.0, []),
    ],
)
def test_agents_change_places_where_their_means_cross(
    slope: float, turns: list[Overtaking]
) -> None:
    found = find_turns(lambda value: {"a": 0.5, "b": slope * value}, 0.0, 1.0)
    assert [(turn.first, turn.second) for turn in found] == [
        (turn.first, turn.second) for turn in turns
    ]
    for turn, expected in zip(found, turns, strict=True):
        assert turn.value == pytest.approx(expected.value, abs=1e-3)
