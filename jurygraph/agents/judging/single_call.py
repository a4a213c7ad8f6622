"""Base class of evaluators that take every verdict on a response from one call."""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from jurygraph.agents.roles import BatchEvaluator, EvaluatorInput
from jurygraph.schema import Layer, Verdict


class SingleCallEvaluator(BatchEvaluator):
    """Ask a model once about a response, and read all verdicts from the reply."""

    layer: Layer = "model"
    asks_model = True

    @abstractmethod
    async def judged(self, ask: EvaluatorInput) -> Mapping[str, Verdict]:
        """Return all verdicts on a response, by the subjects of their questions."""

    async def answer_all(self, asks: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts, in the order of `asks`; those on one response and sample come from one call."""
        calls = {(ask.response.id, ask.sample): ask for ask in asks}
        judged = await asyncio.gather(*map(self.judged, calls.values()))
        verdicts = dict(zip(calls, judged, strict=True))
        return [verdicts[ask.response.id, ask.sample][ask.question.subject] for ask in asks]
