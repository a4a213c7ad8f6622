"""Recompute rewards from the verdicts of a run: `verify` compares them, and `rescore` writes them.

Where no reward depends on another response of its group, many groups with the same plan are decided in one batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from sys import intern
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import from_json

from jurygraph.decision.combiner import Combiner
from jurygraph.decision.decide import compute_rewards, compute_rewards_batch, is_independent
from jurygraph.decision.group_result import RewardRow
from jurygraph.decision.table import MET_THRESHOLD, OK, ScoreArrays, ok_outcome, outcome_of
from jurygraph.errors import TraceMismatch
from jurygraph.graphs.tracing import group_statistics
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Record
from jurygraph.runs.store.packing import Body, Shape, pack_reward, read_shared_lists, unpack_verdict
from jurygraph.schema import Decision, RecordedVerdict

_BATCH_ROWS = 512  # larger batches do not fit into the CPU caches

Combiners = Mapping[str, Combiner]


class StoredGroup(NamedTuple):
    """A stored group: its record and body, the records and bodies of its traces, and its plan's digests."""

    record: Record
    body: Body
    survey: str
    decision: str
    traces: Sequence[Record]
    bodies: Sequence[Body]

    def verdicts(self, shape: Shape) -> list[RecordedVerdict]:
        """Return the verdicts of its traces, without their texts."""
        shared = read_shared_lists(self.body)
        return [
            unpack_verdict(verdict, trace.key, shape, {}, shared)
            for trace, body in zip(self.traces, self.bodies, strict=True)
            for verdict in body["verdicts"]
        ]


class RecomputedReward(NamedTuple):
    """A trace's record and body, and the packed reward that was recomputed from its verdicts."""

    record: Record
    body: Body
    reward: Body


def read_groups(run: Run, up_to: int | None = None) -> Iterator[StoredGroup]:
    """Yield every group of a run that holds verdicts, in order. Raises `TraceMismatch` where the chain is broken."""
    records = run.ledger.verified_records(1, run.ledger.count if up_to is None else up_to)
    planned: dict[str, tuple[str, str]] = {}
    for record in records:
        if record.kind == "task":
            body = record.content
            # interned: many tasks have the same digests
            planned[record.key] = intern(body["survey"]), intern(body["decision"])
        elif record.kind == "group":
            if record.key not in planned:
                raise TraceMismatch(f"{run.ledger.path}: has no task {record.key!r}; records of it are lost")
            body = record.content
            traces = list(islice(records, body["size"]))
            yield StoredGroup(
                record, body, *planned.pop(record.key), traces, [from_json(trace.body) for trace in traces]
            )


def recompute_statistics(group: StoredGroup, shape: Shape) -> dict[str, Any]:
    """Return the statistics recomputed from a group's verdicts."""
    names = [question.id for question in shape.questions]
    scored = ((names[v["question"]], v.get("score")) for body in group.bodies for v in body["verdicts"])
    return group_statistics(shape.questions, scored)


@dataclass
class _Batch:
    """Groups under one survey and decision that can be decided together."""

    shape: Shape
    decision: Decision
    records: list[Record] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)


class Recomputation:
    """Recomputed rewards of a run's groups, each group under the decision that `decision_of` returns for it."""

    def __init__(self, run: Run, decision_of: Callable[[StoredGroup], Decision], combiners: Combiners) -> None:
        self._run = run
        self._decision_of = decision_of
        self._combiners = combiners
        self._independent_cache: dict[tuple[str, str], bool] = {}

    def rewards(self, groups: Iterator[StoredGroup]) -> Iterator[RecomputedReward]:
        """Yield the rewards of all traces, in the order of their records."""
        batch: _Batch | None = None
        for group in groups:
            shape, decision = self._run.shape(group.survey), self._decision_of(group)
            is_separate = not self._is_independent(shape, decision) or not _is_regular(group.bodies, shape)
            if batch and (
                is_separate or (batch.shape, batch.decision) != (shape, decision) or len(batch.records) >= _BATCH_ROWS
            ):
                yield from self._decide_batch(batch)
                batch = None
            if is_separate:
                yield from self._decide_group(group, shape, decision)
                continue
            batch = batch or _Batch(shape, decision)
            batch.records += group.traces
            batch.bodies += group.bodies
        if batch:
            yield from self._decide_batch(batch)

    def _is_independent(self, shape: Shape, decision: Decision) -> bool:
        key = shape.digest, decision.digest
        if key not in self._independent_cache:
            self._independent_cache[key] = is_independent(decision, shape.questions)
        return self._independent_cache[key]

    def _decide_batch(self, batch: _Batch) -> Iterator[RecomputedReward]:
        rows = compute_rewards_batch(batch.decision, batch.shape.questions, _marks(batch.bodies), self._combiners)
        for record, body, row in zip(batch.records, batch.bodies, rows, strict=True):
            yield RecomputedReward(record, body, pack_reward(row))

    def _decide_group(self, group: StoredGroup, shape: Shape, decision: Decision) -> Iterator[RecomputedReward]:
        names = [trace.key for trace in group.traces]
        rewards = compute_rewards(decision, shape.questions, names, group.verdicts(shape), self._combiners)
        for trace, body, reward in zip(group.traces, group.bodies, rewards, strict=True):
            yield RecomputedReward(trace, body, pack_reward(RewardRow.from_reward(reward)))


def _is_regular(bodies: Sequence[Body], shape: Shape) -> bool:
    """Return whether every trace has exactly one verdict per question and sample.

    That is not so where one verdict, such as a gate's, represents all samples of a question.
    """
    expected = [place for place, question in enumerate(shape.questions) for _ in range(question.samples)]
    return all([verdict["question"] for verdict in body["verdicts"]] == expected for body in bodies)


def _marks(bodies: Sequence[Body]) -> ScoreArrays:
    verdicts = [verdict for body in bodies for verdict in body["verdicts"]]
    value = np.array([verdict.get("score", 0.0) for verdict in verdicts], dtype=np.float64)
    met_codes = np.array([verdict.get("met", 2) for verdict in verdicts], dtype=np.int8)
    outcome = np.array([_outcome(verdict) for verdict in verdicts], dtype=np.int8)
    met = np.where(met_codes == 2, value >= MET_THRESHOLD, met_codes == 1) & (outcome == OK)
    shape = len(bodies), -1
    confidence = np.array([verdict.get("confidence", 1.0) for verdict in verdicts], dtype=np.float64)
    # + 0.0 turns -0.0 into 0.0
    return ScoreArrays(
        (value + 0.0).reshape(shape), met.reshape(shape), outcome.reshape(shape), confidence.reshape(shape)
    )


def _outcome(verdict: Body) -> int:
    if "status" not in verdict:
        return ok_outcome(verdict["gated_by"]) if "gated_by" in verdict else OK
    return outcome_of(verdict["status"], verdict["failure"][0] if "failure" in verdict else None)
