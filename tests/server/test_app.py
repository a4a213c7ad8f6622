"""What a client of the server gets: rewards once, a refusal with its reason, and never a reward by accident."""

import asyncio
import json
from math import nan
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.plans_file import PlannedTask, PlansFile
from tests.command import run_command
from tests.pages import blocks, read_page
from tests.schema.json_schema import faults
from tests.server.conftest import TASK, HeldJudge, Served, serving


@pytest.mark.parametrize("group_size", [None, 2])  # of protocols that name no cohort
def test_of_requests_that_come_twice_at_once_none_is_lost_or_judged_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, group_size: int | None
) -> None:
    async def score_all() -> None:
        judge = HeldJudge(is_held=True)
        async with serving(judge, group_size=group_size) as served:
            with served.jury.record(tmp_path / "run"):
                numbers = [*range(100), *range(100)]
                requests = [
                    asyncio.ensure_future(
                        served.post(
                            "/v1/score",
                            {"task": TASK, "responses": [f"{number} words"]},
                            # some have a key, the others are known by their body
                            **({"Idempotency-Key": str(number)} if number % 2 else {}),
                        )
                    )
                    for number in numbers
                ]
                await served.open_requests(200)
                judge.released.set()
                replies = await asyncio.gather(*requests)
                again = await served.post(
                    "/v1/score",
                    {"task": TASK, "responses": ["1 words"]},
                    **{"Idempotency-Key": "1"},
                )
            assert [status for status, _ in replies] == [200] * 200
            rewards = [reply["rewards"] for _, reply in replies]
            assert rewards == [[number / 100] for number in numbers]
            assert again == replies[1]
            assert len(judge.requests) == 100

    asyncio.run(score_all())
    with Run.open(tmp_path / "run") as run:
        assert len(list(run.traces())) == 100
    assert caplog.text.count("have no step") == 1


def test_step_and_policy_are_labels_of_what_is_stored(tmp_path: Path) -> None:
    async def score() -> None:
        async with serving(HeldJudge()) as served:
            with served.jury.record(tmp_path / "run"):
                named = {"text": "2 words", "labels": {"step": "own"}}
                body = {"task": TASK, "responses": ["1 words", named], "step": 7, "policy": "p"}
                await served.post("/v1/score", body)
                await served.post("/v1/score", {"task": TASK, "responses": ["3 words"]})

    asyncio.run(score())
    with Run.open(tmp_path / "run") as run:
        labels = [trace.labels for trace in run.traces()]
    assert labels == [{"step": 7, "policy": "p"}, {"step": "own", "policy": "p"}, {}]


def test_one_request_more_than_allowed_is_refused_at_once() -> None:
    async def overload() -> None:
        judge = HeldJudge(is_held=True)
        async with serving(judge, max_open_requests=2) as served:
            accepted = [asyncio.ensure_future(served.score(f"{number} words")) for number in (1, 2)]
            await served.open_requests(2)
            body = {"task": TASK, "responses": ["3 words"]}
            async with served.client.post("/v1/score", json=body) as refused:
                assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
            judge.released.set()
            statuses = [status for status, _ in await asyncio.gather(*accepted)]
            assert statuses == [200, 200]
            assert len(judge.requests) == 2

    asyncio.run(overload())


@pytest.mark.parametrize("rubric", ["It is kind.\nIt is short.", ["It is kind.", "It is short."]])
def test_a_rubric_may_be_lines_or_a_list_as_a_trainer_gives_it(rubric: Any) -> None:
    task = {"query": "Write to Ann.", "rubric": rubric}
    output = {"output": [{"content": [{"type": "output_text", "text": "9 words"}]}]}
    row = {"responses_create_params": {"input": task["query"]}, "response": output}

    async def score() -> None:
        async with serving(HeldJudge()) as served:
            status, scored = await served.post(
                "/v1/score", {"task": task, "responses": ["9 words"]}
            )
            assert (status, scored["rewards"]) == (200, [0.09])
            names = [verdict["about"] for verdict in scored["traces"][0]["verdicts"]]
            assert len(names) == 2
            label = json.dumps({"rubric": rubric})
            body = {"prompt": task["query"], "response": "9 words", "label": label}
            assert await served.post("/rm", body) == (200, 0.09)
            status, verified = await served.post("/verify", {**row, "rubric": rubric})
            assert (status, verified["reward"]) == (200, 0.09)

    asyncio.run(score())


def test_the_page_scores_a_rubric_in_lines() -> None:
    class PoliteJudge(HeldJudge):
        @staticmethod
        def _answer_text(text: str) -> Any:
            return 0.9

    (body,) = blocks(read_page("docs/serving.md"), "json")

    async def score() -> None:
        async with serving(PoliteJudge()) as served:
            status, scored = await served.post("/v1/score", body)
            assert (status, scored["rewards"]) == (200, [0.9])
            assert len(scored["traces"][0]["verdicts"]) == 2

    asyncio.run(score())


FILE = {**TASK, "facts": {"tables": {"towns": {"key": ["name"], "file": "/etc/passwd"}}}}
OUTPUT = {"output": [{"content": "1 word"}]}
ASKED = {"responses_create_params": {"input": "Write to Ann."}}
REFUSALS: list[tuple[str, Any, dict[str, str], int, str]] = [
    ("/v1/score", "{", {}, 400, "no JSON"),
    ("/v1/score", b"\xff", {}, 400, "no JSON"),
    ("/v1/score", b"{}", {"Content-Encoding": "gzip"}, 400, "not encoded as its headers say"),
    ("/v1/score", '{"task": 1, "task": 2}', {}, 400, "occurs twice"),
    ("/v1/score", "[" * 100 + "]" * 100, {}, 400, "levels"),
    ("/v1/score", "[" * 100_000, {}, 400, "levels"),
    ("/v1/score", {"responses": ["1 word"]}, {}, 422, "task: is missing"),
    ("/v1/score", {"task": TASK, "responses": []}, {}, 422, "responses: has 0 entries"),
    ("/v1/score", {"task": TASK, "responses": [1]}, {}, 422, "responses[0]"),
    ("/v1/score", {"task": TASK, "responses": [[]]}, {}, 422, "with its `text` or `messages`"),
    ("/v1/score", {"task": TASK, "responses": [{"txt": "a"}]}, {}, 422, "responses[0].txt"),
    ("/v1/score", {"task": {**TASK, "url": "x"}, "responses": ["a"]}, {}, 422, "task.url: unknown"),
    ("/v1/score", {"task": {"rubric": 1}, "responses": ["a"]}, {}, 422, "task.query: is missing"),
    (
        "/v1/score",
        {"task": {"query": "q", "rubric": [{"nope": 1}]}, "responses": ["a"]},
        {},
        422,
        "task.rubric.criteria[0].nope: unknown",
    ),
    ("/v1/score", {"task": TASK, "responses": ["a"], "model": "x"}, {}, 422, "model: unknown"),
    ("/v1/score", {"task": TASK, "responses": ["a"], "config": {}}, {}, 422, "config: unknown"),
    ("/v1/score", {"task": FILE, "responses": ["a"]}, {}, 422, "facts.tables.towns.file"),
    ("/v1/score", {"task_id": "other", "responses": ["a"]}, {}, 422, "there is no task 'other'"),
    ("/v1/score", {"task": TASK, "responses": ["a"] * 9}, {}, 413, "more than 8 responses"),
    ("/v1/score", {"task": TASK, "responses": ["a" * 5000]}, {}, 413, "Maximum request body"),
    ("/get_reward", {"query": ["ab"], "prompts": ["b"]}, {}, 422, "does not begin with its prompt"),
    ("/get_reward", {"query": ["a"], "prompts": []}, {}, 422, "give each sample one of each"),
    ("/v1/scores", {}, {}, 404, "there is no '/v1/scores'; did you mean /v1/score?"),
    ("/healthz", {}, {}, 405, "/healthz: is not for POST; use GET"),
    ("/rm", {"prompt": "a"}, {}, 422, "response: is missing"),
    ("/verify", {"responses_create_params": {}, "response": {}}, {}, 422, "response.output"),
    (
        "/verify",
        {"responses_create_params": {"input": 5}, "response": OUTPUT},
        {},
        422,
        "input: is",
    ),
    ("/verify", {**ASKED, "response": {"output": 5}}, {}, 422, "response.output: is the number 5"),
    ("/verify", {**ASKED, "response": {"output": [{"content": {"a": 1}}]}}, {}, 422, "content is"),
    (
        "/v1/score",
        '{"task": {"id": "a", "query": "?", "metadata": {"\\ud800": 1}}, "responses": ["a"]}',
        {},
        422,
        "half of a surrogate pair",
    ),
    ("/v1/score", {"task": TASK, "responses": ["a"]}, {"Authorization": ""}, 401, "Bearer"),
    ("/v1/score", {"task": TASK, "responses": ["a"]}, {"Authorization": "Bearer x"}, 403, "token"),
]


def test_what_is_malformed_or_not_allowed_never_reaches_a_judge() -> None:
    async def send_all() -> None:
        limits = {"max_body_bytes": 4096 * 48, "max_responses": 8}
        async with serving(token="secret", **limits) as served:
            for path, body, headers, status, message in REFUSALS:
                if status == 413 and "body" in message:
                    body = {"task": TASK, "responses": ["a" * limits["max_body_bytes"]]}
                allowed = {"Authorization": "Bearer secret"}
                replied, content = await served.post(path, body, **{**allowed, **headers})
                assert replied == status, (path, body, content)
                assert message in content["error"], (path, content)
            assert not served.judge.requests
            allowed_header = {"Authorization": "Bearer secret"}
            async with served.client.get("/metrics", headers=allowed_header) as metrics:
                malformed_count = [row[3] for row in REFUSALS].count(400)
                counted = f'requests_total{{path="/v1/score",status="400"}} {malformed_count}\n'
                assert counted in await metrics.text()
            status, _ = await served.post(
                "/v1/score",
                {"task": TASK, "responses": ["1 word"]},
                Authorization="Bearer secret",
            )
            assert (status, len(served.judge.requests)) == (200, 1)

    asyncio.run(send_all())


def test_on_loopback_only_its_own_names_and_no_other_page_may_ask() -> None:
    async def ask() -> None:
        body = {"task": TASK, "responses": ["1 word"]}
        async with serving() as served:
            for header, value in (("Host", "evil.example"), ("Origin", "http://evil.example")):
                assert (await served.post("/v1/score", body, **{header: value}))[0] == 403
            assert not served.judge.requests
        async with serving(token="secret") as served:  # such as 0.0.0.0, which has every name
            named = {"Host": "gpu-7:80", "Authorization": "Bearer secret"}
            assert (await served.post("/v1/score", body, **named))[0] == 200
            for path, status in (("/healthz", 200), ("/readyz", 401)):  # a probe has no token
                async with served.client.get(path, headers={"Authorization": ""}) as probed:
                    assert probed.status == status

    asyncio.run(ask())


def test_a_key_belongs_to_one_body() -> None:
    async def send_twice() -> None:
        async with serving() as served:
            key = {"Idempotency-Key": "a"}
            body = {"task": TASK, "responses": ["1 word"]}
            assert (await served.post("/v1/score", body, **key))[0] == 200
            other = {"task": TASK, "responses": ["2 words"]}
            status, content = await served.post("/v1/score", other, **key)
            assert (status, "another body" in content["error"]) == (409, True)

    asyncio.run(send_twice())


def test_after_its_deadline_a_request_has_a_503_and_later_its_reward() -> None:
    async def wait_too_long() -> None:
        judge = HeldJudge(is_held=True)
        async with serving(judge) as served:
            first = asyncio.ensure_future(served.score("5 words"))
            await judge.asked.wait()
            served.timers.pass_time(100)
            status, content = await first
            assert (status, "not scored within 100 s" in content["error"]) == (503, True)
            judge.released.set()
            status, content = await served.score("5 words")
            assert (status, content["rewards"], len(judge.requests)) == (200, [0.05], 1)

    asyncio.run(wait_too_long())


LETTER = {"prompts": ["Write to Ann. "], "labels": ["letter"]}


def _openrlhf(text: str) -> dict[str, Any]:
    return {"query": [f"Write to Ann. {text}"], **LETTER}


def _slime(text: str) -> dict[str, Any]:
    return {"prompt": "Write to Ann. ", "response": text, "label": "letter"}


def _gym(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    output = [{"type": "message", "role": "assistant", "content": [part]}]
    create = {"input": "Write to Ann. "}
    return {
        "responses_create_params": create,
        "response": {"output": output},
        "task_id": "letter",
        "index": 7,
    }


class Letters(PlansFile):
    """The planned task of the tests, as `--tasks` gives it."""

    ids = ("letter",)

    def __init__(self) -> None:
        self.planned: PlannedTask | None = None

    def get(self, task_id: str) -> Any:
        return self.planned if task_id == "letter" else None


async def _plan_letters(served: Served, letters: Letters) -> None:
    task = jg.Task(**TASK)
    letters.planned = PlannedTask(task=task, plan=await served.jury.aprepare(task))


FAILED = [
    # setting, path, body, status, where the reward is, its value
    (None, "/v1/score", {"task_id": "letter", "responses": ["nonsense"]}, 200, [None]),
    (None, "/get_reward", _openrlhf("nonsense"), 503, None),
    (None, "/rm", _slime("nonsense"), 503, None),
    (None, "/verify", _gym("nonsense"), 503, None),
    ("none", "/get_reward", _openrlhf("nonsense"), 503, None),
    ("mask", "/rm", _slime("nonsense"), 503, None),
    ("mask", "/verify", _gym("nonsense"), 200, 0.0),
    ("neutral", "/rm", _slime("nonsense"), 503, None),
    (
        "neutral",
        "/v1/score",
        {"task_id": "letter", "responses": ["9 a", "nonsense"]},
        200,
        [0.09] * 2,
    ),
    ("raise", "/v1/score", {"task_id": "letter", "responses": ["9 a", "nonsense"]}, 503, None),
    (-1.0, "/rm", _slime("nonsense"), 200, -1.0),
    (-1.0, "/get_reward", _openrlhf("nonsense"), 200, [-1.0]),
]


def test_a_failed_judgement_is_a_503_or_what_the_rule_says() -> None:
    async def fail(rule: Any, path: str, body: Any, status: int, reward: Any) -> None:
        letters = Letters()
        async with serving(tasks=letters, failed=rule) as served:
            await _plan_letters(served, letters)
            replied, content = await served.post(path, body)
            assert replied == status, (rule, path, content)
            if path == "/verify" and status == 200:
                assert content["instance_config"] == {"mask_sample": True}
                assert content["reward_components"] == {"rubric": 0.0}  # masked, as its reward
                assert content["_ng_failure_class"] == "judge_failed"
                assert content["index"] == 7
            if status == 503:
                assert ": field criterion_1.probability: is missing" in content["error"]
            if status == 200:
                found = content
                if isinstance(content, dict):
                    found = content.get("rewards", content.get("reward"))
                assert found == reward, (rule, path, content)

    async def fail_all() -> None:
        for row in FAILED:
            await fail(*row)

    asyncio.run(fail_all())


def test_with_tasks_a_label_is_the_id_of_the_prompts_task_and_no_reference() -> None:
    async def mistake() -> None:
        letters = Letters()
        async with serving(tasks=letters) as served:
            await _plan_letters(served, letters)
            for body, problem in (
                (
                    {**_slime("9 a"), "label": "leter"},
                    "label: there is no task 'leter'; did you mean letter?",
                ),
                ({**_slime("9 a"), "label": None}, "there is no task"),
                ({**_slime("9 a"), "prompt": "Write to Bob."}, "has another query than the prompt"),
                (
                    {**_gym("9 a"), "task_id": "leter"},
                    "task_id: there is no task 'leter'; did you mean letter?",
                ),
            ):
                path = "/verify" if "task_id" in body else "/rm"
                status, content = await served.post(path, body)
                assert (status, problem in content["error"]) == (422, True), content
            assert not served.judge.requests
            templated = {**_slime("9 a"), "prompt": "<user>Write to Ann.</user>"}
            assert await served.post("/rm", templated) == (200, 0.09)

    asyncio.run(mistake())


def test_three_groups_without_a_reward_are_an_outage_until_there_is_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        async with serving() as served:

            async def fail_group(number: int) -> int:
                task = {**TASK, "id": f"letter {number}"}
                status, _ = await served.score(f"nonsense {number}", "nonsense", task=task)
                return status

            async def is_ready() -> bool:
                async with served.client.get("/readyz") as ready:
                    return ready.status == 200

            assert (await served.score("1 word"))[0] == 200
            # a group that is sent again, and one after a judged response, say nothing of the judge
            assert [await fail_group(0) for _ in range(4)] == [200] * 4
            assert await fail_group(1) == 200
            assert (await served.score("2 words"))[0] == 200
            assert [await fail_group(number) for number in (0, 1)] == [200, 200]
            assert await is_ready()
            assert [await fail_group(number) for number in (2, 0)] == [503, 503]
            assert not await is_ready()
            assert (await served.score("1 word", "2 words"))[0] == 200
            for path in ("/readyz", "/healthz"):
                async with served.client.get(path) as up:
                    assert up.status == 200

    asyncio.run(fail())
    hint = "; with --out, `jurygraph show RUN --status failed` lists the responses"
    assert [record.getMessage() for record in caplog.records] == [
        f"criteria: a judgement failed (malformed, cause response), the last of response 'letter 0/1'{hint}",
        f"criteria: 10 judgements so far failed (malformed, cause response), the last of response 'letter 1/2'{hint}",
        "no rewards at present (NoRewardError); /readyz has the reason",
    ]


def test_a_server_whose_requests_wait_for_the_judges_server_is_not_ready_until_it_answers() -> None:
    class AbsentJudge(HeldJudge):
        async def complete(self, request: Request, timeout: float) -> Reply:
            if not self.released.is_set():
                self.asked.set()
                refused = Fault("connection", "refused")
                refused.is_unsent = True
                raise refused
            return await super().complete(request, timeout)

    async def wait() -> None:
        judge = AbsentJudge(is_held=True)
        config = {"calls": {"cache": False, "outage": {"after": 1}}}
        async with serving(judge, config=config, deadline=1.0) as served:
            waiting = asyncio.ensure_future(served.score("1 word"))
            await judge.asked.wait()
            await asyncio.sleep(0)
            problem = "has not answered for"
            async with served.client.get("/readyz") as ready:
                assert (ready.status, problem in await ready.text()) == (503, True)
            async with served.client.get("/metrics") as metrics:
                assert "jurygraph_judge_outage 1" in await metrics.text()
            served.timers.pass_time(1.0)
            status, reply = await waiting
            assert (status, problem in reply["error"]) == (503, True)
            judge.released.set()
            served.timers.pass_time(60.0)
            assert (await served.score("2 words"))[0] == 200
            async with served.client.get("/readyz") as ready:
                assert ready.status == 200

    asyncio.run(wait())


def test_every_interface_gives_the_bits_of_the_command(tmp_path: Path) -> None:
    texts = ["3 words", "77 words of it"]
    responses = [{"id": f"r{index}", "text": text} for index, text in enumerate(texts)]
    line = {**TASK, "query": "Write to Ann. ", "responses": responses}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(line))
    (tmp_path / "jury.yaml").write_text("evaluators: [lettered.worth]\nreward: {worth: 0.3}\n")
    (tmp_path / "lettered.py").write_text(WORTH)
    run_command("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        expected = [trace.reward.value for trace in run.traces()]

    async def ask() -> None:
        namespace: dict[str, Any] = {}
        exec(WORTH, namespace)
        letters = Letters()
        judged = {"evaluators": [namespace["worth"]], "reward": {"worth": 0.3}}
        async with serving(tasks=letters, config=judged) as served:
            await _plan_letters(served, letters)
            _, scored = await served.post("/v1/score", {"task_id": "letter", "responses": texts})
            assert scored["rewards"] == expected
            for text, reward in zip(texts, expected, strict=True):
                _, openrlhf = await served.post("/get_reward", _openrlhf(text))
                _, slime = await served.post("/rm", _slime(text))
                _, gym = await served.post("/verify", _gym(text))
                assert [openrlhf["rewards"], slime, gym["reward"]] == [[reward], reward, reward]

    asyncio.run(ask())


MIXED = {
    "evaluators": [
        {"use": "maths.accuracy", "if_missing": "not_applicable"},
        {"use": "criteria", "if_missing": "not_applicable"},
    ],
    "reward": {"accuracy": 1.0, "rubric": 1.0},
}


def test_every_reply_names_all_components_which_trainers_take_of_the_first() -> None:
    rubric = {"rubric": TASK["rubric"]}
    samples: list[tuple[dict[str, Any], str, list[float | None], list[float]]] = [
        # the task's fields, text, values as /get_reward and as /verify have them
        ({"reference": "9"}, "9 words", [1.0, None], [1.0, 0.0]),
        (rubric, "9 words", [None, 0.09], [0.0, 0.09]),
        (rubric, "nonsense", [None, None], [-1.0, -1.0]),
    ]

    async def compare() -> None:
        async with serving(config=MIXED, failed=-1.0) as served:
            for fields, text, logged_values, components in samples:
                sample = _openrlhf(text) | {"labels": [json.dumps(fields)]}
                status, reply = await served.post("/get_reward", sample)
                assert status == 200, reply
                assert set(reply["extra_logs"]) == {"coverage", "filled", "accuracy", "rubric"}
                for name, value in zip(("accuracy", "rubric"), logged_values, strict=True):
                    assert reply["extra_logs"][name] == [pytest.approx(value or nan, nan_ok=True)]
                row = _gym(text) | fields
                del row["task_id"]
                status, reply = await served.post("/verify", row)
                assert status == 200, reply
                assert reply["reward_components"] == dict(
                    zip(("accuracy", "rubric"), components, strict=True)
                )

    asyncio.run(compare())


WORTH = """
import jurygraph as jg


@jg.evaluator(layer="check")
def worth(task: jg.TaskView, response: jg.Response) -> float:
    return 1 / (1 + len(response.text))
"""


def test_a_draining_server_answers_what_it_has_and_takes_nothing_more() -> None:
    async def drain() -> None:
        judge = HeldJudge(is_held=True)
        async with serving(judge) as served:
            accepted = asyncio.ensure_future(served.score("4 words"))
            alone = asyncio.ensure_future(served.score("5 words", cohort={"size": 2}))
            await judge.asked.wait()
            await served.open_requests(2)
            draining = asyncio.ensure_future(served.server.drain_requests())
            assert (await alone)[0] == 503
            assert (await served.score("6 words"))[0] == 503
            async with served.client.get("/readyz") as ready:
                assert ready.status == 503
            judge.released.set()
            status, content = await accepted
            assert (status, content["rewards"]) == (200, [0.04])
            await draining

    asyncio.run(drain())


def test_figures_and_description_are_served() -> None:
    async def look() -> None:
        async with serving() as served:
            await served.score("77 words", "nonsense")
            async with served.client.get("/metrics") as reply:
                figures = (await reply.text()).splitlines()
            for line in (
                'jurygraph_requests_total{path="/v1/score",status="200"} 1',
                "jurygraph_rewards_total 2",
                "jurygraph_failed_rewards_total 1",
                "jurygraph_degraded_rewards_total 0",
                "jurygraph_findings_total 1",
                "jurygraph_unsupported_findings_total 0",
                "jurygraph_reward_sum 0.77",
                'jurygraph_failed_judgements_total{evaluator="criteria",cause="response",kind="malformed"} 1',
                "jurygraph_request_seconds_count 1",
            ):
                assert line in figures
            async with served.client.get("/openapi.json") as reply:
                text = await reply.text()
            description = json.loads(text)
            schemas = description["components"]["schemas"]
            named = set(text.split('"#/components/schemas/')[1:])
            assert {name.partition('"')[0] for name in named} <= schemas.keys()
            score_body = schemas["ScoreBody"]["properties"]
            for described, model in (
                (score_body["task"], "Task"),
                (score_body["responses"]["items"], "Response"),
            ):
                assert {"$ref": f"#/components/schemas/{model}"} in described["anyOf"]
            for path, body in DESCRIBED:
                status, reply = await served.post(path, body)
                assert status in (200, 422), reply
                endpoint = description["paths"][path]["post"]
                replied = endpoint["responses"]["200" if status == 200 else "default"]
                assert bool(_faults(description, endpoint["requestBody"], body)) == (status == 422)
                assert not _faults(description, replied, reply), (path, body)
                if status == 200:
                    assert _faults(description, replied, {"rewards": []})

    asyncio.run(look())


LINES = {"query": "Write to Ann.", "rubric": "It is kind.\nIt is short."}
DESCRIBED: list[tuple[str, Any]] = [
    ("/v1/score", {"task": TASK, "responses": ["9 words", {"text": "8 words"}], "step": 1}),
    ("/v1/score", {"task": LINES, "responses": ["nonsense"], "cohort": {"size": 1}}),
    (
        "/v1/score",
        {
            "task": {**LINES, "query": [{"role": "user", "content": "Hi"}], "rubric": ["Kind."]},
            "responses": [{"messages": [{"role": "assistant", "content": "9 words"}]}],
        },
    ),
    ("/v1/score", {"task": {"rubric": "It is kind."}, "responses": ["9 words"]}),
    ("/v1/score", {"task": TASK, "responses": []}),
    ("/get_reward", {"query": ["a 9 words"], "prompts": ["a "], "labels": [json.dumps(LINES)]}),
    ("/get_reward", {"query": "a 9 words", "prompts": ["a "]}),
    ("/rm", {"prompt": "a", "response": "9 words", "label": json.dumps(LINES)}),
    ("/rm", {"prompt": "a"}),
    ("/verify", {**ASKED, "response": OUTPUT, "rubric": "It is kind.", "index": 7}),
    ("/verify", ASKED),
]


def _faults(description: dict[str, Any], described: dict[str, Any], value: Any) -> list[str]:
    """Return what breaks the schema of a body or a reply in a description."""
    schema = described["content"]["application/json"]["schema"]
    return faults(value, {**schema, "components": description["components"]})
