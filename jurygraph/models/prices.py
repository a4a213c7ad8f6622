"""What requests cost, in US dollars. What is not known is None, never 0."""

import math
from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from jurygraph.schema.calls import Price as Price

TEMPLATE_TOKENS = 16
"""What a chat template adds to a message, at most: its role and the marks around it."""

_MILLION = 1_000_000
_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"})
_COPIES = frozenset({"n", "best_of"})
"""Parameters by which a server writes several replies, and bills all of them."""


class Prices:
    """Prices by model: those that the user states, else those that `fallback` knows."""

    def __init__(self, stated: Mapping[str, Price], fallback: Callable[[str], Price | None] | None = None) -> None:
        self._stated = stated
        self._fallback = fallback

    def of(self, model: str) -> Price | None:
        """The price of a model, stated under its whole name or that without the provider (`openai/…`)."""
        for name in (model, model.partition("/")[2]):
            if name in self._stated:
                return self._stated[name]
        return self._fallback(model) if self._fallback else None


def cost(price: Price | None, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """What a reply cost; None where its price or a number of tokens is unknown."""
    if price is None or tokens_in is None or tokens_out is None:
        return None
    return (price.input * tokens_in + price.output * tokens_out) / _MILLION


def most(price: Price | None, prompt_bytes: int, messages: int, max_tokens: int) -> float | None:
    """The most that a request may cost, before it is sent; None where the price is unknown.

    A token is at least one byte of UTF-8, and a message at most `TEMPLATE_TOKENS` more than its text. `prompt_bytes`
    are of all that the model reads: the texts of the messages, and a schema where the provider puts it before them.
    """
    return cost(price, prompt_bytes + TEMPLATE_TOKENS * messages, max_tokens)


def reply_limit(parameters: Mapping[str, JsonValue], usual: int) -> int:
    """The most tokens that a request with these parameters may be billed for its reply.

    The largest limit counts wherever it is given (`extra_body` too), times the number of replies. `usual` holds where
    none is given.
    """
    stated = list(_whole_numbers(dict(parameters)))
    limit = max((number for name, number in stated if name in _LIMITS), default=usual)
    return limit * math.prod(max(1, number) for name, number in stated if name in _COPIES)


def _whole_numbers(value: JsonValue) -> Iterator[tuple[str, int]]:
    """The fields that hold a whole number, also within other fields."""
    if isinstance(value, list):
        for inner in value:
            yield from _whole_numbers(inner)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, int):
                yield name, inner
            else:
                yield from _whole_numbers(inner)
