"""Name the tests that `make check` runs: those of what changed since main, and those that any change may break.

`python -m tests.changed [FOLDER]...` prints paths below `tests`; folders that are named are printed, too.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

TESTS = Path("tests")
CONTRACTS = (
    "agents/test_params.py",
    "agents/test_registry.py",
    "bad_input/test_bad_input.py",
    "models/test_backends.py",
    "runs/test_run.py",
    "schema/test_contract.py",
    "test_composing_guide.py",
    "test_docs_reference.py",
    "test_pages.py",
    "test_public.py",
    "test_recorded_examples.py",
    "test_style.py",
)
"""Tests of what any change may break: names, messages, pages, recorded bits. At most twelve modules, and quick ones."""


def changed_files() -> list[Path]:
    """Return what differs from the commit where this branch left main, with what git does not know yet."""
    heads = _git(
        "for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/remotes/origin/main"
    )
    base = _git("merge-base", "HEAD", *heads[:1]) if heads else ["HEAD"]
    names = [
        *_git("diff", "--name-only", *base),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]
    return [Path(name) for name in names]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def mirrored_tests(changed: Iterable[Path]) -> set[Path]:
    """Return the existing tests that mirror changed files; a test module stands for itself."""
    found = {tests for path in changed if (tests := _mirror(path)) is not None}
    return {tests for tests in found if not found.intersection(tests.parents)}


def _mirror(path: Path) -> Path | None:
    """Return the test module of a file's name, in the folder that mirrors its own or above, else the nearest folder.

    A module in a folder of the package is not mirrored by a test of the same name directly below `tests`.
    """
    package, *folders = path.parts[:-1] or ("",)
    if package not in ("jurygraph", "tests"):
        return None
    name = path.name if path.name.startswith("test_") else f"test_{path.stem}.py"
    mirrors = [TESTS.joinpath(*folders[:depth]) for depth in range(len(folders), 0, -1)]
    candidates = [folder / name for folder in mirrors or [TESTS]] + mirrors
    return next((tests for tests in candidates if tests.exists()), None)


if __name__ == "__main__":
    named = {TESTS / folder for folder in sys.argv[1:]}
    print(*sorted(mirrored_tests(changed_files()) | named | set(map(TESTS.joinpath, CONTRACTS))))
