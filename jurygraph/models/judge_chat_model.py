"""The config's model as a langchain-core chat model, for graphs and Runnables that are evaluators."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel, Field

from jurygraph.schema import Message

T = TypeVar("T")
_ROLES = {"human": "user", "ai": "assistant", "system": "system"}


class JudgeChatModel(BaseChatModel):
    """Chat through a `JudgeClient`: cached, within the budget, retried, recorded, and listed with the verdict.

    Bound arguments, as in `model.bind(temperature=0.7)`, are parameters of the request, besides `sample`, which
    distinguishes equal requests, and `purpose`, by default the name of the graph's node. Synchronous nodes run in a
    thread and can use `invoke`. Raises `Fault` for a missing, cut-off or refused reply, ValueError for other messages
    than text.
    """

    client: Any = Field(exclude=True, repr=False)
    cache: bool | None = False  # langchain's own

    @property
    def _llm_type(self) -> str:
        return "jurygraph"

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **settings: Any
    ) -> ChatResult:
        settings |= {"stop": stop} if stop else {}
        purpose = settings.pop("purpose", _node(run_manager))
        reply, call = await self.client.ask(self.client.chat_request(_as_text(messages), **settings), purpose=purpose)
        metadata = {"model_name": reply.served or call.model, "finish_reason": reply.finish, "call": call.id}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply.text, response_metadata=metadata))])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **settings: Any
    ) -> ChatResult:
        return self._wait_for(self._agenerate(messages, stop, **{"purpose": _node(run_manager), **settings}))

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **settings: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """Return a Runnable that gives the reply as this pydantic model; a malformed reply is repaired once."""
        if include_raw or not (isinstance(schema, type) and issubclass(schema, BaseModel)):
            raise ValueError("a structured reply is a pydantic model: give its class, and no include_raw")
        purpose = settings.pop("purpose", None)

        async def judge(prompt: LanguageModelInput, config: RunnableConfig) -> Any:
            messages = _as_text(self._convert_input(prompt).to_messages())
            request = self.client.chat_request(messages, schema, **settings)
            node = config.get("metadata", {}).get("langgraph_node")
            return (await self.client.judge(request, schema, purpose=purpose or node)).value

        def judge_in_thread(prompt: LanguageModelInput, config: RunnableConfig) -> Any:
            return self._wait_for(judge(prompt, config))

        return RunnableLambda(judge_in_thread, judge, name="judge")

    def _wait_for(self, answer: Coroutine[Any, Any, T]) -> T:
        """Return a result of the client's event loop in another thread."""
        if asyncio._get_running_loop() is self.client.loop:
            answer.close()
            raise RuntimeError("`invoke` would block the event loop that sends the request: await `ainvoke` instead")
        return asyncio.run_coroutine_threadsafe(answer, self.client.loop).result()


def _node(run_manager: Any) -> str | None:
    return None if run_manager is None else run_manager.metadata.get("langgraph_node")


def _as_text(messages: Sequence[BaseMessage]) -> list[Message]:
    for message in messages:
        if message.type not in _ROLES or not isinstance(message.content, str):
            raise ValueError(f"the config's model reads texts of system, user and assistant, not {message!r:.200}")
    return [Message.model_validate({"role": _ROLES[m.type], "content": m.content}) for m in messages]
