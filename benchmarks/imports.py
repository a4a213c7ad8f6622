"""The time to import jurygraph, each time in a new interpreter."""

import subprocess
import sys

from benchmarks.figure import Figure, at_most

TIMED = (
    "{before}\nfrom time import perf_counter as now\nstart = now()\n{timed}\nprint(now() - start)"
)


def measure() -> list[Figure]:
    """The best of ten runs."""
    return [
        at_most("import jurygraph", _seconds("", "import jurygraph"), "s", 0.3),
        at_most(
            "import jurygraph.aggregation, beyond NumPy",
            _seconds("import numpy", "import jurygraph.aggregation") * 1e3,
            "ms",
            30,
        ),
        Figure(
            "from jurygraph import Verdict (pydantic)",
            _seconds("", "from jurygraph import Verdict"),
            "s",
        ),
        Figure(
            "from jurygraph import Jury (LangGraph)",
            _seconds("", "from jurygraph import Jury"),
            "s",
        ),
    ]


def _seconds(before: str, timed: str) -> float:
    script = TIMED.format(before=before, timed=timed)
    runs = (
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        for _ in range(10)
    )
    return min(float(run.stdout) for run in runs)
