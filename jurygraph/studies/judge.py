"""Judges compared with people: judgements of runs and labels, joined by response and question, and their figures.

A constant and the length of a response are compared as judges, too, and labels and verdicts together estimate the mean
label. Intervals are over tasks, whose responses resemble each other.
"""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.agreement import Weights, kappa_interval
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.errors import InputError
from jurygraph.inference.clusters import (
    jackknife_interval,
    jackknife_parts,
    ratio_interval,
    share_interval,
)
from jurygraph.inference.corrected import (
    LabelledSample,
    labels_needed,
    ppi_mean,
    ppi_weight,
    rogan_gladen,
)
from jurygraph.inference.sign_flips import holm, sign_flip_p
from jurygraph.messages import did_you_mean, quote
from jurygraph.schema.rating import JudgedLabel
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.sources.ratings import FileRows, read_judged_labels
from jurygraph.studies.judgements import (
    UNIT,
    Judge,
    Judgement,
    PlacedLabels,
    RunJudgements,
    pair_name,
    refuse_unknown_responses,
    resolve_questions,
    responses_of,
)
from jurygraph.studies.pairs import is_flip
from jurygraph.studies.report import (
    Figures,
    IntervalCell,
    Report,
    ReportTable,
    as_interval,
    omission_notes,
)

_LABEL_COLUMN = "label."


class JudgedRow(NamedTuple):
    """A labelled response, or pair of them (`pair_name`), with what the judge said of it.

    `prediction` is in the units of the target: the decision, 0 or 1, or a number on the scale. `score` is in [0, 1].
    `choices` has the prediction of each order of a pair that was judged in both.
    """

    response: str
    task: str
    target: float
    prediction: float
    score: float
    choices: tuple[float, ...] = ()


@dataclass(frozen=True)
class JudgeStudy:
    """A judge compared with people.

    Attributes:
        is_binary: whether targets are 0 or 1 and predictions the judge's decisions; else both are on a scale.
        is_ranked: whether targets and predictions are on different scales, so that only their order can be compared.
        rows: labelled and judged responses.
        others: task, and prediction, of judged responses without a label.
        left_out: number of labelled responses that are not rows, by reason.
        lengths: characters of the labelled responses, where their text is stored.
        votes: for each response that several people labelled, its task and their labels.
        scale: the lowest and the highest target.
        flips: task, and whether the orders differ, of each pair that was judged in both.
        shares: number of labels between 0 and 1, which are shares of people if the judge decides.
        ceiling: how often a person is expected to give the true label, by the consensus of all; None without one.
    """

    judge: Judge
    is_binary: bool
    rows: Sequence[JudgedRow]
    others: Sequence[tuple[str, float]] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    votes: Sequence[tuple[str, Sequence[float]]] = ()
    scale: tuple[float, float] = UNIT
    flips: Sequence[tuple[str, bool]] = ()
    ceiling: float | None = None
    shares: int = 0
    is_ranked: bool = False

    @property
    def has_pairs(self) -> bool:
        return any(len(responses_of(row.response)) > 1 for row in self.rows[:1])

    def to_unit(self, target: float) -> float:
        """Return the place of a target between both ends of the scale, in [0, 1]."""
        low, high = self.scale
        return (target - low) / (high - low)


def read_labels(
    source: str,
    runs: Sequence[RunJudgements],
    columns: Mapping[str, str] = {},
    options: Mapping[str, str] = {},
) -> FileRows[JudgedLabel]:
    """Return the labels in a file, or those that `label.NAME` names of the runs' responses, as if a file had them.

    `columns` and `options` are those of `read_judged_labels`.

    Raises `InputError` for a file that cannot be read, if no response has such a label, if runs have different ones for
    a response, or if one is neither a number nor true or false.
    """
    if not source.startswith(_LABEL_COLUMN):
        return read_judged_labels(source, columns, options)
    for field_name in columns:
        option = options.get(field_name, "columns")
        raise InputError(f"{option}: is for a file of labels, and {source} is a label of the runs")
    name = source.removeprefix(_LABEL_COLUMN)
    by_response: dict[str, tuple[str, JudgedLabel]] = {}
    for run in runs:
        for response, labels in run.labels.items():
            target = labels.get(name)
            where = f"{run.run}: label {quote(name)} of response {quote(response)} is {quote(str(target))}"
            if target is None:
                continue
            if not isinstance(target, bool | int | float):
                raise InputError(f"{where}; a target is a number, true or false")
            label = JudgedLabel(
                id=response, target=target if isinstance(target, bool) else float(target)
            )
            if by_response.setdefault(response, (f"response {response}", label))[1] != label:
                raise InputError(
                    f"{where}, and another run has {by_response[response][1].target}; give one as a file"
                )
    if not by_response:
        known = dict.fromkeys(
            label for run in runs for labels in run.labels.values() for label in labels
        )
        hint = did_you_mean(name, known) or f"there are {', '.join(known) or 'none'}"
        raise InputError(
            f"{', '.join(run.run for run in runs)}: no response has the label {quote(name)}; {hint}"
        )
    return FileRows(runs[0].run, tuple(by_response.values()), {"id": "id", "target": source})


def join_labels(
    runs: Sequence[RunJudgements],
    labels: FileRows[JudgedLabel],
    split: str | None = None,
    has_consensus: bool = False,
    question: str | None = None,
) -> list[JudgeStudy]:
    """Return each judge of the runs with the labels, in the order of the runs and their questions.

    A label without `question` is of the argument `question`; without that, it is of the response as a whole, and every
    question is compared with it. The last part of a question's id is enough where one question about the response has
    it; `reward` is the reward of a run. Labels on another scale than the judge's are compared by their order.

    A judge for a reviewer is compared with the labels of that reviewer, if labels have reviewers. Several labels of a
    response become their mean, or, for true and false, the majority's; where those tie, the response is left out and
    counted. Those of a pair become what most say, else a tie. With `has_consensus` they become the likeliest class
    under their consensus (STABLEVAL, Algorithm 1).

    Raises `InputError` for an unknown response, an unknown or ambiguous question, no label of `split`, no judge with a
    label, a target off the judge's scale, or too few labels for a consensus.
    """
    chosen: PlacedLabels = [
        (place, label) for place, label in labels.rows if split is None or label.split == split
    ]
    if not chosen:
        raise InputError(
            f"{labels.path}: has no label with split {quote(split or '')}; name one that is there"
        )
    refuse_unknown_responses(runs, labels, chosen)
    chosen = resolve_questions(runs, labels, chosen, question)
    studies = []
    for run in runs:
        for judge, judgements in run.by_judge.items():
            is_of_pairs = len(responses_of(next(iter(judgements)))) == 2
            own = [
                (place, label)
                for place, label in chosen
                if (label.question or judge.question) == judge.question
                and not (judge.is_reward and label.question is None)
                and (label.other is not None) == is_of_pairs
                and (judge.reviewer is None or label.reviewer in (None, judge.reviewer))
            ]
            if own:
                studies.append(_join(run, judge, judgements, labels, own, has_consensus))
    if not studies:
        hint = "name the reviewers as the runs do, and pairs by `id` and `other`"
        raise InputError(f"{labels.path}: no judge is of a reviewer who gave a label; {hint}")
    return studies


def _has_other_scale(
    judgements: Mapping[str, Judgement], own: PlacedLabels, scale: tuple[float, float]
) -> bool:
    """Return whether labels and judge are on different scales, so that only their order can be compared.

    Several values off the judge's scale make a scale of their own; a single one may be a slip. Rewards may be off the
    unit interval, on which decisions are.
    """
    low, high = scale
    if len({label.target for _, label in own if not low <= label.target <= high}) > 1:
        return True
    return scale == UNIT and any(
        not 0.0 <= judged.score <= 1.0 for judged in judgements.values() if judged.score is not None
    )


def _is_of_two_values(
    judgements: Mapping[str, Judgement],
    own: Sequence[tuple[str, JudgedLabel]],
    scale: tuple[float, float],
    has_shares: bool,
) -> bool:
    """Return whether labels and judge decide between two values.

    A label between 0 and 1 is, for a judge that gives nothing else than 0 and 1, a share of people, or a tie.
    """
    if all(isinstance(label.target, bool) for _, label in own):
        return True
    if scale != UNIT or not all(0.0 <= label.target <= 1.0 for _, label in own):
        return False
    decides = all(
        judged.score in UNIT for judged in judgements.values() if judged.score is not None
    )
    return decides or not has_shares


def _join(
    run: RunJudgements,
    judge: Judge,
    judgements: Mapping[str, Judgement],
    labels: FileRows[JudgedLabel],
    own: Sequence[tuple[str, JudgedLabel]],
    has_consensus: bool,
) -> JudgeStudy:
    scale = (
        next((judged.scale for judged in judgements.values() if judged.native is not None), None)
        or UNIT
    )
    is_of_pairs = own[0][1].other is not None
    shares = [label.target for _, label in own if 0.0 < label.target < 1.0]
    is_binary = not is_of_pairs and _is_of_two_values(judgements, own, scale, bool(shares))
    low, high = UNIT if is_binary else scale
    is_ranked = not is_of_pairs and _has_other_scale(judgements, own, (low, high))
    if is_ranked:
        is_binary = False
        values = [float(label.target) for _, label in own]
        low, high = min(values), max(values)
    targets: dict[str, list[float]] = {}
    votes_cast = []
    for place, label in own:
        if not low <= label.target <= high:
            location = f"{labels.path}, {place}, field {labels.columns['target']}"
            raise InputError(
                f"{location}: is {label.target:g}; {quote(judge.question)} goes from {low:g} to {high:g}"
            )
        name, target = _place_label(label, judgements)
        targets.setdefault(name, []).append(target)
        votes_cast.append((name, label.reviewer or "unnamed", target))
    likeliest, ceiling = _fit_consensus(votes_cast) if has_consensus else ({}, None)
    left_out: Counter[str] = Counter()
    rows = []
    for response, given in targets.items():
        target = likeliest.get(response, _majority(given) if is_of_pairs else fmean(given))
        judgement = judgements.get(response)
        if is_binary and target == MET_THRESHOLD:
            left_out["tied"] += 1
        elif judgement is None or judgement.score is None:
            left_out["missing" if judgement is None else judgement.status] += 1
        else:
            target = float(target > MET_THRESHOLD) if is_binary else target
            prediction = _prediction(judgement, is_binary)
            rows.append(
                JudgedRow(
                    response, judgement.task, target, prediction, judgement.score, judgement.choices
                )
            )
    unlabelled = [
        (judged.task, _prediction(judged, is_binary))
        for response, judged in judgements.items()
        if response not in targets and judged.score is not None
    ]
    votes = [
        (judgements[name].task, given)
        for name, given in targets.items()
        if len(given) > 1 and name in judgements
    ]
    lengths = {name: _length_of(name, run.lengths) for name in targets}
    return JudgeStudy(
        judge,
        is_binary,
        rows,
        others=unlabelled,
        left_out=dict(left_out),
        lengths={name: length for name, length in lengths.items() if length is not None},
        votes=votes,
        scale=(low, high),
        flips=[
            (judged.task, is_flip(judged.choices))
            for judged in judgements.values()
            if judged.choices
        ],
        ceiling=ceiling,
        shares=len(shares) if is_binary else 0,
        is_ranked=is_ranked,
    )


def _place_label(label: JudgedLabel, judgements: Mapping[str, Judgement]) -> tuple[str, float]:
    """Return the name of what a label is of, as the judge has it, and its target from that side."""
    target = float(label.target)
    if label.other is None:
        return label.id, target
    swapped = pair_name(label.other, label.id)
    return (
        (swapped, 1.0 - target)
        if swapped in judgements
        else (pair_name(label.id, label.other), target)
    )


def _majority(given: Sequence[float]) -> float:
    """Return what most people say of a pair, else a tie."""
    ((value, votes),) = Counter(given).most_common(1)
    return value if 2 * votes > len(given) else 0.5


def _length_of(name: str, lengths: Mapping[str, int | None]) -> int | None:
    """Return the characters of a response; of a pair, how many more the first has."""
    own = [lengths.get(response) for response in responses_of(name)]
    known = [length for length in own if length is not None]
    return None if len(known) < len(own) else known[0] - sum(known[1:])


def _fit_consensus(votes: Sequence[tuple[str, str, float]]) -> tuple[dict[str, float], float]:
    """Return the likeliest class of each item, and how often a person is expected to give the true one.

    `votes` have an item, a reviewer and a label. Raises InputError where there are too few of them.
    """
    items, reviewers, given = zip(*votes, strict=True)
    fitted = consensus.fit(items, reviewers, given)
    reason = consensus.too_small(fitted.votes)
    if reason is not None:
        raise InputError(
            f"--consensus: {reason}; name who gave each label in `reviewer`, or leave --consensus out"
        )
    classes = fitted.votes.classes
    likeliest = {
        str(item): float(classes[row.argmax()])
        for item, row in zip(fitted.items, fitted.posterior, strict=True)
    }
    right = fitted.confusion.diagonal(axis1=1, axis2=2) @ fitted.prior
    return likeliest, float(right.mean())


def _prediction(judgement: Judgement, is_binary: bool) -> float:
    chosen = judgement.decision if is_binary else judgement.native
    value = judgement.score if chosen is None else chosen
    assert value is not None, "only judged responses have a prediction"
    return value


COUNTS = ("n", "missing", "failed", "abstained")
RATES = ("accuracy", "tpr", "tnr", "kappa", "rank_correlation", "pairwise", "bias")
_OF_ORDERS = ("flips", "strict")
_OF_VALUES = ("accuracy", "kappa", "bias", "base_rates")
"""What needs labels and predictions in the same units; the rest needs only their order."""
GATE_NAMES = (
    *COUNTS,
    *("brier", "ece"),
    *(f"{name}{end}" for name in (*RATES, *_OF_ORDERS) for end in ("", "_low", "_high")),
)
"""Statistics that a CI threshold can name."""
_BINS = 10
_MAX_LEVELS = 101
"""Most different values of a scale for which kappa is computed."""
_FEW_TASKS = 20
_MAX_PAIRS = 30
_MAX_DISAGREEMENTS = 20


def report(studies: Sequence[JudgeStudy], need: float | None = None) -> Report:
    """Measure judges against people.

    The figures are those of the `judges`, with the `constant` that always gives the commonest label, and `length` as a
    judge, for each; the `ceiling`, how often two people agree where several labelled a response, or how often one is
    right by their consensus; the paired `differences` of judges, and the `disagreements`, worst first.

    `need` is the half-width of an interval of the mean label, to say how many labels would give it.
    """
    judges = [_measure(study, need) for study in studies]
    figures = {
        "judges": judges,
        "constant": [_constant(study) for study in studies],
        "length": [_length(study) for study in studies],
        "ceiling": [_ceiling(study) for study in studies],
        "differences": _differences(studies),
        "disagreements": _disagreements(studies),
    }
    return Report(figures, list(_sections(figures, need)), list(_notes(judges)))


def gate_values(judge: Figures) -> dict[str, float | None]:
    """Return the statistics of one of the `judges` by the names of `GATE_NAMES`; None but for `n` if nothing counts."""
    values = {
        name: judge[name] if judge["n"] or name == "n" else None
        for name in (*COUNTS, "brier", "ece")
    }
    for name in (*RATES, *_OF_ORDERS):
        value, low, high = judge[name] or (None, None, None)
        values |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return values


def _measure(study: JudgeStudy, need: float | None) -> Figures:
    left_out = study.left_out
    judge = study.judge
    identity = {
        "judge": judge.name,
        "run": judge.run,
        "question": judge.question,
        "evaluator": judge.evaluator,
    }
    counts = {"n": len(study.rows)} | {name: left_out.get(name, 0) for name in COUNTS[1:]}
    figures: Figures = identity | {"model": judge.model, "reviewer": judge.reviewer} | counts
    figures["shares"] = study.shares
    figures["left_out"] = {name: count for name, count in left_out.items() if name not in counts}
    figures["scale"] = "binary" if study.is_binary else "ordered"
    if study.is_ranked:
        figures["scale"] = "ranks"
        figures["label_range"] = list(study.scale)
    figures["tasks"] = len({row.task for row in study.rows})
    flips = np.array([is_flipped for _, is_flipped in study.flips])
    figures["flips"] = _share(
        flips, np.unique([task for task, _ in study.flips], return_inverse=True)[1]
    )
    in_both = [row for row in study.rows if row.choices]
    hits = np.array([set(row.choices) == {row.target} for row in in_both])
    figures["strict"] = _share(
        hits, np.unique([row.task for row in in_both], return_inverse=True)[1]
    )
    return figures | _agreement_of(study) | _calibration(study) | _mean_label(study, need)


def _agreement_of(study: JudgeStudy) -> Figures:
    """Return the agreement of a study's rows; of those on different scales only that of their order."""
    figures = _agreement(study.rows, study.is_binary)
    return figures | dict.fromkeys(_OF_VALUES) if study.is_ranked else figures


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
    kappa = (
        kappa_interval(targets, predictions, weights, tasks=tasks)
        if levels <= _MAX_LEVELS
        else None
    )
    bias = ratio_interval(np.bincount(tasks, predictions - targets), np.bincount(tasks))
    if bias is not None and is_binary:
        bias = bias.within(-1.0, 1.0)
    return {
        "base_rates": {"people": float(targets.mean()), "judge": float(predictions.mean())},
        "accuracy": _share(hits, tasks),
        "tpr": _share(hits[positive], tasks[positive]) if is_binary else None,
        "tnr": _share(hits[~positive], tasks[~positive]) if is_binary else None,
        "kappa": as_interval(kappa),
        "rank_correlation": _rank_correlation(targets, ranks, tasks),
        "pairwise": _pairwise(targets, ranks, tasks),
        "bias": as_interval(bias),
    }


def _share(hits: Bools, tasks: Ints) -> IntervalCell | None:
    return (
        as_interval(share_interval(np.bincount(tasks, hits), np.bincount(tasks)))
        if len(hits)
        else None
    )


def _rank_correlation(targets: Floats, ranks: Floats, tasks: Ints) -> IntervalCell | None:
    """Return Spearman's coefficient with the jackknife interval over tasks, or over a hundred groups of them."""
    levels = [np.unique(values, return_inverse=True)[1] for values in (targets, ranks)]

    def correlate(kept: Bools) -> float:
        middles = []
        for level in levels:
            counts = np.bincount(level[kept])
            middles.append(
                (np.cumsum(counts) - (counts - 1) / 2.0)[level[kept]]
            )  # of equal ones the middle rank
        first, second = (middle - middle.mean() for middle in middles)
        size = math.sqrt(float((first * first).sum()) * float((second * second).sum()))
        return float((first * second).sum()) / size if size > 0.0 else float("nan")

    value = correlate(np.ones(len(tasks), dtype=bool))
    if np.isnan(value):
        return None
    parts = list(jackknife_parts(tasks))
    without = np.array([correlate(kept) for kept in parts if kept.any()])
    if (
        len(without) < len(parts) or np.isnan(without).any()
    ):  # without the only task nothing is left
        return IntervalCell(value, None, None)
    return as_interval(jackknife_interval(value, without).within(-1.0, 1.0))


def _pairwise(targets: Floats, ranks: Floats, tasks: Ints) -> IntervalCell | None:
    """Return the share of pairs of a task, with different labels, that the judge orders alike; a tie is half."""
    counts = np.bincount(tasks)
    order = np.argsort(tasks, kind="stable")
    hits = []
    sizes = []
    for size in np.unique(counts).tolist():
        own = order[counts[tasks[order]] == size].reshape(
            -1, size
        )  # the responses of each task of this size
        better = np.sign(targets[own][:, :, None] - targets[own][:, None, :])
        alike = better * np.sign(ranks[own][:, :, None] - ranks[own][:, None, :])
        differ = better > 0.0  # each pair once, from the side of the better one
        hits += (((alike + 1.0) / 2.0) * differ).sum(axis=(1, 2)).tolist()
        sizes += differ.sum(axis=(1, 2)).tolist()
    return as_interval(share_interval(hits, sizes))


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
        table.append(
            {"from": place / _BINS, "n": int(inside.sum()), "expected": expected, "met": seen}
        )
    return sum(row["n"] * abs(row["expected"] - row["met"]) for row in table) / len(scores), table


def _mean_label(study: JudgeStudy, need: float | None) -> Figures:
    """Return the mean that the judge gives all responses, and what the labels make of it."""
    if not study.rows or study.is_ranked:
        return dict.fromkeys(
            ("items", "uncorrected", "corrected", "weight", "rogan_gladen", "labels_needed")
        )
    names = [row.task for row in study.rows] + [task for task, _ in study.others]
    tasks = np.unique(names, return_inverse=True)[1]
    n = len(study.rows)
    labels = np.array([row.target for row in study.rows])
    predictions = np.array([row.prediction for row in study.rows])
    others = np.array([prediction for _, prediction in study.others], dtype=np.float64)
    sample = LabelledSample(labels, predictions, tasks[:n], others, tasks[n:])
    return {
        "items": len(names),
        "uncorrected": float(np.concatenate([predictions, others]).mean()),
        "corrected": as_interval(ppi_mean(sample, study.scale)),
        "weight": ppi_weight(sample),
        "rogan_gladen": as_interval(rogan_gladen(sample)) if study.is_binary else None,
        "labels_needed": None if need is None else labels_needed(sample, need, study.scale),
    }


def _constant(study: JudgeStudy) -> Figures:
    """Return the agreement of a judge that always gives the commonest label; of equally common ones the lower."""
    counts = Counter(row.target for row in study.rows)
    common = min(counts, key=lambda target: (-counts[target], target), default=0.0)
    rows = [row._replace(prediction=common, score=common) for row in study.rows]
    agreement = _agreement_of(replace(study, rows=rows))
    return {"question": study.judge.question, "value": common} | agreement


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
    figures = _agreement(judged, study.is_binary)
    if not study.is_binary and not study.has_pairs:
        # A number of characters is no score on the scale: only the order counts.
        figures |= dict.fromkeys(_OF_VALUES)
    return {"question": study.judge.question, "n": len(rows)} | figures


def _ceiling(study: JudgeStudy) -> Figures | None:
    """Return how often a person is right by the consensus, or the share of pairs of people with the same label."""
    if study.ceiling is not None:
        return {"question": study.judge.question, "value": study.ceiling, "low": None, "high": None}
    hits: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for task, given in study.votes:
        hits[task] += sum(first == second for first, second in combinations(given, 2))
        pairs[task] += len(given) * (len(given) - 1) // 2
    share = as_interval(share_interval([hits[task] for task in pairs], list(pairs.values())))
    return None if share is None else {"question": study.judge.question} | share._asdict()


def _differences(studies: Sequence[JudgeStudy]) -> list[Figures]:
    """Return the mean distances from people of any two judges, on the responses that both judged, and their test.

    Judges with other labels for one of these answer another question, and are not compared. The p-value is of flips of
    tasks, adjusted for the number of pairs (Holm).
    """
    studies = [study for study in studies if not study.is_ranked]
    rows: list[Figures] = []
    names: dict[str, int] = {}
    tasks: dict[str, int] = {}
    sides = [_distances(study, names, tasks) for study in studies]
    has_runs = len({study.judge.run for study in studies}) > 1
    shown = [
        f"{study.judge.run}: {study.judge.name}" if has_runs else study.judge.name
        for study in studies
    ]
    for first, second in combinations(range(len(studies)), 2):
        of_first, of_second = sides[first], sides[second]
        common, left, right = np.intersect1d(
            of_first[0], of_second[0], assume_unique=True, return_indices=True
        )
        if not len(common) or (of_first[2][left] != of_second[2][right]).any():
            continue
        own_tasks = np.unique(of_first[1][left], return_inverse=True)[1]
        sums = np.bincount(own_tasks, of_first[3][left] - of_second[3][right])
        pair = {"first": shown[first], "second": shown[second]}
        estimate = ratio_interval(sums, np.bincount(own_tasks))
        rows.append(
            pair | {"n": len(common), "difference": as_interval(estimate), "p": sign_flip_p(sums)}
        )
    for row, adjusted in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p"] = adjusted
    return rows


def _distances(
    study: JudgeStudy, names: dict[str, int], tasks: dict[str, int]
) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the numbers of responses and tasks, the targets, and their distances to predictions, [n] each."""
    places = np.array(
        [names.setdefault(row.response, len(names)) for row in study.rows], dtype=np.int64
    )
    of_tasks = np.array(
        [tasks.setdefault(row.task, len(tasks)) for row in study.rows], dtype=np.int64
    )
    targets = np.array([row.target for row in study.rows])
    return (
        places,
        of_tasks,
        targets,
        np.abs(np.array([row.prediction for row in study.rows]) - targets),
    )


def _disagreements(studies: Sequence[JudgeStudy]) -> list[Figures]:
    disagreements = []
    for study in studies:
        if study.is_ranked:
            continue
        for row in study.rows:
            if row.prediction != row.target:
                responses = responses_of(row.response)
                command = ["jurygraph", "show", study.judge.run, "--response", responses[0]]
                if not study.judge.is_reward:
                    command += ["--verdict", study.judge.question]
                # Of wrong decisions the most confident ones come first.
                distance = (
                    abs(row.score - row.target)
                    if study.is_binary
                    else abs(row.prediction - row.target)
                )
                sides = {
                    "judge": row.prediction,
                    "people": row.target,
                    "score": row.score,
                    "distance": distance,
                }
                identity = {"response": responses[0], "question": study.judge.question}
                identity |= {"other": responses[1]} if len(responses) > 1 else {}
                disagreements.append(identity | sides | {"show": shlex.join(command)})
    return sorted(
        disagreements, key=lambda row: (-row["distance"], row["response"], row["question"])
    )


def _sections(figures: Figures, need: float | None) -> Iterator[str | ReportTable]:
    judges = figures["judges"]
    has_runs = len({judge["run"] for judge in judges}) > 1
    rows: list[list[object]] = []
    ranks: list[list[object]] = []
    shown: list[Figures] = []
    for judge, constant, length in zip(judges, figures["constant"], figures["length"], strict=True):
        names = [f"{judge['run']}: {judge['judge']}" if has_runs else judge["judge"]]
        lines = [judge]
        others = [row | {"question": None} for row in (constant, length)]
        if others != shown:  # judges of the same responses share these lines
            names += [f"  always {constant['value']:g}", "  length"]
            lines += others
            shown = others
        for name, row in zip(names, lines, strict=True):
            counts = [judge[count] if row is judge else None for count in COUNTS]
            rows.append([name, *counts, *(row[rate] for rate in RATES[:4])])
            ranks.append([name, *(row[rate] for rate in RATES[4:])])
    yield ReportTable(("judge", *COUNTS, "accuracy", "TPR", "TNR", "κ"), rows, digits=3)
    yield ReportTable(("judge", "rank correlation", "pairwise accuracy", "bias"), ranks, digits=3)
    rows = [
        [judge["judge"], judge["brier"], judge["ece"]]
        for judge in judges
        if judge["brier"] is not None
    ]
    yield ReportTable(("calibration of P(met)", "Brier", "ECE"), rows)
    rows = []
    for judge in judges:
        if judge["scale"] == "ranks":
            continue
        means = [judge["uncorrected"], judge["corrected"], judge["weight"], judge["rogan_gladen"]]
        rows.append(
            [judge["judge"], *means, *([_describe_need(judge)] if need is not None else [])]
        )
    header = ("mean of all responses", "by the judge", "PPI++ (95 %)", "λ", "Rogan-Gladen (95 %)")
    yield ReportTable((*header, f"labels for ±{need:g}") if need is not None else header, rows)
    rows = [[row["question"], row] for row in figures["ceiling"] if row is not None]
    yield ReportTable(("people agree on", "share (95 %)"), rows)
    rows = [
        [judge["judge"], judge["strict"], judge["flips"]]
        for judge in judges
        if judge["flips"] is not None
    ]
    yield ReportTable(
        ("pairs in both orders", "as people in both (95 %)", "flip with the order (95 %)"), rows
    )
    rows = [
        [row["first"], row["second"], row["n"], row["difference"], row["p"]]
        for row in figures["differences"]
    ]
    header = ("judge", "other", "n", "farther from people by (95 %)", "p (Holm)")
    yield ReportTable(header, rows, left=2, most=_MAX_PAIRS)
    rows = [[row["show"], row["judge"], row["people"]] for row in figures["disagreements"]]
    yield ReportTable(("disagreement", "judge", "people"), rows, digits=2, most=_MAX_DISAGREEMENTS)


def _describe_need(judge: Figures) -> object:
    """Return the number of labels that are needed; None where these labels cannot tell."""
    has_interval = judge["corrected"] is not None and judge["corrected"].low is not None
    if judge["labels_needed"] is None and has_interval:
        return f"not even all {judge['items']}"
    return judge["labels_needed"]


def _notes(judges: Sequence[Figures]) -> Iterator[str]:
    for judge in judges:
        yield from omission_notes(judge["left_out"], f"{judge['judge']}: ")
        if judge["scale"] == "ranks":
            low, high = judge["label_range"]
            scales = f"labels go from {low:g} to {high:g}, and its scores have another scale"
            yield f"{judge['judge']}: {scales}; only their order is compared, by Spearman's rank correlation"
        if judge["shares"]:
            meaning = (
                "taken as shares of people: above 0.5 as 1, below as 0, and 0.5 as a tie, left out"
            )
            yield f"{judge['judge']}: labels between 0 and 1: {judge['shares']}, {meaning}"
    fewest = min((judge["tasks"] for judge in judges), default=_FEW_TASKS)
    if fewest < _FEW_TASKS:
        yield f"tasks with labels: {fewest}; with fewer than {_FEW_TASKS}, intervals are rough"
