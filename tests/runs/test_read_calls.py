"""The calls behind a verdict, with their requests and replies, as `jurygraph show --call` gives them."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.calls import RecordedCall, read_calls
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from tests.agents.extraction.plans import in_words
from tests.models.judge_scripts import config, judge_reply, rubric
from tests.models.server import (
    TOKENS_IN,
    TOKENS_OUT,
    Answer,
    Server,
    reply_with,
    run_server,
    status,
)
from tests.runs.integrity.test_deep_material import _scored_run, branch, run
from tests.runs.sample_runs import rescore_run, score, verify_deeply, write_tasks

__all__ = ["_scored_run", "branch", "run"]

PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
TEXTS = {"ann": "Dear Ann,", "bob": "Dear Bob,", "cas": "Dear Cas,", "dan": ""}


def calls_behind(
    folder: Path, response: str, question: str = "criteria@kind"
) -> list[RecordedCall]:
    with closing(Run.open(folder)) as run:
        trace = run.find_trace(response)
        return read_calls(
            run, trace, [verdict for verdict in trace.verdicts if verdict.question == question]
        )


def write_letters(folder: Path, texts: dict[str, str]) -> Path:
    lines = []
    for name, text in texts.items():
        task = rubric("kind", name=name, query=f"Write to {name}.").model_dump(mode="json")
        lines.append({**task, "responses": [{"id": f"{name}/a", "text": text}]})
    return write_tasks(folder, lines)


def messages_of(server: Server) -> list[Any]:
    return [request.body["messages"] for request in server.requests]


@pytest.fixture
def letters(tmp_path: Path) -> tuple[Path, list[Any]]:
    """A run with a repaired, a repeated and an unnecessary call, and the messages that the server got."""
    ready: set[str] = set()

    def reply(body: dict[str, Any], number: int) -> Answer:
        text = body["messages"][1]["content"]
        if "Dear Bob" in text and len(body["messages"]) == 2:
            return reply_with("no JSON")
        if "Dear Cas" in text and "cas" not in ready:
            ready.add("cas")
            return status(503)
        return judge_reply(body)

    with run_server(reply) as server:
        score(
            tmp_path / "run",
            write_letters(tmp_path, TEXTS),
            config(server.url, cache=False, prices=PRICES),
        )
        return tmp_path / "run", messages_of(server)


def test_the_calls_are_those_that_the_server_got_with_their_bill(
    letters: tuple[Path, list[Any]],
) -> None:
    folder, sent = letters
    calls = [call for name in TEXTS for call in calls_behind(folder, f"{name}/a")]
    requests = [call.request["messages"] for call in calls if isinstance(call.request, dict)]
    assert sorted(map(json.dumps, requests)) == sorted(set(map(json.dumps, sent)))
    assert [call.purpose for call in calls] == ["judge", "judge", "repair", "judge"]
    assert sum(call.call.attempts for call in calls) == len(sent) == 5
    assert isinstance(calls[1].reply, dict)
    assert calls[1].reply["text"] == "no JSON"
    bill = TOKENS_IN * 2.0 / 1e6 + TOKENS_OUT * 10.0 / 1e6
    assert [call.call.cost for call in calls] == pytest.approx([bill] * 4)


def test_erased_texts_say_so_and_the_bill_stays(letters: tuple[Path, list[Any]]) -> None:
    before = calls_behind(letters[0], "bob/a")
    erase(letters[0], "response", "bob/a", "")
    assert calls_behind(letters[0], "bob/a") == [
        one._replace(request="erased", reply="erased") for one in before
    ]


def test_a_request_without_a_reply_is_shown_as_sent_until_it_is_erased(tmp_path: Path) -> None:
    with run_server(lambda body, number: status(400)) as server:
        score(
            tmp_path / "run",
            write_letters(tmp_path, {"ann": "Dear Ann,"}),
            config(server.url, cache=False),
        )
    (call,) = calls_behind(tmp_path / "run", "ann/a")
    assert (call.call.fault, call.reply) == ("rejected", "none")
    assert isinstance(call.request, dict)
    assert [call.request["messages"]] == messages_of(server)
    verify_deeply(tmp_path / "run")
    erase(tmp_path / "run", "response", "ann/a", "")
    assert calls_behind(tmp_path / "run", "ann/a") == [call._replace(request="erased")]
    assert b"Dear Ann" not in (tmp_path / "run" / "run.sqlite").read_bytes()


def test_calls_for_material_and_those_of_another_run_are_found(
    run: Path, branch: Path, tmp_path: Path
) -> None:
    with closing(Run.open(run)) as opened:
        trace = opened.find_trace("13/bullets")
    question = next(one.question for one in trace.verdicts if one.evaluator == "facts.confirmed")
    (original,) = calls_behind(run, "13/bullets", question)
    assert original.purpose == "derive"
    assert in_words("13", "bullets") in json.dumps(original.request, ensure_ascii=False).replace(
        "\\n", "\n"
    )
    for folder in (branch, rescore_run(run, tmp_path / "rescored", "reward.confirmed=2")):
        (again,) = calls_behind(folder, "13/bullets", question)
        assert (again.request, again.reply) == (original.request, original.reply)
    shutil.rmtree(tmp_path / "rescored")
    shutil.move(run, tmp_path / "elsewhere")
    (lost,) = calls_behind(branch, "13/bullets", question)
    assert isinstance(lost.request, str)
    assert lost.request == lost.reply
    assert f"from which {branch} was branched, and which is not there" in lost.request
