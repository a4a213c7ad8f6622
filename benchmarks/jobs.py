"""Score a file of tasks in this process, the planning apart from the scoring, as `jurygraph score` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from jurygraph import Jury
from jurygraph.runs.reports.summary import Summary
from jurygraph.runs.workflows.planning import JobPlanner
from jurygraph.runs.workflows.scoring import JobScorer
from jurygraph.runs.workflows.stored_work import StoredJobProgress
from jurygraph.runs.workflows.task_file_job import StopSwitch, TaskFileJob
from jurygraph.runs.workflows.totals import summarize_run
from jurygraph.sources import open_task_source


class OpenedJob(NamedTuple):
    job: TaskFileJob
    stored_work: StoredJobProgress

    async def plan(self) -> JobScorer:
        """Plan all tasks, and return the scoring of their groups."""
        job, stored_work = self
        switch = StopSwitch(job.jury.gateways)
        planning = JobPlanner(job=job, stored_work=stored_work, stop_switch=switch)
        planned = await planning.plan(lambda count: None)
        return JobScorer(
            job=job,
            stored_work=stored_work,
            planned_tasks=planned,
            stop_switch=switch,
        )

    def summarize(self) -> Summary:
        assert self.stored_work.run is not None, "its tasks are planned"
        return summarize_run(self.job.jury, self.stored_work.run)


@contextmanager
def open_job(folder: Path, jury: Jury, tasks: Path) -> Iterator[OpenedJob]:
    with open_task_source(tasks) as source:
        job = TaskFileJob(folder=folder, jury=jury, source=source)
        with StoredJobProgress(job) as stored_work:
            yield OpenedJob(job, stored_work)
