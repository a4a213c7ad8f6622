"""Judges compared with people: judgements of runs and labels of people, joined by response and question.

Several samples of a judge are one judgement, and several labels of a response are one target; what each person labelled
stays beside it. The figures are those of `judge_report`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

from jurygraph.aggregation import consensus
from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean, quote
from jurygraph.runs.run import Run
from jurygraph.schema import RecordedVerdict, Trace
from jurygraph.schema.rating import JudgedLabel
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.sources.ratings import FileRows, read_judged_labels
from jurygraph.studies.pairs import choice_of, is_flip, scores_by_order
from jurygraph.studies.units import unit_of

_UNIT = (0.0, 1.0)

_LABEL_COLUMN = "label."
_UNNAMED = "unnamed"
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


class PersonLabel(NamedTuple):
    """The label that a named person gave a judged response, and the judge's prediction; both in units of the target."""

    response: str
    task: str
    person: str
    label: float
    prediction: float


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
        person_labels: the label of each named person, for responses that were judged.
        traits: names of responses by what they are of: their `agent`, and the `domain` of their task.
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
    person_labels: Sequence[PersonLabel] = ()
    traits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def has_pairs(self) -> bool:
        return any(len(responses_of(row.response)) > 1 for row in self.rows[:1])

    def to_unit(self, target: float) -> float:
        """Return the place of a target between both ends of the scale, in [0, 1]."""
        low, high = self.scale
        return (target - low) / (high - low)


@dataclass(frozen=True)
class RunJudgements:
    """All judgements of a run: by judge and response, with lengths, own labels and traits of the responses."""

    run: str
    by_judge: Mapping[Judge, Mapping[str, Judgement]]
    lengths: Mapping[str, int | None]
    labels: Mapping[str, Mapping[str, object]]
    traits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def read_judgements(run: Run, advance: ProgressCallback = lambda tasks: None) -> RunJudgements:
    """Return the judgements of a run's responses and pairs of them; `advance` is called with 1 for each task.

    Several samples of a judge are one judgement, by their mean, and so are both orders of a pair; its verdicts on the
    turns of a response are one, with the value that its reward counts. Verdicts on variants are not read.

    Raises `TraceMismatch` if a record of the run has been changed.
    """
    by_judge: dict[Judge, dict[str, Judgement]] = {}
    lengths: dict[str, int | None] = {}
    labels: dict[str, Mapping[str, object]] = {}
    traits: dict[str, dict[str, str]] = {"agent": {}, "domain": {}}
    for group in run.group_records():
        scopes = {
            question.id: question.scope for question in run.survey_outline_of(group.key).questions
        }
        pairs: dict[tuple[Judge, str], list[RecordedVerdict]] = {}
        cluster = unit_of(run, group.key)
        stored = list(run.group(group))
        domain = _domain_of(run, group.key)
        order = {trace.response_id: place for place, (trace, _) in enumerate(stored)}
        for trace, response in stored:
            lengths[trace.response_id] = None if response is None else len(response.text)
            labels[trace.response_id] = trace.labels
            for name, value in (("agent", trace.agent), ("domain", domain)):
                if value is not None:
                    traits[name][trace.response_id] = value
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
    return RunJudgements(str(run.folder), by_judge, lengths, labels, traits)


def _domain_of(run: Run, task_id: str) -> str | None:
    content = run.task_content(task_id)
    domain = None if content is None else content["task"].get("metadata", {}).get("domain")
    return None if domain is None else str(domain)


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


def read_labels(source: str, runs: Sequence[RunJudgements]) -> FileRows[JudgedLabel]:
    """Return the labels in a file, or those that `label.NAME` names of the runs' responses, as if a file had them.

    Raises `InputError` for a file that cannot be read, if no response has such a label, if runs have different ones for
    a response, or if one is neither a number nor true or false.
    """
    if not source.startswith(_LABEL_COLUMN):
        return read_judged_labels(source)
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
        votes_cast.append((name, label.reviewer or _UNNAMED, target))
    person_labels = _labels_by_person(votes_cast, judgements, is_binary)
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
        person_labels=person_labels,
        traits=run.traits,
    )


def _labels_by_person(
    votes: Sequence[tuple[str, str, float]], judgements: Mapping[str, Judgement], is_binary: bool
) -> list[PersonLabel]:
    """Return what each named person said of the judged responses; several labels of a person are their mean."""
    by_person: dict[tuple[str, str], list[float]] = {}
    for response, person, label in votes:
        judgement = judgements.get(response)
        if person != _UNNAMED and judgement is not None and judgement.score is not None:
            by_person.setdefault((response, person), []).append(label)
    rows = []
    for (response, person), labels in by_person.items():
        judgement = judgements[response]
        label = fmean(labels)
        if is_binary and label != MET_THRESHOLD:
            label = float(label > MET_THRESHOLD)
        prediction = _prediction(judgement, is_binary)
        rows.append(PersonLabel(response, judgement.task, person, label, prediction))
    return rows


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
