"""Opening embedders and rerankers by the name in an evaluator's params."""

from collections.abc import Callable
from typing import Any

import pytest

from jurygraph.errors import ConfigError
from jurygraph.models import embedding
from jurygraph.models.embedding import open_embedder, open_reranker

both = pytest.mark.parametrize("opened", [open_embedder, open_reranker])


@both
@pytest.mark.parametrize("stated", ["", "minilm", "none", "litellm:openai/tiny", "replay:calls", "http://key@host/v1"])
def test_an_unknown_name_is_refused_with_the_valid_ones(opened: Callable[[str], Any], stated: str) -> None:
    with pytest.raises(ConfigError, match="sentence-transformers:NAME_OR_FOLDER, openai-comp") as caught:
        opened(stated)
    assert "key@" not in str(caught.value)


@both
@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("openai-compatible:http://127.0.0.1:8000/v1", "followed by URL#model"),
        ("openai-compatible:#tiny", "followed by URL#model"),
        ("openai-compatible:nonsense#tiny", "not a web address"),
        ("openai-compatible:http://me:sesame@host/v1#tiny", "a user, a password or a query"),
    ],
)
def test_an_incomplete_model_name_is_refused(opened: Callable[[str], Any], stated: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        opened(stated)
    assert "sesame" not in str(caught.value)


@both
@pytest.mark.parametrize(
    "stated",
    [
        "sk-sesame-0123456789abcdef",
        "sesame:key",
        "sentence-transformers:https://user:sesame@host/x",
        "gguf:https://user:sesame@host/x.gguf",
        "sesame" * 1_000,
        "sentence-transformers:" + "sesame" * 1_000,
        "sentence-transformers:" + "sesame" * 100,
    ],
)
def test_a_possible_key_or_overlong_name_is_not_repeated(opened: Callable[[str], Any], stated: str) -> None:
    pytest.importorskip("safetensors", reason="the extra `embeddings` is not installed")
    with pytest.raises(ConfigError) as caught:
        opened(stated)
    assert "sesame" not in str(caught.value)


@both
def test_the_version_names_the_model_and_its_library_or_server(opened: Callable[[str], Any]) -> None:
    assert opened("openai-compatible:http://host/v1/#tiny").version == "openai-compatible tiny at http://host/v1"


@both
def test_without_the_extra_the_error_says_how_to_install_it(
    opened: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise embedding.PackageNotFoundError(name)

    monkeypatch.setattr(embedding, "version", missing)
    with pytest.raises(ConfigError, match=r"pip install 'jurygraph\[embeddings\]'"):
        opened("sentence-transformers:all-MiniLM-L6-v2")
