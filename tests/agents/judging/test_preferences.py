"""Needs and wishes of stakeholders: judged for each separately, and only if no check decides."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph import EvaluatorInput, Jury, Task, Trace, conformance
from jurygraph.agents.judging.criteria import SERVED_SCALE, Preferences
from jurygraph.models.judge_client import JudgeClient
from tests.agents.judging.people import PROFILES, RESPONSE_TEXT, WISHES, people, texts_about
from tests.agents.judging.scripted_judge import (
    answer_questions,
    binary_reply,
    bounds_of,
    evaluator_inputs,
    fenced,
    find_everything,
    find_nothing,
    reply_in_turn,
    reply_to_all,
    scale_reply,
    score_by_script,
    user_message,
    view,
)
from tests.examples import at_most
from tests.models.judge_scripts import Script, items_of, responses
from tests.models.server import Answer, reply_with, run_server

UNIFORM = {"weights": {"method": "uniform"}}


def score_preferences(
    script: Script, task: Task, *texts: str, **kwargs: Any
) -> tuple[list[Trace], list[dict[str, Any]]]:
    kwargs = {"use": ["preferences"], "settings": UNIFORM} | kwargs
    return score_by_script(script, task, responses(*(texts or (RESPONSE_TEXT,))), **kwargs)


# Forms


def test_a_need_is_met_or_not_and_a_wish_is_served_from_0_to_4() -> None:
    (trace,), (body,) = score_preferences(find_everything, people("ann"))
    assert [list(item["properties"])[-1] for item in items_of(body).values()] == ["probability", "value"]
    assert bounds_of(items_of(body)["constraint_2"]["properties"]["value"]) == SERVED_SCALE
    found = {one.subject: (one.score, one.met, one.native, one.scale) for one in trace.verdicts}
    assert found == {"step-free": (0.9, True, "P(met) as stated", None), "tea": (1.0, None, 4.0, SERVED_SCALE)}
    assert {one.stakeholder for one in trace.verdicts} == {"ann"}
    assert {one.layer for one in trace.verdicts} == {"model"}


@pytest.mark.parametrize(("value", "score"), [(0, 0.0), (1, 0.25), (2.5, 0.625), (4, 1.0)])
def test_a_wish_scores_its_relative_position_on_the_scale(value: float, score: float) -> None:
    reply = {"constraint_1": binary_reply(met=False), "constraint_2": scale_reply(value, "tea at the Old Mill")}
    (trace,), _ = score_preferences(reply_in_turn(reply), people("ann"))
    assert {one.subject: one.score for one in trace.verdicts} == {"step-free": 0.1, "tea": score}


def test_descriptions_of_values_are_shown() -> None:
    _, (body,) = score_preferences(find_nothing, people("ann"))
    assert "A pot of assam each afternoon.\n0: nothing in the response serves it\n1: " in user_message(body)
    assert fenced("No stairs anywhere.", "item") in user_message(body)


def test_a_constraint_without_text_is_shown_by_its_id() -> None:
    bare = people("ann").model_dump()
    bare["stakeholders"][0]["constraints"] = [{"id": "no-stairs", "kind": "hard"}]
    _, (body,) = score_preferences(find_nothing, Task.model_validate(bare))
    assert fenced("no-stairs", "item") in user_message(body)


def test_a_compact_reply_has_no_reasons() -> None:
    use = [{"use": "preferences", "params": {"profile": "compact"}}]
    (trace,), (body,) = score_preferences(find_everything, people("ann"), use=use)
    assert [list(item["properties"]) for item in items_of(body).values()] == [["met", "probability"], ["value"]]
    assert {one.score for one in trace.verdicts} == {0.9, 1.0}


# Each for itself


def test_stakeholders_are_judged_separately_and_not_shown_to_each_others_judges() -> None:
    _, bodies = score_preferences(find_nothing, people(), RESPONSE_TEXT, "Stay at home.")
    assert len(bodies) == 2 * len(WISHES)
    for body in bodies:
        prompt_text = json.dumps(body, ensure_ascii=False)
        shown = [name for name in WISHES if any(word in prompt_text for word in texts_about(name))]
        assert len(shown) == 1
        assert all(word in prompt_text for word in texts_about(*shown))
        assert fenced(PROFILES[shown[0]], "profile") in user_message(body)


names = st.lists(st.sampled_from(["ann", "bob", "cyd"]), min_size=1, max_size=3, unique=True)


@given(names, st.lists(st.sampled_from([RESPONSE_TEXT, "Stay at home.", "Go."]), min_size=1, max_size=3), st.randoms())
@settings(max_examples=at_most(40))
def test_a_call_is_about_one_person_and_one_response_in_any_order(
    asked: list[str], texts: list[str], shuffled: Any
) -> None:
    about = [view(one) for one in people(*asked).stakeholders]

    def build(model: JudgeClient) -> Sequence[EvaluatorInput]:
        asks = evaluator_inputs(model, about, responses(*texts), evaluator=Preferences())
        shuffled.shuffle(asks)
        return asks

    _, requests = answer_questions(Preferences(), build)
    assert len({request.digest for request in requests}) == len(asked) * len(set(texts))
    for request in requests:
        prompt_text = "".join(message.content for message in request.messages)
        assert sum(any(word in prompt_text for word in texts_about(name)) for name in WISHES) == 1
        assert sum(fenced(text, "response") in prompt_text for text in {RESPONSE_TEXT, "Stay at home.", "Go."}) == 1


def test_other_stakeholders_change_no_request() -> None:
    alone, _ = score_preferences(find_nothing, people("ann"), cache=False)
    together, _ = score_preferences(find_nothing, people(), cache=False)
    words = [{_of(call.id, trace) for call in trace.calls} for trace in (*alone, *together)]
    assert words[0] == {frozenset({"step-free", "tea"})}
    assert words[0] < words[1]


def _of(call: str, trace: Trace) -> frozenset[str]:
    return frozenset(one.subject for one in trace.verdicts if one.call == call)


def test_more_than_four_constraints_are_several_calls() -> None:
    many = people("ann").model_dump()
    many["stakeholders"][0]["constraints"] = [{"id": f"c{place}", "kind": "hard", "text": ""} for place in range(6)]
    _, bodies = score_preferences(find_nothing, Task.model_validate(many))
    assert sorted(len(items_of(body)) for body in bodies) == [2, 4]


# Together with checks


def fits(task: Any, response: Any) -> bool:
    """A check of these tests, which holds."""
    return True


def with_checks(*uses: Any, checks: Any = None) -> dict[str, Any]:
    functions = {"fits": f"{__name__}:fits"}
    checks_use = {"use": "checks.constraints", "params": {"functions": functions}}
    return {"use": [checks_use, *uses], "settings": UNIFORM | {"failure": {"min_coverage": 0.0001}}}


FITS = {"cheap": {"function": "fits"}}


def test_a_constraint_with_a_check_needs_no_model() -> None:
    (trace,), (body,) = score_preferences(find_everything, people("bob", checks=FITS), **with_checks("preferences"))
    found = {one.subject: (one.evaluator, one.score) for one in trace.verdicts}
    assert found == {"cheap": ("checks.constraints", 1.0), "fish": ("preferences", 1.0)}
    assert list(items_of(body)) == ["constraint_1"]
    assert "Under forty pounds a day." not in user_message(body)
    assert (trace.reward.coverage, trace.reward.counts.judged) == (1.0, 2)


def test_without_preferences_an_uncovered_constraint_abstains_and_is_counted() -> None:
    (trace,), bodies = score_preferences(find_everything, people("bob", checks=FITS), **with_checks())
    assert {one.subject: one.status for one in trace.verdicts} == {"cheap": "ok", "fish": "abstained"}
    assert (len(bodies), trace.reward.coverage) == (0, 0.5)


def test_an_uncovered_constraint_is_counted_if_another_evaluator_covers_the_member() -> None:
    """A constraint may have the name of its stakeholder, as other questions about that one do."""
    odd = people("bob").model_dump()
    odd["stakeholders"][0]["constraints"] = [{"id": "bob", "kind": "hard", "text": "Under forty pounds a day."}]
    (trace,), _ = score_preferences(
        find_everything, Task.model_validate(odd), **with_checks({"use": "tests.agents.judging.own:Kind"})
    )
    assert {one.evaluator: one.status for one in trace.verdicts} == {
        "checks.constraints": "abstained",
        "tests.agents.judging.own.Kind": "ok",
    }


# The conformance suite


def by_what_is_shown(body: dict[str, Any], number: int) -> Answer:
    return reply_with(json.dumps(reply_to_all(body, found=len(user_message(body)) % 2 == 0)))


@pytest.mark.parametrize("profile", ["full", "compact"])
def test_it_passes_the_conformance_suite_with_a_model(profile: str) -> None:
    group = (people(), responses(RESPONSE_TEXT, "Stay at home.", "Go."))
    use = {"use": "preferences", "params": {"profile": profile}}
    with run_server(by_what_is_shown) as server:
        seen = conformance.check_evaluator(use, [group], model=f"openai-compatible:{server.url}#tiny")
        assert seen == 6 * (3 + len(conformance.ODD_TEXTS))
        assert server.count > 0


def test_without_stakeholders_there_are_no_questions() -> None:
    use = {"evaluators": ["preferences", "maths.length"], "reward": {"length": 1.0}}
    with Jury.from_config(use) as jury:
        (trace,) = jury.score(Task(id="letter", query="Write."), responses("Dear Ann"))
    assert [one.evaluator for one in trace.verdicts] == ["maths.length"]
