"""Canaries: known-bad responses beside a run, which tell how easily its judge is fooled, and change nothing else."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph import Jury, Task
from jurygraph.errors import TraceMismatch
from jurygraph.runs.canary import CanaryResult, CanaryTally, canary_for
from jurygraph.runs.integrity.verification import verify
from jurygraph.runs.reports.summary import Summary
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.session import ScoringSession
from jurygraph.runs.writable_run import WritableRun
from jurygraph.safety.gates import stopping_gate
from jurygraph.schema import CanaryConfig, Config, SafetyConfig
from jurygraph.sources import read_work
from tests.models.judging import Script, judged, response_in, rubric
from tests.models.server import Answer, Server, serving

NAMES = [f"friend {number}" for number in range(12)]


def lines(path: Path, names: list[str] = NAMES) -> Path:
    """Letters to friends: a rubric with a penalty, and one response each."""
    written = []
    for name in names:
        task = rubric("kind", "short", name=name, query=f"Write to {name}.").model_dump(mode="json")
        task["rubric"]["criteria"].append({"id": "rude", "text": "It is rude.", "weight": -1.0})
        written.append({**task, "responses": [{"id": f"{name}/a", "text": f"Dear {name}, how are you?"}]})
    path.write_text("".join(json.dumps(one) + "\n" for one in written))
    return path


def config(server: Server, canary: dict[str, Any] | None, **more: Any) -> Config:
    stated = {"model": f"openai-compatible:{server.url}#tiny", "evaluators": ["criteria"], "calls": {"cache": False}}
    return Config.model_validate({**stated, "canary": canary, **more})


def yes(body: dict[str, Any], number: int) -> Answer:
    """Meets everything, with a quotation."""
    return judged(body)


def honest(body: dict[str, Any], number: int) -> Answer:
    """Finds something in letters alone."""
    met = response_in(body).startswith("Dear friend")
    return judged(body, met, 0.9 if met else 0.1)


def scored(folder: Path, stated: Config, tasks: Path, limit: int | None = None) -> Summary:
    async def fill(session: ScoringSession) -> None:
        await session.prepare(lambda count: None)
        await session.score(lambda count: None)

    with (
        Jury.from_config(stated) as jury,
        read_work(tasks) as work,
        closing(ScoringSession(folder, jury, work, limit)) as session,
        asyncio.Runner() as runner,
    ):
        runner.run(fill(session))
        return session.summary


def with_judge(script: Script, folder: Path, canary: dict[str, Any] | None, limit: int | None = None) -> Summary:
    with serving(script) as server:
        return scored(folder / "run", config(server, canary), lines(folder / "tasks.jsonl"), limit)


def tally_of(summary: Summary) -> CanaryTally:
    assert summary.canaries is not None
    return summary.canaries


# Which tasks get one


def planned(task: Task) -> Any:
    with Jury.from_config({"evaluators": ["criteria"]}) as jury:
        return jury.prepare(task)


PLAN = planned(rubric("kind"))
EVERY = CanaryConfig(rate=1.0)
DEFENDED = SafetyConfig()


@given(st.text(min_size=1, max_size=20), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_the_same_task_and_seed_get_the_same_canary(name: str, seed: int) -> None:
    task = rubric("kind", name=name)
    stated = CanaryConfig(rate=0.5, seed=seed)
    assert canary_for(task, PLAN, stated, DEFENDED) == canary_for(task, PLAN, stated, DEFENDED)


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0])
def test_so_many_tasks_get_one_as_the_rate_says(rate: float) -> None:
    found = [canary_for(rubric("kind", name=str(n)), PLAN, CanaryConfig(rate=rate), DEFENDED) for n in range(400)]
    share = sum(one is not None for one in found) / len(found)
    assert abs(share - rate) <= 4 * (rate * (1 - rate) / len(found)) ** 0.5


def test_a_canary_is_one_that_no_standing_gate_would_stop() -> None:
    for number in range(40):
        task = rubric("kind", name=str(number))
        canary = canary_for(task, PLAN, EVERY, DEFENDED)
        assert canary is not None
        assert stopping_gate(canary.response.text, DEFENDED.gates, query="Write a letter.") is None


def test_it_is_of_the_suite_that_was_asked_for() -> None:
    for suite in ("null", "injection"):
        canary = canary_for(rubric("kind"), PLAN, CanaryConfig.model_validate({"rate": 1.0, "suite": suite}), DEFENDED)
        assert canary is not None
        assert canary.attack.suite == suite


def test_where_no_model_is_asked_nobody_can_be_fooled() -> None:
    with Jury.from_config({"evaluators": ["maths.format"]}) as jury:
        plan = jury.prepare(rubric("kind"))
    assert canary_for(rubric("kind"), plan, EVERY, DEFENDED) is None


# What becomes of them


def test_a_judge_that_always_says_yes_is_found_out(tmp_path: Path) -> None:
    tally = tally_of(with_judge(yes, tmp_path, {"rate": 1.0, "alert": 0.2}))
    assert (tally.items, tally.asked, tally.judged, tally.fooled) == (12, 24, 24, 24)  # the penalty is none of these
    assert tally.share.rate == 1.0
    assert tally.is_alarming


def test_a_judge_that_looks_raises_no_alarm(tmp_path: Path) -> None:
    tally = tally_of(with_judge(honest, tmp_path, {"rate": 1.0}))
    assert (tally.items, tally.judged, tally.fooled) == (12, 24, 0)
    assert not tally.is_alarming


def test_no_reward_and_no_trace_hangs_on_a_canary(tmp_path: Path) -> None:
    for name, canary in (("with", {"rate": 1.0}), ("without", None)):
        (tmp_path / name).mkdir()
        summary = with_judge(honest, tmp_path / name, canary)
        assert summary.responses == 12
    rewards = []
    for name in ("with", "without"):
        run = Run.open(tmp_path / name / "run")
        rewards.append({trace.response_id: trace.reward for trace in run.traces()})
        run.close()
    assert rewards[0] == rewards[1]
    assert len(rewards[0]) == 12


def test_the_calls_about_them_are_on_the_bill(tmp_path: Path) -> None:
    summary = with_judge(honest, tmp_path, {"rate": 1.0})
    assert summary.bill.to_json()["sent"]["number"] == 24


def test_a_dry_run_counts_them_in(tmp_path: Path) -> None:
    tasks = lines(tmp_path / "tasks.jsonl")
    for canary, expected in ((None, 12), ({"rate": 1.0}, 24)):
        with (
            serving(honest) as server,
            Jury.from_config(config(server, canary)) as jury,
            read_work(tasks) as work,
            closing(ScoringSession(tmp_path / "run", jury, work)) as session,
            asyncio.Runner() as runner,
        ):
            forecast = runner.run(session.forecast(lambda count: None))
            assert forecast.model is not None
            assert (forecast.model.expected.calls, server.count) == (expected, 0)


def test_what_was_spent_on_them_is_told_whenever_one_looks(tmp_path: Path) -> None:
    tasks = lines(tmp_path / "tasks.jsonl")
    with serving(honest) as server:
        stated = config(server, {"rate": 1.0})
        bills = [scored(tmp_path / "run", stated, tasks).bill.to_json()["sent"]["number"] for _ in range(2)]
    assert bills == [24, 24]


def test_a_penalty_that_is_found_in_one_is_no_credit(tmp_path: Path) -> None:
    with serving(yes) as server:
        stated = config(server, {"rate": 1.0}, reward={"rubric": -1.0})
        tally = tally_of(scored(tmp_path / "run", stated, lines(tmp_path / "tasks.jsonl")))
    assert (tally.asked, tally.fooled) == (12, 12)  # the penalty in a penalty is what is good


def test_a_run_that_goes_on_asks_of_each_task_once(tmp_path: Path) -> None:
    tasks = lines(tmp_path / "tasks.jsonl")
    with serving(honest) as server:
        stated = config(server, {"rate": 1.0})
        assert tally_of(scored(tmp_path / "run", stated, tasks, limit=5)).items == 5
        assert tally_of(scored(tmp_path / "run", stated, tasks)).items == 12
        assert server.count == 24
        assert tally_of(scored(tmp_path / "run", stated, tasks)).items == 12
        assert server.count == 24


def test_a_canary_whose_task_was_not_scored_any_more_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written before its task: what stops a run between the two must not lose it."""
    tasks = lines(tmp_path / "tasks.jsonl", NAMES[:1])

    class Stopped(Exception):
        pass

    def stop(*_: Any) -> Any:
        raise Stopped

    with serving(honest) as server:
        stated = config(server, {"rate": 1.0})
        with monkeypatch.context() as patched:
            patched.setattr(WritableRun, "group_drafts", stop)
            with pytest.raises(Stopped):
                scored(tmp_path / "run", stated, tasks)
        asked = server.count
        assert tally_of(scored(tmp_path / "run", stated, tasks)).items == 1
        assert (asked, server.count) == (2, 2)


def test_no_model_no_canary(tmp_path: Path) -> None:
    tasks = lines(tmp_path / "tasks.jsonl")
    stated = Config.model_validate({"evaluators": ["criteria"], "canary": {"rate": 1.0}})
    assert scored(tmp_path / "run", stated, tasks).canaries is None


# They are evidence, as all else


def test_a_run_with_canaries_verifies(tmp_path: Path) -> None:
    with_judge(yes, tmp_path, {"rate": 1.0})
    run = Run.open(tmp_path / "run")
    verify(run, lambda count: None)
    run.close()


def test_a_count_that_the_verdicts_do_not_come_to_is_found(tmp_path: Path) -> None:
    from jurygraph.runs.canary import check_canaries

    with_judge(yes, tmp_path, {"rate": 1.0})
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as file, file:
        first = "SELECT seq, body FROM records WHERE kind = 'canary' LIMIT 1"
        (seq, body) = file.execute(first).fetchone()
        changed = body.replace('"fooled":2', '"fooled":0')
        assert changed != body
        file.execute("UPDATE records SET body = ? WHERE seq = ?", (changed, seq))
    run = Run.open(tmp_path / "run")
    with pytest.raises(TraceMismatch, match="its verdicts come to"):
        check_canaries(run.ledger, run.plan_of)
    run.close()


def test_with_its_task_a_canary_is_erased(tmp_path: Path) -> None:
    with_judge(yes, tmp_path, {"rate": 1.0})
    erase(tmp_path / "run", "task", "friend 3", "asked for")
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as file:
        left = b"".join(bytes(one[0]) for one in file.execute("SELECT content FROM texts WHERE content IS NOT NULL"))
    assert b"Write to friend 3." not in left
    run = Run.open(tmp_path / "run")
    verify(run, lambda count: None)
    run.close()


# The figures


def test_the_interval_is_wilsons() -> None:
    tally = CanaryTally(0.05)
    assert tally.share.rate is None
    tally.add(CanaryResult(12, 10, 1))
    assert [round(one or 0.0, 4) for one in (tally.share.rate, tally.share.low, tally.share.high)] == [
        0.1,
        0.0179,
        0.4042,
    ]
    assert tally.is_alarming
    assert tally.to_json()["judged"] == 10
