"""llama.cpp behind its own HTTP server, as an endpoint that speaks OpenAI's protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CONNECTIONS = 64  # each holds a thread of the server's while it is kept alive


@contextmanager
def engine_over_http(path: Path, slots: int = 4, context: int = 4096) -> Iterator[tuple[str, str]]:
    """Serve the model of a GGUF file on this machine; yield the base URL, which ends with `/v1`, and the key."""
    import xllamacpp  # type: ignore[import-untyped]

    key = "a-key-for-tests"
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_parallel = slots
    parameters.n_ctx = slots * context
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.n_threads_http = _CONNECTIONS
    parameters.api_keys = [key]
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    try:
        yield f"{server.listening_address}/v1", key
    finally:
        del server  # there is no other way to stop it
