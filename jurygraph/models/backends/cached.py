"""Backend for dry runs that replies from another gateway's cache and a sink, and records all other requests."""

from typing import TYPE_CHECKING

from jurygraph.models.backends.recording import RecordingBackend
from jurygraph.models.request import Reply, Request

if TYPE_CHECKING:
    from jurygraph.models.call_sink import CallSink
    from jurygraph.models.gateway import Gateway


class CachedBackend(RecordingBackend):
    """Take the place of a gateway's backend, as `RecordingBackend` does, with the replies in the sink or its cache."""

    def __init__(self, gateway: "Gateway", sink: "CallSink | None" = None) -> None:
        super().__init__(gateway.backend)
        self._gateway = gateway
        self._sink = sink

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return a known reply; raises `Fault` of kind `unrecorded` if there is none."""
        if self._gateway.is_stored(request, self._sink):
            return (await self._gateway.ask(request, sink=self._sink)).reply
        return await super().complete(request, timeout)
