"""Trajectories of tau-bench (sierra-research/tau-bench), with the actions that were wanted and the published reward.

Read is the JSON list that its runs write. A trajectory often ends with a message of the simulated user, which stays in
the response.
"""

from collections.abc import Iterator
from typing import Any

from jurygraph.interchange.rows import ImportedRow, RowKey
from jurygraph.interchange.trials import (
    FileLocation,
    Trial,
    find_first_assistant_index,
    make_trials_reader,
    read_json_document,
)
from jurygraph.messages import describe_value
from jurygraph.schema.frozen_model import JsonObject, Number, StrPath


class WantedAction(ImportedRow):  # type: ignore[no-redef]  # mypy's plugin has `kwargs`, too
    name: str
    kwargs: JsonObject


class TauTask(ImportedRow):
    """The instruction of the simulated user, the actions that change the database as wanted, and wanted outputs."""

    instruction: str
    actions: tuple[WantedAction, ...]
    outputs: tuple[str, ...] = ()
    user_id: str | None = None


class SimulationInfo(ImportedRow):
    task: TauTask


class RunResult(ImportedRow):
    task_id: RowKey
    trial: int = 0
    reward: Number
    info: SimulationInfo
    traj: tuple[Any, ...]


def _read_taubench_trials(path: StrPath) -> Iterator[Trial]:
    document, results = read_json_document(path)
    if not isinstance(results, list):
        document.refuse((), f"is {describe_value(results)}", "write a list of results")
    for index, result in enumerate(results):
        location = FileLocation(place=document.place, path=(index,))
        yield _to_trial(location, location.validate(RunResult, result))


def _to_trial(location: FileLocation, result: RunResult) -> Trial:
    messages = location.messages(list(result.traj), "traj")
    start = find_first_assistant_index(messages)
    task = result.info.task
    actions = [{"name": action.name, "arguments": action.kwargs} for action in task.actions]
    task_fields = task.model_dump(mode="json", exclude={"actions"}, exclude_defaults=True)
    return Trial(
        location=location,
        task=result.task_id,
        query=messages[:start],
        answer=messages[start:],
        name=str(result.trial),
        about={"reference_actions": actions, "metadata": task_fields},
        response={
            "labels": {"trial": result.trial, "reward": result.reward},
            "metadata": {**result.other, **result.info.other},
        },
    )


read_taubench = make_trials_reader(_read_taubench_trials, "a file of tau-bench's results")
