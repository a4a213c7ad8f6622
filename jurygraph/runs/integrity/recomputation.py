"""Recompute tables and rewards from the verdicts of a run: `verify` compares rewards, and `rescore` writes them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import reward_rows_of_each
from jurygraph.decision.table import ABSENT, VerdictTable, build_table, dropped_questions
from jurygraph.runs.outline import StoredGroup, TraceOutline, group_verdicts
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import Body, pack_reward
from jurygraph.schema import Decision, SurveyOutline, Trace
from jurygraph.schema.trace import group_statistics

_BATCH_GROUPS = 64


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
    remaining = iter(groups)
    while batch := list(islice(remaining, _BATCH_GROUPS)):
        stored = [group_verdicts(run, group, decision_of(group)) for group in batch]
        for group, rows in zip(batch, reward_rows_of_each(stored, combiners), strict=True):
            if isinstance(rows, Exception):
                raise rows
            yield from zip(group.traces, map(pack_reward, rows), strict=True)
