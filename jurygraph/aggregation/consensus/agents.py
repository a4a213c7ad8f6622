"""From items to agents: their scores, and how sure these are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import BoolArray, FloatArray, IndexArray
from jurygraph.aggregation.consensus.votes import Key, Votes, code_column
from jurygraph.errors import PlanError

_AT_ONCE = 2**22  # draws


class AgentScore(NamedTuple):
    """An agent's mean credit, the 95 % interval (None where there is no telling), and its number of items."""

    score: float
    low: float | None
    high: float | None
    items: int


class Grouping(NamedTuple):
    """Whose each item is, and what it is resampled with: codes [N] in the order of appearance; and which items `counts`
    [N], those with a label: no other says anything of its agent."""

    agents: Sequence[Key]
    agent: IndexArray
    prompt: IndexArray
    counts: BoolArray


def grouped_by_agent(votes: Votes, agent: ArrayLike, prompt: ArrayLike | None = None) -> Grouping:
    """The agent and the prompt of every item, from columns row by row. PlanError where an item has two of them."""
    of, agents = _of_items(votes, "agent", agent)
    if prompt is None:
        return Grouping(agents, of, np.arange(len(votes.items)), votes.labelled)
    together, _ = _of_items(votes, "prompt", prompt)
    return Grouping(agents, of, together, votes.labelled)


def _of_items(votes: Votes, name: str, column: ArrayLike) -> tuple[IndexArray, Sequence[Key]]:
    codes, names = code_column(name, column)
    if len(codes) != len(votes.of_row):
        raise PlanError(f"{name} has {len(codes)} rows where the labels have {len(votes.of_row)}; give one for each")
    of = np.empty(len(votes.items), dtype=np.intp)
    of[votes.of_row[::-1]] = codes[::-1]
    wrong = codes != of[votes.of_row]
    if wrong.any():
        row = int(np.argmax(wrong))
        item = votes.of_row[row]
        two = f"{names[of[item]]!r} and {names[codes[row]]!r}"
        raise PlanError(f"item {votes.items[item]!r} has the {name}s {two}; give each {name} items of its own")
    return of, names


def intervals(grouping: Grouping, credit: FloatArray, resamples: int, seed: int) -> dict[Key, AgentScore]:
    """The score of each agent that has a labelled item, with percentiles of resampled ones. Each has its own draws."""
    if resamples < 0 or resamples == 1:
        raise PlanError(f"bootstrap is {resamples}: 0, for no interval, or at least 2 is needed")
    counting = np.flatnonzero(grouping.counts)
    order = counting[np.argsort(grouping.agent[counting], kind="stable")]
    size = np.bincount(grouping.agent[counting], minlength=len(grouping.agents))
    found = {}
    for place, (name, own) in enumerate(zip(grouping.agents, np.split(order, np.cumsum(size)[:-1]), strict=True)):
        if not len(own):
            continue
        score = float(credit[own].mean())
        low, high = _percentiles(credit[own], grouping.prompt[own], resamples, np.random.default_rng([seed, place]))
        found[name] = AgentScore(score, low, high, len(own))
    return found


def _percentiles(
    credit: FloatArray, prompt: IndexArray, resamples: int, draw: "np.random.Generator"
) -> tuple[float | None, float | None]:
    """Of the mean, over resamples of prompts; None where there are fewer than two of them."""
    _, of = np.unique(prompt, return_inverse=True)
    size = np.bincount(of)
    total = np.bincount(of, weights=credit)
    many = len(size)
    if many < 2 or resamples == 0:
        return None, None
    means = np.empty(resamples)
    each = max(1, _AT_ONCE // many)
    for start in range(0, resamples, each):
        drawn = draw.integers(many, size=(min(each, resamples - start), many))
        means[start : start + each] = total[drawn].sum(axis=1) / size[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
