"""What a run was made from: its files, config and evaluators, and how far it has come."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.schema import Config, Noun
from jurygraph.sources import FileMark, shortened

SCHEMA_VERSION = 1
Status = Literal["running", "interrupted", "complete"]


class Extent(Noun):
    """How many tasks and responses."""

    tasks: int = 0
    responses: int = 0


class Manifest(Noun):
    """`run.json`. Times stand here alone, so that equal work gives equal traces."""

    schema_version: Literal[1] = 1
    jurygraph: str = Field(default_factory=lambda: version("jurygraph"))
    tasks: FileMark
    responses: FileMark | None = None
    config: str
    evaluators: dict[str, str]
    asked: Extent = Extent()
    done: Extent = Extent()
    status: Status = "running"
    started: str = Field(default_factory=lambda: now())
    finished: str | None = None

    def save(self, path: Path) -> None:
        """Write the manifest in one step: a reader sees the old one or the new one."""
        write_whole(path, self.model_dump_json(indent=2).encode() + b"\n")

    @classmethod
    def load(cls, path: Path) -> "Manifest":
        """Read a manifest. One made by a newer jurygraph is refused, a damaged one does not pass for whole."""
        try:
            content = json.loads(path.read_bytes())
            stated = content["schema_version"]
        except (ValueError, TypeError, KeyError):
            raise TraceMismatch(f"{path}: is no manifest of a run; it has been changed") from None
        if stated != SCHEMA_VERSION:
            raise InputError(f"{path}: has schema version {stated}, and this jurygraph reads version {SCHEMA_VERSION}")
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise TraceMismatch(f"{path}, field {where}: {first['msg']}; it has been changed") from None


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that it is never seen half-written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def differences(run: Manifest, config: Config, here: Manifest, config_here: Config) -> Iterator[str]:
    """What differs between a run and what one is about to add to it, one sentence each."""
    yield from _file_difference("tasks file", run.tasks, here.tasks)
    yield from _file_difference("responses file", run.responses, here.responses)
    for key, there, now_here in _changes(config.model_dump(mode="json"), config_here.model_dump(mode="json")):
        yield f"config {key} is {_shown(there)} in the run and {_shown(now_here)} here"
    for name, version_there, version_here in _changes(run.evaluators, here.evaluators):
        yield f"evaluator {name} has version {_shown(version_there)} in the run and {_shown(version_here)} here"


def _file_difference(what: str, there: FileMark | None, here: FileMark | None) -> Iterator[str]:
    there_is, here_is = (mark.sha256 if mark else None for mark in (there, here))
    if there_is != here_is:
        names = [f"{mark.name} ({mark.sha256[:12]})" if mark else "none" for mark in (there, here)]
        yield f"the {what} is {names[0]} in the run and {names[1]} here"


_ABSENT = object()


def _changes(there: Any, here: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The innermost places at which two plain values differ."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys((*there, *here)):
            inner = f"{path}.{key}" if path else key
            yield from _changes(there.get(key, _ABSENT), here.get(key, _ABSENT), inner)
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for index, (one, other) in enumerate(zip(there, here, strict=True)):
            yield from _changes(one, other, f"{path}[{index}]")
    elif there != here:
        yield path, there, here


def _shown(value: Any) -> str:
    return "none" if value is _ABSENT else shortened(json.dumps(value, ensure_ascii=False), 100)
