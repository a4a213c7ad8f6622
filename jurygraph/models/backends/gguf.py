"""llama.cpp in this process: a model in a GGUF file answers without a network, and a grammar holds it to its schema."""

import asyncio
import hashlib
import math
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from jurygraph.errors import ConfigError
from jurygraph.models.asking import Reply, Request, Token
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.faults import Fault
from jurygraph.models.probability import telling

NO_LOG = -1
"""The verbosity at which the engine prints nothing."""

_MAGIC = b"GGUF"

_Chunk = dict[str, Any]
"""A piece of a reply as the engine streams it, in the form of OpenAI's chat completions."""


class Gguf(Backend):
    """A model in a GGUF file: `model` is the file's name, `endpoint` the SHA-256 of its bytes.

    `slots` requests are worked on side by side, and more wait; each has room for `context` tokens, its prompt and its
    reply together. It computes in `threads` threads; None means one for every free core but one.
    """

    provider = "gguf"

    def __init__(self, path: Path, slots: int = 4, context: int = 4096, threads: int | None = None) -> None:
        """Read the file for its digest, and load nothing yet. Raises `ConfigError` where it is no GGUF file that can be
        read, or xllamacpp is not installed."""
        library()
        self.model = path.name
        self.endpoint = f"sha256:{_sha256(path)}"
        self._path = path
        self._slots = slots
        self._context = context
        self._threads = threads or max(1, free_cores() - 1)
        self._key = token_urlsafe()
        self.secrets = (self._key,)
        self._engine: _Engine | None = None

    @property
    def capabilities(self) -> Capabilities:
        """A grammar in the engine, and log probabilities of the model's own, before the grammar rules any token out."""
        return Capabilities("grammar", logprobs=True)

    def open(self) -> None:
        """Load the model, unless it is loaded; nothing else runs meanwhile. Raises `ConfigError` where it cannot be."""
        if self._engine is None:
            self._engine = _Engine(self._parameters(), self._slots)

    async def complete(self, request: Request, timeout: float) -> Reply:
        """The reply, within `timeout` seconds of the model being loaded. Raises `Fault`, `unknown-model` where it
        cannot be loaded."""
        engine = self._opened()
        try:
            async with asyncio.timeout(timeout):
                chunks = await engine.ask(_body(request))
        except TimeoutError:
            raise Fault("timeout", f"{self.model} gave no whole reply within {timeout:g} s") from None
        except (TypeError, ValueError, RuntimeError) as error:  # how the library refuses what it cannot read
            raise Fault("rejected", f"{self.model} cannot be asked this: {error}") from None
        return _reply(chunks)

    async def close(self) -> None:
        """Let go of the model, once the requests under way have ended."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    def _opened(self) -> "_Engine":
        try:
            self.open()
        except ConfigError as error:
            raise Fault("unknown-model", str(error)) from None
        assert self._engine is not None
        return self._engine

    def _parameters(self) -> Any:
        parameters = library().CommonParams()
        parameters.model.path = str(self._path)
        parameters.n_parallel = self._slots
        parameters.n_ctx = self._slots * self._context
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = self._threads
        parameters.api_keys = [self._key]  # the engine listens on this machine, even if it is only asked in process
        parameters.cache_ram_mib = 0  # else up to 8 GiB of old prompts; each slot keeps its last one all the same
        parameters.enable_reasoning = 0  # a reply that is held to a grammar leaves no room for thoughts
        parameters.force_pure_content_parser = True  # and what a template marks as a thought is the reply
        parameters.verbosity = NO_LOG
        return parameters


class _Engine:
    """A loaded model, and a thread for each of its slots, in which a request waits for its reply."""

    def __init__(self, parameters: Any, slots: int) -> None:
        try:
            self._server = library().Server(parameters)
        except RuntimeError:  # its message never says why
            wrong = f"gguf: {parameters.model.path}: llama.cpp cannot load it"
            hint = "it may be cut short, larger than the memory, or newer than xllamacpp"
            raise ConfigError(f"{wrong}; {hint}: copy it again, name a smaller model, or update xllamacpp") from None
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="jurygraph-gguf")

    async def ask(self, body: dict[str, Any]) -> list[_Chunk]:
        """The reply in pieces. If nobody waits for it any more, the engine stops at the next piece."""
        left = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._chunks, body, left)
        finally:
            left.set()

    def _chunks(self, body: dict[str, Any], left: threading.Event) -> list[_Chunk]:
        chunks: list[_Chunk] = []

        def take(chunk: _Chunk) -> bool:
            chunks.append(chunk)
            return left.is_set()

        self._server.handle_chat_completions(body, take)
        return chunks

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)


def library() -> Any:
    """xllamacpp, imported at the first call. Raises `ConfigError` where it is not installed."""
    try:
        import xllamacpp  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigError("gguf: needs xllamacpp: pip install 'jurygraph[local]'") from None
    return xllamacpp


def free_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sha256(path: Path) -> str:
    """Of a GGUF file's bytes: the engine itself does not say what is wrong with a file that is none."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
            if start != _MAGIC:
                wrong = f"is no GGUF file, it begins with {start!r}" if start else "is empty"
                raise ConfigError(f"gguf: {path}: {wrong}; name a model in the GGUF format")
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise ConfigError(f"gguf: {path}: there is no such file; name a model in the GGUF format") from None
    except OSError as error:
        raise ConfigError(f"gguf: {path}: cannot be read ({error.strerror}); name a file that can be") from None


def _body(request: Request) -> dict[str, Any]:
    """A request as the engine takes it: streamed, so that it can be left before its end, its prompt's part too."""
    body: dict[str, Any] = {
        **request.parameters,
        "messages": [message.model_dump() for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    if request.form == "grammar" and request.answer is not None:
        # not `response_format`: it takes another way, which heeds no bounds of numbers and breaks letters beyond ASCII
        compact = {**request.answer, "x-guidance": {"whitespace_flexible": False}}
        body["grammar"] = library().json_schema_to_grammar(compact)
    return body


def _reply(chunks: Sequence[_Chunk]) -> Reply:
    for chunk in chunks:
        if "error" in chunk:
            raise _fault(chunk["error"])
    choices = [chunk["choices"][0] for chunk in chunks if chunk.get("choices")]
    if not choices or choices[-1]["finish_reason"] is None:
        raise Fault("unreadable", "the engine broke off without a word")
    usage = chunks[-1].get("usage", {})
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    return Reply(
        text=text,
        finish=choices[-1]["finish_reason"],
        served=f"xllamacpp {library().__version__}",
        tokens_in=usage.get("prompt_tokens"),
        tokens_out=usage.get("completion_tokens"),
        tokens=_tokens(
            [token for choice in choices for token in (choice.get("logprobs") or {}).get("content", ())], text
        ),
    )


def _fault(error: dict[str, Any]) -> Fault:
    if error["type"] == "exceed_context_size_error":
        return Fault("overflowed", error["message"])
    return Fault("server" if error["code"] >= 500 else "rejected", error["message"])


def _tokens(given: Sequence[dict[str, Any]], text: str) -> tuple[Token, ...]:
    places = telling(text, [token["token"] for token in given])
    return tuple(
        Token(text=token["token"], logprob=_logprob(token), others=_others(token) if place in places else ())
        for place, token in enumerate(given)
    )


def _others(given: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    others = given.get("top_logprobs") or given.get("top_probs") or ()
    return tuple((other["token"], _logprob(other)) for other in others)


def _logprob(token: dict[str, Any]) -> float:
    """Given as such, or as a probability where `post_sampling_probs` was asked for. Raises `Fault` where it is none."""
    if token.get("logprob") is not None:
        return float(token["logprob"])
    if token.get("prob") is not None:
        return math.log(max(token["prob"], sys.float_info.min))
    raise Fault(
        "unreadable", f"the engine gave the token {token['token']!r} no log probability; the model may be damaged"
    )
