"""DecompR: weights fixed by difficulty, and the figures of the group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import stakeholders
from jurygraph.errors import PlanError
from tests.rows import all_rows

difficulties = st.lists(st.floats(0.0, 20.0), min_size=1, max_size=8)
utilities = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=8)


class TestTable4:
    """The paper's worked example: γ = .5, τ = 2, α = 1, no conflict."""

    HARD = ([1.0] * 4, [1.0], [1.0] * 2)
    SOFT = ([1.0] * 2, [], [1.0] * 2)
    U = (0.40, 0.95, 0.80)

    def difficulty(self) -> np.ndarray:
        return stakeholders.difficulty(self.HARD, self.SOFT, [0, 0, 0], gamma=0.5)

    def test_difficulties(self) -> None:
        assert self.difficulty().tolist() == [5.0, 1.0, 3.0]

    def test_weights(self) -> None:
        w = stakeholders.weights(self.difficulty(), temperature=2.0)
        assert w.round(2).tolist() == [0.67, 0.09, 0.24]

    def test_the_calibrated_reward_and_the_uniform_one(self) -> None:
        w = stakeholders.weights(self.difficulty(), temperature=2.0)
        assert round(stakeholders.reward(w, self.U), 2) == 0.55
        assert round(stakeholders.reward([1 / 3] * 3, self.U), 2) == 0.72
        assert round(stakeholders.group_utility(self.U), 2) == 0.72


class TestDifficulty:
    def test_soft_constraints_and_conflicts_are_discounted(self) -> None:
        assert stakeholders.difficulty(
            [[2.0, 1.0]], [[4.0]], [8.0], gamma=0.25, beta=0.125
        ).tolist() == [5.0]

    @all_rows(
        ("hard", "soft", "conflict", "discounts", "message"),
        [
            ([[1]], [[1]], [0], {"gamma": 0.0}, "gamma is 0.0"),
            ([[1]], [[1]], [0], {"gamma": 1.0}, "gamma is 1.0"),
            ([[1]], [[1]], [0], {"beta": np.nan}, "beta is nan"),
            ([[-1]], [[1]], [0], {}, r"hard\[0\]\[0\] is -1.0: at least 0"),
            ([[1]], [[1, np.nan]], [0], {}, r"soft\[0\]\[1\] is nan"),
            ([1, 2], [[1], [1]], [0, 0], {}, r"hard\[0\] is not a list of α"),
            ([[1]], [[1]], [-1], {}, r"conflict\[0\] is -1.0"),
            ([[1]], [[1]], 0.0, {}, r"conflict has shape \(\)"),
            ([[1], [1]], [[1]], [0, 0], {}, r"soft has shape \(1,\) where \(2,\)"),
            ([[1]], [[1], [1]], [0, 0], {}, r"hard has shape \(1,\) where \(2,\)"),
            ([[1], 1], [[1], [1]], [0, 0], {}, r"hard\[1\] is not a list of α"),
            ([["1"]], [[1]], [0], {}, r"hard\[0\] holds <U1"),
        ],
    )
    def test_invalid_difficulty_arguments_are_refused(
        self,
        hard: object,
        soft: object,
        conflict: object,
        discounts: dict[str, float],
        message: str,
    ) -> None:
        with pytest.raises(PlanError, match=message):
            stakeholders.difficulty(hard, soft, conflict, **discounts)


class TestWeights:
    @given(difficulties, st.floats(0.1, 100.0))
    def test_weights_sum_to_1_and_grow_with_difficulty(
        self, d: list[float], temperature: float
    ) -> None:
        w = stakeholders.weights(d, temperature)
        assert (w >= 0.0).all()
        assert w.sum() == pytest.approx(1.0, abs=1e-12)
        assert (np.diff(w[np.argsort(d)]) >= 0.0).all()

    @given(difficulties)
    def test_an_infinite_temperature_is_uniform(self, d: list[float]) -> None:
        assert stakeholders.weights(d, np.inf).tolist() == [1 / len(d)] * len(d)

    def test_a_temperature_near_zero_sees_the_hardest_only(self) -> None:
        assert stakeholders.weights([1.0, 3.0, 2.0], 1e-320).tolist() == [0.0, 1.0, 0.0]
        assert stakeholders.weights([3.0, 3.0, 2.0], 1e-3).tolist() == [0.5, 0.5, 0.0]

    @given(difficulties)
    def test_weights_depend_only_on_differences_of_difficulty(self, d: list[float]) -> None:
        shifted = [difficulty + 1024.0 for difficulty in d]
        np.testing.assert_allclose(
            stakeholders.weights(shifted), stakeholders.weights(d), atol=1e-12
        )

    @pytest.mark.parametrize(
        ("d", "temperature", "message"),
        [
            ([], 5.0, r"d has shape \(0,\)"),
            ([[1.0]], 5.0, r"d has shape \(1, 1\)"),
            ([1.0, np.nan], 5.0, r"d\[1\] is nan"),
            ([1.0], 0.0, "temperature is 0.0"),
            ([1.0], -1.0, "temperature is -1.0"),
            ([1.0], np.nan, "temperature is nan"),
        ],
    )
    def test_refusals(self, d: object, temperature: float, message: str) -> None:
        with pytest.raises(PlanError, match=message):
            stakeholders.weights(d, temperature)


class TestReward:
    @pytest.mark.parametrize(
        ("w", "u", "message"),
        [
            ([0.5, 0.6], [1, 1], "w sums to 1.1"),
            ([0.5, 0.5 + 2e-9], [1, 1], "w sums to 1.000000002"),
            ([1.5, -0.5], [1, 1], r"w\[1\] is -0.5"),
            ([], [], "w sums to 0.0"),
            ([[1.0]], [1], r"w has shape \(1, 1\)"),
            ([1.0], [np.nan], r"u\[0\] is nan"),
            ([0.5, 0.5], [[1], [1]], r"u has shape \(2, 1\) where \[2\] or \[R, 2\]"),
        ],
    )
    def test_refusals(self, w: object, u: object, message: str) -> None:
        with pytest.raises(PlanError, match=message):
            stakeholders.reward(w, u)


class TestGroupFigures:
    U = ([4.0, 4.0, 4.0], [0.0, 0.0, 6.0], [1.0, 2.0, 3.0])

    def test_mean_and_minimum(self) -> None:
        assert stakeholders.group_utility(self.U).tolist() == [4.0, 2.0, 2.0]
        assert stakeholders.minimum(self.U).tolist() == [4.0, 0.0, 1.0]

    def test_the_minimum_of_two_zeros_has_no_sign(self) -> None:
        assert not np.signbit(stakeholders.minimum([[0.0, -0.0], [-0.0, 0.0]])).any()

    def test_gini_is_zero_among_equals_and_one_less_a_share_where_one_has_all(self) -> None:
        assert stakeholders.gini(self.U).tolist() == pytest.approx([0.0, 2 / 3, 2 / 9])

    def test_jain_is_one_among_equals_and_a_share_where_one_has_all(self) -> None:
        assert stakeholders.jain(self.U).tolist() == pytest.approx([1.0, 1 / 3, 6 / 7])

    @given(utilities)
    def test_bounds(self, u: list[float]) -> None:
        assert 0.0 <= stakeholders.gini(u) < 1.0
        assert 1 / len(u) - 1e-12 <= stakeholders.jain(u) <= 1.0 + 1e-12
        assert stakeholders.minimum(u) <= stakeholders.group_utility(u) + 1e-12

    @pytest.mark.parametrize("figure", [stakeholders.gini, stakeholders.jain])
    def test_negative_utilities_are_refused_for_shares(self, figure: object) -> None:
        with pytest.raises(PlanError, match=r"u\[0\] is -1.0"):
            figure([-1.0, 2.0])


class TestFiguresOfGroupTravelBench:
    """The two figures of Table 6 that the benchmark defines; the expected numbers are worked out by hand."""

    @all_rows(
        ("points", "fairness"),
        [
            ([3, 4, 6], 50.0),  # 100 · 3 / 6
            ([0, 5], 0.0),
            ([-1, 4], 0.0),  # one member got what it rejects
            ([-8, -2], 25.0),  # everybody lost: 100 · 2 / 8
            ([-3, 0], 0.0),
            ([0, 0, 0], 100.0),  # all alike, also at a maximum of 0
            ([-2, -2], 100.0),
            ([7], 100.0),
        ],
    )
    def test_group_fairness_is_the_least_share_of_the_most_in_percent(
        self, points: list[int], fairness: float
    ) -> None:
        found = stakeholders.group_fairness(points)
        assert found == fairness
        assert not np.signbit(found)

    def test_preference_completeness_counts_all_members_preferences_together(self) -> None:
        # 6 of 10 and 1 of 2 are 7 of 12 in all, not the mean of 60 and 50
        assert stakeholders.preference_completeness([6, 1], [10, 2]) == pytest.approx(100 * 7 / 12)
        assert stakeholders.preference_completeness(
            [[0, 0], [10, 2]], [[10, 2], [10, 2]]
        ).tolist() == [0.0, 100.0]

    def test_where_nobody_states_a_preference_there_is_no_completeness(self) -> None:
        assert np.isnan(stakeholders.preference_completeness([0, 0], [0, 0]))

    @pytest.mark.parametrize(
        ("collected", "stated", "message"),
        [
            ([2], [1], "collected has a count above that of stated"),
            ([-1], [1], r"collected\[0\] is -1.0"),
            ([1], [1, 2], r"collected has shape \(1,\) where \(2,\) is needed"),
            ([], [], r"stated has shape \(0,\)"),
        ],
    )
    def test_refusals(self, collected: list[int], stated: list[int], message: str) -> None:
        with pytest.raises(PlanError, match=message):
            stakeholders.preference_completeness(collected, stated)


class TestSacrifice:
    def test_table_4_with_inferred_solo_utilities(self) -> None:
        lost = stakeholders.sacrifice([0.80, 0.98, 0.90], [0.40, 0.95, 0.80])
        assert [round(float(one), 2) for one in lost] == [0.50, 0.03, 0.11]

    @pytest.mark.parametrize(
        ("solo", "joint", "wrong"),
        [
            ([0.0], [0.0], "solo has a utility that is not above 0"),
            ([1.0], [1.0, 1.0], r"joint has shape \(2,\) where \(1,\) is needed"),
            ([np.nan], [1.0], r"solo\[0\] is nan"),
            ([1.0], [np.inf], r"joint\[0\] is inf"),
        ],
    )
    def test_a_solo_utility_of_0_is_refused(
        self, solo: list[float], joint: list[float], wrong: str
    ) -> None:
        with pytest.raises(PlanError, match=f"^{wrong}"):
            stakeholders.sacrifice(solo, joint)
