"""How near a response is to the reference in meaning (MACRM, R_sim)."""

from collections.abc import Sequence

import numpy as np

from jurygraph.agents.roles import Ask, Together
from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import Floats
from jurygraph.models.embedding.opening import open_embedder
from jurygraph.models.embedding.remembering import Remembering
from jurygraph.models.faults import Fault
from jurygraph.schema import Branch, Layer, Verdict

EXAMPLE = "sentence-transformers:all-MiniLM-L6-v2"


class Similarity(Together):
    """R_sim = max(0, cos) of the embeddings of the whole response and of the task's reference (MACRM Eq. 2, our
    reading).

    Negation fools it: a sentence and its denial are near each other, often nearer than a paraphrase. So it is never a
    verdict on its own: weigh it beside `maths.accuracy`, or another that knows what is right. It abstains without a
    reference.

    The embedder is this evaluator's own model, so that it works under `model: none`. What it costs is not in
    --max-cost, and a dry run under a model asks it, too.

    Args:
        embedder: as `open_embedder` has it, such as sentence-transformers:all-MiniLM-L6-v2.
    """

    name = "similarity"
    layer: Layer = "model"

    def __init__(self, embedder: str | None = None) -> None:
        if embedder is None:
            raise ConfigError(f"similarity: params name no embedder; write params: {{embedder: {EXAMPLE}}}")
        self._embedder = Remembering(open_embedder(embedder))
        self.version = f"1 {self._embedder.embedder.version}"

    @property
    def branch(self) -> Branch:
        return "specialists"

    def close(self) -> None:
        self._embedder.close()

    async def answer_all(self, asks: Sequence[Ask]) -> list[Verdict]:
        """The verdicts; the reference of a group is embedded once."""
        known = [_without_asking(ask) for ask in asks]
        texts = [
            text
            for ask, verdict in zip(asks, known, strict=True)
            if verdict is None
            for text in (ask.response.text, ask.task.reference or "")
        ]
        vectors = iter(await self._embedder.embed(texts))
        return [verdict or _verdict(next(vectors), next(vectors)) for verdict in known]


def _without_asking(ask: Ask) -> Verdict | None:
    """The verdict where there is nothing to embed; many servers refuse a text that is empty."""
    if not (ask.task.reference or "").strip():
        return Verdict.abstained("the task has no reference to be near to")
    return None if ask.response.text.strip() else Verdict(score=0.0, reason="there is nothing in it")


def _verdict(response: Floats | Fault, reference: Floats | Fault) -> Verdict:
    if isinstance(reference, Fault):  # which is not the response's doing, whatever is wrong with it
        return Verdict.failed(reference.kind, f"the reference cannot be embedded: {reference}")
    if isinstance(response, Fault):
        return Verdict(status="failed", failure=response.failure, reason=str(response))
    cosine = float(np.dot(response, reference))
    return Verdict(
        score=nearness(cosine), native=cosine, scale=(-1, 1), reason=f"cosine with the reference {cosine:.3f}"
    )


def nearness(cosine: float) -> float:
    """max(0, cos), and no more than 1, which rounding may pass."""
    return min(1.0, max(0.0, cosine))
