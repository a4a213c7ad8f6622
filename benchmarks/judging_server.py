"""A server that answers every question at once, or after some seconds: `python -m benchmarks.judging_server SECONDS`.

What it says has the form of the schema that it was sent. It prints its URL, and serves until its input is closed.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from aiohttp import web

REASON = "The letter says so in its second paragraph, and gives the date, the place and the price that were asked for."
QUOTED = "Dear friend, the meeting is on Monday at nine."
"""Stands in whatever is judged."""
LETTERS_A_TOKEN, ALTERNATIVES = 4, 20


@contextmanager
def judging(seconds: float, logprobs: bool = False) -> Iterator[str]:
    """Its URL, while it runs in a process of its own; with `logprobs` it gives those of 20 alternatives a token."""
    command = [sys.executable, "-m", "benchmarks.judging_server", str(seconds), *(["logprobs"] if logprobs else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


async def _serve(seconds: float, logprobs: bool) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        schema = json.loads(await request.read())["response_format"]["json_schema"]["schema"]
        if seconds:
            await asyncio.sleep(seconds)
        return web.Response(body=_reply(json.dumps(schema), logprobs), content_type="application/json")

    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


@lru_cache
def _reply(schema: str, logprobs: bool) -> bytes:
    asked = json.loads(schema)
    text = json.dumps(_filled(asked, asked.get("$defs", {})), separators=(",", ":"))
    pieces = [text[start : start + LETTERS_A_TOKEN] for start in range(0, len(text), LETTERS_A_TOKEN)]
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    if logprobs:
        choice["logprobs"] = {
            "content": [{"token": piece, "logprob": -0.1, "top_logprobs": _top(piece)} for piece in pieces]
        }
    usage = {"prompt_tokens": 600, "completion_tokens": len(pieces), "total_tokens": 600 + len(pieces)}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny-1", "choices": [choice]}
    return json.dumps({**whole, "usage": usage}).encode()


def _top(piece: str) -> list[dict[str, Any]]:
    others = [{"token": f"other-{place}", "logprob": -2.5 - place} for place in range(ALTERNATIVES - 1)]
    return [{"token": piece, "logprob": -0.1}, *others]


def _filled(schema: Any, definitions: Any) -> Any:
    """A value of a schema; numbers are 0.9."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: _filled(part, definitions) for name, part in schema["properties"].items()}
        case "array":
            return [QUOTED]
        case "boolean":
            return True
        case "number":
            return 0.9
    return REASON


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), sys.argv[2:] == ["logprobs"]))
