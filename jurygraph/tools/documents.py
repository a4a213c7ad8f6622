"""Texts by lines: what is shown of a text from a line on, around words, or in its place where it is long.

Each row begins with its line number and a bar, so that the words after it can be quoted unchanged. A long line is in
pieces, whose rows have the offset of their first character, too: `12+1000| `. Rows in brackets are no words of a text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jurygraph.errors import ToolError
from jurygraph.messages import shorten
from jurygraph.schema.conversation import RenderedText

MAX_READ_LINES = 200
MAX_RESULT_CHARACTERS = 7_500
"""Of rows in one result, so that it is under the 8,000 which a judge is shown of one."""
MAX_SHOWN_MATCHES = 16
_MAX_PIECE_CHARACTERS = 1_000
_ROW_PREFIX_LENGTH = 15
_MATCH_SPAN_WIDTH = 240
_CHARACTERS_BEFORE_MATCH = 80
_SURROUNDING_LINE_WIDTH = 60
_OUTLINE_LINE_WIDTH = 80
_OUTLINE_LINE_COUNT = 4
_MAX_OUTLINE_HEADINGS = 12
_HEADING_PATTERN = re.compile(r"^#{1,6} .*", re.MULTILINE)


class DocumentPart(NamedTuple):
    """A message or passage of a text: the index of its first character, which is its header's, and its name."""

    start: int
    name: str


class LineSpan(NamedTuple):
    """Characters of one line, by their indices in the text; `line` counts from 1."""

    start: int
    end: int
    line: int


class LineMatches(NamedTuple):
    """The first spans in which words were found, and how many there are in all."""

    spans: Sequence[LineSpan]
    total: int


class TextDocument:
    """A text, its lines and the parts that it consists of."""

    def __init__(self, text: str, parts: Iterable[DocumentPart] = ()) -> None:
        self.text = str(text)
        self.parts = tuple(parts)
        self._part_starts = [part.start for part in self.parts]
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", self.text))]

    @classmethod
    def from_text(cls, text: str) -> "TextDocument":
        """Return a text as a document; that of a conversation has its messages as parts."""
        parts = []
        if isinstance(text, RenderedText) and text.has_turn_headers:
            for turn, (header, _) in zip(text.turns, text.blocks(), strict=True):
                header = header.lstrip("\n")
                parts.append(DocumentPart(turn.start - len(header), header.rstrip(":→ \n")))
        return cls(text, parts)

    @classmethod
    def from_passages(cls, passages: Iterable[tuple[str, str]]) -> "TextDocument":
        """Return texts as one document, each below a line with its name."""
        text = ""
        parts = []
        for name, passage in passages:
            parts.append(DocumentPart(len(text), name))
            text += f"{name}:\n{passage}\n"
        return cls(text.removesuffix("\n"), parts)

    @property
    def line_count(self) -> int:
        return len(self._line_starts)

    def read(self, from_line: int, to_line: int | None = None, from_character: int = 0) -> str:
        """Return up to 200 lines or 7,500 characters, and where to read on. Raises ToolError beyond the end."""
        lines = self.line_count
        if from_line > lines:
            raise ToolError(f"the last line is {lines}; read from a line before")
        if to_line is not None and to_line < from_line:
            raise ToolError("to_line is before from_line; exchange them")
        last = min(to_line or lines, from_line + MAX_READ_LINES - 1, lines)
        spans: list[LineSpan] = []
        next_arguments_text = f"from_line={last + 1}" if last < lines else ""
        length = 0
        for span in self._iter_pieces(from_line, last, from_character):
            length += span.end - span.start + _ROW_PREFIX_LENGTH
            if length > MAX_RESULT_CHARACTERS and spans:
                next_arguments_text = f"from_line={span.line}"
                offset = self._compute_offset_in_line(span)
                if offset:
                    next_arguments_text += f", from_character={offset}"
                break
            spans.append(span)
        rows = [
            f"[{lines:,} lines, {len(self.text):,} characters in all]",
            *self._rows(spans),
            f"[more follows: read on with {next_arguments_text}]"
            if next_arguments_text
            else "[the end]",
        ]
        return "\n".join(rows)

    def search(self, words: str, first_match: int = 1) -> str:
        """Return the lines with these words, each with the lines around it, from the given match on."""
        found = self.find(words, first_match)
        total = found.total
        if not total:
            return f"[no match in {self.line_count:,} lines]"
        if not found.spans:
            raise ToolError(f"the last match is number {total}; ask for one before")
        last = first_match + len(found.spans) - 1
        numbers = ", ".join(dict.fromkeys(str(span.line) for span in found.spans))
        rows = [
            f"[matches {first_match} to {last} of {total:,}, in line {numbers}]",
            *self._rows(self._add_surrounding_lines(found.spans)),
        ]
        if last < total:
            rows.append(f"[{total - last:,} more: search on with first_match={last + 1}]")
        return "\n".join(rows)

    def find(self, words: str, first_match: int = 1) -> LineMatches:
        """Return 16 spans with these words, whatever their case and the white space between them.

        A line counts once, unless it is longer than a span. Raises ToolError for words that are blank.
        """
        if not words.strip():
            raise ToolError("the words to search for are blank; write some")
        # Words joined by white space cannot backtrack, so that `re` is linear here.
        pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
        spans = []
        total = 0
        last_span_end = 0
        for match in pattern.finditer(self.text):
            if match.start() < last_span_end:
                continue
            line = self._find_line_number(match.start())
            start, end = self._find_line_bounds(line)
            if end - start > _MATCH_SPAN_WIDTH:
                start = match.start() - _CHARACTERS_BEFORE_MATCH
            span = self._clip_line(line, _MATCH_SPAN_WIDTH, start)
            last_span_end = max(span.end, match.end())
            total += 1
            if first_match <= total < first_match + MAX_SHOWN_MATCHES:
                spans.append(span)
        return LineMatches(spans, total)

    def outline(self, document: str = "") -> str:
        """Return what a prompt shows in the place of a long text, in under 2,000 characters.

        `document` is the name by which it is read, where the prompt does not tell. Its line numbers are those of the
        text itself, as `response_2` or `context_1` has them.
        """
        lines = self.line_count
        name = f" `{document}`" if document else ""
        rows = [
            f"[This text{name} is too long to be shown: it has {lines:,} lines and {len(self.text):,} characters. This "
            "is its outline. Read the rest with the tool `read`, and find words with `search`, before you judge.]",
            *self._list_heading_rows(),
            "[its first lines:]",
        ]
        all_lines = range(1, lines + 1)
        rows += self._rows(
            self._clip_line(line, _OUTLINE_LINE_WIDTH) for line in all_lines[:_OUTLINE_LINE_COUNT]
        )
        rows.append("[its last lines:]")
        last_spans = []
        for line in all_lines[-_OUTLINE_LINE_COUNT:]:
            _, end = self._find_line_bounds(line)
            start = end - _OUTLINE_LINE_WIDTH
            last_spans.append(self._clip_line(line, _OUTLINE_LINE_WIDTH, start))
        return "\n".join([*rows, *self._rows(last_spans)])

    def row(self, span: LineSpan) -> str:
        offset = self._compute_offset_in_line(span)
        place = f"{span.line}+{offset}" if offset else str(span.line)
        return f"{place}| {self.text[span.start : span.end]}"

    def _list_heading_rows(self) -> list[str]:
        headings = self.parts or [
            DocumentPart(found.start(), found[0]) for found in _HEADING_PATTERN.finditer(self.text)
        ]
        if not headings:
            return []
        step = -(-len(headings) // _MAX_OUTLINE_HEADINGS)
        chosen = headings[::step]
        rows = [f"[{len(chosen)} of its {len(headings):,} headings:]"]
        for heading in chosen:
            rows.append(f"{self._find_line_number(heading.start)}| {shorten(heading.name, 50)}")
        return rows

    def _rows(self, spans: Iterable[LineSpan]) -> Iterator[str]:
        """Yield the rows of spans, with the name of the part where the first row of a part is not its header."""
        document_part_index = -1
        for span in spans:
            index = bisect_right(self._part_starts, span.start) - 1
            if index not in (-1, document_part_index) and span.start > self._part_starts[index]:
                yield f"[in {self.parts[index].name}:]"
            document_part_index = index
            yield self.row(span)

    def _iter_pieces(self, first: int, last: int, from_character: int) -> Iterator[LineSpan]:
        for line in range(first, last + 1):
            start, end = self._find_line_bounds(line)
            if line == first:
                start += from_character
            if start > end:
                raise ToolError(f"line {line} ends at character {end - start + from_character}")
            for piece in range(start, max(end, start + 1), _MAX_PIECE_CHARACTERS):
                yield LineSpan(piece, min(end, piece + _MAX_PIECE_CHARACTERS), line)

    def _add_surrounding_lines(self, spans: Sequence[LineSpan]) -> list[LineSpan]:
        """Return the spans with the lines before and after; a line that has a match is shown once, as its match."""
        shown_line_numbers = {span.line for span in spans}
        nearby_line_numbers = {
            span.line + step for span in spans for step in (-1, 1)
        } - shown_line_numbers
        surrounding_spans = [
            self._clip_line(line, _SURROUNDING_LINE_WIDTH)
            for line in nearby_line_numbers
            if 1 <= line <= self.line_count
        ]
        return sorted([*spans, *surrounding_spans])

    def _clip_line(self, line: int, width: int, begin: int = 0) -> LineSpan:
        """Return so many characters of a line, from its beginning or an index in the text on."""
        start, end = self._find_line_bounds(line)
        start = max(start, begin)
        return LineSpan(start, min(end, start + width), line)

    def _find_line_bounds(self, line: int) -> tuple[int, int]:
        """Return the start of a line and its end, without the line break."""
        is_last_line = line == self.line_count
        end = len(self.text) if is_last_line else self._line_starts[line] - 1
        return self._line_starts[line - 1], end

    def _find_line_number(self, position: int) -> int:
        return bisect_right(self._line_starts, position)

    def _compute_offset_in_line(self, span: LineSpan) -> int:
        return span.start - self._line_starts[span.line - 1]
