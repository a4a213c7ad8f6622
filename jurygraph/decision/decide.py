"""The deterministic aggregation node: rewards as a pure function of a decision and a group's verdicts.

It uses only + - * / min max on float64, in canonical order. So the same decision and verdicts give the same bits on any
machine, for any order of unordered inputs, and for any split of the group where no question compares responses.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiner import (
    Combiners,
    Component,
    Matrices,
    ScoreMatrix,
    as_plan_error,
    weighted_mean,
)
from jurygraph.decision.combiners import PREFERENCE_COMPLETENESS
from jurygraph.decision.fusion import Interval, fuse, fuse_bounds, require_finite
from jurygraph.decision.group_result import GroupResult, RewardRow, reward_rows
from jurygraph.decision.table import (
    ABSENT,
    ABSTAINED,
    FAILED_BY_INFRASTRUCTURE,
    FAILED_BY_RESPONSE,
    NO_MODEL,
    Scenario,
    VerdictTable,
    dropped_questions,
    has_score,
    lacks_score,
    stack_groups,
)
from jurygraph.errors import PlanError
from jurygraph.schema import ComponentInput, ComponentSpec, Counts, Decision, Question, RecordedVerdict, Reward
from jurygraph.schema.plan import SUBMITTED
from jurygraph.schema.trace import group_verdicts_by_response
from jurygraph.schema.verdict import GROUP_OF_ONE


class GroupVerdicts(NamedTuple):
    """A group to be decided: its decision and questions, the ids of its responses, and their verdicts in any order."""

    decision: Decision
    questions: Sequence[Question]
    responses: Sequence[str]
    verdicts: Sequence[RecordedVerdict]

    def batch_key(self, combiners: Combiners) -> Any:
        """Return a key that is equal for groups that can be decided together; None for one that is decided alone."""
        if not is_independent(self.decision, self.questions, combiners):
            return None
        return self.decision.digest, tuple(
            (question.id, question.samples, question.judges) for question in self.questions
        )


def compute_rewards(
    decision: Decision,
    questions: Sequence[Question],
    responses: Sequence[str],
    verdicts: Sequence[RecordedVerdict],
    combiners: Combiners,
) -> tuple[Reward, ...]:
    """Return the rewards of a group, in the order of `responses` (ids); they are computed in sorted order of ids.

    Raises PlanError if a reward overflows, or if a combiner returns something that is not a number.
    """
    (rewards,) = _decide_together([GroupVerdicts(decision, questions, responses, verdicts)], combiners)
    return rewards


def possible_rewards(group: GroupVerdicts, combiners: Combiners) -> tuple[Floats, Floats]:
    """Return the least and the greatest reward [R] that other verdicts could give, in the sorted order of ids.

    Raises PlanError as `compute_rewards` does.
    """
    table = stack_groups(group.questions, [(sorted(group.responses), group.verdicts)])
    unjudged = table.with_outcome(table.columns, FAILED_BY_INFRASTRUCTURE)
    result = _aggregate(group.decision, unjudged, combiners)
    return result.low, result.high


def compute_rewards_of_each(
    groups: Sequence[GroupVerdicts], combiners: Combiners
) -> list[tuple[Reward, ...] | Exception]:
    """Return the result of `compute_rewards` for each group, or its error; groups that allow it are decided together.

    The bits are those of each group alone.
    """
    together: dict[Any, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        key = group.batch_key(combiners) if len(groups) > 1 else None
        together[(place,) if key is None else key].append(place)
    outcomes: dict[int, tuple[Reward, ...] | Exception] = {}
    for places in together.values():
        outcomes.update(zip(places, _try_together([groups[place] for place in places], combiners), strict=True))
    return [outcomes[place] for place in range(len(groups))]


def _try_together(groups: Sequence[GroupVerdicts], combiners: Combiners) -> Sequence[tuple[Reward, ...] | Exception]:
    """Return the rewards of groups of one batch key; after an error of one of them, each is decided alone."""
    try:
        return _decide_together(groups, combiners)
    except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this group's traces
        return [error] if len(groups) == 1 else [_try_together([group], combiners)[0] for group in groups]


def _decide_together(groups: Sequence[GroupVerdicts], combiners: Combiners) -> list[tuple[Reward, ...]]:
    """Return the rewards of groups of one batch key, or of a single group."""
    decision = groups[0].decision
    questions = groups[0].questions
    names = [sorted(group.responses) for group in groups]
    table = stack_groups(questions, [(names[place], group.verdicts) for place, group in enumerate(groups)])
    counts: list[Counts] = []
    is_alone: list[bool] = []
    for of_group, group in zip(names, groups, strict=True):
        by_response = group_verdicts_by_response(questions, of_group, group.verdicts)
        counts += [_count(by_response[name]) for name in of_group]
        is_alone += [any(v.gated_by == GROUP_OF_ONE for v in by_response[name]) for name in of_group]
    rows = iter(decide_table(decision, table, counts, is_alone, combiners))
    rewards = [{name: next(rows).to_reward(decision) for name in of_group} for of_group in names]
    return [tuple(its[name] for name in group.responses) for its, group in zip(rewards, groups, strict=True)]


def decide_table(
    decision: Decision,
    table: VerdictTable,
    counts: Sequence[Counts],
    is_alone: Sequence[bool],
    combiners: Combiners,
) -> list[RewardRow]:
    """Return the rewards of all rows of a table, of one group, or of several if `is_independent`.

    `counts` are those of a row's verdicts by status; `is_alone` marks rows with nothing to be compared with.
    """
    return reward_rows(decision, _aggregate(decision, table, combiners), counts, is_alone)


def has_independent_rows(decision: Decision, questions: Sequence[Question], combiners: Combiners) -> bool:
    """Return whether no verdict on another response of its group can change a reward."""
    has_pairs = any(question.scope == "pair" for question in questions)
    uses_other_rows = any(combiners[spec.combiner].uses_other_rows for spec in decision.specs)
    return not has_pairs and not uses_other_rows and decision.group_rule is None


def is_independent(decision: Decision, questions: Sequence[Question], combiners: Combiners) -> bool:
    """Return whether no reward depends on another response of its group, so that groups can be decided together."""
    is_per_response = all(q.scope == "response" and q.material == SUBMITTED for q in questions)
    are_batched = all(combiners[spec.combiner].batched for spec in decision.specs)
    return is_per_response and are_batched and decision.group_rule is None


@np.errstate(over="ignore", invalid="ignore")
def _aggregate(decision: Decision, table: VerdictTable, combiners: Combiners) -> GroupResult:
    """Return the components, fused rewards, bounds and coverage of all rows of a table."""
    dropped = dropped_questions(decision, table)
    counted = table.with_outcome(dropped, ABSENT) if dropped else table
    components = _components(decision, counted, combiners, "counted")
    if _is_complete(decision, table):
        fused = fuse(decision, components)
        full_coverage = np.ones_like(fused.value)
        none_failed = np.zeros_like(fused.value, dtype=np.bool_)
        return GroupResult(
            components, fused, components, fused, fused.value, fused.value, full_coverage, none_failed, dropped
        )
    missing: Bools = np.any([lacks_score(outcome).any(axis=1) for outcome in _outcomes(decision, counted)], axis=0)
    partial = {  # a response that lacks no verdict has the counted value
        name: replace(
            component,
            value=np.where(missing, component.value, components[name].value),
            present=np.where(missing, component.present, components[name].present),
        )
        for name, component in _components(decision, counted, combiners, "partial").items()
    }
    spans = _spans(decision, counted, combiners, components, missing)
    fused = fuse(decision, components, spans)
    is_open = missing | np.any([np.less(*span) for span in spans.values()], axis=0)
    bounds = fuse_bounds(decision, spans, {name: component.present for name, component in components.items()})
    low, high = (require_finite("a bound of the reward", np.where(is_open, bound, fused.value)) for bound in bounds)
    requested = table.with_outcome(dropped, ABSTAINED) if dropped else table
    return GroupResult(
        components=_without_unjudged_diagnostics(decision, counted, components),
        fused=fused,
        partial=partial,
        partial_fused=fuse(decision, partial),
        low=low,
        high=high,
        coverage=_coverage(decision, requested),
        failed_by_rule=_is_failed_by_rule(decision, table if decision.rule == "strict" else counted),
        dropped=dropped,
    )


def _is_complete(decision: Decision, table: VerdictTable) -> bool:
    """Return whether all requested verdicts were judged; a response may have fewer variants than others."""
    return all(
        has_judgement.all() or ((has_judgement | (outcome == ABSENT)).all() and has_judgement.any(axis=1).all())
        for outcome in _outcomes(decision, table)
        for has_judgement in [has_score(outcome)]
    )


def _outcomes(decision: Decision, table: VerdictTable) -> Iterator[NDArray[np.int8]]:
    """Return the outcomes of all requested verdicts, then those of inputs that may discard some, as they use them."""
    yield from (columns.outcome for columns in table.columns.values())
    for spec_input in (item for spec in decision.specs for item in spec.inputs.values() if _is_selective(item)):
        yield table.outcomes(spec_input)[0]


def _is_selective(spec_input: ComponentInput) -> bool:
    """Return whether an input may discard a verdict that was judged."""
    return spec_input.min_confidence > 0.0 or spec_input.reduce == "majority"


def _components(
    decision: Decision, table: VerdictTable, combiners: Combiners, scenario: Scenario
) -> dict[str, Component]:
    """Return each component with the counts of discarded verdicts, and with the spread over samples.

    Raises PlanError naming the combiner if it raises, or does not return one finite number for each response.
    """
    components = {}
    for spec in decision.specs:
        with as_plan_error(f"combiner {spec.combiner!r}"):
            matrices = _score_matrices(spec, table, decision.rule, scenario)
            component = combiners[spec.combiner].combine(matrices, spec.params)
            arrays = (component.value, component.present, *component.parts.values(), *component.diagnostics.values())
            if any(array.shape != (table.rows,) for array in arrays):
                problem = "every array of a component has one number for each response"
                raise PlanError(f"combiner {spec.combiner!r} failed: {problem}")
        counts = [table.count_discarded(item) for item in spec.inputs.values() if _is_selective(item)]
        if counts:
            sums = (np.asarray(aggregation.total(column, axis=0)) for column in zip(*counts, strict=True))
            discarded = dict(zip(_DISCARD_COUNTS, sums, strict=True))
            component = replace(component, diagnostics={**component.diagnostics, **discarded})
        spread = table.sample_spread(spec.inputs.values())
        if spread is not None:
            component = replace(component, diagnostics={**component.diagnostics, SPREAD: spread})
        figures = [*component.parts.values(), *component.diagnostics.values()]
        if not np.isfinite(np.where(component.present, component.value, 0.0)).all() or np.isinf(figures).any():
            raise PlanError(
                f"combiner {spec.combiner!r} gave component {spec.name!r} a value that is not finite; fix the "
                "combiner, or bring the weights of the component's inputs closer together"
            )
        components[spec.name] = replace(component, parts=_applicable_parts(component.parts, matrices))
    return components


def _applicable_parts(parts: Mapping[str, Floats], matrices: Matrices) -> dict[str, Floats]:
    """Return the parts with NaN where the input of that name does not apply, so that none of them reads as 0."""
    return {
        name: np.where(matrices[name].applicable.any(axis=1), part, np.nan) if name in matrices else part
        for name, part in parts.items()
    }


def _without_unjudged_diagnostics(
    decision: Decision, table: VerdictTable, components: Mapping[str, Component]
) -> dict[str, Component]:
    """Remove a component's diagnostics for responses without a judged verdict that counts.

    Figures of the verdicts alone stay, and preference completeness, whose verdicts have no weight.
    """
    cleaned = {}
    for spec in decision.specs:
        share, _ = _judged_share(spec, table)
        diagnostics = {
            name: values
            if name in (*_DISCARD_COUNTS, SPREAD, PREFERENCE_COMPLETENESS)
            else np.where(share > 0.0, values, np.nan)
            for name, values in components[spec.name].diagnostics.items()
        }
        cleaned[spec.name] = replace(components[spec.name], diagnostics=diagnostics)
    return cleaned


_DISCARD_COUNTS = ("discarded", "without a majority")
"""The number of discarded verdicts, and of questions without a majority."""
SPREAD = "spread over samples"
"""The largest difference between two samples' scores on one question of the component."""


def _score_matrices(spec: ComponentSpec, table: VerdictTable, rule: str, scenario: Scenario) -> dict[str, ScoreMatrix]:
    return {
        name: table.score_matrix(spec_input, rule, spec.direction, scenario) for name, spec_input in spec.inputs.items()
    }


def _spans(
    decision: Decision, table: VerdictTable, combiners: Combiners, components: Mapping[str, Component], missing: Bools
) -> dict[str, Interval]:
    """Return the least and greatest value a component can have: its own if nothing it depends on is missing."""
    spans = {}
    for spec in decision.specs:
        matrices = (
            _score_matrices(spec, table, decision.rule, "low"),
            _score_matrices(spec, table, decision.rule, "high"),
        )
        combiner = combiners[spec.combiner]
        value = components[spec.name].value
        is_open = np.full_like(missing, missing.any()) if combiner.uses_other_rows else missing
        with as_plan_error(f"combiner {spec.combiner!r}"):
            least, most = (np.where(is_open, bound, value) for bound in combiner.bounds(*matrices, spec.params))
        spans[spec.name] = least, most
    return spans


def _coverage(decision: Decision, table: VerdictTable) -> Floats:
    """Return the judged share of the absolute weight of the components that apply, [R]; 0 if none applies."""
    shares, applies = zip(*(_judged_share(spec, table) for spec in decision.specs), strict=True)
    weights = np.where(np.stack(applies, axis=1), [abs(spec.weight) for spec in decision.specs], 0.0)
    return weighted_mean(np.stack(shares, axis=1), weights)[0]


def _judged_share(spec: ComponentSpec, table: VerdictTable) -> tuple[Floats, Bools]:
    columns = zip(*(table.settled_weight(spec_input) for spec_input in spec.inputs.values()), strict=True)
    settled, requested = (np.stack(column, axis=1) for column in columns)
    weights = np.where(requested > 0, [spec_input.input_weight for spec_input in spec.inputs.values()], 0.0)
    return weighted_mean(settled / np.where(requested > 0, requested, 1.0), weights)


def _is_failed_by_rule(decision: Decision, table: VerdictTable) -> Bools:
    """Return where the rule itself fails the reward, [R].

    `conservative`: at a penalty that was not judged, if the response is not the cause. `strict`: also at any failure,
    including verdicts that do not count or that were dropped for the group.
    """
    is_failed = np.zeros(table.rows, dtype=np.bool_)
    if decision.rule == "gear":
        return is_failed
    if decision.rule == "strict":  # includes failures that a majority of samples hides
        for columns in table.columns.values():
            is_failed |= np.isin(columns.outcome, [FAILED_BY_RESPONSE, FAILED_BY_INFRASTRUCTURE]).any(axis=1)
    for spec in decision.specs if decision.rule == "strict" else decision.counting_specs:
        for spec_input in spec.inputs.values():
            outcome, weights = table.outcomes(spec_input)
            is_fatal = (weights * spec.direction < 0) & np.isin(outcome, [FAILED_BY_INFRASTRUCTURE, NO_MODEL])
            is_failed |= is_fatal.any(axis=1)
    return is_failed


def _count(verdicts: Sequence[RecordedVerdict]) -> Counts:
    statuses = [v.status for v in verdicts if not v.superseded]
    return _counts(*(statuses.count(status) for status in ("ok", "abstained", "failed", "not_applicable")))


@lru_cache(maxsize=4096)
def _counts(judged: int, abstained: int, failed: int, not_applicable: int) -> Counts:
    """Return the counts; cached, because many rewards share theirs."""
    return Counts(judged=judged, abstained=abstained, failed=failed, not_applicable=not_applicable)
