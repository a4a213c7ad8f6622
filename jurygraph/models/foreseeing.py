"""Gateways that send nothing: what a model would be asked is noted."""

from dataclasses import replace

from jurygraph.models.backends.known import Known
from jurygraph.models.backends.unsent import Unsent
from jurygraph.models.gateway import Gateway
from jurygraph.models.limiter import Limiter


def noted(gateway: Gateway, at_once: int) -> tuple[Unsent, Gateway]:
    """A backend that notes what a gateway would be asked, behind one that keeps nothing and knows no reply."""
    unsent = Unsent(gateway.backend)
    return unsent, _before(unsent, gateway, at_once)


def noted_beyond_known(gateway: Gateway, at_once: int) -> tuple[Unsent, Gateway]:
    """As `noted`, with the replies that the gateway knows."""
    known = Known(gateway)
    return known, _before(known, gateway, at_once)


def _before(backend: Unsent, gateway: Gateway, at_once: int) -> Gateway:
    """A gateway like this one that keeps nothing, before another backend."""
    return Gateway(backend, Limiter(at_once), replace(gateway.limits, deadline=None), redactor=gateway.redactor)
