"""Measure false credit under every rule, on random graphs, and with parts of GEAR removed, from one run's verdicts."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import gear
from jurygraph.arrays import Floats, Ints
from jurygraph.decision.combiners import is_inferred_exactly
from jurygraph.inference.clusters import ratio_interval
from jurygraph.schema import digest_of
from jurygraph.studies.credit.cases import EDGE_KINDS, THRESHOLD, Cases, leakage, preservation
from jurygraph.studies.credit.report import Figures, report_credit
from jurygraph.studies.credit.sheets import RubricSheet, Sheets
from jurygraph.studies.report import Report

KAPPAS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Strengths of suppression in the sweep (GEAR, appendix I)."""
RANDOM_GRAPHS = 20
"""Random graphs of each rubric; their seeds are 0, 1, …"""

Advance = Callable[[int], None]
Scoring = Callable[[RubricSheet], Floats]
"""A function that returns the scores [R, C] of a sheet under a rule."""


class RuleScores(NamedTuple):
    """Scores under a rule: of the child of each case [E], and the rubric's reward of each example [n]."""

    children: Floats
    rewards: Floats


class CreditStudy:
    """Measures the sheets of a run; `size` is the number of passes over a sheet."""

    def __init__(self, sheets: Sheets, random_graphs: int = RANDOM_GRAPHS) -> None:
        self._sheets = sheets
        self._seeds = range(random_graphs)
        self._tasks = np.repeat(np.arange(len(sheets.sheets)), [len(sheet.responses) for sheet in sheets.sheets])
        self._rules: dict[str, Scoring] = {
            "flat": lambda sheet: sheet.p,
            "hard-local": lambda sheet: sheet.hard["hard-local"],
            "hard-transitive": lambda sheet: sheet.hard["hard-transitive"],
            "gear": _soft_rule(sheets.kappa),
        }
        self.size = len(sheets.sheets) * (len(self._rules) + random_graphs + len(KAPPAS) + 2)

    def run(self, report: Advance) -> Report:
        """Return all figures. `report` is called with the number of sheets passed since its last call.

        - `kappa` is the run's, used for `gear` and for the untyped and random graphs.
        - `census`: `examples` are the responses with a reward from a rubric, of `rubrics` tasks, `graphs` of which have
          an edge; of these, `exact` are inferred exactly. Of the `edges` (counted once for each example), `unjudged`
          are no cases, because an end was not judged or does not apply.
        - `methods`, by rule: leakage and preservation over all edges, by kind of edge, the mean reward of the rubric,
          and its mean change against flat aggregation.
        - `differences`: GEAR less another rule, on the same cases, and on the same examples for the reward.
        - `ablations`, without intervals: random graphs, one λ for all edges, and GEAR by κ.
        - `exact`: exact against approximate inference; `losses`: the criteria that lost credit.
        """
        sheets = self._sheets
        cases = collect_cases(sheets.sheets)
        scores = {name: score_sheets(sheets.sheets, rule, report) for name, rule in self._rules.items()}
        edges = sum(len(sheet.edges) * len(sheet.responses) for sheet in sheets.sheets)
        graphs = [sheet for sheet in sheets.sheets if sheet.edges]
        return report_credit(
            {
                "kappa": sheets.kappa,
                "threshold": THRESHOLD,
                "census": {
                    "tasks": sheets.tasks,
                    "responses": sheets.responses,
                    "rubrics": len(sheets.sheets),
                    "graphs": len(graphs),
                    "exact": sum(is_inferred_exactly(sheet.graph, sheet.exact) for sheet in graphs),
                    "examples": len(self._tasks),
                    "edges": edges,
                    "unjudged": edges - len(cases.p_child),
                    "left_out": sheets.left_out,
                },
                "methods": self._methods(cases, scores),
                "differences": self._differences(cases, scores),
                "ablations": self._ablations(cases, scores["flat"].rewards, report),
                "exact": agreement(sheets.sheets, sheets.kappa, report),
                "losses": losses(sheets.sheets, sheets.kappa),
            }
        )

    def _methods(self, cases: Cases, scores: Mapping[str, RuleScores]) -> Figures:
        kinds = [kind for kind in EDGE_KINDS if kind in cases.kind]
        return {
            name: {
                **diagnose(cases, EDGE_KINDS, one.children),
                "kinds": {kind: diagnose(cases, (kind,), one.children) for kind in kinds},
                "reward": fmean(one.rewards),
                "change": fmean(one.rewards - scores["flat"].rewards),
            }
            for name, one in scores.items()
        }

    def _differences(self, cases: Cases, scores: Mapping[str, RuleScores]) -> Figures:
        gear_scores = scores["gear"]
        return {
            name: {
                **diagnose(cases, EDGE_KINDS, gear_scores.children, one.children),
                "reward": estimate_mean(gear_scores.rewards - one.rewards, self._tasks),
            }
            for name, one in scores.items()
            if name != "gear"
        }

    def _ablations(self, cases: Cases, flat_rewards: Floats, report: Advance) -> Figures:
        """Return the variants of GEAR. Their cases are those of the annotated graph, whatever graph the scores use."""
        sheets = self._sheets

        def variant(rule: Scoring) -> Figures:
            scores = score_sheets(sheets.sheets, rule, report)
            return {
                "leakage": leakage(cases, scores.children),
                "preservation": preservation(cases, scores.children),
                "reward": fmean(scores.rewards),
                "change": fmean(scores.rewards - flat_rewards),
            }

        # The λ of the untyped graph is the mean over all edges of all rubrics, each once (our reading).
        retention = fmean(factor for sheet in sheets.sheets for factor in sheet.retention(sheets.kappa))
        return {
            "random": self._summarize_random({seed: variant(random_rule(seed, sheets.kappa)) for seed in self._seeds}),
            "untyped": {
                **variant(lambda sheet: sheet.gated_scores([retention] * len(sheet.edges))),
                "retention": retention,
            },
            "kappas": {f"{kappa:g}": variant(_soft_rule(kappa)) for kappa in KAPPAS},
        }

    def _summarize_random(self, by_seed: Mapping[int, Figures]) -> Figures:
        """Return the mean over seeds, and how many of the graphs drawn equal the graph that they replace.

        The smaller the rubrics, the less a random graph differs.
        """
        graphs = [sheet for sheet in self._sheets.sheets if sheet.edges]
        mean = {}
        for name in next(iter(by_seed.values())):
            values = [one[name] for one in by_seed.values()]
            mean[name] = None if None in values else fmean(values)
        return {
            "mean": mean,
            "by_seed": by_seed,
            "graphs": len(graphs) * len(by_seed),
            "unchanged": sum(is_unchanged(sheet, seed) for sheet in graphs for seed in by_seed),
        }


def _soft_rule(kappa: float) -> Scoring:
    """Return the rule s = q at this κ, inferred as in the run."""
    return lambda sheet: sheet.gated_scores(sheet.retention(kappa))


def diagnose(cases: Cases, kinds: Collection[str], scores: Floats, baseline: Floats | None = None) -> Figures:
    """Return leakage and preservation over the edges of these kinds, or their differences from the scores `baseline`.

    Args:
        cases: the edges of all examples, [E].
        kinds: the kinds of edges that count.
        scores, baseline: each child's score under a rule, from 0 to its own score, [E].
    """
    leaked = cases.leaked_shares(scores)
    preserved = cases.preserved_shares(scores)
    if baseline is not None:
        leaked = leaked - cases.leaked_shares(baseline)
        preserved = preserved - cases.preserved_shares(baseline)
    violated = cases.violated_mask(kinds)
    satisfied = cases.satisfied_mask(kinds)
    least_leaked, least_preserved = (0.0, 0.0) if baseline is None else (-math.inf, -1.0)
    return {
        "leakage": estimate_mean(leaked[violated], cases.task[violated], least_leaked),
        "preservation": estimate_mean(preserved[satisfied], cases.task[satisfied], least_preserved, 1.0),
    }


def estimate_mean(values: Floats, tasks: Ints, least: float = -math.inf, most: float = math.inf) -> Figures:
    """Return the mean of values [n] with its 95 % interval over the tasks [n] to which they belong (CR3).

    [least, most] are the bounds of the true mean, at which the interval is cut off. `value` is None without a case, the
    ends also where the tasks cannot tell: fewer than two, or fewer than six with equal means.
    """
    found = ratio_interval(np.bincount(tasks, values), np.bincount(tasks))
    if found is None:
        return {"value": None, "low": None, "high": None, "cases": 0, "tasks": 0}
    low, high = (None if end is None else min(most, max(least, end)) for end in (found.low, found.high))
    return {"value": fmean(values), "low": low, "high": high, "cases": len(values), "tasks": found.clusters}


def losses(sheets: Sequence[RubricSheet], kappa: float) -> list[Figures]:
    """Return every criterion that lost anything at this κ, the greatest mean loss first, then by task and id.

    A loss is (|w| / Σ_{w>0} w) · (p - q), a share of the total reward; for a penalty, the deduction avoided.
    `mean_loss` is the mean over the `responses` in which the criterion was judged, `most` the greatest loss, of
    response `max_loss_response`. `parent` is the one that takes most over these responses: the mean of
    (|w| / Σ_{w>0} w) · p · (1 - f) is greatest for its factor f alone; `kind`, `retention` (λ at this κ) and `reason`
    are those of its edge.
    """
    found = [loss for sheet in sheets for loss in _sheet_losses(sheet, kappa)]
    return sorted(found, key=lambda one: (-one["mean_loss"], one["task"], one["criterion"]))


def _sheet_losses(sheet: RubricSheet, kappa: float) -> Iterator[Figures]:
    retention = sheet.retention(kappa)
    shares = sheet.shares()
    q = sheet.gated_scores(retention)
    # 1 - f of each edge, [R, E]: an unjudged parent supports no gain, and every penalty
    fill = np.where(sheet.weights[list(sheet.children)] > 0, 0.0, 1.0)
    parent_scores = np.where(sheet.is_judged[:, sheet.parents], q[:, sheet.parents], fill)
    reductions = (1.0 - parent_scores) * (1.0 - np.asarray(retention))
    for child in sorted(set(sheet.children)):
        rows = np.flatnonzero(sheet.is_judged[:, child])
        share = shares[rows, child]
        p = sheet.p[rows, child]
        lost = share * (p - q[rows, child])
        if not (lost > 0.0).any():
            continue
        incoming = [edge for edge, end in enumerate(sheet.children) if end == child]
        edge = max(incoming, key=lambda edge: fmean(share * p * reductions[rows, edge]))
        yield {
            "task": sheet.task,
            "criterion": sheet.criteria[child],
            "weight": float(sheet.weights[child]),
            "responses": len(rows),
            "mean_loss": fmean(lost),
            "most": float(lost.max()),
            "max_loss_response": sheet.responses[int(rows[lost.argmax()])],
            "parent": sheet.edges[edge].parent,
            "kind": sheet.edges[edge].kind,
            "retention": retention[edge],
            "reason": sheet.edges[edge].reason,
        }


def agreement(sheets: Sequence[RubricSheet], kappa: float, report: Advance) -> Figures:
    """Return the error of the topological update against exact inference at this κ (GEAR, appendix B.2).

    `pairs` of a graph and a response were compared. Left out were `too_large` pairs, of rubrics in which more than 20
    criteria have a parent, and `unjudged` pairs, in which a criterion was not judged or does not apply: its replacement
    score is not part of the model. Responses to rubrics without an edge are not pairs. The errors are None without a
    pair; `reward_correlation` (Pearson's) is None also if either kind of reward is constant. `report` is called with 1
    for each sheet.
    """
    too_large = unjudged = 0
    errors = [np.empty(0)]
    exact_rewards = [np.empty(0)]
    updated_rewards = [np.empty(0)]
    for sheet in sheets:
        report(1)
        if not sheet.edges:
            continue
        if sheet.graph.child_count > gear.MAX_CHILDREN:
            too_large += len(sheet.responses)
            continue
        complete = sheet.is_judged.all(axis=1) & (sheet.applied_weights != 0.0).all(axis=1)
        unjudged += int((~complete).sum())
        p = sheet.p[complete]
        retention = sheet.retention(kappa)
        exact = sheet.graph.exact_marginals(p, retention)
        updated = sheet.graph.marginals(p, retention)
        errors.append(np.abs(exact - updated).ravel())
        exact_rewards.append(np.asarray(gear.reward(exact, sheet.weights)))
        updated_rewards.append(np.asarray(gear.reward(updated, sheet.weights)))
    error, exact, updated = map(np.concatenate, (errors, exact_rewards, updated_rewards))
    return {
        "pairs": len(exact),
        "too_large": too_large,
        "unjudged": unjudged,
        "criteria": len(error) / len(exact) if len(exact) else None,
        "marginal_mae": fmean(error) if len(exact) else None,
        "reward_mae": fmean(np.abs(exact - updated)) if len(exact) else None,
        "reward_correlation": correlation(exact, updated),
    }


def correlation(one: Floats, other: Floats) -> float | None:
    """Return Pearson's correlation of two rows; None with fewer than two values, or if either is constant."""
    if len(one) < 2 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def collect_cases(sheets: Sequence[RubricSheet]) -> Cases:
    """Return the edges of all examples, sheet by sheet and response by response, if both ends were judged.

    A criterion that was not judged, or does not apply to a response, has no local score that could be supported.
    """
    masks = [sheet.judged_edges() for sheet in sheets]
    kinds = [np.array([edge.kind for edge in sheet.edges], dtype=np.str_) for sheet in sheets]
    return Cases(
        p_parent=np.concatenate([one.p[:, one.parents][mask] for one, mask in zip(sheets, masks, strict=True)]),
        p_child=_child_values(sheets, [sheet.p for sheet in sheets]),
        share=_child_values(sheets, [sheet.shares() for sheet in sheets]),
        kind=np.concatenate([np.broadcast_to(k, mask.shape)[mask] for k, mask in zip(kinds, masks, strict=True)]),
        task=np.repeat(np.arange(len(sheets)), [mask.sum() for mask in masks]),
    )


def score_sheets(sheets: Sequence[RubricSheet], scoring: Scoring, report: Advance) -> RuleScores:
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
    """Return a random acyclic graph over the same criteria with as many edges, each with the kind and λ of another.

    The draws are an order of the criteria, then as many of its forward pairs as there are edges, then the edge whose
    kind and λ each pair takes. So there are no self-loops, no duplicate edges and no cycles. Such a graph always
    exists, since the annotated one is one; with two criteria the result is often the annotated graph. Roles are ignored
    (GEAR, 4.6: "rewires dependencies between criteria"). The draw depends on the seed, at least 0, and on the id of the
    task only, not on the other tasks.
    """
    rng = np.random.Generator(np.random.PCG64([seed, int(digest_of(task), 16)]))
    order = rng.permutation(graph.n)
    first, second = np.triu_indices(graph.n, k=1)
    edges = graph.edge_count
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
