"""Backend for a GGUF model in this process, by llama.cpp: no network, and a grammar enforces the schema of replies."""

import asyncio
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic
from typing import Any

from jurygraph.errors import ConfigError
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.judge_client import read_token_logprobs
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.safety.gates import SHORT_FENCE_MARK_LENGTH
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.sources.files import sha256_of_file

_GGUF_SIGNATURE = b"GGUF"
_FIRST_CALL_TIMEOUT_SECONDS = 600.0  # seconds
_TIMEOUT_FACTOR = 4.0
_MIN_REPLY_STRING_LETTERS = 40  # of a string in a reply
# about three sentences: a small model that repeats itself writes up to the bound
_MAX_REPLY_STRING_LETTERS = 240
_REPLY_NUMBER_STEP = 1e-6  # of a number in a reply, which would end as little as a string
_MAX_REPLY_NUMBER = 10**12


class GgufBackend(Backend):
    """A model in a GGUF file: `model` is the file's name, `endpoint` the SHA-256 of its bytes.

    `slots` requests are processed in parallel, and more wait; each has a context of `context` tokens for its prompt and
    its reply together. It computes in `threads` threads; None means one for every available core, and of more than
    two all but one.
    """

    provider = "gguf"
    costs_nothing = True
    fixed_form_reason = "a gguf model always follows a grammar"
    mark_length = SHORT_FENCE_MARK_LENGTH  # small models split each two or three digits into a token, which takes time
    # A grammar in the engine, and log probabilities of the model itself, before the grammar excludes tokens.
    capabilities = EndpointCapabilities("grammar", logprobs=True)

    def __init__(
        self, path: Path, slots: int = 4, context: int = 4096, threads: int | None = None
    ) -> None:
        """Read the file for its digest, without loading the model.

        Raises `ConfigError` if it is not a readable GGUF file, or if xllamacpp is not installed.
        """
        import_xllamacpp()
        self.model = path.name
        self.endpoint = f"sha256:{_gguf_digest(path)}"
        self._path = path
        self.slots: int = slots
        self._pace: float | None = None  # seconds per token of the slowest whole reply so far
        self._context = context
        self._threads = threads
        self._key = token_urlsafe()
        self.secrets = (self._key,)
        self._server: Any = None
        self._pool: ThreadPoolExecutor | None = None

    def open(self) -> None:
        """Load the model unless it is loaded, which blocks the event loop. Raises `ConfigError` if that fails."""
        if self._server is None:
            self._server = start_engine(
                self._path,
                threads=self._threads,
                key=self._key,
                n_parallel=self.slots,
                n_ctx=self.slots * self._context,
                cache_ram_mib=0,  # else up to 8 GiB of old prompts; each slot keeps its last one anyway
                enable_reasoning=0,  # a grammar leaves no room for thoughts
                force_pure_content_parser=True,  # text that a template marks as a thought is part of the reply
            )
            self._pool = ThreadPoolExecutor(self.slots, thread_name_prefix="jurygraph-gguf")

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the reply, within `timeout` seconds after the model is loaded, or longer where the engine is slow.

        The first reply may take ten minutes. It and later ones show how many seconds a token takes, and a reply may
        take `_TIMEOUT_FACTOR` times as long as these say for its prompt and the most tokens that it may have. A
        cancelled request ends at its next chunk. Raises `Fault`, of kind `unknown-model` if the model cannot be loaded.
        """
        try:
            self.open()
        except ConfigError as error:
            raise Fault("unknown-model", str(error)) from None
        chunks = []  # in the form of OpenAI's chat completions
        cancellation_event = threading.Event()

        def collect_chunk(chunk: JsonFields) -> bool:
            chunks.append(chunk)
            return cancellation_event.is_set()

        limit = max(timeout, self._expected_seconds(request))
        start = monotonic()
        answer = partial(
            self._server.handle_chat_completions, _to_engine_request(request), collect_chunk
        )
        try:
            async with asyncio.timeout(limit):
                await asyncio.get_running_loop().run_in_executor(self._pool, answer)
        except TimeoutError:
            raise Fault(
                "timeout", f"{self.model} gave no whole reply within {limit:.0f} s"
            ) from None
        except (TypeError, ValueError, RuntimeError) as error:  # the request is invalid
            raise Fault("rejected", f"{self.model} rejected the request: {error}") from None
        finally:
            cancellation_event.set()
        reply = _reply_of_chunks(chunks)
        tokens = (reply.tokens_in or 0) + (reply.tokens_out or 0)
        self._pace = max(self._pace or 0.0, (monotonic() - start) / max(1, tokens))
        return reply

    def _expected_seconds(self, request: Request) -> float:
        if self._pace is None:
            return _FIRST_CALL_TIMEOUT_SECONDS
        prompt_character_count = sum(len(message.content) for message in request.messages)
        max_tokens = request.parameters.get("max_tokens")
        reply = max_tokens if isinstance(max_tokens, int) else self._context
        return _TIMEOUT_FACTOR * self._pace * (prompt_character_count + reply)

    async def close(self) -> None:
        """Unload the model, after the requests under way have ended."""
        pool = self._pool
        self._server = None
        self._pool = None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def import_xllamacpp() -> Any:
    """Return xllamacpp, imported at the first call. Raises `ConfigError` if it is not installed."""
    try:
        import xllamacpp
    except ImportError:
        raise ConfigError("gguf: needs xllamacpp: pip install 'jurygraph[local]'") from None
    return xllamacpp


def start_engine(
    path: Path, *, threads: int | None = None, key: str | None = None, **settings: Any
) -> Any:
    """Return an engine whose loop runs, with `settings` of xllamacpp's `CommonParams`.

    Raises `ConfigError` if it cannot load the model.
    """
    parameters = import_xllamacpp().CommonParams()
    parameters.model.path = str(path)
    cores = available_cores()
    # one is left to the rest of the process where there are more than two
    threads = threads or (cores if cores <= 2 else cores - 1)
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    # it listens on a local port, even if it is only used in process
    parameters.api_keys = [key or token_urlsafe()]
    parameters.verbosity = -1  # prints nothing
    parameters.endpoint_metrics = True
    for name, value in settings.items():
        setattr(parameters, name, value)
    try:
        server = import_xllamacpp().Server(parameters)
    except RuntimeError:  # its message contains no reason
        raise ConfigError(
            f"gguf: {path}: llama.cpp cannot load it; it may be cut short, larger than the memory, or newer than "
            "xllamacpp: copy it again, name a smaller model, or update xllamacpp"
        ) from None
    server.handle_metrics()  # the loop answers it: an engine that is unloaded before its loop began waits for ever
    return server


def _gguf_digest(path: Path) -> str:
    """Return the digest of a GGUF file. It checks the file, since the engine does not explain why it rejects one."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_GGUF_SIGNATURE))
            if start != _GGUF_SIGNATURE:
                problem = f"is no GGUF file, it begins with {start!r}" if start else "is empty"
                raise ConfigError(f"gguf: {path}: {problem}; name a model in the GGUF format")
        return sha256_of_file(path)
    except FileNotFoundError:
        raise ConfigError(
            f"gguf: {path}: there is no such file; name a model in the GGUF format"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"gguf: {path}: cannot be read ({error.strerror}); name a file that can be"
        ) from None


def _to_engine_request(request: Request) -> JsonFields:
    """Return a request in the engine's form: streamed, so that it can be stopped early, even in the prompt."""
    stream = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    body = {**request.parameters, "messages": request.to_chat()["messages"], **stream}
    if request.form == "grammar" and request.answer is not None:
        # not `response_format`: its other implementation ignores bounds of numbers and breaks non-ASCII letters
        schema = bound_schema_values(request.answer, request.parameters.get("max_tokens"))
        compact = {**schema, "x-guidance": {"whitespace_flexible": False}}
        body["grammar"] = import_xllamacpp().json_schema_to_grammar(compact)
    return body


def bound_schema_values(schema: JsonFields, max_tokens: Any) -> JsonFields:
    """Return a JSON schema whose strings together fit into a reply of so many tokens, and whose numbers end.

    A small model may write on and on in a value that the grammar does not end. A token is taken for two letters.
    """
    if not isinstance(max_tokens, int):
        return schema
    share = 2 * max_tokens // max(1, _count_reply_strings(schema))
    return dict(
        _bound_string_lengths(
            schema, min(_MAX_REPLY_STRING_LETTERS, max(_MIN_REPLY_STRING_LETTERS, share))
        )
    )


def _count_reply_strings(part: JsonFields) -> int:
    if part.get("type") == "string":
        return not part.keys() & {"enum", "const"}
    if "items" in part:
        return int(part.get("maxItems", 1)) * _count_reply_strings(part["items"])
    inner_schemas = [
        *part.get("properties", {}).values(),
        *part.get("anyOf", ()),
        *part.get("prefixItems", ()),  # a tuple, in a schema of the user's own
    ]
    return sum(map(_count_reply_strings, inner_schemas))


def _bound_string_lengths(part: Any, max_letters: int) -> Any:
    if isinstance(part, list):
        return [_bound_string_lengths(item, max_letters) for item in part]
    if not isinstance(part, dict):
        return part
    bounded_schema = {key: _bound_string_lengths(value, max_letters) for key, value in part.items()}
    if part.get("type") == "string" and not part.keys() & {"enum", "const"}:
        bounded_schema["maxLength"] = min(max_letters, part.get("maxLength", max_letters))
    if part.get("type") == "number":
        bounded_schema["multipleOf"] = _REPLY_NUMBER_STEP
    if part.get("type") in ("number", "integer"):
        if not part.keys() & {"minimum", "exclusiveMinimum"}:
            bounded_schema["minimum"] = -_MAX_REPLY_NUMBER
        if not part.keys() & {"maximum", "exclusiveMaximum"}:
            bounded_schema["maximum"] = _MAX_REPLY_NUMBER
    return bounded_schema


def _reply_of_chunks(chunks: Sequence[JsonFields]) -> Reply:
    for chunk in chunks:
        if error := chunk.get("error"):
            kind = "rejected"
            if error["type"] == "exceed_context_size_error":
                kind = "overflowed"
            elif error["code"] >= 500:
                kind = "server"
            raise Fault(kind, error["message"])
    choices = [chunk["choices"][0] for chunk in chunks if chunk.get("choices")]
    if not choices or choices[-1]["finish_reason"] is None:
        raise Fault("unreadable", "the engine broke off without a word")
    usage = chunks[-1].get("usage", {})
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    entries = []
    for choice in choices:
        logprobs = choice.get("logprobs") or {}
        entries += logprobs.get("content", ())
    return Reply(
        text=text,
        finish=choices[-1]["finish_reason"],
        served=f"xllamacpp {import_xllamacpp().__version__}",
        tokens_in=usage.get("prompt_tokens"),
        tokens_out=usage.get("completion_tokens"),
        tokens=read_token_logprobs({"content": entries}, text),
    )
