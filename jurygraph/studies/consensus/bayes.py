"""The full posterior of a consensus by Gibbs sampling, and the report of its figures."""

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Sampled
from jurygraph.aggregation.consensus.fitting import doubts
from jurygraph.aggregation.consensus.gibbs import LEAST_CHAINS, LEAST_DRAWS, Mixing
from jurygraph.errors import InputError
from jurygraph.inference.chains import MAX_R_HAT, MIN_ESS
from jurygraph.studies.consensus.reports import (
    annotator_figures,
    annotator_table,
    format_range,
    item_table,
    totals,
    vote_figures,
)
from jurygraph.studies.consensus.study import Advance, Settings, validate_settings
from jurygraph.studies.consensus.votes import VoteColumns
from jurygraph.studies.report import Report, ReportTable


def sample_posterior(ballots: VoteColumns, settings: Settings, report: Advance = lambda chains: None) -> Sampled:
    """Sample the posterior of the votes. `report` is called with the number of finished chains.

    Raises `InputError` if the settings do not fit the votes.
    """
    validate_settings(ballots, settings)
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
        values=settings.credits(ballots.classes),
        gold=ballots.gold,
        prompt=ballots.prompt,
        chains=settings.chains,
        draws=settings.draws,
        seed=settings.seed or 0,
        jobs=settings.jobs,
        report=report,
    )


def report_posterior(ballots: VoteColumns, settings: Settings, sampled: Sampled) -> Report:
    """Return every figure of a posterior. `items` have posterior means, `annotators` those of their error rates on the
    average item.

    `low` and `high` of an agent are of the mean true credit of these items; `population_low` and `population_high` of
    that of the population from which they, or their prompts, were drawn. `sampling` has the worst figures of the chains
    over agents and annotators, None if nothing varies or chains are stuck, and `guessing`: the posterior mean share of
    labels that are guesses, because the item is too hard.
    """
    mixing = sampled.mixing()
    r_hat, bulk, tail = (one if one is None or np.isfinite(one) else None for one in mixing)
    guessing = float(sampled.guessing.mean())
    scores = sampled.credible_scores() if ballots.agent is not None else {}
    warnings = list(doubts(sampled.votes, sampled.confusion, _describe_mixing(mixing)))
    figures = {
        **vote_figures(ballots, settings.credits(ballots.classes), sampled),
        "posterior": "gibbs",
        "prior": sampled.prior.tolist(),
        "agents": {str(name): one for name, one in scores.items()},
        "annotators": {str(name): annotator_figures(one) for name, one in sampled.annotators().items()},
        "sampling": {
            "chains": settings.chains,
            "draws": settings.draws,
            "r_hat": r_hat,
            "bulk_ess": bulk,
            "tail_ess": tail,
            "guessing": guessing,
        },
        "warnings": warnings,
    }
    rows = []
    for name, one in sorted(scores.items(), key=lambda item: (-item[1].score, item[0])):
        population = format_range((one.population_low, one.population_high))
        rows.append([name, one.score, format_range((one.low, one.high)), population, one.items])
    header = ("agent", "score", "95 % credible (these items)", "95 % credible (population)", "items")
    worst = "unknown" if r_hat is None else f"{r_hat:.3f}"
    sizes = ["unknown" if one is None else f"{one:.0f}" for one in (bulk, tail)]
    sections: list[str | ReportTable] = [
        *totals(figures),
        f"full posterior by Gibbs sampling: {settings.chains} chains of {settings.draws} draws",
        f"largest R-hat {worst}, smallest effective number of draws {sizes[0]} (tails {sizes[1]})",
        f"labels that are guesses, because the item is hard: {guessing:.1%}",
        ReportTable(header, rows, digits=3),
        annotator_table(figures["annotators"]),
        item_table(figures),
    ]
    no_agents = [] if ballots.agent else ["no row has an agent: no scores of agents"]
    return Report(figures, sections, [*warnings, *no_agents])


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
