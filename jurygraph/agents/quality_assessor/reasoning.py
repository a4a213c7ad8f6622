"""Whether each step of a response is right, agrees with what is known, and follows from what stands before it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from jurygraph.agents.judging.evaluator import shared
from jurygraph.agents.judging.one_call import OneCall
from jurygraph.agents.judging.quotations import why_no_support
from jurygraph.agents.quality_assessor.arithmetic import Slip, slips
from jurygraph.agents.quality_assessor.reward import NO_STEPS, step_reward
from jurygraph.agents.quality_assessor.segments import Segment, segments
from jurygraph.agents.quality_assessor.stated import ASPECTS, FaultStated, StepsStated, steps_stated
from jurygraph.agents.roles import Ask
from jurygraph.models.faults import Fault
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import Text
from jurygraph.schema import Branch, Evidence, Failure, Question, TaskView, Verdict
from jurygraph.sources.complaint import shortened

MOST_JUDGED = 60
"""Steps judged in one call; a response with more is a failed verdict that it caused."""
FACTS_SHOWN = 20_000
"""Characters of a task's facts, as JSON, that a prompt shows; longer ones are for `facts.confirmed` to look up."""
ROOM = 100
"""Tokens that a reply may take for a step; one that is sound takes a third of it."""
_HINT = "quote from that very step letter by letter, eight letters or more, or decide anew"
_SHOWN = 80


class _Found(NamedTuple):
    """Something wrong with a step: its number, why, where it stands, and if that is nowhere, what is `lacking`."""

    step: int
    reason: str
    evidence: tuple[Evidence, ...]
    lacking: str = ""


class Reasoning(OneCall):
    """The step reward of each aspect: the share of the steps before the first that a model finds unsound.

    `accuracy`: its reasoning is right; `facts`: it agrees with the task, the reference and the task's facts;
    `coherence`: it follows from what stands before. One call judges all steps of a response, and `native` is the number
    of the first unsound one. What code finds to be wrong arithmetic is inaccurate, whatever the model says.

    A fault lowers the score, so what it needs is a quotation of what is wrong, from that very step. A response could
    profit where it makes a judge misquote: so a fault without one is never dropped. The model is told of it once; then
    the verdict is failed, of cause `response`, unless a fault at an earlier step stands, which decides by itself. That
    a step is sound needs no quotation: quoting the step itself would prove nothing. Against a response that praises
    its own steps stand the fences, each step in one of its own, so that none can pass for others, and the arithmetic.
    """

    name = "quality.reasoning"
    shares: Mapping[str, float] = MappingProxyType(dict.fromkeys(ASPECTS, 1.0))

    def __init__(self) -> None:
        self._prompt = load_prompt("steps")
        self.version = f"1 prompt {self._prompt.edition}"

    @property
    def branch(self) -> Branch:
        return "specialists"

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, aspect) for aspect in ASPECTS]

    async def judged(self, ask: Ask) -> Mapping[str, Verdict]:
        """The verdict on each aspect of a response."""
        steps = segments(ask.response.text)
        if not steps:
            return dict.fromkeys(ASPECTS, NO_STEPS)
        if len(steps) > MOST_JUDGED:
            message = f"the response has {len(steps)} steps, and at most {MOST_JUDGED} are judged"
            return dict.fromkeys(ASPECTS, Verdict.failed("too-long", message, cause="response"))
        return await self._asked(ask, steps)

    async def _asked(self, ask: Ask, steps: Sequence[Segment]) -> Mapping[str, Verdict]:
        gateway = ask.gateway
        assert gateway is not None, "asked without a model"
        task = shared(ask)
        shown = [{"name": f"step_{step.number}", "text": step.text} for step in steps]
        variables = {**task, "steps": shown, "facts": _facts(ask.task)}
        noun = steps_stated(len(steps))
        request = gateway.request(self._prompt, noun, variables, sample=ask.sample, room=ROOM * len(steps))
        slipped = {slip.step: slip for slip in reversed(slips(task["query"], ask.response.text, steps))}
        findings = _Findings(steps, slipped, gateway.safety.evidence)
        try:
            judged = await gateway.judge(request, noun, findings.flaw)
        except Fault as fault:
            failed = Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
            return dict.fromkeys(ASPECTS, failed)
        found = findings.of(judged.value)
        return {aspect: _verdict(found[aspect], len(steps), judged.call.id) for aspect in ASPECTS}


class _Findings:
    """What is wrong with the steps of a response: what code found by their numbers, and what a reply says.

    Quotations are looked for in the step of which they are said to be, unless they are not `sought` at all.
    """

    def __init__(self, steps: Sequence[Segment], slipped: Mapping[int, Slip], sought: bool) -> None:
        self._steps, self._slipped, self._sought = steps, slipped, sought
        self._texts = [Text(step.text) for step in steps]

    def of(self, reply: StepsStated) -> dict[str, list[_Found]]:
        """By aspect, in the order of the steps; one for each step that is unsound."""
        found: dict[str, list[_Found]] = {aspect: [] for aspect in ASPECTS}
        found["accuracy"] = [self._slip(slip) for slip in self._slipped.values()]
        for step, fault in self._stated(reply):
            found[fault.aspect].append(self._fault(step, fault))
        return {aspect: sorted(ones, key=lambda one: one.step) for aspect, ones in found.items()}

    def flaw(self, reply: StepsStated) -> str | None:
        """What is wrong with a reply that finds faults and quotes for them what does not stand in the step."""
        found = ((step, fault.aspect, self._fault(step, fault).lacking) for step, fault in self._stated(reply))
        wrong = [f"step_{step}: {aspect} is not sound, {lacking}" for step, aspect, lacking in found if lacking]
        return f"{'; '.join(wrong)}; {_HINT}" if wrong else None

    def _stated(self, reply: StepsStated) -> Iterator[tuple[int, FaultStated]]:
        """The faults of a reply, without those of which code knows better."""
        for one in reply.steps:
            for fault in one.faults:
                if fault.aspect != "accuracy" or one.step not in self._slipped:
                    yield one.step, fault

    def _slip(self, slip: Slip) -> _Found:
        evidence = Evidence(quote=slip.quote, start=slip.start, end=slip.end, verified=True)
        return _Found(slip.step, slip.complaint, (evidence,))

    def _fault(self, step: int, fault: FaultStated) -> _Found:
        if not self._sought:
            return _Found(step, fault.reason, (Evidence(quote=fault.quote),) if fault.quote.strip() else ())
        text, offset = self._texts[step - 1], self._steps[step - 1].start
        passage = text.supports(fault.quote)
        if passage is None:
            return _Found(step, fault.reason, (), _lacking(fault.quote, text))
        start, end = offset + passage.start, offset + passage.end
        return _Found(step, fault.reason, (Evidence(quote=passage.text, start=start, end=end, verified=True),))


def _lacking(quote: str, text: Text) -> str:
    """What is wrong with the quotation of a fault that bears nothing."""
    if not quote.strip():
        return "and nothing is quoted for it"
    why = why_no_support(quote, text).replace("in the response", "in that step")
    return f"and quotes '{shortened(quote, _SHOWN)}' ({why})"


def _verdict(found: Sequence[_Found], steps: int, call: str) -> Verdict:
    """The verdict on an aspect: it hangs on its first unsound step alone."""
    if not found:
        return Verdict(score=1.0, met=True, reason=f"none of {steps} steps is unsound", call=call)
    first, *others = found
    later = f"; so are {', '.join(str(one.step) for one in others)}" if others else ""
    reason = f"step {first.step} of {steps} is unsound: {first.reason}{later}"
    evidence = tuple(dict.fromkeys(passage for one in found for passage in one.evidence))
    if first.lacking:
        failure = Failure(
            cause="response", kind="unsupported", message=f"the judge says step {first.step} unsound, {first.lacking}"
        )
        return Verdict(status="failed", failure=failure, reason=reason, evidence=evidence, call=call)
    score = step_reward(first.step, steps)
    return Verdict(score=score, met=False, native=first.step, reason=reason, evidence=evidence, call=call)


def _facts(view: TaskView) -> str | None:
    """The facts of a task as a prompt shows them."""
    if view.facts is None:
        return None
    written = json.dumps(view.facts, ensure_ascii=False, sort_keys=True)
    return written if len(written) <= FACTS_SHOWN else None
