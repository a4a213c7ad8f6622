"""Sum up a run as it is stored, with what its calls have cost."""

from functools import partial

from jurygraph.jury import Jury
from jurygraph.runs.reports.bill import source_of_reply
from jurygraph.runs.reports.gates import GateCounts
from jurygraph.runs.reports.summary import Summary
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.schema import Call


def summarize_run(jury: Jury, run: Run) -> Summary:
    """Return the summary of a run, with its bill.

    All is read from the run, which takes at most 3 % of the time of scoring it by code alone.
    """
    evaluators = jury.evaluators
    optional_evaluators = [name for name in evaluators if evaluators[name].task_fields]
    summary = Summary(optional_evaluators, gates=GateCounts.begin(run))
    add_to_bill = partial(_add_to_bill, summary, jury, run)
    for call in run.planning_calls():
        add_to_bill(call)
    for group in read_stored_groups(run):
        questions = run.source.survey_without_texts(group.survey).questions
        for trace in group.traces:
            summary.add(
                group.record.key,
                trace.response_id,
                questions,
                trace.body,
                trace.reward,
                partial(run.source.ledger.texts_of_record, trace.record),
                trace.comparable_names,
            )
            summary.gates.add(trace)
            for content in trace.body.get("calls", ()):
                add_to_bill(Call.model_validate(content))
    return summary


def _add_to_bill(summary: Summary, jury: Jury, run: Run, call: Call) -> None:
    """Count a call by the source of its reply."""
    name = jury.gateways.model_name_of(call)
    gateway = jury.gateways.get(name)
    source = source_of_reply(run, call)
    is_recording = gateway is not None and gateway.backend.is_recording
    if is_recording and source in ("sent", "cached"):
        source = "replayed"
    if name is None:  # the config's `model`: alone, it has its own name
        name = "model" if len(jury.gateways) > 1 else call.model
    summary.bill.add(call, source, name)
