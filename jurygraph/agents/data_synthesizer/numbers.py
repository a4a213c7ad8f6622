"""Contrasts of a calculation: a result that is no longer true, an answer of another quantity, a step that is missing.

A result can be made wrong where no reference says otherwise, since arithmetic alone says that it was right. The others
are made of solutions alone whose answer is the reference's: of a wrong one nobody knows whether an edit makes it worse.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from jurygraph.agents.data_synthesizer.edits import Change, Edit, replaced
from jurygraph.agents.maths import arithmetic
from jurygraph.agents.maths.answer import Span, final_answer, reference_answer
from jurygraph.agents.maths.reading import Number, read, same_number

MOST_READ = 50
"""Calculations of one text that are looked at."""
_NUMERAL = re.compile(r"(?<![\w.,])(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?![\w]|[.,][0-9])")
_LAST_NUMERAL = re.compile(r"=[ \t]*[$£€]?[ \t]*((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)$")
_REPEATED = re.compile(r">>[ \t]*[$£€]?[ \t]*((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)(?![\w%]|[.,][0-9])")
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

    True where that cannot be known: there is no reference, or none whose answer is a plain number.
    """
    wanted = reference_answer(reference or "")
    expected = None if wanted is None else read(wanted)
    if expected is None or expected.number is None:
        return True
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
        edit = Edit("number", tuple(changes), says)
        if _is_wrong(edit.made(text), step):
            yield edit


def _is_wrong(text: str, step: arithmetic.Step) -> bool:
    """Whether the calculation that begins where this one did is now wrong."""
    return any(one.start == step.start and not one.right for one in arithmetic.steps(text))


def _shifted(numeral: str, by: int) -> str:
    """A numeral written alike, of a value that is larger by a whole number."""
    whole, point, rest = numeral.partition(".")
    return f"{int(whole.replace(',', '')) + by:{',' if ',' in whole else ''}d}{point}{rest}"


def other_answers(text: str, query: str, answer: Answered) -> Iterator[Edit]:
    """The answer swapped for other numbers of the solution, or of the task."""
    said, number = _NUMERAL.search(answer.span.text), answer.number
    if said is None:
        return
    start, end = answer.span.start + said.start(), answer.span.start + said.end()
    seen = {_value(said[0])}
    for source in (text[: answer.span.start], query):
        for numeral in _NUMERAL.finditer(source):
            value = _value(numeral[0])
            if value not in seen and not same_number(Number(value, number.percent, True), number):
                seen.add(value)
                yield replaced("answer", start, end, numeral[0], f"the answer is {said[0]}, not {numeral[0]}")


def without_a_step(text: str, query: str, answer: Answered) -> Iterator[Edit]:
    """The solution without one line whose result a later one uses, and that no line before it, no other calculation and
    no word of the task has.

    The answer's own line is never the one that is missing, nor the line that no other stands before or behind.
    """
    lines = [line for line in _LINE.finditer(text) if line.group().strip()]
    body = [line for line in lines if line.end() <= answer.span.start]
    if len(body) < 2:
        return
    given = values_in(query)
    for place, line in enumerate(body):
        known = given.union(*(values_in(other.group()) for other in body[:place]))
        later = [other.group() for other in lines if other.start() > line.end()]
        made = set[Fraction]().union(*(_results(other.group()) for other in lines if other is not line))
        needed = _results(line.group()) - known - made - {Fraction(0)}  # nothing is known of nothing without a sum
        used = next((value for value in sorted(needed) if any(value in _first_used(one) for one in later)), None)
        if used is not None:
            end = line.end() + (text[line.end() : line.end() + 1] == "\n")
            says = f"{_written(used)}, which it needs, is worked out in no step"
            yield replaced("step", line.start(), end, "", says)


def _results(line: str) -> set[Fraction]:
    return {step.claimed for step in arithmetic.steps(line) if step.right}


def _first_used(line: str) -> set[Fraction]:
    """The numbers that a line takes up: those before what it works out itself."""
    made = _results(line)
    operands = {value for step in arithmetic.steps(line) for value in values_in(step.expression)}
    return operands | (values_in(line) - made)


def values_in(text: str) -> set[Fraction]:
    """The values of all numbers in a text, of number words too."""
    spelled = {_SPELLED[word] for word in _WORD.findall(text.lower()) if word in _SPELLED}
    return {_value(numeral[0]) for numeral in _NUMERAL.finditer(text)} | spelled


def _value(numeral: str) -> Fraction:
    return Fraction(numeral.replace(",", ""))


def _written(value: Fraction) -> str:
    return f"{float(value):.10g}"
