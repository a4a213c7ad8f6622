"""What a reply says on a question, and the verdict that comes of it: no credit without evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jurygraph.agents.judging.forms import Claim, Measured
from jurygraph.agents.judging.quotations import lacking, sorted_out, taken_over, why_lost
from jurygraph.safety.evidence import Text
from jurygraph.schema import Evidence, Failure, Verdict

_HINT = "quote from the response letter by letter, eight letters or more, or decide anew"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a reply says on one question: at which `place` of the reply, what it comes to, and why.

    `claims` are what of it needs a quotation that stands in the response; `quotes` all that are given.
    """

    place: str
    measured: Measured
    reason: str
    quotes: Sequence[str] = ()
    claims: Sequence[Claim] = ()


def flaw_in(claims: Iterable[tuple[str, Iterable[Claim]]], text: Text) -> str | None:
    """What is wrong with a reply that finds things in a response and quotes for them what does not stand there.

    `claims` are what it finds, by the place in the reply where it says so.
    """
    wrong = [
        f"{place}: {claim.said}, {lacking(claim, text)}"
        for place, found in claims
        for claim in _unsupported(found, text)
    ]
    return f"{'; '.join(wrong)}; {_HINT}" if wrong else None


def verdict_on(finding: Finding, text: Text | None, call: str) -> Verdict:
    """The verdict; `text` is where quotations are looked for, None where none are asked for."""
    quotes = list(dict.fromkeys(quote for quote in finding.quotes if quote.strip()))
    if text is None:
        return _measured(finding, finding.reason, taken_over(quotes), call)
    evidence, lost = sorted_out(quotes, text)
    reason = f"{finding.reason} [lost: {why_lost(lost, text)}]" if lost else finding.reason
    unsupported = _unsupported(finding.claims, text)
    if not unsupported:
        return _measured(finding, reason, evidence, call)
    message = "; ".join(f"{claim.said}, {lacking(claim, text)}" for claim in unsupported)
    failure = Failure(cause="response", kind="unsupported", message=f"the judge says {message}")
    return Verdict(status="failed", failure=failure, reason=reason, evidence=evidence, call=call)


def _unsupported(claims: Iterable[Claim], text: Text) -> list[Claim]:
    return [claim for claim in claims if not any(map(text.supports, claim.quotes))]


def _measured(finding: Finding, reason: str, evidence: tuple[Evidence, ...], call: str) -> Verdict:
    found = finding.measured
    return Verdict(
        score=found.score,
        met=found.met,
        native=found.native,
        scale=found.scale,
        confidence=found.confidence,
        reason=reason,
        evidence=evidence,
        call=call,
    )
