"""From verdicts to numbers: what was asked, what came of it, and how a rule fills what did not come.

A `Table` holds, for every question, one row for each response of the group and one column for each sample, opponent or
variant. `cells` turns an input of a spec into `Cells` for a combiner, filled by the decision's rule.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.agents.roles import Bools, Cells, Floats
from jurygraph.aggregation.voting import strict_majority
from jurygraph.schema import Cause, Decision, Input, Question, Status, Verdict
from jurygraph.schema.safety import STOPS

ABSENT, OK, ABSTAINED, NO_MODEL, FAILED_BY_RESPONSE, FAILED_BY_INFRASTRUCTURE, NOT_APPLICABLE, STOPPED = range(8)
JUDGED = (OK, STOPPED)
"""A verdict is there: an evaluator gave it, or what stopped the response before."""
MET_FROM = 0.5
"""The score from which something is met, where the judge says no more; and from which it was found in a response."""

Variants = Mapping[str, Mapping[str, int]]
"""By the id of a response, the columns of its variants, by theirs."""

Scenario = Literal["counted", "low", "high", "partial"]
"""How unjudged cells are filled: by the rule, all by 0, all by 1, or not at all (they leave the denominator)."""


@dataclass(frozen=True, slots=True)
class Columns:
    """One question's verdicts, [R,K] each: value, the judges' own decisions, what became of each, and how sure the
    judges were, 1 where nobody says."""

    value: Floats
    met: Bools
    outcome: NDArray[np.int8]
    sure: Floats


@dataclass(frozen=True, slots=True)
class Table:
    """Verdicts as numbers; the rows stand for the responses, of a group in canonical order."""

    rows: int
    columns: Mapping[str, Columns]

    def cells(self, stated: Input, rule: str, direction: int, scenario: Scenario) -> Cells:
        """One input of a spec as cells, filled; `direction` is -1 where more of the component means less reward."""
        pieces = [
            _filled(self.heard(name, stated), weight, stated, rule, direction, scenario)
            for name, weight in zip(stated.questions, stated.weights, strict=True)
        ]
        if len(pieces) == 1:
            return pieces[0]
        return Cells(
            value=np.concatenate([p.value for p in pieces], axis=1),
            met=np.concatenate([p.met for p in pieces], axis=1),
            judged=np.concatenate([p.judged for p in pieces], axis=1),
            live=np.concatenate([p.live for p in pieces], axis=1),
            weight=np.concatenate([p.weight for p in pieces]),
            mass=stated.mass,
        )

    def heard(self, name: str, stated: Input) -> Columns:
        """A question's verdicts as far as an input hears them: sure enough, and a majority of them where it wants one.

        What was discarded, and what has no majority, counts as abstained from; a failure among it as that failure.
        """
        columns = self.columns[name]
        if stated.confident > 0.0:
            columns = _discarded(columns, stated.confident)
        return _by_majority(columns) if stated.reduce == "majority" and columns.value.shape[1] > 1 else columns

    def unheard(self, stated: Input) -> tuple[Floats, Floats]:
        """How many verdicts of an input were discarded, and how many of its questions have no majority, [R] each."""
        discarded, divided = [], []
        for name in stated.questions:
            columns, heard = self.columns[name], self.heard(name, stated)
            lost = judged(columns.outcome) & (columns.sure < stated.confident)
            discarded.append(aggregation.total(np.where(lost, 1.0, 0.0)))
            asked = judged(columns.outcome).any(axis=1)
            wanted = stated.reduce == "majority" and columns.value.shape[1] > 1
            divided.append(np.where(asked & unjudged(heard.outcome).any(axis=1) & wanted, 1.0, 0.0))
        return np.asarray(aggregation.total(discarded, axis=0)), np.asarray(aggregation.total(divided, axis=0))

    def marked(self, questions: Iterable[str], outcome: int) -> "Table":
        """The table with every cell of these questions that was asked set to one outcome."""
        columns = dict(self.columns)
        for name in questions:
            old = columns[name]
            columns[name] = replace(old, outcome=np.where(old.outcome == ABSENT, ABSENT, outcome).astype(np.int8))
        return Table(self.rows, columns)

    def judged(self, stated: Input) -> tuple[Floats, Floats]:
        """The weight of an input that was judged, and that was asked for, [R]; a folded question weighs once."""
        settled = (*JUDGED, NOT_APPLICABLE) if stated.gated == "zero" else JUDGED
        judged, asked = [], []
        for name, weight in zip(stated.questions, stated.weights, strict=True):
            outcome = self.heard(name, stated).outcome
            known = np.asarray(aggregation.total(np.where(np.isin(outcome, settled), 1.0, 0.0)))
            wanted = known + aggregation.total(np.where(unjudged(outcome), 1.0, 0.0))
            if stated.reduce is not None:
                known, wanted = known / np.maximum(wanted, 1.0), np.minimum(wanted, 1.0)
            judged.append(abs(weight) * known)
            asked.append(abs(weight) * wanted)
        return np.asarray(aggregation.total(judged, axis=0)), np.asarray(aggregation.total(asked, axis=0))

    def outcomes(self, stated: Input) -> tuple[NDArray[np.int8], Floats]:
        """What became of every cell of an input, [R,K], and the cells' weights, [K]."""
        found = [self.heard(name, stated).outcome for name in stated.questions]
        weights = [np.full(o.shape[1], w) for o, w in zip(found, stated.weights, strict=True)]
        return np.concatenate(found, axis=1), np.concatenate(weights)


def lay_out(questions: Sequence[Question], responses: Sequence[str], verdicts: Sequence[Verdict]) -> Table:
    """The table of a group's verdicts. `responses` are ids in canonical order; the verdicts' order does not matter."""
    row = {name: i for i, name in enumerate(responses)}
    by_question: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_question[verdict.question].append(verdict)
    shown = {of: _variants(of, questions, by_question) for of in sorted({q.of for q in questions})}
    return Table(len(row), {q.id: _columns(q, row, by_question[q.id], shown[q.of]) for q in questions})


def _columns(question: Question, row: Mapping[str, int], verdicts: Sequence[Verdict], variants: Variants) -> Columns:
    placed = _placed(question, row, verdicts, variants)
    width = 1 + max((column for _, column in placed), default=0)
    value = np.zeros((len(row), width))
    met = np.zeros((len(row), width), dtype=np.bool_)
    outcome = np.zeros((len(row), width), dtype=np.int8)
    sure = np.ones((len(row), width))
    for place, (verdict, mirrored) in placed.items():
        value[place], met[place], outcome[place] = _mirrored_mark(verdict) if mirrored else mark_of(verdict)
        sure[place] = 1.0 if verdict.confidence is None else verdict.confidence
    return Columns(value, met, outcome, sure)


def _discarded(columns: Columns, confident: float) -> Columns:
    """What judges who were not sure enough said is as if they had abstained; no gate is ever unsure."""
    lost = (columns.outcome == OK) & (columns.sure < confident)
    return replace(columns, outcome=np.where(lost, ABSTAINED, columns.outcome).astype(np.int8))


def _by_majority(columns: Columns) -> Columns:
    """What more than half of those who were asked say, as one column."""
    there = judged(columns.outcome)
    asked = there | unjudged(columns.outcome)
    won = strict_majority(columns.value, there, asked)
    agreed = aggregation.total(np.where(there & (columns.value == won.value[:, None]) & columns.met, 1.0, 0.0))
    votes = aggregation.total(np.where(there & (columns.value == won.value[:, None]), 1.0, 0.0))
    stopped = (columns.outcome == STOPPED).any(axis=1)
    worst = np.where(unjudged(columns.outcome), columns.outcome, ABSTAINED).max(axis=1)
    outcome = np.where(
        won.decided, np.where(stopped, STOPPED, OK), np.where(asked.any(axis=1), worst, _unasked(columns))
    )
    met = won.decided & (np.asarray(agreed) * 2 >= votes)
    sure = np.ones((len(outcome), 1))
    return Columns(won.value[:, None], met[:, None], outcome.astype(np.int8)[:, None], sure)


def _unasked(columns: Columns) -> NDArray[np.int8]:
    """Why nobody was asked, [R]: staged screening, or there was nothing to ask about."""
    left_out = (columns.outcome == NOT_APPLICABLE).any(axis=1)
    return np.where(left_out, NOT_APPLICABLE, ABSENT).astype(np.int8)


def mark_of(verdict: Verdict) -> tuple[float, bool, int]:
    """A verdict as it counts: its score, whether it is met, and what became of it (a code of this module).

    Where the judge gave no decision of its own, a score of 0.5 or more is met; without a score: 0.0 and not met.
    """
    if verdict.score is None:
        return 0.0, False, outcome_of(verdict.status, verdict.failure.cause if verdict.failure else None)
    met = verdict.score >= MET_FROM if verdict.met is None else verdict.met
    score = verdict.score + 0.0  # never -0.0: which of the two is the smaller depends on the CPU
    return score, met, judged_outcome(verdict.gated_by)


def _mirrored_mark(verdict: Verdict) -> tuple[float, bool, int]:
    """A verdict on an unordered pair as it counts for the second of them."""
    if verdict.score is None:
        return mark_of(verdict)
    score = 1.0 - verdict.score
    return score, score >= MET_FROM, OK


def judged_outcome(gated_by: str | None) -> int:
    """What became of a verdict that is ok: it was judged, or something about the response stopped that before."""
    return STOPPED if gated_by in STOPS else OK


def _placed(
    question: Question, row: Mapping[str, int], verdicts: Sequence[Verdict], variants: Variants
) -> dict[tuple[int, int], tuple[Verdict, bool]]:
    """Where each verdict stands, and whether it is read from the second response's side.

    One that was settled without asking stands for every variant of its response.
    """
    placed: dict[tuple[int, int], tuple[Verdict, bool]] = {}
    for verdict in verdicts:
        mine = row[verdict.about]
        if not verdict.responses:
            for column in range(max(1, len(variants.get(verdict.about, ())))):
                placed[mine, column * question.samples + verdict.sample] = (verdict, False)
            continue
        if question.scope == "group":
            column = 0
        elif question.scope == "pair":
            column = row[verdict.responses[1]]
        else:
            column = variants.get(verdict.about, {}).get(verdict.responses[0], 0)
        place = column * question.samples + verdict.sample
        placed[mine, place] = (verdict, False)
        if question.scope == "pair" and question.pairs == "unordered" and verdict.responses:
            placed[column, mine * question.samples + verdict.sample] = (verdict, True)
    return placed


def _variants(of: str, questions: Iterable[Question], verdicts: Mapping[str, Sequence[Verdict]]) -> Variants:
    """The column of every variant in a material: its place, by id, among those of its parent that anybody was shown."""
    if of == "submitted":
        return {}
    shown: dict[str, set[str]] = defaultdict(set)
    for question in questions:
        for verdict in verdicts[question.id] if question.of == of else ():
            shown[verdict.about].update(verdict.responses)
    return {about: {name: place for place, name in enumerate(sorted(names))} for about, names in shown.items()}


def outcome_of(status: Status, cause: Cause | None) -> int:
    """What became of a verdict that is not ok, as a code of this module; `cause` is that of its failure, if any."""
    if status == "not_applicable":
        return NOT_APPLICABLE
    if status == "abstained":
        return NO_MODEL if cause == "infrastructure" else ABSTAINED
    return FAILED_BY_INFRASTRUCTURE if cause == "infrastructure" else FAILED_BY_RESPONSE


def _filled(columns: Columns, weight: float, stated: Input, rule: str, direction: int, scenario: Scenario) -> Cells:
    """One question's cells under a scenario, folded into one column if the input says so."""
    applies = (columns.outcome != ABSENT) & (columns.outcome != NOT_APPLICABLE)
    live = columns.outcome != ABSENT if stated.gated == "zero" else applies
    stopped = columns.outcome == STOPPED
    there = ~applies | judged(columns.outcome)
    if scenario == "partial":
        live = live & there
    penalty = weight * direction < 0
    fill = _fill(rule, scenario, penalty)
    value = np.where(there, np.where(stopped, float(penalty), columns.value), fill)
    met = np.where(there, np.where(stopped, penalty, columns.met), fill >= MET_FROM)
    decided = there & ~stopped  # what a gate stopped supports no gain, and lessens no penalty
    if stated.reduce is not None and value.shape[1] > 1:
        value, met, decided, live = _folded(value, met, decided, live, stated.reduce)
    return Cells(value, met, decided, live, np.full(value.shape[1], weight), stated.mass)


def _fill(rule: str, scenario: Scenario, penalty: bool) -> float:
    """What an unjudged cell counts: under `gear` 0 for both kinds, else 0 for a gain and 1 for a penalty."""
    if scenario == "counted":
        return 1.0 if penalty and rule != "gear" else 0.0
    return 1.0 if scenario == "high" else 0.0


def _folded(value: Floats, met: Bools, judged: Bools, live: Bools, reduce: str) -> tuple[Floats, Bools, Bools, Bools]:
    """The live columns of a question as one column; a row without any is as if it had one that is not live."""
    count = np.asarray(aggregation.total(np.where(live, 1.0, 0.0)))
    some = np.greater(count, 0.0)
    divisor = np.where(some, count, 1.0)
    if reduce == "mean":
        folded = aggregation.total(np.where(live, value, 0.0)) / divisor
    elif reduce == "min":
        folded = np.where(some, np.min(np.where(live, value, 1.0), axis=1), 0.0)
    else:
        folded = np.max(np.where(live, value, 0.0), axis=1)
    agreed = aggregation.total(np.where(live & met, 1.0, 0.0))
    decided = np.asarray(agreed * 2 >= divisor)
    complete = np.where(some, (judged | ~live).all(axis=1), judged.all(axis=1))
    return folded[:, None], decided[:, None], complete[:, None], some[:, None]


def dropped_questions(decision: Decision, table: Table) -> frozenset[str]:
    """Under `drop-criterion`, what counts and is unjudged for some response: dropped for the whole group."""
    if decision.group_rule != "drop-criterion":
        return frozenset()
    inputs = [one for spec in decision.counting for one in spec.inputs.values()]
    counting = ((name, table.heard(name, one)) for one in inputs for name in one.questions)
    return frozenset(name for name, heard in counting if unjudged(heard.outcome).any())


def judged(outcome: NDArray[np.int8]) -> Bools:
    """Which cells hold a verdict."""
    return np.asarray((outcome == OK) | (outcome == STOPPED))


def unjudged(outcome: NDArray[np.int8]) -> Bools:
    """Which cells were asked for and not judged."""
    return (outcome >= ABSTAINED) & (outcome <= FAILED_BY_INFRASTRUCTURE)
