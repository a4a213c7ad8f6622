"""The calls that a branch of the score graph makes for one group, and what becomes of their results."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurygraph.agents.roles import (
    Deriver,
    DeriverInput,
    Evaluator,
    EvaluatorInput,
    UndeclaredClient,
)
from jurygraph.errors import RUN_ENDING
from jurygraph.graphs.answers import ReadVerdicts, validate_answer, validate_material
from jurygraph.graphs.context import RunContext
from jurygraph.graphs.routing import (
    DerivationTask,
    EvaluatorTask,
    make_stamp,
)
from jurygraph.graphs.time_limits import (
    CallLimits,
    CallResult,
    fresh_context,
    time_limit,
)
from jurygraph.graphs.user_calls import Calls, take_all
from jurygraph.models.request import DERIVE, CallLog
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import (
    Failure,
    Material,
    Question,
    RecordedVerdict,
    Response,
    Survey,
    TaskView,
    Verdict,
)
from jurygraph.tools.tool import ToolSet

if TYPE_CHECKING:
    from jurygraph.graphs.investigate_graph import ToolInvestigator

ReadAnswer = Callable[[Redactor], list[RecordedVerdict]]
"""Returns the verdicts of an answer that has arrived."""
NO_MODEL_FAILURE = Failure(cause="infrastructure", kind="no-model", message=Evaluator.without_model)


@dataclass(frozen=True, slots=True)
class GroupCalls:
    """The calls that a node makes for one group.

    `validate` turns the answers of each into what the node finds, with a redactor; `letters` is the length of the
    longest text that it searches.
    """

    calls: Sequence[Calls]
    validate: Callable[[Sequence[Sequence[Any]], Redactor], list[Any]]
    letters: int

    def start(self, langsmith: bool) -> "StartedCalls":
        """Start the calls; those of two groups, or of two evaluators, share no context."""
        results = [fresh_context(langsmith).run(calls.start) for calls in self.calls]
        return StartedCalls(self, results)

    def read(self, results: Sequence[Sequence[Any]], redactor: Redactor) -> list[Any]:
        """Return what the node finds, from the results of the calls. Raises an error that ends the run."""
        answers = [
            calls.read(own_results) for calls, own_results in zip(self.calls, results, strict=True)
        ]
        for answer in chain.from_iterable(answers):
            if isinstance(answer, RUN_ENDING):
                raise answer
        return self.validate(answers, redactor)


@dataclass(frozen=True, slots=True)
class StartedCalls:
    """The calls of one group that a node started, and of each what `Calls.start` returned."""

    calls: GroupCalls
    results: Sequence[Sequence[CallResult]]

    @property
    def tasks(self) -> "list[asyncio.Task[Any]]":
        created = chain.from_iterable(self.results)
        return [result for result, is_task in created if is_task]

    def take_answers(self) -> list[list[Any]]:
        """Return the results, with that of each asyncio task, which is done, or its exception in its place."""
        return list(map(take_all, self.results))


def evaluator_calls(
    evaluator_tasks: Sequence[EvaluatorTask],
    survey: Survey,
    context: RunContext,
    note_answer: Callable[[ReadAnswer], object],
) -> GroupCalls:
    """Return the calls for all evaluator tasks of a group; they become verdicts, stamped, with their calls and steps.

    The tasks of one evaluator and judge follow each other, in their order: a batch asks one model. `note_answer`
    gets each answer as it arrives, if the context has a listener: to read them one by one costs more.
    """
    tasks_by_evaluator: dict[tuple[str, str | None], list[EvaluatorTask]] = defaultdict(list)
    questions: dict[str, Question] = {}
    for evaluator_task in evaluator_tasks:
        question = evaluator_task.question
        tasks_by_evaluator[question.evaluator, evaluator_task.judge].append(evaluator_task)
        questions[question.id] = question
    inputs = [
        _make_inputs(name, judge, tasks, survey, context)
        for (name, judge), tasks in tasks_by_evaluator.items()
    ]
    stamps = {
        name: make_stamp(question, survey.views[question.view])
        for name, question in questions.items()
    }
    sent_calls = context.calls
    read: ReadVerdicts = {}

    def read_answer(
        task: EvaluatorTask, task_input: EvaluatorInput, answer: Any, redactor: Redactor
    ) -> list[RecordedVerdict]:
        validated = validate_answer(task, answer, stamps[task.question.id], redactor, read)
        call_log = task_input.call_log
        return [call_log.add_to(verdict, sent_calls, task_input.steps) for verdict in validated]

    def to_verdicts(answers: Sequence[Sequence[Any]], redactor: Redactor) -> list[RecordedVerdict]:
        verdicts: list[RecordedVerdict] = []
        groups = zip(tasks_by_evaluator.items(), inputs, answers, strict=True)
        for ((name, _), tasks), task_inputs, task_answers in groups:
            first = len(verdicts)
            for task, task_input, answer in zip(tasks, task_inputs, task_answers, strict=True):
                verdicts += read_answer(task, task_input, answer, redactor)
            if context.first_answers is not None:
                context.first_answers.note(name, verdicts[first:])
        return verdicts

    if context.listener is not None:
        loop = asyncio.get_running_loop()

        def add_report(task: EvaluatorTask, task_input: EvaluatorInput) -> EvaluatorInput:
            def report(answer: Any) -> None:
                read_now = partial(read_answer, task, task_input, answer)
                loop.call_soon_threadsafe(note_answer, read_now)  # user code may be in a thread

            return replace(task_input, report=report)

        inputs = [
            list(map(add_report, tasks, task_inputs))
            for tasks, task_inputs in zip(tasks_by_evaluator.values(), inputs, strict=True)
        ]
    calls = [
        _calls_of(name, judge, task_inputs, context)
        for (name, judge), task_inputs in zip(tasks_by_evaluator, inputs, strict=True)
    ]
    responses = chain.from_iterable(task.responses for task in evaluator_tasks)
    letters = max((len(response.text) for response in responses), default=0)
    return GroupCalls(calls, to_verdicts, letters)


def deriver_calls(
    derivation_tasks: Sequence[DerivationTask], survey: Survey, context: RunContext
) -> GroupCalls:
    """Return the calls for all derivation tasks of a group; they become material, in the order of the tasks."""
    logs = [CallLog() for _ in derivation_tasks]
    calls = [
        _derivation(task, call_log, survey, context)
        for task, call_log in zip(derivation_tasks, logs, strict=True)
    ]

    def to_material(answers: Sequence[Sequence[Any]], redactor: Redactor) -> list[Material]:
        sent_calls = context.calls
        materials = []
        for task, call_log, (result,) in zip(derivation_tasks, logs, answers, strict=True):
            material = validate_material(task, result, redactor)
            materials.append(call_log.add_to(material, sent_calls))
        return materials

    letters = max((len(task.response.text) for task in derivation_tasks), default=0)
    return GroupCalls(calls, to_material, letters)


def _derivation(
    task: DerivationTask, call_log: CallLog, survey: Survey, context: RunContext
) -> Calls:
    deriver = context.derivers[task.derivation.deriver]
    limits = _limits(deriver, context)
    if deriver.uses_model and context.config.model == "none":
        failed = Material(name=deriver.gives, status="failed", failure=NO_MODEL_FAILURE)
        return Calls(lambda _: failed, [()], limits, runs_inline=True)
    client: Any = UndeclaredClient(deriver.name)
    if deriver.uses_model:
        investigator = _investigator(
            context.deriver_tools.get(deriver.name),
            survey.views[task.derivation.view],
            (task.response,),
            context,
        )
        client = context.judge_client and context.judge_client.logging_to(
            call_log, purpose=DERIVE, investigator=investigator
        )
    deriver_input = DeriverInput(
        survey.views[task.derivation.view], task.response, task.material, client
    )
    return Calls(deriver.derive, [deriver_input], limits)


def _make_inputs(
    name: str,
    judge: str | None,
    evaluator_tasks: Sequence[EvaluatorTask],
    survey: Survey,
    context: RunContext,
) -> list[EvaluatorInput]:
    """Return an evaluator's input for each of its tasks, with a log of its own if the evaluator uses the model."""
    uses_model = context.evaluators[name].uses_model
    judge_client = context.clients.get(judge)
    undeclared = UndeclaredClient(name)
    tools = context.evaluator_tools.get(name)
    call_log = CallLog()
    inputs = []
    for task in evaluator_tasks:
        client: Any = undeclared
        question = task.question
        view = survey.views[question.view]
        if uses_model:
            call_log = CallLog()
            investigator = _investigator(tools, view, task.responses, context)
            client = judge_client and judge_client.logging_to(call_log, investigator=investigator)
        inputs.append(
            EvaluatorInput(
                question, view, task.responses, task.material, task.sample, client, call_log
            )
        )
    return inputs


def _investigator(
    toolset: ToolSet | None, view: TaskView, responses: tuple[Response, ...], context: RunContext
) -> "ToolInvestigator | None":
    """Return what lets the model look things up for one judgement; None without tools."""
    if toolset is None:
        return None
    # Imported lazily: few judges have tools, and the module imports this one.
    from jurygraph.graphs.investigate_graph import MAX_STEPS, MAX_TOKENS, ToolInvestigator
    from jurygraph.graphs.lookups import Toolbox

    config = context.config
    toolbox = Toolbox(
        toolset.tools,
        toolset.specs,
        view,
        responses,
        None if config.workspaces is None else Path(config.workspaces),
        context.threads,
        config.langsmith,
        "addresses-grader" in config.safety.gates,
    )
    return ToolInvestigator(
        toolbox, toolset.max_steps or MAX_STEPS, toolset.max_tokens or MAX_TOKENS
    )


def _calls_of(
    name: str, judge: str | None, inputs: Sequence[EvaluatorInput], context: RunContext
) -> Calls:
    evaluator = context.evaluators[name]
    limits = _limits(evaluator, context)
    if evaluator.uses_model and judge is None and context.config.model == "none":
        failure = NO_MODEL_FAILURE.model_copy(update={"message": evaluator.without_model})
        abstention = Verdict(status="abstained", reason=failure.message, failure=failure)
        return Calls(lambda _: abstention, inputs, limits, runs_inline=True)
    if evaluator.batched:
        return Calls(evaluator.answer_all, [tuple(inputs)], limits, is_batched=True)
    runs_inline = evaluator.runs_inline and limits.seconds is None
    is_reported = context.listener is not None
    return Calls(evaluator.answer, inputs, limits, runs_inline, is_reported=is_reported)


def _limits(component: Evaluator | Deriver, context: RunContext) -> CallLimits:
    return CallLimits(component.name, time_limit(component, context.config.calls), context.threads)
