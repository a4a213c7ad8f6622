"""The vote among several answers about a pair: the most frequent kind wins; a tie gives no edge."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from jurygraph.agents.graph_annotator.candidates import Pair
from jurygraph.agents.graph_annotator.reply import EdgeReply
from jurygraph.agents.graph_annotator.validation import CheckedEdges
from jurygraph.schema import Edge, RejectedEdge


class Batch(NamedTuple):
    """Pairs of one request, and the answers of each sample."""

    pairs: Sequence[Pair]
    samples: Sequence[CheckedEdges]


class EdgeSource(NamedTuple):
    """The source of an edge: a model, and the digest of its prompt."""

    model: str
    prompt: str


def elect_edge(pair: Pair, samples: Sequence[CheckedEdges], source: EdgeSource) -> Edge | None:
    """Return the edge of a pair; None without one or with too few answers. Its confidence is the winners' mean."""
    answers = _answers_for(pair, samples)
    kind = _winner(answers)
    if kind == "none" or not is_answered(pair, samples):
        return None
    winners = [answer for answer in answers if answer.relation == kind]
    most_confident = min(winners, key=lambda answer: (-answer.confidence, answer.reason))
    return Edge.model_validate(
        {
            "parent": pair.parent,
            "child": pair.child,
            "kind": kind,
            "reason": most_confident.reason,
            "confidence": fmean(answer.confidence_share for answer in winners),
            "votes": (len(winners), len(samples)) if len(samples) > 1 else None,
            **source._asdict(),
        }
    )


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
        answer = min(
            (answer for answer in answers if answer.relation == kind),
            key=lambda answer: (-answer.confidence, answer.reason),
        )
        yield reject_answer(answer, "vote", f"the vote was: {tally}", source)


def reject_answer(answer: EdgeReply, stage: str, why: str, source: EdgeSource) -> RejectedEdge:
    """Return the record of an answer that gives no edge, with the reason."""
    content = {
        **answer.model_dump(include={"parent", "child", "reason"}),
        "kind": answer.relation,
        "confidence": answer.confidence_share,
    }
    return RejectedEdge.model_validate({**content, "stage": stage, "why": why, **source._asdict()})


def _answers_for(pair: Pair, samples: Sequence[CheckedEdges]) -> list[EdgeReply]:
    return [sample.answers[pair] for sample in samples if pair in sample.answers]


def _winner(answers: Sequence[EdgeReply]) -> str:
    counts = Counter(answer.relation for answer in answers).most_common()
    tied = len(counts) > 1 and counts[0][1] == counts[1][1]
    return "none" if tied or not counts else counts[0][0]
