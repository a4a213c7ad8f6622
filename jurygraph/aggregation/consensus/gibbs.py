"""Full posterior of a consensus by Gibbs sampling: credible intervals of the credit that agents' items truly have.

The model has class shares for each agent, and items that differ in difficulty:

    θ_a ~ Dirichlet(1, …, 1)            class shares of agent a's items
    π_r[c] ~ Dirichlet(8 · (.6 at c))   how annotator r labels class c; the rest is shared by the other labels
    λ ~ Dirichlet(8, 1, 1)              shares of the items with difficulty 0, .5 and 1
    z_i ~ θ_a(i), d_i ~ λ               class and difficulty of item i
    y_ir ~ (1 - d_i) · π_r[z_i] + d_i / K

A label is thus a guess with probability d_i, as in the simulations of STABLEVAL (section 5.1). Dawid and Skene's model
has one θ for all agents and d_i = 0. The confusions reported are those of the average item, (1 - δ) · π + δ / K with
δ = Σ λ_h d_h.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.consensus.resampling import Report, run_each
from jurygraph.aggregation.consensus.result import (
    AnnotatorQuality,
    Credited,
    Grouping,
    credit_values,
    error_rates,
    grouped_by_agent,
    rate_annotators,
)
from jurygraph.aggregation.consensus.votes import Key, Votes, encode, known_classes
from jurygraph.arrays import Floats, Ints
from jurygraph.errors import PlanError
from jurygraph.inference.bootstrap import QUANTILES
from jurygraph.inference.chains import bulk_ess, r_hat, tail_ess

DIFFICULTIES = np.array([0.0, 0.5, 1.0])
"""The probabilities that a label is a guess, d."""
PRIOR_SHARES = 1.0
PRIOR_CONFUSION = 8.0
PRIOR_DIAGONAL = 0.6
PRIOR_DIFFICULTIES = np.array([8.0, 1.0, 1.0])
CHAINS = 4
DRAWS = 1000
"""The default number of chains, and of draws that each keeps."""
LEAST_CHAINS = 2
LEAST_DRAWS = 100
STEPS_PER_DRAW = 8
"""Steps for each draw that is kept: successive steps tell little new, and would only take memory."""
_TINY = float(np.finfo(np.float64).tiny)


class CredibleScore(NamedTuple):
    """An agent's posterior mean credit and 95 % credible intervals.

    `low` and `high` are of the mean true credit of these items, `population_low` and `population_high` of the mean true
    credit of the population from which the items, or their prompts, were drawn.
    """

    score: float
    low: float
    high: float
    population_low: float
    population_high: float
    items: int


class Mixing(NamedTuple):
    """The worst figures over scores of agents and error rates of annotators; None if nothing varies."""

    r_hat: float | None
    bulk_ess: float | None
    tail_ess: float | None


@dataclass(frozen=True)
class Sampled(Credited):
    """A sample of the posterior of C chains with D draws each.

    `posterior` [N,K] has the posterior means of the items' classes; `confusion` [A,K,K] the posterior mean confusions
    (annotator, true class, label) of the average item, and `prior` [K] the posterior mean class shares of all labelled
    items.

    Attributes:
        agents: in the order of first appearance, [G].
        items_of_agent: number of labelled items, [G].
        scores: mean true credit of each agent's items, [C,D,G]; NaN without labelled items.
        population: mean credit of the population of each agent's items, [C,D,G].
        rates: accuracy, leniency and strictness of the annotators, [C,D,3,A].
        guessing: share of labels that are guesses, δ, [C,D].
    """

    agents: Sequence[Key]
    items_of_agent: Ints
    prior: Floats
    confusion: Floats
    scores: Floats
    population: Floats
    rates: Floats
    guessing: Floats

    def credible_scores(self) -> dict[Key, CredibleScore]:
        """Return the posterior of each agent with labelled items, in the order of appearance."""
        rated = np.flatnonzero(self.items_of_agent)
        scores, population = (each[:, :, rated].reshape(-1, len(rated)) for each in (self.scores, self.population))
        columns = np.vstack([scores.mean(axis=0), _credible(scores), _credible(population)]).T.tolist()
        return {
            self.agents[agent]: CredibleScore._make((*figures, int(self.items_of_agent[agent])))
            for agent, figures in zip(rated.tolist(), columns, strict=True)
        }

    def annotators(self) -> dict[Key, AnnotatorQuality]:
        """Return the posterior mean error rates of each annotator."""
        return rate_annotators(self.votes, self.rates.mean(axis=(0, 1)))

    def mixing(self) -> Mixing:
        """Return the largest R-hat and the smallest effective sample sizes."""
        chains, draws = self.guessing.shape
        rated = self.scores[:, :, self.items_of_agent > 0]
        figures = np.concatenate([rated, self.rates.reshape(chains, draws, -1)], axis=2)
        columns = [np.ascontiguousarray(figures[:, :, index]) for index in range(figures.shape[2])]
        return Mixing(
            _worst(r_hat, columns, max),
            _worst(bulk_ess, columns, min),
            _worst(tail_ess, columns, min),
        )


def sample(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    agent: ArrayLike | None = None,
    *,
    classes: Sequence[Key] | None = None,
    values: ArrayLike | None = None,
    gold: Mapping[Any, Any] | None = None,
    prompt: ArrayLike | None = None,
    chains: int = CHAINS,
    draws: int = DRAWS,
    seed: int = 0,
    jobs: int = 1,
    report: Report | None = None,
) -> Sampled:
    """Sample the posterior of classes, credits and confusions.

    Each chain starts with parameters drawn from the prior; draws are 8 steps apart, and half as many as are kept are
    discarded at the start. Chains have seeds spawned from `seed`, so the result does not depend on `jobs`.

    Args:
        item, annotator, label, agent: row by row, as for `fit` and `agent_scores`; without agents all items share one.
        classes, values, gold: as for `fit` and `agent_scores`.
        prompt: the unit that is drawn from the population, row by row: items of one prompt are drawn together. The
            intervals of the population then weight prompts by Dirichlet(1, …, 1), the Bayesian bootstrap (Rubin 1981),
            with an imaginary prompt of each class and of average size: they are θ's prior, without which one prompt
            would be taken for all. Without `prompt` the intervals are those of θ, as with prompts of one item.
        chains: number of chains, at least 2.
        draws: number of draws that each chain keeps, at least 100.
        seed: seed of all draws.
        jobs: number of processes.
        report: called with 1 after each chain.

    Raises:
        PlanError: as for `fit` and `agent_scores`, or too few chains or draws.
    """
    for name, count, least in (("chains", chains, LEAST_CHAINS), ("draws", draws, LEAST_DRAWS)):
        if count < least:
            raise PlanError(f"{name} is {count}: at least {least} are needed")
    votes = encode(item, annotator, label, classes)
    if len(votes.classes) < 2:
        raise PlanError(f"every label is {votes.classes[0]!r}: at least two classes are needed; name the whole scale")
    everybody = np.zeros(len(votes.item_of_row), dtype=np.intp)
    grouping = grouped_by_agent(votes, everybody if agent is None else agent, prompt)
    known = known_classes(votes, gold or {})
    chain = _Chain(votes, grouping, known, credit_values(votes, values), prompt is not None)
    runs = run_each(partial(chain.run, draws), np.random.SeedSequence(seed).spawn(chains), jobs, report)
    return _join_runs(runs, chain, votes, grouping, known)


def _join_runs(runs: Sequence["_Draws"], chain: "_Chain", votes: Votes, grouping: Grouping, known: Ints) -> Sampled:
    joined = _Draws(*(np.stack(column) for column in zip(*runs, strict=True)))
    posterior = joined.shares.mean(axis=0)[grouping.agent]
    posterior[votes.has_label] = joined.posterior.mean(axis=0).T
    posterior[known >= 0] = np.eye(len(votes.classes))[known[known >= 0]]
    return Sampled(
        votes=votes,
        posterior=posterior,
        agents=grouping.agents,
        items_of_agent=chain.items_of_agent,
        prior=posterior[votes.has_label].mean(axis=0),
        confusion=joined.confusion.mean(axis=0),
        scores=joined.scores,
        population=joined.population,
        rates=joined.rates,
        guessing=joined.guessing,
    )


class _Draws(NamedTuple):
    """The draws of one chain, as in `Sampled` without the chain, and means over them.

    The latter are P(z) of the labelled items, [K,N'], class shares [G,K] and confusions [A,K,K].
    """

    scores: Floats
    population: Floats
    rates: Floats
    guessing: Floats
    posterior: Floats
    shares: Floats
    confusion: Floats


class _Parameters(NamedTuple):
    shares: Floats
    confusion: Floats
    levels: Floats


# Types of numpy.random are in quotes: it is loaded when first used.
class _Chain:
    """The votes, and how a chain steps through the posterior. Items are the N' labelled ones, in their order."""

    def __init__(self, votes: Votes, grouping: Grouping, known: Ints, values: Floats, by_prompt: bool) -> None:
        labelled = np.flatnonzero(votes.has_label)
        self._matrix = votes.matrix[labelled]
        self._item = np.searchsorted(labelled, votes.item)
        self._cell = votes.annotator * len(values) ** 2 + votes.label  # of π, for class 0
        self._annotators = len(votes.annotators)
        self._values = values
        self._agent = grouping.agent[labelled]
        self._agents = len(grouping.agents)
        self.items_of_agent = np.bincount(self._agent, minlength=self._agents)
        is_possible = (known[labelled] < 0) | (known[labelled] == np.arange(len(values))[:, None])
        self._log_gold = np.where(is_possible, 0.0, -np.inf)  # [K,N']
        prompt = np.unique(grouping.prompt[labelled], return_inverse=True)[1]
        pairs = np.unique(np.stack([self._agent, prompt]), axis=1)
        prompts = np.bincount(pairs[0], minlength=self._agents)
        self._prompt = prompt if by_prompt else None
        self._prompt_size = self.items_of_agent / np.maximum(1, prompts)

    def run(self, draws: int, seed: "np.random.SeedSequence") -> _Draws:
        rng = np.random.Generator(np.random.PCG64(seed))
        k = len(self._values)
        kept = []
        sums = [np.zeros(self._log_gold.shape), np.zeros((self._agents, k)), np.zeros((self._annotators, k, k))]
        counts = None
        for step in range(-STEPS_PER_DRAW * (draws // 2), STEPS_PER_DRAW * draws):
            parameters = self._draw_parameters(counts, rng)
            joint = self._posterior_of_items(parameters)
            truth, counts = self._draw_latent(parameters, joint, rng)
            if step < 0 or (step + 1) % STEPS_PER_DRAW:
                continue
            credit = self._values[truth]
            score = _ratio(np.bincount(self._agent, credit, self._agents), self.items_of_agent)
            population = self._draw_population(parameters, credit, rng)
            guessing = float((parameters.levels * DIFFICULTIES).sum())
            confusion = (1.0 - guessing) * parameters.confusion + guessing / k
            kept.append((score, population, error_rates(confusion), guessing))
            for total, added in zip(sums, (joint.sum(axis=0), parameters.shares, confusion), strict=True):
                total += added
        columns = (np.array(column) for column in zip(*kept, strict=True))
        return _Draws(*columns, *(total / draws for total in sums))

    def _draw_parameters(self, counts: Sequence[Ints] | None, rng: "np.random.Generator") -> _Parameters:
        """Return parameters given the counts of the latent variables, or from the prior without them."""
        k = len(self._values)
        confusion = np.full((k, k), PRIOR_CONFUSION * (1.0 - PRIOR_DIAGONAL) / (k - 1))
        np.fill_diagonal(confusion, PRIOR_CONFUSION * PRIOR_DIAGONAL)
        alphas = [
            np.full((self._agents, k), PRIOR_SHARES),
            np.tile(confusion, (self._annotators, 1, 1)),
            PRIOR_DIFFICULTIES,
        ]
        if counts is not None:
            alphas = [alpha + count.reshape(alpha.shape) for alpha, count in zip(alphas, counts, strict=True)]
        gammas = [rng.standard_gamma(alpha) + _TINY for alpha in alphas]
        return _Parameters(*(gamma / gamma.sum(axis=-1, keepdims=True) for gamma in gammas))

    def _posterior_of_items(self, parameters: _Parameters) -> Floats:
        """Return P(difficulty, class) of the items, given the parameters, [H,K,N'].

        Items are the last axis, so that work on one cell is contiguous.
        """
        k = len(self._values)
        levels = len(DIFFICULTIES)
        of_label = parameters.confusion.transpose(0, 2, 1).reshape(-1, 1, k)  # [A·K,1,K], code by class
        clear = (1.0 - DIFFICULTIES)[:, None]
        log_label = np.log(clear * of_label + (1.0 - clear) / k).reshape(-1, levels * k)
        joint = np.ascontiguousarray((self._matrix @ log_label).T).reshape(levels, k, -1)
        joint += np.log(parameters.levels)[:, None, None]
        joint += np.log(parameters.shares).T[:, self._agent] + self._log_gold
        joint -= joint.max(axis=(0, 1))
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=(0, 1))
        return joint

    def _draw_latent(
        self, parameters: _Parameters, joint: Floats, rng: "np.random.Generator"
    ) -> tuple[Ints, Sequence[Ints]]:
        """Draw class and difficulty of each item, and whether each label is a guess.

        Returns the classes [N'], and the counts that the parameters follow: of agents and classes, of the labels that
        are no guesses, as cells of confusions, and of difficulties.
        """
        k = len(self._values)
        ends = joint.reshape(-1, joint.shape[2])[:-1].cumsum(axis=0)
        level, truth = np.divmod((rng.random(len(self._agent)) >= ends).sum(axis=0), k)
        guess = DIFFICULTIES[level][self._item]
        cells = self._cell + truth[self._item] * k
        informed = (1.0 - guess) * parameters.confusion.ravel()[cells]
        is_informed = rng.random(len(guess)) * (informed + guess / k) < informed
        return truth, (
            np.bincount(self._agent * k + truth, minlength=self._agents * k),
            np.bincount(cells[is_informed], minlength=parameters.confusion.size),
            np.bincount(level, minlength=len(DIFFICULTIES)),
        )

    def _draw_population(self, parameters: _Parameters, credit: Floats, rng: "np.random.Generator") -> Floats:
        """Return the mean credit of each agent's population [G], given that of the items [N']; NaN without items."""
        if self._prompt is None:
            return parameters.shares @ self._values
        weight = rng.standard_exponential(int(self._prompt.max()) + 1)[self._prompt]
        imaginary = rng.standard_exponential((self._agents, len(self._values))) * self._prompt_size[:, None]
        sums = np.bincount(self._agent, weight * credit, self._agents) + imaginary @ self._values
        return _ratio(sums, np.bincount(self._agent, weight, self._agents) + imaginary.sum(axis=1))


def _ratio(sums: Floats | Ints, sizes: Floats | Ints) -> Floats:
    return np.asarray(np.divide(sums, sizes, out=np.full(len(sums), np.nan), where=sizes > 0))


def _credible(draws: Floats) -> Floats:
    return np.asarray(np.quantile(draws, QUANTILES, axis=0))


def _worst(
    figure: Callable[[Floats], float | None], columns: Sequence[Floats], choose: Callable[[list[float]], float]
) -> float | None:
    figures = [value for value in map(figure, columns) if value is not None]
    return choose(figures) if figures else None
