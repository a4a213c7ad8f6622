"""Judge each step of a response by a model: its reasoning, its agreement with the facts, and its coherence.

Each aspect of each step is sound or not, and every fault is quoted. The score is the sound share of the reasoning
(MACRM's step-level outcome reward, in our reading); `Arithmetic` takes the same share by code alone.
"""

import json
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field, create_model, model_validator

from jurygraph.agents.ask import (
    Reason,
    SingleCallEvaluator,
    ask_model,
    describe_missing_quotes,
    explain_rejected_quote,
    failed_verdict,
    mark_unsupported,
    shared_prompt_variables,
)
from jurygraph.agents.quality_assessor.steps import Segment, UnsoundStep, find_false_calculations, split_steps
from jurygraph.agents.roles import CodeEvaluator, EvaluatorInput
from jurygraph.messages import shorten
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import SearchableText
from jurygraph.schema import Branch, Evidence, FrozenModel, Question, TaskView, Verdict
from jurygraph.schema.frozen_model import Flag
from jurygraph.schema.task import chat_text

if TYPE_CHECKING:
    from jurygraph.models.judge_client import ParsedReply

Aspect = Literal["accuracy", "facts", "coherence"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


# The next models have no docstrings because these would be part of the JSON schema that a model is given. Class names
# are visible too, in messages about missing fields.


class FaultReply(FrozenModel):  # comes before the flags of the aspects, so that the fault is described first
    aspect: Aspect
    reason: Reason
    quote: Annotated[str, Field(max_length=1000)]


class StepReply(FrozenModel):
    step: Annotated[int, Field(strict=True, ge=1)]
    faults: Annotated[tuple[FaultReply, ...], Field(max_length=len(ASPECTS))]
    accuracy: Flag
    facts: Flag
    coherence: Flag

    @model_validator(mode="after")
    def _check_faults(self) -> "StepReply":
        fault_aspects = sorted(fault.aspect for fault in self.faults)
        unsound = sorted(aspect for aspect in ASPECTS if not getattr(self, aspect))
        if fault_aspects != unsound:
            named = ", ".join(fault_aspects) or "none"
            false = ", ".join(unsound) or "none"
            raise ValueError(f"faults name {named}, and false are {false}: give one fault for each that is false")
        return self


class StepsReply(FrozenModel):
    steps: tuple[StepReply, ...]

    @model_validator(mode="after")
    def _check_numbers(self) -> "StepsReply":
        numbers = [step.step for step in self.steps]
        if numbers != list(range(1, len(numbers) + 1)):
            raise ValueError(f"the steps are {numbers}: give each once, in order, from 1 to {len(numbers)}")
        return self


@lru_cache(maxsize=128)
def steps_reply_model(number: int) -> type[StepsReply]:
    fields: Any = {"steps": (Annotated[tuple[StepReply, ...], Field(min_length=number, max_length=number)], ...)}
    return create_model("StepsReply", __base__=StepsReply, **fields)


NO_STEPS = Verdict(score=0.0, met=False, reason="no step of reasoning is written")
"""The verdict on a response without any step, in which nothing is sound."""

MAX_STEPS_JUDGED = 60  # the largest number of steps judged in one call; a response with more causes a failed verdict
MAX_FACTS_LENGTH = 20_000
"""The longest facts of a task, in characters of JSON, shown in a prompt; longer ones need `facts.confirmed`."""
TOKENS_PER_STEP = 100  # the number of tokens reserved per step in a reply; a sound step needs a third of it


class Reasoning(SingleCallEvaluator):
    """The step reward of each aspect: the share of the steps before the first that the model finds unsound.

    `accuracy`: the reasoning is right; `facts`: it agrees with the task, the reference and the task's facts;
    `coherence`: it follows from the preceding steps. One call judges all steps of a response, and `native` is the
    number of the first unsound one. Arithmetic that code finds to be wrong is inaccurate, whatever the model says.

    A fault lowers the score, so it needs a quotation of the error from that very step. A response could profit from
    making the judge misquote, so a fault without one is never dropped: the model gets one chance to repair it; then the
    step stays unsound, and if it is the first one, which is decisive, the verdict is marked `unsupported`. A sound step
    needs no quotation, since quoting the step itself would prove nothing. The defence against a response
    that praises its own steps is the fences, one per step, so that none can pass for another, and the arithmetic check.
    """

    name = "quality.reasoning"
    branch: Branch = "specialists"
    shares: Mapping[str, float] = MappingProxyType(dict.fromkeys(ASPECTS, 1.0))

    def __init__(self) -> None:
        self._prompt = load_prompt("steps")
        self.version = f"1 prompt {self._prompt.full_version}"

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, aspect) for aspect in ASPECTS]

    async def judge_response(self, inputs: EvaluatorInput) -> Mapping[str, Verdict]:
        """Return the verdict on each aspect of a response."""
        steps = split_steps(inputs.response.text)
        if not steps:
            return dict.fromkeys(ASPECTS, NO_STEPS)
        if len(steps) > MAX_STEPS_JUDGED:
            message = f"the response has {len(steps)} steps, and at most {MAX_STEPS_JUDGED} are judged"
            return dict.fromkeys(ASPECTS, Verdict.fail("too-long", message, cause="response"))
        client = inputs.client
        assert client is not None, "a model is required"
        shared = shared_prompt_variables(inputs)
        shown_steps = [{"name": f"step_{step.number}", "text": step.text} for step in steps]
        variables = {**shared, "steps": shown_steps, "facts": _facts(inputs.task)}
        reply_model = steps_reply_model(len(steps))
        room = TOKENS_PER_STEP * len(steps)
        request = client.request(self._prompt, reply_model, variables, sample=inputs.sample, max_reply_tokens=room)
        false_calculations = find_false_calculations(shared["query"], inputs.response.text, steps)
        errors = {error.step: error for error in reversed(false_calculations)}
        read_faults = partial(_read_faults, steps, errors, client.safety.evidence != "off")

        def read(reply: "ParsedReply[StepsReply]") -> Mapping[str, Verdict]:
            faults = [*(("accuracy", error) for error in errors.values()), *read_faults(reply.value)]
            unsound = {aspect: [fault for name, fault in faults if name == aspect] for aspect in ASPECTS}
            return {aspect: _build_verdict(unsound[aspect], len(steps), reply.call.id) for aspect in ASPECTS}

        return await ask_model(
            client,
            request,
            reply_model,
            read=read,
            fail=lambda fault: dict.fromkeys(ASPECTS, failed_verdict(fault)),
            find_flaw=lambda reply: _flaw(read_faults(reply)),
            letters=len(inputs.response.text),
        )


def _read_faults(
    steps: Sequence[Segment], errors: Container[int], is_checked: bool, reply: StepsReply
) -> list[tuple[Aspect, UnsoundStep]]:
    found = ((steps[step.step - 1], fault) for step in reply.steps for fault in step.faults)
    return [
        (fault.aspect, _locate(step, fault, is_checked))
        for step, fault in found
        if fault.aspect != "accuracy" or step.number not in errors
    ]


def _flaw(faults: Sequence[tuple[Aspect, UnsoundStep]]) -> str | None:
    lacking = ((aspect, fault) for aspect, fault in faults if fault.lacking)
    problems = (f"step_{fault.step}: {aspect} is not sound, {fault.lacking}" for aspect, fault in lacking)
    return describe_missing_quotes(problems, "that very step")


def _locate(step: Segment, fault: FaultReply, is_checked: bool) -> UnsoundStep:
    """Return a fault with its evidence, searched in that step unless `is_checked` is false."""
    if not is_checked:
        evidence = (Evidence(quote=fault.quote),) if fault.quote.strip() else ()
        return UnsoundStep(step.number, fault.reason, evidence)
    text = SearchableText(step.text)
    passage = text.find_support(fault.quote)
    if passage is not None:
        start = step.start + passage.start
        end = step.start + passage.end
        evidence = (Evidence(quote=passage.text, start=start, end=end, verified=True),)
        return UnsoundStep(step.number, fault.reason, evidence)
    why = explain_rejected_quote(fault.quote, text).replace("in the response", "in that step")
    quotes = f"and quotes '{shorten(fault.quote, 80)}' ({why})"
    lacking = quotes if fault.quote.strip() else "and nothing is quoted for it"
    return UnsoundStep(step.number, fault.reason, (), lacking)


def _build_verdict(unsound: Sequence[UnsoundStep], steps: int, call: str) -> Verdict:
    """Return the verdict on an aspect, which depends on its first unsound step only."""
    if not unsound:
        return Verdict(score=1.0, met=True, reason=f"none of {steps} steps is unsound", call=call)
    unsound = sorted(unsound, key=lambda fault: fault.step)
    first, *others = unsound
    later = f"; so are {', '.join(str(other.step) for other in others)}" if others else ""
    reason = f"step {first.step} of {steps} is unsound: {first.reason}{later}"
    evidence = tuple(dict.fromkeys(passage for step in unsound for passage in step.evidence))
    score = (first.step - 1) / steps
    verdict = Verdict(score=score, met=False, native=first.step, reason=reason, evidence=evidence, call=call)
    if not first.lacking:
        return verdict
    # an unsound step is the worse of the two cases already: it stands under either rule
    return mark_unsupported(verdict, f"says step {first.step} unsound, {first.lacking}", "preferred")


def _facts(view: TaskView) -> str | None:
    """Return the facts of a task as a prompt shows them; None if there are none or they are too long."""
    if view.facts is None:
        return None
    facts_json = json.dumps(view.facts, ensure_ascii=False, sort_keys=True)
    return facts_json if len(facts_json) <= MAX_FACTS_LENGTH else None


class Arithmetic(CodeEvaluator):
    """The step reward by the written arithmetic: the share of the steps before the first one with a false calculation.

    `native` is that step's number. Steps without a calculation cannot fail: without any calculation the score is 1, so
    combine this with a reward for written calculations (`maths.calculation`).
    """

    name = "quality.arithmetic"
    branch: Branch = "specialists"

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        steps = split_steps(inputs.response.text)
        if not steps:
            return NO_STEPS
        errors = find_false_calculations(chat_text(inputs.task.query), inputs.response.text, steps)
        if not errors:
            return Verdict(score=1.0, met=True, reason=f"in none of {len(steps)} steps a false calculation is written")
        first = errors[0].step
        reason = f"step {errors[0].step} of {len(steps)} is wrong: {errors[0].reason}"
        score = (first - 1) / len(steps)
        evidence = tuple(passage for error in errors for passage in error.evidence)
        return Verdict(score=score, met=False, native=first, reason=reason, evidence=evidence)
