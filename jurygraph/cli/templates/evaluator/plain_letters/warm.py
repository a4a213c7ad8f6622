"""Warmth, judged by a model; warm.md is the prompt."""

from collections.abc import Mapping
from importlib.resources import files

import jurygraph as jg


class Warm(jg.Judging):
    """Judge if a letter says something that shows concern for its reader."""

    prompt = jg.read_prompt(files("plain_letters") / "warm.md")

    def __init__(self, house: str = "a shop") -> None:
        super().__init__()
        self.house = house

    def item(self, ask: jg.Ask) -> jg.Item:
        return jg.Item("The letter says something that shows concern for this reader.", jg.MetOrNot())

    def beside(self, ask: jg.Ask) -> Mapping[str, str]:
        return {"house": self.house}
