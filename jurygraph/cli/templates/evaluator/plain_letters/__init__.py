"""Evaluators for jurygraph: is a letter plain, and warm?"""

from collections.abc import Mapping
from importlib.resources import files

import jurygraph as jg

STIFF = ("pursuant to", "utilize", "prior to", "aforementioned", "in due course")


@jg.evaluator(layer="check")
def plain_words(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
    """Score a letter by the share of the stiff words that it avoids."""
    text = response.text.lower()
    if not text.strip():
        return jg.Verdict(score=0.0, reason="there is nothing in it")
    found = [words for words in STIFF if words in text]
    return jg.Verdict(
        score=1.0 - len(found) / len(STIFF), reason=f"stiff words: {', '.join(found) or 'none'}"
    )


class Warm(jg.JudgeEvaluator):
    """Judge, by a model with the prompt warm.md, whether a letter says something that shows concern for its reader."""

    prompt = jg.read_prompt(files(__name__) / "warm.md")

    def __init__(self, house: str = "a shop") -> None:
        super().__init__()
        self.house = house

    def item(self, inputs: jg.EvaluatorInput) -> jg.Item:
        return jg.Item("The letter says something that shows concern for this reader.", jg.Binary())

    def prompt_variables(self, inputs: jg.EvaluatorInput) -> Mapping[str, str]:
        return {"house": self.house}
