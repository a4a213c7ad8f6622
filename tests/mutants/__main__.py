"""Mutate a seeded sample of each room, run its tests on every mutant, and list the survivors."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.equivalents import known_equivalents
from tests.mutants.mutations import Mutant, harmless, sample_mutants
from tests.mutants.rooms import ROOMS, Room
from tests.mutants.server import JOB, PYTEST

WANTED = 0.95
"""The share of a room's mutants that has to be killed, those left out that are known to change nothing."""


@dataclass(frozen=True)
class Outcome:
    """What became of a room's mutants."""

    name: str
    tried: Sequence[tuple[Mutant, str]]
    equivalent: int

    @property
    def survivors(self) -> list[tuple[Mutant, str]]:
        """Return the mutants that no test notices."""
        return [(mutant, how) for mutant, how in self.tried if how not in ("killed", "timeout")]

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
    parser.add_argument("--seed", default="0", help="what the sample is drawn with (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="mutants at a time (default: %(default)s)")
    parser.add_argument("--room", action="append", choices=ROOMS, help="one room only; may be repeated")
    return parser.parse_args()


def _try_room(
    name: str, room: Room, options: argparse.Namespace, known: dict[tuple[str, str, str, str], str]
) -> Outcome:
    drawn = sample_mutants(room.modules, options.sample, f"{options.seed}:{name}")
    mutants = [mutant for mutant in drawn if mutant.identity not in known]
    control = harmless(mutants)
    with tempfile.TemporaryDirectory(prefix="jurygraph-mutants-") as folder:
        results = Path(folder, "results")
        job = {
            "modules": sorted({mutant.module for mutant in mutants}),
            "mutants": [mutant.to_json() for mutant in (*mutants, control)],
            "results": str(results),
            "processes": options.processes,
        }
        Path(folder, "job").write_text(json.dumps(job), encoding="utf-8")
        _run_tests(room.tests, Path(folder, "job"))
        rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    outcomes = {row["mutant"]: row["outcome"] for row in rows}
    if (how := outcomes.pop(len(mutants))) != "survived":
        sys.exit(f"{name}: {how}, a change that does nothing ({control.module}:{control.line}): no figure would hold")
    tried = [(mutant, outcomes[place]) for place, mutant in enumerate(mutants)]
    return Outcome(name, tried, len(drawn) - len(mutants))


def _run_tests(tests: Sequence[str], job: Path) -> None:
    environment = {**os.environ, JOB: str(job), "HYPOTHESIS_PROFILE": "mutants"}
    done = subprocess.run(
        [*PYTEST, "-p", "no:xdist", "-s", "-m", "not exhaustive and not heavy", *tests],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"the tests do not run (exit {done.returncode}):\n{done.stdout}{done.stderr}")


def _print(outcome: Outcome) -> None:
    counts = Counter(how for _, how in outcome.tried)
    found = ", ".join(f"{counts[how]} {how}" for how in ("killed", "timeout", "survived", "not applied"))
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
