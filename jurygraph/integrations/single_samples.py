"""Rewards for trainers that send one sample a call: verl, OpenRLHF, verifiers, and others by their doors.

Members of a group never meet in one of these calls. A config that compares responses, and a failed reward that is to
become its group's mean, need the server, whose cohorts wait for the members.
"""

from collections.abc import Sequence

from jurygraph.errors import InputError
from jurygraph.graphs.groups import Group
from jurygraph.integrations.failed_rewards import describe_failures, fill_failed, read_single_rule
from jurygraph.integrations.lazy_jury import LazyJury, compares_responses
from jurygraph.schema import Response, Task, Trace

SERVER_HINT = "use `jurygraph serve`, whose cohorts judge a group as one"


def read_samples(jury: LazyJury, samples: Sequence[tuple[Task, Response]]) -> list[Group]:
    """Return each sample as a group. Raises `InputError` where the jury of a config compares responses."""
    if compares_responses(jury.open()):
        problem = "the config compares the responses of a group"
        raise InputError(f"{problem}, and this trainer sends one at a time; {SERVER_HINT}")
    return [Group(task, [response]) for task, response in samples]


def settle_reward(jury: LazyJury, trace: Trace, failed: str | float) -> float:
    """Return the reward of a sample, or what a failed one becomes. Raises `NoRewardError` by the rule `raise`."""
    rule = read_single_rule(failed)
    rewards = [trace.reward.value]
    why = describe_failures([trace])
    jury.outages.observe(rewards, why)
    (value,) = fill_failed(rewards, rule, why=why).values
    assert value is not None, "neither rule leaves a reward out"
    return value
