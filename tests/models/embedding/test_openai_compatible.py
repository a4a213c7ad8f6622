"""Servers of embeddings and reranking over HTTP, with planted faults."""

import asyncio
import json
from typing import Any

import pytest

from jurygraph.arrays import Floats
from jurygraph.models import embedding as remote
from jurygraph.models.embedding import normalize_vectors, open_embedder, open_reranker
from jurygraph.models.limits import RetryPolicy
from jurygraph.models.request import Fault
from tests.models.embedding.server import embeddings_reply, ranking_reply, run_embedding_server, vector
from tests.models.server import raw_body
from tests.rows import all_rows

TEXTS = ("eat", "tea on sea", "stone")
DOCUMENTS = ("a", "b", "c")


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "POLICY", RetryPolicy(attempts=3, first=0.0, longest=0.0))


def embed_texts(url: str, *texts: str) -> Floats:
    return asyncio.run(open_embedder(f"openai-compatible:{url}#tiny").embed(texts))


def score_documents(url: str, *documents: str) -> Floats:
    return asyncio.run(open_reranker(f"openai-compatible:{url}#tiny").score("q", documents))


def test_embeddings_come_from_one_request_in_order_of_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert score_documents(server.url, *DOCUMENTS).tolist() == [0.2, 0.9, 0.1]
        (seen,) = server.requests
    assert seen.body == {"model": "tiny", "query": "q", "documents": list(DOCUMENTS), "path": "/v1/rerank"}
    assert "authorization" not in seen.headers


def entry(index: Any, numbers: Any) -> dict[str, Any]:
    return {"index": index, "embedding": numbers}


@all_rows(
    "data",
    [
        [],
        [entry(0, [1.0])],
        [entry(0, [1.0]), entry(0, [1.0])],
        [entry(0, [1.0]), entry(2, [1.0])],
        [entry(0, [1.0]), entry(1, [1.0]), entry(2, [1.0])],
        [entry(0, [1.0]), entry(1, [1.0, 2.0])],
        [entry(0, [1.0]), entry(1, [])],
        [entry(0, [1.0]), entry(1, None)],
        [entry(0, [1.0]), entry(1, ["a"])],
        [entry(0, [1.0]), entry(1, ["1.0"])],
        [entry(0, [1.0]), entry(1, [True])],
        [entry(0, [1.0]), entry(True, [1.0])],
        [entry(0.0, [1.0]), entry(1.0, [1.0])],
        [entry(0, [1.0]), entry("1", [1.0])],
        [entry(0, [1.0]), {"embedding": [1.0]}],
        None,
    ],
)
def test_embeddings_that_do_not_match_the_texts_are_refused(data: Any) -> None:
    with run_embedding_server(lambda body, number: raw_body(json.dumps({"data": data}))) as server:
        with pytest.raises(Fault) as caught:
            embed_texts(server.url, "a", "b")
        assert server.count == 3
    assert (caught.value.kind, caught.value.cause) == ("unreadable", "infrastructure")


@all_rows(
    "results",
    [
        [],
        [{"index": 0, "relevance_score": 0.5}],
        [{"index": 0, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.5}],
        [{"index": 0, "relevance_score": 0.5}, {"index": 5, "relevance_score": 0.5}],
        [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": None}],
        [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": float("nan")}],
        [{"index": 0, "relevance_score": 0.5}, {"index": 1}],
        [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": True}],
        [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": "0.9"}],
        [{"index": 0, "relevance_score": 0.5}, {"index": True, "relevance_score": 0.5}],
        {"0": 0.5, "1": 0.5},
    ],
)
def test_scores_that_do_not_match_the_documents_are_refused(results: Any) -> None:
    with (
        run_embedding_server(lambda body, number: raw_body(json.dumps({"results": results}))) as server,
        pytest.raises(Fault) as caught,
    ):
        score_documents(server.url, "a", "b")
    assert (caught.value.kind, caught.value.cause) == ("unreadable", "infrastructure")
