"""`reference_information`: printed tables become the rows that they were printed from."""

from typing import Any

import pytest

from examples.group_trip.travelplanner.reference_text import read_reference

ROWS: dict[str, list[dict[str, Any]]] = {
    "Attractions in Bangor": [
        {"Name": "The Old Mill", "Latitude": 44.8, "Longitude": -68.75, "Address": "1 Mill Rd, Bangor",
         "Phone": "Unknown", "Website": "Unknown", "City": "Bangor"},
        {"Name": "Hill", "Latitude": 44.25, "Longitude": -68.0, "Address": "Hill", "Phone": "(207) 555",
         "Website": "a.b", "City": "Bangor"},
    ],
    "Restaurants in Bangor": [
        {"Name": "39 Steps", "Average Cost": 9, "Cuisines": "Tea, Cafe", "Aggregate Rating": 4.5, "City": "Bangor"},
        {"Name": "Deli", "Average Cost": 100, "Cuisines": "Indian", "Aggregate Rating": 0.0, "City": "Bangor"},
    ],
    "Flight from Bangor to New York on 2022-03-16": [
        {"Flight Number": "F12", "Price": 90, "DepTime": "10:00", "ArrTime": "12:00",
         "ActualElapsedTime": "2 hours 0 minutes", "FlightDate": "2022-03-16", "OriginCityName": "Bangor",
         "DestCityName": "New York", "Distance": 400}
    ],
}  # fmt: skip


def print_table(rows: list[dict[str, Any]], indices: list[int] | None) -> str:
    """Print rows as the data set has them: cells on the right, and indices, if there are any, on the left."""
    names = list(rows[0])
    lines = [names, *([str(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(names))]
    texts = [
        " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    if indices is None:
        return "\n".join(texts)
    heads = ["", *map(str, indices)]
    return "\n".join(
        f"{head.ljust(max(map(len, heads)))} {text}"
        for head, text in zip(heads, texts, strict=True)
    )


def test_printed_tables_are_read_as_their_rows() -> None:
    searches = [
        {
            "Description": name,
            "Content": print_table(rows, [39, 251] if name.startswith("Restaurants") else None),
        }
        for name, rows in ROWS.items()
    ]
    assert read_reference(searches) == ROWS


def test_other_content_stays_and_no_column_has_no_facts() -> None:
    drive = "taxi, from Bangor to New York, duration: 1, distance: 1, cost: 5"
    assert read_reference([{"Description": "Taxi from Bangor to New York", "Content": drive}]) == {
        "Taxi from Bangor to New York": drive
    }
    assert read_reference(None) is None


WIDER = print_table(ROWS["Restaurants in Bangor"], [1, 2]) + "x"


@pytest.mark.parametrize(
    ("searches", "words"),
    [
        ("nothing", "is not a list of searches"),
        ([{"Content": "x"}], "has a search without a Description"),
        (
            [{"Description": "Restaurants in Bangor", "Content": "Name Cost\n Tea 1"}],
            "has other columns in 'Restaur",
        ),
        (
            [
                {
                    "Description": "Restaurants in Bangor",
                    "Content": print_table(ROWS["Restaurants in Bangor"], [1, 2]) + "x",
                }
            ],
            "has a row in 'Restaurants in Bangor' whose cells are not below its columns",
        ),
    ],
)
def test_text_that_is_no_printed_table_is_named(searches: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_reference(searches)
