"""Judges compared with people: judgements of runs and labels, joined by response and question, and their figures.

A constant and the length of a response are compared as judges, too, and labels and verdicts together estimate the mean
label. Intervals are over tasks, whose responses resemble each other.
"""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.agreement import Weights, kappa_interval
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.display import ProgressCallback
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
from jurygraph.runs.run import Run
from jurygraph.schema import RecordedVerdict, Trace
from jurygraph.schema.rating import JudgedLabel
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.sources.ratings import FileRows, read_judged_labels
from jurygraph.studies.pairs import choice_of, is_flip, scores_by_order
from jurygraph.studies.report import (
    Figures,
    IntervalCell,
    Report,
    ReportTable,
    as_interval,
    omission_notes,
)
from jurygraph.studies.units import unit_of

_UNIT = (0.0, 1.0)

_LABEL_COLUMN = "label."
JUDGED = "judged"


class Judge(NamedTuple):
    """Identity of a judge: a question of a run, its evaluator, the model that replied, and for whom it judges.

    Of several judges, `model` is the name among the config's `models`.
    """

    run: str
    question: str
    evaluator: str
    model: str | None = None
    reviewer: str | None = None

    @property
    def name(self) -> str:
        """A short name: question, evaluator, model and reviewer, each where it says something."""
        parts = [] if self.question.startswith(self.evaluator) else [self.evaluator]
        parts += [part for part in (self.model, self.reviewer) if part is not None]
        return f"{self.question} ({', '.join(parts)})" if parts else self.question


class Judgement(NamedTuple):
    """A judge's view of a response, or of a pair: `status` is `judged`, or the reason why there is no score.

    `task` names the task, or the group of tasks that it belongs to: their responses resemble each other. A pair's score
    is that of its first response, and `native` 1 if both orders prefer it, 0 if both prefer the other
    one, else 0.5. `is_flipped` if the orders differ; None unless both were judged.
    """

    task: str
    status: str
    score: float | None = None
    decision: float | None = None
    native: float | None = None
    scale: tuple[float, float] | None = None
    choices: tuple[float, ...] = ()


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
    scale: tuple[float, float] = _UNIT
    flips: Sequence[tuple[str, bool]] = ()
    ceiling: float | None = None
    shares: int = 0

    @property
    def has_pairs(self) -> bool:
        return any(len(responses_of(row.response)) > 1 for row in self.rows[:1])

    def to_unit(self, target: float) -> float:
        """Return the place of a target between both ends of the scale, in [0, 1]."""
        low, high = self.scale
        return (target - low) / (high - low)


@dataclass(frozen=True)
class RunJudgements:
    """All judgements of a run: by judge and response, with the lengths and own labels of the responses."""

    run: str
    by_judge: Mapping[Judge, Mapping[str, Judgement]]
    lengths: Mapping[str, int | None]
    labels: Mapping[str, Mapping[str, object]]


def read_judgements(run: Run, advance: ProgressCallback = lambda tasks: None) -> RunJudgements:
    """Return the judgements of a run's responses and pairs of them; `advance` is called with 1 for each task.

    Several samples of a judge are one judgement, by their mean, and so are both orders of a pair; its verdicts on the
    turns of a response are one, with the value that its reward counts. Verdicts on variants are not read.

    Raises `TraceMismatch` if a record of the run has been changed.
    """
    by_judge: dict[Judge, dict[str, Judgement]] = {}
    lengths: dict[str, int | None] = {}
    labels: dict[str, Mapping[str, object]] = {}
    for group in run.group_records():
        scopes = {
            question.id: question.scope for question in run.survey_outline_of(group.key).questions
        }
        pairs: dict[tuple[Judge, str], list[RecordedVerdict]] = {}
        cluster = unit_of(run, group.key)
        stored = list(run.group(group))
        order = {trace.response_id: place for place, (trace, _) in enumerate(stored)}
        for trace, response in stored:
            lengths[trace.response_id] = None if response is None else len(response.text)
            labels[trace.response_id] = trace.labels
            for judge, verdicts in _verdicts_by_judge(run, trace).items():
                if scopes[judge.question] != "pair":
                    by_judge.setdefault(judge, {})[trace.response_id] = _summarize(
                        cluster, verdicts
                    )
                    continue
                for verdict in verdicts:
                    if verdict.responses:
                        pair = pair_name(*sorted(verdict.responses, key=order.__getitem__))
                        pairs.setdefault((judge, pair), []).append(verdict)
        for (judge, pair), verdicts in pairs.items():
            by_judge.setdefault(judge, {})[pair] = _summarize_pair(cluster, pair, verdicts)
        advance(1)
    _share_unasked(by_judge)
    return RunJudgements(str(run.folder), by_judge, lengths, labels)


def pair_name(first: str, second: str) -> str:
    """Return the name of a pair of responses, from which `responses_of` reads them."""
    return f"{first}\t{second}"


def responses_of(name: str) -> list[str]:
    """Return the one or two responses of a row's name."""
    return name.split("\t")


def _verdicts_by_judge(run: Run, trace: Trace) -> dict[Judge, list[RecordedVerdict]]:
    models = {call.id: call.model for call in trace.calls}
    by_judge: dict[Judge, list[RecordedVerdict]] = {}
    for verdict in run.verdicts_about(trace, attrgetter("judge")):
        if verdict.responses in ((), (trace.response_id,)) or len(verdict.responses) == 2:
            # A failed verdict has no call of its own, but those that were tried.
            used = [
                models[call]
                for call in (verdict.call, *(use.id for use in verdict.calls))
                if call in models
            ]
            name = verdict.judge or (used[0] if used else None)
            by_judge.setdefault(
                Judge(str(run.folder), verdict.question, verdict.evaluator, name, verdict.reviewer),
                [],
            ).append(verdict)
    return by_judge


def _share_unasked(by_judge: dict[Judge, dict[str, Judgement]]) -> None:
    """Give judgements without a request to a model, such as those by a gate, to every model of the question."""
    for judge in [judge for judge in by_judge if judge.model is None]:
        models = [
            other
            for other in by_judge
            if other.model is not None and other._replace(model=None) == judge
        ]
        if models:
            unasked = by_judge.pop(judge)
            for other in models:
                by_judge[other] = unasked | by_judge[other]


def _summarize(task: str, verdicts: Sequence[RecordedVerdict]) -> Judgement:
    judged = [verdict for verdict in verdicts if status_of(verdict) == JUDGED]
    if not judged:
        return Judgement(task, status_of(verdicts[0]))
    score = fmean(verdict.score for verdict in judged if verdict.score is not None)
    decided = [verdict.counts_as_met for verdict in judged]
    scale = judged[0].scale
    natives = [
        float(verdict.native) for verdict in judged if isinstance(verdict.native, int | float)
    ]
    native = fmean(natives) if scale is not None and len(natives) == len(judged) else None
    return Judgement(task, JUDGED, score, float(fmean(decided) >= MET_THRESHOLD), native, scale)


def _summarize_pair(task: str, pair: str, verdicts: Sequence[RecordedVerdict]) -> Judgement:
    """Return the judgement of a pair from the side of its first response; an order that failed is no half answer."""
    first = responses_of(pair)[0]
    judged = [verdict for verdict in verdicts if status_of(verdict) == JUDGED]
    asked_orders = {verdict.responses[0] for verdict in verdicts}
    if {verdict.responses[0] for verdict in judged} < asked_orders:
        return Judgement(
            task, next(status for status in map(status_of, verdicts) if status != JUDGED)
        )
    orders = scores_by_order(first, judged)
    choice = choice_of(chain(*orders))
    choices = tuple(map(choice_of, orders)) if len(orders) > 1 else ()
    return Judgement(task, JUDGED, fmean(map(fmean, orders)), choice, choice, _UNIT, choices)


def status_of(verdict: RecordedVerdict) -> str:
    """Return `judged`, or the reason why a verdict has no score that counts."""
    if verdict.gated_by is not None:
        return "gated"
    if verdict.status != "ok":
        return verdict.status
    return "unsupported" if verdict.is_worst_case else JUDGED


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
) -> list[JudgeStudy]:
    """Return each judge of the runs with the labels, in the order of the runs and their questions.

    A label without `question` is of the response as a whole, and every question is compared with it. A judge for a
    reviewer is compared with the labels of that reviewer, if labels have reviewers. Several labels of a response become
    their mean, or, for true and false, the majority's; where those tie, the response is left out and counted. Those of
    a pair become what most say, else a tie. With `has_consensus` they become the likeliest class under their consensus
    (STABLEVAL, Algorithm 1).

    Raises `InputError` for an unknown response or question, no label of `split`, no judge with a label, a target off
    the judge's scale, or too few labels for a consensus.
    """
    chosen = [
        (place, label) for place, label in labels.rows if split is None or label.split == split
    ]
    if not chosen:
        raise InputError(
            f"{labels.path}: has no label with split {quote(split or '')}; name one that is there"
        )
    _refuse_unknown(runs, labels, chosen)
    studies = []
    for run in runs:
        for judge, judgements in run.by_judge.items():
            is_of_pairs = len(responses_of(next(iter(judgements)))) == 2
            own = [
                (place, label)
                for place, label in chosen
                if label.question in (None, judge.question)
                and (label.other is not None) == is_of_pairs
                and (judge.reviewer is None or label.reviewer in (None, judge.reviewer))
            ]
            if own:
                studies.append(_join(run, judge, judgements, labels, own, has_consensus))
    if not studies:
        hint = "name the reviewers as the runs do, and pairs by `id` and `other`"
        raise InputError(f"{labels.path}: no judge is of a reviewer who gave a label; {hint}")
    return studies


def _refuse_unknown(
    runs: Sequence[RunJudgements],
    labels: FileRows[JudgedLabel],
    chosen: Iterable[tuple[str, JudgedLabel]],
) -> None:
    responses = {response for run in runs for response in run.lengths}
    questions = {judge.question: None for run in runs for judge in run.by_judge}
    for place, label in chosen:
        fields = (("id", label.id, responses), ("other", label.other, responses))
        for name, value, known in (*fields, ("question", label.question, questions)):
            if value is None or value in known:
                continue
            noun = "question" if name == "question" else "response"
            hint = (
                did_you_mean(value, sorted(known))
                or f"name a {noun} of {', '.join(run.run for run in runs)}"
            )
            location = f"{labels.path}, {place}, field {labels.columns[name]}"
            raise InputError(f"{location}: there is no {noun} {quote(value)}; {hint}")


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
    if scale != _UNIT or not all(0.0 <= label.target <= 1.0 for _, label in own):
        return False
    decides = all(
        judged.score in _UNIT for judged in judgements.values() if judged.score is not None
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
        or _UNIT
    )
    is_of_pairs = own[0][1].other is not None
    shares = [label.target for _, label in own if 0.0 < label.target < 1.0]
    is_binary = not is_of_pairs and _is_of_two_values(judgements, own, scale, bool(shares))
    low, high = _UNIT if is_binary else scale
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
    return (
        figures
        | _agreement(study.rows, study.is_binary)
        | _calibration(study)
        | _mean_label(study, need)
    )


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
    if not study.rows:
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
    figures = _agreement(judged, study.is_binary)
    if not study.is_binary and not study.has_pairs:
        # A number of characters is no score on the scale: only the order counts.
        figures |= dict.fromkeys(("accuracy", "kappa", "bias", "base_rates"))
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
        for row in study.rows:
            if row.prediction != row.target:
                responses = responses_of(row.response)
                command = ["jurygraph", "show", study.judge.run, "--response", responses[0]]
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
        if judge["shares"]:
            meaning = (
                "taken as shares of people: above 0.5 as 1, below as 0, and 0.5 as a tie, left out"
            )
            yield f"{judge['judge']}: labels between 0 and 1: {judge['shares']}, {meaning}"
    fewest = min((judge["tasks"] for judge in judges), default=_FEW_TASKS)
    if fewest < _FEW_TASKS:
        yield f"tasks with labels: {fewest}; with fewer than {_FEW_TASKS}, intervals are rough"
