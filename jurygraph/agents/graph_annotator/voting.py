"""The vote among answers about a pair (GEAR, Appendix A.5): the most frequent kind wins, and a tie gives no edge."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from jurygraph.agents.graph_annotator.validation import CheckedEdges, EdgeReply, Pair
from jurygraph.schema import Edge, RejectedEdge, UnansweredPair


class Batch(NamedTuple):
    """Pairs of one request, and the answers of each sample."""

    pairs: Sequence[Pair]
    samples: Sequence[CheckedEdges]


class EdgeSource(NamedTuple):
    """The source of an edge: a model, and the digest of its prompt."""

    model: str
    prompt: str


def elect_edges(batches: Iterable[Batch], source: EdgeSource) -> list[Edge]:
    """Return the edges that win the vote: at most one per pair."""
    edges = (elect_edge(pair, samples, source) for pairs, samples in batches for pair in pairs)
    return [edge for edge in edges if edge is not None]


def rejected_edges(batches: Iterable[Batch], source: EdgeSource) -> Iterator[RejectedEdge]:
    """Return the edges that the checks and the votes rejected."""
    for pairs, samples in batches:
        for sample in samples:
            for edge, why in sample.rejected:
                yield reject_answer(edge, "check", why, source)
        for pair in pairs:
            yield from outvoted_edges(pair, samples, source)


def unanswered_pairs(batches: Iterable[Batch]) -> Iterator[UnansweredPair]:
    """Return the pairs for which at least half of the samples have no answer."""
    for pairs, samples in batches:
        for pair in pairs:
            if not is_answered(pair, samples):
                why = min(sample.unanswered[pair] for sample in samples if pair in sample.unanswered)
                yield UnansweredPair(parent=pair.parent, child=pair.child, why=why)


def elect_edge(pair: Pair, samples: Sequence[CheckedEdges], source: EdgeSource) -> Edge | None:
    """Return the edge of a pair; None without one or with too few answers. Its confidence is the winners' mean."""
    answers = _answers_for(pair, samples)
    kind = _winner(answers)
    if kind == "none" or not is_answered(pair, samples):
        return None
    winners = [answer for answer in answers if answer.relation == kind]
    content = {
        "kind": kind,
        "reason": _most_confident(winners).reason,
        "confidence": fmean(answer.confidence_share for answer in winners),
        "votes": (len(winners), len(samples)) if len(samples) > 1 else None,
    }
    return Edge.model_validate({**pair._asdict(), **content, **source._asdict()})


def is_answered(pair: Pair, samples: Sequence[CheckedEdges]) -> bool:
    """Return true if more than half of the samples answered about a pair, even if the answer was rejected."""
    return 2 * sum(pair in sample.unanswered for sample in samples) < len(samples)


def outvoted_edges(pair: Pair, samples: Sequence[CheckedEdges], source: EdgeSource) -> Iterator[RejectedEdge]:
    """Yield the edges that lost the vote, each as its most confident answer."""
    if not is_answered(pair, samples):
        return
    answers = _answers_for(pair, samples)
    counts = Counter(answer.relation for answer in answers)
    tally = ", ".join(f"{kind} {counts[kind]}" for kind in sorted(counts))
    for kind in sorted({*counts} - {"none", _winner(answers)}):
        answer = _most_confident([answer for answer in answers if answer.relation == kind])
        yield reject_answer(answer, "vote", f"the vote was: {tally}", source)


def reject_answer(answer: EdgeReply, stage: str, why: str, source: EdgeSource) -> RejectedEdge:
    """Return the record of an answer that gives no edge, with the reason."""
    content = answer.model_dump(include={"parent", "child", "reason"})
    content |= {"kind": answer.relation, "confidence": answer.confidence_share, "stage": stage, "why": why}
    return RejectedEdge.model_validate({**content, **source._asdict()})


def _most_confident(answers: Sequence[EdgeReply]) -> EdgeReply:
    return min(answers, key=lambda answer: (-answer.confidence, answer.reason))


def _answers_for(pair: Pair, samples: Sequence[CheckedEdges]) -> list[EdgeReply]:
    return [sample.answers[pair] for sample in samples if pair in sample.answers]


def _winner(answers: Sequence[EdgeReply]) -> str:
    counts = Counter(answer.relation for answer in answers).most_common()
    tied = len(counts) > 1 and counts[0][1] == counts[1][1]
    return "none" if tied or not counts else counts[0][0]
