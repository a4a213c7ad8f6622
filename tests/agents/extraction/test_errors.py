"""Thirty plans in words and an extractor that errs: each error is caught by evidence.

With a perfect extractor, facts and checks say of the words what they say of the plan's own data.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pytest

from jurygraph import Jury, Response, Task, Verdict
from jurygraph.agents.extraction.grounding import Grounded, IndexedText, ground
from tests.agents.extraction.errors import ERRORS, Damage, Place
from tests.agents.extraction.extractor import Reply, read_perfectly, without_quotes
from tests.agents.extraction.plans import (
    ESCAPED,
    EVERY,
    KINDS,
    LINES,
    import_tasks,
    in_words,
    layout_in_turn,
    task_of_records,
)
from tests.rows import all_rows

QUICK_PLANS = 8
some_plans_in_make_test = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if at % 4 == 0 else pytest.mark.exhaustive) for at, name in enumerate(LINES)]
)
first_plans_in_make_test = pytest.mark.parametrize(
    "plans", [QUICK_PLANS, pytest.param(len(LINES), marks=pytest.mark.exhaustive)], ids=["first plans", "all plans"]
)


def ground_reply(text: str, reply: Reply) -> Grounded:
    return ground(IndexedText(text), KINDS, reply)


def without_record(reply: Reply, place: Place) -> Reply:
    """A reply less one record."""
    kind, number = place
    return {**reply, kind: [record for at, record in enumerate(reply[kind]) if at != number]}


def damage_reply(damage: Damage, name: str, layout: str) -> tuple[str, Reply, Place] | None:
    """Return the plan, the reply with the error and its place; None if the plan gives no occasion for the error."""
    text = in_words(name, layout)
    reply = read_perfectly(text)
    place = damage(reply, text, LINES[name]["query"])
    return None if place is None else (text, reply, place)


def layout_of(error: str, name: str) -> str:
    """Each error meets each plan, and each layout."""
    return layout_in_turn(list(ERRORS).index(error) + list(LINES).index(name))


def damaged_replies(error: str) -> Iterator[tuple[str, Reply, Place]]:
    """Every plan that gives occasion for the error, with the error in it."""
    found = (damage_reply(ERRORS[error], name, layout_of(error, name)) for name in LINES)
    yield from (one for one in found if one is not None)


# A perfect extractor


@pytest.mark.landing
@all_rows(("name", "layout"), EVERY)
def test_all_records_of_a_perfect_extractor_are_grounded_in_the_response(name: str, layout: str) -> None:
    text = in_words(name, layout)
    found = ground_reply(text, read_perfectly(text))
    assert found.left_out == ()
    assert found.data == without_quotes(read_perfectly(text))
    assert all(text[one.start : one.end] == one.quote and one.verified for one in found.evidence)


Measured = Mapping[tuple[str, str], tuple[Any, ...]]


def measured_values(verdicts: Any) -> Measured:
    """Return the measured values by evaluator and subject; reasons and evidence name other places."""
    return {(one.evaluator, one.subject): (one.status, one.score, one.met, one.native) for one in verdicts}


@pytest.fixture(scope="module")
def jury() -> Iterator[Jury]:
    config = {"derivers": ["facts.claims"], "evaluators": ["facts.confirmed", "checks.constraints"]}
    with Jury.from_config({**config, "reward": {"confirmed": 1.0}}) as made:
        yield made


def judge_data(jury: Jury, task: Task, *data: Any) -> list[tuple[Verdict, ...]]:
    responses = [Response(id=f"r{number}", text="", data=one) for number, one in enumerate(data)]
    return [trace.verdicts for trace in jury.score(task, responses)]


@pytest.mark.landing
@some_plans_in_make_test
def test_facts_and_checks_judge_extracted_data_like_the_plans_own_data(name: str, jury: Jury) -> None:
    layouts = [layout for other, layout in EVERY if other == name and (name, layout) != ESCAPED]
    texts = [in_words(name, layout) for layout in layouts]
    line = {field: value for field, value in import_tasks()[name].items() if field != "responses"}
    (own,) = judge_data(jury, Task.model_validate(line), LINES[name]["plan"])
    judged_data = judge_data(
        jury, task_of_records(name), *(ground_reply(text, read_perfectly(text)).data for text in texts)
    )
    assert [measured_values(one) for one in judged_data] == [measured_values(own)] * len(layouts)
    assert {one.status for one in own} == {"ok"}


# An extractor that errs


@pytest.mark.landing
@first_plans_in_make_test
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_caught_and_nothing_else_is_left_out(error: str, plans: int) -> None:
    seen = 0
    for text, reply, place in islice(damaged_replies(error), plans):
        found = ground_reply(text, reply)
        assert found.data == without_quotes(without_record(reply, place))
        assert [one.at for one in found.left_out] == [f"{place[0]}[{place[1]}]"]
        assert not any(
            one.of and one.of.startswith(f"$['{place[0]}'][{len(reply[place[0]]) - 1}]") for one in found.evidence
        )
        seen += 1
    assert seen >= 8
