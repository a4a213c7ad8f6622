"""A chat model as its owner would write it: OpenAI's client with the settings that it comes with."""

from typing import Any

import openai
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

KEY = "sk-canary+/7d1f=mlut"
_ROLE_BY_MESSAGE_TYPE = {"human": "user", "ai": "assistant"}


class OpenAIChat(BaseChatModel):
    """Call a server at `url`."""

    url: str
    model_name: str
    temperature: float | None = None
    max_tokens: int | None = None
    max_retries: int = 0

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        told: Any = [
            {"role": _ROLE_BY_MESSAGE_TYPE.get(one.type, one.type), "content": one.content}
            for one in messages
        ]
        settings: dict[str, Any] = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        settings = {name: value for name, value in settings.items() if value is not None}
        async with openai.AsyncOpenAI(base_url=self.url, api_key=KEY, max_retries=0) as client:
            answer = await client.chat.completions.create(
                model=self.model_name, messages=told, **settings
            )
        choice = answer.choices[0]
        usage = answer.usage
        counts = usage and {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
        }
        message = AIMessage(
            content=choice.message.content or "",
            usage_metadata=counts,  # type: ignore[arg-type]
            additional_kwargs={"refusal": choice.message.refusal},
            response_metadata={"finish_reason": choice.finish_reason, "model_name": answer.model},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])
