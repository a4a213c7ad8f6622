"""The residual checklist, the same for everybody and at most a fifth of û_i."""

from collections.abc import Sequence
from typing import Any

import pytest

from jurygraph import Jury, PlanError, Task, Trace
from jurygraph.judges.criteria import DEFAULT_CHECKLIST_ITEMS
from tests.judges.criteria.people import RESPONSE_TEXT, people
from tests.judges.criteria.scripted_judge import (
    fenced,
    find_everything,
    parts_reply,
    reply_in_turn,
    score_by_script,
    user_message,
)
from tests.models.judge_scripts import Script, items_of, responses

FIFTH = {"weights": {"method": "uniform", "layers": {"model": 0.8, "residual": 0.2}}}
ALONE = {"use": "checklist", "params": {"audience": "task"}}
"""For the task as a whole it is a component of its own."""


def score_checklist(
    script: Script, task: Task, *texts: str, **kwargs: Any
) -> tuple[list[Trace], list[dict[str, Any]]]:
    kwargs = {"use": [ALONE], "settings": {"reward": {"checklist": 1.0}}} | kwargs
    return score_by_script(script, task, responses(*(texts or (RESPONSE_TEXT,))), **kwargs)


def both(**checklist: Any) -> dict[str, Any]:
    """Return a config with preferences, at least four fifths of û_i, and the checklist."""
    return {"use": ["preferences", {"use": "checklist", "params": checklist}], "settings": FIFTH}


# Questions


def test_every_item_is_a_part_and_the_score_is_the_share_that_holds() -> None:
    reply = {"checklist_1": parts_reply(["herring"], None, ["Home at six"], None)}
    reply["checklist_1"]["part_1"]["quotes"] = ["herring at the Fish Bar"]
    (trace,), (body,) = score_checklist(reply_in_turn(reply), people("ann"))
    parts = items_of(body)["checklist_1"]["properties"]
    assert list(parts) == ["reason", "part_1", "part_2", "part_3", "part_4"]
    shown = "\n".join(
        f"part_{place}: {text}" for place, text in enumerate(DEFAULT_CHECKLIST_ITEMS, start=1)
    )
    assert fenced(f"Each part is asked about by itself.\n{shown}", "item") in user_message(body)
    (verdict,) = trace.verdicts
    assert (verdict.score, verdict.met, verdict.native, verdict.scale) == (
        0.5,
        False,
        2.0,
        (0.0, 4.0),
    )
    assert (verdict.layer, verdict.subject, verdict.stakeholder) == ("residual", "checklist", None)
    assert trace.reward.components == {"checklist": 0.5}


# How much it holds


def test_with_preferences_it_has_its_share_of_each_utility() -> None:
    (trace,), _ = score_checklist(find_everything, people("ann"), **both())
    assert trace.reward.parts["stakeholders"] == {"ann": pytest.approx(0.8 * (0.9 + 1.0) / 2 + 0.2)}


def refusal(uses: Sequence[Any], **config: Any) -> str:
    weights = {"method": "uniform", **config}
    with (
        Jury.from_config({"evaluators": uses, "weights": weights}) as jury,
        pytest.raises(PlanError) as error,
    ):
        jury.prepare(people("ann"))
    return str(error.value)


def test_more_than_a_fifth_is_refused_before_any_call() -> None:
    uses = both()["use"]
    template = (
        "residual questions hold {} % of the weight of stakeholder 'ann', and 20 % is the most"
    )
    assert template.format("33.3") in refusal(uses)  # a third of three questions
    assert template.format("21") in refusal(uses, layers={"model": 0.79, "residual": 0.21})
    assert template.format("100") in refusal(["checklist"])
