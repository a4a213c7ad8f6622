"""Answers from recorded calls: the same requests get the same replies, without a model, a network or a bill."""

import json
import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from pydantic import JsonValue

from jurygraph.errors import ConfigError, InputError
from jurygraph.models.asking import Reply, Request
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.faults import Fault
from jurygraph.models.recording import recorded
from jurygraph.schema import canonical
from jurygraph.sources.complaint import shortened

log = logging.getLogger(__name__)

_PARTS = {
    "model": ("provider", "endpoint", "model"),
    "parameters": ("parameters",),
    "prompt version": ("prompt", "prompt_version"),
    "answer schema": ("answer", "form"),
    "messages": ("messages",),
    "sample": ("sample",),
}
"""What a request is made of; of what differs, the first is told."""

_LENGTHY = ("answer", "messages")
_COMPARED = 16


class Replay(Backend):
    """The model whose calls a file holds: it goes by that one's provider, endpoint and model.

    Where the calls are of several models, `which` names one as the error lists them (`provider:endpoint#model`). Raises
    `InputError` where the file cannot be read or holds no call, `ConfigError` where it is open which model is meant.
    """

    def __init__(self, path: str | Path, which: str | None = None) -> None:
        recording = recorded(path)
        if recording.torn:
            log.warning("%s: the last line is torn and left out; its call was not recorded", path)
        if not recording.calls:
            raise InputError(f"{path}: holds no call; record some first (calls.record)")
        self._path = Path(path)
        self._calls = recording.calls
        self._alike = _Alike(call.request for call in recording.calls.values())
        models = {_name(call.request): call.request for call in recording.calls.values()}
        shown = models[_one(self._path, list(models), which)]
        self.provider, self.endpoint, self.model = shown.provider, shown.endpoint, shown.model
        own = [call.request for call in recording.calls.values() if _name(call.request) == _name(shown)]
        self._capabilities = _capabilities(own)

    @property
    def capabilities(self) -> Capabilities:
        """What was asked of the model while it was recorded."""
        return self._capabilities

    async def complete(self, request: Request, timeout: float) -> Reply:
        """The recorded reply. Raises `Fault` of kind `unrecorded`, which names what the nearest call differs in."""
        call = self._calls.get(request.digest)
        if call is not None:
            return call.reply
        nearest = self._alike.nearest(request)
        wrong = f"{self._path.name} holds no reply to this request"
        near = f"the nearest that it holds ({nearest.digest[:12]}) differs in its {_difference(request, nearest)}"
        raise Fault("unrecorded", f"{wrong}; {near}; ask as was recorded, or record anew")


class _Alike:
    """Recorded requests by what they ask: by the last message of the user."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._by_text: dict[str, list[Request]] = defaultdict(list)
        for request in requests:
            self._by_text[_asked(request)].append(request)
        self._texts = sorted(self._by_text, key=len)

    def nearest(self, request: Request) -> Request:
        """The request that asks most nearly the same and, of several, differs in the least parts."""
        text = _asked(request)
        alike = self._by_text[text if text in self._by_text else self._most_alike(text)]
        return min(alike, key=lambda other: len(_different(request, other)))

    def _most_alike(self, text: str) -> str:
        """Of the texts that are about as long: to compare with all would take seconds for every request."""
        from rapidfuzz import fuzz

        middle = bisect_left(self._texts, len(text), key=len)
        near = self._texts[max(0, middle - _COMPARED) : middle + _COMPARED]
        return max(near, key=lambda other: fuzz.ratio(text, other))


def _asked(request: Request) -> str:
    return next((message.content for message in reversed(request.messages) if message.role == "user"), "")


def _name(request: Request) -> str:
    return (
        f"{request.provider}:{request.endpoint}#{request.model}"
        if request.endpoint
        else f"{request.provider}#{request.model}"
    )


def _one(path: Path, names: list[str], which: str | None) -> str:
    if which is None and len(names) == 1:
        return names[0]
    if which is not None and which in names:
        return which
    wrong = "holds calls of several models" if which is None else f"holds no call of {which!r}"
    raise ConfigError(f"{path}: {wrong}; say which, as one of replay:{path}#NAME: {', '.join(sorted(names))}")


def _capabilities(requests: list[Request]) -> Capabilities:
    """What most of the requests rest on: with another form or other parameters they would not be the same."""
    forms = Counter(request.form for request in requests if request.answer is not None)
    tops = Counter(request.parameters.get("top_logprobs") for request in requests if request.parameters.get("logprobs"))
    top = tops.most_common(1)[0][0] if tops else None
    form = forms.most_common(1)[0][0] if forms else "text"
    return Capabilities(form, logprobs=bool(tops), top_logprobs=top if isinstance(top, int) else 0)


def _different(request: Request, other: Request) -> list[tuple[str, str]]:
    """The parts, and in them the fields, in which requests differ; as JSON, where 1 is neither 1.0 nor true."""
    here, there = request.said(), other.said()
    fields = [(part, field) for part, fields in _PARTS.items() for field in fields]
    return [(part, field) for part, field in fields if canonical(here[field]) != canonical(there[field])]


def _difference(request: Request, other: Request) -> str:
    """The first part in which they differ, and how."""
    part, field = _different(request, other)[0]
    if field in _LENGTHY:
        return part
    here, there = getattr(request, field), getattr(other, field)
    if field == "parameters":
        field = min(name for name in here.keys() | there.keys() if _value(here, name) != _value(there, name))
        here, there = _value(here, field), _value(there, field)
    else:
        here, there = json.dumps(here), json.dumps(there)
    return f"{part}: {field} is {shortened(here)} here and {shortened(there)} there"


def _value(parameters: dict[str, JsonValue], name: str) -> str:
    return json.dumps(parameters[name]) if name in parameters else "not given"
