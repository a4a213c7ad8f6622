"""Rewards are recomputed from stored verdicts, bit for bit."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.integrity.verification import recompute_rewards, recompute_statistics
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.runs.workflows.rescoring import rescore
from tests.runs.sample_runs import SIMPLE_CONFIG, evaluator_config, make_tasks, score, write_tasks


def recompute(run: Run) -> list[str]:
    combiners = run.load_combiners()
    rewards = recompute_rewards(
        run, read_stored_groups(run), lambda group: run.decision(group.decision), combiners
    )
    return [json.dumps(reward) for _, reward in rewards]


def stored_rewards(run: Run) -> list[str]:
    return [
        json.dumps(trace.body["reward"])
        for group in read_stored_groups(run)
        for trace in group.traces
    ]


@pytest.mark.parametrize("name", ["plain", "rich"])
def test_recomputed_rewards_equal_the_stored_ones(request: Any, name: str) -> None:
    run = Run.open(request.getfixturevalue(name))
    assert recompute(run) == stored_rewards(run)


@pytest.mark.parametrize("groups", [1, 3, 4096])
def test_the_batch_size_changes_no_bit(
    plain: Path, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    monkeypatch.setattr("jurygraph.runs.integrity.verification._GROUPS_PER_BATCH", groups)
    run = Run.open(plain)
    assert recompute(run) == stored_rewards(run)


@pytest.mark.landing
@pytest.mark.parametrize("word", ["abstained", "no-model", "response", "infrastructure"])
@pytest.mark.parametrize("rule", ["conservative", "gear", "strict", "decisive"])
def test_missing_verdicts_are_filled_as_before(tmp_path: Path, word: str, rule: str) -> None:
    given = make_tasks()
    for number, line in enumerate(given):
        for response in line["responses"][: number + 1]:
            response["data"]["same"] = word
    config = {**SIMPLE_CONFIG, "failure": {"rule": rule, "min_coverage": 0.4}}
    score(tmp_path / "run", write_tasks(tmp_path / "given", given), config)
    run = Run.open(tmp_path / "run")
    assert recompute(run) == stored_rewards(run)


def test_tasks_with_different_surveys_keep_their_order(tmp_path: Path) -> None:
    given = make_tasks(tasks=6)
    for line in given[1::2]:
        line["rubric"]["criteria"].append({"id": "last", "text": "It is short.", "weight": 0.5})
    config = {
        **SIMPLE_CONFIG,
        "evaluators": [*SIMPLE_CONFIG["evaluators"], evaluator_config("met", audience="criterion")],
    }
    score(
        tmp_path / "run",
        write_tasks(tmp_path / "given", given),
        {**config, "reward": {"rubric": 1.0, "tone": 1.0}},
    )
    run = Run.open(tmp_path / "run")
    assert recompute(run) == stored_rewards(run)


def test_recomputed_statistics_equal_the_stored_ones(rich: Path) -> None:
    with closing(Run.open(rich)) as run:
        for group in read_stored_groups(run):
            assert (
                recompute_statistics(group, run.survey_without_texts(group.survey))
                == group.body["statistics"]
            )


def test_a_rescored_run_has_only_the_groups_that_its_base_had(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path, make_tasks())
    score(tmp_path / "run", tasks, SIMPLE_CONFIG, limit=1)
    with closing(Run.open(tmp_path / "run")) as run:
        rescore(run, tmp_path / "rescored", run.config, lambda count: None)
    score(tmp_path / "run", tasks, SIMPLE_CONFIG)
    with closing(Run.open(tmp_path / "rescored")) as rescored:
        assert [group.record.key for group in read_stored_groups(rescored)] == ["t0"]
