"""Any langchain-core chat model can be called, and each of its errors has a kind."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langsmith import Client
from langsmith.run_helpers import get_tracing_context
from pydantic import Field, SecretStr

from jurygraph.errors import ConfigError
from jurygraph.models.backends.chat_model import ChatModelBackend
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.schema import CallsConfig, Message
from tests.rows import all_rows
from tests.virtual_time import run_held

SECRET = "sk-canary-0123456789"


class Judge(BaseChatModel):
    """Return or raise what `answer` returns or raises."""

    answer: Callable[[list[BaseMessage]], AIMessage]
    model_name: str = "judge-1"
    temperature: float = 0.7
    longest: int | None = Field(default=None, alias="max_tokens")
    api_key: SecretStr = SecretStr(SECRET)
    seen: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "judge"

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        self.seen.append((self.temperature, self.longest, kwargs, get_tracing_context()["enabled"]))
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])


listed = FakeListChatModel(responses=["yes", "no"])
"""What `langchain:tests.models.test_chat_model.listed` names."""


def request(**others: Any) -> Request:
    asked = (
        Message(role="system", content="You judge."),
        Message(role="user", content="Is it so?"),
    )
    return Request.model_validate(
        {"provider": "langchain:Judge", "model": "judge-1", "messages": asked, **others}
    )


def ask(model: BaseChatModel, timeout: float = 5.0, **others: Any) -> Reply:
    return run_held(ChatModelBackend(model).complete(request(**others), timeout))


def fault(raised: BaseException) -> Fault:
    def answer(messages: list[BaseMessage]) -> AIMessage:
        raise raised

    with pytest.raises(Fault) as caught:
        ask(Judge(answer=answer))
    return caught.value


def test_the_provider_is_the_class_and_the_model_its_name() -> None:
    backend = ChatModelBackend(Judge(answer=lambda _: AIMessage("ok")))
    assert (backend.provider, backend.endpoint, backend.model) == (
        "langchain:Judge",
        None,
        "judge-1",
    )
    assert ChatModelBackend(listed).model == "FakeListChatModel"


def test_provider_data_of_a_reply_is_kept() -> None:
    told = AIMessage(
        [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}],
        usage_metadata={"input_tokens": 11, "output_tokens": 7, "total_tokens": 18},
        response_metadata={"finish_reason": "stop", "model_name": "judge-1-2026"},
        additional_kwargs={"refusal": "no way"},
    )
    assert ask(Judge(answer=lambda _: told)) == Reply(
        text="yes",
        finish="stop",
        refusal="no way",
        served="judge-1-2026",
        tokens_in=11,
        tokens_out=7,
    )


@all_rows(
    ("metadata", "finish"),
    [
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "STOP"}, "stop"),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"done_reason": "length"}, "length"),
        ({"stop_reason": "refusal"}, "content_filter"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({"finish_reason": None, "stop_reason": 3}, None),
        ({"finish_reason": "novel"}, "novel"),
    ],
)
def test_the_finish_reason_uses_common_words(metadata: dict[str, Any], finish: str | None) -> None:
    assert (
        ask(Judge(answer=lambda _: AIMessage("yes", response_metadata=metadata))).finish == finish
    )


def test_a_model_gets_only_parameters_that_it_has_fields_for() -> None:
    judge = Judge(answer=lambda _: AIMessage("ok"))
    ask(judge, parameters={"temperature": 0.0, "max_tokens": 9, "top_k": 3})
    ask(judge)
    assert [given[:3] for given in judge.seen] == [(0.0, 9, {}), (0.7, None, {})]


class Known(Judge):
    """Say what identifies it, as `identity` has it."""

    identity: Any = Field(default_factory=dict)
    url: str = "http://here"

    @property
    def _identifying_params(self) -> Any:
        return self.identity()


def own_settings(said: Callable[[], Any], **fields: Any) -> Any:
    return ChatModelBackend(
        Known(answer=lambda _: AIMessage("ok"), identity=said, **fields)
    ).own_settings


def test_what_identifies_a_model_is_read_without_keys_and_what_changes_with_each_reading() -> None:
    clock = iter(range(99))
    hard = {
        "base_url": "http://there",
        "seed": 7,
        "stop": [frozenset((0, 8)), {"b", "a"}],
        "odd": [float("nan"), b"\xff", object(), SecretStr(SECRET)],
    }
    read = own_settings(
        lambda: {
            **hard,
            "api_key": SECRET,
            "request_timeout": 3,
            "now": next(clock),
            "header": f"Bearer {SECRET}",
        },
        url="http://other",
    )
    assert sorted(read) == ["base_url", "header", "odd", "seed", "stop", "url"]
    assert read["seed"] == 7
    assert {value[:7] for name, value in read.items() if name != "seed"} == {"sha256:"}
    assert SECRET not in str(read)
    again = own_settings(lambda: {**hard, "stop": [frozenset((8, 0)), {"a", "b"}], "seed": 8})
    assert (again["odd"], again["stop"], again["seed"]) == (read["odd"], read["stop"], 8)
    assert own_settings(lambda: 1 / 0) is None, "langchain raises it, too, when the model is asked"


@all_rows(
    ("fields", "calls", "own"),
    [
        ({}, {}, None),
        ({"temperature": 0.5, "max_tokens": 4000}, {}, {"temperature": 0.5, "max_tokens": 4000}),
        ({"temperature": 0.0, "max_tokens": None}, {}, None),
        ({"temperature": 0.5}, {"parameters": {"temperature": 0.1}}, None),
        ({"max_tokens": 4000}, {"max_tokens": 500}, None),
    ],
)
def test_what_the_model_was_given_holds_where_the_config_says_nothing(
    fields: dict[str, Any], calls: dict[str, Any], own: dict[str, Any] | None
) -> None:
    judge = Judge(answer=lambda _: AIMessage("ok"), **fields)
    assert ChatModelBackend(judge, CallsConfig(**calls)).own_parameters == own


def test_nothing_is_sent_to_langsmith(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", SECRET)
    monkeypatch.setattr(Client, "create_run", lambda *given, **more: sent.append(more))
    judge = Judge(answer=lambda _: AIMessage("ok"))
    ask(judge)
    assert ([tracing for *_, tracing in judge.seen], sent) == ([False], [])


def test_callbacks_of_a_surrounding_graph_are_not_called() -> None:
    backend = ChatModelBackend(Judge(answer=lambda _: AIMessage("ok")))
    listening = CallbackRecorder()

    async def node(_: str) -> str:
        return (await backend.complete(request(), 5.0)).text

    assert asyncio.run(RunnableLambda(node).ainvoke("x", config={"callbacks": [listening]})) == "ok"
    assert listening.started == 0


class CallbackRecorder(BaseCallbackHandler):
    started = 0

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self.started += 1


def test_langchain_caches_are_not_used() -> None:
    set_llm_cache(InMemoryCache())
    try:
        backend = ChatModelBackend(FakeListChatModel(responses=["yes", "no"]))
        assert [asyncio.run(backend.complete(request(), 5.0)).text for _ in range(2)] == [
            "yes",
            "no",
        ]
    finally:
        set_llm_cache(None)


class Failed(Exception):
    """An error of a client, with these attributes."""

    def __init__(self, *words: str, **attributes: Any) -> None:
        super().__init__(*words)
        vars(self).update(attributes)


class APIConnectionError(Exception):
    """An error with the name that openai and anthropic use."""


class APITimeoutError(APIConnectionError):
    """A subclass of the other, as in their clients."""


@all_rows(
    ("raised", "kind"),
    [
        (TimeoutError("late"), "timeout"),
        (APITimeoutError("late"), "timeout"),
        (ConnectionResetError("gone"), "connection"),
        (APIConnectionError("gone"), "connection"),
        (Failed(status_code=429), "rate-limit"),
        (Failed(status_code=401), "unauthorised"),
        (Failed(status_code=403), "unauthorised"),
        (Failed(status_code=404), "unknown-model"),
        (Failed(status_code=400), "rejected"),
        (Failed(status_code=400, code="context_length_exceeded"), "overflowed"),
        (Failed("prompt is too long: 210000 tokens", status_code=400), "overflowed"),
        (Failed(status_code=400, code="content_filter"), "refused"),
        (Failed(status_code=503), "server"),
        (Failed(response=SimpleNamespace(status_code=500)), "server"),
        (Failed(response=SimpleNamespace(status_code=408)), "timeout"),
        (Failed(status_code=200), "unreadable"),
        (
            openai.APIError("overloaded", httpx.Request("POST", "http://judge"), body=None),
            "unreadable",
        ),
        (OSError(101, "Network is unreachable"), "unreadable"),
        (json.JSONDecodeError("no JSON", "<html>", 0), "unreadable"),
        (KeyError("choices"), "code"),
        (NotImplementedError(), "code"),
        (FileNotFoundError(2, "no such file", "key.txt"), "code"),
    ],
)
def test_each_error_is_mapped_to_its_kind_of_fault(raised: Exception, kind: str) -> None:
    assert fault(raised).kind == kind


def read_reply_without_choices(_: Any) -> AIMessage:
    """Fail as a client does: a reply without choices is a TypeError of langchain-openai."""
    client: dict[str, Any] = {}
    source = "def read(reply):\n    return reply['choices'][0]"
    exec(compile(source, "/venv/site-packages/client/chat.py", "exec"), client)
    answer: AIMessage = client["read"]({"choices": None})
    return answer


@all_rows(
    ("answer", "kind", "told"),
    [
        (
            lambda _: {}["text"],
            "code",
            r"^judge-1: KeyError \(test_chat_model.py, line \d+, in <lambda>\): 'text'",
        ),
        (
            lambda _: AIMessage(content=7),
            "code",
            r"ValidationError \(test_chat_model.py.*: 2 validation errors for AIMessage",
        ),
        (lambda _: None, "code", "ChatGeneration"),
        (read_reply_without_choices, "unreadable", "TypeError"),
    ],
)
def test_a_mistake_in_the_code_of_the_model_is_told_from_what_a_server_sent(
    answer: Any, kind: str, told: str
) -> None:
    with pytest.raises(Fault, match=told) as caught:
        ask(Judge(answer=answer))
    assert caught.value.kind == kind


def http(code: int, headers: dict[str, str]) -> httpx.Response:
    return httpx.Response(
        code, headers=headers, request=httpx.Request("POST", "http://judge:8000/v1")
    )


def error_caused_by(cause: Exception) -> Exception:
    """Return an integration's own error, raised because of another."""
    try:
        raise RuntimeError("the model could not be asked") from cause
    except RuntimeError as error:
        return error


LATER = {"Retry-After": "7"}
LIMITED = openai.RateLimitError("slow down", response=http(429, LATER), body=None)


@all_rows(
    ("raised", "kind", "seconds"),
    [
        (LIMITED, "rate-limit", 7.0),
        (error_caused_by(error_caused_by(LIMITED)), "rate-limit", 7.0),
        (openai.InternalServerError("busy", response=http(503, LATER), body=None), "server", 7.0),
        (openai.BadRequestError("wrong", response=http(400, LATER), body=None), "rejected", None),
        (Failed(status_code=429), "rate-limit", None),
        (Failed(response=SimpleNamespace(status_code=429)), "rate-limit", None),
    ],
)
def test_retry_after_is_read_from_the_reply_of_the_error_or_its_cause(
    raised: Exception, kind: str, seconds: float | None
) -> None:
    told = fault(raised)
    assert (told.kind, told.retry_after) == (kind, seconds)


OTHER = "sk-other-9876543210"


def test_a_model_is_loaded_by_its_name() -> None:
    assert (
        ChatModelBackend("tests.models.test_chat_model.listed").provider
        == "langchain:FakeListChatModel"
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tests.models.test_chat_model.nothing", "cannot be loaded: AttributeError"),
        ("tests.no_such_module.judge", "cannot be loaded: .*no_such_module"),
        ("", "cannot be loaded"),
        (
            "tests.models.test_chat_model.Judge",
            "no langchain-core chat model; name one that is set up",
        ),
        ("json.dumps", "no langchain-core chat model"),
    ],
)
def test_a_name_that_is_not_a_chat_model_is_refused(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ChatModelBackend(name)


def test_a_load_error_does_not_show_a_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "telling_judge.py").write_text(f"raise ValueError('{OTHER} is no key')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ANOTHER_API_KEY", OTHER)
    with pytest.raises(ConfigError, match=r"cannot be loaded: ValueError: \[redacted\] is no key"):
        ChatModelBackend("telling_judge.judge")


class ModelWithRetries(FakeListChatModel):
    """Retry by itself, or by its client."""

    max_retries: int | None


def test_a_model_with_its_own_retries_is_refused() -> None:
    assert (
        ChatModelBackend(ModelWithRetries(responses=["x"], max_retries=0)).provider
        == "langchain:ModelWithRetries"
    )
    for retries in (2, None):
        problem = f"ModelWithRetries.*has max_retries={retries}.*make it with max_retries=0"
        with pytest.raises(ConfigError, match=problem):
            ChatModelBackend(ModelWithRetries(responses=["x"], max_retries=retries))


def test_its_secrets_are_the_keys_of_the_model() -> None:
    assert ChatModelBackend(Judge(answer=lambda _: AIMessage("ok"))).secrets == (SECRET,)
