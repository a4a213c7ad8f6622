"""The calls of a batch's groups are made together, and each group gets what it gets alone."""

import asyncio
import gc
import threading
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.graphs import calls
from jurygraph.graphs.answers import to_recorded_verdicts
from jurygraph.graphs.time_limits import CallTimeLimits, UserCallThreads
from tests.graphs.scripted import Half, Measure

HERE = __name__
SEEN: ContextVar[int] = ContextVar("SEEN", default=0)
SECRET = "sk-canary-0123456789abcdef"


def look() -> jg.Verdict:
    """Count the calls in the current context so far."""
    SEEN.set(SEEN.get() + 1)
    return jg.Verdict(score=1.0, native=SEEN.get())


class Inline(jg.Evaluator):
    runs_inline = True

    def answer(self, inputs: jg.EvaluatorInput) -> Any:
        return look()


class InThread(Inline):
    runs_inline = False


class InThreadThenAwaited(InThread):
    def answer(self, inputs: jg.EvaluatorInput) -> Any:
        async def later() -> jg.Verdict:
            await asyncio.sleep(0)
            return look()

        return later()


class Awaited(jg.Evaluator):
    """What a response says: an exception, a task that cancels itself, or a look."""

    async def answer(self, inputs: jg.EvaluatorInput) -> Any:
        await asyncio.sleep(0)
        if inputs.response.text == "raise":
            raise SystemExit(3)
        if inputs.response.text == "cancel":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.Event().wait()
        return look()


class Batched(Awaited):
    batched = True

    async def answer_all(self, batch: Sequence[jg.EvaluatorInput]) -> list[Any]:
        return [await self.answer(inputs) for inputs in batch]


class ReadsHalf(Inline):
    needs = ("half",)


KINDS = ["Inline", "InThread", "InThreadThenAwaited", "Awaited", "Batched", "ReadsHalf"]
CONFIG = {
    "evaluators": [{"use": f"{HERE}:{kind}", "name": kind.lower()} for kind in KINDS],
    "derivers": ["tests.graphs.scripted:Measure", "tests.graphs.scripted:Half"],
    "reward": {kind.lower(): 1.0 for kind in KINDS},
}
assert {Measure.gives, Half.gives} == {"measure", "half"}


def make_group(name: str, *texts: str) -> jg.Group:
    responses = [
        jg.Response(id=f"{name}{number}", text=text, data={"measure": 0.5})
        for number, text in enumerate(texts)
    ]
    return jg.Group(jg.Task(id=name, query="?"), responses)


GROUPS = [
    make_group("a", "one", "two"),
    make_group("b", "raise"),
    make_group("c", "cancel", "x"),
    make_group("d", "y"),
]


def test_groups_of_a_batch_get_the_traces_that_they_get_alone() -> None:
    with jg.Jury.from_config(CONFIG) as jury:
        together = list(jury.score_many(GROUPS))
        alone = [jury.score(group.task, group.responses) for group in GROUPS]
    digests = [
        [[trace.digest for trace in traces] for traces in each] for each in (together, alone)
    ]
    assert digests[0] == digests[1]
    kinds = [
        [verdict.failure and verdict.failure.kind for trace in each for verdict in trace.verdicts]
        for each in alone
    ]
    assert [sorted({kind for kind in each if kind}) for each in kinds] == [
        [],
        ["SystemExit"],
        ["CancelledError"],
        [],
    ]


def test_calls_share_the_context_of_their_evaluator_and_group_alone() -> None:
    with jg.Jury.from_config(CONFIG) as jury:
        (one, two), *_, (other,) = jury.score_many(GROUPS)
    seen = {
        kind: [
            verdict.native
            for trace in (one, two, other)
            for verdict in trace.verdicts
            if verdict.question == kind
        ]
        for kind in map(str.lower, KINDS)
    }
    shared = {"inline", "inthread", "batched", "readshalf"}
    assert {kind: sorted(map(int, natives)) for kind, natives in seen.items()} == {
        kind: [1, 1, 2] if kind in shared else [1, 1, 1] for kind in seen
    }


def test_an_error_in_one_group_leaves_the_others_of_its_batch_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail_for_c(judgement: Any, *given: Any) -> Any:
        if judgement.responses[0].id == "c0":
            raise RuntimeError("a bug")
        return to_recorded_verdicts(judgement, *given)

    monkeypatch.setattr(calls, "to_recorded_verdicts", fail_for_c)
    done = []
    with jg.Jury.from_config(CONFIG) as jury, pytest.raises(RuntimeError, match="a bug"):
        done += (traces for traces in jury.score_many([GROUPS[0], GROUPS[1], GROUPS[3], GROUPS[2]]))
    assert [traces[0].task_id for traces in done] == ["a", "b", "d"]


def test_a_batch_that_is_cancelled_ends_all_its_calls() -> None:
    async def scene() -> None:
        with jg.Jury.from_config({"evaluators": [f"{HERE}:Waits"]}) as jury:
            async with asyncio.TaskGroup() as tasks:
                scoring = tasks.create_task(score_all(jury))
                await asyncio.to_thread(ALL_BEGUN.wait)
                scoring.cancel()

    ENDED.clear()
    asyncio.run(scene())
    assert set(ENDED) == {response.id for group in GROUPS for response in group.responses}


async def score_all(jury: jg.Jury) -> None:
    _ = [traces async for traces in jury.ascore_many(GROUPS)]


BEGUN: list[str] = []
ALL_BEGUN = threading.Event()
ENDED: list[str] = []


class Waits(jg.Evaluator):
    async def answer(self, inputs: jg.EvaluatorInput) -> float:
        BEGUN.append(inputs.response.id)
        if len(BEGUN) == sum(len(group.responses) for group in GROUPS):
            ALL_BEGUN.set()
        try:
            await asyncio.Event().wait()
        finally:
            ENDED.append(inputs.response.id)
        return 1.0


def test_a_call_that_is_cancelled_before_it_begins_leaves_no_warning() -> None:
    """Python warns of a coroutine that nobody awaits, when it collects it."""

    async def answer(each: Any) -> float:
        return 1.0

    async def cancel_at_once() -> None:
        limits = CallTimeLimits("x", None, UserCallThreads())
        started = calls.UserCalls(answer, [()], limits)
        started.start()
        for task in started.tasks:
            task.cancel()
        await asyncio.gather(*started.tasks, return_exceptions=True)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(cancel_at_once())
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
