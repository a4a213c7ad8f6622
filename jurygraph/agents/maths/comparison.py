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

from jurygraph.agents.maths.quantities import (
    Reading,
    claimed_expressions,
    compare_plainly,
    measure_of,
    parse_answer,
)
from jurygraph.agents.worker_pool import WorkerPool
from jurygraph.errors import JurygraphError

Status: TypeAlias = Literal["equal", "different", "unparsed-answer", "unparsed-reference"]
"""`equal` and `different` are judgements; else that side does not read as one value, the reference being read first."""

MEMORY_LIMIT = 4 * 2**30  # bytes of address space
TEXT_LIMIT = 10_000  # characters of an answer or a reference


class AnswerTooLong(JurygraphError):
    """An answer or reference is longer than 10,000 characters, so it is not sent to a worker."""


class EquivalencePool(WorkerPool):
    """Compare answers with references in `workers` processes, each comparison limited to `time_limit` seconds."""

    def __init__(self, workers: int = 1, time_limit: float = 2.0) -> None:
        super().__init__("maths", f"{__name__}:prepare", time_limit=time_limit, workers=workers)

    async def compare(self, answer: str, reference: str, unit: str = "") -> Status:
        """Compare as `compare` does. Raises AnswerTooLong, and what `call` raises."""
        if max(len(answer), len(reference)) > TEXT_LIMIT:
            raise AnswerTooLong(f"an answer or reference is longer than {TEXT_LIMIT} characters")
        status: Status = await self.call(answer, reference, unit)
        return status


def prepare(setup: None) -> Callable[[str, str, str], Status]:
    """Limit the memory of this worker process, and return the function that compares two answers."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        bound = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    logging.disable(logging.CRITICAL)
    for answer, reference in (("x+1", "1+x"), (r"\frac{1}{2}x", "0.5x"), ("(1,2)", "[1,2]"), (r"\sqrt{2}", "1.414")):
        compare(answer, reference)  # the first comparison builds tables for longer than the time limit
    return compare


def compare(answer: str, reference: str, unit: str = "") -> Status:
    """Compare two answers; import math-verify unless `compare_numbers` suffices. It may never return.

    `unit` is that which the question asks for, such as "dollars": that of a reference without one, if the answer
    has another of its dimension. Answer and reference are not interchangeable, since math-verify is not symmetric.
    Raises MemoryError or RecursionError beyond the limits of this process.
    """
    known = compare_numbers(answer, reference, unit)
    if known is not None:
        return known
    claimed = parse_answer(answer)
    gold = parse_answer(reference)
    assert claimed, "an answer that does not read as one value is known"
    assert gold, "and so is such a reference"
    return _compare_expressions(claimed, gold)


def compare_numbers(answer: str, reference: str, unit: str = "") -> Status | None:
    """Compare two answers unless that takes mathematics: equal texts, plain numbers, what does not read as one value.

    Returns None for any other expression. Takes time proportional to the texts.
    """
    if _fold(answer) and _fold(answer) == _fold(reference):
        return "equal"
    claimed = parse_answer(answer)
    gold = parse_answer(reference)
    if gold is None:
        return "unparsed-reference"
    if claimed is None:
        return "unparsed-answer"
    wanted = measure_of(unit) if unit else None
    if wanted and claimed.unit and not gold.unit and claimed.unit.dimension == wanted.dimension:
        gold = replace(gold, unit=wanted)
    is_equal = compare_plainly(claimed, gold)
    return None if is_equal is None else "equal" if is_equal else "different"


def _fold(text: str) -> str:
    return " ".join(text.replace("=", " = ").split()).casefold()


def _compare_expressions(answer: Reading, reference: Reading) -> Status:
    from math_verify import verify

    gold = _parse(reference.latex)
    if gold is None:
        return "unparsed-reference"
    claims = [_parse(expression) for expression in claimed_expressions(answer.latex, reference.latex)]
    if not claims or any(claim is None for claim in claims):
        return "unparsed-answer"
    try:
        is_equal = all(verify(gold, claim, timeout_seconds=None, raise_on_error=True) for claim in claims)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - sympy raises anything if two objects are not comparable: then they differ
        is_equal = False
    return "equal" if is_equal else "different"


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
