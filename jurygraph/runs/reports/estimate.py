"""Estimate the cost of model calls from the requests, before any is sent.

The assumptions are a low, an expected and a worst case. A token is 5, 4 or 1 bytes of input; the chat template adds no,
no or `TEMPLATE_TOKENS` tokens per message; a reply has 40, 150 or the maximum number of tokens. The low case leaves out
the schema of the answer, which some endpoints do not show to their model. In the worst case every reply is repaired
once, for which the model reads it again. Not included are failed attempts that are sent again, discounts (batches, a
provider's cache), and requests that depend on an earlier reply, except repairs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from jurygraph.models.call_sink import CallSink
from jurygraph.models.gateway import Gateway, request_size, size_of_messages
from jurygraph.models.prices import TEMPLATE_TOKENS, Price, cost, reply_limit
from jurygraph.models.request import Request
from jurygraph.runs.store.digests import Digests

ASSUMPTIONS = (
    "estimates: a token is taken for 5, 4 or 1 bytes, a reply for 40, 150 or all tokens that it may have; "
    "the worst has every reply repaired once; what fails and is sent again is not in it"
)
_REPAIR = 1024
"""Maximum number of tokens that tell a model the errors in its reply."""


@dataclass(frozen=True)
class CallLoad:
    """Numbers of model calls and of input and output tokens, and their cost in US dollars (None if unknown)."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class CallEstimate:
    """The model calls needed in addition to those that are known; the assumptions are those of this module."""

    low: CallLoad = CallLoad()
    expected: CallLoad = CallLoad()
    worst: CallLoad = CallLoad()


class Estimator:
    """Sums up requests: each once, and only those without a reply in the sink (of a run) or the cache."""

    def __init__(self, gateway: Gateway, sink: CallSink | None = None) -> None:
        self._gateway = gateway
        self._sink = sink
        self._seen = Digests()
        self._sum = CallEstimate()

    def add(self, requests: Iterable[Request]) -> None:
        """Add the requests that are new."""
        for request in requests:
            if request.digest not in self._seen and not self._gateway.is_stored(request, self._sink):
                self._sum = _add_estimates(self._sum, _estimate(request, self._gateway.limits.max_tokens))
            self._seen.add(request.digest)

    def estimate(self) -> CallEstimate:
        """Return the sum of all requests so far, with its cost."""
        price = self._gateway.price
        return CallEstimate(*(_add_cost(load, price) for load in (self._sum.low, self._sum.expected, self._sum.worst)))


def _estimate(request: Request, max_tokens: int) -> CallEstimate:
    input_tokens, max_reply = request_size(request), reply_limit(request.parameters, max_tokens)
    min_input = size_of_messages(request)
    max_input = input_tokens + TEMPLATE_TOKENS * len(request.messages)
    repair = max_input + max_reply + TEMPLATE_TOKENS * 2 + _REPAIR
    return CallEstimate(
        low=CallLoad(1, -(-min_input // 5), min(40, max_reply)),
        expected=CallLoad(1, -(-input_tokens // 4), min(150, max_reply)),
        worst=CallLoad(2, max_input + repair, 2 * max_reply),
    )


def _add_estimates(first: CallEstimate, second: CallEstimate) -> CallEstimate:
    return CallEstimate(
        _add_loads(first.low, second.low),
        _add_loads(first.expected, second.expected),
        _add_loads(first.worst, second.worst),
    )


def _add_loads(first: CallLoad, second: CallLoad) -> CallLoad:
    return CallLoad(
        first.calls + second.calls, first.tokens_in + second.tokens_in, first.tokens_out + second.tokens_out
    )


def _add_cost(load: CallLoad, price: Price | None) -> CallLoad:
    return CallLoad(load.calls, load.tokens_in, load.tokens_out, cost(price, load.tokens_in, load.tokens_out))
