"""Backend that replays recorded calls: equal requests get equal replies, without a model, a network or a bill."""

import json
import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from pydantic import JsonValue

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import shorten
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.faults import Fault
from jurygraph.models.recording import read_recording
from jurygraph.models.request import Reply, Request
from jurygraph.schema import canonical_json

log = logging.getLogger(__name__)

_PARTS = {
    "model": ("provider", "endpoint", "model"),
    "parameters": ("parameters",),
    "prompt version": ("prompt", "prompt_version"),
    "answer schema": ("answer", "form"),
    "messages": ("messages",),
    "sample": ("sample",),
}
"""Parts of a request, with their fields; an error names the first part that differs."""

_LONG_FIELDS = ("answer", "messages")
_MAX_COMPARED = 16


class Replay(Backend):
    """The model whose calls a file holds, under the provider, endpoint and model name of the recording.

    If the calls are of several models, `which` names one as the error lists them (`provider:endpoint#model`). Raises
    `InputError` if the file cannot be read or holds no call, `ConfigError` if it is ambiguous which model is meant.
    """

    def __init__(self, path: str | Path, which: str | None = None) -> None:
        recording = read_recording(path)
        if recording.torn:
            log.warning("%s: the last line is torn and left out; its call was not recorded", path)
        if not recording.calls:
            raise InputError(f"{path}: holds no call; record some first (calls.record)")
        self._path = Path(path)
        self._calls = recording.calls
        self._request_index = _RequestIndex(call.request for call in recording.calls.values())
        models = {_model_id(call.request): call.request for call in recording.calls.values()}
        chosen = models[_choose_model(self._path, list(models), which)]
        self.provider, self.endpoint, self.model = chosen.provider, chosen.endpoint, chosen.model
        requests = [call.request for call in recording.calls.values() if _model_id(call.request) == _model_id(chosen)]
        self._capabilities = _capabilities(requests)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that most requests used while they were recorded."""
        return self._capabilities

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the recorded reply. Raises `Fault` of kind `unrecorded` with the difference to the nearest call."""
        call = self._calls.get(request.digest)
        if call is not None:
            return call.reply
        nearest = self._request_index.nearest_request(request)
        problem = f"{self._path.name} holds no reply to this request"
        difference = (
            f"the nearest that it holds ({nearest.digest[:12]}) differs in its {_describe_difference(request, nearest)}"
        )
        raise Fault("unrecorded", f"{problem}; {difference}; use the recorded settings, or record again")


class _RequestIndex:
    """Recorded requests by the last message of the user."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._by_text: dict[str, list[Request]] = defaultdict(list)
        for request in requests:
            self._by_text[_user_text(request)].append(request)
        self._texts = sorted(self._by_text, key=len)

    def nearest_request(self, request: Request) -> Request:
        """Return the request with the most similar question and, among several, with the fewest parts that differ."""
        text = _user_text(request)
        alike = self._by_text[text if text in self._by_text else self._most_similar(text)]
        return min(alike, key=lambda other: len(_differing_fields(request, other)))

    def _most_similar(self, text: str) -> str:
        """Return the most similar of the texts of about the same length: comparing all would take seconds."""
        from rapidfuzz import fuzz

        middle = bisect_left(self._texts, len(text), key=len)
        candidates = self._texts[max(0, middle - _MAX_COMPARED) : middle + _MAX_COMPARED]
        return max(candidates, key=lambda other: fuzz.ratio(text, other))


def _user_text(request: Request) -> str:
    return next((message.content for message in reversed(request.messages) if message.role == "user"), "")


def _model_id(request: Request) -> str:
    return (
        f"{request.provider}:{request.endpoint}#{request.model}"
        if request.endpoint
        else f"{request.provider}#{request.model}"
    )


def _choose_model(path: Path, names: list[str], which: str | None) -> str:
    if which is None and len(names) == 1:
        return names[0]
    if which is not None and which in names:
        return which
    problem = "holds calls of several models" if which is None else f"holds no call of {which!r}"
    raise ConfigError(f"{path}: {problem}; say which, as one of replay:{path}#NAME: {', '.join(sorted(names))}")


def _capabilities(requests: list[Request]) -> Capabilities:
    """Return the capabilities that most requests used: with another form or other parameters they would not match."""
    forms = Counter(request.form for request in requests if request.answer is not None)
    tops = Counter(request.parameters.get("top_logprobs") for request in requests if request.parameters.get("logprobs"))
    most_common = tops.most_common(1)[0][0] if tops else None
    form = forms.most_common(1)[0][0] if forms else "text"
    return Capabilities(form, logprobs=bool(tops), top_logprobs=most_common if isinstance(most_common, int) else 0)


def _differing_fields(request: Request, other: Request) -> list[tuple[str, str]]:
    """Return the parts, and their fields, in which requests differ as JSON, where 1 is neither 1.0 nor true."""
    fields_here, fields_there = request.to_identity(), other.to_identity()
    fields = [(part, field) for part, fields in _PARTS.items() for field in fields]
    return [
        (part, field)
        for part, field in fields
        if canonical_json(fields_here[field]) != canonical_json(fields_there[field])
    ]


def _describe_difference(request: Request, other: Request) -> str:
    """Describe the first part in which they differ."""
    part, field = _differing_fields(request, other)[0]
    if field in _LONG_FIELDS:
        return part
    value, other_value = getattr(request, field), getattr(other, field)
    if field == "parameters":
        field = min(
            name
            for name in value.keys() | other_value.keys()
            if _dump_parameter(value, name) != _dump_parameter(other_value, name)
        )
        value, other_value = _dump_parameter(value, field), _dump_parameter(other_value, field)
    else:
        value, other_value = json.dumps(value), json.dumps(other_value)
    return f"{part}: {field} is {shorten(value)} here and {shorten(other_value)} there"


def _dump_parameter(parameters: dict[str, JsonValue], name: str) -> str:
    return json.dumps(parameters[name]) if name in parameters else "not given"
