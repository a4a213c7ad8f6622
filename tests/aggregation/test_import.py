"""The room loads NumPy alone. How fast is printed by `make bench`."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys, numpy
before = set(sys.modules)
import jurygraph.aggregation
print(*sorted({name.partition(".")[0] for name in sys.modules.keys() - before}))
"""


@pytest.mark.landing
def test_beyond_numpy_it_loads_jurygraph_and_the_standard_library_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) - sys.stdlib_module_names - {"numpy"} == {"jurygraph"}
