"""Compare two responses at a time, each pair in both orders."""

from collections.abc import Sequence
from typing import Any, Literal

from jurygraph.agents.judging.forms import Quotes, Reason
from jurygraph.agents.roles import EvaluatorInput
from jurygraph.judges.pairwise.comparison_judge import ComparisonJudge, reason_with_notes
from jurygraph.judges.pairwise.quotations import OPPONENT
from jurygraph.schema import FrozenModel, Scope, Verdict

Preferred = Literal["A", "B", "tie"]
_SCORES: dict[Preferred, tuple[float, str]] = {"A": (1.0, "first"), "B": (0.0, "second"), "tie": (0.5, "tie")}


# No docstrings: they would be part of the schema in the prompt. Class names appear in messages about missing fields.


class PreferenceReply(FrozenModel):
    reason: Reason
    quotes: Quotes
    preferred: Preferred


class BarePreferenceReply(FrozenModel):
    preferred: Preferred


class Pairwise(ComparisonJudge):
    """Preference between two responses, from the side of the first: 1 for the first, 0 for the second, 0.5 for a tie.

    Each ordered pair takes a call, G (G - 1) calls for G responses, so that the effect of the order can be measured.
    Quotations from the second response are evidence of source `opponent`.
    """

    name = "pairwise"
    scope: Scope = "pair"
    prompt = "pair"
    combiner = "win-share"

    def reply_model(self, names: Sequence[str], compact: bool) -> type[FrozenModel]:
        return BarePreferenceReply if compact else PreferenceReply

    def has_preference(self, reply: Any) -> bool:
        return bool(reply.preferred != "tie")

    async def answer(self, inputs: EvaluatorInput) -> Verdict:
        reply = await self.ask_model(inputs, inputs.responses)
        if isinstance(reply, Verdict):
            return reply
        judged, quoted = reply
        score, native = _SCORES[judged.value.preferred]
        return Verdict(
            score=score,
            met=native == "first",
            native=native,
            reason=reason_with_notes(judged.value, quoted),
            evidence=(*quoted.evidence(0), *quoted.evidence(1, OPPONENT)),
            call=judged.call.id,
        )
