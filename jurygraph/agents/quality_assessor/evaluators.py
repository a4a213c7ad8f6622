"""What the Quality Assessor finds by code alone."""

from jurygraph.agents.judging.evaluator import shared
from jurygraph.agents.quality_assessor.arithmetic import slips
from jurygraph.agents.quality_assessor.reward import NO_STEPS, step_reward
from jurygraph.agents.quality_assessor.segments import segments
from jurygraph.agents.roles import Ask, Evaluator
from jurygraph.schema import Branch, Evidence, Verdict


class Arithmetic(Evaluator):
    """The step reward by the arithmetic that the steps write down: the share of them before the first false one.

    `native` is that step's number. It says nothing of a step that writes no calculation: where none does, the score
    is 1, so that whoever rewards this should reward written calculations besides (`maths.calculation`).
    """

    name = "quality.arithmetic"
    quick = True

    @property
    def branch(self) -> Branch:
        return "specialists"

    def answer(self, ask: Ask) -> Verdict:
        steps = segments(ask.response.text)
        if not steps:
            return NO_STEPS
        found = slips(shared(ask)["query"], ask.response.text, steps)
        if not found:
            return Verdict(score=1.0, met=True, reason=f"in none of {len(steps)} steps a false calculation is written")
        first = found[0].step
        return Verdict(
            score=step_reward(first, len(steps)),
            met=False,
            native=first,
            reason=f"step {first} of {len(steps)} is wrong: {found[0].complaint}",
            evidence=tuple(Evidence(quote=one.quote, start=one.start, end=one.end, verified=True) for one in found),
        )
