"""Notes what a model would be asked, and asks nobody."""

from jurygraph.models.asking import Reply, Request
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.faults import Fault


class Unsent(Backend):
    """Stands in for another backend and goes by its name, so that the requests are those which it would get.

    `requests` are what it was given so far, by their digests.
    """

    def __init__(self, other: Backend) -> None:
        self.provider, self.endpoint, self.model = other.provider, other.endpoint, other.model
        self.requests: dict[str, Request] = {}
        self._capabilities = other.capabilities

    @property
    def capabilities(self) -> Capabilities:
        """What the other's endpoint can do."""
        return self._capabilities

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Never a reply: raises `Fault` of kind `unrecorded`."""
        self.requests[request.digest] = request
        raise Fault("unrecorded", "the request was noted and not sent")
