"""Base class of evaluators that take every verdict on a response from one call."""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from jurygraph.agents.roles import BatchEvaluator, EvaluatorInput
from jurygraph.schema import Layer, Verdict


class SingleCallEvaluator(BatchEvaluator):
    """Ask a model once about a response, and read all verdicts from the reply."""

    layer: Layer = "model"
    uses_model = True

    @abstractmethod
    async def judge_response(self, inputs: EvaluatorInput) -> Mapping[str, Verdict]:
        """Return all verdicts on a response, by the subjects of their questions."""

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts, in the order of `batch`; those on one response and sample come from one call."""
        calls = {(inputs.response.id, inputs.sample): inputs for inputs in batch}
        judged = await asyncio.gather(*map(self.judge_response, calls.values()))
        verdicts = dict(zip(calls, judged, strict=True))
        return [verdicts[inputs.response.id, inputs.sample][inputs.question.subject] for inputs in batch]
