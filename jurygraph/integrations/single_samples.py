"""Rewards for trainers that send one sample a call: verl, OpenRLHF, verifiers, and others by their doors.

Members of a group never meet in one of these calls. A config that compares responses, and a failed reward that is to
become its group's mean, need the server, whose cohorts wait for the members.
"""

from math import nan

from jurygraph.decision.recipe import component_names
from jurygraph.errors import InputError
from jurygraph.graphs.groups import Group
from jurygraph.integrations.failed_rewards import (
    describe_first_failure,
    fill_failed,
    read_ungrouped_failure_rule,
)
from jurygraph.integrations.lazy_jury import LazyJury, compares_responses
from jurygraph.integrations.task_columns import has_nothing_to_judge_by, list_task_fields
from jurygraph.jury import Jury
from jurygraph.schema import Response, Task, Trace

SERVER_HINT = "use `jurygraph serve`, whose cohorts judge a group as one"


async def judge_sample(
    jury: LazyJury, task: Task, response: Response, failed: str | float, fields_hint: str
) -> tuple[Trace, float]:
    """Return the trace of a sample with its reward, or what a failed one becomes.

    `fields_hint` says where the trainer's data have what a task is judged by, for a task without it.
    Raises `InputError` where the jury of a config compares responses, and `NoRewardError` by the rule `raise`.
    """
    rule = read_ungrouped_failure_rule(failed)
    if compares_responses(jury.open()):
        problem = "the config compares the responses of a group"
        raise InputError(f"{problem}, and this trainer sends one at a time; {SERVER_HINT}")
    ((trace,),) = await jury.score([Group(task, [response])])
    rewards = [trace.reward.value]
    why = describe_first_failure([trace])
    if rewards == [None] and has_nothing_to_judge_by(jury.open(), task):
        fields = " or ".join(list_task_fields(jury.open()))
        why = f": the task has no {fields} to be judged by; {fields_hint}"
    jury.outages.observe(rewards, why, task, "samples")
    setting = f"`failed` is `raise`{', by `auto`' if failed == 'auto' else ''}"
    (value,) = fill_failed(rewards, rule, why=why, setting=setting).values
    assert value is not None, "neither rule leaves a reward out"
    return trace, value


def read_components(jury: Jury, trace: Trace) -> dict[str, float]:
    """Return each component of a jury as `jury_NAME`, NaN where a sample has none, or its reward failed.

    `jury_degraded` is 1 where the reward lacks a verdict. Every sample has the same keys, because trainers take those
    of the first.
    """
    records = {name: evaluator.record for name, evaluator in jury.evaluators.items()}
    components = {"jury_degraded": float(trace.reward.status == "degraded")}
    for name in component_names(jury.config, records):
        value = None if trace.reward.value is None else trace.reward.components.get(name)
        components[f"jury_{name}"] = nan if value is None else value
    return components
