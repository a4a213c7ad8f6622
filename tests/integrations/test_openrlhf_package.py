"""OpenRLHF's own client calls the function of a file: a failed reward is no number, and ends its run.

Needs the files of openrlhf alone, since the package needs a GPU: `pip install --no-deps openrlhf`, then `-m heavy`.
"""

import asyncio
import importlib.util
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jurygraph.integrations.lazy_jury import find_shared_jury

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]
FILE = """
from functools import partial
from jurygraph.integrations import openrlhf

reward_func = partial(openrlhf.reward_func, config={config!r})
"""


def load_client(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module of the client, without the package's other needs, as its own tests load it."""
    found = importlib.util.find_spec("openrlhf")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs the files of openrlhf: pip install --no-deps openrlhf")
    logs = SimpleNamespace(init_logger=logging.getLogger)
    monkeypatch.setitem(sys.modules, "openrlhf.utils.logging_utils", logs)  # type: ignore[arg-type]
    path = Path(found.submodule_search_locations[0]) / "utils" / "agent.py"
    spec = importlib.util.spec_from_file_location("openrlhf_client", path)
    assert spec is not None
    assert spec.loader is not None
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    return client


class Words:
    """A tokenizer whose tokens are characters."""

    def __call__(self, text: str, **settings: Any) -> Any:
        ids = SimpleNamespace(tolist=lambda: [ord(letter) for letter in text])
        return {"input_ids": [ids]}

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        return "".join(map(chr, tokens))


class Engine:
    def __init__(self, text: str) -> None:
        self.text = text

    async def generate(self, *inputs: Any, **settings: Any) -> Any:
        tokens = [ord(letter) for letter in self.text]
        return SimpleNamespace(
            outputs=[SimpleNamespace(token_ids=tokens, finish_reason="stop", logprobs=None)]
        )


def test_the_client_takes_rewards_and_gets_none_for_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = load_client(monkeypatch)
    config = tmp_path / "jury.yaml"
    config.write_text("evaluators: [tests.integrations.trainers.graded]\n", encoding="utf-8")
    file = tmp_path / "reward.py"
    file.write_text(FILE.format(config=str(config)), encoding="utf-8")
    executor = client.SingleTurnAgentExecutor(str(file))
    sampling = SimpleNamespace(max_tokens=64, logprobs=None)

    async def run(text: str) -> Any:
        return await executor.execute("2 + 2? ", "4", sampling, 1024, Words(), Engine(text))

    judged = asyncio.run(run("it is 0.5"))
    assert (judged["reward"], judged["scores"]) == ([0.5], [0.5])
    assert judged["extra_logs"] == {"jury_graded": [0.5], "jury_degraded": [0.0]}
    assert asyncio.run(run("x"))["reward"] is None
    find_shared_jury(str(config)).close()
