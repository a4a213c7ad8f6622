"""verifiers' own `Task.score` takes the judge: the reward is the sum, and a failed one is an error of the trace.

Needs verifiers, which no extra of jurygraph has: `pip install verifiers`, then `pytest -m heavy` on this file.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from jurygraph.integrations.lazy_jury import find_shared_jury
from jurygraph.integrations.verifiers import JuryJudge

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]


def score(folder: Path, reply: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a trace that verifiers scored with a judge that is plugged in by its id."""
    vf = pytest.importorskip("verifiers.v1", reason="needs verifiers: pip install verifiers")
    config = folder / "jury.yaml"
    config.write_text(
        "evaluators: [tests.integrations.trainers.graded, tests.integrations.trainers.fixed]\n"
        "reward: {graded: 2.0, fixed: 0.5}\n",
        encoding="utf-8",
    )

    class Jury(JuryJudge, vf.Judge):  # type: ignore[misc, name-defined]
        jury = config

    plugin = type(sys)("jury_judge")
    plugin.Jury = Jury  # type: ignore[attr-defined]
    plugin.__all__ = ["Jury"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jury_judge", plugin)
    data = vf.TaskData(id="sum", prompt="2 + 2?")
    task = vf.Task(data, vf.TaskConfig(judges=[{"id": "jury_judge"}]))
    trace = make_trace(vf, data, reply)
    try:
        asyncio.run(task.score(trace))
    except vf.errors.TaskError as error:
        trace.failed = error
    finally:
        find_shared_jury(config).close()
    return trace


def make_trace(vf: Any, data: Any, reply: str) -> Any:
    """Return a trace whose last reply is this one."""

    class Trace(vf.Trace):  # type: ignore[misc, name-defined]
        failed: Any = None

        @property
        def last_reply(self) -> str:
            return reply

    return Trace.model_construct(task=data, rewards={}, metrics={}, errors=[])


def test_the_reward_of_a_trace_is_the_jurys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = score(tmp_path, "it is 0.25", monkeypatch)
    named = {name: item.value for name, item in trace.rewards.items()}
    assert named == {"jury_judge/graded": 0.5, "jury_judge/fixed": 0.5}
    assert trace.reward == 1.0


def test_a_failed_reward_is_an_error_and_no_number_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = score(tmp_path, "x", monkeypatch)
    assert trace.rewards == {"jury_judge": None}
    assert "1 of 1 rewards failed" in str(trace.failed)
    assert trace.reward == 0, "verifiers reads it as 0: look at `ok` or at the errors"
