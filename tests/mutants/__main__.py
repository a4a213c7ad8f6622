"""Mutate a seeded sample of each room, run its tests on every mutant, and list the survivors."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from tests.mutants.equivalents import known_equivalents
from tests.mutants.mutations import Mutant, harmless, sample_mutants
from tests.mutants.plugin import JOB, PYTEST
from tests.mutants.rooms import ROOMS, Room

WANTED = 0.95
"""The share of a room's mutants that has to be killed, those left out that are known to change nothing."""
OTHERS = 10.0
"""Seconds for tests that do not reach a mutant themselves: something cached may have reached it for them."""


@dataclass(frozen=True)
class Outcome:
    """What became of a room's mutants."""

    name: str
    tried: Sequence[tuple[Mutant, str]]
    equivalent: int

    @property
    def survivors(self) -> list[tuple[Mutant, str]]:
        """Return the mutants that no test notices."""
        return [(mutant, how) for mutant, how in self.tried if how == "survived"]

    @property
    def share(self) -> float:
        """Return the share that was killed."""
        return 1.0 - len(self.survivors) / len(self.tried) if self.tried else 1.0


def main() -> int:
    """Run it; return 1 where a room falls short."""
    options = _options()
    known = known_equivalents()
    short = False
    for name in options.room or ROOMS:
        outcome = _try_room(name, ROOMS[name], options, known)
        _print(outcome)
        short = short or outcome.share < WANTED
    return int(short)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--seed", default="0", help="what the sample is drawn with (default: %(default)s)"
    )
    parser.add_argument(
        "--sample", type=int, default=60, help="mutants of each room (default: %(default)s)"
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="mutants at a time (default: %(default)s)"
    )
    parser.add_argument(
        "--room", action="append", choices=ROOMS, help="one room only; may be repeated"
    )
    return parser.parse_args()


def _try_room(
    name: str, room: Room, options: argparse.Namespace, known: dict[tuple[str, str, str, str], str]
) -> Outcome:
    drawn = sample_mutants(room.modules, options.sample, f"{options.seed}:{name}")
    mutants = [mutant for mutant in drawn if mutant.identity not in known]
    control = harmless(mutants)
    with (
        tempfile.TemporaryDirectory(prefix="jurygraph-mutants-") as folder,
        ThreadPool(options.processes) as threads,
    ):
        reached = _measure(sorted({mutant.module for mutant in mutants}), room, Path(folder))

        def attempt(numbered: tuple[int, Mutant]) -> str:
            place, mutant = numbered
            return _try(mutant, room, reached, Path(folder, f"{place}.json"))

        *outcomes, how = threads.map(attempt, enumerate((*mutants, control)), chunksize=1)
    if how != "survived":
        sys.exit(
            f"{name}: {how}, a change that does nothing ({control.module}:{control.line}): no figure would hold"
        )
    return Outcome(name, list(zip(mutants, outcomes, strict=True)), len(drawn) - len(mutants))


@dataclass(frozen=True)
class Reached:
    """Which tests reach which lines of which module, and how long each test takes."""

    seconds: dict[str, float]
    tests: dict[str, dict[str, list[str]]]

    def select(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach the statement, the quickest first, then the quickest others of their files."""
        by_line = self.tests.get(mutant.module, {})
        first, last = mutant.lines
        reaching = {
            test for line in range(first, last + 1) for test in by_line.get(str(line), ()) if test
        }
        files = {_file(test) for test in reaching}
        quickest = sorted(self.seconds, key=self.seconds.__getitem__)
        others = [test for test in quickest if _file(test) in files and test not in reaching]
        spent = accumulate(self.seconds[test] for test in others)
        affordable = [
            test for test, seconds in zip(others, spent, strict=True) if seconds <= OTHERS
        ]
        return [*(test for test in quickest if test in reaching), *affordable]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _measure(modules: list[str], room: Room, folder: Path) -> Reached:
    """Run the tests without a mutant."""
    baseline = folder / "baseline"
    done, output = _run(
        {"modules": modules, "baseline": str(baseline)}, folder / "job.json", room.tests, 3600.0
    )
    if done != 0:
        sys.exit(f"the tests fail without any mutant (exit {done}):\n{output}")
    return Reached(**json.loads(baseline.read_text(encoding="utf-8")))


def _try(mutant: Mutant, room: Room, reached: Reached, job: Path) -> str:
    """Run the tests that reach a mutant; all of them where none does: it may run at import alone."""
    tests = reached.select(mutant)
    limit = 60.0 + 3.0 * sum(reached.seconds[test] for test in tests or reached.seconds)
    files = sorted({_file(test) for test in tests}) or room.tests
    code, _ = _run(
        {"module": mutant.module, "source": mutant.source, "tests": tests}, job, files, limit
    )
    return {0: "survived", None: "timeout"}.get(code, "killed")


def _run(
    job: dict[str, Any], path: Path, tests: Sequence[str], limit: float
) -> tuple[int | None, str]:
    """Return the exit status and the output of pytest; None for the status where the time is up."""
    path.write_text(json.dumps(job), encoding="utf-8")
    environment = {**os.environ, JOB: str(path), "HYPOTHESIS_PROFILE": "mutants"}
    with tempfile.TemporaryFile("w+") as out:
        ran = subprocess.Popen(
            [*PYTEST, *tests],
            env=environment,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = ran.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGKILL)
            ran.wait()
            return None, ""
        out.seek(0)
        return code, out.read()


def _print(outcome: Outcome) -> None:
    counts = Counter(how for _, how in outcome.tried)
    found = ", ".join(f"{counts[how]} {how}" for how in ("killed", "timeout", "survived"))
    print(
        f"{outcome.name}: {outcome.share:.1%} of {len(outcome.tried)} ({found}; {outcome.equivalent} equivalent)",
        flush=True,
    )
    for mutant, how in outcome.survivors:
        print(f"  {how}: {mutant.module}:{mutant.line} in {mutant.function}")
        print("".join(f"    - {line}\n" for line in mutant.before.splitlines()), end="")
        print("".join(f"    + {line}\n" for line in mutant.after.splitlines()), end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
