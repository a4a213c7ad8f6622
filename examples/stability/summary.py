"""What the record shows: how far wording moves the model's grade of a plan, beside exact repeats of one wording.

    python examples/stability/summary.py [CALLS]

CALLS is calls.jsonl.gz, as record.py writes it; that of this folder, unless another is named. Nothing is asked: the
replies are replayed. Then two judges whose noise is known (known.py), and what is measured of them.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))  # to be run as a file, too

from examples.stability import known  # noqa: E402

STUDY = ("--versions", "3", "--repeats", "2", "--json")


def main(calls: str = str(HERE / "calls.jsonl.gz")) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        model = [
            "--config",
            HERE / "jury.yaml",
            "--model",
            f"replay:{calls}",
            "--out",
            Path(scratch, "lab"),
            *STUDY,
        ]
        for line in record_lines(_study(HERE / "tasks.jsonl.gz", *model)):
            print(line)
        scores = Path(scratch, "known.jsonl")
        known.main(str(scores))
        for line in known_lines(_study(scores, "--json")):
            print(line)


def _study(*words: object) -> dict[str, Any]:
    command = [Path(sys.executable).with_name("jurygraph"), "study", "stability", *words]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def record_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """The figures of the recorded model, with their intervals over plans."""
    variants = sum(unit["variants"] for unit in figures["units"])
    yield f"{len(figures['units'])} plans in {variants} variants of {len(figures['families']) - 2} families"
    for row in figures["noise"]:
        semantic, repeat = row["semantic"], row["repeat"]
        plans = f"{semantic['clusters']} plans for {row['stakeholders']} people"
        yield f"{plans}: σ²_Sem {_cell(semantic)}; σ²_Rep {_cell(repeat, 5)}"
    (ratios,) = figures["ratios"]
    most = max(figures["stakeholders"])
    ratio = ratios["semantic_to_repeat"]
    shown = f"not given (d = {ratios['repeat_freedom']})" if ratio is None else _cell(ratio, 1)
    alone = f"σ²_Sem - σ²_Rep {_cell(ratios['wording_alone'])}"
    yield f"S/R for {most} people {shown}; {alone}; Growth {_cell(ratios['growth'], 1)}"
    named = [
        row for row in figures["families"] if row["name"] not in ("all variants", "exact repeats")
    ]
    yield f"σ²_Sem by family, {most} people: " + ", ".join(
        f"{row['name']} {row['variance'][str(most)]['value']:.4f}" for row in named
    )


def known_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """What is measured of the judges whose noise is known."""
    for row in figures["noise"]:
        if row["judge"] != "all":
            measured = f"σ²_Sem {_cell(row['semantic'], 3)}, σ²_Rep {_cell(row['repeat'], 3)}"
            yield f"measured: {row['judge']}, n={row['stakeholders']}: {measured}"


def _cell(found: Mapping[str, Any], digits: int = 4) -> str:
    value = f"{found['value']:.{digits}f}"
    if found["low"] is None:
        return value
    return f"{value} ({found['low']:.{digits}f} to {found['high']:.{digits}f})"


if __name__ == "__main__":
    main(*sys.argv[1:])
