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
    problem = _Problem(votes, grouping, known, credit_values(votes, values), prompt is not None)
    seeds = np.random.SeedSequence(seed).spawn(chains)
    runs = run_each(partial(_run_chain, problem, draws), seeds, jobs, report)
    return _join_runs(votes, grouping, known, problem, runs)


def _join_runs(votes: Votes, grouping: Grouping, known: Ints, problem: "_Problem", runs: Sequence["_Run"]) -> Sampled:
    joined = _Run(*(np.stack(column) for column in zip(*runs, strict=True)))
    draws = joined.guessing.size
    posterior = (joined.shares.sum(axis=0) / draws)[grouping.agent]
    posterior[votes.has_label] = joined.posterior.sum(axis=0).T / draws
    posterior[known >= 0] = np.eye(problem.classes)[known[known >= 0]]
    return Sampled(
        votes=votes,
        posterior=posterior,
        agents=grouping.agents,
        items_of_agent=problem.items_of_agent,
        prior=posterior[votes.has_label].mean(axis=0),
        confusion=joined.confusion.sum(axis=0) / draws,
        scores=joined.scores,
        population=joined.population,
        rates=joined.rates,
        guessing=joined.guessing,
    )


class _Problem:
    """The votes as all chains read them. Items are the N' labelled ones, in their order.

    Attributes:
        matrix: labels of the items, sparse, [N', A·K]; `item`, `annotator` and `label` [M] are its rows.
        agent, items_of_agent: the agent of each item, [N'], and the number of its items, [G].
        log_gold: 0 for a possible class, else minus infinity, [K,N'].
        prompt: the prompt of each item, [N']; None unless prompts are what is drawn.
        prompt_size: the mean number of an agent's items in each of its prompts, [G].
    """

    def __init__(self, votes: Votes, grouping: Grouping, known: Ints, values: Floats, by_prompt: bool) -> None:
        labelled = np.flatnonzero(votes.has_label)
        self.matrix = votes.matrix[labelled]
        self.item = np.searchsorted(labelled, votes.item)
        self.annotator = votes.annotator
        self.label = votes.label
        self.annotators = len(votes.annotators)
        self.values = values
        self.agent = grouping.agent[labelled]
        self.agents = len(grouping.agents)
        self.items_of_agent = np.bincount(self.agent, minlength=self.agents)
        gold = known[labelled]
        self.log_gold = np.where((gold < 0) | (gold == np.arange(len(values))[:, None]), 0.0, -np.inf)
        prompt = np.unique(grouping.prompt[labelled], return_inverse=True)[1]
        pairs = np.unique(np.stack([self.agent, prompt]), axis=1)
        prompts = np.bincount(pairs[0], minlength=self.agents)
        self.prompt = prompt if by_prompt else None
        self.prompt_size = self.items_of_agent / np.maximum(1, prompts)

    @property
    def classes(self) -> int:
        return len(self.values)


class _Parameters(NamedTuple):
    """Class shares θ [G,K], confusions π [A,K,K], and shares of the difficulties λ [H]."""

    shares: Floats
    confusion: Floats
    levels: Floats


class _Latent(NamedTuple):
    """The class and the index of the difficulty of each item, [N'], and the counts of labels that are no guesses, as
    cells of confusions, [A·K·K]."""

    truth: Ints
    level: Ints
    informed: Ints


class _Run(NamedTuple):
    """The draws of one chain, as in `Sampled` without the chain, and sums over them."""

    scores: Floats
    population: Floats
    rates: Floats
    guessing: Floats
    posterior: Floats
    shares: Floats
    confusion: Floats


# Types of numpy.random are in quotes: it is loaded when first used.
def _run_chain(problem: _Problem, draws: int, seed: "np.random.SeedSequence") -> _Run:
    rng = np.random.Generator(np.random.PCG64(seed))
    agents = problem.agents
    annotators = problem.annotators
    k = problem.classes
    run = _Run(
        scores=np.empty((draws, agents)),
        population=np.empty((draws, agents)),
        rates=np.empty((draws, 3, annotators)),
        guessing=np.empty(draws),
        posterior=np.zeros((k, len(problem.agent))),
        shares=np.zeros((agents, k)),
        confusion=np.zeros((annotators, k, k)),
    )
    latent = None
    for step in range(-STEPS_PER_DRAW * (draws // 2), STEPS_PER_DRAW * draws):
        parameters = _draw_parameters(problem, latent, rng)
        joint = _posterior_of_items(problem, parameters)
        latent = _draw_latent(problem, parameters, joint, rng)
        draw, rest = divmod(step, STEPS_PER_DRAW)
        if draw >= 0 and rest == STEPS_PER_DRAW - 1:
            _keep(run, draw, problem, parameters, joint, latent, rng)
    return run


def _draw_parameters(problem: _Problem, latent: _Latent | None, rng: "np.random.Generator") -> _Parameters:
    """Return parameters given the latent variables, or from the prior without them."""
    agents = problem.agents
    annotators = problem.annotators
    k = problem.classes
    levels = len(DIFFICULTIES)
    confusion = np.full((k, k), PRIOR_CONFUSION * (1.0 - PRIOR_DIAGONAL) / (k - 1))
    np.fill_diagonal(confusion, PRIOR_CONFUSION * PRIOR_DIAGONAL)
    alphas = [np.full((agents, k), PRIOR_SHARES), np.tile(confusion, (annotators, 1, 1)), PRIOR_DIFFICULTIES]
    if latent is not None:
        counts = (
            np.bincount(problem.agent * k + latent.truth, minlength=agents * k),
            latent.informed,
            np.bincount(latent.level, minlength=levels),
        )
        alphas = [alpha + count.reshape(alpha.shape) for alpha, count in zip(alphas, counts, strict=True)]
    gammas = [rng.standard_gamma(alpha) + _TINY for alpha in alphas]
    return _Parameters(*(gamma / gamma.sum(axis=-1, keepdims=True) for gamma in gammas))


def _posterior_of_items(problem: _Problem, parameters: _Parameters) -> Floats:
    """Return P(difficulty, class) of the items, given the parameters, [H,K,N'].

    Items are the last axis, so that work on one cell is contiguous.
    """
    k = problem.classes
    levels = len(DIFFICULTIES)
    of_label = parameters.confusion.transpose(0, 2, 1).reshape(-1, 1, k)  # [A·K,1,K], code by class
    clear = (1.0 - DIFFICULTIES)[:, None]
    log_label = np.log(clear * of_label + (1.0 - clear) / k).reshape(-1, levels * k)
    joint = np.ascontiguousarray((problem.matrix @ log_label).T).reshape(levels, k, -1)
    joint += np.log(parameters.levels)[:, None, None]
    joint += np.log(parameters.shares).T[:, problem.agent] + problem.log_gold
    joint -= joint.max(axis=(0, 1))
    np.exp(joint, out=joint)
    joint /= joint.sum(axis=(0, 1))
    return joint


def _draw_latent(problem: _Problem, parameters: _Parameters, joint: Floats, rng: "np.random.Generator") -> _Latent:
    k = problem.classes
    ends = joint.reshape(-1, joint.shape[2])[:-1].cumsum(axis=0)
    level, truth = np.divmod((rng.random(len(problem.agent)) >= ends).sum(axis=0), k)
    guess = DIFFICULTIES[level][problem.item]
    cells = (problem.annotator * k + truth[problem.item]) * k + problem.label
    informed = (1.0 - guess) * parameters.confusion.ravel()[cells]
    is_informed = rng.random(len(guess)) * (informed + guess / k) < informed
    return _Latent(truth, level, np.bincount(cells[is_informed], minlength=parameters.confusion.size))


def _keep(
    run: _Run,
    draw: int,
    problem: _Problem,
    parameters: _Parameters,
    joint: Floats,
    latent: _Latent,
    rng: "np.random.Generator",
) -> None:
    """Write a draw into `run` and add to its sums."""
    credit = problem.values[latent.truth]
    run.scores[draw] = _ratio(np.bincount(problem.agent, credit, problem.agents), problem.items_of_agent)
    if problem.prompt is None:
        run.population[draw] = parameters.shares @ problem.values
    else:
        run.population[draw] = _draw_population(problem, problem.prompt, credit, rng)
    guessing = float((parameters.levels * DIFFICULTIES).sum())
    confusion = (1.0 - guessing) * parameters.confusion + guessing / problem.classes
    run.rates[draw] = error_rates(confusion)
    run.guessing[draw] = guessing
    run.posterior[:] += joint.sum(axis=0)
    run.shares[:] += parameters.shares
    run.confusion[:] += confusion


def _draw_population(problem: _Problem, prompt: Ints, credit: Floats, rng: "np.random.Generator") -> Floats:
    """Return the mean credit of each agent's population [G], from the prompt and the credit of the items [N'].

    NaN without items.
    """
    weight = rng.standard_exponential(int(prompt.max()) + 1)[prompt]
    imaginary = rng.standard_exponential((problem.agents, problem.classes)) * problem.prompt_size[:, None]
    sums = np.bincount(problem.agent, weight * credit, problem.agents) + imaginary @ problem.values
    return _ratio(sums, np.bincount(problem.agent, weight, problem.agents) + imaginary.sum(axis=1))


def _ratio(sums: Floats | Ints, sizes: Floats | Ints) -> Floats:
    """Return sums / sizes; NaN where a size is 0."""
    return np.asarray(np.divide(sums, sizes, out=np.full(len(sums), np.nan), where=sizes > 0))


def _credible(draws: Floats) -> Floats:
    """Return the ends of the central 95 % of the draws (first axis), [2,…]."""
    return np.asarray(np.quantile(draws, QUANTILES, axis=0))


def _worst(
    figure: Callable[[Floats], float | None], columns: Sequence[Floats], choose: Callable[[list[float]], float]
) -> float | None:
    figures = [value for value in map(figure, columns) if value is not None]
    return choose(figures) if figures else None
