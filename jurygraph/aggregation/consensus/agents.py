"""Scores of agents from the credit of their items, with confidence intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.arrays import Bools, Floats, Ints
from jurygraph.aggregation.consensus.votes import Key, Votes, code_column
from jurygraph.errors import PlanError

_DRAWS_PER_BATCH = 2**22  # draws in one batch, which limits memory


class AgentScore(NamedTuple):
    """An agent's mean credit, its 95 % interval (None where it cannot be computed), and the number of its items."""

    score: float
    low: float | None
    high: float | None
    items: int


class Grouping(NamedTuple):
    """The agent and the prompt of each item.

    `agent` and `prompt` are codes [N] in the order of first appearance; items are resampled by prompt. `counts` [N]
    marks items with a label: other items do not count for their agent.
    """

    agents: Sequence[Key]
    agent: Ints
    prompt: Ints
    counts: Bools


def grouped_by_agent(votes: Votes, agent: ArrayLike, prompt: ArrayLike | None = None) -> Grouping:
    """Return the agent and the prompt of every item, from columns row by row. PlanError if an item has two."""
    agent_codes, agents = _codes_of_items(votes, "agent", agent)
    if prompt is None:
        return Grouping(agents, agent_codes, np.arange(len(votes.items)), votes.has_label)
    prompt_codes, _ = _codes_of_items(votes, "prompt", prompt)
    return Grouping(agents, agent_codes, prompt_codes, votes.has_label)


def _codes_of_items(votes: Votes, name: str, column: ArrayLike) -> tuple[Ints, Sequence[Key]]:
    codes, names = code_column(name, column)
    if len(codes) != len(votes.item_of_row):
        raise PlanError(
            f"{name} has {len(codes)} rows where the labels have {len(votes.item_of_row)}; give one for each"
        )
    code_of_item = np.empty(len(votes.items), dtype=np.intp)
    code_of_item[votes.item_of_row[::-1]] = codes[::-1]
    wrong = codes != code_of_item[votes.item_of_row]
    if wrong.any():
        row = int(np.argmax(wrong))
        item = votes.item_of_row[row]
        two_names = f"{names[code_of_item[item]]!r} and {names[codes[row]]!r}"
        raise PlanError(f"item {votes.items[item]!r} has the {name}s {two_names}; give each {name} items of its own")
    return code_of_item, names


def intervals(grouping: Grouping, credit: Floats, resamples: int, seed: int) -> dict[Key, AgentScore]:
    """Return the score of each agent with a labelled item, with percentiles of resampled scores.

    Each agent has its own random generator. Raises PlanError for a number of resamples that is negative or 1.
    """
    if resamples < 0 or resamples == 1:
        raise PlanError(f"bootstrap is {resamples}: 0, for no interval, or at least 2 is needed")
    labelled = np.flatnonzero(grouping.counts)
    order = labelled[np.argsort(grouping.agent[labelled], kind="stable")]
    size = np.bincount(grouping.agent[labelled], minlength=len(grouping.agents))
    scores = {}
    for index, (name, items) in enumerate(zip(grouping.agents, np.split(order, np.cumsum(size)[:-1]), strict=True)):
        if not len(items):
            continue
        score = float(credit[items].mean())
        low, high = _percentiles(credit[items], grouping.prompt[items], resamples, np.random.default_rng([seed, index]))
        scores[name] = AgentScore(score, low, high, len(items))
    return scores


def _percentiles(
    credit: Floats, prompt: Ints, resamples: int, rng: "np.random.Generator"
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the mean over resamples of prompts; None for fewer than two prompts."""
    _, prompt_codes = np.unique(prompt, return_inverse=True)
    size = np.bincount(prompt_codes)
    total = np.bincount(prompt_codes, weights=credit)
    prompts = len(size)
    if prompts < 2 or resamples == 0:
        return None, None
    means = np.empty(resamples)
    batch = max(1, _DRAWS_PER_BATCH // prompts)
    for start in range(0, resamples, batch):
        drawn = rng.integers(prompts, size=(min(batch, resamples - start), prompts))
        means[start : start + batch] = total[drawn].sum(axis=1) / size[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
