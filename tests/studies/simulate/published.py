"""STABLEVAL's published means of its simulations, and the tolerance for a mean over other seeds."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.studies.simulate import RECOVERY_MEASURE_NAMES

_COLUMNS = {"majority": "mv", "dawid-skene": "ds", "stableval": "pec"}
_SEVERAL = 4.0


class _Table(NamedTuple):
    """A column's name in the file, the unit it is in, and half a unit of the digit that the paper prints."""

    column: str
    unit: float
    half: float


COLUMNS = {
    "mse": _Table("mse", 1e-3, 0.005),
    "accuracy": _Table("acc", 0.01, 0.05),
    "tau_b": _Table("tau", 1.0, 0.0005),
}


TABLE_5: Mapping[str, tuple[float, float]] = {
    "labels_3": (0.985, 0.989),
    "labels_5": (0.988, 0.991),
    "labels_7": (0.987, 0.992),
    "labels_9": (0.987, 0.992),
}
"""The stability of majority vote and of PEC as printed; the printed column of Dawid-Skene is PEC's."""


def _read() -> dict[str, dict[str, str]]:
    path = Path(__file__).parents[2] / "data" / "stableval" / "synthetic.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return {row["cfg"]: row for row in csv.DictReader(file)}


EXPECTED: Mapping[str, Mapping[str, str]] = _read()


def off(
    name: str, found: Floats, figures: Sequence[str] = tuple(COLUMNS)
) -> dict[tuple[str, str], tuple[float, float]]:
    """Means (ours, theirs) of figures [S,M,F] that lie too far apart, by method and figure.

    Too far is more than 4 standard errors of the difference, √2 times ours each, and more than half a unit of the
    printed digit.
    """
    far = {}
    for figure in figures:
        column, unit, half = COLUMNS[figure]
        for by_seed, (method, short) in zip(
            found[:, :, RECOVERY_MEASURE_NAMES.index(figure)].T, _COLUMNS.items(), strict=True
        ):
            ours, theirs = by_seed.mean() / unit, float(EXPECTED[name][f"{column}_{short}"])
            error = 2**0.5 * by_seed.std(ddof=1) / np.sqrt(len(by_seed)) / unit
            if abs(ours - theirs) > max(_SEVERAL * error, half):
                far[method, figure] = ours, theirs
    return far
