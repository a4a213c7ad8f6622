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
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain, compress, islice
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from pydantic import Field, create_model

from jurygraph.agents.facts.tables import FactsSpec, RowValues, value_to_text
from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import find_final_answer, find_reference_answer
from jurygraph.agents.maths.comparison import are_equal_numbers, compare_answer_values
from jurygraph.agents.maths.reading import AnswerValue, parse_answer
from jurygraph.agents.quality_assessor import facts_for_prompt
from jurygraph.agents.roles import Deriver, DeriverInput, require_client, shared_prompt_variables
from jurygraph.concurrency import gather_all
from jurygraph.decision.combiners import (
    Combiner,
    Component,
    InputMatrices,
    count_true,
    weighted_mean,
)
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
from jurygraph.schema.frozen_model import JsonFields, ParamsModel, RawParams, ReadOnlyFields
from jurygraph.schema.plan import SUBMITTED_MATERIAL_NAME
from jurygraph.schema.task import query_to_text

T = TypeVar("T")
EditKind = Literal["number", "step", "answer", "entity", "fact"]


class TextChange(NamedTuple):
    """One passage of a text, `text[start:end]`, and its replacement."""

    start: int
    end: int
    after: str


class TextEdit(NamedTuple):
    """A contrast of a text: non-overlapping changes in their order; `reason` explains the error that they introduce."""

    kind: EditKind
    changes: tuple[TextChange, ...]
    reason: str

    def apply(self, text: str) -> str:
        for start, end, after in reversed(self.changes):
            text = text[:start] + after + text[end:]
        return text

    def variant(self, name: str, response: Response) -> Variant:
        """Return the response after the edit as evaluators see it: without data, which the edit may contradict."""
        start = self.changes[0].start
        end = self.changes[-1].end
        text = self.apply(response.text)
        length_change = len(text) - len(response.text)
        edit_fields = {
            "kind": self.kind,
            "start": start,
            "end": end,
            "before": response.text[start:end],
            "after": text[start : end + length_change],
            "says": self.reason,
        }
        return Variant(response=Response(id=name, text=text), edit=edit_fields)


def replace_passage(kind: EditKind, start: int, end: int, after: str, reason: str) -> TextEdit:
    return TextEdit(kind, (TextChange(start, end, after),), reason)


def sample_candidates(candidates: Sequence[T], max_count: int, seed: str) -> list[T]:
    """Return at most `max_count` of the candidates, in their order; the selection depends on the seed only."""
    count = len(candidates)
    chosen_indices = random.Random(seed).sample(range(count), min(max_count, count))
    return [candidates[index] for index in sorted(chosen_indices)]


MAX_CALCULATIONS = 50
MAX_SOLUTION_LINES = 200
"""The largest numbers of calculations in one text, and of lines of a solution, that are read."""
CALCULATION_CONTEXT_LENGTH = (
    300  # the number of characters before and after a calculation that may change its meaning
)
_NUMBER_PATTERN = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,9}|[0-9]{1,30})(?:\.[0-9]{1,30})?"
_ANY_NUMBER_PATTERN = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_NUMERAL_PATTERN = re.compile(rf"(?<![\w.,]){_NUMBER_PATTERN}(?![\w]|[.,][0-9])")
_RESULT_AT_END_PATTERN = re.compile(rf"=[ \t]*[$£€]?[ \t]*({_ANY_NUMBER_PATTERN})$")
_REPEATED_RESULT_PATTERN = re.compile(
    rf">>[ \t]*[$£€]?[ \t]*({_ANY_NUMBER_PATTERN})(?![\w%]|[.,][0-9])"
)
_NUMBER_ANSWER_PATTERN = re.compile(
    rf"[$£€]?[ \t]*({_NUMBER_PATTERN})(?:[ \t]*[A-Za-z][A-Za-z ]*)?"
)
_NONEMPTY_LINE_PATTERN = re.compile(r"[^\n]+")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_NUMBER_BY_WORD = {word: Fraction(number) for number, word in enumerate(_NUMBER_WORDS)}
_NUMBER_BY_WORD |= {"half": Fraction(1, 2), "dozen": Fraction(12), "quarter": Fraction(4)}
_NUMBER_BY_WORD |= dict.fromkeys(("twice", "double"), Fraction(2))
_NUMBER_BY_WORD |= dict.fromkeys(("triple", "thrice", "third"), Fraction(3))
_WRONG_RESULT_OFFSETS = (1, 2, 3, 10)


def find_right_calculations(
    text: str,
) -> Iterator[tuple[arithmetic.CalculationStep, re.Match[str]]]:
    """Yield each of the first 50 calculations that is exactly right and ends in a plain number, with that number."""
    for step in arithmetic.steps(text)[:MAX_CALCULATIONS]:
        result_match = _RESULT_AT_END_PATTERN.search(step.quote)
        if result_match is not None and step.is_right and step.claimed == step.value:
            yield step, result_match


class CorrectAnswer(NamedTuple):
    """A text's final answer that equals the reference's: its position, and the plain number."""

    span: Passage
    number: AnswerValue


def check_final_answer(text: str, reference: str | None) -> CorrectAnswer | bool:
    """Return the plain number that a text gives as its answer, if it equals the reference's; False if it differs.

    True if there is no reference, or one without an answer. If the reference's answer is no plain number, answers
    cannot be compared: False.
    """
    reference_text = find_reference_answer(reference or "")
    if reference_text is None:
        return True
    expected = parse_answer(reference_text)
    if expected is None or expected.value is None:
        return False
    span = find_final_answer(text)
    if span is None:
        return False
    answer = parse_answer(span.text)
    if answer is None or answer.value is None:
        return False
    return compare_answer_values(answer, expected) is True and CorrectAnswer(span, answer)


def wrong_result_edits(text: str) -> Iterator[TextEdit]:
    """Yield an edit per right calculation that changes its result, also in the repetition after an annotation."""
    for index, (step, result_match) in enumerate(find_right_calculations(text)):
        shift = _WRONG_RESULT_OFFSETS[index % len(_WRONG_RESULT_OFFSETS)]
        original_result_text = result_match[1]
        replacement = _shift_numeral(original_result_text, shift)
        start, end = result_match.span(1)
        changes = [TextChange(step.start + start, step.start + end, replacement)]
        repeated_result_match = _REPEATED_RESULT_PATTERN.match(text, step.end)
        if repeated_result_match and _parse_numeral(repeated_result_match[1]) == step.claimed:
            changes.append(
                TextChange(
                    *repeated_result_match.span(1), _shift_numeral(repeated_result_match[1], shift)
                )
            )
        expression = step.quote[:start].rstrip(" $£€=")
        reason = f"{expression} is {original_result_text}, not {replacement}"
        edit = TextEdit("number", tuple(changes), reason)
        if _makes_calculation_wrong(text, step, edit):
            yield edit


def _makes_calculation_wrong(text: str, step: arithmetic.CalculationStep, edit: TextEdit) -> bool:
    edited_text = edit.apply(text)
    line_start = text.rfind("\n", 0, step.start) + 1
    context_start = max(line_start, step.start - CALCULATION_CONTEXT_LENGTH)
    end = step.end + len(edited_text) - len(text) + CALCULATION_CONTEXT_LENGTH
    line = edited_text[context_start:end].partition("\n")[0]
    return any(
        edited_step.start == step.start - context_start and not edited_step.is_right
        for edited_step in arithmetic.steps(line)
    )


def _shift_numeral(numeral: str, shift: int) -> str:
    integer_digits, decimal_point, decimal_digits = numeral.partition(".")
    separator = "," if "," in integer_digits else ""
    shifted_number = int(integer_digits.replace(",", "")) + shift
    return f"{shifted_number:{separator}d}{decimal_point}{decimal_digits}"


def replaced_answer_edits(text: str, query: str, answer: CorrectAnswer) -> Iterator[TextEdit]:
    """Yield edits that replace the answer by other numbers of the solution, or of the task."""
    match = _NUMBER_ANSWER_PATTERN.fullmatch(answer.span.text)
    number = answer.number
    if match is None:
        return
    start = answer.span.start + match.start(1)
    end = answer.span.start + match.end(1)
    tried_values = {_parse_numeral(match[1])}
    for source in (text[: answer.span.start], query):
        for numeral in _NUMERAL_PATTERN.finditer(source):
            value = _parse_numeral(numeral[0])
            if value in tried_values:
                continue
            other = replace(number, value=value, is_decimal=True)
            if not are_equal_numbers(other, number):
                tried_values.add(value)
                reason = f"the answer is {match[1]}, not {numeral[0]}"
                yield replace_passage("answer", start, end, numeral[0], reason)


def missing_step_edits(text: str, query: str, answer: CorrectAnswer) -> Iterator[TextEdit]:
    """Yield edits that remove one line whose result a later calculation or sentence uses, and that no earlier line, no
    other calculation and no word of the task contains.

    Being the answer does not count as a use: a line that only the answer depends on stays.
    """
    solution_lines = [
        line
        for line in _NONEMPTY_LINE_PATTERN.finditer(text, 0, answer.span.start)
        if line.group().strip()
    ][:MAX_SOLUTION_LINES]
    if solution_lines and solution_lines[-1].end() == answer.span.start:
        solution_lines.pop()  # the beginning of the answer's own line
    results_by_line = [_results_of_line(line.group()) for line in solution_lines]
    times = Counter(chain.from_iterable(results_by_line))
    values_known_before = {*find_numbers(query), Fraction(0)}  # 0 needs no calculation
    for index, line in enumerate(solution_lines):
        values_only_from_line = {
            value for value in results_by_line[index] - values_known_before if times[value] == 1
        }
        later_lines = solution_lines[index + 1 :]
        uses = (values_only_from_line & _operands_of_line(later.group()) for later in later_lines)
        used_values = next(filter(None, uses), None)
        if used_values:
            value = min(used_values)
            end = line.end() + (text[line.end() : line.end() + 1] == "\n")
            reason = f"{float(value):.10g}, which it needs, is worked out in no step"
            yield replace_passage("step", line.start(), end, "", reason)
        values_known_before |= find_numbers(line.group())


def _results_of_line(line: str) -> set[Fraction]:
    return {step.claimed for step in arithmetic.steps(line) if step.is_right}


@lru_cache(maxsize=256)
def _operands_of_line(line: str) -> frozenset[Fraction]:
    """Return the numbers that a line uses: operands, and numbers that it does not compute itself."""
    results = _results_of_line(line)
    operands = chain.from_iterable(find_numbers(step.expression) for step in arithmetic.steps(line))
    return frozenset(operands) | (find_numbers(line) - results)


@lru_cache(maxsize=256)
def find_numbers(text: str) -> frozenset[Fraction]:
    words = re.findall("[a-z]+", text.lower())
    spelled_out_values = {_NUMBER_BY_WORD[word] for word in words if word in _NUMBER_BY_WORD}
    numeral_values = {_parse_numeral(numeral[0]) for numeral in _NUMERAL_PATTERN.finditer(text)}
    return frozenset(spelled_out_values | numeral_values)


def _parse_numeral(numeral: str) -> Fraction:
    return Fraction(numeral.replace(",", ""))


CONTRAST_NAME_INFIX = "-of-"


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

    def is_monotone_input(self, name: str) -> bool:
        """Return false: a verdict on a contrast counts against the same verdict on the response."""
        return False

    def freeze(self, inputs: Mapping[str, ComponentInput], params: RawParams) -> JsonFields:
        super().freeze(inputs, params)
        contrast_by_name = {
            key.partition(CONTRAST_NAME_INFIX)[0]: key
            for key in inputs
            if CONTRAST_NAME_INFIX in key
        }
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
        for contrast_name in contrast_by_name.values():
            if inputs[contrast_name].if_skipped == "zero":
                raise PlanError(
                    f"input {contrast_name!r}: a contrast that counts as zero would be credit; write "
                    "`if_skipped: left-out`"
                )
        pairs = {
            name: [inputs[name].questions[0], inputs[contrast_name].questions[0]]
            for name, contrast_name in contrast_by_name.items()
        }
        return {"twos": contrast_by_name, "asked": pairs}

    def validate_questions(self, questions: Sequence[Question], params: RawParams) -> None:
        for question in questions:
            if question.samples > 1 or question.scope != "response":
                raise PlanError(
                    f"question {question.id!r} must have scope `response` and one sample"
                )
        question_by_id = {question.id: question for question in questions}
        for name, ids in params["asked"].items():
            original, contrast = (question_by_id[question_id] for question_id in ids)
            contrast_name = f"{name}{CONTRAST_NAME_INFIX}..."
            is_contrast_submitted = contrast.material == SUBMITTED_MATERIAL_NAME
            if original.material != SUBMITTED_MATERIAL_NAME or is_contrast_submitted:
                raise PlanError(
                    f"input {name!r} has to ask of the responses (no `material`), and {contrast_name} of their "
                    "contrasts"
                )
            evaluator_name, infix, _ = contrast.evaluator.partition(CONTRAST_NAME_INFIX)
            is_other_evaluator = infix and evaluator_name != original.evaluator
            if original.version != contrast.version or is_other_evaluator:
                raise PlanError(
                    f"inputs {name!r} and {contrast_name}: {original.evaluator!r} and {evaluator_name!r} are not the "
                    "same evaluator"
                )

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        pairs = sorted(params["twos"].items())
        matrix_pairs = [(matrices[original], matrices[contrast]) for original, contrast in pairs]
        contrast_count = max(contrast.value.shape[1] for _, contrast in matrix_pairs)
        # [R,V]: the response's score minus its contrast's, by the mean over the pairs of inputs
        margin, size = np.zeros((2, len(matrix_pairs[0][0].value), contrast_count))
        fill_value = np.ones_like(margin)
        is_judged = np.full(margin.shape, True)
        for original, contrast in matrix_pairs:
            pad_widths = ((0, 0), (0, contrast_count - contrast.value.shape[1]))
            columns: Sequence[Any] = (contrast.value, contrast.applicable, contrast.judged)
            value, is_applicable, is_contrast_judged = (
                np.pad(column, pad_widths) for column in columns
            )
            # The response has one column, which stands beside a column for each of its contrasts.
            is_applicable &= original.applicable
            weight = original.input_weight
            margin += np.where(is_applicable, weight * (original.value - value), 0.0)
            size += np.where(is_applicable, weight, 0.0)
            # The fill of the one without a verdict; over several inputs the lowest, so that none makes up for it.
            unjudged_value = np.where(is_contrast_judged, original.value, value)
            is_unjudged = is_applicable & ~(is_contrast_judged & original.judged)
            is_judged &= ~is_unjudged
            fill_value = np.where(is_unjudged, np.minimum(fill_value, unjudged_value), fill_value)
        has_contrast = size > 0.0
        margin /= np.where(has_contrast, size, 1.0)
        win_value = np.where(is_judged, np.where(margin > 0.0, 1.0, 0.0), fill_value)
        value, present = weighted_mean(win_value, np.where(has_contrast, 1.0, 0.0))
        is_pair_judged = has_contrast & is_judged
        diagnostics = {"pairs": count_true(is_pair_judged)}
        judged_margin = np.where(is_pair_judged, margin, np.nan)
        for number, column in enumerate(judged_margin.T, 1):
            if not np.isnan(column).all():
                diagnostics[f"pair {number}"] = column
        return Component(value, present, {}, diagnostics)


CONTRASTS_MATERIAL_NAME = "contrasts"
# ids of the prompts
PROPOSE_PROMPT_ID = "contrast"
COMPARE_PROMPT_ID = "contrast-check"
EDIT_KINDS: tuple[EditKind, ...] = get_args(EditKind)
EDIT_KINDS_WITHOUT_FACTS = EDIT_KINDS[:-1]
"""Kinds that need nothing beside the task and the response."""
MAX_EDITS_PER_KIND = 50  # the largest number of contrasts per kind from which some are chosen
MAX_RESPONSE_CHARACTERS = 20_000  # the longest response, in characters, of which contrasts are made


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
        kinds: tuple[EditKind, ...] = Field(EDIT_KINDS_WITHOUT_FACTS, min_length=1)
        """The kinds to make; by default all but `fact`."""
        each: int = Field(1, strict=True, ge=1, le=10)
        """The largest number of contrasts per kind."""
        seed: int = Field(0, strict=True)
        """Determines which are chosen if there are more."""

    name = "synthesizer"
    version = "1"
    gives = CONTRASTS_MATERIAL_NAME
    bounds_its_time = True

    settings: Params

    def _set_up_from_settings(self) -> None:
        self._kinds = tuple(kind for kind in EDIT_KINDS if kind in self.settings.kinds)
        self.uses_model = self.settings.by == "model"
        if self.uses_model:
            prompts = (load_prompt(PROPOSE_PROMPT_ID), load_prompt(COMPARE_PROMPT_ID))
            self.version = f"1 prompts {' '.join(prompt.full_version for prompt in prompts)}"

    async def derive(self, inputs: DeriverInput) -> Material:
        text = inputs.response.text
        if len(text) > MAX_RESPONSE_CHARACTERS:
            note = (
                f"of {len(text)} characters no contrast is made, but of {MAX_RESPONSE_CHARACTERS}"
            )
            return self._build_edit_material(inputs, (), note)
        final_answer_result = check_final_answer(text, inputs.task.reference)
        if final_answer_result is False:
            note = "its answer is not known to be right: no edit surely makes it worse"
            return self._build_edit_material(inputs, (), note)
        if self.uses_model and text.strip():
            return self._build_edit_material(inputs, *await propose_edits(inputs, self._kinds))
        edits = list(make_rule_based_edits(text, inputs.task, final_answer_result, self._kinds))
        return self._build_edit_material(inputs, edits)

    def _build_edit_material(
        self,
        inputs: DeriverInput,
        edits: Sequence[TextEdit],
        note: str = "",
        call_id: str | None = None,
    ) -> Material:
        """Return material with some edits of each kind, named by the kind, in the order of the kinds."""
        response = inputs.response
        # one more than its parent's id has: no variant has that id
        prefix = "~" * (1 + len(response.id) - len(response.id.lstrip("~")))
        variants = []
        for kind in self._kinds:
            kind_edits = [edit for edit in edits if edit.kind == kind]
            selection_seed = f"{self.settings.seed} {kind} {response.text}"
            chosen_edits = sample_candidates(kind_edits, self.settings.each, selection_seed)
            for number, edit in enumerate(chosen_edits, 1):
                variants.append(edit.variant(f"{prefix}{kind}-{number}", response))
        if not variants:
            note = note or "nothing in the response could be made worse by a known edit"
        return Material(
            name=CONTRASTS_MATERIAL_NAME, variants=tuple(variants), note=note, call=call_id
        )


def make_rule_based_edits(
    text: str,
    view: TaskView,
    final_answer_result: CorrectAnswer | bool,
    kinds: Sequence[EditKind],
) -> Iterator[TextEdit]:
    """Yield the contrasts that can be made by rule, the first 50 of each kind.

    `final_answer_result` is what `check_final_answer` returned.
    """
    edits_by_kind = {
        "number": wrong_result_edits(text),
        "fact": wrong_fact_edits(text, view.facts),
    }
    if isinstance(final_answer_result, CorrectAnswer):
        query = query_to_text(view.query)
        edits_by_kind["step"] = missing_step_edits(text, query, final_answer_result)
        edits_by_kind["answer"] = replaced_answer_edits(text, query, final_answer_result)
    for kind in kinds:
        yield from islice(edits_by_kind.get(kind, ()), MAX_EDITS_PER_KIND)


def wrong_fact_edits(text: str, facts: ReadOnlyFields | None) -> Iterator[TextEdit]:
    """Yield edits of values that a row of the task's facts confirms: each becomes the same column's of another row.

    A line is about a row if it has its name, the first column of the table's key, and no other row's. The value stands
    in it once, and the other one nowhere in the text.
    """
    spec = None if facts is None else validate(FactsSpec, facts)
    if not isinstance(spec, FactsSpec):
        return
    for name, table in sorted(spec.tables.items()):
        rows = table.rows or ()
        for line in islice(_NONEMPTY_LINE_PATTERN.finditer(text), MAX_SOLUTION_LINES):
            named_rows = [row for row in rows if _find_value_spans(line, row, table.key[0])]
            subjects = {value_to_text(row[table.key[0]]) for row in named_rows}
            if len(subjects) != 1:
                continue
            (subject,) = subjects
            for column in sorted(named_rows[0].keys() - set(table.key)):
                spans = _find_value_spans(line, named_rows[0], column)
                values = [value_to_text(row[column]) for row in rows if column in row]
                absent_values = [value for value in values if value.strip() and value not in text]
                if len(spans) == 1 and absent_values:
                    start, end = spans[0]
                    reason = f"{column} of {subject} is {text[start:end]} in the facts ({name})"
                    yield replace_passage("fact", start, end, absent_values[0], reason)


def _find_value_spans(line: re.Match[str], row: RowValues, column: str) -> list[tuple[int, int]]:
    """Return where a line of a text has the value of a row as whole words or a whole number."""
    words = value_to_text(row.get(column, "")).strip()
    if not words:
        return []
    pattern = re.compile(rf"(?<![\w.,]){re.escape(words)}(?![\w]|[.,][0-9])")
    return [found.span() for found in pattern.finditer(line.string, *line.span())]


def known_material(view: TaskView) -> list[dict[str, str]]:
    """Return what a task knows beside its query, as names and texts for a prompt: facts, and passages of context."""
    facts = facts_for_prompt(view)
    named_texts = [] if facts is None else [{"name": "facts", "text": facts}]
    for number, passage in enumerate(view.context or (), start=1):
        named_texts.append({"name": f"passage {number}", "text": passage.text})
    return named_texts


_PassageText = Annotated[str, Field(min_length=1, max_length=1000)]
_ShortText = Annotated[str, Field(max_length=1000)]


async def propose_edits(
    inputs: DeriverInput, kinds: Sequence[EditKind]
) -> tuple[list[TextEdit], str, str]:
    """Return the edits that the model proposes and, without knowing which text is edited, confirms to make it worse.

    With a note on the other proposals, and the call that proposed them. Every passage must occur in the response
    exactly once: other proposals are shown to the model once for repair, then dropped. Raises Fault.
    """
    client = require_client(inputs.client)
    text = inputs.response.text
    reply_model = _proposals_model(tuple(kinds))
    variables = {
        **shared_prompt_variables(inputs),
        "edits": tuple(kinds),
        "known": known_material(inputs.task),
    }

    def find_reply_flaw(reply: Any) -> str | None:
        flaws = (_proposal_flaw(text, edit_proposal) for edit_proposal in reply.contrasts)
        flaws_text = "; ".join(filter(None, flaws))
        hint = "So copy each `passage` letter by letter from the response"
        return f"{flaws_text}. {hint}" if flaws_text else None

    request = client.request(load_prompt(PROPOSE_PROMPT_ID), reply_model, variables)
    result = await client.judge(request, reply_model, find_reply_flaw)
    edit_proposals = result.value.contrasts  # type: ignore[attr-defined]
    edits = []
    for edit_proposal in edit_proposals:
        if not _proposal_flaw(text, edit_proposal):
            start = text.index(edit_proposal.passage)
            end = start + len(edit_proposal.passage)
            after = edit_proposal.instead
            edits.append(replace_passage(edit_proposal.kind, start, end, after, edit_proposal.says))
    worse_flags = await gather_all(_is_edit_worse(inputs, edit) for edit in edits)
    confirmed_edits = list(compress(edits, worse_flags))
    dropped_counts = {
        "changes no passage": len(edit_proposals) - len(edits),
        "is no worse": len(edits) - len(confirmed_edits),
    }
    notes = (f"{count} proposed that {why}" for why, count in dropped_counts.items() if count)
    return confirmed_edits, "; ".join(notes), result.call.id


async def _is_edit_worse(inputs: DeriverInput, edit: TextEdit) -> bool:
    """Return true if the model finds the edited text worse; the order of the texts depends on the edited one."""
    client = require_client(inputs.client)
    edited_text = edit.apply(inputs.response.text)
    is_edited_first = hashlib.sha256(edited_text.encode()).digest()[0] % 2 == 1
    texts = [inputs.response.text, edited_text]
    if is_edited_first:
        texts.reverse()
    responses = [{"name": name, "text": text} for name, text in zip("AB", texts, strict=True)]
    variables = shared_prompt_variables(inputs)
    del variables["response"]  # it would tell which of the two is the edited one
    variables["responses"] = responses
    variables["known"] = known_material(inputs.task)
    request = client.request(load_prompt(COMPARE_PROMPT_ID), ContrastComparison, variables)
    result = await client.judge(request, ContrastComparison)
    return result.value.worse == ("A" if is_edited_first else "B")


def _proposal_flaw(text: str, edit_proposal: Any) -> str | None:
    times = text.count(edit_proposal.passage)
    if times != 1:
        return (
            f"the passage {edit_proposal.passage!r} stands in the response {times} times, and "
            "has to stand there once"
        )
    if edit_proposal.instead == edit_proposal.passage:
        return f"the passage {edit_proposal.passage!r} is put in its own place"
    return None


# No docstrings below: they would be part of the JSON schema that a model is given.


@lru_cache(maxsize=64)
def _proposals_model(kinds: tuple[EditKind, ...]) -> type[FrozenModel]:
    fields: Any = {
        "kind": (Literal[kinds], ...),
        "passage": (_PassageText, ...),
        "instead": (_ShortText, ...),
        "says": (_ShortText, ...),
    }
    contrast_model = create_model("Contrast", __base__=FrozenModel, **fields)
    contrasts_field = Annotated[tuple[contrast_model, ...], Field(max_length=12)]
    return create_model("Contrasts", __base__=FrozenModel, contrasts=(contrasts_field, ...))


class ContrastComparison(FrozenModel):
    reason: _ShortText
    worse: Literal["A", "B", "neither"]
