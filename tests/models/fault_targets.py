"""The backends and embedders that the fault modes are tried on, and a command that tries one in its own process.

    python -m tests.models.fault_targets TARGET URL_OR_FOLDER MODE...

prints, as JSON, the outcome of each mode and the peak memory of the process until then.
"""

import asyncio
import json
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, Field

from jurygraph.models import embedding as remote
from jurygraph.models.backend import Backend
from jurygraph.models.embedding import Embedder
from jurygraph.models.judge_client import parse_reply
from jurygraph.models.limits import RetryPolicy
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.schema import Message
from tests.models.faults import (
    ENDLESS,
    REPLY,
    RIGHT,
    TIMEOUT,
    VECTORS,
    Chat,
    anthropic_chat,
    embeddings,
    ollama_chat,
    ollama_generate,
    openai_chat,
    ranking,
)

COUNTED = "counted"
"""Outcome of a request whose reply was accepted as valid."""

LATE = "late"
"""Outcome of a request that had neither a reply nor a fault after `_PATIENCE` seconds."""

_PATIENCE = 120.0


class Answered(BaseModel):
    """The schema of the requested reply."""

    met: bool
    probability: float = Field(ge=0.0, le=1.0)


class Target(NamedTuple):
    """A backend or embedder that is tested over HTTP.

    `call` sends one request to the model `model` of the server at `url`. `valid_body` is the body of a valid reply;
    `wrap_text` makes a body from a text, None for embedders. `is_limited` is False for a client of the user's own.
    """

    call: Callable[[str, str], Awaitable[None]]
    valid_body: bytes
    wrap_text: Chat | None = None
    is_limited: bool = True


def _request(provider: str, model: str) -> Request:
    asked = (
        Message(role="system", content="You judge."),
        Message(role="user", content="Is it so?"),
    )
    return Request(
        provider=provider, model=model, messages=asked, answer=Answered.model_json_schema()
    )


async def _complete(backend: Backend) -> None:
    try:
        request = _request(backend.provider, backend.model)
        reply: Reply = await backend.complete(request, _timeout_for(backend.model))
    finally:
        await backend.close()
    parse_reply(reply, Answered)


async def _openai_compatible(url: str, model: str) -> None:
    from jurygraph.models.backends.openai_compatible import OpenAICompatibleBackend

    await _complete(OpenAICompatibleBackend(f"{url}/v1", model, "sk-0123456789"))


def _litellm(provider: str, path: str = "") -> Callable[[str, str], Awaitable[None]]:
    async def call(url: str, model: str) -> None:
        from jurygraph.models.backends.litellm import LiteLLMBackend

        await _complete(LiteLLMBackend(f"{provider}/{model}", f"{url}{path}"))

    return call


async def _chat_model(url: str, model: str) -> None:
    from jurygraph.models.backends.chat_model import ChatModelBackend
    from tests.models.fault_chat_model import OpenAIChat

    await _complete(ChatModelBackend(OpenAIChat(url=f"{url}/v1", model_name=model)))


async def _openai_compatible_embedder(url: str, model: str) -> None:
    _try_once(model)
    await remote.RemoteEmbedder(f"{url}/v1", model).embed(["a"])


async def _openai_compatible_reranker(url: str, model: str) -> None:
    _try_once(model)
    await remote.RemoteReranker(f"{url}/v1", model).score("q", ["a"])


def _try_once(model: str) -> None:
    """Make one attempt, within the time for the mode in a model's name."""
    remote.REQUEST_TIMEOUT_SECONDS, remote.RETRY_POLICY = (
        _timeout_for(model),
        RetryPolicy(attempts=1),
    )


def _timeout_for(model: str) -> float:
    return TIMEOUT if model.endswith(ENDLESS) else _PATIENCE


HTTP_TARGETS: Mapping[str, Target] = {
    "openai-compatible": Target(_openai_compatible, openai_chat(RIGHT), openai_chat),
    "litellm openai": Target(_litellm("openai", "/v1"), openai_chat(RIGHT), openai_chat),
    "litellm hosted_vllm": Target(_litellm("hosted_vllm", "/v1"), openai_chat(RIGHT), openai_chat),
    "litellm anthropic": Target(_litellm("anthropic"), anthropic_chat(RIGHT), anthropic_chat),
    "litellm ollama_chat": Target(_litellm("ollama_chat"), ollama_chat(RIGHT), ollama_chat),
    "litellm ollama": Target(_litellm("ollama"), ollama_generate(RIGHT), ollama_generate),
    "chat_model": Target(_chat_model, openai_chat(RIGHT), openai_chat, is_limited=False),
    "openai-compatible embedder": Target(_openai_compatible_embedder, embeddings()),
    "openai-compatible reranker": Target(_openai_compatible_reranker, ranking()),
}
"""Targets that are reached over HTTP, by name."""


async def _gguf(folder: str, mode: str) -> None:
    """Plant the chunks of llama.cpp; `test_gguf` tests the engine itself."""
    from jurygraph.models.backends.gguf import GgufBackend

    path = Path(folder) / "planted.gguf"
    path.write_bytes(b"GGUF")
    text, finish = planted_reply(mode)

    def answer(body: Any, collect: Callable[[dict[str, Any]], bool]) -> None:
        collect({"choices": [{"delta": {"content": text}, "finish_reason": None}]})
        collect({"choices": [{"delta": {}, "finish_reason": finish}]})

    backend = GgufBackend(path)
    backend._server = SimpleNamespace(handle_chat_completions=answer)
    await _complete(backend)


async def _replay(folder: str, mode: str) -> None:
    from jurygraph.models.recording import CallRecorder, Replay
    from jurygraph.safety.redaction import Redactor

    text, finish = planted_reply(mode)
    path = Path(folder) / f"{mode}.jsonl"
    with closing(CallRecorder(path, Redactor([]))) as recorder:
        recorder.add(_request("litellm", "openai/tiny"), Reply(text=text, finish=finish), None)
    await _complete(Replay(path))


async def _sentence_transformer(folder: str, mode: str) -> None:
    from jurygraph.models.embedding import SentenceTransformerEmbedder

    embedder = SentenceTransformerEmbedder("tiny")
    embedder._model = SimpleNamespace(encode=lambda *_, **__: VECTORS.get(mode, [[0.6, 0.8]]))
    await _embed(embedder)


async def _embed(embedder: Embedder) -> None:
    try:
        await embedder.embed(["a"])
    finally:
        embedder.close()


def planted_reply(mode: str) -> tuple[str, str]:
    """Return the text and finish reason of a mode's reply; those of a valid reply for any other name."""
    if mode not in REPLY:
        return RIGHT, "stop"
    text, finish = json.loads(
        REPLY[mode].reply(lambda text, finish="stop": json.dumps([text, finish]).encode())
    )
    return text, finish


IN_PROCESS_TEXT = ("gguf", "replay")
"""Targets of IN_PROCESS_TARGETS that give text; the others give vectors."""
IN_PROCESS_TARGETS: Mapping[str, Callable[[str, str], Awaitable[None]]] = {
    "gguf": _gguf,
    "replay": _replay,
    "sentence-transformers": _sentence_transformer,
}
"""Targets that run in this process, by name: async functions of a folder for their files and the name of a mode."""

_MARKS = {
    "litellm": pytest.mark.heavy,
    "gguf": pytest.mark.heavy,
    "sentence-transformers": pytest.mark.heavy,
    "chat_model": pytest.mark.landing,  # OpenAI's client asks `uname` for the name of the processor
}


def each_of(argument: str, names: Iterable[str]) -> pytest.MarkDecorator:
    """Try each of these targets, with the mark for what it loads."""
    return pytest.mark.parametrize(
        argument, [pytest.param(each, marks=_MARKS.get(each.split()[0], ())) for each in names]
    )


KEYS = ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY", "ANTHROPIC_API_KEY", "COHERE_API_KEY")


async def outcome(call: Callable[[str, str], Awaitable[None]], place: str, mode: str) -> str:
    """Return the kind of the fault of a request; `COUNTED` if there is none."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await call(place, mode)
    except Fault as fault:
        return fault.kind
    except TimeoutError:
        return LATE
    return COUNTED


def peak() -> float:
    """The most MiB of memory that this process had at once; not the maximum of `getrusage`, which its parent's is."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("this system does not say it")


def main(name: str, place: str, *modes: str) -> None:
    call = HTTP_TARGETS[name].call if name in HTTP_TARGETS else IN_PROCESS_TARGETS[name]
    met = {}
    for mode in modes:
        found = asyncio.run(outcome(call, place, mode))
        met[mode] = (found, peak())
    print(json.dumps(met))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
