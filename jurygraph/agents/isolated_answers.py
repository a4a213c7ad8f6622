"""The worker's side of `isolation`: load an evaluator by its name, and answer requests that are plain JSON."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from jurygraph.agents.registry import load_evaluator
from jurygraph.agents.roles import EvaluatorInput, UndeclaredClient
from jurygraph.agents.user_modules import allow_modules_in_folder
from jurygraph.agents.worker_pool import end_process_after
from jurygraph.schema import Config, EvaluatorUse, Material, Question, Response, TaskView, Verdict


def prepare(setup: dict[str, Any]) -> Callable[[str], Any]:
    """Load and open the evaluator in this worker process, and return the function that answers requests."""
    use = EvaluatorUse.model_validate(setup["use"])
    if setup["folder"] is not None:
        allow_modules_in_folder(Config(evaluators=(use,)), folder=Path(setup["folder"]))
    evaluator = load_evaluator(use)
    runner = asyncio.Runner()

    def answer(request: str) -> Any:
        result = evaluator.answer(_from_request(json.loads(request)))
        return _write_answer(runner.run(_wait(result)) if inspect.isawaitable(result) else result)

    with end_process_after(setup["open_limit"]):
        evaluator.open()
    return answer


async def _wait(result: Awaitable[Any]) -> Any:
    return await result


def _write_answer(answer: Any) -> Any:
    """Return an answer as plain JSON, also one that will be refused. Raises TypeError for what JSON cannot express."""
    if isinstance(answer, Verdict):
        return {"verdict": answer.model_dump(mode="json")}
    if isinstance(answer, np.ndarray | np.generic):
        answer = answer.tolist()
    if isinstance(answer, list | tuple):
        return [_write_answer(each) for each in answer]
    if answer is not None and not isinstance(answer, str | bool | int | float):
        raise TypeError(f"expected a Verdict, a number or a boolean, got {type(answer).__name__}")
    return answer


def _from_request(request: dict[str, Any]) -> EvaluatorInput:
    return EvaluatorInput(
        Question.model_validate(request["question"]),
        TaskView.model_validate(request["task"]),
        tuple(map(Response.model_validate, request["responses"])),
        tuple({name: Material.model_validate(one) for name, one in each.items()} for each in request["material"]),
        request["sample"],
        cast(Any, UndeclaredClient(request["question"]["evaluator"])),
    )
