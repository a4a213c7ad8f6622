"""Pages of Markdown as a reader follows them: commands are typed, and what is shown is compared with what comes out.

A block of text shows the output of the command in the comment `<!-- from: ... -->` above it, of the one after `$` in
its first line, or else of the command before it. The page wraps lines, and `…` stands for what it leaves out.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.command import run_command
from tests.models.server import Script, Server, run_server

ROOT = Path(__file__).parent.parent
SERVER = "http://127.0.0.1:8000/v1"
"""Where pages say that a model is served."""
_FENCED = re.compile(r"^(?:<!-- from: (.*?) -->\n)?```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Typed(NamedTuple):
    """The exit code of a command and what it printed: its results before its messages."""

    code: int
    printed: str


def read_page(name: str) -> str:
    """Return the text of a page, by its path in the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(page: str, *languages: str) -> list[str]:
    """Return the contents of a page's code blocks in any of these languages."""
    return [text for _, language, text in _FENCED.findall(page) if language in languages]


def commands(page: str) -> list[str]:
    """Return every line that a page has a reader type in a shell."""
    typed = [block.replace("\\\n", "") for block in blocks(page, "sh", "bash")]
    return [line for block in typed for line in block.splitlines()]


def without_comment(line: str) -> str:
    """Return a command without the comment after it."""
    return re.sub(r"\s+#.*", "", line)


def type_line(line: str, folder: Path) -> Typed:
    """Run a line of a page in a folder, without its comment; a script runs in a process of its own.

    Results go to the file after `>`, where there is one.
    """
    typed, _, target = without_comment(line).removesuffix(" || true").partition(" > ")
    program, *arguments = shlex.split(typed)
    if program == "jurygraph":
        code, out, err = run_command(*arguments, cwd=folder)
    else:
        assert program == "python", f"{line}: nothing but our commands and Python are typed"
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    if target:
        (folder / target).write_text(out, encoding="utf-8")
        out = ""
    return Typed(code, out + err)


def require_shown(shown: str, printed: str) -> None:
    """Fail unless all paragraphs and pieces that a page shows come out, in their order."""
    rest = " ".join(printed.split())
    for piece in filter(
        None, (" ".join(part.split()) for part in re.split(r"^…?$", shown, flags=re.MULTILINE))
    ):
        assert piece in rest, f"{piece}\n\nis not in\n\n{printed}"
        rest = rest.partition(piece)[2]


def steps(page: str) -> Iterator[tuple[bool, str, str]]:
    """Yield what a reader does: whether something is shown, the command that is typed or shown, and the shown text."""
    for source, language, text in _FENCED.findall(page):
        if language in ("sh", "bash"):
            yield from ((False, line, "") for line in commands(f"```sh\n{text}```"))
        elif language == "text" and text.startswith("$ "):
            command, _, shown = text.removeprefix("$ ").partition("\n")
            yield True, command, shown
        elif language == "text":
            yield True, source, text


def follow(
    page: str, folder: Path, script: Script, skipped: tuple[str, ...] = (), may_fail: str = "$^"
) -> dict[str, Typed]:
    """Follow a page from top to bottom in a folder, and return what became of each command.

    Args:
        page: The page's text.
        folder: Where commands are typed. Its configs name the page's server.
        script: How the model at that server answers.
        skipped: The commands that are not typed, as the page has them, without a comment.
        may_fail: Which commands may end with exit code 1; so may those that end in `|| true`.
    """
    typed: dict[str, Typed] = {}
    assert set(skipped) <= {without_comment(line) for line in commands(page)}

    def type_next(line: str, server: Server) -> None:
        typed[line] = type_line(line.replace(SERVER, server.url), folder)
        allowed = (0, 1) if line.endswith("|| true") or re.search(may_fail, line) else (0,)
        assert typed[line].code in allowed, f"{line}: {typed[line].printed}"

    with run_server(script) as server:
        for path in folder.glob("*.yaml"):
            path.write_text(
                path.read_text(encoding="utf-8").replace(SERVER, server.url), encoding="utf-8"
            )
        for shows, line, text in steps(page):
            if without_comment(line) in skipped:
                continue
            if line and not (shows and line in typed):
                type_next(line, server)
            if shows and typed:
                require_shown(text, typed[line or list(typed)[-1]].printed)
    return typed
