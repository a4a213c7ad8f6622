"""Members of a group that come in separate requests are scored as one, however they come and go."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.runs.run import Run
from jurygraph.studies.monitor import LabelledSteps, iter_scored_groups
from tests.server.conftest import TASK, HeldJudge, Served, serving


@jg.evaluator(layer="check", scope="group")
def longest(task: jg.TaskView, responses: list[jg.Response]) -> list[float]:
    """One for the longest response, else the share of its length."""
    most = max(len(response.text) for response in responses)
    return [len(response.text) / most for response in responses]


COMPARES = {"evaluators": [longest]}


def _member(text: str, **fields: Any) -> dict[str, Any]:
    return {"task": TASK, "responses": [text], "cohort": {"size": 2}, **fields}


async def _members(served: Served, count: int) -> None:
    """Wait until so many members wait for others."""
    while served.server._service.cohorts.waiting_member_count < count:
        await asyncio.sleep(0)


async def _together(served: Served, *bodies: Any) -> list[tuple[int, Any]]:
    return await asyncio.gather(*(served.post("/v1/score", body) for body in bodies))


def test_a_group_that_is_split_over_requests_is_scored_as_one() -> None:
    async def split() -> None:
        async with serving(config=COMPARES) as served:
            _, whole = await served.score("aaaa", "a")
            (_, first), (_, second) = await _together(served, _member("a"), _member("aaaa"))
            assert (whole["rewards"], first["rewards"], second["rewards"]) == (
                [1.0, 0.25],
                [0.25],
                [1.0],
            )
            groups = {reply["traces"][0]["group"] for reply in (whole, first, second)}
            assert len(groups) == 1
            status, refused = await served.score("a")
            assert (status, "--group-size" in refused["error"]) == (422, True)

    asyncio.run(split())


def test_the_members_that_others_wait_for_are_taken_from_a_server_that_is_full() -> None:
    async def fill() -> None:
        async with serving(config=COMPARES, max_open_requests=1) as served:
            first = asyncio.ensure_future(served.post("/v1/score", _member("a")))
            await _members(served, 1)
            for other in (
                _member("aa", step=2),
                {"task": TASK, "responses": ["a", "aa"]},
            ):
                assert (await served.post("/v1/score", other))[0] == 429
            assert (await served.post("/v1/score", _member("aa", step="x")))[0] == 422
            assert (await served.post("/v1/score", _member("aa")))[1]["rewards"] == [1.0]
            assert (await first)[1]["rewards"] == [0.5]

    asyncio.run(fill())


def test_equal_answers_are_two_members_and_each_epoch_has_a_cohort_of_its_own() -> None:
    async def repeat() -> None:
        async with serving(config=COMPARES, group_size=2) as served:
            for _ in range(2):
                sample = {"prompt": "Write to Ann.", "response": "aa", "label": None}
                replies = await asyncio.gather(*(served.post("/rm", sample) for _ in range(2)))
                assert replies == [(200, 1.0), (200, 1.0)]
            assert served.server._service.counts.groups == 2

    asyncio.run(repeat())


def test_members_that_are_late_are_told_so_and_change_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def be_late() -> None:
        async with serving(config=COMPARES) as served:
            of_three = {"step": 3, "cohort": {"size": 3}}
            early = [
                asyncio.ensure_future(
                    served.post("/v1/score", _member(text, **of_three), **{"Idempotency-Key": text})
                )
                for text in ("aaaa", "aa")
            ]
            await _members(served, 2)
            served.timers.pass_time(50)
            replies = await asyncio.gather(*early)
            assert [reply["rewards"] for _, reply in replies] == [[1.0], [0.5]]
            present = "'letter' at step 3 is scored with 2 of 3 members after 50 s"
            assert present in caplog.text
            async with served.client.get("/metrics") as metrics:
                assert "jurygraph_incomplete_cohorts_total 1" in await metrics.text()
            status, late = await served.post("/v1/score", _member("aaaaaaaa", **of_three))
            assert (status, "2 of 3 members" in late["error"]) == (409, True)
            again = _member("aaaa", **of_three)
            key = {"Idempotency-Key": "aaaa"}
            assert await served.post("/v1/score", again, **key) == replies[0]
            assert served.server._service.counts.groups == 1

    asyncio.run(be_late())


def test_without_a_step_those_who_are_late_do_not_join_the_next_epoch() -> None:
    async def be_late() -> None:
        async with serving(config=COMPARES, group_size=3) as served:

            def send(text: str) -> "asyncio.Task[tuple[int, Any]]":
                sample = {"prompt": "Write to Ann.", "response": text, "label": None}
                return asyncio.ensure_future(served.post("/rm", sample))

            early = [send("aaaa"), send("aa")]
            await _members(served, 2)
            served.timers.pass_time(50)
            assert await asyncio.gather(*early) == [(200, 1.0), (200, 0.5)]
            assert (await send("a"))[0] == 409
            assert (await send("a"))[0] == 409  # it came again
            epoch = await asyncio.gather(*map(send, ("bb", "bbbb", "b")))
            assert epoch == [(200, 0.5), (200, 1.0), (200, 0.25)]

    asyncio.run(be_late())


class FailingJudge(HeldJudge):
    """Has no answer to `5 words` while it fails."""

    fails = True

    async def complete(self, request: Request, timeout: float) -> Reply:
        reply = await super().complete(request, timeout)
        if self.fails and any("5 words" in message.content for message in request.messages):
            raise Fault("server", "503")
        return reply


async def _alone(served: Served, body: Any) -> tuple[int, Any]:
    """Send a member whose others do not come."""
    reply = asyncio.ensure_future(served.post("/v1/score", body))
    await _members(served, 1)
    served.timers.pass_time(50)
    return await reply


def test_members_whose_rewards_failed_are_judged_once_when_they_come_again(tmp_path: Path) -> None:
    async def come_again() -> None:
        judge = FailingJudge()
        async with serving(judge) as served:
            with served.jury.record(tmp_path / "run"):
                failed, judged = (_member(text, step=1) for text in ("5 words", "7 words"))
                replies = await _together(served, failed, judged)
                assert [reply["rewards"] for _, reply in replies] == [[None], [0.07]]
                await _together(served, *(_member("7 words", step=2) for _ in range(2)))
                judge.fails = False
                replies = await _together(served, judged, failed)
                assert [reply["rewards"] for _, reply in replies] == [[0.07], [0.05]]
                assert (await _alone(served, failed))[1]["rewards"] == [0.05]
                assert len(judge.requests) == 3
                assert served.server._service.cohorts.incomplete_count == 0, "it was complete"

    asyncio.run(come_again())
    steps = LabelledSteps(tmp_path / "run", "step")
    assert [len(step.groups) for step in steps] == [1, 1]
    assert steps.notes == [], "what replaces a group is no step that recurs"


def test_a_group_counts_once_in_however_many_parts_and_however_often_it_comes(
    tmp_path: Path,
) -> None:
    def half(*texts: str, step: int) -> dict[str, Any]:
        return _member("", step=step, cohort={"size": 4}) | {"responses": texts}

    def figures(served: Served) -> tuple[int, ...]:
        service = served.server._service
        counts = service.counts
        incomplete_count = service.cohorts.incomplete_count
        return (
            counts.groups,
            counts.rewards,
            counts.failed_rewards,
            counts.filled_rewards,
            incomplete_count,
        )

    async def come_in_parts() -> None:
        async with serving(FailingJudge(), failed="neutral") as served:
            with served.jury.record(tmp_path / "run"):
                halves = half("5 words", "7 words", step=1), half("5 words", "9 words", step=1)
                for _ in range(2):
                    replies = await _together(served, *halves)
                    assert [reply["rewards"] for _, reply in replies] == [
                        [0.08, 0.07],
                        [0.08, 0.09],
                    ]
                    assert figures(served) == (1, 4, 2, 2, 0)
                early, late = half("1 words", "2 words", step=2), half("3 words", "4 words", step=2)
                for body, status in ((early, 200), (late, 409), (early, 200), (late, 409)):
                    assert (await _alone(served, body))[0] == status
                    assert figures(served) == (2, 6, 2, 2, 1)
                    served.timers.pass_time(50)  # the cohort is forgotten

    asyncio.run(come_in_parts())


def _group(texts: Sequence[str], **fields: Any) -> list[dict[str, Any]]:
    return [_member(text, step=77, cohort={"size": 3}) | fields for text in texts]


async def _rewards(served: Served, texts: Sequence[str], **fields: Any) -> list[Any]:
    replies = await _together(served, *_group(texts, **fields))
    return [content.get("rewards", content) for _, content in replies]


async def _visit(run: Path, visit: Callable[[Served], Awaitable[None]]) -> None:
    """Let a trainer visit a server that begins, or goes on with, a run."""
    async with serving(config=COMPARES) as served:
        with served.jury.record(run):
            await visit(served)


@pytest.mark.parametrize("is_server_restarted", [False, True])
def test_a_step_that_recurs_has_its_rewards_and_other_responses_are_the_next_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_server_restarted: bool
) -> None:
    old = ["aaaa", "aa", "aa"]

    async def train(served: Served) -> None:
        assert await _rewards(served, old) == [[1.0], [0.5], [0.5]]
        assert await _rewards(served, ["aaaa"] * 3, policy="eval") == [[1.0]] * 3

    async def repeat_the_same(served: Served) -> None:
        assert await _rewards(served, ["aa", "aaaa", "aa"]) == [[0.5], [1.0], [0.5]]
        together = {"task": TASK, "responses": ["aa", "aa", "aaaa"], "step": 77}
        for whole in (together, together | {"cohort": {"size": 3}}):
            assert (await served.post("/v1/score", whole))[1]["rewards"] == [0.5, 0.5, 1.0]
        (lost,) = _group(["aa"])
        assert (await _alone(served, lost))[1]["rewards"] == [0.5], "one of three, by its group"
        named = together | {
            "responses": [{"id": f"letter@77/{n}", "text": "new"} for n in (1, 2, 3)]
        }
        status, refused = await served.post("/v1/score", named)
        assert (status, "leave its id out" in refused["error"]) == (422, True)
        assert "session 2" not in caplog.text, "what is refused begins none"

    async def go_back_to_a_checkpoint(served: Served) -> None:
        assert await _rewards(served, ["a", "aa", "a"]) == [[0.5], [1.0], [0.5]], (
            "one is an old one"
        )
        assert await _rewards(served, old) == [[1.0], [0.5], [0.5]], "still the first session's"
        assert await _rewards(served, ["bbbb", "b", "b"], step=78) == [[1.0], [0.25], [0.25]]
        assert await _rewards(served, ["c"] * 3, policy="eval") == [[1.0]] * 3
        assert await _rewards(served, ["aa", "a", "a"]) == [[1.0], [0.5], [0.5]]

    async def run_all() -> None:
        visits = [train, repeat_the_same, go_back_to_a_checkpoint, go_back_to_a_checkpoint]
        if is_server_restarted:
            for visit in visits:
                await _visit(tmp_path / "run", visit)
            return

        async def all_visits(served: Served) -> None:
            for visit in visits:
                await visit(served)

        await _visit(tmp_path / "run", all_visits)

    asyncio.run(run_all())
    assert caplog.text.count("session 2 of the training begins") == 1
    assert "session 3" not in caplog.text
    assert "of 3 members" not in caplog.text, "none is incomplete"
    with Run.open(tmp_path / "run") as run:
        assert run.session_count == 2
        names = ("77", "eval:77", "session=2:77", "session=2:78", "eval,session=2:77")
        expected = [f"letter@{name}/{number}" for name in names for number in (1, 2, 3)]
        assert [trace.response_id for trace in run.traces()] == expected
        assert run.find_trace("letter@session=2:78/1").labels == {"session": 2, "step": 78}
    notes: list[str] = []
    assert len(list(iter_scored_groups(tmp_path / "run", notes=notes))) == 3
    assert notes == ["2 groups of evaluations (label phase=eval) left out"]


def test_a_member_that_is_sent_again_is_joined() -> None:
    async def come_again() -> None:
        judge = HeldJudge(is_held=True)
        async with serving(judge) as served:
            first = asyncio.ensure_future(served.post("/v1/score", _member("7 words", step=1)))
            await _members(served, 1)
            served.timers.pass_time(100)  # the request's deadline, and that of its cohort
            assert (await first)[0] == 503
            again = asyncio.ensure_future(served.post("/v1/score", _member("7 words", step=1)))
            await judge.asked.wait()
            judge.released.set()
            status, content = await again
            assert (status, content["rewards"], len(judge.requests)) == (200, [0.07], 1)

    asyncio.run(come_again())


def test_a_failed_member_has_the_mean_of_its_cohort_where_the_protocol_has_no_mask() -> None:
    async def fail() -> None:
        rubric = {"task_defaults": {"rubric": TASK["rubric"]}}
        async with serving(group_size=3, config=rubric) as served:

            def send(text: str) -> Any:
                sample = {"query": [f"Write: {text}"], "prompts": ["Write: "], "labels": [None]}
                return served.post("/get_reward", sample)

            texts = ("25 words", "nonsense", "75 words")
            replies = await asyncio.gather(*map(send, texts))
            assert [reply["rewards"][0] for _, reply in replies] == [0.25, 0.5, 0.75]
            assert [reply["extra_logs"]["filled"] for _, reply in replies] == [[0.0], [1.0], [0.0]]

            def verify(text: str) -> Any:
                response = {"output": [{"content": text}]}
                prompt = {"input": "Write: "}
                row = {"responses_create_params": prompt, "response": response}
                return served.post("/verify", row)

            rows = await asyncio.gather(*map(verify, texts))
            assert [row["reward_components"] for _, row in rows] == [
                {"rubric": 0.25},
                {"rubric": 0.5},
                {"rubric": 0.75},
            ]
            replies = await asyncio.gather(*(send("nonsense") for _ in range(3)))
            assert [status for status, _ in replies] == [503] * 3
        async with serving(config=rubric) as served:
            status, refused = await send("nonsense")
            assert (status, "`auto` without a cohort is `raise`" in refused["error"]) == (503, True)

    asyncio.run(fail())


def test_members_name_one_size_and_one_text_for_each_id() -> None:
    async def contradict() -> None:
        async with serving(config=COMPARES) as served:
            member = {"id": "a", "text": "aaaa"}
            body = _member("", step=1) | {"responses": [member]}
            first = asyncio.ensure_future(served.post("/v1/score", body))
            await _members(served, 1)
            other_size = body | {"cohort": {"size": 3}, "responses": ["b"]}
            same_id = body | {"responses": [{"id": "a", "text": "b"}]}
            too_many = body | {"responses": ["b", "c"]}
            for wrong, message in (
                (other_size, "has size 2, not 3"),
                (same_id, "has a response 'a' already"),
                (too_many, "room for 1"),
            ):
                status, content = await served.post("/v1/score", wrong)
                assert (status, message in content["error"]) == (409, True), content
            assert (await served.post("/v1/score", _member("bb", step=1)))[0] == 200
            assert (await first)[1]["rewards"] == [1.0]

    asyncio.run(contradict())
