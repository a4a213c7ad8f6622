"""The interface of a backend, by which the gateway reaches a model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from jurygraph.models.request import Form, Reply, Request


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of an endpoint. `form` is the most reliable way in which it makes a reply match a schema.

    `logprobs`: it returns log probabilities of the tokens of a reply, with up to `top_logprobs` alternatives each.
    """

    form: Form
    logprobs: bool = False
    top_logprobs: int = 20


class Backend(ABC):
    """Reach one model, with one attempt per call: retries, rate limits and caching are left to the gateway.

    `provider`, `endpoint` and `model` are part of the identity of every request. `secrets` are values that must never
    be written anywhere.
    """

    provider: str
    endpoint: str | None = None
    model: str
    secrets: Sequence[str] = ()

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """The capabilities of the endpoint."""

    @abstractmethod
    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the reply, within `timeout` seconds. Raises `Fault`, and no other exception but cancellation."""

    async def close(self) -> None:
        """Release connections; may be called more than once, and the backend may be used again afterwards."""
