"""Find what differs between the inputs of two runs: settings, prompts, files and versions, and how many tasks."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pydantic_core import from_json

from jurygraph.runs.run import Run
from jurygraph.runs.store.header import MISSING, RunHeader, ValueChange, changes
from jurygraph.runs.store.ledger import LedgerRecord
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.schema import Task
from jurygraph.schema.frozen_model import JsonFields

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
)


class ChangedInputs(NamedTuple):
    """The settings that differ between two runs, with their values in A and B, and the number of `tasks` that do.

    These tasks are in both runs, with another content or other responses; `answered_anew` have other responses. A
    value that only the other run has is None.
    """

    settings: Sequence[ValueChange] = ()
    tasks: int = 0
    answered_anew: int = 0


def find_changed_inputs(a: Run, b: Run) -> ChangedInputs:
    changed_tasks = set(_find_changed_tasks(a, b, "task", _read_task_digest))
    answered_anew = set(_find_changed_tasks(a, b, "group", bytes))
    settings = list(_find_setting_changes(a.header, b.header))
    return ChangedInputs(settings, len(changed_tasks | answered_anew), len(answered_anew))


def _find_changed_tasks(
    a: Run, b: Run, kind: str, read_digest: Callable[[bytes], object]
) -> Iterator[str]:
    """Yield the tasks in both runs whose records of a kind differ in the digest of their first text.

    That is the content of a task, and of a group the digest of its responses. Erased ones count as equal.
    """
    records_in_b = _records_by_task(b, kind)
    for task_id, record in _records_by_task(a, kind).items():
        if task_id in records_in_b:
            text = _first_text(a, record)
            other_text = _first_text(b, records_in_b[task_id])
            if text == other_text or text is None or other_text is None:
                continue
            if read_digest(text) != read_digest(other_text):
                yield task_id


def _read_task_digest(text: bytes) -> str:
    """Return the digest of a stored task without its plan, which is another under other settings."""
    return Task.model_validate(from_json(text)["task"]).content_digest


def _first_text(run: Run, record: LedgerRecord) -> bytes | None:
    """Return the first text of a record; None if it was erased."""
    return run.source.ledger.texts_of_record(record).get(0)


def _records_by_task(run: Run, kind: str) -> dict[str, LedgerRecord]:
    """Return the last record of a kind for each task."""
    records = run.source.ledger.records(kind, up_to_record=run.last_base_record_number)
    return {record.key: record for record in records}


def _find_setting_changes(a: RunHeader, b: RunHeader) -> Iterator[ValueChange]:
    """Yield which settings, prompts, files and versions differ; erased digests do not."""
    for path, before, after in changes(_name_settings(a), _name_settings(b)):
        values = (before, after)
        if path.startswith(_SETTINGS_WITHOUT_EFFECT_ON_REWARDS) or ERASED_PLACEHOLDER in values:
            continue
        if MISSING in values and not path.startswith("config."):
            continue  # the config names what only one run has
        if path.endswith(".sha256"):  # the beginning tells files apart
            before, after = f"{before:.8}…", f"{after:.8}…"
        before, after = (None if value is MISSING else value for value in (before, after))
        yield path.removeprefix("config.").replace(".version", ": code or prompt"), before, after


def _name_settings(header: RunHeader) -> JsonFields:
    """Return the parts of a header that matter to rewards; the config names the model."""
    settings = header.model_dump(
        mode="json", include=_PARTS_WITH_EFFECT_ON_REWARDS, exclude={"model": {"model"}}
    )
    config = settings["config"]
    for kind in ("evaluators", "derivers"):
        # by name, so that one more is no change of those after it
        config[kind] = {member["name"] or member["use"]: member for member in config[kind]}
    return settings
