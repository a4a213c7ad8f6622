"""Recordings: the calls of a run in a file, one JSON object per line, and the backend that replays them.

In a replay, equal requests get equal replies, without a model, a network or a bill.
"""

import json
import logging
import os
import re
from collections import defaultdict
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from statistics import mode
from typing import IO, Any, NamedTuple

from pydantic import StrictBool

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import Problem
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.request import Fault, Reply, Request, StoredLookup
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import FrozenModel, Lookup, canonical_json
from jurygraph.schema.frozen_model import Id
from jurygraph.schema.task import NonNegativeNumber
from jurygraph.sources.files import (
    GZIP_SIGNATURE,
    ByteRange,
    TextFile,
    raise_line_error,
    read_model_line,
)

log = logging.getLogger(__name__)

_CHANGED_LINE_PROBLEM = Problem(
    ("key",), "is not the digest of the request", "the line was changed; record the call again"
)
_RECORDED_LINE_PREFIX = b'{"key":'
"""Start of each recorded line: a file that begins otherwise is not a recording, and is never truncated."""

_LOOKUP_LINE_PATTERN = re.compile(r'\{"key":"[^"]*","lookup":')
_MAX_LINE_BYTES = 256 << 20  # most bytes of a line


class RecordedCallLine(FrozenModel):
    """One call. `key` is its request's digest; `cost` is in US dollars, None if unknown.

    One that `replaces` the earlier call of its key has the reply to a request that was sent again, as the first reply
    could not be used.
    """

    key: Id
    request: Request
    reply: Reply
    cost: NonNegativeNumber | None = None
    replaces: StrictBool = False


class RecordedLookupLine(FrozenModel):
    """One call of a tool, with its arguments as JSON and its result; `key` is its id."""

    key: Id
    lookup: Lookup
    arguments: str
    result: str


class Recording(NamedTuple):
    """The content of a file: calls and lookups by key, and the size in bytes of their lines. A torn line follows."""

    calls: dict[str, RecordedCallLine]
    lookups: dict[str, StoredLookup]
    size: int
    has_incomplete_last_line: bool


def read_recording(path: str | Path) -> Recording:
    """Read a recording. Raises `InputError` with file and line if a line is not a call, or was changed afterwards.

    A last line without an end that is not valid JSON is torn: the writing process was killed.
    """
    calls: dict[str, RecordedCallLine] = {}
    lookups: dict[str, StoredLookup] = {}
    size = 0
    has_incomplete_last_line = False
    with TextFile(path) as file:
        try:
            for line in file.lines():
                if _LOOKUP_LINE_PATTERN.match(line.text):
                    found = read_model_line(file, line, RecordedLookupLine)
                    is_key_valid = found.key == found.lookup.id
                    lookup = StoredLookup(found.lookup, found.arguments, found.result)
                    lookups.setdefault(found.key, lookup)
                else:
                    call = read_model_line(file, line, RecordedCallLine)
                    is_key_valid = call.key == call.request.digest
                    if call.replaces or call.key not in calls:
                        calls[call.key] = call
                if not is_key_valid:
                    raise_line_error(file.name, line.number, _CHANGED_LINE_PROBLEM)
                size = sum(line.place)
        except InputError:
            if not _is_incomplete_line(file.read(ByteRange(size, _MAX_LINE_BYTES))):
                raise
            has_incomplete_last_line = True
    return Recording(calls, lookups, size, has_incomplete_last_line)


def _is_incomplete_line(rest: bytes) -> bool:
    """Return True if the bytes after the last good line are one line that was not written to its end."""
    start = rest.lstrip()[: len(_RECORDED_LINE_PREFIX)]
    if b"\n" in rest.lstrip() or not _RECORDED_LINE_PREFIX.startswith(start):
        return False
    try:
        json.loads(rest)
    except ValueError:
        return True
    return False


class CallRecorder:
    """Append calls to a file, each at once, and once unless its reply could not be used.

    Secrets are redacted first; a request that contained one gets the digest of the redacted request. A torn last line
    is cut off, and a warning logged. Raises `InputError` if the file is not a recording or cannot be written.
    """

    def __init__(self, path: str | Path, redactor: Redactor) -> None:
        self._path = Path(path)
        self._redactor = redactor
        recording = (
            read_recording(path)
            if self._path.exists()
            else Recording({}, {}, 0, has_incomplete_last_line=False)
        )
        self._keys = {*recording.calls, *recording.lookups}
        self.useless_digests: set[str] = set()
        """Digests of requests whose replies cannot be used: those to the next ones replace them."""
        try:
            self._file = _open_for_append(self._path)
            self._file.seek(0)
            if self._file.read(len(GZIP_SIGNATURE)) == GZIP_SIGNATURE:
                self._file.close()
                raise InputError(f"{path}: is gzipped; unpack it, or record to another file")
            self._file.truncate(recording.size)
            self._file.seek(max(0, recording.size - 1))
            if self._file.read(1) not in (b"\n", b""):
                self._file.write(b"\n")
        except OSError as error:
            raise self._make_write_error(error) from None
        if recording.has_incomplete_last_line:
            log.warning(
                "%s: the last line was torn and is cut off; its call will be recorded again", path
            )

    def add(
        self, request: Request, reply: Reply, cost: float | None, *, is_sent: bool = False
    ) -> None:
        """Append a call that is not in the file. One that `is_sent` now may replace a useless reply."""
        is_replacing = is_sent and request.digest in self.useless_digests
        if is_sent:
            self.useless_digests.discard(request.digest)
        content: Any = [request.model_dump(mode="json"), reply.model_dump(mode="json")]
        redacted_content: Any = self._redactor.redact_json(content)
        request = Request.model_validate(redacted_content[0])
        reply = Reply.model_validate(redacted_content[1])
        call = RecordedCallLine(
            key=request.digest, request=request, reply=reply, cost=cost, replaces=is_replacing
        )
        self._add_line(call, is_replacing=is_replacing)

    def add_lookup(self, stored_lookup: StoredLookup) -> None:
        redact_text = self._redactor.redact_text
        lookup = stored_lookup.lookup
        self._add_line(
            RecordedLookupLine(
                key=lookup.id,
                lookup=lookup,
                arguments=redact_text(stored_lookup.arguments),
                result=redact_text(stored_lookup.result),
            )
        )

    def _add_line(
        self, line: RecordedCallLine | RecordedLookupLine, *, is_replacing: bool = False
    ) -> None:
        if line.key in self._keys and not is_replacing:
            return
        try:
            if self._file.closed:
                self._file = _open_for_append(self._path)
            text = line.model_dump_json(exclude=None if is_replacing else {"replaces"})
            self._file.write(text.encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._make_write_error(error) from None
        self._keys.add(line.key)

    def close(self) -> None:
        """Close the file until the next call is added; may be called more than once."""
        with suppress(OSError):  # `add` has already reported a write error
            self._file.close()

    def _make_write_error(self, error: OSError) -> InputError:
        return InputError(f"{self._path}: cannot be written ({error}); record to a file that can")


def _open_for_append(path: Path) -> IO[bytes]:
    """Open the file to read and append. A new one is its owner's alone, because it contains prompts."""
    return open(path, "a+b", opener=lambda name, flags: os.open(name, flags, 0o600))


class Replay(Backend):
    """The model whose calls a file holds, under the provider, endpoint and model name of the recording.

    If the calls are of several models, `which` names one as the error lists them (`provider:endpoint#model`). Raises
    `InputError` if the file cannot be read or holds no call, `ConfigError` if it is ambiguous which model is meant.

    A recording keeps the form it was made with, and refuses none, so that the config of its run can be replayed, whose
    `max_tokens` is that of its calls.
    """

    costs_nothing = True
    is_cached = False
    is_recording = True
    can_run_tools = False

    def __init__(
        self, path: str | Path, which: str | None = None, max_tokens: int | None = None
    ) -> None:
        if Path(path).is_dir():
            raise InputError(
                f"{path}: is a folder, and a recording is a file; score with `calls: {{record: calls.jsonl}}` in the "
                "config, and replay that file"
            )
        recording = read_recording(path)
        if recording.has_incomplete_last_line:
            log.warning("%s: the last line is torn and left out; its call was not recorded", path)
        if not recording.calls:
            raise InputError(f"{path}: holds no call; record some first (calls.record)")
        self._path = Path(path)
        self._has_incomplete_last_line = recording.has_incomplete_last_line
        self._calls = recording.calls
        self._lookups = recording.lookups
        if self._lookups:
            self.notes = [
                f"replay: {len(self._lookups)} calls of tools have the results that were recorded; "
                "what changed since is not seen"
            ]
        by_model = defaultdict(list)
        for call in recording.calls.values():
            by_model[_model_id(call.request)].append(call.request)
        requests = by_model[_choose_recorded_model(self._path, list(by_model), which)]
        self.provider = requests[0].provider
        self.endpoint = requests[0].endpoint
        self.model = requests[0].model
        self.capabilities = _most_used_capabilities(requests)
        if self.provider.startswith("langchain:"):
            # what all its requests have beside the usual values may be the object's own
            names = ("temperature", "max_tokens")
            parameters_by_request = [
                {(name, request.parameters.get(name)) for name in names} for request in requests
            ]
            shared_parameters = set.intersection(*parameters_by_request) - {
                ("temperature", 0.0),
                ("max_tokens", max_tokens),
            }
            self.own_parameters = dict(shared_parameters) or None

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the recorded reply. Raises `Fault` of kind `unrecorded` that names what differs."""
        call = self._calls.get(request.digest)
        if call is not None:
            return call.reply
        parts = _request_parts(request).items()
        similar_requests = self._requests_by_question[_last_message_text(request)]
        differences = [dict(parts ^ _request_parts(other).items()) for other in similar_requests]
        differing_names = sorted(min(differences, key=len, default=()))
        difference = "the question is not in it"
        if differing_names:
            difference = f"it differs in {', '.join(differing_names)}"
        if self._has_incomplete_last_line:
            difference = f"its last line is cut off, and may have been it; if not, {difference}"
        raise Fault(
            "unrecorded",
            f"{self._path.name} holds no reply to this request: {difference}; use the recorded settings, or record "
            "again",
        )

    def find_lookup(self, key: str) -> StoredLookup | None:
        return self._lookups.get(key)

    @cached_property
    def _requests_by_question(self) -> dict[str, list[Request]]:
        requests_by_question = defaultdict(list)
        for call in self._calls.values():
            requests_by_question[_last_message_text(call.request)].append(call.request)
        return requests_by_question


def _last_message_text(request: Request) -> str:
    """Return the last message, the same whichever key marked the fences in it."""
    return str(request.to_identity_fields()["messages"][-1])


def _model_id(request: Request) -> str:
    endpoint = f":{request.endpoint}" if request.endpoint else ""
    return f"{request.provider}{endpoint}#{request.model}"


def _choose_recorded_model(path: Path, names: list[str], model_name: str | None) -> str:
    if model_name in names or (model_name is None and len(names) == 1):
        return model_name or names[0]
    problem = (
        "holds calls of several models"
        if model_name is None
        else f"holds no call of {model_name!r}"
    )
    raise ConfigError(
        f"{path}: {problem}; say which, as one of replay:{path}#NAME: {', '.join(sorted(names))}"
    )


def _most_used_capabilities(requests: list[Request]) -> EndpointCapabilities:
    """Return the capabilities that most requests used: with another form or other parameters they would not match."""
    # the steps of an investigation are instructed, whatever the form of the verdict
    verdicts = [request for request in requests if request.asks_for_verdict]
    forms = [request.form for request in verdicts or requests if request.answer is not None]
    top_logprobs_counts: list[Any] = [
        request.parameters.get("top_logprobs")
        for request in requests
        if request.parameters.get("logprobs")
    ]
    most_common_count = mode(top_logprobs_counts) if top_logprobs_counts else None
    top_logprobs = most_common_count if isinstance(most_common_count, int) else 0
    form = mode(forms) if forms else "text"
    has_tools = any(request.offers_tools for request in requests)
    return EndpointCapabilities(
        form, logprobs=bool(top_logprobs_counts), top_logprobs=top_logprobs, tools=has_tools
    )


def _request_parts(request: Request) -> dict[str, bytes]:
    """Return the parts of a request by name, as JSON, where 1 is neither 1.0 nor true."""
    fields = request.to_identity_fields()
    parts = fields.pop("parameters") | fields
    return {name: canonical_json(value) for name, value in parts.items()}
