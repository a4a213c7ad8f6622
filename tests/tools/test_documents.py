import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.schema import ChatMessage, Response
from jurygraph.tools.documents import MAX_READ_LINES, TextDocument
from jurygraph.tools.tool import ToolError

_TEXTS = st.lists(st.text("ab \t\r\u2028é|[", max_size=30) | st.integers(1, 9000).map("x".__mul__))


def read_all(document: TextDocument) -> list[tuple[int, int, str]]:
    """Return all rows of a document, read part by part: line, offset and words."""
    rows = []
    position = {"from_line": 1}
    while position:
        result = document.read(**position)
        assert len(result) <= 8_000
        lines = result.split("\n")
        for line in lines[1:-1]:
            match = re.fullmatch(r"(\d+)(?:\+(\d+))?\| (.*)", line, re.DOTALL)
            if match:
                rows.append((int(match[1]), int(match[2] or 0), match[3]))
        position = {name: int(value) for name, value in re.findall(r"(from_\w+)=(\d+)", lines[-1])}
    return rows


@given(_TEXTS)
def test_reading_on_gives_every_character_once(lines: list[str]) -> None:
    text = "\n".join(lines)
    words: dict[int, str] = {}
    for line, offset, piece in read_all(TextDocument(text)):
        assert len(words.get(line, "")) == offset
        words[line] = words.get(line, "") + piece
    assert list(words) == list(range(1, len(words) + 1))
    assert "\n".join(words.values()) == text


@given(_TEXTS, st.integers(0, 40))
def test_search_finds_each_line_with_the_words(lines: list[str], position: int) -> None:
    lines.insert(min(position, len(lines)), "12 The  Needle\t is")
    document = TextDocument("\n".join(lines))
    result = document.search("the needle IS")
    assert "| 12 The  Needle\t is" in result
    assert result.startswith(f"[matches 1 to 1 of 1, in line {min(position, len(lines) - 1) + 1}]")
    assert len(result) <= 8_000


def test_matches_are_counted_and_searched_on() -> None:
    document = TextDocument("\n".join(f"line {n} of a log" + " wide" * 500 for n in range(90)))
    first = document.search("A LOG")
    assert first.startswith("[matches 1 to 16 of 90, in line 1, 2, 3")
    assert first.endswith("[74 more: search on with first_match=17]")
    assert "| line 89" in document.search("a log", first_match=81)
    # the words are not repeated
    assert document.search("nothing of the kind") == "[no match in 90 lines]"
    for words, number in [("log", 91), ("  ", 1)]:
        with pytest.raises(ToolError):
            document.search(words, number)
    for line, character in [(91, 0), (1, 9999)]:
        with pytest.raises(ToolError):
            document.read(line, from_character=character)
    with pytest.raises(ToolError, match="exchange"):
        document.read(5, 4)


def test_in_a_long_line_each_match_is_shown_with_its_offset() -> None:
    document = TextDocument("x" * 5000 + "needle" + "y" * 5000 + "needle")
    result = document.search("needle")
    assert result.startswith("[matches 1 to 2 of 2, in line 1]\n1+4920| x")
    assert "\n1+9926| y" in result


def _conversation(turns: int) -> Response:
    messages = [ChatMessage(role="user", content="Find it.\n" * 30)]
    for number in range(turns):
        role = "user" if number % 2 else "assistant"
        messages.append(ChatMessage(role=role, content=f"reply {number}\n" + "words\n" * 200))
    return Response(id="r", messages=messages)


def test_results_and_outlines_name_the_message() -> None:
    text = _conversation(100).text
    found = TextDocument.from_text(text).search("reply 41")
    assert re.search(r"\n\d+\| \[42\] user:\n\d+\| reply 41\n\d+\| words", found)
    middle = TextDocument.from_text(text).read(MAX_READ_LINES + 150, MAX_READ_LINES + 151)
    assert middle.split("\n")[1] == "[in [2] user:]"
    summary = TextDocument.from_text(text).outline()
    assert len(summary) <= 2_000
    assert "[12 of its 101 headings:]" in summary
    assert re.search(r"\n1\| \[0\] user\n\d+\| \[9\] assistant\n", summary)


@given(_TEXTS)
def test_an_outline_is_short_and_of_the_text(lines: list[str]) -> None:
    text = "\n".join(["# Title", *lines, "the end"])
    summary = TextDocument.from_text(text).outline()
    assert len(summary) <= 2_000
    assert "1| # Title" in summary
    assert f"{text.count(chr(10)) + 1}| the end" in summary
