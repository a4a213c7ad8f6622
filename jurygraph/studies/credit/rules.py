"""Criterion scores under each aggregation rule, and under variants of GEAR with one part ablated."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import gear
from jurygraph.aggregation.arrays import Bools, Floats
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
    judged = [_judged_edges(sheet) for sheet in sheets]
    first = np.cumsum([0, *(len(sheet.responses) for sheet in sheets)])
    rows = [np.broadcast_to(np.arange(len(mask))[:, None], mask.shape) for mask in judged]
    kinds = [np.array([edge.kind for edge in sheet.edges], dtype=np.str_) for sheet in sheets]
    return Cases(
        p_parent=_concatenate([sheet.p[:, sheet.parents][mask] for sheet, mask in zip(sheets, judged, strict=True)]),
        p_child=_child_values(sheets, [sheet.p for sheet in sheets]),
        share=_child_values(sheets, list(map(shares, sheets))),
        kind=np.concatenate([np.broadcast_to(k, mask.shape)[mask] for k, mask in zip(kinds, judged, strict=True)]),
        example=np.concatenate([offset + row[mask] for offset, row, mask in zip(first, rows, judged, strict=False)]),
        examples=int(first[-1]),
    )


def shares(sheet: RubricSheet) -> Floats:
    """Return |w| / Σ_{w>0} w over the criteria that apply, [R, C]."""
    return np.asarray(np.abs(sheet.applied_weights) / sheet.positive_weight()[:, None])


def score_sheets(sheets: Sequence[RubricSheet], scoring: Scoring, report: Callable[[int], None]) -> RuleScores:
    """Return the scores under a rule, in the order of `cases_of`. `report` is called with 1 for each sheet."""
    scores, rewards = [], []
    for sheet in sheets:
        scores.append(scoring(sheet))
        rewards.append(sheet.rewards(scores[-1]))
        report(1)
    return RuleScores(_child_values(sheets, scores), _concatenate(rewards))


def _judged_edges(sheet: RubricSheet) -> Bools:
    """Return a mask of the edges whose ends were both judged, [R, E]."""
    return sheet.is_judged[:, sheet.parents] & sheet.is_judged[:, sheet.children]


def _child_values(sheets: Sequence[RubricSheet], values: Sequence[Floats]) -> Floats:
    """Return from values [R, C] of each sheet those of the children of its cases, concatenated."""
    return _concatenate([value[:, one.children][_judged_edges(one)] for one, value in zip(sheets, values, strict=True)])


def _concatenate(values: Sequence[Floats]) -> Floats:
    return np.concatenate([*values, np.empty(0)])


def flat_scores(sheet: RubricSheet) -> Floats:
    """Return s = p."""
    return sheet.p


def hard_rule(mode: str) -> Scoring:
    """Return the rule s = p if the parents hold, else 0; `mode` is "hard-local" or "hard-transitive"."""
    return lambda sheet: sheet.hard[mode]


def soft_rule(kappa: float) -> Scoring:
    """Return the rule s = q of Eq. 12 at this κ."""
    return lambda sheet: sheet.gated_scores(sheet.graph, sheet.retention(kappa))


def untyped_rule(retention: float) -> Scoring:
    """Return the rule s = q with the same λ for every edge."""
    return lambda sheet: sheet.gated_scores(sheet.graph, [retention] * len(sheet.edges))


def shared_retention(sheets: Sequence[RubricSheet], kappa: float) -> float:
    """Return the λ of the untyped graph: the mean over all edges of all rubrics, each once, at this κ (our reading)."""
    factors = [factor for sheet in sheets for factor in sheet.retention(kappa)]
    return fmean(factors)


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
        retention = sheet.retention(kappa)
        graph = gear.compile(sheet.graph.n, wiring.parents, wiring.children)
        return sheet.gated_scores(graph, [retention[edge] for edge in wiring.source_edges])

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
    rewired_edges = {
        (parent, child): (sheet.edges[kept].kind, sheet.base[kept])
        for parent, child, kept in zip(wiring.parents, wiring.children, wiring.source_edges, strict=True)
    }
    annotated_edges = {
        ends: (edge.kind, base)
        for ends, edge, base in zip(
            zip(sheet.parents, sheet.children, strict=True), sheet.edges, sheet.base, strict=True
        )
    }
    return rewired_edges == annotated_edges
