"""By which components an agent is ahead: what each adds to the mean rewards."""

import pytest

from jurygraph.inference.clusters import Estimate
from jurygraph.schema import Config, EvaluatorUse
from jurygraph.views.agents import RankedAgent
from jurygraph.views.components import (
    AgentComponent,
    ComponentByAgent,
    JudgedValues,
    add_all_else,
    compare_components,
    conclude_components,
)

USES = (EvaluatorUse(use="criteria"),)


def ranked(agent: str, responses: int, scored: int) -> RankedAgent:
    return RankedAgent(agent, responses, scored, scored, None, None, None)


def judged(means: dict[tuple[str, str], tuple[float, int]]) -> list[JudgedValues]:
    """Return values by component and agent, from their mean and number, each in a unit of its own."""
    return [
        JudgedValues(component, agent, unit, 1, mean)
        for (component, agent), (mean, count) in means.items()
        for unit in range(count)
    ]


def test_a_component_adds_nothing_where_it_does_not_apply() -> None:
    config = Config(evaluators=USES, reward={"match": 2.0, "goal": 1.0, "unused": 0.0})
    means = {
        ("match", "ada"): (1.0, 3),  # of 6: it does not apply to the others
        ("match", "bob"): (1 / 3, 3),
        ("goal", "ada"): (0.95, 6),
        ("goal", "bob"): (0.05, 6),
    }
    agents = [ranked("ada", 6, 6), ranked("bob", 7, 6)]
    goal, match = compare_components(agents, judged(means), config)
    assert (goal.component, match.component) == ("goal", "match")
    assert [round(row.points, 6) for row in goal.agents] == [0.0, 0.9]
    assert [round(row.points, 6) for row in match.agents] == [0.0, round(2 * (3 - 1) / 6, 6)]
    assert [(row.judged, row.left_out) for row in match.agents] == [(3, 3), (3, 4)]


def test_all_else_makes_the_points_add_up_to_the_difference_of_the_means() -> None:
    config = Config(evaluators=USES, reward={"match": 2.0, "goal": 1.0})
    means = {("match", "ada"): (1.0, 2), ("match", "bob"): (0.5, 2), ("goal", "bob"): (1.0, 2)}
    agents = [
        ranked(agent, 2, 2)._replace(mean=Estimate(mean, None, None, None, 1))
        for agent, mean in {"ada": 2.0, "bob": 0.75}.items()
    ]
    agents.append(ranked("cas", 2, 0))
    components = compare_components(agents, judged(means), config)
    *rows, rest = add_all_else(components, agents, (), 1.0)
    assert [row.component for row in rows] == ["match", "goal"]
    assert (rest.component, rest.weight) == ("all else", None)
    assert [agent.points for agent in rest.agents] == [0.0, 1.25, 0.0]
    assert sum(row.agents[1].points for row in (*rows, rest)) == 1.25
    even = [*agents[:1], agents[1]._replace(mean=Estimate(2.0, None, None, None, 1))]
    assert add_all_else(rows, even, (), 1.0) == rows
    # what a gate takes is a row of its own: of a must, say
    losses = [("must refund", "bob", 1.0), ("must refund", "bob", 0.5), ("must", "ada", 0.0)]
    *_, gate, rest = add_all_else(components, agents, losses, 2.0)
    assert (gate.component, [row.points for row in gate.agents]) == ("must refund", [0.0, 1.5, 0.0])
    assert [row.points for row in rest.agents] == [0.0, -0.25, 0.0]


def test_a_component_of_weight_0_has_means_without_points() -> None:
    config = Config(evaluators=USES, reward={"match": 1.0, "enough": 0.0})
    means = {("enough", "ada"): (0.2, 6), ("enough", "bob"): (0.9, 6)}
    agents = [ranked("ada", 6, 6), ranked("bob", 6, 6)]
    _, enough = compare_components(agents, judged(means), config)
    assert [row.mean for row in enough.agents] == pytest.approx([0.2, 0.9])
    assert [row.points for row in enough.agents] == [0.0, 0.0]


def test_there_is_nothing_to_compare_with_one_agent_or_one_component() -> None:
    values = judged({("match", "ada"): (1.0, 6), ("match", "bob"): (0.5, 6)})
    both = [ranked("ada", 6, 6), ranked("bob", 6, 6)]
    two = Config(evaluators=USES, reward={"match": 1.0, "goal": 1.0})
    assert compare_components(both[:1], values[:6], two) == []
    assert compare_components(both, values, Config(evaluators=USES, reward={"match": 1.0})) == []


def test_how_far_a_mean_is_behind_has_an_interval_paired_over_what_both_have() -> None:
    config = Config(evaluators=USES, reward={"match": 1.0, "enough": 0.0})
    values = [
        JudgedValues(component, agent, unit, 1, base + lead)
        for unit, base in enumerate((0.0, 0.2, 0.4, 0.6))
        for component, leads in {"match": (0.1, 0.3), "enough": (0.3, 0.1)}.items()
        for agent, lead in (("ada", leads[unit % 2]), ("bob", 0.0))
    ]
    values.append(JudgedValues("match", "bob", 4, 1, 1.0))  # ada was not judged there
    components = compare_components([ranked("ada", 4, 4), ranked("bob", 5, 5)], values, config)
    for component in components:
        best, behind = component.agents
        assert (best.low, best.high) == (None, None)
        # t(3) at 1 - .05 / 2 / 2 is 4.1765, and the standard error of .1, .3, .1, .3 is .2 / √12
        half = 4.1765 * 0.2 / 12**0.5
        assert (behind.low, behind.high) == (
            pytest.approx(0.2 - half, abs=1e-4),
            pytest.approx(0.2 + half, abs=1e-4),
        )
    assert str(components[-1].agents[1]) == "0.3000, -0.0411 to 0.4411 behind, 1 left out"


def test_means_that_are_printed_alike_have_no_order() -> None:
    agents = [
        AgentComponent(agent, 0.5, 6, 0, points) for agent, points in (("ada", 0.0), ("bob", 1e-6))
    ]
    sentence = conclude_components([ComponentByAgent("match", 1.0, agents)])
    assert (
        sentence
        == "Over all responses with a reward, the mean of ada is level with that of bob: equal in all."
    )
