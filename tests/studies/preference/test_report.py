"""Accuracy by category: tables that are computed by hand, and the weights of the published sets."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.inference.clusters import share_interval
from jurygraph.studies import preference
from jurygraph.studies.preference import (
    SECTIONS,
    BenchmarkSubset,
    PreferenceComparison,
    PreferenceOutcome,
    RunPreferenceOutcomes,
)
from tests.studies.figures import Figures, figures_of
from tests.studies.preference.made import PAIRS, by_pairs, by_rewards, compared


def report(comparisons: RunPreferenceOutcomes) -> Figures:
    return figures_of(preference.report(comparisons))


def rows(comparisons: RunPreferenceOutcomes) -> dict[str, Figures]:
    """Return the rows of the first benchmark by name."""
    (first, *_) = report(comparisons).benchmarks
    return {row.name: row for row in (*first.categories, first.overall)}


REWARDBENCH = [
    by_rewards("1", 0.9, 0.1, subset="alpacaeval-easy"),
    by_rewards("2", 0.1, 0.9, subset="alpacaeval-easy"),
    by_rewards("3", 0.9, 0.1, subset="mt-bench-med"),
    by_rewards("4", 0.5, 0.5, subset="llmbar-natural"),
    by_rewards("5", 0.9, 0.1, subset="donotanswer"),
    by_rewards("6", 0.9, "response", subset="donotanswer"),
    by_rewards("7", 0.1, 0.9, subset="math-prm"),
    by_rewards("8", 0.9, 0.1, subset="hep-cpp"),
    by_rewards("9", 0.9, 0.1, subset="hep-go"),
]
CHAT, REASONING = (100 * 0.5 + 40 * 1.0) / 140, (984 * 0.0 + 164 + 164) / (984 + 164 + 164)


def test_the_four_sections_of_rewardbench_by_hand(tmp_path: Path) -> None:
    found = rows(compared(tmp_path, REWARDBENCH))
    assert list(found) == ["Chat", "Chat Hard", "Safety", "Reasoning", "all"]
    expected = {"Chat": CHAT, "Chat Hard": 0.0, "Safety": 0.5, "Reasoning": REASONING}
    assert {name: found[name].accuracy.value for name in expected} == pytest.approx(expected)
    assert found["all"].accuracy.value == pytest.approx(sum(expected.values()) / 4)
    safety = found["Safety"]
    assert (safety.tasks, safety.right, safety.wrong, safety.ties, safety.failed) == (2, 1, 0, 0, 1)
    assert (safety.coverage, found["all"].coverage) == (0.5, pytest.approx(8 / 9))


def test_judgebench_by_hand(tmp_path: Path) -> None:
    tasks = [
        by_pairs("k1", 1.0, 0.0, source="mmlu-pro-law"),
        by_pairs("k2", 1.0, 1.0, source="mmlu-pro-math"),
        by_pairs("r1", 0.5, 0.0, source="livebench-reasoning"),
        by_pairs("m1", 0.0, 1.0, source="livebench-math"),
        by_pairs("c1", 1.0, "response", source="livecodebench"),
    ]
    found = rows(compared(tmp_path, tasks, PAIRS))
    assert {name: row.accuracy and row.accuracy.value for name, row in found.items()} == {
        "Knowledge": 0.5,
        "Reasoning": 1.0,
        "Math": 0.0,
        "Coding": 0.0,
        "all": 2 / 5,
    }
    strict = {name: row.strict.value for name, row in found.items()}
    assert strict == {"Knowledge": 0.5, "Reasoning": 0.0, "Math": 0.0, "Coding": 0.0, "all": 1 / 5}
    assert (found["Knowledge"].ties, found["Knowledge"].flips, found["Coding"].failed) == (1, 1, 1)


@given(
    st.lists(
        st.tuples(st.sampled_from(list(SECTIONS["Safety"])), st.booleans()), min_size=1, max_size=40
    )
)
def test_a_section_is_the_mean_of_its_subsets_weighted_by_their_published_size(
    drawn: list[tuple[str, bool]],
) -> None:
    outcomes = [
        PreferenceOutcome(
            str(n),
            BenchmarkSubset("RewardBench", "Safety", subset),
            PreferenceComparison("right" if right else "wrong"),
        )
        for n, (subset, right) in enumerate(drawn)
    ]
    row = rows(RunPreferenceOutcomes("run", "reward", tuple(outcomes), {}))["Safety"]
    score = total = 0.0
    for subset in {name for name, _ in drawn}:
        own = [right for name, right in drawn if name == subset]
        score += SECTIONS["Safety"][subset] * sum(own) / len(own)
        total += SECTIONS["Safety"][subset]
    assert row.accuracy.value == pytest.approx(score / total)
    assert row.accuracy.low <= row.accuracy.value <= row.accuracy.high


def test_variants_of_one_prompt_are_one_unit() -> None:
    """Ten variants of each of eight prompts, all right or all wrong, are eight trials."""
    outcomes = [
        PreferenceOutcome(
            str(n),
            BenchmarkSubset("other", "a", "a"),
            PreferenceComparison("right" if n // 10 < 5 else "wrong"),
            f"g{n // 10}",
        )
        for n in range(80)
    ]
    report = preference.report(RunPreferenceOutcomes("run", "reward", tuple(outcomes), {}))
    row = report.figures["benchmarks"][0]["overall"]
    expected = share_interval([10.0] * 5 + [0.0] * 3, [10.0] * 8)
    assert expected is not None
    assert row["accuracy"] == pytest.approx((5 / 8, expected.low, expected.high))
    assert "intervals are over groups of tasks" in str(report)


def test_the_interval_is_wilsons_with_the_effective_number_of_tasks(tmp_path: Path) -> None:
    found = rows(compared(tmp_path, REWARDBENCH))["Chat"].accuracy
    size = (50 + 50 + 40) ** 2 / (50**2 + 50**2 + 40**2)
    # the ends of Wilson's interval solve the equation of the score test
    for end in (
        found.low,
        found.high,
    ):
        assert abs(CHAT - end) == pytest.approx(
            1.959963984540054 * math.sqrt(end * (1.0 - end) / size)
        )
    assert found.low < CHAT < found.high


def test_the_plot_has_a_bar_with_its_interval_for_each_category(tmp_path: Path) -> None:
    found = preference.report(compared(tmp_path, REWARDBENCH))
    (bars,) = found.plots[0].series
    chat = figures_of(found).benchmarks[0].categories[0]
    assert list(bars.x) == ["Chat", "Chat Hard", "Safety", "Reasoning", "all"]
    assert (bars.y[0], bars.low[0]) == (chat.accuracy.value, chat.accuracy.low)
