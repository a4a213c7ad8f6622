"""Rewards, as a pure function of a decision and the verdicts on a group; the node `decide` and stored runs use it.

It uses only + - * / min max on float64, in canonical order. So the same decision and verdicts give the same bits on any
machine, for any order of unordered inputs, and for any split of the group where no question compares responses.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiners import (
    PREFERENCE_COMPLETENESS_DIAGNOSTIC,
    BoundArrays,
    Combiner,
    Combiners,
    Component,
    InputMatrices,
    RowValuesByName,
    ScoreMatrix,
    ValuesAndMask,
    raise_as_plan_error,
    totals,
    weighted_mean,
)
from jurygraph.decision.fusing import (
    Components,
    FusionResult,
    fuse,
    fuse_reward_bounds,
    require_finite,
)
from jurygraph.decision.table import (
    ABSENT_CODE,
    ABSTAINED_CODE,
    EMPTY_TURN_CODE,
    FAILED_BY_INFRASTRUCTURE_CODE,
    FAILED_BY_RESPONSE_CODE,
    JUDGED_NOT_APPLICABLE_CODE,
    NO_MODEL_CODE,
    NO_VARIANTS_CODE,
    NOT_APPLICABLE_CODE,
    UnjudgedFillMode,
    VerdictTable,
    dropped_questions,
    has_score,
    lacks_score,
    stack_groups,
)
from jurygraph.errors import PlanError
from jurygraph.schema import (
    ComponentInput,
    ComponentSpec,
    Counts,
    Decision,
    Must,
    Question,
    RecordedVerdict,
    RepetitionControl,
    Reward,
)
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.plan import RewardGate
from jurygraph.schema.trace import group_verdicts_by_response
from jurygraph.schema.verdict import GROUP_OF_ONE_GATE_NAME, VerdictStatus

ROUNDING_TOLERANCE = 1e-9


class MeasuredComponent(NamedTuple):
    """A component of a table, and what is missing of it. Arrays are [R].

    `spec` is without its weight. `partial` is the component if verdicts that were not judged had never been requested;
    `span` are its least and greatest values, and `share` is what was judged of its requested weight.
    """

    spec: ComponentSpec
    counted: Component
    partial: Component
    span: BoundArrays
    share: ValuesAndMask


class MeasuredTable(NamedTuple):
    """The components of a table and what is missing of them: all that weights make rewards of. Arrays are [R].

    `key` is how its decision uses verdicts, and `parts` are the components of `all_specs`. `dropped` are the questions
    left out for all. `lacks_verdict` says where a verdict is missing, and `failed_by_rule` where the rule itself fails
    a reward: of `decisive`, if its bounds differ. Both are false where all verdicts were judged.
    """

    key: Sequence[Any]
    dropped: frozenset[str]
    is_fully_judged: bool
    lacks_verdict: Bools
    failed_by_rule: Bools
    parts: Mapping[str, MeasuredComponent] = {}

    @property
    def components(self) -> Components:
        return {name: part.counted for name, part in self.parts.items()}

    @property
    def partial(self) -> Components:
        return {name: part.partial for name, part in self.parts.items()}


class GroupResult(NamedTuple):
    """Results for some responses before their rewards are built; arrays are [R].

    `partial_fused` is the result if verdicts that were not judged had never been requested; `low` and `high` bound the
    reward over all values of the missing verdicts. `unjudged_musts` has by note where a must could be broken or whole;
    `failed_by_rule` marks rewards that one of these fails, or the rule itself.
    """

    measured: MeasuredTable
    fused: FusionResult
    partial_fused: FusionResult
    low: Floats
    high: Floats
    coverage: Floats
    unjudged_musts: Mapping[str, Bools]
    failed_by_rule: Bools


class RewardRow(NamedTuple):
    """A reward without the fields that its decision implies: components and terms have positions instead of names.

    `gate_values` are the values that gates used, by `key`: of musts, and where these are the worst of several.
    """

    value: float | None
    status: str
    partial: float | None
    coverage: float
    range: tuple[float, float] | None
    components: Sequence[float | None]
    terms: Sequence[float | None]
    counts: Counts
    parts: Mapping[str, Mapping[str, float]]
    diagnostics: Mapping[str, Mapping[str, float]]
    adjustments: Sequence[tuple[str, float, float]]
    gate_values: Mapping[str, float]
    notes: Sequence[str]

    @classmethod
    def from_reward(cls, reward: Reward) -> "RewardRow":
        fields = dict(vars(reward))
        fields["components"] = list(reward.components.values())
        fields["terms"] = [term.value for term in reward.terms]
        fields["adjustments"] = [
            (step.name, step.before, step.after) for step in reward.adjustments
        ]
        fields["gate_values"] = {
            gate.key: gate.value
            for gate in reward.gates
            if gate.is_worst_case or (gate.kind == "must" and gate.value is not None)
        }
        return cls(**{name: fields[name] for name in cls._fields})

    def to_reward(self, decision: Decision) -> Reward:
        names = [spec.name for spec in decision.specs]
        terms = [
            {
                "name": spec.name,
                "weight": spec.weight,
                "value": value,
                "contribution": None if value is None else spec.weight * value,
            }
            for spec, value in zip(decision.specs, self.terms, strict=True)
        ]
        fields = self._asdict()
        del fields["gate_values"]  # `gates` has them
        fields["components"] = dict(zip(names, self.components, strict=True))
        fields["terms"] = terms
        fields["adjustments"] = [
            {"name": name, "before": before, "after": after}
            for name, before, after in self.adjustments
        ]
        fields["gates"] = list(self._gate_results(decision)) if decision.gates else ()
        fields["weights_fixed"] = decision.weights_fixed
        # Validation of one mapping is faster than `model_construct`, and refuses values that are not numbers.
        return Reward.model_validate(fields)

    def _gate_results(self, decision: Decision) -> Iterator[JsonFields]:
        """Yield the result of every reward gate: they follow from the row."""
        weights = {spec.name: spec.weight for spec in decision.specs}
        values = dict(zip(weights, self.terms, strict=True))
        reward_by_adjustment = {name: after for name, _, after in self.adjustments}
        # The terms are summed as in `fuse`: in the order of the names, 0 for a component that is not present.
        terms = [weights[name] * (values[name] or 0.0) for name in sorted(values)]
        reward = float(aggregation.total(terms))
        for gate in decision.gates:
            measure = self.gate_values.get(gate.key, values.get(gate.component))
            if measure is not None:
                measure = min(max(measure, 0.0), 1.0)
            if isinstance(gate, RepetitionControl):
                op = ">"
                threshold = gate.above
            else:
                op = "<"
                threshold = gate.below
            before = reward
            # An adjustment is recorded only where the gate has changed the reward.
            reward = reward_by_adjustment.get(gate.step, before)
            yield {
                "kind": gate.kind,
                "component": gate.component,
                "value": measure,
                "is_worst_case": gate.kind in self.gate_values
                or _unjudged_note(gate) in self.notes
                or _is_must_open(gate, measure, before, reward),
                "op": op,
                "threshold": threshold,
                "before": before,
                "after": reward,
            }


def build_reward_rows(
    decision: Decision,
    result: GroupResult,
    counts: Sequence[Counts],
    only_response_flags: Sequence[bool],
) -> list[RewardRow]:
    """Return the rewards of all rows. `counts` are those of a row's verdicts by status; `only_response_flags` marks
    rows with no response to be compared with."""
    rows = len(counts)
    measured = result.measured
    coverage = result.coverage
    is_reward_failed = _has_failed_reward(decision, result)
    is_reward_undetermined = (
        result.low < result.high
    )  # missing verdicts could still change the reward
    lacks_full_coverage = coverage < 1.0 - ROUNDING_TOLERANCE
    is_only_response = np.array(only_response_flags, dtype=np.bool_)
    is_degraded = (
        lacks_full_coverage | is_reward_undetermined | is_only_response | bool(measured.dropped)
    )
    status = np.where(is_reward_failed, "failed", np.where(is_degraded, "degraded", "ok")).tolist()
    notes = [
        () if word == "ok" else _notes(decision, result, row, only_response_flags[row])
        for row, word in enumerate(status)
    ]
    parts = {}
    diagnostics = {}
    for spec in decision.specs:
        parts[spec.name] = measured.parts[spec.name].counted.parts
        diagnostics[spec.name] = measured.parts[spec.name].counted.diagnostics
    gate_values = _named_values_by_row({"": result.fused.gate_values}, rows)
    columns = {
        "value": _numbers_or_none(result.fused.value, ~is_reward_failed),
        "status": status,
        "partial": _numbers_or_none(result.partial_fused.value, coverage > 0.0),
        "coverage": coverage.tolist(),
        "range": zip(result.low.tolist(), result.high.tolist(), strict=True),
        "components": _component_values_by_row(decision, measured.partial),
        "terms": _component_values_by_row(decision, measured.components),
        "counts": counts,
        "parts": _named_values_by_row(parts, rows),
        "diagnostics": _named_values_by_row(diagnostics, rows),
        "adjustments": _reward_adjustments_by_row(result.fused, rows),
        "gate_values": [row.get("", {}) for row in gate_values],
        "notes": notes,
    }
    ordered_columns = [columns[name] for name in RewardRow._fields]
    return [RewardRow._make(values) for values in zip(*ordered_columns, strict=True)]


def _has_failed_reward(decision: Decision, result: GroupResult) -> Bools:
    """Return where a reward has no value, [R]."""
    coverage = result.coverage
    # with tolerance: four of five weights of 0.3 are not less than 0.8
    lacks_coverage = coverage < decision.min_coverage - ROUNDING_TOLERANCE
    has_failed_reward: Bools = result.failed_by_rule | lacks_coverage | (coverage == 0.0)
    return has_failed_reward


class TableRewards(NamedTuple):
    """Rewards, NaN where one failed, and the least and greatest that missing verdicts could make of them, [R] each.

    `judged` are the values of the components, [R,K], from the judged verdicts alone; NaN without any. After them it has
    what each gate took, before the scale.
    """

    value: Floats
    low: Floats
    high: Floats
    judged: Floats


def compute_reward_values(decision: Decision, measured: MeasuredTable) -> TableRewards:
    """Return the values of the rewards of a table alone; the bits are those of its rewards.

    `measured` is of this decision, but for weights, gates, scale and clip. Raises PlanError if a reward overflows.
    """
    result = _fuse_measured_table(decision, measured)
    value = np.where(_has_failed_reward(decision, result), np.nan, result.fused.value)
    components = [measured.parts[spec.name].partial for spec in decision.specs]
    judged = [np.where(part.present, part.value, np.nan) for part in components]
    changes = result.fused.changes[: len(decision.gates)]  # the scale and the clip come last
    judged += [before - after for _, before, after in changes]
    return TableRewards(value, result.low, result.high, np.stack(judged, axis=1))


def _numbers_or_none(values: Floats, has_value: Bools) -> list[float | None]:
    """Return the values as a list, with None where there is none."""
    numbers = np.asarray(values, dtype=np.float64).tolist()
    return [
        value if is_available else None
        for value, is_available in zip(numbers, has_value.tolist(), strict=True)
    ]


def _component_values_by_row(
    decision: Decision, components: Components
) -> Iterable[tuple[float | None, ...]]:
    columns = []
    for spec in decision.specs:
        component = components[spec.name]
        columns.append(_numbers_or_none(component.value, component.present))
    return zip(*columns, strict=True)


def _named_values_by_row(
    components: Mapping[str, RowValuesByName], rows: int
) -> list[dict[str, dict[str, float]]]:
    """Return each row's named numbers by component, without NaN, which marks a value that is not available."""
    named_values_by_row: list[dict[str, dict[str, float]]] = [{} for _ in range(rows)]
    for name, arrays in components.items():
        for key, array in arrays.items():
            numbers = np.asarray(array, dtype=np.float64).tolist()
            for row, number in zip(named_values_by_row, numbers, strict=True):
                if not math.isnan(number):
                    row.setdefault(name, {})[key] = number
    return named_values_by_row


def _reward_adjustments_by_row(
    fused_rewards: FusionResult, rows: int
) -> Iterable[Sequence[tuple[str, float, float]]]:
    if not fused_rewards.changes:
        return [()] * rows
    steps = [
        zip([name] * rows, before.tolist(), after.tolist(), strict=True)
        for name, before, after in fused_rewards.changes
    ]
    return ([step for step in row if step[1] != step[2]] for row in zip(*steps, strict=True))


_STRICT_FAILURE_NOTE = "under the strict rule a failure fails the reward"
_JUDGED_SHARE_NOTE_PART = " of the weight was judged"
_LOW_COVERAGE_NOTE_SUFFIX = " is asked for"
_DROPPED_NOTE_SUFFIX = " was dropped for the whole group, because it was not judged for all"
_COUNTED_REST_NOTE_PATTERN = re.compile("; the rest counts as the .* rule says$")


def explain_notes(notes: Sequence[str]) -> list[str]:
    """Return a reward's notes with the setting that asks for more, and with what dropped questions make of the rest.

    The stored notes are verified, and stay as they are.
    """
    has_dropped_question = any(note.endswith(_DROPPED_NOTE_SUFFIX) for note in notes)
    explained_notes = []
    for note in notes:
        if note.endswith(_LOW_COVERAGE_NOTE_SUFFIX):
            note += " (failure.min_coverage)"
        if note == _STRICT_FAILURE_NOTE:
            note += ", also one of weight 0"
        if has_dropped_question:
            note = _COUNTED_REST_NOTE_PATTERN.sub("; the rest was dropped", note)
            judged_for_all = f"{_JUDGED_SHARE_NOTE_PART} for all of the group"
            note = note.replace(_JUDGED_SHARE_NOTE_PART, judged_for_all)
        explained_notes.append(note)
    return explained_notes


def _notes(decision: Decision, result: GroupResult, row: int, is_only_response: bool) -> list[str]:
    coverage = result.coverage[row]
    notes = [note for note, is_unjudged in result.unjudged_musts.items() if is_unjudged[row]]
    if result.failed_by_rule[row] and not notes:
        penalty_text = "a penalty that was not judged, by no fault of the response,"
        causes = {"strict": "a failure", "decisive": "a failure that could change it"}
        cause_text = causes.get(decision.rule, penalty_text)
        notes.append(f"under the {decision.rule} rule {cause_text} fails the reward")
    if coverage == 0.0:
        notes.append("nothing that counts was judged")
    elif coverage < decision.min_coverage - ROUNDING_TOLERANCE:
        notes.append(
            f"{coverage:.3g}{_JUDGED_SHARE_NOTE_PART}, and {decision.min_coverage:g}{_LOW_COVERAGE_NOTE_SUFFIX}"
        )
    elif coverage < 1.0 - ROUNDING_TOLERANCE:
        notes.append(
            f"{coverage:.3g}{_JUDGED_SHARE_NOTE_PART}; the rest counts as the {decision.rule} rule says"
        )
    elif result.low[row] < result.high[row] and not notes:
        notes.append(
            "what a gate or a comparison looks at was not judged, and could still change the reward"
        )
    if is_only_response:
        notes.append("the group has one response, so nothing could be compared")
    notes += [f"{name}{_DROPPED_NOTE_SUFFIX}" for name in sorted(result.measured.dropped)]
    return notes


def _unjudged_note(gate: RewardGate) -> str:
    return f"{gate.title}: {gate.component} was not judged"


def _is_must_open(gate: RewardGate, value: float | None, before: float, after: float) -> bool:
    """Return whether a must that could be broken has taken nothing: it was not judged, and another must decides."""
    is_broken = isinstance(gate, Must) and value is not None and value < gate.below
    return is_broken and after == before > 0.0


class GroupVerdicts(NamedTuple):
    """A group to be decided: its decision and questions, the ids of its responses, and their verdicts in any order."""

    decision: Decision
    questions: Sequence[Question]
    responses: Sequence[str]
    verdicts: Sequence[RecordedVerdict]

    def batch_key(self, combiners: Combiners) -> Any:
        """Return a key that is equal for groups that can be decided together; None for one that is decided alone."""
        if not can_be_decided_together(self.decision, self.questions, combiners):
            return None
        # The table's columns follow from the seats of the questions.
        question_requests = [
            (question.id, question.samples, question.judges) for question in self.questions
        ]
        return self.decision.digest, tuple(question_requests)


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
    groups = [GroupVerdicts(decision, questions, responses, verdicts)]
    (rows,) = _decide_together(groups, combiners)
    return tuple(row.to_reward(decision) for row in rows)


def possible_reward_bounds(group: GroupVerdicts, combiners: Combiners) -> BoundArrays:
    """Return the least and the greatest reward [R] that other scores could give, in the sorted order of ids.

    What does not apply stays so. Raises PlanError as `compute_rewards` does.
    """
    table = stack_groups(group.questions, [(sorted(group.responses), group.verdicts)])
    unjudged_table = table.with_verdict_code(
        table.columns,
        FAILED_BY_INFRASTRUCTURE_CODE,
        kept=(NOT_APPLICABLE_CODE, NO_VARIANTS_CODE, JUDGED_NOT_APPLICABLE_CODE, EMPTY_TURN_CODE),
    )
    result = _fuse_measured_table(
        group.decision, measure_table(group.decision, unjudged_table, combiners)
    )
    return result.low, result.high


def reward_limits(decision: Decision, *, all_criteria_apply: bool) -> tuple[float, float]:
    """Return the least and the greatest reward of components in [0, 1]; penalties of a rubric may take it below 0.

    `all_criteria_apply` says that each criterion applies to each response. This takes no question and no combiner, and
    50 µs: a run may have a decision for each task. `possible_reward_bounds` is narrower where some scores exclude each
    other.
    """
    spans = {}
    for spec in decision.all_specs:
        weights = [use.signed_weight for use in spec.inputs.values()]
        positive_weights = [weight for weight in weights if weight > 0.0]
        penalties = float(aggregation.total([weight for weight in weights if weight < 0.0]))
        # a rubric divides by the gains that apply: at worst by the smallest one alone
        divisor = (
            float(aggregation.total(positive_weights))
            if all_criteria_apply
            else min(positive_weights, default=0.0)
        )
        lowest_component_value = penalties / divisor if divisor else 0.0
        spans[spec.name] = np.array([lowest_component_value]), np.ones(1)
    present = {name: np.ones(1, dtype=np.bool_) for name in spans}
    low, high = fuse_reward_bounds(decision, spans, present)
    return float(low[0]), float(high[0])


def decide_groups(
    groups: Sequence[GroupVerdicts], combiners: Combiners
) -> list[list[RewardRow] | Exception]:
    """Return for each group its rewards as rows, in the order of its responses, or its error.

    Groups that allow it are decided together; the bits are those of `compute_rewards` for each group alone.
    """
    batches = defaultdict(list)
    for index, group in enumerate(groups):
        key = group.batch_key(combiners) if len(groups) > 1 else None
        if key is None:  # a batch of its own
            key = (index,)
        batches[key].append(index)
    rewards_by_index: dict[int, list[RewardRow] | Exception] = {}
    for batch in batches.values():
        batch_rewards = _decide_together_or_singly([groups[index] for index in batch], combiners)
        rewards_by_index.update(zip(batch, batch_rewards, strict=True))
    return [rewards_by_index[index] for index in range(len(groups))]


def _decide_together_or_singly(
    groups: Sequence[GroupVerdicts], combiners: Combiners
) -> Sequence[list[RewardRow] | Exception]:
    """Return the rewards of groups of one batch key; after an error of one of them, each is decided alone."""
    try:
        return _decide_together(groups, combiners)
    except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this group's traces
        if len(groups) == 1:
            return [error]
        return [_decide_together_or_singly([group], combiners)[0] for group in groups]


def _decide_together(
    groups: Sequence[GroupVerdicts], combiners: Combiners
) -> list[list[RewardRow]]:
    """Return the rewards of groups of one batch key, or of a single group, as rows."""
    decision = groups[0].decision
    questions = groups[0].questions
    # The rows of the table: the groups in their order, the responses of a group in the sorted order of ids.
    sorted_ids = [sorted(group.responses) for group in groups]
    verdicts = [group.verdicts for group in groups]
    table = stack_groups(questions, zip(sorted_ids, verdicts, strict=True))
    counts = []
    is_only_response = []
    for response_ids, group in zip(sorted_ids, groups, strict=True):
        verdicts_by_response = group_verdicts_by_response(questions, response_ids, group.verdicts)
        for response_id in response_ids:
            response_verdicts = verdicts_by_response[response_id]
            counts.append(_count_verdicts(response_verdicts))
            is_only_response.append(
                any(v.gated_by == GROUP_OF_ONE_GATE_NAME for v in response_verdicts)
            )
    result = _fuse_measured_table(decision, measure_table(decision, table, combiners))
    rows = iter(build_reward_rows(decision, result, counts, is_only_response))
    rows_by_group = []
    for response_ids, group in zip(sorted_ids, groups, strict=True):
        row_by_response = {response_id: next(rows) for response_id in response_ids}
        rows_by_group.append([row_by_response[response_id] for response_id in group.responses])
    return rows_by_group


def has_independent_rows(
    decision: Decision, questions: Sequence[Question], combiners: Combiners
) -> bool:
    """Return whether no verdict on another response of its group can change a reward."""
    has_pair_questions = any(question.scope == "pair" for question in questions)
    uses_other_rows = any(combiners[spec.combiner].uses_other_rows for spec in decision.specs)
    return not has_pair_questions and not uses_other_rows and decision.group_rule is None


def can_be_decided_together(
    decision: Decision, questions: Sequence[Question], combiners: Combiners
) -> bool:
    """Return whether each question is about one response as it is, and `computes_rows_apart` holds: then verdicts of
    several groups make one table."""
    is_per_response = all(q.scope == "response" and not q.is_about_variants for q in questions)
    return is_per_response and computes_rows_apart(decision, combiners)


def computes_rows_apart(decision: Decision, combiners: Combiners) -> bool:
    """Return whether each row of a table is computed from itself alone, so that tables with the same columns can be
    decided as one."""
    return decision.group_rule is None and all(
        combiners[spec.combiner].batched for spec in decision.specs
    )


@np.errstate(over="ignore", invalid="ignore")
def measure_table(
    decision: Decision,
    table: VerdictTable,
    combiners: Combiners,
    previous: MeasuredTable | None = None,
) -> MeasuredTable:
    """Return the components of all rows of a table, and what is missing of them.

    Of several groups, `computes_rows_apart` must hold. `previous` is the same table measured for another decision:
    components are kept that differ by no more than a weight. Raises PlanError as `compute_rewards` does.
    """
    key = _verdict_use_key(decision)
    if previous is None or previous.key != key:
        previous = _find_missing_verdicts(decision, table, key)
    parts = dict(previous.parts)
    for spec in decision.all_specs:
        weightless_spec = spec.model_copy(update={"weight": 0.0})
        if spec.name not in parts or parts[spec.name].spec != weightless_spec:
            parts[spec.name] = _measure_component(
                weightless_spec, decision.rule, table, combiners[spec.combiner], previous
            )
    return previous._replace(parts=parts)


def _measure_component(
    spec: ComponentSpec, rule: str, table: VerdictTable, combiner: Combiner, measured: MeasuredTable
) -> MeasuredComponent:
    retained_verdict_table = table.with_verdict_code(measured.dropped, ABSENT_CODE)
    fill = partial(_score_matrices, spec, retained_verdict_table, rule)
    counted = _compute_component(spec, retained_verdict_table, combiner, fill("counted"))
    value = counted.value
    if measured.is_fully_judged:
        share = np.broadcast_to(1.0, value.shape), counted.present
        return MeasuredComponent(spec, counted, counted, (value, value), share)
    missing = measured.lacks_verdict
    judged = _compute_component(spec, retained_verdict_table, combiner, fill("partial"))
    share = _judged_weight_share(spec, table.with_verdict_code(measured.dropped, ABSTAINED_CODE))
    # A response that lacks no verdict has the counted value.
    judged_value = np.where(missing, judged.value, value)
    judged_present = np.where(missing, judged.present, counted.present)
    # A component has its own value as bounds if nothing it depends on is missing.
    is_undetermined = np.full_like(missing, missing.any()) if combiner.uses_other_rows else missing
    with raise_as_plan_error(f"combiner {spec.combiner!r}"):
        low, high = combiner.bounds(fill("low"), fill("high"), spec.params)
        span = np.where(is_undetermined, low, value), np.where(is_undetermined, high, value)
    return MeasuredComponent(
        spec,
        counted=_without_unjudged_diagnostics(counted, share),
        partial=replace(judged, value=judged_value, present=judged_present),
        span=span,
        share=share,
    )


def _verdict_use_key(decision: Decision) -> Sequence[Any]:
    """Return what decides which verdicts are missing: no weight of a component or of an input, and no parameter."""
    uses = []
    for spec in decision.all_specs:
        inputs = [use.model_copy(update={"input_weight": 1.0}) for use in spec.inputs.values()]
        uses.append((spec.name, spec.direction, inputs))
    effective_names = [spec.name for spec in decision.effective_specs]
    # questions of a must are never dropped for a group
    musts = sorted(gate.component for gate in decision.gates if isinstance(gate, Must))
    return uses, effective_names, musts, decision.rule, decision.group_rule


def _find_missing_verdicts(
    decision: Decision, table: VerdictTable, key: Sequence[Any]
) -> MeasuredTable:
    """Return which verdicts are missing in a table, of which no component is measured yet."""
    dropped = dropped_questions(decision, table)
    if _is_fully_judged(decision, table):
        nowhere = np.zeros(table.rows, dtype=np.bool_)
        return MeasuredTable(key, dropped, True, nowhere, nowhere)
    retained_verdict_table = table.with_verdict_code(dropped, ABSENT_CODE)
    lacks_verdict = [
        lacks_score(verdict_code).any(axis=1)
        for verdict_code in _verdict_codes(decision, retained_verdict_table)
    ]
    # Failures of dropped questions fail the reward under `strict` too.
    table_for_failure_rule = table if decision.rule == "strict" else retained_verdict_table
    failed_by_rule = _is_failed_by_rule(decision, table_for_failure_rule)
    return MeasuredTable(key, dropped, False, np.any(lacks_verdict, axis=0), failed_by_rule)


@np.errstate(over="ignore", invalid="ignore")
def _fuse_measured_table(decision: Decision, measured: MeasuredTable) -> GroupResult:
    """Return the fused rewards, bounds and coverage of all rows of a table."""
    components = measured.components
    spans = {} if measured.is_fully_judged else {n: part.span for n, part in measured.parts.items()}
    fused_rewards = fuse(decision, components, spans)
    value = low = high = fused_rewards.value
    partial_fused = fused_rewards
    coverage = np.ones_like(value)
    unjudged_musts: dict[str, Bools] = {}
    is_failed_by_rule = measured.failed_by_rule
    # Not for speed alone: as a quotient of sums of weights, the coverage of a complete row could be .9999….
    if not measured.is_fully_judged:
        partial_fused = fuse(decision, measured.partial)
        present = {name: component.present for name, component in components.items()}
        # Where nothing is missing and no span has a width, the bounds are the reward itself.
        has_width = np.any([np.less(*span) for span in spans.values()], axis=0)
        is_undetermined = measured.lacks_verdict | has_width
        low, high = (
            require_finite("a bound of the reward", np.where(is_undetermined, bound, value))
            for bound in fuse_reward_bounds(decision, spans, present)
        )
        coverage = _compute_coverage(decision, measured)
        if decision.rule == "decisive":
            is_failed_by_rule = is_failed_by_rule & (low < high)
        for gate in decision.gates:
            if isinstance(gate, Must):
                least, greatest = spans[gate.component]
                is_unsure = (least < gate.below) & (greatest >= gate.below)
                is_unjudged = is_unsure & present[gate.component] & (low < high)
                unjudged_musts[_unjudged_note(gate)] = is_unjudged
                is_failed_by_rule = is_failed_by_rule | is_unjudged
    return GroupResult(
        measured=measured,
        fused=fused_rewards,
        partial_fused=partial_fused,
        low=low,
        high=high,
        coverage=coverage,
        unjudged_musts=unjudged_musts,
        failed_by_rule=is_failed_by_rule,
    )


def _is_fully_judged(decision: Decision, table: VerdictTable) -> bool:
    """Return whether all requested verdicts were judged; a response may have fewer variants than others."""
    for verdict_code in _verdict_codes(decision, table):
        is_judged = has_score(verdict_code)
        if is_judged.all():
            continue
        # A variant that a response does not have was never wanted; without any, the question has no answer.
        is_unrequested = verdict_code == ABSENT_CODE
        if not (is_judged | is_unrequested).all() or not is_judged.any(axis=1).all():
            return False
    return True


def _verdict_codes(decision: Decision, table: VerdictTable) -> Iterator[NDArray[np.int8]]:
    """Return the codes of all requested verdicts, then those of inputs that may discard some, as they use them."""
    yield from (columns.verdict_code for columns in table.columns.values())
    for spec in decision.specs:
        for spec_input in filter(_may_discard_verdicts, spec.inputs.values()):
            verdict_code, _ = table.verdict_codes(spec_input, spec.direction)
            yield verdict_code


def _may_discard_verdicts(spec_input: ComponentInput) -> bool:
    """Return whether an input may discard a verdict that was judged."""
    return spec_input.min_confidence > 0.0 or spec_input.reduce == "majority"


def _compute_component(
    spec: ComponentSpec, table: VerdictTable, combiner: Combiner, matrices: InputMatrices
) -> Component:
    """Return a component with the counts of discarded verdicts, and with the spread over samples.

    Raises PlanError naming the combiner if it raises, or does not return one finite number for each response.
    """
    with raise_as_plan_error(f"combiner {spec.combiner!r}"):
        component = combiner.combine(matrices, spec.params)
        arrays = (
            component.value,
            component.present,
            *component.parts.values(),
            *component.diagnostics.values(),
        )
        if any(array.shape != (table.rows,) for array in arrays):
            raise PlanError(
                f"combiner {spec.combiner!r} failed: every array of a component has one number for each response"
            )
    diagnostics = dict(component.diagnostics)
    discarding_inputs = filter(_may_discard_verdicts, spec.inputs.values())
    counts = [table.count_discarded(spec_input) for spec_input in discarding_inputs]
    if counts:
        for name, column in zip(_DISCARD_DIAGNOSTIC_NAMES, zip(*counts, strict=True), strict=True):
            diagnostics[name] = totals(column, axis=0)
    spread = table.sample_spread(spec.inputs.values())
    if spread is not None:
        diagnostics[SAMPLE_SPREAD_DIAGNOSTIC] = spread
    zero_filled_value = np.where(component.present, component.value, 0.0)
    figures = [*component.parts.values(), *diagnostics.values()]
    # NaN is allowed in figures: there is nothing to report.
    has_infinity = bool(figures) and np.isinf(figures).any()
    if not np.isfinite(zero_filled_value).all() or has_infinity:
        raise PlanError(
            f"combiner {spec.combiner!r} gave component {spec.name!r} a value that is not finite; fix the "
            "combiner, or bring the weights of the component's inputs closer together"
        )
    parts = dict(component.parts)
    for name in parts.keys() & matrices.keys():
        # NaN where the input of this name does not apply, so that none of them reads as 0.
        is_applicable = matrices[name].applicable.any(axis=1)
        parts[name] = np.where(is_applicable, parts[name], np.nan)
    return replace(component, parts=parts, diagnostics=diagnostics)


def _without_unjudged_diagnostics(component: Component, share: ValuesAndMask) -> Component:
    """Remove a component's diagnostics for responses without a judged verdict that counts.

    Figures of the verdicts alone stay, and preference completeness, whose verdicts have no weight.
    """
    diagnostics = dict(component.diagnostics)
    for name, values in component.diagnostics.items():
        if name not in (
            *_DISCARD_DIAGNOSTIC_NAMES,
            SAMPLE_SPREAD_DIAGNOSTIC,
            PREFERENCE_COMPLETENESS_DIAGNOSTIC,
        ):
            diagnostics[name] = np.where(share[0] > 0.0, values, np.nan)
    return replace(component, diagnostics=diagnostics)


NO_MAJORITY_DIAGNOSTIC = "without a majority"
_DISCARD_DIAGNOSTIC_NAMES = ("discarded", NO_MAJORITY_DIAGNOSTIC)
"""The number of discarded verdicts, and of questions without a majority."""
SAMPLE_SPREAD_DIAGNOSTIC = "spread over samples"
"""The largest difference between two samples' scores on one question of the component."""


def _score_matrices(
    spec: ComponentSpec, table: VerdictTable, rule: str, fill_mode: UnjudgedFillMode
) -> dict[str, ScoreMatrix]:
    return {
        name: table.score_matrix(spec_input, rule, spec.direction, fill_mode, spec.met_from)
        for name, spec_input in spec.inputs.items()
    }


def _compute_coverage(decision: Decision, measured: MeasuredTable) -> Floats:
    """Return the judged share of the absolute weight of the components that apply, [R]; 0 if none applies."""
    judged_shares = [measured.parts[spec.name].share for spec in decision.specs]
    shares, is_applicable = zip(*judged_shares, strict=True)
    sizes = [abs(spec.weight) for spec in decision.specs]
    weights = np.where(np.stack(is_applicable, axis=1), sizes, 0.0)
    coverage, _ = weighted_mean(np.stack(shares, axis=1), weights)
    return coverage


def _judged_weight_share(spec: ComponentSpec, table: VerdictTable) -> tuple[Floats, Bools]:
    inputs = spec.inputs.values()
    pairs = [table.judged_and_requested_weight(spec_input, spec.direction) for spec_input in inputs]
    judged_weights, requested_weights = (
        np.stack(column, axis=1) for column in zip(*pairs, strict=True)
    )
    input_weights = [spec_input.input_weight for spec_input in inputs]
    weights = np.where(requested_weights > 0, input_weights, 0.0)
    return weighted_mean(
        judged_weights / np.where(requested_weights > 0, requested_weights, 1.0), weights
    )


def _is_failed_by_rule(decision: Decision, table: VerdictTable) -> Bools:
    """Return where the rule itself fails the reward, [R].

    `conservative`: at a penalty that was not judged, if the response is not the cause. `strict`: also at any failure,
    including verdicts that do not count or that were dropped for the group. `decisive` begins with the same, and then
    needs a reward that what is missing could change.
    """
    is_reward_failed = np.zeros(table.rows, dtype=np.bool_)
    if decision.rule == "gear":
        return is_reward_failed
    specs = decision.effective_specs
    if decision.rule in ("strict", "decisive"):
        specs = decision.specs
        # The stored verdicts include failures that a majority of samples hides.
        failed_verdict_codes = [FAILED_BY_RESPONSE_CODE, FAILED_BY_INFRASTRUCTURE_CODE]
        for columns in table.columns.values():
            is_reward_failed |= np.isin(columns.verdict_code, failed_verdict_codes).any(axis=1)
    for spec in specs:
        for spec_input in spec.inputs.values():
            verdict_code, weights = table.verdict_codes(spec_input, spec.direction)
            is_penalty = weights * spec.direction < 0
            is_failed_penalty = is_penalty & np.isin(
                verdict_code, [FAILED_BY_INFRASTRUCTURE_CODE, NO_MODEL_CODE]
            )
            is_reward_failed |= is_failed_penalty.any(axis=1)
    return is_reward_failed


def _count_verdicts(verdicts: Sequence[RecordedVerdict]) -> Counts:
    statuses = [verdict.status for verdict in verdicts if not verdict.superseded]
    counts = map(statuses.count, get_args(VerdictStatus))
    return Counts(**dict(zip(Counts.model_fields, counts, strict=True)))
