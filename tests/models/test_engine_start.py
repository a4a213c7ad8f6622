"""An engine is never unloaded before its loop began, which would wait for ever; the library is a fake."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from jurygraph.models.backends import gguf
from tests.models.engine import engine_over_http


def test_an_engine_answers_before_it_may_be_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    had_begun: list[bool] = []

    class Server:
        listening_address, has_begun = "http://here", False

        def handle_metrics(self) -> None:
            self.has_begun = True

        def __del__(self) -> None:
            had_begun.append(self.has_begun)

    parameters = SimpleNamespace(**{part: SimpleNamespace() for part in ("model", "cpuparams", "cpuparams_batch")})
    library = SimpleNamespace(CommonParams=lambda: parameters, Server=lambda _: Server())
    monkeypatch.setattr(gguf, "library", lambda: library)
    gguf.start_server(Path("tiny.gguf"), "too small")
    with engine_over_http(Path("tiny.gguf")) as (url, _):
        assert url == "http://here/v1"
    assert had_begun == [True, True]
