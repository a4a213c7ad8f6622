"""Rebuild the traces of a group from its records, and check them while reading."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jurygraph.decision.decide import group_verdicts_by_response
from jurygraph.errors import TraceMismatch
from jurygraph.runs.store.chain import Record
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.packing import (
    ERASED,
    Body,
    read_shared_lists,
    unpack_about,
    unpack_material,
    unpack_reward,
    unpack_verdict,
)
from jurygraph.schema import Decision, RecordedVerdict, Response, Trace

if TYPE_CHECKING:
    from jurygraph.runs.run import Run


class ScoredResponse(NamedTuple):
    """A trace and its response; the response is None where it was erased."""

    trace: Trace
    response: Response | None


class _StoredRecord(NamedTuple):
    """A record with its body and texts; `texts` are keyed by their index, without erased ones."""

    record: Record
    body: Body
    texts: Mapping[int, bytes]


def is_erased(verdict: RecordedVerdict) -> bool:
    """Return whether the reason or a quotation of a verdict was erased."""
    return ERASED in (verdict.reason, *(evidence.quote for evidence in verdict.evidence))


def read_group(run: "Run", group: Record) -> list[ScoredResponse]:
    """Return the traces of a group; `group` is its record in the run that holds the verdicts.

    Raises `TraceMismatch` where a record does not follow the one before it, or cannot be read.
    """
    try:
        stored_group, *traces = _read_stored(run.source.ledger, group)
        return _unpack_group(run, stored_group, traces)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        place = f"{run.ledger.path}, record {group.seq} and those of its traces"
        problem = f"cannot be read ({type(error).__name__}: {next(iter(str(error).splitlines()), '')})"
        raise TraceMismatch(f"{place}: {problem}; one of them has been changed") from error


def _read_stored(ledger: Ledger, group: Record) -> list[_StoredRecord]:
    records = [
        (record, record.content) for record in ledger.verified_records(group.seq, group.seq + group.content["size"])
    ]
    texts = ledger.texts({record.seq: body["texts"] for record, body in records})
    return [_StoredRecord(record, body, texts[record.seq]) for record, body in records]


def _unpack_group(run: "Run", group: _StoredRecord, stored: Sequence[_StoredRecord]) -> list[ScoredResponse]:
    task_id = group.record.key
    shape, decision = run.survey_shape_of(task_id), run.decision_of(task_id)
    lists = read_shared_lists(group.body)
    verdicts = [
        unpack_verdict(body, trace.record.key, shape, trace.texts, lists)
        for trace in stored
        for body in trace.body["verdicts"]
    ]
    verdicts_by_response = group_verdicts_by_response(shape.questions, [trace.record.key for trace in stored], verdicts)
    shared = {
        "task_id": task_id,
        "group": group.texts.get(0, ERASED.encode()).decode(),
        "plan_digest": _plan_digest(run, task_id),
        "statistics": group.body["statistics"],
    }
    return [_unpack_trace(run, shared, decision, trace, verdicts_by_response[trace.record.key]) for trace in stored]


def _unpack_trace(
    run: "Run",
    shared: Mapping[str, Any],
    decision: Decision,
    stored: _StoredRecord,
    verdicts: Sequence[RecordedVerdict],
) -> ScoredResponse:
    record, body, texts = stored
    about = unpack_about(body, texts)
    own_record = run.own_record(record)
    trace = Trace.model_validate(
        {
            **shared,
            "response_id": record.key,
            "agent": body.get("agent"),
            "labels": about["labels"],
            "reward": unpack_reward(
                own_record.content["reward"] if own_record is not record else body["reward"], decision
            ),
            "verdicts": tuple(verdicts),
            "material": [unpack_material(item, record.key, texts) for item in body.get("material", ())],
            "calls": body.get("calls", ()),
            "purpose": run.purpose(call["served"] for call in body.get("calls", ()) if call["served"] is not None),
            "previous": run.ledger.record_at(own_record.seq - 1).link.hex(),
        }
    )
    text = texts.get(body["response"])
    if text is None:
        return ScoredResponse(trace, None)
    return ScoredResponse(trace, Response(id=record.key, text=text.decode(), data=about["data"], agent=trace.agent))


def _plan_digest(run: "Run", task_id: str) -> str:
    content = run.task_content(task_id)
    if content is None:
        return ERASED
    digest: str = content["plan"] if run.base is None else run.plan_of(task_id).digest
    return digest
