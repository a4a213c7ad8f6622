"""Identify the model behind a config's `model`, and substitute an offline backend with that identity."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.faults import Fault
from jurygraph.models.request import Form, Reply, Request
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count

if TYPE_CHECKING:
    from jurygraph.jury import Jury


class ModelIdentity(FrozenModel):
    """A model as requests name it, and how it replies: with another identity, the same questions are other requests.

    `top_logprobs` is the number of alternative tokens that it returns with the log probability of each token; None if
    it returns no log probabilities.
    """

    provider: str
    endpoint: str | None = None
    model: str
    form: Form = "text"
    top_logprobs: Count | None = None

    @classmethod
    def of(cls, backend: Backend) -> "ModelIdentity":
        """Return the identity of the model that a backend reaches."""
        capabilities = backend.capabilities
        return cls(
            provider=backend.provider,
            endpoint=backend.endpoint,
            model=backend.model,
            form=capabilities.form,
            top_logprobs=capabilities.top_logprobs if capabilities.logprobs else None,
        )

    @classmethod
    def from_ledger(cls, ledger: Ledger) -> "ModelIdentity | None":
        """Return the identity that the requests of a run show; None if the run has no requests."""
        first, form, top = None, "text", None
        for request in _requests(ledger):
            first = first or request
            form = form if request.answer is None else request.form
            top = request.parameters.get("top_logprobs") if request.parameters.get("logprobs") else top
        if first is None:
            return None
        identity = {"provider": first.provider, "endpoint": first.endpoint, "model": first.model}
        return cls.model_validate({**identity, "form": form, "top_logprobs": top})


def model_of(jury: "Jury") -> ModelIdentity | None:
    """Return the identity of a jury's model; None with model none."""
    return None if jury.gateway is None else ModelIdentity.of(jury.gateway.backend)


def _requests(ledger: Ledger) -> Iterator[Request]:
    """Yield the requests of a run, except erased ones."""
    for record in ledger.records("call"):
        text = ledger.texts({record.seq: record.content["texts"]})[record.seq].get(0)
        if text is not None:
            yield Request.model_validate_json(text)


class OfflineBackend(Backend):
    """An offline backend: requests have the identity of the model that it replaces, and no request gets a reply."""

    def __init__(self, identity: ModelIdentity) -> None:
        self.provider, self.endpoint, self.model = identity.provider, identity.endpoint, identity.model
        top = identity.top_logprobs
        self.capabilities = Capabilities(identity.form, logprobs=top is not None, top_logprobs=top or 0)

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Raise `Fault` of kind `unrecorded`."""
        raise Fault("unrecorded", "the run contains no reply to this request, and none is sent")
