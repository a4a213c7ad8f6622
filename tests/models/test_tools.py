"""Tools over the wire: a server is offered them, calls them, and gets their results, by either client."""

import json
from typing import Any

import pytest

import jurygraph as jg
from tests.models.server import Answer, raw_body, reply_with, run_server, status
from tests.runs.investigations import PRICE, RESPONSES, TASK

VERDICT = {
    "criterion_1": {
        "reason": "it is dearer",
        "quotes": ["The room is 90 euros a night", "The room is 120 euros a night"],
        "met": True,
        "probability": 0.9,
    }
}
CALL = {
    "id": "call_abc",
    "type": "function",
    "function": {"name": "price", "arguments": '{"item": "room"}'},
}


def investigate(body: dict[str, Any], number: int) -> Answer:
    """Call a tool first, and answer once its result is there."""
    if body["messages"][-1]["role"] == "tool":
        return reply_with(json.dumps(VERDICT))
    message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    usage = {"prompt_tokens": 2_000, "completion_tokens": 9, "total_tokens": 2_009}
    envelope = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny-1"}
    return raw_body(json.dumps({**envelope, "choices": [choice], "usage": usage}))


@pytest.mark.parametrize(
    "model",
    [
        "openai-compatible:{url}#tiny",
        pytest.param("openai/tiny", marks=pytest.mark.landing),  # litellm starts a process
    ],
)
def test_a_server_is_offered_tools_and_calls_them(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_server(investigate) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        criteria = jg.criteria(["The prices are right."], tools=[PRICE])
        with jg.Jury(model=model.format(url=server.url), evaluators=[criteria]) as jury:
            (trace,) = jury.score(TASK, RESPONSES[:1])
        first, second = (request.body for request in server.requests)
    (verdict,) = trace.verdicts
    assert [evidence.source for evidence in verdict.evidence] == ["response", "tool:1"]
    (offered,) = first["tools"]
    assert offered["type"] == "function"
    assert offered["function"]["name"] == "price"
    assert offered["function"]["parameters"]["required"] == ["item"]
    assert "response_format" not in first  # else many servers let the model call nothing
    calling, answer = second["messages"][-2:]
    assert calling["tool_calls"][0]["function"] == CALL["function"]
    assert answer["tool_call_id"] == "call_abc"
    assert "The room is 120 euros a night." in answer["content"]


def test_a_server_that_takes_no_tools_is_told_to_be_instructed() -> None:
    def refuse(body: dict[str, Any], number: int) -> Answer:
        message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'
        return status(400, body={"error": {"message": message, "type": "BadRequestError"}})

    with run_server(refuse) as server:
        criteria = jg.criteria(["The prices are right."], tools=[PRICE])
        model = f"openai-compatible:{server.url}#tiny"
        with jg.Jury(model=model, evaluators=[criteria]) as jury:
            (trace,) = jury.score(TASK, RESPONSES[:1])
    failure = trace.verdicts[0].failure
    assert failure is not None
    assert "try calls.tools: instructed in the config" in failure.message
    assert trace.reward.status == "failed"
