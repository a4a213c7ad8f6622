"""The Data Analyzer: how seldom it tells something where nothing changed, and how soon where something did.

Steps are G=8 × 32 prompts. Their rows are simulated and measured; streams draw steps with replacement from ten pools of
10,000. Each stream that had no alarm after 20,000 steps counts as 20,000, so the mean is too low rather than too high.
Autocorrelated scores are drawn directly.
"""

import numpy as np

from benchmarks.figure import Figure, at_least, at_most
from benchmarks.simulation.autocorrelated import alarms_per_thousand
from benchmarks.simulation.run_lengths import Pool, pool, run_lengths
from benchmarks.simulation.streams import Hack, hacked_steps, three_sd_step
from jurygraph.agents.data_analyzer import Analyzer

POOLS, STEPS = 10, 10_000
STREAMS, LONGEST = 200, 20_000
CALIBRATED, FOLLOWED = 100, 2_000
HACKS = 40


def measure() -> list[Figure]:
    """Average run length without change, delays of shifts of the mean reward, and of the planted hack."""
    pools = [pool(seed, STEPS) for seed in range(POOLS)]
    quiet = run_lengths(pools, STREAMS, LONGEST, seed=1)
    return [
        at_least(
            f"run length without change, mean of {STREAMS} streams",
            float(quiet.steps.mean()),
            "steps",
            10_000,
        ),
        Figure(f"... of which had no alarm in {LONGEST:,} steps", quiet.censored, "streams"),
        *(figure for size in (0.5, 1.0, 2.0) for figure in _delays(pools, size, CALIBRATED)),
        *_delays(pools, 0.5, 1_000),
        *_hacks(),
        *map(_autocorrelated, (0.0, 0.3, 0.6, 0.9)),
    ]


def _delays(pools: list[Pool], size: float, after: int) -> list[Figure]:
    found = run_lengths(pools, STREAMS, FOLLOWED, seed=2, shift=("reward", size), after=after)
    name = f"shift of {size:g} sd after {after:,} steps"
    mean = Figure(f"{name}: mean delay", float(found.steps.mean()), "steps")
    missed = [Figure(f"... not found in {FOLLOWED:,} steps, counted so", found.censored, "streams")]
    return [
        Figure(f"{name}: median delay", float(np.median(found.steps)), "steps"),
        mean,
        *(missed if found.censored else []),
    ]


def _hacks() -> list[Figure]:
    """Steps from that at which the hack has moved accuracy or length by 3 sd, that one counted as 0."""
    hack = Hack()
    strong = three_sd_step(hack)
    first, named = zip(*(_caught(seed, hack) for seed in range(HACKS)), strict=True)
    return [
        Figure("planted hack, begun at step 101: moved a mean by 3 sd at", strong, "step"),
        at_most(
            f"... until the first adverse alert, worst of {HACKS}", max(first) - strong, "steps", 5
        ),
        at_most(
            f"... until it is called a hack, median of {HACKS}",
            float(np.median(named)) - strong,
            "steps",
            5,
        ),
        Figure(f"... until it is called a hack, worst of {HACKS}", max(named) - strong, "steps"),
    ]


def _caught(seed: int, hack: Hack) -> tuple[int, int]:
    """The step of the first adverse alert after the hack began, and of the alert that calls it one."""
    analyzer, first = Analyzer(), 0
    for step in hacked_steps(seed, hack.first_step + 60, hack):
        for alert in analyzer.observe(step):
            if alert.step_number >= hack.first_step and alert.adverse:
                first = first or alert.step_number
                if alert.kind == "hack":
                    return first, alert.step_number
    raise AssertionError(f"the hack of seed {seed} was not called one within 60 steps")


def _autocorrelated(rho: float) -> Figure:
    alarms = alarms_per_thousand(rho, 2_000, 2_000, seed=26)
    return Figure(f"autocorrelation {rho:g}: false alarms per 1,000 steps", alarms, "alarms")
