"""The gateways of a jury: one for each of its models, within one budget."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # without a model, none of these is imported
    from jurygraph.models.budget import Budget
    from jurygraph.models.gateway import Gateway, RecordingBackend
    from jurygraph.models.request import CallSink, Request
    from jurygraph.schema import Call


class Gateways(Mapping[str | None, "Gateway"]):
    """The gateway to the config's `model` under None, if it has one, and those to its `models` by their names.

    Each has limits, a cache, a price and a record of its own; they share one budget. Empty without any model.
    """

    def __init__(self, gateways: "Mapping[str | None, Gateway]") -> None:
        self._gateways = gateways

    def __getitem__(self, name: str | None) -> "Gateway":
        return self._gateways[name]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._gateways)

    def __len__(self) -> int:
        return len(self._gateways)

    @property
    def default(self) -> "Gateway | None":
        """Return the gateway to the config's `model`; None with model none."""
        return self.get(None)

    @property
    def budget(self) -> "Budget":
        """Return the budget of all. Raises StopIteration without any model."""
        return next(iter(self.values())).budget

    @property
    def is_recording(self) -> bool:
        """True if there are models and every one is a recording, so that nothing is sent."""
        return bool(self) and all(gateway.backend.is_recording for gateway in self.values())

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the secrets of all backends."""
        return tuple(secret for gateway in self.values() for secret in gateway.backend.secrets)

    @property
    def useless(self) -> dict[str, str]:
        """Return what is wrong with all first replies of a model, for each of which none could be used."""
        problems = {name: gateway.first_replies.problem for name, gateway in self.items()}
        return {"the model" if name is None else f"judge {name}": text for name, text in problems.items() if text}

    def name_of(self, request: "Request | Call") -> str | None:
        """Return the name of the model that a request is for; of two with one model, that whose parameters it has.

        A request to none of these models, such as one of another run, is taken for one to the config's `model`.
        """
        if len(self) == 1:
            return next(iter(self))
        identity = request.provider, request.endpoint, request.model
        same = [name for name, gateway in self.items() if gateway.identity == identity]
        return max(same, key=lambda name: self[name].count_parameters_in(request), default=None)

    def for_dry_run(
        self, concurrency: int, sink: "CallSink | None" = None
    ) -> "tuple[list[RecordingBackend], Gateways]":
        """Return recording backends, and gateways to them, as `Gateway.for_dry_run` does."""
        pairs = {name: gateway.for_dry_run(concurrency, sink) for name, gateway in self.items()}
        return [backend for backend, _ in pairs.values()], Gateways({name: one for name, (_, one) in pairs.items()})

    def stop(self) -> None:
        """Refuse all further calls; those in flight may end."""
        for gateway in self.values():
            gateway.budget.stop()

    async def wait_for_pending(self) -> None:
        """Wait for requests under way: they are paid for, and their replies are kept."""
        for gateway in self.values():
            await gateway.wait_for_pending()

    async def close(self) -> None:
        """Cancel requests under way, and close all backends; then raise the first error of one."""
        errors = []
        for gateway in self.values():
            try:
                await gateway.close()
            except Exception as error:  # noqa: BLE001 - the other backends are closed as well
                errors.append(error)
        if errors:
            raise errors[0]


NO_GATEWAYS = Gateways({})
