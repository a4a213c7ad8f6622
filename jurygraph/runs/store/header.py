"""The first record of a run, which describes its inputs, and the differences between two such descriptions."""

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from pydantic import Field, ValidationError

from jurygraph.errors import TraceMismatch
from jurygraph.messages import shorten
from jurygraph.models.backend import Backend
from jurygraph.models.request import SchemaMode
from jurygraph.runs.store.ledger import Draft, Ledger
from jurygraph.runs.store.packing import ERASED
from jurygraph.schema import Config, EvaluatorRecord, FrozenModel
from jurygraph.schema.frozen_model import Count
from jurygraph.sources import FileDigest, TableColumns


class Extent(FrozenModel):
    tasks: int = 0
    responses: int = 0


class Origin(FrozenModel):
    """Another run at a point of time: its id, its folder relative to the run that refers to it, and its head."""

    run: str
    folder: str
    records: int
    head: str


class ModelIdentity(FrozenModel):
    """A model as requests name it, and how it replies: with another identity, the same questions are other requests.

    `top_logprobs` is the number of alternatives that it returns to each token; None without log probabilities.
    """

    provider: str
    endpoint: str | None = None
    model: str
    form: SchemaMode = "text"
    top_logprobs: Count | None = None

    @classmethod
    def of(cls, backend: Backend) -> "ModelIdentity":
        capabilities = backend.capabilities
        return cls(
            provider=backend.provider,
            endpoint=backend.endpoint,
            model=backend.model,
            form=capabilities.form,
            top_logprobs=capabilities.top_logprobs if capabilities.logprobs else None,
        )


class Header(FrozenModel):
    """The first record of a run; its key is the run's id.

    `tasks` is the file of tasks; a run without one is open-ended: it takes groups from Python until it is closed.
    `profiles` is the file that describes how profiles are read, `edges` the file with the reviewed graphs of the
    rubrics. `columns` are those of a table that gave tasks and responses. `base` is the run whose verdicts a re-scored
    run refers to, `branch` the run from which verdicts were carried over. `config_file` is the SHA-256 of config.yaml.
    `model` identifies the model behind the config's: None with model none; `models` those behind the config's `models`.
    `domain` is the domain that an annotator's prompt describes, with the version of its text.
    """

    jurygraph: str = Field(default_factory=lambda: version("jurygraph"))
    tasks: FileDigest | None = None
    responses: FileDigest | None = None
    profiles: FileDigest | None = None
    edges: FileDigest | None = None
    columns: TableColumns | None = None
    config: Config
    config_file: str = ""
    model: ModelIdentity | None = None
    models: dict[str, ModelIdentity] = Field(default_factory=dict)
    evaluators: dict[str, EvaluatorRecord]
    domain: str | None = None
    derivers: dict[str, str] = Field(default_factory=dict)
    combiners: dict[str, str] = Field(default_factory=dict)
    code: str | None = None
    extent: Extent = Extent()
    base: Origin | None = None
    branch: Origin | None = None

    @property
    def is_open_ended(self) -> bool:
        return self.tasks is None

    @property
    def identities(self) -> list[ModelIdentity]:
        return [*(() if self.model is None else (self.model,)), *self.models.values()]

    def identity_of(self, judge: str | None) -> ModelIdentity | None:
        """Return the identity of one of `models`, or for None of the `model`."""
        return self.model if judge is None else self.models.get(judge)


_FILES = {
    "tasks": "tasks file",
    "responses": "responses file",
    "profiles": "profiles file",
    "edges": "file of reviewed graphs",
}
"""Input files in a header, and their names in messages."""


def differences(run: Header, current: Header) -> Iterator[str]:
    """Yield the differences between a run and the current inputs, one sentence each."""
    yield from _file_differences(run, current)
    for key, in_run, value in changes(
        _judging_settings(run.config), _judging_settings(current.config)
    ):
        yield f"config {key} is {format_value(in_run)} in the run and {format_value(value)} here"
    for judge in (None, *current.config.models):
        yield from _identity_differences(run, current, judge)
    for role in ("evaluator", "deriver", "combiner"):
        run_versions, current_versions = (_versions(header, role) for header in (run, current))
        if role == "combiner":  # the config determines which of them are used
            run_versions = {
                name: version for name, version in run_versions.items() if name in current_versions
            }
            current_versions = {
                name: version for name, version in current_versions.items() if name in run_versions
            }
        for name, in_run, value in changes(run_versions, current_versions):
            yield f"{role} {name} has version {format_value(in_run)} in the run and {format_value(value)} here"
    if run.domain != current.domain:
        yield f"the domain of the annotator is {run.domain} in the run and {current.domain} here"
    for name, _, _ in changes(
        _versions(run, "evaluator", "depends_on"), _versions(current, "evaluator", "depends_on")
    ):
        yield f"additional input of evaluator {name}, such as a history, differs from that of the run"
    origins = [
        f"from {header.branch.folder}" if header.branch else "from no other"
        for header in (run, current)
    ]
    if (run.branch and run.branch.run) != (current.branch and current.branch.run):
        yield f"the run was branched {origins[0]}, and this one would be branched {origins[1]}"


def _identity_differences(run: Header, current: Header, judge: str | None) -> Iterator[str]:
    """Yield the differences between what answers under one name, where the settings are equal."""
    if model_settings(run.config, judge) == model_settings(current.config, judge):
        model = current.config.model if judge is None else current.config.models[judge].model
        for key, in_run, value in _model_changes(
            run.identity_of(judge), current.identity_of(judge)
        ):
            difference = (
                f"has the {key} {format_value(in_run)} in the run and {format_value(value)} here"
            )
            yield f"the model behind {model} {difference}"


def _file_differences(run: Header, current: Header) -> Iterator[str]:
    for field, label in _FILES.items():
        files: list[FileDigest | None] = [getattr(header, field) for header in (run, current)]
        run_sum, current_sum = (file.sha256 if file else None for file in files)
        if run_sum not in (current_sum, ERASED):
            names = [f"{file.name} ({file.sha256[:12]})" if file else "none" for file in files]
            yield f"the {label} is {names[0]} in the run and {names[1]} here"
    columns_in_run, columns = (
        header.columns.model_dump() if header.columns else {} for header in (run, current)
    )
    for role, in_run, value in changes(columns_in_run, columns):
        yield f"the {role} column is {format_value(in_run)} in the run and {format_value(value)} here"


def _versions(header: Header, role: str, field: str = "version") -> dict[str, str]:
    entries: dict[str, Any] = getattr(header, f"{role}s")
    return {
        name: value for name, entry in entries.items() if (value := getattr(entry, field, entry))
    }


_NOT_JUDGING = {
    *("key", "timeout", "deadline", "attempts", "outage", "concurrency", "context"),
    *("requests_per_minute", "tokens_per_minute", "cache", "record", "prices"),
}
"""Settings of calls that do not change replies."""
_LIMITS = {"__all__": {"timeout", "isolate"}}
"""Settings of evaluators and derivers that decide whether there is a verdict, not which one, like those of calls."""


def _judging_settings(config: Config) -> dict[str, Any]:
    limits: Any = {
        "calls": _NOT_JUDGING,
        "models": {"__all__": {"calls": _NOT_JUDGING}},
        "evaluators": _LIMITS,
        "derivers": _LIMITS,
    }
    return config.model_dump(mode="json", exclude=limits)


def model_settings(config: Config, judge: str | None = None) -> dict[str, Any] | None:
    """Return the settings that a model's verdict depends on: the model, its prompt, and how its reply is parsed.

    `judge` is one of the config's `models`; None is returned if there is no such model.
    """
    if judge is not None:
        if judge not in config.models:
            return None
        config = config.model_copy(
            update={"model": config.models[judge].model, "calls": config.calls_of(judge)}
        )
    settings = _judging_settings(config)
    del settings["safety"]["gates"]  # gates give a verdict without the model
    return {key: settings[key] for key in ("model", "calls", "safety")}


def has_same_requests(
    run: Header, config: Config, model: ModelIdentity | None, judge: str | None = None
) -> bool:
    """Return whether a jury sends the same requests to a model as a run, as far as the run has recorded it."""
    if model_settings(run.config, judge) != model_settings(config, judge):
        return False
    return not list(_model_changes(run.identity_of(judge), model))


def _model_changes(
    in_run: ModelIdentity | None, current: ModelIdentity | None
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the differences between two models, if both are known: the same name may refer to different models."""
    if in_run is not None and current is not None:
        yield from changes(
            in_run.model_dump(exclude_none=True), current.model_dump(exclude_none=True)
        )


_MISSING = object()


def changes(there: Any, here: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the innermost places at which two plain values differ, with both values."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys((*there, *here)):
            inner = f"{path}.{key}" if path else key
            yield from changes(there.get(key, _MISSING), here.get(key, _MISSING), inner)
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for index, (before, after) in enumerate(zip(there, here, strict=True)):
            yield from changes(before, after, f"{path}[{index}]")
    elif there != here:
        yield path, there, here


def format_value(value: Any) -> str:
    return "none" if value is _MISSING else shorten(json.dumps(value, ensure_ascii=False), 100)


def header_draft(header: Header, run_id: str) -> Draft:
    """Return a header as the first record.

    The SHA-256 sums of the input files are stored as a text, because they could reveal an erased one. A run that has a
    base stores none, and cannot be continued.
    """
    body = header.model_dump(mode="json")
    sums = {name: body[name].pop("sha256") for name in _FILES if body.get(name) is not None}
    return Draft("run", run_id, body, [] if header.base else [json.dumps(sums).encode()])


def read_header(ledger: Ledger) -> Header:
    """Return the header of a run, with `ERASED` for the sums if something was erased.

    Raises `TraceMismatch` if the first record is not a header.
    """
    record = next(ledger.verified_records(1, 1))
    try:
        body = record.content
        text = ledger.texts({1: body.pop("texts", ())})[1].get(0)
        sums = {} if text is None else json.loads(text)
        for name in _FILES:
            if body.get(name) is not None:
                body[name]["sha256"] = sums.get(name, ERASED)
        return Header.model_validate(body)
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"is not a valid run header ({type(error).__name__}: {error})"
        raise TraceMismatch(f"{ledger.path}, record 1: {problem}; it has been changed") from None
