"""Sum up a run while it is scored: what was stored before, and each group that comes."""

from collections.abc import Iterable, Sequence
from functools import partial

from jurygraph.graphs.groups import Group
from jurygraph.jury import Jury
from jurygraph.runs.reports.bill import source_of_reply
from jurygraph.runs.reports.summary import RecordTextsReader, Summary
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import RecordDraft
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.schema import Call, Trace


class RunTotals:
    """The summary of a run, with its bill."""

    def __init__(self, jury: Jury, earlier_run: Run | None) -> None:
        """Count what is stored, if there is a run."""
        evaluators = jury.evaluators
        self.summary = Summary([name for name in evaluators if evaluators[name].task_fields])
        self._gateways = jury.gateways
        if earlier_run is not None:
            self._count_stored_groups(earlier_run)

    def _count_stored_groups(self, run: Run) -> None:
        self.count_calls(run, run.planning_calls())
        for group in read_stored_groups(run):
            questions = run.source.survey_without_texts(group.survey).questions
            for trace in group.traces:
                self.summary.add(
                    group.record.key,
                    trace.response_id,
                    questions,
                    trace.body,
                    trace.reward,
                    partial(run.source.ledger.texts_of_record, trace.record),
                    trace.names,
                )
                self.count_calls(run, map(Call.model_validate, trace.body.get("calls", ())))

    def add_group(
        self, run: Run, group: Group, traces: Sequence[Trace], drafts: Sequence[RecordDraft]
    ) -> None:
        """Count a scored group; `drafts` are the records of its traces."""
        assert group.plan is not None, "a group is scored by its plan"
        questions = group.plan.survey.questions
        components = [spec.name for spec in group.plan.decision.specs]
        for trace, draft in zip(traces, drafts, strict=True):
            texts = dict(enumerate(draft.texts))
            read_texts: RecordTextsReader = partial(dict, texts)
            self.summary.add(
                trace.task_id,
                trace.response_id,
                questions,
                draft.body,
                draft.body["reward"],
                read_texts,
                components,
            )
            self.count_calls(run, trace.calls)

    def count_calls(self, run: Run, calls: Iterable[Call]) -> None:
        """Count calls by the source of their replies."""
        for call in calls:
            name = self._gateways.model_name_of(call)
            gateway = self._gateways.get(name)
            source = source_of_reply(run, call)
            is_recording = gateway is not None and gateway.backend.is_recording
            if is_recording and source in ("sent", "cached"):
                source = "replayed"
            if name is None:  # the config's `model`: alone, it has its own name
                name = "model" if len(self._gateways) > 1 else call.model
            self.summary.bill.add(call, source, name)
