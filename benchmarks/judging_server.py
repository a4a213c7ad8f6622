"""A server that answers every question at once, or after some seconds: `python -m benchmarks.judging_server SECONDS`.

What it says has the form of the schema that it was sent; GET gives the body of the last request. It prints its URL, and
serves until its input is closed.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from aiohttp import web

REASON = "The letter says so in its second paragraph, and gives the date, the place and the price that were asked for."
QUOTED = "Dear friend, the meeting is on Monday at nine."
"""A sentence that every judged text contains."""
LETTERS_A_TOKEN, ALTERNATIVES = 4, 20
JSON, READ = "application/json", b'"TOKENS READ"'


@contextmanager
def run_judging_server(seconds: float, logprobs: bool = False) -> Iterator[str]:
    """Yield the URL of a server in its own process; with `logprobs` it gives those of 20 alternatives per token."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.judging_server",
        str(seconds),
        *(["logprobs"] if logprobs else []),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


async def _serve(seconds: float, logprobs: bool) -> None:
    last = b""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal last
        if request.method == "GET":
            return web.Response(body=last, content_type=JSON)
        last = await request.read()
        body = json.loads(last)
        schema = json.dumps(body["response_format"]["json_schema"]["schema"], separators=(",", ":"))
        if seconds:
            await asyncio.sleep(seconds)
        read = b"%d" % tokens_read(body["messages"], schema)
        return web.Response(body=_reply(schema, logprobs).replace(READ, read), content_type=JSON)

    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


def tokens_read(messages: Sequence[Mapping[str, str]], schema: str) -> int:
    """Return the tokens that a dry run expects of a request: one for four bytes of its messages and its schema."""
    size = len(schema) + sum(len(message["content"].encode()) for message in messages)
    return -(-size // LETTERS_A_TOKEN)


@lru_cache
def _reply(schema: str, logprobs: bool) -> bytes:
    parsed = json.loads(schema)
    text = json.dumps(_example_value(parsed, parsed.get("$defs", {})), separators=(",", ":"))
    pieces = [
        text[start : start + LETTERS_A_TOKEN] for start in range(0, len(text), LETTERS_A_TOKEN)
    ]
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    if logprobs:
        choice["logprobs"] = {
            "content": [
                {"token": piece, "logprob": -0.1, "top_logprobs": _top(piece)} for piece in pieces
            ]
        }
    usage = {"prompt_tokens": "TOKENS READ", "completion_tokens": len(pieces)}
    whole = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny-1",
        "choices": [choice],
    }
    return json.dumps({**whole, "usage": usage}).encode()


def _top(piece: str) -> list[dict[str, Any]]:
    others = [
        {"token": f"other-{place}", "logprob": -2.5 - place} for place in range(ALTERNATIVES - 1)
    ]
    return [{"token": piece, "logprob": -0.1}, *others]


def _example_value(schema: Any, definitions: Any, place: int = 1) -> Any:
    """Return a value for a schema: nine tenths of the range of a bounded number, else the place in its list."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema:
        return _example_value(schema["anyOf"][0], definitions, place)
    if "enum" in schema:
        return schema["enum"][min(place, len(schema["enum"])) - 1]
    match schema["type"]:
        case "object":
            return {
                name: _example_value(part, definitions, place)
                for name, part in schema["properties"].items()
            }
        case "array":
            if schema["items"]["type"] == "string":
                return [QUOTED]
            return [
                _example_value(schema["items"], definitions, one + 1)
                for one in range(schema.get("minItems", 0))
            ]
        case "boolean":
            return True
        case "number":
            return _high(schema)
        case "integer":
            return int(_high(schema)) if "maximum" in schema else place
    return REASON


def _high(schema: Any) -> float:
    low, high = schema.get("minimum", 0.0), schema.get("maximum", 1.0)
    return float(f"{low + 0.9 * (high - low):.6g}")


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), sys.argv[2:] == ["logprobs"]))
