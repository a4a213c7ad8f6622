"""Calls are recorded once, whole, and without secrets."""

import gzip
import json
import resource
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.models.recording import Recorder, read_recording
from jurygraph.models.request import Reply, Request, Token
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Message

SECRET = "sk-canary-0123456789"
REPLY = Reply(
    text='{"met": true}', finish="stop", tokens_in=11, tokens_out=7, tokens=(Token(text="yes", logprob=-0.1),)
)


def request(text: str = "Is it so?", **others: object) -> Request:
    message = Message(role="user", content=text)
    return Request.model_validate({"provider": "litellm", "model": "openai/tiny", "messages": [message], **others})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def record(path: Path, *requests: Request, secrets: tuple[str, ...] = ()) -> None:
    with closing(Recorder(path, Redactor(secrets))) as recorder:
        for one in requests:
            recorder.add(one, REPLY, 0.25)


def test_a_recorded_call_is_read_back(path: Path) -> None:
    asked = request(parameters={"temperature": 0.0, "top": [1, None, "é"]}, answer={"type": "object"}, form="native")
    record(path, asked)
    (call,) = read_recording(path).calls.values()
    assert (call.key, call.request, call.reply, call.cost) == (asked.digest, asked, REPLY, 0.25)


def test_a_call_is_in_the_file_as_soon_as_it_is_added(path: Path) -> None:
    with closing(Recorder(path, Redactor([]))) as recorder:
        recorder.add(request(), REPLY, None)
        assert len(read_recording(path).calls) == 1


def test_a_closed_recorder_appends_again(path: Path) -> None:
    recorder = Recorder(path, Redactor([]))
    for text in ("one", "two"):
        recorder.add(request(text), Reply(text="yes"), None)
        recorder.close()
    assert len(read_recording(path).calls) == 2


def test_a_call_is_recorded_once_even_by_two_recorders(path: Path) -> None:
    record(path, request("a"), request("a"), request("b"))
    record(path, request("b"), request("c"))
    assert [json.loads(line)["request"]["messages"][0]["content"] for line in path.read_text().splitlines()] == [*"abc"]


def test_no_secret_reaches_the_file(path: Path) -> None:
    asked = request(f"key {SECRET}", parameters={"user": SECRET}, answer={SECRET: {}}, endpoint=f"http://{SECRET}/v1")
    reply = Reply(
        text=f"it is {SECRET}", refusal=SECRET, tokens=(Token(text=SECRET, logprob=-1.0, others=((SECRET, -1.0),)),)
    )
    with closing(Recorder(path, Redactor([SECRET]))) as recorder:
        recorder.add(asked, reply, None)
        recorder.add(asked, reply, None)
    assert SECRET not in path.read_text()
    (call,) = read_recording(path).calls.values()
    assert call.reply.text == "it is [redacted]"
    assert call.key != asked.digest


@given(cut=st.integers(1, 10_000))
def test_a_torn_last_line_is_left_out_and_then_cut_off(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("torn") / "calls.jsonl"
    record(path, request("first"))
    whole = path.read_bytes()
    record(path, request("secönd"))
    last = path.read_bytes()[len(whole) : -2]
    path.write_bytes(whole + last[: 1 + cut % len(last)])
    held = read_recording(path)
    assert (len(held.calls), held.size, held.torn) == (1, len(whole), True)
    record(path, request("third"))
    assert path.read_bytes().startswith(whole)
    assert [call.request.messages[0].content for call in read_recording(path).calls.values()] == ["first", "third"]


def test_a_last_line_without_a_newline_is_complete(path: Path) -> None:
    record(path, request("a"))
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    held = read_recording(path)
    assert (len(held.calls), held.torn) == (1, False)
    record(path, request("b"))
    assert len(read_recording(path).calls) == 2


def broken(line: str) -> Iterator[tuple[str, str]]:
    value = json.loads(line)
    yield line.replace("Is it so", "Is it not so"), "field key: is not the digest"
    yield line.replace('"stop"', "5"), "field reply.finish"
    yield json.dumps({**value, "cost": -1}), "field cost"
    yield json.dumps({**value, "more": 1}), "field more: unknown"
    yield line[:-9], "not valid JSON"
    yield "[]", "is a list"


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("end", ["\n", "\n\n", "\n{}"])
def test_a_line_that_is_no_call_is_refused_with_its_number(path: Path, place: int, end: str) -> None:
    record(path, request("before"), request())
    first, second = path.read_text().splitlines()
    wrong, told = list(broken(second))[place]
    path.write_text(f"{first}\n{wrong}{end}")
    with pytest.raises(InputError, match=r"calls\.jsonl, line 2.*") as refused:
        read_recording(path)
    assert told in str(refused.value)
    with pytest.raises(InputError):
        Recorder(path, Redactor([]))


def test_a_gzipped_recording_is_read_but_not_written(path: Path) -> None:
    record(path, request())
    path.write_bytes(gzip.compress(path.read_bytes()))
    before = path.read_bytes()
    assert len(read_recording(path).calls) == 1
    with pytest.raises(InputError, match="unpack it"):
        Recorder(path, Redactor([]))
    assert path.read_bytes() == before


def test_a_full_disk_is_reported_and_keeps_earlier_records(path: Path) -> None:
    record(path, request())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = Recorder(path, Redactor([]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 9, limit[1]))
    try:
        with pytest.raises(InputError, match="cannot be written"):
            recorder.add(request("more"), REPLY, None)
        recorder.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    held = read_recording(path)
    assert (len(held.calls), held.torn) == (1, True)
