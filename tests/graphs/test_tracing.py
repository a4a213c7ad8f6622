"""Traces: complete records of a reward that survive a round trip through JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.arrays import total
from jurygraph.errors import TraceMismatch
from jurygraph.schema import Response, Trace
from jurygraph.schema.trace import question_score_statistics
from tests.graphs.scripted import evaluator_use, response, score_responses, task

CONFIG = {
    "evaluators": [evaluator_use("tone"), evaluator_use("rank", scope="pair")],
    "reward": {"tone": 1.0, "rank": 0.5},
}


def traces() -> list[Trace]:
    group = [
        response("a", tone=0.2, rank=1.0),
        response("b", tone="abstained", rank=0.0),
        response("c", tone=0.6, rank=0.5),
    ]
    return score_responses(CONFIG, task(), *group)


def test_traces_come_in_the_order_given_and_read_back_as_they_were() -> None:
    written = traces()
    assert [trace.response_id for trace in written] == ["a", "b", "c"]
    for trace in written:
        again = Trace.model_validate_json(trace.model_dump_json())
        assert again.digest == trace.digest
        assert again.model_copy(update={"plan": trace.plan}) == trace


def test_a_trace_that_was_tampered_with_is_refused() -> None:
    trace = traces()[0]
    with pytest.raises(TraceMismatch):
        Trace.model_validate_json(trace.model_dump_json().replace('"value":0.2', '"value":0.9', 1))


def test_every_trace_has_the_statistics_of_its_group() -> None:
    for trace in traces():
        assert trace.statistics == {
            "questions": {
                "rank": {"judged": 6, "mean": pytest.approx(0.5), "low": 0.0, "high": 1.0},
                "tone": {"judged": 2, "mean": pytest.approx(0.4), "low": 0.2, "high": 0.6},
            }
        }


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_the_mean_of_statistics_adds_as_rewards_do(scores: list[float]) -> None:
    found = question_score_statistics([], (("q", score) for score in scores))["questions"]["q"][
        "mean"
    ]
    assert found == float(total(sorted(scores))) / len(scores)


def test_the_group_digest_depends_only_on_the_ids_and_contents_of_its_members() -> None:
    config = {"evaluators": [evaluator_use("tone")]}
    one, two = response("a", tone=0.0), response("b", tone=1.0)
    labelled = Response(id="a", text=one.text, data=one.data, agent="gpt", labels={"x": 1})
    same = [[one, two], [two, one], [labelled, two]]
    assert len({score_responses(config, task(), *group)[0].group for group in same}) == 1
    others = [
        [one],
        [one, two.model_copy(update={"text": "!"})],
        [one, two.model_copy(update={"id": "c"})],
    ]
    assert (
        len({score_responses(config, task(), *group)[0].group for group in [*others, same[0]]}) == 4
    )
