"""Begin the run of a jury: its header, an open-ended run that goes on, and the results that need no second request."""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.decision.combiners import Combiner
from jurygraph.errors import InputError
from jurygraph.graphs.routing import ReusedResults
from jurygraph.models.gateway import Gateways
from jurygraph.runs.run import Run, is_verdict_reusable
from jurygraph.runs.store.folder import relative_folder
from jurygraph.runs.store.header import ModelIdentity, RunHeader, differences
from jurygraph.runs.writable_run import WritableRun, open_run_if_exists
from jurygraph.schema import Call, Config, Lookup, Material, RecordedVerdict, Trace
from jurygraph.sources.files import close_on_error


class RecordedJury(Protocol):
    """The parts of a jury that its run stores. (A protocol, because a jury imports what records it.)"""

    config: Config
    gateways: Gateways
    domain: str | None
    evaluators: Mapping[str, Evaluator]
    derivers: Mapping[str, Deriver]
    combiners: Mapping[str, Combiner]
    code_folder: Path | None

    @property
    def tools(self) -> Mapping[str, str]: ...


def model_identities_by_name(jury: RecordedJury) -> dict[str | None, ModelIdentity]:
    has_tools = jury.config.has_tools
    return {
        name: ModelIdentity.of(gateway.backend, has_tools=has_tools)
        for name, gateway in jury.gateways.items()
    }


def build_run_header(jury: RecordedJury, folder: Path, **inputs: Any) -> RunHeader:
    """Return the header of a jury's run in a folder; `inputs` are its files and what follows from them."""
    models = model_identities_by_name(jury)
    model = models.pop(None, None)  # what is left are the models with a name
    return RunHeader(
        config=jury.config,
        model=model,
        models=models,
        domain=jury.domain,
        evaluators={name: evaluator.record for name, evaluator in jury.evaluators.items()},
        derivers={name: deriver.version for name, deriver in jury.derivers.items()},
        tools=dict(jury.tools),
        combiners={name: combiner.version for name, combiner in jury.combiners.items()},
        code=relative_folder(folder, jury.code_folder),
        **inputs,
    )


def open_open_ended_run(folder: Path, jury: RecordedJury) -> WritableRun:
    """Open the open-ended run of a jury in a folder, or make one.

    A server that replied to a call of the run and is away now has no wrong URL: it is waited for.

    Raises `InputError` where it has other settings, was scored from a file of tasks or is closed, and where another
    process writes it.
    """
    existing_run = open_run_if_exists(folder)
    if existing_run is None:
        return WritableRun.create(folder, build_run_header(jury, folder), uuid.uuid4().hex)
    with close_on_error(existing_run.close):
        refuse_other_run(existing_run, jury)
    assert isinstance(existing_run, WritableRun), "a closed run is refused"
    calls = (record.content["call"] for record in existing_run.ledger.records("call"))
    jury.gateways.note_earlier_answers(
        (call["provider"], call.get("endpoint"), call["model"])
        for call in calls
        if call.get("fault") is None and not call.get("cache_hit")
    )
    return existing_run


def refuse_other_run(run: Run, jury: RecordedJury) -> None:
    """Raise `InputError` for a run that a jury cannot go on with."""
    problem = None
    if not run.header.is_open_ended:
        problem = "contains a run that was scored from a file of tasks"
    elif run.is_closed:
        problem = "contains a run that was closed, so nothing more can be recorded into it"
    elif found := list(differences(run.header, build_run_header(jury, run.folder))):
        problem = f"was started with other settings: {'; '.join(found)}"
    if problem is not None:
        raise InputError(f"{run.folder}: {problem}; record into another folder")


def reusable_results(
    traces: Sequence[Trace],
    should_keep_verdict: Callable[[RecordedVerdict], bool] = lambda verdict: True,
    should_keep_material: Callable[[Material], bool] = lambda item: True,
) -> ReusedResults:
    """Return the results of traces that are kept and not requested again, with the calls behind them.

    A verdict that failed by its reply is not kept where its request was sent again: the later reply is in the run.
    """
    verdicts = {}
    material = {}
    calls: dict[str, Call] = {}
    lookups: dict[str, Lookup] = {}
    settled = Counter[str]()
    resent_call_ids = _find_resent_call_ids(traces)
    for trace in traces:
        used_call_ids: set[str] = set()
        for verdict in trace.verdicts:
            call_ids = {use.id for use in verdict.calls}
            has_later_reply = verdict.failure is not None and bool(call_ids & resent_call_ids)
            if has_later_reply or not should_keep_verdict(verdict):
                continue
            if is_verdict_reusable(verdict):
                verdicts[verdict.key] = verdict
                used_call_ids |= call_ids
            elif verdict.gated_by is not None:
                settled[verdict.question] += 1
        for item in trace.material:
            if item.status == "ok" and should_keep_material(item):
                material[item.name, item.response] = item
                used_call_ids.update(use.id for use in item.calls)
        calls |= {call.id: call for call in trace.calls if call.id in used_call_ids}
        lookups |= {lookup.id: lookup for lookup in trace.lookups}
    return ReusedResults(verdicts, material, calls, lookups, settled)


def _find_resent_call_ids(traces: Sequence[Trace]) -> set[str]:
    """Return the ids of calls whose request was sent for one of the traces, and again for another."""
    first_calls: dict[str, Call] = {}
    return {
        call.id
        for call in chain.from_iterable(trace.calls for trace in traces)
        if first_calls.setdefault(call.id, call) != call
    }
