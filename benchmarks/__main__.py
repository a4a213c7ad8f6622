"""Run the benchmarks named on the command line, or all, and print their figures; exit 1 if a target is missed."""

import sys
from collections.abc import Iterable
from importlib import import_module

from benchmarks.figure import Figure

NAMES = (
    "imports",
    "start",
    "gear",
    "machine",
    "tail",
    "serving",
    "maths",
    "inference",
    "units",
    "plug_in",
    "wording",
    "trip",
    "store",
    "page",
    "recording",
    "shards",
    "trainers",
    "sizes",
    "models",
    "panel",
    "judges",
    "specialists",
    "monitor",
    "stability",
    "stableval",
    "large",
)


def main(chosen: list[str]) -> int:
    missed = 0
    for name in chosen or NAMES:
        if name not in NAMES:
            print(f"no benchmark {name!r}: there are {', '.join(NAMES)}", file=sys.stderr)
            return 2
        print(f"{name}")
        missed += print_figures(import_module(f"benchmarks.{name}").measure())
    return 1 if missed else 0


def print_figures(figures: Iterable[Figure]) -> int:
    """Print figures, and return how many of them miss their target."""
    missed = 0
    for figure in figures:
        verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
        missed += figure.met is False
        print(
            f"  {figure.name:58} {figure.value:10.3f} {figure.unit:16} {figure.target:16} {verdict}",
            flush=True,
        )
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
