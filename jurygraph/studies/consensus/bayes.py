"""The full posterior of a consensus by Gibbs sampling, and the report of its figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Sampled
from jurygraph.aggregation.consensus.fitting import doubts
from jurygraph.aggregation.consensus.gibbs import CHAINS, DRAWS, LEAST_CHAINS, LEAST_DRAWS, Mixing
from jurygraph.errors import InputError
from jurygraph.inference.chains import MAX_R_HAT, MIN_ESS
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Id, Number, Unit
from jurygraph.studies.consensus.reports import ConsensusItem, FiniteOrNone, VotesReport, format_range, rate_annotator
from jurygraph.studies.consensus.study import Advance, Settings, count_rows, validate_settings
from jurygraph.studies.consensus.votes import VoteColumns
from jurygraph.studies.report import ReportTable


class PosteriorAgent(FrozenModel):
    """An agent's posterior mean credit with 95 % credible intervals, and its number of items.

    `low` and `high` are of the mean true credit of these items; `population_low` and `population_high` of that of the
    population from which they, or their prompts, were drawn.
    """

    score: Number
    low: Number
    high: Number
    population_low: Number
    population_high: Number
    items: Count


class Sampling(FrozenModel):
    """The chains, and their worst figures over agents and annotators; None if nothing varies or chains are stuck.

    `guessing` is the posterior mean share of labels that are guesses, because the item is too hard.
    """

    chains: Count
    draws: Count
    r_hat: FiniteOrNone
    bulk_ess: FiniteOrNone
    tail_ess: FiniteOrNone
    guessing: Unit


class PosteriorReport(VotesReport):
    """A consensus by its full posterior. `items` have posterior means, `annotators` those of their error rates on the
    average item."""

    posterior: Literal["gibbs"] = "gibbs"
    agents: dict[Id, PosteriorAgent]
    sampling: Sampling

    def _sections(self) -> Iterator[str | ReportTable]:
        sampling = self.sampling
        yield from self.totals()
        yield f"full posterior by Gibbs sampling: {sampling.chains} chains of {sampling.draws} draws"
        r_hat = "unknown" if sampling.r_hat is None else f"{sampling.r_hat:.3f}"
        bulk, tail = ("unknown" if one is None else f"{one:.0f}" for one in (sampling.bulk_ess, sampling.tail_ess))
        yield f"largest R-hat {r_hat}, smallest effective number of draws {bulk} (tails {tail})"
        yield f"labels that are guesses, because the item is hard: {sampling.guessing:.1%}"
        rows: list[list[object]] = []
        for name, one in sorted(self.agents.items(), key=lambda item: (-item[1].score, item[0])):
            these = (one.low, one.high)
            population = (one.population_low, one.population_high)
            rows.append([name, one.score, format_range(these), format_range(population), one.items])
        header = ("agent", "score", "95 % credible (these items)", "95 % credible (population)", "items")
        yield ReportTable(header, rows, digits=3)
        yield self.annotator_table()
        yield self.item_table()

    def _notes(self) -> Iterator[str]:
        yield from self.warnings
        if not self.counts.agents:
            yield "no row has an agent: no scores of agents"


@dataclass(frozen=True)
class PosteriorSettings:
    """Settings for sampling the posterior.

    Attributes:
        values: credit of each class, [K]; None: evenly from 0 to 1.
        chains, draws: number of chains, and of the draws that each keeps.
        seed: seed of all draws.
        jobs: number of processes.
    """

    values: Sequence[float] | None = None
    chains: int = CHAINS
    draws: int = DRAWS
    seed: int = 0
    jobs: int = 1


def sample_posterior(
    ballots: VoteColumns, settings: PosteriorSettings, report: Advance = lambda chains: None
) -> Sampled:
    """Sample the posterior of the votes. `report` is called with the number of finished chains.

    Raises `InputError` if the settings do not fit the votes.
    """
    validate_settings(ballots, Settings(values=settings.values))
    counts = (("--chains", settings.chains, LEAST_CHAINS), ("--draws", settings.draws, LEAST_DRAWS))
    for option, count, least in counts:
        if count < least:
            raise InputError(f"{option}: expected at least {least}, got {count}")
    return consensus.sample(
        ballots.item,
        ballots.annotator,
        ballots.label,  # type: ignore[arg-type]  # NumPy's types do not cover a list of labels and None
        ballots.agent,
        classes=ballots.classes,
        values=credit_by_class(ballots, settings),
        gold=ballots.gold,
        prompt=ballots.prompt,
        chains=settings.chains,
        draws=settings.draws,
        seed=settings.seed,
        jobs=settings.jobs,
        report=report,
    )


def credit_by_class(ballots: VoteColumns, settings: PosteriorSettings) -> tuple[float, ...]:
    """Return the credit of each class, [K]."""
    k = len(ballots.classes)
    return tuple(settings.values) if settings.values is not None else tuple(index / (k - 1) for index in range(k))


def report_posterior(ballots: VoteColumns, settings: PosteriorSettings, sampled: Sampled) -> PosteriorReport:
    """Return every figure of a posterior."""
    scores = sampled.credible_scores() if ballots.agent is not None else {}
    mixing = sampled.mixing()
    items = zip(sampled.items, sampled.posterior.tolist(), sampled.ambiguity().tolist(), strict=True)
    return PosteriorReport(
        classes=ballots.classes,
        values=credit_by_class(ballots, settings),
        prior=tuple(sampled.prior.tolist()),
        counts=count_rows(ballots, sampled.votes),
        agreement=consensus.agreement(sampled.votes),
        agents={str(name): PosteriorAgent(**one._asdict()) for name, one in scores.items()},
        annotators={str(name): rate_annotator(one) for name, one in sampled.annotators().items()},
        items={str(name): ConsensusItem(posterior=tuple(shares), ambiguity=one) for name, shares, one in items},
        sampling=Sampling(
            chains=settings.chains,
            draws=settings.draws,
            guessing=float(sampled.guessing.mean()),
            **mixing._asdict(),
        ),
        warnings=tuple(doubts(sampled.votes, sampled.confusion, _describe_mixing(mixing))),
    )


def _describe_mixing(mixing: Mixing) -> str | None:
    """Return what is wrong with the chains, and what to do; None if they can be trusted.

    The figures are compared as they are printed.
    """
    short = []
    remedy = "give more --draws"
    if mixing.r_hat is not None and round(mixing.r_hat, 3) > MAX_R_HAT:
        short.append(f"R-hat is {mixing.r_hat:.3f}, above {MAX_R_HAT:g}")
        remedy += ", and believe no figure if R-hat stays there"
    smallest = [size for size in (mixing.bulk_ess, mixing.tail_ess) if size is not None]
    if smallest and round(min(smallest)) < MIN_ESS:
        short.append(f"they are worth {min(smallest):.0f} independent draws, fewer than {MIN_ESS}")
    return f"the chains are too short or disagree: {'; '.join(short)}; {remedy}" if short else None
