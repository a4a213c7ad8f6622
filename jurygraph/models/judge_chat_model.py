"""The config's model as a langchain-core chat model, for graphs and Runnables that are evaluators."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel, Field

from jurygraph.schema import Message

_ROLES = {"human": "user", "ai": "assistant", "system": "system"}


class JudgeChatModel(BaseChatModel):
    """Chat through a `JudgeClient`: cached, within the budget, retried, recorded, and listed with the verdict.

    Bound arguments, as in `model.bind(temperature=0.7)`, are parameters of the request, besides `sample`, which
    distinguishes equal requests, and `purpose`, by default the graph's node. Synchronous nodes can use `invoke`. Raises
    `Fault` for a missing, cut-off or refused reply, ValueError for messages that are not text.
    """

    client: Any = Field(exclude=True, repr=False)
    cache: bool | None = False  # langchain's own

    @property
    def _llm_type(self) -> str:
        return "jurygraph"

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        settings |= {"stop": stop} if stop else {}
        purpose = settings.pop("purpose", None) or _node(run_manager and run_manager.metadata)
        reply, call = await self.client.ask(self.client.chat_request(_as_text(messages), **settings), purpose=purpose)
        metadata = {"model_name": reply.served or call.model, "finish_reason": reply.finish, "call": call.id}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply.text, response_metadata=metadata))])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any) -> Any:
        return self._wait_for(self._agenerate(messages, stop, run_manager, **settings))

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **settings: Any) -> Runnable[Any, Any]:
        """Return a Runnable that gives the reply as this pydantic model; a malformed reply is repaired once."""
        if include_raw or not (isinstance(schema, type) and issubclass(schema, BaseModel)):
            raise ValueError("a structured reply is a pydantic model: give its class, and no include_raw")
        purpose = settings.pop("purpose", None)

        async def judge(prompt: Any, config: RunnableConfig) -> Any:
            request = self.client.chat_request(_as_text(self._convert_input(prompt).to_messages()), schema, **settings)
            return (await self.client.judge(request, schema, purpose=purpose or _node(config.get("metadata")))).value

        return RunnableLambda(lambda prompt, config: self._wait_for(judge(prompt, config)), judge, name="judge")

    def _wait_for(self, answer: Coroutine[Any, Any, Any]) -> Any:
        """Return a result of the client's event loop in another thread."""
        if asyncio._get_running_loop() is self.client.loop:
            answer.close()
            raise RuntimeError("`invoke` would block the event loop that sends the request: await `ainvoke` instead")
        return asyncio.run_coroutine_threadsafe(answer, self.client.loop).result()


def _node(metadata: Any) -> str | None:
    return (metadata or {}).get("langgraph_node", "")[:64] or None


def _as_text(messages: Sequence[BaseMessage]) -> list[Message]:
    for message in messages:
        if message.type not in _ROLES or not isinstance(message.content, str):
            raise ValueError(f"the config's model reads texts of system, user and assistant, not {message!r:.200}")
    return [Message.model_validate({"role": _ROLES[m.type], "content": m.content}) for m in messages]
