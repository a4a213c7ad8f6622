"""The value that a trainer gets in the place of a reward that failed: never 0 by accident.

A trainer that has a mask leaves the row out. For one that has none, the mean of the group's judged rewards is the value
that punishes nobody: the filled row has advantage 0, and the others keep order and sign. Their scale changes by a
factor that is recorded (`aggregation.filling_factor`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, isfinite
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from jurygraph.aggregation import filling_factor
from jurygraph.aggregation.group_advantages import AdvantageNormalization
from jurygraph.decision.decide import explain_notes
from jurygraph.errors import InputError, NoRewardError
from jurygraph.messages import shell_quote, shorten
from jurygraph.schema import Task, Trace
from jurygraph.schema.task import query_to_text

FailedRewardRuleName = Literal["none", "mask", "neutral", "raise"]
FailedRewardRule = FailedRewardRuleName | float
"""`none` and `mask` leave the row without a reward, `neutral` takes the group's mean, a number is taken as it is."""
_FAILED_REWARD_RULE_NAMES: tuple[FailedRewardRuleName, ...] = get_args(FailedRewardRuleName)
OutageUnit = Literal["groups", "samples"]
MAX_WITHOUT_REWARD: Mapping[OutageUnit, int] = {"groups": 3, "samples": 24}
"""Groups in a row without a single reward, or samples that come alone, after which a training is stopped.

A prompt that the judge cannot take fails all samples of its group, and is no outage.
"""


def read_failed_reward_rule(
    value: str | float, automatic_rule: FailedRewardRule
) -> FailedRewardRule:
    """Return the rule of a setting; `auto` is what the trainer makes best of. Raises `InputError`."""
    if value == "auto":
        return automatic_rule
    for rule in _FAILED_REWARD_RULE_NAMES:
        if value == rule:
            return rule
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number) or isinstance(value, bool):
        rule_names_text = ", ".join(("auto", *_FAILED_REWARD_RULE_NAMES))
        raise InputError(
            f"failed: is {value!r}; write {rule_names_text}, or the number that a failed reward becomes"
        )
    return number


class FilledRewards(NamedTuple):
    """The rewards of a group as its trainer gets them.

    `filled` is the number of failed ones that got a value, and `factor` that by which the advantages of the others
    change: 1 where nothing was filled in, None where it depends on their values, as for a constant.
    """

    values: list[float | None]
    filled: int
    factor: float | None


def first_failure(traces: Iterable[Trace]) -> str | None:
    """Return why the judge failed first of all, else why it abstained or did not apply; None if no verdict says so."""
    abstention_reasons = []
    reasons_not_to_apply = []
    for trace in traces:
        for verdict in trace.verdicts:
            if verdict.failure is not None:
                return _add_low_coverage(verdict.failure.message, trace)
            if not verdict.reason or trace.reward.value is not None:
                continue
            if verdict.status == "abstained":
                abstention_reasons.append(_add_low_coverage(verdict.reason, trace))
            elif verdict.status == "not_applicable":
                reasons_not_to_apply.append(f"no evaluator that counts applies: {verdict.reason}")
    return next(iter([*abstention_reasons, *reasons_not_to_apply]), None)


def _add_low_coverage(failure: str, trace: Trace) -> str:
    """Return a failure with the coverage that it left, if more is asked for."""
    notes = explain_notes(trace.reward.notes)
    causes = [note for note in notes if note.endswith("(failure.min_coverage)")]
    return "; ".join([failure.removesuffix("."), *causes]) if causes else failure


def describe_first_failure(traces: Iterable[Trace]) -> str:
    """Return the first failure as the end of a sentence."""
    failure = first_failure(traces)
    return "" if failure is None else f": {failure}"


def is_power_of_ten(count: int) -> bool:
    """Return whether a failure of this number in its kind is logged: the first, the tenth, the hundredth and so on."""
    return str(count).strip("0") == "1"


def fill_failed(
    rewards: Sequence[float | None],
    rule: FailedRewardRule,
    *,
    normalize: AdvantageNormalization = "std",
    why: str = "",
    setting: str = "`failed` is `raise`",
) -> FilledRewards:
    """Return the rewards of a whole group with the failed ones, which are None, as the rule has them.

    `normalize` is the trainer's, for the factor; `setting` and `why` are in the message of an error: why the rule is
    `raise`, and what failed. Raises `NoRewardError` by the rule `raise`, and where `neutral` has no
    mean because no member was judged.
    """
    values = list(rewards)
    judged = [value for value in values if value is not None]
    missing_reward_count = len(values) - len(judged)
    if not missing_reward_count or rule in ("none", "mask"):
        return FilledRewards(values, 0, 1.0)
    if rule == "raise":
        raise NoRewardError(
            f"{missing_reward_count} of {len(values)} rewards failed, and {setting}{why}"
        )
    if rule == "neutral":
        if not judged:
            problem = (
                f"none of {len(values)} rewards of a group has a value, so that there is no mean"
            )
            raise NoRewardError(f"{problem}{why}")
        fill_value = fsum(judged) / len(judged)
        factor = filling_factor(len(judged), len(values), normalize=normalize)
    else:
        assert isinstance(rule, float)
        fill_value = rule
        factor = None
    filled_values: list[float | None] = [fill_value if value is None else value for value in values]
    return FilledRewards(filled_values, missing_reward_count, factor)


def read_ungrouped_failure_rule(value: str | float) -> Literal["raise"] | float:
    """Return the rule for a trainer that sends one sample a call and has no mask. Raises `InputError` for others.

    `auto` is `raise`: without the group there is no mean, and any number would reward or punish.
    """
    rule = read_failed_reward_rule(value, "raise")
    if rule == "raise" or isinstance(rule, float):
        return rule
    problem = f"failed: is `{rule}`, but one sample comes in a call, and this trainer has no mask"
    raise InputError(
        f"{problem}; write raise or a number, or use `jurygraph serve`, which knows the group"
    )


class OutageGuard:
    """Counts groups in a row without a single reward, and samples that come alone apart: no training goes on without a
    judge.

    `record` is the folder that has them, for the message; None where it is not known.
    """

    def __init__(self) -> None:
        self.record: Path | None = None
        self._in_a_row: Counter[OutageUnit] = Counter()

    def observe(
        self,
        rewards: Sequence[float | None],
        why: str = "",
        task: Task | None = None,
        unit: OutageUnit = "groups",
    ) -> None:
        """Take in the rewards of a group before failed ones are filled in. Raises `NoRewardError` for one too many.

        They may be those of all groups judged at the same time, where the judge works. `why` follows the problem in
        its message, and then the beginning of the prompt of `task`: a server, whose callers are others, gives none.
        """
        if any(reward is not None for reward in rewards):
            self._in_a_row.clear()
            return
        self._in_a_row[unit] += 1
        if self._in_a_row[unit] < MAX_WITHOUT_REWARD[unit]:
            return
        problem = f"{self._in_a_row[unit]} {unit} in a row got no reward at all{why}"
        if task is not None:
            prompt = shorten(query_to_text(task.query))
            problem += f"; the last one's prompt begins with {prompt!r}"
        run, condition = "RUN", " if it is recorded"
        if self.record is not None:
            run, condition = shell_quote(self.record), ""
        raise NoRewardError(
            f"{problem}; `jurygraph show {run}` has what the judge replied{condition}"
        )
