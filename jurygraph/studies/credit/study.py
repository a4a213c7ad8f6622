"""The study: false credit under every rule, with part after part of GEAR taken away, from the verdicts of one run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from jurygraph.agents.roles import Bools, Floats
from jurygraph.studies.credit import measuring
from jurygraph.studies.credit.bootstrap import Interval, intervals
from jurygraph.studies.credit.cases import EDGE_KINDS, THRESHOLD, Cases, leakage, preservation
from jurygraph.studies.credit.exactness import agreement
from jurygraph.studies.credit.losses import losses
from jurygraph.studies.credit.measuring import Scored, Scoring
from jurygraph.studies.credit.report import (
    Ablations,
    Census,
    CreditReport,
    Diagnosis,
    Estimate,
    Method,
    Rewired,
    Untyped,
    Variant,
)
from jurygraph.studies.credit.sheets import Sheets

KAPPAS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""The strengths of suppression that are swept (GEAR, appendix I)."""

Report = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """What is studied: the kinds of edges whose cases count, how many random graphs, and the bootstrap's draws.

    Random graphs are drawn with the seeds `seed`, `seed` + 1, …; the bootstrap with `seed`.
    """

    kinds: tuple[str, ...] = EDGE_KINDS
    seeds: int = 20
    resamples: int = 1000
    seed: int = 0


class CreditStudy:
    """Measures the sheets of a run; `size` is how many times a sheet is looked at."""

    def __init__(self, sheets: Sheets, settings: Settings) -> None:
        self._sheets, self._settings = sheets, settings
        kappa = sheets.kappa
        self._retention = measuring.shared_retention(sheets.each, kappa)
        self._rules: Mapping[str, Scoring] = {
            "flat": measuring.flat,
            "hard-local": measuring.hard("hard-local"),
            "hard-transitive": measuring.hard("hard-transitive"),
            "gear": measuring.soft(kappa),
        }
        self._random = {seed: measuring.random(seed, kappa) for seed in _seeds(settings)}
        self.size = len(sheets.each) * (len(self._rules) + len(self._random) + len(KAPPAS) + 2)

    def run(self, report: Report) -> CreditReport:
        """All figures. `report` is called with how many sheets were looked at since its last call."""
        cases = measuring.cases_of(self._sheets.each)
        scores = {name: self._scored(rule, report) for name, rule in self._rules.items()}
        return CreditReport(
            kappa=self._sheets.kappa,
            threshold=THRESHOLD,
            kinds=self._settings.kinds,
            resamples=self._settings.resamples,
            seed=self._settings.seed,
            census=self._census(cases),
            methods=self._methods(cases, scores),
            ablations=self._ablations(cases, scores["flat"], report),
            exact=agreement(self._sheets.each, self._sheets.kappa, report),
            losses=losses(self._sheets.each, self._sheets.kappa),
        )

    def _scored(self, scoring: Scoring, report: Report) -> Scored:
        return measuring.scored(self._sheets.each, scoring, report)

    def _census(self, cases: Cases) -> Census:
        sheets = self._sheets.each
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

    def _methods(self, cases: Cases, scores: Mapping[str, Scored]) -> dict[str, Method]:
        settings, present = self._settings, set(cases.kind.tolist())
        filters = {"": settings.kinds, **{kind: (kind,) for kind in settings.kinds if kind in present}}
        found = diagnoses(cases, {name: one.children for name, one in scores.items()}, filters, settings)
        return {
            name: Method(
                **dict(found[name].pop("")),
                kinds=found[name],
                reward=fmean(one.rewards),
                change=fmean(one.rewards - scores["flat"].rewards),
            )
            for name, one in scores.items()
        }

    def _ablations(self, cases: Cases, flat: Scored, report: Report) -> Ablations:
        def variant(scoring: Scoring) -> Variant:
            return self._variant(cases, self._scored(scoring, report), flat)

        shared = variant(measuring.untyped(self._retention))
        return Ablations(
            random=self._rewired({str(seed): variant(scoring) for seed, scoring in self._random.items()}),
            untyped=Untyped(**dict(shared), retention=self._retention),
            kappas={f"{kappa:g}": variant(measuring.soft(kappa)) for kappa in KAPPAS},
        )

    def _variant(self, cases: Cases, scored: Scored, flat: Scored) -> Variant:
        return Variant(
            leakage=leakage(cases, scored.children, self._settings.kinds),
            preservation=preservation(cases, scored.children, self._settings.kinds),
            reward=fmean(scored.rewards),
            change=fmean(scored.rewards - flat.rewards),
        )

    def _rewired(self, each: dict[str, Variant]) -> Rewired | None:
        if not each:
            return None
        graphs = [sheet for sheet in self._sheets.each if sheet.edges]
        same = sum(measuring.as_annotated(sheet, seed) for sheet in graphs for seed in self._random)
        columns = {name: [getattr(one, name) for one in each.values()] for name in Variant.model_fields}
        mean = {name: None if None in values else fmean(values) for name, values in columns.items()}
        return Rewired(mean=Variant.model_validate(mean), each=each, graphs=len(graphs) * len(each), as_annotated=same)


def _seeds(settings: Settings) -> range:
    return range(settings.seed, settings.seed + settings.seeds)


def diagnoses(
    cases: Cases, scores: Mapping[str, Floats], filters: Mapping[str, Collection[str]], settings: Settings
) -> dict[str, dict[str, Diagnosis]]:
    """Leakage and preservation with their intervals: by the name of a rule, then by that of a filter of kinds.

    All intervals are of the same resamples, so that rules are compared on the same draws.
    """
    named = [(rule, name) for rule in scores for name in filters]
    held = {name: (cases.violated(kinds), cases.satisfied(kinds)) for name, kinds in filters.items()}
    counts = {name: [_by_example(cases, of, np.ones(len(of))) for of in both] for name, both in held.items()}
    values = {rule: (cases.leaked(given), cases.kept(given)) for rule, given in scores.items()}
    sums = [_by_example(cases, of, value) for rule, name in named for of, value in _both(held[name], values[rule])]
    spread = iter(
        intervals(sums, [one for _, name in named for one in counts[name]], settings.resamples, settings.seed)
    )
    found: dict[str, dict[str, Diagnosis]] = {rule: {} for rule in scores}
    for rule, name in named:
        ends = [_estimate(value[of], next(spread)) for of, value in _both(held[name], values[rule])]
        found[rule][name] = Diagnosis(leakage=ends[0], preservation=ends[1])
    return found


def _both(held: tuple[Bools, Bools], values: tuple[Floats, Floats]) -> Sequence[tuple[Bools, Floats]]:
    return list(zip(held, values, strict=True))


def _by_example(cases: Cases, of: Bools, values: Floats) -> Floats:
    """Sums over the cases of each example, [n]."""
    return np.bincount(cases.example[of], values[of], minlength=cases.examples).astype(np.float64)


def _estimate(values: Floats, interval: Interval) -> Estimate:
    value = fmean(values) if len(values) else None
    return Estimate(value=value, low=interval.low, high=interval.high, cases=len(values), empty=interval.empty)
