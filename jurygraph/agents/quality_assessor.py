"""MACRM's Quality Assessor: the steps of a response, each judged by a model or by its written arithmetic.

Each aspect of each step is sound or not, and every fault is quoted. The score is the sound share of the reasoning
(MACRM's step-level outcome reward, in our reading); `Arithmetic` takes the same share by code alone.

Each step's equalities are checked by `jurygraph.agents.maths.arithmetic`, in three readings of the text: unchanged,
without its annotations ("16 - 3 = <<16-3=13>>14" claims 16 - 3 = 14), and with the text after an annotation in place of
the annotation's own result ("9 eggs * $2 = <<9*2=18>>19" claims 9 * 2 = 19). A result that only lacks its sign after an
annotation ("5 - 8 = <<5-8=-3>>3 fewer") is not wrong, since the annotation has it.

Never called wrong are a number from an unknown source (right solutions bring in such numbers too), and an answer that
is not the last result (it is not a step, and may be in another unit). Splitting takes time linear in the text.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, get_args

from pydantic import Field, create_model, model_validator

from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import (
    find_answer_line_start,
    find_final_answer,
    find_reasoning_range,
    find_step_markers,
    measure_longest_run,
)
from jurygraph.agents.maths.labels import iter_sentence_ends
from jurygraph.agents.roles import (
    CodeEvaluator,
    EvaluatorInput,
    QuoteText,
    ReasonText,
    SingleCallEvaluator,
    ask_model,
    describe_missing_quotes,
    explain_rejected_quote,
    failed_verdict,
    mark_unsupported,
    require_client,
    shared_prompt_variables,
)
from jurygraph.messages import shorten
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import to_searchable_text
from jurygraph.schema import Evidence, FrozenModel, Question, TaskView, Verdict
from jurygraph.schema.frozen_model import PositiveInt, StrictBool
from jurygraph.schema.task import chat_to_prompt_text

if TYPE_CHECKING:
    from jurygraph.models.judge_client import ParsedReply

MAX_REASONING_STEPS = (
    1_000  # the largest number of steps of one response; the last of them contains the rest
)
_LETTER_OR_DIGIT_PATTERN = re.compile(r"[^\W_]")
_LINE_END_PATTERN = re.compile(r"\n")
_LIST_NUMBER_PATTERN = re.compile(r"\W{0,8}[0-9]{1,3}")  # of "1. She eats"


class ReasoningStep(NamedTuple):
    """One step of a response: `response[start:end] == text`, numbered from 1 in text order."""

    number: int
    start: int
    end: int
    text: str


def split_steps(text: str) -> tuple[ReasoningStep, ...]:
    """Return the steps of the reasoning in `text`, in their order; none if it has none.

    The reasoning is the text inside `<think>…</think>`, else the text before the final answer: before its line or, if
    that has several sentences, its sentence. With digits before the answer that sentence is the last step too: "9 * 2 =
    18, so the answer is 18". A step begins at each marker "1." or "Step 2:" if these count up to 2 at least, and else
    at each line (and so at "First, " there: after it, lines are steps as anywhere); in a single line, at each sentence.
    Text before the first marker belongs to the first step. Every letter or digit of the reasoning belongs to one step,
    and every step has at least one.
    """
    start, end = find_reasoning_range(text)
    is_single_line = "\n" not in text[start:end].strip()
    answer = find_final_answer(text) if end - start == len(text) else None
    if answer is not None:
        line = find_answer_line_start(text, answer)
        sentence = [line, *_find_sentence_starts(text, line, answer.start)][-1]
        has_calculation = any(map(str.isdigit, text[sentence : answer.start]))
        end = answer.end if has_calculation else sentence
    step_boundaries = [start, *_find_step_starts(text, start, end, is_single_line), end]
    steps = []
    for step_start, step_end in pairwise(step_boundaries):
        passage = text[step_start:step_end]
        if _LETTER_OR_DIGIT_PATTERN.search(passage):
            blank_count = len(passage) - len(passage.lstrip())
            steps.append((step_start + blank_count, step_start + len(passage.rstrip())))
    if len(steps) > MAX_REASONING_STEPS:
        rest = (steps[MAX_REASONING_STEPS - 1][0], steps[-1][1])
        steps[MAX_REASONING_STEPS - 1 :] = [rest]
    return tuple(
        ReasoningStep(number, start, end, text[start:end])
        for number, (start, end) in enumerate(steps, start=1)
    )


def _find_step_starts(text: str, start: int, end: int, is_single_line: bool) -> Iterable[int]:
    numeric_step_markers = [
        step_marker for step_marker in find_step_markers(text[start:end]) if not step_marker.is_word
    ]
    if measure_longest_run(numeric_step_markers) > 1:
        return (start + step_marker.start for step_marker in numeric_step_markers[1:])
    if is_single_line:
        return _find_sentence_starts(text, start, end)
    return (line.end() for line in _LINE_END_PATTERN.finditer(text, start, end))


def _find_sentence_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the starts of sentences after the first: not after a bare number ("1. She") or letters ("5 p.m. today")."""
    for stop in iter_sentence_ends(text, start, end):
        if not _LIST_NUMBER_PATTERN.fullmatch(text, start, stop) and (
            stop < 2 or text[stop - 2] != "."
        ):
            start = stop + 1
            yield start


_ANNOTATED_CALCULATION_PATTERN = re.compile(
    r"<<([^<>\n]{0,400})=([^<>=\n]{0,400})>>(?=[$£€]?(\.?[0-9][0-9.,]{0,99}))"
)
_ROUNDING_TOLERANCE = Fraction(1, 10**9)


class UnsoundStep(NamedTuple):
    """A fault of the step of this number: its aspect, the reason, the evidence, and, without any evidence, what is
    `missing_evidence_text`."""

    aspect: "ReasoningAspect"
    step: int
    reason: str
    evidence: tuple[Evidence, ...]
    missing_evidence_text: str = ""


def find_false_calculations(
    query: str, text: str, steps: Sequence[ReasoningStep]
) -> list[UnsoundStep]:
    """Return the false calculations in a response, in the order of the text; one of several that overlap.

    One outside all steps counts to the last step before it, or to the first: nothing can be hidden behind the answer or
    outside the tags. Text that also occurs in the query is not the response's ("Why is 2 + 2 = 5 wrong?").
    """
    false_steps = []
    previous_end = 0
    for calculation in sorted(
        _find_false_equalities(text), key=lambda step: (step.start, -step.end)
    ):
        start = calculation.start
        end = calculation.end
        quote = text[start:end]
        if quote not in query and start >= previous_end:
            number = max(1, bisect_right(steps, start, key=lambda step: step.start))
            reason = f"{shorten(quote, 100)!r}, but {calculation.truth}"
            evidence = Evidence(quote=quote, start=start, end=end, verified=True)
            false_steps.append(UnsoundStep("accuracy", number, reason, (evidence,)))
            previous_end = end
    return false_steps


def _find_false_equalities(text: str) -> Iterator[arithmetic.CalculationStep]:
    yield from (calculation for calculation in arithmetic.steps(text) if not calculation.is_right)
    # As many blanks as the annotation has characters, so that all other offsets stay.
    text_without_annotations = _ANNOTATED_CALCULATION_PATTERN.sub(
        lambda match: " " * len(match[0]), text
    )
    for reading in (text_without_annotations, _blank_out_continued_results(text)):
        if reading == text:
            continue
        for step in arithmetic.steps(reading):
            if step.is_right:
                continue
            is_sign_wrong = step.value is not None and abs(
                step.value + step.claimed
            ) <= _ROUNDING_TOLERANCE * abs(step.claimed)
            if not is_sign_wrong:
                yield step


def _blank_out_continued_results(text: str) -> str:
    """Blank out the result of each annotation that another number follows, and put a boundary before it."""

    def blank_out_result(match: re.Match[str]) -> str:
        if match[2] == match[3]:
            return match[0]
        blank_text = " " * (len(match[2]) + 2)
        return f" ;{match[1]}={blank_text}"

    return _ANNOTATED_CALCULATION_PATTERN.sub(blank_out_result, text)


ReasoningAspect = Literal["accuracy", "facts", "coherence"]
REASONING_ASPECTS: tuple[ReasoningAspect, ...] = get_args(ReasoningAspect)


# The next models have no docstrings because these would be part of the JSON schema that a model is given. Class names
# are visible too, in messages about missing fields.


# In a reply it comes before the flags of the aspects, so that the fault is described first.
class FaultReply(FrozenModel):
    aspect: ReasoningAspect
    reason: ReasonText
    quote: QuoteText


class StepReply(FrozenModel):
    step: PositiveInt
    faults: Annotated[tuple[FaultReply, ...], Field(max_length=len(REASONING_ASPECTS))]
    accuracy: StrictBool
    facts: StrictBool
    coherence: StrictBool

    @model_validator(mode="after")
    def _check_faults(self) -> "StepReply":
        fault_aspects = sorted(fault.aspect for fault in self.faults)
        unsound_aspects = sorted(
            aspect for aspect in REASONING_ASPECTS if not getattr(self, aspect)
        )
        if fault_aspects != unsound_aspects:
            raise ValueError(
                f"faults name {', '.join(fault_aspects) or 'none'}, and false are "
                f"{', '.join(unsound_aspects) or 'none'}: give one fault for each that is false"
            )
        return self


class StepsReply(FrozenModel):
    steps: tuple[StepReply, ...]

    @model_validator(mode="after")
    def _check_step_numbers(self) -> "StepsReply":
        numbers = [step.step for step in self.steps]
        if numbers != list(range(1, len(numbers) + 1)):
            raise ValueError(
                f"the steps are {numbers}: give each once, in order, from 1 to {len(numbers)}"
            )
        return self


@lru_cache(maxsize=128)
def steps_reply_model(number: int) -> type[StepsReply]:
    steps = Annotated[tuple[StepReply, ...], Field(min_length=number, max_length=number)]
    return create_model("StepsReply", __base__=StepsReply, steps=(steps, ...))


NO_STEPS_VERDICT = Verdict(score=0.0, met=False, reason="no step of reasoning is written")
"""The verdict on a response without any step, in which nothing is sound."""

MAX_STEPS_JUDGED = 60  # the largest number of steps judged in one call; a response with more causes a failed verdict
MAX_FACTS_LENGTH = 20_000
"""The longest facts of a task, in characters of JSON, shown in a prompt; longer ones need `facts.confirmed`."""
REPLY_TOKENS_PER_STEP = 100
"""The number of tokens reserved per step in a reply; a sound step needs a third of it."""


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
    branch = "specialists"
    shares = MappingProxyType(dict.fromkeys(REASONING_ASPECTS, 1.0))

    def __init__(self) -> None:
        self._prompt = load_prompt("steps")
        self.version = f"1 prompt {self._prompt.full_version}"

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, aspect) for aspect in REASONING_ASPECTS]

    async def judge_response(self, inputs: EvaluatorInput) -> Mapping[str, Verdict]:
        text = inputs.response.text
        steps = split_steps(text)
        if not steps:
            return dict.fromkeys(REASONING_ASPECTS, NO_STEPS_VERDICT)
        if len(steps) > MAX_STEPS_JUDGED:
            why = f"the response has {len(steps)} steps, and at most {MAX_STEPS_JUDGED} are judged"
            return dict.fromkeys(REASONING_ASPECTS, Verdict.fail("too-long", why, cause="response"))
        client = require_client(inputs.client)
        variables = shared_prompt_variables(inputs)
        variables["steps"] = [{"name": f"step_{step.number}", "text": step.text} for step in steps]
        variables["facts"] = facts_for_prompt(inputs.task)
        reply_model = steps_reply_model(len(steps))
        max_tokens = REPLY_TOKENS_PER_STEP * len(steps)
        request = client.request(
            self._prompt, reply_model, variables, sample=inputs.sample, max_reply_tokens=max_tokens
        )
        false_calculations = find_false_calculations(variables["query"], text, steps)
        errors_by_step = {error.step: error for error in reversed(false_calculations)}
        are_quotes_checked = client.safety.evidence != "off"

        def read_faults(reply: StepsReply) -> Iterator[UnsoundStep]:
            for step_reply in reply.steps:
                step = steps[step_reply.step - 1]
                for fault in step_reply.faults:
                    # Code has found the step's arithmetic wrong already, and shows where.
                    if fault.aspect != "accuracy" or step.number not in errors_by_step:
                        yield _locate_fault(step, fault, are_quotes_checked)

        def find_reply_flaw(reply: StepsReply) -> str | None:
            problems = [
                f"step_{fault.step}: {fault.aspect} is not sound, {fault.missing_evidence_text}"
                for fault in read_faults(reply)
                if fault.missing_evidence_text
            ]
            return describe_missing_quotes(problems, "that very step")

        def read(reply: "ParsedReply[StepsReply]") -> Mapping[str, Verdict]:
            faults = [*errors_by_step.values(), *read_faults(reply.value)]
            verdicts: dict[str, Verdict] = {}
            for aspect in REASONING_ASPECTS:
                aspect_faults = [fault for fault in faults if fault.aspect == aspect]
                verdicts[aspect] = _build_verdict(aspect_faults, len(steps), reply.call.id)
            return verdicts

        return await ask_model(
            client,
            request,
            reply_model,
            read=read,
            fail=lambda fault: dict.fromkeys(REASONING_ASPECTS, failed_verdict(fault)),
            find_reply_flaw=find_reply_flaw,
            character_count=len(text),
        )


def _locate_fault(step: ReasoningStep, fault: FaultReply, are_quotes_checked: bool) -> UnsoundStep:
    """Return a fault with its evidence, searched in that step unless `are_quotes_checked` is false."""
    evidence = (Evidence(quote=fault.quote),) if fault.quote.strip() else ()
    missing_evidence_text = ""
    if are_quotes_checked:
        text = to_searchable_text(step.text)
        passage = text.find_support(fault.quote)
        if passage is not None:
            start = step.start + passage.start
            end = step.start + passage.end
            evidence = (Evidence(quote=passage.text, start=start, end=end, verified=True),)
        elif evidence:
            why = explain_rejected_quote(fault.quote, text)
            why = why.replace("in the response", "in that step")
            missing_evidence_text = f"and quotes '{shorten(fault.quote, 80)}' ({why})"
            evidence = ()
        else:
            missing_evidence_text = "and nothing is quoted for it"
    return UnsoundStep(fault.aspect, step.number, fault.reason, evidence, missing_evidence_text)


def _build_verdict(
    unsound_steps: Sequence[UnsoundStep], steps: int, call: str | None = None
) -> Verdict:
    """Return the verdict on an aspect, which depends on its first unsound step only."""
    if not unsound_steps:
        return Verdict(score=1.0, met=True, reason=f"none of {steps} steps is unsound", call=call)
    unsound_steps = sorted(unsound_steps, key=lambda fault: fault.step)
    first, *others = unsound_steps
    reason = f"step {first.step} of {steps} is unsound: {first.reason}"
    if others:
        reason += f"; so are {', '.join(str(other.step) for other in others)}"
    evidence = dict.fromkeys(chain.from_iterable(fault.evidence for fault in unsound_steps))
    verdict = Verdict(
        score=(first.step - 1) / steps,
        met=False,
        native=first.step,
        reason=reason,
        evidence=tuple(evidence),
        call=call,
    )
    if not first.missing_evidence_text:
        return verdict
    # an unsound step is the worse of the two cases already: it stands under either rule
    why = f"says step {first.step} unsound, {first.missing_evidence_text}"
    return mark_unsupported(verdict, why, "preferred")


def facts_for_prompt(view: TaskView) -> str | None:
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
    branch = "specialists"

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        steps = split_steps(inputs.response.text)
        if not steps:
            return NO_STEPS_VERDICT
        false_steps = find_false_calculations(
            chat_to_prompt_text(inputs.task.query), inputs.response.text, steps
        )
        reason = f"in none of {len(steps)} steps a false calculation is written"
        if false_steps:
            first = false_steps[0]
            reason = f"step {first.step} of {len(steps)} is wrong: {first.reason}"
        return _build_verdict(false_steps, len(steps)).model_copy(update={"reason": reason})
