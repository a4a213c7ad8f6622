"""Needs and wishes of stakeholders: judged for each separately, and only if no check decides."""

import json
from typing import Any

from jurygraph import Task, Trace
from jurygraph.judges.criteria import WISH_FULFILMENT_SCALE
from tests.judges.criteria.people import PROFILES, RESPONSE_TEXT, WISHES, people, texts_about
from tests.judges.criteria.scripted_judge import (
    bounds_of,
    fenced,
    find_everything,
    find_nothing,
    score_by_script,
    user_message,
)
from tests.models.judge_scripts import Script, items_of, responses

UNIFORM = {"weights": {"method": "uniform"}}


def score_preferences(
    script: Script, task: Task, *texts: str, **kwargs: Any
) -> tuple[list[Trace], list[dict[str, Any]]]:
    kwargs = {"use": ["preferences"], "settings": UNIFORM} | kwargs
    return score_by_script(script, task, responses(*(texts or (RESPONSE_TEXT,))), **kwargs)


# Forms


def test_a_need_is_met_or_not_and_a_wish_is_served_from_0_to_4() -> None:
    (trace,), (body,) = score_preferences(find_everything, people("ann"))
    assert [list(item["properties"])[-1] for item in items_of(body).values()] == [
        "probability",
        "value",
    ]
    assert bounds_of(items_of(body)["constraint_2"]["properties"]["value"]) == WISH_FULFILMENT_SCALE
    found = {one.subject: (one.score, one.met, one.native, one.scale) for one in trace.verdicts}
    assert found == {
        "step-free": (0.9, True, "P(met) as stated", None),
        "tea": (1.0, None, 4.0, WISH_FULFILMENT_SCALE),
    }
    assert {one.stakeholder for one in trace.verdicts} == {"ann"}
    assert {one.layer for one in trace.verdicts} == {"model"}


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
    (trace,), (body,) = score_preferences(
        find_everything, people("bob", checks=FITS), **with_checks("preferences")
    )
    found = {one.subject: (one.evaluator, one.score) for one in trace.verdicts}
    assert found == {"cheap": ("checks.constraints", 1.0), "fish": ("preferences", 1.0)}
    assert list(items_of(body)) == ["constraint_1"]
    assert "Under forty pounds a day." not in user_message(body)
    assert (trace.reward.coverage, trace.reward.counts.judged) == (1.0, 2)


def test_without_preferences_an_uncovered_constraint_abstains_and_is_counted() -> None:
    (trace,), bodies = score_preferences(
        find_everything, people("bob", checks=FITS), **with_checks()
    )
    assert {one.subject: one.status for one in trace.verdicts} == {
        "cheap": "ok",
        "fish": "abstained",
    }
    assert (len(bodies), trace.reward.coverage) == (0, 0.5)


def test_an_uncovered_constraint_is_counted_if_another_evaluator_covers_the_member() -> None:
    """A constraint may have the name of its stakeholder, as other questions about that one do."""
    odd = people("bob").model_dump()
    odd["stakeholders"][0]["constraints"] = [
        {"id": "bob", "kind": "hard", "text": "Under forty pounds a day."}
    ]
    (trace,), _ = score_preferences(
        find_everything,
        Task.model_validate(odd),
        **with_checks({"use": "tests.judges.criteria.own:Kind"}),
    )
    assert {one.evaluator: one.status for one in trace.verdicts} == {
        "checks.constraints": "abstained",
        "tests.judges.criteria.own.Kind": "ok",
    }
