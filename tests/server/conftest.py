"""A reward server in this process, a judge that counts and can be held, and time that passes at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import TCPConnector, web
from aiohttp.test_utils import TestClient, TestServer

import jurygraph as jg
from jurygraph.models.request import Reply, Request
from jurygraph.server.app import RewardServer
from jurygraph.server.reward_service import RewardService
from jurygraph.server.settings import ServerSettings
from jurygraph.testing import ScriptedJudge

Client = TestClient[web.Request, web.Application]
TASK: Any = {
    "id": "letter",
    "query": "Write to Ann.",
    "rubric": {"criteria": [{"id": "kind", "text": "It is kind.", "weight": 1.0}]},
}


class HeldJudge(ScriptedJudge):
    """Gives a text of `n words` n hundredths, and no readable answer to `nonsense`; answers once it is released."""

    def __init__(self, is_held: bool = False) -> None:
        super().__init__({"": self._answer_text})
        self.released = asyncio.Event()
        self.asked = asyncio.Event()
        if not is_held:
            self.released.set()

    @staticmethod
    def _answer_text(text: str) -> Any:
        return {"met": None} if "nonsense" in text else int(text.split()[0]) / 100

    async def complete(self, request: Request, timeout: float) -> Reply:
        self.asked.set()
        await self.released.wait()
        return await super().complete(request, timeout)


class Timers:
    """The deadlines of the running loop, whose time a test lets pass."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        real_time = loop.time
        self._passed = 0.0
        loop.time = lambda: real_time() + self._passed  # type: ignore[method-assign]

    def pass_time(self, seconds: float) -> None:
        self._passed += seconds


class Served:
    """A server with its client, its judge, its jury and its timers."""

    def __init__(self, judge: HeldJudge, **config: Any) -> None:
        evaluators = config.pop("evaluators", ["criteria"])
        self.judge = judge
        self.timers = Timers()
        calls = {"cache": False, "attempts": 1}
        settings = {"evaluators": evaluators, "model": judge, "calls": calls, **config}
        self.jury = jg.Jury.from_config(settings)
        self.client: Client
        self.server: RewardServer

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        """Return the status and the content of a reply."""
        options = {"data": body} if isinstance(body, str | bytes) else {"json": body}
        async with self.client.post(path, headers=headers, **options) as reply:
            return reply.status, await reply.json()

    async def score(self, *texts: str, **fields: Any) -> tuple[int, Any]:
        """Score texts for the task."""
        return await self.post("/v1/score", {"task": TASK, "responses": texts, **fields})

    async def open_requests(self, count: int) -> None:
        """Wait until so many requests are in work."""
        while self.server._open_requests < count:
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(
    judge: HeldJudge | None = None,
    *,
    token: str | None = None,
    tasks: Any = None,
    config: Any = None,
    **settings: Any,
) -> AsyncIterator[Served]:
    """Serve on loopback; `config` are other settings of the jury, the others those of the server."""
    served = Served(judge or HeldJudge(), **(config or {}))
    async with served.jury:
        service = RewardService(served.jury, ServerSettings(**settings), tasks)
        hosts: set[str] = set()
        served.server = RewardServer(service, allowed_hosts=hosts, token=token)
        server = TestServer(served.server.app)
        async with TestClient(server, connector=TCPConnector(limit=0)) as client:
            hosts.add(f"127.0.0.1:{client.port}")
            served.client = client
            yield served
            served.judge.released.set()
            await served.server.drain_requests()
