"""MACRM's Data Optimizer as evaluators: `optimizer.efficiency` and `optimizer.diversity`.

The paper gives no formulas; these are ours, each in [0, 1]. None of them knows what is correct: a short or unusual
answer may be wrong. Give them small weights, or multiply them with accuracy. A response without a word scores 0.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from jurygraph.agents.data_optimizer import measures
from jurygraph.agents.data_optimizer.measures import MeasuredGroup, is_silent, words
from jurygraph.agents.roles import Answer, Evaluator, EvaluatorInput
from jurygraph.arrays import Floats
from jurygraph.models.embedding.embedder import CachingEmbedder
from jurygraph.models.embedding.factory import open_embedder
from jurygraph.models.faults import Fault
from jurygraph.schema import Branch, Question, Scope, TaskView, Verdict
from jurygraph.schema.frozen_model import Number, ParamsModel
from jurygraph.schema.task import query_text

MIN_COMPRESSED_CHARACTERS = 200  # the shortest text whose compression is scored
_NO_WORDS = Verdict(score=0.0, reason="there is no word in it")
_UNKNOWN = Verdict(score=0.0, reason="no word of it is known to another response, the query or the reference")
_COPIED = Verdict(score=0.0, reason="another response says the same")


class Efficiency(Evaluator):
    """Score how concise a response is, in three equal parts.

    `length`       1 up to the baseline: the number of words of the reference, or the group's median if that is less or
                   there is no reference; from there falling linearly to 0 at `limit` times the baseline. Needs a group:
                   left out for a single response.
    `redundancy`   1 - the share of its words in sentences that repeat earlier ones, exactly or nearly (3-grams)
    `compression`  1, unless LZ78 compresses it to less than .55 of its size; then its share of that. 1 for fewer than
                   200 characters, which are too few to tell.

    The last two read 100,000 characters. If rewards make a policy's responses shorter, the median falls with them, so
    give it a small weight.
    """

    class Params(ParamsModel):
        limit: Annotated[Number, Field(gt=1.0)] = 3.0
        """The multiple of the baseline at which the length scores 0."""

    name = "optimizer.efficiency"
    version = "1"
    branch: Branch = "specialists"
    scope: Scope = "group"
    shares = MappingProxyType({"length": 1.0, "redundancy": 1.0, "compression": 1.0})
    bounds_its_time = True
    settings: Params

    def questions(self, view: TaskView) -> Sequence[Question]:
        parts = [self.question(view, part, scope="response") for part in ("redundancy", "compression")]
        return [self.question(view, "length"), *parts]

    def answer(self, inputs: EvaluatorInput) -> Answer | Sequence[Answer]:
        text = inputs.response.text
        if inputs.question.subject == "length":
            lengths = [_length(response.text) for response in inputs.responses]
            baseline = measures.baseline(_length(inputs.task.reference or ""), lengths)
            return [self._length_verdict(length, baseline) for length in lengths]
        if is_silent(text):
            return _NO_WORDS
        if inputs.question.subject == "redundancy":
            score = measures.freshness(text)
            return Verdict(score=score, reason=f"{1 - score:.1%} of its words repeat earlier sentences")
        if len(text) < MIN_COMPRESSED_CHARACTERS:
            return Verdict(score=1.0, reason=f"{len(text)} characters are too few to tell")
        score = measures.density(text)
        return Verdict(score=score, reason=f"by compression it says {score:.1%} of what ordinary text of its size does")

    def _length_verdict(self, length: int, baseline: float) -> Verdict:
        if length == 0:
            return _NO_WORDS
        score = measures.brevity(length, baseline, self.settings.limit)
        return Verdict(score=score, native=length, reason=f"{length} words, where {baseline:g} cost nothing")


class Diversity(Evaluator):
    """Score how a response differs from the others of its group, in two or three equal parts; a copy scores 0.

    `distinct`   share of its distinct n-grams (n = 1, 2, 3; the mean) that no other response has
    `self-bleu`  1 - BLEU-4 of its distinct n-grams against all others, smoothed, without the brevity penalty (Zhu et
                 al. 2018)
    `embedding`  1 - max(0, cos) to the nearest other response, if an `embedder` is given

    Each is multiplied by the share of its distinct words that another response, the query or the reference uses too,
    and the first two read only these words: words that only one response uses count as noise, not as novelty. Signs are
    no words, and a repetition within a response counts once. Still, diversity does not measure truth (wrong solutions
    of GSM8K are more diverse than right ones), and known words in any order count as novel: give it a small weight. The
    first two read 100,000 words of a group. The embedder's cost is not part of --max-cost, and a dry run with a model
    calls it too.
    """

    class Params(ParamsModel):
        embedder: str | None = None
        """A name that `open_embedder` accepts; null leaves `embedding` out."""

    name = "optimizer.diversity"
    version = "1"
    branch: Branch = "specialists"
    scope: Scope = "group"
    shares: Mapping[str, float] = MappingProxyType({"distinct": 1.0, "self-bleu": 1.0, "embedding": 1.0})
    bounds_its_time = True

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        embedder = self.settings.embedder
        self._embedder = None if embedder is None else CachingEmbedder(open_embedder(embedder))
        self.version = "1" if self._embedder is None else f"1 {self._embedder.embedder.version}"

    def close(self) -> None:
        if self._embedder is not None:
            self._embedder.close()

    def questions(self, view: TaskView) -> Sequence[Question]:
        questions = [self.question(view, "distinct"), self.question(view, "self-bleu")]
        return questions if self._embedder is None else [*questions, self.question(view, "embedding", layer="model")]

    def answer(self, inputs: EvaluatorInput) -> Any:
        texts = tuple(response.text for response in inputs.responses)
        group = _build_group(texts, query_text(inputs.task.query), inputs.task.reference or "")
        if inputs.question.subject == "embedding":
            return self._embedding_verdicts(group, texts)
        if inputs.question.subject == "distinct":
            label = "new sequences of words"
            scores = group.distinct_ngram_shares()
        else:
            label = "1 - BLEU against the others"
            scores = group.self_bleu_novelty()
        return [
            Verdict(score=score, reason=f"{label}: {score:.3f}, of {known_share:.1%} known words")
            for score, known_share in zip(scores, group.known_share, strict=True)
        ]

    async def _embedding_verdicts(self, group: MeasuredGroup, texts: Sequence[str]) -> list[Answer]:
        assert self._embedder is not None
        places = [place for place, known_share in enumerate(group.known_share) if known_share > 0.0]
        embeddings = await self._embedder.embed([texts[place] for place in places])
        vectors = dict(zip(places, embeddings, strict=True))
        return [
            _COPIED if copy else _embedding_verdict(place, vectors, known_share) if place in vectors else _UNKNOWN
            for place, (copy, known_share) in enumerate(zip(group.copies(), group.known_share, strict=True))
        ]


@lru_cache(maxsize=2)
def _build_group(texts: tuple[str, ...], query: str, reference: str) -> MeasuredGroup:
    """Return the group. Cached, since the same group is read for each part of its diversity."""
    return MeasuredGroup(texts, (query, reference))


def _embedding_verdict(place: int, vectors: Mapping[int, Floats | Fault], known_share: float) -> Verdict:
    vector = vectors[place]
    if isinstance(vector, Fault):
        return Verdict(status="failed", failure=vector.failure, reason=str(vector))
    other_vectors = [other_vector for other, other_vector in vectors.items() if other != place]
    cosines = [float(np.dot(vector, other)) for other in other_vectors if not isinstance(other, Fault)]
    if other_vectors and not cosines:
        return Verdict.fail("group", "there is nothing to compare with: the others could not be embedded")
    cosine = max(cosines, default=0.0)
    score = known_share * (1.0 - min(1.0, max(0.0, cosine)))
    return Verdict(score=score, native=cosine, reason=f"cosine with the nearest other {cosine:.3f}")


def _length(text: str) -> int:
    return 0 if is_silent(text) else len(words(text))
