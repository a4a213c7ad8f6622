"""The judgements of runs, and the labels of people, joined by response and question."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean, quote
from jurygraph.runs.run import Run
from jurygraph.runs.tables import own_verdicts
from jurygraph.schema import RecordedVerdict, Trace
from jurygraph.schema.rating import JudgedLabel
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.sources.ratings import FileRows, read_judged_labels

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
    """A judge's view of one response: `status` is `judged`, or the reason why there is no score."""

    task: str
    status: str
    score: float | None = None
    decision: float | None = None
    native: float | None = None
    scale: tuple[float, float] | None = None


class JudgedRow(NamedTuple):
    """A labelled response with what the judge said of it.

    `prediction` is in the units of the target: the decision, 0 or 1, or a number on the scale. `score` is in [0, 1].
    """

    response: str
    task: str
    target: float
    prediction: float
    score: float


@dataclass(frozen=True)
class JudgeStudy:
    """A judge beside people.

    Attributes:
        judge: who judged.
        is_binary: whether targets are 0 or 1 and predictions the judge's decisions; else both are on a scale.
        rows: labelled and judged responses.
        others: task, and prediction, of judged responses without a label.
        left_out: number of labelled responses that are not rows, by reason.
        lengths: characters of the labelled responses, where their text is stored.
        votes: for each response that several people labelled, its task and their labels.
        scale: the lowest and the highest target.
    """

    judge: Judge
    is_binary: bool
    rows: Sequence[JudgedRow]
    others: Sequence[tuple[str, float]] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    votes: Sequence[tuple[str, Sequence[float]]] = ()
    scale: tuple[float, float] = _UNIT

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


def read_judgements(run: Run, advance: Callable[[int], None] = lambda tasks: None) -> RunJudgements:
    """Return the judgements of a run's single responses; `advance` is called with 1 for each task.

    Several samples of a judge are one judgement, by their mean. Verdicts on pairs and on variants are not read.

    Raises:
        TraceMismatch: a record of the run has been changed.
    """
    by_judge: dict[Judge, dict[str, Judgement]] = {}
    lengths: dict[str, int | None] = {}
    labels: dict[str, Mapping[str, object]] = {}
    for group in run.group_records():
        for trace, response in run.group(group):
            lengths[trace.response_id] = None if response is None else len(response.text)
            labels[trace.response_id] = trace.labels
            for judge, verdicts in _verdicts_by_judge(str(run.folder), trace).items():
                by_judge.setdefault(judge, {})[trace.response_id] = _summarize(trace.task_id, verdicts)
        advance(1)
    _share_unasked(by_judge)
    return RunJudgements(str(run.folder), by_judge, lengths, labels)


def _verdicts_by_judge(run: str, trace: Trace) -> dict[Judge, list[RecordedVerdict]]:
    models = {call.id: call.model for call in trace.calls}
    found: dict[Judge, list[RecordedVerdict]] = {}
    for one in own_verdicts(trace):
        if one.responses in ((), (trace.response_id,)):
            # A failed verdict has no call of its own, but those that were tried.
            used = [models[call] for call in (one.call, *(use.id for use in one.calls)) if call in models]
            name = one.judge or (used[0] if used else None)
            judge = Judge(run, one.question, one.evaluator, name, one.reviewer)
            found.setdefault(judge, []).append(one)
    return found


def _share_unasked(by_judge: dict[Judge, dict[str, Judgement]]) -> None:
    """Give judgements for which no model was asked, such as those by a gate, to every model of the question."""
    for judge in [one for one in by_judge if one.model is None]:
        models = [one for one in by_judge if one.model is not None and one._replace(model=None) == judge]
        if models:
            unasked = by_judge.pop(judge)
            for one in models:
                by_judge[one] = unasked | by_judge[one]


def _summarize(task: str, verdicts: Sequence[RecordedVerdict]) -> Judgement:
    judged = [one for one in verdicts if _status(one) == JUDGED]
    if not judged:
        return Judgement(task, _status(verdicts[0]))
    score = fmean(one.score for one in judged if one.score is not None)
    decided = [one.counts_as_met for one in judged]
    scale = judged[0].scale
    natives = [float(one.native) for one in judged if isinstance(one.native, int | float)]
    native = fmean(natives) if scale is not None and len(natives) == len(judged) else None
    return Judgement(task, JUDGED, score, float(fmean(decided) >= MET_THRESHOLD), native, scale)


def _status(verdict: RecordedVerdict) -> str:
    if verdict.gated_by is not None:
        return "gated"
    if verdict.status != "ok":
        return verdict.status
    return "unsupported" if verdict.is_worst_case else JUDGED


def read_labels(source: str, runs: Sequence[RunJudgements]) -> FileRows[JudgedLabel]:
    """Return the labels in a file, or those that `label.NAME` names of the runs' responses, as if a file had them.

    Raises `InputError` for a file that cannot be read, if no response has such a label, if runs have different ones for
    a response, or if one is neither a number nor true or false.
    """
    if not source.startswith(_LABEL_COLUMN):
        return read_judged_labels(source)
    name = source.removeprefix(_LABEL_COLUMN)
    found: dict[str, tuple[str, JudgedLabel]] = {}
    for run in runs:
        for response, labels in run.labels.items():
            target = labels.get(name)
            where = f"{run.run}: label {quote(name)} of response {quote(response)} is {quote(str(target))}"
            if target is None:
                continue
            if not isinstance(target, bool | int | float):
                raise InputError(f"{where}; a target is a number, true or false")
            label = JudgedLabel(id=response, target=target if isinstance(target, bool) else float(target))
            if found.setdefault(response, (f"response {response}", label))[1] != label:
                raise InputError(f"{where}, and another run has {found[response][1].target}; give one as a file")
    if not found:
        known = dict.fromkeys(label for run in runs for labels in run.labels.values() for label in labels)
        hint = did_you_mean(name, known) or f"there are {', '.join(known) or 'none'}"
        raise InputError(f"{', '.join(run.run for run in runs)}: no response has the label {quote(name)}; {hint}")
    return FileRows(runs[0].run, tuple(found.values()), {"id": "id", "target": source})


def join_labels(
    runs: Sequence[RunJudgements], labels: FileRows[JudgedLabel], split: str | None = None
) -> list[JudgeStudy]:
    """Return each judge of the runs beside the labels, in the order of the runs and their questions.

    A label without `question` is of the response as a whole, and every question is compared with it. A judge for a
    reviewer is compared with the labels of that reviewer, if labels have reviewers. Several labels of a response become
    their mean, or, for true and false, the majority's; where those tie, the response is left out and counted.

    Raises:
        InputError: an unknown response or question, no label of `split`, no judge with a label, or a target that is not
            on the judge's scale.
    """
    chosen = [(place, label) for place, label in labels.rows if split is None or label.split == split]
    if not chosen:
        raise InputError(f"{labels.path}: has no label with split {quote(split or '')}; name one that is there")
    _refuse_unknown(runs, labels, chosen)
    studies = []
    for run in runs:
        for judge, judgements in run.by_judge.items():
            own = [
                (place, label)
                for place, label in chosen
                if label.question in (None, judge.question)
                and (judge.reviewer is None or label.reviewer in (None, judge.reviewer))
            ]
            if own:
                studies.append(_join(run, judge, judgements, labels, own))
    if not studies:
        raise InputError(
            f"{labels.path}: no judge is of a reviewer who gave a label; name the reviewers as the runs do"
        )
    return studies


def _refuse_unknown(
    runs: Sequence[RunJudgements], labels: FileRows[JudgedLabel], chosen: Iterable[tuple[str, JudgedLabel]]
) -> None:
    responses = {response for run in runs for response in run.lengths}
    questions = {judge.question: None for run in runs for judge in run.by_judge}
    for place, label in chosen:
        for name, value, known in (("id", label.id, responses), ("question", label.question, questions)):
            if value is None or value in known:
                continue
            noun = "response" if name == "id" else "question"
            hint = did_you_mean(value, sorted(known)) or f"name a {noun} of {', '.join(run.run for run in runs)}"
            location = f"{labels.path}, {place}, field {labels.columns[name]}"
            raise InputError(f"{location}: there is no {noun} {quote(value)}; {hint}")


def _join(
    run: RunJudgements,
    judge: Judge,
    judgements: Mapping[str, Judgement],
    labels: FileRows[JudgedLabel],
    own: Sequence[tuple[str, JudgedLabel]],
) -> JudgeStudy:
    scale = next((one.scale for one in judgements.values() if one.native is not None), None) or _UNIT
    is_logical = all(isinstance(label.target, bool) for _, label in own)
    is_binary = is_logical or (scale == _UNIT and all(label.target in _UNIT for _, label in own))
    low, high = _UNIT if is_binary else scale
    targets: dict[str, list[float]] = {}
    for place, label in own:
        if not low <= label.target <= high:
            location = f"{labels.path}, {place}, field {labels.columns['target']}"
            raise InputError(f"{location}: is {label.target:g}; {quote(judge.question)} goes from {low:g} to {high:g}")
        targets.setdefault(label.id, []).append(float(label.target))
    left_out: Counter[str] = Counter()
    rows = []
    for response, given in targets.items():
        target = fmean(given)
        judgement = judgements.get(response)
        if is_binary and target == MET_THRESHOLD:
            left_out["tied"] += 1
        elif judgement is None or judgement.score is None:
            left_out["missing" if judgement is None else judgement.status] += 1
        else:
            target = float(target > MET_THRESHOLD) if is_binary else target
            prediction = _prediction(judgement, is_binary)
            rows.append(JudgedRow(response, judgement.task, target, prediction, judgement.score))
    unlabelled = [
        (one.task, _prediction(one, is_binary))
        for response, one in judgements.items()
        if response not in targets and one.score is not None
    ]
    votes = [(judgements[name].task, given) for name, given in targets.items() if len(given) > 1 and name in judgements]
    lengths = {name: length for name, length in run.lengths.items() if length is not None and name in targets}
    return JudgeStudy(judge, is_binary, rows, unlabelled, dict(left_out), lengths, votes, (low, high))


def _prediction(judgement: Judgement, is_binary: bool) -> float:
    chosen = judgement.decision if is_binary else judgement.native
    value = judgement.score if chosen is None else chosen
    assert value is not None, "only judged responses have a prediction"
    return value
