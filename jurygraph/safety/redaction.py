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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, unquote, urlsplit

from jurygraph.errors import ConfigError, JurygraphError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from jurygraph.schema import Config

MIN_SECRET_LENGTH = 8
"""Minimum number of characters of a secret: shorter values occur in texts by chance."""

REDACTED_MARK = "[redacted]"


class Redactor:
    """Redacts secrets in texts.

    Each secret is found as written, escaped as in JSON (also in JSON within JSON) and as in URLs, and within base64 at
    any place. Secrets of less than 8 characters are ignored.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form
            for secret in secrets
            if len(secret) >= MIN_SECRET_LENGTH
            for form in _encodings_of_secret(secret)
        }
        secret_forms = sorted(forms, key=lambda form: (-len(form), form))
        self.pattern = re.compile("|".join(map(re.escape, secret_forms))) if forms else None

    @property
    def has_secrets(self) -> bool:
        return self.pattern is not None

    def has_secret_in(self, text: str) -> bool:
        return self.pattern is not None and self.pattern.search(text) is not None

    def redact_text(self, value: str) -> str:
        return value if self.pattern is None else self.pattern.sub(REDACTED_MARK, value)

    def redact_json(self, value: "JsonValue") -> "JsonValue":
        """Return a JSON value with all its strings redacted, including field names."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {
                self.redact_text(name): self.redact_json(inner) for name, inner in value.items()
            }
        return [self.redact_json(inner) for inner in value] if isinstance(value, list) else value


def _encodings_of_secret(secret: str) -> Iterator[str]:
    yield secret
    for ascii_only in (True, False):
        escaped_secret = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield escaped_secret
        yield json.dumps(escaped_secret)[1:-1]
    secret_bytes = secret.encode("utf-8", "surrogatepass")
    yield from (quote(secret_bytes), quote(secret_bytes, safe=""), quote_plus(secret_bytes))
    # base64 writes three bytes as four characters; a secret may begin at any of the three
    for before in range(3):
        base64_code = base64.b64encode(bytes(before) + secret_bytes).decode()
        # characters that hold bits of what is before or after it are left out
        first = -(-before * 8 // 6)
        last = (before + len(secret_bytes)) * 8 // 6
        yield base64_code[first:last]
        yield base64_code[first:last].replace("+", "-").replace("/", "_")


def matches_redacted_text(redacted_text: str, text: str) -> bool:
    """Return whether a redacted text may come from a text, that is, has the same pieces in order, with gaps between."""
    if REDACTED_MARK not in redacted_text:
        return False
    first, *inner, last = map(re.escape, redacted_text.split(REDACTED_MARK))
    pattern = first + "".join(f"(?>.*?{piece})" for piece in inner) + f".*{last}"
    return re.fullmatch(pattern, text, re.DOTALL) is not None


_SECRET_NAME_PATTERN = re.compile(
    r"(?:.*PASSWORD.*|.*(?:KEY|TOKEN|SECRET|PASSWD|PASSPHRASE|JWT|CREDENTIALS?)\d*(?:_.*|$)|.*_(?:PASS|PWD))"
    r"(?<!_FILE)(?<!_PATH)(?<!_DIR)",
    re.DOTALL,
)
"""`*PASSWORD*`, and names with one of the other words at the end or before a `_` (AWS_BEARER_TOKEN_BEDROCK).

Not those that name a file: they end in _FILE, _PATH or _DIR.
"""

_URL_VARIABLE_PATTERN = re.compile(r"_(?:PROXY|URL|URI|DSN|BASE|ENDPOINT|HOST|WEBHOOK)\Z")
_MIN_SECRET_WORD_LENGTH = 16
_MIN_SECRET_NUMBER_LENGTH = 12


def is_placeholder(value: str) -> bool:
    """Return whether a value is not a secret although its variable is named like one.

    That is a value shorter than 8 characters, words that are shorter than 16 letters together (`not-needed`) and all of
    one case, or a number of fewer than 12 digits.
    """
    compact_value = re.sub(r"[\s_.*-]+", "", value)
    is_single_word = (
        compact_value.isalpha()
        and (compact_value.islower() or compact_value.isupper())
        and len(compact_value) < _MIN_SECRET_WORD_LENGTH
    )
    is_number = compact_value.isdigit() and len(compact_value) < _MIN_SECRET_NUMBER_LENGTH
    return len(value) < MIN_SECRET_LENGTH or not compact_value or is_single_word or is_number


def find_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the secrets in environment variables, each once, without placeholders.

    These are the values of variables that are named like a secret, and the passwords in addresses.
    """
    candidates = []
    for name, value in environment.items():
        if _SECRET_NAME_PATTERN.fullmatch(name.upper()):
            candidates.append(value.strip())
        elif _URL_VARIABLE_PATTERN.search(name.upper()):
            with suppress(ValueError):  # no address
                password = urlsplit(value.strip()).password or ""
                candidates += (password, unquote(password))
    return [secret for secret in dict.fromkeys(candidates) if not is_placeholder(secret)]


class LazyRedactor(Redactor):
    """The redactor of this process for the environment at its first use; `secrets` are known in addition.

    To read the environment takes .06 ms, 3 % of one `ascore` by code, whose scores have no text to redact.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = secrets

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:  # type: ignore[override]
        return make_process_redactor(self._secrets).pattern


def make_process_redactor(secrets: Iterable[str] = ()) -> Redactor:
    """Return the redactor of this process, for the secrets in the current environment and these.

    It is cached: for the same secrets it is the same object.
    """
    return _make_redactor(frozenset(os.environ.items()), frozenset(secrets))


@lru_cache(maxsize=16)
def _make_redactor(variables: frozenset[tuple[str, str]], secrets: frozenset[str]) -> Redactor:
    redactable_secrets = (secret for secret in secrets if not is_placeholder(secret))
    return Redactor([*find_secrets(dict(variables)), *redactable_secrets])


def describe_exception(error: Exception) -> str:
    """Return the kind and the message of an exception of other people's code, without secrets of the environment."""
    return make_process_redactor().redact_text(f"{type(error).__name__}: {error}")


@contextmanager
def redact_errors(secrets: Iterable[str] = ()) -> Iterator[None]:
    """Redact the messages of jurygraph's own errors raised inside; their causes are left unchanged.

    The secrets are those given, and those in the environment when the error is raised.
    """
    try:
        yield
    except JurygraphError as error:
        redactor = make_process_redactor(secrets)
        error.args = tuple(
            redactor.redact_text(error_argument)
            if isinstance(error_argument, str)
            else error_argument
            for error_argument in error.args
        )
        raise


def refuse_secrets_in_config(config: "Config") -> None:
    """Raise ConfigError if a field of the config holds a secret; it names the field and the secret's variable."""
    # Imported lazily: they load pydantic, which a command's start does not need.
    from jurygraph.messages import format_field_path
    from jurygraph.schema.frozen_model import iter_json_values

    redactor = make_process_redactor()
    for path, text in (
        iter_json_values(config.model_dump(mode="json")) if redactor.has_secrets else ()
    ):
        if isinstance(text, str) and redactor.has_secret_in(text):
            variable_name = next(
                name
                for name, value in os.environ.items()
                if Redactor(find_secrets({name: value})).has_secret_in(text)
            )
            raise ConfigError(
                f"{format_field_path(path) or 'a name'}: holds the secret of {variable_name}, which a run would keep; "
                "read that variable in your own code instead"
            )
