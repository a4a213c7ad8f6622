"""Evaluators, a deriver and combiners that disclose every secret that they know, in four encodings.

A copy of this file is next to the configs of `test_secrets`; response "number 7" is about secret 7.
"""

import asyncio
import base64
import json
import logging
import os
import re
from pathlib import Path
from urllib.parse import quote

import jurygraph as jg
from jurygraph.decision.combiners import Mean

ENCODINGS = {
    "plain": str,
    "base64": lambda secret: base64.b64encode(f"user:{secret}".encode()).decode(),
    "url": lambda secret: quote(secret, safe=""),
    "json": lambda secret: json.dumps(f"«{secret}»")[1:-1],
}


def secrets() -> list[str]:
    """The secrets, from the environment as user code reads it."""
    return [value for name, value in sorted(os.environ.items()) if name.startswith("CANARY_")]


def secret_of(text: str) -> str:
    known = secrets()
    return known[int(re.search(r"number (\d+)", text)[1]) % len(known)]


def everything() -> str:
    """All secrets in all encodings."""
    return "\n".join(encode(secret) for secret in secrets() for encode in ENCODINGS.values())


class EncodedSecretEvaluator(jg.Evaluator):
    """A question for each encoding."""

    def questions(self, view):
        return [self.question(view, subject=name) for name in ENCODINGS]

    def encode_secret(self, inputs):
        return ENCODINGS[inputs.question.subject](secret_of(inputs.response.text))


class Says(EncodedSecretEvaluator):
    name = "says"
    needs = ("leaks",)

    def answer(self, inputs):
        secret_text = self.encode_secret(inputs)
        evidence = (
            jg.Evidence(quote=secret_text),
            jg.Evidence(quote=secret_text, source="notes", start=0, end=9, verified=True),
        )
        return jg.Verdict(
            score=0.5,
            reason=f"it says {secret_text}",
            native=secret_text,
            evidence=evidence,
            call=secret_text,
        )


class Raises(EncodedSecretEvaluator):
    name = "raises"

    def answer(self, inputs):
        secret_text = self.encode_secret(inputs)
        if inputs.question.subject == "url":
            raise type(secret_text, (RuntimeError,), {})
        if inputs.question.subject == "json":
            return jg.Verdict.fail(secret_text[:100], f"it failed: {secret_text}")
        try:
            raise OSError(secret_text)
        except OSError as error:
            raise ValueError(
                f"{'x' * 470} 401 {secret_text}"
                if inputs.question.subject == "plain"
                else f"401 {secret_text}"
            ) from error


class Logs(jg.Evaluator):
    """Log the secret, and let the event loop log it."""

    name = "logs"

    async def answer(self, inputs):
        if not inputs.response.text.endswith("number 0"):
            return 1.0
        for secret in secrets():
            for encode in ENCODINGS.values():
                secret_text = encode(secret)
                logging.getLogger("leaky").error("a key: %s", secret_text)
        asyncio.get_running_loop().call_exception_handler(
            {"message": everything(), "exception": OSError(everything())}
        )
        return 1.0


class Leaks(jg.Deriver):
    name = "leaks"
    gives = "leaks"

    def derive(self, inputs):
        secret = secret_of(inputs.response.text)
        secret_text = {name: encode(secret) for name, encode in ENCODINGS.items()}
        variants = [
            jg.Variant(response=jg.Response(id=name, text=f"number {text}", data=text), edit=text)
            for name, text in secret_text.items()
        ]
        evidence = [jg.Evidence(quote=text) for text in secret_text.values()]
        note = "; ".join(secret_text.values())
        return jg.Material(
            name="leaks",
            data={**secret_text, "by": secret_text, secret: 1},
            variants=variants,
            evidence=evidence,
            note=note,
        )


class Fails(jg.Deriver):
    name = "fails"
    gives = "nothing"

    def derive(self, inputs):
        raise ValueError(ENCODINGS["plain"](secret_of(inputs.response.text)))


WARM = Path(__file__).with_name("warm.md")
if WARM.exists():  # only in a project folder

    class Warm(jg.JudgeEvaluator):
        name = "warm"
        prompt = jg.read_prompt(WARM)

        def item(self, inputs):
            return jg.Item("It is warm.", jg.Binary())

        def prompt_variables(self, inputs):
            secret = secret_of(inputs.response.text)
            return {"house": "; ".join(encode(secret) for encode in ENCODINGS.values())}


class Quiet(jg.Evaluator):
    name = "quiet"

    def answer(self, inputs):
        return 1.0


class RaisesWhenPlanning(Quiet):
    name = "plans"

    def questions(self, view):
        raise ValueError(everything())


class RaisesWhenOpened(Quiet):
    name = "opens"

    def open(self):
        raise ValueError(everything())


class RaisesWhenMade(Quiet):
    name = "made"

    def __init__(self):
        raise ValueError(everything())


class BreaksWhenCombining(Mean):
    name = "leaky.BreaksWhenCombining"

    def combine(self, cells, params):
        raise ValueError(everything())


class BreaksWhenFreezing(Mean):
    name = "leaky.BreaksWhenFreezing"

    def freeze(self, inputs, params):
        raise ValueError(everything())


def __getattr__(name):
    """`leaky.Bug` fails with an exception that the command line reports as a bug."""
    raise KeyError(everything()) if name == "Bug" else AttributeError(everything())
