"""Read the calls behind verdicts: the requests that were sent for them, and the replies.

A verdict names its own calls, and the material that its question needs names others. A branched run holds only the
calls that it has made itself; the others are in the run from which it was branched, or nowhere any more.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jurygraph.messages import shorten
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import Ledger, LedgerRecord
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.schema import (
    Call,
    CallUse,
    Lookup,
    Material,
    RecordedVerdict,
    SurveyWithoutTexts,
    Trace,
)
from jurygraph.schema.frozen_model import JsonFields, JsonMapping

_MAX_LOOKUP_TEXT_LENGTH = 90


class RecordedLookup(NamedTuple):
    """A call of a tool behind a verdict, with its number: `tool:3` is the third. An erased text is `erased`."""

    number: int
    lookup: Lookup
    arguments: str
    result: str

    @property
    def summary(self) -> str:
        """The call with its arguments, and the beginning of its result, in a line."""
        call = f"{self.lookup.tool} {shorten(self.arguments, _MAX_LOOKUP_TEXT_LENGTH)}".strip()
        outcome = "" if self.lookup.outcome == "ok" else f"{self.lookup.outcome}: "
        result = shorten(" ".join(self.result.split()), _MAX_LOOKUP_TEXT_LENGTH)
        return f"tool:{self.number} {call} → {outcome}{result}"


class RecordedCall(NamedTuple):
    """A call behind a verdict, with its purpose. Instead of a text that is not there, there is the reason.

    A call of an investigation has the first `repeated` of its messages from the call before, and `lookups` are the
    calls of tools that its reply asks for.
    """

    purpose: str
    call: Call
    request: JsonFields | str
    reply: JsonFields | str
    repeated: int = 0
    lookups: tuple[RecordedLookup, ...] = ()

    def to_json(self) -> JsonFields:
        """Return the call as JSON; only one of an investigation has `repeated` and `lookups`."""
        content = {**self._asdict(), "call": self.call.model_dump(mode="json")}
        content["lookups"] = [
            {**made._asdict(), "lookup": made.lookup.model_dump(mode="json")}
            for made in self.lookups
        ]
        for name in ("repeated", "lookups"):
            if not content[name]:
                del content[name]
        return content


def message_text(message: JsonMapping) -> str:
    """Return the text of a message or reply as it is shown: its words, and the tools that it calls."""
    words: list[str] = [message.get("content") or message.get("text") or ""]
    for call in message.get("tool_calls", ()):
        function = call["function"]
        words.append(f"→ {function['name']}({function['arguments']})")
    if message.get("other_field"):
        words.append(f"(no text, but `{message['other_field']}`, which was not asked for)")
    return "\n".join(filter(None, words))


def read_calls(run: Run, trace: Trace, verdicts: Sequence[RecordedVerdict]) -> list[RecordedCall]:
    """Return the calls behind verdicts of a trace, in order: those for material first, repairs after the first try.

    Raises `TraceMismatch` if a stored text is not the one that was written.
    """
    call_by_id = {call.id: call for call in trace.calls}
    last = _last_record_number(run, trace)
    lookups = read_lookups(run, trace, verdicts)
    calls = {}
    before: Sequence[Any] = ()
    for use in _call_uses(run.survey_without_texts_of(trace.task_id), trace, verdicts):
        call = call_by_id.get(use.id)
        if call is not None and use.id not in calls:
            request, reply = map(
                _parse_json_object, find_call_texts(run.source, "call", call, last)
            )
            reply = reply if call.fault is None else "none"  # one that came too late does not count
            messages = request["messages"] if isinstance(request, dict) else []
            repeated_message_count = len(before) if messages[: len(before)] == before else 0
            lookups_of_call = tuple(item for item in lookups.values() if item.lookup.call == use.id)
            calls[use.id] = RecordedCall(
                use.purpose, call, request, reply, repeated_message_count, lookups_of_call
            )
            is_investigation = isinstance(request, dict) and "investigation" in request
            before = messages if is_investigation else ()
    return list(calls.values())


def _last_record_number(run: Run, trace: Trace) -> int | None:
    record = run.source.ledger.find("trace", trace.response_id)
    return None if record is None else record.seq


def read_lookups(
    run: Run, trace: Trace, verdicts: Sequence[RecordedVerdict]
) -> dict[str, RecordedLookup]:
    """Return the calls of tools behind verdicts and the material by their ids, each with the first number that it has.

    Raises `TraceMismatch` if a stored text is not the one that was written.
    """
    last = _last_record_number(run, trace)
    verdicts_and_material: list[RecordedVerdict | Material] = [*verdicts, *trace.material]
    numbers: dict[str, int] = {}
    for user in verdicts_and_material:
        for number, name in enumerate(user.lookups, start=1):
            numbers.setdefault(name, number)
    lookup_by_id = {lookup.id: lookup for lookup in trace.lookups}
    return {
        name: RecordedLookup(
            number,
            lookup_by_id[name],
            *find_call_texts(run.source, "lookup", lookup_by_id[name], last),
        )
        for name, number in numbers.items()
        if name in lookup_by_id
    }


def _call_uses(
    survey: SurveyWithoutTexts, trace: Trace, verdicts: Sequence[RecordedVerdict]
) -> Iterator[CallUse]:
    """Yield the calls that the material of the verdicts' questions and the verdicts name, with their purposes."""
    # Imported lazily: it loads the judging, which no other reader needs.
    from jurygraph.graphs.routing import required_material_names

    needs = {derivation.gives: derivation.needs for derivation in survey.derivations}
    judged_questions = {verdict.question for verdict in verdicts}
    names: list[str] = []
    for question in survey.questions:
        if question.id in judged_questions:
            names += required_material_names(question)
    for name in names:  # the list grows by what each material is made from
        for need in needs.get(name, ()):
            if need not in names:
                names.append(need)
    calls_by_material = {material.name: material.calls for material in trace.material}
    for name in reversed(names):
        yield from calls_by_material.get(name, ())
    for verdict in verdicts:
        yield from verdict.calls_with_purpose


def find_call_record(ledger: Ledger, kind: str, call: Call | Lookup) -> LedgerRecord | None:
    """Return the record of this very call, whose request may have been sent several times; None if there is none."""
    for record in ledger.find_all_records(kind, call.id):
        if type(call).model_validate(record.content[kind]) == call:
            return record
    return None


def find_call_texts(
    run: Run, kind: str, call: Call | Lookup, last: int | None = None
) -> tuple[str, str]:
    """Return both texts of a call, of a model or of a tool, from the run or the one from which it was branched.

    Instead of a text that is not there, there is the reason. `last` is the record that needed it: where the call itself
    is not recorded, as shards got the same reply to one request, the last one before counts.
    """
    record = find_call_record(run.ledger, kind, call) or run.ledger.find(kind, call.id, last)
    if record is not None:
        (record,) = run.ledger.verified_records(record.seq, record.seq)
        texts = run.ledger.texts_of_record(record)
        first, second = (
            texts[index].decode() if index in texts else ERASED_PLACEHOLDER for index in (0, 1)
        )
        return first, second
    origin = run.open_origin()
    if origin is not None:
        with origin:
            return find_call_texts(origin.source, kind, call)
    reason = f"not recorded in {run.folder}"
    if run.header.branch is not None:
        reason = (
            f"in the run {run.folder_of_origin(run.header.branch)}, "
            f"from which {run.folder} was branched, and which is not there"
        )
    return reason, reason


def _parse_json_object(text: str) -> JsonFields | str:
    """Return a request or reply, which is a JSON object, or the reason why it is not there."""
    content: JsonFields | str = json.loads(text) if text.startswith("{") else text
    return content
