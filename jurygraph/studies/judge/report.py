"""The figures of judges and of people, of a constant and of length next to them, and what they make of the mean label.

All intervals are over tasks, whose responses resemble each other.
"""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from jurygraph.aggregation.agreement import Weights, kappa_interval
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.inference.clusters import Estimate, jackknife_interval, ratio_interval
from jurygraph.inference.corrected import LabelledSample, labels_needed, ppi_mean, ppi_weight, rogan_gladen
from jurygraph.inference.shares import Share, share_interval
from jurygraph.inference.sign_flips import holm, sign_flip_p
from jurygraph.studies.judge.study import JudgedRow, JudgeStudy, responses_of
from jurygraph.studies.report import Report, ReportTable, omission_notes

COUNTS = ("n", "missing", "failed", "abstained")
RATES = ("accuracy", "tpr", "tnr", "kappa", "rank_correlation", "pairwise", "bias")
_PAIRED = ("flips",)
GATE_NAMES = (
    *COUNTS,
    *("brier", "ece"),
    *(f"{name}{end}" for name in (*RATES, *_PAIRED) for end in ("", "_low", "_high")),
)
"""Statistics that a CI threshold can name."""
_BINS = 10
_MAX_LEVELS = 101
"""Most different values of a scale for which kappa is computed."""
_MAX_PARTS = 100
_FEW_TASKS = 20
_MAX_PAIRS = 30
_MAX_DISAGREEMENTS = 20

Figures = dict[str, Any]


def report(studies: Sequence[JudgeStudy], need: float | None = None) -> Report:
    """Measure judges against people.

    The figures are those of the `judges`, with the `constant` that always gives the commonest label, and `length` as a
    judge, for each; the `ceiling`, how often two people agree where several labelled a response, or how often one is
    right by their consensus; the paired `differences` of judges, and the `disagreements`, worst first.

    Args:
        studies: as `join_labels` returns them.
        need: half-width of an interval of the mean label, to say how many labels would give it.
    """
    judges = [_measure(study, need) for study in studies]
    labels = [(study.is_binary, [(row.response, row.task, row.target) for row in study.rows]) for study in studies]
    first = [labels.index(own) for own in labels]  # judges of the same labels share what stands beside them
    constant = {place: _constant(studies[place]) for place in set(first)}
    length = {place: _length(studies[place]) for place in set(first)}
    questions = [{"question": study.judge.question} for study in studies]
    figures = {
        "judges": judges,
        "constant": [constant[place] | question for place, question in zip(first, questions, strict=True)],
        "length": [length[place] | question for place, question in zip(first, questions, strict=True)],
        "ceiling": [_ceiling(study) for study in studies],
        "differences": _differences(studies),
        "disagreements": _disagreements(studies),
    }
    return Report(figures, list(_sections(figures, need)), list(_notes(judges)))


def gate_values(judge: Figures) -> dict[str, float | None]:
    """Return the statistics of one of the `judges` by the names of `GATE_NAMES`."""
    values = {name: judge[name] for name in (*COUNTS, "brier", "ece")}
    for name in (*RATES, *_PAIRED):
        cell = judge[name] or {"value": None, "low": None, "high": None}
        values |= {name: cell["value"], f"{name}_low": cell["low"], f"{name}_high": cell["high"]}
    return values


def _measure(study: JudgeStudy, need: float | None) -> Figures:
    left_out = study.left_out
    judge = study.judge
    identity = {"judge": judge.name, "run": judge.run, "question": judge.question, "evaluator": judge.evaluator}
    counts = {"n": len(study.rows)} | {name: left_out.get(name, 0) for name in COUNTS[1:]}
    figures: Figures = identity | {"model": judge.model, "reviewer": judge.reviewer} | counts
    figures["left_out"] = {name: count for name, count in left_out.items() if name not in counts}
    figures["scale"] = "binary" if study.is_binary else "ordered"
    figures["tasks"] = len({row.task for row in study.rows})
    figures["flips"] = _flips(study)
    return figures | _agreement(study.rows, study.is_binary) | _calibration(study) | _mean_label(study, need)


def _flips(study: JudgeStudy) -> Figures | None:
    """Return the share of pairs whose two orders prefer different responses, over tasks; None without such pairs."""
    tasks = np.unique([task for task, _ in study.flips], return_inverse=True)[1]
    return _share(np.array([is_flipped for _, is_flipped in study.flips]), tasks)


def _agreement(rows: Sequence[JudgedRow], is_binary: bool) -> Figures:
    """Return how far predictions agree with targets, each with its interval over tasks; None where undefined."""
    if not rows:
        return dict.fromkeys((*RATES, "base_rates"))
    targets = np.array([row.target for row in rows])
    predictions = np.array([row.prediction for row in rows])
    ranks = np.array([row.score for row in rows]) if is_binary else predictions
    tasks = np.unique([row.task for row in rows], return_inverse=True)[1]
    hits = predictions == targets
    positive = targets == 1.0
    levels = len(np.unique(np.concatenate([targets, predictions])))
    weights: Weights = "equal" if is_binary else "quadratic"
    errors = np.bincount(tasks, predictions - targets)
    return {
        "base_rates": {"people": float(targets.mean()), "judge": float(predictions.mean())},
        "accuracy": _share(hits, tasks),
        "tpr": _share(hits[positive], tasks[positive]) if is_binary else None,
        "tnr": _share(hits[~positive], tasks[~positive]) if is_binary else None,
        "kappa": _cell(kappa_interval(targets, predictions, weights, tasks=tasks)) if levels <= _MAX_LEVELS else None,
        "rank_correlation": _rank_correlation(targets, ranks, tasks),
        "pairwise": _pairwise(rows, ranks),
        "bias": _cell(ratio_interval(errors, np.bincount(tasks))),
    }


def _share(hits: Bools, tasks: Ints) -> Figures | None:
    if not len(hits):
        return None
    return _cell(share_interval(np.bincount(tasks, hits), np.bincount(tasks)))


def _cell(found: Estimate | Share | None) -> Figures | None:
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}


def _rank_correlation(targets: Floats, ranks: Floats, tasks: Ints) -> Figures | None:
    """Return Spearman's coefficient with the jackknife interval over tasks, or over a hundred groups of them."""

    levels = [np.unique(values, return_inverse=True)[1] for values in (targets, ranks)]

    def correlate(kept: Bools) -> float:
        middles = []
        for level in levels:
            counts = np.bincount(level[kept])
            middles.append((np.cumsum(counts) - (counts - 1) / 2.0)[level[kept]])  # of equal ones the middle rank
        first, second = (one - one.mean() for one in middles)
        size = math.sqrt(float((first * first).sum()) * float((second * second).sum()))
        return float((first * second).sum()) / size if size > 0.0 else float("nan")

    value = correlate(np.ones(len(tasks), dtype=bool))
    if np.isnan(value):
        return None
    parts = tasks % _MAX_PARTS
    without = np.array([correlate(parts != part) for part in np.unique(parts)])
    if len(without) < 2 or np.isnan(without).any():
        return {"value": value, "low": None, "high": None}
    return _cell(jackknife_interval(value, without).within(-1.0, 1.0))


def _pairwise(rows: Sequence[JudgedRow], ranks: Floats) -> Figures | None:
    """Return the share of pairs of a task, with different labels, that the judge orders alike; a tie is half."""
    targets = np.array([row.target for row in rows])
    tasks = np.unique([row.task for row in rows], return_inverse=True)[1]
    counts = np.bincount(tasks)
    order = np.argsort(tasks, kind="stable")
    hits = []
    sizes = []
    for size in np.unique(counts).tolist():
        own = order[counts[tasks[order]] == size].reshape(-1, size)  # the responses of each task of this size
        better = np.sign(targets[own][:, :, None] - targets[own][:, None, :])
        alike = better * np.sign(ranks[own][:, :, None] - ranks[own][:, None, :])
        differ = better > 0.0  # each pair once, from the side of the better one
        hits += (((alike + 1.0) / 2.0) * differ).sum(axis=(1, 2)).tolist()
        sizes += differ.sum(axis=(1, 2)).tolist()
    return _cell(share_interval(hits, sizes))


def _calibration(study: JudgeStudy) -> Figures:
    """Return the Brier score, the expected calibration error in ten bins of equal width, and the bins."""
    if not study.is_binary or not study.rows:
        return {"brier": None, "ece": None, "reliability": []}
    scores = np.array([row.score for row in study.rows])
    targets = np.array([row.target for row in study.rows])
    error, table = reliability(scores, targets)
    return {"brier": float(((scores - targets) ** 2).mean()), "ece": error, "reliability": table}


def reliability(scores: Floats, targets: Floats) -> tuple[float, list[Figures]]:
    """Return the expected calibration error of scores in [0, 1], and the bins that it is of, which are not empty."""
    bins = np.minimum((scores * _BINS).astype(int), _BINS - 1)
    table = []
    for place in np.unique(bins):
        inside = bins == place
        expected = float(scores[inside].mean())
        seen = float(targets[inside].mean())
        table.append({"from": place / _BINS, "n": int(inside.sum()), "expected": expected, "met": seen})
    return sum(one["n"] * abs(one["expected"] - one["met"]) for one in table) / len(scores), table


def _mean_label(study: JudgeStudy, need: float | None) -> Figures:
    """Return the mean that the judge gives all responses, and what the labels make of it."""
    if not study.rows:
        return dict.fromkeys(("uncorrected", "corrected", "weight", "rogan_gladen", "labels_needed"))
    names = [row.task for row in study.rows] + [task for task, _ in study.others]
    tasks = np.unique(names, return_inverse=True)[1]
    n = len(study.rows)
    labels = np.array([row.target for row in study.rows])
    predictions = np.array([row.prediction for row in study.rows])
    others = np.array([prediction for _, prediction in study.others], dtype=np.float64)
    sample = LabelledSample(labels, predictions, tasks[:n], others, tasks[n:])
    return {
        "uncorrected": float(np.concatenate([predictions, others]).mean()),
        "corrected": _cell(ppi_mean(sample)),
        "weight": ppi_weight(sample),
        "rogan_gladen": _cell(rogan_gladen(sample)) if study.is_binary else None,
        "labels_needed": None if need is None else labels_needed(sample, need),
    }


def _constant(study: JudgeStudy) -> Figures:
    """Return the agreement of a judge that always gives the commonest label; of equally common ones the lower."""
    counts = Counter(row.target for row in study.rows)
    common = min(counts, key=lambda target: (-counts[target], target), default=0.0)
    rows = [row._replace(prediction=common, score=common) for row in study.rows]
    return {"question": study.judge.question, "value": common} | _agreement(rows, study.is_binary)


def _length(study: JudgeStudy) -> Figures:
    """Return the agreement of length as a judge: longer is better, and longer than the median is met."""
    lengths = study.lengths
    rows = [row for row in study.rows if row.response in lengths]
    median = float(np.median([lengths[row.response] for row in rows])) if rows else 0.0
    judged = []
    for row in rows:
        length = float(lengths[row.response])
        prediction = length
        if study.is_binary:
            prediction = float(length > median)
        elif study.has_pairs:  # the longer one is better
            prediction = ((length > 0.0) - (length < 0.0) + 1.0) / 2.0
        judged.append(row._replace(prediction=prediction, score=length))
    found = _agreement(judged, study.is_binary)
    if (
        not study.is_binary and not study.has_pairs
    ):  # characters are no points of a scale: only their order says something
        found |= dict.fromkeys(("accuracy", "kappa", "bias", "base_rates"))
    return {"question": study.judge.question, "n": len(rows)} | found


def _ceiling(study: JudgeStudy) -> Figures | None:
    """Return how often a person is right by the consensus, or the share of pairs of people with the same label."""
    if study.ceiling is not None:
        return {"question": study.judge.question, "value": study.ceiling, "low": None, "high": None}
    hits: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for task, given in study.votes:
        hits[task] += sum(first == second for first, second in combinations(given, 2))
        pairs[task] += len(given) * (len(given) - 1) // 2
    found = _cell(share_interval([hits[task] for task in pairs], list(pairs.values())))
    return None if found is None else {"question": study.judge.question} | found


def _differences(studies: Sequence[JudgeStudy]) -> list[Figures]:
    """Return the mean distances from people of any two judges, on the responses that both judged, and their test.

    Judges with other labels for one of these answer another question, and are not compared. The p-value is of flips of
    tasks, adjusted for the number of pairs (Holm).
    """
    found: list[Figures] = []
    names: dict[str, int] = {}
    tasks: dict[str, int] = {}
    sides = [_distances(study, names, tasks) for study in studies]
    has_runs = len({study.judge.run for study in studies}) > 1
    shown = [f"{study.judge.run}: {study.judge.name}" if has_runs else study.judge.name for study in studies]
    for first, second in combinations(range(len(studies)), 2):
        one, other = sides[first], sides[second]
        common, left, right = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
        if not len(common) or (one[2][left] != other[2][right]).any():
            continue
        own_tasks = np.unique(one[1][left], return_inverse=True)[1]
        sums = np.bincount(own_tasks, one[3][left] - other[3][right])
        pair = {"first": shown[first], "second": shown[second]}
        estimate = ratio_interval(sums, np.bincount(own_tasks))
        found.append(pair | {"n": len(common), "difference": _cell(estimate), "p": sign_flip_p(sums)})
    for row, adjusted in zip(found, holm([row["p"] for row in found]), strict=True):
        row["p"] = adjusted
    return found


def _distances(study: JudgeStudy, names: dict[str, int], tasks: dict[str, int]) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the numbers of responses and tasks, the targets, and their distances to predictions, [n] each."""
    places = np.array([names.setdefault(row.response, len(names)) for row in study.rows], dtype=np.int64)
    of_tasks = np.array([tasks.setdefault(row.task, len(tasks)) for row in study.rows], dtype=np.int64)
    targets = np.array([row.target for row in study.rows])
    return places, of_tasks, targets, np.abs(np.array([row.prediction for row in study.rows]) - targets)


def _distance(row: JudgedRow) -> float:
    return abs(row.prediction - row.target)


def _disagreements(studies: Sequence[JudgeStudy]) -> list[Figures]:
    found = []
    for study in studies:
        for row in study.rows:
            if row.prediction != row.target:
                responses = responses_of(row.response)
                command = ["jurygraph", "show", study.judge.run, "--response", responses[0]]
                command += ["--verdict", study.judge.question]
                # Of wrong decisions the most confident ones come first.
                distance = abs(row.score - row.target) if study.is_binary else _distance(row)
                sides = {"judge": row.prediction, "people": row.target, "score": row.score, "distance": distance}
                identity = {"response": responses[0], "question": study.judge.question}
                identity |= {"other": responses[1]} if len(responses) > 1 else {}
                found.append(identity | sides | {"show": shlex.join(command)})
    return sorted(found, key=lambda one: (-one["distance"], one["response"], one["question"]))


def _sections(figures: Figures, need: float | None) -> Iterator[str | ReportTable]:
    judges = figures["judges"]
    has_runs = len({one["run"] for one in judges}) > 1
    rows: list[list[object]] = []
    ranks: list[list[object]] = []
    shown: list[Figures] = []
    for judge, constant, length in zip(judges, figures["constant"], figures["length"], strict=True):
        names = [f"{judge['run']}: {judge['judge']}" if has_runs else judge["judge"]]
        lines = [judge]
        others = [one | {"question": None} for one in (constant, length)]
        if others != shown:  # judges of the same responses share these lines
            names += [f"  always {constant['value']:g}", "  length"]
            lines += others
            shown = others
        for name, one in zip(names, lines, strict=True):
            counts = [judge[count] if one is judge else None for count in COUNTS]
            rows.append([name, *counts, *(one[rate] for rate in RATES[:4])])
            ranks.append([name, *(one[rate] for rate in RATES[4:])])
    yield ReportTable(("judge", *COUNTS, "accuracy", "TPR", "TNR", "κ"), rows, digits=3)
    yield ReportTable(("judge", "rank correlation", "pairwise accuracy", "bias"), ranks, digits=3)
    rows = []
    for judge in judges:
        if judge["brier"] is not None:
            rows.append([judge["judge"], judge["brier"], judge["ece"]])
    yield ReportTable(("calibration of P(met)", "Brier", "ECE"), rows)
    rows = []
    for judge in judges:
        means = [judge["uncorrected"], judge["corrected"], judge["weight"], judge["rogan_gladen"]]
        rows.append([judge["judge"], *means, *([judge["labels_needed"]] if need is not None else [])])
    header = ("mean of all responses", "by the judge", "PPI++ (95 %)", "λ", "Rogan-Gladen (95 %)")
    yield ReportTable((*header, f"labels for ±{need:g}") if need is not None else header, rows)
    rows = [[one["question"], one] for one in figures["ceiling"] if one is not None]
    yield ReportTable(("people agree on", "share (95 %)"), rows)
    rows = [[judge["judge"], judge["flips"]] for judge in judges if judge["flips"] is not None]
    yield ReportTable(("pairs that flip with the order", "share (95 %)"), rows)
    rows = [[one["first"], one["second"], one["n"], one["difference"], one["p"]] for one in figures["differences"]]
    header = ("farther from people", "than", "n", "difference (95 %)", "p (Holm)")
    yield ReportTable(header, rows, left=2, most=_MAX_PAIRS)
    rows = [[one["show"], one["judge"], one["people"]] for one in figures["disagreements"]]
    yield ReportTable(("disagreement", "judge", "people"), rows, digits=2, most=_MAX_DISAGREEMENTS)


def _notes(judges: Sequence[Figures]) -> Iterator[str]:
    for judge in judges:
        yield from omission_notes(judge["left_out"], f"{judge['judge']}: ")
    fewest = min((judge["tasks"] for judge in judges), default=_FEW_TASKS)
    if fewest < _FEW_TASKS:
        yield f"labels of {fewest} tasks: with fewer than {_FEW_TASKS}, intervals are rough"
