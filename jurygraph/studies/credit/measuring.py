"""What each way to aggregate leaves of the criteria: the rules, and the variants of GEAR that ablate a part of it."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from jurygraph.agents.roles import Bools, Floats
from jurygraph.aggregation import gear
from jurygraph.studies.credit.cases import Cases
from jurygraph.studies.credit.rewiring import rewired
from jurygraph.studies.credit.sheets import Sheet

Scoring = Callable[[Sheet], Floats]
"""The scores [R, C] that a rule leaves of the local ones."""


class Scored(NamedTuple):
    """What a rule leaves: of the child of each case [E], and the rubric's reward of each example [n]."""

    children: Floats
    rewards: Floats


def cases_of(sheets: Sequence[Sheet]) -> Cases:
    """The edges of all examples: sheet by sheet, response by response, as far as both ends were judged.

    A criterion that nobody judged, or that does not apply to a response, has no local score that could be supported.
    """
    judged = [_judged(sheet) for sheet in sheets]
    first = np.cumsum([0, *(len(sheet.responses) for sheet in sheets)])
    rows = [np.broadcast_to(np.arange(len(known))[:, None], known.shape) for known in judged]
    kinds = [np.array([edge.kind for edge in sheet.edges], dtype=np.str_) for sheet in sheets]
    return Cases(
        p_parent=_joined([sheet.p[:, sheet.parents][known] for sheet, known in zip(sheets, judged, strict=True)]),
        p_child=_of_children(sheets, [sheet.p for sheet in sheets]),
        share=_of_children(sheets, list(map(shares, sheets))),
        kind=np.concatenate([np.broadcast_to(k, known.shape)[known] for k, known in zip(kinds, judged, strict=True)]),
        example=np.concatenate([at + row[known] for at, row, known in zip(first, rows, judged, strict=False)]),
        examples=int(first[-1]),
    )


def shares(sheet: Sheet) -> Floats:
    """|w| / Σ_{w>0} w over the criteria that apply, [R, C]."""
    return np.asarray(np.abs(sheet.size) / sheet.positive()[:, None])


def scored(sheets: Sequence[Sheet], scoring: Scoring, report: Callable[[int], None]) -> Scored:
    """What a rule leaves, in the order of `cases_of`. `report` is called for each sheet."""
    found, rewards = [], []
    for sheet in sheets:
        found.append(scoring(sheet))
        rewards.append(sheet.rewards(found[-1]))
        report(1)
    return Scored(_of_children(sheets, found), _joined(rewards))


def _judged(sheet: Sheet) -> Bools:
    """The edges whose ends were both judged, [R, E]."""
    return sheet.decided[:, sheet.parents] & sheet.decided[:, sheet.children]


def _of_children(sheets: Sequence[Sheet], values: Sequence[Floats]) -> Floats:
    """Of values [R, C] for each sheet those of the children of its cases, side by side."""
    return _joined([value[:, one.children][_judged(one)] for one, value in zip(sheets, values, strict=True)])


def _joined(values: Sequence[Floats]) -> Floats:
    return np.concatenate([*values, np.empty(0)])


def flat(sheet: Sheet) -> Floats:
    """s = p."""
    return sheet.p


def hard(mode: str) -> Scoring:
    """s = p where the parents hold, else 0; `mode` is "hard-local" or "hard-transitive"."""
    return lambda sheet: sheet.hard[mode]


def soft(kappa: float) -> Scoring:
    """s = q of Eq. 12 at this κ."""
    return lambda sheet: sheet.gated(sheet.graph, sheet.retention(kappa))


def untyped(retention: float) -> Scoring:
    """s = q where every edge has the same λ."""
    return lambda sheet: sheet.gated(sheet.graph, [retention] * len(sheet.edges))


def shared_retention(sheets: Sequence[Sheet], kappa: float) -> float:
    """The λ of the untyped graph: the mean over all edges of all rubrics, each once, at this κ (our reading)."""
    factors = [factor for sheet in sheets for factor in sheet.retention(kappa)]
    return fmean(factors)


def random(seed: int, kappa: float) -> Scoring:
    """s = q over a graph that was rewired at random, each edge with the kind and λ of another one."""

    def scores(sheet: Sheet) -> Floats:
        if not sheet.edges:
            return sheet.p
        wiring = rewired(sheet.graph, seed, sheet.task)
        retention = sheet.retention(kappa)
        graph = gear.compile(sheet.graph.n, wiring.parents, wiring.children)
        return sheet.gated(graph, [retention[edge] for edge in wiring.kept])

    return scores


def as_annotated(sheet: Sheet, seed: int) -> bool:
    """Whether rewiring with this seed came out at the annotated graph, kinds and λ included."""
    wiring = rewired(sheet.graph, seed, sheet.task)
    drawn = {
        (parent, child): (sheet.edges[kept].kind, sheet.base[kept])
        for parent, child, kept in zip(wiring.parents, wiring.children, wiring.kept, strict=True)
    }
    annotated = {
        ends: (edge.kind, base)
        for ends, edge, base in zip(
            zip(sheet.parents, sheet.children, strict=True), sheet.edges, sheet.base, strict=True
        )
    }
    return drawn == annotated
