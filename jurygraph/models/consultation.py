"""A group of responses and its model: verdicts asked for in one form, within a deadline, with every call remembered."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, JsonValue

from jurygraph.models.asking import Reply, Request
from jurygraph.models.faults import Fault
from jurygraph.models.gateway import Gateway
from jurygraph.models.sink import Answered
from jurygraph.models.structured import answer_schema, instructed, read, repaired
from jurygraph.prompts import Manner, Prompt
from jurygraph.schema import Call, SafetyConfig

R = TypeVar("R")
T = TypeVar("T", bound=BaseModel)
Flaw = Callable[[T], str | Awaitable[str | None] | None]
"""What is wrong with a reply; None where nothing is."""

DEFENDED = SafetyConfig()


@dataclass(frozen=True, slots=True)
class Judged(Generic[T]):
    """A reply that as a whole is what was asked for, and the call that brought it."""

    value: T
    reply: Reply
    call: Call


class Consultation:
    """What is asked of a model about one group, or one task. `calls` are all that were made or recalled, by their ids.

    `safety` says which defences stand; `key` is the project's, for the marks of fences.
    """

    def __init__(
        self,
        gateway: Gateway,
        parameters: Mapping[str, JsonValue],
        safety: SafetyConfig = DEFENDED,
        key: bytes = b"",
    ) -> None:
        self.calls: dict[str, Call] = {}
        self.safety = safety
        self._manner = Manner(safety.fence, safety.reminder, key)
        self._gateway = gateway
        self._parameters = parameters
        self._until: float | None = None

    @property
    def model(self) -> str:
        """The model that is asked, as its provider knows it."""
        return self._gateway.backend.model

    def request(
        self,
        prompt: Prompt,
        noun: type[BaseModel],
        variables: Mapping[str, Any],
        *,
        sample: int = 0,
        logprobs: bool = False,
        room: int = 0,
    ) -> Request:
        """What would be asked; nothing is sent. Equal arguments give an equal request.

        `room` is how many tokens the reply may take, where that is more than the config's `max_tokens`.
        """
        backend, able = self._gateway.backend, self._gateway.backend.capabilities
        rendered = prompt.render(self._manner, **variables)
        request = Request.model_construct(  # of parts that were all checked already: a schema takes long to check
            provider=backend.provider,
            endpoint=backend.endpoint,
            model=backend.model,
            messages=rendered.messages,
            parameters=self._stated(logprobs and able.logprobs, room),
            answer=_schema(noun),
            form=able.form,
            prompt=prompt.id,
            prompt_version=prompt.edition,
            sample=sample,
            marks=rendered.marks,
        )
        return instructed(request) if able.form == "instructed" else request

    def _stated(self, logprobs: bool, room: int) -> dict[str, JsonValue]:
        """What the provider is told: of log probabilities nothing, where the config does not want them."""
        stated: dict[str, JsonValue] = {"temperature": 0.0, "max_tokens": max(self._gateway.limits.max_tokens, room)}
        if logprobs:
            stated |= {"logprobs": True, "top_logprobs": self._gateway.backend.capabilities.top_logprobs}
        stated |= self._parameters
        if not stated.get("logprobs"):
            stated = {name: value for name, value in stated.items() if name not in ("logprobs", "top_logprobs")}
        return stated

    async def judge(self, request: Request, noun: type[T], flaw: "Flaw[T] | None" = None) -> Judged[T]:
        """The reply as the noun that was asked for. What is malformed is shown to the model once, to be repaired.

        So is one of which `flaw` has something to say; where its repair is no such noun, it is taken as it was. A
        `flaw` that takes long is a coroutine function, so that the event loop goes on.
        Raises `Fault`; its `call` is the one whose reply was no such noun.
        """
        first = await self._asked(request)
        try:
            judged = self._judged(first, noun)
        except Fault as fault:
            if fault.kind != "malformed":
                self._gateway.forget(first.call.id)
                raise
            return await self._instead(first, repaired(request, first.reply, fault), noun)
        said = flaw(judged.value) if flaw else None
        if isinstance(said, Awaitable):
            said = await said
        if said is None:
            return judged
        try:
            return await self._repaired(repaired(request, first.reply, Fault("malformed", said)), noun, first.call)
        except Fault as fault:
            if fault.cause == "infrastructure":
                fault.call = first.call.id  # it was paid for
                raise
            return judged

    async def _instead(self, first: Answered, again: Request, noun: type[T]) -> Judged[T]:
        """What stands in the place of a reply that is of no use."""
        try:
            return await self._repaired(again, noun, first.call)
        except Fault as fault:
            if fault.call is not None:
                self._gateway.forget(fault.call)
            fault.call = fault.call or first.call.id
            self._gateway.forget(first.call.id)
            raise

    async def _repaired(self, again: Request, noun: type[T], first: Call) -> Judged[T]:
        second = await self._asked(again)
        call = second.call.model_copy(update={"repairs": first.id})
        self.calls[call.id] = call
        return self._judged(Answered(second.reply, call), noun)

    def _judged(self, answered: Answered, noun: type[T]) -> Judged[T]:
        try:
            return Judged(read(answered.reply, noun, self.safety.whole_reply), answered.reply, answered.call)
        except Fault as fault:
            fault.call = answered.call.id
            raise

    async def _asked(self, request: Request) -> Answered:
        answered = await self._gateway.ask(request, self._deadline())
        self.calls[answered.call.id] = answered.call
        return answered

    def _deadline(self) -> float | None:
        """A time of the running loop, counted from the group's first question."""
        if self._until is None and self._gateway.limits.deadline is not None:
            self._until = asyncio.get_running_loop().time() + self._gateway.limits.deadline
        return self._until


async def each_answered(asked: Iterable[Awaitable[R]]) -> list[R]:
    """What all of these come to. They are all awaited before the first error is raised, so that what was paid for is
    kept."""
    found = await asyncio.gather(*asked, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]


@lru_cache(maxsize=64)
def _schema(noun: type[BaseModel]) -> dict[str, JsonValue]:
    return answer_schema(noun)
