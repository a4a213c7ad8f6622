"""A judge with a heavy tail: how many of the groups without a slow reply come while slow ones are still open."""

import asyncio
import re
from collections.abc import Iterator
from itertools import pairwise
from time import perf_counter
from typing import Any

from benchmarks.figure import Figure, at_least
from jurygraph import Group, Jury, Task
from jurygraph.models.request import Reply, Request
from jurygraph.schema import Criterion, Rubric
from jurygraph.testing import ScriptedJudge

GROUPS, IN_FLIGHT = 128, 64
QUICK, SLOW = 0.1, 3.0  # seconds
REPLIES_A_SLOW_ONE = 50
IN_TIME = 2.0  # seconds
WAVES = ("first", "second", "third")
_KIND = Criterion(id="kind", text="It is kind.", weight=1.0)
_TASK = Task(id="task", query="Invite a guest.", rubric=Rubric(criteria=(_KIND,)))


class HeavyTailedJudge(ScriptedJudge):
    """Replies after .1 s, and to every fiftieth request after 3 s; it notes which responses those are about."""

    def __init__(self) -> None:
        super().__init__({"": True})
        self.delayed: set[str] = set()
        self._received = 0

    async def complete(self, request: Request, timeout: float) -> Reply:
        self._received += 1
        is_slow = self._received % REPLIES_A_SLOW_ONE == 0
        if is_slow:
            prompt = "".join(message.content for message in request.messages)
            self.delayed.update(re.findall(r"Dear guest (\d+)", prompt))
        await asyncio.sleep(SLOW if is_slow else QUICK)
        return await super().complete(request, timeout)


def measure() -> Iterator[Figure]:
    """The share is in percent; a first run, whose figures are dropped, warms the process up."""
    for waves in (1, 1, len(WAVES)):
        share, seconds = asyncio.run(_score(waves))
        yield at_least(f"{waves} waves: not delayed and out within {IN_TIME:g} s", share, "%", 98.0)
        yield Figure("... the last of all", seconds, "s")


async def _score(waves: int) -> tuple[float, float]:
    """Return the percentage of the groups without a slow reply that came in time, and the seconds until the last."""
    judge = HeavyTailedJudge()
    groups = [
        Group(_TASK.model_copy(update={"id": str(number)}), [f"Dear guest {number}, come to us."])  # type: ignore[list-item]
        for number in range(GROUPS)
    ]
    finished: dict[str, float] = {}
    with Jury.from_config(_config(judge, waves)) as jury:
        start = perf_counter()
        async for batch in jury.ascore_as_finished(groups):
            for _, group, outcome in batch:
                assert isinstance(outcome, list), outcome
                assert outcome[0].reward.value == 1.0, outcome[0].reward
                finished[group.task.id] = perf_counter() - start
    quick = [seconds for name, seconds in finished.items() if name not in judge.delayed]
    assert len(finished) == GROUPS
    in_time = sum(seconds <= IN_TIME for seconds in quick)
    return 100 * in_time / len(quick), max(finished.values())


def _config(judge: ScriptedJudge, waves: int) -> dict[str, Any]:
    """Return a config in which each wave is gated on the one before it."""
    names = WAVES[:waves]
    evaluators: list[dict[str, Any]] = [{"use": "criteria", "name": name} for name in names]
    for earlier, later in pairwise(evaluators):
        later["when"] = {"question": f"{earlier['name']}@kind", "threshold": 0.5}
    return {
        "model": judge,
        "evaluators": evaluators,
        "reward": {"rubric": 1.0},
        "rubric": {"if_skipped": "left-out"},
        "calls": {"concurrency": IN_FLIGHT, "cache": False},
    }
