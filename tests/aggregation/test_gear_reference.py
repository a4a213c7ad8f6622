"""GEAR against the published aggregator on 126 rubric graphs (see tests/data/README.md)."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.aggregation import gear
from jurygraph.errors import GraphError

FILE = Path(__file__).parents[1] / "data" / "gear_reference.jsonl.gz"
KINDS = {"weak_prerequisite": "weak", "strong_prerequisite": "strong", "trigger": "activation"}
KAPPAS = ("0", "0.5", "2", "4")

with gzip.open(FILE, "rt", encoding="utf-8") as lines:
    CASES = [json.loads(line) for line in lines]


def is_valid(case: dict[str, Any]) -> bool:
    return case["kind"] == "random" and any(rubric["points"] > 0 for rubric in case["rubrics"])


VALID = [case for case in CASES if is_valid(case)]
EXACT = [case for case in VALID if "gear_exact" in case["expected"]]
REFUSED = [case for case in CASES if not is_valid(case)]


def by_id(cases: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases])


class Scored:
    """A case in our terms."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.p = case["p"]
        self.met = case["met"]
        self.weights = [rubric["points"] for rubric in case["rubrics"]]
        self.kinds = [KINDS.get(e["type"], e["type"]) for e in case["edges"]]
        pairs = [(e["parent"], e["child"]) for e in case["edges"]]
        parents, children = gear.edges([rubric["id"] for rubric in case["rubrics"]], pairs)
        self.graph = gear.compile(len(self.weights), parents, children)

    def gated(self, kappa: float) -> np.ndarray:
        return self.graph.marginals(self.p, gear.retention(self.kinds, kappa))

    def reward(self) -> float:
        return gear.reward(self.gated(1.0), self.weights)

    def agrees(self, q: np.ndarray, expected: dict[str, Any]) -> None:
        np.testing.assert_allclose(q, expected["q"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            gear.reward(q, self.weights), expected["reward"], rtol=1e-12, atol=1e-12
        )


def test_no_case_has_gone_missing() -> None:
    assert (len(CASES), len(VALID), len(EXACT), len(REFUSED)) == (126, 96, 80, 30)


@by_id(VALID)
def test_flat_hard_and_soft_aggregation(case: dict[str, Any]) -> None:
    scored, expected = Scored(case), case["expected"]
    assert gear.reward(scored.p, scored.weights) == pytest.approx(
        expected["flat"]["reward"], rel=1e-12, abs=1e-12
    )
    scored.agrees(np.array(scored.p), expected["flat"])
    scored.agrees(
        scored.graph.hard_gating(scored.p, mode="local", met=scored.met), expected["hard"]
    )
    scored.agrees(scored.gated(1.0), expected["gear"])


@pytest.mark.landing
@by_id(VALID)
@pytest.mark.parametrize("kappa", KAPPAS)
def test_kappa_as_a_power(case: dict[str, Any], kappa: str) -> None:
    scored = Scored(case)
    scored.agrees(scored.gated(float(kappa)), case["expected"][f"gear_kappa_pow_{kappa}"])


@by_id(EXACT)
def test_exact_marginals(case: dict[str, Any]) -> None:
    scored = Scored(case)
    q = scored.graph.exact_marginals(scored.p, gear.retention(scored.kinds))
    scored.agrees(q, case["expected"]["gear_exact"])


@by_id(REFUSED)
def test_cases_that_the_reference_repairs_are_refused(case: dict[str, Any]) -> None:
    reasons = (
        "no criterion|not a kind|to itself|one edge at most|cycle|a positive weight|a number in"
    )
    with pytest.raises(GraphError, match=reasons):
        Scored(case).reward()
