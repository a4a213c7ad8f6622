"""Workspaces: the files of a response, in a folder or an archive, from which nothing leads out.

Whoever wrote the response may have written its files, so that names and kinds of files are hostile. A judge's path is
only compared with those of the files that are there. Folders are opened one component at a time, each relative to the
one before and without following a link: a check of the whole path would leave time to exchange a component. Only plain
files with a single name are read; a second one (a hard link) may lie outside. Archives are read as streams and never
unpacked to disk.
"""

import gzip
import os
import re
import stat
import tarfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, NamedTuple

from jurygraph.display import ShortRepr
from jurygraph.errors import InputError, ToolError
from jurygraph.messages import shorten

MAX_FILE_BYTES = 16 << 20
"""Bytes that are read of a file."""
MAX_VISITED_ENTRIES = 20_000
"""Files, folders and others that are visited in a workspace, or looked at in one folder."""
MAX_UNPACKED_BYTES = 256 << 20
"""Bytes that are read of an archive in one call, unpacked."""
MAX_FOLDER_DEPTH = 64
# bytes of a single read: the directory of an archive is one, and takes much more memory
_MAX_READ_BYTES = 8 << 20
_CHUNK_BYTES = 1 << 20
_MAX_PATH_CHARACTERS = 1000
_MAX_NAME_BYTES = 255
_ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_UNSAFE_PATH_PATTERN = re.compile(
    r"[\x00-\x1f\x7f\\\ud800-\udfff]|^[A-Za-z]:|(?:^|/)\.{0,2}(?=/|$)"
)
"""Control characters, signs of paths elsewhere, halves of surrogate pairs, and a name that is empty, `.` or `..`."""
_OPEN_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NO_FOLLOW_LINK_FLAG = getattr(os, "O_NOFOLLOW", 0)
# Without blocking, since a pipe that takes the place of a file would wait for a writer.
_OPEN_FILE_FLAGS = (
    os.O_RDONLY | _NO_FOLLOW_LINK_FLAG | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
)

PathSteps = tuple[str, ...]
"""The names of folders and the file in a path, from the workspace down; none for the workspace itself."""


class FileContent(NamedTuple):
    """The bytes of a file; `is_truncated` where it has more."""

    data: bytes
    is_truncated: bool


class WorkspaceEntry(NamedTuple):
    """A part of a workspace. Files can be read; links, devices and what has an unsafe name are `other`."""

    kind: Literal["file", "folder", "other"]
    path: str = ""
    size: int = 0
    read: Callable[[], FileContent] = partial(FileContent, b"", is_truncated=False)


_UNREADABLE_ENTRY = WorkspaceEntry("other")
WorkspaceEntries = Generator[WorkspaceEntry, None, None]


class WorkspaceScan:
    """The files among the entries of a workspace; afterwards it says what was left out."""

    def __init__(self, entries: WorkspaceEntries) -> None:
        self._entries = entries
        self._left_out = 0
        self._is_cut = False

    def __iter__(self) -> Iterator[WorkspaceEntry]:
        with closing(self._entries) as entries:
            for number, entry in enumerate(entries, start=1):
                if number > MAX_VISITED_ENTRIES:
                    self._is_cut = True
                    return
                if entry.kind == "file":
                    yield entry
                elif entry.kind == "other":
                    self._left_out += 1

    @property
    def note(self) -> str:
        """Return what is to be said of files that were not visited; empty if all were."""
        note = ""
        if self._left_out:
            note += f"; {self._left_out:,} links, special files or unsafe names left out"
        if self._is_cut:
            note += "; not all were visited"
        return note


def split_path(path: str) -> PathSteps:
    """Return the steps of a path below the workspace. Raises ToolError for one that is not, or looks like one."""
    steps = _split_safe_path(path)
    if steps is None:
        raise ToolError(
            "is no path in the workspace; write one as list_files has it, such as src/main.py: relative, without `..`"
        )
    return steps


def _split_safe_path(path: str) -> PathSteps | None:
    relative_path = path.removeprefix("./").removesuffix("/")
    if relative_path in ("", ".") and not path.startswith("/"):
        return ()
    if len(path) > _MAX_PATH_CHARACTERS or _UNSAFE_PATH_PATTERN.search(relative_path):
        return None
    steps = tuple(relative_path.split("/"))
    return steps if all(len(name.encode()) <= _MAX_NAME_BYTES for name in steps) else None


class Workspace(ShortRepr, ABC):
    """The files of one response. It holds nothing open: each call opens what it needs."""

    has_repeated_paths = False
    """Whether several entries may have one path, of which the last counts."""

    def __init__(self, root: Path, steps: PathSteps) -> None:
        self.root = root
        self.steps = steps

    def _repr_parts(self) -> Iterable[tuple[str, Any]]:
        return [("name", "/".join(self.steps))]

    def scan(self, folder: str) -> WorkspaceScan:
        """Return the files below a folder; each is read before the next. Raises ToolError if there is none."""
        return WorkspaceScan(self.entries(split_path(folder)))

    @abstractmethod
    def entries(self, folder: PathSteps) -> WorkspaceEntries:
        """Yield what lies below a folder; the content of an entry is read before the next one."""

    def read(self, path: str) -> FileContent:
        """Return the first 16 MiB of a file. Raises ToolError if there is none, or it is no plain file."""
        steps = split_path(path)
        content = None
        for entry in WorkspaceScan(self.entries(steps[:-1])):
            if entry.path == "/".join(steps):
                content = entry.read()
                if not self.has_repeated_paths:
                    break
        if content is None:
            raise ToolError(_NO_FILE_MESSAGE)
        return content


class FolderWorkspace(Workspace):
    """A workspace that is a folder."""

    def entries(self, folder: PathSteps) -> WorkspaceEntries:
        errors: list[OSError] = []
        with _open_folder_descriptor(self.root, (*self.steps, *folder)) as descriptor:
            folder_walk = os.fwalk(".", onerror=errors.append, dir_fd=descriptor)
            for path, folders, files, inner in folder_walk:
                steps = (*folder, *PurePosixPath(path).parts)
                names = sorted(folders + files)[: MAX_VISITED_ENTRIES + 1]
                entries = [_make_workspace_entry(inner, steps, name) for name in names]
                yield from entries
                folders[:] = [
                    PurePosixPath(entry.path).name for entry in entries if entry.kind == "folder"
                ]
        yield from [_UNREADABLE_ENTRY] * len(errors)


def _make_workspace_entry(folder: int, steps: PathSteps, name: str) -> WorkspaceEntry:
    path = "/".join((*steps, name))
    status = _stat_file(folder, name)
    if status is None or _split_safe_path(path) is None:
        return _UNREADABLE_ENTRY
    if stat.S_ISDIR(status.st_mode) and len(steps) < MAX_FOLDER_DEPTH:
        return WorkspaceEntry("folder", path)
    if not _is_plain_file(status):
        return _UNREADABLE_ENTRY
    return WorkspaceEntry("file", path, status.st_size, partial(_read_file_in_folder, folder, name))


class ArchiveWorkspace(Workspace):
    """A workspace that is an archive. Of members with one name the last counts, as it would when unpacked."""

    has_repeated_paths = True

    def entries(self, folder: PathSteps) -> WorkspaceEntries:
        is_folder_found = not folder
        name = self.steps[-1]
        iter_members = _iter_zip_members if name.lower().endswith(".zip") else _iter_tar_members
        with (
            _open_folder_descriptor(self.root, self.steps[:-1]) as outer,
            _open_plain_file(outer, name) as file,
            _report_broken_archive(),
        ):
            for entry in iter_members(file):
                steps = _split_safe_path(entry.path)
                # the workspace itself, as `tar` lists it
                if steps == () and entry.kind == "folder":
                    continue
                if entry.kind == "other" or not steps:
                    yield _UNREADABLE_ENTRY
                elif steps[: len(folder)] == folder and len(steps) > len(folder):
                    is_folder_found = True
                    yield entry._replace(path="/".join(steps))
        if not is_folder_found:
            raise ToolError(_NO_FOLDER_MESSAGE)


def open_workspace(folder: str | None, name: str) -> Workspace:
    """Return the workspace with this name below a folder; without one it is a path of its own.

    Raises InputError that names the field if there is none, or the name leads out of the folder.
    """
    error_location = f"workspace: {shorten(name)!r}"
    remedy = "name a folder, or an archive that ends with .zip, .tar, .tar.gz or .tgz"
    if os.open not in os.supports_dir_fd:
        raise InputError(f"{error_location} cannot be read safely on this system; leave it out")
    path = Path(name)
    root = path.parent if folder is None else Path(folder)
    relative_path = name
    unset_note = ""
    if folder is None:
        unset_note = " (the config has no `workspaces`)"
        relative_path = ".." if ".." in path.parts else path.name
    steps = _split_safe_path(relative_path)
    if not steps:
        raise InputError(
            f"{error_location} is no path below {root}; {remedy} in it, without `..` and links"
        )
    try:
        with _open_folder_descriptor(root, steps[:-1]) as outer:
            status = _stat_file(outer, steps[-1])
    except ToolError:
        status = None
    if status is None:
        raise InputError(
            f"{error_location} is not there, or lies behind a link, below {root}{unset_note}; {remedy}"
        )
    if stat.S_ISDIR(status.st_mode):
        return FolderWorkspace(root, steps)
    if _is_plain_file(status) and steps[-1].lower().endswith(_ARCHIVE_SUFFIXES):
        return ArchiveWorkspace(root, steps)
    raise InputError(
        f"{error_location} is neither a folder nor such an archive, or a link to one; {remedy}"
    )


_NO_FOLDER_MESSAGE = "there is no such folder, or it is a link; list_files shows what is there"
_NO_FILE_MESSAGE = (
    "there is no such file, or it is a link or no plain file; list_files shows what is there"
)


@contextmanager
def _report_broken_archive() -> Iterator[None]:
    try:
        yield
    except ToolError:
        raise
    # Python's readers of archives raise many kinds of errors for broken ones, and for those with a password.
    except Exception as error:
        raise ToolError("the archive of these files is broken, so they cannot be read") from error


@contextmanager
def _open_folder_descriptor(root: Path, steps: PathSteps) -> Iterator[int]:
    """Open a folder below the root, which alone may be a link. Raises ToolError if there is none."""
    flags = _OPEN_FOLDER_FLAGS
    descriptor = None
    with ExitStack() as folders:
        for step in (str(root), *steps):
            try:
                descriptor = os.open(step, flags, dir_fd=descriptor)
            except (OSError, ValueError) as error:  # the latter for a NUL
                raise ToolError(_NO_FOLDER_MESSAGE) from error
            folders.callback(os.close, descriptor)
            flags |= _NO_FOLLOW_LINK_FLAG
        assert descriptor is not None, "the root is always opened"
        yield descriptor


def _read_file_in_folder(folder: int, name: str) -> FileContent:
    with _open_plain_file(folder, name) as file:
        return _read_bounded_file(file)


def _open_plain_file(folder: int, name: str) -> IO[bytes]:
    """Open a plain file. Raises ToolError for any other."""
    status = _stat_file(folder, name)
    # To open a device can have effects, so that its kind is checked before, and for certain after.
    if status is None or not _is_plain_file(status):
        raise ToolError(_NO_FILE_MESSAGE)
    try:
        descriptor = os.open(name, _OPEN_FILE_FLAGS, dir_fd=folder)
    except OSError as error:
        raise ToolError(_NO_FILE_MESSAGE) from error
    if not _is_plain_file(os.fstat(descriptor)):
        os.close(descriptor)
        raise ToolError(_NO_FILE_MESSAGE)
    return os.fdopen(descriptor, "rb")


def _stat_file(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):
        return None


def _is_plain_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink <= 1


def _read_bounded_file(file: IO[bytes]) -> FileContent:
    chunks = []
    length = 0
    while length <= MAX_FILE_BYTES and (chunk := file.read(_CHUNK_BYTES)):
        chunks.append(chunk)
        length += len(chunk)
    return FileContent(b"".join(chunks)[:MAX_FILE_BYTES], is_truncated=length > MAX_FILE_BYTES)


class BoundedFile:
    """A file that refuses to be read beyond `MAX_UNPACKED_BYTES` in all, or much at once, as a hostile archive asks."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._length = 0
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int | None = None) -> bytes:
        max_bytes = _MAX_READ_BYTES + 1
        data: bytes = self._file.read(
            max_bytes if size is None or size < 0 else min(size, max_bytes)
        )
        self._length += len(data)
        if len(data) > _MAX_READ_BYTES or self._length > MAX_UNPACKED_BYTES:
            raise ToolError("the archive of these files is too large to be read")
        return data


def _iter_zip_members(file: IO[bytes]) -> Iterator[WorkspaceEntry]:
    bounded_file = BoundedFile(file)
    with zipfile.ZipFile(bounded_file) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            is_encrypted = bool(info.flag_bits & 1)
            has_known_compression = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            name = info.orig_filename  # as it is stored: `filename` ends at a NUL
            if name.endswith("/"):
                yield WorkspaceEntry("folder", name)
            elif kind in (0, stat.S_IFREG) and has_known_compression and not is_encrypted:
                read = partial(_read_member, partial(archive.open, info))
                yield WorkspaceEntry("file", name, info.file_size, read)
            else:
                yield _UNREADABLE_ENTRY


def _iter_tar_members(file: IO[bytes]) -> Iterator[WorkspaceEntry]:
    is_gzipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    bounded_file: Any = BoundedFile(gzip.GzipFile(fileobj=file) if is_gzipped else file)
    with tarfile.open(fileobj=bounded_file, mode="r|") as archive:
        for member in archive:
            if member.isdir():
                yield WorkspaceEntry("folder", member.name)
            elif member.isreg() and not member.issparse():
                read = partial(_read_member, partial(archive.extractfile, member))
                yield WorkspaceEntry("file", member.name, member.size, read)
            else:
                yield _UNREADABLE_ENTRY


def _read_member(open_member: Callable[[], IO[bytes] | None]) -> FileContent:
    with _report_broken_archive():
        file = open_member()
        assert file is not None, "only files are opened"
        with file:
            return _read_bounded_file(file)
