"""`isolate: process`: an evaluator in a worker process, which is killed at its time limit.

What crosses is JSON: the question, the view of the task, the responses, their material, and back a verdict.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict

from jurygraph.agents.roles import (
    CODE_TIME_LIMIT_SECONDS,
    Evaluator,
    EvaluatorAnswers,
    EvaluatorInput,
    MaterialByName,
    UndeclaredClient,
)
from jurygraph.agents.worker_pool import WorkerDied, WorkerPool, WorkFailed
from jurygraph.schema import (
    EvaluatorUse,
    FrozenModel,
    GraphBranchName,
    Question,
    Response,
    TaskView,
    Verdict,
)
from jurygraph.sources.user_modules import current_folder_modules

_COPIED_EVALUATOR_ATTRIBUTES = (
    *("name", "version", "audience", "layer", "scope", "reads_data", "needs", "reads", "params"),
    *("combiner", "shares", "depends_on", "check", "questions"),
)


class IsolatedEvaluator(Evaluator):
    """An evaluator that lists its questions here, and answers them in a worker process, one after another.

    The worker imports what `use` names. It has neither secrets in its environment nor access to the config's model.
    """

    bounds_its_time = True
    may_take_long = True

    def __init__(self, evaluator: Evaluator, use: EvaluatorUse) -> None:
        for attribute in _COPIED_EVALUATOR_ATTRIBUTES:
            setattr(self, attribute, getattr(evaluator, attribute))
        self._evaluator = evaluator
        limit = evaluator.timeout or CODE_TIME_LIMIT_SECONDS
        user_modules = current_folder_modules()
        folder_path = None if user_modules is None else str(user_modules.folder.resolve())
        worker_evaluator_use = use.model_copy(update={"isolate": None})
        worker_setup = {"use": worker_evaluator_use.model_dump(mode="json"), "folder": folder_path}
        self._pool = WorkerPool(
            self.name, "jurygraph.agents.registry:prepare_isolated", worker_setup, time_limit=limit
        )

    @property
    def branch(self) -> GraphBranchName:
        return self._evaluator.branch

    @property
    def predictable_reviewers(self) -> Sequence[str]:
        return self._evaluator.predictable_reviewers

    @property
    def notes(self) -> Sequence[str]:
        return self._evaluator.notes

    def close(self) -> None:
        self._pool.close()

    async def answer(self, inputs: EvaluatorInput) -> EvaluatorAnswers:
        try:
            request = _WorkerRequest.model_validate(inputs)
            result = await self._pool.call(json.dumps(request.model_dump(mode="json")))
        except WorkFailed as error:
            return Verdict.fail(error.kind, str(error), cause="evaluator")
        except WorkerDied as error:
            return Verdict.fail("worker-died", str(error), cause="response")
        answer: EvaluatorAnswers = _parse_worker_answer(result)
        return answer


class _WorkerRequest(FrozenModel):
    """The part of an evaluator's input that a worker needs."""

    model_config = ConfigDict(from_attributes=True)

    question: Question
    task: TaskView
    responses: Annotated[tuple[Response, ...], BeforeValidator(tuple)]
    material: tuple[MaterialByName, ...]
    sample: int


def _parse_worker_answer(result: Any) -> Any:
    if isinstance(result, list):
        return [_parse_worker_answer(item) for item in result]
    return Verdict.model_validate(result["verdict"]) if isinstance(result, dict) else result


def open_request_handler(evaluator: Evaluator) -> Callable[[str], Any]:
    """Open an evaluator in this worker process, and return the function that answers requests there."""
    runner = asyncio.Runner()

    def answer(request: str) -> Any:
        parsed_request = _WorkerRequest.model_validate(json.loads(request))
        client: Any = UndeclaredClient(parsed_request.question.evaluator)
        result = evaluator.answer(EvaluatorInput(**dict(parsed_request), client=client))
        if inspect.isawaitable(result):
            result = runner.run(_await_result(result))
        return _to_json_answer(result)

    evaluator.open()
    return answer


async def _await_result(result: Awaitable[Any]) -> Any:
    return await result


def _to_json_answer(answer: Any) -> Any:
    """Return an answer as plain JSON, also one that will be refused. Raises TypeError for what JSON cannot express."""
    if isinstance(answer, Verdict):
        return {"verdict": answer.model_dump(mode="json")}
    if hasattr(answer, "tolist"):  # of NumPy
        answer = answer.tolist()
    if isinstance(answer, list | tuple):
        return [_to_json_answer(item) for item in answer]
    if answer is not None and not isinstance(answer, str | bool | int | float):
        raise TypeError(f"expected a Verdict, a number or a boolean, got {type(answer).__name__}")
    return answer
