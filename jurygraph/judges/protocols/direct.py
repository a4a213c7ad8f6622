"""The holistic protocol: five aspects are examined, and one score is given (DecompR, Appendix A.2, Direct)."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import create_model

from jurygraph.agents.judging.findings import Finding
from jurygraph.agents.judging.forms import Claim
from jurygraph.judges.protocols.people import restore_ids
from jurygraph.judges.protocols.protocol import People, ScoringProtocol
from jurygraph.judges.protocols.scale import LOWEST, GroundsReply, Ten, on_scale
from jurygraph.schema import FrozenModel

OVERALL = "overall"
ASPECTS = ("hard_constraints", "credibility", "timeline", "fairness", "actionability")
_FIELDS: Any = dict.fromkeys(ASPECTS, (GroundsReply, ...)) | {"value": (Ten, ...)}
_REPLY = create_model("VerdictReply", __base__=FrozenModel, **_FIELDS)


class Direct(ScoringProtocol):
    """One score from 1 to 10 for the whole response, after a reason and quotations for each of five aspects."""

    name = "protocols.direct"
    prompt = "direct"

    def subjects(self, people: People) -> Sequence[str]:
        return (OVERALL,)

    def reply_model(self, people: People) -> type[FrozenModel]:
        return _REPLY

    def findings(self, reply: Any, people: People) -> Mapping[str, Finding]:
        aspects = {aspect: getattr(reply, aspect) for aspect in ASPECTS}
        quotes = [quote for grounds in aspects.values() for quote in grounds.quotes]
        reason = "; ".join(f"{aspect}: {grounds.reason}" for aspect, grounds in aspects.items())
        claims = [Claim(f"a value of {reply.value:g}", quotes)] if reply.value > LOWEST else []
        return {OVERALL: Finding(OVERALL, on_scale(reply.value), restore_ids(reason, people), quotes, claims)}

    def max_reasons(self, people: People) -> int:
        return len(ASPECTS)
