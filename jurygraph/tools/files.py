"""`list_files`, `read_file` and `grep`: the files of a response's workspace."""

import codecs
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, chain
from typing import Annotated, NamedTuple

from pydantic import StringConstraints

from jurygraph.schema.frozen_model import PositiveInt
from jurygraph.tools.documents import TextDocument
from jurygraph.tools.reading import LineArguments, SearchWords
from jurygraph.tools.result import MASK
from jurygraph.tools.tool import RowTool, ToolArguments, ToolError, ToolInput
from jurygraph.tools.workspace import MAX_FILE, FileContent, Scan, Workspace, WorkspaceEntry

MAX_LISTED = 200
MAX_LIST_CHARACTERS = 7_000
MAX_SEARCHED = 64 << 20
"""Bytes of files that one search reads."""
MAX_FILE_MATCHES = 16
_BYTES_SEARCHED_FOR_NUL = 8192

Glob = Annotated[str, StringConstraints(min_length=1, max_length=200)]
PathText = Annotated[str, StringConstraints(max_length=2000)]


class WorkspaceArguments(ToolArguments):
    response: PositiveInt = 1
    """The number of the response whose files are meant, where there are several."""


class ListArguments(WorkspaceArguments):
    folder: PathText = ""
    """The folder whose files are listed; by default all are."""
    pattern: Glob | None = None
    """Such as `*.py`."""


class ReadFileArguments(WorkspaceArguments, LineArguments):
    path: PathText


class GrepArguments(ListArguments):
    text: SearchWords
    """Words as they stand in a file; letter case and white space do not matter."""


class ListFiles(RowTool):
    """Return the paths and sizes of files, sorted."""

    name = "list_files"
    description = "List the files that belong to the response, with their sizes."
    Arguments = ListArguments

    def quotable(self, result: str) -> str:
        return MASK * len(result)  # a name says nothing of what is in the file

    def run(self, inputs: ToolInput, arguments: ListArguments) -> str:
        sizes: dict[str, int] = {}

        def add(entry: WorkspaceEntry) -> None:
            if _matches(entry.path, arguments.pattern):
                sizes[entry.path] = entry.size

        scan = _workspace_of(inputs, arguments).scan(arguments.folder, add)
        paths = sorted(sizes, key=_path_order)[:MAX_LISTED]
        rows = _that_fit([f"{sizes[path]:,} bytes| {path}" for path in paths])
        heading = f"[{_count(len(sizes), 'file')}{_describe_scan(scan)}]"
        if len(rows) < len(sizes):
            more = len(sizes) - len(rows)
            rows.append(f"[{more:,} more: name a folder or a pattern]")
        return "\n".join([heading, *rows])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


class ReadFile(RowTool):
    """Return lines of a file by their numbers."""

    name = "read_file"
    description = (
        "Read lines of a file that belongs to the response, up to 200 lines or 7,500 characters at once. "
        "Quote the words after the bar, without the number."
    )
    Arguments = ReadFileArguments

    def run(self, inputs: ToolInput, arguments: ReadFileArguments) -> str:
        content = _workspace_of(inputs, arguments).read(arguments.path)
        text = decode(content)
        if text is None:
            size = f"more than {MAX_FILE:,}" if content.is_cut else f"{len(content.data):,}"
            return f"[a binary file, or not in UTF-8, of {size} bytes]"
        lines = TextDocument(text).read(
            arguments.from_line, arguments.to_line, arguments.from_character
        )
        return (
            f"{lines}\n[only its first {MAX_FILE:,} bytes can be read]" if content.is_cut else lines
        )


class Grep(RowTool):
    """Return the lines of files with some words."""

    name = "grep"
    description = "Search the files that belong to the response for words. Returns matching lines with path and number."
    Arguments = GrepArguments

    def run(self, inputs: ToolInput, arguments: GrepArguments) -> str:
        search = FileSearch(arguments.text, arguments.pattern)
        scan = _workspace_of(inputs, arguments).scan(arguments.folder, search.visit)
        return search.result(scan)


class FileMatches(NamedTuple):
    """The first lines of a file that have some words, and how many have them."""

    rows: Sequence[str]
    total: int


class FileSearch:
    """The matches of words in files."""

    def __init__(self, words: str, pattern: str | None) -> None:
        self._words = words
        self._pattern = pattern
        self._found: dict[str, FileMatches] = {}
        self._searched = 0
        self._bytes = 0
        self._unread = 0

    def visit(self, entry: WorkspaceEntry) -> None:
        self._found.pop(entry.path, None)  # of an archive's members with one name the last counts
        if not _matches(entry.path, self._pattern):
            return
        if self._bytes + min(entry.size, MAX_FILE) > MAX_SEARCHED:
            self._unread += 1
            return
        try:
            content = entry.read()
        except ToolError:  # no right to read it, for instance
            self._unread += 1
            return
        self._bytes += len(content.data)
        text = decode(content)
        if text is None or content.is_cut:
            self._unread += 1
        if text is None:
            return
        self._searched += 1
        document = TextDocument(text)
        matches = document.find(self._words)
        if matches.total:
            rows = [f"{entry.path}:{document.row(span)}" for span in matches.spans]
            self._found[entry.path] = FileMatches(rows, matches.total)

    def result(self, scan: Scan) -> str:
        found = [self._found[path] for path in sorted(self._found, key=_path_order)]
        total = sum(matches.total for matches in found)
        all_rows = list(chain.from_iterable(matches.rows for matches in found))
        rows = _that_fit(all_rows[:MAX_FILE_MATCHES])
        matches = f"{total:,} match{'es' * (total != 1)}"
        about = f"{matches} in {len(self._found):,} of {_count(self._searched, 'file')}"
        unread = f"; {self._unread:,} files are binary or too large" if self._unread else ""
        heading = f"[{about}{unread}{_describe_scan(scan)}]"
        if len(rows) < total:
            rows.append(f"[{total - len(rows):,} more: name a folder or a pattern]")
        return "\n".join([heading, *rows])


def decode(content: FileContent) -> str | None:
    """Return the text of a file in UTF-8; None if it has bytes of something else."""
    if b"\0" in content.data[:_BYTES_SEARCHED_FOR_NUL]:
        return None
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        return decoder.decode(content.data, final=not content.is_cut)
    except UnicodeDecodeError:
        return None


def _workspace_of(inputs: ToolInput, arguments: WorkspaceArguments) -> Workspace:
    index = inputs.index_of(arguments.response)
    workspace = inputs.workspaces[index] if inputs.workspaces else None
    if workspace is None:
        raise ToolError("the response has no files")
    return workspace


def _matches(path: str, pattern: str | None) -> bool:
    """Return whether a path, or a file's name where the pattern has no slash, matches; `*` may cross folders."""
    if pattern is None:
        return True
    name = path if "/" in pattern else path.rpartition("/")[2]
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.removeprefix("**/"))


def _that_fit(rows: Sequence[str]) -> list[str]:
    """Return the first rows that have 7,000 characters in all."""
    lengths = accumulate(len(row) for row in rows)
    return [row for row, length in zip(rows, lengths, strict=True) if length <= MAX_LIST_CHARACTERS]


def _path_order(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))


def _describe_scan(scan: Scan) -> str:
    left_out = (
        f"; {scan.left_out:,} links, special files or unsafe names left out"
        if scan.left_out
        else ""
    )
    return f"{left_out}; not all were visited" if scan.is_cut else left_out
