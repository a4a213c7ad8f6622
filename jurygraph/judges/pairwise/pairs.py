"""Compare two responses at a time, each pair in both orders."""

from collections.abc import Sequence
from typing import Any, Literal

from jurygraph.agents.judging.forms import Quotes, Reason
from jurygraph.agents.roles import Ask
from jurygraph.judges.pairwise.comparing import Comparing, reason_of
from jurygraph.judges.pairwise.quoting import OPPONENT
from jurygraph.schema import Noun, Scope, Verdict

Preferred = Literal["A", "B", "tie"]
_SCORES: dict[Preferred, tuple[float, str]] = {"A": (1.0, "first"), "B": (0.0, "second"), "tie": (0.5, "tie")}


# No docstrings: they would be part of the schema in the prompt. Class names appear in messages about missing fields.


class PreferenceStated(Noun):
    reason: Reason
    quotes: Quotes
    preferred: Preferred


class BarePreferenceStated(Noun):
    preferred: Preferred


class Pairwise(Comparing):
    """Preference between two responses, from the side of the first: 1 for the first, 0 for the second, 0.5 for a tie.

    Each ordered pair takes a call, G (G - 1) calls for G responses, so that the effect of the order can be measured.
    Quotations from the second response are evidence of source `opponent`.
    """

    name = "pairwise"
    scope: Scope = "pair"
    prompt = "pair"
    combiner = "win-share"

    def noun(self, names: Sequence[str], compact: bool) -> type[Noun]:
        return BarePreferenceStated if compact else PreferenceStated

    def prefers(self, reply: Any) -> bool:
        return bool(reply.preferred != "tie")

    async def answer(self, ask: Ask) -> Verdict:
        reply = await self.asked(ask, ask.responses)
        if isinstance(reply, Verdict):
            return reply
        judged, quoted = reply
        score, native = _SCORES[judged.value.preferred]
        return Verdict(
            score=score,
            met=native == "first",
            native=native,
            reason=reason_of(judged.value, quoted),
            evidence=(*quoted.evidence(0), *quoted.evidence(1, OPPONENT)),
            call=judged.call.id,
        )
