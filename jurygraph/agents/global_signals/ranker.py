"""How well a response answers the query, by a reranker (MACRM Eq. 1)."""

import math
from collections.abc import Sequence
from itertools import groupby

from jurygraph.agents.roles import Ask, Together
from jurygraph.errors import ConfigError
from jurygraph.models.embedding.embedder import AT_ONCE
from jurygraph.models.embedding.opening import open_reranker
from jurygraph.models.faults import Fault
from jurygraph.schema import Branch, Layer, Verdict
from jurygraph.schema.task import words_of

EXAMPLE = "sentence-transformers:cross-encoder/ms-marco-MiniLM-L6-v2"
_NOTHING = Verdict(score=0.0, reason="there is nothing in it")


class Ranker(Together):
    """What a reranker says of the response as a document for the task's query, in [0, 1] (MACRM Eq. 1).

    A cross-encoder's logit x counts 1 / (1 + exp(-x)). A server's `relevance_score` counts as it is, and one outside
    [0, 1] is a failure; with `logits` it counts like a cross-encoder's. Where a server looks at its documents side by
    side, a response's score hangs on its group: name one that scores each by itself.

    It tells whether a response is about the query, not whether it is right: never a verdict on its own. The reranker is
    this evaluator's own model, so that it works under `model: none`. What it costs is not in --max-cost, and a
    dry run under a model asks it, too. To rank by a judge, use `pairwise` with the combiner `win-share`.

    Args:
        ranker: as `open_reranker` has it, such as sentence-transformers:cross-encoder/ms-marco-MiniLM-L6-v2.
        logits: whether a server gives logits, as llama.cpp does.
    """

    name = "ranker"
    layer: Layer = "model"

    def __init__(self, ranker: str | None = None, logits: bool = False) -> None:
        if ranker is None:
            raise ConfigError(f"ranker: params name no ranker; write params: {{ranker: {EXAMPLE}}}")
        self._reranker = open_reranker(ranker, logits)
        self.version = f"1 {self._reranker.version}"

    @property
    def branch(self) -> Branch:
        return "specialists"

    def close(self) -> None:
        self._reranker.close()

    async def answer_all(self, asks: Sequence[Ask]) -> list[Verdict]:
        """The verdicts; those on one query are asked for together, and those on nothing at all not."""
        verdicts: list[Verdict] = []
        for query, own in groupby(asks, key=lambda ask: words_of(ask.task.query)):
            documents = [ask.response.text for ask in own]
            judged = iter(await self._all_judged(query, [document for document in documents if document.strip()]))
            verdicts += [next(judged) if document.strip() else _NOTHING for document in documents]
        return verdicts

    async def _all_judged(self, query: str, documents: Sequence[str]) -> list[Verdict]:
        batches = (documents[start : start + AT_ONCE] for start in range(0, len(documents), AT_ONCE))
        return [verdict for batch in batches for verdict in await self._judged(query, batch)]

    async def _judged(self, query: str, documents: Sequence[str]) -> list[Verdict]:
        """A fault that a document provoked, as one that is too long does, takes that document alone."""
        try:
            scores = await self._reranker.score(query, documents)
        except Fault as fault:
            if fault.cause == "infrastructure" or len(documents) == 1:
                return [Verdict(status="failed", failure=fault.failure, reason=str(fault))] * len(documents)
            return [one for document in documents for one in await self._judged(query, [document])]
        return [self._verdict(float(score)) for score in scores]

    def _verdict(self, score: float) -> Verdict:
        if self._reranker.logits:
            return Verdict(score=sigmoid(score), native=score, reason=f"logit {score:.3f} of {self._reranker.name}")
        if not 0.0 <= score <= 1.0:
            wrong = f"{self._reranker.name}: its relevance_score {score!r} lies outside [0, 1]"
            return Verdict.failed("unreadable", f"{wrong}; where it gives logits, write params: {{logits: true}}")
        score = abs(score)  # of -0.0, which lies in it
        return Verdict(score=score, reason=f"relevance {score:.3f} by {self._reranker.name}")


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(-x)), for any finite x."""
    if logit >= 0.0:
        return 1.0 / (1.0 + math.exp(-logit))
    return math.exp(logit) / (1.0 + math.exp(logit))
