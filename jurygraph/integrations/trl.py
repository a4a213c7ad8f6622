"""Rewards for TRL's trainers: a reward function that a jury gives, and other functions next to it.

TRL calls a reward function with the samples that one process has of a batch, and takes None as "no reward". It leaves a
row out only where *every* function returned None (trl 1.16, grpo_trainer.py: `unscorable_mask`): a format reward of .5
next to a failed judge would count that as 0. `reward_functions` therefore wraps the others, so that they return
None where the judge failed. Nothing of TRL is imported; what is read of its trainer hangs on `log_metric`.
"""

import asyncio
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import isawaitable, signature
from itertools import chain, pairwise
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from jurygraph.agents.maths.answer import NO_ANSWER_REASON
from jurygraph.aggregation.group_advantages import AdvantageNormalization
from jurygraph.display import format_value
from jurygraph.errors import InputError, PlanError
from jurygraph.graphs.groups import Group
from jurygraph.integrations.failed_rewards import (
    FailedRewardRule,
    FilledRewards,
    describe_first_failure,
    fill_failed,
    is_power_of_ten,
    read_failed_reward_rule,
)
from jurygraph.integrations.lazy_jury import ConfigSource, LazyJury, compares_responses
from jurygraph.integrations.samples import (
    RowDescription,
    describe_row,
    differing_rows_error,
    group_sample_indices,
    is_missing_cell,
    read_response,
    read_tasks,
)
from jurygraph.integrations.task_columns import (
    describe_missing_fields,
    find_lacking_evaluators,
    has_nothing_to_judge_by,
    list_task_fields,
    refuse_unnamed_columns,
)
from jurygraph.jury import Jury
from jurygraph.messages import format_count, list_first, suggest_known_name
from jurygraph.models.request import REPAIR_CALL_PURPOSE
from jurygraph.runs.reports.summary import count_trace_findings
from jurygraph.runs.run import EVALUATION_PHASE
from jurygraph.schema import Call, Material, RecordedVerdict, Task, Trace
from jurygraph.schema.task import is_empty_query

log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")
RewardValues = list[float | None]
RewardFunction = Callable[..., Sequence[float | None] | Awaitable[Sequence[float | None]]]

FIRST_VERSION_WITH_MASK = (1, 6)
"""TRL's first version that leaves out a row without any reward (PR 5902); before, its reward was 0."""
_MODULES_WITH_MASK = frozenset({"trl.trainer.grpo_trainer", "trl.trainer.rloo_trainer"})
_METHODS_OF_MASK = ("_calculate_rewards", "_generate_and_score_completions")
"""What decides over None in a trainer: a class with one of its own may sum with a plain `nansum`, as does TRL's
GRPOWithReplayBufferTrainer (1.13.0, 362)."""
_MAX_CALLS_KEPT = 64
"""Calls that wait for the other functions; of a trainer that never calls these, the last ones are kept."""
_MAX_ROWS_LISTED = 5
_PART_AND_EXAMPLE_BY_FIELD = {
    "reference": ("a reference", "reference='answer'"),
    "rubric": ("a rubric", "rubric='rubric'"),
    "stakeholders": ("stakeholders", "stakeholders='people'"),
}
COHORTS_HINT = "`jurygraph serve` judges a group whose members arrive apart, by its cohorts"


class TrainerSettings(NamedTuple):
    """The parts of a trainer that decide what a missing reward does, as far as they can be seen from its callbacks."""

    functions: int | None = None
    wrapped_function_count: int = 0
    """Functions that return None where the judge failed (`reward_functions`)."""
    group_sizes: tuple[int, ...] = ()
    has_trainer_nan_masking: bool = False
    normalize: AdvantageNormalization | None = "std"
    """None where the advantages of a group depend on other groups."""
    is_evaluating: bool = False


def read_trainer_settings(log_metric: Any) -> TrainerSettings:
    """Return the settings of the trainer whose method `log_metric` is; the defaults where it is no method of one."""
    trainer = getattr(log_metric, "__self__", None)
    is_training = getattr(getattr(trainer, "model", None), "training", None)
    settings = TrainerSettings(
        has_trainer_nan_masking=_has_trainer_nan_masking(trainer),
        is_evaluating=is_training is False,
    )
    functions = getattr(trainer, "reward_funcs", None)
    if not isinstance(functions, Sequence):
        return settings
    sizes = {getattr(trainer, name, None) for name in _group_size_names(is_training)}
    return settings._replace(
        functions=len(functions),
        wrapped_function_count=sum(
            isinstance(function, MaskedRewardFunction) for function in functions
        ),
        group_sizes=tuple(sorted(size for size in sizes if isinstance(size, int))),
        normalize=_read_normalization(trainer),
    )


def _group_size_names(is_training: Any) -> tuple[str, ...]:
    """Return the names of the group sizes that a call may have: TRL has one of its own in evaluations."""
    if isinstance(is_training, bool):
        return ("num_generations",) if is_training else ("num_generations_eval",)
    return "num_generations", "num_generations_eval"


def _has_trainer_nan_masking(trainer: Any) -> bool:
    """Return whether a trainer leaves out rows by methods that are known to do so, those of TRL's GRPO or RLOO."""
    modules = {
        getattr(getattr(trainer, name, None), "__module__", None) for name in _METHODS_OF_MASK
    }
    if not modules <= _MODULES_WITH_MASK:
        return False
    version = getattr(sys.modules.get("trl"), "__version__", None)
    if not isinstance(version, str):
        return True
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return tuple(numbers) >= FIRST_VERSION_WITH_MASK


def _read_normalization(trainer: Any) -> AdvantageNormalization | None:
    # RLOO, whose own normalisation is that of the batch
    if hasattr(trainer, "normalize_advantages"):
        return None if trainer.normalize_advantages else "leave-one-out"
    if (
        getattr(trainer, "multi_objective_aggregation", "sum_then_normalize")
        != "sum_then_normalize"
    ):
        return None
    normalization_by_scale_option: dict[Any, AdvantageNormalization] = {
        "group": "std",
        "none": "none",
        True: "std",
        False: "none",
    }
    return normalization_by_scale_option.get(getattr(trainer, "scale_rewards", "group"))


@dataclass(eq=False)
class _SharedTrainerCall:
    """One call of the trainer, which the jury's function and the others make each; it is scored once."""

    prompts: Sequence[Any]
    completions: Sequence[Any]
    scoring: "asyncio.Task[RewardValues]"
    functions: set[int]

    def matches(self, prompts: Sequence[Any], completions: Sequence[Any]) -> bool:
        has_same_completions = self.completions is completions or self.completions == completions
        return has_same_completions and self.prompts == prompts


class JuryScorer:
    """Scores the samples of a trainer's calls. It can be pickled; each process opens a jury of its own."""

    def __init__(
        self,
        jury: LazyJury,
        columns: Mapping[str, str | None],
        failed: str | float,
        group_size: int | None,
        others: int,
        name: str,
    ) -> None:
        read_failed_reward_rule(failed, "mask")
        if group_size is not None and (isinstance(group_size, bool) or group_size < 1):
            raise InputError(
                f"group_size: is {group_size!r}; give the number of samples of a prompt"
            )
        self.jury = jury
        self._columns = columns
        self._failed = failed
        self._group_size = group_size
        self._others = others
        self._name = name
        self._calls: list[_SharedTrainerCall] = []
        self._failed_group_counts: Counter[tuple[str, str]] = Counter()
        self._warnings: set[str] = set()
        """The warnings that were logged: each is logged once."""

    def _warn_once(self, message: str, *arguments: Any) -> None:
        if message not in self._warnings:
            self._warnings.add(message)
            log.warning(message, *arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes this one: it has no calls and no warnings yet."""
        settings = (self._columns, self._failed, self._group_size, self._others, self._name)
        return JuryScorer, (self.jury, *settings)

    async def score(
        self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any]
    ) -> RewardValues:
        """Return the rewards of a call; the jury's function among several is number 0."""
        loop = self.jury.open().loop  # before there is a coroutine, since it may fail
        scoring = loop.submit(self._score_once(0, prompts, completions, columns))
        return await asyncio.wrap_future(scoring)

    def score_blocking(
        self,
        function: int,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        columns: Mapping[str, Any],
    ) -> RewardValues:
        """Return the rewards of a call for the function of this number, and wait for them."""
        return self.jury.open().run(self._score_once(function, prompts, completions, columns))

    async def _score_once(
        self,
        function: int,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        columns: Mapping[str, Any],
    ) -> RewardValues:
        """Return the rewards of a call, which the first of its functions to come lets the jury make.

        It runs in the jury's event loop, so that whoever waits for it, in any loop or thread, never keeps it from going
        on.
        """
        for call in self._calls:
            if function not in call.functions and call.matches(prompts, completions):
                break
        else:
            scoring = asyncio.ensure_future(self._score_batch(prompts, completions, columns))
            call = _SharedTrainerCall(prompts, completions, scoring, set())
            self._calls = [*self._calls[-_MAX_CALLS_KEPT + 1 :], call]
        call.functions.add(function)
        if len(call.functions) == self._others + 1:
            self._calls.remove(call)
        try:
            return await asyncio.shield(call.scoring)  # for which another function may wait, too
        except BaseException:
            call.functions.remove(function)
            if not call.functions:
                call.scoring.cancel()
                if call in self._calls:  # the same call made again is a new one
                    self._calls.remove(call)
            raise

    async def _score_batch(
        self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any]
    ) -> RewardValues:
        batch = self._read_trainer_batch(prompts, completions, columns)
        if not batch.groups:
            return []
        try:
            traces = await self.jury.score(batch.groups)
        except PlanError as error:
            # by its task's id, a digest of what it contains, nobody finds the row
            for group, members in zip(batch.groups, batch.members, strict=True):
                if repr(group.task.id) in str(error):
                    raise PlanError(f"{batch.describe(members[0])}: {error}") from error
            raise
        return self._finish_batch(batch, traces, columns)

    def check(self, dataset: Iterable[Mapping[str, Any]]) -> None:
        """Read the rows of a data set as a training will, and log doubtful references, the first of each kind.

        Raises `InputError` that lists the first wrong rows.
        """
        problems = []
        rows_by_doubt: dict[str, list[str]] = defaultdict(list)
        first_rows: dict[str, tuple[int, str]] = {}
        column_names: set[str] = set()
        for index, row in enumerate(dataset):
            try:
                task = self._check_row(index, row, column_names)
                first_index, digest = first_rows.setdefault(task.id, (index, task.digest))
                if task.digest != digest:
                    raise differing_rows_error(task.id, first_index, index, "data set")
                column_names.update(row)
            except InputError as error:
                problems.append(str(error))
                continue
            for doubt in _describe_doubts(self.jury.open(), task):
                rows_by_doubt[doubt].append(f"{index + 1} ({format_value(task.reference, 60)})")
        for doubt, rows in rows_by_doubt.items():
            noun = "row" if len(rows) == 1 else "rows"
            log.warning("%s (%s %s)", doubt, noun, ", ".join(list_first(rows, _MAX_ROWS_LISTED)))
        if problems:
            raise InputError("\n".join(list_first(list(dict.fromkeys(problems)), _MAX_ROWS_LISTED)))

    def _check_row(
        self, index: int, row: Mapping[str, Any], earlier_columns: Collection[str]
    ) -> Task:
        """Return the task of a row of a data set; `earlier_columns` are those of the rows before it.

        Raises `InputError` for one without a prompt or with an empty one, with a wrong cell, or nothing to judge by.
        """
        if not isinstance(row, Mapping):
            raise InputError(
                f"the data set has {format_value(row, 60)} in the place of a row; give a list of rows, each a mapping, "
                "or a datasets.Dataset"
            )
        cells = {name: _read_cells(cell) for name, cell in row.items()}
        if "prompt" not in cells:
            names = ", ".join(sorted(cells)) or "none"
            raise InputError(f"row {index + 1} of the data set: has no `prompt`; it has {names}")
        prompt = cells.pop("prompt")

        place = describe_row(index, prompt, "data set")
        for part, column in self._columns.items():
            # rows may have no id of their own
            if part != "id" and column not in cells and column in earlier_columns:
                raise InputError(
                    f"{place}: lacks the column {column!r} ({part}), which rows before it have"
                )

        def describe(_: int) -> str:
            return place

        self._check_columns({name: [cell] for name, cell in cells.items()}, 1, describe)
        tasks = self._read_tasks([prompt], [cells], describe)
        if is_empty_query(tasks[0].query):
            raise InputError(f"{place}: the prompt is empty; write one, or leave the row out")
        jury = self.jury.open()
        refuse_unnamed_columns(jury, tasks, [cells], self._columns, describe)
        if has_nothing_to_judge_by(jury, tasks[0]):
            lack = describe_missing_fields(jury, tasks[0], cells, self._columns)
            raise InputError(f"{place} has nothing to be judged by: {lack}")
        return tasks[0]

    def _read_trainer_batch(
        self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any]
    ) -> "_TrainerBatch":
        if len(prompts) != len(completions):
            raise InputError(f"there are {len(prompts)} prompts and {len(completions)} completions")
        trainer = read_trainer_settings(columns.get("log_metric"))
        rule = self._choose_failed_reward_rule(trainer)

        def describe(index: int) -> str:
            return describe_row(index, prompts[index])

        cells = {name: _read_cells(values) for name, values in columns.items()}
        self._check_columns(cells, len(prompts), describe)
        rows = list(_read_rows(cells, len(prompts)))
        tasks = self._read_tasks(prompts, rows, describe)
        refuse_unnamed_columns(self.jury.open(), tasks, rows, self._columns, describe)
        self._warn_of_differing_ids(prompts, tasks)
        phase = EVALUATION_PHASE if trainer.is_evaluating else None
        finished_step = getattr(columns.get("trainer_state"), "global_step", None)
        labels: dict[str, Any] = {}
        if finished_step is not None:
            # the trainer logs the rewards of a step once it is finished, under the next number
            labels["step"] = int(finished_step) + (phase is None)
        if phase is not None:
            labels["phase"] = phase
        if self.jury.session > 1:
            labels["session"] = self.jury.session
        groups: list[Group] = []
        members: list[list[int]] = []
        for completion_indices_of_task in group_sample_indices(tasks).values():
            for part in self._split_into_groups(completion_indices_of_task, trainer, rule):
                responses = [
                    read_response(completions[index], labels, f"completion {index + 1} of the call")
                    for index in part
                ]
                task = tasks[part[0]]
                plans = self.jury.plans
                plan = None if plans is None else plans.find(task.id, task.id).plan
                groups.append(Group(task, responses, plan, phase=phase))
                members.append(part)
        record_count = self.jury.count_records()
        return _TrainerBatch(groups, members, describe, rows, rule, trainer, record_count)

    def _read_tasks(
        self,
        prompts: Sequence[Any],
        rows: Sequence[Mapping[str, Any]],
        describe: RowDescription,
    ) -> list[Task]:
        """Return the task of each row: that of the file of plans, by its id alone, where there is one."""
        plans = self.jury.plans
        if plans is None:
            return read_tasks(prompts, rows, self._columns, describe)
        column = str(self._columns["id"])
        return [
            plans.find(str(row.get(column)), f"{describe(index)}, column {column!r}").task
            for index, row in enumerate(rows)
        ]

    def _check_columns(
        self,
        columns: Mapping[str, Any],
        size: int,
        describe: RowDescription,
    ) -> None:
        """Raise `InputError` for a column of the jury's without a value for each prompt, or with an empty cell.

        An empty reference is logged, once: a training goes on with it.
        """
        for part, column in self._columns.items():
            values = columns.get(column) if column is not None else None
            if not isinstance(values, list):
                continue
            if len(values) != size:
                problem = f"has {len(values)} values, and there are {size} prompts"
                raise InputError(f"{part}: column {column!r} {problem}")
            index = next((i for i, cell in enumerate(values) if _is_empty_cell(part, cell)), None)
            if index is not None:
                form, remedy = "empty", f"make it None where a prompt has no {part}"
                if is_missing_cell(values[index]):
                    form = "NaN (missing)"
                    remedy = "it counts as that of the row before with its prompt, else as None"
                problem = f"{part}: column {column!r} is {form} in {describe(index)}"
                if part != "reference":
                    raise InputError(f"{problem}; {remedy}")
                self._warn_once("%s (said once); %s", problem, remedy)

    def _warn_of_differing_ids(self, prompts: Sequence[Any], tasks: Sequence[Task]) -> None:
        """Log the first equal prompts, one after another, that have different ids: they are no group."""
        pairs = zip(pairwise(prompts), pairwise(tasks), strict=True)
        for (prompt, next_prompt), (task, next_task) in pairs:
            if prompt == next_prompt and task.id != next_task.id:
                ids = f"the ids {task.id!r} and {next_task.id!r}"
                self._warn_once(
                    "samples of one prompt have %s, so that each is a group of its own", ids
                )

    def _choose_failed_reward_rule(self, trainer: TrainerSettings) -> FailedRewardRule:
        """Return what a failed reward becomes. Raises `InputError` where the trainer would count None as a 0."""
        rule = read_failed_reward_rule(
            self._failed, "mask" if trainer.has_trainer_nan_masking else "neutral"
        )
        if rule != "mask":
            return rule
        if not trainer.has_trainer_nan_masking:
            problem = (
                "failed: is `mask`, and no trainer that has one is seen: None would count as 0"
            )
            hint = "write `auto` or `neutral`, or `none` if yours leaves out rows without a reward"
            raise InputError(f"{problem}; {hint}")
        count = 0 if trainer.functions is None else trainer.functions - 1
        if count > trainer.wrapped_function_count:
            problem = f"the trainer has {count} other reward functions, and TRL counts None as 0 beside them"
            hint = (
                "make all by `reward_functions(config, beside=[…])`, or set `failed` to `neutral`"
            )
            raise InputError(f"{problem}; {hint}, as several juries need")
        return rule

    def _split_into_groups(
        self, members: list[int], trainer: TrainerSettings, rule: FailedRewardRule
    ) -> list[list[int]]:
        """Return the groups of one prompt, which may recur in a batch. Raises `InputError` for an incomplete one."""
        sizes = trainer.group_sizes if self._group_size is None else (self._group_size,)
        dividing_group_sizes = [size for size in sizes if len(members) % size == 0]
        is_group_compared = compares_responses(self.jury.open())
        if dividing_group_sizes:
            size = dividing_group_sizes[-1]
            return [members[start : start + size] for start in range(0, len(members), size)]
        if sizes and (is_group_compared or rule == "neutral"):
            need = (
                "the config compares the responses of a group"
                if is_group_compared
                else "`neutral` needs its mean"
            )
            problem = (
                f"a call has {len(members)} of the {sizes[-1]} samples of a prompt, and {need}"
            )
            raise InputError(
                f"{problem}: let one process have whole groups, or use the server: {COHORTS_HINT}"
            )
        if self._group_size is not None:
            problem = f"a call has {len(members)} samples of a prompt, which is no multiple of it"
            raise InputError(f"group_size: is {self._group_size}, and {problem}")
        if is_group_compared and len(members) == 1:
            hint = "set `group_size`, so that an incomplete group is refused"
            self._warn_once(
                "a prompt has one sample here, and the config compares several; %s", hint
            )
        return [members]

    def _finish_batch(
        self, batch: "_TrainerBatch", scored: Sequence[Sequence[Trace]], columns: Mapping[str, Any]
    ) -> RewardValues:
        """Return the values that the trainer gets, after what is logged of them. Raises `NoRewardError`."""
        size = sum(map(len, batch.members))
        traces: list[Trace | None] = [None] * size
        values: RewardValues = [None] * size
        factors: list[float | None] = [None] * size
        judged_rewards = self._find_judged_rewards(scored)
        for unscored_group, members, group in zip(batch.groups, batch.members, scored, strict=True):
            rewards = [trace.reward.value for trace in group]
            row = batch.describe(members[0])
            lack = self._describe_missing_fields(batch, members[0], unscored_group.task, group)
            why = _describe_why(group, row, lack)
            self._warn_of_failure(group, row, lack)
            self.jury.outages.observe(judged_rewards or rewards, why, unscored_group.task)
            filled_rewards = self._fill_failed_rewards(rewards, batch, why)
            for index, trace, value in zip(members, group, filled_rewards.values, strict=True):
                traces[index] = trace
                values[index] = value
                factors[index] = filled_rewards.factor
        scored_traces = [trace for trace in traces if trace is not None]
        self._warn_of_quotations(scored_traces)
        self._warn_of_missing_answers(scored_traces)
        is_free = partial(self.jury.is_answered_without_request, record_count=batch.record_count)
        log_metric = columns.get("log_metric")
        if log_metric is not None:
            for name, value in _measure_call(scored_traces, factors, is_free):
                log_metric(f"{self._name}/{name}", value)
        _log_trace_columns(columns.get("log_extra"), self._name, scored_traces, factors)
        return values

    def _find_judged_rewards(self, scored: Sequence[Sequence[Trace]]) -> RewardValues:
        """Return the rewards of a call for which a model was asked, where the jury has any: one shows that it works.

        The groups next to it that got none are then no outage, in whatever order they come.
        """
        uses_model = bool(self.jury.open().gateways)
        return [
            trace.reward.value
            for trace in chain.from_iterable(scored)
            if trace.reward.value is not None and (trace.calls or not uses_model)
        ]

    def _describe_missing_fields(
        self, batch: "_TrainerBatch", index: int, task: Task, group: Sequence[Trace]
    ) -> str:
        """Return what the row of a group lacks, where nothing in it can be judged; "" elsewhere."""
        jury = self.jury.open()
        for verdict in chain.from_iterable(trace.verdicts for trace in group):
            needs_field = bool(jury.evaluators[verdict.evaluator].task_fields)
            is_abstention = verdict.status == "abstained" and needs_field
            if verdict.status != "not_applicable" and not is_abstention:
                return ""
        return describe_missing_fields(jury, task, batch.rows[index], self._columns)

    def _warn_of_failure(self, group: Sequence[Trace], row: str, lack: str) -> None:
        """Log why rewards of a group failed, each kind in the first such group, the tenth and so on."""
        failed_traces = [trace for trace in group if trace.reward.value is None]
        first_by_kind = {_kind_of_failure(trace): trace for trace in reversed(failed_traces)}
        reasons = []
        for kind, trace in first_by_kind.items():
            self._failed_group_counts[kind, lack] += 1
            count = self._failed_group_counts[kind, lack]
            if is_power_of_ten(count):
                why = _describe_why([trace], "it", lack).removeprefix(": ")
                count_text = format_count(count, "such group")
                reasons.append(f"{why} (response {trace.response_id}; {count_text} so far)")
        if reasons:
            log.warning(
                "%d of the %d rewards of %s failed: %s; the first, the tenth and so on are said; %s/failed has the "
                "share of all",
                *(len(failed_traces), len(group), row, "; ".join(reasons), self._name),
            )

    def _warn_of_quotations(self, traces: Sequence[Trace]) -> None:
        """Log the first findings that count as the worst, whatever the judge said: they may turn the order round.

        A call in which more than half have no quotation is logged, too: then the judge pays next to nothing.
        """
        verdicts = chain.from_iterable(trace.verdicts for trace in traces)
        worst = next((verdict for verdict in verdicts if verdict.is_worst_case), None)
        if worst is None:
            return
        findings = count_trace_findings(traces)
        if 2 * findings.unsupported > findings.quotable:
            self._warn_once(
                "of a call, %s (said once; %s/unsupported has the share of each); such as on %s: %s",
                *(findings.warning, self._name, worst.about, worst.reason),
            )
        else:
            self._warn_once(
                "a finding on %s had no quotation that counts, so that it has the worst score: %s (said once; if the "
                "judge paraphrases, or judges a tone, write `safety: {evidence: preferred}`)",
                *(worst.about, worst.reason),
            )

    def _warn_of_missing_answers(self, traces: Sequence[Trace]) -> None:
        """Log that most responses of a call count 0 for their form: the policy was not asked for it, or is cut off."""
        count = sum(map(_states_no_answer, traces))
        if 2 * count > len(traces):
            self._warn_once(
                "%d of the %d responses of a call state no final answer, which counts as 0 (said once; %s/no_answer "
                "has the share of each): ask for one in the prompt, such as \\boxed{4} or `The answer is 4`; or is "
                "max_completion_length too small?",
                *(count, len(traces), self._name),
            )

    def _fill_failed_rewards(
        self, rewards: RewardValues, batch: "_TrainerBatch", why: str
    ) -> FilledRewards:
        normalize = batch.trainer.normalize
        if self._failed == "auto" and batch.rule == "neutral":
            why += "; `auto` is `neutral`, as no trainer with a mask is seen: `none` gives None"
        filled_rewards = fill_failed(rewards, batch.rule, normalize=normalize or "std", why=why)
        if (
            filled_rewards.filled
            and batch.rule == "neutral"
            and not (self._group_size or batch.trainer.group_sizes)
        ):
            self._warn_once(
                "a failed reward got the mean of those of its prompt in the call (said once), which may be a part of "
                "its group; set `group_size`, so that a part is refused"
            )
        is_sum = batch.trainer.functions not in (None, 1)
        if filled_rewards.filled and (normalize is None or is_sum):
            # it depends on other groups, or other functions
            return filled_rewards._replace(factor=None)
        return filled_rewards


class _TrainerBatch(NamedTuple):
    """The groups of a call, the positions of their members in it, and its rows with what messages call them."""

    groups: list[Group]
    members: list[list[int]]
    describe: RowDescription
    rows: list[dict[str, Any]]
    rule: FailedRewardRule
    trainer: TrainerSettings
    record_count: int
    """The records of the run before the call is scored."""


def _kind_of_failure(trace: Trace) -> str:
    """Return the kind of the failure that `describe_first_failure` describes, "" for an abstention."""
    return next((verdict.failure.kind for verdict in trace.verdicts if verdict.failure), "")


def _describe_why(traces: Sequence[Trace], row: str, lack: str) -> str:
    """Return why rewards failed, as the end of a sentence: what their row lacks, else the first failure."""
    if lack:
        return f": {row} has nothing to be judged by: {lack}"
    return describe_first_failure(traces)


def _is_empty_cell(part: str, cell: Any) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    if part == "reference":
        return cell is not None and is_missing_cell(cell)
    return part == "rubric" and isinstance(cell, list | tuple) and not cell


def _states_no_answer(trace: Trace) -> bool:
    return any(verdict.reason == NO_ANSWER_REASON for verdict in trace.verdicts)


def _describe_doubts(jury: Jury, task: Task) -> Iterator[str]:
    """Yield a sentence for each evaluator that lacks what it judges by, where the config does not expect that, or that
    may read the reference of a task as its author did not mean it."""
    optional_names = {use.known_as for use in jury.config.evaluators if use.if_missing}
    for name, fields in find_lacking_evaluators(jury, task).items():
        if name not in optional_names:
            yield (
                f"{name}: judges nothing without {' or '.join(fields)}, so that the reward may fail; give it, or "
                "set its `if_missing: not_applicable`"
            )
    if not task.reference:
        return
    for name, evaluator in jury.evaluators.items():
        doubt = evaluator.describe_doubtful_reference(task.reference)
        if doubt is not None:
            yield f"{name}: a reference {doubt}"


def _read_cells(values: Any) -> Any:
    """Return a column as a list, also an array of NumPy, pandas or torch, or a `datasets.Column`; other values as they
    are, images among them."""
    if getattr(values, "ndim", None) in (0, 1):
        return values.tolist()
    is_column = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return list(values) if is_column else values


def _read_rows(columns: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    """Yield the row of each sample: the values of those columns that have one for each."""
    lists = {
        name: values
        for name, values in columns.items()
        if isinstance(values, list) and len(values) == size
    }
    for index in range(size):
        yield {name: values[index] for name, values in lists.items()}


def _measure_call(
    traces: Sequence[Trace], factors: Iterable[float | None], is_free: Callable[[Call], bool]
) -> Iterator[tuple[str, float]]:
    """Yield the names and values of the figures of a call that the trainer logs."""
    statuses = [trace.reward.status for trace in traces]
    yield "failed", statuses.count("failed") / len(traces)
    yield "degraded", statuses.count("degraded") / len(traces)
    findings = count_trace_findings(traces)
    if findings.quotable:
        yield "unsupported", findings.unsupported / findings.quotable
    yield from _measure_replies(traces, is_free)
    if missing_count := sum(map(_states_no_answer, traces)):
        yield "no_answer", missing_count / len(traces)
    figures: dict[str, list[float]] = {}
    # where a reward failed, its components are the failure rule's
    rewards = [trace.reward for trace in traces if trace.reward.value is not None]
    for reward in rewards:
        for name, value in {"reward": reward.value, **reward.components}.items():
            if value is not None:
                figures.setdefault(name, []).append(value)
    known_factors = [factor for factor in factors if factor is not None]
    if len(known_factors) == len(traces):  # a mean would hide those that are not known
        figures["factor"] = known_factors
    for name, values in figures.items():
        yield name, fsum(values) / len(values)


def _measure_replies(
    traces: Sequence[Trace], is_free: Callable[[Call], bool]
) -> Iterator[tuple[str, float]]:
    """Yield how many of the judge's replies cost no request, and how many repair another."""
    calls = chain.from_iterable(trace.calls for trace in traces)
    replies = {call.id: call for call in calls if call.fault is None}
    if not replies:
        return
    yield "cached", sum(map(is_free, replies.values())) / len(replies)
    repair_ids: set[str] = set()
    for trace in traces:
        verdicts_and_material: list[RecordedVerdict | Material] = [*trace.verdicts, *trace.material]
        for user in verdicts_and_material:
            repair_ids.update(use.id for use in user.calls if use.purpose == REPAIR_CALL_PURPOSE)
    yield "repaired", len(repair_ids & replies.keys()) / len(replies)


def _log_trace_columns(
    log_extra: Any, jury_name: str, traces: Sequence[Trace], factors: Sequence[float | None]
) -> None:
    if log_extra is None:
        return
    log_extra("task_id", [trace.task_id for trace in traces])
    log_extra("response_id", [trace.response_id for trace in traces])
    log_extra(f"{jury_name}_factor", list(factors))
    log_extra(
        f"{jury_name}_unsupported", [count_trace_findings([trace]).unsupported for trace in traces]
    )


async def jury_reward(
    scorer: JuryScorer, /, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
) -> RewardValues:
    """Return the reward of each completion, None where the trainer is to leave it out.

    Raises `NoRewardError` as the setting `failed` has it, and for three groups in a row without a reward,
    those next to a judged one left out.
    """
    return await scorer.score(prompts, completions, columns)


class JuryReward(partial[Awaitable[RewardValues]]):
    """The reward function: a partial of `jury_reward`, which TRL of every version takes for asynchronous."""

    __name__: str

    @property
    def scorer(self) -> JuryScorer:
        scorer: JuryScorer = self.args[0]
        return scorer

    def check(self, dataset: Iterable[Mapping[str, Any]]) -> None:
        """Read every row of a data set, with its `prompt`, as the training will, before it starts.

        Nothing is judged. References that an evaluator may not read as they are meant are logged. Raises `InputError`
        that lists the first rows which would end the training, or never get a reward.
        """
        self.scorer.check(dataset)

    def close(self) -> None:
        """Close the jury of this process, and release the run that it records."""
        self.scorer.jury.close()


class MaskedRewardFunction:
    """A reward function that returns None where the jury's reward failed, so that the trainer leaves the row out.

    It is synchronous, because TRL waits for all functions anyway, and a name of its own keeps its metrics apart.
    """

    def __init__(self, scorer: JuryScorer, function: RewardFunction, number: int) -> None:
        self._scorer = scorer
        self._function = function
        self._number = number
        unwrapped_function = function.func if isinstance(function, partial) else function
        self.__name__ = getattr(unwrapped_function, "__name__", type(unwrapped_function).__name__)

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> RewardValues:
        jury_values = self._scorer.score_blocking(self._number, prompts, completions, columns)
        result = self._function(prompts=prompts, completions=completions, **columns)
        if isawaitable(result):
            result = self._scorer.jury.open().run(_await_result(result))
        values = list(result)
        if len(values) != len(completions):
            problem = f"returned {len(values)} rewards for {len(completions)} completions"
            raise InputError(f"{self.__name__}: {problem}")
        return [
            None if jury_value is None else value
            for value, jury_value in zip(values, jury_values, strict=True)
        ]


async def _await_result(result: Awaitable[Sequence[float | None]]) -> Sequence[float | None]:
    return await result


def _name_meant_arguments(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a function whose TypeError for an unknown argument names the one that is meant."""
    names = signature(function).parameters

    @wraps(function)
    def call(*arguments: _P.args, **settings: _P.kwargs) -> _T:
        for name in settings.keys() - names:
            raise TypeError(
                f"there is no argument {name!r} of a reward function; {suggest_known_name(name, names)}"
            )
        return function(*arguments, **settings)

    return call


@_name_meant_arguments
def reward_function(
    config: ConfigSource,
    *,
    task_id: str = "task_id",
    reference: str | None = None,
    rubric: str | None = None,
    stakeholders: str | None = None,
    record: str | Path | None = None,
    plans: str | Path | None = None,
    failed: str | float = "auto",
    beside: Sequence[RewardFunction] = (),
    group_size: int | None = None,
    name: str = "jury",
) -> JuryReward:
    """Return a reward function for `GRPOTrainer(reward_funcs=…)` and its siblings, which the jury of a config gives.

    `reference`, `rubric` and `stakeholders` are names of columns of the data set, and `task_id` that of the tasks' ids.
    Equal prompts in a call are one group, or several of `group_size` samples, by default the trainer's. What is scored
    is stored in the run `record`, with the trainer's step as the label `step`. With a file of `plans`, as `jurygraph
    plan` makes it, a row needs its task's id alone. `failed` says what a failed reward becomes: `auto` is the mask of
    TRL's GRPO and RLOO where one of them is seen, else `neutral`. `name` begins what the trainer logs. For other
    functions use `reward_functions`, which takes the same arguments and makes this one with those in `beside`.

    Raises InputError for a wrong argument.
    """
    columns = {
        "id": task_id,
        "reference": reference,
        "rubric": rubric,
        "stakeholders": stakeholders,
    }
    if callable(beside) or isinstance(beside, str) or not all(map(callable, beside)):
        raise InputError(f"beside: is {format_value(beside, 60)}; give a list of functions")
    if any(map(_is_jury_function, beside)):
        problem = "beside: has the function of another jury, and TRL counts what fails there as 0"
        hint = "put the evaluators of both into one config, or give the trainer both"
        raise InputError(f"{problem}; {hint}, each with `failed` as `neutral` and its own `name`")
    if plans is not None and any((reference, rubric, stakeholders)):
        raise InputError(
            "plans: has the tasks whole; leave out `reference`, `rubric` and `stakeholders`"
        )
    scorer = JuryScorer(
        LazyJury(config, record, plans), columns, failed, group_size, len(beside), name
    )
    defaults = scorer.jury.open().config.task_defaults
    for field, evaluator in list_task_fields(scorer.jury.open()).items():
        is_given = plans is not None or getattr(defaults, field, None)
        if columns.get(field, field) is None and not is_given:
            part, example = _PART_AND_EXAMPLE_BY_FIELD[field]
            hint = f"name the column that has it, as in {example}"
            log.warning("%s needs %s for each prompt; %s", evaluator, part, hint)
    function = JuryReward(jury_reward, scorer)
    function.__name__ = f"{name}_reward"
    return function


def _is_jury_function(function: Any) -> bool:
    """Return whether a function is a jury's, or a partial, a method or a wrapper (`functools.wraps`) of one."""
    if function is jury_reward or isinstance(
        function, JuryReward | MaskedRewardFunction | JuryScorer
    ):
        return True
    inner: Any = getattr(function, "__wrapped__", None) or getattr(function, "__self__", None)
    if isinstance(function, partial):
        inner = function.func
    return inner is not None and _is_jury_function(inner)


def reward_functions(
    config: ConfigSource, *, beside: Sequence[RewardFunction], **settings: Any
) -> list[RewardFunction]:
    """Return the jury's function and the others, for `reward_funcs` of a trainer; see `reward_function`.

    The others return None where the jury's reward failed and is not filled in, so that the trainer leaves the row out.
    """
    judge = reward_function(config, beside=beside, **settings)
    others = [
        MaskedRewardFunction(judge.scorer, function, number)
        for number, function in enumerate(beside, 1)
    ]
    return [judge, *others]
