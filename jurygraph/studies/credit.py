"""False credit that propagates over a rubric's graph, measured from a stored run (GEAR, sections 4.3 to 4.6).

An example is one response with the graph of its task's rubric. Its edge is a leakage case if the child is locally
supported and the parent is not (p_child >= t, p_parent < t), and a satisfied case if both are. Scores, decisions and
weights are computed from the stored verdicts by the code that computed the rewards.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import correlation, fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph import aggregation
from jurygraph.aggregation import gear
from jurygraph.arrays import Bools, Floats, Ints, as_nonnegative, as_unit_interval, check_shape
from jurygraph.decision.combiners import (
    Flat,
    Gear,
    HardLocal,
    HardTransitive,
    are_criteria_judged,
    input_means,
    is_inferred_exactly,
    marginals,
    signed_weights,
)
from jurygraph.decision.recipe import RUBRIC_COMPONENT_NAME
from jurygraph.display import ProgressCallback
from jurygraph.errors import GraphCycleError, GraphError, InputError
from jurygraph.inference.clusters import cluster_numbers, mean_with_cluster_interval, ratio_interval
from jurygraph.messages import shorten
from jurygraph.runs.integrity.verification import build_group_table
from jurygraph.runs.reports.units import unit_name_of_task, units_label
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.schema import ComponentSpec, Edge, Rubric, digest_of
from jurygraph.schema.config import ExactInferenceMode
from jurygraph.studies import symbols
from jurygraph.studies.conclusions import conclude_credit
from jurygraph.studies.report import (
    Columns,
    Figures,
    Plot,
    PlotSeries,
    Report,
    ReportSections,
    ReportTable,
    describe_series,
    list_omissions,
    name_rows,
    omission_notes,
)

EDGE_KINDS = ("weak", "strong", "activation")
PREREQUISITES = ("weak", "strong")
"""Kinds that the authors' script counts (`DEFAULT_EDGE_TYPES`); the text of GEAR's appendix F counts all."""
MIN_SUPPORTED_SCORE = 0.5
"""t of GEAR, section 4.3: the lowest local score that counts as supported."""
KAPPAS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Strengths of suppression in the sweep (GEAR, appendix I)."""
RANDOM_GRAPH_COUNT = 20
"""Random graphs of each rubric; their seeds are 0, 1, …"""
_HARD_COMBINER_BY_NAME = {rule.name: rule for rule in (HardLocal(), HardTransitive())}
_CREDIT_FIGURE_NAMES = ("leakage", "preservation")
_MAX_LOSSES_LISTED = 10
_MAX_REASON_LENGTH = 120
_MIN_TASKS_FOR_INTERVAL = 20
"""Number of tasks from which intervals over tasks hold for skewed figures too."""


@dataclass(frozen=True, eq=False, slots=True)
class EdgeCases:
    """E edges, of all examples: one entry for each edge and response.

    Attributes:
        p_parent, p_child: local event scores of the ends, in [0, 1], [E].
        share: |w_child| / Σ_{w>0} w, at least 0, [E].
        kind: "weak", "strong" or "activation", [E].
        task: index of the task of each edge, or of the group of tasks that are one unit, at least 0, [E].

    Raises:
        GraphError: lengths that differ, or a value that is NaN, out of range or of an unknown kind; it is named.
    """

    p_parent: Floats
    p_child: Floats
    share: Floats
    kind: NDArray[np.str_]
    task: Ints

    def __post_init__(self) -> None:
        columns: dict[str, Any] = {"kind": np.asarray(self.kind, dtype=np.str_)}
        for name in ("p_parent", "p_child"):
            columns[name] = as_unit_interval(name, getattr(self, name), GraphError)
        for name in ("share", "task"):
            columns[name] = as_nonnegative(name, getattr(self, name), GraphError)
        columns["task"] = columns["task"].astype(np.intp)
        for name, column in columns.items():
            check_shape(name, column, (len(self.p_child),), error=GraphError)
            object.__setattr__(self, name, column)  # lists become arrays
        unknown_edge_kinds = np.setdiff1d(self.kind, EDGE_KINDS).tolist()
        if unknown_edge_kinds:
            raise GraphError(
                f"{unknown_edge_kinds[0]!r} is not a kind of edge; use {', '.join(EDGE_KINDS)}"
            )

    def mask(
        self,
        figure: str,
        kinds: Collection[str] = EDGE_KINDS,
        threshold: float = MIN_SUPPORTED_SCORE,
    ) -> Bools:
        """Return a mask of the leakage cases, or of the satisfied ones for `preservation`, of these kinds, [E]."""
        is_parent_satisfied = self.p_parent >= threshold
        if figure == "leakage":
            is_parent_satisfied = ~is_parent_satisfied
        return np.isin(self.kind, list(kinds)) & (self.p_child >= threshold) & is_parent_satisfied

    def values(self, figure: str, scores: ArrayLike) -> Floats:
        """Return (|w| / Σ_{w>0} w) · s of each child for `leakage`, and s / p for `preservation`, 0 where p is 0; [E].

        Raises `GraphError` for scores that are NaN, outside [0, 1] or not one for each edge.
        """
        values = as_unit_interval("scores", scores, GraphError)
        check_shape("scores", values, self.p_child.shape, error=GraphError)
        if figure == "leakage":
            return self.share * values
        return values / np.where(self.p_child > 0.0, self.p_child, 1.0)


def leakage(
    cases: EdgeCases,
    scores: ArrayLike,
    kinds: Collection[str] = EDGE_KINDS,
    threshold: float = MIN_SUPPORTED_SCORE,
) -> float | None:
    """Return the mean of (|w_child| / Σ_{w>0} w) · s_child over the leakage cases of all examples: Eq. 15 of GEAR.

    At least 0, lower is better; None without a case. `scores` are each child's under a rule, in [0, 1], [E].
    """
    values = cases.values("leakage", scores)[cases.mask("leakage", kinds, threshold)]
    return fmean(values) if len(values) else None


def preservation(
    cases: EdgeCases,
    scores: ArrayLike,
    kinds: Collection[str] = EDGE_KINDS,
    threshold: float = MIN_SUPPORTED_SCORE,
) -> float | None:
    """Return the mean of s_child / p_child over the satisfied cases of all examples: Eq. 16 of GEAR.

    In [0, 1] if s <= p, higher is better; None without a case. Arguments are those of `leakage`.
    """
    values = cases.values("preservation", scores)[cases.mask("preservation", kinds, threshold)]
    return fmean(values) if len(values) else None


@dataclass(frozen=True, eq=False, slots=True)
class TaskRubricScores:
    """One task: R responses, C criteria, E edges.

    Attributes:
        unit: name of what is independent: the task, or the group of tasks that it belongs to.
        responses: ids of the responses that have a reward, sorted [R].
        criteria: ids, sorted [C].
        edges: the rubric's edges in the order of their ends [E].
        parents, children: indices of the ends of each edge [E].
        graph: the same graph, compiled.
        base: λ of each edge at κ = 1 [E].
        p: local event scores [R, C]; missing ones are filled by the run's failure rule.
        is_judged: True where a score was judged [R, C].
        exact: the run's setting of exact inference, which decides by the size of a graph.
        weights, applied_weights: signed weights [C], and per response [R, C]: 0 where a criterion does not apply.
        hard: scores under hard gating [R, C], by the name of the rule.
    """

    task: str
    unit: str
    responses: Sequence[str]
    criteria: Sequence[str]
    edges: Sequence[Edge]
    parents: Sequence[int]
    children: Sequence[int]
    graph: gear.Graph
    base: Sequence[float]
    p: Floats
    is_judged: Bools
    exact: ExactInferenceMode
    weights: Floats
    applied_weights: Floats
    hard: Mapping[str, Floats]

    def retention(self, kappa: float) -> list[float]:
        """Return λ = base^κ of each edge, [E] (GEAR Eq. 17, our reading)."""
        return [base**kappa for base in self.base]

    def graph_gated_scores(self, retention: ArrayLike, graph: gear.Graph | None = None) -> Floats:
        """Return q [R, C] over a graph of these criteria, as the combiner `gear` computes it.

        A random graph may have more criteria with a parent than can be enumerated; it is inferred in one pass.
        """
        graph = graph or self.graph
        is_exact_inference = (
            is_inferred_exactly(graph, self.exact)
            and graph.criteria_with_parent_count <= gear.MAX_ENUMERATED_CHILDREN
        )
        return self.marginals(retention, graph, is_exact_inference)

    def marginals(
        self, retention: ArrayLike, graph: gear.Graph, is_exact_inference: bool
    ) -> Floats:
        """Return q [R, C] by exact inference (GEAR Eq. 9), or in one pass (Eq. 12)."""
        gates = marginals(graph, self.p, retention, self.is_judged, is_exact_inference)
        return np.where(self.weights > 0, *gates)

    def is_judged_edge(self) -> Bools:
        """Return a mask of the edges whose ends were both judged, [R, E]; others have no score to be supported."""
        return self.is_judged[:, self.parents] & self.is_judged[:, self.children]

    def shares(self) -> Floats:
        """Return |w| / Σ_{w>0} w over the criteria that apply, [R, C]."""
        return np.abs(self.applied_weights) / self._total_positive_weight()[:, None]

    def rewards(self, q: Floats) -> Floats:
        """Return Eq. 14 of GEAR over the criteria that apply, [R]: the rubric's component under q."""
        return aggregation.total(self.applied_weights * q) / self._total_positive_weight()

    def _total_positive_weight(self) -> Floats:
        return np.asarray(aggregation.total(np.maximum(self.applied_weights, 0.0)))


@dataclass
class RunRubricScores:
    """The sheets of a run with its κ, and the number of tasks and responses left out of them, by reason."""

    kappa: float
    tasks: int
    responses: int = 0
    sheets: list[TaskRubricScores] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def read_rubric_scores(run: Run, advance: ProgressCallback) -> RunRubricScores:
    """Return the sheets of a run, re-scored ones by their own decisions; `advance` is called with 1 for each task.

    The edges are the task's own, also under flat aggregation; κ and inference are the run's. Left out and counted are
    tasks whose texts were erased, because their edges are no longer known; tasks without a rubric, or with one whose
    edges form a cycle or are not those that counted; responses whose reward failed; and those to which no criterion of
    positive weight applies.

    Raises `InputError` if no rubric of the run has an edge, or no response to such a task has a reward.
    """
    sheets = RunRubricScores(kappa=run.config.rubric.kappa, tasks=run.tasks_scored)
    for group in run.group_records():
        scored = sorted(run.group(group), key=lambda response: response.trace.response_id)
        sheets.responses += len(scored)
        rubric_or_reason = _rubric_or_skip_reason(run, group.key)
        if isinstance(rubric_or_reason, str):
            sheets.left_out[rubric_or_reason] += 1
        else:
            _add_rubric_scores(sheets, run, group.key, scored, *rubric_or_reason)
        advance(1)
    # sums are added in this order, whatever the file's
    sheets.sheets.sort(key=lambda sheet: sheet.task)
    if not any(sheet.edges for sheet in sheets.sheets):
        reasons = list_omissions(+sheets.left_out)
        raise InputError(
            f"{run.folder}: none of its {sheets.responses} responses has a reward from a rubric with edges"
            f"{f' ({reasons})' if reasons else ''}; score tasks whose `rubric` has `edges`, such as "
            "`jurygraph annotate` finds"
        )
    return sheets


def _rubric_or_skip_reason(run: Run, task_id: str) -> tuple[ComponentSpec, Rubric] | str:
    """Return the rubric's component and the rubric, or the reason why the task is left out."""
    task = run.task_with_planning_results(task_id)
    if task is None:
        return "tasks that were erased"
    rules = (Flat.name, Gear.name, *_HARD_COMBINER_BY_NAME)
    specs = {spec.name: spec for spec in run.decision_of(task_id).specs}
    spec = specs.get(RUBRIC_COMPONENT_NAME)
    if (
        spec is None
        or spec.combiner not in rules
        or task.rubric is None
        or set(spec.inputs) != {criterion.id for criterion in task.rubric.criteria}
    ):
        return "tasks without a rubric that counts by its criteria"
    try:
        settings = run.config.rubric.model_dump(include={"kappa", "exact"})
        params = Gear().freeze(spec.inputs, {"edges": task.rubric.edges, **settings})
    except GraphCycleError:  # possible under `flat`, which ignores edges
        return "tasks whose edges form a cycle"
    if spec.combiner != Flat.name:
        for name, value in params.items():
            if spec.params.get(name, value) != value:
                return "tasks of which the config states other edges, κ or inference than their rubric and the run"
    return spec, task.rubric


def _add_rubric_scores(
    sheets: RunRubricScores,
    run: Run,
    task_id: str,
    scored: list[ScoredResponse],
    spec: ComponentSpec,
    rubric: Rubric,
) -> None:
    """Add the sheet of a task, with the responses that have a reward from its rubric."""
    traces = [response.trace for response in scored]
    table = build_group_table(run, task_id, traces)
    rule = run.decision_of(task_id).rule
    settings = run.config.rubric
    matrices = {
        name: table.score_matrix(use, rule, spec.direction, "counted", settings.met_from)
        for name, use in spec.inputs.items()
    }
    p, is_applicable = input_means(matrices)
    weights = signed_weights(matrices)
    has_reward = np.array([trace.reward.value is not None for trace in traces])
    has_positive_weight = (is_applicable & (weights > 0.0)).any(axis=1)
    left_out = sheets.left_out
    left_out["responses whose reward failed"] += int((~has_reward).sum())
    left_out["responses to which no criterion of positive weight applies"] += int(
        (has_reward & ~has_positive_weight).sum()
    )
    kept = np.flatnonzero(has_reward & has_positive_weight)
    if not len(kept):
        return
    params = Gear().freeze(spec.inputs, {"edges": rubric.edges})
    parents = params["parents"]
    children = params["children"]
    scores_by_rule = {}
    for name, combiner in _HARD_COMBINER_BY_NAME.items():
        scores = combiner.combine(matrices, params).parts
        scores_by_rule[name] = np.stack(list(scores.values()), axis=1)[kept]
    # as `freeze` sorts them
    edges = sorted(rubric.edges, key=lambda edge: (edge.parent, edge.child))
    sheet = TaskRubricScores(
        task=task_id,
        unit=unit_name_of_task(run, task_id),
        responses=[traces[row].response_id for row in kept],
        criteria=list(matrices),
        edges=edges,
        parents=parents,
        children=children,
        graph=gear.compile(len(matrices), parents, children),
        base=params["retention"],
        p=p[kept],
        is_judged=are_criteria_judged(matrices)[kept],
        exact=settings.exact,
        weights=weights,
        applied_weights=np.where(is_applicable, weights, 0.0)[kept],
        hard=scores_by_rule,
    )
    sheets.sheets.append(sheet)


ScoringRule = Callable[[TaskRubricScores], Floats]
"""A function that returns the scores [R, C] of a sheet under a rule."""


class ScoresUnderRule(NamedTuple):
    """Scores under a rule: of the child of each case [E], and the rubric's reward of each example [n]."""

    children: Floats
    rewards: Floats


def report(sheets: RunRubricScores, random_graph_count: int = RANDOM_GRAPH_COUNT) -> Report:
    """Return all figures.

    - `kappa` is the run's, used for `gear` and for the untyped and random graphs.
    - `census`: `examples` are the responses with a reward from a rubric, of `rubrics` tasks, `graphs` of which have
      an edge; of these, `exact` are inferred exactly. Of the `edges` (counted once for each example), `unjudged`
      are no cases, because an end does not apply, or was not judged in all its samples.
    - `methods`, by rule: leakage and preservation over all edges, by kind of edge, the mean reward of the rubric,
      and its mean change against flat aggregation.
      The authors' script counts the edges of `prerequisites` alone.
    - `differences`: GEAR less another rule, on the same cases, and on the same examples for the reward; `reduction` is
      the share of the other's leakage that GEAR takes away.
    - `inference`: how far one pass is from exact inference, as `compare_inferences` returns it.
    - `ablations`, without intervals: random graphs, one λ for all edges, and GEAR by κ.
    - `losses`: the criteria that lost credit.
    """
    rows = sheets.sheets
    rules = {
        "flat": lambda sheet: sheet.p,
        "hard-local": lambda sheet: sheet.hard["hard-local"],
        "hard-transitive": lambda sheet: sheet.hard["hard-transitive"],
        "gear": _gear_scoring_rule(sheets.kappa),
    }
    cases = collect_cases(rows)
    scores = {name: score_rubrics_under_rule(rows, rule) for name, rule in rules.items()}
    flat_scores = scores["flat"]
    gear_scores = scores["gear"]
    units = np.repeat([sheet.unit for sheet in rows], [len(sheet.responses) for sheet in rows])
    methods = {}
    differences = {}
    for name, rule_scores in scores.items():
        children = rule_scores.children
        kinds = [kind for kind in EDGE_KINDS if kind in cases.kind]
        methods[name] = {
            **diagnose(cases, EDGE_KINDS, children),
            "kinds": {kind: diagnose(cases, (kind,), children) for kind in kinds},
            "prerequisites": diagnose(cases, PREREQUISITES, children),
            "reward": fmean(rule_scores.rewards),
            "change": fmean(rule_scores.rewards - flat_scores.rewards),
        }
        if name != "gear":
            row = diagnose(cases, EDGE_KINDS, gear_scores.children, children)
            row["reward"] = estimate_mean(gear_scores.rewards - rule_scores.rewards, units)
            row["reduction"] = reduce_leakage(cases, gear_scores.children, children)
            differences[name] = row
    figures = {
        "kappa": sheets.kappa,
        "threshold": MIN_SUPPORTED_SCORE,
        "census": _count_edges(sheets, cases, units),
        "methods": methods,
        "differences": differences,
        "inference": compare_inferences(rows, sheets.kappa),
        "ablations": _ablation_figures(sheets, cases, flat_scores.rewards, random_graph_count),
        "losses": losses(rows, sheets.kappa),
    }
    return Report(
        figures,
        _sections(figures),
        _notes(figures),
        _plots(figures),
        list(conclude_credit(figures)),
        symbols.CREDIT_SYMBOL_MEANINGS,
    )


def _count_edges(sheets: RunRubricScores, cases: EdgeCases, units: NDArray[np.str_]) -> Figures:
    """Return the census; `units` has the unit of each example."""
    graphs = [sheet for sheet in sheets.sheets if sheet.edges]
    edges = sum(len(sheet.edges) * len(sheet.responses) for sheet in graphs)
    return {
        "tasks": sheets.tasks,
        "units": units_label(units),
        "responses": sheets.responses,
        "rubrics": len(sheets.sheets),
        "graphs": len(graphs),
        "exact": sum(is_inferred_exactly(sheet.graph, sheet.exact) for sheet in graphs),
        "examples": len(units),
        "edges": edges,
        "unjudged": edges - len(cases.p_child),
        "left_out": +sheets.left_out,  # without those of which there are none
    }


def collect_cases(sheets: Sequence[TaskRubricScores]) -> EdgeCases:
    """Return the edges of all examples, sheet by sheet and response by response, if both ends were judged."""
    parent_scores = []
    kinds = []
    units = []
    for sheet in sheets:
        mask = sheet.is_judged_edge()
        edge_kinds = np.array([edge.kind for edge in sheet.edges], dtype=np.str_)
        parent_scores.append(sheet.p[:, sheet.parents][mask])
        kinds.append(np.broadcast_to(edge_kinds, mask.shape)[mask])
        units += [sheet.unit] * int(mask.sum())
    return EdgeCases(
        p_parent=np.concatenate(parent_scores),
        p_child=_values_of_children(sheets, [sheet.p for sheet in sheets]),
        share=_values_of_children(sheets, [sheet.shares() for sheet in sheets]),
        kind=np.concatenate(kinds),
        task=cluster_numbers(units),
    )


def score_rubrics_under_rule(
    sheets: Sequence[TaskRubricScores], scoring: ScoringRule
) -> ScoresUnderRule:
    """Return the scores under a rule, in the order of `collect_cases`."""
    scores = [scoring(sheet) for sheet in sheets]
    rewards = [sheet.rewards(q) for sheet, q in zip(sheets, scores, strict=True)]
    return ScoresUnderRule(_values_of_children(sheets, scores), np.concatenate(rewards))


def _values_of_children(sheets: Sequence[TaskRubricScores], values: Sequence[Floats]) -> Floats:
    """Return from values [R, C] of each sheet those of the children of its cases, concatenated."""
    pairs = zip(sheets, values, strict=True)
    return np.concatenate(
        [matrix[:, sheet.children][sheet.is_judged_edge()] for sheet, matrix in pairs]
    )


def _gear_scoring_rule(kappa: float) -> ScoringRule:
    """Return the rule s = q at this κ, inferred as in the run."""
    return lambda sheet: sheet.graph_gated_scores(sheet.retention(kappa))


def diagnose(
    cases: EdgeCases, kinds: Collection[str], scores: Floats, baseline_scores: Floats | None = None
) -> Figures:
    """Return leakage and preservation over the edges of these kinds, or their differences from the scores
    `baseline_scores`.

    Scores are of the children of all cases under a rule, from 0 to each child's own score, [E].
    """
    figures = {}
    for figure, lowest, highest in (("leakage", 0.0, math.inf), ("preservation", 0.0, 1.0)):
        values = cases.values(figure, scores)
        if baseline_scores is not None:
            values = values - cases.values(figure, baseline_scores)
            lowest = -highest
        mask = cases.mask(figure, kinds)
        figures[figure] = estimate_mean(values[mask], cases.task[mask], lowest, highest)
    return figures


def estimate_mean(
    values: Floats, units: ArrayLike, least: float = -math.inf, most: float = math.inf
) -> Figures:
    """Return the mean of values [n] with its 95 % interval over the units [n] to which they belong (CR3).

    [least, most] are the bounds of the true mean, at which the interval is cut off. `value` is None without a case, the
    ends also where the units cannot tell: fewer than two, or fewer than six with equal means.
    """
    estimate = mean_with_cluster_interval(values, units)
    empty = (None, None, None, None, 0)
    value, low, high, _, tasks = empty if estimate is None else estimate.within(least, most)
    return {"value": value, "low": low, "high": high, "cases": len(values), "tasks": tasks}


def reduce_leakage(cases: EdgeCases, scores: Floats, baseline_scores: Floats) -> Figures | None:
    """Return 1 - leakage under `scores` / leakage under `baseline_scores` with its interval over units (GEAR, section
    4.3).

    At most 1. None where the baseline leaks nothing; the ends are None where the units cannot tell.
    """
    mask = cases.mask("leakage")
    units = cases.task[mask]
    remaining_leakage = np.bincount(units, cases.values("leakage", scores)[mask])
    baseline_leakage = np.bincount(units, cases.values("leakage", baseline_scores)[mask])
    share = ratio_interval(remaining_leakage, baseline_leakage)
    if share is None:
        return None
    low, high = (None if end is None else min(1.0, 1.0 - end) for end in (share.high, share.low))
    return {"value": 1.0 - share.value, "low": low, "high": high}


def compare_inferences(sheets: Sequence[TaskRubricScores], kappa: float) -> Figures:
    """Return how far one pass (GEAR Eq. 12) is from exact inference (Eq. 9), at this κ: Table 6 and B.2.

    `pairs` are responses with the graph of their rubric, `criteria` their mean number, `marginal_error` the mean
    |difference| over the criteria of all pairs, `reward_error` that over the rewards, and `correlation` Pearson's
    between the two rewards, None where either has one value only. `too_large` pairs are left out: more than twenty
    criteria of their graphs have a parent.
    """
    errors = []
    exact_rewards = []
    approximate_rewards = []
    for sheet in sheets:
        if sheet.graph.criteria_with_parent_count > gear.MAX_ENUMERATED_CHILDREN:
            continue
        retention = sheet.retention(kappa)
        exact_marginals = sheet.marginals(retention, sheet.graph, is_exact_inference=True)
        one_pass_marginals = sheet.marginals(retention, sheet.graph, is_exact_inference=False)
        errors += np.abs(exact_marginals - one_pass_marginals).ravel().tolist()
        exact_rewards += sheet.rewards(exact_marginals).tolist()
        approximate_rewards += sheet.rewards(one_pass_marginals).tolist()
    pairs = len(exact_rewards)
    figures: Figures = {"pairs": pairs}
    figures |= dict.fromkeys(("criteria", "marginal_error", "reward_error", "correlation"))
    figures["too_large"] = sum(len(sheet.responses) for sheet in sheets) - pairs
    if pairs:
        figures["criteria"] = len(errors) / pairs
        figures["marginal_error"] = fmean(errors)
        figures["reward_error"] = fmean(np.abs(np.subtract(exact_rewards, approximate_rewards)))
    if len(set(exact_rewards)) > 1 and len(set(approximate_rewards)) > 1:
        figures["correlation"] = correlation(exact_rewards, approximate_rewards)
    return figures


def _ablation_figures(
    sheets: RunRubricScores, cases: EdgeCases, flat_rewards: Floats, random_graph_count: int
) -> Figures:
    """Return the variants of GEAR. Their cases are those of the annotated graph, whatever graph the scores use."""

    def variant(rule: ScoringRule) -> Figures:
        scores = score_rubrics_under_rule(sheets.sheets, rule)
        return {
            "leakage": leakage(cases, scores.children),
            "preservation": preservation(cases, scores.children),
            "reward": fmean(scores.rewards),
            "change": fmean(scores.rewards - flat_rewards),
        }

    figures_by_seed = {
        seed: variant(random_rule(seed, sheets.kappa)) for seed in range(random_graph_count)
    }
    mean = {}
    for name in figures_by_seed[0]:
        values = [row[name] for row in figures_by_seed.values()]
        mean[name] = None if None in values else fmean(values)
    # The λ of the untyped graph is the mean over all edges of all rubrics, each once (our reading).
    retention = fmean(chain.from_iterable(sheet.retention(sheets.kappa) for sheet in sheets.sheets))
    untyped = variant(lambda sheet: sheet.graph_gated_scores([retention] * len(sheet.edges)))
    return {
        "random": {"mean": mean, "by_seed": figures_by_seed},
        "untyped": {**untyped, "retention": retention},
        "kappas": {f"{kappa:g}": variant(_gear_scoring_rule(kappa)) for kappa in KAPPAS},
    }


class RewiredGraph(NamedTuple):
    """A graph over C criteria: ends of its edges [E], and the index of the edge whose kind and λ each takes [E]."""

    parents: list[int]
    children: list[int]
    source_edge_indices: list[int]


def random_rule(seed: int, kappa: float) -> ScoringRule:
    """Return the rule s = q over a randomly rewired graph, each edge with the kind and λ of another one."""

    def scores(sheet: TaskRubricScores) -> Floats:
        rewired_graph = rewire(sheet.graph, seed, sheet.task)
        retention = np.array(sheet.retention(kappa))[rewired_graph.source_edge_indices]
        graph = gear.compile(sheet.graph.n, rewired_graph.parents, rewired_graph.children)
        return sheet.graph_gated_scores(retention, graph)

    return scores


def rewire(graph: gear.Graph, seed: int, task: str) -> RewiredGraph:
    """Return a random acyclic graph over the same criteria with as many edges, each with the kind and λ of another.

    The draws are an order of the criteria, then as many of its forward pairs as there are edges, then the edge whose
    kind and λ each pair takes: no self-loops, no duplicate edges and no cycles. Roles are ignored (GEAR, 4.6: "rewires
    dependencies between criteria"). The draw depends on the seed, at least 0, and on the id of the task only.
    """
    rng = np.random.Generator(np.random.PCG64([seed, int(digest_of(task), 16)]))
    order = rng.permutation(graph.n)
    first, second = np.triu_indices(graph.n, k=1)
    pairs = rng.choice(len(first), size=graph.edge_count, replace=False)
    source_edge_indices = rng.permutation(graph.edge_count).tolist()
    parents = order[first[pairs]].tolist()
    children = order[second[pairs]].tolist()
    return RewiredGraph(parents, children, source_edge_indices)


def losses(sheets: Sequence[TaskRubricScores], kappa: float) -> list[Figures]:
    """Return every criterion that lost anything at this κ, the greatest mean loss first, then by task and id.

    A loss is (|w| / Σ_{w>0} w) · (p - q), a share of the total reward; for a penalty, the deduction avoided.
    `mean_loss` is the mean over the `responses` in which the criterion was judged. `parent` is the one that takes most
    over these: the mean of (|w| / Σ_{w>0} w) · p · (1 - f) is greatest for its factor f alone; `kind`, `retention` (λ
    at this κ) and `reason` are those of its edge.
    """
    rows = chain.from_iterable(_iter_criterion_credit_losses(sheet, kappa) for sheet in sheets)
    return sorted(rows, key=lambda loss: (-loss["mean_loss"], loss["task"], loss["criterion"]))


def _iter_criterion_credit_losses(sheet: TaskRubricScores, kappa: float) -> Iterator[Figures]:
    retention = sheet.retention(kappa)
    shares = sheet.shares()
    q = sheet.graph_gated_scores(retention)
    # 1 - f of each edge, [R, E]: an unjudged parent supports no gain, and every penalty
    fill = np.where(sheet.weights[list(sheet.children)] > 0, 0.0, 1.0)
    parent_scores = np.where(sheet.is_judged[:, sheet.parents], q[:, sheet.parents], fill)
    score_reductions = (1.0 - parent_scores) * (1.0 - np.asarray(retention))
    for child in sorted(set(sheet.children)):
        rows = np.flatnonzero(sheet.is_judged[:, child])
        share = shares[rows, child]
        p = sheet.p[rows, child]
        lost_credit_by_response = share * (p - q[rows, child])
        if not (lost_credit_by_response > 0.0).any():
            continue
        indices = [index for index, end in enumerate(sheet.children) if end == child]
        reductions = [fmean(share * p * score_reductions[rows, index]) for index in indices]
        index = indices[np.argmax(reductions)]
        edge = sheet.edges[index]
        yield {
            "task": sheet.task,
            "criterion": sheet.criteria[child],
            "responses": len(rows),
            "mean_loss": fmean(lost_credit_by_response),
            "parent": edge.parent,
            "kind": edge.kind,
            "retention": retention[index],
            "reason": edge.reason,
        }


def _sections(figures: Figures) -> ReportSections:
    census_figures = figures["census"]
    methods = figures["methods"]
    yield (
        "{examples} responses to {rubrics} rubrics, {graphs} of them with edges, {exact} inferred exactly; "
        "κ = {kappa:g}".format(**census_figures, kappa=figures["kappa"])
    )
    yield (
        f"cases: edges with a child that is met: {', '.join(EDGE_KINDS)}; 95 % intervals over "
        f"{census_figures['units']}; rubric mean: of the rubric alone, before musts, not the mean reward"
    )
    intervals = {f"{name} (95 %)": name for name in _CREDIT_FIGURE_NAMES}
    means = {"rubric mean": "reward", "change from flat": "change"}
    yield ReportTable.of({"rule": "name", **intervals, **means}, name_rows(methods))
    columns = {"gear less": "name", **intervals}
    columns |= {"leakage taken away (95 %)": "reduction", "rubric mean (95 %)": "reward"}
    yield ReportTable.of(columns, name_rows(figures["differences"]))
    for figure, cases in (("leakage", "violated"), ("preservation", "satisfied")):
        rule_rows = [
            {
                **method["kinds"],
                "prerequisites": method["prerequisites"],
                "all kinds": method,
            }
            for method in methods.values()
        ]
        rows = []
        for kind in rule_rows[0]:
            estimates = [rule[kind][figure] for rule in rule_rows]
            values = [estimate["value"] for estimate in estimates]
            rows.append([kind, estimates[0]["cases"], estimates[0]["tasks"], *values])
        header = (f"{figure} by kind of edge", cases, census_figures["units"], *methods)
        yield ReportTable(header, rows)
    columns = {
        "exact against one pass": "name",
        "responses": "pairs",
        "mean criteria": "criteria",
        "marginals, MAE": "marginal_error",
        "rewards, MAE": "reward_error",
        "correlation": "correlation",
    }
    inferences = {f"κ = {figures['kappa']:g}": figures["inference"]}
    yield ReportTable.of(columns, name_rows(inferences))
    ablations = figures["ablations"]
    random_graphs = ablations["random"]
    untyped = ablations["untyped"]
    variants = {
        f"random graphs, {len(random_graphs['by_seed'])} seeds": random_graphs["mean"],
        f"untyped, λ = {untyped['retention']:.4g}": untyped,
        **{f"κ = {kappa}": variant for kappa, variant in ablations["kappas"].items()},
    }
    columns = {
        "variant of gear": "name",
        "leakage": "leakage",
        "preservation": "preservation",
        **means,
    }
    yield ReportTable.of(columns, name_rows(variants))
    if not figures["losses"]:
        yield "no criterion lost credit"
    loss_columns: Columns = {
        "largest losses: task": "task",
        "criterion": "criterion",
        "needs": "parent",
        "kind": "kind",
        "reason": lambda loss: shorten(loss["reason"], _MAX_REASON_LENGTH),
        "mean loss": "mean_loss",
    }
    yield ReportTable.of(loss_columns, figures["losses"], left=5, most=_MAX_LOSSES_LISTED)


def _notes(figures: Figures) -> Iterator[str]:
    census_figures = figures["census"]
    yield from omission_notes(census_figures["left_out"])
    if census_figures["unjudged"]:
        yield (
            f"no cases: {census_figures['unjudged']} of {census_figures['edges']} edges with an end that was not "
            "judged, is unsupported in a sample, or does not apply"
        )
    too_large_count = figures["inference"]["too_large"]
    if too_large_count:
        yield (
            f"not in exact against one pass: {too_large_count} responses; more than {gear.MAX_ENUMERATED_CHILDREN} "
            "criteria of its graph have a parent"
        )
    if figures["kappa"] == 0:
        yield "the run has κ = 0, which makes GEAR flat aggregation"
    leakage_task_count, preservation_task_count = (
        figures["methods"]["gear"][name]["tasks"] for name in _CREDIT_FIGURE_NAMES
    )
    if min(leakage_task_count, preservation_task_count) < _MIN_TASKS_FOR_INTERVAL:
        yield (
            f"{census_figures['units']} with a case of leakage: {leakage_task_count}, of preservation: "
            f"{preservation_task_count}; with fewer than {_MIN_TASKS_FOR_INTERVAL}, intervals are approximate, and "
            "with one there is none"
        )


def _plots(figures: Figures) -> Iterator[Plot]:
    variants = figures["ablations"]["kappas"].values()
    marks = [(figures["kappa"], "the run's κ")]
    for names in (("leakage",), ("preservation", "reward")):
        series = []
        for name in names:
            values = [variant[name] for variant in variants]
            series.append(PlotSeries(name, values, KAPPAS))
        title = "; ".join(describe_series(line.label.capitalize(), "κ =", line) for line in series)
        yield Plot(title, "line", series, x_label="κ", marks=marks)
