"""Judges compared with people: the figures, tables and plots of `study judge`, and what they say.

A constant and the length of a response are compared as judges, too, and labels and verdicts together estimate the mean
label. Intervals are over tasks, whose responses resemble each other.
"""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from operator import itemgetter
from statistics import median_low
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.agreement import Weights, kappa_interval
from jurygraph.arrays import Floats, Ints
from jurygraph.inference.agreement import rank_correlation
from jurygraph.inference.clusters import (
    cluster_numbers,
    mean_with_cluster_interval,
    members_by_cluster,
    share_interval,
    share_with_cluster_interval,
)
from jurygraph.inference.corrected import (
    LabelledSample,
    needed_label_count,
    ppi_mean,
    ppi_weight,
    rogan_gladen,
)
from jurygraph.inference.sign_flips import sign_flip_p
from jurygraph.messages import join_names
from jurygraph.studies import symbols
from jurygraph.studies.alternative_annotator import (
    DEFAULT_WIN_RATE_MARGIN,
    MIN_PASSING_WIN_RATE,
    AlternativeAnnotator,
    PersonLabels,
    compare_judge_with_people,
)
from jurygraph.studies.conclusions import (
    conclude_copies,
    conclude_differences,
    conclude_judge,
    conclude_shared_errors,
    conclude_smaller_juries,
    describe_ties,
    judge_display_names,
)
from jurygraph.studies.judge import JudgeStudy, LabelledJudgement
from jurygraph.studies.judgements import RunJudgements, split_pair_name
from jurygraph.studies.juries import compare_jury_judges, measure_smaller_juries
from jurygraph.studies.report import (
    Columns,
    FigureRows,
    Figures,
    IntervalCell,
    Plot,
    PlotSeries,
    Report,
    ReportSections,
    ReportTable,
    adjust_p_values,
    as_interval,
    number_of_cell,
)

COUNT_FIELD_NAMES = ("n", "missing", "failed", "abstained", "unsupported")
RATE_FIGURE_NAMES = (
    "accuracy",
    "distance",
    "tpr",
    "tnr",
    "kappa",
    "rank_correlation",
    "pairwise",
    "bias",
)
_RANKED_FIGURE_NAMES = ("accuracy", "distance", "kappa", "rank_correlation")
_ALL_HINT = (
    "the other tables (rates, confusions, calibration, corrected means, disagreements): --all"
)
_ORDER_FIGURE_NAMES = ("flips", "strict")
_SAME_SCALE_FIGURE_NAMES = ("accuracy", "distance", "kappa", "bias", "base_rates")
"""What needs labels and predictions in the same units; the rest needs only their order."""
GATE_STATISTIC_NAMES = (
    *COUNT_FIELD_NAMES,
    *("brier", "ece"),
    *(
        f"{name}{end}"
        for name in (*RATE_FIGURE_NAMES, *_ORDER_FIGURE_NAMES)
        for end in ("", "_low", "_high")
    ),
)
"""Statistics that a CI threshold can name."""
_BIN_COUNT = 10
_MAX_KAPPA_LEVELS = 101
"""Most different values of a scale for which kappa is computed."""
_FEW_TASKS_THRESHOLD = 20
_MAX_PAIRS_LISTED = 30
_MAX_DISAGREEMENTS_LISTED = 20
_MAX_CONFUSION_CLASSES = 8
"""Most answers of a judge or a person for which pairs of both are counted."""
_MAX_PARTS_LISTED = 40
_MAX_RANKED_LISTED = 15
_MAX_JUDGES_DESCRIBED = 3
_RowsByName = Mapping[str, Sequence[LabelledJudgement]]


def report(
    studies: Sequence[JudgeStudy],
    need: float | None = None,
    epsilon: float = DEFAULT_WIN_RATE_MARGIN,
    notes: Sequence[str] = (),
    runs: Sequence[RunJudgements] = (),
) -> Report:
    """Measure judges against people.

    The figures are those of the `judges`, with the `constant` that always gives the commonest label, or the median of
    numbers, and `length` as a judge, for each; the `ceiling`, how often two people agree where several labelled a
    response (of numbers: the mean distance), or how often one is right by their consensus; the paired `differences` of
    judges, and the `disagreements`, worst first. A jury is compared with each of its judges alone, and with the
    others without that judge: over all questions of an evaluator, `jury_parts` has what that changes in `runs`, the
    runs of these judges, and `jury_pairs` how far they agree.

    `need` is the half-width of an interval of the mean label, to say how many labels would give it, and `epsilon` what
    a judge may be worse than a person (`alternative_annotator`). `notes` are about the labels.
    """
    studies = [study.turn_fault() for study in studies]
    jury_parts: list[Figures] = []
    jury_pairs: list[Figures] = []
    for run in runs:
        jury_pairs += compare_jury_judges(run, studies)
        jury_parts += measure_smaller_juries(run, studies)
    studies = [study for study in studies if study.judge.without is None]
    judges = _rows_with_display_names(
        [_measure_judge_agreement(study, need, epsilon) for study in studies], "judge"
    )
    # the conclusion is on a jury, not on each of its judges: three of five questions would be twenty paragraphs
    jury_questions = {study.judge._replace(jury=None) for study in studies if study.judge.jury}
    for judge, study in zip(judges, studies, strict=True):
        judge["conclusion"] = conclude_judge(judge, need)
        judge["is_of_jury"] = study.judge._replace(model=None) in jury_questions
    constants = [_constant_judge_figures(study) for study in studies]
    figures = {
        "judges": judges,
        "constant": constants,
        "length": [_length_as_judge_figures(study) for study in studies],
        "ceiling": [_human_ceiling_figures(study) for study in studies],
        "differences": _compare_judges(studies),
        "disagreements": _list_disagreements(studies),
        "ranking": _rank_judges(studies, judges, constants),
    }
    if jury_parts:
        figures |= {"jury_parts": jury_parts, "jury_pairs": jury_pairs}
    tasks = {row.task for study in studies for row in study.rows}
    return Report(
        figures,
        _sections(figures, need),
        [*notes, *describe_left_out_labels(judges), *_notes(judges, len(tasks))],
        [_reliability_diagram(judge) for judge in judges if judge["reliability"]],
        _conclude(figures, judges),
        symbols.JUDGE_STUDY_SYMBOL_MEANINGS,
    )


def shorten(result: Report) -> Report:
    """Return what to read first: who predicts the labels best, and the judges of each jury."""
    figures = result.figures
    order = [row["name"] for row in figures["ranking"]]
    judges = sorted(figures["judges"], key=lambda judge: order.index(judge["name"]))
    first_judges = [judge for judge in judges if not judge["is_of_jury"]][:_MAX_JUDGES_DESCRIBED]
    omissions = set(describe_left_out_labels(judges)) - set(describe_left_out_labels(first_judges))
    return replace(
        result,
        sections=[_ranking_table(figures["ranking"]), _jury_judge_table(figures), _ALL_HINT],
        conclusion=_conclude(figures, first_judges),
        notes=[note for note in result.notes if note not in omissions],
    )


def _conclude(figures: Figures, judges: FigureRows) -> list[str]:
    """Return the conclusions on juries, on judges but those of a jury, and on which of two is nearer to people."""
    pairs = figures.get("jury_pairs", [])
    return [
        *conclude_copies(pairs),
        *conclude_shared_errors(pairs),
        *conclude_smaller_juries(figures.get("jury_parts", [])),
        *(" ".join(judge["conclusion"]) for judge in judges if not judge["is_of_jury"]),
        *conclude_differences(figures["differences"]),
    ]


def _rows_with_display_names(rows: FigureRows, field: str) -> list[Figures]:
    """Return the rows with a `name`: what a field has, with the run before it where rows are of several."""
    names = judge_display_names([(row["run"], row[field]) for row in rows])
    return [{**row, "name": name} for row, name in zip(rows, names, strict=True)]


def _rank_judges(
    studies: Sequence[JudgeStudy], judges: FigureRows, constants: FigureRows
) -> list[Figures]:
    """Return the judges, the nearest to people first: over the responses that all answered, where these are half of
    any judge's at least and have one label for all, else each over its own."""
    labels = [{row.response: row.target for row in study.rows} for study in studies if study.rows]
    shared = set.intersection(*map(set, labels)) if labels else set()
    # of two questions, those with equal labels would be a choice by the labels
    is_shared = all(label[name] == labels[0][name] for label in labels for name in shared)
    has_shared_labels = is_shared and 2 * len(shared) >= max(map(len, labels), default=0)
    ranking = []
    for study, judge, constant in zip(studies, judges, constants, strict=True):
        agreement = judge
        constant_agreement = constant
        rows = study.rows
        if has_shared_labels and len(shared) < len(rows):
            rows = [row for row in rows if row.response in shared]
            agreement = _agreement_figures(study, rows, not study.is_compared_by_rank)
            constant_agreement = _constant_judge_figures(replace(study, rows=rows))
        unanswered = sum(study.left_out.values()) - study.left_out.get("tied", 0)
        row = {
            "name": judge["name"],
            "n": len(rows),
            "unanswered": unanswered,
            "is_of_shared_labels": len(rows) < len(study.rows),
            **{name: agreement[name] for name in _RANKED_FIGURE_NAMES},
        }
        if row["kappa"] is not None:
            row["rank_correlation"] = None  # which a reader needs of other scales alone
        closeness = constant_agreement["accuracy"] or constant_agreement["distance"]
        row["always"] = number_of_cell(closeness)
        ranking.append(row)
    return sorted(ranking, key=_rank_key, reverse=True)


def _rank_key(row: Figures) -> float:
    """Return κ, or the rank correlation where there is none: both are 0 for a constant, and 1 for people's labels."""
    cell = row["kappa"] or row["rank_correlation"]
    return -2.0 if cell is None or cell.value is None else float(cell.value)


def _ranking_table(rows: FigureRows) -> ReportTable:
    measures = {
        "accuracy (95 %)": "accuracy",
        "mean distance (95 %)": "distance",
        "κ (95 %)": "kappa",
        "rank correlation (95 %)": "rank_correlation",
    }
    labels = "labels"
    if any(row["is_of_shared_labels"] for row in rows):
        labels = "labels that all answered"
    columns = {
        f"predicts the {labels}, best first": "name",
        "n": "n",
        "without answer": "unanswered",
        **{title: name for title, name in measures.items() if any(row[name] for row in rows)},
        "always one answer": "always",
    }
    return ReportTable.of(columns, rows, digits=2, most=_MAX_RANKED_LISTED)


def _jury_judge_table(figures: Figures) -> ReportTable:
    """Return the table of juries and their judges: accuracy, cost, errors shared, and what a jury is without each."""
    rows: list[Figures] = []
    parts = figures.get("jury_parts", [])
    smaller_juries = {
        (row["run"], row["evaluator"], row["without"]): row for row in parts if row["without"]
    }
    for row in parts:
        if row["without"]:
            continue
        if row["alone"] is None:
            name = f"{row['evaluator']} ({row['jury']})"
            rows.append({**row, "member": name, "shared": "", "farther": None, "ties": ""})
            continue
        smaller = smaller_juries.get((row["run"], row["evaluator"], row["alone"]))
        if smaller is not None:
            rows.append(
                {
                    **row,
                    "member": row["alone"],
                    "shared": _describe_shared_errors(row, figures["jury_pairs"]),
                    "farther": smaller["farther"],
                    "undecided": smaller["undecided"],
                    "ties": describe_ties(smaller),
                }
            )
    columns: Columns = {
        "judge of a jury": "name",
        "wrong together": "shared",
        "without it": "ties",
        "undecided": "undecided",
        "farther from people by": "farther",
        "accuracy": "accuracy",
        "$ per 1,000": "cost_per_1000",
    }
    return ReportTable.of(columns, _rows_with_display_names(rows, "member"), left=3, digits=3)


def _describe_shared_errors(row: Figures, pairs: FigureRows) -> str:
    texts = []
    for pair in pairs:
        names = [pair["first"], pair["second"]]
        if pair["run"] == row["run"] and row["alone"] in names and pair["labelled"]:
            names.remove(row["alone"])
            texts.append(
                f"{pair['both_wrong']} with {names[0]} (by chance {pair['by_chance']:.0f})"
            )
    return ", ".join(texts)


def gate_values(judge: Figures) -> dict[str, float | None]:
    """Return the statistics of one of the `judges` by the names of `GATE_STATISTIC_NAMES`; None but for `n` if nothing
    counts."""
    values = {
        name: judge[name] if judge["n"] or name == "n" else None
        for name in (*COUNT_FIELD_NAMES, "brier", "ece")
    }
    for name in (*RATE_FIGURE_NAMES, *_ORDER_FIGURE_NAMES):
        value, low, high = judge[name] or (None, None, None)
        values |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return values


def _measure_judge_agreement(study: JudgeStudy, need: float | None, epsilon: float) -> Figures:
    judge = study.judge
    rows = study.rows
    tasks = [row.task for row in rows]
    left_out = study.left_out
    constant = _nearest_constant(study)
    scale: Figures = {"scale": "binary"}
    if not study.has_binary_labels:
        scale = {"scale": "ordered", "label_range": list(study.scale)}
    parts = []
    gain = None
    if study.is_compared_by_rank:
        scale["scale"] = "ranks"
    else:
        parts = list(_closeness_by_trait(study))
        # how much nearer to people the judge is than the constant
        gains = [abs(constant - row.target) - row.distance for row in rows]
        estimate = mean_with_cluster_interval(gains, tasks)
        gain = as_interval(estimate and estimate.within(-study.span, study.span))
    counted_rows = (*rows, *study.unsupported, *study.undecided)
    as_counted = None
    if len(counted_rows) > len(rows):
        agreement = _agreement_figures(study, counted_rows, not study.is_compared_by_rank)
        as_counted = {"n": len(counted_rows), **agreement}
    flip_flags = [is_flipped for _, is_flipped in study.flips]
    rows_with_both_orders = [row for row in rows if row.choices]
    hits = [set(row.choices) == {row.target} for row in rows_with_both_orders]
    return {
        "judge": judge.name,
        "run": judge.run,
        "question": judge.question,
        "evaluator": judge.evaluator,
        "model": judge.model,
        "reviewer": judge.reviewer,
        "n": len(rows),
        **{name: left_out.get(name, 0) for name in COUNT_FIELD_NAMES[1:]},
        "shares": study.shares,
        "is_turned": study.is_fault,
        "left_out": {
            name: count for name, count in left_out.items() if name not in COUNT_FIELD_NAMES
        },
        **scale,
        "tasks": len(set(tasks)),
        "flips": _share_with_interval(flip_flags, [task for task, _ in study.flips]),
        "strict": _share_with_interval(hits, [row.task for row in rows_with_both_orders]),
        **_agreement_figures(study, rows, not study.is_compared_by_rank),
        **_calibration_figures(study),
        **_estimated_mean_label(study, need),
        **_confusion_figures(study),
        "parts": parts,
        "alternative_annotator": _test_alternative_annotator(study, epsilon),
        "as_counted": as_counted,
        "constant": constant,
        "above_constant": gain,
    }


def _confusion_figures(study: JudgeStudy) -> Figures:
    """Return the number of `answers` of the judge, and how often it gave each where people gave each.

    `counts` [levels][levels] has a row for each label of people; there are none for many levels, or other scales.
    """
    answers = {row.prediction for row in study.rows}
    levels = sorted(answers | {row.target for row in study.rows})
    confusion = None
    if len(levels) <= _MAX_CONFUSION_CLASSES and not study.is_compared_by_rank:
        pairs = Counter((row.target, row.prediction) for row in study.rows)
        counts = [[pairs[target, answer] for answer in levels] for target in levels]
        confusion = {"levels": levels, "counts": counts}
    return {"answers": len(answers), "confusion": confusion}


def _closeness_by_trait(study: JudgeStudy) -> Iterator[Figures]:
    """Yield accuracy and distance by agent, by domain and by length in thirds, wherever there are several."""
    groups_by_trait: dict[str, _RowsByName] = {}
    for trait_name, by_response in study.traits.items():
        trait_groups = defaultdict(list)
        for row in study.rows:
            # A pair is of both its responses.
            found = set(map(by_response.get, split_pair_name(row.response)))
            names = sorted(name for name in found if name is not None)
            if names:
                trait_groups[" and ".join(names)].append(row)
        groups_by_trait[trait_name] = dict(sorted(trait_groups.items()))
    groups_by_trait["length"] = _rows_by_length_third(study)
    for trait_name, groups in groups_by_trait.items():
        if len(groups) < 2:
            continue
        for name, rows in groups.items():
            yield {
                "by": trait_name,
                "name": name,
                "n": len(rows),
                "tasks": len({row.task for row in rows}),
                **_closeness_figures(study, rows),
            }


def _closeness_figures(study: JudgeStudy, rows: Sequence[LabelledJudgement]) -> Figures:
    """Return the accuracy where labels are classes, and the mean distance from them where they are numbers."""
    tasks = [row.task for row in rows]
    accuracy = None
    distance = None
    if study.has_classes:
        accuracy = _share_with_interval([row.distance == 0.0 for row in rows], tasks)
    if study.has_numbers:
        mean_distance = mean_with_cluster_interval([row.distance for row in rows], tasks)
        distance = mean_distance and mean_distance.within(0.0, study.span)
    return {"accuracy": accuracy, "distance": as_interval(distance)}


def _rows_by_length_third(study: JudgeStudy) -> _RowsByName:
    """Return the rows by the third of the lengths that they belong to, the shortest first."""
    lengths = study.lengths
    rows = [row for row in study.rows if row.response in lengths]
    rows.sort(key=lambda row: lengths[row.response])
    if not rows:
        return {}
    sorted_lengths = [lengths[row.response] for row in rows]
    first, second = np.quantile(sorted_lengths, [1 / 3, 2 / 3], method="lower").tolist()
    unit = "characters more than the other" if study.has_pairs else "characters"
    names = (f"to {first} {unit}", f"to {second} {unit}", f"over {second} {unit}")
    groups = defaultdict(list)
    for row, third in zip(rows, np.searchsorted([first, second], sorted_lengths), strict=True):
        groups[names[third]].append(row)
    return groups


def _test_alternative_annotator(study: JudgeStudy, epsilon: float) -> AlternativeAnnotator:
    if study.is_compared_by_rank:
        why = "labels and judge are on different scales, on which no label is near to another"
        return AlternativeAnnotator(epsilon, why=why)
    if study.judge.reviewer:
        why = (
            "each question predicts one person, with whom `study reviewers` compares judges: it takes what `panel` "
            "makes of several answers, where distances here are of their mean"
        )
        return AlternativeAnnotator(epsilon, why=why)
    rows = study.person_labels
    names, persons = np.unique([row.person for row in rows], return_inverse=True)
    people = PersonLabels(
        items=cluster_numbers([row.response for row in rows]),
        tasks=cluster_numbers([row.task for row in rows]),
        persons=persons,
        labels=np.array([row.label for row in rows]),
        predictions=np.array([row.prediction for row in rows]),
        names=tuple(map(str, names)),
        are_classes=study.has_binary_labels or study.has_pairs,
    )
    test = compare_judge_with_people(people, epsilon)
    constant = _nearest_constant(study)
    always_same = people._replace(predictions=np.full(len(rows), constant))
    constant_test = compare_judge_with_people(always_same, epsilon)
    if (constant_test.winning_rate or 0.0) < MIN_PASSING_WIN_RATE:
        return test
    return test._replace(labels_off_constant=sum(row.target != constant for row in study.rows))


def _nearest_constant(study: JudgeStudy) -> float:
    """Return the constant nearest to people: the median of numbers, else the commonest label; of two the lower."""
    if study.has_numbers and study.rows:
        return median_low(row.target for row in study.rows)
    counts = Counter(row.target for row in study.rows)
    return min(counts, key=lambda target: (-counts[target], target), default=0.0)


def _agreement_figures(
    study: JudgeStudy, rows: Sequence[LabelledJudgement], has_one_scale: bool
) -> Figures:
    """Return how far predictions agree with targets, each with its interval over tasks; None where undefined.

    Without one scale, such as of a number of characters, only the order counts.
    """
    if not rows:
        return dict.fromkeys((*RATE_FIGURE_NAMES, "base_rates"))
    targets = np.array([row.target for row in rows])
    predictions = np.array([row.prediction for row in rows])
    has_binary_labels = study.has_binary_labels
    ranks = np.array([row.score for row in rows]) if has_binary_labels else predictions
    tasks = cluster_numbers([row.task for row in rows])
    hits = predictions == targets
    is_positive = targets == 1.0
    bias = mean_with_cluster_interval(predictions - targets, tasks)
    true_positive_rate = None
    true_negative_rate = None
    if has_binary_labels:
        bias = bias and bias.within(-1.0, 1.0)
        true_positive_rate = _share_with_interval(hits[is_positive], tasks[is_positive])
        true_negative_rate = _share_with_interval(hits[~is_positive], tasks[~is_positive])
    figures = {
        "base_rates": {"people": targets.mean(), "judge": predictions.mean()},
        **_closeness_figures(study, rows),
        "tpr": true_positive_rate,
        "tnr": true_negative_rate,
        "kappa": _kappa(study, rows),
        "rank_correlation": as_interval(rank_correlation(targets, ranks, tasks)),
        "pairwise": _pairwise_accuracy(targets, ranks, tasks),
        "bias": as_interval(bias),
    }
    return figures if has_one_scale else figures | dict.fromkeys(_SAME_SCALE_FIGURE_NAMES)


def _kappa(study: JudgeStudy, rows: Sequence[LabelledJudgement]) -> IntervalCell | None:
    """Return the agreement beyond chance of predictions and targets; None without rows, and for many levels."""
    targets = [row.target for row in rows]
    predictions = [row.prediction for row in rows]
    if not 0 < len({*targets, *predictions}) <= _MAX_KAPPA_LEVELS:
        return None
    weights: Weights = "equal" if study.has_binary_labels else "quadratic"
    tasks = cluster_numbers([row.task for row in rows])
    return as_interval(kappa_interval(targets, predictions, weights, tasks=tasks))


def _share_with_interval(hits: ArrayLike, tasks: ArrayLike) -> IntervalCell | None:
    return as_interval(share_with_cluster_interval(hits, tasks))


def _pairwise_accuracy(targets: Floats, ranks: Floats, tasks: Ints) -> IntervalCell | None:
    """Return the share of pairs of a task, with different labels, that the judge orders alike; a tie is half."""
    hits = []
    sizes = []
    for members in members_by_cluster(tasks):
        target = targets[members]
        rank = ranks[members]
        # each pair once, from the side of the better one
        is_first_better = target[:, None] > target
        judge_order_signs = np.sign(rank[:, None] - rank)[is_first_better]
        hits.append(((judge_order_signs + 1.0) / 2.0).sum())
        sizes.append(len(judge_order_signs))
    return as_interval(share_interval(hits, sizes))


def _calibration_figures(study: JudgeStudy) -> Figures:
    """Return the Brier score, and of a judge that gives shares the expected calibration error in ten bins, and these.

    A judge that gives 0 and 1 alone promises no share, so that its errors are those of its accuracy; where only the
    order of labels is compared, there is no error.
    """
    figures: Figures = {"brier": None, "ece": None, "reliability": []}
    if not study.rows or study.has_pairs or study.is_compared_by_rank:
        return figures
    scores = np.array([row.score for row in study.rows])
    targets = np.array([study.scale_target_to_unit(row.target) for row in study.rows])
    if study.has_binary_labels:
        figures["brier"] = float(((scores - targets) ** 2).mean())
    if not np.isin(scores, (0.0, 1.0)).all():
        tasks = cluster_numbers([row.task for row in study.rows])
        figures["ece"], figures["reliability"] = reliability(scores, targets, tasks)
    return figures


def reliability(scores: Floats, targets: Floats, tasks: Ints) -> tuple[float, list[Figures]]:
    """Return the expected calibration error of scores in [0, 1], and the bins that it is of, which are not empty."""
    bin_numbers = np.minimum((scores * _BIN_COUNT).astype(int), _BIN_COUNT - 1)
    table = []
    for number in np.unique(bin_numbers).tolist():
        is_in_bin = bin_numbers == number
        cell = _share_with_interval(targets[is_in_bin], tasks[is_in_bin])
        assert cell is not None
        table.append(
            {
                "from": number / _BIN_COUNT,
                "n": is_in_bin.sum(),
                "expected": scores[is_in_bin].mean(),
                "met": cell.value,
                "low": cell.low,
                "high": cell.high,
            }
        )
    return sum(row["n"] * abs(row["expected"] - row["met"]) for row in table) / len(scores), table


def _reliability_diagram(judge: Figures) -> Plot:
    columns = [
        [row[name] for row in judge["reliability"]] for name in ("met", "expected", "low", "high")
    ]
    series = PlotSeries(judge["name"], *columns)
    equal_line = PlotSeries("as it should be", [0.0, 1.0], [0.0, 1.0])
    title = (
        f"What {judge['name']} scores and what people say differ by {judge['ece']:.2f} on average"
    )
    return Plot(title, "line", [series, equal_line], "mean score", "people, 95 % interval")


def _estimated_mean_label(study: JudgeStudy, need: float | None) -> Figures:
    """Return the mean that the judge gives all responses, and what the labels make of it."""
    if not study.rows or study.is_compared_by_rank:
        return dict.fromkeys(
            ("items", "uncorrected", "corrected", "weight", "rogan_gladen", "labels_needed")
        )
    names = [row.task for row in study.rows] + [task for task, _ in study.others]
    tasks = cluster_numbers(names)
    n = len(study.rows)
    labels = np.array([row.target for row in study.rows])
    predictions = np.array([row.prediction for row in study.rows])
    others = np.array([prediction for _, prediction in study.others], dtype=np.float64)
    sample = LabelledSample(labels, predictions, tasks[:n], others, tasks[n:])
    return {
        "items": len(names),
        "uncorrected": np.concatenate([predictions, others]).mean(),
        "corrected": as_interval(ppi_mean(sample, study.scale)),
        "weight": ppi_weight(sample),
        "rogan_gladen": as_interval(rogan_gladen(sample)) if study.has_binary_labels else None,
        "labels_needed": None if need is None else needed_label_count(sample, need, study.scale),
    }


def _constant_judge_figures(study: JudgeStudy) -> Figures:
    """Return the agreement of a judge that always gives the constant nearest to people."""
    constant = _nearest_constant(study)
    rows = [row._replace(prediction=constant, score=constant) for row in study.rows]
    agreement = _agreement_figures(study, rows, not study.is_compared_by_rank)
    return {"question": study.judge.question, "value": constant} | agreement


def _length_as_judge_figures(study: JudgeStudy) -> Figures:
    """Return the agreement of length as a judge: longer is better, and longer than the median is met."""
    lengths = study.lengths
    rows = [row for row in study.rows if row.response in lengths]
    median = float(np.median([lengths[row.response] for row in rows])) if rows else 0.0
    judged = []
    for row in rows:
        length = float(lengths[row.response])
        prediction = length
        if study.has_binary_labels:
            prediction = float(length > median)
        elif study.has_pairs:  # the longer one is better
            prediction = (float(np.sign(length)) + 1.0) / 2.0
        judged.append(row._replace(prediction=prediction, score=length))
    figures = _agreement_figures(study, judged, has_one_scale=not study.has_numbers)
    return {"question": study.judge.question, "n": len(rows)} | figures


def _human_ceiling_figures(study: JudgeStudy) -> Figures | None:
    """Return how often a person is right by the consensus, or two people agree; of numbers, their mean `distance`.

    `n` is the number of pairs of labels of one response.
    """
    distances = []
    tasks = []
    for task, values in study.votes:
        for first, second in combinations(values, 2):
            distances.append(abs(first - second))
            tasks.append(task)
    figures: Figures = dict.fromkeys(("value", "low", "high", "distance"))
    figures |= {"question": study.judge.question, "n": len(distances)}
    if study.ceiling is not None:
        return figures | {"value": study.ceiling}
    if study.has_numbers:
        distance = as_interval(mean_with_cluster_interval(distances, tasks))
        return distance and figures | {"distance": distance, **_distance_from_persons(study)}
    share = _share_with_interval([distance == 0.0 for distance in distances], tasks)
    return share and figures | share._asdict() | _distance_from_persons(study)


def _distance_from_persons(study: JudgeStudy) -> Figures:
    """Return the judge, its mean distance from single named people, and how often it is 0, where several labelled."""
    counts = Counter(row.response for row in study.person_labels)
    rows = [row for row in study.person_labels if counts[row.response] > 1]
    distances = [abs(row.prediction - row.label) for row in rows]
    tasks = [row.task for row in rows]
    distance = mean_with_cluster_interval(distances, tasks)
    share = _share_with_interval([distance == 0.0 for distance in distances], tasks)
    return {
        "judge": study.judge.name,
        "judge_distance": as_interval(distance),
        "judge_share": share,
    }


def _compare_judges(studies: Sequence[JudgeStudy]) -> list[Figures]:
    """Return the mean distances from people of any two judges, on the responses that both judged, and their test.

    Judges with other labels for one of these answer another question, and are not compared. The p-value is of flips of
    tasks, adjusted for the number of pairs (Holm).
    """
    studies = [study for study in studies if not study.is_compared_by_rank]
    names = judge_display_names([(study.judge.run, study.judge.name) for study in studies])
    named_studies = zip(names, studies, strict=True)
    differences = []
    for (first, study), (second, other_study) in combinations(named_studies, 2):
        gaps, tasks = _distance_gaps(study, other_study)
        gap = mean_with_cluster_interval(gaps, tasks)
        # a jury is compared with its judges apart
        if gaps and (study.judge.jury is None) == (other_study.judge.jury is None):
            differences.append(
                {
                    "first": first,
                    "second": second,
                    "n": len(gaps),
                    "alike": not any(gaps),
                    "difference": as_interval(gap and gap.within(-study.span, study.span)),
                    "p": sign_flip_p(np.bincount(tasks, gaps)),
                }
            )
    return adjust_p_values(differences, "p")


def _distance_gaps(study: JudgeStudy, other_study: JudgeStudy) -> tuple[list[float], Ints]:
    """Return how much farther from people a judge is than another where both judged, and the tasks; nothing for another
    question to people."""
    rows = {row.response: row for row in other_study.rows}
    pairs = [(row, rows[row.response]) for row in study.rows if row.response in rows]
    if any(row.target != other.target for row, other in pairs):
        pairs = []
    gaps = [row.distance - other.distance for row, other in pairs]
    return gaps, cluster_numbers([row.task for row, _ in pairs])


def _list_disagreements(studies: Sequence[JudgeStudy]) -> list[Figures]:
    """Return where what counts differs from people, the largest distance first; unsupported findings count, too."""
    disagreements = []
    for study in studies:
        if study.is_compared_by_rank:
            continue
        for status, rows in (("judged", study.rows), ("unsupported", study.unsupported)):
            for row in rows:
                if row.prediction == row.target:
                    continue
                response, *others = split_pair_name(row.response)
                question = study.judge.question
                command = ["jurygraph", "show", study.judge.run, "--response", response]
                if not study.judge.is_reward_judge:
                    command += ["--verdict", question]
                distance = row.distance
                if study.has_binary_labels:  # of wrong decisions the most confident ones come first
                    distance = abs(row.score - row.target)
                disagreements.append(
                    {
                        "of": study.judge.name,
                        "response": response,
                        "question": question,
                        **({"other": others[0]} if others else {}),
                        "judge": row.prediction,
                        "people": row.target,
                        "score": row.score,
                        "distance": distance,
                        "status": status,
                        "show": shlex.join(command),
                    }
                )
    return sorted(
        disagreements, key=lambda row: (-row["distance"], row["response"], row["question"])
    )


def _sections(figures: Figures, need: float | None) -> ReportSections:
    judges = [{**judge, "judge": judge["name"]} for judge in figures["judges"]]
    rows = []
    judge_rows_with_baselines: list[Figures] = []
    for judge, constant, length in zip(judges, figures["constant"], figures["length"], strict=True):
        rows.append(judge)
        others = [
            {**constant, "n": judge["n"], "name": f"  always {round(constant['value'], 2):g}"},
            {**length, "name": "  length"},
        ]
        if others != judge_rows_with_baselines:  # judges of the same responses share these lines
            rows += others
            judge_rows_with_baselines = others
    measures = {"n": "n"}
    has_classes = any(judge["accuracy"] is not None for judge in judges)
    has_numbers = any(judge["distance"] is not None for judge in judges)
    if has_classes or not has_numbers:
        measures["accuracy"] = "accuracy"
    if has_numbers:
        measures["mean distance"] = "distance"
    measures["κ"] = "kappa"
    yield from _jury_tables(figures)
    yield ReportTable.of({"judge": "name"} | measures, rows, digits=3)
    columns = {"judge": "name", "TPR": "tpr", "TNR": "tnr"}
    yield ReportTable.of(columns, [row for row in rows if row["tpr"] or row["tnr"]], digits=3)
    columns = {"judge": "name"} | {name: name for name in ("tasks", *COUNT_FIELD_NAMES[1:])}
    yield ReportTable.of(columns, [row for row in rows if "judge" in row])
    yield from _confusion_tables(judges)
    columns = {
        "judge": "name",
        "rank correlation": "rank_correlation",
        "pairwise accuracy": "pairwise",
        "bias": "bias",
    }
    yield ReportTable.of(columns, rows, digits=3)
    columns = {"calibration of scores": "judge", "Brier": "brier", "ECE": "ece"}
    yield ReportTable.of(columns, [judge for judge in judges if judge["ece"] is not None])
    yield from _trait_tables(judges)
    mean_columns: dict[str, Any] = {
        "mean of all responses": "judge",
        "by the judge": "uncorrected",
        "PPI++ (95 %)": "corrected",
        "λ": "weight",
        "Rogan-Gladen (95 %)": "rogan_gladen",
    }
    if need is not None:
        mean_columns[f"labels for ±{need:g}"] = _describe_needed_label_count
    yield ReportTable.of(mean_columns, [judge for judge in judges if judge["scale"] != "ranks"])
    yield from _ceiling_sections(figures["ceiling"])
    columns = {
        "pairs in both orders": "judge",
        "as people in both (95 %)": "strict",
        "flip with the order (95 %)": "flips",
    }
    yield ReportTable.of(columns, [judge for judge in judges if judge["flips"] is not None])
    columns = {
        "judge": "first",
        "other": "second",
        "n": "n",
        "farther from people by (95 %)": "difference",
        "p (Holm)": "p",
    }
    yield ReportTable.of(columns, figures["differences"], left=2, most=_MAX_PAIRS_LISTED)
    columns = {"disagreement": "show", "of": "of", "judge": "judge", "people": "people"}
    if any(row["status"] == "unsupported" for row in figures["disagreements"]):
        columns["the judge's finding"] = "status"
    yield ReportTable.of(
        columns, figures["disagreements"], left=2, digits=2, most=_MAX_DISAGREEMENTS_LISTED
    )


def _jury_tables(figures: Figures) -> Iterator[ReportTable]:
    """Yield what smaller juries would give over all questions."""
    columns: Columns = {
        "all questions of": "name",
        "judges": _describe_smaller_jury,
        "answers": "answers",
        "undecided": "undecided",
        "share met": "score",
        "labels": "labels",
        "accuracy (met or not)": "accuracy",
        "farther from people (95 %)": "farther",
        "$ per 1,000 responses": "cost_per_1000",
    }
    rows = _rows_with_display_names(figures.get("jury_parts", []), "evaluator")
    yield ReportTable.of(columns, rows, left=2)


def _describe_smaller_jury(row: Figures) -> str:
    if row["alone"] is not None:
        return f"{row['alone']} alone"
    if row["without"] is None:
        return str(row["jury"])
    name = f"without {row['without']}"
    ties = describe_ties(row)
    return f"{name} ({ties})" if ties else name


def _ceiling_sections(ceiling_by_judge: FigureRows) -> ReportSections:
    """Yield how often two people agree, or by how much they differ; judges of the same responses share a line."""
    ceilings = {str(row): row for row in ceiling_by_judge if row is not None}.values()
    shares = [
        [row["question"], row, row.get("judge"), row.get("judge_share")]
        for row in ceilings
        if row["value"] is not None
    ]
    yield ReportTable(
        ("people agree on", "share (95 %)", "and one of them with", "share (95 %)"), shares
    )
    columns: Columns = {
        "two people differ on": "question",
        "by a mean distance of (95 %)": "distance",
        "and from one of them": "judge",
        "differs by (95 %)": "judge_distance",
    }
    distances = [row for row in ceilings if row["distance"]]
    yield ReportTable.of(columns, distances, left=1)
    if distances:
        yield "compare these two distances: the mean distance above is from the mean of several people, which is nearer"


def _confusion_tables(judges: FigureRows) -> Iterator[ReportTable]:
    """Yield how often the judge says what where people say what, with both base rates; one table for equal levels.

    Means between grades are left out: a row for each would tell of a response or two.
    """
    tables: dict[tuple[float, ...], list[list[object]]] = defaultdict(list)
    for judge in judges:
        confusion = judge["confusion"]
        if confusion is None or not judge["n"]:
            continue
        levels = confusion["levels"]
        rows = tables[tuple(levels)]
        for level, counts in zip(levels, confusion["counts"], strict=True):
            n = sum(counts)
            if level.is_integer() or levels[-1] <= 1.0:
                rows.append([judge["judge"], f"{level:g}", n, n / judge["n"], *counts])
        columns = zip(*confusion["counts"], strict=True)
        shares = [sum(column) / judge["n"] for column in columns]
        rows.append(["  share of its answers", "", judge["n"], None, *shares])
    for table_levels, rows in tables.items():
        answers = [f"judge says {level:g}" for level in table_levels]
        label_heading = "people say (no fractions)" if table_levels[-1] > 1.0 else "people say"
        header = ("confusions", label_heading, "n", "share", *answers)
        yield ReportTable(header, rows, left=2, digits=3, most=_MAX_PAIRS_LISTED)


def _trait_tables(judges: FigureRows) -> Iterator[ReportTable]:
    """Yield accuracy, and distance, by agent, domain and length."""
    parts = [{"judge": judge["judge"], **part} for judge in judges for part in judge["parts"]]
    for measure in ("accuracy", "distance"):
        columns = {
            f"{measure} by": "by",
            "": "name",
            "of the judge": "judge",
            "n": "n",
            "tasks": "tasks",
            f"{measure} (95 %)": measure,
        }
        measured_parts = [part for part in parts if part[measure] is not None]
        yield ReportTable.of(columns, measured_parts, left=3, digits=3, most=_MAX_PARTS_LISTED)


def _describe_needed_label_count(judge: Figures) -> object:
    """Return the number of labels that are needed; None where these labels cannot tell."""
    has_corrected_interval = judge["corrected"] is not None and judge["corrected"].low is not None
    if judge["labels_needed"] is None and has_corrected_interval:
        return f"not even all {judge['items']}"
    return judge["labels_needed"]


def describe_left_out_labels(judges: FigureRows) -> Iterator[str]:
    """Yield how many labels were compared with each judge, and why others were not, where some were not."""
    for judge in judges:
        reasons = {name: judge[name] for name in COUNT_FIELD_NAMES[1:]} | judge["left_out"]
        omitted_texts = [f"{count} {reason}" for reason, count in reasons.items() if count]
        if omitted_texts:
            labelled_count = judge["n"] + sum(reasons.values())
            count_text = " + ".join([f"{judge['n']} compared", *omitted_texts])
            yield f"{judge['name']}: of the labelled, {labelled_count} = {count_text}"


_SHARES_EFFECT_BY_SCALE = {
    "binary": "taken as shares of people: above 0.5 as 1, below as 0, and 0.5 as a tie, left out",
    "ordered": (
        "so that all labels are compared with its score as numbers, and none with its decision (no accuracy, TPR and "
        "TNR); leave these out to have them"
    ),
}


def _notes(judges: FigureRows, tasks: int) -> Iterator[str]:
    for judge in judges:
        if judge["scale"] == "ranks":
            low, high = judge["label_range"]
            yield (
                f"{judge['name']}: labels go from {low:g} to {high:g}, and its scores have another "
                "scale; only their order is compared, by Spearman's rank correlation"
            )
        elif judge["shares"]:
            effect = _SHARES_EFFECT_BY_SCALE[judge["scale"]]
            yield f"{judge['name']}: labels between 0 and 1: {judge['shares']}, {effect}"
    reasons = {judge["alternative_annotator"].why.partition(";")[0] for judge in judges}
    if "" not in reasons:
        reason = "; ".join(sorted(reasons))
        yield f"whether a judge is as near to people as a person is was not tested: {reason}"
    faults = dict.fromkeys(judge["question"] for judge in judges if judge["is_turned"])
    if faults:
        yield (
            f"compared turned round (1 - value), as no label names the fault {join_names(faults)}; if they are of it, "
            f"say so: --question {shlex.quote(next(iter(faults)))}"
        )
    judges_with_few_tasks = [judge for judge in judges if judge["tasks"] < _FEW_TASKS_THRESHOLD]
    if judges_with_few_tasks:
        fewest = min(judges_with_few_tasks, key=itemgetter("tasks"))
        part = f" (of {fewest['name']}: {fewest['tasks']})" if fewest["tasks"] < tasks else ""
        yield f"tasks compared: {tasks}{part}; with fewer than {_FEW_TASKS_THRESHOLD}, intervals are rough"
