"""The worker process that runs math-verify: `python -m jurygraph.agents.maths.worker TIME_LIMIT`.

Protocol on the socket that is its stdin, one JSON object per line: first `{"ready": true}` or
`{"ready": false, "detail": …}`, then for each `{"answer", "reference"}` one `{"status", "detail"}`, in order. It exits
at the end of the requests.

It never outlives its parent for long: SIGALRM, with its default action (death, even inside C code), is armed one second
past the time limit for each comparison. No sympy object is ever printed here: that can hang (math-verify issues #50,
#55, #65). Only the grammar of math-verify reads text; its route through Python's `eval` is not used.
"""

import contextlib
import json
import logging
import resource
import signal
import sys
from functools import lru_cache
from typing import Any, BinaryIO

from jurygraph.agents.maths.answer_parser import are_equal_numbers, claimed_expressions, fold_text, parse_answer

MEMORY_LIMIT = 4 * 2**30  # bytes of address space


def compare(answer: str, reference: str) -> tuple[str, str]:
    """Compare two answers; import math-verify unless both are plain numbers. It may never return: see `main`.

    Returns a status of `pool.Comparison` and a detail. Raises MemoryError or RecursionError beyond the limits of this
    process.
    """
    if fold_text(answer) and fold_text(answer) == fold_text(reference):
        return "equal", "same text"
    gold, claimed = _read(reference), _read(answer)
    if gold is None:
        return "unparsed-reference", "the reference does not read as one value"
    if claimed is None:
        return "unparsed-answer", "the answer does not read as one value"
    if gold.number and claimed.number:
        return ("equal" if are_equal_numbers(claimed.number, gold.number) else "different"), "numbers"
    return _compare_expressions(claimed.latex, gold.latex)


_read = lru_cache(maxsize=1024)(parse_answer)


def _compare_expressions(answer: str, reference: str) -> tuple[str, str]:
    from math_verify import verify

    gold = _parse(reference)
    if gold is None:
        return "unparsed-reference", "math-verify cannot parse the reference"
    claims = [_parse(expression) for expression in claimed_expressions(answer, reference) or ()]
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


def main() -> int:
    """Answer requests until they end; return 1 if it could not start or ran out of memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    limit = float(sys.argv[1])
    with open(0, "wb", closefd=False) as replies:
        try:
            _prepare()
        except Exception as error:  # noqa: BLE001 - the parent reports any error
            _send_reply(replies, {"ready": False, "detail": f"{type(error).__name__}: {error}"[:500]})
            return 1
        _send_reply(replies, {"ready": True})
        for line in sys.stdin.buffer:
            status, detail = _answer(line, limit)
            _send_reply(replies, {"status": status, "detail": detail})
            if detail == "MemoryError":
                return 1
    return 0


def _prepare() -> None:
    logging.disable(logging.CRITICAL)
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        bound = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for answer, reference in (("x+1", "1+x"), (r"\frac{1}{2}x", "0.5x"), ("(1,2)", "[1,2]"), (r"\sqrt{2}", "1.414")):
        compare(answer, reference)  # the first comparison builds tables for longer than the time limit


def _answer(line: bytes, limit: float) -> tuple[str, str]:
    try:
        request = json.loads(line.decode("utf-8", "surrogatepass"))
        signal.setitimer(signal.ITIMER_REAL, limit + 1)
        return compare(request["answer"], request["reference"])
    except Exception as error:  # noqa: BLE001 - hostile input; only the type, as a message may print sympy objects
        return "error", type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _send_reply(replies: BinaryIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message).encode() + b"\n")
    replies.flush()


if __name__ == "__main__":
    sys.exit(main())
