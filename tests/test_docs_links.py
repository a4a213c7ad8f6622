"""Pages of Markdown lead somewhere: no link is dead, no page is lost, and every path that is named is there."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.rows import all_rows

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page
    for folder in ("", "docs", "examples", "tests", "jurygraph", "benchmarks")
    for page in (ROOT / folder).glob("*.md" if not folder else "**/*.md")
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ROOMS = "benchmarks|docs|examples|jurygraph|tests"
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    dead = []
    for link in LINK.findall(prose(page)):
        path, _, heading = link.partition("#")
        if "://" in link:
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.is_file() or (heading and heading not in anchors(there)):
            dead.append(link)
    assert dead == []


@all_rows("page", [page for page in PAGES if "templates" not in page.parts])
def test_every_path_that_is_named_is_there(page: Path) -> None:
    """A template names files of the project that is made of it; a pattern (`*`) is no path."""
    named = re.findall(rf"`((?:{ROOMS})/[\w./-]+)`", prose(page))
    assert [path for path in named if not (ROOT / path).exists()] == []


@all_rows("page", [page for page in PAGES if "templates" not in page.parts])
def test_a_name_is_defined_in_the_file_that_stands_behind_it(page: Path) -> None:
    """`name` (`path`), or `name`, `path` within brackets; of `Class.method`, the method."""
    named = re.findall(
        rf"`(?!jurygraph\.)([A-Za-z_.]+)`(?: \(|,\s)`((?:{ROOMS})/[\w./]+\.py)`",
        re.sub(r"\s+", " ", prose(page)),
    )
    lost = []
    for name, path in named:
        own = name.rpartition(".")[2]
        definition = rf"(?:def|class) {own}\b|^{own}\b.* = "
        if not re.search(definition, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE):
            lost.append((name, path))
    assert lost == []


def test_contributing_names_every_package_from_the_highest_layer_to_the_lowest() -> None:
    table = (
        (ROOT / "CONTRIBUTING.md")
        .read_text(encoding="utf-8")
        .partition("| package |")[2]
        .partition("\n\n")[0]
    )
    named = [
        name
        for row in table.splitlines()[2:]
        for name in re.findall(r"`(\w+)(?:/|\.py)`", row.split("|")[1])
    ]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    assert ["__main__", *named] == layers


def test_papers_names_modules_and_tests_for_all_five() -> None:
    sections = prose(ROOT / "docs" / "papers.md").split("\n## ")[1:]
    assert len(sections) == 5
    for section in sections:
        assert {"jurygraph", "tests"} <= {
            path.partition("/")[0] for path in re.findall(r"`([\w./-]+/[\w./-]*)`", section)
        }
        assert "**Reproduced.**" in section
        assert "**Not.**" in section


def test_every_page_and_example_is_linked_from_the_index_of_the_docs() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text("utf-8"))}
    pages = {*ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")} - {index}
    assert pages <= {Path(str(link).partition("#")[0]) for link in linked}
    assert "docs/README.md" in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_docs_stay_short_enough_to_be_read() -> None:
    """Who adds a page says something elsewhere in fewer words; `wc -w` counts the same."""
    pages = [*ROOT.glob("docs/*.md"), ROOT / "README.md"]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 58_000
