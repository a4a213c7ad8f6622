"""The analyzer as a whole, on streams with known changes."""

import numpy as np
import pytest

from jurygraph.agents.data_analyzer import Analyzer, TrainingStep
from jurygraph.errors import InputError
from tests.agents.data_analyzer.streams import collect_alerts, normal_steps, trained_steps


def level(before: float, *changes: tuple[int, float]):
    """Return a function of the step: the level before, and from each step of a change on."""
    return lambda step: ([value for start, value in changes if step >= start] or [before])[-1]


def series_names(step: TrainingStep) -> list[str]:
    analyzer = Analyzer()
    analyzer.observe(step)
    return [one.name for one in analyzer.series]


def test_missing_series_are_not_watched() -> None:
    assert series_names(TrainingStep([0.1, 0.2])) == ["reward", "spread", "shape", "failed"]
    parts = {"accuracy": [0.0, 1.0], "format": [1.0, 1.0]}
    of_components = ["component.accuracy", "component.format"]
    others = ["failed", "length", "length_reward", "conflict", "saturation"]
    assert series_names(TrainingStep([0.1, 0.2], parts, [5, 6], ["a", "a"])) == [
        "reward",
        "spread",
        "shape",
        *of_components,
        *others,
    ]


def test_a_stream_without_change_raises_no_alert() -> None:
    analyzer = Analyzer()
    assert collect_alerts(analyzer, normal_steps(0, 400)) == []
    assert analyzer.step_count == 400


@pytest.mark.parametrize(
    ("shift", "direction", "adverse"), [(3.0, "up", False), (-3.0, "down", True)]
)
def test_a_shift_is_reported_once_with_place_size_and_direction(
    shift: float, direction: str, adverse: bool
) -> None:
    alerts = collect_alerts(Analyzer(), normal_steps(1, 300, shift, after=100))
    (alert,) = [one for one in alerts if one.series == "reward"]
    assert (alert.direction, alert.adverse) == (direction, adverse)
    assert alert.step <= 106
    assert 98 <= alert.since <= 103
    assert alert.size == pytest.approx(shift, abs=1.0)
    assert alert.after - alert.before == pytest.approx(shift / 8, abs=0.15)
    assert alert.sentence.startswith(f"step {alert.step}: reward ")


@pytest.mark.parametrize(
    ("changes", "directions"),
    [
        ([(100, 0.6), (108, 0.4)], ["down", "down"]),
        ([(100, 1.0), (106, 0.6)], ["up", "down"]),
        ([(100 + step, 0.8 - 0.02 * step) for step in range(20)], ["down", "down"]),
        ([(100, 0.6), (110, 0.8)], ["down", "up"]),
        ([(100, 0.6)], ["down"]),
    ],
    ids=["a second fall", "a rise, then a fall", "a fall that goes on", "a dip", "one fall"],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_change_soon_after_an_alert_is_another_one(
    changes: list[tuple[int, float]], directions: list[str], seed: int
) -> None:
    rng, reward = np.random.default_rng(seed), level(0.8, *changes)
    steps = (TrainingStep(rng.normal(reward(step), 0.3, 64)) for step in range(1, 201))
    alerts = collect_alerts(Analyzer(), steps)
    assert [one.direction for one in alerts if one.series == "reward"] == directions
    assert [one for one in alerts if one.step > 130] == [], "and it is reported once"


def test_a_distribution_that_drifts_at_the_same_mean_is_reported() -> None:
    """A third of the rewards move apart by three sd, and as many together: mean and sd of all stay as they were."""
    rng = np.random.default_rng(11)
    wider = (rng.normal(0.5, 0.1 if step <= 60 else 0.3, 64) for step in range(1, 121))
    alerts = collect_alerts(Analyzer(), map(TrainingStep, wider))
    assert {(one.series, one.direction, one.adverse) for one in alerts} >= {("spread", "up", False)}
    assert {one.series for one in alerts} <= {"spread", "shape"}

    def two_humps(step: int) -> np.ndarray:
        if step <= 60:
            return rng.normal(0.0, 1.0, 64)
        return rng.choice([-0.98, 0.98], 64) + rng.normal(0.0, 0.2, 64)

    alerts = collect_alerts(Analyzer(), (TrainingStep(two_humps(step)) for step in range(1, 121)))
    assert ("shape", "up", True) in {(one.series, one.direction, one.adverse) for one in alerts}
    assert "reward" not in {one.series for one in alerts}


def test_failed_rewards_are_excluded_from_means_and_reported_if_many() -> None:
    rewards = np.random.default_rng(3).random((140, 64))
    rewards[100:, :16] = np.nan
    alerts = collect_alerts(Analyzer(), map(TrainingStep, rewards))
    assert {(one.series, one.direction, one.adverse) for one in alerts} == {("failed", "up", True)}


def test_a_penalty_that_rises_is_bad_and_another_component_is_not() -> None:
    for penalties, adverse in ((["fluff"], True), ([], False)):
        rng = np.random.default_rng(7)
        columns = [rng.beta(4 * level, 4 * (1 - level), 64) for level in [0.3] * 80 + [0.6] * 80]
        steps = (TrainingStep(rng.random(64), {"fluff": column}) for column in columns)
        alerts = collect_alerts(Analyzer(penalties=penalties), steps)
        assert {one.adverse for one in alerts if one.series == "component.fluff"} == {adverse}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            TrainingStep([1.0], {"b": [1.0]}),
            "step 2: the steps before have the series 'component.a'",
        ),
        (
            TrainingStep([1.0], {"a": [1.0]}, [3.0]),
            "step 2: the steps before lack the series 'length'",
        ),
    ],
)
def test_a_step_with_other_series_is_refused(second: TrainingStep, message: str) -> None:
    analyzer = Analyzer()
    analyzer.observe(TrainingStep([1.0], {"a": [1.0]}))
    with pytest.raises(InputError, match=message):
        analyzer.observe(second)


@pytest.mark.parametrize(("scale", "is_share"), [(1.0, True), (5.0, False)])
@pytest.mark.parametrize("first", [1, 2, 30])
def test_a_component_is_a_share_by_its_first_step_with_a_value(
    first: int, scale: float, is_share: bool
) -> None:
    rng, analyzer = np.random.default_rng(5), Analyzer()
    for step in range(first + 60):
        values = rng.beta(2, 8 if step < first + 30 else 2, 64)
        column = np.full(64, np.nan) if step < first else scale * values
        analyzer.observe(TrainingStep(rng.random(64), {"rubric": column}))
    assert [series.is_share for series in analyzer.series if "rubric" in series.name] == [is_share]
    (alert,) = [alert for alert in analyzer.alerts if "rubric" in alert.series]
    assert alert.before == pytest.approx(0.2 * scale, abs=0.03 * scale)
    assert 0.3 * scale < alert.after < 0.6 * scale


HONEST = {
    "a dip and back": (level(0.6, (100, 0.3), (120, 0.6)), level(0.9)),
    "a short dip": (level(0.6, (100, 0.2), (112, 0.6)), level(0.9)),
    "a small dip": (level(0.6, (100, 0.45), (125, 0.6)), level(0.9)),
    "a gain, then a collapse": (level(0.5, (100, 0.7), (130, 0.3)), level(0.9)),
    "a small gain, then a collapse": (level(0.5, (100, 0.6), (125, 0.4)), level(0.9)),
    "format learned, then a collapse": (level(0.6, (130, 0.2)), level(0.6, (100, 0.95))),
}


@pytest.mark.landing
@pytest.mark.parametrize("story", HONEST)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 15))]
)
def test_honest_training_is_not_called_a_hack(story: str, seed: int) -> None:
    alerts = collect_alerts(Analyzer(), trained_steps(seed, *HONEST[story]))
    assert {"component.accuracy", "reward"} <= {one.series for one in alerts}
    assert [one for one in alerts if one.kind == "hack"] == []


@pytest.mark.parametrize("form", [level(0.5, (100, 0.95)), level(0.5, (103, 0.95))])
def test_accuracy_that_falls_while_the_reward_does_not_is_one_hack(form) -> None:
    alerts = collect_alerts(
        Analyzer(), trained_steps(2, level(0.6, (100, 0.3)), form, pays_form=1.0)
    )
    (hack,) = [one for one in alerts if one.kind == "hack"]
    assert (hack.series, hack.direction, hack.adverse) == ("component.accuracy", "down", True)
    assert 100 <= hack.step <= 108
    assert {"accuracy falls", "format rises"} <= set(hack.evidence)
    assert (
        f"the reward looks hacked, since about step {hack.since}: accuracy falls, " in hack.sentence
    )


def test_longer_responses_that_are_rewarded_for_their_length_are_a_hack() -> None:
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(16), 8)

    def steps():
        for step in range(1, 161):
            pays = 0.002 if step > 100 else 0.0
            lengths = np.rint(rng.normal(600 if step > 100 else 400, 80, 128))
            yield TrainingStep(
                rng.random(128) + pays * lengths,
                {"accuracy": rng.random(128) < 0.5},
                lengths,
                groups,
            )

    hacks = [one for one in collect_alerts(Analyzer(), steps()) if one.kind == "hack"]
    assert [(one.series, one.evidence) for one in hacks] == [
        ("length", ("length rises", "length_reward rises"))
    ]
