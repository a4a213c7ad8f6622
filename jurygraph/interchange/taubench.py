"""Trajectories of tau-bench (sierra-research/tau-bench), with the actions that were wanted and the published reward.

Read are the JSON list that its runs write, and JSON lines whose first has the policy and the tools. A trajectory often
ends with a message of the simulated user, which stays in the response.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from jurygraph.interchange.rows import ImportedRow, Note, RowKey
from jurygraph.interchange.trials import (
    AnyLine,
    Conversation,
    Location,
    Trial,
    first_answer,
    read_document,
    read_located,
    read_trials,
)
from jurygraph.schema.conversation import ChatMessage
from jurygraph.schema.frozen_model import Number
from jurygraph.schema.task import Tools
from jurygraph.sources.files import TextFile


class WantedAction(ImportedRow):  # type: ignore[no-redef]  # mypy's plugin has `kwargs`, too
    name: str
    kwargs: dict[str, JsonValue]


class TauTask(ImportedRow):
    """The instruction of the simulated user, the actions that change the database as wanted, and wanted outputs."""

    instruction: str
    actions: tuple[WantedAction, ...]
    outputs: tuple[str, ...] = ()
    user_id: str | None = None


class SimulationInfo(ImportedRow):
    task: TauTask


class _Outcome(ImportedRow):
    task_id: RowKey
    trial: int = 0
    reward: Number


class RunResult(_Outcome):
    """A result of tau-bench's own file."""

    info: SimulationInfo
    traj: tuple[Any, ...]


class TauHeader(ImportedRow):
    policy: str
    tools: Tools | None = None


class TrialLine(_Outcome):
    """A trajectory of JSON lines; their first line has no task."""

    instruction: str
    reference_actions: tuple[WantedAction, ...]
    outputs: tuple[str, ...] = ()
    messages: tuple[Any, ...]


def _read(path: str | Path) -> Iterator[Trial | Note]:
    with closing(TextFile(path)) as file:
        first = next(file.lines(), None)
    if first is not None and first.text.lstrip().startswith("["):
        yield from _read_results(path)
    else:
        yield from _read_lines(path)


def _read_results(path: str | Path) -> Iterator[Trial]:
    document, entries = read_document(path)
    for index, entry in enumerate(entries):
        location = Location(file=document.file, path=(index,))
        row = location.validate(RunResult, entry)
        conversation = location.messages(list(row.traj), "traj")
        yield _to_trial(location, row, conversation, row.info.task, {}, row.info.other)


def _read_lines(path: str | Path) -> Iterator[Trial]:
    header = TauHeader(policy="")
    for location, line in read_located(path, AnyLine):
        fields = line.model_extra or {}
        if "policy" in fields and "messages" not in fields:
            header = location.validate(TauHeader, fields)
            continue
        row = location.validate(TrialLine, fields)
        task = TauTask(
            instruction=row.instruction, actions=row.reference_actions, outputs=row.outputs
        )
        messages = location.messages(list(row.messages), "messages")
        if header.policy:
            messages = (ChatMessage(role="system", content=header.policy), *messages)
        yield _to_trial(location, row, messages, task, {"tools": header.tools}, {})


def _to_trial(
    location: Location,
    row: _Outcome,
    messages: Conversation,
    task: TauTask,
    about: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> Trial:
    start = first_answer(messages)
    actions = [{"name": action.name, "arguments": action.kwargs} for action in task.actions]
    described = task.model_dump(mode="json", exclude={"actions"}, exclude_defaults=True)
    labels = {"trial": row.trial, "reward": row.reward}
    return Trial(
        location=location,
        task=row.task_id,
        query=messages[:start],
        answer=messages[start:],
        name=str(row.trial),
        about={**about, "reference_actions": actions, "metadata": described},
        response={"labels": labels, "metadata": {**row.other, **metadata}},
    )


read_taubench = read_trials(_read, "a file of tau-bench's results")
