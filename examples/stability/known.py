"""Writes the scores of two judges whose noise is known, for `jurygraph study stability`, and prints the truth.

    python examples/stability/known.py FILE

Both give 40 responses to groups of 2 and 8 the same utilities. `steady` weighs people equally, and its score moves by
chance alone; the weights of `drifting` move with the wording, too, by as much as those of `simulate decompr`.
"""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jurygraph.studies.decompr_theory import DRIFT_SD
from jurygraph.studies.reward_noise import exchangeable_aggregation

CHANCE = 0.02
"""Standard deviation of ε, for utilities from 0 to 1."""
SIZES = (2, 8)
RESPONSES = 20
VARIANTS = 15
REPEATS = 5
SEED = 7


def main(file: str) -> None:
    rng = np.random.default_rng(SEED)
    rows = [
        row
        for judge, drift in (("steady", 0.0), ("drifting", DRIFT_SD))
        for row in rows_of(judge, drift, rng)
    ]
    Path(file).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for judge, drift in (("steady", 0.0), ("drifting", DRIFT_SD)):
        shown = ", ".join(f"n={n}: {true_variance(n, drift):.3f}" for n in SIZES)
        print(f"{judge}: σ²_Sem is {shown}; σ²_Rep is {81 * CHANCE**2:.3f}")


def utilities_of(n: int) -> np.ndarray:
    return np.linspace(0.2, 0.9, n)


def true_variance(n: int, drift: float) -> float:
    """Return σ²_Sem on the scale from 1 to 10: Term III, and Term II by Proposition 1."""
    return 81.0 * (CHANCE**2 + exchangeable_aggregation(utilities_of(n), drift**2))


def rows_of(judge: str, drift: float, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for n in SIZES:
        people = [f"p{place}" for place in range(n)]
        for place in range(RESPONSES):
            unit = {
                "seed": f"r{n}-{place}",
                "stakeholders": n,
                "judge": judge,
                "task": f"t{n}-{place}",
            }
            for number in range(VARIANTS + REPEATS):
                moves = rng.normal(size=n) * (
                    number < VARIANTS
                )  # a repeat has the original's wording
                weights = 1.0 / n + drift * math.sqrt(n / (n - 1)) * (moves - moves.mean())
                score = float(weights @ utilities_of(n)) + CHANCE * rng.normal()
                family = "wording" if number < VARIANTS else "repeat"
                yield {
                    **unit,
                    "family": family,
                    "version": number,
                    "score": 1.0 + 9.0 * score,
                    "weights": dict(zip(people, weights.tolist(), strict=True)),
                    "utilities": dict(
                        zip(people, (1.0 + 9.0 * utilities_of(n)).tolist(), strict=True)
                    ),
                }


if __name__ == "__main__":
    main(*sys.argv[1:])
