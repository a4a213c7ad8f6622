"""Read the calls behind verdicts: the requests that were sent for them, and the replies.

A verdict names its own calls, and the material that its question needs names others. A branched run holds only the
calls that it has made itself; the others are in the run from which it was branched, or nowhere any more.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.packing import ERASED
from jurygraph.schema import Call, CallUse, RecordedVerdict, SurveyOutline, Trace


class RecordedCall(NamedTuple):
    """A call behind a verdict, with its purpose. Instead of a text that is not there, there is the reason."""

    purpose: str
    call: Call
    request: dict[str, Any] | str
    reply: dict[str, Any] | str


def read_calls(run: Run, trace: Trace, verdicts: Sequence[RecordedVerdict]) -> list[RecordedCall]:
    """Return the calls behind verdicts of a trace, in order: those for material first, repairs after the first try.

    Raises `TraceMismatch` if a stored text is not the one that was written.
    """
    by_id = {call.id: call for call in trace.calls}
    record = run.source.ledger.find("trace", trace.response_id)
    last = None if record is None else record.seq
    calls: dict[str, RecordedCall] = {}
    for use in _named_uses(run.survey_outline_of(trace.task_id), trace, verdicts):
        call = by_id.get(use.id)
        if call is not None and use.id not in calls:
            request, reply = _find_texts(run.source, call, last)
            reply = reply if call.fault is None else "none"  # one that came too late does not count
            calls[use.id] = RecordedCall(use.purpose, call, request, reply)
    return list(calls.values())


def _named_uses(
    outline: SurveyOutline, trace: Trace, verdicts: Sequence[RecordedVerdict]
) -> Iterator[CallUse]:
    """Yield the calls that the material of the verdicts' question and the verdicts name, with their purposes."""
    # Imported lazily: it loads the judging, which no other reader needs.
    from jurygraph.graphs.routing import required_material

    needs = {derivation.gives: derivation.needs for derivation in outline.derivations}
    names: list[str] = []
    for question in outline.questions:
        if question.id == verdicts[0].question:
            names += required_material(question)
    for name in names:  # the list grows by what each material is made from
        for need in needs.get(name, ()):
            if need not in names:
                names.append(need)
    uses_by_material = {material.name: material.calls for material in trace.material}
    for name in reversed(names):
        yield from uses_by_material.get(name, ())
    for verdict in verdicts:
        yield from verdict.named_calls


def _find_texts(run: Run, call: Call, last: int | None = None) -> tuple[Any, Any]:
    """Return the request and the reply of a call, from the run or the one from which it was branched.

    `last` is the record that needed it: of the replies that shards got to one request, the last one before counts.
    """
    record = run.ledger.find("call", call.id, last)
    if record is not None:
        (verified,) = run.ledger.verified_records(record.seq, record.seq)
        texts = run.ledger.texts_of(verified)
        request = json.loads(texts[0]) if 0 in texts else ERASED
        reply = json.loads(texts[1]) if 1 in texts else ERASED
        return request, reply
    if run.header.branch is None:
        reason = f"not recorded in {run.folder}"
        return reason, reason
    folder = run.folder_of(run.header.branch)
    if not (folder / run_folder.LEDGER).is_file():
        location = f"in the run {folder}, from which {run.folder} was branched"
        reason = f"{location}, and which is not there"
        return reason, reason
    with Run.open(folder) as origin:
        return _find_texts(origin.source, call)
