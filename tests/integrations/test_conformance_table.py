"""No failed reward changes its siblings' advantages in any trainer, or by the stated factor alone."""

import re
from pathlib import Path

import numpy as np
import pytest

from jurygraph.aggregation import filling_factor
from tests.integrations.trainer_arithmetic import (
    ADVANTAGE_TOLERANCE,
    TRAINER_SETTINGS,
    TrainerSetting,
    conformance_table_lines,
    measure_failed_reward_effect,
    trl_grpo_advantages,
    trl_normalize_then_sum_advantages,
)

PAGE = Path(__file__).parent.parent.parent / "docs" / "training.md"
NAN = np.nan
RECORDED = np.array([[0.12, 0.5], [0.0, 0.5]] * 2 + [[0.12, 0.5]] + [[NAN, 0.5]] * 3)
"""A judge that failed on three of eight, beside a format reward of .5, as trl 1.16.0 was given it."""


@pytest.mark.parametrize(
    "setting", TRAINER_SETTINGS, ids=lambda setting: f"{setting.trainer} {setting.setting}"
)
def test_siblings_are_unchanged_or_by_the_stated_factor_alone(setting: TrainerSetting) -> None:
    alone = measure_failed_reward_effect(setting, setting.automatic_rule, 1)
    documented_factor = 1.0
    if setting.automatic_rule == "neutral":
        documented_factor = filling_factor(5, 8, normalize=setting.normalize)
    assert alone.factor == pytest.approx(documented_factor, abs=ADVANTAGE_TOLERANCE)
    assert alone.failed_advantages == pytest.approx(0.0, abs=ADVANTAGE_TOLERANCE)
    if setting.automatic_rule == "mask":
        beside = measure_failed_reward_effect(setting, "mask", 2)
        assert beside.factor == pytest.approx(1.0, abs=ADVANTAGE_TOLERANCE)
        assert measure_failed_reward_effect(setting, "none", 2).factor is None, (
            "no mask beside a function"
        )


def test_the_arithmetic_is_what_trl_was_seen_to_do() -> None:
    (advantages,) = trl_grpo_advantages([RECORDED], "group")
    assert advantages.round(2).tolist() == [1.21, -0.72, 1.21, -0.72, 1.21, -0.72, -0.72, -0.72]
    (normalized,) = trl_normalize_then_sum_advantages([RECORDED])
    assert normalized[5:].round(2).tolist() == [0.0, 0.0, 0.0]


def test_the_page_has_the_table_that_the_command_prints() -> None:
    shown = re.search(r"^\| trainer \| version .*?(?=\n\n)", PAGE.read_text("utf-8"), re.M | re.S)
    assert shown is not None
    assert shown[0].splitlines() == list(conformance_table_lines())
