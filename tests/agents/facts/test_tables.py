"""Rows by their keys, in the task, in a file and behind a tool."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jurygraph.agents.facts.tables import FactTableSpec, ReferenceFactTable, RowTable, ToolTable
from jurygraph.errors import InputError
from tests.agents.facts.examples import (
    PLACES,
    SUFFIXES,
    Rows,
    write_table,
)
from tests.rows import all_rows

KEY = ("name", "city")
IN_ROCKFORD = ("Coco Bambu", "Rockford")


def inline(rows: Rows, key: tuple[str, ...] = KEY, **fields: Any) -> RowTable:
    return RowTable("places", FactTableSpec(key=key, rows=tuple(map(dict, rows)), **fields))


def in_file(path: Path, key: tuple[str, ...] = KEY, **fields: Any) -> RowTable:
    return RowTable("places", FactTableSpec(key=key, file=str(path), **fields))


def behind(tool: Any, key: tuple[str, ...] = KEY, **fields: Any) -> ToolTable:
    return ToolTable("places", FactTableSpec(key=key, tool="maps", **fields), tool)


def values(table: ReferenceFactTable, *key: str) -> list[Mapping[str, Any]]:
    return [row.values for row in asyncio.run(table.find(key))]


def numbers(table: ReferenceFactTable, *key: str) -> list[int]:
    return [row.number for row in asyncio.run(table.find(key))]


@pytest.fixture(params=["inline", *SUFFIXES])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> ReferenceFactTable:
    return (
        inline(PLACES)
        if request.param == "inline"
        else in_file(write_table(tmp_path / f"t{request.param}", PLACES))
    )


def test_a_row_is_found_by_its_whole_key_and_its_places_by_its_name(
    places: ReferenceFactTable,
) -> None:
    keys = (IN_ROCKFORD, ("Subway", "Peoria"), ("Subway", "Rockford"), ("coco bambu", "Rockford"))
    assert [numbers(places, *key) for key in keys] == [[1], [4], [], []]
    assert [list(places.places(name)) for name in ("Subway", "Nowhere")] == [[("Peoria",)], []]


def test_keys_are_looked_up_normalised() -> None:
    table = inline([{"name": " Cafe\u0301\u00a0X", "city": 25.0}])
    assert numbers(table, "Café X", "25") == [1]
    assert table.build_row_key({"name": "Ｃafé  X", "city": "25"}) == ("Café X", "25")


SUBWAYS: Rows = [
    {"name": "Subway", "city": "Peoria", "cost": 30, "since": 10},
    {"name": "Subway", "city": "Peoria", "cost": 20, "since": 9},
    {"name": "Subway", "city": "Peoria", "cost": 10},
    {"name": "Subway", "city": "Peoria", "cost": 40, "since": "2022-03-01"},
]


@pytest.mark.parametrize("suffix", [None, *SUFFIXES])
def test_the_first_row_of_a_key_by_the_order_column_counts(
    suffix: str | None, tmp_path: Path
) -> None:
    table: ReferenceFactTable = inline(SUBWAYS, order="since")
    if suffix is not None:
        in_words = [{**row, "since": str(row.get("since", ""))} for row in SUBWAYS]
        table = in_file(write_table(tmp_path / f"t{suffix}", in_words), order="since")
    assert numbers(table, "Subway", "Peoria") == [2, 1, 4, 3]


@pytest.mark.parametrize(
    ("name", "content"),
    [("t.csv", ""), ("t.csv", "title,cost\n"), ("t.json", "[]"), ("t.jsonl", "")],
)
def test_a_file_without_rows_is_refused(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(
        InputError, match="holds no rows, so nothing could be found in it; name another file"
    ):
        in_file(tmp_path / name)


@pytest.mark.parametrize(("cells", "notes"), [("Luna,Rome", 1), ("Luna,Rome,", 0)])
def test_a_line_that_lacks_cells_is_named(
    cells: str, notes: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "hotels.csv"
    path.write_text(f"name,city,night\nSole,Rome,120\n{cells}\n")
    RowTable("hotels", FactTableSpec(key=("name",), file=str(path)))
    assert len(caplog.messages) == notes
    assert caplog.text.count(f"{path}, line 3: has fewer cells than columns") == notes


def test_a_file_that_is_written_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_table(tmp_path / "t.csv", PLACES)
    key_of = RowTable.build_row_key

    def write_meanwhile(table: RowTable, values: Mapping[str, Any]) -> Any:
        path.write_text("name,city\n")
        return key_of(table, values)

    monkeypatch.setattr(RowTable, "build_row_key", write_meanwhile)
    with pytest.raises(
        InputError, match=r"t\.csv: changed while it was read; leave it as it is and prepare again"
    ):
        in_file(path)


@pytest.mark.landing
def test_an_index_without_space_is_reported(tmp_path: Path) -> None:
    write_table(
        tmp_path / "t.csv",
        [{"name": f"Inn {number}", "note": "x" * 500} for number in range(4_000)],
    )
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "from tests.agents.facts.test_tables import Path, in_file; in_file(Path('t.csv'), ('name',))"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=paths, capture_output=True, text=True
    )
    assert "jurygraph.errors.InputError: there is no space for temporary files (" in ended.stderr
    assert ended.stderr.endswith(
        "; set TMPDIR to a folder that has more than the files to read need\n"
    )


class Giving:
    """A tool that gives what it was made with."""

    def __init__(self, given: Any) -> None:
        self.given = given

    async def ainvoke(self, arguments: Any) -> Any:
        return self.given


GIVEN: list[tuple[Any, list[Any]]] = [
    *(
        (None, []),
        ({}, []),
        ([{}], []),
        ({"error": "not found"}, []),
        ({"name": "a"}, []),
        ([{"city": "b"}], []),
    ),
    ({"name": "a", "city": "b"}, [{"name": "a", "city": "b"}]),
    (
        [
            {
                "name": "a",
                "city": "b",
                "on": date(2022, 3, 1),
                "cost": Decimal("2.50"),
                "list": ({"a": b"x"},),
                1: True,
            }
        ],
        [
            {
                "name": "a",
                "city": "b",
                "on": "2022-03-01",
                "cost": "2.50",
                "list": [{"a": "x"}],
                "1": True,
            }
        ],
    ),
]


@all_rows(("given", "rows"), GIVEN)
def test_a_tool_gives_rows_with_the_key_as_json(given: Any, rows: list[Any]) -> None:
    assert values(behind(Giving(given)), "a", "b") == rows


@all_rows(("given", "message"), [("a row", "gave str"), (5, "gave int"), ([{}, "x"], "gave list")])
def test_an_invalid_row_is_reported(given: Any, message: str) -> None:
    with pytest.raises(
        TypeError,
        match=f"facts table 'places': its tool {message}; give a mapping, or a list of such",
    ):
        values(behind(Giving(given)), "a", "b")
