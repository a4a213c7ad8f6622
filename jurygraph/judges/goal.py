"""The ready rubric for an agent's work: whether the user's goal is reached, by what the tools show."""

from jurygraph.agents.roles import EvaluatorInput
from jurygraph.judges.criteria import Binary, Item, JudgeEvaluator
from jurygraph.prompts import load_prompt

_GOAL_ITEM = Item(
    "At the end, all that the user wanted is done, or refused where the rules forbid it; and nothing else was changed.",
    Binary(),
)


class GoalReached(JudgeEvaluator):
    """Score whether the user's goal is reached at the end of a conversation; the evidence names its messages."""

    name = "goal_reached"
    judges_whole_conversation = True
    version = "1"
    prompt = load_prompt("goal")

    def item(self, inputs: EvaluatorInput) -> Item:
        return _GOAL_ITEM
