"""Convert a file of TravelPlanner to tasks: `python -m examples.group_trip.travelplanner FILE TASKS [STAKEHOLDERS]`.

Rows that cannot be read, and what is unusual, are listed on standard error; the exit code is 1 if a row was skipped.
"""

import sys
from pathlib import Path

from examples.group_trip.travelplanner import Skipped, import_travelplanner
from jurygraph.errors import InputError


def main(source: str, target: str, stakeholders: str | None = None) -> int:
    """Write the tasks, or nothing if none can be read; return the exit code."""
    skipped = 0
    lines: list[str] = []
    for row in import_travelplanner(source, stakeholders):
        if isinstance(row, Skipped):
            skipped += 1
            print(f"skipped: {row.error}", file=sys.stderr)
            continue
        for text, place in row.notes:
            print(f"{place}: {text}", file=sys.stderr)
        if row.task is not None:
            lines.append(row.task.model_dump_json(exclude_defaults=True) + "\n")
    Path(target).write_text("".join(lines), encoding="utf-8")
    print(
        f"{len(lines)} tasks; next: jurygraph score {target} --config examples/group_trip/jury.yaml --out my-trip"
    )
    return int(skipped > 0)


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except InputError as error:
        sys.exit(f"error: {error}")
