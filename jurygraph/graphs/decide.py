"""The deterministic aggregation node: rewards as a pure function of a decision and a group's verdicts.

Only + - * / min max on float64, in canonical order, so that the same decision and verdicts give the same bits on any
machine, for any order of anything that has none, and for any split of the group where no question looks across it.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.agents.roles import Bools, Cells, Combiner, Component, Floats
from jurygraph.errors import PlanError
from jurygraph.graphs.fusing import Interval, covered, fuse, fuse_bounds, held
from jurygraph.graphs.rewarding import Judged, Row, reward_rows
from jurygraph.graphs.routing import GROUP_OF_ONE, SUBMITTED
from jurygraph.graphs.table import (
    ABSENT,
    ABSTAINED,
    FAILED_BY_INFRASTRUCTURE,
    FAILED_BY_RESPONSE,
    JUDGED,
    NO_MODEL,
    NOT_APPLICABLE,
    Columns,
    Scenario,
    Table,
    dropped_questions,
    judged,
    lay_out,
    unjudged,
)
from jurygraph.graphs.taking import take_component, told_of
from jurygraph.schema import Counts, Decision, Input, Question, Reward, Spec, Verdict

Combiners = Mapping[str, Combiner]


@dataclass(frozen=True, slots=True)
class Marks:
    """What was judged, as arrays [R, K]: a row for each response, and a column for each sample of each question, the
    questions in their order. Each cell as `table.mark_of` gives it; ABSENT where nothing was asked.

    `value` is the score, 0 where there is none; `met` the judge's own decision; `outcome` a code of `table`; `sure` the
    judge's confidence, 1 where there is none.
    """

    value: Floats
    met: Bools
    outcome: NDArray[np.int8]
    sure: Floats


def decide(
    decision: Decision,
    questions: Sequence[Question],
    responses: Sequence[str],
    verdicts: Sequence[Verdict],
    combiners: Combiners,
) -> tuple[Reward, ...]:
    """The rewards of a group, in the order of `responses` (ids). Inside, rows stand in the order of the ids.

    Raises PlanError where a reward is larger than any number, or a combiner gives something that is none.
    """
    names = sorted(responses)
    judged = _judge(decision, lay_out(questions, names, verdicts), combiners)
    mine = verdicts_of(questions, names, verdicts)
    alone = [any(v.gated_by == GROUP_OF_ONE for v in mine[name]) for name in names]
    rows = reward_rows(decision, judged, [_count(mine[name]) for name in names], alone)
    rewards = {name: row.reward(decision) for name, row in zip(names, rows, strict=True)}
    return tuple(rewards[name] for name in responses)


def independent(decision: Decision, questions: Sequence[Question]) -> bool:
    """Whether no reward depends on another response of its group, so that `decide_many` may decide it."""
    alone = all(q.scope == "response" and q.of == SUBMITTED for q in questions)
    return alone and decision.group_rule is None


def decide_many(decision: Decision, questions: Sequence[Question], marks: Marks, combiners: Combiners) -> list[Row]:
    """The rewards of all rows, which may belong to different groups and tasks: the same bits as from `decide`.

    Only where `independent`. Raises PlanError as `decide`, and where the marks are not of these questions.
    """
    assert independent(decision, questions), "a reward that depends on its group is decided with its group"
    judged = _judge(decision, _table(questions, marks), combiners)
    counts = _count_each(marks.outcome)
    with collection_paused():
        return reward_rows(decision, judged, counts, [False] * len(counts))


@contextmanager
def collection_paused() -> Iterator[None]:
    """Records and rewards hold no cycles; to look for some while thousands are made takes longer than to make them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _table(questions: Sequence[Question], marks: Marks) -> Table:
    columns, end = {}, 0
    for question in questions:
        start, end = end, end + question.samples
        own = np.s_[:, start:end]
        columns[question.id] = Columns(marks.value[own], marks.met[own], marks.outcome[own], marks.sure[own])
    if marks.outcome.shape[1] != end:
        raise PlanError(f"{marks.outcome.shape[1]} marks a response for {end} samples of questions: give one for each")
    return Table(len(marks.outcome), columns)


def verdicts_of(
    questions: Sequence[Question], responses: Sequence[str], verdicts: Sequence[Verdict]
) -> dict[str, list[Verdict]]:
    """Each response's verdicts, in canonical order; one on an unordered pair belongs to both of it."""
    mirrored = {q.id for q in questions if q.scope == "pair" and q.pairs == "unordered"}
    found: dict[str, list[Verdict]] = {name: [] for name in responses}
    for verdict in sorted(verdicts, key=lambda v: (v.question, v.about, v.responses, v.sample)):
        found[verdict.about].append(verdict)
        if verdict.question in mirrored and verdict.responses:
            found[verdict.responses[1]].append(verdict)
    return found


@np.errstate(over="ignore", invalid="ignore")
def _judge(decision: Decision, table: Table, combiners: Combiners) -> Judged:
    dropped = dropped_questions(decision, table)
    counted = table.marked(dropped, ABSENT) if dropped else table
    components = _components(decision, counted, combiners, "counted")
    present = {name: one.present for name, one in components.items()}
    if _wholly_judged(decision, table):
        fused = fuse(decision, _values(components), present)
        everything, nothing = np.ones_like(fused.value), np.zeros_like(fused.value, dtype=np.bool_)
        return Judged(components, fused, components, fused, fused.value, fused.value, everything, nothing, dropped)
    missing = _missing(decision, counted)
    partial = _of_what_is_judged(components, _components(decision, counted, combiners, "partial"), missing)
    partial_fused = fuse(decision, _values(partial), {name: one.present for name, one in partial.items()})
    spans = _spans(decision, counted, combiners, components, missing)
    fused = fuse(decision, _values(components), present, spans)
    least, most = ({name: span[end] for name, span in spans.items()} for end in (0, 1))
    open_ = missing | np.any([np.less(*span) for span in spans.values()], axis=0)
    ends = fuse_bounds(decision, least, most, present)
    low, high = (held("a bound of the reward", np.where(open_, end, fused.value)) for end in ends)
    coverage = _coverage(decision, table.marked(dropped, ABSTAINED) if dropped else table)
    lost = _lost(decision, table if decision.rule == "strict" else counted)
    components = _told(decision, counted, components)
    return Judged(components, fused, partial, partial_fused, low, high, coverage, lost, dropped)


def _wholly_judged(decision: Decision, table: Table) -> bool:
    """Whether of everything that was asked all was judged; a response may have fewer variants."""
    return all(
        bool((there | (outcome == ABSENT)).all() and there.any(axis=1).all())
        for outcome in _outcomes(decision, table)
        for there in [judged(outcome)]
    )


def _missing(decision: Decision, table: Table) -> Bools:
    """Where something that was asked was not judged, [R]."""
    return np.asarray(np.stack([unjudged(one).any(axis=1) for one in _outcomes(decision, table)]).any(axis=0))


def _outcomes(decision: Decision, table: Table) -> Iterator[NDArray[np.int8]]:
    """What became of everything that was asked, and of it as far as the components hear it."""
    yield from (columns.outcome for columns in table.columns.values())
    for stated in (one for spec in decision.specs for one in spec.inputs.values() if _listens(one)):
        yield table.outcomes(stated)[0]


def _listens(stated: Input) -> bool:
    """Whether an input may leave something unheard that was judged."""
    return stated.confident > 0.0 or stated.reduce == "majority"


def _values(components: Mapping[str, Component]) -> dict[str, Floats]:
    return {name: one.value for name, one in components.items()}


def _components(decision: Decision, table: Table, combiners: Combiners, scenario: Scenario) -> dict[str, Component]:
    components = {}
    for spec in decision.specs:
        cells = _cells(spec, table, decision.rule, scenario)
        one = take_component(spec.combiner, combiners[spec.combiner], cells, spec.params)
        listening = [stated for stated in spec.inputs.values() if _listens(stated)]
        components[spec.name] = (
            replace(one, figures={**one.figures, **_unheard(table, listening)}) if listening else one
        )
    given = [array for one in components.values() for array in (one.value, *one.parts.values())]
    told = [array for one in components.values() for array in one.figures.values()]
    if not np.isfinite(given).all() or np.isinf(told).any():
        _refuse_what_is_no_number(decision, components)
    return components


def _told(decision: Decision, table: Table, components: Mapping[str, Component]) -> dict[str, Component]:
    """Without the figures of responses of which nothing was judged, but for those that count what was not heard."""
    told = {}
    for spec in decision.specs:
        share, _ = _judged_share(spec, table)
        one = components[spec.name]
        figures = {n: v if n in _UNHEARD else np.where(share > 0.0, v, np.nan) for n, v in one.figures.items()}
        told[spec.name] = replace(one, figures=figures)
    return told


_UNHEARD = ("discarded", "without a majority")


def _unheard(table: Table, inputs: Sequence[Input]) -> dict[str, Floats]:
    """How many verdicts were discarded, and how many questions have no majority, [R] each."""
    counted = [table.unheard(one) for one in inputs]
    sums = (np.asarray(aggregation.total(each, axis=0)) for each in zip(*counted, strict=True))
    return dict(zip(_UNHEARD, sums, strict=True))


def _refuse_what_is_no_number(decision: Decision, components: Mapping[str, Component]) -> None:
    """Raise PlanError naming the component; what it says where it does not apply does not matter."""
    for spec in decision.specs:
        one = components[spec.name]
        given = [np.where(one.present, one.value, 0.0), *one.parts.values()]
        if not np.isfinite(given).all() or np.isinf([*one.figures.values()]).any():
            raise PlanError(
                f"combiner {spec.combiner!r} gave component {spec.name!r} a value that is not finite; mend the "
                "combiner, or bring the weights of the component's inputs closer together"
            )


def _cells(spec: Spec, table: Table, rule: str, scenario: Scenario) -> dict[str, Cells]:
    return {name: table.cells(one, rule, spec.direction, scenario) for name, one in spec.inputs.items()}


def _spans(
    decision: Decision, table: Table, combiners: Combiners, components: Mapping[str, Component], missing: Bools
) -> dict[str, Interval]:
    """The least and the greatest that each component could be: itself where nothing that it looks at is missing."""
    spans = {}
    for spec in decision.specs:
        cells = (_cells(spec, table, decision.rule, "low"), _cells(spec, table, decision.rule, "high"))
        combiner, value = combiners[spec.combiner], components[spec.name].value
        open_ = np.full_like(missing, missing.any()) if combiner.across else missing
        with told_of(f"combiner {spec.combiner!r}"):
            least, most = (np.where(open_, end, value) for end in combiner.bounds(*cells, spec.params))
        spans[spec.name] = least, most
    return spans


def _of_what_is_judged(
    counted: Mapping[str, Component], partial: Mapping[str, Component], missing: Bools
) -> dict[str, Component]:
    """What the judged part gives: where nothing of a response is missing, just what counts, whatever others lack."""
    return {
        name: replace(
            one,
            value=np.where(missing, one.value, counted[name].value),
            present=np.where(missing, one.present, counted[name].present),
        )
        for name, one in partial.items()
    }


def _coverage(decision: Decision, table: Table) -> Floats:
    """Judged share of the absolute weight, [R]: by component, by the masses of its inputs, by the weights of cells."""
    shares = {spec.name: _judged_share(spec, table) for spec in decision.specs}
    return covered(shares, {spec.name: spec.weight for spec in decision.specs})


def _judged_share(spec: Spec, table: Table) -> tuple[Floats, Bools]:
    masses, shares = [], []
    for one in spec.inputs.values():
        judged, asked = table.judged(one)
        masses.append(np.where(asked > 0, one.mass, 0.0))
        shares.append(judged / np.where(asked > 0, asked, 1.0))
    mass = np.stack(masses, axis=1)
    total = np.asarray(aggregation.total(mass))
    share = aggregation.total(mass * np.stack(shares, axis=1)) / np.where(total > 0, total, 1.0)
    return share, np.greater(total, 0.0)


def _lost(decision: Decision, table: Table) -> Bools:
    """Where the rule itself fails the reward, [R].

    `conservative`: at a penalty that was not judged for no fault of the response. `strict`: at any failure too, also
    of what does not count or was dropped for the group.
    """
    lost = np.zeros(table.rows, dtype=np.bool_)
    if decision.rule == "strict":  # also what a majority of samples hides
        for columns in table.columns.values():
            lost |= np.isin(columns.outcome, [FAILED_BY_RESPONSE, FAILED_BY_INFRASTRUCTURE]).any(axis=1)
    for spec in decision.specs if decision.rule == "strict" else decision.counting:
        for one in spec.inputs.values():
            outcome, weights = table.outcomes(one)
            lost |= _fatal(decision.rule, outcome, weights * spec.direction < 0).any(axis=1)
    return lost


def _fatal(rule: str, outcome: NDArray[np.int8], penalty: Bools) -> Bools:
    if rule == "gear":
        return np.zeros_like(outcome, dtype=np.bool_)
    fatal: Bools = penalty & np.isin(outcome, [FAILED_BY_INFRASTRUCTURE, NO_MODEL])
    return fatal


def _count(verdicts: Sequence[Verdict]) -> Counts:
    statuses = [v.status for v in verdicts]
    return _counts(*(statuses.count(one) for one in ("ok", "abstained", "failed", "not_applicable")))


def _count_each(outcome: NDArray[np.int8]) -> list[Counts]:
    """What became of each row's verdicts, from their codes [R, K]."""

    def times(*codes: int) -> list[int]:
        counted: list[int] = np.count_nonzero(np.isin(outcome, codes), axis=1).tolist()
        return counted

    failed = times(FAILED_BY_RESPONSE, FAILED_BY_INFRASTRUCTURE)
    return list(map(_counts, times(*JUDGED), times(ABSTAINED, NO_MODEL), failed, times(NOT_APPLICABLE)))


@lru_cache(maxsize=4096)
def _counts(judged: int, abstained: int, failed: int, not_applicable: int) -> Counts:
    """Many rewards share their counts."""
    return Counts(judged=judged, abstained=abstained, failed=failed, not_applicable=not_applicable)
