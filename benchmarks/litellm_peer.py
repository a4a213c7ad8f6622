"""The same questions through litellm and by litellm alone: prints seconds of CPU a question of both.

python -m benchmarks.litellm_peer URL TASKS
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

from benchmarks.models import score_tasks
from benchmarks.shapes import IN_FLIGHT
from jurygraph import Jury, Planner
from jurygraph.models.request import Request
from jurygraph.sources import open_task_source

MODEL = "openai/tiny"
ROUNDS = 5


async def _requests(tasks: Path) -> list[Request]:
    """Return the requests to the model for all tasks."""
    with (
        Jury.from_config({"model": MODEL, "evaluators": ["criteria"]}) as jury,
        open_task_source(tasks) as work,
    ):
        return [
            one
            for task, group in work.pairs()
            for one in await Planner(jury).aestimate_requests(task, group)
        ]


def _call(request: Request) -> dict[str, Any]:
    """Return a request as arguments of litellm, with the settings that we use."""
    schema = {"name": "verdict", "strict": True, "schema": request.answer}
    settings = {
        "timeout": 86_400.0,
        "max_retries": 0,
        "num_retries": 0,
        "caching": False,
        "drop_params": False,
    }
    return {
        **request.parameters,
        **settings,
        "no-log": True,
        "model": MODEL,
        "messages": [message.model_dump() for message in request.messages],
        "response_format": {"type": "json_schema", "json_schema": schema},
    }


async def _alone(calls: Sequence[dict[str, Any]]) -> float:
    """Return the seconds of CPU of the calls; replies are dropped, and connections are new."""
    litellm: Any = import_module("litellm")
    left = iter(calls)

    async def some() -> None:
        for call in left:
            await litellm.acompletion(**call)

    start = process_time()
    await asyncio.gather(*(some() for _ in range(IN_FLIGHT)))
    spent = process_time() - start
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    return spent


def _ours(tasks: Path) -> float:
    """Return the seconds of CPU of the same questions, with verdicts stored; the cache and the run are new."""
    with (
        tempfile.TemporaryDirectory(dir=tasks.parent) as folder,
        patch.dict(os.environ, JURYGRAPH_CACHE=f"{folder}/cache"),
    ):
        return asyncio.run(score_tasks(MODEL, tasks, Path(folder) / "run")).cpu


if __name__ == "__main__":
    url, path = sys.argv[1:]
    os.environ.update(OPENAI_API_KEY="x", OPENAI_API_BASE=url)
    calls = [_call(one) for one in asyncio.run(_requests(Path(path)))]
    rounds = [(_ours(Path(path)), asyncio.run(_alone(calls))) for _ in range(1 + ROUNDS)]
    # the first warms litellm up
    print(*(min(one) / len(calls) for one in zip(*rounds[1:], strict=True)))
