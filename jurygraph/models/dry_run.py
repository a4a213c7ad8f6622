"""Gateways for dry runs: they record requests, reply at most from a cache, and send nothing."""

from dataclasses import replace

from jurygraph.models.backend import Backend
from jurygraph.models.faults import Fault
from jurygraph.models.gateway import Gateway
from jurygraph.models.limiter import Limiter
from jurygraph.models.request import CallSink, Reply, Request


class RecordingBackend(Backend):
    """Take the place of a gateway's backend under its names, so that the requests are those which it would get.

    `requests` are the requests without a reply so far, by digest. With `uses_stored`, those in the sink or in the
    gateway's cache have one.
    """

    def __init__(self, gateway: Gateway, sink: CallSink | None, uses_stored: bool) -> None:
        other = gateway.backend
        self.provider, self.endpoint, self.model = other.provider, other.endpoint, other.model
        self.capabilities = other.capabilities
        self.requests: dict[str, Request] = {}
        self._gateway, self._sink, self._uses_stored = gateway, sink, uses_stored

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return a stored reply; record the request and raise `Fault` of kind `unrecorded` if there is none."""
        if self._uses_stored and self._gateway.is_stored(request, self._sink):
            return (await self._gateway.ask(request, sink=self._sink)).reply
        self.requests[request.digest] = request
        raise Fault("unrecorded", "the request was noted and not sent")


def recording_gateway(
    gateway: Gateway, concurrency: int, sink: CallSink | None = None, *, uses_stored: bool = False
) -> tuple[RecordingBackend, Gateway]:
    """Return a recording backend and a gateway to it, with the limits of another, that has no cache and no store."""
    recorder = RecordingBackend(gateway, sink, uses_stored)
    limits = replace(gateway.limits, deadline=None)
    return recorder, Gateway(recorder, Limiter(concurrency), limits, redactor=gateway.redactor)
