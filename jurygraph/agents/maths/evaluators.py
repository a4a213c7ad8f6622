"""Evaluators of mathematical solutions, by code alone: MACRM's rule-based components, in our own formulas.

Each score is in [0, 1]. If a response contains nothing to evaluate, it scores 0.
"""

import re
from importlib.metadata import version
from math import cos, pi

from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import Span, final_answer, reference_answer
from jurygraph.agents.maths.comparison import AnswerTooLong, EquivalencePool, Status, compare_numbers
from jurygraph.agents.maths.structure import TAGS, is_in_order, ordered_steps
from jurygraph.agents.maths.units import required_unit
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.agents.worker_pool import WorkerDied, WorkFailed
from jurygraph.errors import ConfigError
from jurygraph.messages import quote
from jurygraph.schema import Evidence, Verdict
from jurygraph.schema.task import query_text

_NUMBER_LIMIT = 100  # characters of an answer or a reference that are few, whatever they say


class Accuracy(Evaluator):
    """R_acc: 1 if the final answer equals the reference's, as a number or by math-verify in a killable worker process.

    Units of one dimension are converted ("0.18 m" is "18 cm"), and of two they make the answer wrong. If one of the
    answers has no unit, the number decides, unless the question asks for another unit of its dimension: to a question
    in dollars, "8 cents" is not "8".

    Args:
        time_limit: seconds per comparison; beyond it the verdict is a failure caused by the response.
        workers: the number of parallel processes.
    """

    name = "maths.accuracy"
    version = "1"
    bounds_its_time = True

    def __init__(self, time_limit: float = 2.0, workers: int = 1) -> None:
        self.version = f"2 math-verify {version('math-verify')}"
        self._time_limit = time_limit
        self._workers = workers
        try:
            self._pool = EquivalencePool(workers, time_limit)
        except ValueError as error:
            raise ConfigError(f"maths.accuracy: {error}") from error

    def open(self) -> None:
        self._pool = EquivalencePool(self._workers, self._time_limit)  # one of its own for each copy of this evaluator

    def close(self) -> None:
        self._pool.close()

    async def answer(self, inputs: EvaluatorInput) -> Verdict:
        reference = reference_answer(inputs.task.reference or "")
        if reference is None:
            return Verdict.abstain("the task's reference states no final answer")
        answer = final_answer(inputs.response.text)
        if answer is None:
            return Verdict(score=0.0, met=False, reason="the response states no final answer")
        try:
            status = await self._compare(answer.text, reference, required_unit(query_text(inputs.task.query)))
        except AnswerTooLong as error:
            if len(reference) > len(answer.text):
                return Verdict.abstain(f"the reference cannot be read: {error}")
            return Verdict.fail("answer-too-long", str(error), cause="response")
        except WorkFailed as error:
            return Verdict.fail(error.kind, "the answers could not be compared", cause="response")
        except WorkerDied as error:
            return Verdict.fail("worker-died", str(error), cause="response")
        return _build_verdict(status, answer, reference)

    async def _compare(self, answer: str, reference: str, unit: str) -> Status:
        is_short = max(len(answer), len(reference)) <= _NUMBER_LIMIT
        known = compare_numbers(answer, reference, unit) if is_short else None
        return known or await self._pool.compare(answer, reference, unit)


def _build_verdict(status: Status, answer: Span, reference: str) -> Verdict:
    if status == "unparsed-reference":
        return Verdict.abstain(f"the reference {quote(reference)} cannot be read as mathematics")
    is_equal = status == "equal"
    relation = {"equal": "equals", "different": "is not"}.get(status, "cannot be read as")
    reason = f"the final answer {quote(answer.text)} {relation} {quote(reference)}"
    evidence = Evidence(quote=answer.text, start=answer.start, end=answer.end)
    return Verdict(score=float(is_equal), met=is_equal, reason=reason, evidence=(evidence,))


class Calculation(Evaluator):
    """Share of the written arithmetic (`<<a*b=c>>`, `a × b = c`) that is right; each wrong step is quoted."""

    name = "maths.calculation"
    version = "1"
    runs_inline = True
    bounds_its_time = True

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        steps = arithmetic.steps(inputs.response.text)
        if not steps:
            return Verdict(score=0.0, met=False, reason="no calculation is written that reads as plain arithmetic")
        wrong_steps = [(number, step) for number, step in enumerate(steps, 1) if not step.is_right]
        right = len(steps) - len(wrong_steps)
        reason = f"{right} of {len(steps)} calculations are right"
        for number, step in wrong_steps:
            value = "it is not defined" if step.value is None else f"it is {float(step.value):.10g}"
            reason += f"; calculation {number} is wrong: {quote(step.quote)}, but {value}"
        return Verdict(
            score=right / len(steps),
            met=not wrong_steps,
            native=right,
            scale=(0, len(steps)),
            reason=reason,
            evidence=tuple(Evidence(quote=step.quote, start=step.start, end=step.end) for _, step in wrong_steps),
        )


class Format(Evaluator):
    """R_fmt: share of five parts: `<think>`, `</think>`, `<answer>`, `</answer>`, and all in order, nothing outside."""

    name = "maths.format"
    version = "1"
    runs_inline = True
    bounds_its_time = True

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        text = inputs.response.text
        parts = {tag: tag in text for tag in TAGS} | {"in order with nothing outside": is_in_order(text)}
        missing = [name for name, is_present in parts.items() if not is_present]
        present = len(parts) - len(missing)
        reason = f"missing: {', '.join(missing)}" if missing else "all parts are there"
        return Verdict(score=present / 5, met=not missing, native=present, scale=(0, 5), reason=reason)


class Steps(Evaluator):
    """R_step: min(1, ordered steps / 3)."""

    name = "maths.steps"
    version = "1"
    runs_inline = True
    bounds_its_time = True

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        count = ordered_steps(inputs.response.text)
        return Verdict(score=min(1.0, count / 3), native=count, reason=f"ordered steps: {count}")


class Repetition(Evaluator):
    """R_rep: 1 - distinct / total n-grams of lower-cased words; 0 for fewer than n words. Give it a negative weight.

    Args:
        n: the number of words in an n-gram.
    """

    name = "maths.repetition"
    version = "1"
    runs_inline = True
    bounds_its_time = True

    def __init__(self, n: int = 3) -> None:
        if n < 1:
            raise ConfigError(f"maths.repetition: n is {n}, and an n-gram has at least one word; choose 1 or more")
        self._n = n

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        words = re.findall(r"\w+", inputs.response.text.lower())
        grams = list(zip(*(words[start:] for start in range(self._n)), strict=False))
        share = 1 - len(set(grams)) / len(grams) if grams else 0.0
        return Verdict(score=share, reason=f"{share:.1%} of the {self._n}-grams stood there before")


class Length(Evaluator):
    """The factor of R_cs: 0.75 + 0.25 cos(π min(1, length / limit)), of the response's characters.

    Multiply it by accuracy with the combiner `product`: 1 for a short right answer, 0.5 at the limit, 0 if wrong.

    Args:
        limit: L, in characters.
    """

    name = "maths.length"
    version = "1"
    runs_inline = True
    bounds_its_time = True

    def __init__(self, limit: int = 2000) -> None:
        if limit < 1:
            problem = f"limit is {limit}, and a length has at least one character"
            raise ConfigError(f"maths.length: {problem}; choose 1 or more")
        self._limit = limit

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        length = len(inputs.response.text)
        factor = 0.75 + 0.25 * cos(pi * min(1.0, length / self._limit))
        return Verdict(score=factor, native=length, reason=f"{length} characters, of a limit of {self._limit}")
