"""Measure false credit under every rule, and with parts of GEAR removed, from the verdicts of one run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from jurygraph.aggregation.arrays import Bools, Floats
from jurygraph.studies.credit import rules
from jurygraph.studies.credit.cases import (
    EDGE_KINDS,
    THRESHOLD,
    Cases,
    Interval,
    intervals,
    leakage,
    preservation,
)
from jurygraph.studies.credit.exactness import agreement
from jurygraph.studies.credit.losses import losses
from jurygraph.studies.credit.report import (
    Ablations,
    Census,
    CreditReport,
    Diagnosis,
    Estimate,
    Method,
    RandomGraphs,
    Untyped,
    Variant,
)
from jurygraph.studies.credit.rules import RuleScores, Scoring
from jurygraph.studies.credit.sheets import Sheets

KAPPAS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Strengths of suppression in the sweep (GEAR, appendix I)."""

Report = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the study: kinds of edges whose cases count, number of random graphs, and resamples of the bootstrap.

    Random graphs use the seeds `seed`, `seed` + 1, …; the bootstrap uses `seed`.
    """

    kinds: tuple[str, ...] = EDGE_KINDS
    seeds: int = 20
    resamples: int = 1000
    seed: int = 0


class CreditStudy:
    """Measures the sheets of a run; `size` is the number of passes over a sheet."""

    def __init__(self, sheets: Sheets, settings: Settings) -> None:
        self._sheets, self._settings = sheets, settings
        kappa = sheets.kappa
        self._retention = rules.shared_retention(sheets.sheets, kappa)
        self._rules: Mapping[str, Scoring] = {
            "flat": rules.flat_scores,
            "hard-local": rules.hard_rule("hard-local"),
            "hard-transitive": rules.hard_rule("hard-transitive"),
            "gear": rules.soft_rule(kappa),
        }
        self._random = {seed: rules.random_rule(seed, kappa) for seed in _seeds(settings)}
        self.size = len(sheets.sheets) * (len(self._rules) + len(self._random) + len(KAPPAS) + 2)

    def run(self, report: Report) -> CreditReport:
        """Return all figures. `report` is called with the number of sheets passed since its last call."""
        cases = rules.collect_cases(self._sheets.sheets)
        scores = {name: self._score(rule, report) for name, rule in self._rules.items()}
        return CreditReport(
            kappa=self._sheets.kappa,
            threshold=THRESHOLD,
            kinds=self._settings.kinds,
            resamples=self._settings.resamples,
            seed=self._settings.seed,
            census=self._census(cases),
            methods=self._methods(cases, scores),
            ablations=self._ablations(cases, scores["flat"], report),
            exact=agreement(self._sheets.sheets, self._sheets.kappa, report),
            losses=losses(self._sheets.sheets, self._sheets.kappa),
        )

    def _score(self, scoring: Scoring, report: Report) -> RuleScores:
        return rules.score_sheets(self._sheets.sheets, scoring, report)

    def _census(self, cases: Cases) -> Census:
        sheets = self._sheets.sheets
        edges = sum(len(sheet.edges) * len(sheet.responses) for sheet in sheets)
        return Census(
            tasks=self._sheets.tasks,
            responses=self._sheets.responses,
            rubrics=len(sheets),
            graphs=sum(bool(sheet.edges) for sheet in sheets),
            examples=cases.examples,
            edges=edges,
            unjudged=edges - len(cases.p_child),
            left_out=dict(self._sheets.left_out),
        )

    def _methods(self, cases: Cases, scores: Mapping[str, RuleScores]) -> dict[str, Method]:
        settings, kinds_present = self._settings, set(cases.kind.tolist())
        filters = {"": settings.kinds, **{kind: (kind,) for kind in settings.kinds if kind in kinds_present}}
        by_rule = diagnoses(cases, {name: one.children for name, one in scores.items()}, filters, settings)
        return {
            name: Method(
                **dict(by_rule[name].pop("")),
                kinds=by_rule[name],
                reward=fmean(one.rewards),
                change=fmean(one.rewards - scores["flat"].rewards),
            )
            for name, one in scores.items()
        }

    def _ablations(self, cases: Cases, flat: RuleScores, report: Report) -> Ablations:
        def variant(scoring: Scoring) -> Variant:
            return self._variant(cases, self._score(scoring, report), flat)

        shared = variant(rules.untyped_rule(self._retention))
        return Ablations(
            random=self._summarize_random({str(seed): variant(scoring) for seed, scoring in self._random.items()}),
            untyped=Untyped(**dict(shared), retention=self._retention),
            kappas={f"{kappa:g}": variant(rules.soft_rule(kappa)) for kappa in KAPPAS},
        )

    def _variant(self, cases: Cases, scored: RuleScores, flat: RuleScores) -> Variant:
        return Variant(
            leakage=leakage(cases, scored.children, self._settings.kinds),
            preservation=preservation(cases, scored.children, self._settings.kinds),
            reward=fmean(scored.rewards),
            change=fmean(scored.rewards - flat.rewards),
        )

    def _summarize_random(self, each: dict[str, Variant]) -> RandomGraphs | None:
        if not each:
            return None
        graphs = [sheet for sheet in self._sheets.sheets if sheet.edges]
        unchanged = sum(rules.is_unchanged(sheet, seed) for sheet in graphs for seed in self._random)
        columns = {name: [getattr(one, name) for one in each.values()] for name in Variant.model_fields}
        mean = {name: None if None in values else fmean(values) for name, values in columns.items()}
        return RandomGraphs(
            mean=Variant.model_validate(mean), by_seed=each, graphs=len(graphs) * len(each), unchanged=unchanged
        )


def _seeds(settings: Settings) -> range:
    return range(settings.seed, settings.seed + settings.seeds)


def diagnoses(
    cases: Cases, scores: Mapping[str, Floats], filters: Mapping[str, Collection[str]], settings: Settings
) -> dict[str, dict[str, Diagnosis]]:
    """Return leakage and preservation with their intervals, by name of a rule, then by name of a filter of kinds.

    All intervals use the same resamples, so that rules are compared on the same draws.
    """
    pairs = [(rule, name) for rule in scores for name in filters]
    masks = {name: (cases.violated_mask(kinds), cases.satisfied_mask(kinds)) for name, kinds in filters.items()}
    counts = {
        name: [_sum_by_example(cases, mask, np.ones(len(mask))) for mask in mask_pair]
        for name, mask_pair in masks.items()
    }
    values = {
        rule: (cases.leaked_shares(rule_scores), cases.preserved_shares(rule_scores))
        for rule, rule_scores in scores.items()
    }
    sums = [
        _sum_by_example(cases, mask, value)
        for rule, name in pairs
        for mask, value in _zip_masks(masks[name], values[rule])
    ]
    interval_iterator = iter(
        intervals(sums, [row for _, name in pairs for row in counts[name]], settings.resamples, settings.seed)
    )
    result: dict[str, dict[str, Diagnosis]] = {rule: {} for rule in scores}
    for rule, name in pairs:
        estimates = [
            _estimate(value[mask], next(interval_iterator)) for mask, value in _zip_masks(masks[name], values[rule])
        ]
        result[rule][name] = Diagnosis(leakage=estimates[0], preservation=estimates[1])
    return result


def _zip_masks(masks: tuple[Bools, Bools], values: tuple[Floats, Floats]) -> Sequence[tuple[Bools, Floats]]:
    return list(zip(masks, values, strict=True))


def _sum_by_example(cases: Cases, mask: Bools, values: Floats) -> Floats:
    """Return the sums over the cases of each example, [n]."""
    return np.bincount(cases.example[mask], values[mask], minlength=cases.examples).astype(np.float64)


def _estimate(values: Floats, interval: Interval) -> Estimate:
    value = fmean(values) if len(values) else None
    return Estimate(
        value=value, low=interval.low, high=interval.high, cases=len(values), empty_resamples=interval.empty
    )
