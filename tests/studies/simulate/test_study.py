"""The study: the paper's tables from one object, whatever the number of processes."""

import pytest

from jurygraph.aggregation.consensus.resampling import METHODS
from jurygraph.studies.simulate import PARTS, SimulationStudy
from jurygraph.studies.simulate.generator import Setting
from jurygraph.studies.simulate.published import CONFIGURATIONS
from jurygraph.studies.simulate.recovery import recovery
from tests.studies.figures import figures_of


def test_rows_are_the_means_of_the_seeds_next_to_the_papers_numbers() -> None:
    report = figures_of(SimulationStudy(("hard",), seeds=2, seed=7).run())
    assert [row.name for row in report.recovery] == ["hard_00", "hard_10", "hard_20"]
    found = recovery({"hard_20": Setting()}, (7, 8))["hard_20"]
    row = report.recovery[2]
    for place, method in enumerate(METHODS):
        mse, accuracy, tau_b = found[:, place].T
        assert row.mse[method].mean == pytest.approx(1000 * mse.mean())
        assert row.mse[method].error == pytest.approx(1000 * mse.std(ddof=1) / 2**0.5)
        assert row.accuracy[method].mean == pytest.approx(100 * accuracy.mean())
        assert row.tau_b[method].mean == pytest.approx(tau_b.mean())
        assert row.mse[method].paper == CONFIGURATIONS["hard_20"].mse[place]
    assert (report.thinning, report.propositions) == ([], [])


def test_in_the_paper_the_posterior_is_worse_than_the_majority_in_6_of_24_rows_of_table_4() -> None:
    worse = [name for name, row in CONFIGURATIONS.items() if row.mse[2] > row.mse[0]]
    assert len(CONFIGURATIONS) == 24
    assert worse == ["labels_3", "gaps_tight", "adv_00", "strict_10", "strict_20", "lenient_10"]
    report = figures_of(SimulationStudy(("gaps",), seeds=1).run())
    assert report.above_majority_in_paper == {"dawid-skene": 0, "stableval": 1}
    counted = sum(row.mse["stableval"].mean > row.mse["majority"].mean for row in report.recovery)
    assert report.above_majority["stableval"] == counted


@pytest.mark.exhaustive
def test_progress_reaches_the_size_of_the_study() -> None:
    done: list[int] = []
    study = SimulationStudy(("labels", "gaps"), seeds=1)
    study.run(done.append)
    assert sum(done) == study.size == 5 + 4
    assert SimulationStudy(PARTS, seeds=100).size == 100 * (21 + 4 + 4)


@pytest.mark.exhaustive
def test_the_report_does_not_depend_on_the_number_of_processes() -> None:
    parts = ("gaps", "labels", "propositions")
    one, two = (SimulationStudy(parts, seeds=2, jobs=jobs).run() for jobs in (1, 2))
    assert one == two
