"""The front door: with or without an event loop of one's own, for one group or many, again and again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

import jurygraph as jg
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.conformance import check_evaluator
from jurygraph.errors import ConfigError, InputError
from jurygraph.graphs.group_scheduler import MAX_FINISHED_PER_ACTIVE_GROUP
from jurygraph.jury import (
    DEFAULT_CONCURRENT_GROUPS,
    MAX_RESPONSES_PER_BATCH,
    MAX_RESPONSES_PER_SLOW_BATCH,
    MAX_RESPONSES_WITHOUT_MODEL,
)
from jurygraph.schema import Config, Response, Task, Trace
from tests.graphs.scripted import SCRIPTED, evaluator_use, jury, response, task
from tests.judges.criteria.scripted_judge import find_everything
from tests.models import judge_scripts
from tests.models.server import Answer, run_server, status
from tests.rows import all_rows

PROJECT = Path(__file__).parents[1]
CONFIG = {"evaluators": [evaluator_use("tone")]}


def make_groups(n: int) -> jg.Group:
    return jg.Group(Task(id=f"t{n}", query="q"), [response(f"r{n}", tone=n / 1000)])


async def collect(made: jg.Jury, groups: Any) -> list[list[Trace]]:
    return [traces async for traces in made.ascore_many(groups)]


def test_a_config_may_be_a_mapping_a_config_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "jury.yaml"
    file.write_text(json.dumps(CONFIG))
    values = set()
    for source in (CONFIG, Config.model_validate(CONFIG), file, str(file)):
        with jg.Jury.from_config(source) as made:
            (trace,) = made.score(task(), [response("a", tone=0.5)])
            values.add((trace.reward.value, trace.plan_digest))
    assert len(values) == 1


def test_what_is_wrong_with_a_config_names_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "jury.yaml"
    file.write_text("evaluators:\n- maths.acuracy\n")
    with pytest.raises(ConfigError, match=r"^jury.yaml, line 2, key evaluators\[0\]: unknown"):
        jg.Jury.from_config(file)
    file.write_text("evaluators:\n- {use: tools.match, scope: turn}\n")
    with pytest.raises(ConfigError, match=r"^model: 'nonsense' is not a model"):
        jg.Jury.from_config(file, model="nonsense")
    found = r"^jury.yaml, line 2, key evaluators\[0\].scope: 'tools.match' judges"
    wanted = Task(id="t", query="q", reference_actions=[{"name": "look", "arguments": {}}])
    with jg.Jury.from_config(file) as made, pytest.raises(ConfigError, match=found):
        made.prepare(wanted)


def test_a_plan_can_be_reused() -> None:
    with jury(evaluator_use("tone")) as made:
        plan = made.prepare(task())
        first, second = (
            made.score(task(), [response("a", tone=s)], plan=plan) for s in (0.5, 0.75)
        )
    assert first[0].plan is plan
    assert [t[0].plan_digest for t in (first, second)] == [plan.digest] * 2
    assert [t[0].reward.value for t in (first, second)] == [0.5, 0.75]


def test_repeated_response_ids_are_refused() -> None:
    with (
        jury(evaluator_use("tone")) as made,
        pytest.raises(InputError, match="two responses with the id 'a'"),
    ):
        made.score(
            task(),
            [response("a", tone=1.0), response("b", tone=1.0), response("a", text="!", tone=1.0)],
        )


def test_traces_have_the_order_agents_and_labels_of_the_responses() -> None:
    group = [
        Response(id=name, text=name, agent=f"agent {name}", labels={"n": name}, data={"tone": 0.5})
        for name in "cabd"
    ]
    with jury(evaluator_use("tone")) as made:
        traces = made.score(task(), group)
    assert [(t.response_id, t.agent, t.labels["n"]) for t in traces] == [
        (n, f"agent {n}", n) for n in "cabd"
    ]


def test_a_jury_works_inside_a_running_loop_as_in_a_notebook() -> None:
    async def cell() -> tuple[list[Trace], list[Trace]]:
        with jury(evaluator_use("tone")) as made:
            return made.score(task(), [response("a", tone=0.5)]), await made.ascore(
                task(), [response("a", tone=0.5)]
            )

    one, other = asyncio.run(cell())
    assert one == other


def test_a_jury_serves_one_loop_after_another() -> None:
    with jury(evaluator_use("tone")) as made:
        values = [
            asyncio.run(made.ascore(task(), [response("a", tone=s)]))[0].reward.value
            for s in (0.25, 0.5)
        ]
        values.append(made.score(task(), [response("a", tone=0.75)])[0].reward.value)
    assert values == [0.25, 0.5, 0.75]


def test_a_jury_serves_several_threads_through_one_loop() -> None:
    found: dict[int, float | None] = {}
    start = threading.Barrier(8)
    with jury(evaluator_use("tone")) as made:

        def score(n: int) -> None:
            start.wait()
            (trace,) = made.score(task(), [response("a", tone=n / 10)])
            found[n] = trace.reward.value

        before = {thread.name for thread in threading.enumerate()}
        threads = [threading.Thread(target=score, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert "jurygraph" not in before
        assert [thread.name for thread in threading.enumerate()].count("jurygraph") == 1
    assert found == {n: n / 10 for n in range(8)}


class Opens(Evaluator):
    """Counts how often it is opened and closed."""

    log: list[str]

    def open(self) -> None:
        self.log.append("open")

    def close(self) -> None:
        self.log.append("close")

    def answer(self, inputs: EvaluatorInput) -> bool:
        self.log.append("answer")
        return True


def test_evaluators_are_opened_before_the_first_question_and_closed_with_the_jury() -> None:
    Opens.log = []
    with jury(f"{__name__}:Opens") as made:
        made.prepare(task())
        assert Opens.log == []
        made.score(task(), [response("a")])
        made.score(task(), [response("a")])
    assert Opens.log == ["open", "answer", "answer", "close"]


def test_juries_in_different_loops_share_their_compiled_graphs() -> None:
    meeting = threading.Barrier(2, timeout=60)  # both are in the middle of the same graph

    def tone(task: Task, response: Response) -> float:
        meeting.wait()
        return float(response.text)

    with jury(tone) as one, jury(tone) as other, ThreadPoolExecutor(2) as threads:
        scored = threads.map(
            lambda made, text: made.score(task(), [Response(id="a", text=text)]), (one, other), "01"
        )
        assert [trace.reward.value for (trace,) in scored] == [0.0, 1.0]


def test_a_jury_may_be_closed_twice_and_refuses_to_be_used_again() -> None:
    made, group = jury(evaluator_use("tone")), [response("a", tone=0.5)]
    many = made.score_many([(task(), group)] * 3)
    assert next(many)[0].reward.value == 0.5
    made.close()
    made.close()
    uses: list[Any] = [
        lambda: made.score(task(), group), lambda: made.prepare(task()), made.open, made.__enter__, lambda: next(many),
        lambda: made.score_many([]), lambda: asyncio.run(made.ascore(task(), group)),
        lambda: asyncio.run(collect(made, [])), lambda: jg.Planner(made).annotate(task()),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(InputError, match="this jury is closed"):
            use()
    assert not [thread for thread in threading.enumerate() if thread.name == "jurygraph"]


def test_async_with_closes_the_jury_in_its_loop() -> None:
    async def scenario() -> jg.Jury:
        async with jury(evaluator_use("tone")) as made:
            assert (await made.ascore(task(), [response("a", tone=0.5)]))[0].reward.value == 0.5
        return made

    with pytest.raises(InputError, match="this jury is closed"):
        asyncio.run(scenario()).prepare(task())


def test_many_groups_are_scored_in_order_with_progress_from_any_thread() -> None:
    seen: list[tuple[int, int | None]] = []
    items = [(Task(id=f"t{n}", query="q"), [response(f"r{n}", tone=n / 10)]) for n in range(5)]
    with jury(evaluator_use("tone")) as made:
        results = list(
            made.score_many(items, progress=lambda done, total: seen.append((done, total)))
        )
        assert [traces[0].reward.value for traces in results] == [0.0, 0.1, 0.2, 0.3, 0.4]
        assert seen == [(n, 5) for n in range(1, 6)]
        list(made.score_many(iter(items), progress=lambda *step: seen.append(step)))
        assert seen[5:] == [(n, None) for n in range(1, 6)]


def test_many_groups_are_read_no_further_than_needed_and_end_with_the_consumer() -> None:
    read: list[int] = []

    def groups() -> Iterator[Any]:
        for n in range(1000):
            read.append(n)
            yield make_groups(n)

    with jury(evaluator_use("tone")) as made:
        results = made.score_many(groups())
        for _ in range(3):
            next(results)
        assert len(read) <= 3 + MAX_RESPONSES_WITHOUT_MODEL * (1 + MAX_FINISHED_PER_ACTIVE_GROUP)
        results.close()  # type: ignore[attr-defined]
        ((trace,),) = made.score_many([make_groups(1)])
        assert trace.response_id == "r1"


def test_an_error_in_the_callback_ends_the_scoring() -> None:
    def stop(done: int, total: int | None) -> None:
        raise RuntimeError("enough")

    with jury(evaluator_use("tone")) as made, pytest.raises(RuntimeError, match="enough"):
        list(made.score_many([make_groups(n) for n in range(100)], progress=stop))


def test_a_text_is_a_response_with_a_number() -> None:
    with jg.Jury(evaluators=[_length]) as made:
        traces = made.score(task(), ["four", Response(id="own", text="four"), "sixsix"])
        (others,) = made.score_many([(task(), ("four",))])
    assert [(one.response_id, one.reward.value) for one in traces] == [
        ("task/1", 0.4),
        ("own", 0.4),
        ("task/3", 0.6),
    ]
    assert [one.response_id for one in others] == ["task/1"]


def _length(task: jg.TaskView, response: jg.Response) -> float:
    return len(response.text) / 10


WRONG: list[tuple[Any, str]] = [
    (lambda made: made.prepare("q"), "task: is a str; write jg.Task("),
    (lambda made: made.score({"id": "a"}, []), "task: is a dict; write jg.Task("),
    (lambda made: made.score(task(), "x"), "responses: is a str; give a list"),
    (
        lambda made: made.score(task(), Response(id="a", text="x")),
        "responses: is a Response; give a list",
    ),
    (
        lambda made: made.score(task(), (text for text in "ab")),
        "responses: is a generator; give a list",
    ),
    (lambda made: made.score(task(), None), "responses: is a NoneType; give a list"),
    (
        lambda made: made.score(task(), ["a", {"text": "b"}]),
        "responses[1]: is a dict; write jg.Response(",
    ),
    (lambda made: made.score(task(), ["a"], plan="p"), "plan: is a str; give one of jury.prepare("),
    (lambda made: list(made.score_many(7)), "items: is an int; give a list of Groups"),
    (lambda made: list(made.score_many([task()])), "items[0]: is a Task; give a list of Groups"),
    (
        lambda made: list(made.score_many([(task(),)])),
        "items[0]: has 1 entries; give a list of Groups",
    ),
    (
        lambda made: list(made.score_many([make_groups(1), ("t", ["a"])])),
        "items[1].task: is a str; write",
    ),
    (lambda made: list(made.score_many([], progress="bar")), "progress: is a str; give a function"),
    (
        lambda made: list(made.score_many([], progress=made.aprepare)),
        "progress: is an async function, which nothing",
    ),
    (lambda made: jg.Jury("jury.yaml"), "config: is a str; use Jury.from_config("),  # type: ignore[arg-type]
    (
        lambda made: jg.Jury(made.config, evaluators=[]),
        "config: is given, and so is its key 'evaluators'",
    ),
    (lambda made: jg.Jury.from_config(7), "source: is an int; give a file, a dict or a Config"),  # type: ignore[arg-type]
    (
        lambda made: jg.Jury(max_cost="1", evaluators=[_length]),
        "max_cost: is a str; give US dollars",
    ),
    (
        lambda made: jg.Jury(max_calls=True, evaluators=[_length]),
        "max_calls: is a bool; give a number of calls",
    ),
    (
        lambda made: jg.Jury(gateway=1, evaluators=[_length]),
        "gateway: is an int; leave it out, or give",
    ),  # type: ignore[arg-type]
    (lambda made: made.prepare(task(), 5), "profiles: is an int; give a line of a PROFILES file"),
    (lambda made: jg.Group("t", ["a"]), "task: is a str; write jg.Task("),  # type: ignore[arg-type,list-item]
    (
        lambda made: jg.Group(task(), [], reused_results=None),
        "reused_results: is a NoneType; leave it out",
    ),  # type: ignore[arg-type]
    (lambda made: jg.Planner("jury.yaml"), "jury: is a str; give a jg.Jury"),  # type: ignore[arg-type]
    (lambda made: jg.Planner(made).annotate("x"), "task: is a str; write jg.Task("),  # type: ignore[arg-type]
    (lambda made: jg.explain("x"), "trace: is a str; give one of jury.score("),  # type: ignore[arg-type]
    (lambda made: _scored(made).explain("p"), "plan: is a str; give jury.prepare("),
    (
        lambda made: _scored(made).explain(group=1),
        "group: is an int; give all traces of jury.score(",
    ),
    (
        lambda made: _scored(made).explain(group=["t"]),
        "group[0]: is a str; give all traces of jury.score(",
    ),
    (lambda made: jg.Run.open(None), "folder: is a NoneType; give the folder of a run"),  # type: ignore[arg-type]
    (lambda made: jg.Run.open(b"run"), "folder: is a bytes; give the folder of a run"),  # type: ignore[arg-type]
    (lambda made: jg.read_prompt(3), "file: is an int; give the path of a prompt"),  # type: ignore[arg-type]
    (lambda made: check_evaluator(_length, 5), "groups: is an int; give a list of Groups"),  # type: ignore[arg-type]
    (
        lambda made: check_evaluator(_length, [task()]),
        "groups[0]: is a Task; give a list of Groups",
    ),  # type: ignore[list-item]
    (
        lambda made: check_evaluator(_length, [(task(), [3])]),
        "groups[0].responses[0]: is an int; write",
    ),  # type: ignore[list-item]
]


def _scored(made: jg.Jury) -> Any:
    return made.score(task(), [response("a", tone=0.5)])[0]


@all_rows(("use", "message"), WRONG)
def test_a_value_of_a_wrong_type_is_refused_by_the_name_of_its_argument(
    use: Any, message: str
) -> None:
    with jury(evaluator_use("tone")) as made, pytest.raises(InputError) as refused:
        use(made)
    assert str(refused.value).startswith(message)


class Blocks(Evaluator):
    """Never answers."""

    asked = threading.Event()

    async def answer(self, inputs: EvaluatorInput) -> float:
        Blocks.asked.set()
        await asyncio.Event().wait()
        return 1.0


@pytest.mark.parametrize(
    "score",
    [
        lambda made: made.score(task(), [response("a")]),
        lambda made: next(made.score_many([(task(), [response("a")])])),
    ],
)
def test_closing_a_jury_releases_waiting_callers(score: Callable[[jg.Jury], Any]) -> None:
    ended: list[str] = []
    made = jury(f"{__name__}:Blocks")

    def wait() -> None:
        with pytest.raises(InputError, match="this jury is closed"):
            score(made)
        ended.append("refused")

    Blocks.asked.clear()
    thread = threading.Thread(target=wait)
    thread.start()
    Blocks.asked.wait()
    made.close()
    thread.join()
    assert ended == ["refused"]


@pytest.mark.landing
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_jury_in_a_fork_after_its_first_use_is_refused_and_can_be_closed() -> None:
    with jury(evaluator_use("tone")) as made:
        assert fork_and_score(made) == "0.5"
        made.score(task(), [response("a", tone=0.5)])
        assert (
            fork_and_score(made)
            == "this jury was used in another process, before a fork; make one in each process"
        )
        assert made.score(task(), [response("a", tone=0.5)])[0].reward.value == 0.5


def fork_and_score(made: jg.Jury) -> str:
    """Score a response and close the jury in a forked process; return the reward there, or the error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that hangs
        try:
            os.write(
                writing, str(made.score(task(), [response("a", tone=0.5)])[0].reward.value).encode()
            )
        except InputError as error:
            os.write(writing, str(error).encode())
        finally:
            made.close()
            asyncio.run(made.aclose())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        found = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return found


class AsksItsJury(Evaluator):
    """Calls a method of its own jury that waits."""

    name = "asks"
    call: Callable[[], Any]

    async def answer(self, inputs: EvaluatorInput) -> float:
        AsksItsJury.call()
        return 1.0


def test_an_async_evaluator_cannot_wait_for_its_own_jury() -> None:
    with jury(f"{__name__}:AsksItsJury") as made:
        for call in (
            made.close,
            lambda: made.prepare(task()),
            lambda: made.score(task(), [response("a")]),
        ):
            AsksItsJury.call = staticmethod(call)
            (trace,) = made.score(task(), [response("a")])
            assert "runs in the jury's own event loop, and would wait for itself" in str(
                trace.verdicts[0].reason
            )


class Counts(Evaluator):
    """Keeps count of how many groups are being scored at once; answers out of order."""

    now = most = finished = 0

    async def answer(self, inputs: EvaluatorInput) -> Any:
        Counts.now += 1
        Counts.most = max(Counts.most, Counts.now)
        for _ in range(int(inputs.response.id[1:]) % 7):
            await asyncio.sleep(0)
        Counts.now -= 1
        Counts.finished += 1
        return inputs.response.data["tone"]  # type: ignore[index,call-overload]


@pytest.mark.landing
def test_groups_are_scored_concurrently_and_yielded_in_order() -> None:
    Counts.now = Counts.most = 0
    with jury({"use": f"{__name__}:Counts", "name": "tone"}) as made:
        results = asyncio.run(
            collect(made, (make_groups(n) for n in range(3 * MAX_RESPONSES_WITHOUT_MODEL)))
        )
    assert [traces[0].response_id for traces in results] == [
        f"r{n}" for n in range(3 * MAX_RESPONSES_WITHOUT_MODEL)
    ]
    assert [traces[0].reward.value for traces in results] == [
        n / 1000 for n in range(3 * MAX_RESPONSES_WITHOUT_MODEL)
    ]
    assert 1 < Counts.most <= MAX_RESPONSES_WITHOUT_MODEL


class Inline(Evaluator):
    runs_inline = True

    def answer(self, inputs: EvaluatorInput) -> Any:
        return inputs.response.data["tone"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("evaluator", "size"),
    [
        pytest.param(
            evaluator_use("tone"), MAX_RESPONSES_PER_SLOW_BATCH, id="code that may be slow"
        ),
        pytest.param(
            {"use": f"{__name__}:Inline", "name": "tone"}, DEFAULT_CONCURRENT_GROUPS, id="quick"
        ),
    ],
)
def test_no_more_groups_are_read_than_are_scored_at_once(evaluator: Any, size: int) -> None:
    read: list[int] = []

    def groups() -> Any:
        for n in range(1000):
            read.append(n)
            yield make_groups(n)

    async def first() -> int:
        with jury(evaluator) as made:
            results: AsyncIterator[list[Trace]] = made.ascore_many(groups())
            await anext(results)
            await results.aclose()  # type: ignore[attr-defined]
        assert made._responses_per_batch == size
        return len(read)

    assert asyncio.run(first()) == MAX_RESPONSES_WITHOUT_MODEL
    assert asyncio.run(collect(jury(evaluator), [])) == []


def score_until(reached: int, holds: Callable[[int], bool], groups: int, **calls: Any) -> set[str]:
    """Score groups of one response, whose number is its text, and return the statuses of their rewards.

    The server holds some requests until the number of all is `reached`.
    """
    everyone, here = asyncio.Event(), 0

    def script(body: dict[str, Any], number: int) -> Answer:
        async def answer(request: Any) -> Any:
            nonlocal here
            here += 1
            if here == reached:
                everyone.set()
            if holds(int(judge_scripts.response_in(body))):
                await everyone.wait()
            return await judge_scripts.judge_reply(body)(request)

        return answer

    given = [
        jg.Group(
            judge_scripts.rubric("kind", name=f"t{n}"),
            judge_scripts.responses(f"{n}", task=f"t{n}"),
        )
        for n in range(groups)
    ]
    with run_server(script) as server:
        made = judge_scripts.jury(server.url, timeout=20.0, attempts=1, cache=False, **calls)

        async def score_all() -> list[list[Trace]]:
            try:
                return await collect(made, given)
            finally:
                await made.aclose()

        return {trace.reward.status for traces in asyncio.run(score_all()) for trace in traces}


def test_small_groups_reach_the_configured_call_concurrency() -> None:
    at_once = 2 * MAX_RESPONSES_PER_BATCH + 8
    assert score_until(at_once, lambda number: True, at_once, concurrency=at_once) == {"ok"}


def test_a_slow_answer_in_each_of_many_batches_leaves_the_other_calls_busy() -> None:
    assert score_until(
        312, lambda number: number % 16 == 0 and number < 12 * 16, 400, concurrency=16
    ) == {"ok"}


class Waits(Evaluator):
    """Answers the first response once `others` have been answered, and the loop has turned some more."""

    others = answered = 0

    async def answer(self, inputs: EvaluatorInput) -> Any:
        if inputs.response.id == "r0":
            while Waits.answered < Waits.others:
                await asyncio.sleep(0)
            await wait_turns(1000)
        Waits.answered += 1
        return inputs.response.data["tone"]  # type: ignore[index,call-overload]


async def wait_turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def waiting(others: int) -> jg.Jury:
    Waits.others, Waits.answered = others, 0
    return jury({"use": f"{__name__}:Waits", "name": "tone"})


def test_a_slow_group_does_not_delay_later_ones() -> None:
    async def scenario() -> list[list[Trace]]:
        with waiting(others=2 * MAX_RESPONSES_WITHOUT_MODEL) as made:
            async with asyncio.timeout(60.0):
                return await collect(
                    made, (make_groups(n) for n in range(2 * MAX_RESPONSES_WITHOUT_MODEL + 1))
                )

    assert [traces[0].response_id for traces in asyncio.run(scenario())] == [
        f"r{n}" for n in range(2 * MAX_RESPONSES_WITHOUT_MODEL + 1)
    ]


def test_the_number_of_finished_groups_that_wait_is_bounded() -> None:
    most, read = MAX_RESPONSES_WITHOUT_MODEL * (1 + MAX_FINISHED_PER_ACTIVE_GROUP), 0

    def groups() -> Iterator[Any]:
        nonlocal read
        for n in range(2 * most):
            read += 1
            yield make_groups(n)

    async def first() -> None:
        with waiting(others=most - 1) as made:
            results: AsyncIterator[list[Trace]] = made.ascore_many(groups())
            async with asyncio.timeout(60.0):
                await anext(results)
            assert read == most
            await results.aclose()  # type: ignore[attr-defined]

    asyncio.run(first())


def test_an_error_in_one_group_is_raised_in_order_and_cancels_the_rest() -> None:
    done: list[Any] = []

    async def scenario() -> set[Any]:
        with jury(evaluator_use("tone"), f"{__name__}:Blocks", reward={"tone": 1.0}) as made:
            groups = [jg.Group(Task(id="none", query="q"), []), *(make_groups(n) for n in range(5))]
            with pytest.raises(InputError, match="task 'none' has no responses"):
                done.extend(await collect(made, groups))
            return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(scenario()) == set()
    assert done == []


def test_results_before_an_error_are_yielded() -> None:
    done: list[str] = []

    async def scenario() -> None:
        with jury(evaluator_use("tone")) as made:
            async for traces in made.ascore_many(
                [make_groups(1), jg.Group(task(), []), make_groups(2)]
            ):
                done.append(traces[0].response_id)

    with pytest.raises(InputError):
        asyncio.run(scenario())
    assert done == ["r1"]


TWICE = f"""
import jurygraph as jg
from tests.graphs.scripted import criterion, evaluator_use, response, response_with, task
config = {{
    "evaluators": [
        evaluator_use("met", audience="criterion"), evaluator_use("kind", audience="stakeholder"),
        evaluator_use("rank", scope="pair"),
        {{"use": "{SCRIPTED}", "name": "same", "params": {{"material": "versions"}}}},
    ],
    "derivers": ["tests.graphs.scripted:Versions", "tests.graphs.scripted:Measure"],
    "reward": {{"rubric": 1.0, "stakeholders": 0.3, "rank": 0.1, "same": -0.7}},
    "weights": {{"method": "uniform"}},
    "failure": {{"min_coverage": 0.1}},
}}
about = task(
    criterion("x", 0.7), criterion("y", 0.1), edges=[("x", "y", "weak")], metadata={{"b": 1, "a": [2, 3]}},
    stakeholders=[{{"id": "ann"}}, {{"id": "bob"}}],
)
script = {{"met@x": 0.3, "met@y": "response", "kind@ann": 0.9, "kind@bob": "abstained", "measure": 0.3}}
group = [
    response_with(name, {{**script, "rank": i / 3, "versions": [[name + v, {{"same": i / 7}}] for v in "wv"]}})
    for i, name in enumerate(("a", "b", "c"))
]
with jg.Jury.from_config(config) as jury:
    for trace in jury.score(about, group):
        print(trace.digest, trace.plan_digest, trace.reward.digest)
        print(trace.model_dump_json())
"""


@pytest.mark.landing
def test_two_runs_in_two_processes_give_the_same_traces(capsys: pytest.CaptureFixture[str]) -> None:
    seed = "0" if os.environ.get("PYTHONHASHSEED") == "4242" else "4242"
    other = subprocess.run(
        [sys.executable, "-c", TWICE],
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    exec(TWICE, {})
    outputs = [capsys.readouterr().out, other.stdout]
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 6
    assert '"status":"degraded"' in outputs[0]


class TestRunEnding:
    """What every other question would fail for, too, is an error and no verdict."""

    @pytest.mark.parametrize(
        ("code", "limit", "error", "message"),
        [
            (401, None, jg.ModelAccessError, "URL: .* model 'tiny'.* check .*JURYGRAPH_.*; 401: "),
            (404, None, jg.ModelAccessError, "URL: .* model 'tiny'.* check .*JURYGRAPH_.*; 404: "),
            (503, None, jg.ModelOutageError, "the model server of 'tiny' has not answered for"),
            (200, 0, jg.BudgetExceeded, "the limit of 0 calls is reached"),
        ],
    )
    def test_scoring_raises_an_error_that_can_be_caught_by_its_name(
        self, code: int, limit: int | None, error: type[Exception], message: str
    ) -> None:
        rubric = judge_scripts.rubric("kind")
        with run_server(lambda body, number: status(code)) as server:
            config = judge_scripts.config(server.url, outage={"after": 1, "wait": 0.01})
            with jg.Jury.from_config(config, max_calls=limit) as made:
                with pytest.raises(error, match=message.replace("URL", server.url)):
                    made.score(rubric, ["Dear Ann,"])
                with pytest.raises(error):
                    list(made.score_many([(rubric, ["Dear Ben,"])]))

    def test_with_a_wait_of_0_a_server_that_is_away_fails_verdicts_and_ends_nothing(self) -> None:
        """A web handler waits for no server: each request ends with its own attempts, and none is a probe."""
        texts = [f"Dear number {n}," for n in range(12)]
        with run_server(lambda body, number: status(503)) as server:
            config = judge_scripts.config(server.url, attempts=2, outage={"wait": 0})
            with jg.Jury.from_config(config) as made:
                traces = made.score(judge_scripts.rubric("kind"), texts)
        failures = [verdict.failure for trace in traces for verdict in trace.verdicts]
        assert {failure and (failure.cause, failure.kind) for failure in failures} == {
            ("infrastructure", "server")
        }
        assert server.count == 2 * len(texts)

    @pytest.mark.parametrize("error", [TypeError, RuntimeError, KeyError, NotImplementedError])
    def test_a_mistake_in_the_code_of_a_chat_model_is_named_at_once(
        self, error: type[Exception], caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is no outage: nothing waits for a server, and none is to be checked."""

        class Mistaken(FakeListChatModel):
            def _call(self, *_: Any, **__: Any) -> str:
                raise error("oops")

        rubric = judge_scripts.rubric("kind")
        with jg.Jury(evaluators=["criteria"], model=Mistaken(responses=["x"])) as made:
            (trace,) = made.score(rubric, ["Dear Ann,"])
            assert trace.verdicts[0].failure is not None
            message = trace.verdicts[0].failure.message
            assert message.startswith(f"Mistaken: {error.__name__} (test_jury.py, line ")
            with pytest.raises(
                jg.UnusableRepliesError, match=r"first 20 requests failed alike: Mis.*mend the m"
            ):
                made.score(rubric, [f"Dear number {n}," for n in range(30)])
        assert caplog.records == []

    def test_groups_before_the_refusal_are_yielded_and_no_further_question_is_sent(self) -> None:
        def script(body: dict[str, Any], number: int) -> Answer:
            return status(401) if number > 10 else judge_scripts.judge_reply(body)

        groups = [
            (judge_scripts.rubric("kind", name=f"t{n}"), [f"Dear number {n},"]) for n in range(100)
        ]
        found: list[list[Trace]] = []
        with (
            run_server(script) as server,
            judge_scripts.jury(server.url, concurrency=2, cache=False) as made,
        ):
            with pytest.raises(jg.ModelAccessError):
                found.extend(made.score_many(groups))  # keeps what was yielded before the error
            assert 10 < server.count <= 12
        assert 0 < len(found) <= 10
        assert all(trace.reward.status == "ok" for traces in found for trace in traces)


def test_a_lone_surrogate_is_refused_before_scoring() -> None:
    with (
        jury(evaluator_use("tone")) as made,
        pytest.raises(InputError, match=r"response 'a' cannot be written"),
    ):
        made.score(task(), [Response(id="a", text="\ud800")])


def test_a_jury_with_the_gateway_of_another_sends_its_own_parameters() -> None:
    task = jg.Task.model_validate(
        {
            "id": "t",
            "query": "Write.",
            "rubric": {"criteria": [{"id": "one", "text": "It greets.", "weight": 1}]},
        }
    )
    with run_server(find_everything) as server:
        config = {"model": f"openai-compatible:{server.url}#tiny", "evaluators": ["criteria"]}
        warm = {**config, "calls": {"cache": False, "parameters": {"temperature": 0.7}}}
        with jg.Jury(jg.Config.model_validate({**config, "calls": {"cache": False}})) as first:
            first.score(task, ["Dear Ann"])
            with jg.Jury(jg.Config.model_validate(warm), gateway=first.gateway) as second:
                second.score(task, ["Dear Ann"])
        assert [request.body["temperature"] for request in server.requests] == [0.0, 0.7]
