"""Runs with labelled responses: variants by family and version, and samples that are exact repeats."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.run import Run
from jurygraph.studies.presentations import read_run
from jurygraph.studies.stability import measure_stability
from tests.graphs.scripted import evaluator_use
from tests.judges.protocols.trip import ADAPTIVE, PLAN, decomposed, trip
from tests.models.judge_scripts import requested_items
from tests.models.server import Answer, reply_with, run_server
from tests.runs.sample_runs import write_tasks
from tests.runs.test_calls import judge_config, run_session
from tests.studies.figures import figures_of
from tests.studies.stability.made import labelled_run

UTILITIES = [[9, 5], [1, 5], [3, 5], [3, 3]]
WEIGHTS = [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5], [0.5, 0.5]]
LABELS: list[Mapping[str, Any]] = [
    {"quality": "high"},
    {"seed": "t/plan", "family": "paraphrase", "version": 1},
    {"seed": "t/plan", "family": "paraphrase", "version": 2},
]


def test_each_sample_that_does_not_rotate_is_an_exact_repeat_with_a_reward_of_its_own(
    tmp_path: Path,
) -> None:
    task = trip(2).model_dump(mode="json")
    texts = [f"{PLAN}{' ' * place}" for place in range(3)]
    names = ["t/plan", "t/a", "t/b"]
    task["responses"] = [
        {"id": name, "text": text, "labels": labels}
        for name, text, labels in zip(names, texts, LABELS, strict=True)
    ]
    tasks = write_tasks(tmp_path, [task])
    shown: list[tuple[str, ...]] = []

    def reply(body: dict[str, Any], number: int) -> Answer:
        shown.append(tuple(one["content"] for one in body["messages"]))
        place = (number - 1) % 4
        return reply_with(json.dumps(decomposed(UTILITIES[place], WEIGHTS[place])))

    with run_server(reply) as server:
        use = {"use": ADAPTIVE, "samples": 2, "params": {"rotate": False}}
        run_session(tmp_path / "run", tasks, judge_config(server) | {"evaluators": [use]})
    assert len(shown) == 6
    assert len(set(shown)) == 3
    with closing(Run.open(tmp_path / "run")) as run:
        found = read_run(run)
        rewards = {trace.response_id: trace.reward.value for trace in run.traces()}
    assert {row.protocol for row in found.rows} == {"decomposed-adaptive"}
    assert len(found.rows) == 6
    for row in found.rows:
        assert row.score == pytest.approx(
            sum(row.weights[name] * row.utilities[name] for name in row.weights)
        )
        assert (row.seed, row.quality, row.stakeholders) == ("t/plan", "high", 2)
        assert row.difficulty == {"ann": 2.5, "bob": 2.5}
    means = [
        sum(row.score for row in found.rows if row.input == key) / 2
        for key in {row.input for row in found.rows}
    ]
    assert sorted(means) == pytest.approx(
        sorted(1 + 9 * value for value in rewards.values() if value is not None)
    )
    report = figures_of(measure_stability(found))
    assert (report.units[0].variants, report.noise[0].repeat is not None) == (2, True)


def test_items_of_a_call_do_not_rotate_either(tmp_path: Path) -> None:
    orders: list[tuple[str, ...]] = []

    def reply(body: dict[str, Any], number: int) -> Answer:
        orders.append(tuple(one["content"] for one in body["messages"]))
        found = {"reason": "no", "quotes": [], "met": False, "probability": 0.1}
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), found)))

    with run_server(reply) as server:
        use = {
            "use": "criteria",
            "samples": 3,
            "params": {"criteria": ["It is short.", "It is kind."], "rotate": False},
        }
        task = {"id": "t", "query": "Write.", "responses": [{"id": "t/r", "text": "Dear Ann"}]}
        run_session(
            tmp_path / "run",
            write_tasks(tmp_path, [task]),
            judge_config(server) | {"evaluators": [use]},
        )
    assert (len(orders), len(set(orders))) == (3, 1)


@pytest.mark.parametrize(
    ("reward", "protocols"),
    [
        ({"judge": 1.0}, ["judge", "advice"]),
        ({"judge": 0.5, "advice": 0.5}, ["reward", "advice", "judge"]),
    ],
)
def test_a_reward_that_is_one_component_is_measured_once_and_first(
    tmp_path: Path, reward: dict[str, float], protocols: list[str]
) -> None:
    config = {"evaluators": [evaluator_use("advice"), evaluator_use("judge")], "reward": reward}
    with closing(Run.open(labelled_run(tmp_path, config))) as run:
        report = figures_of(measure_stability(read_run(run)))
    assert [row.name for row in report.protocols] == protocols
