"""Changes a price in the folder's table, as a landlord might: the room that costs $1107 a night is $1230 from now on.

python examples/investigator/raise_price.py FOLDER
"""

import sys
from pathlib import Path

ROOM = "Private bedroom in BedStuy!,Rockford,night,"


def main(folder: str) -> None:
    table = Path(folder) / "prices.csv"
    content = table.read_text(encoding="utf-8")
    changed = content.replace(f"{ROOM}1107\n", f"{ROOM}1230\n")
    if changed == content:
        sys.exit(f"{table}: has no line {ROOM}1107; run prepare.py again")
    table.write_text(changed, encoding="utf-8")
    print(f"{table}: {ROOM}1107 → 1230")


if __name__ == "__main__":
    main(*sys.argv[1:])
