"""`list_files`, `read_file` and `grep`: the files of a response's workspace."""

import codecs
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import Annotated, NamedTuple

from pydantic import StringConstraints

from jurygraph.messages import plural_of
from jurygraph.schema.frozen_model import PositiveInt
from jurygraph.tools.documents import TextDocument
from jurygraph.tools.reading import LineArguments, SearchWords
from jurygraph.tools.result import MASK_CHARACTER, take_rows_that_fit
from jurygraph.tools.tool import RowTool, ToolArguments, ToolError, ToolInput
from jurygraph.tools.workspace import MAX_FILE_BYTES, FileContent, Workspace

MAX_LISTED_FILES = 200
MAX_LIST_CHARACTERS = 7_000
MAX_SEARCHED_BYTES = 64 << 20
"""Bytes of files that one search reads."""
MAX_SHOWN_FILE_MATCHES = 16
_BYTES_SEARCHED_FOR_NUL = 8192
_BINARY_FILE_PLACEHOLDER = FileContent(b"\0", is_truncated=False)

GlobPattern = Annotated[str, StringConstraints(min_length=1, max_length=200)]
PathText = Annotated[str, StringConstraints(max_length=2000)]


class WorkspaceArguments(ToolArguments):
    response: PositiveInt = 1
    """The number of the response whose files are meant, where there are several."""


class ListArguments(WorkspaceArguments):
    folder: PathText = ""
    """The folder whose files are listed; by default all are."""
    pattern: GlobPattern | None = None
    """Such as `*.py`."""


class ReadFileArguments(WorkspaceArguments, LineArguments):
    path: PathText


class GrepArguments(ListArguments):
    text: SearchWords
    """Words as they stand in a file; letter case and white space do not matter."""


class ListFilesTool(RowTool):
    """Return the paths and sizes of files, sorted."""

    name = "list_files"
    description = "List the files that belong to the response, with their sizes."
    Arguments = ListArguments

    def quotable(self, result: str) -> str:
        return MASK_CHARACTER * len(result)  # a name says nothing of what is in the file

    def run(self, inputs: ToolInput, arguments: ListArguments) -> str:
        scan = _get_workspace(inputs, arguments).scan(arguments.folder)
        sizes = {
            entry.path: entry.size
            for entry in scan
            if _matches_path_pattern(entry.path, arguments.pattern)
        }
        rows = [f"{sizes[path]:,} bytes| {path}" for path in sorted(sizes, key=_path_sort_key)]
        heading = f"[{_format_count(len(sizes), 'file')}{scan.note}]"
        return _join_first_rows(heading, rows[:MAX_LISTED_FILES], len(rows))


class ReadFileTool(RowTool):
    """Return lines of a file by their numbers."""

    name = "read_file"
    description = (
        "Read lines of a file that belongs to the response, up to 200 lines or 7,500 characters at once. "
        "Quote the words after the bar, without the number."
    )
    Arguments = ReadFileArguments

    def run(self, inputs: ToolInput, arguments: ReadFileArguments) -> str:
        content = _get_workspace(inputs, arguments).read(arguments.path)
        text = decode_file_text(content)
        if text is None:
            more = "more than " if content.is_truncated else ""
            return f"[a binary file, or not in UTF-8, of {more}{len(content.data):,} bytes]"
        lines = TextDocument(text).read(
            arguments.from_line, arguments.to_line, arguments.from_character
        )
        if content.is_truncated:
            lines += f"\n[only its first {MAX_FILE_BYTES:,} bytes can be read]"
        return lines


class GrepTool(RowTool):
    """Return the lines of files with some words."""

    name = "grep"
    description = "Search the files that belong to the response for words. Returns matching lines with path and number."
    Arguments = GrepArguments

    def run(self, inputs: ToolInput, arguments: GrepArguments) -> str:
        scan = _get_workspace(inputs, arguments).scan(arguments.folder)
        found: dict[str, FileMatches] = {}
        searched_count = unread_file_count = searched_byte_count = 0
        for entry in scan:
            if not _matches_path_pattern(entry.path, arguments.pattern):
                continue
            found.pop(entry.path, None)  # of an archive's members with one name the last counts
            content = _BINARY_FILE_PLACEHOLDER  # in the place of one that is too large
            with suppress(ToolError):  # no right to read it, for instance
                if min(entry.size, MAX_FILE_BYTES) <= MAX_SEARCHED_BYTES - searched_byte_count:
                    content = entry.read()
            searched_byte_count += len(content.data)
            text = decode_file_text(content)
            if text is None or content.is_truncated:
                unread_file_count += 1
            if text is None:
                continue
            searched_count += 1
            document = TextDocument(text)
            matches = document.find(arguments.text)
            if matches.total:
                rows = [f"{entry.path}:{document.row(span)}" for span in matches.spans]
                found[entry.path] = FileMatches(rows, matches.total)
        total = sum(matches.total for matches in found.values())
        files = f"{len(found):,} of {_format_count(searched_count, 'file')}"
        unread_note = (
            f"; {unread_file_count:,} files are binary or too large" if unread_file_count else ""
        )
        heading = f"[{_format_count(total, 'match')} in {files}{unread_note}{scan.note}]"
        all_rows = chain.from_iterable(
            found[path].rows for path in sorted(found, key=_path_sort_key)
        )
        return _join_first_rows(heading, [*islice(all_rows, MAX_SHOWN_FILE_MATCHES)], total)


class FileMatches(NamedTuple):
    """The first lines of a file that have some words, and how many have them."""

    rows: Sequence[str]
    total: int


def decode_file_text(content: FileContent) -> str | None:
    """Return the text of a file in UTF-8; None if it has bytes of something else."""
    if b"\0" in content.data[:_BYTES_SEARCHED_FOR_NUL]:
        return None
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        return decoder.decode(content.data, final=not content.is_truncated)
    except UnicodeDecodeError:
        return None


def _get_workspace(inputs: ToolInput, arguments: WorkspaceArguments) -> Workspace:
    index = inputs.response_index_of_number(arguments.response)
    workspace = inputs.workspaces[index] if inputs.workspaces else None
    if workspace is None:
        raise ToolError("the response has no files")
    return workspace


def _matches_path_pattern(path: str, pattern: str | None) -> bool:
    """Return whether a path, or a file's name where the pattern has no slash, matches; `*` may cross folders."""
    if pattern is None:
        return True
    name = path if "/" in pattern else path.rpartition("/")[2]
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.removeprefix("**/"))


def _join_first_rows(heading: str, rows: Sequence[str], total: int) -> str:
    """Return a heading, the first rows that have 7,000 characters in all, and how many of the total are missing."""
    shown_rows = take_rows_that_fit(rows, MAX_LIST_CHARACTERS)
    if len(shown_rows) < total:
        shown_rows.append(f"[{total - len(shown_rows):,} more: name a folder or a pattern]")
    return "\n".join([heading, *shown_rows])


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else plural_of(noun)}"


def _path_sort_key(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))
