"""Quotations from several responses that are shown together: in which of them each stands, and where."""

from collections.abc import Sequence

from jurygraph.agents.judging.quotations import listed, sorted_out
from jurygraph.safety.evidence import Text
from jurygraph.schema import Evidence

OPPONENT = "opponent"
"""The source of evidence that stands in the response with which a verdict compares the one that it is about."""
_NOWHERE = "in no response, too short, or cut within a word or number"


class Quoted:
    """What a reply quotes, looked for in the responses as they are shown."""

    def __init__(self, quotations: Sequence[str], texts: Sequence[Text]) -> None:
        given = list(dict.fromkeys(one for one in quotations if one.strip()))
        found = [sorted_out(given, text) for text in texts]
        self._evidence = [evidence for evidence, _ in found]
        self._lost = [one for one in given if all(one in lost for _, lost in found)]

    @property
    def supports(self) -> bool:
        """Whether a quotation stands in one of the responses, and can bear a verdict."""
        return any(self._evidence)

    @property
    def lost(self) -> str:
        """Which quotations bear nothing, and why; empty where there is none."""
        return f"{listed(self._lost)} ({_NOWHERE})" if self._lost else ""

    def evidence(self, place: int, source: str = "response") -> tuple[Evidence, ...]:
        """What is quoted from the response at a place, each passage once."""
        return tuple(one.model_copy(update={"source": source}) for one in self._evidence[place])
