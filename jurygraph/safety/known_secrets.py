"""Which values are secrets: those of environment variables that are named like one, unless they are placeholders."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jurygraph.errors import JurygraphError
from jurygraph.safety.redaction import SHORTEST, Redactor

_NAME_OF_SECRET = re.compile(
    r".*PASSWORD.*"
    r"|.*(?:KEY|TOKEN|SECRET|PASSWD|PASSPHRASE|JWT|CREDENTIALS?)\d*(?:_.*|$)"
    r"|.*_(?:PASS|PWD)",
    re.DOTALL,
)
"""`*PASSWORD*`, and names in which one of the other words ends the name or stands before a `_`, as in
AWS_BEARER_TOKEN_BEDROCK."""

_NAME_OF_FILE = ("_FILE", "_PATH", "_DIR")
_NAME_OF_ADDRESS = ("_PROXY", "_URL", "_URI", "_DSN", "_BASE", "_ENDPOINT", "_HOST", "_WEBHOOK")

_SHORTEST_WORD, _SHORTEST_NUMBER = 16, 12
_SEPARATORS = re.compile(r"[\s_.\-]+")
_PLACEHOLDER = re.compile(
    r"(?:test|testing|pass|passw0rd|password|passwd|admin|root|user|demo|secret|token|key|api|change|me|my|your|openai|"
    r"anthropic|sk|example|default|dummy|fake|none|null|empty|not|needed|required|unused|local|localhost|here|insert|"
    r"put|enter|placeholder|letmein|qwerty|welcome|todo|[x*<>])+(?:\d{0,4}|1234567890|123456789|12345678|123456)",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Whether a value is no secret although its variable is named like one.

    That is a value shorter than 8 characters, a word (`disabled`: fewer than 16 letters, all of one case), a number of
    fewer than 12 digits, or what consists of the usual stand-ins (`test1234`, `your-openai-api-key-here`).
    """
    core = _SEPARATORS.sub("", value)
    if len(value) < SHORTEST or not core:
        return True
    if core.isalpha() and (core.islower() or core.isupper()) and len(core) < _SHORTEST_WORD:
        return True
    if core.isdigit() and len(core) < _SHORTEST_NUMBER:
        return True
    return _PLACEHOLDER.fullmatch(core) is not None


def found_in(environment: Mapping[str, str]) -> list[str]:
    """The secrets among environment variables, each once.

    These are the values of variables that are named like a secret, the secret fields of one that is JSON, and the
    passwords and secret parameters of addresses. Placeholders are left out.
    """
    found: dict[str, None] = {}
    for name, value in environment.items():
        found |= dict.fromkeys(_secrets_of(name.upper(), value.strip()))
    return [secret for secret in found if not is_placeholder(secret)]


def variable_of(text: str, environment: Mapping[str, str]) -> str | None:
    """The name of a variable whose secret stands in a text; None where there is none."""
    return next((name for name, value in environment.items() if Redactor(found_in({name: value})).finds(text)), None)


def process_redactor(secrets: Iterable[str] = ()) -> Redactor:
    """The redactor of this process: it knows the secrets of the environment as it is now, and those given.

    It is built once: with the same secrets it is the same object.
    """
    given = (secret for secret in secrets if not is_placeholder(secret))
    return _redactor_of(_found_among(frozenset(os.environ.items())) | frozenset(given))


@lru_cache(maxsize=4)
def _found_among(variables: frozenset[tuple[str, str]]) -> frozenset[str]:
    return frozenset(found_in(dict(variables)))


@lru_cache(maxsize=16)
def _redactor_of(secrets: frozenset[str]) -> Redactor:
    return Redactor(secrets)


def _secrets_of(name: str, value: str) -> Iterator[str]:
    """What is secret in a variable, by its name in upper case."""
    if name.endswith(_NAME_OF_FILE):
        return
    if _NAME_OF_SECRET.fullmatch(name):
        yield value
        yield from _secret_fields(value)
    elif name.endswith(_NAME_OF_ADDRESS):
        yield from _secrets_of_address(value)


def _secret_fields(value: str) -> Iterator[str]:
    """The secret fields of credentials that are a JSON object, such as `private_key`."""
    if not value.startswith("{"):
        return
    try:
        fields: dict[str, Any] = json.loads(value)
    except (ValueError, RecursionError):
        return
    for name, field in fields.items():
        if isinstance(field, str) and _NAME_OF_SECRET.fullmatch(name.upper()):
            yield field.strip()


def _secrets_of_address(address: str) -> Iterator[str]:
    """The password of a URL, as it is written and as it is meant, and its parameters that are named like a secret."""
    try:
        parts = urlsplit(address)
        password, parameters = parts.password, parse_qsl(parts.query)
    except ValueError:
        return
    if password is not None:
        yield from (password, unquote(password))
    yield from (value for name, value in parameters if _NAME_OF_SECRET.fullmatch(name.upper()))


@contextmanager
def redacted_errors(secrets: Iterable[str] = ()) -> Iterator[None]:
    """Redact the messages of jurygraph's own errors on their way out; what led to them is left as it is.

    The secrets are those given, and those of the environment as it is when an error comes.
    """
    try:
        yield
    except JurygraphError as error:
        known = process_redactor(secrets)
        error.args = tuple(known.text(one) if isinstance(one, str) else one for one in error.args)
        raise
