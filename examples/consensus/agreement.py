"""How often GPT-4 and MT-Bench's experts agree, and the experts with each other, as MT-Bench counts it.

    python -m examples.consensus.agreement

Two votes by different judges on one question, turn and pair of models agree where they name the same model, or where
both are ties. The people are the experts: the votes of the benchmark's authors are left out. No model is asked.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from examples.consensus.votes import GPT4, Pairwise, pairwise

Pair = tuple[Pairwise, Pairwise]


class Agreeing(NamedTuple):
    """How many pairs of votes agree, and out of how many."""

    agree: int
    total: int


def main() -> None:
    print(f"{'':<16}{'GPT-4 and experts':>24}{'experts':>24}")
    for setting, found in counts().items():
        shown = (
            f"{one.agree} of {one.total} = {one.agree / one.total:.4f}" for one in found.values()
        )
        print(f"{setting:<16}" + "".join(f"{one:>24}" for one in shown))


def counts() -> dict[str, dict[str, Agreeing]]:
    """`gpt4_human` and `human_human`, by setting: `turn1_with_ties`, `turn1_no_ties`, …."""
    votes = [
        vote
        for vote in pairwise("mtbench_human") + pairwise("mtbench_gpt4")
        if not vote.judge.startswith("author")
    ]
    found = {}
    for turn in ("1", "2"):
        of_turn = [vote for vote in votes if vote.turn == turn]
        found[f"turn{turn}_with_ties"] = _by_kind(of_turn)
        found[f"turn{turn}_no_ties"] = _by_kind(
            [vote for vote in of_turn if vote.better is not None]
        )
    return found


def _by_kind(votes: Iterable[Pairwise]) -> dict[str, Agreeing]:
    compared = list(_compared(votes))
    with_model = [pair for pair in compared if GPT4 in (pair[0].judge, pair[1].judge)]
    people = [pair for pair in compared if GPT4 not in (pair[0].judge, pair[1].judge)]
    return {"gpt4_human": _agreeing(with_model), "human_human": _agreeing(people)}


def _compared(votes: Iterable[Pairwise]) -> Iterator[Pair]:
    """Every two votes by different judges on the same thing."""
    of_key: dict[tuple[str, str, str], list[Pairwise]] = defaultdict(list)
    for vote in votes:
        of_key[vote.key].append(vote)
    for same in of_key.values():
        yield from (
            (one, other) for one, other in combinations(same, 2) if one.judge != other.judge
        )


def _agreeing(pairs: list[Pair]) -> Agreeing:
    return Agreeing(sum(one.better == other.better for one, other in pairs), len(pairs))


if __name__ == "__main__":
    main()
