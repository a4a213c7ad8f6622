"""Simulated evaluations depend on their seed only, and follow the documented probabilities."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.simulation.coverage import AMBIGUITY
from jurygraph.errors import PlanError
from jurygraph.studies import simulate
from jurygraph.studies.simulate import (
    CONFUSION_BY_BEHAVIOUR,
    PAPER_CONFIGURATION_BY_NAME,
    RATER_BEHAVIOURS,
    SimulatedEvaluation,
    SimulationSetting,
)
from tests.rows import all_rows
from tests.studies.simulate.published import COLUMNS, EXPECTED

LARGE = SimulationSetting(items=20_000)
MAX_DEVIATION = 4.5
"""Maximum deviation in standard errors, for a fixed seed; of a thousand figures, one in a hundred deviates more."""


def is_near(share: float, chance: float, many: int) -> bool:
    return bool(
        abs(share - chance) <= MAX_DEVIATION * np.sqrt(chance * (1.0 - chance) / many) + 1e-12
    )


@pytest.fixture(scope="module")
def large() -> SimulatedEvaluation:
    return simulate.stableval(LARGE, 0)


@given(
    qualities=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4),
    items=st.integers(1, 12),
    pool=st.tuples(*[st.integers(0, 3)] * 4).filter(any),
    hard=st.floats(0.0, 1.0),
    data=st.data(),
)
def test_every_item_has_the_requested_number_of_different_annotators(
    qualities: list[float],
    items: int,
    pool: tuple[int, int, int, int],
    hard: float,
    data: st.DataObject,
) -> None:
    annotators = data.draw(st.integers(1, sum(pool)))
    labels = data.draw(st.integers(1, annotators))
    setting = SimulationSetting(
        qualities=tuple(qualities),
        items=items,
        pool=pool,
        annotators=annotators,
        labels=labels,
        hard=hard,
    )
    drawn = simulate.stableval(setting, data.draw(st.integers(0, 99)))
    by = drawn.annotator.reshape(-1, labels)
    assert len(by) == len(drawn.truth) == len(drawn.ambiguity) == len(qualities) * items
    assert all(len(set(one)) == labels for one in by.tolist())
    assert_array_equal(drawn.item.reshape(-1, labels)[:, 0], np.arange(len(by)))
    assert_array_equal(
        drawn.agent.reshape(-1, labels)[:, 0], np.repeat(np.arange(len(qualities)), items)
    )
    assert set(drawn.label.tolist()) <= {0, 1, 2}
    assert by.max() < annotators == len(drawn.rater_behaviours) == len(drawn.confusions)
    assert all(
        Counter(drawn.rater_behaviours)[kind] <= many
        for kind, many in zip(RATER_BEHAVIOURS, pool, strict=True)
    )
    assert_allclose(
        drawn.confusions, [CONFUSION_BY_BEHAVIOUR[kind] for kind in drawn.rater_behaviours]
    )
    assert ((drawn.ambiguity >= 0.0) & (drawn.ambiguity <= 1.0)).all()


@pytest.mark.parametrize(("hard", "a", "b"), [(0.0, 2.0, 12.0), (1.0, 6.0, 3.0)])
def test_ambiguity_follows_the_documented_beta_distribution(
    hard: float, a: float, b: float
) -> None:
    from scipy import stats

    ambiguity = simulate.stableval(SimulationSetting(items=5000, hard=hard), 1).ambiguity
    assert stats.kstest(ambiguity, stats.beta(a, b).cdf).pvalue > 1e-4
    assert ambiguity.mean() == pytest.approx(AMBIGUITY["hard" if hard else "clear"], abs=0.01)


def test_labels_follow_the_confusion_blurred_by_the_ambiguity(large: SimulatedEvaluation) -> None:
    kind = np.array([RATER_BEHAVIOURS.index(one) for one in large.rater_behaviours])[
        large.annotator
    ]
    truth, blurred = large.truth[large.item], large.ambiguity[large.item]
    ranges = [(0.0, 0.1), (0.1, 0.4), (0.4, 1.0)]
    for place, name in enumerate(RATER_BEHAVIOURS):
        for cls in range(3):
            for low, high in ranges:
                own = (kind == place) & (truth == cls) & (low <= blurred) & (blurred < high)
                for label, clear in enumerate(CONFUSION_BY_BEHAVIOUR[name][cls]):
                    chances = (1.0 - blurred[own]) * clear + blurred[own] / 3.0
                    error = np.sqrt((chances * (1.0 - chances)).sum()) / own.sum()
                    assert (
                        abs((large.label[own] == label).mean() - chances.mean())
                        <= MAX_DEVIATION * error
                    )


def test_without_ambiguity_labels_follow_the_confusions_alone() -> None:
    drawn = simulate.stableval(SimulationSetting(items=20_000, ambiguous=False), 0)
    assert (drawn.ambiguity == 0.0).all()
    kind = np.array([RATER_BEHAVIOURS.index(one) for one in drawn.rater_behaviours])[
        drawn.annotator
    ]
    for place, name in enumerate(RATER_BEHAVIOURS):
        for cls in range(3):
            own = drawn.label[(kind == place) & (drawn.truth[drawn.item] == cls)]
            assert all(
                is_near((own == label).mean(), CONFUSION_BY_BEHAVIOUR[name][cls][label], len(own))
                for label in range(3)
            )


def test_all_published_configurations_exist_with_30_annotators() -> None:
    settings = {name: one.setting for name, one in PAPER_CONFIGURATION_BY_NAME.items()}
    assert set(settings) == set(EXPECTED)
    assert {sum(one.pool) for one in settings.values()} == {30}
    assert (
        settings["gaps_wide"] == settings["hard_20"] == settings["labels_5"] == SimulationSetting()
    )
    assert settings["adv_00"] == settings["strict_20"] != SimulationSetting()


@all_rows("name", PAPER_CONFIGURATION_BY_NAME)
def test_the_numbers_of_the_paper_are_the_authors_files_as_printed(name: str) -> None:
    for figure, (column, _, half) in COLUMNS.items():
        authors = [float(EXPECTED[name][f"{column}_{method}"]) for method in ("mv", "ds", "pec")]
        assert getattr(PAPER_CONFIGURATION_BY_NAME[name], figure) == pytest.approx(
            authors, abs=half * 1.01
        )


@all_rows(
    "invalid", [{"labels": 31}, {"annotators": 31}, {"annotators": 3}, {"pool": (0, 0, 0, 0)}]
)
def test_an_impossible_setting_is_refused(invalid: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="expected a smaller number"):
        SimulationSetting(**invalid)
