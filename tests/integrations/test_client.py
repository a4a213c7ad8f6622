"""The client of the server waits while that has too much to do, sends nothing twice, and makes no refusal a 0."""

import asyncio
import json
import pickle
from itertools import count
from typing import Any

import httpx
import pytest

from jurygraph.errors import InputError, NoRewardError
from jurygraph.integrations.client import RewardClient
from jurygraph.integrations.verl import compute_score
from tests.rows import all_rows

URL = "http://127.0.0.1:8000"
OPEN_CLIENT = httpx.AsyncClient
TRACES = [{"response_id": "a/1", "reward": {"value": 0.5, "status": "ok"}}]


class Server:
    """Answers with these replies in their order, and keeps the requests."""

    def __init__(self, *replies: httpx.Response | httpx.TransportError) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, httpx.TransportError):
            raise reply
        return reply

    def body(self, number: int) -> Any:
        return json.loads(self.requests[number].content)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let clients send to a server in this process."""

    def start(*replies: httpx.Response | httpx.TransportError) -> Server:
        server = Server(*replies)
        monkeypatch.setattr(
            "jurygraph.integrations.client.httpx.AsyncClient",
            lambda **settings: OPEN_CLIENT(transport=httpx.MockTransport(server)),
        )
        return server

    return start


def ask(client: RewardClient, **settings: Any) -> Any:
    return client.score_blocking(["it is 0.5"], **settings)


def rewards(*values: float | None) -> httpx.Response:
    return httpx.Response(200, json={"traces": TRACES, "rewards": list(values)})


def test_it_asks_again_with_the_same_key_after_the_time_that_the_server_names(serve: Any) -> None:
    busy = httpx.Response(429, headers={"Retry-After": "0"}, json={"error": "too much"})
    filled = {"traces": TRACES, "rewards": [0.5], "filled": 2, "factor": 1.5}
    server = serve(busy, httpx.Response(200, json=filled))
    client = pickle.loads(pickle.dumps(RewardClient(f"{URL}/v1/score", token="secret")))
    reply = ask(client, task_id="a", step=3, cohort_size=8)
    assert reply == ([0.5], TRACES, 2, 1.5)
    assert server.body(1) == {
        "task_id": "a",
        "step": 3,
        "responses": ["it is 0.5"],
        "cohort": {"size": 8},
    }
    keys = {request.headers["Idempotency-Key"] for request in server.requests}
    assert len(keys) == 1
    assert server.requests[0].headers["Authorization"] == "Bearer secret"


@all_rows(
    "reply, error, message",
    [
        (httpx.Response(503, json={"error": "the judge is out"}), NoRewardError, "503: the judge"),
        (httpx.Response(409, json={"error": "too late"}), NoRewardError, "409: too late"),
        (httpx.Response(422, json={"error": "task: is missing"}), InputError, "422: task: is"),
        (httpx.Response(500, text="oops"), NoRewardError, "500: Internal Server Error"),
        (rewards(0.5, 0.5), NoRewardError, "without a reward for each response"),
        (httpx.Response(200, text="hello"), NoRewardError, "is it `jurygraph serve`"),
        (httpx.Response(429, headers={"Retry-After": "60"}), NoRewardError, "within 30 s"),
    ],
)
def test_a_refusal_is_an_error_with_the_servers_reason(
    reply: httpx.Response, error: type[Exception], message: str, serve: Any
) -> None:
    serve(reply)
    with pytest.raises(error, match=message):
        ask(RewardClient(URL, reward_timeout=30.0), task_id="a")


def test_verl_sends_the_task_or_its_id_and_gets_no_number_for_a_masked_reward(serve: Any) -> None:
    server = serve(rewards(0.5), rewards(None))
    extra = {"query": "2 + 2?", "task_id": "sum"}
    scored = asyncio.run(
        compute_score("math", "it is 0.5", "4", extra, url=f"{URL}/", cohort_size=4)
    )
    assert scored == {"score": 0.5, "jury_task": "sum"}
    task = {"id": "sum", "query": "2 + 2?", "reference": "4"}
    response = {"text": "it is 0.5", "labels": {}}
    assert server.body(0) == {"task": task, "responses": [response], "cohort": {"size": 4}}
    with pytest.raises(NoRewardError, match="task 'sum': the judge failed, and verl has no mask"):
        asyncio.run(compute_score("math", "x", "4", {"task_id": "sum"}, url=f"{URL}/"))
    assert server.body(1) == {"task_id": "sum", "responses": [{"text": "x", "labels": {}}]}


@all_rows(
    "fields, step",
    [
        ({"step": 4}, 4),
        ({"global_step": 4}, 4),
        ({"global_steps": 3}, 4),
        ({"global_steps": None}, 0),
    ],
)
def test_verl_labels_a_response_with_the_step(serve: Any, fields: Any, step: int) -> None:
    server = serve(rewards(0.5))
    asyncio.run(compute_score("math", "x", "4", {"task_id": "sum", **fields}, url=f"{URL}/"))
    (response,) = server.body(0)["responses"]
    assert response["labels"] == ({"step": step} if step else {})


def test_a_server_that_is_not_there_is_said_after_seconds_and_once(
    serve: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("jurygraph.integrations.client._RETRY_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("jurygraph.integrations.client.monotonic", count(0, 2).__next__)
    refused = httpx.ConnectError("All connection attempts failed")
    serve(refused, refused, refused, rewards(0.5))
    assert ask(RewardClient(URL), task_id="a").rewards == [0.5]
    (record,) = caplog.records
    assert record.message == (
        f"{URL}: no answer for 6 s (ConnectError All connection attempts failed); it is asked again for up to 170 s: "
        "is `jurygraph serve` started, and is its URL right?"
    )


def test_a_server_that_answered_a_second_ago_is_not_said_to_be_missing(
    serve: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("jurygraph.integrations.client._RETRY_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("jurygraph.integrations.client.monotonic", count(0, 2).__next__)
    busy = [httpx.Response(429, headers={"Retry-After": "0"}) for _ in range(3)]
    serve(*busy, httpx.RemoteProtocolError("Server disconnected"), rewards(0.5))
    assert ask(RewardClient(URL), task_id="a").rewards == [0.5]
    assert not caplog.records


def test_who_gives_up_does_not_say_that_it_asks_again(
    serve: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("jurygraph.integrations.client.monotonic", count(0, 6).__next__)
    serve(httpx.ReadTimeout("no answer"))
    with pytest.raises(NoRewardError, match="no reward within 6 s: ReadTimeout"):
        ask(RewardClient(URL, reward_timeout=6.0), task_id="a")
    assert not caplog.records


def test_a_connection_is_waited_for_no_longer_than_a_reward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings: dict[str, Any] = {}

    def open_client(**given: Any) -> httpx.AsyncClient:
        settings.update(given)
        return OPEN_CLIENT(transport=httpx.MockTransport(Server(rewards(0.5))))

    monkeypatch.setattr("jurygraph.integrations.client.httpx.AsyncClient", open_client)
    for patience, seconds in ((1.0, 1.0), (170.0, 5.0)):
        ask(RewardClient(URL, reward_timeout=patience), task_id="a")
        assert settings["timeout"].connect == seconds


def test_a_url_is_one() -> None:
    with pytest.raises(InputError, match="url: is 'jury"):
        RewardClient("jury.yaml")
