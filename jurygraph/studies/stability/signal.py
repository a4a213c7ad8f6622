"""The effect of the noise of wording on groups of responses: SNR, signs of advantages, decisions at a threshold."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from jurygraph.errors import InputError
from jurygraph.inference.clusters import share_interval
from jurygraph.messages import did_you_mean, quote
from jurygraph.studies.report import Plot, PlotSeries, Report, ReportTable, omission_notes
from jurygraph.studies.stability.measures import (
    VarianceTerms,
    estimate_terms,
    exchangeable_aggregation,
    needed_snr,
    observed_snr,
    sign_correctness,
)
from jurygraph.studies.stability.report import SeedUnit, units_by_protocol, variance_digits
from jurygraph.studies.stability.rows import REWARD, Presentations

Figures = dict[str, Any]
_MOST_ROWS = 20
_STABLE = 0.95
"""The probability with which a decision at a threshold should be the same for the next wording."""


class GroupSignal(NamedTuple):
    """A group of G responses to a task: its SNR, P(correct sign), and the variants to average for the wanted P.

    `variants` is None where no number is enough, because the rewards differ by no more than noise explains.
    """

    task: str
    group: int
    signal_and_noise: float
    noise: float
    has_own_noise: bool
    snr: float
    sign_correct: float
    variants: int | None


def measure_signal(
    presentations: Presentations, protocol: str | None = None, correct: float = 0.9, cut: float | None = None
) -> Report:
    """Return Propositions 1 and 2 and Theorem 1 for the groups of runs.

    The figures are the `groups`, the share of them `below` the wanted probability, `terms` by number of
    stakeholders where the judge gives weights and utilities, and the `flips` of decisions.

    Args:
        presentations: scores of variants.
        protocol: component, or `reward`; by default the reward, or the first protocol.
        correct: the wanted probability of a correct sign, above .5 and below 1.
        cut: threshold of a decision, on the scale from 1 to 10; None for no decisions.

    Raises:
        InputError: an unknown protocol, no variants, or no task with two responses.
    """
    source = ", ".join(presentations.sources)
    units = _choose_units(presentations, protocol, source)
    noises = [noise for unit in units if (noise := unit.semantic()) is not None]
    if not noises:
        raise InputError(f"{source}: no response has two scored variants; label them with `seed` and `family`")
    groups = list(_groups(units, fmean(noises), correct))
    if not groups:
        raise InputError(f"{source}: no task has two responses, so that there is no group to compare")
    share = share_interval([float(one.sign_correct < correct) for one in groups], [1.0] * len(groups))
    terms = list(_terms_by_size(units))
    flips = [flip for unit in units if cut is not None for flip in _flips(unit, cut)]
    name = units[0].rows[0].protocol
    figures = {"protocol": name, "correct": correct, "groups": groups, "below": share, "terms": terms, "flips": flips}
    columns = {"task": "task", "G": "group", "σ²_ξ": "noise", "SNR": "snr", "P(correct sign)": "sign_correct"}
    cells = [one._asdict() for one in sorted(groups, key=lambda one: one.sign_correct)]
    digits = variance_digits((one.noise for one in groups), 3)
    sections: list[str | ReportTable] = [
        f"{name}: {len(groups)} groups, scores from 1 to 10",
        ReportTable(["P(correct sign) below", "share of groups"], [(f"{correct:g}", share)]),
        ReportTable.of({**columns, f"variants for {correct:g}": "variants"}, cells, digits=digits, most=_MOST_ROWS),
        _terms_table(terms),
    ]
    if cut is not None:
        flipping = sorted((one for one in flips if one["flips"]), key=lambda one: -float(one["flips"]))
        sections.append(f"decisions at {cut:g}: {len(flipping)} of {len(flips)} responses flip with some wording")
        columns = {"response that flips": "seed", "mean score": "mean", "share of variants": "flips"}
        columns[f"variants for {_STABLE:g}"] = "variants"
        sections.append(ReportTable.of(columns, flipping, digits=3, most=_MOST_ROWS))
    signs = PlotSeries("groups", [one.sign_correct for one in groups])
    plot = Plot("P(correct sign) of groups", "histogram", [signs], "P(correct sign)", marks=[(correct, "wanted")])
    return Report(figures, sections, list(_notes(presentations, groups)), [plot])


def _choose_units(presentations: Presentations, protocol: str | None, source: str) -> list[SeedUnit]:
    by_protocol = units_by_protocol(presentations.rows)
    name = protocol or (REWARD if REWARD in by_protocol else next(iter(by_protocol), REWARD))
    if name not in by_protocol:
        hint = did_you_mean(name, by_protocol) or f"there are {', '.join(by_protocol) or 'none'}"
        raise InputError(f"{source}: no score is of {quote(name)}; {hint}")
    return by_protocol[name]


def _groups(units: Sequence[SeedUnit], pooled: float, correct: float) -> Iterator[GroupSignal]:
    by_group: dict[tuple[str, str], list[SeedUnit]] = {}
    for unit in units:
        by_group.setdefault((unit.judge, unit.cluster), []).append(unit)
    for (_, task), own in by_group.items():
        size = len(own)
        if size < 2:
            continue
        known = [noise for unit in own if (noise := unit.semantic()) is not None]
        noise = fmean(known) if known else pooled
        rewards = np.array([_shown_score(unit) for unit in own])
        snr = observed_snr(rewards, noise)
        variants = max(1, math.ceil(needed_snr(correct, size) / snr)) if snr > 0.0 else None
        sign = sign_correctness(snr, size)
        yield GroupSignal(task, size, float(np.var(rewards)), noise, bool(known), snr, sign, variants)


def _shown_score(unit: SeedUnit) -> float:
    """Return the score of the response as it is, or of its first variant where only variants were scored."""
    originals = [row.score for row in unit.rows if not row.is_variant]
    return originals[0] if originals else unit.rows[0].score


def _terms_by_size(units: Sequence[SeedUnit]) -> Iterator[Figures]:
    """Yield the means over units of Theorem 1's terms, and of Proposition 1's Term II, by number of stakeholders."""
    for size in sorted({unit.stakeholders for unit in units} - {0, 1}):
        found = [own[2] for unit in units if unit.stakeholders == size and (own := unit.weight_arrays()) is not None]
        if not found:
            continue
        terms = [estimate_terms(*arrays) for arrays in found]
        exchangeable = [
            exchangeable_aggregation(utilities.mean(axis=0), float(np.mean(np.var(weights, axis=0, ddof=1))))
            for weights, utilities, _ in found
        ]
        means = VarianceTerms(*(fmean(one) for one in zip(*terms, strict=True)))
        figures: Figures = {"stakeholders": size, "units": len(found), **means._asdict(), "sum": means.total}
        total = fmean(float(np.var(scores, ddof=1)) for _, _, scores in found)
        yield {**figures, "variance": total, "exchangeable": fmean(exchangeable)}


def _terms_table(terms: Sequence[Figures]) -> ReportTable:
    columns = {"Theorem 1: n": "size", "I estimation": "estimation", "II weights": "aggregation"}
    columns |= {"III shared": "shared", "cross": "cross", "sum": "sum", "Var[score]": "variance"}
    rows = [{**one, "size": str(one["stakeholders"])} for one in terms]
    digits = variance_digits((one["variance"] for one in terms), 4)
    return ReportTable.of({**columns, "II by Prop. 1": "exchangeable"}, rows, digits=digits)


def _flips(unit: SeedUnit, cut: float) -> Iterator[Figures]:
    """Yield the share of a response's variants on the other side of the cut than their mean, and what makes it stable.

    With normal noise, the mean of K variants is on one side with probability Φ(√K |mean - cut| / σ).
    """
    scores = np.array([row.score for row in unit.variants])
    if len(scores) < 2:
        return
    mean = float(scores.mean())
    share = float(np.mean((scores >= cut) != (mean >= cut)))
    gap = abs(mean - cut)
    variants = max(1, math.ceil(needed_snr(_STABLE) * float(np.var(scores)) / gap**2)) if gap else None
    yield {"seed": unit.rows[0].seed, "mean": mean, "flips": share, "variants": variants}


def _notes(presentations: Presentations, groups: Sequence[GroupSignal]) -> Iterator[str]:
    yield from omission_notes(presentations.left_out)
    pooled = sum(not group.has_own_noise for group in groups)
    if pooled:
        yield f"groups without variants, which take the mean noise of the others: {pooled}"
    if any(group.snr == 0.0 for group in groups):
        yield "SNR 0: the rewards differ by no more than wording explains; no number of variants is known to mend it"
    yield "averaging repeats of one wording does not reduce σ²_ξ; noise that all wordings share is not seen here"
