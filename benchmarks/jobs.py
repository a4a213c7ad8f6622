"""Score a file of tasks in this process, the planning apart from the scoring, as `jurygraph score` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from jurygraph import Jury
from jurygraph.runs.workflows.planning import JobPlanner
from jurygraph.runs.workflows.scoring import JobScorer
from jurygraph.runs.workflows.stored_work import StoredJobProgress
from jurygraph.runs.workflows.task_file_job import StopSwitch, TaskFileJob
from jurygraph.runs.workflows.totals import RunTotals
from jurygraph.sources import open_task_source


class OpenedJob(NamedTuple):
    job: TaskFileJob
    stored_work: StoredJobProgress
    totals: RunTotals

    async def plan(self) -> JobScorer:
        """Plan all tasks, and return the scoring of their groups."""
        job, stored_work, totals = self
        switch = StopSwitch(job.jury.gateways)
        planning = JobPlanner(
            job=job, stored_work=stored_work, run_totals=totals, stop_switch=switch
        )
        planned = await planning.plan(lambda count: None)
        return JobScorer(
            job=job,
            stored_work=stored_work,
            planned_tasks=planned,
            run_totals=totals,
            stop_switch=switch,
        )


@contextmanager
def open_job(folder: Path, jury: Jury, tasks: Path) -> Iterator[OpenedJob]:
    with open_task_source(tasks) as source:
        job = TaskFileJob(folder=folder, jury=jury, source=source)
        with StoredJobProgress(job) as stored_work:
            yield OpenedJob(job, stored_work, RunTotals(job.jury, stored_work.run))
