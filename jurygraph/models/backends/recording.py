"""Backend for dry runs that records requests and sends nothing."""

from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.faults import Fault
from jurygraph.models.request import Reply, Request


class RecordingBackend(Backend):
    """Take the place of another backend under its names, so that the requests are those which it would get.

    `requests` are the requests so far, by digest.
    """

    def __init__(self, other: Backend) -> None:
        self.provider, self.endpoint, self.model = other.provider, other.endpoint, other.model
        self.requests: dict[str, Request] = {}
        self._capabilities = other.capabilities

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the other backend's endpoint."""
        return self._capabilities

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Record the request, and raise `Fault` of kind `unrecorded`."""
        self.requests[request.digest] = request
        raise Fault("unrecorded", "the request was noted and not sent")
