"""The evaluators keep jurygraph's rules, and say what they should of two letters."""

import pytest

import jurygraph as jg
from jurygraph.conformance import check_evaluator

TASK = jg.Task(id="parcel", query="Where is my parcel?")
KIND = jg.Response(id="kind", text="I am sorry that it is late. It should reach you by Friday.")
STIFF = jg.Response(id="stiff", text="Pursuant to our policy, the aforementioned item will be delivered in due course.")
SHORT = {"use": "plain_letters.Short", "params": {"most": 10}}


@pytest.mark.parametrize("use", ["plain_letters.plain_words", SHORT, "plain_letters.Warm"], ids=str)
def test_it_keeps_the_rules(use: str | dict[str, object]) -> None:
    assert check_evaluator(use, [(TASK, [KIND, STIFF])], derivers=["plain_letters.Sentences"]) > 0


@pytest.mark.parametrize(
    ("use", "scores"), [("plain_letters.plain_words", [1.0, 0.4]), (SHORT, [1.0, 0.0])], ids=["plain", "short"]
)
def test_the_kind_letter_scores_more(use: str | dict[str, object], scores: list[float]) -> None:
    with jg.Jury.from_config({"evaluators": [use], "derivers": ["plain_letters.Sentences"]}) as jury:
        traces = jury.score(TASK, [KIND, STIFF])
    assert [trace.reward.value for trace in traces] == pytest.approx(scores)


def test_without_a_model_warmth_is_not_judged() -> None:
    with jg.Jury.from_config({"evaluators": ["plain_letters.Warm"]}) as jury:
        (trace,) = jury.score(TASK, [KIND])
    assert trace.reward.value is None
    assert [verdict.status for verdict in trace.verdicts] == ["abstained"]
