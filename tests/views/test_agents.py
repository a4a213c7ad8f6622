"""Which of two agents is better, with what failed and what is possible."""

import pytest

from jurygraph.schema import ComponentInput, ComponentSpec, Decision
from jurygraph.views.agents import (
    UnitRewards,
    conclude_ranking,
    rank_agents,
    reward_limits_of_decisions,
)


def rewards(agent: str, *values: float | tuple[float, float]) -> list[UnitRewards]:
    """Return the reward of an agent for each task; that of a pair failed, and could be anything between."""
    rows = []
    for task, value in enumerate(values):
        unit = f"task {task}"
        if isinstance(value, tuple):
            rows.append(UnitRewards(agent, unit, 1, 0, 0.0, *value))
        else:
            rows.append(UnitRewards(agent, unit, 1, 1, value, value, value))
    return rows


def test_a_difference_that_a_failed_reward_could_undo_may_be_chance() -> None:
    """As a stranger saw: the task that failed is the only one in which the other agent may be ahead."""
    failed = (0.25, 0.75)
    nova = rewards("nova", 1.0, 1.0, 0.75, failed, 0.5, 1.0, 0.25, 1.0)
    relay = rewards("relay", 0.5, 0.0, 0.75, 0.75, 0.0, 0.0, 0.25, 0.75)
    first, _ = rank_agents([*nova, *relay], (0.0, 1.0))
    lead = first.lead
    assert lead is not None
    assert lead.low is not None
    assert lead.low > 0.0
    assert (lead.left_out, lead.least, lead.most) == (1, 0.34375, 0.40625)
    assert not lead.is_clear
    assert lead.sentence.startswith(
        "nova is ahead of relay, by more than chance unless the failed rewards go against it: "
    )
    # the range is of all tasks, and need not hold the difference, which is of fewer
    assert "paired over 7 tasks where both were scored; rough" in lead.sentence
    assert lead.sentence.endswith(
        "1 failed reward left out; with all tasks it would be between 0.3438 and 0.4062 "
        "(-0.0880 to 0.7755 with its interval)."
    )


def test_a_difference_that_no_failed_reward_can_undo_is_larger_than_chance() -> None:
    better = rewards("better", *[0.9, 0.8, 0.95, 0.85] * 6, (0.0, 1.0))
    worse = rewards("worse", *[0.2, 0.1, 0.15, 0.05] * 6, 0.1)
    first, _ = rank_agents([*better, *worse], (0.0, 1.0))
    assert first.lead is not None
    assert first.lead.sentence.startswith("better is ahead of worse, by more than chance: ")
    assert "paired over 24 tasks where both were scored)." in first.lead.sentence


def test_a_higher_mean_over_other_tasks_is_not_called_a_lead() -> None:
    """The first agent is worse on all tasks that both have, and has easy ones alone."""
    first = rewards("nova", 0.4, 0.4, 1.0, 1.0)
    second = rewards("relay", 0.5, 0.5)
    best, _ = rank_agents([*first, *second], (0.0, 1.0))
    assert best.lead is not None
    assert best.lead.difference == pytest.approx(0.1)
    ahead = "relay is ahead of nova over tasks of both (nova has the higher mean over all)"
    assert best.lead.sentence.startswith(f"{ahead}, though how sure that is ")
    assert not best.lead.is_clear
    # a difference is of what both have; of the rest, one has the responses alone
    assert best.lead.sentence.endswith(" Not in it: 2 tasks that only one of them has.")


def test_agents_with_equal_means_are_level_whatever_rounding_leaves() -> None:
    (first, _) = rank_agents([*rewards("nova", 0.3, 0.2), *rewards("relay", 0.1, 0.4)], (0.0, 1.0))
    assert first.lead is not None
    assert first.lead.difference == 0.0
    assert first.lead.sentence.startswith("nova is level with relay, ")


def test_who_is_ahead_over_the_tasks_of_both_may_be_so_by_more_than_chance() -> None:
    first = rewards("nova", *[0.4, 0.41] * 15, *[1.0] * 20)
    second = rewards("relay", *[0.5, 0.52] * 15)
    best, _ = rank_agents([*first, *second], (0.0, 1.0))
    assert best.lead is not None
    ahead = "relay is ahead of nova over tasks of both (nova has the higher mean over all)"
    assert f"{ahead}, by more than chance: the difference is 0.105" in best.lead.sentence
    assert best.lead.is_clear
    # the failed reward could have changed that
    best, _ = rank_agents(
        [*first, *second, *rewards("relay", *[0.5] * 30, (0.0, 1.0))[30:]], (0, 1)
    )
    assert best.lead is not None
    assert f"{ahead}, by more than chance unless the failed rewards go" in best.lead.sentence


def test_the_best_is_compared_with_each_other_agent_and_all_intervals_hold_together() -> None:
    both = [*rewards("best", *[0.8, 0.85, 0.9] * 10), *rewards("worst", *[0.3] * 30)]
    best, middle, worst = rank_agents([*both, *rewards("middle", *[0.5] * 30)], (0.0, 1.0))
    assert (best.gap, middle.gap, worst.lead) == (None, None, None)
    assert worst.gap is not None
    assert worst.gap.sentence.startswith("best is ahead of worst, by more than chance: ")
    alone = rank_agents(both, (0.0, 1.0))[0].lead
    assert alone is not None
    assert worst.gap.difference == alone.difference
    # one of three intervals is wider than the only one
    assert worst.gap.low is not None
    assert alone.low is not None
    assert worst.gap.low < alone.low


def test_an_interval_ends_where_rewards_end() -> None:
    first, second = rank_agents(
        [*rewards("best", 1.0, 1.0, 0.5), *rewards("worst", 0.0, 0.5, 0.0)], (0.0, 1.0)
    )
    assert (first.mean and first.mean.high, second.mean and second.mean.low) == (1.0, 0.0)
    assert first.lead is not None
    assert first.lead.high == 1.0


def test_rewards_beyond_the_limits_are_not_cut_off() -> None:
    (only,) = rank_agents(rewards("own combiner", 1.5, 2.5), (0.0, 1.0))
    assert only.mean is not None
    assert only.mean.high is not None
    assert only.mean.high > 2.5


def test_limits_follow_from_weights_penalties_and_clip() -> None:
    def spec(name: str, weight: float, **inputs: float) -> ComponentSpec:
        columns = {}
        for question, size in inputs.items():
            sign = 1.0 if size > 0 else -1.0
            columns[question] = ComponentInput(
                questions=(question,), weights=(sign,), input_weight=abs(size)
            )
        direction = -1 if weight < 0 else 1
        return ComponentSpec(
            name=name,
            weight=weight,
            direction=direction,
            combiner="flat",
            version="1",
            inputs=columns,
        )

    plain = Decision(specs=(spec("good", 2.0, a=1.0), spec("bad", -0.5, b=1.0)))
    penalized = Decision(specs=(spec("rubric", 1.0, a=2.0, b=-1.0),))
    clipped = plain.model_copy(update={"clip": (0.0, 1.0)})
    assert reward_limits_of_decisions([plain], lowest_reward=0.0) == (-0.5, 2.0)
    assert reward_limits_of_decisions([penalized], lowest_reward=0.0) == (-0.5, 1.0)
    assert reward_limits_of_decisions([clipped], lowest_reward=0.0) == (0.0, 1.0)
    assert reward_limits_of_decisions([plain, penalized], lowest_reward=0.0) == (-0.5, 2.0)
    own = plain.specs[0].model_copy(update={"combiner": "weakest.Weakest"})
    unknown = plain.model_copy(update={"specs": (own, *plain.specs[1:])})
    assert reward_limits_of_decisions([plain, unknown], lowest_reward=0.0) == (
        -float("inf"),
        float("inf"),
    )
    clipped = unknown.model_copy(update={"clip": (0.0, 3.0)})
    assert reward_limits_of_decisions([plain, clipped], lowest_reward=0.0) == (-0.5, 3.0)
    assert reward_limits_of_decisions([], lowest_reward=0.0) == pytest.approx(
        (-float("inf"), float("inf"))
    )


def test_a_penalty_counts_by_all_gains_unless_a_reward_shows_that_some_do_not_apply() -> None:
    weights = {"polite": 1.0, "step": 2.0, "invented": -1.0}
    inputs = {
        name: ComponentInput(
            questions=(name,), weights=(1.0 if weight > 0 else -1.0,), input_weight=abs(weight)
        )
        for name, weight in weights.items()
    }
    spec = ComponentSpec(name="rubric", weight=1.0, combiner="flat", version="1", inputs=inputs)
    decision = Decision(specs=(spec,))
    assert reward_limits_of_decisions([decision], lowest_reward=-0.3) == (-1 / 3, 1.0)
    assert reward_limits_of_decisions([decision], lowest_reward=-0.5) == (-1.0, 1.0)


def test_an_interval_of_all_that_is_possible_tells_nothing() -> None:
    agents = rank_agents([*rewards("best", 1.0, 0.0), *rewards("worst", 0.0, 0.5)], (-1 / 3, 1.0))
    lead = agents[0].lead
    assert lead is not None
    assert lead.sentence == (
        "best is ahead of worst, though how sure that is cannot be told from 2 tasks: the difference is 0.2500 "
        "(-1.3333 to 1.3333, all that is possible, paired over 2 tasks; rough, with fewer than 20)."
    )


def test_many_differences_that_may_be_chance_have_one_conclusion() -> None:
    several = [*rewards("a", 1.0, 0.5, 0.8), *rewards("b", 0.9, 0.6, 0.7)]
    assert conclude_ranking(rank_agents(several, (0.0, 1.0))) == []  # its only sentence says it
    several += rewards("c", 0.8, 0.7, 0.5)
    expected = ["No agent is shown to be better than the next, nor the first than any other."]
    assert conclude_ranking(rank_agents(several, (0.0, 1.0))) == expected
    clear = [
        *rewards("a", *[0.8, 0.85] * 15),
        *rewards("b", *[0.3] * 30),
        *rewards("c", *[0.3] * 30),
    ]
    assert conclude_ranking(rank_agents(clear, (0.0, 1.0))) == []


def test_a_mean_of_equal_rewards_says_why_it_has_no_interval() -> None:
    ranked = rank_agents(
        [*rewards("same", 0.5, 0.5, 0.5), *rewards("once", 0.4), *rewards("both", 0.1, 0.3)],
        (0.0, 1.0),
    )
    reasons = {row.agent: row.missing_interval for row in ranked}
    assert reasons == {"same": "none: all 3 are alike", "once": None, "both": None}
