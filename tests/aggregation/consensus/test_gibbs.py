"""The full posterior of a consensus, compared with exact enumeration and with a sampler of another kind."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from math import lgamma, log
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Sampled, sample
from jurygraph.arrays import Floats
from jurygraph.errors import PlanError
from jurygraph.studies.simulate import Setting, stableval

DIFFICULTIES, LEVELS_PRIOR = (0.0, 0.5, 1.0), (8.0, 1.0, 1.0)


class Panel(NamedTuple):
    """Few votes (item, annotator, label) on items of agents."""

    votes: Sequence[tuple[int, int, int]]
    agent: Sequence[int]
    classes: int
    gold: Mapping[int, int] = MappingProxyType({})

    def columns(self) -> tuple[list[int], list[int], list[int], list[int]]:
        item, annotator, label = (list(column) for column in zip(*self.votes, strict=True))
        return item, annotator, label, [self.agent[one] for one in item]


class State(NamedTuple):
    """The latent variables of one item: class, difficulty, and whether each of its labels is a guess."""

    truth: int
    level: int
    guesses: tuple[bool, ...]


BINARY = Panel([(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 1), (2, 0, 0), (2, 1, 0), (3, 0, 1)], (0, 0, 1, 1), 2)
GRADED = Panel([(0, 0, 2), (0, 1, 2), (1, 0, 0), (1, 1, 1), (2, 1, 0)], (0, 1, 1), 3)
ANCHORED = GRADED._replace(gold={1: 0})
PANELS = {"binary": BINARY, "graded": GRADED, "anchored": ANCHORED}


# Exact: parameters are integrated out, and all latent variables enumerated


def states(panel: Panel, item: int) -> Iterator[State]:
    """Yield all states of an item that have a positive probability."""
    labels = sum(one == item for one, _, _ in panel.votes)
    for truth, level in product(range(panel.classes), range(3)):
        if panel.gold.get(item, truth) == truth:
            free = (False, True)[level == 2 :][: 1 if level == 0 else 2]
            for guesses in product(free, repeat=labels):
                yield State(truth, level, guesses)


def log_joint(panel: Panel, latent: Sequence[State]) -> float:
    """Return the log-probability of latent variables and labels, all parameters integrated out, without a constant."""
    k = panel.classes
    agents = np.ones((max(panel.agent) + 1, k))
    levels = np.array(LEVELS_PRIOR)
    cells = np.full((1 + max(by for _, by, _ in panel.votes), k, k), 8 * 0.4 / (k - 1))
    cells[:, range(k), range(k)] = 8 * 0.6
    result = -sum(map(_log_dirichlet, (*agents, levels, *cells.reshape(-1, k))))
    for one, state in zip(panel.agent, latent, strict=True):
        agents[one, state.truth] += 1
        levels[state.level] += 1
    guesses = [iter(state.guesses) for state in latent]
    for item, by, label in panel.votes:
        state, is_guess = latent[item], next(guesses[item])
        share = DIFFICULTIES[state.level]
        result += log(share / k) if is_guess else log(1 - share)
        cells[by, state.truth, label] += not is_guess
    return result + sum(map(_log_dirichlet, (*agents, levels, *cells.reshape(-1, k))))


def _log_dirichlet(alpha: Floats) -> float:
    return sum(map(lgamma, alpha.tolist())) - lgamma(float(alpha.sum()))


class Expected(NamedTuple):
    """P(z) [N,K], mean credit of the agents and its standard deviation [G], and mean class shares θ [G,K]."""

    posterior: Floats
    scores: Floats
    spread: Floats
    shares: Floats


def summarise(panel: Panel, truths: Floats, weights: Floats) -> Expected:
    """Return expectations over draws of classes [S,N] with weights [S]."""
    weights = weights / weights.sum()
    one_hot = np.eye(panel.classes)[truths]
    agent = np.eye(max(panel.agent) + 1)[list(panel.agent)]
    counts = np.einsum("snk,ng->sgk", one_hot, agent)
    credit = counts @ (np.arange(panel.classes) / (panel.classes - 1)) / agent.sum(axis=0)
    mean = weights @ credit
    shares = (counts + 1) / (counts + 1).sum(axis=2, keepdims=True)
    return Expected(
        np.einsum("s,snk->nk", weights, one_hot),
        mean,
        np.sqrt(weights @ (credit - mean) ** 2),
        np.einsum("s,sgk->gk", weights, shares),
    )


@cache
def enumerated(name: str) -> Expected:
    panel = PANELS[name]
    every = list(product(*(list(states(panel, item)) for item in range(len(panel.agent)))))
    logs = np.array([log_joint(panel, latent) for latent in every])
    truths = np.array([[state.truth for state in latent] for latent in every])
    return summarise(panel, truths, np.exp(logs - logs.max()))


def posterior_of(panel: Panel, **settings: int) -> Sampled:
    return sample(*panel.columns(), classes=range(panel.classes), gold=panel.gold, **settings)


def summary_of(sampled: Sampled) -> Expected:
    draws = sampled.scores.reshape(-1, len(sampled.agents))
    population = sampled.population.reshape(-1, len(sampled.agents)).mean(axis=0)
    return Expected(sampled.posterior, draws.mean(axis=0), draws.std(axis=0), population)


@pytest.mark.landing
@pytest.mark.parametrize(
    "name", ["binary", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("graded", "anchored"))]
)
def test_the_posterior_equals_exact_enumeration(name: str) -> None:
    exact, sampled = enumerated(name), summary_of(posterior_of(PANELS[name], chains=2, draws=800, seed=1))
    np.testing.assert_allclose(sampled.posterior, exact.posterior, atol=0.015)
    np.testing.assert_allclose(sampled.scores, exact.scores, atol=0.02)
    np.testing.assert_allclose(sampled.spread, exact.spread, atol=0.02)
    values = np.arange(PANELS[name].classes) / (PANELS[name].classes - 1)
    np.testing.assert_allclose(sampled.shares, exact.shares @ values, atol=0.02)


# What the intervals are for


@pytest.mark.exhaustive
def test_intervals_cover_the_true_credit_of_the_papers_simulations() -> None:
    hits: dict[str, list[bool]] = {"these": [], "population": [], "items resampled": []}
    for seed in range(4):
        simulated = stableval(Setting(), seed)
        rows = simulated.item, simulated.annotator, simulated.label
        credible = sample(*rows, simulated.agent, chains=2, draws=150, seed=seed).credible_scores()
        fitted = consensus.fit(*rows, n_classes=3).agent_scores(simulated.agent)
        means = simulated.setting.shares @ (0.0, 0.5, 1.0)
        for agent, (truth, mean) in enumerate(zip(simulated.true_scores, means, strict=True)):
            own, usual = credible[agent], fitted[agent]
            hits["these"].append(own.low <= truth <= own.high)
            hits["population"].append(own.population_low <= mean <= own.population_high)
            hits["items resampled"].append(usual.low <= truth <= usual.high)
    share = {name: np.mean(each) for name, each in hits.items()}
    assert share["these"] >= 0.9
    assert share["population"] >= 0.85
    assert share["items resampled"] <= 0.6


@pytest.mark.exhaustive
def test_items_of_one_prompt_count_as_one_draw_of_the_population() -> None:
    item, prompt = np.repeat(np.arange(24), 3), np.repeat(np.arange(4), 18)
    columns = item, np.tile(np.arange(3), 24), prompt % 2  # all annotators agree, and all items of a prompt
    alone, together = (
        sample(*columns, chains=2, draws=200, prompt=each).credible_scores()[0] for each in (item, prompt)
    )
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=0.05)
    width = together.population_high - together.population_low
    assert width > 1.5 * (alone.population_high - alone.population_low)


@pytest.mark.exhaustive
def test_prompts_of_one_item_each_tell_the_same_of_the_population_as_no_prompts() -> None:
    item, label = np.repeat(np.arange(8), 5), np.repeat([0, 0, 2, 0, 1, 0, 0, 0], 5)
    columns = item, np.tile(np.arange(5), 8), label
    plain, by_prompt = (sample(*columns, chains=2, draws=2000, prompt=each).population for each in (None, item))
    ends = (0.025, 0.25, 0.5, 0.75, 0.975)
    np.testing.assert_allclose(np.quantile(plain, ends), np.quantile(by_prompt, ends), atol=0.02)


# Draws


@pytest.mark.landing
def test_the_draws_depend_on_the_seed_alone() -> None:
    first, again, other = (posterior_of(GRADED, chains=2, draws=100, seed=seed, jobs=1) for seed in (3, 3, 4))
    apart = posterior_of(GRADED, chains=2, draws=100, seed=3, jobs=2)
    for name in ("posterior", "confusion", "prior", "scores", "population", "rates", "guessing"):
        assert getattr(first, name).tobytes() == getattr(again, name).tobytes() == getattr(apart, name).tobytes()
    assert not np.array_equal(first.scores, other.scores)
    assert not np.array_equal(first.scores[0], first.scores[1])


@pytest.mark.landing
def test_an_item_of_known_class_has_it_in_every_draw() -> None:
    for known in range(3):
        of_agent_0 = posterior_of(GRADED._replace(gold={0: known}), chains=2, draws=100).scores[:, :, 0]
        assert set(of_agent_0.ravel().tolist()) == {known / 2}


@pytest.mark.landing
def test_unlabelled_items_and_agents_without_labels_are_left_out() -> None:
    sampled = sample([0, 0, 1, 2], [0, 1, 0, 0], [1, 1, 0, None], ["a", "a", "a", "b"], chains=2, draws=200)
    assert list(sampled.credible_scores()) == ["a"]
    assert sampled.credible_scores()["a"].items == 2
    np.testing.assert_allclose(sampled.posterior[2], [0.5, 0.5], atol=0.1)  # the prior of an agent without labels
    np.testing.assert_allclose(sampled.confusion.sum(axis=2), 1.0)
    np.testing.assert_allclose(sampled.prior, sampled.posterior[:2].mean(axis=0))


@pytest.mark.landing
def test_chains_that_were_too_short_are_seen() -> None:
    simulated = stableval(Setting(items=60), 0)
    short = sample(simulated.item, simulated.annotator, simulated.label, simulated.agent, chains=2, draws=100).mixing()
    assert short.bulk_ess < 200
    assert short.r_hat > 1.0


@pytest.mark.parametrize(
    ("problem", "arguments"),
    [
        ("chains is 1: at least 2 are needed", {"chains": 1}),
        ("draws is 99: at least 100 are needed", {"draws": 99}),
        ("every label is 1: at least two classes are needed", {"label": [1, 1]}),
    ],
)
def test_what_cannot_be_sampled_is_refused(problem: str, arguments: dict[str, object]) -> None:
    call: Callable[..., Sampled] = sample
    with pytest.raises(PlanError, match=problem):
        call(**{"item": [0, 1], "annotator": [0, 0], "label": [0, 1], **arguments})
