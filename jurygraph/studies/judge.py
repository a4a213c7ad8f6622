"""Judges compared with people: judgements of runs and labels of people, joined by response and question.

Several samples of a judge are one judgement, and several labels of a response are one target; what each person labelled
stays beside it. The figures are those of `judge_report`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from jurygraph.aggregation import consensus
from jurygraph.errors import InputError
from jurygraph.messages import quote, suggest_known_name
from jurygraph.runs.export_table import ExportRow
from jurygraph.schema.rating import JudgedLabel
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.sources.file_rows import FileRows
from jurygraph.sources.label_words import (
    LABEL_FIELDS,
    TARGET_VALUE_HINT,
    LabelChoice,
    fold_classes,
    parse_classes,
)
from jurygraph.sources.people import EVERYBODY, PeopleChoice, leave_out_raters
from jurygraph.sources.ratings import (
    NO_LABEL_DESCRIPTION,
    PlacedLabel,
    parse_target_cell,
    read_judged_labels,
)
from jurygraph.sources.table_rows import read_rows
from jurygraph.sources.task_tables import is_table
from jurygraph.studies.judgements import (
    UNDECIDED_STATUSES,
    UNIT_SCALE,
    UNSUPPORTED_STATUS,
    Judge,
    Judgement,
    Judgements,
    LabelScale,
    LabelsWithPositions,
    RunJudgements,
    Traits,
    find_judgements_of_question,
    find_questions_by_name,
    pair_name,
    question_of_target_column,
    refuse_unknown_responses,
    resolve_label_questions,
    split_pair_name,
)
from jurygraph.studies.pairs import has_order_flip
from jurygraph.studies.report import group_by

_LABEL_COLUMN_PREFIX = "label."
_MAX_CLASS_STEPS = 10.0
"""Longest scale whose whole numbers are classes, that a judge can be expected to hit: 0 to 10."""
_UNNAMED_REVIEWER = "unnamed"


class LabelledJudgement(NamedTuple):
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

    @property
    def distance(self) -> float:
        """Return how far the judge is from people."""
        return abs(self.prediction - self.target)


class PersonLabel(NamedTuple):
    """The label that a named person gave a response, and what the judge predicts, or what counts without its judgement;
    both in units of the target."""

    response: str
    task: str
    person: str
    label: float
    prediction: float


@dataclass(frozen=True)
class JudgeStudy:
    """A judge compared with people.

    Attributes:
        has_binary_labels: whether targets are 0 or 1 and predictions the judge's decisions; else both are on a scale.
        is_compared_by_rank: whether targets and predictions are on different scales, so that only their order can be
            compared.
        rows: labelled and judged responses.
        others: task, and prediction, of judged responses without a label, or with a tie.
        left_out: number of labelled responses that are not rows, by reason.
        unsupported: those of them whose finding has no quotation, with what counts for it, the worst case.
        undecided: those of them that a jury left undecided, with what counts for that.
        is_fault: whether the judge finds a fault, and the labels are of something else, such as the outcome.
        lengths: characters of the labelled responses, where their text is stored.
        votes: for each judged response that several people labelled, its task and their labels.
        scale: the lowest and the highest target.
        flips: task, and whether the orders differ, of each pair that was judged in both.
        person_labels: the label of each named person, for responses that were judged.
        traits: names of responses by what they are of: their `agent`, and the `domain` of their task.
        shares: number of labels between 0 and 1 on such a scale, which are shares of people if the judge decides.
        ceiling: how often a person is expected to give the true label, by the consensus of all; None without one.
    """

    judge: Judge
    has_binary_labels: bool
    rows: Sequence[LabelledJudgement]
    others: Sequence[tuple[str, float]] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    votes: Sequence[tuple[str, Sequence[float]]] = ()
    scale: LabelScale = UNIT_SCALE
    flips: Sequence[tuple[str, bool]] = ()
    ceiling: float | None = None
    shares: int = 0
    person_labels: Sequence[PersonLabel] = ()
    traits: Traits = field(default_factory=dict)
    is_compared_by_rank: bool = False
    unsupported: Sequence[LabelledJudgement] = ()
    undecided: Sequence[LabelledJudgement] = ()
    is_fault: bool = False

    @property
    def span(self) -> float:
        """Return the greatest distance of two values of the scale."""
        lowest, highest = self.scale
        return highest - lowest

    def turn_fault(self) -> "JudgeStudy":
        """Return the study of how far a fault is absent, where labels are not of it: values from the other end of the
        scale."""
        if not self.is_fault:
            return self
        ends = sum(self.scale)

        def turn(rows: Sequence[LabelledJudgement]) -> list[LabelledJudgement]:
            return [
                row._replace(prediction=ends - row.prediction, score=1.0 - row.score)
                for row in rows
            ]

        return replace(
            self,
            rows=turn(self.rows),
            unsupported=turn(self.unsupported),
            undecided=turn(self.undecided),
            others=[(task, ends - prediction) for task, prediction in self.others],
            person_labels=[
                row._replace(prediction=ends - row.prediction) for row in self.person_labels
            ],
        )

    @property
    def has_pairs(self) -> bool:
        return any(len(split_pair_name(row.response)) > 1 for row in self.rows[:1])

    @cached_property
    def has_numbers(self) -> bool:
        """Return whether labels are numbers on a scale, so that a judge is near to them rather than right."""
        return not (self.has_binary_labels or self.has_pairs)

    @cached_property
    def has_classes(self) -> bool:
        """Return whether a judge can be right: labels and predictions are decisions, choices or grades.

        Fractions, such as probabilities and the means of several people's grades, are equal by chance alone.
        """
        if not self.has_numbers:
            return True
        return self.span <= _MAX_CLASS_STEPS and all(
            row.target.is_integer() and row.prediction.is_integer() for row in self.rows
        )

    def scale_target_to_unit(self, target: float) -> float:
        """Return the place of a target between both ends of the scale, in [0, 1]."""
        return (target - self.scale[0]) / self.span


def read_labels(
    sources: Sequence[str],
    runs: Sequence[RunJudgements],
    columns: Mapping[str, str] = {},
    options: Mapping[str, str] = {},
    question: str | None = None,
    classes: Sequence[str] | None = None,
    people: PeopleChoice = EVERYBODY,
) -> FileRows[JudgedLabel]:
    """Return the labels in files, or those that `label.NAME` names of the runs' responses, as if a file had them.

    `columns`, `options` and `people` are those of `read_judged_labels`. Where labels of a file name the `question`,
    those of others are left out. With `classes`, words of all questions, or of one, labels are these (`parse_classes`).

    Raises `InputError` for a file that cannot be read, or is named twice, if files have different labels, if no
    response has such a label, if runs have different ones for a response, if one is neither a number nor true or
    false, or for classes of a question that no label is of.
    """
    source, *others = sources
    if others or not source.startswith(_LABEL_COLUMN_PREFIX) or is_table(source):
        paths = list(map(Path, sources))  # `label.csv` is a file
        names = [name for run in runs for name in run.response_by_name.items()]
        reviewers = {judge.reviewer or "" for run in runs for judge in run.judgements_by_judge}
        choice = _make_label_choice(paths, runs, question or "", classes)
        return read_judged_labels(
            paths, columns, options, dict(names), choice, replace(people, spellings=reviewers)
        )
    for field_name in columns:
        option = options.get(field_name, "columns")
        raise InputError(f"{option}: is for a file of labels, and {source} is a label of the runs")
    name = source.removeprefix(_LABEL_COLUMN_PREFIX)
    by_response: dict[str, tuple[str, JudgedLabel]] = {}
    responses_without_label = set()
    for run in runs:
        for response, labels in run.labels.items():
            target = labels.get(name)
            where = f"{run.run}: label {quote(name)} of response {quote(response)} is {quote(str(target))}"
            if target is None:
                continue
            value = parse_target_cell(target) if isinstance(target, str) else target
            if value is None:  # an empty cell of a table, or a word such as n/a
                responses_without_label.add(response)
                continue
            if not isinstance(value, bool | int | float):
                raise InputError(f"{where}; {TARGET_VALUE_HINT}")
            label = JudgedLabel(
                id=response, target=value if isinstance(value, bool) else float(value)
            )
            if by_response.setdefault(response, (f"response {response}", label))[1] != label:
                raise InputError(
                    f"{where}, and another run has {by_response[response][1].target}; give one as a file"
                )
    if not by_response:
        raise _make_no_label_error(name, runs, is_label_empty=bool(responses_without_label))
    column_by_field = {"id": "id", "target": source}
    count = len(responses_without_label - by_response.keys())
    file = FileRows(runs[0].run, tuple(by_response.values()), column_by_field, empty=count)
    leave_out_raters([file], "reviewer", people.without)  # raises: labels of runs have no reviewers
    return file


def _make_label_choice(
    paths: Sequence[Path],
    runs: Sequence[RunJudgements],
    question: str,
    classes: Sequence[str] | None,
) -> LabelChoice:
    """Return which labels in files are read; names of a question are known by its id where they are of one alone."""
    chosen_names = _label_names_of_question(paths, runs, question)
    ids = {judge.question.casefold() for run in runs for judge in run.judgements_by_judge}

    @cache  # called for each label
    def identify(name: str) -> str:
        matches = find_questions_by_name(name.casefold(), ids)
        return matches[0] if len(matches) == 1 else name.casefold()

    return LabelChoice(
        lambda name: not chosen_names or name in chosen_names,
        fold_classes(parse_classes(classes), identify),
        identify=identify,
    )


def _label_names_of_question(
    paths: Sequence[Path], runs: Sequence[RunJudgements], question: str
) -> set[str]:
    """Return the names by which labels in files name a question; none where they have others, or no names."""
    ids = {judge.question for run in runs for judge in run.judgements_by_judge}
    chosen_ids = find_questions_by_name(question, ids)
    if not chosen_ids:
        return set()
    rows = chain.from_iterable(map(read_rows, paths))
    names = {str(row.get("question") or row.get("dimension")) for _, row in rows}
    return {name for name in names if {*chosen_ids} <= {*find_questions_by_name(name, ids)}}


def add_mean_labels(
    rows: dict[str, ExportRow], labels: FileRows[JudgedLabel], run: RunJudgements
) -> None:
    """Add the mean of people's labels of each question, as `people.QUESTION`, to the rows of responses, by their ids.

    Labels that name no question are of what their column is called by, or, where that says nothing, of the only one of
    the run. `judge.QUESTION` is what the question's judge gives in the units of its scale, or its score without one; of
    a jury, what all give together. Labels that are words are spread over that scale. A label by a reviewer whom the
    run's questions are about is also that of these questions, which nobody else's are of.

    Raises `InputError` for labels of an unknown response.
    """
    refuse_unknown_responses([run], labels, labels.rows)
    column = labels.columns.get("target", "label")
    questions = {judge.question for judge in run.judgements_by_judge if not judge.is_reward_judge}
    if column in LABEL_FIELDS and len(questions) == 1:
        column = questions.pop()
    reviewers = {
        judge.question: judge.reviewer
        for judge in run.judgements_by_judge
        if judge.reviewer is not None
    }
    labels_by_question = group_by(labels.rows, lambda row: row[1].question or column)
    for question, named_labels in labels_by_question.items():
        # of a dimension that several reviewers are asked about, no one judge is of all
        is_of_several = len(find_questions_by_name(question, reviewers)) > 1
        judgements = {} if is_of_several else find_judgements_of_question(run, question)
        only_reviewer = reviewers.get(question)
        question_labels = [
            row for row in named_labels if only_reviewer in (None, row[1].reviewer or only_reviewer)
        ]
        targets = defaultdict(list)
        scale = _find_scale(judgements)
        for _, label in _spread_classes(question_labels, scale) if judgements else question_labels:
            targets[label.id].append(label.target)
        for response, values in targets.items():
            row = rows.setdefault(response, {})
            row[f"people.{question}"] = fmean(values)
            judgement = judgements.get(response)
            if judgement is not None and judgement.score is not None:
                row[f"judge.{question}"] = _prediction_of_judgement(judgement, False)
    for judge in run.judgements_by_judge:
        for _, label in labels.rows if judge.reviewer is not None else ():
            is_of_question = label.question is None or f"/{label.question}@" in judge.question
            if label.reviewer == judge.reviewer and is_of_question:
                rows.setdefault(label.id, {})[f"people.{judge.question}"] = float(label.target)


def _make_no_label_error(
    name: str, runs: Sequence[RunJudgements], is_label_empty: bool
) -> InputError:
    run_names = ", ".join(run.run for run in runs)
    if is_label_empty:
        return InputError(
            f"{run_names}: label {quote(name)} is empty in every response; fill in one at least"
        )
    label_names = dict.fromkeys(
        label for run in runs for labels in run.labels.values() for label in labels
    )
    hint = suggest_known_name(name, label_names)
    return InputError(f"{run_names}: no response has the label {quote(name)}; {hint}")


def unnamed_question_note(
    labels: FileRows[JudgedLabel], studies: Sequence[JudgeStudy], question: str | None
) -> str | None:
    """Return a note where labels that name no question are compared with several; None elsewhere."""
    questions = {study.judge.question for study in studies if study.judge.reviewer is None}
    if question or len(questions) < 2 or any(label.question for _, label in labels.rows):
        return None
    return f"no label names a question: each is compared with all {len(questions)}; choose one with --question"


def unpredicted_label_notes(
    runs: Sequence[RunJudgements], labels: FileRows[JudgedLabel]
) -> Iterator[str]:
    """Yield notes on labels that no judge is compared with, since it predicts other reviewers than who gave them."""
    reviewers = {
        judge.question: judge.reviewer
        for run in runs
        for judge in run.judgements_by_judge
        if judge.evaluator
    }
    counts = Counter[str]()
    of_others = 0
    for _, label in labels.rows:
        reviewer = label.reviewer or ""
        counts[reviewer] += 1
        of_others += reviewer not in ("", reviewers.get(label.question or "") or reviewer)
    if of_others:
        yield (
            f"{of_others} of {len(labels.rows)} labels are left out: their question predicts another reviewer than "
            "the one who gave them"
        )
    names = list(filter(None, reviewers.values()))
    for name in counts if len(names) == len(reviewers) else ():
        if name not in ("", *names):
            hint = suggest_known_name(name, names)
            yield f"no judge predicts reviewer {quote(name)}, of {counts[name]} labels; {hint}"


def unlabelled_row_notes(labels: FileRows[JudgedLabel]) -> list[str]:
    """Return what to say of the rows, or cells, that were left out because they have no label; nothing if none was."""
    total = labels.empty + len(labels.rows)
    empty_text = (
        f"{labels.empty} of {total} labels are missing ({NO_LABEL_DESCRIPTION}) and are left out"
    )
    return [empty_text] if labels.empty else []


def join_labels_with_judgements(
    runs: Sequence[RunJudgements],
    labels: FileRows[JudgedLabel],
    split: str | None = None,
    should_fit_consensus: bool = False,
    question: str | None = None,
) -> list[JudgeStudy]:
    """Return each judge of the runs with the labels, in the order of the runs and their questions.

    A label without `question` is of the argument `question`, or of the question that its column is called by; without
    both, it is of the response as a whole, and every question is compared with it. The last part of a question's id is
    enough where one question about the response has it; `reward` is the reward of a run. Labels on another scale than
    the judge's are compared by their order. A fault `is_fault` in its study where no label, nor `question`, names it.

    A judge for a reviewer is compared with the labels of that reviewer, if labels have reviewers. Several labels of a
    response become their mean, or, for true and false, the majority's; where those tie, the response is counted, and
    has no label. Those of a pair become what most say, else a tie. With `should_fit_consensus` they become the
    likeliest class under their consensus (STABLEVAL, Algorithm 1).

    Raises `InputError` for an unknown response, an unknown or ambiguous question, a `question` without effect, no
    label of `split`, no judge with a label, a target off the judge's scale, or too few labels for a consensus.
    """
    chosen: LabelsWithPositions = [
        (position, label)
        for position, label in labels.rows
        if split is None or label.split == split
    ]
    if not chosen:
        raise InputError(
            f"{labels.path}: has no label with split {quote(split or '')}; name one that is there"
        )
    refuse_unknown_responses(runs, labels, chosen)
    if question is None:
        question = question_of_target_column(runs, labels, chosen)
    chosen = resolve_label_questions(runs, labels, chosen, question)
    studies = []
    for run in runs:
        for judge, judgements in run.judgements_by_judge.items():
            is_pair_judgement = len(split_pair_name(next(iter(judgements)))) == 2
            matching_labels = [
                (position, label)
                for position, label in chosen
                if (label.question or judge.question) == judge.question
                and not (judge.is_reward_judge and label.question is None)
                and (label.other is not None) == is_pair_judgement
                and (judge.reviewer is None or label.reviewer in (None, judge.reviewer))
            ]
            if matching_labels:
                study = _join_judge_labels(
                    run, judge, judgements, labels, matching_labels, should_fit_consensus
                )
                if all(label.question is None for _, label in matching_labels):
                    directions = {
                        row.is_fault for row in judgements.values() if row.score is not None
                    }
                    study = replace(study, is_fault=directions == {True})
                studies.append(study)
    if not studies:
        raise InputError(
            f"{labels.path}: no judge is of a reviewer who gave a label; name the reviewers as the "
            "runs do, and pairs by `id` and `other`"
        )
    return studies


def _has_label_scale_mismatch(
    scores: Sequence[float], targets: Sequence[float], scale: LabelScale
) -> bool:
    """Return whether labels and judge are on different scales, so that only their order can be compared.

    Several values off the judge's scale make a scale of their own; a single one may be a slip. Rewards may be off the
    unit interval, on which decisions are.
    """
    low, high = scale
    if len({target for target in targets if not low <= target <= high}) > 1:
        return True
    return scale == UNIT_SCALE and any(not 0.0 <= score <= 1.0 for score in scores)


def _is_binary_decision(
    scores: Sequence[float], targets: Sequence[float], scale: LabelScale
) -> bool:
    """Return whether labels and judge decide between two values.

    A label between 0 and 1 is, for a judge that gives nothing else than 0 and 1, a share of people, or a tie.
    """
    if all(isinstance(target, bool) for target in targets):
        return True
    if scale != UNIT_SCALE or not all(0.0 <= target <= 1.0 for target in targets):
        return False
    return all(value in UNIT_SCALE for value in scores) or all(
        value in UNIT_SCALE for value in targets
    )


def _join_judge_labels(
    run: RunJudgements,
    judge: Judge,
    judgements: Judgements,
    labels: FileRows[JudgedLabel],
    matching_labels: LabelsWithPositions,
    should_fit_consensus: bool,
) -> JudgeStudy:
    scale = _find_scale(judgements)
    is_pair_judgement = matching_labels[0][1].other is not None
    matching_labels = _spread_classes(matching_labels, scale)
    label_values = [label.target for _, label in matching_labels]
    scores = [judged.score for judged in judgements.values() if judged.score is not None]
    has_binary_labels = not is_pair_judgement and _is_binary_decision(scores, label_values, scale)
    low, high = UNIT_SCALE if has_binary_labels else scale
    is_compared_by_rank = not is_pair_judgement and _has_label_scale_mismatch(
        scores, label_values, (low, high)
    )
    if is_compared_by_rank:
        has_binary_labels = False
        low, high = float(min(label_values)), float(max(label_values))
    targets = defaultdict(list)
    votes_cast = []
    for position, label in matching_labels:
        if not low <= label.target <= high:
            location = f"{labels.path}, {position}, field {labels.columns.get('target', 'target')}"
            raise InputError(
                f"{location}: is {label.target:g}; {quote(judge.question)} goes from {low:g} to {high:g}"
            )
        name, target = _match_label_to_judgement(label, judgements)
        targets[name].append(target)
        votes_cast.append((name, label.reviewer or _UNNAMED_REVIEWER, target))
    answered = {
        name: judgement
        for name, judgement in judgements.items()
        if (judgement.value if has_binary_labels else judgement.score) is not None
    }
    likeliest_label_by_item, ceiling = (
        _fit_consensus(votes_cast) if should_fit_consensus else ({}, None)
    )
    left_out = Counter[str]()
    rows = []
    counted_rows = defaultdict(list)
    for response, values in targets.items():
        target = likeliest_label_by_item.get(
            response, _majority_pair_value(values) if is_pair_judgement else fmean(values)
        )
        judgement = judgements.get(response)
        if has_binary_labels and target == MET_THRESHOLD:
            left_out["tied"] += 1
            continue
        if has_binary_labels:
            target = float(target > MET_THRESHOLD)
        if judgement is None or judgement.score is None:
            left_out[_why_left_out(response, judgement, run)] += 1
            if judgement is not None and judgement.counted is not None:
                counted_value = low + judgement.counted * (high - low)
                if has_binary_labels:
                    counted_value = float(judgement.counts_as_met)
                counted_rows[judgement.status].append(
                    LabelledJudgement(
                        response, judgement.task, target, counted_value, judgement.counted
                    )
                )
        else:
            prediction = _prediction_of_judgement(judgement, has_binary_labels)
            rows.append(
                LabelledJudgement(
                    response, judgement.task, target, prediction, judgement.score, judgement.choices
                )
            )
    compared_responses = {row.response for row in rows}
    other_predictions = [
        (judged.task, _prediction_of_judgement(judged, has_binary_labels))
        for response, judged in judgements.items()
        if response not in compared_responses and judged.score is not None
    ]
    lengths = {name: _response_length(name, run.lengths) for name in targets}
    person_labels = _person_labels(votes_cast, answered, has_binary_labels)
    return JudgeStudy(
        judge,
        has_binary_labels,
        rows,
        others=other_predictions,
        left_out=left_out,
        lengths={name: length for name, length in lengths.items() if length is not None},
        votes=[
            (answered[name].task, values)
            for name, values in targets.items()
            if len(values) > 1 and name in answered
        ],
        scale=(low, high),
        flips=[
            (judged.task, has_order_flip(judged.choices))
            for judged in judgements.values()
            if judged.choices
        ],
        ceiling=ceiling,
        shares=0
        if is_pair_judgement or (low, high) != UNIT_SCALE
        else sum(0.0 < value < 1.0 for value in label_values),
        person_labels=[] if is_compared_by_rank else person_labels,
        traits=run.traits,
        is_compared_by_rank=is_compared_by_rank,
        unsupported=counted_rows[UNSUPPORTED_STATUS],
        undecided=[row for status in UNDECIDED_STATUSES for row in counted_rows[status]],
    )


def _find_scale(judgements: Judgements) -> LabelScale:
    scales = [judged.scale for judged in judgements.values() if judged.native is not None]
    return next(iter(scales), None) or UNIT_SCALE


def _spread_classes(labels: LabelsWithPositions, scale: LabelScale) -> LabelsWithPositions:
    """Return labels that are places of classes evenly on a scale, from its lowest to its highest value; others as they
    are."""
    low, high = scale
    spread_labels = []
    for position, label in labels:
        if isinstance(label, PlacedLabel) and label.class_count > 1:
            target = low + label.target * (high - low) / (label.class_count - 1)
            label = label.model_copy(update={"target": target})
        spread_labels.append((position, label))
    return spread_labels


def _why_left_out(response: str, judgement: Judgement | None, run: RunJudgements) -> str:
    """Return why a labelled response, or pair, has no row.

    A response of the run that a judge never got, such as the last one of an escalation, is no gap in its judgements.
    """
    if judgement is not None:
        return judgement.status
    has_all_responses = all(name in run.lengths for name in split_pair_name(response))
    return "not asked" if has_all_responses else "missing"


def _person_labels(
    votes: Sequence[tuple[str, str, float]],
    judgements: Judgements,
    has_binary_labels: bool,
) -> list[PersonLabel]:
    """Return what each named person said of the judged responses; several labels of a person are their mean."""
    labels_by_response_and_person = defaultdict(list)
    for response, person, label in votes:
        if person != _UNNAMED_REVIEWER and response in judgements:
            labels_by_response_and_person[response, person].append(label)
    rows = []
    for (response, person), labels in labels_by_response_and_person.items():
        judgement = judgements[response]
        label = fmean(labels)
        if has_binary_labels and label != MET_THRESHOLD:
            label = float(label > MET_THRESHOLD)
        prediction = _prediction_of_judgement(judgement, has_binary_labels)
        rows.append(PersonLabel(response, judgement.task, person, label, prediction))
    return rows


def _match_label_to_judgement(label: JudgedLabel, judgements: Judgements) -> tuple[str, float]:
    """Return the name of what a label is of, as the judge has it, and its target from that side."""
    target = float(label.target)
    if label.other is None:
        return label.id, target
    swapped_name = pair_name(label.other, label.id)
    if swapped_name in judgements:
        return swapped_name, 1.0 - target
    return pair_name(label.id, label.other), target


def _majority_pair_value(values: Sequence[float]) -> float:
    """Return what most people say of a pair, else a tie."""
    ((value, votes),) = Counter(values).most_common(1)
    return value if 2 * votes > len(values) else 0.5


def _response_length(name: str, lengths: Mapping[str, int | None]) -> int | None:
    """Return the characters of a response; of a pair, how many more the first has."""
    first, *others = map(lengths.get, split_pair_name(name))
    if first is None or None in others:
        return None
    return first - sum(filter(None, others))


def _fit_consensus(votes: Sequence[tuple[str, str, float]]) -> tuple[dict[str, float], float]:
    """Return the likeliest class of each item, and how often a person is expected to give the true one.

    `votes` have an item, a reviewer and a label. Raises InputError where there are too few of them.
    """
    items, reviewers, values = zip(*votes, strict=True)
    fitted_consensus = consensus.fit(items, reviewers, values)
    reason = consensus.too_small(fitted_consensus.votes)
    if reason is not None:
        remedy = "name who gave each label in `reviewer`"
        if len(set(reviewers)) > 1:
            remedy = "get more labels"
        raise InputError(
            f"--consensus: {reason}; {remedy}, or leave --consensus out: the majority of people, or their mean on a "
            "scale, is then the label; `jurygraph consensus … --labels-out F` writes one of each item for --labels F"
        )
    classes = fitted_consensus.votes.classes
    likeliest_label_by_item = {
        str(item): float(classes[row.argmax()])
        for item, row in zip(fitted_consensus.items, fitted_consensus.posterior, strict=True)
    }
    expected_accuracy = (
        fitted_consensus.confusion.diagonal(axis1=1, axis2=2) @ fitted_consensus.prior
    )
    return likeliest_label_by_item, float(expected_accuracy.mean())


def _prediction_of_judgement(judgement: Judgement, has_binary_labels: bool) -> float:
    chosen = judgement.decision if has_binary_labels else judgement.native
    value = judgement.value if chosen is None else chosen
    assert value is not None, "only what counts has a prediction"
    return value
