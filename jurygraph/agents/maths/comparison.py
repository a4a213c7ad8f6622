"""Compare two answers as numbers, or else by math-verify, which may never return and so runs in a worker process (see
`worker_pool`).

No sympy object is ever printed here: that can hang (math-verify issues #50, #55, #65). Only the grammar of math-verify
reads text; its route through Python's `eval` is not used.
"""

import contextlib
import logging
import resource
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from jurygraph.agents.maths.answer_parser import (
    Reading,
    claimed_expressions,
    compare_plainly,
    fold_text,
    parse_answer,
)
from jurygraph.agents.maths.units import Unit, measure_of, unit_ratio

Status: TypeAlias = Literal["equal", "different", "unparsed-answer", "unparsed-reference", "error"]
MEMORY_LIMIT = 4 * 2**30  # bytes of address space


def compare(answer: str, reference: str, unit: str = "") -> tuple[Status, str]:
    """Compare two answers; import math-verify unless `compare_numbers` suffices. It may never return.

    `unit` is that which the question asks for, such as "dollars": that of a reference without one, if the answer
    has another of its dimension. Returns a status of `pool.Comparison` and a detail. Raises MemoryError or
    RecursionError beyond the limits of this process.
    """
    known = compare_numbers(answer, reference, unit)
    if known is not None:
        return known
    claimed, gold = _read_both(answer, reference, unit)
    assert claimed, "an answer that does not read as one value is known"
    assert gold, "and so is such a reference"
    return _compare_expressions(claimed, gold)


def compare_numbers(answer: str, reference: str, unit: str = "") -> tuple[Status, str] | None:
    """Compare two answers unless that takes mathematics: equal texts, plain numbers, times, ranges, and what does not
    read as one value. Returns None for any other expression. Takes time proportional to the texts."""
    if fold_text(answer) and fold_text(answer) == fold_text(reference):
        return "equal", "same text"
    claimed, gold = _read_both(answer, reference, unit)
    if gold is None:
        return "unparsed-reference", "the reference does not read as one value"
    if claimed is None:
        return "unparsed-answer", "the answer does not read as one value"
    is_equal = compare_plainly(claimed, gold)
    return None if is_equal is None else ("equal" if is_equal else "different", "numbers")


def _read_both(answer: str, reference: str, unit: str) -> tuple[Reading | None, Reading | None]:
    """Read both; the unit that the question asks for is that of a bare reference, if the answer has one of its kind."""
    claimed = _read(answer)
    gold = _read(reference)
    asked = Unit(top=measure_of(unit)) if unit else Unit()
    if claimed and gold and asked.top and claimed.unit.top and not gold.unit.top and unit_ratio(claimed.unit, asked):
        gold = replace(gold, unit=asked)
    return claimed, gold


_read = lru_cache(maxsize=1024)(parse_answer)


def _compare_expressions(answer: Reading, reference: Reading) -> tuple[Status, str]:
    from math_verify import verify

    gold = _parse(reference.latex)
    if gold is None:
        return "unparsed-reference", "math-verify cannot parse the reference"
    expressions = claimed_expressions(answer.latex, reference.latex)
    ratio = unit_ratio(answer.unit, reference.unit)
    if ratio not in (None, 1):
        expressions = tuple(
            rf"({each}) \cdot \frac{{{ratio.numerator}}}{{{ratio.denominator}}}" for each in expressions
        )
    claims = [_parse(expression) for expression in expressions]
    if not claims or any(claim is None for claim in claims):
        return "unparsed-answer", "math-verify cannot parse the answer"
    try:
        is_equal = all(verify(gold, claim, timeout_seconds=None, raise_on_error=True) for claim in claims)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - sympy raises anything if two objects are not comparable: then they differ
        is_equal = False
    return ("equal" if is_equal else "different"), "expressions"


@lru_cache(maxsize=256)
def _parse(latex: str) -> Any:
    """Return the one sympy object that `latex` as a whole represents; None if it represents none, or no number."""
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse
    from math_verify.grader import nan, zoo

    # Without math-verify's removal of units, which reads "5t" as 5: `parse_answer` removes them.
    options = NormalizationConfig(basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none")
    extraction = [LatexExtractionConfig(boxed_match_priority=-1, normalization_config=options)]
    expressions = parse(f"${latex}$", extraction, fallback_mode="no_fallback", parsing_timeout=None)
    is_value = len(expressions) == 1 and expressions[0] is not nan and expressions[0] is not zoo
    return expressions[0] if is_value else None


def prepare(setup: None) -> Callable[[str, str, str], tuple[Status, str]]:
    """Limit the memory of this worker process, and return the function that compares two answers."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        bound = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    logging.disable(logging.CRITICAL)
    for answer, reference in (("x+1", "1+x"), (r"\frac{1}{2}x", "0.5x"), ("(1,2)", "[1,2]"), (r"\sqrt{2}", "1.414")):
        compare(answer, reference)  # the first comparison builds tables for longer than the time limit
    return _compare_safely


def _compare_safely(answer: str, reference: str, unit: str) -> tuple[Status, str]:
    try:
        return compare(answer, reference, unit)
    except Exception as error:  # noqa: BLE001 - hostile input; only the type, as a message may print sympy objects
        return "error", type(error).__name__
