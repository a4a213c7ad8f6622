"""Put the figures of a comparison together."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jurygraph.errors import InputError
from jurygraph.inference.sign_flips import flippable_sums
from jurygraph.runs.reports.comparison.differences import (
    adjusted_fields,
    paired_difference,
    reward_statistics,
    sum_by_task,
    sum_passes,
)
from jurygraph.runs.reports.comparison.figures import AgentDelta, Comparison, RewardChange
from jurygraph.runs.reports.comparison.margins import Margin, check_margins
from jurygraph.runs.reports.comparison.notes import (
    failure_notes,
    limits_of_tests,
    run_notes,
    task_notes,
)
from jurygraph.runs.reports.comparison.pairing import (
    PairedRewards,
    Side,
    count_responses,
    number_tasks,
    pair_ids,
    pair_rewards,
)
from jurygraph.runs.reports.comparison.responses import ComparedResponse, Slot, from_trace
from jurygraph.runs.reports.comparison.verdicts import PairedVerdicts
from jurygraph.schema import Trace

_MAX_CHANGES = 20


def compare(
    a: Iterable[Trace],
    b: Iterable[Trace],
    *,
    passing: float = 0.5,
    margins: Sequence[Margin] = (),
    largest_loss: float = 1.0,
) -> Comparison:
    """Compare two runs, response by response; both are streamed, and their order does not matter.

    Responses are paired by id; verdicts by question, response and responses shown, after averaging their samples. A
    verdict without `met` counts as met with a score of 0.5 or more. The majority of the samples decides; a tie is no
    decision, and flips nothing.

    Responses to one task are not independent, so intervals and tests take whole tasks as units:

    - Intervals of mean differences are of 95 %, by the task jackknife (CR3) and t with one degree of freedom less than
      there are tasks.
    - The intervals of the agents hold together with 95 %, and so do those of the questions (Bonferroni).
    - Tests flip the signs of whole tasks (`sign_flip_p`): of the sums of differences, and of gained minus lost passes.
      Over agents and over questions, Holm's adjusted p-values are next to the raw ones.
    - Ranks are taken of rewards rounded to 12 decimals, so that rounding errors do not break ties.

    Args:
        a: the traces of the first run.
        b: the traces of the second run; every difference is B - A.
        passing: a response passes with a reward of at least this, but for rounding errors (1e-12). Any finite number.
        margins: non-inferiority conditions to test.
        largest_loss: the most that the mean reward of one task can lose, at least 0: 1 for rewards from 0 to 1. If a
            task lost more, that is taken.

    Raises:
        InputError: nothing can be paired, a response occurs twice in a run or belongs to another task in the other run,
            a reward is beyond 1e300, or `passing` is not finite.
    """
    return compare_responses(map(from_trace, a), map(from_trace, b), passing, margins, largest_loss)


def compare_responses(
    a: Iterable[ComparedResponse],
    b: Iterable[ComparedResponse],
    passing: float = 0.5,
    margins: Sequence[Margin] = (),
    largest_loss: float = 1.0,
) -> Comparison:
    """Compare the responses of two runs, as `compare` does; `read_responses` reads those of a stored run."""
    if not math.isfinite(passing):
        raise InputError(f"a response cannot pass with a reward of {passing}; name a finite number, such as 0.5")
    slots: dict[Slot, int] = {}
    sides = Side("A", slots), Side("B", slots)
    for side, responses in zip(sides, (a, b), strict=True):
        side.add_all(responses)
    ids = pair_ids(*sides)
    tasks = number_tasks(sides[0], ids)
    rewards = pair_rewards(*sides, ids, tasks)
    overall = paired_difference(rewards.a, rewards.b, rewards.tasks)
    counts = count_responses(*sides, ids)
    passes = sum_passes(rewards, passing)
    changed = {"mean_delta_p": overall.changed_tasks, "pass_p": len(flippable_sums(passes))}
    agents = list(_by_agent(rewards, [sides[0].responses[name].agent for name in ids]))
    verdicts_a, verdicts_b = (side.verdicts(ids) for side in sides)
    verdicts = PairedVerdicts(verdicts_a, verdicts_b, list(slots), ids, tasks)
    questions = verdicts.by_question()
    return Comparison(
        **counts,
        **reward_statistics(rewards, overall, passes, passing),
        judged_both=len(verdicts.keys),
        flips=int(verdicts.flipped.sum()),
        flip_rate=float(verdicts.flipped.mean()) if len(verdicts.keys) else None,
        pass_threshold=passing,
        margins=check_margins(margins, overall.estimate, max(largest_loss, _largest_loss_seen(rewards))),
        agents=tuple(agents),
        questions=tuple(questions),
        flipped_verdicts=tuple(sorted(verdicts.flips())),
        changes=tuple(_largest_changes(rewards)),
        notes=(
            *run_notes(*sides, ids, verdicts.unequal_samples, len(verdicts.keys)),
            *failure_notes(*sides, ids),
            *task_notes(overall.estimate),
            *limits_of_tests(changed, overall.tasks),
        ),
    )


def _by_agent(rewards: PairedRewards, agents: Sequence[str | None]) -> Iterator[AgentDelta]:
    """Yield a row for each agent, ordered by name; `agents` are those of all responses in both runs."""
    left_out = Counter(agents)
    left_out.subtract(rewards.agents)
    rows: dict[str | None, list[int]] = {agent: [] for agent in agents}
    for row, agent in enumerate(rewards.agents):
        rows[agent].append(row)
    names = sorted(rows, key=lambda agent: (agent is None, agent or ""))
    differences = [
        paired_difference(rewards.a[own], rewards.b[own], rewards.tasks[own]) for own in (rows[name] for name in names)
    ]
    for name, fields in zip(names, adjusted_fields(differences), strict=True):
        yield AgentDelta(agent=name, **fields, left_out=left_out[name])


def _largest_loss_seen(rewards: PairedRewards) -> float:
    sums, sizes = sum_by_task(rewards.deltas, rewards.tasks)
    return float(np.max(-sums / sizes, initial=0.0))


def _largest_changes(rewards: PairedRewards) -> Iterator[RewardChange]:
    """Yield the largest changes of a reward, ties by id. Unchanged rewards are left out."""
    deltas = rewards.deltas
    for i in np.argsort(-np.abs(deltas), kind="stable")[:_MAX_CHANGES]:  # the ids are sorted
        if deltas[i]:
            a = float(rewards.a[i])
            b = float(rewards.b[i])
            yield RewardChange(response_id=rewards.ids[i], a=a, b=b, delta=float(deltas[i]))
