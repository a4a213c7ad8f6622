"""The models of a comparison."""

from dataclasses import dataclass

from pydantic import Field

from jurygraph.schema.frozen_model import Count, Flag, FrozenModel, Number, Positive, Unit


class ComparisonStatistics(FrozenModel):
    """All figures of a comparison that a threshold (`--gate`) can refer to; None where one cannot be computed.

    `n` is the number of responses with a reward in both runs: means, tests and correlations are over these, with whole
    tasks as independent units. A failed reward has no value; it is counted as failed, never as 0. Differences are
    B - A, intervals are of 95 %, and tests are two-sided.
    """

    paired: Count = Field(description="responses in both runs")
    only_a: Count = Field(description="responses in A only")
    only_b: Count = Field(description="responses in B only")
    n: Count = Field(description="responses with a reward in both runs")
    tasks: Count = Field(description="... tasks that they belong to")
    changed_tasks: Count = Field(description="... of which the mean reward changed")
    effective_size: Number | None = Field(description="... worth as many independent responses")
    failed_a: Count = Field(description="rewards that failed in A alone")
    failed_b: Count = Field(description="rewards that failed in B alone")
    failed_both: Count = Field(description="rewards that failed in both")
    mean_a: Number | None = Field(description="mean reward in A")
    mean_b: Number | None = Field(description="mean reward in B")
    mean_delta: Number | None = Field(description="mean of B - A")
    mean_delta_low: Number | None = Field(description="its 95 % interval: from")
    mean_delta_high: Number | None = Field(description="its 95 % interval: to")
    mean_delta_error: Number | None = Field(description="its standard error")
    mean_delta_p: Unit | None = Field(description="sign-flip test of whole tasks that it is 0: p")
    detectable_difference: Number | None = Field(description="least true mean found with a power of 80 %")
    median_delta: Number | None = Field(description="median of B - A")
    passed_a_only: Count = Field(description="responses that pass in A and not in B")
    passed_b_only: Count = Field(description="responses that pass in B and not in A")
    pass_p: Unit | None = Field(description="sign-flip test that both are as frequent: p")
    kendall_within: Number | None = Field(description="mean of Kendall's tau-b within a task")
    kendall_tasks: Count = Field(description="... tasks that have one")
    judged_both: Count = Field(description="verdicts given in both runs, samples averaged")
    flips: Count = Field(description="... of which the decision flipped")
    flip_rate: Unit | None = Field(description="... as a share")


class PairedDifference(FrozenModel):
    """Paired values of `n` responses to `tasks` tasks in A and B, and their mean difference with its interval.

    The intervals of all rows of its table hold together with 95 %. `mean_delta_p` is of the sign-flip test of whole
    tasks; `holm_p` is adjusted for all rows of its table. It can be no less than 2 ^ (1 - `changed_tasks`), the tasks
    whose mean differs. The means are None if `n` is 0, the interval where the tasks cannot tell, and p where no task
    changed.
    """

    n: Count
    tasks: Count
    changed_tasks: Count
    mean_a: Number | None
    mean_b: Number | None
    mean_delta: Number | None
    mean_delta_low: Number | None
    mean_delta_high: Number | None
    mean_delta_p: Unit | None
    holm_p: Unit | None


class AgentDelta(PairedDifference):
    """The rewards of an agent's responses that have one in both runs; `left_out` are those that failed in one."""

    agent: str | None
    left_out: Count


class QuestionDelta(PairedDifference):
    """The verdicts of one question on the responses in both runs; samples of one verdict are averaged.

    `n` verdicts are in both. `to_met` and `to_unmet` count the decisions that flipped; `largest_delta` is the maximum
    |B - A| of a score, in [0, 1]; `only_a` and `only_b` count verdicts of one run only.
    """

    question: str
    to_met: Count
    to_unmet: Count
    largest_delta: Number | None
    only_a: Count
    only_b: Count


@dataclass(frozen=True, slots=True, order=True)
class Flip:
    """A verdict whose decision flipped, with its mean scores over the samples of A and B; `met` is its decision in B.

    `responses` are the responses that the judge was shown, which distinguish verdicts against different opponents.
    """

    question: str
    response_id: str
    responses: tuple[str, ...]
    before: float
    after: float
    met: bool


class RewardChange(FrozenModel):
    """The reward of a response in both runs."""

    response_id: str
    a: Number
    b: Number
    delta: Number


class MarginTest(FrozenModel):
    """A non-inferiority condition, such as `no_worse_than=0.02`, and whether it holds.

    `p` is of the hypothesis that the true mean difference is at or below the negative margin (`no_worse_p`), where a
    task can lose `largest_loss`; the condition holds where it is below .025. `lowest` is the least difference that the
    tasks leave possible at that level, and `needed_tasks` the number of tasks alike with which the condition would
    hold, None if none would. A single task has no `p` and no `lowest`.
    """

    name: str
    margin: Positive
    holds: Flag
    p: Unit | None
    lowest: Number | None
    largest_loss: Number
    needed_tasks: Count | None


class Comparison(ComparisonStatistics):
    """Run B compared with run A: overall statistics, statistics by agent and by question, and the individual changes.

    `pass_threshold` is the reward from which a response passes. `margins` has the result of each margin condition,
    `flipped_verdicts` all flips by question and response, `changes` the 20 largest changes of a reward, `notes` other
    differences and limits of the statistics.
    """

    pass_threshold: Number
    margins: tuple[MarginTest, ...]
    agents: tuple[AgentDelta, ...]
    questions: tuple[QuestionDelta, ...]
    flipped_verdicts: tuple[Flip, ...]
    changes: tuple[RewardChange, ...]
    notes: tuple[str, ...]
