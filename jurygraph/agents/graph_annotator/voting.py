"""The vote among several answers about a pair: the kind that most say; where as many say another, there is no edge."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from jurygraph.agents.graph_annotator.answers import CheckedEdges
from jurygraph.agents.graph_annotator.candidates import Pair
from jurygraph.agents.graph_annotator.forms import StatedEdge
from jurygraph.schema import Edge, RejectedEdge


class Batch(NamedTuple):
    """Pairs that were asked about together, and what each sample answered."""

    pairs: Sequence[Pair]
    samples: Sequence[CheckedEdges]


class Source(NamedTuple):
    """Who said it: a model, and the digest of what it was told."""

    model: str
    prompt: str


def elect(pair: Pair, samples: Sequence[CheckedEdges], source: Source) -> Edge | None:
    """The edge that a pair bears; None where it bears none or too few answered. Its confidence is the winners' mean."""
    said = _said(pair, samples)
    kind = _winner(said)
    if kind == "none" or not heard(pair, samples):
        return None
    winners = [one for one in said if one.relation == kind]
    surest = min(winners, key=lambda one: (-one.confidence, one.reason))
    return Edge.model_validate(
        {
            "parent": pair.parent,
            "child": pair.child,
            "kind": kind,
            "reason": surest.reason,
            "confidence": fmean(one.sure for one in winners),
            "votes": (len(winners), len(samples)) if len(samples) > 1 else None,
            **source._asdict(),
        }
    )


def heard(pair: Pair, samples: Sequence[CheckedEdges]) -> bool:
    """Whether more than half of the samples said something of a pair, if only something that was rejected."""
    return 2 * sum(pair in sample.unanswered for sample in samples) < len(samples)


def outvoted(pair: Pair, samples: Sequence[CheckedEdges], source: Source) -> Iterator[RejectedEdge]:
    """The edges that some wanted and the vote did not give, each as the surest of them said it."""
    if not heard(pair, samples):
        return
    said = _said(pair, samples)
    counted = Counter(one.relation for one in said)
    tally = ", ".join(f"{kind} {counted[kind]}" for kind in sorted(counted))
    for kind in sorted({*counted} - {"none", _winner(said)}):
        one = min((one for one in said if one.relation == kind), key=lambda one: (-one.confidence, one.reason))
        yield rejected(one, "vote", f"the vote was: {tally}", source)


def rejected(one: StatedEdge, stage: str, why: str, source: Source) -> RejectedEdge:
    """An answer that bears no edge, and why."""
    content = {**one.model_dump(include={"parent", "child", "reason"}), "kind": one.relation, "confidence": one.sure}
    return RejectedEdge.model_validate({**content, "stage": stage, "why": why, **source._asdict()})


def _said(pair: Pair, samples: Sequence[CheckedEdges]) -> list[StatedEdge]:
    return [sample.answers[pair] for sample in samples if pair in sample.answers]


def _winner(said: Sequence[StatedEdge]) -> str:
    counted = Counter(one.relation for one in said).most_common()
    tied = len(counted) > 1 and counted[0][1] == counted[1][1]
    return "none" if tied or not counted else counted[0][0]
