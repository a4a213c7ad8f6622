"""The reward server: latency with a heavy-tailed judge, memory, overload, and rule-based rewards over HTTP.

`python -m benchmarks.serving 60 50000` measures for 60 seconds, and over 50,000 requests. The clients are a process of
their own; the judge is a coroutine of the server's.
"""

import asyncio
import gc
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, TypeVar

from aiohttp import ClientSession, TCPConnector

from benchmarks.figure import Figure, at_least, at_most
from benchmarks.tail import QUICK, REPLIES_A_SLOW_ONE, SLOW
from jurygraph import Jury, Task
from jurygraph.concurrency import new_event_loop
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.request import Reply, Request
from jurygraph.runs.workflows.plans_file import PlannedTask
from jurygraph.server.app import RewardServer
from jurygraph.server.reward_service import RewardService
from jurygraph.server.settings import ServerSettings
from jurygraph.web_access import serve_app

T = TypeVar("T")
CLIENTS = 32
SECONDS, REQUESTS = 10.0, 5_000
RULE_REQUESTS = 1_500
CRITERION = {"id": "kind", "text": "It is kind.", "weight": 1.0}
TASK = {"id": "task", "query": "Invite a guest.", "rubric": {"criteria": [CRITERION]}}
JUDGED = {"evaluators": ["criteria"], "calls": {"concurrency": 256, "cache": False}}
RULES = {"evaluators": ["maths.accuracy", "maths.format"], "reward": {"accuracy": 1, "format": 0.5}}
SUM = {"id": "sum", "query": "What is 2 + 2?", "reference": "4"}


class PlannedSum:
    """One planned task, as `--tasks` has it."""

    ids = ("sum",)

    def __init__(self, jury: Jury) -> None:
        task = Task.model_validate(SUM)
        self._planned = PlannedTask(task=task, plan=jury.prepare(task))

    def get(self, task_id: str) -> PlannedTask | None:
        """Return the task."""
        return self._planned if task_id == "sum" else None


class HeavyTailedReplies(Backend):
    """Gives one reply to every request: after .1 s, and to every fiftieth after 3 s."""

    provider, model = "benchmark", "heavy-tailed"
    capabilities = EndpointCapabilities("native")
    costs_nothing = True

    def __init__(self) -> None:
        answer = {"reason": "so it is", "quotes": ["Come to us"], "met": True, "probability": 0.9}
        self._reply = Reply(text=json.dumps({"criterion_1": answer}), finish="stop")
        self._received = 0

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the reply."""
        self._received += 1
        await asyncio.sleep(SLOW if self._received % REPLIES_A_SLOW_ONE == 0 else QUICK)
        return self._reply

    async def close(self) -> None:
        """Close nothing."""


@asynccontextmanager
async def serving(config: Any, plans: Any = None, **settings: Any) -> AsyncIterator[str]:
    """Yield the address of a server."""
    async with Jury.from_config(config) as jury:
        tasks = None if plans is None else await asyncio.to_thread(plans, jury)
        service = RewardService(jury, ServerSettings(**settings), tasks)
        hosts: set[str] = set()
        server = RewardServer(service, allowed_hosts=hosts, token=None)
        listening = serve_app(server.app, hosts, "127.0.0.1", 0, handler_cancellation=True)
        async with listening as port:
            yield f"http://127.0.0.1:{port}/v1/score"
            await server.drain_requests()


async def _run_clients(url: str, load: str, amount: float, clients: int) -> list[float]:
    """Return the latencies of clients, in a process of their own, that send a load."""
    arguments = ["-m", "benchmarks.serving", "clients", url, load, str(amount), str(clients)]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)
    printed, _ = await process.communicate()
    assert process.returncode == 0
    latencies: list[float] = json.loads(printed)
    return latencies


async def _send_load(url: str, load: str, amount: float, clients: int) -> list[float]:
    """Send bodies from some clients at once, each its next when it has its reply; return the latencies."""
    bodies = _letters(amount) if load == "letters" else _sums(int(amount))
    latencies: list[float] = []
    async with ClientSession(connector=TCPConnector(limit=0)) as session:

        async def ask() -> None:
            for body in bodies:
                start = perf_counter()
                async with session.post(url, json=body) as reply:
                    await reply.read()
                if reply.status == 429:
                    await asyncio.sleep(QUICK / 5)
                    continue
                assert reply.status == 200, reply.status
                latencies.append(perf_counter() - start)

        await asyncio.gather(*(ask() for _ in range(clients)))
    return latencies


def _letters(seconds: float) -> Iterator[Any]:
    end = perf_counter() + seconds
    number = 0
    while perf_counter() < end:
        number += 1
        yield {"task": TASK, "responses": [f"Come to us, dear guest {number}."]}


def _sums(count: int) -> Iterator[Any]:
    for number in range(count):
        yield {"task_id": "sum", "responses": [f"So it is \\boxed{{{number}}}."]}


async def _measure_latency(seconds: float) -> list[float]:
    async with serving({**JUDGED, "model": HeavyTailedReplies()}) as url:
        await _run_clients(url, "letters", 1.0, CLIENTS)
        return await _run_clients(url, "letters", seconds, CLIENTS)


async def _measure_memory(requests: int) -> float:
    """Return the resident memory after all requests, as a multiple of that after a fifth of them."""
    async with serving(RULES, PlannedSum) as url:
        await _run_clients(url, "sums", requests / 5, CLIENTS)
        before = _resident()
        await _run_clients(url, "sums", requests, CLIENTS)
        return _resident() / before


def _resident() -> float:
    gc.collect()
    pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
    return float(pages)


async def _measure_refusals() -> float:
    """Return the median of the seconds after which a request beyond the limit is refused."""
    config = {**JUDGED, "model": HeavyTailedReplies()}
    async with serving(config, max_open_requests=CLIENTS) as url:
        load = asyncio.create_task(_run_clients(url, "letters", SECONDS, 4 * CLIENTS))
        seconds: list[float] = []
        async with ClientSession() as session:
            while not load.done():
                start = perf_counter()
                async with session.post(url, json={"task": TASK, "responses": ["a"]}) as reply:
                    if reply.status == 429:
                        seconds.append(perf_counter() - start)
                await asyncio.sleep(QUICK / 10)
        return median(seconds)


async def _measure_rate(clients: int, requests: int, window: float) -> float:
    """Return rule-based rewards a second."""
    async with serving(RULES, PlannedSum, window=window) as url:
        await _run_clients(url, "sums", 200, clients)
        latencies = await _run_clients(url, "sums", requests, clients)
        return clients * requests / sum(latencies)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop that `jurygraph serve` has."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


def measure(seconds: float = SECONDS, requests: int = REQUESTS) -> Iterator[Figure]:
    """Yield the figures; times are of the clock, and depend on the machine."""
    latencies = _run(_measure_latency(seconds))
    share = median(latencies) / QUICK
    yield at_most("median of a request, ordinary replies of the judge", share, "replies", 1.5)
    yield Figure("... requests", len(latencies), "")
    yield Figure("... 95th percentile", quantiles(latencies, n=20)[-1], "s")
    memory = _run(_measure_memory(requests))
    yield at_most(f"memory after {requests} requests, after a fifth", memory, "times", 1.05)
    refused = _run(_measure_refusals())
    yield at_most("refusal of a request too many", 1000 * refused, "ms", 50.0)
    one_by_one = _run(_measure_rate(1, RULE_REQUESTS // 5, 0.0))
    together = _run(_measure_rate(CLIENTS, RULE_REQUESTS, 0.01))
    yield Figure("rule-based rewards, one request after the other", one_by_one, "a second")
    yield Figure(f"... {CLIENTS} clients at once", together, "a second")
    yield at_least("... ratio", together / one_by_one, "times", 3.0)


def main(arguments: Sequence[str]) -> None:
    """Print the figures of a longer measurement, or send the load of one."""
    from benchmarks.__main__ import print_figures

    if not arguments:
        print_figures(measure())
    elif arguments[0] == "clients":
        _, url, load, amount, clients = arguments
        latencies = _run(_send_load(url, load, float(amount), int(clients)))
        print(json.dumps(latencies))
    else:
        print_figures(measure(float(arguments[0]), int(arguments[1])))


if __name__ == "__main__":
    main(sys.argv[1:])
