"""`run_check`: an evaluator by code as a tool. It sees the task without reference and metadata, and one response."""

import inspect
from collections.abc import Awaitable, Sequence
from typing import Any

from pydantic import Field

from jurygraph.agents.registry import load_components_by_name, load_evaluator
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.errors import ConfigError
from jurygraph.schema import EvaluatorUse, Question, TaskView, Verdict, digest_of
from jurygraph.schema.config import ModelWithShorthand
from jurygraph.schema.frozen_model import EMPTY_OBJECT, Id, JsonObject, ParamsModel, PositiveInt
from jurygraph.schema.plan import SUBMITTED_MATERIAL_NAME
from jurygraph.tools.result import to_json
from jurygraph.tools.tool import Tool, ToolArguments, ToolError, ToolInput

MAX_ANSWERS_PER_CHECK = 50
MAX_REASON_CHARACTERS = 200
MAX_RESULT_CHARACTERS = 7_500


class CheckUse(ModelWithShorthand):
    """An evaluator by code, by name or dotted path, with its params; a bare name means `{use: name}`."""

    use: Id
    name: Id | None = None
    params: JsonObject = EMPTY_OBJECT


class CheckArguments(ToolArguments):
    check: str
    """The name of the check."""
    response: PositiveInt = 1
    """The number of the response, where there are several."""


class RunCheckTool(Tool):
    """Return the score of a check, whether it is met, and why."""

    name = "run_check"
    version = "1"
    Arguments = CheckArguments

    class Params(ParamsModel):
        checks: tuple[CheckUse, ...] = Field(min_length=1)
        """`{use: run_check, params: {checks: [mine.check]}}`, of evaluators by code (layer `check` or `fact`) about
        single responses."""

    settings: Params

    def _set_up_from_settings(self) -> None:
        self._checks = load_components_by_name(
            f"{self.name}: params.checks", _load_check, self.settings.checks
        )
        self._opened: set[str] = set()
        versions = [[name, check.version] for name, check in sorted(self._checks.items())]
        self.version = f"{self.version} of {digest_of(versions)[:12]}"
        self.description = (
            f"Run a check of the response by code. The checks: {', '.join(self._checks)}."
        )
        self.timeout = 60.0

    def run(self, inputs: ToolInput, arguments: CheckArguments) -> Awaitable[str]:
        check = self._checks.get(arguments.check)
        if check is None:
            raise ToolError(f"there is no such check; there are {', '.join(self._checks)}")
        response = inputs.responses[inputs.response_index_of_number(arguments.response)]
        if check.name not in self._opened:
            check.open()
            self._opened.add(check.name)
        task = inputs.task
        # the task itself without what its judge may not see: references, metadata and people
        view = TaskView(
            id=task.id, query=task.query, facts=task.facts, tools=task.tools, context=task.context
        )
        questions = check.questions(view)[:MAX_ANSWERS_PER_CHECK]
        answers = []
        for question in questions:
            if question.needs or question.material != SUBMITTED_MATERIAL_NAME:
                raise ToolError("this check needs what only a deriver has; it cannot be run here")
            # A check sees no more than its judge, and the last reply alone where it would by itself.
            shown_response = response
            if question.shown_part == "last_reply":
                shown_response = response.view("last_reply")
            answers.append(check.answer(EvaluatorInput(question, view, (shown_response,), ({},))))
        return _describe_check_answers(questions, answers)

    def close(self) -> None:
        for name in sorted(self._opened):
            self._checks[name].close()


def _load_check(use: CheckUse) -> Evaluator:
    check = load_evaluator(EvaluatorUse(**dict(use)))
    problem = ""
    if check.layer not in ("check", "fact") or check.uses_model:
        problem = "asks a model"
    elif check.scope != "response" or check.audience != "task":
        problem = f"has the scope {check.scope!r} and the audience {check.audience!r}"
    elif check.needs:
        problem = f"needs {', '.join(check.needs)} of a deriver"
    if problem:
        raise ConfigError(
            f"{check.name!r} {problem}; name an evaluator by code about a response and its task alone"
        )
    return check


async def _describe_check_answers(questions: Sequence[Question], answers: Sequence[Any]) -> str:
    rows = []
    for question, answer in zip(questions, answers, strict=True):
        verdict = await answer if inspect.isawaitable(answer) else answer
        if not isinstance(verdict, Verdict):
            verdict = Verdict(score=float(verdict))
        row = {
            "check": question.id[:MAX_REASON_CHARACTERS],
            "status": verdict.status,
            "score": verdict.score,
            "met": verdict.counts_as_met if verdict.status == "ok" else None,
            "reason": verdict.reason[:MAX_REASON_CHARACTERS],
        }
        rows.append(to_json(row))
    return "\n".join(rows)[:MAX_RESULT_CHARACTERS] or "[the check has no question about this task]"
