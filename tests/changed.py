"""Name the tests of what changed since main: the folder of tests that mirrors each changed module's, or the module.

`python -m tests.changed [FOLDER]...` prints paths below `tests`; folders that are named are printed, too.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

TESTS = Path("tests")


def changed_files() -> list[Path]:
    """Return what differs from the commit where this branch left main, with what git does not know yet."""
    heads = _git("for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/remotes/origin/main")
    base = _git("merge-base", "HEAD", *heads[:1]) if heads else ["HEAD"]
    names = [*_git("diff", "--name-only", *base), *_git("ls-files", "--others", "--exclude-standard")]
    return [Path(name) for name in names]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def mirrored_tests(changed: Iterable[Path]) -> set[Path]:
    """Return the existing tests that mirror changed files; a test module stands for itself."""
    found = {place for path in changed if (place := _mirror(path)) is not None}
    return {place for place in found if not found.intersection(place.parents)}


def _mirror(path: Path) -> Path | None:
    if path.parts[0] == "tests":
        is_test = path.name.startswith("test_") and path.suffix == ".py"
        place = path if is_test else path.parent
    elif path.parts[0] == "jurygraph" and len(path.parts) > 2:
        place = TESTS.joinpath(*path.parts[1:-1])
    elif path.parts[0] == "jurygraph":
        place = TESTS / f"test_{path.stem}.py"
    else:
        return None
    while not place.exists():
        place = place.parent
    return None if place == TESTS else place


if __name__ == "__main__":
    named = {TESTS / folder for folder in sys.argv[1:]}
    print(*sorted(mirrored_tests(changed_files()) | named))
