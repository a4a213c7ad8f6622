"""Scoring into a run: what is there already stays, what is missing is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.errors import PlanError
from jurygraph.runs.manifest import Extent, Manifest
from jurygraph.runs.records import Recovered
from jurygraph.runs.run import Run
from jurygraph.schema import Plan, Response, Task
from jurygraph.sources import Work

if TYPE_CHECKING:
    from jurygraph.jury import Jury

Pair = tuple[Task, tuple[Response, ...]]


class Session:
    """One sitting of a jury over a file of tasks: `prepare` writes nothing, `score` fills the run.

    A run that is there already is locked until `score` ends, or `close`.
    """

    def __init__(self, folder: Path, jury: "Jury", work: Work, limit: int | None = None) -> None:
        """Look at what is there.

        Raises `InputError` where a run was begun with other files, config or evaluators, or where another process
        writes it.
        """
        self.jury = jury
        self.folder = folder
        self.plans: list[Plan] = []
        self._found = Recovered()
        self._manifest = Manifest(
            tasks=work.tasks,
            responses=work.responses,
            config=jury.config.digest,
            evaluators={name: evaluator.version for name, evaluator in jury.evaluators.items()},
        )
        self._run = Run.at(folder)
        if self._run is not None:
            self._found = self._recovered(self._run, work.pairs)
        self.summary = self._found.summary
        self.pending = work.pairs[:limit][self._found.groups :]
        self.left = _extent(self.pending)
        self._work = work
        if self.finished:
            self.close()  # nothing will be written

    def _recovered(self, run: Run, pairs: list[Pair]) -> Recovered:
        try:
            run.refuse_other(self._manifest, self.jury.config)
            return run.recover([(task.id, frozenset(r.id for r in group)) for task, group in pairs])
        except BaseException:
            run.release()
            raise

    @property
    def tasks(self) -> int:
        """How many tasks the file has."""
        return len(self._work.pairs)

    def close(self) -> None:
        """Let another process write the run."""
        if self._run is not None:
            self._run.release()

    @property
    def done(self) -> int:
        """How many tasks were found scored."""
        return self._found.groups

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self._run is not None and self._run.manifest.status == "complete" and not self.pending

    async def prepare(self) -> None:
        """Plan every task that is still to be scored. Raises `PlanError` with the file and line of the task."""
        self.plans = [await self._planned(task) for task, _ in self.pending]

    async def _planned(self, task: Task) -> Plan:
        try:
            return await self.jury.aprepare(task)
        except PlanError as error:
            line = self._work.lines.get(task.id)
            place = self._work.tasks.name + ("" if line is None else f", line {line}")
            error.args = (f"{place}: {error}",)  # it stays the error that it is: a GraphCycleError has its cycle
            raise

    async def score(self, report: Callable[[int], None]) -> None:
        """Score them and write each group as it comes; `report` is told how many responses a group had."""
        if self.finished:
            return
        try:
            await self._score(report)
        finally:
            self.close()

    async def _score(self, report: Callable[[int], None]) -> None:
        self._run = run = self._opened()
        done = self._done()
        asked = Extent(tasks=done.tasks + self.left.tasks, responses=done.responses + self.left.responses)
        try:
            run.begin(asked, self._found)
            await self._fill(run, report)
        except BaseException:
            run.end("interrupted", self._done())
            raise
        run.end("complete", self._done())

    def _opened(self) -> Run:
        if self._run is None:
            return Run.create(self.folder, self._manifest, self.jury.config, self.plans)
        self._run.add_plans(self.plans)
        return self._run

    async def _fill(self, run: Run, report: Callable[[int], None]) -> None:
        work = [(task, group, plan) for (task, group), plan in zip(self.pending, self.plans, strict=True)]
        async for traces in self.jury.ascore_all(work):
            run.append(traces)
            for trace in traces:
                self.summary.add(trace)
            report(len(traces))

    def _done(self) -> Extent:
        return Extent(tasks=len(self.summary.tasks), responses=self.summary.responses)


def _extent(pairs: list[Pair]) -> Extent:
    return Extent(tasks=len(pairs), responses=sum(len(group) for _, group in pairs))
