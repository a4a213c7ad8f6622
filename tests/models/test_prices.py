"""Costs of requests, known and unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.models.limits import TEMPLATE_TOKENS, Price, cost, highest_cost, price_of, reply_limit
from tests.rows import all_rows

MINI = Price(input=0.25, output=2.0)
FREE = Price(input=0.0, output=0.0)

dollars = st.floats(0.0, 1e6)
counts = st.integers(0, 10**9)


def test_a_price_is_for_a_million_tokens() -> None:
    assert cost(MINI, 1_000_000, 0) == 0.25
    assert cost(MINI, 0, 1_000_000) == 2.0
    assert cost(MINI, 1000, 100) == pytest.approx(0.00045)


@pytest.mark.parametrize(("price", "tokens_in", "tokens_out"), [(None, 1, 1), (MINI, None, 1), (MINI, 1, None)])
def test_a_cost_with_an_unknown_part_is_unknown(
    price: Price | None, tokens_in: int | None, tokens_out: int | None
) -> None:
    assert cost(price, tokens_in, tokens_out) is None


def test_the_maximum_cost_counts_every_byte_and_message() -> None:
    price = Price(input=1e6, output=1e6)  # a dollar a token
    assert highest_cost(price, 100, 3, 7) == 100 + 3 * TEMPLATE_TOKENS + 7


@given(dollars, dollars, counts, st.integers(1, 100), counts, st.data())
def test_no_reply_costs_more_than_the_maximum_of_its_request(
    input_: float, output: float, prompt_bytes: int, messages: int, max_tokens: int, data: st.DataObject
) -> None:
    price = Price(input=input_, output=output)
    tokens_in = data.draw(st.integers(0, prompt_bytes + TEMPLATE_TOKENS * messages))
    tokens_out = data.draw(st.integers(0, max_tokens))
    billed, bound = cost(price, tokens_in, tokens_out), highest_cost(price, prompt_bytes, messages, max_tokens)
    assert billed is not None
    assert bound is not None
    assert billed <= bound


def test_the_whole_name_of_a_model_comes_before_that_without_its_provider() -> None:
    own = {"gpt-5-mini": MINI, "azure/gpt-5-mini": FREE}
    assert price_of("azure/gpt-5-mini", own) is FREE
    assert price_of("openai/gpt-5-mini", own) is MINI
    assert price_of("gpt-5-mini", own) is MINI


def test_only_the_provider_is_removed_from_a_model_name() -> None:
    assert price_of("hosted_vllm/Qwen/Qwen3-8B", {"Qwen/Qwen3-8B": MINI}) is MINI
    assert price_of("hosted_vllm/Qwen/Qwen3-8B", {"Qwen3-8B": MINI}) is None


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
def test_a_reply_may_have_as_many_tokens_as_any_parameter_allows(parameters: dict[str, Any], limit: int) -> None:
    assert reply_limit(parameters, 100) == limit
