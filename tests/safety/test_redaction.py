"""Secrets are found among environment variables by their names, and redacted in every encoding of requests and logs."""

import base64
import json
import os
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import ConfigError, InputError
from jurygraph.safety.redaction import (
    LazyRedactor,
    Redactor,
    find_secrets,
    is_placeholder,
    make_process_redactor,
    matches_redacted_text,
    redact_errors,
    refuse_secrets_in_config,
)
from jurygraph.schema import Config
from tests.rows import all_rows

SECRET = 'sk-canary/+ "ä\\1'

anything = st.text(st.characters(codec=None), max_size=40)  # half characters too
secrets = st.text(st.characters(codec="utf-8"), min_size=8, max_size=40)


def forms(secret: str) -> dict[str, str]:
    return {
        "as it is": secret,
        "quote": quote(secret),
        "quote, all": quote(secret, safe=""),
        "quote_plus": quote_plus(secret),
        "json": json.dumps(secret)[1:-1],
        "json, not ascii": json.dumps(secret, ensure_ascii=False)[1:-1],
        "json in json": json.dumps(json.dumps(secret)[1:-1])[1:-1],
    }


@all_rows("form", forms(SECRET))
def test_a_secret_is_redacted_in_every_form(form: str) -> None:
    written = forms(SECRET)[form]
    assert Redactor([SECRET]).redact_text(f"the key {written}.") == "the key [redacted]."
    assert Redactor([SECRET]).has_secret_in(f"the key {written}.")


def test_a_secret_with_half_a_character_is_redacted() -> None:
    """As an environment that is no UTF-8 gives it."""
    assert (
        Redactor([f"{SECRET}\udcff"]).redact_text(f"the key {SECRET}\udcff.")
        == "the key [redacted]."
    )


@given(anything, secrets, anything)
def test_every_form_of_a_secret_is_redacted_at_any_position(
    before: str, secret: str, after: str
) -> None:
    redactor = Redactor([secret])
    for form in forms(secret).values():
        assert form not in redactor.redact_text(before + form + after)
        assert redactor.has_secret_in(before + form + after)


@given(st.binary(max_size=7), secrets, st.binary(max_size=7))
def test_a_secret_in_base64_is_redacted_in_any_context(
    before: bytes, secret: str, after: bytes
) -> None:
    redactor = Redactor([secret])
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(before + secret.encode() + after).decode()
        assert redactor.has_secret_in(encoded)
        assert not redactor.has_secret_in(redactor.redact_text(encoded))


def test_nothing_of_a_secret_in_base64_is_left_where_it_fills_its_letters() -> None:
    secret = "sk-canary-0123456789-0123456789-0123"
    assert len(secret) % 3 == 0
    for before in (b"", b"abc"):
        encoded = base64.b64encode(before + secret.encode()).decode()
        assert (
            Redactor([secret]).redact_text(encoded)
            == base64.b64encode(before).decode() + "[redacted]"
        )


def test_the_longer_of_nested_secrets_is_redacted() -> None:
    redactor = Redactor(["sk-canary", "sk-canary-0123456789"])
    assert redactor.redact_text("sk-canary-0123456789, sk-canary") == "[redacted], [redacted]"


def test_a_value_is_redacted_in_its_strings_and_names() -> None:
    value = {"sk-canary": ["sk-canary", 1, None, {"a": "x sk-canary"}]}
    assert Redactor(["sk-canary"]).redact_json(value) == {
        "[redacted]": ["[redacted]", 1, None, {"a": "x [redacted]"}]
    }


pieces = st.text("ab ", max_size=3)


@given(st.lists(pieces, min_size=2, max_size=4), st.data())
def test_a_redacted_text_matches_its_possible_originals(
    parts: list[str], data: st.DataObject
) -> None:
    between = [data.draw(pieces) for _ in parts[1:]]
    text = parts[0] + "".join(
        secret + part for secret, part in zip(between, parts[1:], strict=True)
    )
    assert matches_redacted_text("[redacted]".join(parts), text)


@pytest.mark.parametrize(
    ("redacted", "text"),
    [
        ("the key", "the key"),
        ("the [redacted]", "a key"),
        ("[redacted] key", "the kex"),
        ("a[redacted]b[redacted]c", "axyzc"),
        ("a[redacted]b[redacted]b", "axb"),
        ("ab[redacted]bc", "abc"),
        ("a[redacted]b[redacted]c[redacted]d", "a c b d"),
    ],
)
def test_a_redacted_text_does_not_match_another(redacted: str, text: str) -> None:
    assert not matches_redacted_text(redacted, text)


# Which values are secrets

PLAIN = "sk-canary-0123456789"


@all_rows(
    "name",
    [
        *(
            "OPENAI_API_KEY",
            "WATSONX_APIKEY",
            "AWS_SECRET_ACCESS_KEY",
            "HF_TOKEN",
            "PGPASSWORD",
            "my_api_key",
        ),
        *(
            "AWS_BEARER_TOKEN_BEDROCK",
            "GIGACHAT_CREDENTIALS",
            "SNOWFLAKE_JWT",
            "OPENAI_API_KEY_2",
            "API_KEY2",
        ),
        *("DB_PASSWORD1", "SMTP_PASS", "DB_PWD", "SSH_PASSPHRASE"),
    ],
)
def test_a_variable_that_is_named_like_a_secret_holds_one(name: str) -> None:
    assert find_secrets({name: f" {PLAIN}\n", "HOME": "/home/somebody"}) == [PLAIN]


@all_rows(
    "name",
    ["TOKENIZERS_PARALLELISM", "KEYRING_BACKEND", "MONKEYS", "HOME", "SSH_KEY_PATH", "TOKEN_FILE"],
)
def test_a_name_with_such_a_word_inside_another_word_is_no_secret(name: str) -> None:
    assert find_secrets({name: PLAIN}) == []


@pytest.mark.parametrize(
    ("name", "address", "expected"),
    [
        ("OPENAI_BASE_URL", "https://me:hunter22@judge/v1", ["hunter22"]),
        ("https_proxy", "http://me:p%40ssword@proxy:8080", ["p%40ssword", "p@ssword"]),
        ("HTTP_PROXY", "http://me@proxy", []),
        ("HTTP_PROXY", "http://[::1", []),
        ("HTTP_PROXY", "http://me:short@proxy", []),
    ],
)
def test_the_password_in_an_address_is_a_secret(
    name: str, address: str, expected: list[str]
) -> None:
    assert find_secrets({name: address}) == expected


@all_rows(
    "value",
    [
        "password",
        "change-me",
        "disabled",
        "created_at_time",
        "not-needed",
        "sk-xxxxxxxx",
        "20261122",
        "",
        "********",
    ],
)
def test_words_and_dates_are_no_secrets(value: str) -> None:
    assert is_placeholder(value)
    assert find_secrets({"MY_API_KEY": value}) == []


@all_rows(
    "value",
    ["hunter22", "abcdefghijklmnop", "correct-horse-battery-staple", "Tr0ub4dor", "493817205561"],
)
def test_anything_else_is_a_secret(value: str) -> None:
    assert not is_placeholder(value)


def test_the_redactor_of_the_process_is_built_once_and_knows_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CANARY_API_KEY", PLAIN)
    redactor = make_process_redactor()
    assert make_process_redactor() is redactor
    assert redactor.redact_text(f"401 {PLAIN}") == "401 [redacted]"
    monkeypatch.setitem(os.environ, "CANARY_API_KEY", "another-9876543210")
    assert make_process_redactor().redact_text("another-9876543210") == "[redacted]"


def test_a_lazy_redactor_knows_the_environment_of_its_first_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redactor = LazyRedactor(["given-0123456789"])
    monkeypatch.setenv("CANARY_API_KEY", PLAIN)
    assert redactor.redact_text(f"{PLAIN} given-0123456789") == "[redacted] [redacted]"
    monkeypatch.delenv("CANARY_API_KEY")
    assert redactor.has_secret_in(PLAIN)


def test_only_jurygraphs_own_errors_are_redacted() -> None:
    with pytest.raises(InputError) as ours, redact_errors([PLAIN]):
        raise InputError(f"a line says {PLAIN}", 7)
    assert ours.value.args == ("a line says [redacted]", 7)
    with pytest.raises(ValueError, match=PLAIN), redact_errors([PLAIN]):
        raise ValueError(PLAIN)


def test_a_secret_in_a_config_is_found_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", PLAIN)
    for params, place in (
        ({"keys": ["plain", {"inner": PLAIN}]}, "evaluators[0].params.keys[1].inner"),
        ({"keys": {PLAIN: 1}}, "evaluators[0].params.keys"),
    ):
        config = Config.model_validate(
            {"evaluators": [{"use": "maths.accuracy", "params": params}]}
        )
        with pytest.raises(
            ConfigError, match=f"^{re.escape(place)}: holds the secret of SOME_API_KEY"
        ):
            refuse_secrets_in_config(config)
