"""GEAR in place of the last step of RaR-Explicit, MeRF and RuscaRL (GEAR, C.5): rubric scores in, reward and q out.

Everything before it stays: rubrics, judge and trainer of the host. What is new is its graph: edges with a parent, a
child and a kind, for instance from `jurygraph annotate`. Without edges each reward is the host's own.

    python examples/rubric/plug_in.py
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jurygraph.aggregation import gear

Edges = Sequence[tuple[str, str, str]]
"""Parent, child, and `weak`, `strong` or `activation`."""


def aggregate(
    weights: Mapping[str, float], scores: Mapping[str, float], edges: Edges
) -> tuple[float, dict[str, float]]:
    """Return the reward (Eq. 14) and q by criterion (Eq. 12) of local scores in [0, 1]."""
    names = list(weights)
    parents, children = gear.edges(names, [(parent, child) for parent, child, _ in edges])
    graph = gear.compile(len(names), parents, children, names)  # once for a rubric, in a training
    q = graph.marginals(
        [scores[name] for name in names], gear.retention([kind for *_, kind in edges])
    )
    reward = gear.reward(q, list(weights.values()))
    return float(reward), dict(zip(names, q.tolist(), strict=True))


# RaR-Explicit: Σ w c / Σ w, weights by category, and whether each criterion is satisfied.
RAR_WEIGHTS = {"Essential": 1.0, "Important": 0.7, "Optional": 0.3, "Pitfall": 0.9}


def rar_reward(
    rubric: Sequence[Mapping[str, str]], satisfied: Sequence[bool], edges: Edges = ()
) -> tuple[float, dict[str, float]]:
    weights = {item["title"]: RAR_WEIGHTS[item["category"]] for item in rubric}
    if len(weights) < len(rubric):
        raise ValueError("two criteria have one title; edges could not tell them apart")
    scores = {item["title"]: float(is_met) for item, is_met in zip(rubric, satisfied, strict=True)}
    return aggregate(weights, scores, edges)


# MeRF: the points of each item stand in the policy's prompt, and some part of them is awarded.
def merf_reward(
    points: Mapping[str, float], awarded: Mapping[str, float], edges: Edges = ()
) -> tuple[float, dict[str, float]]:
    scores = {name: awarded[name] / points[name] for name in points}
    return aggregate(points, scores, edges)


# RuscaRL: HealthBench's items with points, negative ones too, and a judge's `criteria_met` on each.
def ruscarl_reward(
    items: Sequence[Mapping[str, Any]], gradings: Sequence[Mapping[str, Any]], edges: Edges = ()
) -> tuple[float, dict[str, float]]:
    names = [f"r{number}" for number in range(1, len(items) + 1)]
    weights = {name: float(item["points"]) for name, item in zip(names, items, strict=True)}
    scores = {
        name: float(grading["criteria_met"]) for name, grading in zip(names, gradings, strict=True)
    }
    return aggregate(weights, scores, edges)


def main() -> None:
    rubric = [
        {"title": "names the drug", "category": "Essential"},
        {"title": "gives its dose", "category": "Important"},
    ]
    edges = [("names the drug", "gives its dose", "strong")]
    for name, given in (("RaR-Explicit", ()), ("RaR-Explicit with GEAR", edges)):
        reward, q = rar_reward(rubric, [False, True], given)
        print(f"{name}: reward {reward:.4f}, q {q}")


if __name__ == "__main__":
    main()
