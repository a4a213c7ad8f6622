"""Checks decided over items: what is known, what the response cannot show, and what the tables do not tell."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.agents.checks.evaluators import CheckResult, ListedItem
from tests.agents.checks.items import decide, invented_item, own_item, row_item
from tests.examples import at_most
from tests.rows import all_rows

PRICES = [{"of": "meals", "column": "price"}]
CHEAP = {"price": {"at_most": 10}}


def share_of(spec: dict[str, Any], *items: ListedItem) -> float:
    return decide(spec, *items).share


# Count


def test_without_tests_every_existing_item_counts() -> None:
    assert decide({"count": "meals", "equals": 2}, row_item(), row_item()).holds is True
    found = decide({"count": "meals", "at_least": 2}, row_item(), invented_item("Palace"))
    assert (found.holds, found.share) == (False, 0.0)
    assert found.reason == (
        "the number of meals is 1 to 2, and 2 or more is asked for; it cannot be shown, for 'Palace' is not there in "
        "meals"
    )
    assert decide({"count": "meals", "at_most": 0}, invented_item()).holds is False
    assert decide({"count": "meals", "at_least": 1}, row_item(), invented_item()).holds is True


@all_rows(
    ("bound", "number", "share"),
    [
        ({"at_least": 4}, 1, 0.25),
        ({"at_least": 4}, 0, 0.0),
        ({"at_most": 2}, 3, 0.5),
        ({"at_most": 2}, 4, 0.0),
        ({"at_most": 2}, 9, 0.0),
        ({"at_most": 0}, 1, 0.0),
        ({"equals": 4}, 3, 0.75),
        ({"equals": 4}, 5, 0.75),
        ({"between": [2, 4]}, 1, 0.5),
        ({"between": [2, 4]}, 6, 0.5),
    ],
)
def test_the_share_of_requested_items(bound: dict[str, Any], number: int, share: float) -> None:
    decided = decide({"count": "meals", **bound}, *[row_item()] * number)
    assert (decided.holds, decided.share) == (False, pytest.approx(share, abs=1e-15))


# Share and sum


def test_a_share_is_of_all_items_among_and_all_must_pass() -> None:
    spec = {"share": "meals", "where": CHEAP, "among": {"day": {"equals": 1}}}
    dear = row_item(price=20, day=1)
    assert decide(spec) == CheckResult(False, 0.0, "the response names no meals")
    assert decide(spec, row_item(day=2)) == CheckResult(
        True, 1.0, "none of the meals is of that kind"
    )
    reason = "the share of meals that pass is 0.5, not 1 or more"
    assert decide(spec, row_item(price=1, day=1), dear) == CheckResult(False, 0.5, reason, [dear])


@pytest.mark.parametrize(("bound", "within", "beyond"), [(1e6, 1e-4, 0.01), (1e-3, 1e-10, 1e-8)])
def test_rounding_is_a_billionth_of_a_large_bound_and_of_1_for_a_small_one(
    bound: float, within: float, beyond: float
) -> None:
    assert (
        decide(
            {"sum": PRICES, "at_most": bound}, row_item(price=bound), row_item(price=within)
        ).holds
        is True
    )
    assert (
        decide(
            {"sum": PRICES, "at_most": bound}, row_item(price=bound), row_item(price=beyond)
        ).holds
        is False
    )
    assert decide({"sum": PRICES, "at_least": bound}, row_item(price=bound - within)).holds is True
    assert decide({"sum": PRICES, "at_least": bound}, row_item(price=bound - beyond)).holds is False


@all_rows(
    ("term", "values", "cost"),
    [
        ({}, {"price": 12}, 12),
        ({}, {"price": "$1,200"}, 1200),
        ({"times": 3}, {"price": 100}, 300),
        ({"times": "nights"}, {"price": 100, "nights": 3}, 300),
        ({"people": 5}, {"price": 12}, 60),
        ({"people": 5, "places": 5}, {"price": 30}, 30),
        ({"people": 6, "places": 5}, {"price": 30}, 60),
        ({"people": 4, "places": "occupancy"}, {"price": 100, "occupancy": 2}, 200),
        (
            {"people": 5, "places": "occupancy", "times": "nights"},
            {"price": 100, "occupancy": 2, "nights": 3},
            900,
        ),
        ({"people": 1, "places": "occupancy"}, {"price": 100, "occupancy": 8}, 100),
    ],
)
def test_people_pay_for_the_units_that_they_need(
    term: dict[str, Any], values: dict[str, Any], cost: float
) -> None:
    """Meals a head; rooms for two by nights; cars of five seats."""
    spec = {"sum": [{**PRICES[0], **term}], "equals": cost}
    assert decide(spec, row_item(**values)).holds is True
    assert decide({**spec, "equals": cost + 1}, row_item(**values)).holds is False


def test_a_sum_of_no_items_fails() -> None:
    spec = {"sum": [*PRICES, {"of": "stays", "column": "price"}, *PRICES], "at_most": 100}
    assert decide(spec) == CheckResult(False, 0.0, "the response names no meals and no stays")


def test_an_overflowing_sum_exceeds_every_bound() -> None:
    items = [own_item(price=1e308), own_item(price=1e308)]
    assert decide({"sum": PRICES, "at_most": 1e308}, *items) == CheckResult(
        False, 0.0, f"the sum is inf, not {int(1e308)} or less", items
    )


# Values


def test_values_include_and_exclude() -> None:
    spec = {"values": "meals", "column": "kinds", "includes": ["Thai", "Greek"]}
    thai, both = (
        row_item(kinds="Tea, Thai", lists={"kinds": ","}),
        row_item(kinds=["Greek", "Thai"]),
    )
    assert decide(spec, thai, both).holds is True
    assert decide(spec, thai)[:3] == (False, 0.5, "kinds of meals does not include Greek")
    barred = {"values": "meals", "column": "kinds", "excludes": ["Thai", "Greek"]}
    assert decide(barred, row_item(kinds="Tea")).holds is True
    assert decide(barred, thai, both, row_item(kinds="Tea"), row_item(kinds="Cake"))[:3] == (
        False,
        0.5,
        "kinds of meals includes Thai, Greek",
    )


def test_distinct_values_never_repeat() -> None:
    spec = {"values": "meals", "column": "name", "distinct": True}
    assert decide(spec, row_item(name="A"), row_item(name="B")).holds is True
    repeated = decide(
        spec, row_item(name="A"), row_item(name="B"), row_item(name="A"), row_item(name=" A")
    )
    assert (repeated.holds, repeated.share, repeated.reason) == (
        False,
        0.5,
        "name of meals repeats A,  A",
    )
    assert [item.values["name"] for item in repeated.items] == ["A", " A"]


# Unknown values


ALL = [
    {"count": "meals", "where": CHEAP, "at_least": 1},
    {"count": "meals", "where": CHEAP, "at_most": 0},
    {"share": "meals", "where": CHEAP},
    {"share": "meals", "where": CHEAP, "at_most": 0},
    {"sum": PRICES, "at_most": 1000},
    {"sum": PRICES, "at_least": 1},
    {"values": "meals", "column": "price", "includes": [5]},
    {"values": "meals", "column": "price", "excludes": [5]},
    {"values": "meals", "column": "price", "distinct": True},
]


@all_rows("spec", ALL)
@all_rows("claims", [{}, {"price": 5}, {"price": 20}, {"price": -20}])
def test_invented_items_give_no_credit(spec: dict[str, Any], claims: dict[str, Any]) -> None:
    decided = decide(spec, invented_item("Nowhere", **claims))
    assert (decided.holds, decided.share) == (False, 0.0)
    assert decided.reason.endswith("; it cannot be shown, for 'Nowhere' is not there in meals")
    assert [item.text for item in decided.items] == ["Nowhere"]


@all_rows("spec", ALL)
def test_omitted_data_of_a_response_gives_no_credit(spec: dict[str, Any]) -> None:
    decided = decide(spec, own_item("$[7]"))
    assert (decided.holds, decided.share) == (False, 0.0)
    assert decided.reason.endswith("; it cannot be shown, for '$[7]' gives no price to go by")


@all_rows("spec", ALL)
def test_open_table_values_decide_nothing_and_are_named(spec: dict[str, Any]) -> None:
    decided = decide(spec, row_item("Curry House", price=None))
    assert decided.holds is None
    assert decided.reason.endswith("; the tables do not tell price of 'Curry House'")


def test_an_uncertain_violation_lowers_the_share() -> None:
    spec = {"values": "meals", "column": "name", "where": {"day": {"equals": 1}}}
    known, perhaps = [row_item(day=1, name=name) for name in "AAB"], row_item(name="A")
    assert share_of({**spec, "distinct": True}, *known) == pytest.approx(2 / 3)
    assert share_of({**spec, "distinct": True}, *known, perhaps) == 0.5
    assert share_of({**spec, "distinct": True}, *known, row_item(day=1)) == 0.0
    assert share_of({**spec, "excludes": ["A"]}, *known) == pytest.approx(1 / 3)
    assert share_of({**spec, "excludes": ["A"]}, *known, perhaps) == 0.25
    assert share_of({**spec, "excludes": ["A"]}, *known, row_item(day=1)) == 0.25


def test_a_negative_price_does_not_count() -> None:
    assert (
        decide({"sum": PRICES, "at_most": 5}, own_item(price=10), own_item("$[1]", price=-10)).holds
        is False
    )
    assert (
        decide({"sum": PRICES, "at_most": 15}, row_item(price=10), row_item("B", price=-10)).holds
        is None
    )


@pytest.mark.parametrize("places", [0, -1, None, "many", 1e-320])
def test_a_unit_without_places_counts_as_unknown(places: Any) -> None:
    spec = {"sum": [{**PRICES[0], "people": 4, "places": "places"}], "at_most": 100}
    assert decide(spec, row_item("Inn", price=10, places=places)).reason.endswith(
        "do not tell places of 'Inn'"
    )
    assert decide(spec, own_item(price=10, places=places)).holds is False


def test_an_amount_in_another_currency_is_no_number() -> None:
    assert (
        decide({"sum": PRICES, "at_most": 100}, row_item(price="$5"), row_item(price="5 EUR")).holds
        is None
    )
    assert (
        decide({"sum": PRICES, "at_most": 100}, row_item(price="$5"), own_item(price="5 EUR")).holds
        is False
    )


# Any items

DOMAIN: dict[str, list[Any]] = {
    "a": [0, 1],
    "g": [0, 1],
    "p": [0, 2, 1e6],
    "n": [0, 1, 1e6],
    "v": ["A", ["A", "B"], ["Z", "Z"], "Y"],
}
KNOWN: dict[str, list[Any]] = {
    "a": [0, 1],
    "g": [0, 1],
    "p": [1, 2, 3],
    "n": [1, 2],
    "v": ["A", "B", "Z", ["A", "B"]],
}
PASSES = {"a": {"equals": 1}}
BOUNDS = st.sampled_from(["at_least", "at_most"])
CHECKS = st.one_of(
    st.builds(lambda b, n: {"count": "i", "where": PASSES, b: n}, BOUNDS, st.integers(0, 3)),
    st.builds(
        lambda b, n, among: {"share": "i", "where": PASSES, b: n, **among},
        BOUNDS,
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from([{}, {"among": {"g": {"equals": 1}}}]),
    ),
    st.builds(
        lambda b, n, times: {"sum": [{"of": "i", "column": "p", "where": PASSES, **times}], "per": 2, b: n},
        BOUNDS,
        st.integers(1, 5),
        st.sampled_from([{}, {"times": "n"}]),
    ),
    st.sampled_from([{"includes": ["A"]}, {"includes": ["A", "B"]}, {"excludes": ["A"]}, {"distinct": True}]).map(
        lambda asked: {"values": "i", "column": "v", "where": PASSES, **asked}
    ),
)  # fmt: skip


def cells(of: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({column: st.sampled_from(values) for column, values in of.items()})


@st.composite
def items_with_gaps(draw: Any, kinds: Sequence[Any] = (own_item, row_item)) -> list[ListedItem]:
    """Up to three items, of whose cells up to three are not known."""
    made = draw(st.lists(cells(KNOWN), max_size=3))
    for values, column in (
        draw(st.lists(st.tuples(st.sampled_from(made), st.sampled_from("agpnv")), max_size=3))
        if made
        else ()
    ):
        values[column] = None
    return [
        draw(st.sampled_from(kinds))(f"${place}", **values) for place, values in enumerate(made)
    ]


def completions(
    items: Sequence[ListedItem], grounded: Sequence[bool] = (True, False)
) -> Iterator[list[ListedItem]]:
    """The items with every cell filled that is not known, of those that have a row, or have none."""
    gaps = [
        (place, column)
        for place, item in enumerate(items)
        for column, value in item.values.items()
        if value is None and item.has_table_row in grounded
    ]
    for filling in product(*(DOMAIN[column] for _, column in gaps)):
        whole = [dict(item.values) for item in items]
        for (place, column), value in zip(gaps, filling, strict=True):
            whole[place][column] = value
        yield [item._replace(values=values) for item, values in zip(items, whole, strict=True)]


def credit(decided: CheckResult) -> float:
    return 1.0 if decided.holds else decided.share


@pytest.mark.landing
@settings(max_examples=at_most(300), deadline=None)
@given(spec=CHECKS, items=items_with_gaps())
def test_a_check_is_decided_exactly_if_all_possible_table_values_agree(
    spec: dict[str, Any], items: list[ListedItem]
) -> None:
    found = {decide(spec, *whole).holds for whole in completions(items, [True])}
    assert decide(spec, *items).holds == (found.pop() if len(found) == 1 else None)
    assert None not in found


@settings(max_examples=at_most(150), deadline=None)
@given(spec=CHECKS, items=items_with_gaps())
def test_no_credit_exceeds_what_any_completion_would_get(
    spec: dict[str, Any], items: list[ListedItem]
) -> None:
    decided = decide(spec, *items)
    if decided.holds is not None:
        assert (
            credit(decided)
            <= min(credit(decide(spec, *whole)) for whole in completions(items)) + 1e-12
        )


@settings(max_examples=at_most(100), deadline=None)
@given(spec=CHECKS, items=items_with_gaps([own_item]))
def test_a_value_that_the_response_cannot_show_is_always_decided(
    spec: dict[str, Any], items: list[ListedItem]
) -> None:
    assert decide(spec, *items).holds is not None


@settings(max_examples=at_most(150), deadline=None)
@given(spec=CHECKS, made=st.lists(cells(KNOWN), max_size=4))
def test_known_values_are_decided_by_arithmetic(
    spec: dict[str, Any], made: list[dict[str, Any]]
) -> None:
    decided = decide(spec, *(row_item(**values) for values in made))
    assert decided.holds == holds_by_arithmetic(spec, made)
    assert decided.share == 1.0 if decided.holds else 0.0 <= decided.share < 1.0


def holds_by_arithmetic(spec: dict[str, Any], made: list[dict[str, Any]]) -> bool:
    passing = [values for values in made if values["a"] == 1]
    if "values" in spec:
        seen = [
            one
            for values in passing
            for one in (values["v"] if isinstance(values["v"], list) else [values["v"]])
        ]
        if "distinct" in spec:
            return len(set(seen)) == len(seen)
        return (
            set(spec["includes"]) <= set(seen)
            if "includes" in spec
            else not set(spec["excludes"]) & set(seen)
        )
    if "count" in spec:
        measured: float = len(passing)
    elif "sum" in spec:
        measured = sum(v["p"] * (v["n"] if "times" in spec["sum"][0] else 1) for v in passing) / 2
    else:
        among = [values for values in made if "among" not in spec or values["g"] == 1]
        if not among:
            return bool(made)
        measured = sum(values["a"] for values in among) / len(among)
    if "sum" in spec and not made:
        return False
    return measured >= spec["at_least"] if "at_least" in spec else measured <= spec["at_most"]


@settings(max_examples=at_most(150), deadline=None)
@given(spec=CHECKS, items=items_with_gaps(), data=st.data())
def test_the_order_of_items_and_of_their_keys_changes_no_score(
    spec: dict[str, Any], items: list[ListedItem], data: st.DataObject
) -> None:
    turned = [
        item._replace(values=dict(reversed(item.values.items())))
        for item in data.draw(st.permutations(items))
    ]
    one, other = decide(spec, *items), decide(spec, *turned)
    assert (one.holds, one.share) == (other.holds, other.share)


@given(st.lists(st.floats(0, 1e15), min_size=1, max_size=8), st.randoms())
def test_a_sum_is_the_same_to_the_last_bit_for_every_order(
    prices: list[float], random: Any
) -> None:
    turned = random.sample(prices, len(prices))
    one, other = (
        decide({"sum": PRICES, "equals": 9}, *(row_item(price=price) for price in of))
        for of in (prices, turned)
    )
    assert one.reason == other.reason
    total = math.fsum(prices)
    assert (
        decide({"sum": PRICES, "equals": total}, *(row_item(price=price) for price in turned)).holds
        is True
    )
