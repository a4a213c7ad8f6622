"""Judgements of the responses and pairs of runs, by judge, and the questions that people's labels name.

A study of labels asks for these by the id of a response; a judge is a question with its evaluator and model.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

from jurygraph.decision.turns import (
    QuestionUse,
    fold_jury,
    has_judgement,
    is_jury_question,
    questions_counted_as_met,
    read_uses,
)
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean, format_count, join_names, list_first, quote
from jurygraph.runs.reports.units import unit_name_of_task
from jurygraph.runs.run import Run
from jurygraph.schema import Question, RecordedVerdict, Trace
from jurygraph.schema.rating import JudgedLabel
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.sources.file_rows import FileRows
from jurygraph.studies.pairs import majority_choice, scores_by_order
from jurygraph.studies.report import group_by

_LOGGER = logging.getLogger(__name__)

LabelScale = tuple[float, float]
"""The lowest and the highest value."""
UNIT_SCALE: LabelScale = (0.0, 1.0)

JUDGED_STATUS = "judged"
UNSUPPORTED_STATUS = "unsupported"
UNDECIDED_STATUSES = ("abstained", "failed")
"""Those of a jury without a majority, or whose judges failed."""
REWARD_QUESTION_NAME = "reward"
"""The question whose answers are the rewards of a run; no evaluator asks it."""


ESCALATION = "escalation"
_EvaluatorAndJudge = tuple[str, str | None]


class FoldedJury(NamedTuple):
    """Several judges of a question as one: how their votes are folded, or `escalation`, and how many they are."""

    fold: str
    judges: int

    def __str__(self) -> str:
        return f"jury, {self.fold} of {self.judges}"


class Judge(NamedTuple):
    """Identity of a judge: a question of a run, its evaluator, the model that replied, and for whom it judges.

    Of several judges, `model` is the name among the config's `models`; a `jury` of them has none. It may be `without`
    one of its judges.
    """

    run: str
    question: str
    evaluator: str
    model: str | None = None
    reviewer: str | None = None
    jury: FoldedJury | None = None
    without: str | None = None

    @property
    def is_reward_judge(self) -> bool:
        """Return whether it is the reward of the run, with which labels are compared only if they name it."""
        return not self.evaluator

    @property
    def name(self) -> str:
        """A short name: question, evaluator, model or jury, and reviewer, each where it says something."""
        parts = [] if self.question.startswith(self.evaluator) else [self.evaluator]
        without = self.without and f"without {self.without}"
        names = (self.model, self.jury, without, self.reviewer)
        parts += [str(part) for part in names if part is not None]
        return f"{self.question} ({', '.join(parts)})" if parts else self.question


class Judgement(NamedTuple):
    """A judge's view of a response, or of a pair: `status` is `judged`, or the reason why there is no score.

    `task` names the task, or the group of tasks that it belongs to: their responses resemble each other. A pair's score
    is that of its first response, and `native` 1 if both orders prefer it, 0 if both prefer the other
    one, else 0.5. `choices` has the choice of each order, where both were judged. `counted` is what the reward counts
    where that is no judgement: the worst case of a finding without a quotation, or of a jury without a majority. It
    `is_fault` where the reward is the lower the more it is met; `unjudged` is what a jury counts where nobody answers.
    """

    task: str
    status: str
    score: float | None = None
    decision: float | None = None
    native: float | None = None
    scale: LabelScale | None = None
    choices: tuple[float, ...] = ()
    counted: float | None = None
    is_fault: bool = False
    unjudged: float = 0.0

    @property
    def value(self) -> float | None:
        """Return what the reward counts: the score, or what counts without one."""
        return self.counted if self.score is None else self.score

    @property
    def counts_as_met(self) -> bool:
        """Return whether it is met; what counts without a score is by that."""
        value = self.value if self.decision is None else self.decision
        return value is not None and value >= MET_THRESHOLD


Judgements = Mapping[str, Judgement]
"""The judgements of a judge by response, or pair of them (`pair_name`)."""
JudgementsByJudge = dict[Judge, dict[str, Judgement]]
Traits = Mapping[str, Mapping[str, str | None]]
"""What responses are of, such as their `agent`: a name, by trait and response."""


@dataclass(frozen=True)
class RunJudgements:
    """All judgements of a run: by judge and response, with lengths, own labels and traits of the responses.

    `response_by_name` has the ids of responses by what a label may name: the id, or task and agent with "_" between
    them; None where several have the same.
    `costs` has what each judge of several costs in US dollars, NaN for an unknown price. The `evaluators` are in the
    order of the config; those that are `rewarded` have a weight in the reward. `unfinished` says how far a run is that
    is not closed, and what goes on with it.
    """

    run: str
    judgements_by_judge: Mapping[Judge, Judgements]
    lengths: Mapping[str, int | None]
    labels: Mapping[str, Mapping[str, object]]
    traits: Traits = field(default_factory=dict)
    costs: Mapping[_EvaluatorAndJudge, float] = field(default_factory=dict)
    evaluators: Sequence[str] = ()
    rewarded: Collection[str] = ()
    unfinished: str = ""
    response_by_name: Mapping[str, str | None] = field(default_factory=dict)


def read_judgements(
    run: Run, advance: ProgressCallback = ignore_progress, superseded: bool = True
) -> RunJudgements:
    """Return the judgements of a run's responses and pairs, and its rewards; `advance` is called with 1 for each task.

    Several samples of a judge are one judgement, by their mean, and so are both orders of a pair; its verdicts on the
    turns of a response are one, with the value that its reward counts. Verdicts on variants are not read. Those
    that another judge's superseded are, unless `superseded` is false: the first judge did judge these responses.
    Several judges of a question are a jury, too; so are three or more without each of them.

    Raises `TraceMismatch` if a record of the run has been changed.
    """
    judgements_by_judge: JudgementsByJudge = defaultdict(dict)
    lengths = {}
    labels = {}
    rewards = {}
    traits: dict[str, dict[str, str | None]] = {"agent": {}, "domain": {}}
    costs: dict[_EvaluatorAndJudge, float] = defaultdict(float)
    response_by_name: dict[str, str | None] = {}
    # a group may have the replies of an earlier one, which were paid once
    billed_calls = set[str]()
    for group in run.group_records():
        survey = run.survey_without_texts_of(group.key)
        questions = {question.id: question for question in survey.questions}
        pairs = defaultdict(list)
        cluster = unit_name_of_task(run, group.key)
        domain = _task_domain(run, group.key)
        stored_responses = list(run.group(group))
        call_costs = {
            call.id: math.nan if call.cost is None else call.cost
            for trace, _ in stored_responses
            for call in trace.calls
            if call.fault is None and call.id not in billed_calls
        }
        billed_calls.update(call_costs)
        order = {
            trace.response_id: position for position, (trace, _) in enumerate(stored_responses)
        }
        uses = read_uses(run.decision_of(group.key))
        for trace, response in stored_responses:
            lengths[trace.response_id] = None if response is None else len(response.text)
            labels[trace.response_id] = trace.labels
            reward = trace.reward.value
            judgement = Judgement(cluster, "failed")
            if reward is not None:
                is_met = float(reward >= MET_THRESHOLD)
                judgement = Judgement(cluster, JUDGED_STATUS, reward, is_met)
            rewards[trace.response_id] = judgement
            traits["agent"][trace.response_id] = trace.agent
            traits["domain"][trace.response_id] = domain
            name = f"{group.key}_{trace.agent}"
            response_by_name[name] = None if name in response_by_name else trace.response_id
            response_by_name[trace.response_id] = trace.response_id
            for judge, verdicts in _verdicts_by_judge(run, trace, superseded).items():
                if questions[judge.question].scope != "pair":
                    judgements_by_judge[judge][trace.response_id] = _summarize_verdicts(
                        cluster, verdicts, uses.get(judge.question)
                    )
                    continue
                for verdict in verdicts:
                    if verdict.responses:
                        pair = pair_name(*sorted(verdict.responses, key=order.__getitem__))
                        pairs[judge, pair].append(verdict)
        for (judge, pair), verdicts in pairs.items():
            judgements_by_judge[judge][pair] = _summarize_pair_verdicts(cluster, pair, verdicts)
        traces = [trace for trace, _ in stored_responses]
        _add_juries(judgements_by_judge, costs, call_costs, run, traces, questions, cluster)
        advance(1)
    _copy_modelless_judgements(judgements_by_judge)
    if rewards:
        judgements_by_judge[Judge(str(run.folder), REWARD_QUESTION_NAME, evaluator="")] = rewards
    return RunJudgements(
        str(run.folder),
        dict(judgements_by_judge),
        lengths,
        labels,
        traits,
        costs,
        [use.known_as for use in run.config.evaluators],
        run.config.reward,
        _describe_unfinished_run(run, len(lengths)),
        response_by_name,
    )


def _describe_unfinished_run(run: Run, responses: int) -> str:
    if run.is_closed:
        return ""
    tasks = f"{run.tasks_scored} of {run.planned_task_count} tasks"
    return f"{responses} responses, of {tasks}, are scored so far; the same score command continues"


def _task_domain(run: Run, task_id: str) -> str | None:
    content = run.stored_task_record(task_id) or {"task": {}}
    domain = content["task"].get("metadata", {}).get("domain")
    return None if domain is None else str(domain)


def pair_name(first: str, second: str) -> str:
    """Return the name of a pair of responses, from which `split_pair_name` reads them."""
    return f"{first}\t{second}"


def split_pair_name(name: str) -> list[str]:
    """Return the one or two responses of a row's name."""
    return name.split("\t")


def _verdicts_by_judge(
    run: Run, trace: Trace, superseded: bool
) -> dict[Judge, list[RecordedVerdict]]:
    models = {call.id: call.model for call in trace.calls}
    verdicts_by_judge = defaultdict(list)
    for verdict in run.verdicts_about_trace(trace, attrgetter("judge"), superseded):
        if verdict.responses in ((), (trace.response_id,)) or len(verdict.responses) == 2:
            # A failed verdict has no call of its own, but those that were tried.
            calls = [verdict.call, *(use.id for use in verdict.calls)]
            name = verdict.judge or next((models[call] for call in calls if call in models), None)
            judge = Judge(
                str(run.folder), verdict.question, verdict.evaluator, name, verdict.reviewer
            )
            verdicts_by_judge[judge].append(verdict)
    return verdicts_by_judge


def _add_juries(
    judgements_by_judge: JudgementsByJudge,
    costs: dict[_EvaluatorAndJudge, float],
    call_costs: Mapping[str, float],
    run: Run,
    traces: Sequence[Trace],
    questions: Mapping[str, Question],
    cluster: str,
) -> None:
    """Add what a component gets of several judges on each response of a group, and what it would without one of them;
    `costs` gets what each of them takes.

    Where judges escalate, none can be left out: the first ones decide what the last judges.
    """
    if not any(question.judges for question in questions.values()):
        return
    decision = run.decision_of(traces[0].task_id)
    verdicts = list(chain.from_iterable(trace.verdicts for trace in traces))
    for judge, judge_verdicts in group_by(verdicts, attrgetter("evaluator", "judge")).items():
        calls = {use.id for verdict in judge_verdicts for use in verdict.calls}
        costs[judge] += math.fsum(call_costs.get(call, 0.0) for call in calls)
    counted_as_met = questions_counted_as_met(decision)
    counted = group_by([v for v in verdicts if not v.superseded], attrgetter("question"))
    uses = read_uses(decision)
    for name, use in uses.items():
        question = questions[name]
        if not is_jury_question(question, uses):
            continue
        judges = question.judges
        fold = ESCALATION if question.escalate else str(use.inputs[0].of_question(name).reduce)
        has_smaller_juries = question.escalate is None and len(judges) > 2
        unjudged = float(use.is_penalty(name) and decision.rule != "gear")
        for without in (None, *judges) if has_smaller_juries else (None,):
            kept_judges = tuple(judge for judge in judges if judge != without)
            kept = [v for v in counted[name] if v.judge is None or v.judge in kept_judges]
            smaller_jury_question = question.model_copy(update={"judges": kept_judges})
            for _, verdict, _ in fold_jury(
                smaller_jury_question, kept, decision, use, counted_as_met
            ):
                jury = Judge(
                    str(run.folder),
                    name,
                    verdict.evaluator,
                    reviewer=verdict.reviewer,
                    jury=FoldedJury(fold, len(judges)),
                    without=without,
                )
                judgement = _summarize_verdicts(cluster, [verdict], use)
                judgements_by_judge[jury][verdict.about] = judgement._replace(
                    counted=verdict.score, unjudged=unjudged
                )


def _copy_modelless_judgements(
    judgements_by_judge: JudgementsByJudge,
) -> None:
    """Give judgements without a request to a model, such as those by a gate, to every model of the question."""
    for judge in [judge for judge in judgements_by_judge if judge.model is None]:
        models = [
            other
            for other in judgements_by_judge
            if other.model is not None and other._replace(model=None) == judge
        ]
        if models:
            modelless_judgements = judgements_by_judge.pop(judge)
            for other in models:
                judgements_by_judge[other] = modelless_judgements | judgements_by_judge[other]


def worst_case_score(verdict: RecordedVerdict, use: QuestionUse | None) -> float:
    """Return what a reward counts for an unsupported finding, whose score is 0: that, but 1 of a penalty; what turns
    became has the value that counts already."""
    return verdict.score or float(use is not None and use.is_penalty(verdict.question))


def _summarize_verdicts(
    task: str, verdicts: Sequence[RecordedVerdict], use: QuestionUse | None = None
) -> Judgement:
    """Return the judgement of samples; it is unsupported if one of them is, unless a majority decides."""
    is_fault = use is not None and use.is_penalty(verdicts[0].question)
    judged = list(filter(has_judgement, verdicts))
    scores = [verdict.score or 0.0 for verdict in judged]
    worst = [worst_case_score(verdict, use) for verdict in verdicts if verdict.is_worst_case]
    has_majority = use is not None and use.inputs[0].reduce == "majority"
    if worst and not (judged and has_majority):
        return Judgement(
            task, UNSUPPORTED_STATUS, counted=fmean([*scores, *worst]), is_fault=is_fault
        )
    if not judged:
        return Judgement(task, judgement_status(verdicts[0]), is_fault=is_fault)
    score = fmean(scores)
    met_share = fmean(verdict.counts_as_met for verdict in judged)
    scale = judged[0].scale
    native_values = [
        float(verdict.native) for verdict in judged if isinstance(verdict.native, int | float)
    ]
    native = None
    if scale is not None and len(native_values) == len(judged):
        native = fmean(native_values)
    # samples that tie are decided by their mean, which the reward counts
    is_met = float((met_share, score) >= (0.5, MET_THRESHOLD))
    return Judgement(task, JUDGED_STATUS, score, is_met, native, scale, is_fault=is_fault)


def _summarize_pair_verdicts(
    task: str, pair: str, verdicts: Sequence[RecordedVerdict]
) -> Judgement:
    """Return the judgement of a pair from the side of its first response; an order that failed is no half answer."""
    first = split_pair_name(pair)[0]
    judged = list(filter(has_judgement, verdicts))
    response_orders = {verdict.responses[0] for verdict in verdicts}
    if {verdict.responses[0] for verdict in judged} < response_orders:
        return Judgement(task, next(judgement_status(v) for v in verdicts if not has_judgement(v)))
    orders = scores_by_order(first, judged)
    choice = majority_choice(chain(*orders))
    choices = tuple(map(majority_choice, orders)) if len(orders) > 1 else ()
    return Judgement(
        task, JUDGED_STATUS, fmean(map(fmean, orders)), choice, choice, UNIT_SCALE, choices
    )


def judgement_status(verdict: RecordedVerdict) -> str:
    """Return `judged`, or the reason why a verdict has no score that counts."""
    if verdict.gated_by is not None:
        return "gated"
    if verdict.status != "ok":
        return verdict.status
    return UNSUPPORTED_STATUS if verdict.is_worst_case else JUDGED_STATUS


_MAX_UNKNOWN_NAMED = 3
LabelsWithPositions = Sequence[tuple[str, JudgedLabel]]
_UNRELATED_COLUMN_HINT = (
    " (labels name {}; if that is something else than the judge's question, rename the column)"
)


def leave_out_unknown_responses(
    runs: Sequence[RunJudgements], labels: FileRows[JudgedLabel]
) -> tuple[FileRows[JudgedLabel], list[str]]:
    """Return the labels of responses that a run has, and a note on those of others.

    Raises `InputError` where no label is of a response of a run.
    """
    responses = {response for run in runs for response in run.lengths}
    responses_of_label = [{label.id, label.other or label.id} for _, label in labels.rows]
    kept = [
        row
        for row, names in zip(labels.rows, responses_of_label, strict=True)
        if names <= responses
    ]
    if not kept:
        refuse_unknown_responses(runs, labels, labels.rows)
    count = len(labels.rows) - len(kept)
    if not count:
        return labels, []
    unknown = sorted(set().union(*responses_of_label) - responses)
    which = "that the run does not have" if len(runs) == 1 else "that no run has"
    names_text = join_names(list_first(unknown, _MAX_UNKNOWN_NAMED))
    note = f"{format_count(count, 'label')} of responses {which}, left out: {names_text}"
    return replace(labels, rows=tuple(kept)), [note]


def refuse_unknown_responses(
    runs: Sequence[RunJudgements], labels: FileRows[JudgedLabel], chosen: LabelsWithPositions
) -> None:
    responses = {response for run in runs for response in run.lengths}
    unfinished = "; ".join(f"{run.run}: {run.unfinished}" for run in runs if run.unfinished)
    for position, label in chosen:
        for name, value in (("id", label.id), ("other", label.other)):
            if value is None or value in responses:
                continue
            names = ", ".join(run.run for run in runs)
            hint = unfinished or did_you_mean(value, sorted(responses))
            hint = (
                hint or f"name a response of {names} by its id, or by its task (`item`) and `agent`"
            )
            location = f"{labels.path}, {position}, field {labels.columns.get(name, name)}"
            raise InputError(f"{location}: there is no response {quote(value)}; {hint}")


def question_of_target_column(
    runs: Sequence[RunJudgements],
    labels: FileRows[JudgedLabel],
    chosen: LabelsWithPositions,
) -> str | None:
    """Return the name of the column of the labels, if it is that of one question, and some label names none."""
    questions = {judge.question for run in runs for judge in run.judgements_by_judge}
    column = labels.columns.get("target")
    if column is None or all(label.question for _, label in chosen):
        return None
    return column if len(find_questions_by_name(column, questions)) == 1 else None


def resolve_label_questions(
    runs: Sequence[RunJudgements],
    labels: FileRows[JudgedLabel],
    chosen: LabelsWithPositions,
    question: str | None,
) -> LabelsWithPositions:
    """Return the labels with the ids of their questions; those that name none are of `question`, if there is one.

    So are those that all name one thing which is no question; a dimension of ratings is then of every question. Of
    several judges of the reviewer who gave a label, it is of the one that `question` names, or that makes the reward.
    Raises `InputError` for a name that is no question's, or several', and for a `question` without effect, where each
    label names its own, and none may be that.
    """
    judges = [judge for run in runs for judge in run.judgements_by_judge.items()]
    question_ids = list(dict.fromkeys(judge.question for judge, _ in judges))
    is_dimension = question is not None or labels.columns.get("question") == "dimension"
    chosen = _leave_out_unknown_names(chosen, question_ids, is_dimension)
    names = {label.question for _, label in chosen}
    candidates = {name: find_questions_by_name(name, question_ids) for name in names if name}
    column_hint = ""
    if not any(candidates.values()):
        column_hint = _UNRELATED_COLUMN_HINT.format(join_names(sorted(candidates)))
    if question is not None:
        named_questions = find_questions_by_name(question, question_ids)
        if not named_questions:
            problem = describe_question_name_problem(question, (), question_ids)
            raise InputError(f"--question: {problem}")
        for label_name, found in candidates.items():
            candidates[label_name] = [match for match in found if match in named_questions] or found
        if None not in names and set().union(*candidates.values()) - {*named_questions}:
            raise InputError(
                f"--question: {quote(question)} decides nothing, since each label names its own question; leave "
                "it out, or the labels of other questions"
            )
        candidates[question] = named_questions
    candidates = {key: _take_rewarded_judge(runs, found) for key, found in candidates.items()}
    resolved_labels = []
    for position, label in chosen:
        name = label.question or question
        if name is not None:
            about_label = _questions_about_label(label, judges)
            matching_question_ids = [
                question_id for question_id in candidates[name] if question_id in about_label
            ] or candidates[name]
            if len(matching_question_ids) != 1:
                problem = describe_question_name_problem(name, matching_question_ids, question_ids)
                where = "--question"
                if label.question is not None:
                    where = f"{labels.path}, {position}, field {labels.columns.get('question', 'question')}"
                    problem += column_hint
                raise InputError(f"{where}: {problem}")
            label = label.model_copy(update={"question": matching_question_ids[0]})
        resolved_labels.append((position, label))
    return resolved_labels


def _take_rewarded_judge(runs: Sequence[RunJudgements], questions: list[str]) -> list[str]:
    """Return the questions of the judge that makes the reward, if several judges predict the same of reviewers."""
    rewarded = {name for run in runs for name in run.rewarded}
    judges = sorted({question.partition("@")[0] for question in questions})
    taken = [judge for judge in judges if judge.partition("/")[0] in rewarded]
    if len(taken) != 1 or judges in (taken, sorted(questions)):
        return questions
    _LOGGER.warning(
        "several judges predict reviewers (%s): %s is taken, which makes the reward; --question names another",
        join_names(judges),
        taken[0],
    )
    return find_questions_by_name(taken[0], questions)


def _leave_out_unknown_names(
    chosen: LabelsWithPositions, question_ids: Sequence[str], is_dimension: bool
) -> LabelsWithPositions:
    """Return the labels of questions that there are, and those that name none; all if there are none of either.

    These are without the name if all have one, which is that of a dimension of ratings.
    """
    names = {label.question or "" for _, label in chosen}
    unknown = {name for name in names if name and not find_questions_by_name(name, question_ids)}
    if unknown != names:
        if unknown:
            _LOGGER.warning(
                "labels of questions that no judge is of, left out: %s", join_names(sorted(unknown))
            )
        return [row for row in chosen if row[1].question not in unknown]
    if len(names) > 1 or not is_dimension:
        return chosen
    return [(place, label.model_copy(update={"question": None})) for place, label in chosen]


def _questions_about_label(
    label: JudgedLabel, judges: Sequence[tuple[Judge, Judgements]]
) -> Collection[str]:
    """Return the questions about the response of a label that were answered for everybody or its reviewer."""
    questions: dict[str, None] = {}
    for judge, judgements in judges:
        is_label_for_judge = label.reviewer is None or judge.reviewer in (None, label.reviewer)
        if is_label_for_judge and label.id in judgements:
            questions[judge.question] = None
    return questions


def find_questions_by_name(name: str, questions: Collection[str]) -> list[str]:
    """Return the question of the name, else those of which it is all or the last part, with or without a member.

    Where none has such a part, those about a member of that name, such as a criterion.
    """
    if name in questions:
        return [name]
    ends = (f"/{name}", f".{name}")
    matching_question_ids = [
        question
        for question in questions
        if question.endswith(ends) or f"/{question}".partition("@")[0].endswith(ends)
    ]
    return matching_question_ids or [
        question for question in questions if question.endswith(f"@{name}")
    ]


def find_judgements_of_question(run: RunJudgements, name: str) -> Judgements:
    """Return what the judge of a question says, of a jury what all say together; nothing where no judge is of it.

    Of several judges that are no jury, the first one of a response counts. Of questions about several members, such
    as reviewers, it is the mean; of several judges of reviewers the one that makes the reward. Raises `InputError` if
    the name is that of several other questions.
    """
    questions = {judge.question: None for judge in run.judgements_by_judge}
    names = find_questions_by_name(name, questions) or [
        question
        for question in questions
        if find_questions_by_name(name.casefold(), [question.casefold()])
    ]
    names = _take_rewarded_judge([run], names)
    if len({question.partition("@")[0] for question in names}) > 1:
        raise InputError(
            f"{run.run}: {describe_question_name_problem(name, names, list(questions))}"
        )
    if len(names) > 1:
        return _mean_over_members(run, names)
    found: dict[str, Judgement] = {}
    for judge, judgements in run.judgements_by_judge.items():
        if judge.question in names and judge.without is None:
            is_folded = judge.jury is not None
            found = {**found, **judgements} if is_folded else {**judgements, **found}
    return found


def _mean_over_members(run: RunJudgements, questions: Sequence[str]) -> Judgements:
    """Return what a judge gives each response on average over the members, such as reviewers, of questions."""
    judged = defaultdict(list)
    for question in questions:
        for response, judgement in find_judgements_of_question(run, question).items():
            if judgement.native is not None:
                judged[response].append(judgement)
    return {
        response: rows[0]._replace(
            score=fmean(map(attrgetter("score"), rows)),
            native=fmean(map(attrgetter("native"), rows)),
            decision=None,
        )
        for response, rows in judged.items()
    }


def describe_question_name_problem(
    name: str, matching_question_ids: Sequence[str], questions: Sequence[str]
) -> str:
    """Return the problem of a name that is no question's, or several'."""
    if matching_question_ids:
        return f"{quote(name)} is the end of several questions; write one of {', '.join(matching_question_ids)}"
    ends = [question.rpartition(mark)[2] for question in questions for mark in "/@"]
    hint = did_you_mean(name, [*questions, *ends]) or f"there are {join_names(questions)}"
    return f"there is no question {quote(name)}; {hint}"
