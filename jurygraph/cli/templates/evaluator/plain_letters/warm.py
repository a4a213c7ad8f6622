"""Warmth, judged by a model with the prompt warm.md."""

from collections.abc import Mapping
from importlib.resources import files

import jurygraph as jg


class Warm(jg.JudgeEvaluator):
    """Judge whether a letter says something that shows concern for its reader."""

    prompt = jg.read_prompt(files("plain_letters") / "warm.md")

    def __init__(self, house: str = "a shop") -> None:
        super().__init__()
        self.house = house

    def item(self, inputs: jg.EvaluatorInput) -> jg.Item:
        return jg.Item("The letter says something that shows concern for this reader.", jg.Binary())

    def prompt_variables(self, inputs: jg.EvaluatorInput) -> Mapping[str, str]:
        return {"house": self.house}
