"""What evaluators that ask a model about a response share, so that no credit rests on what does not stand in it."""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, get_args

from jurygraph.agents.functions import source_version, states_version
from jurygraph.agents.judging.items import Item, judge_items
from jurygraph.agents.roles import Ask, DeriverAsk, Together
from jurygraph.errors import ConfigError
from jurygraph.prompts import Prompt
from jurygraph.schema import Layer, Verdict

AT_ONCE = 4
"""Things judged in one call, at most (GEAR, D.1). More save tokens, and each is judged less by itself."""
Profile = Literal["full", "compact"]


class Judging(Together):
    """Asks a model about up to four items of a response in one call, each by itself.

    What it finds needs evidence (see `judge_items`). A `compact` profile gives neither reasons nor quotations (GEAR,
    D.4), so that nothing it says rests on evidence. Its version is that of the class and that of its prompt.

    Args:
        profile: `full`, or `compact` for fewer tokens.
    """

    layer: Layer = "model"
    asks_model = True
    noun: str = "item"
    """What an item is called in prompts and replies."""
    version = "2"

    @property
    @abstractmethod
    def prompt(self) -> Prompt:
        """What the model is told: one that shows `items`, as one that extends the prompt `items` does."""

    def __init__(self, profile: Profile = "full") -> None:
        if profile not in get_args(Profile):
            raise ConfigError(f"{self.name}: profile is one of {', '.join(get_args(Profile))}, not {profile!r}")
        self._compact = profile == "compact"
        if "items" not in self.prompt.needs:
            raise ConfigError(f"prompt {self.prompt.id!r} shows no items; write `extends: items` in its front matter")
        own = self.version if states_version(type(self), Judging) else source_version(type(self))
        self.version = f"{own} prompt {self.prompt.edition}"

    @abstractmethod
    def item(self, ask: Ask) -> Item:
        """What is to be judged."""

    def beside(self, ask: Ask) -> Mapping[str, Any]:
        """What else the prompt shows: the same for all that is asked together."""
        return {}

    def company(self, ask: Ask) -> str:
        """Asks about one response go together where this is equal."""
        return ""

    async def answer_all(self, asks: Sequence[Ask]) -> list[Verdict]:
        """The verdicts, in the order of the asks; what is asked together hangs on ids alone, so that it is the same
        whenever the same is asked."""
        places = sorted(range(len(asks)), key=lambda place: self._place(asks[place]))
        batches = [
            batch
            for _, own in groupby(places, key=lambda place: self._place(asks[place])[:3])
            for batch in _chunks(list(own))
        ]
        found = await asyncio.gather(*(self._judged([asks[place] for place in batch]) for batch in batches))
        verdicts = {
            place: one
            for batch, ones in zip(batches, found, strict=True)
            for place, one in zip(batch, ones, strict=True)
        }
        return [verdicts[place] for place in range(len(asks))]

    def _place(self, ask: Ask) -> tuple[str, int, str, str]:
        return ask.response.id, ask.sample, self.company(ask), ask.question.id

    async def _judged(self, asks: Sequence[Ask]) -> list[Verdict]:
        ask, gateway = asks[0], asks[0].gateway
        assert gateway is not None, "asked without a model"
        items = {f"{self.noun}_{place}": self.item(one) for place, one in enumerate(asks, start=1)}
        variables, text = {**shared(ask), **self.beside(ask)}, ask.response.text
        return await judge_items(gateway, self.prompt, items, variables, text, sample=ask.sample, compact=self._compact)


def shared(ask: Ask | DeriverAsk) -> dict[str, Any]:
    """What every question about a response shows: the task, a reference, and the response."""
    view = ask.task
    if isinstance(view.query, str):
        query = view.query
    else:
        query = "\n\n".join(f"{message.role}: {message.content}" for message in view.query)
    return {"query": query, "reference": view.reference, "response": ask.response.text}


def _chunks(places: Sequence[int]) -> list[Sequence[int]]:
    return [places[start : start + AT_ONCE] for start in range(0, len(places), AT_ONCE)]
