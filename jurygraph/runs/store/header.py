"""The first record of a run, which describes its inputs, and the differences between two such descriptions."""

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

from pydantic import Field

from jurygraph.messages import shorten
from jurygraph.models.backend import Backend
from jurygraph.models.request import SchemaMode
from jurygraph.runs.store.ledger import Ledger, RecordDraft, reading
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.schema import Config, EvaluatorRecord, FrozenModel
from jurygraph.schema.conversation import OMITTED_IF_NONE, is_empty_value
from jurygraph.schema.frozen_model import Count, JsonFields, JsonObject, StrictBool
from jurygraph.sources import FileDigest, Shard, TableColumns


class RunExtent(FrozenModel):
    tasks: int = 0
    responses: int = 0


class RunOrigin(FrozenModel):
    """Another run at a point of time: its id, its folder relative to the run that refers to it, and its head."""

    run: str
    folder: str
    records: int
    head: str


class ModelIdentity(FrozenModel):
    """A model as requests name it, and how it replies: with another identity, the same questions are other requests.

    `top_logprobs` is the number of alternatives that it returns to each token; None without log probabilities. `tools`
    says that it is given the tools of judges as such, in a run that has any. `settings` are those of an object of the
    user's (None in runs of earlier versions), of which requests have the `own_parameters`.
    """

    provider: str
    endpoint: str | None = None
    model: str
    form: SchemaMode = "text"
    top_logprobs: Count | None = None
    tools: StrictBool = Field(default=False, exclude_if=is_empty_value)
    settings: JsonObject | None = OMITTED_IF_NONE
    own_parameters: JsonObject | None = OMITTED_IF_NONE

    @classmethod
    def of(cls, backend: Backend, *, has_tools: bool) -> "ModelIdentity":
        capabilities = backend.capabilities
        return cls(
            provider=backend.provider,
            endpoint=backend.endpoint,
            model=backend.model,
            form=capabilities.form,
            top_logprobs=capabilities.top_logprobs if capabilities.logprobs else None,
            tools=has_tools and capabilities.tools,
            settings=backend.own_settings,
            own_parameters=backend.own_parameters,
        )


class RunHeader(FrozenModel):
    """The first record of a run; its key is the run's id.

    `tasks` is the file of tasks; a run without one is open-ended: it takes groups from Python until it is closed.
    `profiles` is the file that describes how profiles are read, `edges` the file with the reviewed graphs of the
    rubrics. `columns` are those of a table that gave tasks and responses. `base` is the run whose verdicts a re-scored
    run refers to, `branch` the run from which verdicts were carried over. `config_file` is the SHA-256 of config.yaml.
    `model` identifies the model behind the config's: None with model none; `models` those behind the config's `models`.
    A run of one `shard` of the tasks has their extent as `extent`, and that of the whole file as `file_extent`.
    `merged` are the shards that a run was merged from. `domain` is the domain that an annotator's prompt describes,
    with the version of its text. `tools` are the versions of judges' tools, such as `criteria prices`.
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
    tools: dict[str, str] = Field(default_factory=dict, exclude_if=is_empty_value)
    combiners: dict[str, str] = Field(default_factory=dict)
    code: str | None = None
    extent: RunExtent = RunExtent()
    base: RunOrigin | None = None
    branch: RunOrigin | None = None
    shard: Shard | None = None
    file_extent: RunExtent | None = None
    merged: tuple[RunOrigin, ...] = ()

    @property
    def is_open_ended(self) -> bool:
        return self.tasks is None

    @property
    def model_identities(self) -> list[ModelIdentity]:
        return list(filter(None, (self.model, *self.models.values())))

    @property
    def model_names(self) -> list[str]:
        """Return the names of the models in the config, those of `models` with what their provider calls them."""
        names = [] if self.model is None else [self.model.model]
        return [*names, *(f"{name} ({model.model})" for name, model in self.models.items())]

    def header_of_all_shards(self) -> "RunHeader":
        """Return the header of a run of all shards, of which this is one."""
        extent = self.file_extent or self.extent
        return self.model_copy(update={"shard": None, "file_extent": None, "extent": extent})

    def model_identity_of(self, judge: str | None) -> ModelIdentity | None:
        """Return the identity of one of `models`, or for None of the `model`."""
        return self.model if judge is None else self.models.get(judge)


ValueChange = tuple[str, Any, Any]
"""A place inside a value, with what was there and what is there now."""
_LABEL_BY_FILE_KIND = {
    "tasks": "tasks file",
    "responses": "responses file",
    "profiles": "profiles file",
    "edges": "file of reviewed graphs",
}
"""Input files in a header, and their names in messages."""


def differences(run: RunHeader, current: RunHeader) -> Iterator[str]:
    """Yield the differences between a run and the current inputs, one sentence each."""
    yield from _file_differences(run, current)
    if run.shard != current.shard:
        yield f"{_describe_shard(run)} in the run and {_describe_shard(current)} here"
    yield from judge_differences(run, current)
    if (run.branch and run.branch.run) != (current.branch and current.branch.run):
        yield (
            f"the run was branched {_describe_branch_origin(run)}, "
            f"and this one would be branched {_describe_branch_origin(current)}"
        )


def judge_differences(run: RunHeader, current: RunHeader) -> Iterator[str]:
    """Yield the `differences` of what judges, whatever the files of tasks."""
    settings_in_run = _judging_settings(run.config)
    settings = _judging_settings(current.config)
    yield from setting_differences(settings_in_run, settings)
    for judge in (None, *current.config.models):
        yield from _identity_differences(run, current, judge)
    for role in ("evaluator", "deriver", "tool", "combiner"):
        yield from _version_differences(run, current, role)
    if run.domain != current.domain:
        yield f"the domain of the annotator is {run.domain} in the run and {current.domain} here"
    inputs_in_run = _versions_by_name(run, "evaluator", "depends_on")
    inputs = _versions_by_name(current, "evaluator", "depends_on")
    for name, _, _ in changes(inputs_in_run, inputs):
        yield f"additional input of evaluator {name}, such as a history, differs from that of the run"


def _describe_shard(header: RunHeader) -> str:
    return "no --shard is set" if header.shard is None else f"--shard is {header.shard}"


def _describe_branch_origin(header: RunHeader) -> str:
    return f"from {header.branch.folder}" if header.branch else "from no other"


def _version_differences(run: RunHeader, current: RunHeader, role: str) -> Iterator[str]:
    run_versions = _versions_by_name(run, role)
    for name, value_in_run, value in changes(run_versions, _versions_by_name(current, role)):
        if role == "combiner" and MISSING in (value_in_run, value):
            continue  # the config determines which of them are used
        yield f"{role} {name} has version {format_value(value_in_run)} in the run and {format_value(value)} here"


def _identity_differences(run: RunHeader, current: RunHeader, judge: str | None) -> Iterator[str]:
    """Yield the differences between what answers under one name, where the settings are equal."""
    if model_settings(run.config, judge) != model_settings(current.config, judge):
        return
    model = current.config.model if judge is None else current.config.models[judge].model
    identity_in_run = run.model_identity_of(judge)
    for key, value_in_run, value in _model_changes(
        identity_in_run, current.model_identity_of(judge)
    ):
        yield (
            f"the model behind {model} has the {key} {format_value(value_in_run)} in the run and "
            f"{format_value(value)} here"
        )


def _file_differences(run: RunHeader, current: RunHeader) -> Iterator[str]:
    for field, label in _LABEL_BY_FILE_KIND.items():
        recorded_file_digest: FileDigest | None = getattr(run, field)
        file: FileDigest | None = getattr(current, field)
        expected = None if file is None else file.sha256
        stored_checksum = None if recorded_file_digest is None else recorded_file_digest.sha256
        if stored_checksum not in (expected, ERASED_PLACEHOLDER):
            yield (
                f"the {label} is {_describe_file_digest(recorded_file_digest)} in the run and "
                f"{_describe_file_digest(file)} here"
            )
    columns_in_run = run.columns.model_dump() if run.columns else {}
    columns = current.columns.model_dump() if current.columns else {}
    for role, value_in_run, value in changes(columns_in_run, columns):
        yield f"the {role} column is {format_value(value_in_run)} in the run and {format_value(value)} here"


def _describe_file_digest(file: FileDigest | None) -> str:
    return "none" if file is None else f"{file.name} ({file.sha256[:12]})"


def _versions_by_name(header: RunHeader, role: str, field: str = "version") -> dict[str, str]:
    """Return a field of each evaluator, or of others the version, without empty ones."""
    entries: JsonFields = getattr(header, f"{role}s")
    values = {name: getattr(entry, field, entry) for name, entry in entries.items()}
    return {name: value for name, value in values.items() if value}


_NON_JUDGING_SETTINGS = {
    "key",
    "timeout",
    "deadline",
    "attempts",
    "outage",
    "concurrency",
    "context",
    "requests_per_minute",
    "tokens_per_minute",
    "cache",
    "record",
    "prices",
}
"""Settings of calls that do not change replies."""
_LIMIT_SETTINGS = {"__all__": {"timeout", "isolate"}}
"""Settings of evaluators and derivers that decide whether there is a verdict, not which one, like those of calls."""


def _judging_settings(config: Config) -> JsonFields:
    limits: Any = {
        "calls": _NON_JUDGING_SETTINGS,
        "models": {"__all__": {"calls": _NON_JUDGING_SETTINGS}},
        "evaluators": _LIMIT_SETTINGS,
        "derivers": _LIMIT_SETTINGS,
    }
    return config.model_dump(mode="json", exclude=limits)


def model_settings(config: Config, judge: str | None = None) -> JsonFields | None:
    """Return the settings that a model's verdict depends on: the model, its prompt, and how its reply is parsed.

    `judge` is one of the config's `models`; None is returned if there is no such model.
    """
    if judge is not None:
        if judge not in config.models:
            return None
        config = config.model_copy(
            update={"model": config.models[judge].model, "calls": config.call_settings_of(judge)}
        )
    settings = _judging_settings(config)
    del settings["safety"]["gates"]  # gates give a verdict without the model
    return {key: settings[key] for key in ("model", "calls", "safety")}


def sends_same_requests(
    run: RunHeader, config: Config, model: ModelIdentity | None, judge: str | None = None
) -> bool:
    """Return whether a jury sends the same requests to a model as a run, as far as the run has recorded it.

    Requests for required and preferred quotations are equal; only how a finding without one counts differs.
    """
    settings = model_settings(config, judge)
    if settings and config.safety.evidence != "off" != run.config.safety.evidence:
        settings["safety"]["evidence"] = run.config.safety.evidence
    if model_settings(run.config, judge) != settings:
        return False
    return not list(_model_changes(run.model_identity_of(judge), model))


def _model_changes(
    identity_in_run: ModelIdentity | None, current: ModelIdentity | None
) -> Iterator[ValueChange]:
    """Yield the differences between two models, if both are known: the same name may refer to different models.

    The settings of an object include its own parameters; in a run of an earlier version, which stored neither, other
    parameters were sent.
    """
    if identity_in_run is not None and current is not None:
        excluded = {"own_parameters"}
        if None in (identity_in_run.settings, current.settings):
            excluded = {"settings"}
        yield from changes(
            identity_in_run.model_dump(exclude_none=True, exclude=excluded),
            current.model_dump(exclude_none=True, exclude=excluded),
        )


MISSING = object()
"""The value of a place that only the other of two values has."""


def changes(old: Any, new: Any, path: str = "") -> Iterator[ValueChange]:
    """Yield the innermost places at which two plain values differ, with both values."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            inner = f"{path}.{key}" if path else key
            yield from changes(old.get(key, MISSING), new.get(key, MISSING), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from changes(old_item, new_item, f"{path}[{index}]")
    elif old != new:
        yield path, old, new


def setting_differences(settings_in_run: Any, settings: Any) -> Iterator[str]:
    """Yield what differs between the config of a run and another one, a sentence for each setting."""
    for change in changes(settings_in_run, settings):
        key, value_in_run, value = _first_difference(*change)
        yield f"config {key or 'as a whole'} is {format_value(value_in_run)} in the run and {format_value(value)} here"


def _first_difference(path: str, old: Any, new: Any) -> ValueChange:
    """Return where lists of different lengths begin to differ; what follows may only have moved. Names are listed."""
    if isinstance(old, list) and isinstance(new, list) and not isinstance((old or new)[0], str):
        for index, (item, new_item) in enumerate(zip_longest(old, new, fillvalue=MISSING)):
            if item != new_item:
                return f"{path}[{index}]", item, new_item
    return path, old, new


def format_value(value: Any) -> str:
    return "none" if value is MISSING else shorten(json.dumps(value, ensure_ascii=False), 100)


def draft_header_record(header: RunHeader, run_id: str) -> RecordDraft:
    """Return a header as the first record.

    The SHA-256 sums of the input files are stored as a text, because they could reveal an erased one. A run that has a
    base stores none, and cannot be continued.
    """
    body = header.model_dump(mode="json")
    sums = {
        name: body[name].pop("sha256") for name in _LABEL_BY_FILE_KIND if body.get(name) is not None
    }
    texts = [] if header.base else [json.dumps(sums).encode()]
    return RecordDraft("run", run_id, body, texts)


def read_run_header(ledger: Ledger) -> RunHeader:
    """Return the header of a run, with `ERASED_PLACEHOLDER` for the sums if something was erased.

    Raises `TraceMismatch` if the first record is not a header.
    """
    record = next(ledger.verified_records(1, 1))
    with reading(f"{ledger.path}, record 1"):
        body = record.content
        text = ledger.texts({1: body.pop("texts", ())})[1].get(0)
        sums = {} if text is None else json.loads(text)
        for name in _LABEL_BY_FILE_KIND:
            if body.get(name) is not None:
                body[name]["sha256"] = sums.get(name, ERASED_PLACEHOLDER)
        return RunHeader.model_validate(body)
