"""Criterion scores of the examples under an aggregation rule, and random graphs to compare the annotated one with."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import gear
from jurygraph.aggregation.arrays import Floats
from jurygraph.schema import digest_of
from jurygraph.studies.credit.cases import Cases
from jurygraph.studies.credit.sheets import RubricSheet

Scoring = Callable[[RubricSheet], Floats]
"""A function that returns the scores [R, C] of a sheet under a rule."""


class RuleScores(NamedTuple):
    """Scores under a rule: of the child of each case [E], and the rubric's reward of each example [n]."""

    children: Floats
    rewards: Floats


def collect_cases(sheets: Sequence[RubricSheet]) -> Cases:
    """Return the edges of all examples, sheet by sheet and response by response, if both ends were judged.

    A criterion that was not judged, or does not apply to a response, has no local score that could be supported.
    """
    masks = [sheet.judged_edges() for sheet in sheets]
    kinds = [np.array([edge.kind for edge in sheet.edges], dtype=np.str_) for sheet in sheets]
    cases_of_example = np.concatenate([mask.sum(axis=1) for mask in masks])
    return Cases(
        p_parent=np.concatenate([one.p[:, one.parents][mask] for one, mask in zip(sheets, masks, strict=True)]),
        p_child=_child_values(sheets, [sheet.p for sheet in sheets]),
        share=_child_values(sheets, [sheet.shares() for sheet in sheets]),
        kind=np.concatenate([np.broadcast_to(k, mask.shape)[mask] for k, mask in zip(kinds, masks, strict=True)]),
        example=np.repeat(np.arange(len(cases_of_example)), cases_of_example),
        examples=len(cases_of_example),
    )


def score_sheets(sheets: Sequence[RubricSheet], scoring: Scoring, report: Callable[[int], None]) -> RuleScores:
    """Return the scores under a rule, in the order of `collect_cases`. `report` is called with 1 for each sheet."""
    scores = []
    for sheet in sheets:
        scores.append(scoring(sheet))
        report(1)
    rewards = [sheet.rewards(q) for sheet, q in zip(sheets, scores, strict=True)]
    return RuleScores(_child_values(sheets, scores), np.concatenate(rewards))


def _child_values(sheets: Sequence[RubricSheet], values: Sequence[Floats]) -> Floats:
    """Return from values [R, C] of each sheet those of the children of its cases, concatenated."""
    pairs = zip(sheets, values, strict=True)
    return np.concatenate([value[:, sheet.children][sheet.judged_edges()] for sheet, value in pairs])


class Wiring(NamedTuple):
    """A graph over C criteria: ends of its edges [E], and the index of the edge whose kind and λ each takes [E]."""

    parents: list[int]
    children: list[int]
    source_edges: list[int]


def random_rule(seed: int, kappa: float) -> Scoring:
    """Return the rule s = q over a randomly rewired graph, each edge with the kind and λ of another one."""

    def scores(sheet: RubricSheet) -> Floats:
        if not sheet.edges:
            return sheet.p
        wiring = rewire(sheet.graph, seed, sheet.task)
        retention = np.take(sheet.retention(kappa), wiring.source_edges)
        return sheet.gated_scores(retention, gear.compile(sheet.graph.n, wiring.parents, wiring.children))

    return scores


def rewire(graph: gear.Graph, seed: int, task: str) -> Wiring:
    """Return a random acyclic graph over the same criteria with as many edges, each with the kind and λ of another
    edge.

    The draws are an order of the criteria, then as many of its forward pairs as there are edges, then the edge whose
    kind and λ each pair takes. So there are no self-loops, no duplicate edges and no cycles. Such a graph always
    exists, since the annotated one is one; with two criteria the result is often the annotated graph. Roles are ignored
    (GEAR, 4.6: "rewires dependencies between criteria").

    Args:
        graph: the annotated graph, over C criteria with E edges.
        seed: at least 0.
        task: the task's id; the draw depends on the seed and on it only, not on the other tasks.
    """
    rng = np.random.Generator(np.random.PCG64([seed, int(digest_of(task), 16)]))
    order = rng.permutation(graph.n)
    first, second = np.triu_indices(graph.n, k=1)
    edges = len(graph.parents)
    pairs = rng.choice(len(first), size=edges, replace=False)
    kept = rng.permutation(edges)
    return Wiring(order[first[pairs]].tolist(), order[second[pairs]].tolist(), kept.tolist())


def is_unchanged(sheet: RubricSheet, seed: int) -> bool:
    """Return True if rewiring with this seed gives the annotated graph, including kinds and λ."""
    wiring = rewire(sheet.graph, seed, sheet.task)
    types = [(edge.kind, base) for edge, base in zip(sheet.edges, sheet.base, strict=True)]
    rewired_types = [types[edge] for edge in wiring.source_edges]
    rewired = set(zip(wiring.parents, wiring.children, rewired_types, strict=True))
    return rewired == set(zip(sheet.parents, sheet.children, types, strict=True))
