"""llama.cpp behind its own HTTP server, as an endpoint that speaks OpenAI's protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jurygraph.models.backends.gguf import start_server

_CONNECTIONS = 64  # each holds a thread of the server's while it is kept alive


@contextmanager
def engine_over_http(path: Path, slots: int = 4, context: int = 4096) -> Iterator[tuple[str, str]]:
    """Serve the model of a GGUF file on this machine; yield the base URL, which ends with `/v1`, and the key."""
    key = "a-key-for-tests"
    server = start_server(
        path, "write it again", threads=1, key=key, n_parallel=slots, n_ctx=slots * context, n_threads_http=_CONNECTIONS
    )
    try:
        yield f"{server.listening_address}/v1", key
    finally:
        del server  # there is no other way to stop it; it waits for ever unless the loop began, as `start_server` saw
