"""The votes of this example: ratings as columns, and MT-Bench's pairwise votes, each of which is two ratings."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jurygraph.sources.ratings import read_ratings

HERE = Path(__file__).parent
LOSS, TIE, WIN = 0, 1, 2
GPT4 = "gpt4_pair"
"""What the published verdicts of GPT-4 call their judge; all others are people."""


class Ratings(NamedTuple):
    """Who gave which answer which label, row by row. An item is what one agent answered to one question."""

    item: list[str]
    agent: list[str]
    annotator: list[str]
    label: list[int]


class Pairwise(NamedTuple):
    """A vote of MT-Bench: which of two models answered better, in turn 1 or 2, as it is published."""

    question: str
    turn: str
    model_a: str
    model_b: str
    judge: str
    winner: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What was compared: the question, and both models by name, whichever stood first."""
        first, second = sorted((self.model_a, self.model_b))
        return self.question, first, second

    @property
    def better(self) -> str | None:
        """The model that won; None for a tie, also one because the verdict changed with the order of the answers."""
        return {"model_a": self.model_a, "model_b": self.model_b}.get(self.winner)

    def ratings(self) -> Iterator[tuple[str, str, str, int]]:
        """Question and turn, model, judge and label, for both models: a win is 2, a tie 1, a loss 0."""
        for model in (self.model_a, self.model_b):
            label = TIE if self.better is None else WIN if self.better == model else LOSS
            yield f"mtbench_{self.question}_turn{self.turn}", model, self.judge, label


def ratings(name: str) -> Ratings:
    """The ratings `mtbench`, `convabuse` or `mslr`, in the order of their file."""
    found = [rating for _, rating in read_ratings(HERE / f"{name}.csv.gz").rows]
    agents = [str(one.agent) for one in found]
    return Ratings(
        [one.key for one in found],
        agents,
        [one.reviewer for one in found],
        [int(one.score) for one in found],
    )


def pairwise(name: str) -> list[Pairwise]:
    """The votes `mtbench_human` or `mtbench_gpt4`, in the order of their file."""
    return [Pairwise(*row) for row in table(name)]


def table(name: str) -> list[list[str]]:
    """The rows of a file, without its first line."""
    with gzip.open(HERE / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]
