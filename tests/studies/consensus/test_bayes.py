"""The report of a consensus by its full posterior."""

from typing import Any

import pytest

from jurygraph.aggregation.consensus.gibbs import Mixing
from jurygraph.errors import InputError
from jurygraph.studies.consensus import Settings, VoteColumns, collect_votes
from jurygraph.studies.consensus.bayes import (
    _describe_mixing,
    report_posterior,
    sample_posterior,
)
from tests.studies.consensus.made import AGENTS, PANEL, votes_file
from tests.studies.figures import Figures, figures_of

QUICK = Settings(chains=2, draws=150)


def columns(**fields: Any) -> VoteColumns:
    return collect_votes([votes_file(*PANEL, **fields)])


def reported(ballots: VoteColumns, settings: Settings = QUICK) -> Figures:
    return figures_of(report_posterior(ballots, settings, sample_posterior(ballots, settings)))


@pytest.fixture(scope="module")
def found() -> Figures:
    return reported(columns(agent=AGENTS))


@pytest.mark.landing
def test_agents_have_credible_intervals_of_their_items_and_of_the_population(found: Figures) -> None:
    assert {name: one["items"] for name, one in found.agents.items()} == {"large": 4, "small": 8}
    for one in found.agents.values():
        assert one.low <= one.score <= one.high
        assert one.population_high - one.population_low > 0.1


def test_without_agents_there_are_no_scores() -> None:
    found = reported(columns())
    assert found.agents == {}
    assert len(found["items"]) == 12


@pytest.mark.exhaustive
def test_chains_that_do_not_agree_are_a_warning(found: Figures) -> None:
    (warning,) = [one for one in found.warnings if one.startswith("the chains are too short or disagree: ")]
    assert "fewer than 400; give more --draws" in warning
    assert found.sampling.bulk_ess < 400
    longer = reported(columns(agent=AGENTS), Settings(draws=800))
    assert not [one for one in longer.warnings if "chains" in one]


@pytest.mark.parametrize(
    ("mixing", "problem"),
    [
        (Mixing(1.0104, 399.6, 500.0), None),
        (Mixing(None, None, None), None),
        (Mixing(1.0106, 900.0, 399.4), "R-hat is 1.011, above 1.01; they are worth 399 independent draws, fewer"),
        (Mixing(1.5, 900.0, 900.0), "give more --draws, and believe no figure if R-hat stays there"),
    ],
)
def test_a_warning_never_contradicts_the_figure_that_it_prints(mixing: Mixing, problem: str | None) -> None:
    found = _describe_mixing(mixing)
    assert (found is None) == (problem is None)
    assert (problem or "") in (found or "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(chains=1), "--chains: expected at least 2, got 1"),
        (Settings(draws=10), "--draws: expected at least 100, got 10"),
        (Settings(values=(0.0, 0.5, 1.0)), "--values: gives 3 credits to 2 classes"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: Settings, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample_posterior(columns(), settings)
