"""LangSmith's exports as JSON lines: runs, and examples of a dataset (the package's schemas `Run` and `Example`).

Runs of one example are trials of one task; the outputs of an example are the reference. Messages are in LangChain's
form, plain or as its constructors, or in OpenAI's.
"""

from collections.abc import Mapping
from typing import Any

from jurygraph.interchange.rows import ImportedRow, ImportNote, RowKey, nonempty_fields
from jurygraph.interchange.trials import (
    Conversation,
    FileLocation,
    Trial,
    TrialsAndNotes,
    make_trials_reader,
    read_located_lines,
)
from jurygraph.messages import FieldPath
from jurygraph.schema.conversation import ChatMessage
from jurygraph.schema.frozen_model import JsonFields, JsonMapping, JsonObject, StrPath, digest_of

NESTED_RUNS_IMPORT_NOTE = "runs inside another run are left out, since it has their messages"
UNREAD_INPUTS_IMPORT_NOTE = "rows whose inputs are neither messages nor one text are left out"
UNREAD_OUTPUTS_IMPORT_NOTE = (
    "outputs that are neither messages nor one text are in the metadata alone"
)


class ExportedRow(ImportedRow):
    """A run, which has a `run_type`, or an example of a dataset."""

    id: RowKey | None = None
    inputs: JsonObject | None = None
    outputs: JsonObject | None = None
    reference_outputs: JsonObject | None = None
    run_type: str | None = None
    name: str | None = None
    parent_run_id: str | None = None
    reference_example_id: RowKey | None = None
    metadata: JsonObject | None = None


def _read_langsmith_trials(path: StrPath) -> TrialsAndNotes:
    for location, row in read_located_lines(path, ExportedRow):
        name = row.id
        if not name:
            name = f"row-{digest_of(row.model_dump(mode='json'))[:12]}"
        if row.parent_run_id is not None:
            yield ImportNote(NESTED_RUNS_IMPORT_NOTE, name)
            continue
        query = _read_input_or_output_messages(location, "inputs", row.inputs)
        if not query:
            yield ImportNote(UNREAD_INPUTS_IMPORT_NOTE, name)
            continue
        is_langsmith_run = row.run_type is not None
        convert_row = _to_trial if is_langsmith_run else _to_task
        yield convert_row(location, row, name, query)


def _to_trial(location: FileLocation, row: ExportedRow, name: str, query: Conversation) -> Trial:
    outputs = _read_input_or_output_messages(location, "outputs", row.outputs)
    answer = _extract_answer(query, outputs)
    notes = [ImportNote(UNREAD_OUTPUTS_IMPORT_NOTE, name)] if row.outputs and not answer else []
    unread_fields = nonempty_fields(
        inputs=_select_unread_fields(row.inputs), outputs=_select_unread_fields(row.outputs, answer)
    )
    about = nonempty_fields(run_type=row.run_type, metadata=row.metadata)
    return Trial(
        location=location,
        task=row.reference_example_id or name,
        query=query,
        answer=answer,
        name=name,
        about=_to_reference_fields(location, query, "reference_outputs", row.reference_outputs),
        response={"agent": row.name, "metadata": {**row.other, **about, **unread_fields}},
        notes=notes,
    )


def _to_task(location: FileLocation, row: ExportedRow, name: str, query: Conversation) -> Trial:
    field = "reference_outputs"
    outputs = row.reference_outputs
    if outputs is None:
        field = "outputs"
        outputs = row.outputs
    reference = _to_reference_fields(location, query, field, outputs)
    unread_outputs = _select_unread_fields(outputs, bool(reference))
    unread_fields = nonempty_fields(
        inputs=_select_unread_fields(row.inputs), outputs=unread_outputs, **row.other
    )
    notes = [ImportNote(UNREAD_OUTPUTS_IMPORT_NOTE, name)] if outputs and not reference else []
    return Trial(
        location=location,
        task=name,
        query=query,
        name=None,
        about={**reference, "metadata": {**unread_fields, **(row.metadata or {})}},
        notes=notes,
    )


def _to_reference_fields(
    location: FileLocation, query: Conversation, field: str, outputs: JsonMapping | None
) -> JsonFields:
    """Return the reference of a task: one text, or messages."""
    answer = _extract_answer(query, _read_input_or_output_messages(location, field, outputs))
    if len(answer) == 1 and not answer[0].tool_calls:
        return {"reference": answer[0].text}
    return nonempty_fields(reference_messages=answer)


def _extract_answer(query: Conversation, outputs: Conversation) -> Conversation:
    """Return the messages of outputs; the state of a graph repeats those of the inputs first."""
    repeats = outputs[: len(query)] == query
    return outputs[len(query) :] if repeats else outputs


def _read_input_or_output_messages(
    location: FileLocation, field: str, side: JsonMapping | None
) -> Conversation:
    """Return the messages of inputs or outputs; none where there are none, and no single text."""
    role = "user" if field == "inputs" else "assistant"
    path: FieldPath = (field,)
    value: Any = side or {}
    for step in _find_messages_key_path(value):
        path += (step,)
        value = value[step]
    if isinstance(value, str):
        return (ChatMessage(role=role, content=value),)
    if len(path) == 1:
        return ()
    items = [value] if isinstance(value, Mapping) else value
    return location.messages(items, *path)


def _find_messages_key_path(side: JsonMapping) -> FieldPath:
    """Return the path of the messages: those of a state, of a model of LangChain's, or of OpenAI's; or of one text."""
    messages = side.get("messages")
    if isinstance(messages, list):
        has_nested_message_lists = bool(messages) and isinstance(messages[0], list)
        return ("messages", 0) if has_nested_message_lists else ("messages",)
    for path in (("generations", 0, 0, "message"), ("choices", 0, "message"), ("message",)):
        if isinstance(_get_value_at_path(side, path), Mapping):
            return path
    if len(side) == 1:
        ((name, value),) = side.items()
        if isinstance(value, str):
            return (name,)
    return ()


def _get_value_at_path(value: Any, path: FieldPath) -> Any:
    """Return the value at a path; None where the path leads to nothing."""
    try:
        for key in path:
            value = value[key]
    except (LookupError, TypeError):
        return None
    return value


def _select_unread_fields(side: JsonMapping | None, has_read_messages: object = True) -> JsonFields:
    """Return the fields of inputs or outputs except those that were read; all if nothing was."""
    path = _find_messages_key_path(side or {}) if has_read_messages else ()
    return {name: value for name, value in (side or {}).items() if name not in path[:1]}


read_langsmith = make_trials_reader(
    _read_langsmith_trials, "LangSmith's runs or examples, one a line"
)
