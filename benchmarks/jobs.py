"""Score a file of tasks in this process, the planning apart from the scoring, as `jurygraph score` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from jurygraph import Jury
from jurygraph.runs.workflows.planning import JobPlanning
from jurygraph.runs.workflows.scoring import JobScoring
from jurygraph.runs.workflows.scoring_job import ScoringJob, StopSwitch
from jurygraph.runs.workflows.stored_work import StoredWork
from jurygraph.runs.workflows.totals import RunTotals
from jurygraph.sources import open_tasks


class OpenedJob(NamedTuple):
    job: ScoringJob
    stored: StoredWork
    totals: RunTotals

    async def plan(self) -> JobScoring:
        """Plan all tasks, and return the scoring of their groups."""
        job, stored, totals = self
        switch = StopSwitch(job.jury.gateways)
        planning = JobPlanning(job=job, stored=stored, totals=totals, switch=switch)
        planned = await planning.plan(lambda count: None)
        return JobScoring(job=job, stored=stored, planned=planned, totals=totals, switch=switch)


@contextmanager
def open_job(folder: Path, jury: Jury, tasks: Path) -> Iterator[OpenedJob]:
    with open_tasks(tasks) as source:
        job = ScoringJob(folder=folder, jury=jury, source=source)
        with StoredWork(job) as stored:
            yield OpenedJob(job, stored, RunTotals(job.jury, stored.run))
