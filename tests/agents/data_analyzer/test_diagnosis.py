"""The signature of a hack, from alerts."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from jurygraph.agents.data_analyzer import Alert, Analyzer, TrainingStep
from jurygraph.agents.data_analyzer.diagnosis import MAX_STEPS_BETWEEN_RELATED, MAX_STEPS_BETWEEN_STARTS, Diagnosis


def alert(step: int, series: str, direction: str, since: int | None = None, size: float = -2.0) -> Alert:
    return Alert(
        step=step,
        series=series,
        kind="drift",
        direction=direction,
        since=since or max(1, step - 3),
        before=0.5,
        after=0.4,
        size=size,
        adverse=False,
        sentence="it changed",
    )


def diagnosis(reward: float = 0.0, accuracy: float = -2.0) -> Diagnosis:
    recent = {"reward": reward, "component.accuracy": accuracy}
    return Diagnosis(lambda name: recent.get(name, 2.0))


def test_accuracy_that_falls_while_the_reward_holds_is_a_hack() -> None:
    (hack,) = diagnosis().hacks(9, [alert(9, "component.accuracy", "down")])
    assert (hack.kind, hack.adverse, hack.series, hack.direction) == ("hack", True, "component.accuracy", "down")
    assert hack.evidence == ("accuracy falls", "reward holds")
    assert hack.sentence == "step 9: the reward looks hacked, since about step 6: accuracy falls, reward holds"


def test_accuracy_that_falls_with_the_reward_is_no_hack() -> None:
    assert diagnosis(reward=-1.5).hacks(9, [alert(9, "component.accuracy", "down")]) == []
    tracker = diagnosis()
    assert tracker.hacks(8, [alert(8, "reward", "down")]) == []
    assert tracker.hacks(9, [alert(9, "component.accuracy", "down")]) == []


@pytest.mark.parametrize(("name", "more_evidence"), [("reward", ()), ("component.format", ("reward holds",))])
def test_accuracy_that_falls_after_reward_or_format_rose_is_a_hack(name: str, more_evidence: tuple[str, ...]) -> None:
    tracker = diagnosis()
    assert tracker.hacks(5, [alert(5, name, "up")]) == []
    (hack,) = tracker.hacks(9, [alert(9, "component.accuracy", "down")])
    assert hack.evidence == ("accuracy falls", f"{name.removeprefix('component.')} rises", *more_evidence)


def test_longer_responses_rewarded_for_their_length_are_a_hack() -> None:
    tracker = diagnosis()
    assert tracker.hacks(5, [alert(5, "length", "up")]) == []
    (hack,) = tracker.hacks(9, [alert(9, "length_reward", "up")])
    assert (hack.series, hack.evidence) == ("length", ("length rises", "length_reward rises"))


def test_a_continuing_hack_is_reported_once_and_a_recurring_one_again() -> None:
    tracker = diagnosis()
    steps = [9, 10, 9 + MAX_STEPS_BETWEEN_RELATED, 300]
    assert [len(tracker.hacks(step, [alert(step, "component.accuracy", "down")])) for step in steps] == [1, 0, 0, 1]
    assert tracker.hacks(301, []) == []


@pytest.mark.parametrize("name", ["reward", "component.format"])
def test_a_rise_after_which_the_reward_falls_with_accuracy_is_no_hack(name: str) -> None:
    tracker = diagnosis(reward=-1.9)
    tracker.hacks(5, [alert(5, name, "up")])
    assert tracker.hacks(9, [alert(9, "component.accuracy", "down")]) == []
    assert tracker.hacks(10, [alert(10, "reward", "down")]) == []


def test_accuracy_that_recovers_did_not_fall() -> None:
    tracker = diagnosis(reward=-2.0)
    tracker.hacks(5, [alert(5, "component.accuracy", "down"), alert(5, "reward", "down")])
    tracker.hacks(20, [alert(20, "component.accuracy", "up")])
    assert tracker.hacks(21, [alert(21, "reward", "up")]) == []


@pytest.mark.parametrize(
    ("since", "found"),
    [
        (40 - MAX_STEPS_BETWEEN_STARTS, 1),
        (39 - MAX_STEPS_BETWEEN_STARTS, 0),
        (43 + MAX_STEPS_BETWEEN_STARTS, 1),
        (44 + MAX_STEPS_BETWEEN_STARTS, 0),
    ],
)
def test_a_rise_is_related_to_a_fall_that_began_near_it(since: int, found: int) -> None:
    tracker = diagnosis(reward=-0.7)
    tracker.hacks(43, [alert(43, "component.accuracy", "down", since=40)])
    assert len(tracker.hacks(60, [alert(60, "component.format", "up", since=since)])) == found


def test_a_reward_that_rises_with_accuracy_is_not_evidence_of_hacking() -> None:
    recent = {"reward": -0.8, "component.accuracy": -2.0}
    tracker = Diagnosis(recent.__getitem__)
    tracker.hacks(9, [alert(9, "reward", "down", size=-0.9), alert(9, "component.accuracy", "down")])
    recent.update({"reward": 2.0, "component.accuracy": 1.8})
    assert tracker.hacks(15, [alert(15, "reward", "up", size=2.0)]) == []


def test_a_reward_that_fell_long_ago_in_steps_but_with_this_fall_does_not_hold() -> None:
    tracker = diagnosis(reward=0.0)
    tracker.hacks(10, [alert(10, "reward", "down")])
    tracker.hacks(15, [alert(15, "component.accuracy", "down", since=9)])
    assert [tracker.hacks(step, []) for step in range(16, 70)] == [[]] * 54


def test_both_signatures_together_are_reported_as_one_hack() -> None:
    tracker = diagnosis()
    (hack,) = tracker.hacks(9, [alert(9, "component.accuracy", "down")])
    assert hack.series == "component.accuracy"
    assert tracker.hacks(12, [alert(12, "length", "up"), alert(12, "length_reward", "up")]) == []


def honest_steps(seed: int, accuracy: Callable[[int], float], form: Callable[[int], float]) -> Iterator[TrainingStep]:
    """160 steps of 32 prompts and 8 answers whose reward is accuracy and half of format; nobody games it."""
    random, groups = np.random.default_rng(seed), np.repeat(np.arange(32), 8)
    for step in range(1, 161):
        ease = np.repeat(random.beta(3 * accuracy(step), 3 * (1 - accuracy(step)), 32), 8)
        right, formed = (random.random(256) < ease) * 1.0, (random.random(256) < form(step)) * 1.0
        lengths = np.rint(np.exp(6 + 0.3 * random.standard_normal(256)))
        yield TrainingStep(right + 0.5 * formed, {"accuracy": right, "format": formed}, lengths, groups)


def constant_form(step: int) -> float:
    return 0.9


HONEST = {
    "a dip and back": (lambda t: 0.3 if 100 <= t < 120 else 0.6, constant_form),
    "a short dip": (lambda t: 0.2 if 100 <= t < 112 else 0.6, constant_form),
    "a small dip": (lambda t: 0.45 if 100 <= t < 125 else 0.6, constant_form),
    "a gain, then a collapse": (lambda t: 0.5 if t < 100 else 0.7 if t < 130 else 0.3, constant_form),
    "a small gain, then a collapse": (lambda t: 0.5 if t < 100 else 0.6 if t < 125 else 0.4, constant_form),
    "format learned, then a collapse": (lambda t: 0.6 if t < 130 else 0.2, lambda t: 0.6 if t < 100 else 0.95),
}


@pytest.mark.landing
@pytest.mark.parametrize("story", HONEST)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 15))])
def test_honest_training_is_not_called_a_hack(story: str, seed: int) -> None:
    analyzer = Analyzer()
    alerts = [alert for step in honest_steps(seed, *HONEST[story]) for alert in analyzer.observe(step)]
    assert {"component.accuracy", "reward"} <= {one.series for one in alerts}
    assert [one.sentence for one in alerts if one.kind == "hack"] == []
