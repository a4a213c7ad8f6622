"""Compare two answers, as what the reference is: as numbers, letters, words, or by math-verify.

math-verify may never return, and so it runs in a worker process (see `worker_pool`). No sympy object is ever printed
here: that can hang (math-verify issues #50, #55, #65). Only the grammar of math-verify reads text; its route through
Python's `eval` is not used. Numbers are never left to it: it calls two of them equal if both are nearly 0."""

import contextlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from jurygraph.agents.maths.kinds import MatrixAnswer, TypedAnswer, read_answer, read_reference
from jurygraph.agents.maths.reading import AnswerValue, find_measure_unit
from jurygraph.agents.worker_pool import WorkerPool

_EQUALS_SIGN_PATTERN = re.compile(r"(?:(?<![<>!:\\])=|\\approx(?![A-Za-z]))(?![^{}]*\})")
_ALTERNATIVE_SEPARATOR_PATTERN = re.compile(r",|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")
_OR_WORD_PATTERN = re.compile(r"(?<![A-Za-z])or(?![A-Za-z])|\\(?:lor|vee)(?![A-Za-z])")
_SYMBOL_PATTERN = re.compile(
    r" ?\\?[A-Za-z]{1,7}(?:_\{?[A-Za-z0-9]{1,3}\}?)? ?(?:\( ?[A-Za-z] ?\))? ?$"
)


def compare_answer_values(answer: AnswerValue, reference: AnswerValue) -> bool | None:
    """Return true if two answers are equal numbers; None if one is another expression, which math-verify compares.

    Units of one dimension are converted; of two, they make the answers different, and so do "%" and a unit. If one has
    no unit, the number decides.
    """
    unit_ratio = Fraction(1)
    if answer.unit and reference.unit:
        if answer.unit.dimension != reference.unit.dimension:
            return False
        unit_ratio = answer.unit.size / reference.unit.size
    if answer.value is None or reference.value is None:
        return None
    if answer.percent != reference.percent and (answer.unit or reference.unit):
        return False
    return are_equal_numbers(replace(answer, value=answer.value * unit_ratio), reference)


def are_equal_numbers(answer: AnswerValue, reference: AnswerValue) -> bool:
    """Return true if two plain numbers are equal, whatever their units; "50%" equals both "0.5" and "50".

    Whole numbers and fractions are compared exactly, and others by `are_close`: nothing small equals 0.
    """
    answer_value = answer.value
    reference_number = reference.value
    assert answer_value is not None, "a plain number"
    assert reference_number is not None, "a plain number"
    pairs = [(answer_value, reference_number)]
    if answer.percent != reference.percent:
        pairs.append(
            (answer_value / 100, reference_number)
            if answer.percent
            else (answer_value, reference_number / 100)
        )
    has_decimals = answer.is_decimal or reference.is_decimal
    return any(
        answer_value == reference_number
        or (has_decimals and are_close(answer_value, reference_number))
        for answer_value, reference_number in pairs
    )


def are_close(first: Fraction, second: Fraction) -> bool:
    """Return whether two numbers agree when rounded to six decimals (math-verify's rule), and to a relative 1e-6."""
    return (
        round(first, 6) == round(second, 6)
        and abs(first - second) <= max(abs(first), abs(second)) / 10**6
    )


def list_claimed_expressions(answer: str, reference: str) -> list[str]:
    """Return the LaTeX expressions that must all equal `reference` for `answer` to be right.

    An answer "3+15 = 18" claims 3+15 and 18, "x = 18" only 18, "17 = 18" both 17 and 18; "x=17 or x=18" claims the set
    of both. math-verify alone compares the last of them. Empty if the equations do not make a single claim.
    """
    if (":" in answer) != (":" in reference):  # math-verify divides, so that "18:1" would be 18
        return []
    alternatives = [
        _EQUALS_SIGN_PATTERN.split(part) for part in _ALTERNATIVE_SEPARATOR_PATTERN.split(answer)
    ]
    is_set_of_solutions = all(
        len(equation_sides) == 2 and _SYMBOL_PATTERN.match(equation_sides[0])
        for equation_sides in alternatives
    )
    if is_set_of_solutions and len(alternatives) > 1:
        if _EQUALS_SIGN_PATTERN.search(reference):
            return [answer]
        return [",".join(equation_sides[1] for equation_sides in alternatives)]
    equation_sides = _EQUALS_SIGN_PATTERN.split(answer)
    if len(equation_sides) == 1:
        return [answer]
    if not all(side.strip() for side in equation_sides):
        return []
    if _EQUALS_SIGN_PATTERN.search(reference):
        return [answer] if len(equation_sides) == 2 else []
    return equation_sides[1:] if _SYMBOL_PATTERN.match(equation_sides[0]) else equation_sides


ComparisonStatus = Literal["equal", "different", "unparsed-answer", "unparsed-reference"]
"""`equal` and `different` are judgements; else that side cannot be read, the reference being read first."""

_MAX_COMPARED_DIGITS = 300  # significant digits in which numbers are compared that are no fractions
# Decimals after which math-verify takes a coefficient for 0: its 15 make Planck's constant 0.
_ZERO_CUTOFF_DECIMALS = 100
_PRECISION_DIGITS = 30  # significant digits of numbers that are compared with decimals
MEMORY_LIMIT_BYTES = 4 * 2**30  # bytes of address space
MAX_ANSWER_CHARACTERS = 10_000  # characters of an answer or a reference


def make_comparison_pool(time_limit: float = 2.0, worker_count: int = 1) -> WorkerPool:
    """Return processes in which `call` compares as `compare_answers` does, each comparison limited to `time_limit`
    seconds."""
    return WorkerPool("maths", f"{__name__}:prepare", time_limit=time_limit, workers=worker_count)


def prepare(setup: None) -> Callable[[str, str, str], ComparisonStatus]:
    """Limit the memory of this worker process, and return the function that compares two answers."""
    import resource  # POSIX alone has it

    with contextlib.suppress(ValueError, OSError):
        _, memory_hard_limit = resource.getrlimit(resource.RLIMIT_AS)
        bound = (
            MEMORY_LIMIT_BYTES
            if memory_hard_limit == resource.RLIM_INFINITY
            else min(MEMORY_LIMIT_BYTES, memory_hard_limit)
        )
        resource.setrlimit(resource.RLIMIT_AS, (bound, memory_hard_limit))
    logging.disable(logging.CRITICAL)
    # The first comparison builds tables for longer than the time limit.
    compare_answers("x+1", "1+x")
    compare_answers(r"\frac{1}{2}x", "0.5x")
    compare_answers("(1,2)", "[1,2]")
    compare_answers(r"\sqrt{2}", "1.414")
    return compare_answers


def compare_answers(answer: str, reference: str, unit: str = "") -> ComparisonStatus:
    """Compare two answers; import math-verify unless `compare_without_maths` suffices. It may never return.

    `unit` is that which the question asks for, such as "dollars": that of a reference without one, if the answer
    has another of its dimension. Answer and reference are not interchangeable, since math-verify is not symmetric.
    Raises MemoryError or RecursionError beyond the limits of this process.
    """
    status = compare_without_maths(answer, reference, unit)
    if status is not None:
        return status
    gold = read_reference(reference)
    assert gold is not None, "a reference that cannot be read has a status"
    if any(_parse_latex(answer_value.latex) is None for answer_value in _list_answer_values(gold)):
        return "unparsed-reference"
    claimed_answer = read_answer(answer, gold)
    if claimed_answer is None:
        return "unparsed-answer"
    statuses = [_compare_expressions(*pair) for pair in _pair_answer_values(claimed_answer, gold)]
    return next((status for status in statuses if status != "equal"), "equal")


def compare_without_maths(answer: str, reference: str, unit: str) -> ComparisonStatus | None:
    """Compare two answers unless that takes mathematics: numbers, letters, words, and what cannot be read.

    Returns None for other expressions, also if only the answer cannot be read: the reference may not be either. Takes
    time proportional to the texts.
    """
    gold = read_reference(reference)
    if gold is None:
        return "unparsed-reference"
    claimed_answer = read_answer(answer, gold)
    if claimed_answer is None:
        is_plain_number = all(
            answer_value.value is not None for answer_value in _list_answer_values(gold)
        )
        return "unparsed-answer" if is_plain_number else None
    if isinstance(claimed_answer, AnswerValue) and isinstance(gold, AnswerValue):
        return _to_status(
            compare_answer_values(claimed_answer, _add_required_unit(gold, claimed_answer, unit))
        )
    pairs = _pair_answer_values(claimed_answer, gold)
    if not pairs:
        return _to_status(claimed_answer == gold)
    are_equal = [compare_answer_values(*pair) for pair in pairs]
    if False in are_equal:
        return "different"
    return None if None in are_equal else "equal"


def _to_status(is_equal: bool | None) -> ComparisonStatus | None:
    if is_equal is None:
        return None
    return "equal" if is_equal else "different"


def _add_required_unit(reference: AnswerValue, answer: AnswerValue, unit: str) -> AnswerValue:
    """Return a reference with the unit that the question asks for, if only the answer has one of its dimension."""
    required_unit = find_measure_unit(unit) if unit else None
    if not required_unit or not answer.unit or reference.unit:
        return reference
    is_unit_implied = answer.unit.dimension == required_unit.dimension
    return replace(reference, unit=required_unit) if is_unit_implied else reference


def _list_answer_values(kind: TypedAnswer) -> list[AnswerValue]:
    """Return the numbers and expressions in a reference: itself, or the cells of a matrix."""
    if isinstance(kind, AnswerValue):
        return [kind]
    return list(chain(*kind.rows)) if isinstance(kind, MatrixAnswer) else []


def _pair_answer_values(
    answer: TypedAnswer, reference: TypedAnswer
) -> list[tuple[AnswerValue, AnswerValue]]:
    """Return what must be equal for two answers to be: themselves, or the cells of matrices of one shape."""
    if (
        isinstance(answer, MatrixAnswer)
        and isinstance(reference, MatrixAnswer)
        and answer.shape != reference.shape
    ):
        return []
    return list(zip(_list_answer_values(answer), _list_answer_values(reference), strict=True))


def _compare_expressions(answer: AnswerValue, reference: AnswerValue) -> ComparisonStatus:
    gold = _parse_latex(reference.latex)
    assert gold is not None, "the reference is read first"
    if answer.latex.split() == reference.latex.split():
        return "equal"
    expressions = list_claimed_expressions(answer.latex, reference.latex)
    claims = [
        claim for expression in expressions if (claim := _parse_latex(expression)) is not None
    ]
    if not claims or len(claims) < len(expressions):
        return "unparsed-answer"
    try:
        gold = _relations_to_set(gold)
        is_equal = all(_are_equal_objects(gold, _relations_to_set(claim)) for claim in claims)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - sympy raises anything if two objects are not comparable: then they differ
        is_equal = False
    return "equal" if is_equal else "different"


class _ParsedAnswer(NamedTuple):
    """A sympy object without floats, whether its text had decimals, and whether it lists alternatives by "or"."""

    value: Any
    has_decimals: bool
    has_alternatives: bool = False


@lru_cache(maxsize=256)
def _parse_latex(latex: str) -> _ParsedAnswer | None:
    """Return the one sympy object that `latex` as a whole represents; None if it represents none, or no number.

    Its decimals become fractions, so that only `_are_equal_plain_numbers` decides how far they may be apart.
    """
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse
    from math_verify.grader import nan, zoo
    from sympy import Equality, Float, Rational, Set

    # Without math-verify's removal of units, which reads "5t" as 5: `parse_answer` removes them.
    options = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none"
    )
    extraction_configs = [
        LatexExtractionConfig(boxed_match_priority=-1, normalization_config=options)
    ]
    expressions = parse(
        f"${latex}$", extraction_configs, fallback_mode="no_fallback", parsing_timeout=None
    )
    if len(expressions) != 1 or expressions[0] is nan or expressions[0] is zoo:
        return None
    value = expressions[0]
    if isinstance(value, Equality) and isinstance(value.rhs, Set):  # "x in S"
        value = value.rhs
    decimals = {number: Rational(str(number)) for number in value.atoms(Float)}
    exact_value = value.xreplace(decimals) if decimals else value
    return _ParsedAnswer(exact_value, bool(decimals), _OR_WORD_PATTERN.search(latex) is not None)


def _relations_to_set(parsed_answer: _ParsedAnswer) -> _ParsedAnswer:
    """Return the set that "x < 1 or x > 3" names, and the real numbers as an interval; others unchanged."""
    from sympy import FiniteSet, Interval, Set, Union, oo
    from sympy.core.relational import Relational

    value = parsed_answer.value
    if parsed_answer.has_alternatives and isinstance(value, FiniteSet):
        members = list(value)
        if all(isinstance(member, Relational) for member in members):
            value = Union(*(relation.as_set() for relation in members))
    if isinstance(value, Set) and value == Interval(-oo, oo):
        value = Interval(-oo, oo)
    return parsed_answer._replace(value=value)


def _are_equal_objects(gold: _ParsedAnswer, claim: _ParsedAnswer) -> bool:
    """Return whether two objects are equal, member by member if both are sets, tuples or intervals.

    math-verify decides about what has symbols in it, at a precision at which no number of practice is nearly 0.
    """
    from math_verify import verify
    from sympy import FiniteSet, Interval, Tuple

    value = gold.value
    other = claim.value
    has_decimals = gold.has_decimals or claim.has_decimals
    members = [_ParsedAnswer(member, has_decimals) for member in value.args]
    other_members = [_ParsedAnswer(member, has_decimals) for member in other.args]
    match value, other:
        case Interval(), Interval():
            are_ends_alike = members[2:] == other_members[2:]  # open or closed
            return are_ends_alike and _are_equal_in_order(members[:2], other_members[:2])
        case Tuple(), Tuple():
            return _are_equal_in_order(members, other_members)
        case FiniteSet(), FiniteSet():
            return _are_equal_in_any_order(members, other_members)
    if _is_plain_number(value) and _is_plain_number(other):
        return _are_equal_plain_numbers(value, other, has_decimals)
    options = {"numeric_precision": _ZERO_CUTOFF_DECIMALS, "allow_set_relation_comp": True}
    return bool(verify(value, other, timeout_seconds=None, raise_on_error=True, **options))


def _are_equal_in_order(members: Sequence[_ParsedAnswer], others: Sequence[_ParsedAnswer]) -> bool:
    return len(members) == len(others) and all(map(_are_equal_objects, members, others))


def _are_equal_in_any_order(
    members: Sequence[_ParsedAnswer], others: Sequence[_ParsedAnswer]
) -> bool:
    remaining_answers = list(others)
    for gold in members:
        equal_answer = next(
            (other for other in remaining_answers if _are_equal_objects(gold, other)), None
        )
        if equal_answer is None:
            return False
        remaining_answers.remove(equal_answer)
    return not remaining_answers


def _is_plain_number(value: Any) -> bool:
    """Return whether a sympy object is a number without a percent sign, which math-verify keeps unevaluated."""
    from sympy import Expr, UnevaluatedExpr

    return isinstance(value, Expr) and not value.free_symbols and not value.has(UnevaluatedExpr)


def _are_equal_plain_numbers(value: Any, other: Any, has_decimals: bool) -> bool:
    """Compare two numbers exactly, or as `are_equal_numbers` does if one has decimals.

    Two that are no fractions are equal if no digit of their difference is found with `_MAX_COMPARED_DIGITS` digits of
    its terms: sympy calls such a part not comparable. This is relative to the numbers, however small.
    """
    exact_value = value.doit()
    other_exact_value = other.doit()
    if exact_value == other_exact_value:
        return True
    if has_decimals:
        parts = exact_value.evalf(_PRECISION_DIGITS).as_real_imag()
        other_complex_parts = other_exact_value.evalf(_PRECISION_DIGITS).as_real_imag()
        return all(
            are_close(Fraction(str(part)), Fraction(str(other_complex_part)))
            for part, other_complex_part in zip(parts, other_complex_parts, strict=True)
        )
    if exact_value.is_Rational and other_exact_value.is_Rational:
        return False
    difference = (
        (exact_value - other_exact_value)
        .evalf(_PRECISION_DIGITS, maxn=_MAX_COMPARED_DIGITS)
        .as_real_imag()
    )
    return all(bool(part == 0) or not part.is_comparable for part in difference)
