"""MACRM's Data Synthesizer: contrasts of a response, each made worse by one known edit, and R_enhanced (§3.3).

R_enhanced, in our formula, is the share of a response's contrasts that the evaluators rank below it.

A result can be changed even without a reference, since arithmetic alone shows that it was right. The other edits of a
calculation are made only in solutions with the reference's answer: it is unknown if they make a wrong solution worse.
A model proposes contrasts and confirms them in a second call: a single statement of the model is not enough."""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from pydantic import Field, create_model

from jurygraph.agents.facts.tables import FactsSpec, FactTableSpec, to_text
from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import final_answer, reference_answer
from jurygraph.agents.maths.comparison import are_equal_numbers, compare_readings
from jurygraph.agents.maths.reading import Reading, parse_answer
from jurygraph.agents.quality_assessor import facts_for_prompt
from jurygraph.agents.roles import Deriver, DeriverInput, shared_prompt_variables
from jurygraph.arrays import Bools, Floats
from jurygraph.concurrency import gather_all
from jurygraph.decision.combiners import Combiner, Component, ScoreMatrix, count_true, weighted_mean
from jurygraph.errors import PlanError
from jurygraph.messages import validate
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import Passage
from jurygraph.schema import (
    ComponentInput,
    FrozenModel,
    Material,
    Question,
    Response,
    TaskView,
    Variant,
)
from jurygraph.schema.frozen_model import ParamsModel
from jurygraph.schema.plan import SUBMITTED_RESPONSE
from jurygraph.schema.task import query_text

T = TypeVar("T")
StatementKind = Literal["number", "step", "answer", "entity", "fact"]


class TextChange(NamedTuple):
    """One passage of a text, `text[start:end]`, and its replacement."""

    start: int
    end: int
    after: str


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A contrast of a text: non-overlapping changes in their order; `reason` explains the error that they introduce."""

    kind: StatementKind
    changes: tuple[TextChange, ...]
    reason: str

    def apply(self, text: str) -> str:
        for start, end, after in reversed(self.changes):
            text = text[:start] + after + text[end:]
        return text

    def variant(self, name: str, response: Response) -> Variant:
        """Return the response after the edit as evaluators see it: without data, which the edit may contradict."""
        first = self.changes[0]
        last = self.changes[-1]
        text = self.apply(response.text)
        growth = len(text) - len(response.text)
        before = response.text[first.start : last.end]
        after = text[first.start : last.end + growth]
        edit = {
            "kind": self.kind,
            "start": first.start,
            "end": last.end,
            "before": before,
            "after": after,
            "says": self.reason,
        }
        return Variant(response=Response(id=name, text=text), edit=edit)


def replace_passage(kind: StatementKind, start: int, end: int, after: str, says: str) -> TextEdit:
    return TextEdit(kind, (TextChange(start, end, after),), says)


def choose_some(candidates: Sequence[T], max_count: int, seed: str) -> list[T]:
    """Return at most `max_count` of the candidates, in their order; the selection depends on the seed only."""
    count = len(candidates)
    chosen = random.Random(seed).sample(range(count), min(max_count, count))
    return [candidates[index] for index in sorted(chosen)]


MAX_CALCULATIONS = 50
MAX_SOLUTION_LINES = 200
"""The largest numbers of calculations in one text, and of lines of a solution, that are read."""
CONTEXT_CHARACTERS = (
    300  # the number of characters before and after a calculation that may change its meaning
)
_NUMBER_PATTERN = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,9}|[0-9]{1,30})(?:\.[0-9]{1,30})?"
_ANY_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_NUMERAL = re.compile(rf"(?<![\w.,]){_NUMBER_PATTERN}(?![\w]|[.,][0-9])")
_LAST_NUMERAL = re.compile(rf"=[ \t]*[$£€]?[ \t]*({_ANY_NUMBER})$")
_REPEATED_NUMBER = re.compile(rf">>[ \t]*[$£€]?[ \t]*({_ANY_NUMBER})(?![\w%]|[.,][0-9])")
_PLAIN_ANSWER = re.compile(rf"[$£€]?[ \t]*({_NUMBER_PATTERN})(?:[ \t]*[A-Za-z][A-Za-z ]*)?")
_NONEMPTY_LINE = re.compile(r"[^\n]+")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_VALUE_OF_WORD = {word: Fraction(number) for number, word in enumerate(_NUMBER_WORDS)}
_VALUE_OF_WORD |= {
    "half": Fraction(1, 2),
    "twice": Fraction(2),
    "double": Fraction(2),
    "dozen": Fraction(12),
    "triple": Fraction(3),
    "thrice": Fraction(3),
    "third": Fraction(3),
    "quarter": Fraction(4),
}
_NUMBER_SHIFTS = (1, 2, 3, 10)


def right_steps(text: str) -> Iterator[tuple[arithmetic.CalculationStep, re.Match[str]]]:
    """Yield each of the first 50 calculations that is exactly right and ends in a plain number, with that number."""
    for step in arithmetic.steps(text)[:MAX_CALCULATIONS]:
        numeral = _LAST_NUMERAL.search(step.quote)
        if numeral is not None and step.is_right and step.claimed == step.value:
            yield step, numeral


class CorrectAnswer(NamedTuple):
    """A text's final answer that equals the reference's: its position, and the plain number."""

    span: Passage
    number: Reading


def check_final_answer(text: str, reference: str | None) -> CorrectAnswer | bool:
    """Return the plain number that a text gives as its answer, if it equals the reference's; False if it differs.

    True if there is no reference, or one without an answer. If the reference's answer is no plain number, answers
    cannot be compared: False.
    """
    reference_text = reference_answer(reference or "")
    if reference_text is None:
        return True
    expected = parse_answer(reference_text)
    if expected is None or expected.value is None:
        return False
    span = final_answer(text)
    answer = None if span is None else parse_answer(span.text)
    if span is None or answer is None or answer.value is None:
        return False
    return compare_readings(answer, expected) is True and CorrectAnswer(span, answer)


def wrong_result_edits(text: str) -> Iterator[TextEdit]:
    """Yield an edit per right calculation that changes its result, also in the repetition after an annotation."""
    for index, (step, numeral) in enumerate(right_steps(text)):
        by = _NUMBER_SHIFTS[index % len(_NUMBER_SHIFTS)]
        original = numeral[1]
        replacement = _shift_numeral(original, by)
        start, end = numeral.span(1)
        changes = [TextChange(step.start + start, step.start + end, replacement)]
        repeated_number = _REPEATED_NUMBER.match(text, step.end)
        if repeated_number and _parse_numeral(repeated_number[1]) == step.claimed:
            changes.append(
                TextChange(*repeated_number.span(1), _shift_numeral(repeated_number[1], by))
            )
        expression = step.quote[:start].rstrip(" $£€=")
        says = f"{expression} is {original}, not {replacement}"
        edit = TextEdit("number", tuple(changes), says)
        if _becomes_wrong(text, step, edit):
            yield edit


def _becomes_wrong(text: str, step: arithmetic.CalculationStep, edit: TextEdit) -> bool:
    edited_text = edit.apply(text)
    line_start = text.rfind("\n", 0, step.start) + 1
    offset = max(line_start, step.start - CONTEXT_CHARACTERS)
    end = step.end + len(edited_text) - len(text) + CONTEXT_CHARACTERS
    line = edited_text[offset:end].partition("\n")[0]
    edited_steps = arithmetic.steps(line)
    return any(
        edited.start == step.start - offset and not edited.is_right for edited in edited_steps
    )


def _shift_numeral(numeral: str, by: int) -> str:
    integer, point, decimals = numeral.partition(".")
    separator = "," if "," in integer else ""
    shifted_number = int(integer.replace(",", "")) + by
    return f"{shifted_number:{separator}d}{point}{decimals}"


def other_answer_edits(text: str, query: str, answer: CorrectAnswer) -> Iterator[TextEdit]:
    """Yield edits that replace the answer by other numbers of the solution, or of the task."""
    match = _PLAIN_ANSWER.fullmatch(answer.span.text)
    number = answer.number
    if match is None:
        return
    start = answer.span.start + match.start(1)
    end = answer.span.start + match.end(1)
    used_values = {_parse_numeral(match[1])}
    for source in (text[: answer.span.start], query):
        for numeral in _NUMERAL.finditer(source):
            value = _parse_numeral(numeral[0])
            if value in used_values:
                continue
            other = replace(number, value=value, decimal=True)
            if not are_equal_numbers(other, number):
                used_values.add(value)
                says = f"the answer is {match[1]}, not {numeral[0]}"
                yield replace_passage("answer", start, end, numeral[0], says)


def missing_step_edits(text: str, query: str, answer: CorrectAnswer) -> Iterator[TextEdit]:
    """Yield edits that remove one line whose result a later calculation or sentence uses, and that no earlier line, no
    other calculation and no word of the task contains.

    Being the answer does not count as a use: a line that only the answer depends on stays.
    """
    lines = [
        line for line in _NONEMPTY_LINE.finditer(text, 0, answer.span.start) if line.group().strip()
    ]
    body = lines[:MAX_SOLUTION_LINES]
    if body and body[-1].end() == answer.span.start:  # the beginning of the answer's own line
        body = body[:-1]
    results = [_results_of_line(line.group()) for line in body]
    times = Counter(chain.from_iterable(results))
    known_values = {*values_in(query), Fraction(0)}  # 0 needs no calculation
    for index, line in enumerate(body):
        only_from_line = {value for value in results[index] - known_values if times[value] == 1}
        value = _find_first_operand(only_from_line, body[index + 1 :])
        if value is not None:
            end = line.end() + (text[line.end() : line.end() + 1] == "\n")
            says = f"{float(value):.10g}, which it needs, is worked out in no step"
            yield replace_passage("step", line.start(), end, "", says)
        known_values |= values_in(line.group())


def _find_first_operand(values: set[Fraction], lines: Sequence[re.Match[str]]) -> Fraction | None:
    for line in lines:
        used_values = values & _operands_of_line(line.group())
        if used_values:
            return min(used_values)
    return None


def _results_of_line(line: str) -> set[Fraction]:
    return {step.claimed for step in arithmetic.steps(line) if step.is_right}


@lru_cache(maxsize=256)
def _operands_of_line(line: str) -> frozenset[Fraction]:
    """Return the numbers that a line uses: operands, and numbers that it does not compute itself."""
    results = _results_of_line(line)
    operands = chain.from_iterable(values_in(step.expression) for step in arithmetic.steps(line))
    return frozenset(operands) | (values_in(line) - results)


@lru_cache(maxsize=256)
def values_in(text: str) -> frozenset[Fraction]:
    words = re.findall("[a-z]+", text.lower())
    spelled_values = {_VALUE_OF_WORD[word] for word in words if word in _VALUE_OF_WORD}
    numerals = {_parse_numeral(numeral[0]) for numeral in _NUMERAL.finditer(text)}
    return frozenset(spelled_values | numerals)


def _parse_numeral(numeral: str) -> Fraction:
    return Fraction(numeral.replace(",", ""))


CONTRAST_INFIX = "-of-"


class ContrastRanking(Combiner):
    """Share of the contrasts that score less than the response itself, by the mean of the same evaluators of both.

    Inputs come in pairs: `NAME` has questions about the responses, and `NAME-of-…` the same about their contrasts; each
    pair is weighted by the weight of the first. A tie is not a correct ranking. A pair with an unjudged part counts by
    the rule for unjudged values: 0 for a gain. If no contrast could be made, there is nothing to rank: the component
    does not apply, and nothing is gained. Figures: the number of judged `pairs`, and the margin of each, in the order
    of the variants' ids: above 0 if it was ranked correctly.
    """

    name = "contrast"
    version = "1"
    batched = True
    needs_all_columns = True
    if_skipped = "left-out"
    ranks_contrasts = True

    def has_direction(self, name: str) -> bool:
        """Return false: a verdict on a contrast counts against the same verdict on the response."""
        return False

    def freeze(
        self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]
    ) -> dict[str, Any]:
        super().freeze(inputs, params)
        contrast_by_name = {}
        for key in inputs:
            name, infix, _ = key.partition(CONTRAST_INFIX)
            if infix:
                contrast_by_name[name] = key
        if not inputs or sorted(inputs) != sorted(chain(*contrast_by_name.items())):
            raise PlanError(
                "combiner 'contrast' takes inputs in twos, such as {accuracy: maths.accuracy, accuracy-of-contrasts: "
                "maths.accuracy-of-contrasts}; name the second of each NAME-of-..."
            )
        for key, component_input in inputs.items():
            questions = len(component_input.questions)
            if questions != 1:
                raise PlanError(
                    f"input {key!r} holds {questions} questions; name one of them by its id"
                )
        for contrast in contrast_by_name.values():
            if inputs[contrast].if_skipped == "zero":
                raise PlanError(
                    f"input {contrast!r}: a contrast that counts as zero would be credit; write `if_skipped: left-out`"
                )
        pairs = {
            name: [inputs[name].questions[0], inputs[contrast].questions[0]]
            for name, contrast in contrast_by_name.items()
        }
        return {"twos": contrast_by_name, "asked": pairs}

    def check_questions(self, questions: Sequence[Question], params: Mapping[str, Any]) -> None:
        for question in questions:
            if question.samples > 1 or question.scope != "response":
                raise PlanError(
                    f"question {question.id!r} must have scope `response` and one sample"
                )
        by_id = {question.id: question for question in questions}
        for name, (original, contrast) in params["asked"].items():
            _require_same_question(name, by_id[original], by_id[contrast])

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        pairs = sorted(params["twos"].items())
        cell_pairs = [(matrices[original], matrices[contrast]) for original, contrast in pairs]
        margin, is_judged, is_live, fill = _margins(cell_pairs)
        win_values = np.where(is_judged, np.where(margin > 0.0, 1.0, 0.0), fill)
        value, present = weighted_mean(win_values, np.where(is_live, 1.0, 0.0))
        has_margin = is_live & is_judged
        judged_count = count_true(has_margin)
        figures = {"pairs": judged_count}
        judged_margin = np.where(has_margin, margin, np.nan)
        for number, column in enumerate(judged_margin.T, 1):
            if not np.isnan(column).all():
                figures[f"pair {number}"] = column
        return Component(value, present, {}, figures)


def _require_same_question(name: str, original: Question, contrast: Question) -> None:
    if original.material != SUBMITTED_RESPONSE or contrast.material == SUBMITTED_RESPONSE:
        raise PlanError(
            f"input {name!r} has to ask of the responses (no `material`), and {name}{CONTRAST_INFIX}... "
            "of their contrasts"
        )
    evaluator = contrast.evaluator.partition(CONTRAST_INFIX)[0]
    is_renamed = CONTRAST_INFIX in contrast.evaluator and evaluator != original.evaluator
    if original.version != contrast.version or is_renamed:
        raise PlanError(
            f"inputs {name!r} and {name}{CONTRAST_INFIX}...: {original.evaluator!r} and {evaluator!r} are not "
            "the same evaluator"
        )


def _margins(
    cell_pairs: Sequence[tuple[ScoreMatrix, ScoreMatrix]],
) -> tuple[Floats, Bools, Bools, Floats]:
    """Return for each pair, [R,V]: the margin, if all of it was judged, if it exists, and its value if unjudged.

    The margin is the response's score minus its contrast's, by the mean over the pairs of inputs.
    """
    width = max(contrast.value.shape[1] for _, contrast in cell_pairs)
    shape = len(cell_pairs[0][0].value), width
    margin = np.zeros(shape)
    size = np.zeros(shape)
    fill = np.ones(shape)
    is_judged = np.full(shape, True)
    is_live = np.full(shape, False)
    for original, contrast in cell_pairs:
        weight = original.input_weight
        padding = ((0, 0), (0, width - contrast.value.shape[1]))
        # The response has one column, which stands beside a column for each of its contrasts.
        columns: Sequence[Any] = (contrast.value, contrast.applicable, contrast.judged)
        value, exists, judged = (np.pad(column, padding) for column in columns)
        exists = exists & original.applicable[:, :1]
        both_judged = judged & original.judged[:, :1]
        margin = margin + np.where(exists, weight * (original.value[:, :1] - value), 0.0)
        size = size + np.where(exists, weight, 0.0)
        is_judged = is_judged & (both_judged | ~exists)
        # The fill of the one without a verdict; over several inputs the lowest, so that none makes up for it.
        unjudged_value = np.where(judged, original.value[:, :1], value)
        fill = np.minimum(fill, np.where(exists & ~both_judged, unjudged_value, 1.0))
        is_live = is_live | exists
    return margin / np.where(size > 0.0, size, 1.0), is_judged, is_live, fill


CONTRASTS_MATERIAL = "contrasts"
# ids of the prompts
PROPOSE_PROMPT = "contrast"
COMPARE_PROMPT = "contrast-check"
STATEMENT_KINDS: tuple[StatementKind, ...] = get_args(StatementKind)
OWN_KINDS: tuple[StatementKind, ...] = STATEMENT_KINDS[:-1]
"""Kinds that need nothing beside the task and the response."""
MAX_EDITS = 50  # the largest number of contrasts per kind from which some are chosen
MAX_CHARACTERS = 20_000  # the longest response, in characters, of which contrasts are made


class Synthesizer(Deriver):
    """Make contrasts of a response: variants known to be worse in a known way (MACRM, 3.2; ours).

    By rule: a right calculation with another result (`number`). Only for a response with the reference's answer: the
    answer replaced by another number (`answer`), or a needed step left out (`step`). A response with another answer
    than the reference gets no contrast: it is unknown if an edit makes it worse, and being wrong should gain nothing.

    By a model: it proposes edits, also of a name (`entity`), each of one passage of the response, and judges each again
    without knowing which text is edited; unconfirmed edits are dropped.

    External knowledge (3.2): with `fact`, a value that the rows of the task's facts confirm becomes another row's. A
    model is shown these facts and the passages of the task's context, and may contradict both.
    """

    class Params(ParamsModel):
        by: Literal["rule", "model"] = "rule"
        """Who makes the edits: `rule`, or `model`."""
        kinds: tuple[StatementKind, ...] = Field(OWN_KINDS, min_length=1)
        """The kinds to make; by default all but `fact`."""
        each: int = Field(1, strict=True, ge=1, le=10)
        """The largest number of contrasts per kind."""
        seed: int = Field(0, strict=True)
        """Determines which are chosen if there are more."""

    name = "synthesizer"
    version = "1"
    gives = CONTRASTS_MATERIAL
    bounds_its_time = True

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._kinds = tuple(kind for kind in STATEMENT_KINDS if kind in self.settings.kinds)
        self.uses_model = self.settings.by == "model"
        if self.uses_model:
            versions = [
                load_prompt(prompt).full_version for prompt in (PROPOSE_PROMPT, COMPARE_PROMPT)
            ]
            self.version = f"1 prompts {' '.join(versions)}"

    async def derive(self, inputs: DeriverInput) -> Material:
        text = inputs.response.text
        if len(text) > MAX_CHARACTERS:
            note = f"of {len(text)} characters no contrast is made, but of {MAX_CHARACTERS}"
            return Material(name=CONTRASTS_MATERIAL, note=note)
        final_answer_check = check_final_answer(text, inputs.task.reference)
        if final_answer_check is False:
            return Material(
                name=CONTRASTS_MATERIAL,
                note="its answer is not known to be right: no edit surely makes it worse",
            )
        if not self.uses_model or not text.strip():
            edits = list(edits_by_rule(text, inputs.task, final_answer_check, self._kinds))
            return self._material(inputs, edits)
        return self._material(inputs, *await propose_edits(inputs, self._kinds))

    def _material(
        self,
        inputs: DeriverInput,
        edits: Sequence[TextEdit],
        note: str = "",
        call: str | None = None,
    ) -> Material:
        """Return material with some edits of each kind, named by the kind, in the order of the kinds."""
        parent = inputs.response.id
        mark = "~" * (1 + len(parent) - len(parent.lstrip("~")))  # no variant has its parent's id
        seed = self.settings.seed
        variants = []
        for kind in self._kinds:
            kind_edits = [edit for edit in edits if edit.kind == kind]
            selection_seed = f"{seed} {kind} {inputs.response.text}"
            chosen = choose_some(kind_edits, self.settings.each, selection_seed)
            for number, edit in enumerate(chosen, 1):
                variants.append(edit.variant(f"{mark}{kind}-{number}", inputs.response))
        if not note and not variants:
            note = "nothing in the response could be made worse by a known edit"
        return Material(name=CONTRASTS_MATERIAL, variants=tuple(variants), note=note, call=call)


def edits_by_rule(
    text: str,
    view: TaskView,
    final_answer_check: CorrectAnswer | bool,
    kinds: Sequence[StatementKind],
) -> Iterator[TextEdit]:
    """Yield the contrasts that can be made by rule, the first 50 of each kind.

    `final_answer_check` is what `check_final_answer` returned.
    """
    by_kind: dict[StatementKind, Iterator[TextEdit]] = {
        "number": wrong_result_edits(text),
        "fact": wrong_fact_edits(text, view.facts),
    }
    if isinstance(final_answer_check, CorrectAnswer):
        query = query_text(view.query)
        by_kind["step"] = missing_step_edits(text, query, final_answer_check)
        by_kind["answer"] = other_answer_edits(text, query, final_answer_check)
    for kind in kinds:
        yield from islice(by_kind.get(kind, ()), MAX_EDITS)


def wrong_fact_edits(text: str, facts: Mapping[str, Any] | None) -> Iterator[TextEdit]:
    """Yield edits of values that a row of the task's facts confirms: each becomes the same column's of another row.

    A line is about a row if it has its name, the first column of the table's key, and no other row's. The value stands
    in it once, and the other one nowhere in the text.
    """
    spec = None if facts is None else validate(FactsSpec, facts)
    if not isinstance(spec, FactsSpec):
        return
    for name, table in sorted(spec.tables.items()):
        for line in islice(_NONEMPTY_LINE.finditer(text), MAX_SOLUTION_LINES):
            named_rows = [row for row in table.rows or () if _spans_of(line[0], row, table.key[0])]
            if len({to_text(row[table.key[0]]) for row in named_rows}) == 1:
                yield from _edits_of_row(text, line.start(), line[0], name, table, named_rows[0])


def _edits_of_row(
    text: str,
    start: int,
    line: str,
    table_name: str,
    table: FactTableSpec,
    row: Mapping[str, Any],
) -> Iterator[TextEdit]:
    for column in sorted(row.keys() - set(table.key)):
        spans = _spans_of(line, row, column)
        values = [to_text(other[column]) for other in table.rows or () if column in other]
        absent_values = [value for value in values if value.strip() and value not in text]
        if len(spans) == 1 and absent_values:
            begin, end = spans[0]
            subject = to_text(row[table.key[0]])
            reason = f"{column} of {subject} is {line[begin:end]} in the facts ({table_name})"
            yield replace_passage("fact", start + begin, start + end, absent_values[0], reason)


def _spans_of(line: str, row: Mapping[str, Any], column: str) -> list[tuple[int, int]]:
    """Return where a line has the value of a row as whole words or a whole number."""
    words = to_text(row.get(column, "")).strip()
    if not words:
        return []
    pattern = rf"(?<![\w.,]){re.escape(words)}(?![\w]|[.,][0-9])"
    return [found.span() for found in re.finditer(pattern, line)]


def known_material(view: TaskView) -> list[dict[str, str]]:
    """Return what a task knows beside its query, as names and texts for a prompt: facts, and passages of context."""
    facts = facts_for_prompt(view)
    named_texts = [] if facts is None else [{"name": "facts", "text": facts}]
    for number, passage in enumerate(view.context or (), start=1):
        named_texts.append({"name": f"passage {number}", "text": passage.text})
    return named_texts


_Passage = Annotated[str, Field(min_length=1, max_length=1000)]
_ShortText = Annotated[str, Field(max_length=1000)]


async def propose_edits(
    inputs: DeriverInput, kinds: Sequence[StatementKind]
) -> tuple[list[TextEdit], str, str]:
    """Return the edits that the model proposes and, without knowing which text is edited, confirms to make it worse.

    With a note on the other proposals, and the call that proposed them. Every passage must occur in the response
    exactly once: other proposals are shown to the model once for repair, then dropped. Raises Fault.
    """
    assert inputs.client is not None, "a model is required"
    text = inputs.response.text
    reply_model = _proposals_model(tuple(kinds))
    variables = {
        **shared_prompt_variables(inputs),
        "edits": tuple(kinds),
        "known": known_material(inputs.task),
    }
    request = inputs.client.request(load_prompt(PROPOSE_PROMPT), reply_model, variables)
    result = await inputs.client.judge(
        request, reply_model, lambda reply: _reply_problems(text, reply)
    )
    proposals: Sequence[Any] = result.value.contrasts  # type: ignore[attr-defined]
    edits = [
        _edit_of_proposal(text, proposal)
        for proposal in proposals
        if not _proposal_flaw(text, proposal)
    ]
    worse_flags = await gather_all(_is_worse(inputs, edit) for edit in edits)
    confirmed_edits = [edit for edit, is_worse in zip(edits, worse_flags, strict=True) if is_worse]
    dropped_counts = {
        "changes no passage": len(proposals) - len(edits),
        "is no worse": len(edits) - len(confirmed_edits),
    }
    note = "; ".join(
        f"{number} proposed that {problem}" for problem, number in dropped_counts.items() if number
    )
    return confirmed_edits, note, result.call.id


async def _is_worse(inputs: DeriverInput, edit: TextEdit) -> bool:
    """Return true if the model finds the edited text worse; the order of the texts depends on the edited one."""
    assert inputs.client is not None, "a model is required"
    edited_text = edit.apply(inputs.response.text)
    is_first = hashlib.sha256(edited_text.encode()).digest()[0] % 2 == 1
    texts = (edited_text, inputs.response.text) if is_first else (inputs.response.text, edited_text)
    responses = [{"name": name, "text": text} for name, text in zip("AB", texts, strict=True)]
    variables = shared_prompt_variables(inputs)
    del variables["response"]  # it would tell which of the two is the edited one
    variables["responses"] = responses
    variables["known"] = known_material(inputs.task)
    request = inputs.client.request(load_prompt(COMPARE_PROMPT), ContrastComparison, variables)
    result = await inputs.client.judge(request, ContrastComparison)
    return result.value.worse == ("A" if is_first else "B")


def _edit_of_proposal(text: str, proposal: Any) -> TextEdit:
    start = text.index(proposal.passage)
    return replace_passage(
        proposal.kind, start, start + len(proposal.passage), proposal.instead, proposal.says
    )


def _proposal_flaw(text: str, proposal: Any) -> str | None:
    times = text.count(proposal.passage)
    if times != 1:
        return f"the passage {proposal.passage!r} stands in the response {times} times, and has to stand there once"
    if proposal.instead == proposal.passage:
        return f"the passage {proposal.passage!r} is put in its own place"
    return None


def _reply_problems(text: str, reply: Any) -> str | None:
    flaws = [flaw for proposal in reply.contrasts if (flaw := _proposal_flaw(text, proposal))]
    if not flaws:
        return None
    return f"{'; '.join(flaws)}. So copy each `passage` letter by letter from the response"


# No docstrings below: they would be part of the JSON schema that a model is given.


@lru_cache(maxsize=64)
def _proposals_model(kinds: tuple[StatementKind, ...]) -> type[FrozenModel]:
    fields: Any = {
        "kind": (Literal[kinds], ...),
        "passage": (_Passage, ...),
        "instead": (_ShortText, ...),
        "says": (_ShortText, ...),
    }
    contrast_model = create_model("Contrast", __base__=FrozenModel, **fields)
    contrasts_field: Any = Annotated[tuple[contrast_model, ...], Field(max_length=12)]
    return create_model("Contrasts", __base__=FrozenModel, contrasts=(contrasts_field, ...))


class ContrastComparison(FrozenModel):
    reason: _ShortText
    worse: Literal["A", "B", "neither"]
