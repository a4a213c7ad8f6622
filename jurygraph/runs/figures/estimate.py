"""What asking a model would come to, reckoned from the requests before any is sent.

A token is taken to be 5, 4 and 1 bytes of what the model reads (low, expected, worst), the marks around a message to be
none, none and `TEMPLATE_TOKENS`; a reply to have 40, 150 and all the tokens that it may have. The low leaves out the
schema of the answer, which not every endpoint shows to its model. The worst has every reply repaired once, for which
the model reads it again. Left out are attempts that fail and are sent again, prices below the usual (batches, a
provider's cache), and requests that hang on an earlier reply, repairs apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from jurygraph.models.asking import Request
from jurygraph.models.gateway import Gateway, size_of, size_of_messages
from jurygraph.models.prices import TEMPLATE_TOKENS, Price, cost, reply_limit
from jurygraph.runs.store.digests import Digests

ASSUMED = (
    "estimates: a token is taken for 5, 4 or 1 bytes, a reply for 40, 150 or all tokens that it may have; "
    "the worst has every reply repaired once; what fails and is sent again is not in it"
)
_REPAIR = 1024
"""Tokens that tell a model what is wrong with its reply, at most."""


@dataclass(frozen=True)
class Load:
    """Calls to a model, the tokens that it reads and writes in them, and US dollars; None where a price is unknown."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class Estimate:
    """What a model would be asked beyond what is known already; the assumptions are those of this module."""

    low: Load = Load()
    expected: Load = Load()
    worst: Load = Load()


class Estimator:
    """Adds up requests: each once, and none whose reply the run or the cache has."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._seen = Digests()
        self._sum = Estimate()

    def add(self, requests: Iterable[Request]) -> None:
        """Count what is new of these."""
        for request in requests:
            if request.digest not in self._seen and not self._gateway.known(request):
                self._sum = _both(self._sum, _estimate(request, self._gateway.limits.max_tokens))
            self._seen.add(request.digest)

    def estimate(self) -> Estimate:
        """All so far, with its cost."""
        price = self._gateway.price
        return Estimate(*(_priced(load, price) for load in (self._sum.low, self._sum.expected, self._sum.worst)))


def _estimate(request: Request, usual: int) -> Estimate:
    read, longest = size_of(request), reply_limit(request.parameters, usual)
    least = size_of_messages(request)
    most = read + TEMPLATE_TOKENS * len(request.messages)
    repair = most + longest + TEMPLATE_TOKENS * 2 + _REPAIR
    return Estimate(
        low=Load(1, -(-least // 5), min(40, longest)),
        expected=Load(1, -(-read // 4), min(150, longest)),
        worst=Load(2, most + repair, 2 * longest),
    )


def _both(one: Estimate, other: Estimate) -> Estimate:
    return Estimate(_sum(one.low, other.low), _sum(one.expected, other.expected), _sum(one.worst, other.worst))


def _sum(one: Load, other: Load) -> Load:
    return Load(one.calls + other.calls, one.tokens_in + other.tokens_in, one.tokens_out + other.tokens_out)


def _priced(load: Load, price: Price | None) -> Load:
    return Load(load.calls, load.tokens_in, load.tokens_out, cost(price, load.tokens_in, load.tokens_out))
