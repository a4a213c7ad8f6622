"""Runs to look at, and a browser without a window: one that only asks for pages."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

import jurygraph as jg
from jurygraph.runs.run import Run
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.pages import DisplayedRun
from jurygraph.viewer.server import make_app
from tests.runs.sample_runs import FULL_CONFIG, make_tasks, score, write_tasks

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)><b hx-get=/a/>\u202eevil\u200b{{ 7 * 7 }}"


def polite(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
    """A quarter for every please, with a quotation of the first, and what the response says as the reason."""
    start = response.text.find("please")
    evidence = [] if start < 0 else [jg.Evidence(quote="please", start=start, end=start + 6)]
    score = min(1.0, 0.25 * response.text.count("please"))
    return jg.Verdict(score=score, reason=f"counted in {response.text}", evidence=evidence)


def brief(task: jg.TaskView, response: jg.Response) -> float:
    if "quixotic" in response.text:
        raise RuntimeError("as the response wished")
    return max(0.0, 1.0 - len(response.text) / 200)


SETTINGS: Any = {"evaluators": [polite, brief], "reward": {"polite": 0.7, "brief": 0.3}}
LETTERS = {
    "ann": ("please come", "come", "please please please please"),
    "bob": (f"please {HOSTILE}", "quixotic"),
}


def record(folder: Path, tasks: Mapping[str, tuple[str, ...]] = LETTERS) -> None:
    """Score letters into a run, which stays open; agents are called by their place."""
    with jg.Jury(**SETTINGS) as jury, jury.record(folder):
        for name, texts in tasks.items():
            responses = [
                jg.Response(id=f"{name}/{number}", agent=f"agent {number}", text=text)
                for number, text in enumerate(texts)
            ]
            jury.score(jg.Task(id=name, query=f"Write to {name}. {HOSTILE}"), responses)


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    record(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def rubrics(tmp_path: Path) -> Path:
    """A run with rubrics that have an edge, several samples, pairs and a gate."""
    tasks = write_tasks(tmp_path, make_tasks())
    gates = [{"kind": "format", "component": "place", "below": 0.3}]
    models = {"mini": "openai/gpt-5-mini"}
    score(tmp_path / "rubrics", tasks, {**FULL_CONFIG, "gates": gates, "models": models})
    return tmp_path / "rubrics"


class Browser:
    """Asks a server for pages of runs, as a browser on the same machine does."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token
        self.status = 0
        self.headers: Mapping[str, str] = {}

    def open(self, path: str, *folders: Path, **headers: str) -> str:
        """Return the page at a path of the runs in these folders, and note its status and headers."""
        (page,) = asyncio.run(self._open([path], folders, headers))
        return page

    def open_all(self, paths: Sequence[str], *folders: Path) -> list[str]:
        """Return several pages of one server; the status noted is that of the last."""
        return asyncio.run(self._open(paths, folders, {}))

    async def _open(
        self, paths: Sequence[str], folders: tuple[Path, ...], headers: Mapping[str, str]
    ) -> list[str]:
        runs = {
            letter: DisplayedRun(run, RunIndex(run))
            for letter, run in zip("ab", map(Run.open, folders), strict=False)
        }
        if "b" in runs:
            runs["a"].other = runs["b"]
        hosts: set[str] = set()
        app = make_app(runs, allowed_hosts=hosts, token=self.token)
        try:
            async with TestClient(TestServer(app)) as client:
                hosts.add(f"127.0.0.1:{client.port}")
                pages = []
                for path in paths:
                    answer = await client.get(path, headers=headers, allow_redirects=False)
                    self.status = answer.status
                    self.headers = answer.headers
                    pages.append(await answer.text())
                return pages
        finally:
            for opened in runs.values():
                opened.index.close()
                opened.run.close()


@pytest.fixture
def browser() -> Browser:
    return Browser()
