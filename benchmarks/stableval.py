"""STABLEVAL: its synthetic tables and propositions, small panels, calibration, coverage, and speed next to crowd-kit.

The tables are of 20 seeds of ours where the paper's are of 100 of its own: the slow tests hold all to four standard
errors at 100. Small panels are of 200, calibration of 40, coverage of 16, with 50 refits each.
"""

import csv
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, get_args

import numpy as np

from benchmarks.figure import Figure, at_least, at_most, best_of
from benchmarks.peer import python_with
from benchmarks.simulation.calibration import measure_calibration
from benchmarks.simulation.coverage import CoverageSettings, coverage
from benchmarks.simulation.method_figures import MethodFigures
from benchmarks.simulation.panels import PANELS, Panel, Prior, setting, small_panels
from benchmarks.simulation.propositions import MODEL, SIZES, measure_shifts
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Consensus
from jurygraph.aggregation.consensus.fitting import CONSENSUS_METHODS
from jurygraph.arrays import Floats, Ints
from jurygraph.studies import simulate
from jurygraph.studies.simulate import MeanOverSeeds, SimulationSetting, SweepName

ROOT = Path(__file__).resolve().parents[1]
MTBENCH = ROOT / "examples" / "consensus" / "mtbench.csv.gz"
CONVABUSE = ROOT / "examples" / "consensus" / "convabuse.csv.gz"
JOBS = os.cpu_count() or 1

TABLES = {
    "mse": ("Table 4, MSE", "e-3"),
    "accuracy": ("Table 6", "% in order"),
    "tau_b": ("Table 7", "tau_b"),
}
SEEDS, SEED = 20, 2000
SHIFT_SEEDS = 10
PANEL_SEEDS = range(200)
CALIBRATED_SEEDS = range(2000, 2040)
COVERED_SEEDS = range(2000, 2016)
EFFORT = CoverageSettings(resamples=500, refits=50, population=10_000)
COVERED_PANELS = (Panel(3, 200), Panel(5, 200), Panel(9, 200))
STRONGER = {"stableval, prior 2": Prior(2.0, 2.0)}

PEER = "crowd-kit"
ITEMS, LABELS, ANNOTATORS, CLASSES = 100_000, 5, 50, 5
SUBSETS = 200


class Rows(NamedTuple):
    """Codes, row by row."""

    item: Ints
    annotator: Ints
    label: Ints


def measure() -> list[Figure]:
    """Times are of CPU, and ratios of one run; only the stability's is wall time."""
    return [
        *_tables(),
        *_propositions(),
        *_panels(),
        *_calibration(),
        *_coverage(),
        *_compare_with_peer(),
        *_memory(),
        *_stability(),
    ]


def _tables() -> Iterator[Figure]:
    report = simulate.report(get_args(SweepName), range(SEED, SEED + SEEDS))
    for figure, (table, unit) in TABLES.items():
        for row in report.figures["recovery"]:
            yield from _compare_with_paper(f"{table}: {row['name']}", row[figure], unit)


def _compare_with_paper(
    name: str, means: Mapping[str, MeanOverSeeds], unit: str
) -> Iterator[Figure]:
    for method, one in means.items():
        yield Figure(f"{name}, {method}", one.mean, unit, f"paper {one.paper}")


def _propositions() -> Iterator[Figure]:
    for items in SIZES:
        found = measure_shifts(replace(MODEL, items=items), range(SHIFT_SEEDS), JOBS)
        for place, method in enumerate(CONSENSUS_METHODS):
            same = float((found.tau_b[..., place] > 1.0 - 1e-9).mean())
            name = f"{items} items, 70 % of annotators, {method}: largest change of a score"
            yield Figure(
                name, float(found.shift[..., place].mean()), "", f"same order in {same:.1%}"
            )


def _panels() -> Iterator[Figure]:
    for panel, found in small_panels(PANELS, PANEL_SEEDS, STRONGER, JOBS).items():
        name = f"{panel.annotators} annotators, {panel.items} items"
        for figure, scale, unit in (
            ("accuracy", 100.0, "% right"),
            ("mse", 1e3, "MSE, e-3"),
            ("tau_b", 1.0, "tau_b"),
        ):
            yield Figure(f"{name}: majority", scale * found.mean("majority", figure), unit)
            for method in found.methods[1:]:
                gain = found.gain(method, figure, over="majority")
                interval = f"[{scale * gain.low:+.3g}, {scale * gain.high:+.3g}]"
                yield Figure(f"... {method}, gain", scale * gain.mean, unit, interval)


def _calibration() -> Iterator[Figure]:
    settings = {"default configuration": SimulationSetting()}
    settings |= {f"{one.annotators} annotators, {one.items} items": setting(one) for one in PANELS}
    for name, (error, confidence, accuracy) in measure_calibration(
        settings, CALIBRATED_SEEDS, JOBS
    ).items():
        shares = f"{100 * confidence:.1f} %, {100 * accuracy:.1f} %"
        yield Figure(f"ECE, {name} (said, right)", error, "", shares)


def _coverage() -> Iterator[Figure]:
    settings = {"default": SimulationSetting()} | {
        f"{one.annotators} x {one.items}": setting(one) for one in COVERED_PANELS
    }
    for name, one in settings.items():
        yield from _covered(name, coverage(one, COVERED_SEEDS, EFFORT, JOBS))


def _covered(name: str, found: MethodFigures) -> Iterator[Figure]:
    for interval in found.methods:
        for figure in found.figures:
            width = "width" in figure
            share = found.mean(interval, figure)
            if np.isnan(share):  # annotators have intervals by refits alone
                continue
            what = (
                f"{name}, {interval}: {figure}" if width else f"{name}, {interval}: holds {figure}"
            )
            yield Figure(
                what,
                share if width else 100.0 * share,
                "" if width else "%",
                "" if width else "nominal 95",
            )


def _compare_with_peer() -> list[Figure]:
    """crowd-kit in an environment of its own; nothing where it cannot be installed."""
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-stableval-"))
    try:
        python = python_with(PEER, folder)
        if python is None:
            return []
        peer = Peer(python, folder)
        return [
            *_against(peer, "500k labels", _many(), steps=20, rounds=4, wanted=8.0),
            *_against(peer, "MT-Bench", _votes(MTBENCH), steps=50, rounds=3, wanted=30.0),
        ]
    finally:
        shutil.rmtree(folder)


class Estimate(NamedTuple):
    """Seconds of CPU, steps, class shares [K] and confusions [A,K,K]."""

    seconds: float
    steps: int
    prior: Floats
    confusion: Floats


class Peer(NamedTuple):
    """A Python that has crowd-kit, and a folder to exchange files in."""

    python: Path
    folder: Path

    def fit(self, rows: Rows, steps: int, rounds: int) -> Estimate:
        """Its best of some rounds. 0 steps leaves crowd-kit its own settings."""
        given, written = self.folder / "rows.npz", self.folder / "estimate.npz"
        np.savez(given, **rows._asdict())
        script = Path(__file__).with_name("crowdkit_peer.py")
        command = [str(self.python), str(script), str(given), str(written), str(steps), str(rounds)]
        environment = {**os.environ, "PYTHONPATH": ""}
        finished = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
        seconds, taken = finished.stdout.splitlines()[-1].split()
        with np.load(written) as found:
            return Estimate(float(seconds), int(taken), found["prior"], found["confusion"])


def _against(
    peer: Peer, name: str, rows: Rows, steps: int, rounds: int, wanted: float
) -> Iterator[Figure]:
    classes = int(rows.label.max()) + 1
    equal: Mapping[str, Any] = {"accelerated": False, "tol": 1e-300, "max_iter": steps}
    theirs = peer.fit(rows, steps, rounds)
    ours, fitted = _timed(lambda: consensus.fit(*rows, n_classes=classes, **equal), rounds)
    assert fitted.iterations == theirs.steps == steps
    yield Figure(f"{name}, {steps} steps", ours, "s CPU")
    yield at_least(f"... {PEER} against it", theirs.seconds / ours, "times", wanted)
    theirs = peer.fit(rows, 0, rounds)
    ours, fitted = _timed(lambda: consensus.fit(*rows, n_classes=classes), rounds)
    confusion = fitted.confusion[np.argsort(np.array(fitted.votes.annotators))]
    gain = log_likelihood(rows, fitted.prior, confusion) - log_likelihood(
        rows, theirs.prior, theirs.confusion
    )
    yield Figure(f"{name}, to its own stop after {fitted.iterations} steps", ours, "s CPU")
    yield at_least(
        f"... {PEER}, after {theirs.steps}, against it", theirs.seconds / ours, "times", 1.0
    )
    yield at_least("... gain in log-likelihood", gain, "nats", 0.0)


def _timed(fit: Callable[[], Consensus], rounds: int) -> tuple[float, Consensus]:
    found: list[Consensus] = []
    return best_of(lambda: found.append(fit()), repeat=rounds, number=1), found[0]


def log_likelihood(rows: Rows, prior: Floats, confusion: Floats) -> float:
    """Σ_i log Σ_c μ_c Π π_r[c, y], of any estimate."""
    tiny = np.finfo(np.float64).tiny
    joint = np.tile(np.log(prior + tiny), (int(rows.item.max()) + 1, 1))
    np.add.at(joint, rows.item, np.log(confusion + tiny)[rows.annotator, :, rows.label])
    return float(np.logaddexp.reduce(joint, axis=1).sum())


def _many() -> Rows:
    """Labels by annotators who are right in 50 to 90 % of cases, and else say anything."""
    draw = np.random.default_rng(0)
    truth, skill = draw.integers(CLASSES, size=ITEMS), draw.uniform(0.5, 0.9, ANNOTATORS)
    item = np.repeat(np.arange(ITEMS), LABELS)
    annotator = draw.random((ITEMS, ANNOTATORS)).argsort(axis=1)[:, :LABELS].ravel()
    right = draw.random(len(item)) < skill[annotator]
    return Rows(
        item, annotator, np.where(right, truth[item], draw.integers(CLASSES, size=len(item)))
    )


def _columns(path: Path) -> dict[str, list[str]]:
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in ("agent", "annotator", "label")}
    return columns | {"item": [f"{row['item']}_{row['agent']}" for row in rows]}


def _votes(path: Path) -> Rows:
    columns = _columns(path)
    item, annotator = (
        np.unique(columns[name], return_inverse=True)[1] for name in ("item", "annotator")
    )
    return Rows(item, annotator, np.array(columns["label"], dtype=np.intp))


MILLIONS = """
import resource
import numpy as np
from jurygraph.aggregation import consensus
draw = np.random.default_rng(0)
item = np.repeat(np.arange(2_000_000), 5)
annotator = draw.integers(50, size=len(item))
label = np.where(draw.random(len(item)) < 0.7, item % 5, draw.integers(5, size=len(item)))
consensus.fit(item, annotator, label, n_classes=5, max_iter=4)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _memory() -> list[Figure]:
    """Of a process of its own, the rows that it draws included; memory does not grow with the steps."""
    finished = subprocess.run(
        [sys.executable, "-c", MILLIONS], check=True, capture_output=True, text=True
    )
    return [at_most("10M labels, peak memory", int(finished.stdout) * 1024 / 1e9, "GB", 3.0)]


def _stability() -> list[Figure]:
    columns = _columns(CONVABUSE)
    label = np.array(columns["label"], dtype=np.intp)
    start = perf_counter()
    consensus.ranking_stability(
        columns["item"],
        columns["annotator"],
        label,
        columns["agent"],
        subsets=SUBSETS,
        classes=range(3),
    )
    return [
        at_most(
            f"ConvAbuse, stability of {SUBSETS} subsets", perf_counter() - start, "s wall", 20.0
        )
    ]
