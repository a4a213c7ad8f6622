"""Read groups and traces without their texts: enough for a table or to recompute rewards, and much faster."""

from collections.abc import Iterator, Sequence
from math import fsum, inf
from sys import intern
from typing import NamedTuple

from pydantic_core import from_json

from jurygraph.decision import decide
from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import GroupVerdicts
from jurygraph.errors import TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import LedgerRecord, reading, record_label
from jurygraph.runs.store.packing import (
    RecordBody,
    inapplicable_question_indices,
    read_shared_id_lists,
    unpack_verdict,
)
from jurygraph.schema import Decision, RecordedVerdict, SurveyWithoutTexts
from jurygraph.schema.verdict import RESPONSE_GATES


class TraceWithoutTexts(NamedTuple):
    """A trace as it is stored, without its texts.

    `value` is the reward, None where it failed; `coverage` is the judged share of the weight, in [0, 1]. `record` and
    `body` are those of the run that holds the verdicts. `current_run_record` is that of this run, and its `reward` is
    packed as `unpack_reward` reads it; the components, those of the `decision`, have the given `names`.
    """

    response_id: str
    agent: str | None
    value: float | None
    status: str
    coverage: float
    record: LedgerRecord
    body: RecordBody
    current_run_record: LedgerRecord
    reward: RecordBody
    names: Sequence[str]
    decision: Decision

    @property
    def comparable_names(self) -> Sequence[str | None]:
        """Return the names of its components, None for one in which criteria have prerequisites.

        Where one of these was not judged, as in failed rewards, its judged value is lower than the verdicts are.
        """
        return [None if spec.has_prerequisites else spec.name for spec in self.decision.specs]

    @property
    def best(self) -> float:
        """Return the reward with every component that applies at its best, before gates."""
        terms = zip(self.decision.specs, self.reward["terms"], strict=True)
        points = fsum(max(spec.weight, 0.0) for spec, value in terms if value is not None)
        low, high = self.decision.clip or (-inf, inf)
        return min(max(points * self.decision.scale, low), high)

    @property
    def span(self) -> tuple[float, float]:
        """Return the reward twice, or the least and greatest that one which failed could have had."""
        if self.value is not None:
            return self.value, self.value
        low, high = self.reward["range"]
        return low, high

    @property
    def gates(self) -> list[str]:
        """Return the response gates that set verdicts, then the reward gates that changed the reward.

        A reward gate is called as in `adjustments`: `precision gate`, `must accuracy`.
        """
        gates = {verdict.get("gated_by") for verdict in self.body["verdicts"]}
        stopping_gates = sorted(gates.intersection(RESPONSE_GATES))
        return [*stopping_gates, *self.gate_losses]

    @property
    def gate_losses(self) -> dict[str, float]:
        """Return what each reward gate that changed the reward took from it, before the scale."""
        return {
            name: before - after
            for name, before, after in self.reward.get("adjustments", ())
            if name not in ("scale", "clip")
        }

    def component(self, name: str) -> tuple[float | None, float | None]:
        """Return a component's value from the judged verdicts alone, and the value that counts; None if none does."""
        if name not in self.names:
            return None, None
        index = self.names.index(name)
        counted = self.reward["terms"]
        judged = self.reward.get("components") or counted
        return judged[index], counted[index]


class StoredGroup(NamedTuple):
    """A stored group: its record and body, the digests of its survey and of the run's decision, and its traces."""

    record: LedgerRecord
    body: RecordBody
    survey: str
    decision: str
    traces: Sequence[TraceWithoutTexts]

    def verdicts(self, survey: SurveyWithoutTexts) -> list[RecordedVerdict]:
        """Return the verdicts of its traces, without their texts. Raises `TraceMismatch` if one cannot be read."""
        with reading(f"{record_label(self.record)} and those of its traces"):
            shared_id_lists = read_shared_id_lists(self.body)
            verdicts = []
            for trace in self.traces:
                verdicts += [
                    unpack_verdict(verdict, trace.response_id, survey, {}, shared_id_lists)
                    for verdict in trace.body["verdicts"]
                ]
            return verdicts


def read_stored_groups(run: Run) -> Iterator[StoredGroup]:
    """Yield every group of a run, in the order of the tasks; texts are not read.

    The links of all records are checked first. Raises `TraceMismatch` where a record does not follow the one before it,
    or cannot be read.
    """
    trace_records = None
    decision_digest_by_task = None
    if run.base is not None:  # the run refers to the verdicts of another one
        trace_records = (
            item
            for item in run.ledger.verified_records(1, run.ledger.count)
            if item.kind == "trace"
        )
        decision_digest_by_task = {
            record.key: record.content["decision"] for record in run.ledger.records("task")
        }
    ledger = run.source.ledger
    last = run.last_base_record_number or ledger.count
    plans = {}  # by task: the digests of its survey and its decision
    for record in ledger.verified_records(1, last):
        if record.kind == "task":
            body = _read_record_body(run, record)
            decision = (
                body["decision"]
                if decision_digest_by_task is None
                else decision_digest_by_task.get(record.key)
            )
            if decision is not None:  # interned, because many tasks have the same digests
                plans[record.key] = intern(body["survey"]), intern(decision)
    for record in run.group_records():
        body = _read_record_body(run, record)
        if record.key not in plans:
            raise TraceMismatch(
                f"{run.ledger.path}: has no task {record.key!r}; records of it are lost"
            )
        yield _build_stored_group(run, record, body, plans[record.key], trace_records)
    if trace_records is not None and next(trace_records, None) is not None:
        raise TraceMismatch(f"{run.ledger.path}: has traces that {run.source.folder} does not have")


def read_stored_group(run: Run, record: LedgerRecord) -> StoredGroup:
    """Return the group of a record, in a run with verdicts of its own; its link is not checked.

    Raises `TraceMismatch` where a record cannot be read.
    """
    task = run.task_record(record.key).content
    body = _read_record_body(run, record)
    return _build_stored_group(run, record, body, (task["survey"], task["decision"]), None)


def _build_stored_group(
    run: Run,
    record: LedgerRecord,
    body: RecordBody,
    plan: tuple[str, str],
    trace_records: Iterator[LedgerRecord] | None,
) -> StoredGroup:
    """Return a group with its traces; `plan` has the digests of its survey and its decision."""
    survey, decision = plan
    stored_decision = run.decision(decision)
    names = [spec.name for spec in stored_decision.specs]
    traces = []
    for member in run.source.ledger.records(
        after=record.seq, up_to_record=record.seq + body["size"]
    ):
        current_run_record = member if trace_records is None else next(trace_records, None)
        if current_run_record is None or current_run_record.key != member.key:
            raise TraceMismatch(
                f"{run.ledger.path}: the trace of response {member.key!r} is missing or out of its place"
            )
        trace_body = _read_record_body(run, member)
        reward = trace_body["reward"]
        if trace_records is not None:
            reward = _read_record_body(run, current_run_record)["reward"]
        trace = TraceWithoutTexts(
            response_id=member.key,
            agent=trace_body.get("agent"),
            value=reward["value"],
            status=reward.get("status", "ok"),
            coverage=reward.get("coverage", 1.0),
            record=member,
            body=trace_body,
            current_run_record=current_run_record,
            reward=reward,
            names=names,
            decision=stored_decision,
        )
        traces.append(trace)
    return StoredGroup(record, body, survey, decision, traces)


def build_group_verdicts(run: Run, group: StoredGroup, decision: Decision) -> GroupVerdicts:
    survey = run.source.survey_without_texts(group.survey)
    names = [trace.response_id for trace in group.traces]
    return GroupVerdicts(decision, survey.questions, names, group.verdicts(survey))


def possible_reward_bounds(run: Run, combiners: Combiners) -> list[tuple[float, float]]:
    """Return the least and the greatest reward that each plan of a run allows, in the order of the tasks.

    Tasks with the same questions and weights have one plan, or one for each set of questions that did not apply.
    """
    limits = {}
    for group in read_stored_groups(run):
        inapplicable_question_sets = frozenset(
            inapplicable_question_indices(trace.body) for trace in group.traces
        )
        plan = group.survey, group.decision, inapplicable_question_sets
        if plan not in limits:
            verdicts = build_group_verdicts(run, group, run.decision(group.decision))
            low, high = decide.possible_reward_bounds(verdicts, combiners)
            limits[plan] = float(low.min()), float(high.max())
    return list(limits.values())


_REQUIRED_KEYS_BY_KIND = {"task": {"survey", "decision"}, "group": {"size"}, "trace": {"reward"}}


def _read_record_body(run: Run, record: LedgerRecord) -> RecordBody:
    """Return the body of a record. Raises `TraceMismatch` where it is not the body of a task, group or trace."""
    with reading(f"{run.ledger.path}, {record_label(record)}"):
        content: RecordBody = from_json(record.body)
        missing = _REQUIRED_KEYS_BY_KIND[record.kind] - content.keys()
        if missing:
            raise KeyError(*sorted(missing))
        return content
