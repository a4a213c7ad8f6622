"""The vote among samples."""

from jurygraph.agents.graph_annotator import (
    CheckedEdges,
    CriterionPair,
    EdgeProvenance,
    EdgeReply,
    EdgeVoteResult,
    elect_edges,
)
from tests.rows import all_rows

PAIR, SOURCE = CriterionPair("a", "b"), EdgeProvenance("judge", "abc")


def samples(*kinds: str | None, confidences: tuple[int, ...] = ()) -> list[CheckedEdges]:
    """Return the samples of a pair; None is a sample without a valid answer."""
    sure = confidences or (50,) * len(kinds)
    return [
        CheckedEdges()
        if kind is None
        else CheckedEdges(
            {
                PAIR: EdgeReply.model_validate(
                    {"reason": f"{kind} {c}", **PAIR._asdict(), "relation": kind, "confidence": c}
                )
            }
        )
        for kind, c in zip(kinds, sure, strict=True)
    ]


def elect(samples: list[CheckedEdges]) -> EdgeVoteResult:
    return elect_edges([([PAIR], samples)], SOURCE)


@all_rows(("relations", "kind"), [
        (["weak"], "weak"),
        (["none"], None),
        ([None], None),
        (["weak", "weak", "strong"], "weak"),
        (["weak", "strong"], None),
        (["weak", "strong", "none"], None),
        (["weak", "none", "none"], None),
        (["weak", "weak", "none", "none"], None),
        (["weak", "weak", "strong", "none", "activation"], "weak"),
        (["strong", None, None], "strong"),
    ])  # fmt: skip
def test_the_most_frequent_kind_wins_and_a_tie_gives_no_edge(
    relations: list[str | None], kind: str | None
) -> None:
    assert [edge.kind for edge in elect(samples(*relations)).proposed] == (
        [] if kind is None else [kind]
    )


def test_an_edge_records_confidence_votes_and_model() -> None:
    (edge,) = elect(samples("weak", "strong", "weak", confidences=(50, 100, 75))).proposed
    assert edge.model_dump() == {
        "parent": "a",
        "child": "b",
        "kind": "weak",
        "retention": None,
        "reason": "weak 75",
        "confidence": 0.625,
        "votes": (2, 3),
        "model": "judge",
        "prompt": "abc",
    }


def test_outvoted_answers_are_kept_with_the_tally() -> None:
    rejected = elect(samples("none", "strong", "none", "weak", "strong")).rejected
    assert [(one.kind, one.stage, one.why) for one in rejected] == [
        ("strong", "vote", "the vote was: none 2, strong 2, weak 1"),
        ("weak", "vote", "the vote was: none 2, strong 2, weak 1"),
    ]
    assert elect(samples("weak", "weak")).rejected == []
