"""An engine is never unloaded before its loop began, which would wait for ever; the library is a fake."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from jurygraph.models.backends import gguf
from tests.models.engine import engine_over_http


def use_over_http() -> None:
    with engine_over_http(Path("tiny.gguf")) as (url, key):
        assert (url, bool(key)) == ("http://here/v1", True)


@pytest.mark.parametrize("start", [lambda: gguf.start_server(Path("tiny.gguf"), "too small"), use_over_http])
def test_an_engine_answers_before_it_may_be_unloaded(
    monkeypatch: pytest.MonkeyPatch, start: Callable[[], object]
) -> None:
    had_begun: list[bool] = []

    class Server:
        listening_address = "http://here"

        def __init__(self, parameters: object) -> None:
            self.has_begun = False

        def handle_metrics(self) -> None:
            self.has_begun = True

        def __del__(self) -> None:
            had_begun.append(self.has_begun)

    parameters = SimpleNamespace(**{part: SimpleNamespace() for part in ("model", "cpuparams", "cpuparams_batch")})
    monkeypatch.setattr(gguf, "library", lambda: SimpleNamespace(CommonParams=lambda: parameters, Server=Server))
    start()
    assert had_begun == [True]
