"""Rewards again from stored verdicts: together or group by group, the bits are the same."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.decision.decide import is_independent
from jurygraph.runs.integrity import recomputation
from jurygraph.runs.integrity.recomputation import Recomputation, read_groups, recompute_statistics
from jurygraph.runs.integrity.verification import load_run_combiners
from jurygraph.runs.run import Run
from tests.runs.made import PLAIN, counted, lines, score, write_tasks


def rewards(run: Run) -> list[str]:
    again = Recomputation(run, lambda group: run.decision(group.decision), load_run_combiners(run))
    return [json.dumps(one.reward) for one in again.rewards(read_groups(run))]


def stored(run: Run) -> list[str]:
    return [json.dumps(record.content["reward"]) for record in run.ledger.records("trace")]


@pytest.mark.parametrize("name", ["plain", "rich"])
def test_they_are_those_that_were_stored(request: Any, name: str) -> None:
    run = Run.open(request.getfixturevalue(name))
    assert rewards(run) == stored(run)


def test_groups_are_decided_together_where_no_reward_looks_at_another(
    plain: Path, rich: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    together = recomputation.compute_rewards_batch

    def counting(decision: Any, questions: Any, marks: Any, combiners: Any) -> Any:
        calls.append(len(marks.value))
        return together(decision, questions, marks, combiners)

    monkeypatch.setattr(recomputation, "compute_rewards_batch", counting)
    rewards(Run.open(plain))
    assert sum(calls) > 0
    calls.clear()
    rewards(Run.open(rich))
    assert calls == []


@pytest.mark.parametrize("rows", [1, 3, 7, 4096])
def test_how_many_are_decided_together_changes_no_bit(plain: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(recomputation, "_BATCH_ROWS", rows)
    run = Run.open(plain)
    assert rewards(run) == stored(run)


@pytest.mark.parametrize("word", ["abstained", "no-model", "response", "infrastructure"])
@pytest.mark.parametrize("rule", ["conservative", "gear", "strict"])
def test_what_went_missing_is_filled_as_it_was(tmp_path: Path, word: str, rule: str) -> None:
    given = lines()
    for number, line in enumerate(given):
        for response in line["responses"][: number + 1]:
            response["data"]["same"] = word
    config = {**PLAIN, "failure": {"rule": rule, "min_coverage": 0.4}}
    score(tmp_path / "run", write_tasks(tmp_path / "given", given), config)
    run = Run.open(tmp_path / "run")
    assert is_independent(run.decision_of("t0"), run.survey_shape_of("t0").questions)
    assert rewards(run) == stored(run)


def test_tasks_that_are_asked_differently_keep_their_order(tmp_path: Path) -> None:
    given = lines(tasks=6)
    for line in given[1::2]:
        line["rubric"]["criteria"].append({"id": "last", "text": "It is short.", "weight": 0.5})
    config = {**PLAIN, "evaluators": [*PLAIN["evaluators"], counted("met", audience="criterion")]}
    score(tmp_path / "run", write_tasks(tmp_path / "given", given), {**config, "reward": {"rubric": 1.0, "tone": 1.0}})
    run = Run.open(tmp_path / "run")
    assert rewards(run) == stored(run)


def test_statistics_come_out_again(rich: Path) -> None:
    with closing(Run.open(rich)) as run:
        for group in read_groups(run):
            assert recompute_statistics(group, run.shape(group.survey)) == group.body["statistics"]


def test_a_half_of_a_run_can_be_looked_at(plain: Path) -> None:
    run = Run.open(plain)
    second = list(run.ledger.records("group"))[1]
    assert [group.record.key for group in read_groups(run, up_to=second.seq - 1)] == ["t0"]
