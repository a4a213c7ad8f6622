"""Text files, line by line: plain or gzipped, or standard input, with a digest to recognize them.

Lines of JSON become models. Ambiguous JSON is rejected: duplicate keys, NaN, unpaired surrogates.
"""

import errno
import gzip
import hashlib
import json
import os
import re
import sqlite3
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, Generic, NamedTuple, NoReturn, Self, TypeVar

from pydantic import ValidationError

from jurygraph.errors import InputError
from jurygraph.messages import FieldPath as FieldPath
from jurygraph.messages import (
    Problem,
    describe_validation_error,
    describe_value,
    did_you_mean,
    quote,
    validate,
)
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import StrPath, decode_json_strictly, iter_json_values

MAX_LINE_BYTES = 64 << 20
"""Most bytes of one line."""

GZIP_SIGNATURE = b"\x1f\x8b"
UTF8_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_CHUNK_BYTES = 1 << 20
# ENOENT: no folder for temporary files is usable.
_DISK_FULL_ERROR_CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT)


def refuse_repeated_sources(sources: Iterable[Path]) -> None:
    """Raise `InputError` for a file or a folder that is named twice: it would count twice."""
    paths = set[Path]()
    for source in sources:
        path = source.resolve()
        if path in paths:
            raise InputError(f"{source}: is named twice; name each once")
        paths.add(path)


@contextmanager
def close_on_error(close: Callable[[], object]) -> Iterator[None]:
    """Call `close` if the block raises: an open file cannot be erased, nor written by others."""
    try:
        yield
    except BaseException:
        close()
        raise


@contextmanager
def explain_full_temp_disk() -> Iterator[None]:
    """Raise `InputError` if there is no space for temporary files, including SQLite's."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, OSError) and error.errno not in _DISK_FULL_ERROR_CODES:
            raise
        raise InputError(
            f"there is no space for temporary files ({error}); "
            "set TMPDIR to a folder that has more than the files to read need"
        ) from None


def create_private_file(path: Path) -> None:
    """Create an empty file for its owner alone, unless it exists.

    An existing file is not opened: closing it would drop the locks that this process holds on it.
    """
    if not path.exists():
        path.touch(mode=0o600)


class FileDigest(FrozenModel):
    """Name and SHA-256 of a file as it was read."""

    name: str
    sha256: str


class ByteRange(NamedTuple):
    """Offset and length of a line in a file, in bytes; in a gzip file, of its unpacked content."""

    offset: int
    length: int


class TextLine(NamedTuple):
    """One line: its number, its text without a byte-order mark, and its place."""

    number: int
    text: str
    place: ByteRange


_FOREIGN_FILE_SIGNATURES = (
    ((b"\xff\xfe", b"\xfe\xff"), "is UTF-16", "save the file as UTF-8, gzipped or not"),
    (
        b"PK\x03\x04",
        "is a zip archive, as Excel's files are",
        "name an Excel file .xlsx, or unpack it",
    ),
    (b"\xd0\xcf\x11\xe0", "is an old Excel file", "save it as .xlsx or .csv"),
    (b"PAR1", "is Parquet", "name it .parquet"),
    (
        (b"<!doctype", b"<!DOCTYPE", b"<html", b"<HTML", b"<?xml"),
        "begins with <, as HTML does",
        "export it as CSV, or save the page's data",
    ),
)
"""The first bytes of files that are no text, what they are, and what would be right."""


class ClosedAtExit:
    """Something that is closed where its `with` block ends."""

    def close(self) -> None:
        """Release what it holds open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TextFile(ClosedAtExit):
    """A file of numbered lines, kept open so that later reads return the same content as the first one.

    Anything but a regular file, such as standard input (`-`), is copied to a temporary file; a gzip file is unpacked
    there.
    """

    unit = "line"
    """What its lines are called in messages: lines, or the rows of the table from which they were made."""

    def __init__(self, path: StrPath, name: str | None = None) -> None:
        """Open the file; messages call it `name`, by default as the last part of its path.

        Raises `InputError` if it cannot be read, or is not UTF-8 text, or if there is no space to unpack it.
        """
        self.name = name or ("standard input" if str(path) == "-" else Path(path).name)
        self._file = _open_binary_input(path)
        with close_on_error(self.close):
            self._state = file_change_stamp(self._file)
            digest = hashlib.sha256()
            for chunk in _read_chunks(self._file):
                digest.update(chunk)
            self.file_digest = FileDigest(name=self.name, sha256=digest.hexdigest())
            if os.pread(self._file.fileno(), len(GZIP_SIGNATURE), 0) == GZIP_SIGNATURE:
                self._decompress_gzip()

    def close(self) -> None:
        self._file.close()

    def lines(self) -> Iterator[TextLine]:
        """Yield every line that is not blank, without its end. Raises `InputError` as `iter_all_lines` does."""
        for line in self.iter_all_lines():
            text = line.text.rstrip("\r\n")
            if text and not text.isspace():
                yield line._replace(text=text)

    def iter_all_lines(self) -> Iterator[TextLine]:
        """Yield every line with its end.

        Raises `InputError` if a line is not UTF-8 or longer than `MAX_LINE_BYTES`, and if the file has changed.
        """
        self._file.seek(0)
        number = offset = 0
        while content := self._file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(content) > MAX_LINE_BYTES:
                problem = f"is longer than {MAX_LINE_BYTES >> 20} MB"
                hint = "write one object a line, ended with LF"
                self.refuse_line(number, (), problem, hint)
            offset += len(content)
            if number == 1:
                content = content.removeprefix(UTF8_BYTE_ORDER_MARK)
            text = self._decode_lines(content, number)
            yield TextLine(number, text, ByteRange(offset - len(content), len(content)))
        self.require_unchanged_file()

    def read(self, span: ByteRange) -> bytes:
        """Return the bytes at a place. Raises `InputError` if the file has changed."""
        # Not by `seek`: somebody may be half-way through `lines`. Compared after reading, so that no change slips in.
        content = os.pread(self._file.fileno(), span.length, span.offset)
        self.require_unchanged_file()
        return content

    def read_whole(self, max_bytes: int, remedy: str) -> str:
        """Return the text, without a byte-order mark.

        Raises `InputError` if it has more than `max_bytes` bytes, or is not UTF-8.
        """
        self._file.seek(0)
        content = self._file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise InputError(f"{self.name}: is larger than {max_bytes >> 20} MB; {remedy}")
        return self._decode_lines(content.removeprefix(UTF8_BYTE_ORDER_MARK), 1)

    def require_unchanged_file(self) -> None:
        """Raise `InputError` if the file has changed since it was opened."""
        if file_change_stamp(self._file) != self._state:
            raise InputError(
                f"{self.name}: changed while it was read; leave it as it is and score again"
            )

    def refuse_line(self, number: int, path: FieldPath, problem: str, remedy: str) -> NoReturn:
        """Raise `InputError` about a field of a line."""
        raise_line_error(self.name, number, Problem(path, problem, remedy))

    def _decompress_gzip(self) -> None:
        """Replace a gzip file by its content, since only that allows to read a line in its middle again."""
        with self._file as compressed_file, gzip.GzipFile(fileobj=compressed_file) as content:
            compressed_file.seek(0)
            try:
                self._file = _write_temporary_file(_read_chunks(content))
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise InputError(
                    f"{self.name}: the gzip file is cut short or damaged ({error}); copy it again"
                ) from None
        self._state = file_change_stamp(self._file)

    def _decode_lines(self, content: bytes, number: int) -> str:
        """Return the text of lines, of which the first has this number."""
        if number == 1 and not self.name.endswith((".xlsx", ".parquet")):
            for signature, problem, hint in _FOREIGN_FILE_SIGNATURES:
                if content.startswith(signature):
                    self.refuse_line(1, (), problem, hint)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            line = number + content.count(b"\n", 0, error.start)
            column = error.start - content.rfind(b"\n", 0, error.start)
            problem = f"byte {column} (0x{content[error.start]:02x}) is not UTF-8"
            hint = "save the file as UTF-8, gzipped or not"
            self.refuse_line(line, (), problem, hint)


def _open_binary_input(path: StrPath) -> IO[bytes]:
    if str(path) == "-" and sys.stdin is None:
        raise InputError("standard input is closed; name a file, or pipe the tasks in")
    if str(path) == "-":
        return _write_temporary_file(_read_chunks(sys.stdin.buffer))
    with explain_unreadable_file(path):
        mode = Path(path).stat().st_mode
        file = Path(path).open("rb", buffering=_CHUNK_BYTES)  # noqa: SIM115 - closed by its TextFile
    if stat.S_ISREG(mode):
        return file
    with file:
        return _write_temporary_file(_read_chunks(file))


@contextmanager
def explain_unreadable_file(path: StrPath) -> Iterator[None]:
    """Raise `InputError` that says why a file cannot be opened or read."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no such file; {_missing_file_hint(Path(path))}"
        ) from None
    except PermissionError:
        raise InputError(f"{path}: may not be read; ask for permission to read it") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name a file") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read ({error}); name a file that can be read"
        ) from None


def searched_folders_text(name: str, owner_file_names: str) -> str:
    """Return the end of a message that says where a file was looked for; empty for an absolute name, or if it exists.

    `owner_file_names` are the files, such as TASKS, in whose folder it is looked for first.
    """
    if Path(name).is_absolute() or os.path.exists(name):
        return ""
    return f"; looked for in the folder of {owner_file_names} when that was read, and now in {Path.cwd()}"


def _missing_file_hint(path: Path) -> str:
    """Suggest the file with the most similar name before its endings; one of another kind has to be nearly the same."""
    stem = _file_stem(path.name)
    similar_names = []
    with suppress(OSError):
        for entry in path.parent.iterdir():
            cutoff = 0.6 if entry.suffixes == path.suffixes else 0.8
            if get_close_matches(stem, [_file_stem(entry.name)], cutoff=cutoff) and entry.is_file():
                similar_names.append(entry.name)
    return did_you_mean(path.name, similar_names, 0.0) or "name one that is there"


def _file_stem(name: str) -> str:
    return name.partition(".")[0].casefold()


def _read_chunks(stream: "IO[bytes] | gzip.GzipFile") -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK_BYTES):
        yield chunk


@explain_full_temp_disk()
def _write_temporary_file(chunks: Iterable[bytes]) -> IO[bytes]:
    """Write a temporary file without a name: it is deleted when it is closed, however the process ends."""
    temporary_file = tempfile.TemporaryFile(buffering=_CHUNK_BYTES)  # noqa: SIM115 - closed by its TextFile
    try:
        temporary_file.writelines(chunks)
        temporary_file.seek(0)
    except BaseException:
        with suppress(OSError):  # closing flushes the rest, for which there may be no space
            temporary_file.close()
        raise
    return temporary_file


def sha256_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_change_stamp(file: IO[bytes]) -> tuple[int, int]:
    """Return values that change when a file is written: its size in bytes, and its modification time in nanoseconds."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def path_change_stamp(path: Path | None) -> tuple[int, ...] | None:
    """Return values that change when a file is written or replaced; None if there is no file."""
    if path is None:
        return None
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


N = TypeVar("N", bound=FrozenModel)

_MAX_JSON_DEPTH = 100
_LONE_SURROGATE_PATTERN = re.compile("[\ud800-\udfff]")


def read_lines(file: TextFile, model: type[N]) -> Iterator[tuple[TextLine, N]]:
    """Yield every line of the file as a model. Raises `InputError` with file, line and field."""
    for line in file.lines():
        yield line, read_model_line(file, line, model)


def read_model_line(file: TextFile, line: TextLine, model: type[N]) -> N:
    """Return a line of the file as a model. Raises `InputError` with file, line and field."""
    entry = parse_json_line(line.text, model)
    if isinstance(entry, Problem):
        raise_line_error(file.name, line.number, entry)
    return entry


def parse_lines(file: TextFile, model: type[N]) -> Iterator[tuple[TextLine, N | Problem]]:
    """Yield every line of the file as a model, or the error in it."""
    return ((line, parse_json_line(line.text, model)) for line in file.lines())


def reread_line(file: TextFile, span: ByteRange, model: type[N]) -> N:
    return model.model_validate_json(file.read(span), strict=True)


def validate_at_location(location: str, model: type[N], content: Any) -> N:
    """Return the content at a location as a model. Raises `InputError` with location and field."""
    entry = validate(model, content)
    if isinstance(entry, Problem):
        raise_field_error(location, entry)
    return entry


def describe_field_error(location: str, problem: Problem) -> str:
    field = f", field {problem.field}" if problem.path else ""
    return f"{location}{field}: {problem}"


def raise_field_error(location: str, problem: Problem) -> NoReturn:
    raise InputError(describe_field_error(location, problem))


def raise_line_error(name: str, line: int, problem: Problem) -> NoReturn:
    raise_field_error(f"{name}, line {line}", problem)


class TaskKeyedFile(ClosedAtExit, Generic[N]):
    """A file with a line for each of some tasks, validated as a whole; lines are read again when needed.

    Open until `close`.
    """

    def __init__(
        self,
        file: TextFile,
        model: type[N],
        key: str,
        duplicate_hint: str,
        empty_file_hint: str | None = None,
    ) -> None:
        """Validate the file, whose lines name their task in the field `key`.

        Raises `InputError` with file, line and field; also for a file without a line if there is an `empty_file_hint`.
        """
        self._file = file
        self._model = model
        self._key = key
        self._lines: dict[str, tuple[int, ByteRange]] = {}
        with close_on_error(self.close):
            for line, entry in read_lines(file, model):
                task_id = getattr(entry, key)
                if task_id in self._lines:
                    first, _ = self._lines[task_id]
                    file.refuse_line(
                        line.number,
                        (key,),
                        f"task {quote(task_id)} is already in line {first}",
                        duplicate_hint,
                    )
                self._lines[task_id] = line.number, line.place
                self._check(line.number, entry)
            if empty_file_hint is not None and not self._lines:
                raise InputError(f"{file.name}: the file is empty; {empty_file_hint}")

    def _check(self, number: int, entry: N) -> None:
        """Check a line beyond its model."""

    def refuse_unknown(
        self, is_known_task: Callable[[str], object], ids: Iterable[str], hint: str
    ) -> None:
        """Raise `InputError`, with the hint `hint` if none of the `ids` is similar, for a task that is not known."""
        for name, (number, _) in self._lines.items():
            if not is_known_task(name):
                remedy = did_you_mean(name, ids) or hint
                self._file.refuse_line(
                    number, (self._key,), f"there is no task {quote(name)}", remedy
                )

    @property
    def file_digest(self) -> FileDigest:
        return self._file.file_digest

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[N]:
        return (self._reread_line(span) for _, span in self._lines.values())

    def _reread_line(self, span: ByteRange) -> N:
        return reread_line(self._file, span, self._model)

    def get(self, task_id: str) -> N | None:
        if task_id not in self._lines:
            return None
        _, span = self._lines[task_id]
        return self._reread_line(span)

    def close(self) -> None:
        self._file.close()


def parse_json_line(text: str, model: type[N]) -> N | Problem:
    """Return a line as a model, or the error in it."""
    try:
        value = decode_json_strictly(text)
        if is_nested_deeper(text, value, _MAX_JSON_DEPTH):
            raise RecursionError
    except json.JSONDecodeError as error:
        return _describe_invalid_json(error)
    except RecursionError:
        return Problem((), "is nested too deeply", f"keep it within {_MAX_JSON_DEPTH} levels")
    if isinstance(value, Problem):
        return value
    if not isinstance(value, dict):
        hint = (
            suggest_chat_of_messages(text)
            or '`jq -c \'.[]\'` makes lines of a list: each line is one JSON object, such as {"id": "a", …}'
        )
        return Problem((), f"is {describe_value(value)}", hint)
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] != "json_invalid":
            return describe_validation_error(error, model, value)
        paths = (
            path
            for path, part in iter_json_values(value)
            if isinstance(part, str) and _LONE_SURROGATE_PATTERN.search(part)
        )
        problem = "holds half of a surrogate pair, which is not a character"
        return Problem(next(paths, ()), problem, "write the whole character")


_BARE_CHAT_PATTERN = re.compile(r'\[\s*\{[^{}]*"(?:role|from)"\s*:')


def suggest_chat_of_messages(text: str) -> str:
    """Return how a line becomes a chat where it is a bare list of messages; "" for any other."""
    if not _BARE_CHAT_PATTERN.match(text):
        return ""
    return (
        "a chat is {\"messages\": […]}: `jq -c '{messages: .}'` makes one of each list of messages"
    )


def _describe_invalid_json(error: json.JSONDecodeError) -> Problem:
    read, rest = error.doc[: error.pos].rstrip(), error.doc[error.pos :].strip()
    has_trailing_comma = read.endswith(",") and rest[:1] in ("}", "]")
    if (
        has_trailing_comma
        or "trailing comma" in error.msg
        or (error.msg == "Extra data" and rest == ",")
    ):
        return Problem((), f"has a trailing comma near column {error.colno}", "take it away")
    if error.msg == "Extra data":
        return Problem(
            (),
            f"goes on at column {error.colno} after its JSON object",
            "put each object on a line of its own",
        )
    return Problem(
        (),
        f"is not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}",
        "each line is one whole JSON object, as `jq -c .` writes it, or `jq -c '.[]'` of an array",
    )


def is_nested_deeper(text: str, value: Any, max_depth: int) -> bool:
    """Return whether more lists and objects than so many are inside each other in the value of a JSON text.

    May raise RecursionError.
    """
    bracket_count = text.count("{") + text.count("[")
    return bracket_count > max_depth and _count_nesting_levels(value) > max_depth


def _count_nesting_levels(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    parts = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_count_nesting_levels, parts), default=0)
