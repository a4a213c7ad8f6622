"""`optimizer.efficiency` and `optimizer.diversity`, run by a jury as users run them."""

from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Response, Task, Trace, Verdict
from jurygraph.conformance import check_evaluator
from jurygraph.sources import read_tasks
from tests.models.embedding.server import embeddings_reply, run_embedding_server
from tests.models.server import Script, status

SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"
SUM = Task(id="sum", query="What is 17 + 25, and why?", reference="17 + 25 = 42 because 7 + 5 is 12.")
FIRST = "17 + 25 = 42 because 7 + 5 is 12 and 10 + 20 is 30."
OTHER = "42: add 5 to 17 and it is 22, then 20 to 22."


def score_texts(use: Any, texts: dict[str, str], task: Task = SUM) -> dict[str, Trace]:
    with Jury.from_config({"evaluators": [use]}) as jury:
        traces = jury.score(task, [Response(id=name, text=text) for name, text in texts.items()])
    return {trace.response_id: trace for trace in traces}


def verdict(trace: Trace, subject: str) -> Verdict:
    return next(one for one in trace.verdicts if one.subject == subject)


@pytest.mark.parametrize("name", ["optimizer.efficiency", "optimizer.diversity"])
def test_both_conform(name: str) -> None:
    assert check_evaluator(name, read_tasks(SOLUTIONS)[:3]) > 3


def test_each_part_shows_in_the_component() -> None:
    efficiency = score_texts("optimizer.efficiency", {"a": FIRST, "b": OTHER})["a"].reward.parts["efficiency"]
    assert efficiency.keys() == {"length", "redundancy", "compression"}
    diversity = score_texts("optimizer.diversity", {"a": FIRST, "b": OTHER})["a"].reward.parts["diversity"]
    assert diversity.keys() == {"distinct", "self-bleu"}


class TestEfficiency:
    def test_length_is_against_the_reference_and_the_group(self) -> None:
        traces = score_texts("optimizer.efficiency", {"short": "It is 42.", "long": FIRST * 4, "usual": FIRST})
        score = {name: verdict(trace, "length").score for name, trace in traces.items()}
        assert score["short"] == 1.0
        assert 0.0 < (score["usual"] or 0.0) < 1.0
        assert score["long"] == 0.0
        assert verdict(traces["short"], "length").reason == "4 words, where 12 cost nothing"

    def test_a_single_response_has_no_length_and_keeps_the_other_parts(self) -> None:
        (trace,) = score_texts("optimizer.efficiency", {"a": FIRST}).values()
        assert verdict(trace, "length").status == "not_applicable"
        assert [verdict(trace, part).score for part in ("redundancy", "compression")] == [1.0, 1.0]
        assert trace.reward.value == 1.0

    @pytest.mark.parametrize("text", ["x" * 199, "ha " * 60])
    def test_a_short_text_is_not_found_redundant_by_compression(self, text: str) -> None:
        compression = verdict(score_texts("optimizer.efficiency", {"a": text})["a"], "compression")
        assert (compression.score, compression.reason) == (1.0, f"{len(text)} characters are too few to tell")

    @pytest.mark.parametrize("text", ["", " \n", "...", "= = ="])
    def test_an_empty_response_scores_0(self, text: str) -> None:
        trace = score_texts("optimizer.efficiency", {"nothing": text, "a": FIRST})["nothing"]
        assert [one.score for one in trace.verdicts] == [0.0, 0.0, 0.0]


class TestDiversity:
    def test_a_copy_scores_0_and_a_paraphrase_more(self) -> None:
        traces = score_texts("optimizer.diversity", {"a": FIRST, "copy": FIRST, "other": OTHER})
        assert [traces[name].reward.value for name in ("a", "copy")] == [0.0, 0.0]
        assert (traces["other"].reward.value or 0.0) > 0.3


def with_embedder(texts: dict[str, str], script: Script = embeddings_reply) -> dict[str, Trace]:
    with run_embedding_server(script) as server:
        embedder = f"openai-compatible:{server.url}#tiny"
        return score_texts({"use": "optimizer.diversity", "params": {"embedder": embedder}}, texts)


class TestSpread:
    def test_embedding_diversity_is_the_distance_to_the_nearest_other(self) -> None:
        traces = with_embedder({"a": "17 25 aaa", "b": "17 25 ttt", "c": "17 25 aaat"})
        spread = {name: verdict(trace, "embedding") for name, trace in traces.items()}
        assert spread["b"].native == pytest.approx(1 / 10**0.5)
        assert spread["a"].native == spread["c"].native == pytest.approx(3 / 10**0.5)
        assert spread["b"].score == pytest.approx(2 / 3 * (1 - 1 / 10**0.5))
        assert spread["b"].layer == "model"

    def test_a_copy_scores_exactly_0(self) -> None:
        copies = {"a": FIRST, "copy": FIRST, "fourfold": f"{FIRST}\n" * 4, "signs": " , ".join(FIRST.split())}
        traces = with_embedder({**copies, "other": OTHER})
        assert [verdict(traces[name], "embedding").score for name in copies] == [0.0, 0.0, 0.0, 0.0]
        assert [traces[name].reward.value for name in copies] == [0.0, 0.0, 0.0, 0.0]
        assert (verdict(traces["other"], "embedding").score or 0.0) > 0.0

    def test_a_response_without_known_words_is_not_embedded(self) -> None:
        traces = with_embedder({"a": FIRST, "b": OTHER, "noise": "xkq vlorp zint"})
        assert verdict(traces["noise"], "embedding").score == 0.0

    def test_a_response_that_is_too_long_fails_alone(self) -> None:
        def script(body: dict[str, Any], number: int) -> Any:
            if any(len(text) > 200 for text in body["input"]):
                return status(400, body={"error": {"code": "context_length_exceeded", "message": "too much"}})
            return embeddings_reply(body)

        traces = with_embedder({"a": FIRST, "b": OTHER, "long": "17 + 25 is more. " * 20}, script)
        assert verdict(traces["long"], "embedding").status == "failed"
        assert verdict(traces["a"], "embedding").status == "ok"
