"""Find secrets, and redact their literal values: as written, and in the encodings of requests, replies and logs.

Secrets are the values of environment variables that are named like one, unless they are placeholders. Redacting is for
accidents, such as an error that repeats a header; code that hides a key on purpose is trusted code. A run cannot redact
the fields of a config, since a redacted parameter would be a different one; a secret there is refused. The content of a
task, and what code writes into a plan, are kept unchanged.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from jurygraph.errors import ConfigError, JurygraphError

if TYPE_CHECKING:
    from pydantic import BaseModel, JsonValue

    from jurygraph.schema import Config

MIN_SECRET_LENGTH = 8
"""Minimum number of characters of a secret: shorter values occur in texts by chance."""

REDACTED = "[redacted]"


class Redactor:
    """Redacts secrets in texts.

    Each secret is found as written, escaped as in JSON (also in JSON within JSON) and as in URLs, and within base64 at
    any place. Secrets of less than 8 characters are ignored.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        usable = [secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH]
        forms = {form for secret in usable for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    @property
    def has_secrets(self) -> bool:
        """True if there is anything to redact."""
        return self._pattern is not None

    def has_secret_in(self, text: str | bytes) -> bool:
        """Return whether a text contains a secret."""
        if self._pattern is None:
            return False
        decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return self._pattern.search(decoded) is not None

    def redact_text(self, value: str) -> str:
        """Return the text with each secret replaced by `[redacted]`."""
        return value if self._pattern is None else self._pattern.sub(REDACTED, value)

    def redact_json(self, value: "JsonValue") -> "JsonValue":
        """Return a JSON value with all its strings redacted, including field names."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {self.redact_text(name): self.redact_json(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.redact_json(inner) for inner in value]
        return value


def _forms(secret: str) -> Iterator[str]:
    yield secret
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield json.dumps(escaped)[1:-1]
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (quote(raw), quote(raw, safe=""), quote_plus(raw))
    for before in range(3):  # base64 writes three bytes as four characters; a secret may begin at any of the three
        encoded = base64.b64encode(bytes(before) + raw).decode()
        first = -(-before * 8 // 6)  # characters that hold bits of what is before or after it are left out
        last = (before + len(raw)) * 8 // 6
        yield encoded[first:last]
        yield encoded[first:last].translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")


def is_possible_source(redacted: str, text: str) -> bool:
    """Return whether a redacted text may come from a text, that is, has the same pieces in order, with gaps between."""
    first, *others = redacted.split(REDACTED)
    if not others or not text.startswith(first):
        return False
    *inner, last = others
    place = len(first)
    for piece in inner:
        start = text.find(piece, place)
        if start < 0:
            return False
        place = start + len(piece)
    return text[place:].endswith(last)


_NAME_OF_SECRET = re.compile(
    r".*PASSWORD.*"
    r"|.*(?:KEY|TOKEN|SECRET|PASSWD|PASSPHRASE|JWT|CREDENTIALS?)\d*(?:_.*|$)"
    r"|.*_(?:PASS|PWD)",
    re.DOTALL,
)
"""`*PASSWORD*`, and names with one of the other words at the end or before a `_` (AWS_BEARER_TOKEN_BEDROCK)."""

_NAME_OF_FILE = ("_FILE", "_PATH", "_DIR")
_NAME_OF_ADDRESS = ("_PROXY", "_URL", "_URI", "_DSN", "_BASE", "_ENDPOINT", "_HOST", "_WEBHOOK")

_MIN_WORD_LENGTH = 16
_MIN_NUMBER_LENGTH = 12
_SEPARATORS = re.compile(r"[\s_.\-]+")
_PLACEHOLDER = re.compile(
    r"(?:test|testing|pass|passw0rd|password|passwd|admin|root|user|demo|secret|token|key|api|change|me|my|your|openai|"
    r"anthropic|sk|example|default|dummy|fake|none|null|empty|not|needed|required|unused|local|localhost|here|insert|"
    r"put|enter|placeholder|letmein|qwerty|welcome|todo|[x*<>])+(?:\d{0,4}|1234567890|123456789|12345678|123456)",
    re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Return whether a value is not a secret although its variable is named like one.

    That is a value shorter than 8 characters, a word (`disabled`: fewer than 16 letters, all of one case), a number of
    fewer than 12 digits, or a value that consists of the usual placeholders (`test1234`, `your-openai-api-key-here`).
    """
    core = _SEPARATORS.sub("", value)
    is_word = core.isalpha() and (core.islower() or core.isupper()) and len(core) < _MIN_WORD_LENGTH
    is_number = core.isdigit() and len(core) < _MIN_NUMBER_LENGTH
    is_short = len(value) < MIN_SECRET_LENGTH or not core
    return is_short or is_word or is_number or _PLACEHOLDER.fullmatch(core) is not None


def find_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the secrets in environment variables, each once.

    These are the values of variables that are named like a secret, the secret fields of such values in JSON, and the
    passwords and secret parameters of URLs. Placeholders are left out.
    """
    found = (secret for name, value in environment.items() for secret in _secrets_of(name.upper(), value.strip()))
    return [secret for secret in dict.fromkeys(found) if not is_placeholder(secret)]


def variable_with_secret(text: str, environment: Mapping[str, str]) -> str | None:
    """Return the name of a variable whose secret is in the text; None if there is none."""
    redactors = ((name, Redactor(find_secrets({name: value}))) for name, value in environment.items())
    return next((name for name, redactor in redactors if redactor.has_secret_in(text)), None)


def process_redactor(secrets: Iterable[str] = ()) -> Redactor:
    """Return the redactor of this process, for the secrets in the current environment and these.

    It is cached: for the same secrets it is the same object.
    """
    usable = (secret for secret in secrets if not is_placeholder(secret))
    return _redactor_of(_secrets_in(frozenset(os.environ.items())) | frozenset(usable))


@lru_cache(maxsize=4)
def _secrets_in(variables: frozenset[tuple[str, str]]) -> frozenset[str]:
    return frozenset(find_secrets(dict(variables)))


_redactor_of = lru_cache(maxsize=16)(Redactor)


def _secrets_of(name: str, value: str) -> Iterator[str]:
    if name.endswith(_NAME_OF_FILE):
        return
    if _NAME_OF_SECRET.fullmatch(name):
        yield value
        if value.startswith("{"):  # credentials in JSON, with fields such as `private_key`
            with suppress(ValueError, RecursionError):
                fields: dict[str, Any] = json.loads(value)
                texts = [(name.upper(), field) for name, field in fields.items() if isinstance(field, str)]
                yield from (field.strip() for name, field in texts if _NAME_OF_SECRET.fullmatch(name))
    elif name.endswith(_NAME_OF_ADDRESS):
        yield from _secrets_of_address(value)


def _secrets_of_address(address: str) -> Iterator[str]:
    """Yield the password of a URL, both as written and decoded, and its parameters that are named like a secret."""
    try:
        parts = urlsplit(address)
        password = parts.password
        parameters = parse_qsl(parts.query)
    except ValueError:
        return
    if password is not None:
        yield from (password, unquote(password))
    yield from (value for name, value in parameters if _NAME_OF_SECRET.fullmatch(name.upper()))


@contextmanager
def redacted_errors(secrets: Iterable[str] = ()) -> Iterator[None]:
    """Redact the messages of jurygraph's own errors raised inside; their causes are left unchanged.

    The secrets are those given, and those in the environment when the error is raised.
    """
    try:
        yield
    except JurygraphError as error:
        redactor = process_redactor(secrets)
        error.args = tuple(redactor.redact_text(arg) if isinstance(arg, str) else arg for arg in error.args)
        raise


def refuse_secrets_in_config(config: "Config") -> None:
    """Raise ConfigError if a field of the config holds a secret; it names the field and the secret's variable."""
    for problem in _secrets_in_fields(config, process_redactor()):
        raise ConfigError(problem)


def _secrets_in_fields(model: "BaseModel", redactor: Redactor) -> Iterator[str]:
    if redactor.has_secret_in(model.model_dump_json()):
        for place, value in _secret_texts(model.model_dump(mode="json"), redactor):
            variable = variable_with_secret(value, os.environ) or "the model's key"
            advice = "which a run would keep; read that variable in your own code instead"
            yield f"{place}: holds the secret of {variable}, {advice}"


def _secret_texts(value: Any, redactor: Redactor, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place of each text that holds a secret, such as `params.key` or `evaluators[0].use`, and the text."""
    if isinstance(value, str):
        if redactor.has_secret_in(value):
            yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _secret_texts(name, redactor, place or "a name")
            yield from _secret_texts(inner, redactor, f"{place}.{name}" if place else name)
    elif isinstance(value, Sequence):
        for number, inner in enumerate(value):
            yield from _secret_texts(inner, redactor, f"{place}[{number}]")
