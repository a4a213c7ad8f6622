"""Independent runs over processes."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from jurygraph.aggregation.consensus.repeating import every
from jurygraph.errors import PlanError


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_stand_in_the_order_of_what_is_given_and_each_is_reported(jobs: int) -> None:
    told: list[int] = []
    assert every(math.factorial, [3, 0, 5, 1], jobs, told.append) == [6, 1, 120, 1]
    assert told == [1, 1, 1, 1]


def test_many_more_than_there_are_processes_come_in_their_order_too() -> None:
    assert every(math.factorial, list(range(70)), 2) == [math.factorial(number) for number in range(70)]


def test_no_jobs_are_refused() -> None:
    with pytest.raises(PlanError, match="jobs is 0: at least 1 is needed"):
        every(math.factorial, [1], 0)


def test_processes_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "pickle.py").write_text("open('ran', 'w')\n")
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "from operator import neg\n"
        "from jurygraph.aggregation.consensus.repeating import every\n"
        "if __name__ == '__main__':\n"
        "    print(every(neg, [1, 2], jobs=2))\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[-1, -2]\n"
    assert not (tmp_path / "ran").exists()
