"""Canaries: known-bad responses in a run, which measure the judge and change nothing else."""

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
from jurygraph.cli.render.summary import print_canary_message
from jurygraph.errors import TraceMismatch
from jurygraph.runs.canary import CanaryResult, CanaryTally, canary_for
from jurygraph.runs.integrity.verification import verify
from jurygraph.runs.reports.summary import Summary
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.scoring_session import ScoringSession
from jurygraph.runs.writable_run import WritableRun
from jurygraph.safety.gates import stopping_gate
from jurygraph.schema import CanaryConfig, Config, SafetyConfig
from jurygraph.sources import open_tasks
from tests.models.judge_scripts import Script, judge_reply, response_in, rubric
from tests.models.server import Answer, Server, run_server

NAMES = [f"friend {number}" for number in range(12)]


def write_canary_tasks(path: Path, names: list[str] = NAMES) -> Path:
    """Write tasks with a penalty in their rubric and one response each."""
    written = []
    for name in names:
        task = rubric("kind", "short", name=name, query=f"Write to {name}.").model_dump(mode="json")
        task["rubric"]["criteria"].append({"id": "rude", "text": "It is rude.", "weight": -1.0})
        written.append({**task, "responses": [{"id": f"{name}/a", "text": f"Dear {name}, how are you?"}]})
    path.write_text("".join(json.dumps(one) + "\n" for one in written))
    return path


def config_with(server: Server, canary: dict[str, Any] | None, **more: Any) -> Config:
    given_config = {
        "model": f"openai-compatible:{server.url}#tiny",
        "evaluators": ["criteria"],
        "calls": {"cache": False},
    }
    return Config.model_validate({**given_config, "canary": canary, **more})


def always_met(body: dict[str, Any], number: int) -> Answer:
    """A judge that meets every criterion, with a quotation."""
    return judge_reply(body)


def honest_judge(body: dict[str, Any], number: int) -> Answer:
    """A judge that gives credit to proper letters only."""
    met = response_in(body).startswith("Dear friend")
    return judge_reply(body, met, 0.9 if met else 0.1)


def score_config(folder: Path, given_config: Config, tasks: Path, limit: int | None = None) -> Summary:
    async def fill_disk(session: ScoringSession) -> None:
        await session.prepare(lambda count: None)
        await session.score(lambda count: None)

    with (
        Jury.from_config(given_config) as jury,
        open_tasks(tasks) as work,
        closing(ScoringSession(folder, jury, work, limit)) as session,
        asyncio.Runner() as runner,
    ):
        runner.run(fill_disk(session))
        return session.summary


def score_with_judge(script: Script, folder: Path, canary: dict[str, Any] | None, limit: int | None = None) -> Summary:
    with run_server(script) as server:
        return score_config(
            folder / "run", config_with(server, canary), write_canary_tasks(folder / "tasks.jsonl"), limit
        )


def canary_tally(summary: Summary) -> CanaryTally:
    assert summary.canaries is not None
    return summary.canaries


def requested(tally: CanaryTally) -> int:
    return sum(one.requested for one in tally.results)


# Choice of tasks


def plan_task(task: Task) -> Any:
    with Jury.from_config({"evaluators": ["criteria"]}) as jury:
        return jury.prepare(task)


PLAN = plan_task(rubric("kind"))
EVERY = CanaryConfig(rate=1.0)
DEFENDED = SafetyConfig()


@given(st.text(min_size=1, max_size=20), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_the_same_task_and_seed_get_the_same_canary(name: str, seed: int) -> None:
    task = rubric("kind", name=name)
    given_config = CanaryConfig(rate=0.5, seed=seed)
    assert canary_for(task, PLAN, given_config, DEFENDED) == canary_for(task, PLAN, given_config, DEFENDED)


@pytest.mark.landing
@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0])
def test_the_rate_determines_the_number_of_canaries(rate: float) -> None:
    found = [canary_for(rubric("kind", name=str(n)), PLAN, CanaryConfig(rate=rate), DEFENDED) for n in range(400)]
    share = sum(one is not None for one in found) / len(found)
    assert abs(share - rate) <= 4 * (rate * (1 - rate) / len(found)) ** 0.5


def test_a_canary_is_not_stopped_by_an_active_gate() -> None:
    for number in range(40):
        task = rubric("kind", name=str(number))
        canary = canary_for(task, PLAN, EVERY, DEFENDED)
        assert canary is not None
        assert stopping_gate(canary.response.text, DEFENDED.gates, query="Write a letter.") is None


def test_a_canary_comes_from_the_configured_suite() -> None:
    for suite in ("null", "injection"):
        canary = canary_for(rubric("kind"), PLAN, CanaryConfig.model_validate({"rate": 1.0, "suite": suite}), DEFENDED)
        assert canary is not None
        assert canary.attack.suite == suite


# Results


def test_a_judge_that_always_agrees_raises_the_alarm(tmp_path: Path) -> None:
    tally = canary_tally(score_with_judge(always_met, tmp_path, {"rate": 1.0, "alert": 0.2}))
    assert (len(tally.results), requested(tally), tally.judged, tally.fooled) == (12, 24, 24, 24)  # without the penalty
    assert tally.share is not None
    assert tally.share.value == 1.0
    assert tally.is_alarming


def test_canaries_change_no_reward_and_no_trace(tmp_path: Path) -> None:
    for name, canary in (("with", {"rate": 1.0}), ("without", None)):
        (tmp_path / name).mkdir()
        summary = score_with_judge(honest_judge, tmp_path / name, canary)
        assert summary.responses == 12
    rewards = []
    for name in ("with", "without"):
        run = Run.open(tmp_path / name / "run")
        rewards.append({trace.response_id: trace.reward for trace in run.traces()})
        run.close()
    assert rewards[0] == rewards[1]
    assert len(rewards[0]) == 12


def test_a_dry_run_includes_canaries(tmp_path: Path) -> None:
    tasks = write_canary_tasks(tmp_path / "tasks.jsonl")
    for canary, expected in ((None, 12), ({"rate": 1.0}, 24)):
        with (
            run_server(honest_judge) as server,
            Jury.from_config(config_with(server, canary)) as jury,
            open_tasks(tasks) as work,
            closing(ScoringSession(tmp_path / "run", jury, work)) as session,
            asyncio.Runner() as runner,
        ):
            forecast = runner.run(session.forecast(lambda count: None))
            assert forecast.model is not None
            assert (forecast.model.expected.calls, server.count) == (expected, 0)


def test_a_penalty_gives_a_canary_no_credit(tmp_path: Path) -> None:
    with run_server(always_met) as server:
        given_config = config_with(server, {"rate": 1.0}, reward={"rubric": -1.0})
        tally = canary_tally(score_config(tmp_path / "run", given_config, write_canary_tasks(tmp_path / "tasks.jsonl")))
    assert (requested(tally), tally.fooled) == (12, 12)  # a high score in a negative component lowers the reward


def test_a_resumed_run_requests_each_canary_once(tmp_path: Path) -> None:
    tasks = write_canary_tasks(tmp_path / "tasks.jsonl")
    with run_server(honest_judge) as server:
        given_config = config_with(server, {"rate": 1.0})
        assert len(canary_tally(score_config(tmp_path / "run", given_config, tasks, limit=5)).results) == 5
        assert len(canary_tally(score_config(tmp_path / "run", given_config, tasks)).results) == 12
        assert server.count == 24
        assert len(canary_tally(score_config(tmp_path / "run", given_config, tasks)).results) == 12
        assert server.count == 24


def test_a_canary_of_an_unscored_task_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary is written before its task, so that a stop in between does not lose it."""
    tasks = write_canary_tasks(tmp_path / "tasks.jsonl", NAMES[:1])

    class Stopped(Exception):
        pass

    def stop(*_: Any) -> Any:
        raise Stopped

    with run_server(honest_judge) as server:
        given_config = config_with(server, {"rate": 1.0})
        with monkeypatch.context() as patched:
            patched.setattr(WritableRun, "group_drafts", stop)
            with pytest.raises(Stopped):
                score_config(tmp_path / "run", given_config, tasks)
        requests = server.count
        assert len(canary_tally(score_config(tmp_path / "run", given_config, tasks)).results) == 1
        assert (requests, server.count) == (2, 2)


def test_without_a_model_there_is_no_canary(tmp_path: Path) -> None:
    tasks = write_canary_tasks(tmp_path / "tasks.jsonl")
    given_config = Config.model_validate({"evaluators": ["criteria"], "canary": {"rate": 1.0}})
    assert score_config(tmp_path / "run", given_config, tasks).canaries is None


# Verification and erasure


def test_a_wrong_count_is_found(tmp_path: Path) -> None:
    from jurygraph.runs.canary import check_canaries

    score_with_judge(always_met, tmp_path, {"rate": 1.0})
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


def test_erasing_a_task_erases_its_canary(tmp_path: Path) -> None:
    score_with_judge(always_met, tmp_path, {"rate": 1.0})
    erase(tmp_path / "run", "task", "friend 3", "asked for")
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as file:
        left = b"".join(bytes(one[0]) for one in file.execute("SELECT content FROM texts WHERE content IS NOT NULL"))
    assert b"Write to friend 3." not in left
    run = Run.open(tmp_path / "run")
    verify(run, lambda count: None)
    run.close()


# Statistics


def tally_of(*fooled: int, judged: int = 3, alert: float = 0.05) -> CanaryTally:
    """Return the tally of canaries with three judged verdicts each."""
    return CanaryTally(alert, [CanaryResult(judged, judged, one) for one in fooled])


def test_without_a_verdict_there_is_no_share() -> None:
    for tally in (tally_of(), tally_of(0, 0, judged=0)):
        assert tally.share is None
        assert not tally.is_alarming
        assert tally.to_json()["rate"] is tally.to_json()["n_eff"] is None


@pytest.mark.parametrize(
    ("fooled", "is_alarming"),
    [
        ([1, 0, 0], False),  # 11 %, but one verdict in nine
        ([3, 0, 0, 0, 0, 0, 0, 0, 0, 0], False),  # 10 %, all of one canary
        ([2, 2, 1, 0, 3], True),
        ([3] + 19 * [0], False),
        (5 * [3] + 15 * [0], True),
    ],
)
def test_the_alarm_needs_a_lower_end_above_the_alert(fooled: list[int], is_alarming: bool) -> None:
    tally = tally_of(*fooled)
    assert tally.share is not None
    assert tally.share.value >= 0.05
    assert tally.is_alarming == is_alarming == (tally.to_json()["low"] > 0.05)


# Messages


@pytest.mark.parametrize(
    ("fooled", "message"),
    [
        (
            [1, 0, 0],
            "known-bad responses got credit more often than canary.alert (5.0%) allows, but the verdicts on 3 of them "
            "do not show that this is more than chance\n",
        ),
        (
            [3, 3, 3],
            "ALERT: known-bad responses got credit more often than canary.alert (5.0%) allows, beyond chance\n",
        ),
        ([0, 0, 0], ""),
    ],
)
def test_credit_above_the_alert_is_an_alarm_only_beyond_chance(
    fooled: list[int], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_canary_message(tally_of(*fooled))
    assert capsys.readouterr().err == message
