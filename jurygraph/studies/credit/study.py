"""Measure false credit under every rule, on random graphs, and with parts of GEAR removed, from one run's verdicts."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import gear
from jurygraph.arrays import Floats, Ints
from jurygraph.decision.combiners import is_inferred_exactly
from jurygraph.inference.clusters import ratio_interval
from jurygraph.schema import digest_of
from jurygraph.studies.credit.cases import EDGE_KINDS, THRESHOLD, Cases, leakage, preservation
from jurygraph.studies.credit.report import (
    Ablations,
    Agreement,
    Census,
    CreditDiagnosis,
    CreditDifference,
    CreditEstimate,
    CreditReport,
    GraphVariant,
    Loss,
    Method,
    RandomGraphs,
    Untyped,
)
from jurygraph.studies.credit.sheets import RubricSheet, Sheets

KAPPAS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Strengths of suppression in the sweep (GEAR, appendix I)."""

Advance = Callable[[int], None]
Scoring = Callable[[RubricSheet], Floats]
"""A function that returns the scores [R, C] of a sheet under a rule."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the study: kinds of edges whose cases count, and the number of random graphs and their first seed."""

    kinds: tuple[str, ...] = EDGE_KINDS
    seeds: int = 20
    seed: int = 0


class RuleScores(NamedTuple):
    """Scores under a rule: of the child of each case [E], and the rubric's reward of each example [n]."""

    children: Floats
    rewards: Floats


class CreditStudy:
    """Measures the sheets of a run; `size` is the number of passes over a sheet."""

    def __init__(self, sheets: Sheets, settings: Settings) -> None:
        self._sheets = sheets
        self._settings = settings
        self._tasks = np.repeat(np.arange(len(sheets.sheets)), [len(sheet.responses) for sheet in sheets.sheets])
        self._rules: dict[str, Scoring] = {
            "flat": lambda sheet: sheet.p,
            "hard-local": lambda sheet: sheet.hard["hard-local"],
            "hard-transitive": lambda sheet: sheet.hard["hard-transitive"],
            "gear": _soft_rule(sheets.kappa),
        }
        self.size = len(sheets.sheets) * (len(self._rules) + settings.seeds + len(KAPPAS) + 2)

    def run(self, report: Advance) -> CreditReport:
        """Return all figures. `report` is called with the number of sheets passed since its last call."""
        sheets = self._sheets
        settings = self._settings
        cases = collect_cases(sheets.sheets)
        scores = {name: score_sheets(sheets.sheets, rule, report) for name, rule in self._rules.items()}
        edges = sum(len(sheet.edges) * len(sheet.responses) for sheet in sheets.sheets)
        graphs = [sheet for sheet in sheets.sheets if sheet.edges]
        return CreditReport(
            kappa=sheets.kappa,
            threshold=THRESHOLD,
            kinds=settings.kinds,
            seed=settings.seed,
            census=Census(
                tasks=sheets.tasks,
                responses=sheets.responses,
                rubrics=len(sheets.sheets),
                graphs=len(graphs),
                exact=sum(is_inferred_exactly(sheet.graph, sheet.exact) for sheet in graphs),
                examples=len(self._tasks),
                edges=edges,
                unjudged=edges - len(cases.p_child),
                left_out=dict(sheets.left_out),
            ),
            methods=self._methods(cases, scores),
            differences=self._differences(cases, scores),
            ablations=self._ablations(cases, scores["flat"].rewards, report),
            exact=agreement(sheets.sheets, sheets.kappa, report),
            losses=losses(sheets.sheets, sheets.kappa),
        )

    def _methods(self, cases: Cases, scores: Mapping[str, RuleScores]) -> dict[str, Method]:
        kinds = self._settings.kinds
        kinds_present = set(cases.kind.tolist())
        return {
            name: Method(
                **dict(diagnose(cases, kinds, one.children)),
                kinds={kind: diagnose(cases, (kind,), one.children) for kind in kinds if kind in kinds_present},
                reward=fmean(one.rewards),
                change=fmean(one.rewards - scores["flat"].rewards),
            )
            for name, one in scores.items()
        }

    def _differences(self, cases: Cases, scores: Mapping[str, RuleScores]) -> dict[str, CreditDifference]:
        gear_scores = scores["gear"]
        return {
            name: CreditDifference(
                **dict(diagnose(cases, self._settings.kinds, gear_scores.children, one.children)),
                reward=estimate_mean(gear_scores.rewards - one.rewards, self._tasks),
            )
            for name, one in scores.items()
            if name != "gear"
        }

    def _ablations(self, cases: Cases, flat_rewards: Floats, report: Advance) -> Ablations:
        sheets = self._sheets
        settings = self._settings

        def variant(rule: Scoring) -> GraphVariant:
            scores = score_sheets(sheets.sheets, rule, report)
            return GraphVariant(
                leakage=leakage(cases, scores.children, settings.kinds),
                preservation=preservation(cases, scores.children, settings.kinds),
                reward=fmean(scores.rewards),
                change=fmean(scores.rewards - flat_rewards),
            )

        # The λ of the untyped graph is the mean over all edges of all rubrics, each once (our reading).
        retention = fmean(factor for sheet in sheets.sheets for factor in sheet.retention(sheets.kappa))
        untyped = variant(lambda sheet: sheet.gated_scores([retention] * len(sheet.edges)))
        seeds = range(settings.seed, settings.seed + settings.seeds)
        return Ablations(
            random=self._summarize_random({seed: variant(random_rule(seed, sheets.kappa)) for seed in seeds}),
            untyped=Untyped(**dict(untyped), retention=retention),
            kappas={f"{kappa:g}": variant(_soft_rule(kappa)) for kappa in KAPPAS},
        )

    def _summarize_random(self, by_seed: Mapping[int, GraphVariant]) -> RandomGraphs | None:
        if not by_seed:
            return None
        graphs = [sheet for sheet in self._sheets.sheets if sheet.edges]
        columns = {name: [getattr(one, name) for one in by_seed.values()] for name in GraphVariant.model_fields}
        mean = {name: None if None in values else fmean(values) for name, values in columns.items()}
        return RandomGraphs(
            mean=GraphVariant.model_validate(mean),
            by_seed={str(seed): one for seed, one in by_seed.items()},
            graphs=len(graphs) * len(by_seed),
            unchanged=sum(is_unchanged(sheet, seed) for sheet in graphs for seed in by_seed),
        )


def _soft_rule(kappa: float) -> Scoring:
    """Return the rule s = q at this κ, inferred as in the run."""
    return lambda sheet: sheet.gated_scores(sheet.retention(kappa))


def diagnose(cases: Cases, kinds: Collection[str], scores: Floats, baseline: Floats | None = None) -> CreditDiagnosis:
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
    return CreditDiagnosis(
        leakage=estimate_mean(leaked[violated], cases.task[violated], least_leaked),
        preservation=estimate_mean(preserved[satisfied], cases.task[satisfied], least_preserved, 1.0),
    )


def estimate_mean(values: Floats, tasks: Ints, least: float = -math.inf, most: float = math.inf) -> CreditEstimate:
    """Return the mean of values [n], with its interval over the tasks [n] to which they belong, within [least, most].

    The bounds are those of the true mean.
    """
    found = ratio_interval(np.bincount(tasks, values), np.bincount(tasks))
    if found is None:
        return CreditEstimate(value=None, low=None, high=None, cases=0, tasks=0)
    low, high = (None if end is None else min(most, max(least, end)) for end in (found.low, found.high))
    return CreditEstimate(value=fmean(values), low=low, high=high, cases=len(values), tasks=found.clusters)


def losses(sheets: Sequence[RubricSheet], kappa: float) -> tuple[Loss, ...]:
    """Return every criterion that lost anything at this κ, the greatest mean loss first, then by task and id."""
    unsorted = (loss for sheet in sheets for loss in _sheet_losses(sheet, kappa))
    return tuple(sorted(unsorted, key=lambda one: (-one.mean_loss, one.task, one.criterion)))


def _sheet_losses(sheet: RubricSheet, kappa: float) -> Iterator[Loss]:
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
        yield Loss(
            task=sheet.task,
            criterion=sheet.criteria[child],
            weight=float(sheet.weights[child]),
            responses=len(rows),
            mean_loss=fmean(lost),
            most=float(lost.max()),
            max_loss_response=sheet.responses[int(rows[lost.argmax()])],
            parent=sheet.edges[edge].parent,
            kind=sheet.edges[edge].kind,
            retention=retention[edge],
            reason=sheet.edges[edge].reason,
        )


def agreement(sheets: Sequence[RubricSheet], kappa: float, report: Advance) -> Agreement:
    """Return the error of the topological update against exact inference at this κ (GEAR, appendix B.2).

    `report` is called with 1 for each sheet.
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
    return Agreement(
        pairs=len(exact),
        too_large=too_large,
        unjudged=unjudged,
        criteria=len(error) / len(exact) if len(exact) else None,
        marginal_mae=fmean(error) if len(exact) else None,
        reward_mae=fmean(np.abs(exact - updated)) if len(exact) else None,
        reward_correlation=correlation(exact, updated),
    )


def correlation(one: Floats, other: Floats) -> float | None:
    """Return Pearson's correlation of two rows; None with fewer than two values, or if either is constant."""
    if len(one) < 2 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return None
    a = one - fmean(one)
    b = other - fmean(other)
    norm = math.sqrt(math.fsum(a * a)) * math.sqrt(math.fsum(b * b))
    return min(1.0, max(-1.0, math.fsum(a * b) / norm)) if norm > 0.0 else None


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
