"""Gateways for dry runs: they record requests, reply at most from a cache, and send nothing."""

from dataclasses import replace

from jurygraph.models.backend import Backend
from jurygraph.models.faults import Fault
from jurygraph.models.gateway import Gateway
from jurygraph.models.limiter import Limiter
from jurygraph.models.request import CallSink, Reply, Request


class RecordingBackend(Backend):
    """Take the place of another backend under its names, so that the requests are those which it would get.

    `requests` are the requests so far, by digest.
    """

    def __init__(self, other: Backend) -> None:
        self.provider, self.endpoint, self.model = other.provider, other.endpoint, other.model
        self.requests: dict[str, Request] = {}
        self.capabilities = other.capabilities

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Record the request, and raise `Fault` of kind `unrecorded`."""
        self.requests[request.digest] = request
        raise Fault("unrecorded", "the request was noted and not sent")


def recording_gateway(gateway: Gateway, concurrency: int) -> tuple[RecordingBackend, Gateway]:
    """Return a recording backend and a gateway to it that has no cache and no store."""
    recorder = RecordingBackend(gateway.backend)
    return recorder, _recording_gateway(recorder, gateway, concurrency)


def caching_recording_gateway(
    gateway: Gateway, sink: CallSink | None, concurrency: int
) -> tuple[RecordingBackend, Gateway]:
    """Return the same as `recording_gateway`, but with the replies in the sink and in the gateway's cache."""
    recorder = CachedBackend(gateway, sink)
    return recorder, _recording_gateway(recorder, gateway, concurrency)


def _recording_gateway(backend: RecordingBackend, gateway: Gateway, concurrency: int) -> Gateway:
    """Return a gateway with the limits of another, without deadline, cache and store, to another backend."""
    return Gateway(backend, Limiter(concurrency), replace(gateway.limits, deadline=None), redactor=gateway.redactor)


class CachedBackend(RecordingBackend):
    """Take the place of a gateway's backend, as `RecordingBackend` does, with the replies in the sink or its cache."""

    def __init__(self, gateway: Gateway, sink: CallSink | None = None) -> None:
        super().__init__(gateway.backend)
        self._gateway, self._sink = gateway, sink

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return a known reply; raises `Fault` of kind `unrecorded` if there is none."""
        if self._gateway.is_stored(request, self._sink):
            return (await self._gateway.ask(request, sink=self._sink)).reply
        return await super().complete(request, timeout)
