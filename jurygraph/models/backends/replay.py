"""Backend that replays recorded calls: equal requests get equal replies, without a model, a network or a bill."""

import json
import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from pathlib import Path

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import shorten
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.faults import Fault
from jurygraph.models.recording import read_recording
from jurygraph.models.request import Reply, Request
from jurygraph.schema import canonical_json

log = logging.getLogger(__name__)

_FIELDS = {
    **dict.fromkeys(("provider", "endpoint", "model"), "model"),
    "parameters": "parameters",
    **dict.fromkeys(("prompt", "prompt_version"), "prompt version"),
    **dict.fromkeys(("answer", "form"), "answer schema"),
    "messages": "messages",
    "sample": "sample",
}
"""Fields of a request, with the part to which they belong; an error names the first that differs."""

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
        self._by_text: dict[str, list[Request]] = defaultdict(list)
        by_model: dict[str, list[Request]] = defaultdict(list)
        for call in recording.calls.values():
            self._by_text[_user_text(call.request)].append(call.request)
            by_model[_model_id(call.request)].append(call.request)
        self._texts = sorted(self._by_text, key=len)
        requests = by_model[_choose_model(self._path, list(by_model), which)]
        self.provider, self.endpoint, self.model = requests[0].provider, requests[0].endpoint, requests[0].model
        self.capabilities = _most_used_capabilities(requests)

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the recorded reply. Raises `Fault` of kind `unrecorded` with the difference to the nearest call."""
        call = self._calls.get(request.digest)
        if call is not None:
            return call.reply
        nearest = self._nearest(request)
        problem = f"{self._path.name} holds no reply to this request"
        difference = _describe_difference(request, nearest)
        difference = f"the nearest that it holds ({nearest.digest[:12]}) differs in its {difference}"
        raise Fault("unrecorded", f"{problem}; {difference}; use the recorded settings, or record again")

    def _nearest(self, request: Request) -> Request:
        """Return the request with the most similar question and, among several, with the fewest differences."""
        from rapidfuzz import fuzz

        text = _user_text(request)
        middle = bisect_left(self._texts, len(text), key=len)
        candidates = self._texts[max(0, middle - _MAX_COMPARED) : middle + _MAX_COMPARED]
        similar = text if text in self._by_text else max(candidates, key=lambda other: fuzz.ratio(text, other))
        return min(self._by_text[similar], key=lambda other: len(_differing_fields(request, other)))


def _user_text(request: Request) -> str:
    return next((message.content for message in reversed(request.messages) if message.role == "user"), "")


def _model_id(request: Request) -> str:
    return f"{request.provider}{(request.endpoint and f':{request.endpoint}') or ''}#{request.model}"


def _choose_model(path: Path, names: list[str], which: str | None) -> str:
    if which in names or (which is None and len(names) == 1):
        return which or names[0]
    problem = "holds calls of several models" if which is None else f"holds no call of {which!r}"
    raise ConfigError(f"{path}: {problem}; say which, as one of replay:{path}#NAME: {', '.join(sorted(names))}")


def _most_used_capabilities(requests: list[Request]) -> Capabilities:
    """Return the capabilities that most requests used: with another form or other parameters they would not match."""
    forms = Counter(request.form for request in requests if request.answer is not None)
    tops = Counter(request.parameters.get("top_logprobs") for request in requests if request.parameters.get("logprobs"))
    most_common = tops.most_common(1)[0][0] if tops else None
    form = forms.most_common(1)[0][0] if forms else "text"
    return Capabilities(form, logprobs=bool(tops), top_logprobs=most_common if isinstance(most_common, int) else 0)


def _differing_fields(request: Request, other: Request) -> list[str]:
    """Return the fields in which requests differ as JSON, where 1 is neither 1.0 nor true."""
    here, there = request.to_identity(), other.to_identity()
    return [name for name in _FIELDS if canonical_json(here[name]) != canonical_json(there[name])]


def _describe_difference(request: Request, other: Request) -> str:
    field = _differing_fields(request, other)[0]
    part = _FIELDS[field]
    if field in ("answer", "messages"):  # too long to be shown
        return part
    here, there = {field: getattr(request, field)}, {field: getattr(other, field)}
    if field == "parameters":
        here, there = request.parameters, other.parameters
    shown = [{name: json.dumps(value) for name, value in fields.items()} for fields in (here, there)]
    for name in sorted(here.keys() | there.keys()):
        value, other_value = (values.get(name, "not given") for values in shown)
        if value != other_value:
            return f"{part}: {name} is {shorten(value)} here and {shorten(other_value)} there"
    return part
