"""litellm's real code against a local server: one request per call, and each fault by its kind."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jurygraph.models.backends.litellm import (
    ADDRESS_VARIABLES_BY_PROVIDER,
    LiteLLMBackend,
    import_litellm,
)
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.schema import Message
from tests.models.server import (
    Server,
    reply_with,
    run_server,
    status,
)

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings(
        "ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning"
    ),
]

SECRET = "sk-canary-0123456789"
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "COHERE_API_KEY")
"""What some providers must be given beside an address, or in place of PROVIDER_API_KEY."""


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def request(model: str = "openai/tiny", **others: Any) -> Request:
    asked = (
        Message(role="system", content="You judge."),
        Message(role="user", content="Is it so?"),
    )
    return Request.model_validate(
        {"provider": "litellm", "model": model, "messages": asked, **others}
    )


async def complete(backend: LiteLLMBackend, asked: Request, timeout: float) -> Reply:
    try:
        return await backend.complete(asked, timeout)
    finally:
        await backend.close()


def ask(server: Server, model: str = "openai/tiny", timeout: float = 30.0, **others: Any) -> Reply:
    return asyncio.run(
        complete(LiteLLMBackend(model, server.url), request(model, **others), timeout)
    )


def clients() -> int:
    """Return the number of clients with connections that litellm keeps."""
    return len(import_litellm().in_memory_llm_clients_cache.cache_dict)


@pytest.mark.parametrize(
    ("model", "left"),
    [
        ("anthropic/claude-sonnet-4-5", {"temperature", "max_tokens"}),
        ("anthropic/claude-opus-4-8", {"max_tokens"}),
        ("bedrock/eu.anthropic.claude-sonnet-5", {"max_tokens"}),
        ("bedrock/meta.llama3-3-70b-instruct-v1:0", {"temperature", "max_tokens"}),
        ("openrouter/openai/gpt-5", {"max_tokens", "seed", "n"}),
        ("gemini/gemini-2.5-flash", {"temperature", "max_tokens", "seed", "n"}),
        ("openai/gpt-4.1", {"temperature", "max_tokens", "seed", "n", "logprobs", "top_logprobs"}),
        (
            "unheard-of/model",
            {"temperature", "max_tokens", "seed", "n", "logprobs", "top_logprobs"},
        ),
    ],
)
def test_unsupported_parameters_of_a_model_are_omitted(
    model: str, left: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    litellm = import_litellm()
    arguments: dict[str, Any] = {}

    async def record_arguments(**given: Any) -> None:
        arguments.update(given)
        raise ValueError("nothing is sent")

    monkeypatch.setattr(litellm, "acompletion", record_arguments)
    given = {
        "temperature": 0.0,
        "max_tokens": 9,
        "seed": 1,
        "n": 1,
        "logprobs": True,
        "top_logprobs": 5,
    }
    with pytest.raises(Fault, match="nothing is sent"):
        asyncio.run(complete(LiteLLMBackend(model), request(model, parameters=given), 9.0))
    sent = {name: arguments[name] for name in given if name in arguments}
    assert sent.keys() == left
    if not model.startswith("unheard-of"):  # and with what is left litellm has nothing to refuse
        name, provider, *_ = litellm.get_llm_provider(model)
        litellm.get_optional_params(model=name, custom_llm_provider=provider, **sent)


@pytest.mark.parametrize(
    ("model", "form", "logprobs"),
    [
        ("openai/gpt-4.1", "native", True),
        ("openai/gpt-5-mini", "native", False),
        ("azure/my-deployment", "native", True),
        ("hosted_vllm/qwen", "native", True),
        ("fireworks_ai/accounts/x", "native", True),
        ("anthropic/claude-sonnet-4-5", "native", False),
        ("gemini/gemini-2.5-flash", "native", False),
        ("groq/llama-3.3-70b-versatile", "instructed", False),
        ("groq/openai/gpt-oss-120b", "native", False),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", "instructed", False),
        ("ollama_chat/llama3", "native", False),
        ("unheard-of/model", "instructed", False),
        ("gpt-4.1", "instructed", False),
    ],
)
def test_capabilities_of_a_provider_are_known(model: str, form: str, logprobs: bool) -> None:
    able = LiteLLMBackend(model).capabilities
    assert (able.form, able.logprobs) == (form, logprobs)


@pytest.mark.parametrize("model", ["openai/tiny", "anthropic/claude-sonnet-4-5"])
def test_a_missing_key_is_reported_without_a_request(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with run_server(lambda body, number: reply_with("yes")) as server:
        with pytest.raises(Fault) as caught:
            ask(server, model)
        assert (caught.value.kind, server.count) == ("unauthorised", 0)


def test_an_unknown_provider_is_rejected() -> None:
    with pytest.raises(Fault, match="LLM Provider NOT provided") as caught:
        asyncio.run(complete(LiteLLMBackend("unheard-of/model"), request("unheard-of/model"), 30.0))
    assert caught.value.kind == "rejected"


def test_a_url_with_a_password_is_refused() -> None:
    with pytest.raises(ValueError, match="pass the key separately"):
        LiteLLMBackend("openai/tiny", f"http://me:{SECRET}@host/v1")


def test_the_endpoint_is_the_address_without_possible_secrets() -> None:
    assert LiteLLMBackend("openai/tiny").endpoint is None
    assert LiteLLMBackend("openai/tiny", "http://judge:8000/v1/").endpoint == "http://judge:8000/v1"
    assert (
        LiteLLMBackend("openai/tiny", f"http://judge:8000/v1?key={SECRET}").endpoint
        == "http://judge:8000/v1"
    )


def test_a_server_named_in_the_environment_has_another_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with run_server(lambda body, number: reply_with("yes")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/")
        backend = LiteLLMBackend("openai/tiny")
        assert asyncio.run(complete(backend, request(), 30.0)).text == "yes"
        assert (backend.endpoint, server.count) == (server.url, 1)
    assert LiteLLMBackend("openai/tiny", "http://judge:8000/v1").endpoint == "http://judge:8000/v1"


@pytest.mark.parametrize(
    "address", ["http://me:{}@judge:8000/v1", "me:{}@judge:8000", "https://{}@judge"]
)
def test_an_address_of_the_environment_with_a_password_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", address.format(SECRET))
    with pytest.raises(ValueError, match=r"OPENAI_API_BASE: .* pass the key separately") as caught:
        LiteLLMBackend("openai/tiny")
    assert SECRET not in str(caught.value)
    assert (
        LiteLLMBackend("openai/tiny", "http://judge:8000/models@v1").endpoint
        == "http://judge:8000/models@v1"
    )


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a server that answers 400 to every request, and the requested paths so far."""
    paths: list[str] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(400)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()
        thread.join()


ASKED = (
    *(
        "openai/m",
        "anthropic/m",
        "azure/m",
        "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0",
        "cohere_chat/m",
    ),
    *(
        "deepseek/m",
        "featherless_ai/m",
        "fireworks_ai/m",
        "friendliai/m",
        "gemini/m",
        "groq/m",
        "hosted_vllm/m",
    ),
    *(
        "lambda_ai/m",
        "litellm_proxy/m",
        "lm_studio/m",
        "meta_llama/m",
        "mistral/m",
        "nvidia_nim/m",
        "ollama/m",
    ),
    *("ollama_chat/m", "openrouter/m", "scx-ai/m", "together_ai/m", "xai/m", "xinference/m"),
)
"""Models of providers that can be asked without a library of their own."""


def named_addresses() -> set[str]:
    """Return variables that might name the address of a server, for litellm or not."""
    providers = {model.partition("/")[0].upper().replace("-", "_") for model in ASKED}
    guessed = {
        f"{provider}_{ending}"
        for provider in providers
        for ending in ("API_BASE", "BASE_URL", "API_URL")
    }
    return guessed.union(*ADDRESS_VARIABLES_BY_PROVIDER.values())


def reached_by_litellm(model: str, paths: list[str]) -> str | None:
    """Return the first part of the path that litellm requests; None if it requests another server."""

    async def asked() -> None:
        with contextlib.suppress(Exception):
            await litellm.acompletion(
                model=model,
                messages=[{"role": "user", "content": "x"}],
                max_retries=0,
                num_retries=0,
            )
        await litellm.close_litellm_async_clients()
        litellm.in_memory_llm_clients_cache.flush_cache()

    litellm = import_litellm()
    paths.clear()
    asyncio.run(asked())
    return paths[0].split("/")[1] if paths else None


@pytest.fixture
def nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow no other server, whatever litellm tries."""
    resolve = socket.getaddrinfo

    def resolved(host: Any, *more: Any, **named: Any) -> Any:
        if host != "127.0.0.1":
            raise socket.gaierror(socket.EAI_NONAME, "nobody outside is asked here")
        return resolve(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


@pytest.mark.usefixtures("nowhere_else")
@pytest.mark.parametrize("model", ASKED)
def test_the_server_is_the_one_that_litellm_finds_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    for name in (f"{model.partition('/')[0].upper().replace('-', '_')}_API_KEY", *KEYS):
        monkeypatch.setenv(name, SECRET)
    with listening() as (address, paths):
        for name in named_addresses():
            monkeypatch.setenv(name, f"{address}/{name}")
        found: list[str] = []
        while (endpoint := LiteLLMBackend(model).endpoint) is not None:
            name = endpoint.removeprefix(f"{address}/")
            assert reached_by_litellm(model, paths) == name
            monkeypatch.delenv(name)
            found.append(name)
        assert found != []
        assert reached_by_litellm(model, paths) is None


@pytest.mark.usefixtures("nowhere_else")
def test_a_litellm_proxy_in_the_environment_is_the_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LITELLM_PROXY_API_KEY", SECRET)
    with listening() as (address, paths):
        for name in ("LITELLM_PROXY_API_BASE", "GROQ_API_BASE"):
            monkeypatch.setenv(name, f"{address}/{name}")
        assert reached_by_litellm("groq/m", paths) == "GROQ_API_BASE"
        monkeypatch.setenv("USE_LITELLM_PROXY", "True")
        assert reached_by_litellm("groq/m", paths) == "LITELLM_PROXY_API_BASE"
        assert LiteLLMBackend("groq/m").endpoint == f"{address}/LITELLM_PROXY_API_BASE"


@pytest.mark.parametrize(
    ("model", "path"), [("ollama/unheard-of", "/api/generate"), ("ollama_chat/own:4b", "/api/chat")]
)
def test_ollama_gets_one_request_per_reply(
    monkeypatch: pytest.MonkeyPatch, model: str, path: str
) -> None:
    with listening() as (address, paths):
        # where litellm would ask what the model can do
        monkeypatch.setenv("OLLAMA_API_BASE", address)
        with pytest.raises(Fault):
            asyncio.run(complete(LiteLLMBackend(model), request(model), 30.0))
        assert paths == [path]
    assert LiteLLMBackend(model).find_list_price() is None


def test_a_closed_backend_keeps_others_connected_and_can_be_reused() -> None:
    async def both(url: str) -> list[str]:
        first, second = LiteLLMBackend("openai/tiny", url), LiteLLMBackend("openai/tiny", url)
        replies = [await first.complete(request(), 30.0), await second.complete(request(), 30.0)]
        await first.close()
        assert clients() > 0
        replies.append(await second.complete(request(), 30.0))
        await second.close()
        await second.close()
        assert clients() == 0
        replies.append(await first.complete(request(), 30.0))
        await first.close()
        return [reply.text for reply in replies]

    with run_server(lambda body, number: reply_with(str(number))) as server:
        assert asyncio.run(both(server.url)) == ["1", "2", "3", "4"]


def test_the_session_is_given_to_litellm_only_while_a_backend_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def sessions(url: str) -> list[object]:
        backend = LiteLLMBackend("openai/tiny", url)
        await backend.complete(request(), 30.0)
        # whoever does this, the backend still has its client
        await litellm.close_litellm_async_clients()
        await backend.complete(request(), 30.0)
        during = litellm.aclient_session
        await backend.close()
        return [during, litellm.aclient_session]

    litellm, own = import_litellm(), object()
    monkeypatch.setattr(litellm, "aclient_session", own)
    with run_server(lambda body, number: reply_with("yes")) as server:
        during, after = asyncio.run(sessions(server.url))
    assert during is not own
    assert after is own


@pytest.mark.parametrize("model", ["litellm_proxy/tiny", "deepinfra/tiny"])
def test_a_provider_that_is_asked_by_openais_library_is_found_out_without_a_request(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LITELLM_PROXY_API_KEY", "DEEPINFRA_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    with run_server(lambda body, number: reply_with("yes")) as server:
        assert (ask(server, model).text, server.count) == ("yes", 1)


def test_a_reply_by_a_client_of_litellms_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOBABOOGA_API_KEY", SECRET)
    with (
        run_server(lambda body, number: reply_with("yes")) as server,
        pytest.raises(Fault) as caught,
    ):
        asyncio.run(
            complete(
                LiteLLMBackend("oobabooga/tiny", server.url.removesuffix("/v1")),
                request("oobabooga/tiny"),
                30.0,
            )
        )
    assert caught.value.kind == "rejected"
    assert "openai-compatible:URL#model instead" in str(caught.value)
    assert server.count == 1


def test_requests_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as (proxy, paths):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        with pytest.raises(Fault):
            asyncio.run(
                complete(LiteLLMBackend("openai/tiny", "http://judge.example/v1"), request(), 30.0)
            )
        assert paths == ["http://judge.example/v1/chat/completions"]


@pytest.mark.parametrize(
    "model", ["hosted_vllm/qwen", "unheard-of/gpt-4.1", "openai/unheard-of", "", "openai/"]
)
def test_an_unknown_price_is_none(model: str) -> None:
    assert LiteLLMBackend(model).find_list_price() is None


ALONE = """
import json, os, socket, sys
met = []
for name in ("connect", "connect_ex"):
    real = getattr(socket.socket, name)
    setattr(socket.socket, name, lambda self, address, real=real: (met.append(str(address)), real(self, address))[1])
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **named: (met.append(str(host)), resolve(host, *more, **named))[1]
import jurygraph
early = [name for name in ("litellm", "langchain_core", "jurygraph.models") if name in sys.modules]
import asyncio
from jurygraph.models.backends.litellm import LiteLLMBackend
from jurygraph.models.request import Fault
from tests.models.test_litellm import request
early += [name for name in ("litellm",) if name in sys.modules]
async def ask():
    kinds = []
    for model in ("anthropic/claude-sonnet-4-5", "openai/tiny", "together_ai/unheard-of"):
        backend = LiteLLMBackend(model, os.environ["PLACE"])
        try:
            await backend.complete(request(model, answer={"type": "object"}, form="native"), 30.0)
        except Fault as fault:
            kinds.append(fault.kind)
        await backend.close()
    return kinds
kinds = asyncio.run(ask())
import litellm
print(json.dumps({"met": sorted(set(met)), "early": early, "kinds": kinds, "read": "FROM_DOTENV" in os.environ}))
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """Return the output of a new process with three calls and litellm's log level at DEBUG."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / ".env").write_text("FROM_DOTENV=yes\n")
    with run_server(lambda body, number: status(500)) as server:
        environment = os.environ | {
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PLACE": server.url,
            "LITELLM_LOG": "DEBUG",
            "OPENAI_API_KEY": SECRET,
            "ANTHROPIC_API_KEY": SECRET,
            "TOGETHERAI_API_KEY": SECRET,
        }
        made = subprocess.run(
            [sys.executable, "-c", ALONE],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(made.stdout.splitlines()[-1]), made.stdout + made.stderr


def test_a_first_call_fetches_prints_and_reads_nothing_else(
    alone: tuple[dict[str, Any], str],
) -> None:
    report, printed = alone
    assert report["met"] != []
    assert [host for host in report["met"] if "127.0.0.1" not in host] == []
    assert report["early"] == []  # litellm is loaded on first use
    assert report["read"] is False  # no .env of the working directory
    assert report["kinds"] == ["unknown-model", "server", "server"]
    assert SECRET not in printed
    assert "Is it so?" not in printed
    assert len(printed.splitlines()) == 1
