"""Proof of what a failed reward does in each trainer: its siblings' advantages do not change, or by a stated factor.

The arithmetic of each trainer is written again in NumPy, after the source that is named, and fed with what its adapter
returns. `python -m tests.integrations.trainer_arithmetic` prints the table of docs/training.md. A row is `run` where
the tests marked `heavy` compare the trainer itself, and `read` where its source was read, or a part of it was run.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import advantages
from jurygraph.aggregation.group_advantages import AdvantageNormalization
from jurygraph.arrays import Bools, Floats
from jurygraph.integrations.failed_rewards import FailedRewardRule, fill_failed

RewardGroups = Sequence[Floats]
"""A batch: for each group its rewards [members, functions], NaN where a function gave none."""
Advantages = list[Floats]

ADVANTAGE_TOLERANCE = 1e-3
"""Of advantages, relative to 1: ten times what trainers add to a standard deviation, 1e-4, which the factor leaves out.
"""


def _nan_std(values: Floats) -> float:
    count = int((~np.isnan(values)).sum())
    return float(np.nanstd(values, ddof=1)) if count > 1 else 0.0


def _sum_reward_functions(group: Floats, has_trainer_nan_masking: bool) -> Floats:
    """Return the sum of the functions, in which NaN counts as 0; a row without any is NaN, if the trainer masks it."""
    sums: Floats = np.nansum(group, axis=1)
    if has_trainer_nan_masking:
        sums[np.isnan(group).all(axis=1)] = np.nan
    return sums


def trl_grpo_advantages(
    groups: RewardGroups, scale: str, has_trainer_nan_masking: bool = True
) -> Advantages:
    """Return TRL's advantages with `sum_then_normalize` (trl 1.16.0, grpo_trainer.py:2761; the mask since 1.6)."""
    sums = [_sum_reward_functions(group, has_trainer_nan_masking) for group in groups]
    batch_std = _nan_std(np.concatenate(sums))
    result = []
    for rewards in sums:
        deviations = rewards - np.nanmean(rewards)
        std = batch_std if scale == "batch" else _nan_std(rewards)
        result.append(np.nan_to_num(deviations if scale == "none" else deviations / (std + 1e-4)))
    return result


def trl_normalize_then_sum_advantages(groups: RewardGroups) -> Advantages:
    """Return TRL's advantages with `normalize_then_sum` (trl 1.16.0, grpo_trainer.py:2790)."""
    sums = []
    for group in groups:
        std_by_function = np.apply_along_axis(_nan_std, 0, group)
        scaled_rewards = (group - np.nanmean(group, axis=0)) / (std_by_function + 1e-4)
        sums.append(_sum_reward_functions(scaled_rewards, has_trainer_nan_masking=True))
    batch = np.concatenate(sums)
    mean, std = np.nanmean(batch), _nan_std(batch)
    return [np.nan_to_num((rewards - mean) / (std + 1e-4)) for rewards in sums]


def trl_rloo_advantages(groups: RewardGroups) -> Advantages:
    """Return RLOO's advantages without normalisation (trl 1.16.0, rloo_trainer.py:1682)."""
    result = []
    for group in groups:
        rewards = _sum_reward_functions(group, has_trainer_nan_masking=True)
        count = (~np.isnan(rewards)).sum()
        baselines = (np.nansum(rewards) - rewards) / (count - 1)
        result.append(np.nan_to_num(rewards - baselines))
    return result


def unmasked_advantages(
    groups: RewardGroups, normalize: AdvantageNormalization = "std", epsilon: float = 0.0
) -> Advantages:
    """Return the advantages of trainers without a mask, which are those of `aggregation.advantages`.

    With `std`, `none` and `leave-one-out`: verl 0.9.1, core_algos.py:268 (with 1e-6), 328 and 588; openrlhf 0.11.2,
    experience_maker.py:274 (with 1e-9), 272 and 269.
    """
    return [advantages(group[:, 0], normalize=normalize, epsilon=epsilon) for group in groups]


@dataclass(frozen=True, kw_only=True)
class TrainerSetting:
    """A setting of a trainer: its arithmetic, and the rule that `auto` is for its adapter.

    `normalize` is that of `filling_factor`. Where `accepts_missing_rewards` is false, the trainer stops at a missing
    reward, or it spreads to the group.
    """

    trainer: str
    version: str
    setting: str
    compute: Callable[[RewardGroups], Advantages]
    automatic_rule: FailedRewardRule
    normalize: AdvantageNormalization = "std"
    accepts_missing_rewards: bool = True
    verification_method: str = "read"


_make_trl_setting = partial(
    TrainerSetting,
    trainer="TRL",
    version="1.16",
    automatic_rule="mask",
    verification_method="run",
)

_VERIFICATION_METHOD_BY_TRAINER = {"verl": "read (advantages run)", "OpenRLHF": "read (client run)"}


def _make_unmasked_setting(
    trainer: str,
    version: str,
    setting: str,
    normalize: AdvantageNormalization,
    epsilon: float = 0.0,
) -> TrainerSetting:
    return TrainerSetting(
        trainer=trainer,
        version=version,
        setting=setting,
        compute=partial(unmasked_advantages, normalize=normalize, epsilon=epsilon),
        automatic_rule="neutral",
        normalize=normalize,
        accepts_missing_rewards=False,
        verification_method=_VERIFICATION_METHOD_BY_TRAINER[trainer],
    )


TRAINER_SETTINGS: tuple[TrainerSetting, ...] = (
    _make_trl_setting(
        setting="GRPO, `scale_rewards: group`", compute=partial(trl_grpo_advantages, scale="group")
    ),
    _make_trl_setting(
        setting="GRPO, `scale_rewards: batch`", compute=partial(trl_grpo_advantages, scale="batch")
    ),
    _make_trl_setting(
        setting="GRPO, `scale_rewards: none`", compute=partial(trl_grpo_advantages, scale="none")
    ),
    _make_trl_setting(
        setting="GRPO, `normalize_then_sum`", compute=trl_normalize_then_sum_advantages
    ),
    _make_trl_setting(setting="RLOO", compute=trl_rloo_advantages),
    TrainerSetting(
        trainer="TRL",
        version="< 1.6; SDPO; replay buffer",
        setting="GRPO, `scale_rewards: group`",
        compute=partial(trl_grpo_advantages, scale="group", has_trainer_nan_masking=False),
        automatic_rule="neutral",
    ),
    _make_unmasked_setting("verl", "0.9.1", "GRPO", "std", 1e-6),
    _make_unmasked_setting("verl", "0.9.1", "Dr. GRPO", "none"),
    _make_unmasked_setting("verl", "0.9.1", "RLOO", "leave-one-out"),
    _make_unmasked_setting("OpenRLHF", "0.11.2", "`group_norm`", "std", 1e-9),
    _make_unmasked_setting("OpenRLHF", "0.11.2", "`dr_grpo`", "none"),
    _make_unmasked_setting("OpenRLHF", "0.11.2", "`rloo`", "leave-one-out"),
)

EXAMPLE_JUDGE_REWARDS: tuple[tuple[float | None, ...], ...] = (
    (0.2, 0.9, None, 0.4, None, 1.0, 0.7, None),
    (0.1, 0.5, 0.3, 0.8, 0.6, 0.0, 0.9, 0.2),
)
"""The judge's rewards in the example of the table: five of eight in one group, all of the other."""
EXAMPLE_SECOND_FUNCTION_REWARDS = (0.5, 0.0, 0.5, 1.0, 0.5, 0.5, 0.0, 1.0)
"""The rewards of a second function, for each group."""


class FailedRewardEffect(NamedTuple):
    """The advantages of the judged members of a group with failed ones, against those without.

    `factor` is by how much they differ, None if there is none for all. `failed_advantages` are the failed ones' own.
    """

    factor: float | None
    failed_advantages: Floats


def measure_failed_reward_effect(
    setting: TrainerSetting, rule: FailedRewardRule, functions: int
) -> FailedRewardEffect:
    """Return what failed rewards of the example do by a rule; with two functions the second is
    `EXAMPLE_SECOND_FUNCTION_REWARDS`.

    By `mask`, the second function returns None where the judge failed, as those of `trl.reward_functions` do; by
    `none` it does not.
    """
    judged_groups: list[Floats] = []
    filled_groups: list[Floats] = []
    for rewards in EXAMPLE_JUDGE_REWARDS:
        is_judged = _find_judged(rewards)
        filled_rewards = np.array(fill_failed(rewards, rule).values, dtype=np.float64)
        form = np.array(EXAMPLE_SECOND_FUNCTION_REWARDS)
        if rule == "mask":
            form[~is_judged] = np.nan
        batch = np.stack([filled_rewards, form][:functions], axis=1)
        judged_groups.append(batch[is_judged])
        filled_groups.append(batch)
    with np.errstate(invalid="ignore"):
        expected, expected_of_other_group = setting.compute(judged_groups)
        with_failed, actual_of_other_group = setting.compute(filled_groups)
    is_judged = _find_judged(EXAMPLE_JUDGE_REWARDS[0])
    actual = with_failed[is_judged]
    factor = float(actual @ expected / (expected @ expected))
    is_single_factor = np.allclose(
        [*actual, *actual_of_other_group],
        [*(factor * expected), *expected_of_other_group],
        rtol=0,
        atol=ADVANTAGE_TOLERANCE,
    )
    return FailedRewardEffect(factor if is_single_factor else None, with_failed[~is_judged])


def _find_judged(rewards: Sequence[float | None]) -> Bools:
    return np.array([reward is not None for reward in rewards])


def _describe(effect: FailedRewardEffect) -> str:
    if effect.factor is None:
        low, high = float(min(effect.failed_advantages)), float(max(effect.failed_advantages))
        return f"siblings change; failed rows: {low:.2f} to {high:.2f}"
    if abs(effect.factor - 1) <= ADVANTAGE_TOLERANCE:
        return "siblings unchanged"
    return f"siblings × {effect.factor:.3f}"


_OTHER_TRAINER_ROWS = (
    "| verifiers | 0.4.0 | a judge | – | siblings' results are lost; `trace.reward` reads 0 or a partial sum "
    "| error of the trace: `trace.ok` is false | run |",
    "| ms-swift | 4.6 | all | 1 | counts as 0 | neutral | read |",
    "| slime | 624b824 | `custom-rm-path` | 1 | raises | neutral | read |",
    "| SkyRL | gym 0.4 | `BaseTextEnv.step` | 1 | no such value; its example returns 0 "
    "| error; server: neutral | read |",
)
_TABLE_HEAD = "| trainer | version | setting | functions | None, as it is | `auto` | checked |"


def conformance_table_lines() -> Iterator[str]:
    """Yield the table of what a missing reward does, in Markdown."""
    yield _TABLE_HEAD
    yield "|---|---|---|---|---|---|---|"
    for setting in TRAINER_SETTINGS:
        for functions in (1, 2) if setting.trainer == "TRL" else (1,):
            none_effect = "stops the run, or NaN spreads"
            rule = "error; server: neutral"
            if setting.accepts_missing_rewards:
                none_effect = _describe(measure_failed_reward_effect(setting, "none", functions))
                rule = f"{setting.automatic_rule}"
            auto_effect = _describe(
                measure_failed_reward_effect(setting, setting.automatic_rule, functions)
            )
            yield (
                f"| {setting.trainer} | {setting.version} | {setting.setting} | {functions} | {none_effect} "
                f"| {rule}: {auto_effect} | {setting.verification_method} |"
            )
    yield from _OTHER_TRAINER_ROWS


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in conformance_table_lines())
