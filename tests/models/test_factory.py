"""Opening the backend of the config's `model`: each kind, and helpful errors for invalid ones."""

import asyncio
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

import jurygraph
from jurygraph import Jury
from jurygraph.errors import ConfigError
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.embedding import open_embedder
from jurygraph.models.factory import (
    find_model_folder,
    find_package_file,
    open_backend,
    open_gateway,
)
from jurygraph.models.gateway import Gateway
from jurygraph.models.limits import Budget
from jurygraph.models.recording import CallRecorder
from jurygraph.models.request import Reply, Request
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import CallsConfig, Message
from tests.models.server import Server, reply_with, run_server
from tests.models.tiny_gguf import write_tiny
from tests.rows import all_rows

ROOT = Path(jurygraph.__file__).parents[1]
SECRET = "sk-canary-0123456789"

listed = FakeListChatModel(responses=["yes"])
"""What `langchain:tests.models.test_factory.listed` names."""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a cache and an environment of its own."""
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JURYGRAPH_API_KEY", raising=False)


def backend(model: str, **calls: Any) -> Backend:
    return open_backend(model, CallsConfig(**calls))


def identity(model: str) -> tuple[str, str | None, str]:
    found = backend(model)
    return found.provider, found.endpoint, found.model


@contextmanager
def gateway(model: str, budget: Budget | None = None, **calls: Any) -> Iterator[Gateway]:
    opened = open_gateway(model, CallsConfig(**calls), budget)
    try:
        yield opened
    finally:
        asyncio.run(opened.close())


def ask(opened: Gateway, asked: Request) -> Reply:
    async def answered() -> Reply:
        try:
            return (await opened.ask(asked)).reply
        finally:
            await opened.close()

    return asyncio.run(answered())


def request(**others: Any) -> Request:
    asked = {"provider": "openai-compatible", "endpoint": "http://judge:8000/v1", "model": "qwen"}
    return Request.model_validate(
        asked | {"messages": (Message(role="user", content="Is it so?"),)} | others
    )


def recording(path: Path, *requests: Request) -> Path:
    recorder = CallRecorder(path, Redactor([]))
    for one in requests:
        recorder.add(one, Reply(text="yes"), None)
    recorder.close()
    return path


# Each form, and who it leads to


def test_the_identity_of_a_server_is_its_url_and_model() -> None:
    found = identity("openai-compatible:http://127.0.0.1:8000/v1/#org/qwen:4b")
    assert found == ("openai-compatible", "http://127.0.0.1:8000/v1", "org/qwen:4b")


@pytest.mark.parametrize(
    "model", ["openai/gpt-5-mini", "ollama/llama3:8b", "together_ai/org/m-7b", "xai/m"]
)
def test_provider_and_model_open_litellm(model: str) -> None:
    assert identity(model) == ("litellm", None, model)


def test_an_unknown_provider_is_refused_with_the_nearest_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class BadRequestError(Exception):
        pass

    def get_llm_provider(model: str) -> None:
        if not model.startswith("rare/"):
            raise BadRequestError

    exceptions = SimpleNamespace(BadRequestError=BadRequestError)
    names = {"provider_list": ["rare"], "custom_provider_map": [{"provider": "mine"}]}
    library = SimpleNamespace(get_llm_provider=get_llm_provider, exceptions=exceptions, **names)
    monkeypatch.setattr("jurygraph.models.backends.litellm.import_litellm", lambda: library)
    for model in ("rare/m", "mine/m"):
        assert identity(model) == ("litellm", None, model)
    with pytest.raises(
        ConfigError,
        match="model: 'opnai' is not a provider that litellm knows; did you mean openai",
    ):
        backend("opnai/gpt-5")
    with pytest.raises(
        ConfigError,
        match="'zzz' is not a provider that litellm knows; write provider/model, such as",
    ):
        backend("zzz/gpt-5")


def test_the_form_of_a_provider_is_configured_or_known() -> None:
    assert backend("groq/llama").capabilities.form == "instructed"
    assert backend("groq/llama", form="native").capabilities.form == "native"
    assert backend("openai/gpt-4o", form="instructed").capabilities == EndpointCapabilities(
        "instructed", logprobs=True, tools=True
    )


def test_a_form_that_a_model_cannot_have_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"calls\.form: .* schema as instructions, so leave the form out"
    ):
        open_gateway("langchain:tests.models.test_factory.listed", CallsConfig(form="native"))


# The key


def authorization(server: Server, **calls: Any) -> str | None:
    with gateway(f"openai-compatible:{server.url}#tiny", cache=False, **calls) as opened:
        ask(opened, request(endpoint=server.url, model="tiny"))
    return server.requests[-1].headers.get("authorization")


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with run_server(lambda body, number: reply_with("yes")) as server:
        assert authorization(server) is None
        monkeypatch.setenv("JURYGRAPH_API_KEY", SECRET)
        assert authorization(server) == f"Bearer {SECRET}"


# What is wrong, and what would be right

WRONG = {
    "": "is not a model; write none, openai-compatible:URL#model, gguf:PATH,",
    "gpt-5-mini": "'gpt-5-mini' is not a model; write provider/name, as openai/gpt-5-mini for one of OpenAI;",
    "opnai-compatible:http://h/v1#m": "is not a model; did you mean openai-compatible. write none",
    "http://127.0.0.1:8000/v1#qwen": "is not a model; write openai-compatible:http://…/v1#NAME, or none,",
    "./judge.gguf": "'./judge.gguf' is not a model; write none, .* gguf:PATH",
    "openai/": "'openai/' is not a model; write none, .* provider/model",
    "openai-compatible:": "is followed by URL#model, such as http://127.0.0.1:8000/v1#qwen",
    "openai-compatible:http://h/v1": "is followed by URL#model, such as http://127.0.0.1:8000/v1#qwen",
    "openai-compatible:h/v1#qwen": "the URL is not a web address; give one such as http://127.0.0.1:8000/v1",
    "gguf:": "cannot be read .*; name a file that can be",
    "gguf:nowhere.gguf": "nowhere.gguf: there is no such file; name a model in the GGUF format",
    "gguf:README.md": "README.md: is no GGUF file, .*; name a model in the GGUF format",
    "replay:nowhere.jsonl": "nowhere.jsonl: there is no such file; ",
    "replay:docs": "docs: is a folder, and a recording is a file; score with `calls: {record: calls.jsonl}`",
    "replay:README.md": "README.md.*line 1.*; ",
}


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(one, marks=pytest.mark.heavy if one.startswith("gguf:") else ())
        for one in WRONG
    ],
)
def test_an_invalid_model_is_refused_in_one_line_with_the_valid_forms(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigError, match=WRONG[model]) as error:
        Jury.from_config({"model": model, "evaluators": ["criteria"]})
    assert "\n" not in str(error.value)
    assert "model" in str(error.value) or "gguf" in str(error.value)


@pytest.mark.parametrize(
    "model",
    [
        f"openai-compatible:http://me:{SECRET}@h/v1#qwen",
        f"openai-compatible:http://{SECRET}@h/v1#qwen",
        f"openai-compatible:http://h/v1?api_key={SECRET}#qwen",
        f"http://me:{SECRET}@h/v1#qwen",
        f"openai-compatble:http://me:{SECRET}@h/v1#qwen",
    ],
)
def test_a_key_in_an_address_is_refused_and_not_repeated(model: str) -> None:
    with pytest.raises(ConfigError) as error:
        backend(model)
    causes: list[BaseException] = [error.value]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    assert SECRET not in " ".join(map(str, causes))


# What it may cost

SERVER = "openai-compatible:http://127.0.0.1:8000/v1#qwen"


@pytest.mark.parametrize(
    "model",
    [
        "langchain:tests.models.test_factory.listed",
        pytest.param("openai/nobody-knows-what-it-costs", marks=pytest.mark.heavy),
    ],
)
def test_a_model_without_a_price_cannot_have_a_cost_limit(model: str) -> None:
    with pytest.raises(ConfigError, match="is not known, so `max_cost`"):
        open_gateway(model, CallsConfig(), Budget(max_cost=1.0))


@pytest.mark.parametrize(
    ("name", "warnings"),
    [
        ("large", []),
        ("lagre", ["calls.prices: has no 'large', which is a judge; did you mean lagre?"]),
        ("x", ["calls.prices: has no 'large', which is a judge; there are small, x"]),
    ],
)
def test_a_model_without_a_price_is_named_where_others_have_one(
    name: str, warnings: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    price = {"input": 1.0, "output": 2.0}
    config = {
        "models": {
            model: f"openai-compatible:http://127.0.0.1:9/v1#{model}"
            for model in ("small", "large")
        },
        "evaluators": [{"use": "criteria", "judges": ["small", "large"]}],
        "calls": {"prices": {"small": price, name: price}},
    }
    Jury.from_config(config).close()
    assert caplog.messages == warnings


@pytest.mark.parametrize("kind", ["replay", pytest.param("gguf", marks=pytest.mark.heavy)])
def test_a_local_model_costs_nothing(kind: str, tmp_path: Path) -> None:
    path = recording(tmp_path / "calls.jsonl", request())
    model = f"replay:{path}" if kind == "replay" else f"gguf:{write_tiny(tmp_path / 'tiny.gguf')}"
    with gateway(model, Budget(max_cost=0.0)) as opened:
        opened.budget.reserve(0.0).settle_cost(0.0)


# What is kept


def test_only_replies_that_cost_something_are_cached(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path = recording(tmp_path / "calls.jsonl", request())
    for model in (f"replay:{path}", "langchain:tests.models.test_factory.listed"):
        with gateway(model):
            assert not cache.exists()
    with gateway(SERVER, cache=False):
        assert not cache.exists()
    with gateway(SERVER):
        assert cache.is_dir()


# What is loaded

HEAVY = {"aiohttp", "litellm", "diskcache", "xllamacpp", "jinja2"}


def loaded_by(*steps: str) -> list[set[str]]:
    """Return the libraries for models that a new interpreter has loaded after each of these steps."""
    script = "".join(f"{step}\nimport sys; print(*sys.modules)\n" for step in steps)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [HEAVY & set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.landing
def test_each_kind_of_model_imports_only_what_it_needs() -> None:
    opening = "from jurygraph.models.factory import open_backend as o; from jurygraph.schema import CallsConfig"
    loaded = loaded_by(
        f"{opening}; o('openai/gpt-5-mini', CallsConfig())", f"o({SERVER!r}, CallsConfig())"
    )
    assert loaded == [{"aiohttp", "diskcache"}, {"aiohttp", "diskcache"}]


# Models inside installed packages

RUN = "raise AssertionError('its code was run')\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two packages on the path: one with a model file, one with a zipped model."""
    for name in ("one_model", "zipped_model", "no_model"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(RUN)
    (tmp_path / "one_model" / "tiny.gguf").write_bytes(b"GGUF")
    with zipfile.ZipFile(tmp_path / "zipped_model" / "model.zip", "w") as archive:
        archive.writestr("modules.json", "[]")
        archive.writestr("1_Pooling/config.json", "{}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache" / "replies"))
    return tmp_path


def test_a_file_is_found_without_running_the_package(packages: Path) -> None:
    assert find_package_file("one_model/tiny.gguf") == packages / "one_model" / "tiny.gguf"
    assert "one_model" not in sys.modules


@pytest.mark.usefixtures("packages")
@all_rows(
    ("named", "problem"),
    [
        ("one_model/tiny.guf", "package 'one_model' has no such file; did you mean tiny.gguf?"),
        ("one_model", "package 'one_model' has no such file; it has __init__.py, tiny.gguf"),
        (
            "absent_model/tiny.gguf",
            "no package is imported as 'absent_model'; install it, and write its import name",
        ),
        (
            "one-model/tiny.gguf",
            "no package is imported as 'one-model'; install it, and write its import name",
        ),
        ("json/__init__.py/x", "package 'json' has no such file"),
    ],
)
def test_a_file_that_is_not_there_is_refused(named: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        find_package_file(named)
    assert problem in str(raised.value)


def test_a_zipped_model_is_unpacked_once(packages: Path) -> None:
    folder = find_model_folder("zipped_model")
    assert (folder.parent, folder.name[:13]) == (packages / "cache" / "models", "zipped_model-")
    assert sorted(path.name for path in folder.rglob("*.json")) == ["config.json", "modules.json"]
    before = folder.stat().st_mtime_ns
    assert find_model_folder("zipped_model") == folder
    assert folder.stat().st_mtime_ns == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], (
        "nothing half unpacked is left"
    )


def test_a_package_may_hold_its_model_as_it_is(packages: Path) -> None:
    (packages / "no_model" / "modules.json").write_text("[]")
    assert find_model_folder("no_model") == packages / "no_model"


def test_a_package_without_a_model_and_a_broken_zip_are_refused(packages: Path) -> None:
    with pytest.raises(ConfigError, match="holds no model: it has no modules"):
        open_embedder("sentence-transformers:package:no_model")
    (packages / "zipped_model" / "model.zip").write_bytes(b"PK, cut short")
    with pytest.raises(
        ConfigError, match=r"model.zip: cannot be unpacked .*; install its package again"
    ):
        find_model_folder("zipped_model")
    assert list((packages / "cache" / "models").iterdir()) == []
