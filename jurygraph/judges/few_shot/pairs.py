"""Judge a pair of texts in both orders, so that a judge's preference for a position cancels out.

A pair is one text that holds two others, its first and its second, each on lines of its own. Its scores go from -a,
the first is better, over 0, neither is, to a, the second is. The second prompt mirrors the first: in the response and
in every example the two texts have changed places, and every score has changed its sign. So what a reviewer prefers
stays in the prompt, and what the model prefers by position does not.
"""

import re

from jurygraph.schema import Response, Swap, Verdict

_BLANK_LINE = r"(?<=[^\n]\n)(?=\n|\Z)"  # the first of several, since only that one is the place of an empty text

_DECIMALS = 12
_NATIVE_DECIMALS = 9
"""Decimals of a mean score, and of its value on the scale: fewer than floats hold, more than any scale has steps."""


def swap_texts(text: str, first: str, second: str) -> str | None:
    """Return a text with two of its parts in each other's place, or None if it does not hold them in this order.

    Each part is on lines of its own; if it occurs more than once, its last place counts.
    """
    at_second = _last_place(second, text, len(text))
    at_first = None if at_second is None else _last_place(first, text, at_second)
    if at_first is None or at_second is None:
        return None
    between = text[at_first + len(first) : at_second]
    behind = text[at_second + len(second) :]
    return f"{text[:at_first]}{second}{between}{first}{behind}"


def _last_place(part: str, text: str, end: int) -> int | None:
    """Return where a part begins that has the whole of its lines and ends before `end`; None if it is not there."""
    pattern = rf"(?<![^\n])(?={re.escape(part)}(?:\n|\Z))" if part else _BLANK_LINE
    places = [match.start() for match in re.finditer(pattern, text) if match.start() + len(part) <= end]
    return places[-1] if places else None


def swap_response(response: Response) -> str | None:
    """Return the text of a response with the `first` and the `second` text of its data in each other's place.

    None if its data has no two such texts, or its text does not hold them in this order.
    """
    data = response.data if isinstance(response.data, dict) else {}
    first = data.get("first")
    second = data.get("second")
    if not isinstance(first, str) or not isinstance(second, str):
        return None
    return swap_texts(response.text, first, second)


def no_pair(response: Response) -> Verdict:
    """Return the failed verdict on a response whose two texts are not known."""
    problem = f"the data of response {response.id!r} does not have the two texts that its text holds"
    remedy = "give data.first and data.second, in this order, each on lines of its own in the text"
    return Verdict.fail("no-pair", f"{problem}; {remedy}", cause="response")


def combine_orders(given: Verdict, swapped: Verdict) -> Verdict:
    """Return the verdict of both orders: score = (given + 1 - swapped) / 2, with the lower confidence of the two.

    Equal means are the same bits whichever scores they come from, so that samples which agree are counted together. If
    one order failed, so has the verdict; else if the judge could not tell in one, it abstains. If one is unsupported
    and counts as the worst case, so does the verdict.
    """
    is_worst_case = given.is_worst_case or swapped.is_worst_case
    if given.score is None or swapped.score is None or given.scale is None or is_worst_case:
        return missing_verdict(given, swapped)
    score = round((given.score + 1.0 - swapped.score) / 2.0, _DECIMALS)
    low, high = given.scale
    reasons = [given.reason, f"[swapped: {swapped.reason}]" if swapped.reason else ""]
    fields = {
        "score": score,
        "native": round(low + score * (high - low), _NATIVE_DECIMALS),
        "confidence": min(one.confidence for one in (given, swapped) if one.confidence is not None),
        "reason": " ".join(filter(None, reasons)),
        "evidence": tuple(dict.fromkeys((*given.evidence, *swapped.evidence))),
        "unsupported": given.unsupported or swapped.unsupported,
        "swap": Swap(given=given.score, swapped=swapped.score, call=swapped.call),
    }
    return given.model_copy(update=fields)


def missing_verdict(*verdicts: Verdict) -> Verdict:
    """Return the first verdict that failed, else that abstained, is the worst case, or does not apply."""
    missing = [verdict for verdict in verdicts if verdict.score is None or verdict.is_worst_case]
    return min(missing, key=lambda verdict: ("failed", "abstained", "ok", "not_applicable").index(verdict.status))
