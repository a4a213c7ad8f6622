"""The pictures in docs/architecture.md are what the code gives; `python -m tests.test_docs_architecture` draws them."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.command import run_command

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
SHOWN = re.compile(
    r"<!-- from: (?P<source>[^\n]*) -->\n```mermaid\n(?P<picture>.*?)```", flags=re.DOTALL
)
Imports = Mapping[str, set[str]]


@cache
def imports_of_rooms() -> Imports:
    """By each room, the rooms that its modules import, in the order of the layers in pyproject.toml."""
    import grimp

    graph = grimp.build_graph("jurygraph")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]
    for ignored in layers["ignore_imports"]:  # a jury offers to record what it scores
        importer, imported = ignored.split(" -> ")
        graph.remove_import(importer=importer, imported=imported)
    _, *rooms = layers["layers"]
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module in graph.modules - {"jurygraph", "jurygraph.__main__"}:  # in no room
        imported = graph.find_modules_directly_imported_by(module) - {"jurygraph"}
        found[_room(module)] |= {_room(one) for one in imported} - {_room(module)}
    return found


def _room(module: str) -> str:
    return module.split(".")[1]


def reached(imports: Imports, room: str) -> set[str]:
    """The rooms that a room leads to, itself not counted unless a cycle leads back."""
    return imports[room].union(*(reached(imports, one) for one in imports[room]))


def needed(imports: Imports) -> dict[str, list[str]]:
    """The imports that no others imply: of what a room imports, all that it does not reach through another import."""
    order = list(imports)
    return {
        room: sorted(direct.difference(*(reached(imports, one) for one in direct)), key=order.index)
        for room, direct in imports.items()
    }


def draw_rooms() -> str:
    """The rooms and their imports as a Mermaid diagram."""
    arrows = [
        f"\t{room} --> {one};"
        for room, below in needed(imports_of_rooms()).items()
        for one in below
    ]
    return "\n".join(["graph TD;", *arrows, ""])


def picture(source: str) -> str:
    """The picture that a command of the page gives."""
    if source == "python -m tests.test_docs_architecture":
        return draw_rooms()
    _, *arguments = source.split()
    return run_command(*arguments).out.rstrip("\n") + "\n"


def test_a_detour_takes_the_place_of_a_direct_import() -> None:
    assert needed({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": ["b"], "b": ["c"], "c": []}


@pytest.mark.landing
def test_every_room_is_drawn() -> None:
    imports = imports_of_rooms()
    assert len(imports) == 31
    assert [room for room in imports if room not in draw_rooms()] == []


@pytest.mark.parametrize("place", range(2))
def test_a_picture_is_what_the_code_gives(place: int) -> None:
    shown = list(SHOWN.finditer(PAGE.read_text(encoding="utf-8")))
    assert len(shown) == 2
    assert shown[place]["picture"] == picture(shown[place]["source"])


def main() -> None:
    """Write the page's pictures anew."""
    page = PAGE.read_text(encoding="utf-8")
    drawn = SHOWN.sub(
        lambda m: f"<!-- from: {m['source']} -->\n```mermaid\n{picture(m['source'])}```", page
    )
    PAGE.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
