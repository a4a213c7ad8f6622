"""Secrets are redacted in whatever form they are written."""

import base64
import html
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.safety.redaction import Redactor, is_possible_source
from tests.rows import all_rows

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
        "hex, with colons": raw.hex(":"),
        "html": html.escape(secret),
        "quoted twice": quote(quote(secret, safe=""), safe=""),
    }


def echoes(secret: str) -> dict[str, str]:
    """Return a distinctive secret in the forms in which servers and careless code write it."""
    return {
        "upper": secret.upper(),
        "lower": secret.lower(),
        "reversed": secret[::-1],
        "reversed, upper": secret[::-1].upper(),
        **{f"spaced by {by!r}": by.join(secret) for by in (" ", "-", ".", "\n", "\u200b", "\u2060", " - ", "_")},
        "spaced by newlines, in json": json.dumps("\n".join(secret))[1:-1],
        "spaced by zero-width characters, in json": json.dumps("\u200b".join(secret))[1:-1],
        "in two lines": f"{secret[:9]}\n    {secret[9:]}",
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


def base64_contains(text: str, raw: bytes) -> bool:
    """Return True if base64 in a text reveals these bytes, at any alignment of its groups of four."""
    runs = unquote(text).replace("-", "+").replace("_", "/").split("[redacted]")
    return any(raw in base64.b64decode(groups) for groups in whole_groups(runs, 4))


def whole_groups(runs: Iterable[str], size: int) -> Iterator[str]:
    """Yield each run as whole groups of so many letters, from wherever its first group may begin."""
    for letters in (run.rstrip("=") for run in runs):
        for start in range(size):
            yield letters[start : start + (len(letters) - start) // size * size]


@all_rows("form", forms(SECRET))
def test_a_secret_is_redacted_in_every_form(form: str) -> None:
    written = forms(SECRET)[form]
    assert Redactor([SECRET]).redact_text(f"key: {written}; end") == "key: [redacted]; end"


@given(anything, secrets, anything)
def test_every_form_of_a_secret_is_redacted_at_any_position(before: str, secret: str, after: str) -> None:
    redactor = Redactor([secret])
    for form, written in forms(secret).items():
        assert written not in redactor.redact_text(before + written + after), form


@given(st.text(max_size=7), secrets, st.text(max_size=7))
def test_a_secret_in_base64_is_redacted_in_any_context(before: str, secret: str, after: str) -> None:
    redactor = Redactor([secret])
    for form, written in encoded(secret, before, after).items():
        left = redactor.redact_text(written)
        assert "[redacted]" in left, form
        assert not base64_contains(left, secret.encode()), form


@all_rows(("encode", "bits"), [(base64.b64encode, 6), (base64.urlsafe_b64encode, 6), (base64.b32encode, 5)])
@all_rows("behind", range(6))
@all_rows("before", range(6))
def test_exactly_the_encoded_characters_of_a_secret_are_redacted(
    encode: Callable[[bytes], bytes], bits: int, before: int, behind: int
) -> None:
    code = encode(b"<" * before + PLAIN.encode() + b">" * behind).decode()
    first, end = 8 * before // bits, -(-8 * (before + len(PLAIN)) // bits)
    expected = f"{code[:first]}[redacted]{code[end:].lstrip('=') if behind == 0 else code[end:]}"
    assert Redactor([PLAIN]).redact_text(f"{code} and so on") == f"{expected} and so on"


@pytest.mark.parametrize("before", ["", ".", "a.", ": "])
def test_base64_that_begins_within_a_secret_is_redacted_alone(before: str) -> None:
    code = base64.b64encode(b"<" + PLAIN.encode() + b">>>").decode()
    for cut in (1, 2):  # with the character that is shared with what stood before, and without it
        assert Redactor([PLAIN]).redact_text(f"{before}{code[cut:]}") == f"{before}[redacted]Pj4+"


def test_a_secret_with_few_letters_in_its_base64_is_redacted() -> None:
    secret = "a?bc?de?"
    code = base64.b64encode(b"<" + secret.encode()).decode()
    assert code == "PGE/YmM/ZGU/"
    assert Redactor([secret]).redact_text(code).startswith("P[redacted]")


def test_a_secret_inside_the_base64_of_another_is_redacted_with_it() -> None:
    secret = "0123456789abcdef"
    code = base64.b64encode(f"<{secret}>".encode()).decode()
    assert code == "PDAxMjM0NTY3ODlhYmNkZWY+"
    assert Redactor([secret, code[2:-2]]).redact_text(code) == "P[redacted]+"
    assert Redactor([code[2:-2], secret]).redact_text(code) == "P[redacted]+"


def test_basic_auth_is_redacted() -> None:
    header = "Basic " + base64.b64encode(f"user:{PLAIN}".encode()).decode()
    assert Redactor([PLAIN]).redact_text(header) == "Basic dXNlcj[redacted]"  # which is `user:`


@given(st.lists(keys, min_size=1, max_size=6), st.data())
def test_many_secrets_are_redacted_at_once(secrets: list[str], data: st.DataObject) -> None:
    shown = data.draw(st.lists(st.sampled_from(secrets), min_size=1, max_size=8))
    left = Redactor(secrets).redact_text(" | ".join(shown))
    assert left == " | ".join(["[redacted]"] * len(shown))


def test_the_longer_of_nested_secrets_is_redacted() -> None:
    redactor = Redactor([PLAIN, f"{PLAIN}-more", f"x{PLAIN}"])
    assert redactor.redact_text(f"{PLAIN}-more {PLAIN} x{PLAIN}-more") == "[redacted] [redacted] [redacted]-more"


def test_a_private_key_of_many_lines_is_redacted() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join("c2VjcmV0" * 8 for _ in range(40)) + "\n-----END PRIVATE KEY-----"
    assert Redactor([key]).redact_text(json.dumps({"key": key})) == '{"key": "[redacted]"}'


def test_text_without_a_secret_is_unchanged() -> None:
    text = 'The answer is 42 – {"a": "b\\n"} %20 c2stY2FuYXJ5 \ud800'
    assert Redactor([PLAIN]).redact_text(text) == text
    assert Redactor([]).redact_text(text) == text


def test_short_values_are_no_secrets() -> None:
    assert Redactor(["", "gpt", "1234567"]).redact_text("gpt 1234567") == "gpt 1234567"


def test_a_value_is_redacted_in_its_strings_and_names() -> None:
    value = {PLAIN: [1, None, True, 0.5, f"a {PLAIN}", {"b": PLAIN}]}
    assert Redactor([PLAIN]).redact_json(value) == {
        "[redacted]": [1, None, True, 0.5, "a [redacted]", {"b": "[redacted]"}]
    }


@all_rows("form", echoes(PLAIN))
def test_an_echoed_secret_is_redacted(form: str) -> None:
    assert Redactor([PLAIN]).redact_text(f"key: {echoes(PLAIN)[form]}; end") == "key: [redacted]; end"


@given(st.binary(max_size=9), secrets, st.binary(max_size=9))
def test_a_secret_in_base32_is_redacted_in_any_context(before: bytes, secret: str, after: bytes) -> None:
    raw = secret.encode()
    encoded32 = base64.b32encode(before + raw + after).decode()
    for written in (encoded32, encoded32.lower(), encoded32.rstrip("=")):
        left = Redactor([secret]).redact_text(written)
        assert "[redacted]" in left
        assert not base32_contains(left, raw)


def base32_contains(text: str, raw: bytes) -> bool:
    """Return True if base32 in a text reveals these bytes, at any alignment of its groups of eight."""
    return any(raw in base64.b32decode(groups) for groups in whole_groups(text.upper().split("[REDACTED]"), 8))


@given(st.lists(secrets | keys, min_size=1, max_size=3), st.data())
def test_redacting_twice_equals_redacting_once(known: list[str], data: st.DataObject) -> None:
    pieces = st.sampled_from([*known, *(one[::-1] for one in known), "[redacted]", "\\", "%41", " "]) | anything
    text = "".join(data.draw(st.lists(pieces, max_size=6)))
    redactor = Redactor(known)
    once = redactor.redact_text(text)
    assert redactor.redact_text(once) == once
    assert not redactor.has_secret_in(once)


@given(st.lists(secrets | keys, min_size=1, max_size=3), st.data())
def test_a_secret_is_found_in_json_exactly_where_a_field_holds_one(known: list[str], data: st.DataObject) -> None:
    redactor = Redactor(known)
    field = data.draw(anything) + data.draw(st.sampled_from(known)) + data.draw(anything)
    for ascii_alone in (True, False):
        assert redactor.has_secret_in(
            json.dumps({"reason": field}, ensure_ascii=ascii_alone).encode("utf-8", "surrogatepass")
        )


def test_no_match_spans_an_earlier_redaction() -> None:
    text = f"{PLAIN[:9]}[redacted]{PLAIN[9:]}"
    assert Redactor([PLAIN]).redact_text(text) == text


@pytest.mark.parametrize("simple", ["monkeybars", "aaaaaaaa1111", "99999999"])
def test_a_simple_secret_is_redacted_only_as_written(simple: str) -> None:
    redactor = Redactor([simple])
    assert redactor.redact_text(f"it is {simple}") == "it is [redacted]"
    assert redactor.redact_text(simple.encode().hex()) == "[redacted]"
    ordinary = f"{simple[:6]} {simple[6:]}, {simple.title()}s, {simple[::-1]}x"
    assert redactor.redact_text(ordinary.replace(simple, "")) == ordinary.replace(simple, "")


def test_adjacent_words_are_not_a_secret() -> None:
    text = "Monkey bars. 2026-11-22, 10:45: room 12, 34 euros; a test, 1234; the password is required."
    assert Redactor(["monkeybars", "20261122"]).redact_text(text) == text


@all_rows(
    ("secret", "distinctive"),
    [
        *(("abcd1234", True), ("a-b-c-d-123", False)),
        *(("abcd1111", True), ("abc11111", False)),
        *(("123451234512", True), ("12345123451", False)),
        *(("abcdeabcdeab", True), ("abcdeabcdea", False)),
    ],
)
def test_a_secret_is_redacted_in_reverse_unless_it_is_simple(secret: str, distinctive: bool) -> None:
    """It needs 8 letters and digits, 5 different ones, and both of them or 12 of one kind."""
    text = secret[::-1]
    assert Redactor([secret]).redact_text(f"it is {text}") == ("it is [redacted]" if distinctive else f"it is {text}")


def test_hundreds_of_secrets_and_whole_private_keys_are_found_in_one_search() -> None:
    known = [f"sk-{number:04d}-{number * 7919:x}-abcdefghijklmnopqrstuvw" for number in range(300)]
    body = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB" for _ in range(26))
    known += [f"-----BEGIN PRIVATE KEY-----\n{number:048d}\n{body}\n-----END PRIVATE KEY-----" for number in range(20)]
    redactor = Redactor(known)
    text = "The response names the hotel and its price. " * 10_000
    assert redactor.redact_text(text) == text
    assert redactor.redact_text(f"{known[-1]} {known[7].upper()} {text}") == f"[redacted] [redacted] {text}"


@all_rows("letter", "bfnrtuxU0")
def test_a_backslash_before_a_letter_of_an_escape_hides_nothing(letter: str) -> None:
    secret = f'a1B2c3D4e"ä\\{letter}00e41f2g3H4'
    redactor = Redactor([secret])
    for written in (secret, secret.lower(), " ".join(secret)):
        for text in (written, json.dumps(written)[1:-1], json.dumps(json.dumps(written))[3:-3], quote(written)):
            assert redactor.redact_text(f"<{text}>") == "<[redacted]>"


def test_a_long_secret_of_signs_is_redacted_without_a_large_pattern() -> None:
    secret = "".join(random.Random(0).choices("!#%()*+-/:;<=>?", k=100_000))
    redactor = Redactor([secret])
    assert redactor.redact_text(f"it is {secret}.") == "it is [redacted]."


def test_a_pattern_that_is_too_large_is_refused_without_showing_a_secret(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("jurygraph.safety.redaction._MEMORY", 1 << 10)
    with pytest.raises(Exception, match="too large") as error:
        Redactor([PLAIN * 100])
    assert PLAIN not in "".join((str(error.value), *capfd.readouterr()))


def test_adjacent_secrets_are_redacted_one_by_one_without_the_text_around_them() -> None:
    assert Redactor([PLAIN, SECRET]).redact_text(f"x{PLAIN}{SECRET}y") == "x[redacted][redacted]y"


def test_a_text_may_contain_half_a_character_next_to_a_secret() -> None:
    redactor = Redactor([PLAIN])
    for half in ("\ud800", "\\ud800"):
        assert redactor.has_secret_in(f"{half} {PLAIN}")
        assert redactor.redact_text(f"{half} {PLAIN}") == f"{half} [redacted]"
        assert redactor.redact_text(half) == half


@pytest.mark.parametrize("between", ["%ff", "\\xff", "&#1114112;", "&#x110000;", "\\U00110000", "&nbsp;"])
def test_an_invalid_escape_hides_no_secret(between: str) -> None:
    redactor = Redactor([PLAIN])
    assert redactor.redact_text(f"{PLAIN[:9]}{between}{PLAIN[9:]}") == "[redacted]"
    assert redactor.redact_text(f"a{between}b") == f"a{between}b"


def nested_json(text: str, times: int) -> str:
    return text if times == 0 else nested_json(json.dumps(text)[1:-1], times - 1)


@all_rows(
    "write",
    [
        lambda secret: quote(json.dumps(secret)[1:-1]),
        lambda secret: quote(repr(secret.encode())[2:-1]),
        lambda secret: nested_json(secret, 6),
        lambda secret: nested_json(repr(secret.encode())[2:-1], 6),
    ],
)
@all_rows("secret", ["ääääääää", "😀😀😀😀😀😀😀😀", "monkeybars"])
def test_a_simple_secret_is_redacted_however_its_escapes_are_escaped(secret: str, write: Callable[[str], str]) -> None:
    assert Redactor([secret]).redact_text(f"it is {write(secret)}.") == "it is [redacted]."


def test_a_backslash_before_a_simple_secret_stays() -> None:
    assert Redactor(["monkeybars"]).redact_text("C:\\monkeybars") == "C:\\[redacted]"


def test_has_secrets_is_true_if_a_secret_is_known() -> None:
    assert Redactor(["sk-0123456789abcdef"]).has_secrets
    assert not Redactor(["short"]).has_secrets


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


def test_base64_cut_within_the_last_character_of_a_secret_is_redacted_to_its_end() -> None:
    secret = "sk-0123456789abcdef"
    code = base64.b64encode(secret.encode()).decode().rstrip("=")
    for shown in (code, code[:-1]):
        assert Redactor([secret]).redact_text(f"code {shown}") == "code [redacted]"


def test_a_simple_secret_may_hold_half_a_character() -> None:
    assert Redactor(["aaaaaaaa\ud800"]).redact_text("it is aaaaaaaa\ud800.") == "it is [redacted]."


@pytest.mark.parametrize("write", ["&#{code:d};", "&#x{code:x};", "%{code:02x}", "\\u{code:04x}", "\\x{code:02x}"])
def test_a_distinctive_secret_is_redacted_however_its_characters_are_escaped(write: str) -> None:
    secret = "sk-0123456789abcdef"
    assert Redactor([secret]).redact_text("".join(write.format(code=ord(char)) for char in secret)) == "[redacted]"
