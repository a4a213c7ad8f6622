"""Logs of Inspect (inspect_ai 0.3): the samples of an evaluation, whose epochs are trials of one task.

Read are logs in JSON. The other form, `.eval`, is compressed with Zstandard, which Python reads from 3.14 on.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from jurygraph.errors import InputError
from jurygraph.interchange.rows import ImportedRow, ImportNote, RowKey, nonempty_fields
from jurygraph.interchange.trials import (
    Conversation,
    FileLocation,
    Trial,
    TrialsAndNotes,
    make_trials_reader,
    read_json_document,
)
from jurygraph.schema.frozen_model import (
    JsonFields,
    JsonMapping,
    JsonObject,
    StrPath,
    map_strings,
)

OMITTED_EVENTS_IMPORT_NOTE = "parts of samples that are left out, as they are no messages"
NO_MESSAGES_IMPORT_NOTE = "samples without messages are left out"
NO_SCORE_IMPORT_NOTE = "scores without a value are left out"

_OMITTED_SAMPLE_FIELDS = ("events", "events_data", "timelines", "store", "output")
_SCORE_BY_GRADE = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""The value of Inspect's grades: correct, partial, incorrect, no answer."""
_LOG_CONVERSION_HINT = "write it as JSON: inspect log convert LOG --to json --output-dir FOLDER"


class Score(ImportedRow):
    value: JsonValue = None


class Sample(ImportedRow):
    id: RowKey
    epoch: int = 1
    target: str | tuple[str, ...] = ""
    messages: tuple[Any, ...] = ()
    scores: dict[str, Score] | None = None
    metadata: JsonObject | None = None
    attachments: dict[str, str] | None = None
    input: JsonValue = None


class Log(ImportedRow):
    samples: tuple[Any, ...] | None = None


def _read_inspect_trials(path: StrPath) -> TrialsAndNotes:
    if str(path).endswith(".eval"):
        raise InputError(f"{path}: is packed; {_LOG_CONVERSION_HINT}")
    document, value = read_json_document(path)
    log = document.validate(Log, value)
    for index, sample in enumerate(log.samples or ()):
        location = FileLocation(place=document.place, path=("samples", index))
        yield _to_trial(location, location.validate(Sample, sample))


def _to_trial(location: FileLocation, sample: Sample) -> Trial | ImportNote:
    name = f"{sample.id}/{sample.epoch}"
    if not sample.messages:
        return ImportNote(NO_MESSAGES_IMPORT_NOTE, name)
    attachments = sample.attachments or {}
    openai_messages = [_to_openai_message(message, attachments) for message in sample.messages]
    messages = location.messages(openai_messages, "messages")
    start = _find_answer_start(sample, messages)
    target = sample.target if isinstance(sample.target, str) else "\n".join(sample.target)
    score_by_name = sample.scores or {}
    labels = {key: score.value for key, score in score_by_name.items()}
    notes = [
        ImportNote(NO_SCORE_IMPORT_NOTE, f"{name}: {key}")
        for key, value in labels.items()
        if value is None
    ]
    metadata = sample.other
    parts = [field for field in _OMITTED_SAMPLE_FIELDS if metadata.pop(field, None)]
    if parts:
        notes.append(ImportNote(OMITTED_EVENTS_IMPORT_NOTE, f"{name}: {', '.join(parts)}"))
    scores = {key: score.other for key, score in score_by_name.items()}
    metadata |= nonempty_fields(scores=nonempty_fields(**scores))
    return Trial(
        location=location,
        task=sample.id,
        query=messages[:start],
        answer=messages[start:],
        name=str(sample.epoch),
        about={"reference": target or None, "metadata": sample.metadata},
        response={
            "labels": {"epoch": sample.epoch, **_add_reward_label(labels)},
            "metadata": metadata,
        },
        notes=notes,
    )


def _add_reward_label(labels: JsonMapping) -> JsonFields:
    """Return the values of scores, and that of a single one as `reward` if it is a number or a grade."""
    values = {name: value for name, value in labels.items() if value is not None}
    if len(values) == 1:
        (value,) = values.values()
        reward = _SCORE_BY_GRADE.get(value) if isinstance(value, str) else value
        if isinstance(reward, int | float):
            values["reward"] = float(reward)
    return values


def _find_answer_start(sample: Sample, messages: Conversation) -> int:
    """Return the index of the first message that the assistant wrote: some of its own may be in the input."""
    # a message is found by its index, which is that of its source only if both lists are as long
    has_same_message_count = len(sample.messages) == len(messages)
    for index, message in enumerate(messages):
        if message.role != "assistant":
            continue
        item = sample.messages[index] if has_same_message_count else None
        is_input_message = isinstance(item, Mapping) and item.get("source") == "input"
        if not is_input_message:
            return index
    return len(messages)


def _to_openai_message(item: Any, attachments: Mapping[str, str]) -> Any:
    """Return a message in OpenAI's form. Long texts are stored apart from the messages, and results may be errors."""
    if not isinstance(item, Mapping):
        return item

    def resolve_attachment(text: str) -> str:
        name = text.removeprefix("attachment://")
        return text if name == text else attachments.get(name, text)

    fields = map_strings(dict(item), resolve_attachment)
    calls = fields.get("tool_calls")
    if isinstance(calls, list):
        fields["tool_calls"] = [_flatten_tool_call(call) for call in calls]
    if fields.get("role") != "tool":
        fields.pop("tool_call_id", None)
        return fields
    error = fields.get("error")
    if isinstance(error, Mapping):  # as Inspect shows it to the model
        fields["content"] = f"Error: {error.get('message')}"
    return {**fields, "name": fields.get("function")}


def _flatten_tool_call(call: Any) -> Any:
    if not isinstance(call, Mapping) or not isinstance(call.get("function"), str):
        return call
    return {"id": call.get("id"), "name": call["function"], "arguments": call.get("arguments", {})}


read_inspect_log = make_trials_reader(_read_inspect_trials, "a log of Inspect's with samples")
