"""The signature of a hack, from alerts."""

import pytest

from jurygraph.agents.data_analyzer import Alert
from jurygraph.agents.data_analyzer.diagnosis import TOGETHER, Diagnosis


def alert(step: int, series: str, direction: str) -> Alert:
    return Alert(
        step=step,
        series=series,
        kind="drift",
        direction=direction,
        since=max(1, step - 3),
        before=0.5,
        after=0.4,
        size=-2.0,
        adverse=False,
        sentence="it changed",
    )


def diagnosis(reward: float = 0.0, accuracy: float = -2.0) -> Diagnosis:
    recent = {"reward": reward, "component.accuracy": accuracy}
    return Diagnosis(lambda name: recent[name])


def test_accuracy_that_falls_while_the_reward_holds_is_a_hack() -> None:
    (hack,) = diagnosis().hacks(9, [alert(9, "component.accuracy", "down")])
    assert (hack.kind, hack.adverse, hack.series, hack.direction) == ("hack", True, "component.accuracy", "down")
    assert hack.evidence == ("accuracy falls", "reward holds")
    assert hack.sentence == "step 9: the reward looks hacked, since about step 6: accuracy falls, reward holds"


def test_accuracy_that_falls_with_the_reward_is_none() -> None:
    assert diagnosis(reward=-1.5).hacks(9, [alert(9, "component.accuracy", "down")]) == []
    told = diagnosis()
    assert told.hacks(8, [alert(8, "reward", "down")]) == []
    assert told.hacks(9, [alert(9, "component.accuracy", "down")]) == []


@pytest.mark.parametrize("name", ["reward", "component.format"])
def test_accuracy_that_falls_after_reward_or_format_rose_is_a_hack(name: str) -> None:
    told = diagnosis(reward=-1.9)
    assert told.hacks(5, [alert(5, name, "up")]) == []
    (hack,) = told.hacks(9, [alert(9, "component.accuracy", "down")])
    assert hack.evidence == ("accuracy falls", f"{name.removeprefix('component.')} rises")


def test_longer_responses_that_are_paid_for_their_length_are_a_hack() -> None:
    told = diagnosis()
    assert told.hacks(5, [alert(5, "length", "up")]) == []
    (hack,) = told.hacks(9, [alert(9, "length_reward", "up")])
    assert (hack.series, hack.evidence) == ("length", ("length rises", "length_reward rises"))


def test_changes_long_apart_are_of_no_one_story() -> None:
    told = diagnosis()
    told.hacks(5, [alert(5, "length", "up")])
    assert told.hacks(6 + TOGETHER, [alert(6 + TOGETHER, "length_reward", "up")]) == []


def test_a_hack_that_goes_on_is_told_once_and_one_that_comes_back_again() -> None:
    told = diagnosis()
    steps = [9, 10, 9 + TOGETHER, 300]
    assert [len(told.hacks(step, [alert(step, "component.accuracy", "down")])) for step in steps] == [1, 0, 0, 1]
    assert told.hacks(301, []) == []


def test_improvement_is_no_hack() -> None:
    better = [alert(9, "reward", "up"), alert(9, "component.accuracy", "up"), alert(9, "component.format", "up")]
    assert diagnosis(reward=2.0, accuracy=2.0).hacks(9, better) == []
