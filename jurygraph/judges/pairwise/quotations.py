"""Locate quotations in several responses that are shown together."""

from collections.abc import Sequence

from jurygraph.agents.judging.quotations import shorten_quotes, verify_quotes
from jurygraph.safety.evidence import SearchableText
from jurygraph.schema import Evidence

OPPONENT = "opponent"
"""Source of evidence from the response with which a verdict compares its own."""
_NOWHERE = "in no response, too short, or cut within a word or number"


class LocatedQuotations:
    """Quotations of a reply, located in the responses as they are shown."""

    def __init__(self, quotations: Sequence[str], texts: Sequence[SearchableText]) -> None:
        unique = list(dict.fromkeys(quotation for quotation in quotations if quotation.strip()))
        verified = [verify_quotes(unique, text) for text in texts]
        self._evidence = [evidence for evidence, _ in verified]
        self._lost = [quotation for quotation in unique if all(quotation in unverified for _, unverified in verified)]

    @property
    def has_evidence(self) -> bool:
        """True if at least one quotation occurs in a response and is valid evidence."""
        return any(self._evidence)

    @property
    def unverified(self) -> str:
        """The quotations without a valid location, with the reason; empty if there are none."""
        return f"{shorten_quotes(self._lost)} ({_NOWHERE})" if self._lost else ""

    def evidence(self, index: int, source: str = "response") -> tuple[Evidence, ...]:
        """Return the quotations from the response at an index, each passage once."""
        return tuple(passage.model_copy(update={"source": source}) for passage in self._evidence[index])
