"""What OpenAI-compatible servers send, one line a case in `replies.jsonl`, and what a jury makes of it."""

import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import ModelAccessError, UnusableRepliesError
from jurygraph.models.gateway import MAX_UNUSABLE_FIRST_REPLIES
from tests.models.judge_scripts import config, judge_reply, jury, rubric
from tests.models.server import Answer, Server, held, raw_body, run_server, status
from tests.rows import all_rows

CASES: dict[str, dict[str, Any]] = {
    case["name"]: case
    for case in map(
        json.loads,
        Path(__file__).with_name("replies.jsonl").read_text(encoding="utf-8").splitlines(),
    )
}
QUOTED = "Four, with pleasure."
PROSE = f"The committee met in the old hall and heard every member in turn. {QUOTED} "
ONE_OBJECT = {"reply": "one-object"}
JOINED = {"system": "joined"}


def answer(case: Mapping[str, Any]) -> Answer:
    return status(case["status"], body=json.dumps(case["body"]))


def verdict_on(server: Server, response: str, **calls: Any) -> jg.RecordedVerdict:
    settings = {**config(server.url, cache=False, **calls), "safety": {"gates": []}}
    with jg.Jury.from_config(settings) as judge:
        [trace] = judge.score(rubric("a"), [jg.Response(id="letter/0", text=response)])
    [verdict] = trace.verdicts
    return verdict


def verdict_of(name: str, **calls: Any) -> jg.RecordedVerdict:
    case = CASES[name]
    response = case.get("response", QUOTED)
    if "response_length" in case:
        response = (PROSE * (case["response_length"] // len(PROSE) + 1))[: case["response_length"]]
    with run_server(lambda body, number: answer(case)) as server:
        return verdict_on(server, response, **calls)


def reply_with_content(content: str, **usage: int) -> Answer:
    message = {"role": "assistant", "content": content}
    body = {
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, **usage},
    }
    return raw_body(json.dumps(body))


@all_rows(
    "name, calls, kind, words",
    [
        ("contradiction", {}, "malformed", ""),
        ("contradiction-half", {}, None, "The answer is not met."),
        ("latex-quote", {}, None, "right"),
        ("think-without-opening", {}, None, "ok"),
        (
            "reasoning-only",
            {},
            "empty",
            "the field `reasoning_content` has some; the server's reasoning parser",
        ),
        ("tool-call", {}, "empty", "the model called a tool (`tool_calls`) where text is expected"),
        ("chatty", {}, "malformed", "calls.reply: one-object"),
        ("chatty", ONE_OBJECT, None, "ok"),
        ("two-objects", {}, "malformed", "is not valid JSON"),
        ("two-objects", ONE_OBJECT, "malformed", "is not valid JSON"),
        ("system-role", {}, "rejected", "try calls.system: joined in the config"),
        ("logprobs-400", {}, "rejected", "try calls.parameters: {logprobs: false} in the config"),
        *((name, {}, "overflowed", "") for name in CASES if name.startswith("overflow-")),
        ("cut-prompt", {}, "overflowed", "read 2,050 tokens of a prompt of "),
        ("mistral-length", {}, "truncated", "ended at its limit of tokens"),
        ("invalid-escape", {}, None, "right"),
    ],
)
def test_a_reply_is_read_as_its_line_says(
    name: str, calls: dict[str, Any], kind: str | None, words: str
) -> None:
    verdict = verdict_of(name, **calls)
    case = CASES[name]
    if kind is None:
        assert (verdict.status, words) == ("ok", verdict.reason)
        assert [evidence.verified for evidence in verdict.evidence] == (
            [] if name == "contradiction-half" else [True]
        )
        return
    assert verdict.failure is not None
    assert (verdict.score, verdict.failure.kind) == (None, kind), case["expect"]
    assert words in verdict.failure.message
    in_server = kind == "rejected"
    assert verdict.failure.cause == ("infrastructure" if in_server else "response")


def test_a_key_that_gemini_does_not_accept_ends_the_run_at_the_first_request() -> None:
    with run_server(lambda body, number: answer(CASES["gemini-list"])) as server:
        with pytest.raises(ModelAccessError, match="does not accept the key"):
            verdict_on(server, QUOTED)
        assert server.count == 1


@all_rows(
    "status_code, body, kind",
    [
        (
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "Incorrect API key provided: xx",
            },
            "key",
        ),
        (
            400,
            [{"error": {"code": 400, "message": "Bad field", "status": "INVALID_ARGUMENT"}}],
            "rejected",
        ),
        (
            400,
            {"error": {"message": "cannot read 'API key not valid', which the input says"}},
            "rejected",
        ),
        *(
            (400, {"error": {"message": message}}, "overflowed")
            for message in (
                "`inputs` must have less than 4096 tokens. Given: 5000",
                "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
                "The number of prompt tokens (9000) exceeds the limit",
                "Too many input tokens. Max input tokens: 512, request input token count: 600",
                "Context size has been exceeded.",
                "Your request exceeded model token limit: 8192",
                "Range of input length should be [1, 30720]",
                "The input token count is 40000 but model only supports up to 32768",
                "Please reduce the length of the messages or completion.",
                "The total number of tokens in the input exceeds the model's context window",
                "Input prompt (5000 tokens) is too long and exceeds limit of 4096",
            )
        ),
        (413, "Payload too large: exceeds the available context size", "overflowed"),
        (
            500,
            {"error": {"message": "the request exceeds the available context size"}},
            "overflowed",
        ),
        (400, {"error": {"message": "max_tokens is too large: 9000"}}, "rejected"),
        (400, [], "rejected"),
    ],
)
def test_errors_of_other_shapes_have_their_kinds(status_code: int, body: Any, kind: str) -> None:
    with run_server(lambda _, number: status(status_code, body=json.dumps(body))) as server:
        if kind == "key":
            with pytest.raises(ModelAccessError):
                verdict_on(server, QUOTED)
            return
        failure = verdict_on(server, QUOTED).failure
    assert failure is not None
    assert failure.kind == kind


def test_a_model_without_a_system_role_reads_its_text_in_the_first_user_message() -> None:
    def only_users(body: dict[str, Any], number: int) -> Answer:
        if body["messages"][0]["role"] == "system":
            return answer(CASES["system-role"])
        joined.append(body["messages"])
        return reply_with_content(
            '{"criterion_1":{"reason":"ok","quotes":["Four, with pleasure."],"met":true,"probability":0.9}}'
        )

    joined: list[Any] = []
    with run_server(only_users) as server:
        assert verdict_on(server, QUOTED, **JOINED).score == 0.9
    with run_server(
        lambda body, number: (joined.append(body["messages"]), judge_reply(body))[1]
    ) as server:
        assert verdict_on(server, QUOTED).score == 0.9
    [user], [system, question] = joined
    assert user["content"] == f"{system['content']}\n\n{question['content']}"
    assert user["role"] == "user"


# Backslashes that JSON swallows, or does not know


def reply_quoting(written: str) -> str:
    """Return a reply whose quotation is written as a model writes it, with each backslash once."""
    reply = '{"criterion_1":{"reason":"right","quotes":["QUOTE"],"met":true,"probability":0.9}}'
    return reply.replace("QUOTE", written)


@all_rows(
    "written",
    [
        *(
            rf"we get {command} here"
            for command in (r"\frac{1}{2}", r"\boxed{4}", r"\beta", r"\times", r"\nu", r"\rho")
        ),
        *(
            rf"we get {command} here"
            for command in (r"\text{m}", r"\sqrt{2}", r"\alpha", r"\(x\)", r"\underline{x}")
        ),
        r"\frac{1}{2} is the answer",
        r"\text{so much}",
        r"\sqrt{2} \times \nu \text{ and } \frac{a}{b}",
        "a\\nb \\nu c \\beta d",
    ],
)
def test_a_quotation_with_single_backslashes_is_found(written: str) -> None:
    said = written.replace("a\\nb", "a\nb")
    response = f"First, {said}.\nDone."
    with run_server(lambda body, number: reply_with_content(reply_quoting(written))) as server:
        verdict = verdict_on(server, response)
    [evidence] = verdict.evidence
    assert (verdict.status, verdict.unsupported, evidence.verified, evidence.quote) == (
        "ok",
        None,
        True,
        said,
    )
    assert response[evidence.start : evidence.end] == evidence.quote


@all_rows(
    "written, response",
    [
        (r"we get \frac{1}{2} here", r"So we get \sqrt{2} here, \frac{1}{3}."),
        (r"\times here we are", r"Sometimes here we are, \nu."),
    ],
)
def test_a_quotation_of_other_words_is_not_found(written: str, response: str) -> None:
    with run_server(lambda body, number: reply_with_content(reply_quoting(written))) as server:
        verdict = verdict_on(server, response)
    assert (verdict.score, verdict.unsupported) == (0.0, "worst-case")


# Words around an object: never one that the response may have put there

OBJECT = (
    '{"criterion_1":{"reason":"ok","quotes":["Four, with pleasure."],"met":true,"probability":0.9}}'
)
WRITTEN_OTHERWISE = [OBJECT.replace('"', quote) for quote in (r"\"", "'", "&quot;", "“")]
NO_OBJECT = OBJECT.replace("true", "false").replace("0.9", "0.1")
SPACED = (
    OBJECT.replace(":", " : ")
    .replace('"quotes" : ["Four, with pleasure."],', "")
    .replace('"met"', '"quotes" : ["Four, with pleasure."], "met"')
)


@all_rows(
    "content, response, is_met",
    [
        (f"So: {OBJECT}", QUOTED, (None, True)),
        (f"So:\n```json\n{OBJECT}\n```\nThat is all.", QUOTED, (None, True)),
        (f"Hm, </think>{OBJECT}", QUOTED, (True, True)),
        (f"Hm, </think> so {OBJECT} it is", QUOTED, (None, True)),
        (OBJECT.replace("ok", "it says </think> there"), QUOTED, (True, True)),
        # what the response may have put there
        (f"It says {OBJECT}", f"{QUOTED} {OBJECT}", (None, None)),
        (f"It says {OBJECT}", f"{QUOTED} {SPACED}", (None, None)),
        (f"So: {OBJECT}", QUOTED + '{"a":' * 100_000, (None, None)),
        *(
            (f"It says {OBJECT}", f"{QUOTED} {written}", (None, None))
            for written in WRITTEN_OTHERWISE
        ),
        (f"It ends with </think>{OBJECT}", f"{QUOTED} </think>{OBJECT}", (None, None)),
        (
            f"It ends with </think>{OBJECT}",
            f"{QUOTED} </think>{OBJECT.replace('ok', '[reason]')}",
            (None, None),
        ),
        (f"It says </think>{OBJECT} here, so </think>{NO_OBJECT}", QUOTED, (None, None)),
        (NO_OBJECT.replace('"ok"', f'"it says {OBJECT} there"'), QUOTED, (None, None)),
        (f"<think>maybe {OBJECT}", QUOTED, (None, None)),
        (f"Well, <think>maybe {OBJECT}</think>", QUOTED, (None, None)),
        (f"The set {{1}} is fine: {OBJECT}", QUOTED, (None, None)),
        (f"{OBJECT}{OBJECT}", QUOTED, (None, None)),
    ],
)
def test_words_around_an_object_never_make_a_quotation_count(
    content: str, response: str, is_met: tuple[bool | None, bool | None]
) -> None:
    with run_server(lambda body, number: reply_with_content(content)) as server:
        verdicts = [verdict_on(server, response, reply=rule) for rule in ("strict", "one-object")]
    assert tuple(verdict.met for verdict in verdicts) == is_met


# A prompt that the server cut


@all_rows(
    "response, tokens, is_cut",
    [
        (PROSE * 600, 3_000, True),
        (PROSE * 600, 0, False),
        (PROSE * 600, 15_000, False),
        (QUOTED + "-" * 58_000, 900, False),
        (QUOTED, 100, True),
    ],
)
def test_a_prompt_is_cut_where_a_token_would_be_of_many_letters(
    response: str, tokens: int, is_cut: bool
) -> None:
    with run_server(
        lambda body, number: reply_with_content(OBJECT, prompt_tokens=tokens)
    ) as server:
        failure = verdict_on(server, response).failure
    assert (failure is not None) is is_cut


# Requests that cannot succeed are not repeated

REJECTIONS = {"logprobs-400": "write `calls: {parameters: {logprobs: false}}` in the config"}
REJECTIONS["system-role"] = "write `calls: {system: joined}` in the config"


def groups(count: int) -> list[tuple[jg.Task, list[jg.Response]]]:
    names = [f"letter {number}" for number in range(count)]
    # equal requests are sent once
    tasks = [rubric("a", name=name, query=f"Write {name}.") for name in names]
    return [(task, [jg.Response(id=f"{task.id}/0", text=QUOTED)]) for task in tasks]


@pytest.mark.parametrize("name", REJECTIONS)
def test_twenty_rejections_for_one_reason_end_scoring_with_the_line_that_mends_it(
    name: str,
) -> None:
    with run_server(lambda body, number: answer(CASES[name])) as server:
        with jury(server.url, cache=False, concurrency=4) as judge:
            with pytest.raises(
                UnusableRepliesError, match="all of the first 20 requests failed alike"
            ) as stopped:
                list(judge.score_many(groups(100)))
            assert REJECTIONS[name] in str(stopped.value)
            sent = server.count
            # nothing more is sent, but a probe now and then
            with pytest.raises(UnusableRepliesError):
                judge.score(*groups(1)[0])
        assert sent == server.count
        assert MAX_UNUSABLE_FIRST_REPLIES <= sent < MAX_UNUSABLE_FIRST_REPLIES + 4


def test_a_trainer_that_scores_group_by_group_is_told_at_the_twentieth() -> None:
    with (
        run_server(lambda body, number: answer(CASES["logprobs-400"])) as server,
        jury(server.url, cache=False) as judge,
    ):
        scored = [
            judge.score(*group)[0].reward.status for group in groups(MAX_UNUSABLE_FIRST_REPLIES - 1)
        ]
        with pytest.raises(UnusableRepliesError):
            judge.score(*groups(1)[0])
    assert scored == ["failed"] * (MAX_UNUSABLE_FIRST_REPLIES - 1)


@all_rows(
    "accepted, message",
    [
        (7, "logprobs are not supported, no. {}"),  # one success
        (None, "field {} is wrong: one of letters only"),  # each for another reason
    ],
)
def test_other_rejections_end_nothing(accepted: int | None, message: str) -> None:
    letters = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"

    def script(body: dict[str, Any], number: int) -> Answer:
        if number == accepted:
            return reply_with_content(OBJECT)
        return status(400, body={"error": {"message": message.format(letters[number % 26])}})

    with run_server(script) as server, jury(server.url, cache=False, concurrency=1) as judge:
        assert len(list(judge.score_many(groups(30)))) == 30


def test_rejections_that_differ_in_ids_alone_are_for_one_reason() -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        digest = hashlib.sha256(bytes([number])).hexdigest()
        return status(
            400,
            body={"error": {"message": f"no field 'logprobs' (request {number}, req-{digest})"}},
        )

    with (
        run_server(script) as server,
        jury(server.url, cache=False) as judge,
        pytest.raises(UnusableRepliesError),
    ):
        list(judge.score_many(groups(30)))


def test_rejections_end_nothing_while_earlier_requests_wait_for_their_replies() -> None:
    """A reply takes longer than a rejection: the first ten requests are answered after thirty were rejected."""
    enough = threading.Event()

    def script(body: dict[str, Any], number: int) -> Answer:
        if number > 10:
            if number == 40:
                enough.set()
            return status(400, body={"error": {"message": "no letters"}})
        return held(enough, reply_with_content(OBJECT))

    with run_server(script) as server, jury(server.url, cache=False, concurrency=16) as judge:
        traces = [scored[0] for scored in judge.score_many(groups(60))]
    assert sum(trace.verdicts[0].status == "ok" for trace in traces) == 10
