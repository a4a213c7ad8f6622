"""Branch from another run: verdicts and material are reused where digests show that no input has changed."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults, required_material_names
from jurygraph.jury import Jury
from jurygraph.runs.recorder import model_identities_by_name, reusable_results
from jurygraph.runs.run import Run, ScoredResponse, changes_by_response, is_verdict_reusable
from jurygraph.runs.store.header import sends_same_requests
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import (
    FrozenModel,
    Material,
    Plan,
    RecordedVerdict,
    Response,
    Survey,
    Task,
    Trace,
    digest_of,
)
from jurygraph.schema.verdict import VerdictKey

SCHEDULING_FIELDS = frozenset({"when", "samples", "pairs", "judges", "escalate"})
"""Scheduling fields of a question: if, by whom, how often, in which pairs it is judged. No verdict depends on them."""


@contextmanager
def open_reused_run(folder: Path | None, jury: Jury) -> Iterator["ReusedRun | None"]:
    if folder is None:
        yield None
        return
    with ExitStack() as stack:
        runs = [stack.enter_context(Run.open(folder)).source]
        while (origin := runs[-1].open_origin()) is not None:
            runs.append(stack.enter_context(origin))
        yield ReusedRun(runs, jury)


class ReusedRun:
    """The run from which verdicts and material are reused, the first of `runs`; it was branched from the others.

    A verdict is reused where its question with all its inputs and the responses that it is about are unchanged. One for
    which something was looked up is investigated again with the stored replies, as long as the tools have the same
    results. A verdict with a transient failure is requested again, one whose finding has no quotation is read again
    from the stored reply if `safety.evidence` has changed, and conditions (`when`) are evaluated again. Answers of a
    model are reused only to a jury that uses the same model in the same way. `reused` and `requested` count the reused
    and the newly requested verdicts of the scored groups.
    """

    def __init__(self, runs: Sequence[Run], jury: Jury) -> None:
        self.reused = self.requested = 0
        self.run = runs[0]
        self._asking_model = {
            name for name, evaluator in jury.evaluators.items() if evaluator.uses_model
        }
        self._asking_model |= {
            name for name, deriver in jury.derivers.items() if deriver.uses_model
        }
        self._reads_quotations_anew = self.run.config.safety.evidence != jury.config.safety.evidence
        self._changed_models = _changed_models(self.run, jury)
        self.ledgers = [run.ledger for run in runs]
        self.reusable_ledgers: Sequence[Ledger] = [
            run.ledger for run in runs if not (self._asking_model and _changed_models(run, jury))
        ]
        """Those of the runs whose models' answers on responses can be reused."""

    def _asks_changed_model(self, owner: str | None, judge: str | None = None) -> bool:
        """Return whether an evaluator or deriver asks a model that is not the one of the old run."""
        return owner in self._asking_model and judge in self._changed_models

    def find_reusable_results(
        self, task: Task, responses: Sequence[Response], plan: Plan
    ) -> ReusedResults:
        if (
            self.run.ledger.find("group", task.id) is None
            or self.run.stored_task_record(task.id) is None
        ):
            return NO_REUSED_RESULTS
        earlier_input_digests = digest_survey_inputs(self.run.plan_of(task.id).survey)
        current_input_digests = digest_survey_inputs(plan.survey)
        scored = list(chain.from_iterable(self.run.groups_of_task(task.id)))
        changed_response_ids = changes_by_response(scored, responses).keys()
        derivers = {item.gives: item.deriver for item in plan.survey.derivations}
        evaluators_to_reparse = self._evaluators_to_reparse(scored)
        lookups = chain.from_iterable(item.trace.lookups for item in scored)
        rerun_lookup_ids = {lookup.id for lookup in lookups if lookup.can_be_repeated}

        def should_keep_verdict(verdict: RecordedVerdict) -> bool:
            question = verdict.question
            return (
                changed_response_ids.isdisjoint((verdict.about, *verdict.responses))
                and rerun_lookup_ids.isdisjoint(verdict.lookups)
                and not self._asks_changed_model(verdict.evaluator, verdict.judge)
                and verdict.evaluator not in evaluators_to_reparse
                and earlier_input_digests.questions[question]
                == current_input_digests.questions.get(question)
            )

        def should_keep_material(item: Material) -> bool:
            name = item.name
            return (
                item.response not in changed_response_ids
                and rerun_lookup_ids.isdisjoint(item.lookups)
                and not self._asks_changed_model(derivers.get(name))
                and earlier_input_digests.material[name] == current_input_digests.material.get(name)
            )

        return reusable_results(
            [item.trace for item in scored], should_keep_verdict, should_keep_material
        )

    def _evaluators_to_reparse(self, scored: Iterable[ScoredResponse]) -> set[str]:
        """Return the evaluators whose replies on a group are read again, because quotations now count otherwise.

        All verdicts of theirs go, not only those without a quotation: a request asks about several criteria at once,
        and is found among the stored ones only if it is the same.
        """
        if not self._reads_quotations_anew:
            return set()
        verdicts = chain.from_iterable(item.trace.verdicts for item in scored)
        return {verdict.evaluator for verdict in verdicts if verdict.unsupported}

    def count(self, traces: Iterable[Trace], offered: Container[VerdictKey]) -> None:
        """Count the verdicts of a scored group; `offered` are those that could be reused."""
        for trace in traces:
            for verdict in trace.verdicts:
                has_failed = verdict.status == "failed" and bool(verdict.responses)
                if verdict.about == trace.response_id and (
                    has_failed or is_verdict_reusable(verdict)
                ):
                    is_verdict_reused = verdict.key in offered or self._can_replay_lookups(verdict)
                    self.reused += is_verdict_reused
                    self.requested += not is_verdict_reused

    def _can_replay_lookups(self, verdict: RecordedVerdict) -> bool:
        """Return whether something was looked up for a verdict, and all replies that led to it are of old runs."""
        return bool(verdict.lookups) and all(
            any(ledger.find("call", use.id) for ledger in self.reusable_ledgers)
            for use in verdict.calls
        )


def _changed_models(run: Run, jury: Jury) -> set[str | None]:
    """Return the judges that are not asked as in a run; None is the config's `model`."""
    models = model_identities_by_name(jury)
    return {
        judge
        for judge in (None, *jury.config.models)
        if not sends_same_requests(run.header, jury.config, models.get(judge), judge)
    }


class InputDigests(NamedTuple):
    """Digests of the inputs of a single verdict, by question id, and of a single piece of material, by its name."""

    questions: Mapping[str, str]
    material: Mapping[str, str]


def digest_survey_inputs(survey: Survey) -> InputDigests:
    """Return the digest of every question and of all material, each with all that it depends on.

    With the same digest, two plans can share a verdict or material, for responses with equal ids and content digests.
    """
    derivations = {derivation.gives: derivation for derivation in survey.derivations}
    material: dict[str, str] = {}
    for wave in survey.waves:
        for name in wave.materials:
            material[name] = _digest_with_material(
                derivations[name], derivations[name].needs, material
            )
    questions = {
        q.id: _digest_with_material(q, required_material_names(q), material)
        for q in survey.questions
    }
    return InputDigests(questions, material)


def _digest_with_material(
    model: FrozenModel, names: Iterable[str], material: Mapping[str, str]
) -> str:
    """Return the digest of a question or derivation together with the digests of the material that it needs."""
    fields = model.model_dump(mode="json", exclude=set(SCHEDULING_FIELDS))
    return digest_of([fields, {name: material[name] for name in names}])
