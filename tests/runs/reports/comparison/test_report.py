"""Comparison of two runs."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.runs.reports.comparison import Comparison, compare
from jurygraph.schema import Trace
from tests.runs.reports.comparison.traces import (
    compare_rewards,
    run,
    tenths,
    trace,
    traces_with_verdicts,
    unhurried,
    verdict,
)

ROOT = Path(__file__).parents[4]


@unhurried
@given(
    st.lists(st.tuples(tenths, tenths), min_size=2, max_size=60), st.randoms(use_true_random=False), st.integers(1, 5)
)
def test_the_order_of_the_traces_changes_nothing(pairs: list[tuple[float, float]], random, per_task: int):
    a, b = run((a for a, _ in pairs), per_task), run((b for _, b in pairs), per_task)
    straight = compare(a, b)
    random.shuffle(a)
    random.shuffle(b)
    assert compare(iter(a), iter(b)).digest == straight.digest


# Changes


def test_the_largest_changes_come_first_and_ties_by_id():
    found = compare_rewards([(0.5, 0.5), (0.0, 0.5), (1.0, 0.0), (0.5, 0.0), (None, 1.0)])
    assert [(c.response_id, c.a, c.b, c.delta) for c in found.changes] == [
        ("r002", 1.0, 0.0, -1.0),
        ("r001", 0.0, 0.5, 0.5),
        ("r003", 0.5, 0.0, -0.5),
    ]


def test_at_most_twenty_changes_are_listed():
    found = compare_rewards([(0.0, i / 64) for i in range(30)])
    assert [c.response_id for c in found.changes] == [f"r{i:03}" for i in range(29, 9, -1)]


def test_of_equal_changes_the_first_ids_are_listed():
    found = compare_rewards([(0.0, 0.5 * (-1) ** i) for i in range(100)])
    assert [c.response_id for c in found.changes] == [f"r{i:03}" for i in range(20)]


def test_a_comparison_survives_json():
    found = compare_rewards([(0.25, 0.5), (0.5, None), (0.75, 0.25)])
    stored = json.dumps(found.model_dump(mode="json"), allow_nan=False)
    assert Comparison.model_validate_json(stored) == found


def test_a_flip_is_an_object_in_json():
    found = compare(traces_with_verdicts(verdict("q", "r", 1.0)), traces_with_verdicts(verdict("q", "r", 0.25)))
    assert found.model_dump(mode="json")["flipped_verdicts"] == [
        {
            "question": "q",
            "response_id": "r",
            "responses": ["r"],
            "before": 1.0,
            "after": 0.25,
            "met": False,
        }
    ]


# Invalid input


def test_runs_without_a_common_response_are_refused_with_examples():
    with pytest.raises(
        InputError, match=r"no response in common \(A has 'r', B has 's'\); compare two runs of the same"
    ):
        compare([trace("t", "r")], [trace("t", "s")])


@pytest.mark.parametrize(("a", "b", "name"), [([], [trace("t", "r")], "A"), ([trace("t", "r")], [], "B")])
def test_an_empty_run_is_refused(a: list[Trace], b: list[Trace], name: str):
    with pytest.raises(InputError, match=f"run {name} contains no response; score it first"):
        compare(a, b)


def test_a_repeated_response_is_refused():
    with pytest.raises(InputError, match="response 'r' occurs twice in run B"):
        compare([trace("t", "r")], [trace("t", "r"), trace("t", "r")])


def test_a_response_under_another_task_is_refused():
    with pytest.raises(InputError, match="response 'r' belongs to task 't' in A and to 'u' in B; compare two runs"):
        compare([trace("t", "r")], [trace("u", "r")])


@pytest.mark.parametrize("passing", [math.nan, math.inf])
def test_a_pass_threshold_that_is_not_finite_is_refused(passing: float):
    with pytest.raises(InputError, match=r"name a finite number, such as 0\.5"):
        compare_rewards([(0.5, 0.5)], passing=passing)


@pytest.mark.landing
def test_another_process_gives_the_same_bits():
    code = """if True:
        from jurygraph.runs.reports.comparison import compare
        from tests.runs.reports.comparison.traces import run
        values = [i * 7 % 40 / 40 for i in range(40)]
        print(compare(run(values, 2), run(sorted(values), 2)).digest)
        """
    values = [i * 7 % 40 / 40 for i in range(40)]
    here = compare(run(values, 2), run(sorted(values), 2)).digest
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    there = subprocess.check_output([sys.executable, "-c", code], env=environment, cwd=ROOT, text=True)
    assert there.strip() == str(here)


# Large runs
