"""Same input, same bits: whatever the layout, the chunks, the order of the edges and the CPU."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jurygraph.aggregation
from jurygraph.aggregation import fusion, gear, stakeholders, total
from tests.aggregation.reference import Rubric, rubrics
from tests.determinism import violations

ROOM = Path(jurygraph.aggregation.__file__).parent
MODULES = sorted([*ROOM.glob("*.py"), ROOM.parent / "arrays.py"])
# Computed once and frozen.
ALLOWED = {
    "gear.py": {"retention": {"**"}},
    "stakeholders.py": {"weights": {"exp"}},
}
RESPONSES = 4099  # more than one block of work, and not a multiple of any vector's width


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_no_module_uses_what_differs_by_shape_or_cpu(module: Path) -> None:
    assert violations(module, ALLOWED.get(module.name)) == []


def all_results(
    p: np.ndarray, weights: np.ndarray, parents: np.ndarray, children: np.ndarray
) -> list[np.ndarray]:
    """Every function that promises the same bits; each result has one row a response."""
    graph = gear.compile(p.shape[1], parents, children)
    retention = np.linspace(0.0, 1.0, len(parents))
    q = graph.marginals(p, retention)
    columns = {str(i): p[:, i] for i in range(p.shape[1])}
    signed = dict(zip(columns, weights.tolist(), strict=True))
    return [
        total(p),
        q,
        graph.marginals(p, retention, p > 0.1, 1.0),
        graph.exact_marginals(p, retention),
        graph.exact_marginals(p, retention, p > 0.1, 1.0),
        graph.hard_gating(p),
        graph.hard_gating(p, mode="transitive"),
        gear.reward(q, weights),
        stakeholders.reward(np.full(p.shape[1], 1 / p.shape[1]), p),
        stakeholders.group_utility(p),
        stakeholders.minimum(p),
        stakeholders.gini(p),
        stakeholders.jain(p),
        stakeholders.group_fairness(p),
        stakeholders.preference_completeness(p, np.ones_like(p)),
        fusion.collaborative(columns, signed),
    ]


def make_example() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    weights = np.array([3.0, 2.0, -1.5, 0.7, 1.1, -0.3, 2.2, 0.9, -4.1, 1.3, 0.4, 5.0])
    parents = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 2])
    children = np.array([1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 4, 10])
    return random.random((RESPONSES, 12)), weights, parents, children


def bits(results: list[np.ndarray]) -> list[bytes]:
    return [np.ascontiguousarray(result).tobytes() for result in results]


def test_rows_and_columns_in_memory() -> None:
    p, *rest = make_example()
    assert bits(all_results(np.asfortranarray(p), *rest)) == bits(all_results(p, *rest))
    assert bits(all_results(np.repeat(p, 2, axis=0)[::2], *rest)) == bits(all_results(p, *rest))


@pytest.mark.parametrize("size", [1, 7, 64, 2048, 4096])
def test_chunks_of_responses(size: int) -> None:
    p, *rest = make_example()
    few = p[: 40 * size]  # one response at a time is slow
    chunks = [all_results(few[start : start + size], *rest) for start in range(0, len(few), size)]
    assert bits([np.concatenate(parts) for parts in zip(*chunks, strict=True)]) == bits(
        all_results(few, *rest)
    )


@given(rubrics(), st.randoms(use_true_random=False))
def test_orders_of_the_edges(rubric: Rubric, random: object) -> None:
    retention = np.linspace(0.1, 0.9, len(rubric.parents))
    triples = list(zip(rubric.parents, rubric.children, retention.tolist(), strict=True))
    random.shuffle(triples)
    parents, children, factors = ([triple[k] for triple in triples] for k in range(3))
    q = gear.marginals(rubric.p, rubric.parents, rubric.children, retention)
    assert gear.marginals(rubric.p, parents, children, factors).tobytes() == q.tobytes()
    exact = gear.exact_marginals(rubric.p, rubric.parents, rubric.children, retention)
    assert gear.exact_marginals(rubric.p, parents, children, factors).tobytes() == exact.tobytes()


def fingerprint(disabled: list[str]) -> str:
    """Hash of everything, computed by a new interpreter without some of the CPU's features."""
    script = """
        import hashlib, warnings
        warnings.simplefilter("error")
        from tests.aggregation.test_determinism import all_results, bits, make_example
        print(hashlib.sha256(b"".join(bits(all_results(*make_example())))).hexdigest())
        """
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(disabled)}
    done = subprocess.run(
        [sys.executable, "-c", dedent(script)],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.landing
def test_cpus_without_wide_vectors() -> None:
    found = np.show_config(mode="dicts")["SIMD Extensions"]
    present = found.get("found", [])
    if not present:
        pytest.skip("this CPU has nothing beyond NumPy's baseline to switch off")
    assert fingerprint(present) == fingerprint([])
