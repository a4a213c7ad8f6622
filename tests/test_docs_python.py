"""Every block of Python in README and docs runs: here, or in the test of its page."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.command import run_script
from tests.pages import ROOT, blocks, read_page

PAGES_WITH_OWN_TEST = {
    "README.md",
    "docs/composing.md",
    "docs/judges.md",
    "docs/pytest.md",
    "docs/python.md",
    "docs/tour.md",
    "docs/watching.md",
}
VOTES: dict[str, Any] = {
    "item": ["a", "a", "a", "b", "b", "b", "c", "c", "c"],
    "annotator": ["ann", "bob", "cy"] * 3,
    "label": [1, 1, 0, 0, 0, 0, 1, 0, 1],
    "agent": ["x", "x", "x", "y", "y", "y", "x", "x", "x"],
    "prompt": ["p", "p", "p", "p", "p", "p", "q", "q", "q"],
}
SCRIPTS = {"docs/conversations.md"}
"""Pages of which each block is a script of its own; a comment after `print` begins with what comes."""
TRAINERS = {"docs/training.md"}
"""Pages whose blocks need a trainer's package, which other tests run: here what they import of ours is there."""
GIVEN_BY_PAGE: dict[str, dict[str, Any]] = {
    "docs/consensus.md": VOTES,
    "docs/from-a-paper.md": {},
    "docs/reliability.md": {},
}
"""What the blocks of a page take as given."""
SHOWN = re.compile(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", re.DOTALL)


def test_no_page_with_python_is_left_out() -> None:
    pages = [Path("README.md"), *(path.relative_to(ROOT) for path in ROOT.glob("docs/*.md"))]
    with_python = {str(page) for page in pages if blocks(read_page(str(page)), "python")}
    assert with_python == PAGES_WITH_OWN_TEST | SCRIPTS | TRAINERS | GIVEN_BY_PAGE.keys()


@pytest.mark.parametrize("page", sorted(GIVEN_BY_PAGE))
def test_the_python_of_a_page_prints_what_the_page_shows(page: str) -> None:
    names = dict(GIVEN_BY_PAGE[page])
    for code, shown in SHOWN.findall(read_page(page)):
        with redirect_stdout(StringIO()) as printed:
            exec(compile(code, page, "exec"), names)
        assert printed.getvalue() == shown


def test_the_scripts_about_conversations_print_what_the_page_says(tmp_path: Path) -> None:
    page = read_page("docs/conversations.md")
    scripts = blocks(page, "python")
    done = [run_script(write_script(tmp_path, script), cwd=tmp_path) for script in scripts]
    assert [run.code for run in done] == [0, 0]
    assert f"```\n{done[0].out}```\n" in page
    assert done[1].out.startswith("0.5\n")
    assert "(polite in turn 2: it is rude)" in done[1].out


def write_script(folder: Path, script: str) -> Path:
    path = folder / "use.py"
    path.write_text(script, encoding="utf-8")
    return path


@pytest.mark.parametrize("page", sorted(TRAINERS))
def test_what_scripts_of_trainers_import_of_ours_is_there(page: str) -> None:
    for script in blocks(read_page(page), "python"):
        for line in re.findall(r"^from jurygraph.*", script, re.MULTILINE):
            exec(line, {})
