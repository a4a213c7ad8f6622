"""A server of embeddings and reranking: it answers POSTs to any path by a script."""

import base64
import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.models.server import Answer, Script, Server, raw_body, running


class _AnyPath(Server):
    """Like `Server`, but a request has its path in the body, under `path`."""

    async def _read(self, request: web.BaseRequest) -> dict[str, Any]:
        return {**json.loads(await request.content.read()), "path": request.path}


@contextmanager
def run_embedding_server(script: Script) -> Iterator[Server]:
    """A server that answers by a script, for as long as the block lasts. Raises what the script raised."""
    server = _AnyPath(script)
    with running(server):
        yield server


def vector(text: str) -> list[float]:
    """Return the counts of eight letters in a text: its embedding by this server."""
    return [float(text.count(letter)) for letter in "aeionrst"]


def embeddings_reply(body: dict[str, Any], number: int = 1) -> Answer:
    """Return the vectors of all texts of a request, the last first, with their indices."""
    coded = body.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding",
            "index": place,
            "embedding": _base64(vector(text)) if coded else vector(text),
        }
        for place, text in enumerate(body["input"])
    ]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return raw_body(
        json.dumps({"object": "list", "model": body["model"], "data": data[::-1], "usage": usage})
    )


def ranking_reply(scores: Sequence[float]) -> Answer:
    """Return relevance scores of the documents, the best first, as the format requires."""
    results = [{"index": place, "relevance_score": score} for place, score in enumerate(scores)]
    results.sort(key=lambda one: -one["relevance_score"])
    return raw_body(
        json.dumps({"id": "1", "model": "tiny", "results": results, "usage": {"total_tokens": 3}})
    )


def _base64(numbers: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
