"""Contrasts of a calculation: a result that is no longer true, an answer of another quantity, a step that is missing.

A result can be made wrong where no reference says otherwise, since arithmetic alone says that it was right. The others
are made of solutions alone whose answer is the reference's: of a wrong one nobody knows whether an edit makes it worse.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from jurygraph.agents.data_synthesizer.edits import Change, Edit, replaced
from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import Span, final_answer, reference_answer
from jurygraph.agents.maths.reading import Number, read, same_number

MOST_READ, MOST_LINES = 50, 200
"""Calculations of one text, and lines of a solution, that are looked at."""
AROUND = 300
"""Characters before and behind a calculation that may change what it means."""
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
    """The calculations of a text that are exactly right and end in a plain number, at most 50 of them."""
    return [
        step
        for step in arithmetic.steps(text)[:MOST_READ]
        if step.right and step.claimed == step.value and _LAST_NUMERAL.search(step.quote)
    ]


@dataclass(frozen=True, slots=True)
class Answered:
    """A text's final answer that is the reference's too: where it stands, and its value."""

    span: Span
    number: Number


def solved(text: str, reference: str | None) -> Answered | bool:
    """The plain number that a text answers with, where it is the reference's; False where the text answers otherwise.

    True where there is no reference, or one that states no answer. Where it states one that is no plain number, nobody
    here knows who answers alike: False.
    """
    wanted = reference_answer(reference or "")
    if wanted is None:
        return True
    expected = read(wanted)
    if expected is None or expected.number is None:
        return False
    found = final_answer(text)
    answer = None if found is None else read(found.text)
    if found is None or answer is None or answer.number is None or not same_number(answer.number, expected.number):
        return False
    return Answered(found, answer.number)


def wrong_results(text: str) -> Iterator[Edit]:
    """Each right calculation with another result, in its annotation and behind it where it stands twice."""
    for place, step in enumerate(right_steps(text)):
        numeral = _LAST_NUMERAL.search(step.quote)
        assert numeral is not None  # that is how they were picked
        written = numeral[1]
        shown = _shifted(written, _SHIFTS[place % len(_SHIFTS)])
        changes = [Change(step.start + numeral.start(1), step.start + numeral.end(1), shown)]
        repeated = _REPEATED.match(text, step.end)
        if repeated and _value(repeated[1]) == step.claimed:
            changes.append(Change(*repeated.span(1), _shifted(repeated[1], _SHIFTS[place % len(_SHIFTS)])))
        says = f"{step.quote[: numeral.start(1)].rstrip(' $£€=')} is {written}, not {shown}"
        if _is_wrong(text, step, changes):
            yield Edit("number", tuple(changes), says)


def _is_wrong(text: str, step: arithmetic.Step, changes: Sequence[Change]) -> bool:
    """Whether the calculation is wrong after the changes in its line, read with what stands around it."""
    start = max(text.rfind("\n", 0, step.start) + 1, step.start - AROUND)
    end = text.find("\n", step.start)
    line = text[start : min(len(text) if end < 0 else end, step.end + AROUND)]
    moved = tuple(Change(one.start - start, one.end - start, one.after) for one in changes)
    made = Edit("number", moved, "").made(line)
    return any(one.start == step.start - start and not one.right for one in arithmetic.steps(made))


def _shifted(numeral: str, by: int) -> str:
    """A numeral written alike, of a value that is larger by a whole number."""
    whole, point, rest = numeral.partition(".")
    return f"{int(whole.replace(',', '')) + by:{',' if ',' in whole else ''}d}{point}{rest}"


def other_answers(text: str, query: str, answer: Answered) -> Iterator[Edit]:
    """The answer swapped for other numbers of the solution, or of the task."""
    said, number = _PLAIN_ANSWER.fullmatch(answer.span.text), answer.number
    if said is None:
        return
    start, end = answer.span.start + said.start(1), answer.span.start + said.end(1)
    seen = {_value(said[1])}
    for source in (text[: answer.span.start], query):
        for numeral in _NUMERAL.finditer(source):
            value = _value(numeral[0])
            if value not in seen and not same_number(Number(value, number.percent, True), number):
                seen.add(value)
                yield replaced("answer", start, end, numeral[0], f"the answer is {said[1]}, not {numeral[0]}")


def without_a_step(text: str, query: str, answer: Answered) -> Iterator[Edit]:
    """The solution without one line whose result a later calculation or sentence uses, and that no line before it, no
    other calculation and no word of the task has.

    That the answer is the result is no use of it: a line that nothing but the answer rests on stays.
    """
    body = [line for line in _LINE.finditer(text, 0, answer.span.start) if line.group().strip()][:MOST_LINES]
    body = body[:-1] if body and body[-1].end() == answer.span.start else body  # what is left of the answer's own line
    results = [_results(line.group()) for line in body]
    times = Counter(value for own in results for value in own)
    known = {*values_in(query), Fraction(0)}  # nothing is known of nothing without a sum
    for place, line in enumerate(body):
        needed = {value for value in results[place] - known if times[value] == 1}
        used = next((value for other in body[place + 1 :] for value in sorted(needed & _taken_up(other.group()))), None)
        if used is not None:
            end = line.end() + (text[line.end() : line.end() + 1] == "\n")
            says = f"{_written(used)}, which it needs, is worked out in no step"
            yield replaced("step", line.start(), end, "", says)
        known |= values_in(line.group())


def _results(line: str) -> set[Fraction]:
    return {step.claimed for step in arithmetic.steps(line) if step.right}


@lru_cache(maxsize=256)
def _taken_up(line: str) -> frozenset[Fraction]:
    """The numbers that a line takes up: operands, and what it does not work out itself."""
    made = _results(line)
    operands = {value for step in arithmetic.steps(line) for value in values_in(step.expression)}
    return frozenset(operands | (values_in(line) - made))


@lru_cache(maxsize=256)
def values_in(text: str) -> frozenset[Fraction]:
    """The values of all numbers in a text, of number words too."""
    spelled = {_SPELLED[word] for word in _WORD.findall(text.lower()) if word in _SPELLED}
    return frozenset(spelled.union(_value(numeral[0]) for numeral in _NUMERAL.finditer(text)))


def _value(numeral: str) -> Fraction:
    return Fraction(numeral.replace(",", ""))


def _written(value: Fraction) -> str:
    return f"{float(value):.10g}"
