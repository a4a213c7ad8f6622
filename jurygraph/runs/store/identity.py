"""Which model is behind a config's `model`, and a stand-in that goes by its name and asks nobody."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jurygraph.models.asking import Form, Reply, Request
from jurygraph.models.backend import Backend, Capabilities
from jurygraph.models.faults import Fault
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import Noun
from jurygraph.schema.noun import Count

if TYPE_CHECKING:
    from jurygraph.jury import Jury


class Identity(Noun):
    """A model as requests name it, and how it is asked: with another, the same questions are other requests.

    `top_logprobs` is how many other tokens it gives beside each one's log probability; None where it gives neither.
    """

    provider: str
    endpoint: str | None = None
    model: str
    form: Form = "text"
    top_logprobs: Count | None = None

    @classmethod
    def of(cls, backend: Backend) -> "Identity":
        """That of the model which a backend reaches."""
        able = backend.capabilities
        return cls(
            provider=backend.provider,
            endpoint=backend.endpoint,
            model=backend.model,
            form=able.form,
            top_logprobs=able.top_logprobs if able.logprobs else None,
        )

    @classmethod
    def recorded(cls, ledger: Ledger) -> "Identity | None":
        """That which the requests of a run tell; None where it holds none."""
        first, form, top = None, "text", None
        for request in _requests(ledger):
            first = first or request
            form = form if request.answer is None else request.form
            top = request.parameters.get("top_logprobs") if request.parameters.get("logprobs") else top
        if first is None:
            return None
        named = {"provider": first.provider, "endpoint": first.endpoint, "model": first.model}
        return cls.model_validate({**named, "form": form, "top_logprobs": top})


def model_of(jury: "Jury") -> Identity | None:
    """The model that a jury asks; None under model none."""
    return None if jury.gateway is None else Identity.of(jury.gateway.backend)


def _requests(ledger: Ledger) -> Iterator[Request]:
    """The requests of a run, but for such as were erased."""
    for record in ledger.records("call"):
        text = ledger.texts({record.seq: record.content["texts"]})[record.seq].get(0)
        if text is not None:
            yield Request.model_validate_json(text)


class Absent(Backend):
    """Stands in for a model, so that the requests are those which that one would get; no reply ever comes of it."""

    def __init__(self, identity: Identity) -> None:
        self.provider, self.endpoint, self.model = identity.provider, identity.endpoint, identity.model
        top = identity.top_logprobs
        self._capabilities = Capabilities(identity.form, logprobs=top is not None, top_logprobs=top or 0)

    @property
    def capabilities(self) -> Capabilities:
        """What the model's endpoint can do."""
        return self._capabilities

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Never a reply: raises `Fault` of kind `unrecorded`."""
        raise Fault("unrecorded", "the run holds no reply to this request, and its model is not asked")
