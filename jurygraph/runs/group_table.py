"""Lay out the verdicts of a group as the table from which its rewards were computed."""

from collections.abc import Sequence
from itertools import chain

from jurygraph.decision.table import ABSENT, Table, build_table, dropped_questions
from jurygraph.runs.run import Run
from jurygraph.schema import Trace


def group_table(run: Run, task_id: str, traces: Sequence[Trace]) -> Table:
    """Return the table of a task's whole group: one row per response, sorted by id.

    Questions that the run's decision dropped for the group are marked as absent.
    """
    names = sorted(trace.response_id for trace in traces)
    verdicts = list(chain.from_iterable(trace.verdicts for trace in traces))
    table = build_table(run.survey_shape_of(task_id).questions, names, verdicts)
    return table.with_outcome(dropped_questions(run.decision_of(task_id), table), ABSENT)
