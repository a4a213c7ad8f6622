"""Costs of requests, in US dollars. An unknown cost is None, never 0."""

import math
from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from jurygraph.schema.calls import Price as Price

TEMPLATE_TOKENS = 16
"""Most tokens that a chat template adds to a message: its role and the markers around it."""

_MILLION = 1_000_000
_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"})
_COPIES = frozenset({"n", "best_of"})
"""Parameters by which a server generates several replies, and bills all of them."""


def price_of(
    model: str, user_prices: Mapping[str, Price], fallback: Callable[[str], Price | None] | None = None
) -> Price | None:
    """Return the price of a model: the user's own, else that of `fallback`.

    The user's is listed under the whole name of the model, or under that without the provider (`openai/…`).
    """
    for name in (model, model.partition("/")[2]):
        if name in user_prices:
            return user_prices[name]
    return fallback(model) if fallback else None


def cost(price: Price | None, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """Return the cost of a reply; None if its price or a number of tokens is unknown."""
    if price is None or tokens_in is None or tokens_out is None:
        return None
    return (price.input * tokens_in + price.output * tokens_out) / _MILLION


def max_cost(price: Price | None, prompt_bytes: int, messages: int, max_tokens: int) -> float | None:
    """Return the most that a request may cost, before it is sent; None if the price is unknown.

    A token has at least one byte of UTF-8, and a message at most `TEMPLATE_TOKENS` more than its text. `prompt_bytes`
    counts everything that the model reads: the texts of the messages, and a schema if the provider puts it before them.
    """
    return cost(price, prompt_bytes + TEMPLATE_TOKENS * messages, max_tokens)


def reply_limit(parameters: Mapping[str, JsonValue], usual: int) -> int:
    """Return the most tokens that a request with these parameters may be billed for its reply.

    The largest limit counts wherever it is set (in `extra_body` too), times the number of replies. `usual` is the
    default if none is set.
    """
    numbers = list(_integer_fields(dict(parameters)))
    limit = max((number for name, number in numbers if name in _LIMITS), default=usual)
    return limit * math.prod(max(1, number) for name, number in numbers if name in _COPIES)


def _integer_fields(value: JsonValue) -> Iterator[tuple[str, int]]:
    """Yield the fields that hold a whole number, including those of nested values."""
    if isinstance(value, list):
        for inner in value:
            yield from _integer_fields(inner)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, int):
                yield name, inner
            else:
                yield from _integer_fields(inner)
