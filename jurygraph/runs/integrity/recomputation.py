"""Recompute tables and rewards from the verdicts of a run: `verify` compares rewards, and `rescore` writes them.

Where no reward depends on another response of its group, many groups with the same plan are decided in one batch.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jurygraph.decision.combiners import Combiner
from jurygraph.decision.decide import RewardRow, compute_rewards, decide_scores, is_independent
from jurygraph.decision.table import (
    ABSENT,
    OK,
    ScoreArrays,
    VerdictTable,
    build_table,
    dropped_questions,
    ok_outcome,
    outcome_of,
)
from jurygraph.graphs.score_graph import group_statistics
from jurygraph.runs.outline import StoredGroup, TraceOutline
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import Body, pack_reward
from jurygraph.schema import Decision, SurveyOutline, Trace
from jurygraph.schema.verdict import MET_THRESHOLD, is_binary

_BATCH_ROWS = 512  # larger batches do not fit into the CPU caches

Combiners = Mapping[str, Combiner]


def group_table(run: Run, task_id: str, traces: Sequence[Trace]) -> VerdictTable:
    """Return the table of a task's whole group: one row per response, sorted by id.

    Questions that the run's decision dropped for the group are marked as absent.
    """
    names = sorted(trace.response_id for trace in traces)
    verdicts = list(chain.from_iterable(trace.verdicts for trace in traces))
    table = build_table(run.survey_outline_of(task_id).questions, names, verdicts)
    return table.with_outcome(dropped_questions(run.decision_of(task_id), table), ABSENT)


def recompute_statistics(group: StoredGroup, outline: SurveyOutline) -> dict[str, Any]:
    """Return the statistics recomputed from a group's verdicts."""
    names = [question.id for question in outline.questions]
    verdicts = [v for trace in group.traces for v in trace.body["verdicts"] if not v.get("superseded")]
    scored = ((names[v["question"]], v.get("score")) for v in verdicts)
    return group_statistics(outline.questions, scored)


def recompute_rewards(
    run: Run, groups: Iterable[StoredGroup], decision_of: Callable[[StoredGroup], Decision], combiners: Combiners
) -> Iterator[tuple[TraceOutline, Body]]:
    """Yield every trace with its reward, packed, as recomputed from its verdicts under the decision of its group."""
    independent: dict[tuple[str, str], bool] = {}
    batch: list[TraceOutline] = []
    plan: tuple[SurveyOutline, Decision] | None = None
    for group in groups:
        outline = run.source.survey_outline(group.survey)
        decision = decision_of(group)
        digests = outline.digest, decision.digest
        if digests not in independent:
            is_plain = all(question.escalate is None for question in outline.questions)
            independent[digests] = is_plain and is_independent(decision, outline.questions, combiners)
        # one verdict, such as a gate's, may represent all samples of a question: such groups are decided one by one
        expected = [place for place, question in enumerate(outline.questions) for _ in range(question.seats)]
        requested = ([verdict["question"] for verdict in trace.body["verdicts"]] for trace in group.traces)
        can_batch = independent[digests] and all(places == expected for places in requested)
        if plan and batch and (not can_batch or plan != (outline, decision) or len(batch) >= _BATCH_ROWS):
            yield from _decide_batch(batch, *plan, combiners)
            batch = []
        if can_batch:
            plan = outline, decision
            batch += group.traces
        else:
            names = [trace.response_id for trace in group.traces]
            rewards = compute_rewards(decision, outline.questions, names, group.verdicts(outline), combiners)
            packed = (pack_reward(RewardRow.from_reward(reward)) for reward in rewards)
            yield from zip(group.traces, packed, strict=True)
    if plan and batch:
        yield from _decide_batch(batch, *plan, combiners)


def _decide_batch(
    traces: Sequence[TraceOutline], outline: SurveyOutline, decision: Decision, combiners: Combiners
) -> Iterator[tuple[TraceOutline, Body]]:
    rows = decide_scores(decision, outline.questions, _score_arrays(traces), combiners)
    return zip(traces, map(pack_reward, rows), strict=True)


def _score_arrays(traces: Sequence[TraceOutline]) -> ScoreArrays:
    verdicts = [verdict for trace in traces for verdict in trace.body["verdicts"]]

    def column(values: Iterable[float], kind: type[np.generic]) -> NDArray[Any]:
        return np.array(list(values), dtype=kind).reshape(len(traces), -1)

    value = column((verdict.get("score", 0.0) for verdict in verdicts), np.float64)
    met_codes = column((verdict.get("met", 2) for verdict in verdicts), np.int8)
    outcome = column(map(_outcome, verdicts), np.int8)
    met = np.where(met_codes == 2, value >= MET_THRESHOLD, met_codes == 1) & (outcome == OK)
    confidence = column((verdict.get("confidence", 1.0) for verdict in verdicts), np.float64)
    fields = ("met", "score", "scale", "native")
    binary = column((is_binary(*map(verdict.get, fields)) for verdict in verdicts), np.bool_)
    return ScoreArrays(value + 0.0, met, outcome, confidence, binary)  # + 0.0 turns -0.0 into 0.0


def _outcome(verdict: Body) -> int:
    if "status" not in verdict:
        return ok_outcome(verdict.get("gated_by"), verdict.get("unsupported"))
    cause = verdict["failure"][0] if "failure" in verdict else None
    return outcome_of(verdict["status"], cause, verdict.get("gated_by"))
