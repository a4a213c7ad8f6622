"""Two responses at a time, each pair in both orders: which of the two is to be preferred."""

from collections.abc import Sequence
from typing import Any, Literal

from jurygraph.agents.judging.forms import Quotes, Reason
from jurygraph.agents.roles import Ask
from jurygraph.judges.pairwise.comparing import Comparing, reason_of
from jurygraph.judges.pairwise.quoting import OPPONENT
from jurygraph.schema import Noun, Scope, Verdict

Preferred = Literal["A", "B", "tie"]
_SAID: dict[Preferred, tuple[float, str]] = {"A": (1.0, "first"), "B": (0.0, "second"), "tie": (0.5, "tie")}


# A docstring would stand in the schema that a model is given, and a name in what it is told of a field that is missing.


class PreferenceStated(Noun):
    reason: Reason
    quotes: Quotes
    preferred: Preferred


class BarePreferenceStated(Noun):
    preferred: Preferred


class Pairwise(Comparing):
    """Which of two responses is preferred: 1 the first, 0 the second, 0.5 a tie, from the side of the first.

    Every ordered pair is asked about, G (G - 1) calls for G responses, so that whatever the order did shows. What a
    verdict quotes from the second of the two is evidence of source `opponent`.
    """

    name = "pairwise"
    scope: Scope = "pair"
    prompt = "pair"
    combiner = "win-share"

    def noun(self, names: Sequence[str], compact: bool) -> type[Noun]:
        return BarePreferenceStated if compact else PreferenceStated

    def prefers(self, stated: Any) -> bool:
        return bool(stated.preferred != "tie")

    async def answer(self, ask: Ask) -> Verdict:
        found = await self.asked(ask, ask.responses)
        if isinstance(found, Verdict):
            return found
        judged, quoted = found
        score, native = _SAID[judged.value.preferred]
        return Verdict(
            score=score,
            met=native == "first",
            native=native,
            reason=reason_of(judged.value, quoted),
            evidence=(*quoted.evidence(0), *quoted.evidence(1, OPPONENT)),
            call=judged.call.id,
        )
