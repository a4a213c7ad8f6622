"""Send one group's requests to its model: structured replies, one deadline, and a record of every call."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, JsonValue

from jurygraph.models.faults import Fault
from jurygraph.models.gateway import Gateway
from jurygraph.models.request import AnsweredCall, CallSink, Reply, Request
from jurygraph.models.structured import answer_schema, parse_reply, repair_request, with_instructions
from jurygraph.prompts import Prompt, RenderOptions
from jurygraph.schema import Call, SafetyConfig

R = TypeVar("R")
T = TypeVar("T", bound=BaseModel)
ReplyCheck = Callable[[T], str | Awaitable[str | None] | None]
"""A check of a reply: returns a message about an error in it, or None if it is valid."""

DEFENDED = SafetyConfig()
_cached_schema = lru_cache(maxsize=64)(answer_schema)


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[T]):
    """A reply that validates as the requested pydantic model, and its call."""

    value: T
    reply: Reply
    call: Call


class JudgeClient:
    """The model requests of one group, or one task. `calls` are all calls, new or cached, by id.

    `safety` selects the defences; `key` is the project's, for the marks of fences. Replies are kept in `sink`.
    """

    def __init__(
        self,
        gateway: Gateway,
        parameters: Mapping[str, JsonValue],
        safety: SafetyConfig = DEFENDED,
        key: bytes = b"",
        sink: CallSink | None = None,
    ) -> None:
        self.calls: dict[str, Call] = {}
        self.safety = safety
        self._render_options = RenderOptions(safety.fence, safety.reminder, key)
        self._gateway = gateway
        self._sink = sink
        self._parameters = parameters
        self._deadline_time: float | None = None

    @property
    def model(self) -> str:
        """The provider's name of the model."""
        return self._gateway.backend.model

    def request(
        self,
        prompt: Prompt,
        reply_model: type[BaseModel],
        variables: Mapping[str, Any],
        *,
        sample: int = 0,
        logprobs: bool = False,
        max_reply_tokens: int = 0,
    ) -> Request:
        """Build a request, equal for equal arguments. `max_reply_tokens` counts if it is more than the config's."""
        backend, capabilities = self._gateway.backend, self._gateway.backend.capabilities
        rendered = prompt.render(self._render_options, **variables)
        max_tokens = max(self._gateway.limits.max_tokens, max_reply_tokens)
        parameters: dict[str, JsonValue] = {"temperature": 0.0, "max_tokens": max_tokens}
        if logprobs and capabilities.logprobs:
            parameters |= {"logprobs": True, "top_logprobs": capabilities.top_logprobs}
        parameters |= self._parameters
        if not parameters.get("logprobs"):  # the config may turn them off
            parameters.pop("logprobs", None)
            parameters.pop("top_logprobs", None)
        request = Request.model_construct(  # all parts are validated already, and validating a schema is slow
            provider=backend.provider,
            endpoint=backend.endpoint,
            model=backend.model,
            messages=rendered.messages,
            parameters=parameters,
            answer=_cached_schema(reply_model),
            form=capabilities.form,
            prompt=prompt.id,
            prompt_version=prompt.full_version,
            sample=sample,
            marks=rendered.marks,
        )
        return with_instructions(request) if capabilities.form == "instructed" else request

    async def judge(
        self, request: Request, reply_model: type[T], check: "ReplyCheck[T] | None" = None
    ) -> ParsedReply[T]:
        """Return the reply parsed as `reply_model`; a malformed reply is sent back to the model once for repair.

        So is a reply for which `check` returns a message; if its repair is malformed, the first reply counts. A slow
        `check` is a coroutine function, so that the event loop continues.

        Raises `Fault`; its `call` is the call with the malformed reply.
        """
        first = await self._ask(request)
        parsed = None
        try:
            parsed = self._read_reply(first, reply_model)
            message = check(parsed.value) if check else None
            problem = await message if isinstance(message, Awaitable) else message
            if problem is None:
                return parsed
        except Fault as fault:
            if fault.kind != "malformed":
                self._gateway.drop_from_cache(first.call.id)
                raise
            problem = str(fault)
        try:
            second = await self._ask(repair_request(request, first.reply, problem), repairs=first.call.id)
            return self._read_reply(second, reply_model)
        except Fault as fault:
            if parsed is not None and fault.cause == "response":
                return parsed
            if parsed is None:
                for call in filter(None, (first.call.id, fault.call)):
                    self._gateway.drop_from_cache(call)
            fault.call = fault.call or first.call.id  # the first call was paid for
            raise

    def _read_reply(self, answered: AnsweredCall, reply_model: type[T]) -> ParsedReply[T]:
        reply, call = answered
        try:
            return ParsedReply(parse_reply(reply, reply_model, self.safety.whole_reply), reply, call)
        except Fault as fault:
            fault.call = call.id
            raise

    async def _ask(self, request: Request, repairs: str | None = None) -> AnsweredCall:
        if self._deadline_time is None and self._gateway.limits.deadline is not None:  # from the group's first request
            self._deadline_time = asyncio.get_running_loop().time() + self._gateway.limits.deadline
        reply, call = await self._gateway.ask(request, self._deadline_time, self._sink)
        if repairs is not None:
            call = call.model_copy(update={"repairs": repairs})
        self.calls[call.id] = call
        return AnsweredCall(reply, call)


async def each_answered(awaitables: Iterable[Awaitable[R]]) -> list[R]:
    """Return the results of all; the first error is raised after all have ended, so that replies paid for are kept."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]
