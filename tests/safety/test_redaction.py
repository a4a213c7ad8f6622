"""Secrets do not reach a record, in whatever form they stand."""

import base64
import json
import re
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.safety.redaction import Redactor, found_in

SECRET = 'sk-canary/+ "ä\\1'
PLAIN = "sk-canary-0123456789"

anything = st.text(st.characters(codec=None), max_size=40)  # half characters too
secrets = st.text(st.characters(codec="utf-8"), min_size=8, max_size=40)
keys = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=", min_size=8, max_size=60)


def lower_hex(quoted: str) -> str:
    return re.sub("%..", lambda found: found[0].lower(), quoted)


def forms(secret: str) -> dict[str, str]:
    raw = secret.encode()
    return {
        "as it is": secret,
        "quote": quote(secret),
        "quote, all": quote(secret, safe=""),
        "quote, lower": lower_hex(quote(secret, safe="")),
        "quote_plus": quote_plus(secret),
        "quote_plus, lower": lower_hex(quote_plus(secret)),
        "json": json.dumps(secret)[1:-1],
        "json, not ascii": json.dumps(secret, ensure_ascii=False)[1:-1],
        "json in json": json.dumps(json.dumps(secret)[1:-1])[1:-1],
        "json, slash": json.dumps(secret)[1:-1].replace("/", "\\/"),
        "hex": raw.hex(),
        "hex, upper": raw.hex().upper(),
    }


def encoded(secret: str, before: str, after: str) -> dict[str, str]:
    raw = (before + secret + after).encode()
    plain = base64.b64encode(raw).decode()
    return {
        "base64": plain,
        "base64, no padding": plain.rstrip("="),
        "base64url": base64.urlsafe_b64encode(raw).decode(),
        "base64, quoted": quote(plain, safe=""),
    }


def holds(text: str, raw: bytes) -> bool:
    """Whether base64 that stands in a text gives these bytes away, wherever its groups of four begin."""
    for run in unquote(text).replace("-", "+").replace("_", "/").split("[redacted]"):
        letters = run.rstrip("=")
        for start in range(4):
            whole = letters[start : start + (len(letters) - start) // 4 * 4]
            if raw in base64.b64decode(whole):
                return True
    return False


@pytest.mark.parametrize("form", forms(SECRET))
def test_a_secret_is_struck_out_in_every_form(form: str) -> None:
    written = forms(SECRET)[form]
    assert Redactor([SECRET]).text(f"key: {written}; end") == "key: [redacted]; end"


@given(anything, secrets, anything)
def test_no_form_of_a_secret_is_left_wherever_it_stands(before: str, secret: str, after: str) -> None:
    redactor = Redactor([secret])
    for form, written in forms(secret).items():
        assert written not in redactor.text(before + written + after), form


@given(st.text(max_size=7), secrets, st.text(max_size=7))
def test_no_base64_gives_a_secret_away_whatever_stands_around_it(before: str, secret: str, after: str) -> None:
    redactor = Redactor([secret])
    for form, written in encoded(secret, before, after).items():
        left = redactor.text(written)
        assert "[redacted]" in left, form
        assert not holds(left, secret.encode()), form


def test_basic_auth_is_struck_out() -> None:
    header = "Basic " + base64.b64encode(f"user:{PLAIN}".encode()).decode()
    assert Redactor([PLAIN]).text(header) == "Basic dXNlcj[redacted]"  # which is `user:`


@given(st.lists(keys, min_size=1, max_size=6), st.data())
def test_many_secrets_are_struck_out_at_once(secrets: list[str], data: st.DataObject) -> None:
    shown = data.draw(st.lists(st.sampled_from(secrets), min_size=1, max_size=8))
    left = Redactor(secrets).text(" | ".join(shown))
    assert left == " | ".join(["[redacted]"] * len(shown))


def test_of_secrets_that_contain_each_other_the_longer_is_struck_out() -> None:
    redactor = Redactor([PLAIN, f"{PLAIN}-more", f"x{PLAIN}"])
    assert redactor.text(f"{PLAIN}-more {PLAIN} x{PLAIN}-more") == "[redacted] [redacted] [redacted]-more"


def test_a_private_key_of_many_lines_is_struck_out() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join("c2VjcmV0" * 8 for _ in range(40)) + "\n-----END PRIVATE KEY-----"
    assert Redactor([key]).text(json.dumps({"key": key})) == '{"key": "[redacted]"}'


def test_what_is_no_secret_stays() -> None:
    text = 'The answer is 42 – {"a": "b\\n"} %20 c2stY2FuYXJ5 \ud800'
    assert Redactor([PLAIN]).text(text) == text
    assert Redactor([]).text(text) == text


def test_short_values_are_no_secrets() -> None:
    assert Redactor(["", "gpt", "1234567"]).text("gpt 1234567") == "gpt 1234567"


def test_a_value_is_redacted_in_its_strings_and_names() -> None:
    value = {PLAIN: [1, None, True, 0.5, f"a {PLAIN}", {"b": PLAIN}]}
    assert Redactor([PLAIN]).value(value) == {"[redacted]": [1, None, True, 0.5, "a [redacted]", {"b": "[redacted]"}]}


def test_an_exception_is_told_with_what_led_to_it() -> None:
    try:
        try:
            raise OSError(f"https://user:{quote(SECRET, safe='')}@host is not there")
        except OSError as error:
            raise ValueError(f"no answer to {SECRET!r}") from error
    except ValueError as error:
        said = Redactor([SECRET]).exception(error)
    assert (
        said == "ValueError: no answer to '[redacted]'\nbecause of OSError: https://user:[redacted]@host is not there"
    )


def test_an_exception_that_hides_what_led_to_it_is_told_alone() -> None:
    error = ValueError("second")
    error.__context__ = OSError("first")
    assert Redactor([]).exception(error) == "ValueError: second\nbecause of OSError: first"
    error.__suppress_context__ = True
    assert Redactor([]).exception(error) == "ValueError: second"


def test_an_exception_that_led_to_itself_is_told_once() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert Redactor([]).exception(first) == "ValueError: first\nbecause of ValueError: second"


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "WATSONX_APIKEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "APP_SECRET", "PGPASSWORD"),
        *("my_api_key", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "GIGACHAT_CREDENTIALS", "SNOWFLAKE_JWT"),
    ],
)
def test_a_variable_that_is_named_like_a_secret_holds_one(name: str) -> None:
    assert found_in({name: f" {PLAIN}\n", "HOME": "/home/somebody"}) == [PLAIN]


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "KEYRING_BACKEND", "MONKEYS", "PASSWORDLESS", "HOME"])
def test_one_that_has_such_a_word_within_another_holds_none(name: str) -> None:
    assert found_in({name: PLAIN}) == []


@pytest.mark.parametrize("name", ["AZURE_API_BASE", "OPENAI_BASE_URL", "MY_ENDPOINT", "OLLAMA_HOST", "SENTRY_DSN"])
def test_the_password_of_a_server_is_a_secret(name: str) -> None:
    assert found_in({name: "https://me:hunter22@judge/v1"}) == ["hunter22"]


def test_the_password_of_an_address_is_a_secret_as_it_stands_and_as_it_is_meant() -> None:
    found = found_in({"https_proxy": "http://me:p%40ssword@proxy:8080", "DATABASE_URL": "postgres://me:hunter22@db/x"})
    assert sorted(found) == ["hunter22", "p%40ssword", "p@ssword"]


@pytest.mark.parametrize(
    "address", ["http://proxy:8080", "http://me@proxy", "http://[::1", "", "http://me:short@proxy"]
)
def test_an_address_without_a_password_holds_no_secret(address: str) -> None:
    assert found_in({"HTTP_PROXY": address}) == []


def test_short_values_of_variables_are_left_out_and_equal_ones_told_once() -> None:
    assert found_in({"A_KEY": "enter", "B_KEY": PLAIN, "C_TOKEN": PLAIN}) == [PLAIN]
