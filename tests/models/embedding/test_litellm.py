"""Embeddings and reranking by litellm, with real requests to a local server."""

import asyncio
import json
from typing import Any

import pytest

from jurygraph.arrays import Floats
from jurygraph.models.embedding import remote
from jurygraph.models.embedding.embedder import normalize_vectors
from jurygraph.models.embedding.factory import open_embedder, open_reranker
from jurygraph.models.faults import Fault
from jurygraph.models.retries import RetryPolicy
from tests.models.embedding.server import embeddings_reply, ranking_reply, run_embedding_server, vector
from tests.models.server import Script, Server, raw_body, status

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning"),
]

TEXTS = ("eat", "tea on sea", "stone")
KEY = "sk-0123456789abcdefghij"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "POLICY", RetryPolicy(attempts=3, first=0.001, longest=0.002))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def embed_texts(script: Script, monkeypatch: pytest.MonkeyPatch, *texts: str) -> tuple[Floats, Server]:
    with run_embedding_server(script) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        return asyncio.run(open_embedder("litellm:openai/tiny").embed(texts)), server


def score_documents(script: Script, monkeypatch: pytest.MonkeyPatch, *documents: str) -> tuple[Floats, Server]:
    with run_embedding_server(script) as server:
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.url)
        return asyncio.run(open_reranker("litellm:hosted_vllm/tiny").score("q", documents)), server


def test_embeddings_come_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, server = embed_texts(embeddings_reply, monkeypatch, *TEXTS)
    assert rows == pytest.approx(normalize_vectors([vector(text) for text in TEXTS], 3, "tiny"))
    (seen,) = server.requests
    assert (seen.body["path"], seen.body["model"], seen.body["input"]) == ("/v1/embeddings", "tiny", list(TEXTS))
    assert seen.headers["authorization"] == f"Bearer {KEY}"


def test_documents_are_ranked_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, server = score_documents(lambda body, number: ranking_reply([0.2, 0.9, 0.1]), monkeypatch, "a", "b", "c")
    assert scores.tolist() == [0.2, 0.9, 0.1]
    (seen,) = server.requests
    assert (seen.body["path"], seen.body["query"], seen.body["documents"]) == ("/v1/rerank", "q", ["a", "b", "c"])
    assert seen.body["top_n"] == 3


def test_retries_happen_only_in_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    _, server = embed_texts(
        lambda body, number: status(503) if number < 3 else embeddings_reply(body), monkeypatch, "a"
    )
    assert server.count == 3
    _, server = score_documents(
        lambda body, number: status(503) if number < 3 else ranking_reply([0.5]), monkeypatch, "a"
    )
    assert server.count == 3


def entry(index: Any, value: Any, key: str) -> dict[str, Any]:
    return {"object": "embedding", "index": index, key: value}


PLACES = [([0.0, 1.0], [0.5, 0.5]), ([False, True], [0.5, 0.5]), ([[0], [1]], [0.5, 0.5])]


@pytest.mark.parametrize(("places", "values"), [*PLACES, ([0, 1], [0.5, True]), ([0, 1], ["0.5", 0.9])])
def test_a_value_that_is_not_a_number_is_refused(
    monkeypatch: pytest.MonkeyPatch, places: list[Any], values: list[Any]
) -> None:
    vectors = [entry(place, [1.0, value], "embedding") for place, value in zip(places, values, strict=True)]
    scores = [entry(place, value, "relevance_score") for place, value in zip(places, values, strict=True)]
    answers = {
        embed_texts: {"object": "list", "model": "tiny", "data": vectors, "usage": {"prompt_tokens": 3}},
        score_documents: {"id": "1", "results": scores, "meta": {}},
    }
    for asked, answer in answers.items():
        with pytest.raises(Fault) as caught:
            asked(lambda body, number, told=answer: raw_body(json.dumps(told)), monkeypatch, "a", "b")
        assert (caught.value.kind, caught.value.cause) == ("unreadable", "infrastructure")


def test_a_provider_that_litellm_does_not_know_is_refused() -> None:
    with pytest.raises(Fault) as caught:
        asyncio.run(open_embedder("litellm:nobody/tiny").embed(["a"]))
    assert caught.value.kind == "rejected"
