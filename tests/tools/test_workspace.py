"""What a response's files may do: nothing leads out of its workspace. A canary lies outside."""

import gzip
import io
import os
import socket
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.tools import files
from jurygraph.tools import workspace as workspaces
from jurygraph.tools.tool import ToolError
from jurygraph.tools.workspace import Workspace, open_workspace
from tests.rows import all_rows
from tests.tools.inputs import call_tool, tool_input

CANARY = "the canary sings outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of workspaces, in a folder with a canary."""
    (tmp_path / "canary.txt").write_text(CANARY)
    folder = tmp_path / "root" / "ws"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print('tea')\nprint('milk')\n")
    (folder / "README.md").write_text("# Tea\nread me")
    (folder / "logo.png").write_bytes(b"\x89PNG\0\0")
    return tmp_path / "root"


def call(workspace: Workspace, name: str, **arguments: Any) -> str:
    """Return the result of a tool, or the message of its refusal."""
    try:
        return call_tool(name, tool_input("text", workspaces=(workspace,)), **arguments)
    except ToolError as error:
        return f"refused: {error}"


def make_zip(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)


def make_tar(path: Path, *members: tarfile.TarInfo, data: bytes = b"") -> None:
    with tarfile.open(path, "w:gz" if path.suffix in (".gz", ".tgz") else "w") as archive:
        for member in members:
            member.size = len(data) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(data) if member.isreg() else None)


def tar_member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = target
    return member


@pytest.mark.parametrize("form", ["folder", ".zip", ".tar", ".tar.gz", ".tgz"])
def test_files_are_listed_read_and_searched(root: Path, form: str) -> None:
    name = "ws"
    if form == ".zip":
        name = "ws.zip"
        with zipfile.ZipFile(root / name, "w") as archive:
            for path in sorted((root / "ws").rglob("*"), reverse=True):
                archive.write(path, path.relative_to(root / "ws"))
    elif form != "folder":
        name = f"ws{form}"
        with tarfile.open(root / name, "w" if form == ".tar" else "w:gz") as packed:
            packed.add(root / "ws", ".")
    workspace = open_workspace(str(root), name)
    listed = (
        "[3 files]\n13 bytes| README.md\n6 bytes| logo.png\n"
        f"{len('print(tea)--print(milk)--') + 2} bytes| src/main.py"
    )
    assert call(workspace, "list_files") == listed
    assert "| src/main.py" in call(workspace, "list_files", folder="./src/", pattern="**/*.py")
    assert "2| print('milk')" in call(workspace, "read_file", path="src/main.py", from_line=2)
    assert (
        call(workspace, "read_file", path="logo.png")
        == "[a binary file, or not in UTF-8, of 6 bytes]"
    )
    assert call(workspace, "grep", text="TEA") == (
        "[2 matches in 2 of 2 files; 1 files are binary or too large]\n"
        "README.md:1| # Tea\nsrc/main.py:1| print('tea')"
    )
    assert call(workspace, "grep", text="read", pattern="*.py") == "[0 matches in 0 of 1 file]"
    for arguments in ({"path": "gone.py"}, {"path": ""}, {"path": "src"}):
        assert call(workspace, "read_file", **arguments).startswith("refused")
    assert call(workspace, "list_files", folder="gone").startswith("refused")
    assert call(workspace, "read_file", path="README.md", response=2).startswith("refused")


_ESCAPES = st.sampled_from(
    "canary.txt .. ../ ../.. ../../canary.txt ．．/．．/canary.txt ‥ / // . ./ .\0 \0 \\ ..\\ C: C:/ ~ link "
    "link/canary.txt "
    "up up/canary.txt hard fifo socket dev src src/../../.. %2e%2e/ \ud800 \x1b \n ⁄ ∕ ／ file: \\\\?\\ CON "
    "/proc/self/root /proc/self/cwd /dev/fd/3 /etc/passwd src/up".split(" ")
)


@pytest.fixture
def hostile(root: Path) -> list[Workspace]:
    """Workspaces that try to lead out: links, a pipe, a socket, and archives with members that do."""
    folder = root / "ws"
    outside = root.parent
    canary = outside / "canary.txt"
    (folder / "link").symlink_to(canary)
    (folder / "up").symlink_to(outside)
    (folder / "src" / "up").symlink_to("../../..")
    (folder / "dev").symlink_to("/dev/zero")
    os.link(canary, folder / "hard")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "socket"))
    linked = zipfile.ZipInfo("link")
    linked.create_system = 3
    linked.external_attr = (stat.S_IFLNK | 0o777) << 16
    names = [
        "../../canary.txt",
        str(canary),
        "src/../../../canary.txt",
        "..\\canary.txt",
        "nul_name",
        "fine.txt",
    ]
    target = str(canary).encode()
    make_zip(root / "evil.zip", (linked, target), *((name, b"inside") for name in names))
    packed = (root / "evil.zip").read_bytes()
    (root / "evil.zip").write_bytes(packed.replace(b"nul_name", b"nul\0name"))
    members = [tar_member(name) for name in names]
    members += [
        tar_member("link", tarfile.SYMTYPE, str(canary)),
        tar_member("hard", tarfile.LNKTYPE, "../../canary.txt"),
        tar_member("up", tarfile.SYMTYPE, str(outside)),
        tar_member("up/canary.txt"),
        tar_member("dev", tarfile.CHRTYPE),
        tar_member("fifo", tarfile.FIFOTYPE),
    ]
    make_tar(root / "evil.tgz", *members, data=b"inside")
    return [open_workspace(str(root), name) for name in ("ws", "evil.zip", "evil.tgz")]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(_ESCAPES | st.text(max_size=4), min_size=1, max_size=5),
    separator=st.sampled_from(["/", "", "\\", "／"]),
    index=st.integers(0, 2),
    is_absolute=st.booleans(),
)
def test_a_path_tool_never_leaves_the_workspace(
    hostile: list[Workspace], parts: list[str], separator: str, index: int, is_absolute: bool
) -> None:
    workspace = hostile[index]
    path = separator.join(parts)
    if is_absolute:
        path = f"{workspace.root.parent}/{path}"
    for result in (
        call(workspace, "read_file", path=path[:2000]),
        call(workspace, "list_files", folder=path[:2000]),
        call(workspace, "grep", text="canary sings", folder=path[:2000]),
    ):
        assert CANARY not in result
        assert "root:" not in result
    if is_absolute or ".." in path.split("/"):
        assert call(workspace, "read_file", path=path[:2000]).startswith("refused")


def test_what_leads_out_is_neither_listed_nor_read(hostile: list[Workspace]) -> None:
    folder, zipped, tarred = hostile
    assert call(folder, "list_files").startswith("[3 files; 7 links, special files or unsafe names")
    assert call(zipped, "list_files") == (
        "[1 file; 6 links, special files or unsafe names left out]\n6 bytes| fine.txt"
    )
    assert "fine.txt" in call(tarred, "list_files")
    for workspace in hostile:
        for name in ("link", "hard", "fifo", "socket", "dev", "up/canary.txt", "../../canary.txt"):
            is_member = workspace is tarred and name == "up/canary.txt"
            result = call(workspace, "read_file", path=name)
            assert "1| inside" in result if is_member else result.startswith("refused")
        assert call(workspace, "grep", text="canary sings").startswith("[0 matches")


def test_a_file_that_becomes_a_link_or_a_pipe_after_it_was_checked_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = open_workspace(str(root), "ws")
    path = root / "ws" / "README.md"
    check = workspaces._stat_file
    replacements: list[Callable[[], None]] = [
        lambda: path.symlink_to(root.parent / "canary.txt"),
        lambda: os.link(root.parent / "canary.txt", path),
        lambda: os.mkfifo(path),
    ]
    for replace in replacements:

        def exchange(
            folder: int, name: str, replace: Callable[[], None] = replace
        ) -> os.stat_result | None:
            path.unlink(missing_ok=True)
            path.write_text("plain")
            status = check(folder, name)
            path.unlink()
            replace()
            return status

        monkeypatch.setattr(workspaces, "_stat_file", exchange)
        assert call(workspace, "read_file", path="README.md").startswith("refused")


@all_rows(
    "name, problem",
    [
        ("gone", "is not there"),
        ("../root/ws", "is no path below"),
        ("/etc", "is no path below"),
        ("", "is no path below"),
        (".", "is no path below"),
        ("a\0b", "is no path below"),
        ("x" * 300, "is no path below"),
        ("ws/README.md", "is neither a folder nor such an archive"),
        ("fifo.zip", "is neither a folder nor such an archive"),
        ("link", "is neither a folder nor such an archive, or a link to one"),
        ("link/src", "behind a link"),
        ("ws/README.md/x", "is not there"),
    ],
)
def test_what_is_no_workspace_is_named(root: Path, name: str, problem: str) -> None:
    if not (root / "link").is_symlink():
        (root / "link").symlink_to("ws")
        os.mkfifo(root / "fifo.zip")
    with pytest.raises(InputError, match=f"^workspace: .*{problem}.*(name a folder|leave it out)"):
        open_workspace(str(root), name)


def test_without_a_root_a_workspace_is_a_path_of_its_own(root: Path) -> None:
    assert "README.md" in call(open_workspace(None, str(root / "ws")), "list_files")
    for name in (str(root / "ws" / ".." / "ws"), "/", "a\0/b", str(root / "ws\0")):
        with pytest.raises(InputError, match="workspace: "):
            open_workspace(None, name)
    with pytest.raises(InputError, match="the config has no `workspaces`"):
        open_workspace(None, "elsewhere")


def test_broken_and_hostile_archives_are_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "MAX_UNPACKED_BYTES", 1 << 20)
    for module in (workspaces, files):
        monkeypatch.setattr(module, "MAX_FILE_BYTES", 1 << 16)
    make_tar(root / "bomb.tar.gz", tar_member("zeros"), tar_member("z"), data=b"\0" * (1 << 20))
    make_zip(root / "bomb.zip", ("ones.txt", b"1" * (1 << 20)))
    whole = (root / "bomb.zip").read_bytes()
    changed = whole.replace(b"\xed\xc1", b"\x07\x07", 1)
    assert changed != whole
    broken = {
        "empty.zip": b"",
        "noise.zip": b"PK\x05\x06" + b"\xff" * 40,
        "changed.zip": changed,
        "noise.tar": b"noise" * 1000,
        "empty.tar": b"",
        "noise.tgz": gzip.compress(b"noise" * 1000),
        "cut.tgz": (root / "bomb.tar.gz").read_bytes()[:200],
    }
    for name, data in broken.items():
        (root / name).write_bytes(data)
        workspace = open_workspace(str(root), name)
        assert call(workspace, "read_file", path="ones.txt").startswith("refused: the archive"), (
            name
        )
    assert call(open_workspace(str(root), "bomb.tar.gz"), "grep", text="x").startswith(
        "refused: the archive"
    )
    cut = call(open_workspace(str(root), "bomb.zip"), "read_file", path="ones.txt")
    assert cut.endswith("[only its first 65,536 bytes can be read]")
    assert "[1 lines, 65,536 characters in all]" in cut


def test_many_and_deep_files_are_bounded_and_said_to_be(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "MAX_VISITED_ENTRIES", 300)
    names = [f"{'long' * 20}-{number:03}.txt" for number in range(299)]
    make_zip(
        root / "many.zip", *((name, b"tea") for name in reversed(names)), ("a", b""), ("b", b"")
    )
    workspace = open_workspace(str(root), "many.zip")
    listed = call(workspace, "list_files")
    assert listed.startswith("[300 files; not all were visited]\n0 bytes| a\n3 bytes| long")
    assert listed.endswith(" more: name a folder or a pattern]")
    found = call(workspace, "grep", text="tea")
    assert found.startswith("[299 matches in 299 of 300 files; not all were visited]\nlong")
    assert found.endswith("[283 more: name a folder or a pattern]")
    for number in range(301):
        (root / "ws" / "src" / f"{number}.txt").touch()
    listed = call(open_workspace(str(root), "ws"), "list_files")
    assert listed.startswith("[299 files; not all were visited]\n13 bytes| README.md")
