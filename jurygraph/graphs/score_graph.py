"""The score graph, run once for a batch of groups: route ⇄ branches, then decide, which gives rewards and traces.

Each group of the batch has its own waves, verdicts, failures and calls; they share the engine's cost. A branch calls
evaluators or derivers, and turns their answers and exceptions into verdicts and material. User code runs in a fresh
context: it inherits neither the package's clients nor its keys, and is not traced to LangSmith unless the config
enables that. (A thread that user code starts has a context of its own.)
"""

import asyncio
import inspect
import json
import sqlite3
import sysconfig
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from operator import is_
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import ValidationError

from jurygraph.agents.roles import (
    Deriver,
    DeriverInput,
    Evaluator,
    EvaluatorInput,
    UndeclaredClient,
)
from jurygraph.agents.worker_pool import WorkFailed
from jurygraph.concurrency import is_interrupt
from jurygraph.decision.decide import GroupVerdicts, RewardRow, compute_rewards_of_each
from jurygraph.errors import RUN_ENDING, InputError, JurygraphError, PlanError, TimeLimitExceeded
from jurygraph.graphs.routing import (
    DerivationTask,
    EvaluatorTask,
    Stamp,
    WaveWork,
    make_stamp,
    mark_superseded,
    next_work,
)
from jurygraph.graphs.state import (
    BatchContext,
    CallLimits,
    PlannedGroup,
    Result,
    RunContext,
    ScoreOutput,
    ScoreState,
    clients_of,
    fresh_context,
    time_limit,
)
from jurygraph.messages import first_validation_error
from jurygraph.models.request import DERIVE, CallLog, Fault
from jurygraph.safety.evidence import read_text, search_off_loop
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import (
    Branch,
    Call,
    Cause,
    Failure,
    Material,
    RecordedVerdict,
    Response,
    Reward,
    Survey,
    Trace,
    Verdict,
    digest_of,
)
from jurygraph.schema.trace import group_statistics, group_verdicts_by_response, permitted_purpose
from jurygraph.schema.verdict import TIME_LIMIT

Validated = TypeVar("Validated", Verdict, Material)
NO_MODEL_FAILURE = Failure(cause="infrastructure", kind="no-model", message=Evaluator.without_model)
MAX_MESSAGE_LENGTH = 500
LONGEST_KIND = 100
MAX_QUOTES_SEARCHED = 100
LONGEST_SEARCHED = 10_000
"""Maximum number of quotations without offsets searched for per verdict, and of characters in each.

Others stay unverified. An evaluator that quotes every line of a long response would cost the square of its length.
"""
_CODE_ERRORS = (
    WorkFailed,
    InputError,
    PlanError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
)
_INFRASTRUCTURE_ERRORS = (JurygraphError, OSError, MemoryError, sqlite3.Error)
_MAX_MESSAGE_READ = 1 << 16  # characters of a message that are read
_INSTALLED_PATHS = (str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"))
_RECORDED_FIELDS = {
    (name,) for name in RecordedVerdict.model_fields.keys() - Verdict.model_fields.keys()
}
"""Fields of a recorded verdict that an evaluator does not set, as the locations of validation errors."""

FIELD_NAMES = {model: frozenset(model.model_fields) for model in (Verdict, Material)}


class _Malformed(ValueError):
    """The result of user code is not of a permitted kind; the message says why."""


ReadVerdicts = dict[tuple[int, str, tuple[str, ...]], tuple[Verdict, Verdict]]
"""Answers that were read, with their verdicts, by the identity of the answer, the text it is about and all texts shown.

The answer itself is kept so that no other one gets its identity.
"""


def validate_answer(
    evaluator_task: EvaluatorTask, answer: Any, stamp: Stamp, redactor: Redactor, read: ReadVerdicts
) -> list[RecordedVerdict]:
    """Return the verdicts of an answer, one for each response that the task is about, redacted and stamped.

    A verdict that answers several questions about the same texts is read once; `read` has those read before.
    """
    about = evaluator_task.about
    texts = tuple(response.text for response in evaluator_task.responses)
    items: Any = [answer] * len(about)
    if evaluator_task.question.scope == "group":
        items = catch_errors(partial(_split_answer, answer, len(about)))
    if isinstance(items, BaseException):
        items = [items] * len(about)
    return [
        stamp(_read_once(item, text, texts, redactor, read), key)
        for item, key, text in zip(items, evaluator_task.keys, texts, strict=False)
    ]


def _read_once(
    item: Any, text: str, shown: tuple[str, ...], redactor: Redactor, read: ReadVerdicts
) -> Verdict:
    if type(item) is not Verdict:
        return _read_verdict(item, text, shown, redactor)
    key = id(item), text, shown
    if key not in read:
        read[key] = item, _read_verdict(item, text, shown, redactor)
    return read[key][1]


def _read_verdict(item: Any, text: str, shown: Sequence[str], redactor: Redactor) -> Verdict:
    """Return the verdict of an answer about the response with this text; a failed one for an exception."""
    verdict = catch_errors(partial(_parse, item, text, shown, redactor))
    if isinstance(verdict, Verdict):
        return verdict
    failure = to_failure(verdict, redactor)
    call = verdict.call if isinstance(verdict, Fault) else None
    return Verdict(status="failed", failure=failure, reason=failure.message, call=call)


def validate_material(task: DerivationTask, result: Any, redactor: Redactor) -> Material:
    """Return a result as material about the task's response, redacted; failed material if it is invalid."""
    validated = catch_errors(partial(_parse_material, task, result, redactor))
    if isinstance(validated, BaseException):
        call = validated.call if isinstance(validated, Fault) else None
        failure = to_failure(validated, redactor)
        validated = Material(
            name=task.derivation.gives, status="failed", failure=failure, call=call
        )
    material: Material = validated.model_copy(update={"response": task.response.id, "calls": ()})
    return material


def to_failure(error: BaseException, redactor: Redactor) -> Failure:
    """Return the failure for an exception.

    The response may have provoked a time limit of code that reads it. Connections, disks, memory and worker processes
    are of the infrastructure, and everything else of the evaluator, also a path that is not there. The message is
    redacted before it is cut, so that no part of a secret remains.
    """
    if isinstance(error, Fault):
        return Failure(cause=error.cause, kind=error.kind, message=_error_message(error, redactor))
    is_infrastructure = isinstance(error, _INFRASTRUCTURE_ERRORS) and not isinstance(
        error, _CODE_ERRORS
    )
    cause: Cause = "infrastructure" if is_infrastructure else "evaluator"
    kind = redactor.redact_text(type(error).__name__)[:LONGEST_KIND] or "error"
    if isinstance(error, TimeLimitExceeded):
        cause = "response"
        kind = TIME_LIMIT
    elif isinstance(error, _Malformed):
        kind = "malformed"
    described = catch_errors(partial(_error_message, error, redactor))
    message = (
        described
        if isinstance(described, str)
        else f"it has no message: {type(described).__name__}"
    )
    return Failure(
        cause=cause,
        kind=kind,
        message=(message or kind) + redactor.redact_text(_user_code_location(error)),
    )


def _error_message(error: BaseException, redactor: Redactor) -> str:
    text = first_validation_error(error) if isinstance(error, ValidationError) else str(error)
    invalid = (
        error.__context__ if isinstance(error, InputError) else error
    )  # what a constructor raises it for
    if isinstance(invalid, ValidationError):
        first = invalid.errors(include_url=False)[0]
        is_own_field = invalid.title == Verdict.__name__ and first["loc"][:1] in _RECORDED_FIELDS
        if is_own_field and first["type"] == "extra_forbidden":
            text = f"{first['loc'][0]}: jurygraph sets it when it records the verdict; leave it out"
    clean = (
        redactor.redact_text(text[:_MAX_MESSAGE_READ])
        .encode("utf-8", "backslashreplace")
        .decode("utf-8")
    )
    return clean[:MAX_MESSAGE_LENGTH]


def _user_code_location(error: BaseException) -> str:
    """Return the innermost line of user code of an exception, without its folder; empty if there is none."""
    for frame in reversed(extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        is_installed = (
            frame.filename.startswith(_INSTALLED_PATHS) or "site-packages" in frame.filename
        )
        if file.is_absolute() and not is_installed:
            return f" ({file.name}, line {frame.lineno}, in {frame.name})"
    return ""


def catch_errors(read: Callable[[], Any]) -> Any:
    """Return the result of `read`, or the exception that it raised: even a number or a message can run user code."""
    try:
        return read()
    except BaseException as error:
        if is_interrupt(error):
            raise
        return error


def _split_answer(answer: Any, count: int) -> Sequence[Any]:
    """Return an answer for each of this number of responses, from one about a whole group."""
    if isinstance(answer, BaseException) or (isinstance(answer, Verdict) and answer.status != "ok"):
        return [answer] * count
    if not isinstance(answer, Sequence | np.ndarray) or len(answer) != count:
        raise _Malformed(
            f"expected a sequence of {count} verdicts, one for each response of the group"
        )
    return list(answer)


def _parse(
    answer: Any, text: str, shown: Sequence[str], redactor: Redactor
) -> Verdict | BaseException:
    """Return an evaluator's answer as a verdict; a value out of range or of another type is refused, never a score.

    An exception is returned as it is.
    """
    if isinstance(answer, BaseException):
        return answer
    if isinstance(answer, bool | np.bool_):
        return Verdict(score=float(answer), met=bool(answer))
    if isinstance(answer, int | float | np.integer | np.floating):
        if not 0.0 <= answer <= 1.0:
            raise _Malformed(f"a score lies in [0, 1], not at {answer}")
        return Verdict(score=float(answer))
    if isinstance(answer, RecordedVerdict):
        raise _Malformed(
            "jurygraph records verdicts: return a Verdict(score=..., reason=...), not a RecordedVerdict"
        )
    if not isinstance(answer, Verdict):
        raise _Malformed(f"expected a Verdict, a number or a boolean, got {type(answer).__name__}")
    checked, written = _revalidate(answer)
    if checked.status in ("ok", "not_applicable") and checked.failure is not None:
        raise _Malformed(f"a verdict that is {checked.status} has no failure")
    return _redact(_verify_quotes(checked, text), written, shown, redactor)


def _parse_material(task: DerivationTask, result: Any, redactor: Redactor) -> Material:
    if isinstance(result, BaseException):
        raise result
    if not isinstance(result, Material):
        type_name = type(result).__name__
        name = task.derivation.gives
        raise _Malformed(
            f"expected material {name!r}, got {type_name}; return Material(name={name!r}, data=...)"
        )
    checked, written = _revalidate(result)
    checked = _redact(
        _verify_quotes(checked, task.response.text), written, [task.response.text], redactor
    )
    if checked.name != task.derivation.gives:
        raise _Malformed(f"expected material {task.derivation.gives!r}, got {checked.name!r}")
    if len({variant.response.id for variant in checked.variants}) < len(checked.variants):
        raise _Malformed(f"two variants in material {checked.name!r} have the same id")
    return checked


def _revalidate(model: Validated) -> tuple[Validated, bytes]:
    """Return the model validated again (`model_copy` and `model_construct` skip that), and its JSON."""
    kind: Any = Verdict if isinstance(model, Verdict) else Material
    fields = vars(model)
    if (
        fields.keys() != FIELD_NAMES[kind]
    ):  # it has a digest, or is of a user's class with more fields
        fields = {name: value for name, value in fields.items() if name in FIELD_NAMES[kind]}
    try:
        checked: Validated = kind.model_validate(fields)
        return checked, kind.__pydantic_serializer__.to_json(checked)
    except ValidationError as error:
        raise _Malformed(first_validation_error(error)) from error
    except ValueError as error:
        raise _Malformed(f"it cannot be written as JSON: {error}") from error


def _redact(item: Validated, written: bytes, shown: Sequence[str], redactor: Redactor) -> Validated:
    """Return the item without secrets. A quotation of a text that was shown stays: that text is stored unchanged.

    `written` is its JSON, which may be older than `_verify_quotes`: that brings in nothing but quotations that stay.
    """
    if not redactor.has_secret_in(written.decode()):
        return item
    clean: Any = redactor.redact_json(item.model_dump(mode="json"))
    for evidence, clean_evidence in zip(item.evidence, clean["evidence"], strict=True):
        if any(evidence.quote in text for text in shown):
            clean_evidence["quote"] = evidence.quote
    try:
        return type(item).model_validate_json(json.dumps(clean))
    except ValidationError as error:
        raise _Malformed(
            f"it holds a secret where none can be struck out: {first_validation_error(error)}"
        ) from None


def _verify_quotes(item: Validated, text: str) -> Validated:
    """Return an item whose evidence is `verified` if the response has the quotation at its offsets, or anywhere if it
    has none."""
    checked = []
    searched = 0
    for evidence in item.evidence:
        update: dict[str, Any] = {}
        if (
            evidence.source == "response"
            and evidence.start is not None
            and evidence.end is not None
        ):
            update = {"verified": text[evidence.start : evidence.end] == evidence.quote}
        elif evidence.source == "response":
            searched += 1
            is_searched = (
                searched <= MAX_QUOTES_SEARCHED and len(evidence.quote) <= LONGEST_SEARCHED
            )
            found = read_text(text).find(evidence.quote) if is_searched else None
            update = {"verified": found is not None}
            if found is not None:
                update |= {"quote": found.text, "start": found.start, "end": found.end}
        is_unchanged = all(getattr(evidence, name) == value for name, value in update.items())
        checked.append(evidence if is_unchanged else evidence.model_copy(update=update))
    return (
        item
        if all(map(is_, checked, item.evidence))
        else item.model_copy(update={"evidence": tuple(checked)})
    )


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a function of user code, one with each input, in one context: those of an evaluator in one group, or of
    a deriver for one response.

    Coroutines run concurrently, each in an asyncio task of its own. Plain functions run one after another in a thread,
    or with `runs_inline` in the event loop's own. A function that `is_batched` has one input, of several parts, and
    returns a sequence of answers to them.
    """

    function: Callable[[Any], Any]
    inputs: Sequence[Any]
    limits: CallLimits
    runs_inline: bool = False
    is_batched: bool = False

    @property
    def _starts_in_loop(self) -> bool:
        return self.runs_inline or inspect.iscoroutinefunction(self.function)

    def start(self) -> list[Result]:
        """Start the calls in the current context; return the answer of each, or its asyncio task and true.

        Those in a thread are one task, which returns all their answers. An exception takes the place of its answer, and
        so does `CallLimits.excess` for a call that runs past its limit.
        """
        if not self._starts_in_loop:
            return [(asyncio.create_task(self._call_in_thread()), True)]
        if (refusal := self.limits.threads.refusal(self.limits.owner)) is not None:
            return [(refusal, False)] * len(self.inputs)
        return self._create_tasks([self._start_call(call_input) for call_input in self.inputs])

    def read(self, results: Sequence[Any]) -> Sequence[Any]:
        """Return all answers, from the results of what `start` returned; raise an error of the thread itself."""
        if not self._starts_in_loop:
            (results,) = results
            if isinstance(results, BaseException):
                raise results
        return _split_batch(results[0], len(self.inputs[0])) if self.is_batched else results

    async def _call_in_thread(self) -> list[Any]:
        started = await self.limits.call_in_thread(self._start_call, self.inputs, _close_logs)
        (answers,) = await _await_all([self._create_tasks(started)])
        return answers

    def _start_call(self, call_input: Any) -> Result:
        """Return the function's result or exception, and whether the result still has to be awaited."""

        def start() -> Result:
            result = self.function(call_input)
            return result, inspect.isawaitable(result)

        started = catch_errors(
            start
        )  # user code ends here: even its SystemExit is a failed verdict
        result, is_awaitable = (started, False) if isinstance(started, BaseException) else started
        if not is_awaitable:
            _close_logs(call_input)
        return result, is_awaitable

    def _create_tasks(self, started: Sequence[Result]) -> list[Result]:
        """Return the results, with an asyncio task for each that has to be awaited."""
        return [
            (self._create_task(call_input, result), True) if is_awaitable else (result, False)
            for call_input, (result, is_awaitable) in zip(self.inputs, started, strict=True)
        ]

    def _create_task(self, call_input: Any, result: Awaitable[Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(self._finish_call(call_input, result))
        if inspect.iscoroutine(
            result
        ):  # Python warns of one that nobody awaits: the task may be cancelled at once
            task.add_done_callback(lambda _: _close_unstarted(result))
        return task

    async def _finish_call(self, call_input: Any, result: Awaitable[Any]) -> Any:
        answering = _await_result(result)
        try:
            return await (
                answering
                if self.limits.seconds is None
                else self.limits.await_result(answering, call_input)
            )
        finally:
            _close_unstarted(answering)
            _close_logs(call_input)


def _close_unstarted(answer: Coroutine[Any, Any, Any]) -> None:
    if inspect.getcoroutinestate(answer) == inspect.CORO_CREATED:
        answer.close()


@dataclass(frozen=True, slots=True)
class GroupCalls:
    """The calls that a node makes for one group.

    `validate` turns the answers of each into what the node finds, with a redactor; `letters` is the length of the
    longest text that it searches.
    """

    calls: Sequence[Calls]
    validate: Callable[[Sequence[Sequence[Any]], Redactor], list[Any]]
    letters: int

    def read(self, results: Sequence[Sequence[Any]], redactor: Redactor) -> list[Any]:
        """Return what the node finds, from the results of the calls. Raises an error that ends the run."""
        answers = [
            calls.read(own_results) for calls, own_results in zip(self.calls, results, strict=True)
        ]
        for answer in chain.from_iterable(answers):
            if isinstance(answer, RUN_ENDING):
                raise answer
        return self.validate(answers, redactor)


async def make_calls(
    groups: Sequence[GroupCalls], context: RunContext
) -> list[list[Any] | BaseException]:
    """Make the calls of all groups at once; return what is found for each group, or its error.

    Calls of two groups, or of two evaluators, share no context. The redactor is for the environment after all calls,
    since the code that they run may have changed it.
    """
    langsmith = context.config.langsmith
    started = [
        fresh_context(langsmith).run(calls.start) for group in groups for calls in group.calls
    ]
    results = iter(await _await_all(started))
    answered = [(group, [next(results) for _ in group.calls]) for group in groups]

    def validate_all() -> list[list[Any] | BaseException]:
        redactor = context.redactor
        return [
            catch_errors(partial(group.read, own_results, redactor))
            for group, own_results in answered
        ]

    longest = max((group.letters for group in groups), default=0)
    return await search_off_loop(partial(fresh_context(langsmith).run, validate_all), longest)


async def _await_all(started: Sequence[Sequence[Result]]) -> list[list[Any]]:
    """Return what was started with the result, or the exception, of each asyncio task in its place."""
    tasks = [result for calls in started for result, is_task in calls if is_task]
    finished = await asyncio.gather(*tasks, return_exceptions=True)
    for result in finished:
        if isinstance(result, BaseException) and is_interrupt(result):
            raise result
    results = iter(finished)
    return [
        [next(results) if is_task else result for result, is_task in calls] for calls in started
    ]


def evaluator_calls(
    evaluator_tasks: Sequence[EvaluatorTask], survey: Survey, context: RunContext
) -> GroupCalls:
    """Return the calls for all evaluator tasks of a group; they become verdicts, stamped, with their calls and steps.

    The tasks of one evaluator and judge follow each other, in their order: a batch asks one model.
    """
    tasks_by_evaluator: dict[tuple[str, str | None], list[EvaluatorTask]] = defaultdict(list)
    for evaluator_task in evaluator_tasks:
        tasks_by_evaluator[evaluator_task.question.evaluator, evaluator_task.judge].append(
            evaluator_task
        )
    inputs = [
        _make_inputs(name, judge, tasks, survey, context)
        for (name, judge), tasks in tasks_by_evaluator.items()
    ]

    def to_verdicts(answers: Sequence[Sequence[Any]], redactor: Redactor) -> list[RecordedVerdict]:
        questions = {
            evaluator_task.question.id: evaluator_task.question
            for evaluator_task in evaluator_tasks
        }
        stamps = {
            name: make_stamp(question, survey.views[question.view])
            for name, question in questions.items()
        }
        known = context.calls
        read: ReadVerdicts = {}
        verdicts = []
        for (name, _), tasks, own_inputs, own_answers in zip(
            tasks_by_evaluator, tasks_by_evaluator.values(), inputs, answers, strict=True
        ):
            own: list[RecordedVerdict] = []
            for task, given, answer in zip(tasks, own_inputs, own_answers, strict=True):
                validated = validate_answer(task, answer, stamps[task.question.id], redactor, read)
                own += [given.call_log.add_to(verdict, known, given.steps) for verdict in validated]
            if context.first_answers is not None:
                context.first_answers.note(name, own)
            verdicts += own
        return verdicts

    calls = [
        _calls_of(name, judge, own, context)
        for (name, judge), own in zip(tasks_by_evaluator, inputs, strict=True)
    ]
    letters = (
        len(response.text)
        for evaluator_task in evaluator_tasks
        for response in evaluator_task.responses
    )
    return GroupCalls(calls, to_verdicts, max(letters, default=0))


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
        known = context.calls
        return [
            call_log.add_to(validate_material(task, result, redactor), known)
            for task, call_log, (result,) in zip(derivation_tasks, logs, answers, strict=True)
        ]

    return GroupCalls(
        calls, to_material, max((len(task.response.text) for task in derivation_tasks), default=0)
    )


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
        client = context.judge_client and context.judge_client.logging_to(call_log, purpose=DERIVE)
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
    call_log = CallLog()
    inputs = []
    for task in evaluator_tasks:
        client: Any = undeclared
        if uses_model:
            call_log = CallLog()
            client = judge_client and judge_client.logging_to(call_log)
        view = survey.views[task.question.view]
        inputs.append(
            EvaluatorInput(
                task.question, view, task.responses, task.material, task.sample, client, call_log
            )
        )
    return inputs


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
    return Calls(evaluator.answer, inputs, limits, evaluator.runs_inline and limits.seconds is None)


def _limits(component: Evaluator | Deriver, context: RunContext) -> CallLimits:
    return CallLimits(component.name, time_limit(component, context.config.calls), context.threads)


def _split_batch(answers: Any, count: int) -> list[Any]:
    """Return the answer of a batch evaluator for each of its inputs; its exception takes the place of every answer."""
    if isinstance(answers, Sequence):  # iterating a sequence can run user code too
        answers = catch_errors(partial(list, answers))
    if isinstance(answers, BaseException):
        return [answers] * count
    if not isinstance(answers, list) or len(answers) != count:
        return [
            ValueError(f"expected {count} answers from `answer_all`, one for each input")
        ] * count
    return answers


def _close_logs(inputs: Any) -> None:
    """List no later calls with an input, or a batch of them: its answer is final."""
    for client in clients_of(inputs):
        client.close_logs()


async def _await_result(result: Awaitable[Any]) -> Any:
    """Return the result or the exception; a stray cancellation is left to the gather in `_await_all`."""
    try:
        return await result
    except (GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        return error


class GroupFindings(NamedTuple):
    """The findings about a group: verdicts and material in any order, and the rewards in canonical order."""

    verdicts: Sequence[RecordedVerdict]
    material: Sequence[Material]
    rewards: Sequence[Reward]


def build_traces(group: PlannedGroup, findings: GroupFindings, context: RunContext) -> list[Trace]:
    """Return one trace for each response, in the order in which they were submitted.

    Raises ConfigError where the judge would evaluate what was trained on its own rewards, and that is refused.
    """
    plan = group.plan
    questions = plan.survey.questions
    calls = {**group.reused_results.calls, **context.calls}
    counting = (
        (verdict.question, verdict.score) for verdict in findings.verdicts if not verdict.superseded
    )
    statistics = group_statistics(questions, counting)
    in_order = sorted(findings.verdicts, key=lambda verdict: verdict.key.sort_key)
    by_response = group_verdicts_by_response(questions, [r.id for r in group.responses], in_order)
    material_of: dict[str, list[Material]] = defaultdict(list)
    for item in findings.material:
        material_of[item.response].append(item)
    reward_of = {
        response.id: reward
        for response, reward in zip(group.responses, findings.rewards, strict=True)
    }
    of_group = group_digest(group.responses)
    traces = []
    for response in group.submitted:
        verdicts = tuple(by_response[response.id])
        material = tuple(sorted(material_of[response.id], key=lambda item: item.name))
        referenced = _referenced_calls(calls, (*verdicts, *material))
        served = [call.served for call in referenced if call.served]
        made = Trace(
            task_id=plan.task_id,
            response_id=response.id,
            agent=response.agent,
            group=of_group,
            labels=response.labels,
            plan_digest=plan.digest,
            reward=reward_of[response.id],
            verdicts=verdicts,
            calls=referenced,
            material=material,
            statistics=statistics,
            purpose=permitted_purpose(context.config.purpose, context.judges, served),
            plan=plan,
        )
        traces.append(made)
    return traces


def _referenced_calls(
    calls: Mapping[str, Call], users: Iterable[RecordedVerdict | Material]
) -> tuple[Call, ...]:
    referenced = {use.id for user in users for use in user.calls}
    return tuple(calls[name] for name in sorted(referenced & calls.keys()))


def group_digest(responses: Sequence[Response]) -> str:
    """Return the digest of the group's members: their ids and contents, in canonical order."""
    return digest_of([[r.id, r.content_digest] for r in responses])


Update = dict[str, Any]
BranchNode = Callable[[ScoreState, Runtime[BatchContext]], Awaitable[Update]]
BRANCHES: tuple[str, ...] = get_args(Branch)
_NO_WORK = WaveWork()


async def score_groups(
    groups: Sequence[PlannedGroup], context: BatchContext
) -> list[list[Trace] | BaseException]:
    """Return the traces of each group of a batch, in the order in which its responses were submitted, or its error."""
    nothing: list[Any] = [()] * len(groups)
    start = ScoreState(
        groups=groups, waves=[0] * len(groups), material=nothing, verdicts=nothing, errors={}
    )
    waves = max((len(group.plan.survey.waves) for group in groups), default=0)
    limit = RunnableConfig(
        recursion_limit=4 * waves + 10
    )  # route and branches, twice if a second judge is asked
    output = await build().ainvoke(start, context=context, config=limit)
    outcomes: list[list[Trace] | BaseException] = output["outcomes"]
    return outcomes


async def _route(state: ScoreState) -> Command[str]:
    """Choose the next work. A Command makes a run a third cheaper than conditional edges, which copy every channel."""
    # response gates read the whole text
    longest = max(
        (len(response.text) for group in state["groups"] for response in group.responses), default=0
    )
    work, waves = await search_off_loop(lambda: _next_work_of_each(state), longest)
    update = {
        "work": work,
        "waves": waves,
        "verdicts": [group_work.settled_verdicts for group_work in work],
        "material": [group_work.material for group_work in work],
    }
    branches = {branch for group_work in work for branch in group_work.branches}
    return Command(goto=sorted(branches) or ["decide"], update=update)


def _next_work_of_each(state: ScoreState) -> tuple[list[WaveWork], list[int]]:
    work = []
    waves = []
    for number, (group, wave) in enumerate(zip(state["groups"], state["waves"], strict=True)):
        group_work = _NO_WORK
        if number not in state["errors"]:
            known = state["material"][number], state["verdicts"][number], group.reused_results
            group_work, wave = next_work(group.plan.survey, wave, group.responses, *known)
        work.append(group_work)
        waves.append(wave)
    return work, waves


async def _derive(state: ScoreState, runtime: Runtime[BatchContext]) -> Update:
    def prepare(group: PlannedGroup, work: WaveWork, context: RunContext) -> GroupCalls | None:
        tasks = work.derivation_tasks
        return deriver_calls(tasks, group.plan.survey, context) if tasks else None

    return await _collect("material", prepare, state, runtime.context)


def _answer_node(branch: str) -> BranchNode:
    def prepare(group: PlannedGroup, work: WaveWork, context: RunContext) -> GroupCalls | None:
        tasks = work.evaluator_tasks.get(branch)
        return evaluator_calls(tasks, group.plan.survey, context) if tasks else None

    async def node(state: ScoreState, runtime: Runtime[BatchContext]) -> Update:
        return await _collect("verdicts", prepare, state, runtime.context)

    return node


async def _collect(
    field: str,
    prepare: Callable[[PlannedGroup, WaveWork, RunContext], GroupCalls | None],
    state: ScoreState,
    context: BatchContext,
) -> Update:
    """Return what the groups with work found, in `field`, and the error of each group that has one."""
    calls = {}
    for number, (group, work) in enumerate(zip(state["groups"], state["work"], strict=True)):
        prepared = prepare(group, work, context.groups[number])
        if prepared is not None:
            calls[number] = prepared
    results = dict(
        zip(calls, await make_calls(list(calls.values()), context.groups[0]), strict=True)
    )
    errors = {
        number: result for number, result in results.items() if isinstance(result, BaseException)
    }
    findings = [
        () if number in errors else results.get(number, ())
        for number in range(len(state["groups"]))
    ]
    return {field: findings, "errors": errors}


async def _decide(state: ScoreState, runtime: Runtime[BatchContext]) -> Update:
    """Compute statistics, rewards and traces of each group. An error of a combiner is that of its group."""
    groups = state["groups"]
    errors = state["errors"]
    contexts = runtime.context.groups
    decided = [number for number in range(len(groups)) if number not in errors]
    verdicts = {
        number: mark_superseded(groups[number].plan.survey, state["verdicts"][number])
        for number in decided
    }
    inputs = [_decision_input(groups[number], verdicts[number]) for number in decided]
    rewards = compute_rewards_of_each(inputs, contexts[0].combiners, RewardRow.to_reward)
    outcomes: dict[int, list[Trace] | BaseException] = dict(errors)
    for number, its_rewards in zip(decided, rewards, strict=True):
        if isinstance(its_rewards, Exception):
            outcomes[number] = its_rewards
        else:
            findings = GroupFindings(verdicts[number], state["material"][number], its_rewards)
            outcomes[number] = catch_errors(
                partial(build_traces, groups[number], findings, contexts[number])
            )
    return {"outcomes": [outcomes[number] for number in range(len(groups))]}


def _decision_input(group: PlannedGroup, verdicts: Sequence[RecordedVerdict]) -> GroupVerdicts:
    names = [response.id for response in group.responses]
    return GroupVerdicts(group.plan.decision, group.plan.survey.questions, names, verdicts)


_BRANCH_NODES: Mapping[str, BranchNode] = {
    "derive": _derive,
    **{branch: _answer_node(branch) for branch in BRANCHES},
}


def _then_go_on(
    node: BranchNode,
) -> Callable[[ScoreState, Runtime[BatchContext]], Awaitable[Command[str]]]:
    """Return a node that goes back to `route`, or on to `decide` if this was the last wave of every group."""

    async def go_on(state: ScoreState, runtime: Runtime[BatchContext]) -> Command[str]:
        next_waves = zip(
            (group.plan.survey for group in state["groups"]), state["waves"], strict=True
        )
        has_waves = any(wave < len(survey.waves) or survey.escalated for survey, wave in next_waves)
        return Command(goto="route" if has_waves else "decide", update=await node(state, runtime))

    return go_on


@cache  # without a checkpointer, a compiled graph holds no state of a run
def build() -> CompiledStateGraph[ScoreState, BatchContext, ScoreState, ScoreOutput]:
    """Return the compiled graph: every branch leads back to `route`, which chooses the next nodes."""
    graph = StateGraph(ScoreState, context_schema=BatchContext, output_schema=ScoreOutput)
    graph.add_node("route", _route, destinations=("derive", *BRANCHES, "decide"))
    graph.add_edge(START, "route")
    for branch, node in _BRANCH_NODES.items():
        graph.add_node(branch, _then_go_on(node), destinations=("route", "decide"))  # type: ignore[arg-type]
    graph.add_node("decide", _decide)
    graph.add_edge("decide", END)
    return graph.compile(name="score")
