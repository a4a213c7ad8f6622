"""Runs with several samples of a judge: the order of the items rotates, and its effect is stored and recomputed."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.decision.decide import SAMPLE_SPREAD_DIAGNOSTIC
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from tests.command import run_command
from tests.models.judge_scripts import quotable, requested_items, response_in, rubric
from tests.models.server import Answer, reply_with, run_server
from tests.runs.sample_runs import verify_run, write_tasks
from tests.runs.test_calls import judge_config, run_session


def favour_the_first(body: dict[str, Any], number: int) -> Answer:
    """Find the item shown first, and cannot tell of the last one."""
    names = requested_items(body)
    quotes = quotable(response_in(body))
    first, *others, last = names
    found = {"reason": "so it is", "quotes": quotes, "met": True, "probability": 0.9}
    unmet = {"reason": "so it is", "quotes": [], "met": False, "probability": 0.2}
    unknown = {
        "reason": "it depends on the weather",
        "quotes": [],
        "met": None,
        "probability": None,
    }
    return reply_with(json.dumps({first: found, **dict.fromkeys(others, unmet), last: unknown}))


def test_the_effect_of_the_order_is_stored_shown_and_verified_without_the_model(
    tmp_path: Path,
) -> None:
    task = rubric("short", "kind", "clear", name="t0").model_dump(mode="json")
    task["responses"] = [{"id": "t0/r0", "text": "Dear reader of the letter."}]
    tasks = write_tasks(tmp_path, [task])
    with run_server(favour_the_first) as server:
        use = {"use": "criteria", "samples": 3}
        settings = {"evaluators": [use], "failure": {"min_coverage": 0.5}}
        run_session(tmp_path / "run", tasks, judge_config(server) | settings)
        assert server.count == 3
    verify_run(tmp_path / "run")
    with closing(Run.open(tmp_path / "run")) as run:
        (trace,) = run.traces()
        found = verify_deep(run, lambda count: None)
    by_subject: dict[str, list[Any]] = {}
    for verdict in trace.verdicts:
        by_subject.setdefault(verdict.subject, []).append(verdict.score)
    assert by_subject == {
        "clear": [0.9, None, 0.2],
        "kind": [0.2, 0.9, None],
        "short": [None, 0.2, 0.9],
    }
    assert {one.reason for one in trace.verdicts if one.score is None} == {
        "it depends on the weather"
    }
    assert trace.reward.counts.abstained == 3
    assert trace.reward.diagnostics == {"rubric": {SAMPLE_SPREAD_DIAGNOSTIC: 0.9 - 0.2}}
    assert trace.reward.value == pytest.approx((0.9 + 0.0 + 0.2) / 3)
    assert (found.recomputed, any(found[2:])) == (3 * 3, False)
    code, shown, _ = run_command("show", tmp_path / "run", "--response", "t0/r0")
    assert code == 0
    assert "diagnostics of rubric: spread over samples 0.7000" in shown
