"""A chat model as its owner would write it: OpenAI's client with the settings that it comes with."""

from typing import Any

import openai
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

_ROLES = {"human": "user", "ai": "assistant"}


class OpenAIChat(BaseChatModel):
    """Call a server at `url`."""

    url: str
    model_name: str
    max_retries: int = 0

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        told: Any = [{"role": _ROLES.get(one.type, one.type), "content": one.content} for one in messages]
        async with openai.AsyncOpenAI(base_url=self.url, api_key="sk-0123456789", max_retries=0) as client:
            answer = await client.chat.completions.create(model=self.model_name, messages=told)
        choice = answer.choices[0]
        message = AIMessage(
            content=choice.message.content or "",
            additional_kwargs={"refusal": choice.message.refusal},
            response_metadata={"finish_reason": choice.finish_reason, "model_name": answer.model},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])
