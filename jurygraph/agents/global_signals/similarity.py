"""Similarity of meaning between a response and the reference (MACRM, R_sim)."""

from collections.abc import Sequence

import numpy as np

from jurygraph.agents.roles import BatchEvaluator, EvaluatorInput
from jurygraph.aggregation.arrays import Floats
from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import CachingEmbedder
from jurygraph.models.embedding.factory import open_embedder
from jurygraph.models.faults import Fault
from jurygraph.schema import Branch, Layer, Verdict

EXAMPLE = "sentence-transformers:all-MiniLM-L6-v2"


class Similarity(BatchEvaluator):
    """R_sim = max(0, cos) of the embeddings of the whole response and of the task's reference (MACRM Eq. 2, our
    reading).

    Negation misleads it: a sentence and its negation are similar, often more than a paraphrase. So do not use it alone:
    combine it with `maths.accuracy`, or another evaluator that knows what is correct. It abstains without a reference.

    The embedder is a model of its own, so it works under `model: none`. Its cost is not part of --max-cost, and a dry
    run with a model calls it too.

    Args:
        embedder: a name that `open_embedder` accepts, such as sentence-transformers:all-MiniLM-L6-v2.
    """

    name = "similarity"
    layer: Layer = "model"

    def __init__(self, embedder: str | None = None) -> None:
        if embedder is None:
            raise ConfigError(f"similarity: params name no embedder; write params: {{embedder: {EXAMPLE}}}")
        self._embedder = CachingEmbedder(open_embedder(embedder))
        self.version = f"1 {self._embedder.embedder.version}"

    @property
    def branch(self) -> Branch:
        return "specialists"

    def close(self) -> None:
        self._embedder.close()

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts; the reference of a group is embedded once."""
        early_verdicts = [_verdict_without_model(inputs) for inputs in batch]
        texts = [
            text
            for inputs, verdict in zip(batch, early_verdicts, strict=True)
            if verdict is None
            for text in (inputs.response.text, inputs.task.reference or "")
        ]
        vectors = iter(await self._embedder.embed(texts))
        return [verdict or _build_verdict(next(vectors), next(vectors)) for verdict in early_verdicts]


def _verdict_without_model(inputs: EvaluatorInput) -> Verdict | None:
    """Return the verdict if there is nothing to embed (many servers refuse an empty text), else None."""
    if not (inputs.task.reference or "").strip():
        return Verdict.abstain("the task has no reference to be near to")
    return None if inputs.response.text.strip() else Verdict(score=0.0, reason="there is nothing in it")


def _build_verdict(response: Floats | Fault, reference: Floats | Fault) -> Verdict:
    if isinstance(reference, Fault):  # not the response's fault, so this is reported first
        return Verdict.fail(reference.kind, f"the reference cannot be embedded: {reference}")
    if isinstance(response, Fault):
        return Verdict(status="failed", failure=response.failure, reason=str(response))
    cosine = float(np.dot(response, reference))
    return Verdict(
        score=nearness(cosine), native=cosine, scale=(-1, 1), reason=f"cosine with the reference {cosine:.3f}"
    )


def nearness(cosine: float) -> float:
    """Return max(0, cos), limited to 1 against rounding errors."""
    return min(1.0, max(0.0, cosine))
