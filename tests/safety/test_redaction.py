"""Secrets are redacted as they are written, and in the encodings that requests, replies and logs hold them in."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.safety.redaction import Redactor, is_possible_source
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
    assert Redactor([SECRET]).has_secret_in(f"the key {written}.".encode())


@given(anything, secrets, anything)
def test_every_form_of_a_secret_is_redacted_at_any_position(before: str, secret: str, after: str) -> None:
    redactor = Redactor([secret])
    for form in forms(secret).values():
        assert form not in redactor.redact_text(before + form + after)
        assert redactor.has_secret_in(before + form + after)


@given(st.binary(max_size=7), secrets, st.binary(max_size=7))
def test_a_secret_in_base64_is_redacted_in_any_context(before: bytes, secret: str, after: bytes) -> None:
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
        assert Redactor([secret]).redact_text(encoded) == base64.b64encode(before).decode() + "[redacted]"


@given(st.lists(secrets, min_size=1, max_size=3), st.data())
def test_redacting_twice_equals_redacting_once(known: list[str], data: st.DataObject) -> None:
    pieces = st.sampled_from([*known, " "]) | anything
    text = "".join(data.draw(st.lists(pieces, max_size=6)))
    redactor = Redactor(known)
    once = redactor.redact_text(text)
    assert redactor.redact_text(once) == once


def test_the_longer_of_nested_secrets_is_redacted() -> None:
    redactor = Redactor(["sk-canary", "sk-canary-0123456789"])
    assert redactor.redact_text("sk-canary-0123456789, sk-canary") == "[redacted], [redacted]"


def test_a_private_key_of_many_lines_is_redacted() -> None:
    key = "-----BEGIN KEY-----\nabcdefgh12345678\nijklmnop87654321\n-----END KEY-----"
    assert Redactor([key]).redact_text(f"{key}\n{json.dumps(key)}") == '[redacted]\n"[redacted]"'


def test_text_without_a_secret_is_unchanged() -> None:
    for redactor in (Redactor([]), Redactor(["sk-canary"])):
        assert redactor.redact_text("nothing here") == "nothing here"
        assert not redactor.has_secret_in("nothing here")


def test_short_values_are_no_secrets() -> None:
    assert not Redactor(["1234567"]).has_secrets
    assert Redactor(["12345678"]).has_secrets


def test_a_value_is_redacted_in_its_strings_and_names() -> None:
    value = {"sk-canary": ["sk-canary", 1, None, {"a": "x sk-canary"}]}
    assert Redactor(["sk-canary"]).redact_json(value) == {"[redacted]": ["[redacted]", 1, None, {"a": "x [redacted]"}]}


pieces = st.text("ab ", max_size=3)


@given(st.lists(pieces, min_size=2, max_size=4), st.data())
def test_a_redacted_text_matches_its_possible_originals(parts: list[str], data: st.DataObject) -> None:
    between = [data.draw(pieces) for _ in parts[1:]]
    text = parts[0] + "".join(secret + part for secret, part in zip(between, parts[1:], strict=True))
    assert is_possible_source("[redacted]".join(parts), text)


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
    assert not is_possible_source(redacted, text)
