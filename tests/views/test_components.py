"""By which components an agent is ahead: what each adds to the mean rewards."""

from jurygraph.schema import Config, EvaluatorUse
from jurygraph.views.agents import RankedAgent
from jurygraph.views.components import compare_components

USES = (EvaluatorUse(use="criteria"),)


def ranked(agent: str, responses: int, scored: int) -> RankedAgent:
    return RankedAgent(agent, responses, scored, scored, None, None, None)


def test_a_component_adds_nothing_where_it_does_not_apply() -> None:
    config = Config(evaluators=USES, reward={"match": 2.0, "goal": 1.0, "unused": 0.0})
    means = {
        ("match", "ada"): (1.0, 3),  # of 6: it does not apply to the others
        ("match", "bob"): (1 / 3, 3),
        ("goal", "ada"): (0.95, 6),
        ("goal", "bob"): (0.05, 6),
    }
    goal, match = compare_components([ranked("ada", 6, 6), ranked("bob", 7, 6)], means, config)
    assert (goal.component, match.component) == ("goal", "match")
    assert [round(row.points, 6) for row in goal.agents] == [0.0, 0.9]
    assert [round(row.points, 6) for row in match.agents] == [0.0, round(2 * (3 - 1) / 6, 6)]
    assert [(row.judged, row.left_out) for row in match.agents] == [(3, 3), (3, 4)]


def test_there_is_nothing_to_compare_with_one_agent_or_one_component() -> None:
    means = {("match", "ada"): (1.0, 6), ("match", "bob"): (0.5, 6)}
    both = [ranked("ada", 6, 6), ranked("bob", 6, 6)]
    two = Config(evaluators=USES, reward={"match": 1.0, "goal": 1.0})
    assert compare_components(both[:1], means, two) == []
    assert compare_components(both, means, Config(evaluators=USES, reward={"match": 1.0})) == []
