"""`similarity`, run by a jury as users run it."""

from pathlib import Path

import pytest

from jurygraph import Jury, ModelAccessError, Response, Task, Trace, Verdict
from jurygraph.conformance import check_evaluator
from tests.models.embedding.server import embeddings_reply, run_embedding_server
from tests.models.server import Script, Server, status

TASK = Task(id="t", query="Where is the tea?", reference="tea on a stone")


def use(embedder: str) -> dict[str, object]:
    return {"use": "similarity", "params": {"embedder": embedder}}


def score_texts(
    texts: dict[str, str], script: Script = embeddings_reply, task: Task = TASK
) -> tuple[dict[str, Trace], Server]:
    with (
        run_embedding_server(script) as server,
        Jury.from_config({"evaluators": [use(f"openai-compatible:{server.url}#tiny")]}) as jury,
    ):
        traces = jury.score(task, [Response(id=name, text=text) for name, text in texts.items()])
    return {trace.response_id: trace for trace in traces}, server


def only_verdict(trace: Trace) -> Verdict:
    (verdict,) = trace.verdicts
    return verdict


def test_it_is_the_cosine_with_the_reference() -> None:
    traces, _ = score_texts({"anagram": "stone: a tea on", "tea": "tea"})
    assert only_verdict(traces["anagram"]).score == pytest.approx(1.0)
    tea = only_verdict(traces["tea"])
    assert tea.score == pytest.approx(6 / 63**0.5)
    assert tea.reason == f"cosine with the reference {tea.native:.3f}"
    assert (tea.score, tea.scale, tea.layer, tea.version[:19]) == (
        tea.native,
        (-1.0, 1.0),
        "model",
        "1 openai-compatible",
    )


def test_the_texts_of_a_group_go_together_and_the_reference_goes_once() -> None:
    texts = {f"r{n}": f"tea {n}" for n in range(5)}
    _, server = score_texts(texts)
    (seen,) = server.requests
    assert sorted(seen.body["input"]) == sorted([*texts.values(), "tea on a stone"])


@pytest.mark.parametrize("reference", [None, "", " \n"])
def test_it_abstains_without_a_reference(reference: str | None) -> None:
    traces, server = score_texts(
        {"a": "tea", "b": "sea"}, task=TASK.model_copy(update={"reference": reference})
    )
    assert {only_verdict(trace).status for trace in traces.values()} == {"abstained"}
    assert server.count == 0


def test_an_empty_response_is_not_judged_and_gets_no_credit() -> None:
    traces, server = score_texts({"empty": "", "blank": " \n", "tea": "tea"})
    assert [only_verdict(traces[name]).score for name in ("empty", "blank")] == [0.0, 0.0]
    assert server.requests[0].body["input"] == ["tea", "tea on a stone"]


def test_a_missing_embedding_is_a_failure_without_credit() -> None:
    traces, _ = score_texts({"a": "tea"}, lambda body, number: status(400))
    verdict = only_verdict(traces["a"])
    assert (verdict.status, verdict.score) == ("failed", None)
    assert verdict.failure is not None
    assert (verdict.failure.kind, verdict.failure.cause) == ("rejected", "infrastructure")
    assert not traces["a"].reward.value


def test_an_embedder_without_access_stops_scoring() -> None:
    with pytest.raises(
        ModelAccessError, match=r"model 'tiny'.* check .*JURYGRAPH_API_KEY.*; 401: planted 401"
    ):
        score_texts({"a": "tea"}, lambda body, number: status(401))


def too_long(body: dict[str, object], number: int) -> object:
    texts = body["input"]
    assert isinstance(texts, list)
    if any(len(text) > 100 for text in texts):
        return status(
            400, body={"error": {"code": "context_length_exceeded", "message": "too much"}}
        )
    return embeddings_reply(body)


@pytest.mark.parametrize(
    ("name", "reference", "cause"),
    [("long", "sea", "response"), ("tea", "tea " * 50, "infrastructure")],
)
def test_a_text_that_is_too_long_fails_alone(name: str, reference: str, cause: str) -> None:
    task = TASK.model_copy(update={"reference": reference})
    traces, _ = score_texts({"long": "tea " * 50, "tea": "tea"}, too_long, task)  # type: ignore[arg-type]
    failure = only_verdict(traces[name]).failure
    assert failure is not None
    assert (failure.kind, failure.cause) == ("overflowed", cause)
    assert cause == "infrastructure" or only_verdict(traces["tea"]).status == "ok"


@pytest.mark.exhaustive
def test_it_conforms_with_a_real_embedder(embedder_folder: Path) -> None:
    task = Task(id="sum", query="What is 17 + 25?", reference="17 + 25 = 42, so the answer is 42.")
    responses = [Response(id="a", text="The answer is 42."), Response(id="b", text="43")]
    assert check_evaluator(use(f"sentence-transformers:{embedder_folder}"), [(task, responses)]) > 3
