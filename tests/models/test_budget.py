"""The budget: no run spends more or sends more calls than its limits allow, whatever is in flight."""

import asyncio
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from jurygraph.errors import ConfigError
from jurygraph.models.limits import (
    MAX_TEMPLATE_TOKENS_PER_MESSAGE,
    Budget,
    BudgetReservation,
    Price,
    cost,
    find_user_price,
    highest_request_cost,
    max_reply_tokens_of,
)
from jurygraph.models.request import RETRYABLE_FAULT_KINDS, Fault
from tests.examples import at_most
from tests.rows import all_rows


def refusal_message(budget: Budget, cost: float | None) -> str:
    with pytest.raises(Fault) as raised:
        budget.reserve(cost)
    assert raised.value.kind == "budget"
    assert raised.value.cause == "infrastructure"
    assert raised.value.kind not in RETRYABLE_FAULT_KINDS
    return str(raised.value)


def test_a_bill_above_its_reservation_is_charged_and_stops_all_sending() -> None:
    budget = Budget(max_cost=1.0)
    budget.reserve(0.1).settle_cost(0.2)
    assert budget.spent == 0.2
    assert refusal_message(budget, 0.0) == (
        "the limit of $1 cannot be held: a request was billed $0.2, and at most $0.1 was reserved for it ($0.2 spent); "
        "raise calls.max_tokens to all that a reply may take, hidden reasoning too, or check calls.prices"
    )


def test_an_unbounded_bill_is_charged_its_reservation_and_stops_all_sending() -> None:
    budget = Budget(max_cost=1.0)
    budget.reserve(0.1).settle_unbounded_bill()
    assert budget.spent == 0.1
    assert "a reply was too large to read" in refusal_message(budget, 0.0)


def test_a_cost_limit_refuses_a_request_of_unknown_price() -> None:
    budget = Budget(max_cost=1.0)
    assert refusal_message(budget, None) == (
        "the limit of $1 cannot be held, as the price of the model is unknown; "
        "state it under `calls.prices` in the config, or leave `max_cost` (--max-cost) out"
    )


def test_calls_in_flight_count_as_made() -> None:
    budget = Budget(max_calls=2)
    budget.reserve(None).settle_cost(None)
    budget.reserve(None)
    assert refusal_message(budget, None) == (
        "the limit of 2 calls is reached (1 ended, 1 in flight); raise `max_calls` (--max-calls) to go on"
    )


def test_after_a_stop_no_call_is_sent_and_those_in_flight_may_end() -> None:
    budget = Budget()
    in_flight = budget.reserve(0.5)
    budget.stop()
    assert "the limit of 0 calls is reached (0 ended, 1 in flight)" in refusal_message(budget, 0.0)
    in_flight.settle_cost(0.25)
    assert (budget.calls, budget.spent) == (1, 0.25)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_an_invalid_limit_or_cost_is_refused(wrong: float) -> None:
    with pytest.raises(ConfigError, match="--max-cost"):
        Budget(max_cost=wrong)
    with pytest.raises(ValueError, match="not negative"):
        Budget(max_cost=1.0).reserve(wrong)
    with pytest.raises(ConfigError, match="--max-calls"):
        Budget(max_calls=-1)


async def send_request(budget: Budget, most: float, cost: float) -> str:
    """Return the outcome of a request."""
    try:
        with await budget.reserve_when_free(most) as reservation:
            await asyncio.sleep(0)
            reservation.settle_cost(cost)
    except Fault as fault:
        return fault.kind
    return "sent"


async def send_requests(budget: Budget, most: float, cost: float, number: int) -> list[str]:
    async with asyncio.timeout(10.0):
        return await asyncio.gather(*(send_request(budget, most, cost) for _ in range(number)))


def test_a_call_that_may_fit_later_waits_for_others() -> None:
    budget = Budget(max_cost=1.0)
    assert asyncio.run(send_requests(budget, 0.4, 0.01, 40)) == ["sent"] * 40
    assert budget.spent == 0.4


def test_a_call_beyond_the_budget_is_refused() -> None:
    budget = Budget(max_cost=1.0)
    ended = asyncio.run(send_requests(budget, 0.4, 0.2, 40))
    assert (ended.count("sent"), budget.spent) == (4, 0.8)  # a fifth might have cost 0.4


def test_a_waiting_call_may_be_cancelled() -> None:
    budget = Budget(max_cost=1.0)

    async def given_up() -> list[str]:
        with budget.reserve(0.9):
            waiting = asyncio.create_task(send_request(budget, 0.4, 0.01))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            left = asyncio.create_task(send_request(budget, 0.05, 0.01))
            await asyncio.sleep(0)
        return [await left]

    assert asyncio.run(given_up()) == ["sent"]


costs = st.one_of(
    st.just(0.1), st.floats(0.0, 2.0), st.integers(0, 200).map(lambda cents: cents / 100)
)


class InAnyOrder(RuleBasedStateMachine):
    """Reservations that end in any order and way, compared with a simple model of the budget."""

    held = Bundle("held")

    @initialize(max_cost=st.none() | costs, max_calls=st.none() | st.integers(0, 8))
    def begin(self, max_cost: float | None, max_calls: int | None) -> None:
        self.max_cost, self.max_calls = max_cost, max_calls
        self.budget = Budget(max_cost, max_calls)
        self.reserved: dict[BudgetReservation, float | None] = {}
        self.charged: list[float | None] = []

    @rule(target=held, cost=st.none() | costs)
    def reserve(self, cost: float | None) -> BudgetReservation | None:
        fits = self._fits(cost)
        try:
            reservation = self.budget.reserve(cost)
        except Fault:
            assert not fits
            return None
        assert fits
        self.reserved[reservation] = cost
        return reservation

    @rule(reservation=consumes(held), share=st.none() | st.floats(0.0, 1.0))
    def settle(self, reservation: BudgetReservation | None, share: float | None) -> None:
        if reservation is not None:
            most = self.reserved.pop(reservation)
            cost = None if share is None or most is None else share * most
            reservation.settle_cost(cost)
            self.charged.append(most if cost is None else cost)

    @invariant()
    def no_limit_is_passed(self) -> None:
        if self.max_cost is not None:
            assert self._spent() + self._held() <= Fraction(str(self.max_cost))
        if self.max_calls is not None:
            assert self.budget.calls + len(self.reserved) <= self.max_calls

    @invariant()
    def it_tells_what_was_spent(self) -> None:
        assert self.budget.spent == float(self._spent())
        assert self.budget.calls == len(self.charged)
        assert self.budget.unpriced == self.charged.count(None)

    def _fits(self, cost: float | None) -> bool:
        if (
            self.max_calls is not None
            and len(self.charged) + len(self.reserved) + 1 > self.max_calls
        ):
            return False
        if self.max_cost is None:
            return True
        return cost is not None and self._spent() + self._held() + Fraction(str(cost)) <= Fraction(
            str(self.max_cost)
        )

    def _spent(self) -> Fraction:
        return sum((Fraction(str(cost)) for cost in self.charged if cost is not None), Fraction())

    def _held(self) -> Fraction:
        return sum(
            (Fraction(str(cost)) for cost in self.reserved.values() if cost is not None), Fraction()
        )


TestInAnyOrder = InAnyOrder.TestCase
TestInAnyOrder.settings = settings(max_examples=at_most(60), stateful_step_count=30, deadline=None)


# Costs of requests

MINI = Price(input=0.25, output=2.0)
FREE = Price(input=0.0, output=0.0)

dollars = st.floats(0.0, 1e6)
counts = st.integers(0, 10**9)


def test_a_price_is_for_a_million_tokens() -> None:
    assert cost(MINI, 1_000_000, 0) == 0.25
    assert cost(MINI, 0, 1_000_000) == 2.0
    assert cost(MINI, 1000, 100) == pytest.approx(0.00045)


@pytest.mark.parametrize(
    ("price", "tokens_in", "tokens_out"), [(None, 1, 1), (MINI, None, 1), (MINI, 1, None)]
)
def test_a_cost_with_an_unknown_part_is_unknown(
    price: Price | None, tokens_in: int | None, tokens_out: int | None
) -> None:
    assert cost(price, tokens_in, tokens_out) is None


def test_only_a_model_that_is_free_both_ways_has_a_known_cost_without_its_counts() -> None:
    assert cost(FREE, None, None) == 0.0
    assert cost(Price(input=1.0, output=0.0), None, 1) is None


def test_the_maximum_cost_counts_every_byte_and_message() -> None:
    price = Price(input=1e6, output=1e6)  # a dollar a token
    assert highest_request_cost(price, 100, 3, 7) == 100 + 3 * MAX_TEMPLATE_TOKENS_PER_MESSAGE + 7


@given(dollars, dollars, counts, st.integers(1, 100), counts, st.data())
def test_no_reply_costs_more_than_the_maximum_of_its_request(
    input_: float,
    output: float,
    prompt_bytes: int,
    messages: int,
    max_tokens: int,
    data: st.DataObject,
) -> None:
    price = Price(input=input_, output=output)
    tokens_in = data.draw(st.integers(0, prompt_bytes + MAX_TEMPLATE_TOKENS_PER_MESSAGE * messages))
    tokens_out = data.draw(st.integers(0, max_tokens))
    billed, bound = (
        cost(price, tokens_in, tokens_out),
        highest_request_cost(price, prompt_bytes, messages, max_tokens),
    )
    assert billed is not None
    assert bound is not None
    assert billed <= bound


def test_the_whole_name_of_a_model_comes_before_that_without_its_provider() -> None:
    own = {"gpt-5-mini": MINI, "azure/gpt-5-mini": FREE}
    assert find_user_price("azure/gpt-5-mini", own) is FREE
    assert find_user_price("openai/gpt-5-mini", own) is MINI
    assert find_user_price("gpt-5-mini", own) is MINI


def test_only_the_provider_is_removed_from_a_model_name() -> None:
    assert find_user_price("hosted_vllm/Qwen/Qwen3-8B", {"Qwen/Qwen3-8B": MINI}) is MINI
    assert find_user_price("hosted_vllm/Qwen/Qwen3-8B", {"Qwen3-8B": MINI}) is None


@all_rows(
    ("parameters", "limit"),
    [
        ({}, 100),
        ({"temperature": 0.0, "top_logprobs": 500}, 100),
        ({"max_tokens": 20}, 20),
        ({"max_completion_tokens": 7}, 7),
        ({"max_tokens": 20, "max_completion_tokens": 50}, 50),
        ({"max_tokens": None, "max_completion_tokens": 50}, 50),
        ({"max_tokens": 20, "extra_body": {"max_tokens": 9000}}, 9000),
        ({"max_tokens": 20, "options": [{"max_new_tokens": 30}]}, 30),
        ({"max_tokens": 20, "extra_body": {"n": 3, "best_of": 4}}, 240),
    ],
)
def test_a_reply_may_have_as_many_tokens_as_any_parameter_allows(
    parameters: dict[str, Any], limit: int
) -> None:
    assert max_reply_tokens_of(parameters, 100) == limit
