"""One call, from which every verdict on a response comes."""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from jurygraph.agents.roles import Ask, Together
from jurygraph.schema import Layer, Verdict


class OneCall(Together):
    """Asks a model once about a response, and finds in the reply whatever is asked of it."""

    layer: Layer = "model"
    asks_model = True

    @abstractmethod
    async def judged(self, ask: Ask) -> Mapping[str, Verdict]:
        """All verdicts on a response, by their questions' subjects."""

    async def answer_all(self, asks: Sequence[Ask]) -> list[Verdict]:
        """The verdicts, in the order of the asks; those on one response and sample are from one call."""
        calls = {(ask.response.id, ask.sample): ask for ask in asks}
        judged = await asyncio.gather(*map(self.judged, calls.values()))
        verdicts = dict(zip(calls, judged, strict=True))
        return [verdicts[ask.response.id, ask.sample][ask.question.subject] for ask in asks]
