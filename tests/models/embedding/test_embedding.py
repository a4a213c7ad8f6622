"""Embedders and rerankers by their names in an evaluator's params: those of a server, with planted faults; checks of
what comes back, and batches."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.arrays import Floats
from jurygraph.errors import ConfigError
from jurygraph.models import embedding
from jurygraph.models.embedding import (
    MAX_TEXTS_PER_REQUEST,
    Embedder,
    embed_distinct_texts,
    normalize_vectors,
    open_embedder,
    open_reranker,
    validate_relevance_scores,
)
from jurygraph.models.limits import RetryPolicy
from jurygraph.models.request import Fault
from tests.models.embedding.server import (
    embeddings_reply,
    ranking_reply,
    run_embedding_server,
    vector,
)
from tests.models.server import raw_body
from tests.rows import all_rows

TEXTS = ("eat", "tea on sea", "stone")
both = pytest.mark.parametrize("opened", [open_embedder, open_reranker])


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "RETRY_POLICY", RetryPolicy(attempts=3, first=0.0, longest=0.0))


def embed_texts(url: str, *texts: str) -> Floats:
    return asyncio.run(open_embedder(f"openai-compatible:{url}#tiny").embed(texts))


def score_documents(url: str, *documents: str) -> Floats:
    return asyncio.run(open_reranker(f"openai-compatible:{url}#tiny").score("q", documents))


# The name


@both
@all_rows(
    ("spec", "problem"),
    [
        *(
            (name, "NAME_OR_FOLDER, openai-comp")
            for name in ("", "minilm", "litellm:openai/tiny", "http://key@host/v1")
        ),
        ("openai-compatible:http://127.0.0.1:8000/v1", "followed by URL#model"),
        ("openai-compatible:nonsense#tiny", "not a web address"),
        ("openai-compatible:http://me:sesame@host/v1#tiny", "a user, a password or a query"),
        ("sk-sesame-0123456789abcdef", "the name names no model"),
        ("sentence-transformers:https://user:sesame@host/x", "is not followed by an address"),
    ],
)
def test_a_wrong_name_is_refused_and_no_key_in_it_repeated(
    opened: Callable[[str], Any], spec: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        opened(spec)
    assert "sesame" not in str(caught.value)
    assert "key@" not in str(caught.value)


@both
def test_the_version_names_the_model_and_its_server(opened: Callable[[str], Any]) -> None:
    assert (
        opened("openai-compatible:http://host/v1/#tiny").version
        == "openai-compatible tiny at http://host/v1"
    )


@both
def test_without_the_extra_the_error_says_how_to_install_it(
    opened: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise embedding.PackageNotFoundError(name)

    monkeypatch.setattr(embedding, "version", missing)
    with pytest.raises(ConfigError, match=r"pip install 'jurygraph\[embeddings\]'"):
        opened("sentence-transformers:all-MiniLM-L6-v2")


# A server


def test_embeddings_come_from_one_request_in_order_of_the_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JURYGRAPH_API_KEY", "a-key-for-tests")
    with run_embedding_server(embeddings_reply) as server:
        rows = embed_texts(server.url, *TEXTS)
        (seen,) = server.requests
    assert rows.tolist() == normalize_vectors([vector(text) for text in TEXTS], 3, "tiny").tolist()
    path = {"path": "/v1/embeddings"}
    assert seen.body == {"model": "tiny", "input": list(TEXTS), "encoding_format": "float", **path}
    assert seen.headers["authorization"] == "Bearer a-key-for-tests"


def test_documents_are_ranked_in_one_request_in_their_order() -> None:
    with run_embedding_server(lambda body, number: ranking_reply([0.2, 0.9, 0.1])) as server:
        assert score_documents(server.url, "a", "b", "c").tolist() == [0.2, 0.9, 0.1]
        (seen,) = server.requests
    assert seen.body == {
        "model": "tiny",
        "query": "q",
        "documents": ["a", "b", "c"],
        "path": "/v1/rerank",
    }
    assert "authorization" not in seen.headers


ONE = (0, [1.0])
WRONG_ENTRIES: Sequence[Any] = [
    [],
    [ONE],
    [ONE, ONE],
    [ONE, (2, [1.0])],
    [ONE, (1, [1.0]), (2, [1.0])],
    *([ONE, (1, wrong)] for wrong in (None, ["a"], ["1.0"], [True], [float("nan")])),
    *([ONE, (index, [1.0])] for index in (True, 1.0, "1", None)),
    None,
]


@all_rows("entries", [*WRONG_ENTRIES, [ONE, (1, [1.0, 2.0])], [ONE, (1, [])]])
def test_embeddings_that_do_not_match_the_texts_are_refused(entries: Any) -> None:
    data = entries and [{"index": index, "embedding": numbers} for index, numbers in entries]
    with run_embedding_server(lambda body, number: raw_body(json.dumps({"data": data}))) as server:
        with pytest.raises(Fault) as caught:
            embed_texts(server.url, "a", "b")
        assert server.count == 3
    assert (caught.value.kind, caught.value.cause) == ("unreadable", "infrastructure")


@all_rows("entries", WRONG_ENTRIES)
def test_scores_that_do_not_match_the_documents_are_refused(entries: Any) -> None:
    results = entries and [
        {"index": index, "relevance_score": one and one[0]} for index, one in entries
    ]
    with (
        run_embedding_server(
            lambda body, number: raw_body(json.dumps({"results": results}))
        ) as server,
        pytest.raises(Fault) as caught,
    ):
        score_documents(server.url, "a", "b")
    assert (caught.value.kind, caught.value.cause) == ("unreadable", "infrastructure")


# Vectors and scores

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
MATRICES = st.integers(1, 5).flatmap(
    lambda d: st.lists(st.lists(NUMBERS, min_size=d, max_size=d), min_size=1, max_size=4)
)


@given(MATRICES)
def test_every_vector_is_a_unit_vector_or_zero(rows: list[list[float]]) -> None:
    unit = normalize_vectors(rows, len(rows), "tiny")
    assert (unit.shape, unit.dtype) == (np.shape(rows), np.float64)
    for given_row, row in zip(rows, unit, strict=True):
        assert np.linalg.norm(row) == pytest.approx(1.0 if any(given_row) else 0.0)


def test_normalization_keeps_the_direction_of_a_vector() -> None:
    assert normalize_vectors([[3.0, 4.0], [0.0, 0.0], [1e300, 0.0]], 3, "tiny").tolist() == [
        [0.6, 0.8],
        [0, 0],
        [1, 0],
    ]


@all_rows(
    "rows",
    [
        *(
            [[1.0, 2.0]],
            [[1.0], [2.0], [3.0]],
            [[1.0, 2.0], [1.0]],
            [[], []],
            [1.0, 2.0],
            None,
            "ab",
        ),
        *([[1.0, float("nan")], [1.0, 2.0]], [[1.0], [10**400]], [["a"], ["b"]]),
    ],
)
def test_what_is_no_matrix_of_so_many_vectors_is_refused(rows: Any) -> None:
    with pytest.raises(Fault, match="tiny") as caught:
        normalize_vectors(rows, 2, "tiny")
    assert (caught.value.kind, caught.value.cause) == ("unreadable", "infrastructure")


@all_rows(
    "scores", [[0.1], [0.1, 0.2, 0.3], [0.1, float("nan")], [[0.1, 0.2]], [None, 0.1], "ab", 0.5]
)
def test_a_wrong_number_of_scores_is_refused(scores: Any) -> None:
    with pytest.raises(Fault, match="tiny"):
        validate_relevance_scores(scores, 2, "tiny")


# Many texts


class Counting(Embedder):
    """Count letters, as the test server does, and requests; `faults` are those of some texts."""

    name = version = "counting"

    def __init__(self, **faults: str) -> None:
        self.asked: list[list[str]] = []
        self.faults = faults

    async def embed(self, texts: Sequence[str]) -> Floats:
        self.asked.append(list(texts))
        for text in texts:
            if text in self.faults:
                raise Fault(self.faults[text], f"{text}!")
        return normalize_vectors([vector(text) for text in texts], len(texts), self.name)


def embed_through(embedder: Embedder, *texts: str) -> list[Floats | Fault]:
    return asyncio.run(embed_distinct_texts(embedder, texts))


def test_many_texts_are_requested_in_batches_and_each_of_them_once() -> None:
    counting = Counting()
    texts = [f"text {n}" for n in range(2 * MAX_TEXTS_PER_REQUEST + 1)]
    vectors = embed_through(counting, *texts, *texts)
    assert [len(batch) for batch in counting.asked] == [
        MAX_TEXTS_PER_REQUEST,
        MAX_TEXTS_PER_REQUEST,
        1,
    ]
    assert len(vectors) == 2 * len(texts)


def test_an_overlong_text_fails_alone() -> None:
    counting = Counting(long="overflowed")
    a, long, b = embed_through(counting, "a", "long", "t")
    assert isinstance(long, Fault)
    assert (long.kind, long.cause) == ("overflowed", "response")
    assert not isinstance(a, Fault)
    assert not isinstance(b, Fault)
    assert counting.asked == [["a", "long", "t"], ["a"], ["long"], ["t"]]


def test_an_internal_failure_fails_the_whole_batch() -> None:
    faults = embed_through(Counting(t="connection"), "a", "t")
    assert [one.kind for one in faults if isinstance(one, Fault)] == ["connection", "connection"]


class Empty(Embedder):
    """Return zeros for the text `nothing`."""

    name = version = "empty"

    async def embed(self, texts: Sequence[str]) -> Floats:
        return np.array([[float(text != "nothing")] for text in texts])


def test_a_vector_of_nothing_is_a_fault() -> None:
    tea, nothing = embed_through(Empty(), "tea", "nothing")
    assert not isinstance(tea, Fault)
    assert isinstance(nothing, Fault)
    assert (nothing.kind, "gives a vector of nothing" in str(nothing)) == ("unreadable", True)
