"""verifiers' own `Task.score` takes the judge: the reward is the sum, and a failed one is an error of the trace.

Needs verifiers, which no extra of jurygraph has: `pip install verifiers`, then `pytest -m heavy` on this file.
"""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jurygraph.integrations.lazy_jury import find_shared_jury
from jurygraph.integrations.verifiers import JuryJudge
from tests.command import run_command
from tests.models.server import run_server, status

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


def stream_reply(text: str) -> str:
    """Return a reply as a server streams it, which verifiers asks for."""
    head = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "policy"}
    usage = {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    beginning = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [{**head, "choices": [beginning]}, {**head, "choices": [end], "usage": usage}]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def test_the_command_in_the_example_evaluates_its_taskset(tmp_path: Path) -> None:
    pytest.importorskip("verifiers.v1", reason="needs verifiers: pip install verifiers")
    folder = tmp_path / "example"
    run_command("integrate", "verifiers", "--out", folder)
    documented = (folder / "jury_taskset.py").read_text("utf-8")
    command = re.search(r"vf-eval (.*\\\n.*)", documented)
    assert command is not None
    arguments = shlex.split(command[1].replace("\\\n", ""))
    content = stream_reply(r"It is \boxed{42}.")
    reply = status(200, {"Content-Type": "text/event-stream"}, content)
    with run_server(lambda body, number: reply) as server:
        address = arguments.index("--client.base-url") + 1
        arguments[address] = server.url
        evaluator = "from verifiers.v1.cli.eval.main import main; main()"
        paths = os.pathsep.join((str(folder), *sys.path))
        # where uv is, by which the null harness installs its program
        commands = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        ended = subprocess.run(
            [sys.executable, "-c", evaluator, *arguments],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": paths, "PATH": commands},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "jury_judge/accuracy 0.50" in ended.stdout, ended.stdout
    shown = run_command("show", folder / "run", "--json").out.splitlines()
    rewards = {trace["task_id"]: trace["reward"]["value"] for trace in map(json.loads, shown)}
    assert rewards == {"addition": 1.0, "product": 0.0}
