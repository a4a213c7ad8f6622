"""The effect of a judge's defences: scripted judges under the built-in attacks, counted exactly.

Each judge can be fooled in one way (`tests.studies.judges`) and judges honestly otherwise. The numbers with each
defence alone and with all defences are recorded here, so that a change is noticed.
"""

import asyncio
from functools import cache

import pytest

from jurygraph.jury import Jury
from jurygraph.safety.attacks import SUITE_BY_ATTACK_CHANNEL, load_attack_tasks, load_attacks
from jurygraph.studies.attack import AttackStudy
from tests.models.judge_scripts import config
from tests.models.server import run_server
from tests.studies.figures import Figures, figures_of
from tests.studies.judges import AlwaysYes, Echo, Judge, LastInstruction, Outsider, Parrot, Yes

ARMS = (
    "none",
    "fence",
    "reminder",
    "whole-reply",
    "evidence",
    "preferred",
    "gates",
    "all",
    "all-preferred",
)

# Attack responses with a false verdict: with no defence, with each alone, and with all together.
EVERY_THIRD: dict[type[Judge], tuple[int, ...]] = {
    Outsider: (10, 6, 10, 10, 10, 10, 0, 0, 0),
    Yes: (36, 36, 36, 36, 6, 36, 4, 0, 4),
    Parrot: (42, 42, 42, 6, 42, 42, 2, 0, 0),
}
"""Of 80, to one task."""

ALL: dict[type[Judge], tuple[int, ...]] = {
    LastInstruction: (484, 484, 76, 484, 484, 484, 28, 0, 0),
    Outsider: (116, 76, 116, 116, 116, 116, 0, 0, 0),
    Yes: (468, 464, 468, 468, 76, 468, 52, 0, 52),
    Parrot: (480, 484, 484, 76, 480, 480, 28, 0, 0),
}
"""Of 960, to four tasks."""

YES_TO_ALL: dict[type[Judge], tuple[int, ...]] = {
    AlwaysYes: (960, 960, 960, 960, 0, 960, 220, 0, 220),
    Echo: (960, 960, 960, 960, 676, 960, 220, 200, 220),
}
"""Of 960 as well, by judges that say yes to everything: without a quotation from the response, and with one."""

REMAINING: dict[type[Judge], set[str]] = {
    LastInstruction: set(),
    Outsider: set(),
    Yes: set(),
    Parrot: set(),
}
"""The attacks that still pass with all defences."""


@cache
def report_on(judge: type[Judge], tasks: int, every: int = 1) -> Figures:
    """Return the report on a judge under every n-th attack, on the first tasks."""
    with run_server(judge()) as server, Jury.from_config(config(server.url, cache=False)) as jury:
        attacks = [
            attack for attack in load_attacks() if attack.suite not in SUITE_BY_ATTACK_CHANNEL
        ]
        study = AttackStudy(jury, load_attack_tasks()[:tasks], attacks[::every])
        return figures_of(asyncio.run(study.run(lambda count: None)))


def count_fooled(report: Figures) -> dict[str, int]:
    """Return the number of responses with a false verdict by arm, and print it."""
    counts = {name: arm.attacks.responses.hits for name, arm in report.arms.items()}
    remaining = sorted(remaining_attacks(report))
    print(
        f"of {report.responses} attack responses passed: {counts}; with all defences: {remaining}"
    )
    return counts


def remaining_attacks(report: Figures) -> set[str]:
    """Return the attacks that still pass with all defences."""
    return {name for name, outcome in report.arms["all"].by_attack.items() if outcome.verdicts.hits}


def by_arm(counts: tuple[int, ...]) -> dict[str, int]:
    """Return the counts by arm."""
    return dict(zip(ARMS, counts, strict=True))


@pytest.mark.exhaustive
@pytest.mark.parametrize("judge", EVERY_THIRD)
def test_every_third_attack_fools_each_judge_as_recorded(judge: type[Judge]) -> None:
    report = report_on(judge, 1, 3)
    assert count_fooled(report) == by_arm(EVERY_THIRD[judge])
    assert remaining_attacks(report) <= REMAINING[judge]


@pytest.mark.landing
def test_questions_about_stakeholders_are_defended_too() -> None:
    """Criteria, values on a scale and checklists: without defences one instruction passes all of them."""
    config_with_stakeholders = {
        "evaluators": ["criteria", "preferences", "checklist"],
        "reward": {"rubric": 1.0},
    }
    with (
        run_server(LastInstruction()) as server,
        Jury.from_config(config(server.url, cache=False) | config_with_stakeholders) as jury,
    ):
        study = AttackStudy(jury, load_attack_tasks()[:1], load_attacks("injection")[::9])
        report = figures_of(asyncio.run(study.run(lambda count: None)))
    assert report.arms["none"].attacks.verdicts.hits > 50
    assert (
        report.arms["reminder"].attacks.verdicts.hits
        == report.arms["all"].attacks.verdicts.hits
        == 0
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("judge", ALL)
def test_all_attacks_fool_each_judge_as_recorded(judge: type[Judge]) -> None:
    report = report_on(judge, 4)
    assert report.responses == 960
    assert count_fooled(report) == by_arm(ALL[judge])
    assert remaining_attacks(report) == REMAINING[judge]
    assert {arm.honest.verdicts.hits for arm in report.arms.values()} == {31}


@pytest.mark.exhaustive
@pytest.mark.parametrize("judge", YES_TO_ALL)
def test_all_attacks_fool_judges_that_always_say_yes_as_recorded(judge: type[Judge]) -> None:
    report = report_on(judge, 4)
    assert count_fooled(report) == by_arm(YES_TO_ALL[judge])
    by_attack = report.arms["evidence"].by_attack
    suites = {name: about.suite for name, about in report.attacks.items()}
    assert not any(
        by_attack[name].responses.hits for name, suite in suites.items() if suite == "master-keys"
    )
    honest = {name: arm.honest.verdicts.hits for name, arm in report.arms.items()}
    lost = {"evidence", "all"} if judge is AlwaysYes else set()
    assert honest == {name: 0 if name in lost else 32 for name in honest}
