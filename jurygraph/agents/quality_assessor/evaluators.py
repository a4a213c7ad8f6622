"""The evaluator of the Quality Assessor that works by code alone."""

from jurygraph.agents.judging.evaluator import shared_prompt_variables
from jurygraph.agents.quality_assessor.arithmetic import find_false_calculations
from jurygraph.agents.quality_assessor.reward import NO_STEPS, step_reward
from jurygraph.agents.quality_assessor.segments import split_steps
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.schema import Branch, Evidence, Verdict


class Arithmetic(Evaluator):
    """The step reward by the written arithmetic: the share of the steps before the first one with a false calculation.

    `native` is that step's number. Steps without a calculation cannot fail: without any calculation the score is 1, so
    combine this with a reward for written calculations (`maths.calculation`).
    """

    name = "quality.arithmetic"
    runs_inline = True

    @property
    def branch(self) -> Branch:
        return "specialists"

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        steps = split_steps(inputs.response.text)
        if not steps:
            return NO_STEPS
        errors = find_false_calculations(shared_prompt_variables(inputs)["query"], inputs.response.text, steps)
        if not errors:
            return Verdict(score=1.0, met=True, reason=f"in none of {len(steps)} steps a false calculation is written")
        first = errors[0].step
        return Verdict(
            score=step_reward(first, len(steps)),
            met=False,
            native=first,
            reason=f"step {first} of {len(steps)} is wrong: {errors[0].description}",
            evidence=tuple(
                Evidence(quote=slip.quote, start=slip.start, end=slip.end, verified=True) for slip in errors
            ),
        )
