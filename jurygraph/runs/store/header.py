"""What a run was made from, as its first record says it, and how that differs from what is here now."""

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from pydantic import Field, ValidationError

from jurygraph.errors import TraceMismatch
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.identity import Identity
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.packing import ERASED
from jurygraph.schema import Config, Noun, Seat
from jurygraph.sources import FileMark, shortened


class Extent(Noun):
    """How many tasks and responses."""

    tasks: int = 0
    responses: int = 0

    @classmethod
    def of(cls, counted: tuple[int, int]) -> "Extent":
        """From tasks and responses."""
        return cls(tasks=counted[0], responses=counted[1])


class Origin(Noun):
    """Another run as far as it had come: its id, its folder as seen from the one that names it, and its head."""

    run: str
    folder: str
    records: int
    head: str


class Header(Noun):
    """The first record of a run; its key is the run's id.

    `profiles` is the file that says how profiles are read, `edges` the one of which the rubrics' graphs are taken.
    `base` is the run whose verdicts a re-scored run refers to, `branch` the one from which verdicts were carried over.
    `config_file` is the SHA-256 of config.yaml. `model` is the one behind the config's: None under model none, and in a
    run that was begun before this was told. `domain` is what an annotator is told of, with the version of its words.
    """

    jurygraph: str = Field(default_factory=lambda: version("jurygraph"))
    tasks: FileMark
    responses: FileMark | None = None
    profiles: FileMark | None = Field(default=None, exclude_if=lambda profiles: profiles is None)
    edges: FileMark | None = Field(default=None, exclude_if=lambda edges: edges is None)
    config: Config
    config_file: str = ""
    model: Identity | None = Field(default=None, exclude_if=lambda model: model is None)
    evaluators: dict[str, Seat]
    domain: str | None = Field(default=None, exclude_if=lambda domain: domain is None)
    derivers: dict[str, str] = Field(default_factory=dict)
    combiners: dict[str, str] = Field(default_factory=dict)
    code: str | None = Field(default=None, exclude_if=lambda code: code is None)
    asked: Extent = Extent()
    base: Origin | None = None
    branch: Origin | None = None


def differences(run: Header, here: Header) -> Iterator[str]:
    """What differs between a run and what is about to be added to it, one sentence each."""
    yield from _file_difference("tasks file", run.tasks, here.tasks)
    yield from _file_difference("responses file", run.responses, here.responses)
    yield from _file_difference("profiles file", run.profiles, here.profiles)
    yield from _file_difference("file of reviewed graphs", run.edges, here.edges)
    for key, there, now_here in changes(_judging(run.config), _judging(here.config)):
        yield f"config {key} is {shown(there)} in the run and {shown(now_here)} here"
    if asking(run.config) == asking(here.config):
        for key, there, now_here in _model_changes(run.model, here.model):
            wrong = f"has the {key} {shown(there)} in the run and {shown(now_here)} here"
            yield f"the model behind {here.config.model} {wrong}"
    for role in ("evaluator", "deriver", "combiner"):
        there_is, here_is = _versions(run, role), _versions(here, role)
        if role == "combiner":  # which of them are used is the config's to say
            there_is = {name: version for name, version in there_is.items() if name in here_is}
            here_is = {name: version for name, version in here_is.items() if name in there_is}
        for name, there, now_here in changes(there_is, here_is):
            yield f"{role} {name} has version {shown(there)} in the run and {shown(now_here)} here"
    if run.domain != here.domain:
        yield f"the domain that the annotator is told of is {run.domain} in the run and {here.domain} here"
    for name, _, _ in changes(_bases(run), _bases(here)):
        yield f"what evaluator {name} read beside the config, such as a history, is not what it was in the run"
    there, now_here = (f"from {one.branch.folder}" if one.branch else "from no other" for one in (run, here))
    if (run.branch and run.branch.run) != (here.branch and here.branch.run):
        yield f"the run was branched {there}, and this one would be branched {now_here}"


_HOW = {
    *("key", "timeout", "deadline", "attempts", "outage", "concurrency", "context"),
    *("requests_per_minute", "tokens_per_minute"),
}
"""Settings of calls that change no reply."""


def _judging(config: Config) -> dict[str, Any]:
    """What of a config a verdict or reward hangs on."""
    return config.model_dump(mode="json", exclude={"calls": _HOW | {"cache", "record", "prices"}})


def asking(config: Config) -> dict[str, Any]:
    """What of a config a model's verdict hangs on: which model it is, what it is told, and how its reply is read."""
    judging = _judging(config)
    del judging["safety"]["gates"]  # they answer in its place
    return {key: judging[key] for key in ("model", "calls", "safety")}


def asks_alike(run: Header, config: Config, model: Identity | None) -> bool:
    """Whether a jury asks the model that a run asked, in the same way, as far as the run tells."""
    return asking(run.config) == asking(config) and not list(_model_changes(run.model, model))


def _model_changes(there: Identity | None, here: Identity | None) -> Iterator[tuple[str, Any, Any]]:
    """In what a model differs from the one before, where both are known: the same name may lead to another one."""
    if there is not None and here is not None:
        yield from changes(there.model_dump(exclude_none=True), here.model_dump(exclude_none=True))


def _versions(header: Header, role: str) -> dict[str, str]:
    seated: dict[str, Seat | str] = getattr(header, f"{role}s")
    return {name: one.version if isinstance(one, Seat) else one for name, one in seated.items()}


def _bases(header: Header) -> dict[str, str]:
    return {name: seat.rests_on for name, seat in header.evaluators.items() if seat.rests_on}


def _file_difference(what: str, there: FileMark | None, here: FileMark | None) -> Iterator[str]:
    there_is, here_is = (mark.sha256 if mark else None for mark in (there, here))
    if there_is not in (here_is, ERASED):
        names = [f"{mark.name} ({mark.sha256[:12]})" if mark else "none" for mark in (there, here)]
        yield f"the {what} is {names[0]} in the run and {names[1]} here"


_ABSENT = object()


def changes(there: Any, here: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The innermost places at which two plain values differ."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys((*there, *here)):
            inner = f"{path}.{key}" if path else key
            yield from changes(there.get(key, _ABSENT), here.get(key, _ABSENT), inner)
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for index, (one, other) in enumerate(zip(there, here, strict=True)):
            yield from changes(one, other, f"{path}[{index}]")
    elif there != here:
        yield path, there, here


def shown(value: Any) -> str:
    """A value as a sentence holds it."""
    return "none" if value is _ABSENT else shortened(json.dumps(value, ensure_ascii=False), 100)


_FILES = ("tasks", "responses", "profiles", "edges")


def header_draft(header: Header, run_id: str) -> Draft:
    """A header as the first record. What the files' bytes hash to is a text: it would tell of one that was erased.

    A run that has a base keeps none, and cannot be gone on with.
    """
    body = header.model_dump(mode="json")
    sums = {name: body[name].pop("sha256") for name in _FILES if body.get(name) is not None}
    return Draft("run", run_id, body, [] if header.base else [json.dumps(sums).encode()])


def read_header(ledger: Ledger) -> Header:
    """The header again, with `ERASED` for the sums if something was erased. Raises `TraceMismatch` at what is none."""
    record = next(ledger.chained(1, 1))
    try:
        body = record.content
        text = ledger.texts({1: body.pop("texts", ())})[1].get(0)
        sums = {} if text is None else json.loads(text)
        for name in _FILES:
            if body.get(name) is not None:
                body[name]["sha256"] = sums.get(name, ERASED)
        return Header.model_validate(body)
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        wrong = f"is no beginning of a run ({type(error).__name__}: {error})"
        raise TraceMismatch(f"{ledger.path}, record 1: {wrong}; it has been changed") from None
