"""What the gateway needs of whoever reaches a model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from jurygraph.models.asking import Form, Reply, Request


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an endpoint can do. `form` is the surest way in which it holds a reply to a schema.

    `logprobs`: it gives log probabilities of the tokens of a reply, and with them `top_logprobs` others, at most.
    """

    form: Form
    logprobs: bool = False
    top_logprobs: int = 20


class Backend(ABC):
    """Reaches one model. One attempt a call: it never retries, waits for a limit or remembers; the gateway does.

    `provider`, `endpoint` and `model` are part of the identity of every request. `secrets` are the values that must
    never be written anywhere.
    """

    provider: str
    endpoint: str | None = None
    model: str
    secrets: Sequence[str] = ()

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the endpoint can do."""

    @abstractmethod
    async def complete(self, request: Request, timeout: float) -> Reply:
        """The reply, within `timeout` seconds. Raises `Fault` and nothing else but cancellation."""

    async def close(self) -> None:
        """Let go of connections; may be called more than once, and used again afterwards."""
