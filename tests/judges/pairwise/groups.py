"""Groups of compared responses as verdicts on a question, and their components."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from jurygraph.agents.registry import load_combiner
from jurygraph.decision.combiners import Component, ScoreMatrix
from jurygraph.decision.table import UnjudgedFillMode, build_verdict_table
from jurygraph.schema import ComponentInput, Question, RecordedVerdict
from jurygraph.schema.verdict import RESPONSE_GATES

Score = float | None
"""Of a verdict; None where it failed."""


@dataclass(frozen=True)
class Group:
    """Responses by their ids, their scores, and those that a gate stopped.

    `said` is, for pairs, the score of (one, other) from the side of one, who is shown first; for lists, the scores of
    (response, number of the listing).
    """

    names: Sequence[str]
    said: Mapping[tuple[str, Any], Score]
    stopped: Collection[str] = field(default=())
    lists: bool = False

    @property
    def question(self) -> Question:
        shape: dict[str, Any] = (
            {"scope": "group", "samples": 2} if self.lists else {"scope": "pair"}
        )
        about = {
            "id": "q",
            "evaluator": "e",
            "version": "1",
            "subject": "s",
            "view": "v",
            "layer": "model",
        }
        return Question(**about, **shape)

    @property
    def verdicts(self) -> list[RecordedVerdict]:
        not_stopped = tuple(name for name in self.names if name not in self.stopped)
        gated = [
            RecordedVerdict(
                question="q", about=name, score=0.0, met=False, gated_by=RESPONSE_GATES[0]
            )
            for name in sorted(self.stopped)
        ]
        if self.lists:
            return gated + [
                _verdict(name, not_stopped, said, turn) for (name, turn), said in self.said.items()
            ]
        return gated + [
            _verdict(one, (one, other), said) for (one, other), said in self.said.items()
        ]

    def cells(
        self, scenario: UnjudgedFillMode = "counted", rule: str = "conservative", direction: int = 1
    ) -> ScoreMatrix:
        fields = ComponentInput(questions=("q",), weights=(1.0,), reduce=None)
        return build_verdict_table([self.question], sorted(self.names), self.verdicts).score_matrix(
            fields, rule, direction, scenario
        )

    def with_scores(self, **said: Score) -> "Group":
        """The same group with other scores, by the names of a pair."""
        return Group(
            self.names,
            {**self.said, **{(key[0], key[1]): one for key, one in said.items()}},
            self.stopped,
        )


def _verdict(about: str, shown: tuple[str, ...], score: Score, sample: int = 0) -> RecordedVerdict:
    fields = {"question": "q", "about": about, "responses": shown, "sample": sample}
    if score is None:
        return RecordedVerdict.fail("malformed", "no reply", "response").model_copy(update=fields)
    return RecordedVerdict(score=score, **fields)


def pairs(scores: Mapping[str, Score], names: str = "", stopped: str = "") -> Group:
    """Return a group by the scores of its pairs: {"ab": 1.0} is a preferred to b, with a shown first."""
    known = names or "".join(sorted({name for pair in scores for name in pair} | set(stopped)))
    return Group(known, {(one, other): score for (one, other), score in scores.items()}, stopped)


def by_rank(order: str, stopped: str = "") -> Group:
    """Return a group with equal verdicts in both orders: the earlier in `order` is preferred."""
    return pairs({one + other: float(order.index(one) < order.index(other)) for one, other in permutations(order, 2)},
                 stopped=stopped)  # fmt: skip


def lists(*rankings: str | None, stopped: str = "") -> Group:
    """A group by its listings, each with the best first; None for one that failed."""
    names = next(ranking for ranking in rankings if ranking is not None)
    said: dict[tuple[str, Any], Score] = {
        (name, turn): None if ranking is None else 1 - ranking.index(name) / (len(ranking) - 1)
        for turn, ranking in enumerate(rankings)
        for name in names
    }
    return Group("".join(sorted(names + stopped)), said, stopped, lists=True)


def combine_group(
    name: str,
    group: Group,
    scenario: UnjudgedFillMode = "counted",
    direction: int = 1,
    **params: Any,
) -> Component:
    """The component of a group, its responses in the order of their names."""
    combiner, frozen = frozen_combiner(name, **params)
    return combiner.combine({"e": group.cells(scenario, direction=direction)}, frozen)


def bounds(name: str, group: Group, **params: Any) -> tuple[np.ndarray, np.ndarray]:
    combiner, frozen = frozen_combiner(name, **params)
    return combiner.bounds({"e": group.cells("low")}, {"e": group.cells("high")}, frozen)


def frozen_combiner(name: str, **params: Any) -> tuple[Any, dict[str, Any]]:
    combiner = load_combiner(name)
    return combiner, combiner.freeze(
        {"e": ComponentInput(questions=("q",), weights=(1.0,), reduce=None)}, params
    )


def values(name: str, group: Group, **params: Any) -> list[float]:
    return [round(one, 12) for one in combine_group(name, group, **params).value.tolist()]
