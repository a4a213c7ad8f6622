"""The column `reference_information`: tables printed as text, one for each search that was made."""

import re
from typing import Any

from jurygraph.messages import describe_value, quote

_COLUMNS: dict[str, tuple[str, ...]] = {
    "Attractions": ("Name", "Latitude", "Longitude", "Address", "Phone", "Website", "City"),
    "Restaurants": ("Name", "Average Cost", "Cuisines", "Aggregate Rating", "City"),
    "Accommodations": (
        "NAME", "price", "room type", "house_rules", "minimum nights", "maximum occupancy", "review rate number", "city"
    ),
    "Flight": (
        "Flight Number", "Price", "DepTime", "ArrTime", "ActualElapsedTime", "FlightDate", "OriginCityName",
        "DestCityName", "Distance",
    ),
}  # fmt: skip
_INDEXED = "Restaurants"
"""The kind of table that was printed with the numbers of its rows, as a first column without a name."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_NUMERIC = {
    "Latitude", "Longitude", "Average Cost", "Aggregate Rating", "price", "minimum nights", "maximum occupancy",
    "review rate number", "Price", "Distance",
}  # fmt: skip


def read_reference(searches: Any) -> dict[str, Any] | None:
    """Return the content of each search by its description: rows, or the text about a drive or an empty table.

    Raises ValueError for a search without description and content, and for a table whose columns are not where its
    first line has them.
    """
    if searches is None:
        return None
    if not isinstance(searches, list) or not all(isinstance(one, dict) for one in searches):
        raise ValueError(
            f"is not a list of searches but {describe_value(searches)}; each is a record"
        )
    found: dict[str, Any] = {}
    for search in searches:
        description, content = search.get("Description"), search.get("Content")
        if not isinstance(description, str):
            raise ValueError("has a search without a Description; give each one")
        kind = re.split(r" in | from ", description)[0]
        is_table = kind in _COLUMNS and isinstance(content, str) and "\n" in content
        found[description] = _parse_table(kind, description, content) if is_table else content
    return found


def _parse_table(kind: str, description: str, text: str) -> list[dict[str, Any]]:
    """Return the rows of a table with columns aligned on the right, each as wide as its widest cell."""
    columns, (header, *lines) = _COLUMNS[kind], text.split("\n")
    match = re.fullmatch(
        r"\s*" + r"\s+".join(f"({re.escape(column)})" for column in columns), header
    )
    if match is None:
        raise ValueError(f"has other columns in {quote(description)} than {', '.join(columns)}")
    ends = [match.end(number) for number in range(1, len(columns) + 1)]
    starts = [0, *ends[:-1]]
    rows = []
    for line in lines:
        cells = [line[start:end] for start, end in zip(starts, ends, strict=True)]
        if len(line) != ends[-1] or not all(cell.startswith(" ") for cell in cells[1:]):
            raise ValueError(
                f"has a row in {quote(description)} whose cells are not below its columns"
            )
        if kind == _INDEXED:
            cells[0] = re.sub(r"^\d+ ", "", cells[0])
        rows.append(
            {name: _to_cell(name, cell.strip()) for name, cell in zip(columns, cells, strict=True)}
        )
    return rows


def _to_cell(column: str, text: str) -> Any:
    if column not in _NUMERIC or not _NUMBER.fullmatch(text):
        return None if text in ("NaN", "None") else text.replace("\\n", "\n")
    return int(text) if text.isdecimal() else float(text)
