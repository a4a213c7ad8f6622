"""STABLEVAL's Table 3: what MT-Bench's scores become where a tie is read in another way.

    python -m examples.consensus.mappings

Ties that are left out, or count as wins or losses, leave two classes, and the model is fitted anew. A tie that is worth
0.25 or 0.75 is one class of three still: the posterior is that of the baseline, and its credit alone is another.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from examples.consensus.votes import ratings
from jurygraph.aggregation import consensus


class TieRule(NamedTuple):
    """The class that a loss, a tie and a win become (None: the rating is left out), and what each class is worth."""

    classes: tuple[int, int | None, int]
    values: tuple[float, ...]


RULES: Mapping[str, TieRule] = {
    "Baseline": TieRule((0, 1, 2), (0.0, 0.5, 1.0)),
    "DropTies": TieRule((0, None, 1), (0.0, 1.0)),
    "Tie->Win": TieRule((0, 1, 1), (0.0, 1.0)),
    "Tie->Loss": TieRule((0, 0, 1), (0.0, 1.0)),
    "Tie=0.25": TieRule((0, 1, 2), (0.0, 0.25, 1.0)),
    "Tie=0.75": TieRule((0, 1, 2), (0.0, 0.75, 1.0)),
}
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "gpt-4": (0.847, 0.873, 0.930, 0.754, 0.806, 0.888),
    "gpt-3.5-turbo": (0.840, 0.870, 0.939, 0.724, 0.792, 0.887),
    "claude-v1": (0.778, 0.795, 0.869, 0.668, 0.730, 0.826),
    "vicuna-13b-v1.2": (0.622, 0.579, 0.706, 0.441, 0.564, 0.681),
    "alpaca-13b": (0.290, 0.222, 0.406, 0.154, 0.235, 0.344),
    "llama-13b": (0.131, 0.090, 0.222, 0.061, 0.096, 0.165),
}
"""The printed table, a column for each rule."""


def main() -> None:
    for line in lines({name: scores(rule) for name, rule in RULES.items()}):
        print(line)


def scores(rule: TieRule) -> dict[str, float]:
    """The score of each agent under a rule, by the preset `paper`."""
    rows = [(*row, rule.classes[label]) for *row, label in zip(*ratings("mtbench"), strict=True)]
    item, agent, annotator, label = zip(*(row for row in rows if row[-1] is not None), strict=True)
    fitted = consensus.fit(item, annotator, label, preset="paper", n_classes=len(rule.values))
    found = fitted.agent_scores(agent, values=rule.values, bootstrap=0)
    return {str(one): score.score for one, score in found.items()}


def ranks(found: Mapping[str, float]) -> dict[str, int]:
    """1 for the greatest score."""
    return {
        one: place for place, one in enumerate(sorted(found, key=lambda one: -found[one]), start=1)
    }


def lines(found: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Each score with its rank, and beside it what is printed."""
    yield "ours (rank) published  " + "".join(f"{name:>18}" for name in found)
    for agent, published in PUBLISHED.items():
        cells = (
            f"{own[agent]:.3f} ({ranks(own)[agent]}) {printed:.3f}"
            for own, printed in zip(found.values(), published, strict=True)
        )
        yield f"{agent:<23}" + "".join(f"{cell:>18}" for cell in cells)


if __name__ == "__main__":
    main()
