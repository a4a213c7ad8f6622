"""Branch from another run: verdicts and material that did not change are carried over, the rest is judged again."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.graphs.basis import input_digests
from jurygraph.graphs.routing import KnownResults
from jurygraph.runs.run import Run, ScoredResponse, is_erased
from jurygraph.runs.store.header import Origin, has_same_requests
from jurygraph.runs.store.identity import model_of
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import Plan, Response, Task, Trace, Verdict

if TYPE_CHECKING:
    from jurygraph.jury import Jury


class Branch:
    """The run from which verdicts and material are carried over.

    A verdict is carried over where its question with all its inputs and the responses that it is about are unchanged. A
    verdict that failed for an infrastructure reason is requested again, and conditions (`when`) are evaluated again.
    Answers of a model are carried over only to a jury that uses the same model in the same way. `carried` and
    `requested` count the carried-over and the newly requested verdicts of the scored groups.
    """

    def __init__(self, folder: Path) -> None:
        self.carried = self.requested = 0
        self._old = Run.open(folder).source
        self._offered: dict[str, KnownResults] = {}
        self._requested_again: frozenset[str] = frozenset()

    def set_jury(self, jury: "Jury") -> None:
        """Set the jury to carry over to; answers of a model are left out if the model or its requests would differ."""
        is_same_model = has_same_requests(self._old.header, jury.config, model_of(jury))
        evaluators = {name for name, component in jury.evaluators.items() if component.uses_model}
        derivers = {name for name, component in jury.derivers.items() if component.uses_model}
        self._requested_again = frozenset(() if is_same_model else evaluators | derivers)

    @property
    def reusable_ledgers(self) -> "Sequence[Ledger]":
        """Return the ledger of the old run if its model's answers can be carried over; else nothing."""
        return () if self._requested_again else (self._old.ledger,)

    @property
    def ledger(self) -> Ledger:
        """Return the ledger of the old run, whose calls that read profiles need not be repeated."""
        return self._old.ledger

    def origin(self, folder: Path) -> Origin:
        """Return the reference to the old run for the header of the new run in this folder."""
        old = self._old
        path = os.path.relpath(old.folder.resolve(), folder.resolve())
        return Origin(run=old.id, folder=path, records=old.ledger.count, head=old.ledger.head.hex())

    def find_known_results(self, task: Task, responses: Sequence[Response], plan: Plan) -> KnownResults:
        """Return the known verdicts, material and calls of a task's group."""
        self._offered[task.id] = results = self._find_known(task.id, responses, plan)
        return results

    def _find_known(self, task_id: str, responses: Sequence[Response], plan: Plan) -> KnownResults:
        if self._old.ledger.find("group", task_id) is None or self._old.task_content(task_id) is None:
            return KnownResults({}, {})
        old_basis, new_basis = input_digests(self._old.plan_of(task_id).survey), input_digests(plan.survey)
        scored = self._old.group_of(task_id)
        derivers = {item.gives: item.deriver for item in plan.survey.derivations}
        changed = {response.id for response in responses} | {item.trace.response_id for item in scored}
        changed -= _unchanged_ids(scored, responses)
        verdicts = {
            (verdict.question, verdict.about, verdict.responses, verdict.sample): verdict
            for item in scored
            for verdict in item.trace.verdicts
            if _is_reusable(verdict) and changed.isdisjoint((verdict.about, *verdict.responses))
            if verdict.evaluator not in self._requested_again
            if old_basis.questions[verdict.question] == new_basis.questions.get(verdict.question)
        }
        material = {
            (material.name, material.response): material
            for item in scored
            for material in item.trace.material
            if material.status == "ok" and material.response not in changed
            if derivers.get(material.name) not in self._requested_again
            if old_basis.material[material.name] == new_basis.material.get(material.name)
        }
        return KnownResults(verdicts, material, {call.id: call for item in scored for call in item.trace.calls})

    def count(self, traces: Iterable[Trace]) -> None:
        """Count the verdicts of a scored group."""
        for trace in traces:
            offered = self._offered[trace.task_id].verdicts
            verdicts = [
                verdict for verdict in trace.verdicts if verdict.about == trace.response_id and _is_reusable(verdict)
            ]
            carried = sum(
                (verdict.question, verdict.about, verdict.responses, verdict.sample) in offered for verdict in verdicts
            )
            self.carried += carried
            self.requested += len(verdicts) - carried


def _unchanged_ids(scored: Iterable[ScoredResponse], responses: Iterable[Response]) -> set[str]:
    """Return the ids of responses whose text and data are unchanged."""
    old_digests = {item.response.id: item.response.content_digest for item in scored if item.response is not None}
    return {response.id for response in responses if old_digests.get(response.id) == response.content_digest}


def _is_reusable(verdict: Verdict) -> bool:
    """Return whether a verdict comes from its evaluator, or failed because of the response, and was not erased."""
    if not verdict.responses or is_erased(verdict):
        return False
    is_infrastructure = verdict.failure is not None and verdict.failure.cause == "infrastructure"
    return verdict.status in ("ok", "abstained", "failed") and not is_infrastructure
