"""The tool `price` of the judge: a plain function, which reads the table next to it each time that it is called."""

import csv
from pathlib import Path

TABLE = Path(__file__).with_name("prices.csv")


def price(item: str) -> str:
    """Return the price of a meal or a room, by the name that the plan has for it, such as `Coco Bambu`."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["item"] == item:
                return f"{row['item']} ({row['city']}): ${row['price']} a {row['unit']}"
    raise LookupError("the price table has no such item")
