"""Contrasts of a calculation: a wrong result, an answer that is another quantity, or a missing step.

A result can be changed even without a reference, since arithmetic alone shows that it was right. The other edits are
made only in solutions with the reference's answer: it is unknown if an edit makes a wrong solution worse.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from jurygraph.agents.data_synthesizer.edits import Change, Edit, replace_passage
from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import Span, final_answer, reference_answer
from jurygraph.agents.maths.answer_parser import Number, are_equal_numbers, parse_answer

MAX_CALCULATIONS, MOST_LINES = 50, 200
"""The largest numbers of calculations in one text, and of lines of a solution, that are read."""
CONTEXT_CHARACTERS = 300
"""The number of characters before and after a calculation that may change its meaning."""
_NUMERAL = re.compile(r"(?<![\w.,])(?:[0-9]{1,3}(?:,[0-9]{3}){1,9}|[0-9]{1,30})(?:\.[0-9]{1,30})?(?![\w]|[.,][0-9])")
_LAST_NUMERAL = re.compile(r"=[ \t]*[$£€]?[ \t]*((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)$")
_REPEATED = re.compile(r">>[ \t]*[$£€]?[ \t]*((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)(?![\w%]|[.,][0-9])")
_PLAIN_ANSWER = re.compile(
    r"[$£€]?[ \t]*((?:[0-9]{1,3}(?:,[0-9]{3}){1,9}|[0-9]{1,30})(?:\.[0-9]{1,30})?)(?:[ \t]*[A-Za-z][A-Za-z ]*)?"
)
_LINE = re.compile(r"[^\n]+")
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SPELLED = {word: Fraction(number) for number, word in enumerate(_WORDS)}
_SPELLED |= {"half": Fraction(1, 2), "twice": Fraction(2), "double": Fraction(2), "dozen": Fraction(12)}
_SPELLED |= {"triple": Fraction(3), "thrice": Fraction(3), "third": Fraction(3), "quarter": Fraction(4)}
_WORD = re.compile(r"[a-z]+")
_SHIFTS = (1, 2, 3, 10)


def right_steps(text: str) -> list[arithmetic.Step]:
    """Return the calculations of a text that are exactly right and end in a plain number, at most 50."""
    return [
        step
        for step in arithmetic.steps(text)[:MAX_CALCULATIONS]
        if step.is_right and step.claimed == step.value and _LAST_NUMERAL.search(step.quote)
    ]


@dataclass(frozen=True, slots=True)
class CorrectAnswer:
    """A text's final answer that equals the reference's: its position, and its value."""

    span: Span
    number: Number


def matching_answer(text: str, reference: str | None) -> CorrectAnswer | bool:
    """Return the plain number that a text gives as its answer, if it equals the reference's; False if it differs.

    True if there is no reference, or one without an answer. If the reference's answer is no plain number, answers
    cannot be compared: False.
    """
    reference_text = reference_answer(reference or "")
    if reference_text is None:
        return True
    expected = parse_answer(reference_text)
    if expected is None or expected.number is None:
        return False
    answer_span = final_answer(text)
    answer = None if answer_span is None else parse_answer(answer_span.text)
    if (
        answer_span is None
        or answer is None
        or answer.number is None
        or not are_equal_numbers(answer.number, expected.number)
    ):
        return False
    return CorrectAnswer(answer_span, answer.number)


def wrong_result_edits(text: str) -> Iterator[Edit]:
    """Yield an edit per right calculation that changes its result, also in the repetition after an annotation."""
    for place, step in enumerate(right_steps(text)):
        numeral = _LAST_NUMERAL.search(step.quote)
        assert numeral is not None  # right_steps selects by this pattern
        original = numeral[1]
        replacement = _shift(original, _SHIFTS[place % len(_SHIFTS)])
        changes = [Change(step.start + numeral.start(1), step.start + numeral.end(1), replacement)]
        repeated = _REPEATED.match(text, step.end)
        if repeated and _value(repeated[1]) == step.claimed:
            changes.append(Change(*repeated.span(1), _shift(repeated[1], _SHIFTS[place % len(_SHIFTS)])))
        says = f"{step.quote[: numeral.start(1)].rstrip(' $£€=')} is {original}, not {replacement}"
        if _becomes_wrong(text, step, changes):
            yield Edit("number", tuple(changes), says)


def _becomes_wrong(text: str, step: arithmetic.Step, changes: Sequence[Change]) -> bool:
    """Return true if the calculation is wrong after the changes, read within its line."""
    start = max(text.rfind("\n", 0, step.start) + 1, step.start - CONTEXT_CHARACTERS)
    end = text.find("\n", step.start)
    line = text[start : min(len(text) if end < 0 else end, step.end + CONTEXT_CHARACTERS)]
    moved = tuple(Change(change.start - start, change.end - start, change.after) for change in changes)
    changed_line = Edit("number", moved, "").apply(line)
    return any(
        changed_step.start == step.start - start and not changed_step.is_right
        for changed_step in arithmetic.steps(changed_line)
    )


def _shift(numeral: str, by: int) -> str:
    """Return a numeral in the same notation whose value is larger by a whole number."""
    whole, point, decimals = numeral.partition(".")
    return f"{int(whole.replace(',', '')) + by:{',' if ',' in whole else ''}d}{point}{decimals}"


def other_answer_edits(text: str, query: str, answer: CorrectAnswer) -> Iterator[Edit]:
    """Yield edits that replace the answer by other numbers of the solution, or of the task."""
    match, number = _PLAIN_ANSWER.fullmatch(answer.span.text), answer.number
    if match is None:
        return
    start, end = answer.span.start + match.start(1), answer.span.start + match.end(1)
    seen = {_value(match[1])}
    for source in (text[: answer.span.start], query):
        for numeral in _NUMERAL.finditer(source):
            value = _value(numeral[0])
            if value not in seen and not are_equal_numbers(Number(value, number.percent, True), number):
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
        used_value = next(
            (value for later_line in body[place + 1 :] for value in sorted(needed & _operands(later_line.group()))),
            None,
        )
        if used_value is not None:
            end = line.end() + (text[line.end() : line.end() + 1] == "\n")
            says = f"{_format(used_value)}, which it needs, is worked out in no step"
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
    spelled = {_SPELLED[word] for word in _WORD.findall(text.lower()) if word in _SPELLED}
    return frozenset(spelled.union(_value(numeral[0]) for numeral in _NUMERAL.finditer(text)))


def _value(numeral: str) -> Fraction:
    return Fraction(numeral.replace(",", ""))


def _format(value: Fraction) -> str:
    return f"{float(value):.10g}"
