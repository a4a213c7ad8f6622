"""The calls that a branch of the score graph makes for one group, and what becomes of their results."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from jurygraph.agents.roles import (
    Deriver,
    DeriverInput,
    Evaluator,
    EvaluatorInput,
    UndeclaredClient,
)
from jurygraph.errors import RUN_ENDING
from jurygraph.graphs.answers import to_recorded_verdicts, validate_material
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.routing import (
    DueDerivation,
    DueJudgement,
    make_stamp,
)
from jurygraph.graphs.time_limits import CallTimeLimits, new_contextvars_context, time_limit
from jurygraph.graphs.user_calls import UserCalls
from jurygraph.models.request import DERIVE_CALL_PURPOSE, CallLog
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import (
    Failure,
    Material,
    RecordedVerdict,
    Response,
    Survey,
    TaskView,
    Verdict,
)

if TYPE_CHECKING:
    from jurygraph.graphs.investigate_graph import ToolInvestigator

MakeVerdicts = Callable[[Redactor], list[RecordedVerdict]]
"""Returns the verdicts of an answer that has arrived."""
NO_MODEL_FAILURE = Failure(
    cause="infrastructure", kind="no-model", message=Evaluator.no_model_message
)


@dataclass(frozen=True, slots=True)
class NodeCalls:
    """The calls that a node makes for one group.

    `validate` turns the answers of each into what the node finds, with a redactor; `character_count` is the length of
    the longest text that it searches.
    """

    user_calls: Sequence[UserCalls]
    validate: Callable[[Sequence[Sequence[Any]], Redactor], list[Any]]
    character_count: int

    def start(self, langsmith: bool) -> "list[asyncio.Task[Any]]":
        """Start the calls, and return their tasks; those of two groups, or of two evaluators, share no context."""
        for calls in self.user_calls:
            new_contextvars_context(langsmith).run(calls.start)
        return self.tasks

    @property
    def tasks(self) -> "list[asyncio.Task[Any]]":
        return list(chain.from_iterable(calls.tasks for calls in self.user_calls))

    def findings(self, redactor: Redactor) -> list[Any]:
        """Return what the node finds, once all tasks are done. Raises an error that ends the run."""
        answers = [calls.collect_answers() for calls in self.user_calls]
        for answer in chain.from_iterable(answers):
            if isinstance(answer, RUN_ENDING):
                raise answer
        return self.validate(answers, redactor)


def evaluator_calls(
    judgements: Sequence[DueJudgement],
    survey: Survey,
    context: GraphContext,
    note_answer: Callable[[MakeVerdicts], object],
) -> NodeCalls:
    """Return the calls for all judgements of a group; they become verdicts, stamped, with their calls and steps.

    The judgements of one evaluator and judge follow each other, in their order: a batch asks one model. `note_answer`
    gets each answer as it arrives, if the context has a listener: to make verdicts of them one by one costs more.
    """
    judgements_by_evaluator = defaultdict(list)
    stamp_by_question = {}
    for judgement in judgements:
        question = judgement.question
        judgements_by_evaluator[question.evaluator, judgement.judge].append(judgement)
        if question.id not in stamp_by_question:
            stamp_by_question[question.id] = make_stamp(question, survey.views[question.view])

    def make_verdicts(
        judgement: DueJudgement, judgement_input: EvaluatorInput, answer: Any, redactor: Redactor
    ) -> list[RecordedVerdict]:
        stamp = stamp_by_question[judgement.question.id]
        add_calls = judgement_input.call_log.add_calls_to_result
        return [
            add_calls(verdict, context.sent_calls, judgement_input.steps)
            for verdict in to_recorded_verdicts(judgement, answer, stamp, redactor)
        ]

    evaluators_with_inputs = []
    user_calls = []
    for (name, judge), evaluator_judgements in judgements_by_evaluator.items():
        inputs = _make_evaluator_inputs(name, judge, evaluator_judgements, survey, context)
        if context.listener is not None:
            inputs = [
                _with_answer_report(item, partial(make_verdicts, judgement, item), note_answer)
                for judgement, item in zip(evaluator_judgements, inputs, strict=True)
            ]
        evaluators_with_inputs.append((name, evaluator_judgements, inputs))
        user_calls.append(_make_user_calls(name, judge, inputs, context))

    def to_verdicts(answers: Sequence[Sequence[Any]], redactor: Redactor) -> list[RecordedVerdict]:
        verdicts: list[RecordedVerdict] = []
        for (name, evaluator_judgements, inputs), evaluator_answers in zip(
            evaluators_with_inputs, answers, strict=True
        ):
            first = len(verdicts)
            for item in zip(evaluator_judgements, inputs, evaluator_answers, strict=True):
                verdicts += make_verdicts(*item, redactor)
            if context.first_verdicts_check is not None:
                context.first_verdicts_check.note(name, verdicts[first:])
        return verdicts

    responses = chain.from_iterable(judgement.responses for judgement in judgements)
    return NodeCalls(user_calls, to_verdicts, _longest_text_length(responses))


def _with_answer_report(
    judgement_input: EvaluatorInput,
    make_verdicts: Callable[..., list[RecordedVerdict]],
    note_answer: Callable[[MakeVerdicts], object],
) -> EvaluatorInput:
    """Return an input whose answer is noted as soon as it arrives."""
    loop = asyncio.get_running_loop()

    def report(answer: Any) -> None:
        # user code may be in a thread
        loop.call_soon_threadsafe(note_answer, partial(make_verdicts, answer))

    return replace(judgement_input, report=report)


def deriver_calls(
    derivations: Sequence[DueDerivation], survey: Survey, context: GraphContext
) -> NodeCalls:
    """Return the calls for all derivations of a group; they become material, in the order of the derivations."""
    call_logs = [CallLog() for _ in derivations]
    user_calls = [
        _make_derivation_calls(derivation, call_log, survey, context)
        for derivation, call_log in zip(derivations, call_logs, strict=True)
    ]

    def to_material(answers: Sequence[Sequence[Any]], redactor: Redactor) -> list[Material]:
        sent_calls = context.sent_calls
        materials = []
        for derivation, call_log, (result,) in zip(derivations, call_logs, answers, strict=True):
            material = validate_material(derivation, result, redactor)
            materials.append(call_log.add_calls_to_result(material, sent_calls))
        return materials

    responses = (derivation.response for derivation in derivations)
    return NodeCalls(user_calls, to_material, _longest_text_length(responses))


def _longest_text_length(responses: Iterable[Response]) -> int:
    return max((len(response.text) for response in responses), default=0)


def _make_derivation_calls(
    due_derivation: DueDerivation, call_log: CallLog, survey: Survey, context: GraphContext
) -> UserCalls:
    deriver = context.derivers[due_derivation.derivation.deriver]
    view = survey.views[due_derivation.derivation.view]
    response = due_derivation.response
    limits = _make_call_time_limits(deriver, context)
    if deriver.uses_model and context.config.model == "none":
        failed_material = Material(name=deriver.gives, status="failed", failure=NO_MODEL_FAILURE)
        return UserCalls(lambda _: failed_material, [()], limits, runs_inline=True)
    client: Any = UndeclaredClient(deriver.name)
    if deriver.uses_model:
        investigator = _make_investigator(deriver, view, (response,), context)
        client = context.judge_client and context.judge_client.with_call_logs(
            call_log, purpose=DERIVE_CALL_PURPOSE, investigator=investigator
        )
    deriver_input = DeriverInput(view, response, due_derivation.material, client)
    return UserCalls(deriver.derive, [deriver_input], limits)


def _make_evaluator_inputs(
    name: str,
    judge: str | None,
    judgements: Sequence[DueJudgement],
    survey: Survey,
    context: GraphContext,
) -> list[EvaluatorInput]:
    """Return an evaluator's input for each of its judgements, with a log of its own."""
    evaluator = context.evaluators[name]
    judge_client = context.client_by_judge.get(judge)
    undeclared_client = UndeclaredClient(name)
    inputs = []
    for judgement in judgements:
        client: Any = undeclared_client
        call_log = CallLog()
        question = judgement.question
        view = survey.views[question.view]
        responses = judgement.shown_responses
        if question.reference == "hidden":
            view = view.model_copy(update={"reference": None})
        if evaluator.uses_model:
            responses = tuple(responses)  # a model is asked about all at once
            investigator = _make_investigator(evaluator, view, responses, context)
            client = judge_client and judge_client.with_call_logs(
                call_log, investigator=investigator
            )
        inputs.append(
            EvaluatorInput(
                question,
                view,
                responses,
                judgement.material,
                judgement.sample,
                client,
                call_log,
            )
        )
    return inputs


def _make_investigator(
    owner: Evaluator | Deriver,
    view: TaskView,
    responses: tuple[Response, ...],
    context: GraphContext,
) -> "ToolInvestigator | None":
    """Return what lets the model look things up for one judgement; None without tools."""
    if owner.toolset is None:
        return None
    # Imported lazily: few judges have tools, and the module imports this one.
    from jurygraph.graphs.investigate_graph import ToolInvestigator

    return ToolInvestigator(owner.toolset, view, responses, context)


def _make_user_calls(
    name: str, judge: str | None, inputs: Sequence[EvaluatorInput], context: GraphContext
) -> UserCalls:
    evaluator = context.evaluators[name]
    limits = _make_call_time_limits(evaluator, context)
    if evaluator.uses_model and judge is None and context.config.model == "none":
        failure = NO_MODEL_FAILURE.model_copy(update={"message": evaluator.no_model_message})
        abstained_verdict = Verdict(status="abstained", reason=failure.message, failure=failure)
        return UserCalls(lambda _: abstained_verdict, inputs, limits, runs_inline=True)
    if evaluator.batched:
        return UserCalls(evaluator.answer_all, [tuple(inputs)], limits, is_batch_function=True)
    runs_inline = evaluator.runs_inline and limits.seconds is None
    return UserCalls(evaluator.answer, inputs, limits, runs_inline)


def _make_call_time_limits(component: Evaluator | Deriver, context: GraphContext) -> CallTimeLimits:
    return CallTimeLimits(
        component.name, time_limit(component, context.config.calls), context.threads
    )
