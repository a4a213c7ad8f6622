"""A scripted judge: a server that speaks OpenAI's chat completions and answers by the rules in `script.toml`.

    python -m examples.panel.scripted_judge --port 8011

It is no model, and nothing that it says is worth knowing. It is here so that the whole of jurygraph can be run without
one: requests, replies and traces are real, and the same request always gets the same reply. What it answers:

- criteria and wishes, by words that stand in the response, which it quotes;
- steps of reasoning, by places that the task's tables do not name;
- what a reviewer would say: the score of the example that is most alike, by words from the script, or the upper middle
  of the scale where none is shown;
- which criterion of a rubric licenses which, as it stands in the script.

Whatever else it is asked is refused with status 400.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

SCRIPT: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "script.toml").read_text(encoding="utf-8")
)
SIGNS: list[str] = SCRIPT["reviewers"]["signs"]
NAME = "scripted-judge"
LETTERS_A_TOKEN = 4
SURE, UNSURE = 0.9, 0.1
_ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"<<<(?P<name>[\w-]+) (?P<mark>[0-9a-f]{16})\n(?P<inside>.*?)\n(?P=name) (?P=mark)>>>",
    re.DOTALL,
)
_SCORED = re.compile(r"\nThe score of [^:\n]+: (?P<score>-?[0-9.]+)")
Reply = dict[str, Any]


class Unscripted(Exception):
    """The script says nothing on what is asked."""


class Shown(NamedTuple):
    """A text that a prompt shows between two marks: what it is, the text, and what stands before and behind it."""

    name: str
    text: str
    before: str
    behind: str


@contextmanager
def judging() -> Iterator[str]:
    """The URL of a scripted judge, while it runs in a process of its own."""
    command = [sys.executable, "-m", "examples.panel.scripted_judge", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def replied(body: Mapping[str, Any]) -> Reply:
    """What the script says to a request; `body` is that of OpenAI's chat completions. Raises Unscripted."""
    schema = body["response_format"]["json_schema"]["schema"]
    shown = list(_shown(body["messages"][-1]["content"]))
    properties = schema["properties"]
    if "pairs" in properties:
        return {"pairs": [_edge(**pair) for pair in _lines(shown, "pairs")]}
    if "steps" in properties:
        return {"steps": _steps(shown)}
    return {name: _item(name, _resolved(one, schema), shown) for name, one in properties.items()}


def _item(name: str, schema: Mapping[str, Any], shown: Sequence[Shown]) -> Reply:
    """What is said of one thing that is asked about, in the form that the schema states."""
    forms = schema["properties"]
    if "confidence" in forms:
        return _predicted(*_ends(forms["value"]), shown)
    asked = _text_of(shown, "item", name)
    if "met" in forms:
        return _met_or_not(asked, _text_of(shown, "response"))
    if "value" in forms:
        return _on_scale(asked, _text_of(shown, "response"), *_ends(forms["value"]))
    raise Unscripted(f"no rule is for the form {sorted(forms)}")


def _shown(prompt: str) -> Iterator[Shown]:
    for one in _FENCE.finditer(prompt):
        yield Shown(one["name"], one["inside"], prompt[: one.start()], prompt[one.end() :])


def _text_of(shown: Sequence[Shown], name: str, label: str = "") -> str:
    """The text of this name that stands below a label. Raises Unscripted."""
    for one in shown:
        if one.name == name and one.before.endswith(f"{label}:\n" if label else ""):
            return one.text
    raise Unscripted(f"no {name} {label} is shown")


def _lines(shown: Sequence[Shown], name: str) -> list[Any]:
    return [json.loads(line) for line in _text_of(shown, name).splitlines()]


def _resolved(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return whole["$defs"][reference.rpartition("/")[2]] if reference else schema  # type: ignore[no-any-return]


def _ends(value: Mapping[str, Any]) -> tuple[float, float]:
    """The ends of a scale, on which a value may be null where a judge cannot tell."""
    return next(
        (one["minimum"], one["maximum"]) for one in value.get("anyOf", [value]) if "minimum" in one
    )


# Criteria and wishes


def _met_or_not(asked: str, response: str) -> Reply:
    wholly = _quote(response, _rule(asked)["wholly"])
    said = {"reason": _reason(1.0 if wholly else 0.0), "quotes": [wholly] if wholly else []}
    return {**said, "met": bool(wholly), "probability": SURE if wholly else UNSURE}


def _on_scale(asked: str, response: str, low: float, high: float) -> Reply:
    rule = _rule(asked)
    wholly, half = _quote(response, rule["wholly"]), _quote(response, rule.get("half", ()))
    share = 1.0 if wholly else 0.5 if half else 0.0
    quotes = [wholly or half] if share else []
    return {"reason": _reason(share), "quotes": quotes, "value": low + share * (high - low)}


def _rule(asked: str) -> Mapping[str, Any]:
    for rule in SCRIPT["rules"]:
        if rule["asked"] in asked:
            return rule  # type: ignore[no-any-return]
    raise Unscripted(f"no rule is for {asked!r}")


def _quote(response: str, words: Sequence[str]) -> str:
    """The line in which one of these words stands; empty where none does."""
    return next(
        (line.strip() for line in response.splitlines() if any(word in line for word in words)), ""
    )


def _reason(share: float) -> str:
    found = {
        1.0: "stand in the response",
        0.5: "stand there by half",
        0.0: "stand nowhere in the response",
    }[share]
    return f"By the script: the words that are looked for {found}."


# Steps of reasoning


def _steps(shown: Sequence[Shown]) -> list[Reply]:
    facts = next((one.text for one in shown if one.name == "facts"), "")
    steps = [one.text for one in shown if one.name == "step"]
    return [_step(number, text, facts) for number, text in enumerate(steps, start=1)]


def _step(number: int, text: str, facts: str) -> Reply:
    named = re.finditer(SCRIPT["steps"]["places"], text)
    nowhere = next(
        (one for one in named if json.dumps(one["name"], ensure_ascii=False) not in facts), None
    )
    sound: Reply = {
        "step": number,
        "faults": [],
        "accuracy": True,
        "facts": True,
        "coherence": True,
    }
    if nowhere is None:
        return sound
    fault = {
        "aspect": "facts",
        "reason": f"No table names {nowhere['name']!r}.",
        "quote": nowhere[0],
    }
    return {**sound, "faults": [fault], "facts": False}


# What a reviewer would say


def _predicted(low: float, high: float, shown: Sequence[Shown]) -> Reply:
    response = _text_of(shown, "response")
    quotes = [line for line in response.splitlines() if line.strip()][:1]
    examples = [(one.text, _score(one)) for one in shown if one.name == "example"]
    if not examples:
        middle = (low + high + 1) // 2
        return {
            "reason": "By the script: no example is shown.",
            "quotes": quotes,
            "value": middle,
            "confidence": 85,
        }
    score, alike = max(
        ((one, _alike(text, response)) for text, one in examples), key=lambda found: found[1]
    )
    reason = f"By the script: the nearest example agrees on {alike} of {len(SIGNS)} signs."
    return {"reason": reason, "quotes": quotes, "value": score, "confidence": 90}


def _alike(one: str, other: str) -> int:
    """On how many of the script's signs two texts agree."""
    return sum((sign in one) == (sign in other) for sign in SIGNS)


def _score(example: Shown) -> int:
    found = _SCORED.match(example.behind)
    if found is None:
        raise Unscripted("an example without a score is shown")
    return int(float(found["score"]))


# The rubric's graph


def _edge(parent: str, child: str, **_: Any) -> Reply:
    for edge in SCRIPT["edges"]:
        if (edge["parent"], edge["child"]) == (parent, child):
            return _answered(parent, child, edge["relation"], edge["because"])
    return _answered(parent, child, "none", "By the script: the two are independent.")


def _answered(parent: str, child: str, relation: str, reason: str) -> Reply:
    return {
        "reason": reason,
        "parent": parent,
        "child": child,
        "relation": relation,
        "confidence": 90,
    }


# The server


async def _answer(request: web.Request) -> web.Response:
    body = await request.json()
    try:
        text = json.dumps(replied(body), ensure_ascii=False)
    except Unscripted as unscripted:
        message = f"the scripted judge was not told what to say here: {unscripted}"
        return web.json_response({"error": {"message": message, "type": "unscripted"}}, status=400)
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    asked = sum(len(one["content"]) for one in body["messages"]) // LETTERS_A_TOKEN
    usage = {"prompt_tokens": asked, "completion_tokens": len(text) // LETTERS_A_TOKEN}
    usage["total_tokens"] = sum(usage.values())
    whole = {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": NAME,
        "choices": [choice],
    }
    return web.json_response({**whole, "usage": usage})


async def _serve(port: int) -> None:
    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/chat/completions", _answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print(
        f"scripted judge, until it is stopped: http://127.0.0.1:{runner.addresses[0][1]}/v1",
        flush=True,
    )
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=8011, help="0 for any that is free")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
