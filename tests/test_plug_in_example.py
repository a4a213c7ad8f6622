"""`examples/rubric/plug_in.py`: GEAR as the last step of three host pipelines (C.5)."""

import pytest

from examples.rubric.plug_in import merf_reward, rar_reward, ruscarl_reward

RUBRIC = [
    {"title": "names the drug", "category": "Essential"},
    {"title": "gives its dose", "category": "Important"},
    {"title": "invents no study", "category": "Pitfall"},
]
ITEMS = [
    {"criterion": "a", "points": 7},
    {"criterion": "b", "points": 3},
    {"criterion": "c", "points": -5},
]


def gradings(*met: bool) -> list[dict[str, object]]:
    return [{"criteria_met": one, "explanation": "so"} for one in met]


def test_without_edges_each_reward_is_the_hosts_own() -> None:
    reward, _ = rar_reward(RUBRIC, [False, True, True])
    assert reward == pytest.approx((0.7 + 0.9) / (1.0 + 0.7 + 0.9))
    reward, _ = merf_reward({"plan": 2.0, "proof": 3.0}, {"plan": 1.0, "proof": 3.0})
    assert reward == pytest.approx((1.0 + 3.0) / 5.0)
    reward, _ = ruscarl_reward(ITEMS, gradings(True, False, True))
    assert reward == pytest.approx((7 - 5) / 10)


def test_an_unmet_prerequisite_leaves_its_childs_share_alone() -> None:
    reward, q = rar_reward(
        RUBRIC, [False, True, True], [("names the drug", "gives its dose", "strong")]
    )
    assert q["gives its dose"] == pytest.approx(0.2)
    assert reward == pytest.approx((0.7 * 0.2 + 0.9) / 2.6)
    reward, q = merf_reward(
        {"plan": 2.0, "proof": 3.0}, {"plan": 1.0, "proof": 3.0}, [("plan", "proof", "weak")]
    )
    assert q["proof"] == pytest.approx(0.5 + 0.5 * 0.6)
    assert reward == pytest.approx((1.0 + 3.0 * 0.8) / 5.0)
    reward, q = ruscarl_reward(ITEMS, gradings(True, False, True), [("r2", "r3", "activation")])
    assert (q["r3"], reward) == (0.0, pytest.approx(0.7))
