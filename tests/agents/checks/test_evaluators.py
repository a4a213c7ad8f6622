"""Constraints decided for a task and a response: as the state machine asks for them."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph import Jury, PlanError, Response, Task, Verdict
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
            "forms": [
                {
                    "table": "menu",
                    "pattern": "(?P<name>.+), (?P<city>.+)",
                    "states": {"sort": "meal"},
                }
            ],
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
    constraints = [
        {"id": f"c{i}", "kind": "hard", "check": check} for i, check in enumerate(checks)
    ]
    return Task.model_validate(
        {
            "id": "t",
            "query": "Eat well.",
            "facts": facts,
            "stakeholders": [{"id": "ann", "constraints": constraints}],
        }
    )


def plan(*meals: str | None) -> dict[str, Any]:
    return {"days": [{"day": day, "meal": meal} for day, meal in enumerate(meals, start=1)]}


@pytest.fixture(scope="module")
def jury() -> Iterator[Jury]:
    with Jury.from_config(CONFIG) as made:
        yield made


def verdict(
    jury: Jury, check: dict[str, Any] | None, data: Any = None, text: str = "", **facts: Any
) -> Verdict:
    (trace,) = jury.score(task(check, **facts), [Response(id="r", text=text, data=data)])
    (found,) = trace.verdicts
    return found


# Questions and verdicts


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


NONE_BARRED = [
    {"count": "meals", "at_most": 3},
    {"values": "meals", "column": "kinds", "excludes": ["Fish"]},
    {"values": "meals", "column": "name", "distinct": True},
]


@pytest.mark.parametrize(
    "data", [None, "", [], {}, [[]], [{}, ""], {"days": []}, {"a": {"b": [None]}}], ids=repr
)
@pytest.mark.parametrize("check", [COST, *NONE_BARRED, {"count": "$[*]", "equals": 2}], ids=str)
def test_an_empty_response_gets_no_credit(jury: Jury, check: dict[str, Any], data: Any) -> None:
    found = verdict(jury, check, data, text="All within the budget.")
    assert (found.score, found.met) == (0.0, False)
    assert found.reason == "c0: the response has no data in which this could be looked for"


@pytest.mark.parametrize("data", ["All is well.", {"days": [{"note": "rest"}]}, [1, 2]], ids=repr)
@pytest.mark.parametrize("check", NONE_BARRED, ids=str)
def test_data_without_any_claim_gets_no_credit(
    jury: Jury, check: dict[str, Any], data: Any
) -> None:
    found = verdict(jury, check, data)
    assert (found.score, found.met) == (0.0, False)
    assert found.reason == "c0: nothing that the response's data claims is there"


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
    data = [
        plan("Curry House, Leeds", None, "Palace, Leeds"),
        {"x": {"b": 1, "a": 2}, "y": {"b": 1}},
        None,
        5,
    ]
    responses = [Response(id=f"r{i}", text="aa", data=one) for i, one in enumerate(data)]
    assert check_evaluator("checks.constraints", [(task(*checks), responses)], ["facts.claims"])


EVERY = [
    COST,
    {**FISH, "partial": True},
    {"share": "meals", "where": {"price": {"at_most": 5}, "kinds": {"has_not": "Tea"}}},
    {"count": "$..*", "where": {"a": {"at_least": {"column": "b"}}}, "at_most": 2, "partial": True},
    {
        "count": "$..*",
        "where": {"value": {"matches": "a"}, "a": {"one_of": ["a", 1, True]}},
        "between": [1, 2],
    },
    {
        "share": "$[*]",
        "where": {"value": {"at_most": "9:30"}},
        "among": {"value": {"is_not": 3}},
        "at_most": 0.5,
    },
    {
        "sum": [
            {"of": "$..*", "column": "value", "times": "value", "people": 3, "places": "value"}
        ],
        "at_most": 9,
    },
    {
        "sum": [{"of": "$[?@.a == @.b]", "column": "a"}],
        "per": 0.001,
        "at_least": 1,
        "partial": True,
    },
    {"values": "$..*", "column": "value", "includes": ["a", 1, True], "partial": True},
    {"values": "$..a", "column": "value", "excludes": ["a", 0], "partial": True},
    {"values": "$..*", "column": "value", "distinct": True, "partial": True},
]
KEYS = st.sampled_from(["a", "b", "days", "day", "meal", "value"])
SCALARS = JSON | st.sampled_from(
    [1e308, 10**400, -0.0, "9" * 400, "Curry House, Leeds", "$5", "5 EUR"]
)
HOSTILE = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)


@pytest.mark.landing
@settings(max_examples=at_most(40), deadline=None)
@given(data=HOSTILE)
def test_no_data_breaks_a_check(jury: Jury, data: Any) -> None:
    (trace,) = jury.score(task(*EVERY), [Response(id="r", text="", data=data)])
    assert [v.reason for v in trace.verdicts if v.status not in ("ok", "abstained")] == []


# Functions

MODULE = """\
def spoil(task, response, words):
    return len(words) == 2 and words.pop() is not None and task.member == "ann"


def broken(task, response):
    raise RuntimeError("out of order")
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of somebody's own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ownchecks.py").write_text(MODULE)
    yield tmp_path / "ownchecks.py"
    sys.modules.pop("ownchecks", None)


def verdicts_of_function(check: dict[str, Any], number: int = 1) -> list[Verdict]:
    names = {name: f"ownchecks.{name}" for name in ("spoil", "broken")}
    config = {"evaluators": [{"use": "checks.constraints", "params": {"functions": names}}]}
    with Jury.from_config(config) as jury:
        traces = jury.score(
            task(check, facts=None), [Response(id=f"r{n}", text="") for n in range(number)]
        )
    return [trace.verdicts[0] for trace in traces]


@pytest.mark.usefixtures("functions")
class TestFunctions:
    def test_a_function_is_given_the_params_and_cannot_change_those_of_others(self) -> None:
        check = {"function": "spoil", "params": {"words": ["a", "b"]}}
        assert [verdict.met for verdict in verdicts_of_function(check, 3)] == [True, True, True]

    def test_an_exception_is_a_failed_verdict(self) -> None:
        (found,) = verdicts_of_function({"function": "broken"})
        assert (found.status, found.score) == ("failed", None)
        assert re.fullmatch(r"out of order \(ownchecks\.py, line \d+, in broken\)", found.reason)

    @pytest.mark.parametrize(
        ("check", "words"),
        [
            (
                {"function": "broken", "params": {"x": 1}},
                r"\.params: 'broken' is called as .*unexpected keyword",
            ),
            (
                {"function": "broken", "params": {"task": 1}},
                r"\.params: 'broken' is called as .*multiple values for",
            ),
            (
                {"function": "ownchecks.spoil"},
                r"\.function: there is no 'ownchecks.spoil'; did you mean spoil",
            ),
            (
                {"function": "os.system"},
                r"\.function: there is no 'os.system'; list it in the params of",
            ),
        ],
    )
    def test_what_cannot_be_called_is_refused_when_the_plan_is_made(
        self, check: Any, words: str
    ) -> None:
        with pytest.raises(PlanError, match=f"field check{words}"):
            verdicts_of_function(check)

    def test_the_version_changes_with_the_source_and_functions_do_not_run_inline(
        self, functions: Path
    ) -> None:
        before = Constraints(functions={"spoil": "ownchecks.spoil"})
        assert (before.runs_inline, Constraints().runs_inline) == (False, True)
        sys.modules.pop("ownchecks")
        functions.write_text(MODULE + "\n\nmore = 1\n")
        assert Constraints(functions={"spoil": "ownchecks.spoil"}).version != before.version


# Invalid checks


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"at_most": 3}, "field check: measures nothing; give one of"),
        ({"count": "meals", "where": {"price": {"at_moost": 3}}}, "field check.where.price.at_moost: unknown; did you"),
        ({"count": "maels", "at_most": 1}, "field check.count: facts.claims: there is no kind 'maels'; did you"),
        ({"count": "meals", "where": {"prise": {"equals": 1}}, "at_most": 1},
         "field check: meals: there is no column 'prise'; did you mean price?"),
        ({"count": "meals", "where": {"price": {"equals": {"column": "tims"}}}, "at_most": 1},
         "field check: meals: there is no column 'tims'; did you mean times?"),
        ({"share": "meals", "where": {"price": {"equals": 1}}, "among": {"dya": {"equals": 1}}},
         "field check: meals: there is no column 'dya'; did you mean day?"),
        ({"sum": [{"of": "meals", "column": "xyz"}], "at_most": 1},
         "field check: meals: there is no column 'xyz'; there are city, day, kinds, name, price, sort, times"),
        ({"values": "meals", "column": "kind", "distinct": True},
         "field check: meals: there is no column 'kind'; did you mean kinds?"),
    ],
)  # fmt: skip
def test_a_misuse_is_named_when_the_plan_is_made(
    jury: Jury, check: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError) as caught:
        jury.prepare(task(FISH, check))
    assert str(caught.value).startswith(f"task 't': constraint 'c1' of 'ann', {words}")


def test_hard_constraints_that_no_response_can_meet_are_refused(jury: Jury) -> None:
    with pytest.raises(
        PlanError,
        match=r"'c0' and 'c1' of 'ann' cannot both be met: .*; make one soft, or leave one out",
    ):
        jury.prepare(task({"count": "meals", "at_least": 3}, {"count": "meals", "at_most": 2}))
