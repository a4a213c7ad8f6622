"""`ranker`, run by a jury as users run it."""

import math
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Response, Task, Verdict
from jurygraph.conformance import check_evaluator
from tests.models.embedding.server import ranking_reply, run_embedding_server
from tests.models.server import Script, Server, status

TASK = Task(id="t", query="Where is the tea?")


def by_length(body: dict[str, Any], number: int) -> Any:
    return ranking_reply([min(1.0, len(document) / 10) for document in body["documents"]])


def rank_texts(
    texts: dict[str, str], script: Script = by_length, task: Task = TASK, **params: Any
) -> tuple[dict[str, Verdict], Server]:
    with run_embedding_server(script) as server:
        use = {
            "use": "ranker",
            "params": {"ranker": f"openai-compatible:{server.url}#tiny", **params},
        }
        with Jury.from_config({"evaluators": [use]}) as jury:
            traces = jury.score(
                task, [Response(id=name, text=text) for name, text in texts.items()]
            )
    return {trace.response_id: trace.verdicts[0] for trace in traces}, server


def test_a_relevance_score_counts_as_it_is() -> None:
    verdicts, server = rank_texts({"long": "on the stone", "short": "there"})
    assert {name: verdict.score for name, verdict in verdicts.items()} == {
        "long": 1.0,
        "short": 0.5,
    }
    assert verdicts["short"].reason == "relevance 0.500 by tiny"
    (seen,) = server.requests
    assert seen.body["query"] == "Where is the tea?"
    assert sorted(seen.body["documents"]) == ["on the stone", "there"]


def test_a_logit_counts_by_its_sigmoid_if_configured() -> None:
    verdicts, _ = rank_texts(
        {"a": "there"}, lambda body, number: ranking_reply([-1.5]), logits=True
    )
    assert (verdicts["a"].score, verdicts["a"].native) == (
        pytest.approx(1 / (1 + math.exp(1.5))),
        -1.5,
    )


def test_a_score_out_of_range_fails_alone() -> None:
    def script(body: dict[str, Any], number: int) -> Any:
        return ranking_reply(
            [-3.2 if document == "bad" else -0.0 for document in body["documents"]]
        )

    verdicts, _ = rank_texts({"a": "bad", "b": "good"}, script)
    assert (verdicts["a"].status, verdicts["a"].score) == ("failed", None)
    assert (
        "-3.2 lies outside [0, 1]; where it gives logits, write params: {logits: true}"
        in verdicts["a"].reason
    )
    assert str(verdicts["b"].score) == "0.0", "without a sign"


def test_an_empty_response_is_not_judged_and_gets_no_credit() -> None:
    verdicts, server = rank_texts({"empty": "", "blank": " \n", "a": "there"})
    assert [verdicts[name].score for name in ("empty", "blank", "a")] == [0.0, 0.0, 0.5]
    assert server.requests[0].body["documents"] == ["there"]


def test_many_responses_are_requested_in_batches_and_each_gets_its_result() -> None:
    texts = {f"r{n}": "x" * (n % 10 + 1) for n in range(70)}
    verdicts, server = rank_texts(texts)
    assert [len(seen.body["documents"]) for seen in server.requests] == [32, 32, 6]
    assert all(verdicts[name].score == len(text) / 10 for name, text in texts.items())


def test_a_too_long_response_fails_alone_with_cause_response() -> None:
    def script(body: dict[str, Any], number: int) -> Any:
        if any(len(document) > 100 for document in body["documents"]):
            return status(
                400, body={"error": {"code": "context_length_exceeded", "message": "too much"}}
            )
        return by_length(body, number)

    verdicts, _ = rank_texts({"long": "x" * 200, "a": "there"}, script)
    failure = verdicts["long"].failure
    assert failure is not None
    assert (failure.kind, failure.cause) == ("overflowed", "response")
    assert verdicts["a"].score == 0.5


@pytest.mark.exhaustive
def test_it_conforms_with_a_real_cross_encoder(cross_encoder_folder: Path) -> None:
    task = Task(id="sum", query="What is 17 + 25?")
    responses = [Response(id="a", text="The answer is 42."), Response(id="b", text="43")]
    use = {"use": "ranker", "params": {"ranker": f"sentence-transformers:{cross_encoder_folder}"}}
    assert check_evaluator(use, [(task, responses)]) > 3
