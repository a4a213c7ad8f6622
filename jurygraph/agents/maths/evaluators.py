"""Evaluators of mathematical solutions, by code alone: MACRM's rule-based components, in our own formulas.

Each score is in [0, 1]. If a response contains nothing to evaluate, it scores 0.
"""

import re
from functools import cached_property
from importlib.metadata import version
from math import cos, pi

from jurygraph.agents.data_optimizer import to_ngrams
from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import (
    ANSWER_TAGS,
    NO_ANSWER_REASON,
    count_ordered_steps,
    find_final_answer,
    find_reference_answer,
    find_stated_answers,
    has_tags_in_order,
)
from jurygraph.agents.maths.comparison import (
    MAX_ANSWER_CHARACTERS,
    ComparisonStatus,
    compare_without_maths,
    make_comparison_pool,
)
from jurygraph.agents.maths.kinds import TypedAnswer, WordAnswer, read_answer, read_reference
from jurygraph.agents.maths.reading import find_required_unit
from jurygraph.agents.roles import CodeEvaluator, Evaluator, EvaluatorInput
from jurygraph.agents.worker_pool import WorkerDied, WorkerPool, WorkFailed
from jurygraph.messages import quote
from jurygraph.safety.evidence import Passage
from jurygraph.schema import Evidence, Verdict
from jurygraph.schema.frozen_model import ParamsModel, PositiveInt, PositiveNumber
from jurygraph.schema.task import query_to_text

_MAX_SHORT_ANSWER_CHARACTERS = (
    100  # characters of an answer or a reference that are few, whatever they say
)


class Accuracy(Evaluator):
    """R_acc: 1 if the final answer equals the reference's, as a number or by math-verify in a killable worker process.

    Units of one dimension are converted ("0.18 m" is "18 cm"), and of two they make the answer wrong. If one of the
    answers has no unit, the number decides, unless the question asks for another unit of its dimension: to a question
    in dollars, "8 cents" is not "8".
    """

    class Params(ParamsModel):
        time_limit: PositiveNumber = 2.0
        """Seconds per comparison; beyond it the verdict is a failure caused by the response."""
        workers: PositiveInt = 1
        """The number of parallel processes."""

    name = "maths.accuracy"
    task_fields = ("reference",)
    bounds_its_time = True

    settings: Params

    def _set_up_from_settings(self) -> None:
        self.version = f"3 math-verify {version('math-verify')}"

    @cached_property
    def _worker_pool(self) -> WorkerPool:
        """One of its own for each jury, which copies the evaluator; its processes start with the first request."""
        return make_comparison_pool(self.settings.time_limit, self.settings.workers)

    def close(self) -> None:
        self._worker_pool.close()

    def describe_doubtful_reference(self, reference: str) -> str | None:
        answer = find_reference_answer(reference)
        gold = read_reference(answer) if answer and len(answer) <= MAX_ANSWER_CHARACTERS else None
        if gold is None:
            return "cannot be read as an answer, so nothing is judged by it"
        if isinstance(gold, WordAnswer):
            return "is in words, so only the same words are right"
        return None

    async def answer(self, inputs: EvaluatorInput) -> Verdict:
        reference = find_reference_answer(inputs.task.reference or "")
        if reference is None:
            return Verdict.abstain("the task's reference states no final answer")
        if len(reference) > MAX_ANSWER_CHARACTERS:
            return Verdict.abstain(
                f"the reference is longer than {MAX_ANSWER_CHARACTERS} characters"
            )
        gold = read_reference(reference)
        if gold is None:
            return _abstain_on_unreadable_reference(reference)
        answer = _find_meant_answer(inputs.response.text, gold)
        text = answer.text if answer else ""
        if len(text) > MAX_ANSWER_CHARACTERS:
            problem = f"it is longer than {MAX_ANSWER_CHARACTERS} characters"
            return Verdict.fail("answer-too-long", problem, cause="response")
        unit = find_required_unit(query_to_text(inputs.task.query))
        are_texts_short = max(len(text), len(reference)) <= _MAX_SHORT_ANSWER_CHARACTERS
        status = compare_without_maths(text, reference, unit) if are_texts_short else None
        try:
            status = status or await self._worker_pool.call(text, reference, unit)
        except WorkFailed as error:
            return Verdict.fail(error.kind, "the answers could not be compared", cause="response")
        except WorkerDied as error:
            return Verdict.fail("worker-died", str(error), cause="response")
        if status == "unparsed-reference":
            return _abstain_on_unreadable_reference(reference)
        return _build_verdict(status, answer, reference)


def _find_meant_answer(text: str, reference: TypedAnswer) -> Passage | None:
    """Return the first of the stated answers that reads as the reference's kind, or else the final answer."""
    for passage in find_stated_answers(text):
        is_short = len(passage.text) <= MAX_ANSWER_CHARACTERS
        if is_short and read_answer(passage.text, reference) is not None:
            return passage
    return find_final_answer(text)


def _abstain_on_unreadable_reference(reference: str) -> Verdict:
    return Verdict.abstain(f"the reference {quote(reference)} cannot be read as an answer")


def _build_verdict(status: ComparisonStatus, answer: Passage | None, reference: str) -> Verdict:
    if answer is None:
        return Verdict(score=0.0, met=False, reason=NO_ANSWER_REASON)
    is_equal = status == "equal"
    relation = {"equal": "equals", "different": "is not"}.get(status, "cannot be read as")
    reason = f"the final answer {quote(answer.text)} {relation} {quote(reference)}"
    evidence = Evidence(quote=answer.text, start=answer.start, end=answer.end)
    return Verdict(score=is_equal, met=is_equal, reason=reason, evidence=(evidence,))


class CorrectCalculations(CodeEvaluator):
    """Share of the written arithmetic (`<<a*b=c>>`, `a × b = c`) that is right; each wrong step is quoted."""

    name = "maths.calculation"

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        steps = arithmetic.steps(inputs.response.text)
        if not steps:
            reason = "no calculation is written that reads as plain arithmetic"
            return Verdict(score=0.0, met=False, reason=reason)
        right_calculation_count = 0
        reasons = []
        evidence = []
        for number, step in enumerate(steps, 1):
            if step.is_right:
                right_calculation_count += 1
                continue
            reasons.append(f"calculation {number} is wrong: {quote(step.quote)}, but {step.truth}")
            evidence.append(Evidence(quote=step.quote, start=step.start, end=step.end))
        reasons.insert(0, f"{right_calculation_count} of {len(steps)} calculations are right")
        return Verdict(
            score=right_calculation_count / len(steps),
            met=not evidence,
            native=right_calculation_count,
            scale=(0, len(steps)),
            reason="; ".join(reasons),
            evidence=tuple(evidence),
        )


class Format(CodeEvaluator):
    """R_fmt: share of five parts: `<think>`, `</think>`, `<answer>`, `</answer>`, and all in order, nothing outside."""

    name = "maths.format"

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        text = inputs.response.text
        parts = {tag: tag in text for tag in ANSWER_TAGS}
        parts["in order with nothing outside"] = has_tags_in_order(text)
        missing = [name for name, is_part_present in parts.items() if not is_part_present]
        present = len(parts) - len(missing)
        reason = f"missing: {', '.join(missing)}" if missing else "all parts are there"
        return Verdict(
            score=present / 5, met=not missing, native=present, scale=(0, 5), reason=reason
        )


class Steps(CodeEvaluator):
    """R_step: min(1, ordered steps / 3)."""

    class Params(ParamsModel):
        full: PositiveInt = 3
        """The number of ordered steps that counts 1. The paper's Table 5 prints 0.50, which 2 or 4 can give."""

    name = "maths.steps"
    settings: Params

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        count = count_ordered_steps(inputs.response.text)
        share = min(1.0, count / self.settings.full)
        return Verdict(score=share, native=count, reason=f"ordered steps: {count}")


class Repetition(CodeEvaluator):
    """R_rep: 1 - distinct / total n-grams of lower-cased words; 0 for fewer than n words. Give it a negative weight."""

    class Params(ParamsModel):
        n: PositiveInt = 3
        """The number of words in an n-gram."""

    name = "maths.repetition"
    settings: Params

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        words = re.findall(r"\w+", inputs.response.text.lower())
        n = self.settings.n
        ngrams = to_ngrams(words, n)
        share = 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0
        return Verdict(score=share, reason=f"{share:.1%} of the {n}-grams stood there before")


class Length(CodeEvaluator):
    """The factor of R_cs: 0.75 + 0.25 cos(π min(1, length / limit)), of the response's characters.

    Multiply it by accuracy with the combiner `product`: 1 for a short right answer, 0.5 at the limit, 0 if wrong.
    """

    class Params(ParamsModel):
        limit: PositiveInt = 2000
        """L, in characters."""

    name = "maths.length"
    settings: Params

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        length = len(inputs.response.text)
        limit = self.settings.limit
        factor = 0.75 + 0.25 * cos(pi * min(1.0, length / limit))
        reason = f"{length} characters, of a limit of {limit}"
        return Verdict(score=factor, native=length, reason=reason)
