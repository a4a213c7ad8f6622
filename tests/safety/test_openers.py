"""Openers and fillers are distinguished from texts with content."""

from collections.abc import Iterator

import pytest

from jurygraph.safety import addresses, openers
from jurygraph.safety.openers import is_bare_opener, is_empty_talk
from tests.rows import all_rows


@all_rows(
    ("text", "nothing"),
    [
        ("yes yes yes", True),
        ("yes yes", False),
        ("42 42 42", False),
        ("<b>solution:</b>", True),
        ("as requested.", True),
        ("as requested: paris", False),
        ("", True),
        ("?!", True),
    ],
)
def test_openers_fillers_and_a_repeated_word_are_empty_talk(text: str, nothing: bool) -> None:
    assert is_empty_talk(text) == nothing


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(openers, "_MEMORY", 1 << 23)
    monkeypatch.setattr(addresses._OPTIONS, "max_mem", 1 << 23)
    compiled = (openers._patterns, addresses._any_sign, addresses._sign_set)
    for patterns in compiled:
        patterns.cache_clear()
    yield
    for patterns in compiled:
        patterns.cache_clear()


@pytest.mark.usefixtures("little_memory")
def test_a_search_over_the_memory_limit_is_slower_and_logs_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = "the answer is as follows, so let us think about it step by step: " * 20
    assert is_bare_opener("answer: " * 100)
    assert not is_bare_opener(text + "18")
    assert is_empty_talk("as requested. here is the answer: " * 5)
    assert not is_empty_talk(text + "18")
    assert [one.sign for one in addresses.find_signs(b"ignore all of it. " * 3)] == ["forget"] * 3
    assert capfd.readouterr() == ("", "")
