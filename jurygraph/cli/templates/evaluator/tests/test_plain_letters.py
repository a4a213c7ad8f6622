"""The evaluators keep jurygraph's rules, and say what they should of two letters."""

import pytest

import jurygraph as jg
from jurygraph.conformance import check_evaluator

TASK = jg.Task(id="parcel", query="Where is my parcel?")
KIND = jg.Response(id="kind", text="I am sorry that it is late. It should reach you by Friday.")
STIFF = jg.Response(
    id="stiff",
    text="Pursuant to our policy, the aforementioned item will be delivered in due course.",
)


@pytest.mark.parametrize("use", ["plain_letters.plain_words", "plain_letters.Warm"])
def test_it_keeps_the_rules(use: str) -> None:
    assert check_evaluator(use, [(TASK, [KIND, STIFF])]) > 0


def test_the_kind_letter_scores_more() -> None:
    with jg.Jury.from_config({"evaluators": ["plain_letters.plain_words"]}) as jury:
        traces = jury.score(TASK, [KIND, STIFF])
    assert [trace.reward.value for trace in traces] == pytest.approx([1.0, 0.4])


def test_without_a_model_warmth_is_not_judged() -> None:
    with jg.Jury.from_config({"evaluators": ["plain_letters.Warm"]}) as jury:
        (trace,) = jury.score(TASK, [KIND])
    assert trace.reward.value is None
    assert [verdict.status for verdict in trace.verdicts] == ["abstained"]
