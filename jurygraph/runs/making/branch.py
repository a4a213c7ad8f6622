"""Going on from another run: what did not change is carried over, the rest is asked."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.graphs.basis import basis
from jurygraph.graphs.routing import Recalled
from jurygraph.runs.reading import Scored, was_erased
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import Origin, asks_alike
from jurygraph.runs.store.identity import model_of
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import Plan, Response, Task, Trace, Verdict

if TYPE_CHECKING:
    from jurygraph.jury import Jury


class Branch:
    """The run from which verdicts and material are carried over.

    A verdict is carried over where its question, with all that it rests on, and the responses that it was about are
    the same. One that failed by our own trouble is asked again, and whether to ask at all is decided anew.
    What a model said is carried over to a jury that asks the same model in the same way.
    `carried` and `asked` count the verdicts of what was scored.
    """

    def __init__(self, folder: Path) -> None:
        self.carried = self.asked = 0
        self._old = Run.open(folder).source
        self._offered: dict[str, Recalled] = {}
        self._anew: frozenset[str] = frozenset()

    def serve(self, jury: "Jury") -> None:
        """Carry over to this jury: nothing that a model said, if that would be told otherwise, or is another one."""
        same = asks_alike(self._old.header, jury.config, model_of(jury))
        evaluators = {name for name, one in jury.evaluators.items() if one.asks_model}
        derivers = {name for name, one in jury.derivers.items() if one.asks_model}
        self._anew = frozenset(() if same else evaluators | derivers)

    @property
    def asked_alike(self) -> "Sequence[Ledger]":
        """The ledger of the old run, where what its model said would be said to this jury."""
        return () if self._anew else (self._old.ledger,)

    @property
    def ledger(self) -> Ledger:
        """That of the old run: the calls by which it read profiles need not be made again."""
        return self._old.ledger

    def origin(self, folder: Path) -> Origin:
        """The old run, as the new one in this folder names it."""
        old = self._old
        where = os.path.relpath(old.folder.resolve(), folder.resolve())
        return Origin(run=old.id, folder=where, records=old.ledger.count, head=old.ledger.head.hex())

    def recall(self, task: Task, responses: Sequence[Response], plan: Plan) -> Recalled:
        """What is known already of a task's group."""
        self._offered[task.id] = known = self._known(task.id, responses, plan)
        return known

    def _known(self, task_id: str, responses: Sequence[Response], plan: Plan) -> Recalled:
        if self._old.ledger.find("group", task_id) is None or self._old.task_content(task_id) is None:
            return Recalled({}, {})
        there, here = basis(self._old.plan_of(task_id).survey), basis(plan.survey)
        scored = self._old.group_of(task_id)
        derivers = {one.gives: one.deriver for one in plan.survey.derivations}
        changed = {response.id for response in responses} | {one.trace.response_id for one in scored}
        changed -= _unchanged(scored, responses)
        verdicts = {
            (verdict.question, verdict.about, verdict.responses, verdict.sample): verdict
            for one in scored
            for verdict in one.trace.verdicts
            if _was_asked(verdict) and changed.isdisjoint((verdict.about, *verdict.responses))
            if verdict.evaluator not in self._anew
            if there.questions[verdict.question] == here.questions.get(verdict.question)
        }
        material = {
            (material.name, material.response): material
            for one in scored
            for material in one.trace.material
            if material.status == "ok" and material.response not in changed
            if derivers.get(material.name) not in self._anew
            if there.material[material.name] == here.material.get(material.name)
        }
        return Recalled(verdicts, material, {call.id: call for one in scored for call in one.trace.calls})

    def count(self, traces: Iterable[Trace]) -> None:
        """Count a group that was scored."""
        for trace in traces:
            known = self._offered[trace.task_id].verdicts
            own = [v for v in trace.verdicts if v.about == trace.response_id and _was_asked(v)]
            carried = sum((v.question, v.about, v.responses, v.sample) in known for v in own)
            self.carried += carried
            self.asked += len(own) - carried


def _unchanged(scored: Iterable[Scored], responses: Iterable[Response]) -> set[str]:
    """The ids of responses whose text and data are what they were."""
    there = {one.response.id: one.response.content_digest for one in scored if one.response is not None}
    return {response.id for response in responses if there.get(response.id) == response.content_digest}


def _was_asked(verdict: Verdict) -> bool:
    """Whether an evaluator gave it, or the response kept it from doing so, and its words are still there."""
    if not verdict.responses or was_erased(verdict):
        return False
    ours = verdict.failure is not None and verdict.failure.cause == "infrastructure"
    return verdict.status in ("ok", "abstained", "failed") and not ours
