"""STABLEVAL's simulated configurations (Tables 4 to 7), with the numbers that the paper prints for them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from jurygraph.studies.simulate.generator import Setting

Sweep = Literal["labels", "gaps", "adversarial", "strict", "lenient", "hard"]
Cells = tuple[float, float, float]
"""Majority, hard Dawid-Skene, and posterior expected credit."""


class Configuration(NamedTuple):
    """A row of the paper's tables: its sweep, its setting, and the numbers printed for the three methods.

    `mse` is in 10⁻³ (Table 4), `accuracy` in % (Table 6), `tau_b` is that with the true order (Table 7).
    """

    sweep: Sweep
    setting: Setting
    mse: Cells
    accuracy: Cells
    tau_b: Cells


_Row = tuple[Setting, Cells, Cells, Cells]


class Thinned(NamedTuple):
    """A row of Table 5: the labels that an item keeps of those of its configuration, and the τ_b printed for them."""

    kept: int
    tau_b: Cells


def _pool(normal: int, strict: int, lenient: int, adversarial: int) -> Setting:
    return Setting(pool=(normal, strict, lenient, adversarial))


_TIGHT = Setting(qualities=(0.75, 0.70, 0.65, 0.60, 0.55, 0.50))
_BASE = ((2.62, 1.56, 2.36), (99.8, 99.9, 99.9), (0.996, 0.997, 0.997))
_MILD = ((2.02, 1.38, 2.05), (99.8, 99.8, 99.9), (0.996, 0.997, 0.997))

_ROWS: Mapping[Sweep, Mapping[str, _Row]] = {
    "labels": {
        "labels_3": (Setting(labels=3), (4.78, 3.59, 5.71), (99.2, 99.2, 99.6), (0.985, 0.984, 0.992)),
        "labels_5": (Setting(), *_BASE),
        "labels_7": (Setting(labels=7), (1.73, 1.02, 1.44), (99.8, 99.7, 99.7), (0.996, 0.993, 0.995)),
        "labels_9": (Setting(labels=9), (1.09, 0.70, 0.96), (100.0, 99.8, 99.9), (1.000, 0.997, 0.997)),
    },
    "gaps": {
        "gaps_tight": (_TIGHT, (0.59, 0.46, 0.72), (96.9, 97.6, 97.6), (0.939, 0.952, 0.953)),
        "gaps_wide": (Setting(), *_BASE),
    },
    "adversarial": {
        "adv_00": (_pool(20, 6, 4, 0), *_MILD),
        "adv_10": (_pool(17, 5, 5, 3), (3.14, 1.69, 2.58), (99.9, 99.9, 99.9), (0.997, 0.997, 0.999)),
        "adv_20": (_pool(15, 5, 4, 6), (4.29, 2.04, 3.21), (99.6, 99.5, 99.7), (0.993, 0.991, 0.995)),
        "adv_30": (_pool(13, 4, 4, 9), (6.31, 2.57, 4.11), (99.2, 99.6, 99.8), (0.984, 0.992, 0.996)),
        "adv_40": (_pool(11, 4, 3, 12), (8.42, 3.47, 5.54), (98.8, 99.7, 99.8), (0.977, 0.993, 0.996)),
    },
    "strict": {
        "strict_00": (_pool(26, 0, 4, 0), (1.93, 1.31, 1.79), (99.9, 99.8, 99.9), (0.997, 0.997, 0.997)),
        "strict_10": (_pool(23, 3, 4, 0), (1.85, 1.32, 1.90), (99.9, 99.6, 99.9), (0.997, 0.992, 0.997)),
        "strict_20": (_pool(20, 6, 4, 0), *_MILD),
        "strict_30": (_pool(17, 9, 4, 0), (2.53, 1.51, 2.29), (99.7, 99.9, 99.9), (0.993, 0.997, 0.997)),
        "strict_40": (_pool(14, 12, 4, 0), (3.65, 1.69, 2.60), (99.7, 99.8, 99.8), (0.994, 0.996, 0.996)),
    },
    "lenient": {
        "lenient_00": (_pool(24, 6, 0, 0), (1.77, 1.23, 1.77), (99.8, 99.8, 99.9), (0.996, 0.996, 0.997)),
        "lenient_10": (_pool(21, 6, 3, 0), (1.89, 1.33, 1.97), (99.9, 99.8, 99.9), (0.997, 0.996, 0.997)),
        "lenient_20": (_pool(18, 6, 6, 0), (2.33, 1.51, 2.23), (99.8, 99.9, 99.9), (0.997, 0.997, 0.997)),
        "lenient_30": (_pool(15, 6, 9, 0), (3.14, 1.65, 2.51), (99.7, 99.8, 99.7), (0.993, 0.996, 0.995)),
        "lenient_40": (_pool(12, 6, 12, 0), (4.44, 1.87, 2.86), (99.5, 99.7, 99.7), (0.991, 0.995, 0.995)),
    },
    "hard": {
        "hard_00": (Setting(hard=0.0), (1.10, 0.36, 0.60), (99.9, 100.0, 100.0), (0.997, 1.000, 1.000)),
        "hard_10": (Setting(hard=0.1), (1.78, 0.83, 1.29), (99.6, 99.8, 99.9), (0.992, 0.996, 0.997)),
        "hard_20": (Setting(), *_BASE),
    },
}

CONFIGURATIONS: Mapping[str, Configuration] = MappingProxyType(
    {name: Configuration(sweep, *row) for sweep, rows in _ROWS.items() for name, row in rows.items()}
)
"""The rows of Tables 4, 6 and 7, by the names that the authors' files use. Equal settings have equal numbers."""

THINNED: Mapping[str, Thinned] = MappingProxyType(
    {
        "labels_3": Thinned(2, (0.985, 0.989, 0.989)),
        "labels_5": Thinned(3, (0.988, 0.991, 0.991)),
        "labels_7": Thinned(3, (0.987, 0.992, 0.992)),
        "labels_9": Thinned(3, (0.987, 0.992, 0.992)),
    }
)
"""The rows of Table 5. The paper does not state how many labels were kept: these numbers are our reading."""
