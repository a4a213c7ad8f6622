"""Global signals by an embedder or a reranker: similarity to the reference, relevance to the query (MACRM, §3.1)."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from jurygraph.agents.roles import BatchEvaluator, EvaluatorInput, failed_verdict
from jurygraph.arrays import Floats
from jurygraph.models.embedding import (
    embed_distinct_texts,
    open_embedder,
    open_reranker,
    send_in_batches,
)
from jurygraph.models.request import Fault
from jurygraph.schema import Verdict
from jurygraph.schema.frozen_model import ParamsModel, StrictBool
from jurygraph.schema.task import query_to_text

_EMPTY_TEXT_VERDICT = Verdict(score=0.0, reason="there is nothing in it")


class Similarity(BatchEvaluator):
    """R_sim = max(0, cos) of the embeddings of the whole response and of the task's reference (MACRM Eq. 2, our
    reading).

    Negation misleads it: a sentence and its negation are similar, often more than a paraphrase. So do not use it alone:
    combine it with `maths.accuracy`, or another evaluator that knows what is correct. It abstains without a reference.

    The embedder is a model of its own, so it works under `model: none`. Its cost is not part of --max-cost, and a dry
    run with a model calls it too.
    """

    class Params(ParamsModel):
        embedder: str
        """A name that `open_embedder` accepts, such as sentence-transformers:all-MiniLM-L6-v2."""

    name = "similarity"
    task_fields = ("reference",)
    branch = "specialists"
    layer = "model"
    bounds_its_time = True

    settings: Params

    def _set_up_from_settings(self) -> None:
        self._embedder = open_embedder(self.settings.embedder)
        self.version = f"1 {self._embedder.version}"

    def close(self) -> None:
        self._embedder.close()

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts; the reference of a group is embedded once."""
        verdicts: list[Verdict | None] = []
        texts: list[str] = []
        for inputs in batch:
            response = inputs.response.text
            reference = inputs.task.reference or ""
            if not reference.strip():
                verdicts.append(Verdict.abstain("the task has no reference to be near to"))
            elif not response.strip():  # many servers refuse an empty text
                verdicts.append(_EMPTY_TEXT_VERDICT)
            else:
                verdicts.append(None)
                texts += (response, reference)
        vectors = iter(await embed_distinct_texts(self._embedder, texts))
        return [verdict or _build_verdict(next(vectors), next(vectors)) for verdict in verdicts]


def _build_verdict(response: Floats | Fault, reference: Floats | Fault) -> Verdict:
    if isinstance(reference, Fault):  # not the response's fault, so this is reported first
        return Verdict.fail(reference.kind, f"the reference cannot be embedded: {reference}")
    if isinstance(response, Fault):
        return failed_verdict(response)
    cosine = float(np.dot(response, reference))
    score = min(1.0, max(0.0, cosine))  # rounding errors could lead beyond 1
    reason = f"cosine with the reference {cosine:.3f}"
    return Verdict(score=score, native=cosine, scale=(-1, 1), reason=reason)


class QueryRelevance(BatchEvaluator):
    """Score the response as a document for the task's query with a reranker, in [0, 1] (MACRM Eq. 1).

    The paper's ranker is Qwen3-Reranker-0.6B (Table 3). A cross-encoder's logit x counts as 1 / (1 + exp(-x)), which is
    the probability of "yes" against "no" for Qwen3-Reranker. A server's `relevance_score` counts unchanged, and one
    outside [0, 1] is a failure; with `logits` it counts like a cross-encoder's. If a server compares its documents with
    each other, a response's score depends on its group: use one that scores each independently.

    The score measures if a response is about the query, not if it is correct: do not use it alone. The reranker is a
    model of its own, so it works under `model: none`. Its cost is not part of --max-cost, and a dry run with a model
    calls it too. To rank by a judge, use `pairwise` with the combiner `win-share`.
    """

    class Params(ParamsModel):
        ranker: str
        """A name that `open_reranker` accepts, such as sentence-transformers:Qwen/Qwen3-Reranker-0.6B."""
        logits: StrictBool = False
        """Set this if a server returns logits, as llama.cpp does of cross-encoders, though not of Qwen3-Reranker."""

    name = "ranker"
    branch = "specialists"
    layer = "model"
    bounds_its_time = True

    settings: Params

    def _set_up_from_settings(self) -> None:
        self._reranker = open_reranker(self.settings.ranker, self.settings.logits)
        self.version = f"1 {self._reranker.version}"

    def close(self) -> None:
        self._reranker.close()

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts; documents of one query share requests, and empty responses are not sent."""
        verdicts = []
        for query, query_inputs in groupby(
            batch, key=lambda inputs: query_to_text(inputs.task.query)
        ):
            documents = [inputs.response.text for inputs in query_inputs]
            score = partial(self._reranker.score, query)
            scores = iter(await send_in_batches(score, list(filter(str.strip, documents))))
            verdicts += [
                self._build_verdict(next(scores)) if document.strip() else _EMPTY_TEXT_VERDICT
                for document in documents
            ]
        return verdicts

    def _build_verdict(self, score_or_fault: Any) -> Verdict:
        if isinstance(score_or_fault, Fault):
            return failed_verdict(score_or_fault)
        score = float(score_or_fault)
        if self._reranker.logits:
            reason = f"logit {score:.3f} of {self._reranker.name}"
            return Verdict(score=sigmoid(score), native=score, reason=reason)
        if not 0.0 <= score <= 1.0:
            return Verdict.fail(
                "unreadable",
                f"{self._reranker.name}: its relevance_score {score!r} lies outside [0, 1]; "
                "where it gives logits, write params: {logits: true}",
            )
        score = abs(score)  # turns -0.0, which is in the range, into 0.0
        return Verdict(score=score, reason=f"relevance {score:.3f} by {self._reranker.name}")


def sigmoid(logit: float) -> float:
    """Return 1 / (1 + exp(-x)), for any finite x."""
    if logit >= 0.0:
        return 1.0 / (1.0 + math.exp(-logit))
    # With -logit, exp would overflow.
    return math.exp(logit) / (1.0 + math.exp(logit))
