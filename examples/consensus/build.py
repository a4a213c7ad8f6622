"""Writes mtbench.csv.gz and mslr.csv.gz, as STABLEVAL made its labels, from votes and facets as they are published.

    python -m examples.consensus.build

MT-Bench: each vote gives both models a label (section 5.1, appendix C). MSLR: the facets that were rated are averaged.
"""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean

from examples.consensus.votes import pairwise, table

HERE = Path(__file__).parent
COLUMNS = ("item", "agent", "annotator", "label")
HIGH, MEDIUM = 1.5, 0.75
"""From which mean of the facets on a summary is of high (2) or medium (1) quality; else it is of low (0)."""
Row = tuple[str, str, str, int]


def main() -> None:
    for name, rows in (("mtbench", mtbench()), ("mslr", mslr())):
        _write(HERE / f"{name}.csv.gz", rows)


def mtbench() -> Iterator[Row]:
    """Two ratings for each of the people's votes."""
    for vote in pairwise("mtbench_human"):
        yield from vote.ratings()


def mslr() -> Iterator[Row]:
    """A rating for each summary and annotator. A facet that was left empty does not count."""
    for review, system, annotator, *facets in table("mslr_facets"):
        mean = fmean(int(one) for one in facets if one)
        place = int(annotator.removeprefix("A")) - 1
        yield (
            f"mslr_Cochrane_{review}",
            system,
            f"annotator_{place}",
            (mean >= MEDIUM) + (mean >= HIGH),
        )


def _write(path: Path, rows: Iterable[Row]) -> None:
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([COLUMNS, *rows])
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(lines.getvalue().encode())


if __name__ == "__main__":
    main()
