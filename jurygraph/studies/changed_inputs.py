"""Find the changes between two runs: in the questions of their tasks, word for word, and in settings and versions."""

import json
from collections import Counter
from collections.abc import Iterator
from os.path import commonprefix
from typing import Any, NamedTuple

from pydantic_core import from_json

from jurygraph.judges.context import find_question_texts
from jurygraph.messages import format_count, shorten
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import MISSING, RunHeader, ValueChange, changes
from jurygraph.runs.store.ledger import LedgerRecord, reading
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER, StoredBody, unpack_response_text
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.studies.report import group_by

_PARTS_WITH_EFFECT_ON_REWARDS = {
    "tasks",
    "responses",
    "config",
    "model",
    "evaluators",
    "derivers",
    "combiners",
    "domain",
}
_SETTINGS_WITHOUT_EFFECT_ON_REWARDS = (
    "config.calls.cache",
    "config.calls.record",
    "config.calls.key",
    "config.calls.concurrency",
    "config.task_defaults",  # the tasks have them
)
_NOUNS = {
    "criteria": "criterion",
    "stakeholders": "stakeholder",
    "constraints": "constraint",
    "evaluators": "evaluator",
    "derivers": "deriver",
}
"""Lists of a task and of a config whose members have names, with what a member is."""
_MAX_VALUE_CHARACTERS = 76
_CHARACTERS_BEFORE_DIFFERENCE = 24


class InputChange(NamedTuple):
    """An input, whether it was added, removed or reworded, and its values in A and B, None for what only one run has.

    `tasks` is the number of tasks with this change, and `task` the first of them; None for a setting.
    """

    what: str
    before: Any
    after: Any
    tasks: int | None = None
    task: str | None = None

    def __str__(self) -> str:
        """Return what was changed, and in which tasks: `criterion polite, reworded in 20 tasks`."""
        if self.tasks is None:
            return self.what
        tasks = f"task {self.task}" if self.tasks == 1 else format_count(self.tasks, "task")
        return f"{self.what} in {tasks}"

    @property
    def shortened_values(self) -> tuple[str, str]:
        """Return both values in a line each, cut so that the first difference is seen."""
        before, after = map(_format_value, (self.before, self.after))
        common = commonprefix([before, after])  # noqa: RUF071 - of characters, not of paths
        start = len(common) - _CHARACTERS_BEFORE_DIFFERENCE
        if start > 0 and max(len(before), len(after)) > _MAX_VALUE_CHARACTERS:
            before, after = f"…{before[start:]}", f"…{after[start:]}"
        return shorten(before, _MAX_VALUE_CHARACTERS), shorten(after, _MAX_VALUE_CHARACTERS)


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "none" if value is None else " ".join(text.split())


def find_changed_inputs(a: Run, b: Run) -> list[InputChange]:
    """Return the changed questions of tasks in both runs, the most frequent first, responses and changed settings."""
    question_changes = _find_question_changes(a, b)
    # as text, because lists and mappings have no hash
    groups = group_by(question_changes, lambda change: repr(change[:3])).values()
    questions = [members[0]._replace(tasks=len(members)) for members in groups]
    questions.sort(key=lambda change: -(change.tasks or 0))
    settings = [_describe_change(*values) for values in _find_setting_changes(a.header, b.header)]
    return [*questions, *_find_rewritten_responses(a, b), *settings]


def _describe_change(path: str, before: Any, after: Any) -> InputChange:
    if before is MISSING:
        return InputChange(f"{path}, added", None, _find_words(after))
    if after is MISSING:
        return InputChange(f"{path}, removed", _find_words(before), None)
    if path.endswith(("text", "query", "profile")):
        path = f"{path.removesuffix('.text')}, reworded"
    return InputChange(path, before, after)


def _find_words(part: Any) -> Any:
    return part.get("text", part) if isinstance(part, dict) else part


def _find_question_changes(a: Run, b: Run) -> Iterator[InputChange]:
    """Yield the changes of each task that both runs have; erased texts have none. Equal texts are not parsed."""
    for record, other_record in _find_differing_records(a, b, "task"):
        before, after = _first_text(a, record), _first_text(b, other_record)
        if before is not None and after is not None:
            for values in changes(_name_task_parts(before), _name_task_parts(after)):
                yield _describe_change(*values)._replace(task=record.key)


def _find_rewritten_responses(a: Run, b: Run) -> Iterator[InputChange]:
    """Yield that responses have other texts, with those of the first one. Groups with equal digests are not read."""
    # Of the texts, only the first ones are kept: those of a large run would take all memory.
    first_texts = None
    count_by_task: Counter[str] = Counter()
    for record, other_record in _find_differing_records(a, b, "group"):
        texts_in_b = _read_response_texts(b, other_record)
        for name, text in _read_response_texts(a, record).items():
            other_text = texts_in_b.get(name)
            if None not in (text, other_text) and text != other_text:
                first_texts = first_texts or (text, other_text)
                count_by_task[record.key] += 1
    if first_texts:
        number = format_count(count_by_task.total(), "response")
        task = next(iter(count_by_task))
        yield InputChange(f"{number}, with other texts", *first_texts, len(count_by_task), task)


def _read_response_texts(run: Run, group: LedgerRecord) -> dict[str, str | None]:
    """Return the texts of a group's responses by their ids, None for one that was erased; nothing else is read."""
    with reading(f"{run.ledger.path}, record {group.seq} and those of its traces"):
        ledger = run.source.ledger
        last = group.seq + group.content["size"]
        traces = list(ledger.records(after=group.seq, up_to_record=last))
        bodies = {trace.seq: from_json(trace.body) for trace in traces}
        # Of the texts of a trace, that of the response is the first.
        texts = ledger.texts({seq: body["texts"][:1] for seq, body in bodies.items()})
        return {
            trace.key: unpack_response_text(bodies[trace.seq], texts[trace.seq]) for trace in traces
        }


def _find_differing_records(
    a: Run, b: Run, kind: str
) -> Iterator[tuple[LedgerRecord, LedgerRecord]]:
    """Yield the records of a kind of each task in both runs, where their first texts differ.

    That is the content of a task, and of a group the digest of its ids and contents.
    """
    records_in_b = _records_by_task(b, kind)
    for task_id, record in _records_by_task(a, kind).items():
        other_record = records_in_b.get(task_id)
        if other_record is not None and _first_text(a, record) != _first_text(b, other_record):
            yield record, other_record


def _first_text(run: Run, record: LedgerRecord) -> bytes | None:
    """Return the first text of a record; None if it was erased."""
    return run.source.ledger.texts_of_record(record).get(0)


def _records_by_task(run: Run, kind: str) -> dict[str, LedgerRecord]:
    """Return the last record of a kind for each task."""
    records = run.source.ledger.records(kind, up_to_record=run.last_base_record_number)
    return {record.key: record for record in records}


def _name_task_parts(text: bytes) -> JsonFields:
    """Return the parts of a stored task by names that tell what they are, with what was read from its profiles."""
    content = from_json(text)
    task = content["task"]
    rubric = content.get("rubric") or task["rubric"] or {"criteria": [], "edges": []}
    parts = {**task, "rubric": None, "criteria": rubric["criteria"], "edges": rubric["edges"]}
    return {**_name_members(parts), "profiles": _name_members(content.get("profiles", {}))}


def _name_members(parts: StoredBody) -> JsonFields:
    """Return parts with the members of lists by their names, so that one more is no change of those after it."""
    named_parts = {}
    for key, value in parts.items():
        if key in _NOUNS:
            for member in value:
                name = member.get("id") or member["name"] or member["use"]
                if member.get("use") == "context":  # its ready words are in no config
                    params = member["params"]
                    params["questions"] = find_question_texts(params.get("questions", {}))
                named_parts[f"{_NOUNS[key]} {name}"] = _name_members(member)
        else:
            named_parts[key] = value
    return named_parts


def _find_setting_changes(a: RunHeader, b: RunHeader) -> Iterator[ValueChange]:
    """Yield which settings, prompts, files and versions differ; erased digests do not."""
    for path, before, after in changes(_name_settings(a), _name_settings(b)):
        if path.startswith(_SETTINGS_WITHOUT_EFFECT_ON_REWARDS) or ERASED_PLACEHOLDER in (
            before,
            after,
        ):
            continue
        if MISSING in (before, after) and not path.startswith("config."):
            continue  # the config names what only one run has
        if path.endswith(".sha256"):  # the beginning tells files apart
            before, after = f"{before:.8}…", f"{after:.8}…"
        yield path.removeprefix("config.").replace(".version", ": code or prompt"), before, after


def _name_settings(header: RunHeader) -> JsonFields:
    """Return the parts of a header that matter to rewards; the config names the model."""
    settings = header.model_dump(
        mode="json", include=_PARTS_WITH_EFFECT_ON_REWARDS, exclude={"model": {"model"}}
    )
    return {**settings, "config": _name_members(settings["config"])}
