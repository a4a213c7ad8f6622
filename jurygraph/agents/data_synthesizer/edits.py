"""Edits that make a text worse: in a calculation, in the answer, and in the name of a table row.

A result can be changed even without a reference, since arithmetic alone shows that it was right. The other edits of a
calculation are made only in solutions with the reference's answer: it is unknown if they make a wrong solution worse.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

from jurygraph.agents.facts.loader import load_facts
from jurygraph.agents.facts.tables import FactTable
from jurygraph.agents.facts.values import is_missing, normalise, parse_number, to_text
from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import Span, final_answer, reference_answer
from jurygraph.agents.maths.quantities import Reading, are_equal_numbers, compare_plainly, parse_answer
from jurygraph.schema import Response, TaskView, Variant

T = TypeVar("T")
Kind = Literal["number", "step", "answer", "entity"]


class TextChange(NamedTuple):
    """One passage of a text, `text[start:end]`, and its replacement."""

    start: int
    end: int
    after: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A contrast of a text: non-overlapping changes in their order; `reason` explains the error that they introduce."""

    kind: Kind
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
        places = {"kind": self.kind, "start": first.start, "end": last.end, "before": before, "after": after}
        return Variant(response=Response(id=name, text=text), edit={**places, "says": self.reason})


def replace_passage(kind: Kind, start: int, end: int, after: str, says: str) -> Edit:
    return Edit(kind, (TextChange(start, end, after),), says)


def choose_some(candidates: Sequence[T], most: int, seed: str) -> list[T]:
    """Return at most `most` of the candidates, in their order; the selection depends on the seed only."""
    chosen = random.Random(seed).sample(range(len(candidates)), min(most, len(candidates)))
    return [candidates[index] for index in sorted(chosen)]


_UNCERTAIN = re.compile(r"\b(?:if|unless|whether|not|no|never|suppose|let|would|could)\b|n't\b", re.IGNORECASE)
MOST_ROWS = 1_000  # the largest number of rows read per table
MOST_NAMES = 20  # the largest number of names per table that are searched in a text
_MIN_NAME_LENGTH = 3
_COMPARES = re.compile(r"\b(?:than|instead|rather|above|below|under|over|least|most|too)\b", re.IGNORECASE)
"""Comparing and excluding words: a name in such a line may not be what the rest of the line describes."""
Row = Mapping[str, Any]


def other_name_edits(text: str, view: TaskView) -> Iterator[Edit]:
    """Yield edits that swap a name from a task's table for a name with another value in that table.

    The line of the name must contain a table value of it, which becomes false. Tables in the task and in files are
    read, 1,000 rows of each; tools list no rows.
    """
    if view.facts is None:
        return
    for table in load_facts(view).tables.values():
        yield from _edits_from_table(text, table, table.first_rows(MOST_ROWS))


def _edits_from_table(text: str, table: FactTable, rows: Sequence[Row]) -> Iterator[Edit]:
    column = table.spec.key[0]
    named = [row for row in rows if len(str(row.get(column) or "")) >= _MIN_NAME_LENGTH]
    absent = [row for row in named if str(row[column]) not in text]
    for row in islice((row for row in named if str(row[column]) in text), MOST_NAMES):
        match = _find_whole(str(row[column]), text)
        line = "" if match is None else text[slice(*_line_range(text, match.start(), match.end()))]
        if match is None or _COMPARES.search(line) or _UNCERTAIN.search(line):
            continue
        for field in sorted(row.keys() - set(table.spec.key)):
            value = _cell_text(row[field])
            if is_missing(row[field]) or len(value) < 2 or not _find_whole(value, line):
                continue
            other_row = _first_contradicting(value, field, absent, rows, column)
            if other_row is not None:
                says = f"{field} of {other_row[column]!r} is {_cell_text(other_row[field])}, not {row[field]}"
                yield replace_passage("entity", *match.span(), str(other_row[column]), says)
                break


def _line_range(text: str, start: int, end: int) -> tuple[int, int]:
    close = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, len(text) if close < 0 else close


def _cell_text(value: Any) -> str:
    number = parse_number(value)
    return to_text(value if number is None else number)


def _first_contradicting(value: str, field: str, absent: Sequence[Row], rows: Sequence[Row], column: str) -> Row | None:
    """Return the first row whose name is not in the response and none of whose rows has an overlapping value."""
    similar_names = {
        normalise(candidate.get(column))
        for candidate in rows
        if is_missing(candidate.get(field)) or _overlaps(value, _cell_text(candidate[field]))
    }
    return next((candidate for candidate in absent if normalise(candidate[column]) not in similar_names), None)


def _overlaps(first: str, second: str) -> bool:
    return _find_whole(first, second) is not None or _find_whole(second, first) is not None


def _find_whole(needle: str, text: str) -> "re.Match[str] | None":
    return re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", text) if needle in text else None


MAX_CALCULATIONS = 50
MOST_LINES = 200
"""The largest numbers of calculations in one text, and of lines of a solution, that are read."""
CONTEXT_CHARACTERS = 300  # the number of characters before and after a calculation that may change its meaning
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,9}|[0-9]{1,30})(?:\.[0-9]{1,30})?"
_ANY_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_NUMERAL = re.compile(rf"(?<![\w.,]){_NUMBER}(?![\w]|[.,][0-9])")
_LAST_NUMERAL = re.compile(rf"=[ \t]*[$£€]?[ \t]*({_ANY_NUMBER})$")
_REPEATED = re.compile(rf">>[ \t]*[$£€]?[ \t]*({_ANY_NUMBER})(?![\w%]|[.,][0-9])")
_PLAIN_ANSWER = re.compile(rf"[$£€]?[ \t]*({_NUMBER})(?:[ \t]*[A-Za-z][A-Za-z ]*)?")
_LINE = re.compile(r"[^\n]+")
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SPELLED = {word: Fraction(number) for number, word in enumerate(_SMALL)}
_SPELLED |= {"half": Fraction(1, 2), "twice": Fraction(2), "double": Fraction(2), "dozen": Fraction(12)}
_SPELLED |= {"triple": Fraction(3), "thrice": Fraction(3), "third": Fraction(3), "quarter": Fraction(4)}
_SHIFTS = (1, 2, 3, 10)


def right_steps(text: str) -> list[arithmetic.CalculationStep]:
    """Return the calculations of a text that are exactly right and end in a plain number, at most 50."""
    return [
        step
        for step in arithmetic.steps(text)[:MAX_CALCULATIONS]
        if step.is_right and step.claimed == step.value and _LAST_NUMERAL.search(step.quote)
    ]


class CorrectAnswer(NamedTuple):
    """A text's final answer that equals the reference's: its position, and the plain number."""

    span: Span
    number: Reading


def matching_answer(text: str, reference: str | None) -> CorrectAnswer | bool:
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
    return compare_plainly(answer, expected) is True and CorrectAnswer(span, answer)


def wrong_result_edits(text: str) -> Iterator[Edit]:
    """Yield an edit per right calculation that changes its result, also in the repetition after an annotation."""
    for place, step in enumerate(right_steps(text)):
        numeral = _LAST_NUMERAL.search(step.quote)
        by = _SHIFTS[place % len(_SHIFTS)]
        assert numeral is not None  # right_steps selects by this pattern
        original = numeral[1]
        replacement = _shift(numeral[1], by)
        changes = [TextChange(step.start + numeral.start(1), step.start + numeral.end(1), replacement)]
        repeated = _REPEATED.match(text, step.end)
        if repeated and _value(repeated[1]) == step.claimed:
            changes.append(TextChange(*repeated.span(1), _shift(repeated[1], by)))
        says = f"{step.quote[: numeral.start(1)].rstrip(' $£€=')} is {original}, not {replacement}"
        if _becomes_wrong(text, step, changes):
            yield Edit("number", tuple(changes), says)


def _becomes_wrong(text: str, step: arithmetic.CalculationStep, changes: Sequence[TextChange]) -> bool:
    line_start, line_end = _line_range(text, step.start, step.start)
    offset = max(line_start, step.start - CONTEXT_CHARACTERS)
    line = text[offset : min(line_end, step.end + CONTEXT_CHARACTERS)]
    moved = tuple(TextChange(start - offset, end - offset, after) for start, end, after in changes)
    steps = arithmetic.steps(Edit("number", moved, "").apply(line))
    return any(changed.start == step.start - offset and not changed.is_right for changed in steps)


def _shift(numeral: str, by: int) -> str:
    whole, point, decimals = numeral.partition(".")
    return f"{int(whole.replace(',', '')) + by:{',' if ',' in whole else ''}d}{point}{decimals}"


def other_answer_edits(text: str, query: str, answer: CorrectAnswer) -> Iterator[Edit]:
    """Yield edits that replace the answer by other numbers of the solution, or of the task."""
    match = _PLAIN_ANSWER.fullmatch(answer.span.text)
    number = answer.number
    if match is None:
        return
    start = answer.span.start + match.start(1)
    end = answer.span.start + match.end(1)
    seen = {_value(match[1])}
    for source in (text[: answer.span.start], query):
        for numeral in _NUMERAL.finditer(source):
            value = _value(numeral[0])
            if value not in seen and not are_equal_numbers(replace(number, value=value, decimal=True), number):
                seen.add(value)
                yield replace_passage("answer", start, end, numeral[0], f"the answer is {match[1]}, not {numeral[0]}")


def missing_step_edits(text: str, query: str, answer: CorrectAnswer) -> Iterator[Edit]:
    """Yield edits that remove one line whose result a later calculation or sentence uses, and that no earlier line, no
    other calculation and no word of the task contains.

    Being the answer does not count as a use: a line that only the answer depends on stays.
    """
    body = [line for line in _LINE.finditer(text, 0, answer.span.start) if line.group().strip()][:MOST_LINES]
    body = body[:-1] if body and body[-1].end() == answer.span.start else body  # the beginning of the answer's own line
    results = [_results(line.group()) for line in body]
    times = Counter(value for line_results in results for value in line_results)
    known = {*values_in(query), Fraction(0)}  # 0 needs no calculation
    for place, line in enumerate(body):
        needed = {value for value in results[place] - known if times[value] == 1}
        used = (value for later in body[place + 1 :] for value in sorted(needed & _operands(later.group())))
        value = next(used, None)
        if value is not None:
            end = line.end() + (text[line.end() : line.end() + 1] == "\n")
            says = f"{float(value):.10g}, which it needs, is worked out in no step"
            yield replace_passage("step", line.start(), end, "", says)
        known |= values_in(line.group())


def _results(line: str) -> set[Fraction]:
    return {step.claimed for step in arithmetic.steps(line) if step.is_right}


@lru_cache(maxsize=256)
def _operands(line: str) -> frozenset[Fraction]:
    """Return the numbers that a line uses: operands, and numbers that it does not compute itself."""
    results = _results(line)
    operands = {value for step in arithmetic.steps(line) for value in values_in(step.expression)}
    return frozenset(operands | (values_in(line) - results))


@lru_cache(maxsize=256)
def values_in(text: str) -> frozenset[Fraction]:
    """Return the values of all numbers in a text, including number words."""
    spelled = {_SPELLED[word] for word in re.findall("[a-z]+", text.lower()) if word in _SPELLED}
    return frozenset(spelled.union(_value(numeral[0]) for numeral in _NUMERAL.finditer(text)))


def _value(numeral: str) -> Fraction:
    return Fraction(numeral.replace(",", ""))
