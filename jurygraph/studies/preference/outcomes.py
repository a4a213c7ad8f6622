"""Outcomes of comparisons: whether a judge prefers the response that is labelled as preferred, task by task.

Two kinds of judges are read: rewards, of which the higher one wins, and verdicts on pairs, whose orders are counted as
JudgeBench does. A judgement that failed is never an advantage.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.runs.run import Run
from jurygraph.runs.tables import own_verdicts
from jurygraph.schema import Trace
from jurygraph.schema.plan import Question
from jurygraph.schema.trace import Reward
from jurygraph.studies.preference.benchmarks import Place, find_place

Result = Literal["right", "wrong", "tie", "failed"]
REWARD = "reward"
LABEL = "preferred"
_DECIMALS = 12  # equal rewards can differ in their last bits


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one task.

    Attributes:
        task: its id.
        place: its benchmark, category and subset.
        result: `failed` if a judgement is missing that could change the result.
        is_flipped: True if two orders prefer different responses.
        reason: what is missing, if the result is `failed`.
    """

    task: str
    place: Place
    result: Result
    is_flipped: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The outcomes of a run's tasks, in their order.

    `decided_by` is `reward`, or the evaluator whose verdicts on pairs decide. `left_out` counts tasks without one
    preferred response, by reason.
    """

    run: str
    decided_by: str
    outcomes: tuple[Outcome, ...]
    left_out: Mapping[str, int]


def read_comparisons(
    run: Run, decided_by: str | None = None, advance: Callable[[int], None] = lambda tasks: None
) -> Comparisons:
    """Return the outcomes of a run's tasks; `advance` is called with 1 for each task.

    A task needs one response with the label `preferred` true, and others with false. By default the verdicts on pairs
    decide if one evaluator of pairs is all that the reward counts, and else the rewards.

    Raises:
        InputError: no task with such labels, a label that is not true or false, or an unknown `decided_by`.
        TraceMismatch: a record of the run has been changed.
    """
    decided_by = _choose_judge(run, decided_by)
    left_out: Counter[str] = Counter()
    outcomes = []
    for group in run.group_records():
        traces = [trace for trace, _ in run.group(group)]
        task = run.task(group.key)
        chosen, rejected = _split_by_label(traces)
        if task is None:
            left_out["tasks whose texts were erased, and their category with them"] += 1
        elif len(chosen) != 1 or not rejected:
            left_out[_label_problem(len(chosen), len(rejected))] += 1
        else:
            duels = _fight_duels(run, decided_by, chosen[0], rejected)
            outcomes.append(_combine_duels(group.key, find_place(task), duels))
        advance(1)
    if not outcomes:
        reasons = "; ".join(f"{reason}: {count}" for reason, count in left_out.items())
        hint = (
            f"label one response of a task `{LABEL}: true` and the others false, as `jurygraph import judgebench` does"
        )
        raise InputError(f"{run.folder}: none of its tasks is a preference ({reasons or 'it has none'}); {hint}")
    return Comparisons(str(run.folder), decided_by, tuple(outcomes), dict(sorted(left_out.items())))


def _split_by_label(traces: Sequence[Trace]) -> tuple[list[Trace], list[Trace]]:
    sides: dict[bool, list[Trace]] = {True: [], False: []}
    for trace in traces:
        label = trace.labels.get(LABEL)
        if isinstance(label, bool):
            sides[label].append(trace)
        elif label is not None:
            problem = f"label {LABEL!r} of response {trace.response_id!r} is {label!r}"
            raise InputError(f"{problem}; expected true or false")
    return sides[True], sides[False]


def _label_problem(chosen: int, rejected: int) -> str:
    if chosen > 1:
        return "tasks with several preferred responses"
    return f"tasks without a response labelled `{LABEL}: {'true' if rejected or not chosen else 'false'}`"


def _pair_questions(run: Run) -> dict[str, Question]:
    surveys = (run.source.survey_outline(name) for name in run.source.ledger.keys("survey"))
    return {question.id: question for survey in surveys for question in survey.questions if question.scope == "pair"}


def _choose_judge(run: Run, requested: str | None) -> str:
    pairs = _pair_questions(run)
    if requested is None:
        decisions = [run.decision(record.key) for record in run.ledger.records("decision")]
        specs = [spec for decision in decisions for spec in decision.specs if spec.weight]
        counted = {name for spec in specs for column in spec.inputs.values() for name in column.questions}
        return counted.pop() if len(counted) == 1 and counted <= pairs.keys() else REWARD
    if requested != REWARD and requested not in pairs:
        known = ", ".join((REWARD, *sorted(pairs)))
        hint = did_you_mean(requested, (REWARD, *pairs)) or f"name one of {known}"
        raise InputError(f"{run.folder}: {requested!r} is not the reward, and compares no pairs; {hint}")
    return requested


class _Duel(NamedTuple):
    """The preferred response compared with one other."""

    result: Result
    reason: str = ""
    is_flipped: bool = False


def _fight_duels(run: Run, decided_by: str, chosen: Trace, rejected: Sequence[Trace]) -> list[_Duel]:
    if decided_by == REWARD:
        return [_compare_rewards(chosen.reward, other.reward) for other in rejected]
    questions = run.survey_outline_of(chosen.task_id).questions
    question = next((one for one in questions if one.id == decided_by), None)
    return [_compare_verdicts(question, chosen, other) for other in rejected]


def _combine_duels(task: str, place: Place, duels: Sequence[_Duel]) -> Outcome:
    """Return the outcome of a task: the preferred response has to win every duel."""
    results = [duel.result for duel in duels]
    is_flipped = any(duel.is_flipped for duel in duels)
    if "wrong" in results:
        return Outcome(task, place, "wrong", is_flipped=is_flipped)
    if "failed" in results:
        reason = next(duel.reason for duel in duels if duel.result == "failed")
        return Outcome(task, place, "failed", is_flipped=is_flipped, reason=reason)
    return Outcome(task, place, "tie" if "tie" in results else "right", is_flipped)


def _compare_rewards(chosen: Reward, rejected: Reward) -> _Duel:
    """Compare two rewards; a degraded one counts with its whole range, so that its failures help neither side."""
    ranges = []
    for name, reward in (("preferred", chosen), ("other", rejected)):
        if reward.value is None or reward.range is None:
            return _Duel("failed", f"the {name} response has no reward")
        bounds = reward.range if reward.status == "degraded" else (reward.value, reward.value)
        ranges.append([round(bound, _DECIMALS) for bound in bounds])
    (low, high), (other_low, other_high) = ranges
    if low > other_high:
        return _Duel("right")
    if high < other_low:
        return _Duel("wrong")
    if low == high == other_low == other_high:
        return _Duel("tie")
    return _Duel("failed", "a degraded reward could be higher or lower than the other")


def _compare_verdicts(question: Question | None, chosen: Trace, rejected: Trace) -> _Duel:
    """Compare by verdicts on the pair: each counts 1 for the response that it prefers, and the sum decides."""
    if question is None:
        return _Duel("failed", "the task has no question about pairs")
    expected = question.samples * (2 if question.pairs == "ordered" else 1)
    scores = list(_scores_for(question.id, chosen, rejected))
    if len(scores) < expected:
        return _Duel("failed", f"{expected - len(scores)} of {expected} verdicts on the pair are missing")
    wins = sum(score > 0.5 for score in scores)
    losses = sum(score < 0.5 for score in scores)
    result: Result = "right" if wins > losses else "wrong" if losses > wins else "tie"
    return _Duel(result, is_flipped=bool(wins and losses))


def _scores_for(question: str, chosen: Trace, rejected: Trace) -> Iterator[float]:
    pair = {chosen.response_id, rejected.response_id}
    for verdict in (*own_verdicts(chosen), *own_verdicts(rejected)):
        if verdict.question == question and set(verdict.responses) == pair and verdict.score is not None:
            yield verdict.score if verdict.responses[0] == chosen.response_id else 1.0 - verdict.score
