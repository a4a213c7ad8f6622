"""A run of the score graph takes turns: a group leaves when it is complete, whatever the others wait for."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError
from jurygraph.graphs import prepare_graph, score_graph
from jurygraph.graphs.active_groups import ActiveGroups
from jurygraph.graphs.context import TaskContexts
from jurygraph.graphs.groups import make_planned_group
from jurygraph.graphs.state import PrepareState, ScoreState, TaskPlanning
from tests.graphs.scripted import jury
from tests.virtual_time import run

HERE = __name__
WAVES = ("first", "second", "third")
HELD = "held"
"""The text of a response about which the first question is not answered until the test releases it."""


class Judge(jg.Evaluator):
    bounds_its_time = True  # else its time limit is the next event of a loop that skips time
    released = asyncio.Event()

    async def answer(self, inputs: jg.EvaluatorInput) -> float:
        if inputs.response.text == HELD and inputs.question.id == WAVES[0]:
            await Judge.released.wait()
        return 1.0


class Inline(jg.Evaluator):
    runs_inline = True

    def answer(self, inputs: jg.EvaluatorInput) -> float:
        return 1.0


class InThread(Inline):
    runs_inline = False


@pytest.fixture(params=[1, len(WAVES)], ids=["one wave", "three waves"])
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[jg.Jury]:
    """A jury whose waves are each gated on the one before."""
    monkeypatch.setattr(Judge, "released", asyncio.Event())
    names = WAVES[: request.param]
    evaluators: list[dict[str, Any]] = [{"use": f"{HERE}:Judge", "name": name} for name in names]
    for earlier, later in pairwise(evaluators):
        later["when"] = {"question": earlier["name"], "threshold": 0.5}
    components = {
        name: {"inputs": {name: {"verdicts_of": name, "if_skipped": "zero"}}} for name in names[1:]
    }
    reward = dict.fromkeys(names, 1.0)
    with jury(*evaluators, components=components, reward=reward) as opened:
        yield opened


def groups(*texts: str) -> list[jg.Group]:
    return [
        jg.Group(jg.Task(id=f"t{number}", query="?"), [text])  # type: ignore[list-item]
        for number, text in enumerate(texts)
    ]


def test_a_group_is_out_while_the_reply_about_another_is_open(made: jg.Jury) -> None:
    """In a loop that fails where everybody waits: a group that waited for the held one would wait for ever."""

    async def scene() -> list[str]:
        names: list[str] = []
        async with aclosing(made.ascore_as_finished(groups(HELD, "x", "y"))) as results:
            async for finished in results:
                names += [group.task.id for _, group, _ in finished]
                if len(names) == 2:
                    Judge.released.set()
        return names

    assert run(scene()) == ["t1", "t2", "t0"]


def test_groups_come_in_while_a_reply_is_open_and_room_is_left(
    made: jg.Jury, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurygraph.jury.MAX_RESPONSES_WITHOUT_MODEL", 10)

    async def scene() -> list[str]:
        names: list[str] = []
        async for finished in made.ascore_as_finished(groups(HELD, *"x" * 30)):
            names += [group.task.id for _, group, _ in finished]
            if len(names) == 30:
                Judge.released.set()
        return names

    assert run(scene())[-1] == "t0"


def test_in_order_too_a_group_waits_for_earlier_ones_alone(made: jg.Jury) -> None:
    async def scene() -> list[str]:
        names: list[str] = []
        async for (trace,) in made.ascore_many(groups("x", "y", HELD, "z")):
            names.append(trace.task_id)
            if len(names) == 2:
                Judge.released.set()
        return names

    assert run(scene()) == ["t0", "t1", "t2", "t3"]


def test_in_order_the_error_of_a_group_that_cannot_begin_comes_after_the_groups_before_it(
    made: jg.Jury,
) -> None:
    names: list[str] = []
    Judge.released.set()

    async def scene() -> None:
        empty = jg.Group(jg.Task(id="empty", query="?"), [])
        async for (trace,) in made.ascore_many([*groups(HELD, "x"), empty]):
            names.append(trace.task_id)

    with pytest.raises(InputError, match="'empty' has no responses"):
        run(scene())
    assert names == ["t0", "t1"]


def test_of_groups_of_several_callers_none_waits_for_another_or_has_its_error(
    made: jg.Jury,
) -> None:
    async def scene() -> list[tuple[int, str]]:
        outcomes: list[tuple[int, str]] = []
        empty = jg.Group(jg.Task(id="empty", query="?"), [])
        async with aclosing(made.ascore_as_finished([empty, *groups(HELD, "x")])) as results:
            async for finished in results:
                for number, _, outcome in finished:
                    failed = not isinstance(outcome, list)
                    outcomes.append((number, "failed" if failed else outcome[0].task_id))
                if len(outcomes) == 2:
                    Judge.released.set()
        return outcomes

    assert run(scene()) == [(0, "failed"), (2, "t1"), (1, "t0")]


def test_another_run_of_the_graph_goes_on_after_many_turns(
    made: jg.Jury, monkeypatch: pytest.MonkeyPatch
) -> None:
    Judge.released.set()
    given = groups(*"xyz")
    expected = [trace.digest for (trace,) in made.score_many(given)]
    monkeypatch.setattr(score_graph, "MAX_TURNS_PER_GRAPH_RUN", 1)
    assert [trace.digest for (trace,) in made.score_many(given)] == expected


@pytest.mark.parametrize("evaluator", ["Inline", "InThread"])
def test_what_is_not_due_takes_no_step(evaluator: str) -> None:
    """A step of LangGraph costs as much as scoring a response by code, and none is taken to wait for a thread."""
    with jury(f"{HERE}:{evaluator}") as opened:
        (group,) = groups("x")
        planning = TaskPlanning(
            task=group.task, profiles_line=None, digest=group.task.content_digest
        )
        context = TaskContexts([opened.context])

        async def steps(graph: Any, start: Any, of: Any) -> list[str]:
            updates = graph.astream(start, context=of, stream_mode="updates")
            return [name async for update in updates for name in update]

        async def scene() -> tuple[list[str], list[str]]:
            active_groups = ActiveGroups()
            active_groups.admit_group(
                make_planned_group(group, opened.prepare(group.task)), opened.context
            )
            active_groups.close()
            return (
                await steps(prepare_graph.build(), PrepareState(tasks=[planning]), context),
                await steps(score_graph.build(), ScoreState(turn=0), active_groups),
            )

        assert asyncio.run(scene()) == (["question"], ["route", "decide"])


def test_waves_of_inline_code_take_a_step_each() -> None:
    """The turns are counted all the same: a run of the graph ends after so many of them."""
    first = {"use": f"{HERE}:Inline", "name": "first"}
    second = {
        "use": f"{HERE}:Inline",
        "name": "second",
        "when": {"question": "first", "threshold": 0.5},
    }
    components = {"second": {"inputs": {"all": {"verdicts_of": "second", "if_skipped": "zero"}}}}
    reward = {"first": 1.0, "second": 1.0}
    with jury(first, second, components=components, reward=reward) as opened:
        (group,) = groups("x")

        async def scene() -> list[Any]:
            active_groups = ActiveGroups()
            active_groups.admit_group(
                make_planned_group(group, opened.prepare(group.task)), opened.context
            )
            active_groups.close()
            updates = score_graph.build().astream(
                ScoreState(turn=0), context=active_groups, stream_mode="updates"
            )
            steps = [step async for update in updates for step in update.items()]
            return [(name, update and update.get("turn")) for name, update in steps]

        assert asyncio.run(scene()) == [("route", 1), ("route", 2), ("decide", None)]


def test_a_cancellation_that_comes_together_with_news_ends_the_wait() -> None:
    """A scoring that its consumer closes is cancelled while groups finish; lost, the machine would wait for ever."""

    async def scenario() -> bool:
        groups = ActiveGroups()
        ready: Any = SimpleNamespace(number=0)
        groups._groups_by_number = {0: ready, 1: ready}
        groups._ready_groups = [ready]
        waiting = asyncio.create_task(groups.wait())
        for _ in range(3):  # until it waits for the other group
            await asyncio.sleep(0)
        groups._group_change_event.set()
        await asyncio.sleep(0)
        is_due = waiting.cancel()
        await asyncio.wait({waiting})
        return waiting.cancelled() == is_due

    assert asyncio.run(scenario())


def test_a_second_cancellation_while_calls_end_leaves_no_outcome_open() -> None:
    """Whoever records a group waits for its outcome, and takes the group for one in work until then."""

    async def end_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    async def scenario() -> bool:
        outcome_future = asyncio.get_running_loop().create_future()
        calls = SimpleNamespace(tasks=[asyncio.create_task(end_slowly())])
        entry: Any = SimpleNamespace(started_calls={"checks": calls}, outcome_future=outcome_future)
        groups = ActiveGroups()
        groups._groups_by_number = {0: entry}
        ending = asyncio.create_task(groups.cancel())
        for _ in range(3):  # until it waits for the call
            await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait({ending})
        return outcome_future.cancelled()

    assert asyncio.run(scenario())
