"""Send one group's requests to its model: structured replies, one deadline, and a record of every call."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, JsonValue

from jurygraph.models.gateway import Gateway, call_for
from jurygraph.models.request import JUDGE, REPAIR, AnsweredCall, CallLog, CallSink, Fault, Reply, Request
from jurygraph.models.structured import (
    answer_schema,
    parse_reply,
    refuse_unfinished,
    repair_request,
    unwrap_reply,
    with_instructions,
)
from jurygraph.prompts import Prompt, RenderOptions
from jurygraph.safety.fence import Fence
from jurygraph.schema import Call, CallUse, Message, SafetyConfig
from jurygraph.schema.frozen_model import ConstantObject

if TYPE_CHECKING:
    from jurygraph.models.backends.chat_model import JudgeChatModel

T = TypeVar("T", bound=BaseModel)
ReplyCheck = Callable[[T], str | Awaitable[str | None] | None]
"""A check of a reply: returns a message about an error in it, or None if it is valid."""

DEFENDED = SafetyConfig()
CUT_OFF = "cut-off"


@lru_cache(maxsize=64)
def _cached_schema(reply_model: type[BaseModel]) -> ConstantObject:
    return ConstantObject(answer_schema(reply_model))


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[T]):
    """A reply, unwrapped, that validates as the requested pydantic model, and its call."""

    value: T
    reply: Reply
    call: Call


class JudgeClient:
    """The requests of one group, or one task, to a model. `calls` are all calls, new or cached, by id; the clients of
    several models share them.

    `safety` selects the defences; `key` is the project's, for the marks of fences. Replies are kept in `sink`. The
    client of an `EvaluatorInput` or `DeriverInput` lists its calls with the verdict or material, under a `purpose`.
    """

    def __init__(
        self,
        gateway: Gateway,
        parameters: Mapping[str, JsonValue],
        safety: SafetyConfig = DEFENDED,
        key: bytes = b"",
        sink: CallSink | None = None,
        calls: dict[str, Call] | None = None,
    ) -> None:
        self.calls: dict[str, Call] = {} if calls is None else calls
        self.safety = safety
        self._render_options = RenderOptions(safety.fence, safety.reminder, key, gateway.backend.mark_length)
        self._gateway = gateway
        self._sink = sink
        self._parameters = parameters
        self._deadline_time: float | None = None
        self._group = self  # its deadline counts for the clients of all inputs
        self.loop: asyncio.AbstractEventLoop | None = None
        self._logs: tuple[CallLog, ...] = ()
        self._purpose = JUDGE

    def logging_to(self, *logs: CallLog, purpose: str = JUDGE) -> "JudgeClient":
        """Return a client of the same group, for the running event loop, that lists its calls in these logs."""
        client = object.__new__(JudgeClient)
        client.__dict__.update(self.__dict__)
        client._logs = logs
        client._purpose = purpose
        client.loop = asyncio.get_running_loop()
        client.__dict__.pop("fence", None)
        return client

    @cached_property
    def fence(self) -> Fence:
        """The fence for text by others in your own messages (see `chat_request`)."""
        options = self._render_options
        return Fence(options.key, options.fence, options.mark_length)

    @property
    def chat_model(self) -> "JudgeChatModel":
        """The model as a langchain-core chat model, whose requests are those of this client."""
        from jurygraph.models.backends.chat_model import JudgeChatModel  # imported lazily: only needed for LangChain

        return JudgeChatModel(client=self)

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
        rendered = prompt.render(self._render_options, **variables)
        capabilities = self._gateway.backend.capabilities
        parameters: dict[str, Any] = {"max_tokens": max(self._gateway.limits.max_tokens, max_reply_tokens)}
        if logprobs and capabilities.logprobs:
            parameters |= {"logprobs": True, "top_logprobs": capabilities.top_logprobs}
        return self._build_request(
            Request.model_construct,  # all parts are validated already, and validating a schema is slow
            {**parameters, **self._parameters},
            reply_model,
            messages=rendered.messages,
            prompt=prompt.id,
            prompt_version=prompt.full_version,
            sample=sample,
            marks=rendered.marks,
        )

    def chat_request(
        self, messages: Sequence[Message], reply_model: type[BaseModel] | None = None, sample: int = 0, **settings: Any
    ) -> Request:
        """Build a request from your own messages; the reply is free text if there is no `reply_model`.

        `settings` replace the config's parameters, such as `temperature`. Text by others belongs inside the `fence`.
        """
        content = "".join(message.content for message in messages)
        return self._build_request(
            Request,
            {"max_tokens": self._gateway.limits.max_tokens, **self._parameters, **settings, "logprobs": False},
            reply_model,
            messages=tuple(messages),
            sample=sample,
            marks=tuple(sorted((mark for mark in self.fence.marks if mark in content), key=content.index)),
        )

    def _build_request(
        self,
        build: Callable[..., Request],
        parameters: dict[str, Any],
        reply_model: type[BaseModel] | None,
        **fields: Any,
    ) -> Request:
        backend = self._gateway.backend
        parameters = {"temperature": 0.0} | parameters
        if not parameters.get("logprobs"):  # the config may turn them off
            parameters |= {"logprobs": None, "top_logprobs": None}
        request = build(
            provider=backend.provider,
            endpoint=backend.endpoint,
            model=backend.model,
            parameters={name: value for name, value in parameters.items() if value is not None},
            answer=None if reply_model is None else _cached_schema(reply_model),
            form="text" if reply_model is None else backend.capabilities.form,
            **fields,
        )
        return with_instructions(request) if request.form == "instructed" else request

    async def ask(self, request: Request, purpose: str | None = None) -> AnsweredCall:
        """Return the reply as it is, and its call.

        Raises `Fault`, also for a cut-off, refused or empty reply, and the errors that end a run.
        """
        answered = await self._send(request, purpose)
        refuse_unfinished(answered.reply)
        self._accept(answered.call.id, answered.call.id)
        return answered

    async def judge(
        self, request: Request, reply_model: type[T], check: "ReplyCheck[T] | None" = None, purpose: str | None = None
    ) -> ParsedReply[T]:
        """Return the reply parsed as `reply_model`; a malformed reply is sent back to the model once for repair.

        So is a reply for which `check` returns a message; if its repair is malformed, the first reply counts. A slow
        `check` is a coroutine function, so that the event loop continues.

        Raises `Fault`, whose `call` is the call with the malformed reply, and the errors that end a run.
        """
        first = await self._send(request, purpose)
        parsed = None
        try:
            parsed = self._read_reply(first, reply_model, first.call.id)
            message = check(parsed.value) if check else None
            problem = await message if isinstance(message, Awaitable) else message
            if problem is None:
                return parsed
        except Fault as fault:
            if fault.kind != "malformed":
                self._gateway.drop_from_cache(first.call.id)
                raise
            problem = "; ".join(filter(None, (str(fault), fault.remedy)))
        try:
            second = await self._send(repair_request(request, first.reply, problem), REPAIR, first.call.id)
            return self._read_reply(second, reply_model, first.call.id)
        except Fault as fault:
            if parsed is not None and fault.cause == "response":
                return parsed
            if parsed is None:
                for call in filter(None, (first.call.id, fault.call)):
                    self._gateway.drop_from_cache(call)
            fault.call = fault.call or first.call.id  # the first call was paid for
            raise

    def _read_reply(self, answered: AnsweredCall, reply_model: type[T], first: str) -> ParsedReply[T]:
        call = answered.call
        try:
            value = parse_reply(answered.reply, reply_model, self.safety.whole_reply)
        except Fault as fault:
            fault.call = call.id
            self._gateway.first_replies.note(answered, fault)
            raise
        self._gateway.first_replies.note(answered, None)
        self._accept(first, call.id)
        return ParsedReply(value, unwrap_reply(answered.reply), call)

    async def _send(self, request: Request, purpose: str | None, repaired: str | None = None) -> AnsweredCall:
        """Send a request; its place in the logs is that of its start, which does not depend on the time of a reply."""
        use = CallUse(id=request.digest, purpose=purpose or self._purpose)
        for log in self._open_logs:
            log.add(use, repaired)
            log.waiting[request.digest] = request
        group = self._group
        limit = self._gateway.limits.deadline
        if group._deadline_time is None and limit is not None:  # from the group's first request
            group._deadline_time = asyncio.get_running_loop().time() + limit
        try:
            answered = await self._gateway.ask(request, group._deadline_time, self._sink)
        except BaseException as error:
            fault = error if isinstance(error, Fault) else None
            if self._open_logs:
                self._add_unanswered(request, fault)
            if fault is not None:
                fault.raise_if_run_ends()
            raise
        finally:
            for log in self._logs:
                log.waiting.pop(request.digest, None)
        if self._open_logs or not self._logs:  # a reply after the final answer changes nothing
            self.calls[answered.call.id] = answered.call
        return answered

    def _add_unanswered(self, request: Request, fault: Fault | None) -> None:
        """Add a call that failed, or that is cut off: then it does not matter if it waits, is sent or has a reply."""
        attempts, kind = (1, CUT_OFF) if fault is None else (fault.attempts, fault.kind)
        if attempts and request.digest not in self.calls:
            call = self.calls[request.digest] = call_for(request, attempts=attempts, fault=kind)
            self._gateway.store_unanswered(request, call, self._sink)

    @property
    def _open_logs(self) -> list[CallLog]:
        return [log for log in self._logs if not log.is_closed]

    @property
    def is_waiting(self) -> bool:
        """True while a request of an input has no reply."""
        return any(log.waiting for log in self._open_logs)

    def close_logs(self) -> None:
        """List calls under way as cut off, and no later ones: the answer is final."""
        for log in self._open_logs:
            log.is_closed = True
            for request in list(log.waiting.values()):
                self._add_unanswered(request, None)

    def _accept(self, first: str, call: str) -> None:
        for log in self._open_logs:
            log.accepted[first] = call
