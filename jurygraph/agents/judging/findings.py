"""Turn a reply's answer to a question into a verdict: no credit without evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jurygraph.agents.judging.forms import Claim, Measurement
from jurygraph.agents.judging.quotations import (
    explain_rejected_quotes,
    missing_evidence,
    unverified_quotes,
    verify_quotes,
)
from jurygraph.safety.evidence import SearchableText
from jurygraph.schema import Evidence, Failure, Verdict

_HINT = "quote from the response letter by letter, eight letters or more, or decide anew"


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of a reply to one question: its `place` in the reply, its measured value, and the reason.

    `claims` are the parts that need a quotation from the response; `quotes` are all quotations given.
    """

    place: str
    measurement: Measurement
    reason: str
    quotes: Sequence[str] = ()
    claims: Sequence[Claim] = ()


def find_unsupported_claims(claims: Iterable[tuple[str, Iterable[Claim]]], text: SearchableText) -> str | None:
    """Return what is wrong with a reply that makes claims without a supporting quotation from the response.

    None if every claim is supported. `claims` maps places in the reply to the claims made there.
    """
    problems = [
        f"{place}: {claim.statement}, {missing_evidence(claim, text)}"
        for place, place_claims in claims
        for claim in _unsupported_claims(place_claims, text)
    ]
    return f"{'; '.join(problems)}; {_HINT}" if problems else None


def build_verdict(finding: Finding, text: SearchableText | None, call: str) -> Verdict:
    """Return the verdict; `text` is where quotations are searched, or None if no quotations are required."""
    quotes = list(dict.fromkeys(quote for quote in finding.quotes if quote.strip()))
    if text is None:
        return _build_verdict(finding, finding.reason, unverified_quotes(quotes), call)
    evidence, rejected = verify_quotes(quotes, text)
    reason = f"{finding.reason} [lost: {explain_rejected_quotes(rejected, text)}]" if rejected else finding.reason
    unsupported = _unsupported_claims(finding.claims, text)
    if not unsupported:
        return _build_verdict(finding, reason, evidence, call)
    message = "; ".join(f"{claim.statement}, {missing_evidence(claim, text)}" for claim in unsupported)
    failure = Failure(cause="response", kind="unsupported", message=f"the judge says {message}")
    return Verdict(status="failed", failure=failure, reason=reason, evidence=evidence, call=call)


def _unsupported_claims(claims: Iterable[Claim], text: SearchableText) -> list[Claim]:
    return [claim for claim in claims if not any(map(text.find_support, claim.quotes))]


def _build_verdict(finding: Finding, reason: str, evidence: tuple[Evidence, ...], call: str) -> Verdict:
    measured = finding.measurement
    return Verdict(
        score=measured.score,
        met=measured.met,
        native=measured.native,
        scale=measured.scale,
        confidence=measured.confidence,
        reason=reason,
        evidence=evidence,
        call=call,
    )
