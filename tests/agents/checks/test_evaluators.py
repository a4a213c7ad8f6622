"""Constraints decided for a task and a response: as the state machine asks for them."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph import InputError, Jury, PlanError, Response, Task, Verdict
from jurygraph.agents.checks.evaluators import Constraints
from jurygraph.conformance import check_evaluator
from tests.agents.facts.test_values import JSON
from tests.examples import at_most

MENU = [
    {"name": "Curry House", "city": "Leeds", "price": 12, "kinds": "Indian, Tea"},
    {"name": "Fish Bar", "city": "Leeds", "price": 8, "kinds": "Fish"},
    {"name": "Old Mill", "city": "Leeds", "price": None, "kinds": "Tea"},
]
FACTS: dict[str, Any] = {
    "tables": {"menu": {"key": ["name", "city"], "rows": MENU, "lists": {"kinds": ","}}},
    "claims": {
        "meals": {
            "at": ["$.days[*].meal"],
            "forms": [{"table": "menu", "pattern": "(?P<name>.+), (?P<city>.+)", "states": {"sort": "meal"}}],
            "beside": {"day": {"field": "day"}},
            "order": "day",
            "merged": "times",
        }
    },
}
COST = {"sum": [{"of": "meals", "column": "price", "times": "times"}], "at_most": 30}
FISH = {"values": "meals", "column": "kinds", "includes": ["Fish"]}
CONFIG = {"evaluators": ["checks.constraints"], "derivers": ["facts.claims"]}


def task(*checks: dict[str, Any] | None, facts: dict[str, Any] | None = FACTS) -> Task:
    constraints = [{"id": f"c{i}", "kind": "hard", "check": check} for i, check in enumerate(checks)]
    return Task.model_validate(
        {"id": "t", "query": "Eat well.", "facts": facts, "stakeholders": [{"id": "ann", "constraints": constraints}]}
    )


def plan(*meals: str | None) -> dict[str, Any]:
    return {"days": [{"day": day, "meal": meal} for day, meal in enumerate(meals, start=1)]}


@pytest.fixture(scope="module")
def jury() -> Iterator[Jury]:
    with Jury.from_config(CONFIG) as made:
        yield made


def verdict(jury: Jury, check: dict[str, Any] | None, data: Any = None, text: str = "", **facts: Any) -> Verdict:
    (trace,) = jury.score(task(check, **facts), [Response(id="r", text=text, data=data)])
    (found,) = trace.verdicts
    return found


# Questions and verdicts


def test_every_constraint_of_a_stakeholder_has_a_question(jury: Jury) -> None:
    (trace,) = jury.score(task(COST, FISH), [Response(id="r", text="", data=plan("Curry House, Leeds"))])
    assert {(v.stakeholder, v.subject, v.score, v.met) for v in trace.verdicts} == {
        ("ann", "c0", 1.0, True),
        ("ann", "c1", 0.0, False),
    }


def test_a_constraint_without_a_check_is_not_judged(jury: Jury) -> None:
    found = verdict(jury, None, plan("Curry House, Leeds"))
    assert (found.status, found.reason) == (
        "abstained",
        "the constraint states no check, and nobody else is asked about it",
    )


def test_a_failed_check_shows_claims_with_their_rows(jury: Jury) -> None:
    found = verdict(jury, {**COST, "at_most": 15}, plan("Curry House, Leeds", "Fish Bar, Leeds"))
    assert (found.score, found.reason) == (0.0, "c0: the sum is 20, not 15 or less")
    assert [(e.source, e.verified) for e in found.evidence] == [
        ("data $['days'][0]['meal']", True),
        ("menu, row 1", True),
        ("data $['days'][1]['meal']", True),
        ("menu, row 2", True),
    ]


def test_only_a_partial_check_credits_a_share(jury: Jury) -> None:
    dear = {**COST, "at_most": 10}
    assert verdict(jury, dear, plan("Curry House, Leeds")).score == 0.0
    found = verdict(jury, {**dear, "partial": True}, plan("Curry House, Leeds"))
    assert (found.score, found.met) == (pytest.approx(0.8), False)


def test_values_of_a_form_are_known_for_a_claim_without_a_row(jury: Jury) -> None:
    for sort, met in (("meal", False), ("bribe", True)):
        check = {"count": "meals", "where": {"sort": {"equals": sort}}, "at_most": 0}
        assert verdict(jury, check, plan("Palace, Leeds", "Fish Bar, Leeds")).met is met


# The response's own data


def test_items_may_be_records_of_the_data(jury: Jury) -> None:
    check = {"sum": [{"of": "$.meals[?@.day == 1]", "column": "price"}], "at_most": 10}
    data = {"meals": [{"day": 1, "price": 6}, {"day": 1, "price": 5}, {"day": 2, "price": 9}]}
    found = verdict(jury, check, data, facts=None)
    assert (found.met, found.reason) == (False, "c0: the sum is 11, not 10 or less")
    assert [(e.source, e.quote, e.verified) for e in found.evidence] == [
        ("data $['meals'][0]", '{"day": 1, "price": 6}', True),
        ("data $['meals'][1]", '{"day": 1, "price": 5}', True),
    ]


@pytest.mark.parametrize("data", [None, "", [], {}, [[]], [{}, ""], {"days": []}, {"a": {"b": [None]}}], ids=repr)
@pytest.mark.parametrize(
    "check",
    [
        COST,
        {"count": "meals", "at_most": 3},
        {"count": "$.days[*]", "at_most": 3},
        {"count": "$[*]", "equals": 2},
        {"share": "meals", "where": {"price": {"at_most": 3}}, "among": {"day": {"equals": 1}}},
        {"values": "meals", "column": "kinds", "excludes": ["Fish"]},
        {"values": "meals", "column": "name", "distinct": True},
    ],
    ids=str,
)
def test_an_empty_response_gets_no_credit(jury: Jury, check: dict[str, Any], data: Any) -> None:
    found = verdict(jury, check, data, text="All within the budget.")
    assert (found.score, found.met) == (0.0, False)
    assert found.reason == "c0: the response has no data in which this could be looked for"


@pytest.mark.parametrize("data", ["All is well.", {"days": [{"note": "rest"}]}, [1, 2]], ids=repr)
@pytest.mark.parametrize(
    "check",
    [
        {"count": "meals", "at_most": 3},
        {"values": "meals", "column": "kinds", "excludes": ["Fish"]},
        {"values": "meals", "column": "name", "distinct": True},
    ],
    ids=str,
)
def test_data_without_any_claim_gets_no_credit(jury: Jury, check: dict[str, Any], data: Any) -> None:
    found = verdict(jury, check, data)
    assert (found.score, found.met) == (0.0, False)
    assert found.reason == "c0: nothing that the response's data claims is there"


@pytest.mark.parametrize("message", ["blah", "Palace, Leeds"])
def test_an_exclusion_holds_only_where_another_kind_is_claimed(jury: Jury, message: str) -> None:
    drinks = {**FACTS["claims"]["meals"], "at": ["$.days[*].drink"]}
    facts = {**FACTS, "claims": {**FACTS["claims"], "drinks": drinks}}
    found = verdict(jury, {"count": "drinks", "at_most": 0}, plan(message), facts=facts)
    assert (found.score, found.reason) == (0.0, "c0: nothing that the response's data claims is there")
    assert verdict(jury, {"count": "drinks", "at_most": 0}, plan("Fish Bar, Leeds"), facts=facts).met is True


# The response's text


def test_a_text_check_quotes_its_match(jury: Jury) -> None:
    found = verdict(jury, {"text": r"caf[eé] \w+"}, text="Das 😀 café Münch zuerst", facts=None)
    assert (found.score, found.met) == (1.0, True)
    (quote,) = found.evidence
    assert (quote.quote, quote.start, quote.end, quote.verified) == ("café M", 6, 12, True)


# Any order, any data


def test_it_conforms() -> None:
    """Nothing changes with the order of keys, of constraints or of responses, and no odd text breaks it."""
    checks = [COST, FISH, {"text": "a+"}, {"values": "$..*", "column": "b", "distinct": True}, None]
    data = [plan("Curry House, Leeds", None, "Palace, Leeds"), {"x": {"b": 1, "a": 2}, "y": {"b": 1}}, None, 5]
    responses = [Response(id=f"r{i}", text="aa", data=one) for i, one in enumerate(data)]
    assert check_evaluator("checks.constraints", [(task(*checks), responses)], ["facts.claims"])


EVERY = [
    COST,
    {**FISH, "partial": True},
    {"share": "meals", "where": {"price": {"between": [1, 5]}, "kinds": {"has_not": "Tea"}}},
    {"count": "$..*", "where": {"a": {"at_least": {"column": "b"}}}, "at_most": 2, "partial": True},
    {"count": "$..*", "where": {"value": {"matches": "a"}, "a": {"one_of": ["a", 1, True]}}, "between": [1, 2]},
    {"share": "$[*]", "where": {"value": {"at_most": "9:30"}}, "among": {"value": {"is_not": 3}}, "at_most": 0.5},
    {"sum": [{"of": "$..*", "column": "value", "times": "value", "people": 3, "places": "value"}], "at_most": 9},
    {"sum": [{"of": "$[?match(@.a, @.b)]", "column": "a"}], "per": 0.001, "at_least": 1, "partial": True},
    {"values": "$..*", "column": "value", "includes": ["a", 1, True], "partial": True},
    {"values": "$..a", "column": "value", "excludes": ["a", 0], "partial": True},
    {"values": "$..*", "column": "value", "distinct": True, "partial": True},
]
KEYS = st.sampled_from(["a", "b", "days", "day", "meal", "value"])
SCALARS = JSON | st.sampled_from([1e308, 10**400, -0.0, "9" * 400, "Curry House, Leeds", "$5", "5 EUR"])
HOSTILE = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@pytest.mark.landing
@settings(max_examples=at_most(40), deadline=None)
@given(data=HOSTILE)
def test_no_data_breaks_a_check(jury: Jury, data: Any) -> None:
    (trace,) = jury.score(task(*EVERY), [Response(id="r", text="", data=data)])
    assert [v.reason for v in trace.verdicts if v.status not in ("ok", "abstained")] == []


# Functions

MODULE = """\
def short(task, response, most=10, words=()):
    words = list(words)
    return len(response.text) <= most and task.member == "ann"


def spoil(task, response, words):
    return len(words) == 2 and words.pop() is not None


def broken(task, response):
    raise RuntimeError("out of order")


async def waited(task, response):
    return 0.25


number = 5
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of somebody's own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ownchecks.py").write_text(MODULE)
    yield tmp_path / "ownchecks.py"
    sys.modules.pop("ownchecks", None)


def config_with_functions(**functions: str) -> dict[str, Any]:
    return {"evaluators": [{"use": "checks.constraints", "params": {"functions": functions}}]}


def verdict_of_function(check: dict[str, Any], text: str = "", **functions: str) -> Verdict:
    with Jury.from_config(config_with_functions(**functions)) as jury:
        return verdict(jury, check, text=text, facts=None)


@pytest.mark.usefixtures("functions")
class TestFunctions:
    def test_a_function_is_given_the_stakeholders_view_the_response_and_the_params(self) -> None:
        check = {"function": "brief", "params": {"most": 3}}
        assert verdict_of_function(check, "abc", brief="ownchecks.short").met is True
        assert verdict_of_function(check, "abcd", brief="ownchecks.short").met is False

    def test_a_function_cannot_change_the_params_of_others(self) -> None:
        check = {"function": "spoil", "params": {"words": ["a", "b"]}}
        responses = [Response(id=name, text="") for name in "abc"]
        with Jury.from_config(config_with_functions(spoil="ownchecks.spoil")) as jury:
            traces = jury.score(task(check, facts=None), responses)
        assert [v.met for trace in traces for v in trace.verdicts] == [True, True, True]

    def test_an_exception_is_a_failed_verdict(self) -> None:
        found = verdict_of_function({"function": "broken"}, broken="ownchecks.broken")
        assert (found.status, found.score) == ("failed", None)
        assert re.fullmatch(r"out of order \(ownchecks\.py, line \d+, in broken\)", found.reason)

    @pytest.mark.parametrize(
        ("params", "words"),
        [({"x": 1}, "got an unexpected keyword argument 'x'"), ({"task": 1}, "multiple values for argument 'task'")],
    )
    def test_params_that_do_not_fit_are_refused_when_the_plan_is_made(self, params: Any, words: str) -> None:
        called = r"field check\.params: 'broken' is called as \(task, response, \*\*params\): "
        with pytest.raises(PlanError, match=f"{called}{words}; change the params, or the function"):
            verdict_of_function({"function": "broken", "params": params}, broken="ownchecks.broken")

    def test_only_checks_without_functions_run_inline(self) -> None:
        assert Constraints().runs_inline
        assert not Constraints(functions={"brief": "ownchecks.short"}).runs_inline

    def test_a_task_cannot_name_code_by_itself(self) -> None:
        for path in ("ownchecks.short", "os.system"):
            with pytest.raises(
                PlanError, match=f"field check.function: there is no '{path}'; list it in the params of"
            ):
                verdict_of_function({"function": path}, brief="ownchecks.short")

    def test_the_version_changes_with_the_source(self, functions: Path) -> None:
        before = Constraints(functions={"brief": "ownchecks.short"}).version
        assert Constraints(functions={"brief": "ownchecks.short"}).version == before != Constraints().version
        sys.modules.pop("ownchecks")
        functions.write_text(MODULE + "\n\nmore = 1\n")
        assert Constraints(functions={"brief": "ownchecks.short"}).version != before


# Invalid checks


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"cuont": "meals"}, "field check.cuont: unknown; did you mean count?"),
        ({"at_most": 3}, "field check: measures nothing; give one of"),
        ({"count": "meals", "sum": [], "at_most": 3}, "field check.sum: has 0 entries"),
        ({"count": "meals", "where": {"price": {"at_moost": 3}}}, "field check.where.price.at_moost: unknown; did you"),
        ({"text": "(?<=a)b"}, "field check.text: is not a valid RE2 pattern (invalid perl operator: (?<=); RE2 has no"),
        ({"count": "$..[", "at_most": 1}, "field check.count: is not a valid JSONPath"),
        ({"count": "maels", "at_most": 1}, "field check.count: facts.claims: there is no kind 'maels'; did you"),
        ({"count": "xyz", "at_most": 1}, "field check.count: facts.claims: there is no kind 'xyz'; there are meals"),
        ({"count": "meals", "where": {"prise": {"equals": 1}}, "at_most": 1},
         "field check: meals: there is no column 'prise'; did you mean price?"),
        ({"count": "meals", "where": {"price": {"equals": {"column": "tims"}}}, "at_most": 1},
         "field check: meals: there is no column 'tims'; did you mean times?"),
        ({"share": "meals", "where": {"price": {"equals": 1}}, "among": {"dya": {"equals": 1}}},
         "field check: meals: there is no column 'dya'; did you mean day?"),
        ({"sum": [{"of": "meals", "column": "xyz"}], "at_most": 1},
         "field check: meals: there is no column 'xyz'; there are city, day, kinds, name, price, sort, times"),
        ({"sum": [{"of": "meals", "column": "price", "people": 2, "places": "seats"}], "at_most": 1},
         "field check: meals: there is no column 'seats'"),
        ({"values": "meals", "column": "kind", "distinct": True},
         "field check: meals: there is no column 'kind'; did you mean kinds?"),
        ({"function": "haiku"}, "field check.function: there is no 'haiku'; list it in the params of checks.const"),
    ],
)  # fmt: skip
def test_a_misuse_is_named_when_the_plan_is_made(jury: Jury, check: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        jury.prepare(task(FISH, check))
    assert str(caught.value).startswith(f"task 't': constraint 'c1' of 'ann', {words}")


def test_hard_constraints_that_no_response_can_meet_are_refused(jury: Jury) -> None:
    with pytest.raises(
        PlanError, match=r"'c0' and 'c1' of 'ann' cannot both be met: .*; make one soft, or leave one out"
    ):
        jury.prepare(task({"count": "meals", "at_least": 3}, {"count": "meals", "at_most": 2}))


def test_findings_from_another_file_are_not_reused(tmp_path: Path, jury: Jury) -> None:
    menu = tmp_path / "menu.json"
    menu.write_text(json.dumps(MENU))
    about = task(FISH, facts={**FACTS, "tables": {"menu": {"key": ["name", "city"], "file": str(menu)}}})
    planned, response = jury.prepare(about), Response(id="r", text="", data=plan("Fish Bar, Leeds"))
    menu.write_text(json.dumps(MENU[:1]))
    with pytest.raises(InputError, match="the plan for task 't' was made with other facts"):
        jury.score(about, [response], planned)
