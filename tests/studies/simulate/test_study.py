"""The study: the paper's tables from one function."""

import pytest

from jurygraph.aggregation.consensus.fitting import CONSENSUS_METHODS
from jurygraph.studies.simulate import (
    PAPER_CONFIGURATION_BY_NAME,
    SIMULATION_NAMES,
    SimulationSetting,
    count_evaluations,
    recovery,
    report,
)
from tests.studies.figures import figures_of


def test_rows_are_the_means_of_the_seeds_next_to_the_papers_numbers() -> None:
    figures = figures_of(report(("hard",), range(7, 9)))
    assert [row.name for row in figures.recovery] == ["hard_00", "hard_10", "hard_20"]
    found = recovery({"hard_20": SimulationSetting()}, (7, 8), lambda evaluations: None)["hard_20"]
    row = figures.recovery[2]
    for place, method in enumerate(CONSENSUS_METHODS):
        mse, accuracy, tau_b = found[:, place].T
        assert row.mse[method].mean == pytest.approx(1000 * mse.mean())
        assert row.mse[method].error == pytest.approx(1000 * mse.std(ddof=1) / 2**0.5)
        assert row.accuracy[method].mean == pytest.approx(100 * accuracy.mean())
        assert row.tau_b[method].mean == pytest.approx(tau_b.mean())
        assert row.mse[method].paper == PAPER_CONFIGURATION_BY_NAME["hard_20"].mse[place]


def test_in_the_paper_the_posterior_is_worse_than_the_majority_in_6_of_24_rows_of_table_4() -> None:
    worse = [name for name, row in PAPER_CONFIGURATION_BY_NAME.items() if row.mse[2] > row.mse[0]]
    assert len(PAPER_CONFIGURATION_BY_NAME) == 24
    assert worse == ["labels_3", "gaps_tight", "adv_00", "strict_10", "strict_20", "lenient_10"]


def test_progress_reaches_the_number_of_evaluations() -> None:
    done: list[int] = []
    report(("gaps", "decompr"), range(1), done.append)
    assert sum(done) == count_evaluations(("gaps", "decompr"), range(1)) == 2
    assert count_evaluations(SIMULATION_NAMES, range(100)) == 100 * 21
