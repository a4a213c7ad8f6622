"""Groups scored from Python are stored under a name, once, and are durable when they are returned."""

import asyncio
import json
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import jurygraph as jg
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.runs.calls import read_calls
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.integrity.verification import verify
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import differences
from jurygraph.runs.store.ledger import Writer
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.sources.config import apply_settings
from jurygraph.studies.monitor import iter_scored_groups
from jurygraph.testing import ScriptedJudge
from tests.runs.sample_runs import Outage

TASK = jg.Task(id="eggs", query="How many eggs are left?", reference="9")
OTHER = jg.Task(id="hens", query="How many hens are there?", reference="4")
CODE: dict[str, Any] = {"evaluators": ["maths.accuracy"]}


def ids(traces: list[jg.Trace]) -> list[str]:
    return [trace.response_id for trace in traces]


def check(folder: Path) -> Run:
    """Verify a run, whatever state it is in, and open it."""
    with Run.open(folder) as run:
        verify(run, lambda count: None)
        verify_deep(run, lambda count: None)
    return Run.open(folder)


def test_a_group_is_named_by_its_task_its_phase_and_its_step(tmp_path: Path) -> None:
    with jg.Jury(**CODE) as jury:
        with jury.record(tmp_path / "run"):
            assert ids(jury.score(TASK, ["9", jg.Response(text="8")])) == ["eggs@1/1", "eggs@1/2"]
            assert ids(jury.score(TASK, ["9"], step=7)) == ["eggs@7/1"]
            assert ids(jury.score(TASK, ["9"], step=7, phase="test")) == ["eggs@test:7/1"]
            assert ids(jury.score(OTHER, [jg.Response(id="mine", text="4")])) == ["mine"]
        with jury.record(tmp_path / "run", phase="test"):
            assert ids(jury.score(TASK, ["9"])) == ["eggs@test:8/1"], "the counter goes on"
        with jury.record(tmp_path / "run"):
            many = list(jury.score_many([(TASK, ["9"]), jg.Group(OTHER, ["4"], step=3)]))
            assert [ids(traces) for traces in many] == [["eggs@8/1"], ["hens@3/1"]]
        assert ids(jury.score(TASK, ["9"])) == ["eggs/1"], "outside of the blocks nothing is stored"
    with check(tmp_path / "run") as run:
        assert [len(list(run.groups_of_task(task))) for task in ("eggs", "hens")] == [5, 2]
        assert run.planned_task_count == 2, "a plan is stored once"
        assert [item.trace.response_id for item in run.group_of_response("eggs@1/2")] == [
            "eggs@1/1",
            "eggs@1/2",
        ]
        assert "eggs@1/2" in str(run.explain("eggs@1/2"))
    steps = [group[0].trace.response_id for group in iter_scored_groups(tmp_path / "run")]
    assert steps[:4] == ["eggs@1/1", "eggs@7/1", "eggs@test:7/1", "mine"], "as they were scored"


def test_a_run_that_was_interrupted_goes_on_at_its_step(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    items = [(TASK, ["9"]), (OTHER, ["4", "5"])]
    with jg.Jury(**CODE) as jury:
        with jury.record(tmp_path / "run"):
            list(jury.score_many(items[:1]))
            list(jury.score_many(items[:1]))
        assert not caplog.messages, "an epoch of the same training"
        with jury.record(tmp_path / "run"):
            again = list(jury.score_many([(TASK, ["8"]), *items]))
        assert [ids(traces)[0] for traces in again] == ["eggs@3/1", "eggs@4/1", "hens@1/1"]
        assert not caplog.messages, "another response came first"
        with jury.record(tmp_path / "run"):
            list(jury.score_many([items[0], *items]))
            message = "to continue a run that was interrupted, write jury.score_many(items, step=4)"
            assert [message in text for text in caplog.messages] == [True]
            groups = [*items, jg.Group(OTHER, ["4", "5"]), jg.Group(OTHER, ["4"], step=5)]
            found = list(jury.score_many(groups, step=1))
        names = ["eggs@1/1", "hens@1/1", "hens@1/1", "hens@5/1"]
        assert [ids(traces)[0] for traces in found] == names
    with check(tmp_path / "run") as run:
        assert run.tasks_scored == 6 + 2 + 1


def test_the_same_group_at_the_same_step_is_read_and_another_one_refused(tmp_path: Path) -> None:
    judge = ScriptedJudge({"polite": lambda text: "please" in text})
    settings = {"model": judge, "evaluators": [jg.criteria(["It is polite."])]}
    with jg.Jury(**settings, record=tmp_path / "run") as jury:
        first = jury.score(TASK, ["9, please", "9"], step=1)
    with jg.Jury(**settings, record=tmp_path / "run") as jury:
        again = jury.score(TASK, ["9, please", "9"], step=1)
        assert len(judge.requests) == 2, "nothing is asked again"
        assert [trace.reward for trace in again] == [trace.reward for trace in first]
        assert [trace.plan for trace in again] == [trace.plan for trace in first]

        other = TASK.model_copy(update={"query": "How many eggs are there?"})
        refused: list[tuple[jg.Task, list[Any], int | None, str]] = [
            (TASK, ["9, please", "8"], 1, "'eggs@1/2' is another one now; give it another step"),
            (TASK, ["9, please"], 1, "'eggs@1/2' is gone"),
            (TASK, ["9, please", "9", "8"], 1, "'eggs@1/3' is new"),
            (other, ["9"], None, "task 'eggs' is another one than in"),
            (TASK, [jg.Response(id="eggs@1/1", text="9")], None, "'eggs@1/1' is stored in"),
        ]
        for task, responses, step, message in refused:
            with pytest.raises(jg.InputError, match=re.escape(message)):
                jury.score(task, responses, step=step)
    assert len(judge.requests) == 2
    check(tmp_path / "run").close()


def test_an_id_that_comes_from_a_group_is_no_other_response_s(tmp_path: Path) -> None:
    with jg.Jury(**CODE, record=tmp_path / "run") as jury:
        jury.score(OTHER, [jg.Response(id="eggs@3/1", text="4")])
        with pytest.raises(jg.InputError, match=r"'eggs@3/1' is stored .* in another group; give"):
            jury.score(TASK, ["9"], step=3)
        jury.score(TASK.model_copy(update={"id": "a@b"}), ["9"], phase="c")
        with pytest.raises(jg.InputError, match="'a@b@c:1/1' is stored"):
            jury.score(TASK.model_copy(update={"id": "a"}), ["9"], phase="b@c")
    with check(tmp_path / "run") as run:
        assert ids(list(run.traces())) == ["eggs@3/1", "a@b@c:1/1"]


def test_an_id_of_a_group_that_was_cancelled_while_it_became_durable_is_not_stored_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    response = jg.Response(id="mine", text="9")
    with jg.Jury(**CODE, record=tmp_path / "run") as jury:
        append = Writer.append

        def append_and_cancel(*arguments: Any) -> None:
            append(*arguments)
            for task in asyncio.all_tasks():
                task.cancel()

        with monkeypatch.context() as patches:
            patches.setattr(Writer, "append", append_and_cancel)
            with pytest.raises(asyncio.CancelledError):
                asyncio.run(jury.ascore(TASK, [response]))
        jury.score(OTHER, ["4"])  # which is durable after it
        with pytest.raises(jg.InputError, match="'mine' is stored"):
            jury.score(OTHER, [response])


def test_only_what_failed_by_infrastructure_is_asked_again(tmp_path: Path) -> None:
    seen: list[str] = []
    is_down = True

    @jg.evaluator(layer="check")
    def reached(task: jg.TaskView, response: jg.Response) -> float:
        seen.append(response.text)
        if response.text == "far" and is_down:
            raise ConnectionError("the line is dead")
        return 1.0

    with jg.Jury(evaluators=[reached], record=tmp_path / "run") as jury:
        failed = jury.score(TASK, ["near", "far"], step=1)
        assert [trace.reward.status for trace in failed] == ["ok", "failed"]
        is_down = False
        again = jury.score(TASK, ["near", "far"], step=1)
        assert [trace.reward.value for trace in again] == [1.0, 1.0]
        assert sorted(seen) == ["far", "far", "near"]
        jury.score(TASK, ["near", "far"], step=1)
        assert len(seen) == 3
    with Run.open(tmp_path / "run") as run:
        verified = verify(run, lambda count: None)
        assert (verified.traces, verified.replaced) == (4, 2), "what failed stays on record"
        assert [trace.reward.value for trace in run.traces()] == [1.0, 1.0], "each one once"
        assert len(list(read_stored_groups(run))) == run.tasks_scored == 1
    erase(tmp_path / "run", "response", "eggs@1/2", "asked for")
    with Run.open(tmp_path / "run") as run:
        assert b"far" not in {text.content for text in run.ledger.all_texts()}


def test_a_run_is_rescored_without_the_groups_that_were_judged_again(tmp_path: Path) -> None:
    line = Outage()

    with jg.Jury(evaluators=[line.evaluator()], record=tmp_path / "run") as jury:
        jury.score(TASK, ["near", "far"], step=1)
        line.is_down = False
        jury.score(TASK, ["near", "far"], step=1)
        config = apply_settings(jury.config, ["reward.reached=0.5"])
    with Run.open(tmp_path / "run") as run:
        rescore(run, tmp_path / "other", config, lambda count: None)
    with Run.open(tmp_path / "other") as other:
        assert [trace.reward.value for trace in other.traces()] == [0.5, 0.5]
        verified = verify(other, lambda count: None)
        assert (verified.traces, verified.replaced) == (2, 0)


@pytest.mark.parametrize(
    ("rule", "rewards"), [("decisive", [2.0, 2.0]), ("conservative", [2.0, 1.0])]
)
def test_a_reward_that_failed_by_a_reply_is_judged_again_at_its_step(
    rule: str, rewards: list[float], tmp_path: Path
) -> None:
    """What has a reward comes from the record, also one that lacks a verdict."""
    replies: list[Any] = ["garbage"]
    judge = ScriptedJudge({"polite": lambda letter: letter == "three" or replies[0]})

    @jg.evaluator(layer="check")
    def present(task: jg.TaskView, response: jg.Response) -> float:
        return 1.0

    with jg.Jury(
        model=judge,
        evaluators=[present, jg.criteria(["It is polite."])],
        reward={"present": 1.0, "criteria": 1.0},
        failure={"rule": rule, "min_coverage": 0.5},
        record=tmp_path / "run",
    ) as jury:
        jury.score(TASK, ["three", "nine"], step=1)
        replies[0] = True
        asked_count = len(judge.requests)
        for _ in range(2):
            again = jury.score(TASK, ["three", "nine"], step=1)
            assert [trace.reward.value for trace in again] == rewards
        assert len(judge.requests) - asked_count == (rule == "decisive")
    check(tmp_path / "run").close()


def test_a_comparison_that_failed_stays_where_another_reward_counts_it(tmp_path: Path) -> None:
    """One fails against both others, which have rewards: to judge it again would change these."""
    preferred = {"reason": "so", "quotes": [], "preferred": "tie"}
    replies: dict[str, Any] = {"odd letter": "garbage", "letter": preferred}
    judge = ScriptedJudge(replies)
    with jg.Jury(
        model=judge,
        evaluators=["pairwise"],
        failure={"min_coverage": 0.5},
        record=tmp_path / "run",
    ) as jury:
        responses = ["an odd letter", "a letter", "one more letter"]
        before = [trace.reward.value for trace in jury.score(TASK, responses, step=1)]
        assert before == [None, 0.25, 0.25]
        alone = jury.score(OTHER, responses[:1] * 2, step=1)
        assert [trace.reward.value for trace in alone] == [None, None]
        replies["odd letter"] = preferred
        asked_count = len(judge.requests)
        again = jury.score(TASK, responses, step=1)
        assert [trace.reward.value for trace in again] == before
        assert len(judge.requests) == asked_count
        alone = jury.score(OTHER, responses[:1] * 2, step=1)
        assert [trace.reward.value for trace in alone] == [0.5, 0.5], "where none has a reward"
    check(tmp_path / "run").close()


def test_no_run_is_begun_around_the_record_of_a_training(tmp_path: Path) -> None:
    with jg.Jury(**CODE) as jury:
        with jury.record(tmp_path / "run" / "0"):
            jury.score(TASK, ["9"])
        message = r"run: is neither a run nor empty, and contains the run .*run/0; name another"
        with pytest.raises(jg.InputError, match=message), jury.record(tmp_path / "run"):
            pass


def test_what_a_run_was_made_with_is_what_goes_on_with_it(tmp_path: Path) -> None:
    def refuses(folder: str, message: str, **settings: Any) -> None:
        with (
            jg.Jury(**settings) as jury,
            pytest.raises(jg.InputError, match=message),
            jury.record(tmp_path / folder),
        ):
            pass

    with jg.Jury(**CODE, record=tmp_path / "open") as jury:
        jury.score(TASK, ["9"])
        refuses("open", "is being written by process", **CODE)
        with pytest.raises(jg.InputError, match=r"records into .* already"), jury.record("x"):
            pass
    with jg.Jury(**CODE) as jury, jury.record(tmp_path / "closed") as recorder:
        jury.score(TASK, ["9"])
        recorder.close_run()
        with pytest.raises(jg.InputError, match="was closed; record into another folder"):
            jury.score(TASK, ["9"])
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").touch()
    refuses(
        "open", "was started with other settings: config evaluators", evaluators=["maths.format"]
    )
    refuses("closed", "was closed, so nothing more can be recorded into it", **CODE)
    refuses("foreign", "is neither a run nor empty", **CODE)
    with jg.Jury(**CODE) as jury, jury.record(tmp_path / "nothing"):
        pass
    assert not (tmp_path / "nothing").exists(), "a recording of nothing leaves nothing behind"


def test_each_rank_writes_a_folder_and_all_are_read_as_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in ("0", "2", "10"):
        monkeypatch.setenv("RANK", rank)
        with jg.Jury(**CODE, record=f"{tmp_path}/run/{{rank}}") as jury:
            jury.score(TASK, ["9", rank])
            jury.score(OTHER, [rank], phase="test")
        check(tmp_path / "run" / rank).close()
    with Run.open(tmp_path / "run") as run:
        names = [trace.response_id for trace in run.traces()]
        assert names[:3] == ["eggs@1#0/1", "eggs@1#0/2", "hens@test:1#0/1"]
        assert names[-1] == "hens@test:1#10/1"
        assert len(list(read_stored_groups(run))) == 6
        assert run.planned_task_count == 2
        assert [item.response.text for item in run.group_of_response("eggs@1#2/2")] == ["9", "2"]
        assert run.explain("eggs@1#10/2").explained.trace.reward.value == 0.0
        assert len(run.to_pandas()) == 9
        with pytest.raises(jg.InputError, match="is a folder of runs"):
            run.origin(tmp_path)
        members = ", ".join(str(tmp_path / "run" / name) for name in ("0", "2", "10"))
        with pytest.raises(
            jg.InputError, match=f"is a folder of runs; name one of them: {members}"
        ):
            verify(run, lambda count: None)
    with jg.Jury(evaluators=["maths.format"], record=tmp_path / "run" / "11") as jury:
        jury.score(TASK, ["9"])
    with pytest.raises(jg.InputError, match=r"11: has other settings than .*0: config evaluators"):
        Run.open(tmp_path / "run")


def test_several_event_loops_and_threads_record_into_one_run(tmp_path: Path) -> None:
    """After each group, a copy of the files, as a killed process would leave them, has all that was returned."""
    folder = tmp_path / "run"
    returned: list[str] = []

    with jg.Jury(**CODE, record=folder) as jury:
        asyncio.run(jury.ascore(TASK, ["9"]))
        asyncio.run(jury.ascore(TASK, ["9"]))

        def score(number: int) -> None:
            task = TASK.model_copy(update={"id": f"eggs-{number % 5}"})
            returned.extend(ids(jury.score(task, ["9", "8"])))
            if number % 8 == 0:
                expected = set(returned)
                copy = shutil.copytree(folder, tmp_path / f"copy-{number}")
                with check(copy) as run:
                    assert expected <= {trace.response_id for trace in run.traces()}

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(score, range(40)))
    with check(folder) as run:
        stored = [trace.response_id for trace in run.traces()]
        assert len(stored) == len(set(stored)) == 82
        assert run.planned_task_count == 6


def test_two_groups_of_a_new_task_bring_its_plan_once(tmp_path: Path) -> None:
    async def score(jury: jg.Jury) -> None:
        await asyncio.gather(*(jury.ascore(TASK, [text]) for text in ("9", "8", "7")))
        # the plan is appended, and may not be in the file yet
        await asyncio.gather(*(jury.ascore(OTHER, ["4"]) for _ in range(3)))

    with jg.Jury(**CODE, record=tmp_path / "run") as jury:
        asyncio.run(score(jury))
    with check(tmp_path / "run") as run:
        assert run.ledger.count_records("task") == 2
        assert len(list(run.traces())) == 6


def test_two_tasks_in_work_with_one_id_are_told_apart(tmp_path: Path) -> None:
    other = TASK.model_copy(update={"query": "How many eggs are there?"})
    with (
        jg.Jury(**CODE, record=tmp_path / "run") as jury,
        pytest.raises(jg.InputError, match="task 'eggs' is another one, or planned otherwise"),
    ):
        list(jury.score_many([(TASK, ["9"]), (other, ["12"])]))
    with check(tmp_path / "run") as run:
        assert [trace.response_id for trace in run.traces()] == ["eggs@1/1"]


def test_a_step_is_any_whole_number_from_zero_on(tmp_path: Path) -> None:
    with jg.Jury(**CODE) as jury, jury.record(tmp_path / "run"):
        assert ids(jury.score(TASK, ["9"], step=np.int64(77))) == ["eggs@77/1"]  # type: ignore[arg-type]
        for name, value in (("step", -1), ("step", True), ("step", 1.5), ("phase", "")):
            with pytest.raises(jg.InputError, match=f"^{name}: "):
                jury.score(TASK, ["9"], **{name: value})


def test_a_group_that_is_scored_when_the_run_ends_is_told_so(tmp_path: Path) -> None:
    begun = threading.Event()
    ended = threading.Event()

    @jg.evaluator(layer="check")
    def slow(task: jg.TaskView, response: jg.Response) -> float:
        begun.set()
        return float(ended.wait(10))

    with (
        jg.Jury(evaluators=[slow]) as jury,
        jury.record(tmp_path / "run") as recorder,
        ThreadPoolExecutor(1) as thread,
    ):
        scored = thread.submit(jury.score, TASK, ["9"])
        begun.wait(10)
        recorder.close_run()
        ended.set()
        with pytest.raises(jg.InputError, match=r"this run is closed|released meanwhile"):
            scored.result()


def test_a_judge_whose_reply_could_not_be_used_is_asked_again_by_later_groups(
    tmp_path: Path,
) -> None:
    """Also after a restart, and where a group that shared the useless reply ends after it was asked again."""
    folder = tmp_path / "run"
    is_asked_again = asyncio.Event()
    replies: list[Any] = ["garbage"]

    class LateJudge(ScriptedJudge):
        async def complete(self, request: Request, timeout: float) -> Reply:
            if "late" in request.messages[1].content:
                await is_asked_again.wait()
            return await super().complete(request, timeout)

    judge = LateJudge({"polite": lambda letter: letter == "late" or replies[0]})
    criteria = [{"id": "polite", "text": "It is polite.", "weight": 1.0}]
    task = jg.Task(id="letter", query="Ask for eggs.", rubric={"criteria": criteria})

    def open_jury() -> jg.Jury:
        return jg.Jury(evaluators=["criteria"], model=judge, record=folder)

    async def score(jury: jg.Jury) -> list[float | None]:
        waiting = asyncio.create_task(jury.ascore(task, ["eggs?", "late"]))
        rewards = [(await jury.ascore(task, ["eggs?"]))[0].reward.value]
        replies[0] = True
        for _ in range(2):
            rewards.append((await jury.ascore(task, ["eggs?"]))[0].reward.value)
        is_asked_again.set()
        rewards.append((await waiting)[0].reward.value)
        return rewards

    with open_jury() as jury:
        assert asyncio.run(score(jury)) == [None, 1.0, 1.0, None]
    asked_count = len(judge.requests)
    assert asked_count == 4, "the first, its repair, the first again, and that of the late response"
    replies[0] = "garbage"
    with open_jury() as jury:
        assert jury.score(task, ["eggs?"])[0].reward.value == 1.0
        assert jury.score(task, ["six eggs?"])[0].reward.value is None
    replies[0] = True
    with open_jury() as jury:
        assert jury.score(task, ["six eggs?"])[0].reward.value == 1.0
    assert len(judge.requests) == asked_count + 3
    with check(folder) as run:
        for trace in run.traces():
            first_call = read_calls(run, trace, trace.verdicts)[0]
            assert isinstance(first_call.reply, dict)
            is_useless = "met" not in first_call.reply["text"]
            assert is_useless is (trace.verdicts[0].failure is not None), "each has its own reply"


def test_a_replay_has_the_reply_with_which_a_useless_one_was_mended(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    replies: list[Any] = ["garbage"]
    judge = ScriptedJudge({"polite": lambda letter: letter == "three" or replies[0]})
    evaluators = [jg.criteria(["It is polite."])]

    def score(jury: jg.Jury) -> list[float | None]:
        return [trace.reward.value for trace in jury.score(TASK, ["three", "nine"])]

    settings: Any = {"model": judge, "calls": {"record": str(calls)}}
    with jg.Jury(evaluators=evaluators, **settings, record=tmp_path / "run") as jury:
        assert score(jury) == [1.0, None]
        assert score(jury) == [1.0, None], "asked again, in vain"
        replies[0] = True
        assert score(jury) == score(jury) == [1.0, 1.0]
    assert len(judge.requests) == 6, "the useless one and its repair were sent twice"
    with jg.Jury(
        evaluators=evaluators, model=f"replay:{calls}", record=tmp_path / "replayed"
    ) as jury:
        assert score(jury) == [1.0, 1.0]
    check(tmp_path / "replayed").close()


def test_a_repeated_group_does_not_bring_an_earlier_useless_reply_back(tmp_path: Path) -> None:
    """It keeps its own, the first one, after which another group got a second useless one to the same request."""
    replies: list[Any] = ["garbage"]
    is_away = [True]

    class Judge(ScriptedJudge):
        async def complete(self, request: Request, timeout: float) -> Reply:
            if is_away[0] and "twelve" in request.messages[1].content:
                raise Fault("timeout", "too slow")
            return await super().complete(request, timeout)

    judge = Judge({"polite": lambda letter: replies[0]})
    settings: Any = {"model": judge, "calls": {"attempts": 1, "outage": {"wait": 0.01}}}
    with jg.Jury(
        evaluators=[jg.criteria(["It is polite."])], **settings, record=tmp_path / "run"
    ) as jury:
        jury.score(TASK, ["nine", "twelve"], step=1)
        jury.score(TASK, ["nine"], step=2)
        is_away[0] = False
        repeated = jury.score(TASK, ["nine", "twelve"], step=1)
        assert [trace.reward.value for trace in repeated] == [None, None]
        replies[0] = True
        assert jury.score(TASK, ["nine"], step=3)[0].reward.value == 1.0
    check(tmp_path / "run").close()


def test_a_recorded_run_is_rescored_like_any(tmp_path: Path) -> None:
    judge = ScriptedJudge({"polite": True, "date": False})
    criteria = jg.criteria(["It is polite.", "It has a date."])
    weights = {"criteria": 1.0, "accuracy": 1.0}
    with (
        jg.Jury(model=judge, evaluators=[criteria, "maths.accuracy"], reward=weights) as jury,
        jury.record(tmp_path / "run"),
    ):
        jury.score(TASK, ["9"])
        jury.score(TASK, ["8"])
    with Run.open(tmp_path / "run") as run:
        config = apply_settings(run.config, ["reward.accuracy=3"])
        result = rescore(run, tmp_path / "other", config, lambda count: None)
        assert result.responses == 2
    with check(tmp_path / "other") as run:
        assert len(list(run.traces())) == 2


class Chat(BaseChatModel):
    """A judge of a stranger's: it says what identifies it, and notes the parameters of each request."""

    url: str = "http://here"
    temperature: float | None = None
    max_tokens: int | None = None
    api_key: str = "sk-canary-0123456789"
    answer: bool = True
    asked: Any = None

    @property
    def _llm_type(self) -> str:
        return "chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"url": self.url, "answer": self.answer, "api_key": self.api_key}

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        self.asked.append((self.temperature, self.max_tokens))
        reply = {"reason": "so", "quotes": [], "met": self.answer, "probability": 0.75}
        message = AIMessage(json.dumps({"criterion_1": reply}))
        return ChatResult(generations=[ChatGeneration(message=message)])


def test_a_run_of_a_chat_model_goes_on_with_one_of_the_same_settings_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    asked: list[Any] = []

    def score(text: str, record: Path = folder, **fields: Any) -> None:
        model = Chat(asked=asked, **fields)
        with jg.Jury(
            model=model, evaluators=[jg.criteria(["It is polite."])], record=record
        ) as jury:
            jury.score(TASK, [text], step=len(text))

    score("nine", temperature=0.7, max_tokens=4000)
    score("nine eggs", temperature=0.7, max_tokens=4000, api_key="sk-another-0123456789")
    assert set(asked) == {(0.7, 4000)}, "they hold, as the config names no other"
    calls = tmp_path / "calls.jsonl"
    model = Chat(asked=asked, temperature=0.7, max_tokens=4000)
    for judge, settings in ((model, {"record": str(calls)}), (f"replay:{calls}", {})):
        with jg.Jury(
            model=judge, evaluators=[jg.criteria(["It is polite."])], calls=settings
        ) as jury:
            assert jury.score(TASK, ["nine"])[0].reward.value is not None
    asked.clear()
    others: list[tuple[dict[str, Any], str]] = [
        ({"url": "http://there"}, r'settings\.url "sha256:\w+" in the run and "sha256:'),
        ({"answer": False}, r"settings\.answer true in the run and false here"),
        ({"temperature": 0.9}, r"settings\.temperature 0\.7 in the run and 0\.9 here"),
    ]
    for change, problem in others:
        fields = {"temperature": 0.7, "max_tokens": 4000, **change}
        with pytest.raises(jg.InputError, match=f"the model behind Chat has the {problem}"):
            score("nine", **fields)
    assert not asked
    with check(folder) as run:
        assert "canary" not in run.header.model_dump_json()
        assert [trace.calls[0].parameters["temperature"] for trace in run.traces()] == [0.7, 0.7]
        header = run.header
    assert header.model is not None
    model = header.model.model_copy(update={"settings": None})
    with_own_parameters = header.model_copy(update={"model": model})
    model = model.model_copy(update={"own_parameters": None})
    of_earlier_version = header.model_copy(update={"model": model})
    (problem,) = differences(of_earlier_version, header)
    assert (
        'own_parameters none in the run and {"temperature": 0.7, "max_tokens": 4000} here'
        in problem
    )
    assert not list(differences(with_own_parameters, header)), "compared as before"
