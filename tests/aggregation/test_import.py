"""The room loads NumPy alone, and fast."""

import subprocess
import sys

SCRIPT = """
import sys, numpy
from time import perf_counter
start = perf_counter()
import jurygraph.aggregation
took = perf_counter() - start
heavy = {"pydantic", "langgraph", "langchain_core", "litellm", "scipy", "jurygraph.schema", "jurygraph.sources"}
print(took, *sorted(heavy & sys.modules.keys()))
"""


def imported() -> tuple[float, list[str]]:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    took, *heavy = done.stdout.split()
    return float(took), heavy


def test_importing_it_takes_thirty_milliseconds_at_most_and_no_heavy_library() -> None:
    runs = [imported() for _ in range(3)]
    assert runs[0][1] == []
    assert min(took for took, _ in runs) <= 0.030
