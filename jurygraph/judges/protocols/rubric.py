"""The protocol by dimensions: five scores under fixed weights (DecompR, Appendix A.2, Rubric, and Table 8)."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import create_model

from jurygraph.agents.judging.forms import Claim
from jurygraph.agents.judging.quotations import Finding
from jurygraph.judges.protocols.protocol import LOWEST, People, RatingReply, ScoringProtocol, on_scale, restore_ids
from jurygraph.schema import FrozenModel

DIMENSIONS: Mapping[str, float] = {
    "constraint_satisfaction": 0.30,
    "information_credibility": 0.25,
    "timeline_feasibility": 0.20,
    "fairness": 0.15,
    "conflict_resolution": 0.10,
}
"""The dimensions and their weights α_d (Table 8)."""

_FIELDS: Any = dict.fromkeys(DIMENSIONS, (RatingReply, ...))
_REPLY = create_model("VerdictsReply", __base__=FrozenModel, **_FIELDS)


class Rubric(ScoringProtocol):
    """R = Σ α_d s_d over five dimensions, each scored from 1 to 10 by itself."""

    name = "protocols.rubric"
    prompt = "dimensions"
    shares = DIMENSIONS

    def subjects(self, people: People) -> Sequence[str]:
        return tuple(DIMENSIONS)

    def reply_model(self, people: People) -> type[FrozenModel]:
        return _REPLY

    def findings(self, reply: Any, people: People) -> Mapping[str, Finding]:
        return {dimension: _build_finding(dimension, getattr(reply, dimension), people) for dimension in DIMENSIONS}

    def max_reasons(self, people: People) -> int:
        return len(DIMENSIONS)


def _build_finding(dimension: str, rated: RatingReply, people: People) -> Finding:
    claims = [Claim(f"a value of {rated.value:g}", rated.quotes)] if rated.value > LOWEST else []
    return Finding(dimension, on_scale(rated.value), restore_ids(rated.reason, people), rated.quotes, claims)
