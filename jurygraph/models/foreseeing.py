"""Gateways for dry runs: they record requests and send nothing."""

from dataclasses import replace

from jurygraph.models.backends.known import Known
from jurygraph.models.backends.unsent import Unsent
from jurygraph.models.gateway import Gateway
from jurygraph.models.limiter import Limiter


def noted(gateway: Gateway, at_once: int) -> tuple[Unsent, Gateway]:
    """Return a recording backend and a gateway to it that has no cache and no store."""
    recorder = Unsent(gateway.backend)
    return recorder, _recording_gateway(recorder, gateway, at_once)


def noted_beyond_known(gateway: Gateway, at_once: int) -> tuple[Unsent, Gateway]:
    """Return the same as `noted`, but with the replies that the given gateway has cached or stored."""
    recorder = Known(gateway)
    return recorder, _recording_gateway(recorder, gateway, at_once)


def _recording_gateway(backend: Unsent, gateway: Gateway, at_once: int) -> Gateway:
    """Return a gateway with the limits of another, without deadline, cache and store, to another backend."""
    return Gateway(backend, Limiter(at_once), replace(gateway.limits, deadline=None), redactor=gateway.redactor)
