"""Runs with a model: every call is stored, and a stored call is never repeated."""

import itertools
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import BudgetExceeded, InputError
from jurygraph.models.request import Reply, Request
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.workflows.erasure import erase
from tests.models.judge_scripts import config, judge_reply, rubric
from tests.models.server import TOKENS_IN, TOKENS_OUT, Answer, Server, reply_with, run_server, slow
from tests.runs.judge import judge_by_request, request_identity
from tests.runs.sample_runs import (
    REQUESTED,
    evaluator_config,
    scored_session,
    traces_of,
    verify_run,
    write_tasks,
)

CRITERIA = ("kind", "short", "clear", "right", "new")
"""One more criterion than fits into a call."""

CALLS_EACH = 2
UNCACHED: dict[str, Any] = {"cache": False}


def tasks_with_rubrics(tasks: int = 3, size: int = 2) -> list[dict[str, Any]]:
    found = []
    for t in range(tasks):
        task = rubric(*CRITERIA, name=f"t{t}", query=f"Write letter number {t}.").model_dump(
            mode="json"
        )
        task["responses"] = [
            {
                "id": f"t{t}/r{r}",
                "text": f"Dear reader of letter {t}, this is try {r}.",
                "data": {"same": 0.5},
            }
            for r in range(size)
        ]
        found.append(task)
    return found


def judge_config(server: Server, **calls: Any) -> dict[str, Any]:
    return config(server.url, **{**UNCACHED, **calls})


def run_session(folder: Path, *given: Any, **more: Any) -> dict[str, Any]:
    """Score in this process and return the rewards by response."""
    with scored_session(folder, *given, **more):
        return read_rewards(folder)


def read_rewards(folder: Path) -> dict[str, Any]:
    return {trace.response_id: trace.reward.model_dump(mode="json") for trace in traces_of(folder)}


def stored_calls(folder: Path) -> list[tuple[Request, Reply]]:
    """Return the stored calls of a run, except erased ones."""
    with closing(Run.open(folder)) as run:
        found = {record.seq: record.content["texts"] for record in run.ledger.records("call")}
        texts = run.ledger.texts(found).values() if found else ()
        return [
            (Request.model_validate_json(one[0]), Reply.model_validate_json(one[1]))
            for one in texts
            if one
        ]


def sent_requests(server: Server, start: int = 0) -> list[str]:
    return [request_identity(request.body) for request in server.requests[start:]]


def request_text(request: Request) -> str:
    """Return a stored request as the server received it."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    return request_identity({"model": request.model, "messages": messages, **request.parameters})


class TestStoredCalls:
    def test_every_call_is_a_record_with_its_request_and_reply(
        self, server: Server, tmp_path: Path
    ):
        run_session(
            tmp_path / "run", write_tasks(tmp_path, tasks_with_rubrics()), judge_config(server)
        )
        found = stored_calls(tmp_path / "run")
        assert server.count == len(found) == 3 * 2 * CALLS_EACH
        assert sorted(request_text(request) for request, _ in found) == sorted(
            sent_requests(server)
        )
        for _, reply in found:
            assert {"criterion_1"} <= json.loads(reply.text).keys()

    def test_the_key_of_a_call_is_the_digest_of_its_request(self, server: Server, tmp_path: Path):
        run_session(
            tmp_path / "run", write_tasks(tmp_path, tasks_with_rubrics(1)), judge_config(server)
        )
        run = Run.open(tmp_path / "run")
        digests = sorted(request.digest for request, _ in stored_calls(tmp_path / "run"))
        assert sorted(run.ledger.keys("call")) == digests
        assert {call.id for trace in run.traces() for call in trace.calls} == set(digests)

    def test_equal_requests_are_one_call(self, server: Server, tmp_path: Path):
        twins = tasks_with_rubrics(2, 3)
        for task in twins:
            task["query"] = "Write a letter."
            for response in task["responses"]:
                response["text"] = "Dear all."
        found = run_session(tmp_path / "run", write_tasks(tmp_path, twins), judge_config(server))
        assert server.count == len(stored_calls(tmp_path / "run")) == CALLS_EACH
        assert len({json.dumps(reward) for reward in found.values()}) == 1
        assert verify_run(tmp_path / "run").traces == 6


class TestCache:
    def test_a_run_from_the_cache_sends_and_bills_nothing(self, server: Server, tmp_path: Path):
        tasks = write_tasks(tmp_path, tasks_with_rubrics())
        settings = judge_config(server, cache=True, prices={"tiny": {"input": 2.0, "output": 10.0}})
        cold = run_session(tmp_path / "cold", tasks, settings)
        before = server.count
        assert run_session(tmp_path / "warm", tasks, settings, max_cost=0.0, max_calls=0) == cold
        assert server.count == before
        paid = (TOKENS_IN * 2.0 + TOKENS_OUT * 10.0) / 1e6
        for name, hit in (("cold", False), ("warm", True)):
            calls = [call for trace in traces_of(tmp_path / name) for call in trace.calls]
            assert {(call.cache_hit, call.cost, call.attempts) for call in calls} == {
                (hit, paid, int(not hit))
            }
        assert len(stored_calls(tmp_path / "warm")) == len(stored_calls(tmp_path / "cold"))
        verify_run(tmp_path / "warm")

    @pytest.mark.parametrize(
        "calls", [{"parameters": {"temperature": 0.5}}, {"max_tokens": 512}], ids=str
    )
    def test_another_parameter_is_another_request(
        self, server: Server, tmp_path: Path, calls: dict[str, Any]
    ):
        tasks = write_tasks(tmp_path, tasks_with_rubrics())
        run_session(tmp_path / "one", tasks, judge_config(server, cache=True))
        before = server.count
        run_session(tmp_path / "other", tasks, judge_config(server, cache=True, **calls))
        assert server.count == 2 * before


def change_text(tasks: list[dict[str, Any]]) -> None:
    tasks[1]["responses"][0]["text"] = "Dear Sir, I have thought again."


def change_criterion(tasks: list[dict[str, Any]]) -> None:
    tasks[2]["rubric"]["criteria"][0]["text"] = "It is kinder."


def add_response(tasks: list[dict[str, Any]]) -> None:
    tasks[0]["responses"].append({"id": "t0/r9", "text": "A last try.", "data": {"same": 0.5}})


def change_agents(tasks: list[dict[str, Any]]) -> None:
    for response in tasks[0]["responses"]:
        response |= {"agent": "dora", "labels": {"gold": 1}}


OTHER_FILES: dict[str, tuple[Callable[[list[dict[str, Any]]], None], int, set[str]]] = {
    "a text": (change_text, CALLS_EACH, {"t1/r0"}),
    "a criterion": (change_criterion, 2, set()),
    "one response more": (add_response, CALLS_EACH, {"t0/r9"}),
    "agents and labels": (change_agents, 0, set()),
}
OTHER_MODELS: dict[str, dict[str, Any]] = {
    "temperature": {"parameters": {"temperature": 0.5}},
    "max_tokens": {"max_tokens": 512},
    "form": {"form": "instructed"},
}
OTHER_MANNERS: dict[str, dict[str, Any]] = {
    "timeout": {"timeout": 30.0},
    "deadline": {"deadline": 100.0},
    "attempts": {"attempts": 2},
    "concurrency": {"concurrency": 2},
    "context": {"context": 8192},
    "limits a minute": {"requests_per_minute": 1e6, "tokens_per_minute": 1e9},
    "key": {"key": "ANOTHER_KEY"},
    "cache": {"cache": True},
    "prices": {"prices": {"tiny": {"input": 1.0, "output": 1.0}}},
}


class TestChangedInputs:
    """Inputs that changed since the run was started."""

    @pytest.fixture
    def scored_run(self, server: Server, tmp_path: Path) -> Path:
        run_session(
            tmp_path / "run",
            write_tasks(tmp_path, tasks_with_rubrics()),
            self.changed_config(server),
        )
        return tmp_path / "run"

    @staticmethod
    def changed_config(server: Server, model: str = "tiny", **calls: Any) -> dict[str, Any]:
        """A config with a model and an evaluator that needs none."""
        given_config = judge_config(server, **calls)
        given_config["model"] = f"openai-compatible:{server.url}#{model}"
        return {
            **given_config,
            "evaluators": ["criteria", evaluator_config("same")],
            "reward": {"rubric": 1.0, "same": 0.5},
        }

    @pytest.mark.parametrize(("edit", "calls", "same"), OTHER_FILES.values(), ids=OTHER_FILES)
    def test_a_branch_requests_what_another_file_changed(
        self,
        scored_run: Path,
        server: Server,
        tmp_path: Path,
        edit: Callable[[list[dict[str, Any]]], None],
        calls: int,
        same: set[str],
    ):
        changed = tasks_with_rubrics()
        edit(changed)
        tasks = write_tasks(tmp_path, changed, "changed.jsonl")
        before = server.count
        with pytest.raises(InputError, match=r"was started with other settings: the tasks file is"):
            run_session(scored_run, tasks, self.changed_config(server))
        assert server.count == before
        run_session(tmp_path / "new", tasks, self.changed_config(server), branch=scored_run)
        assert server.count - before == calls
        assert {name for _, (name,), _ in REQUESTED} == same
        assert verify_run(tmp_path / "new").closed
        with closing(Run.open(tmp_path / "new")) as run:
            verify_deep(run, lambda count: None)
        assert server.count - before == calls

    @pytest.mark.parametrize("calls", OTHER_MODELS.values(), ids=OTHER_MODELS)
    def test_other_model_settings_refuse_a_resume_and_a_branch_requests_again(
        self, scored_run: Path, server: Server, tmp_path: Path, calls: dict[str, Any]
    ):
        self.assert_all_requested_again(
            scored_run, server, tmp_path, self.changed_config(server, **calls), "config calls."
        )

    def test_another_model_refuses_a_resume_and_a_branch_requests_it(
        self, scored_run: Path, server: Server, tmp_path: Path
    ):
        self.assert_all_requested_again(
            scored_run, server, tmp_path, self.changed_config(server, "other"), "config model is "
        )

    @staticmethod
    def assert_all_requested_again(
        scored_run: Path,
        server: Server,
        tmp_path: Path,
        settings: Mapping[str, Any],
        difference: str,
    ) -> None:
        tasks, before = tmp_path / "tasks.jsonl", server.count
        with pytest.raises(InputError, match=f"was started with other settings: {difference}"):
            run_session(scored_run, tasks, settings)
        assert server.count == before
        branched = run_session(tmp_path / "new", tasks, settings, branch=scored_run)
        assert server.count == 2 * before, "of the model everything is asked again"
        assert REQUESTED == [], "an evaluator that needs no model is not asked again"
        assert branched == run_session(tmp_path / "anew", tasks, settings)
        verify_run(tmp_path / "new")

    @pytest.mark.landing
    @pytest.mark.parametrize("calls", OTHER_MANNERS.values(), ids=OTHER_MANNERS)
    def test_call_handling_settings_allow_a_resume_and_a_branch_requests_nothing(
        self, scored_run: Path, server: Server, tmp_path: Path, calls: dict[str, Any]
    ):
        before, whole = server.count, read_rewards(scored_run)
        tasks, settings = tmp_path / "tasks.jsonl", self.changed_config(server, **calls)
        assert run_session(scored_run, tasks, settings) == whole
        assert run_session(tmp_path / "new", tasks, settings, branch=scored_run) == whole
        assert server.count == before
        carried = [call for trace in traces_of(tmp_path / "new") for call in trace.calls]
        assert len(carried) == before, "the calls come along with the verdicts that name them"


SCORE = "import sys; from jurygraph.cli import main; main(sys.argv[1:])"
IN_FLIGHT = 4


class TestKilledRun:
    def test_a_run_that_ends_at_any_commit_repeats_no_stored_call(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """What a kill leaves on the disk is what lies there after the last commit."""
        commit = Ledger.commit
        left: list[Path] = []

        def commit_and_copy(ledger: Ledger) -> None:
            commit(ledger)
            without_index = shutil.ignore_patterns("*-shm")
            left.append(
                shutil.copytree(
                    ledger.path.parent, tmp_path / f"left-{len(left)}", ignore=without_index
                )
            )

        with run_server(judge_by_request) as server:
            given = (
                write_tasks(tmp_path, tasks_with_rubrics(8, 2)),
                judge_config(server, concurrency=IN_FLIGHT),
            )
            with monkeypatch.context() as patch:
                patch.setattr(Ledger, "commit", commit_and_copy)
                whole = run_session(tmp_path / "run", *given)
            asked = set(sent_requests(server))
            partly = 0
            for number, folder in enumerate(left):
                log = folder / "run.sqlite-wal"
                if log.exists() and number % 2:
                    os.truncate(log, log.stat().st_size // 2)  # torn
                stored = set()
                # torn within the first commit, so that there is no run yet
                with suppress(InputError):
                    stored = {request_text(request) for request, _ in stored_calls(folder)}
                before = server.count
                assert run_session(folder, *given) == whole
                again = set(sent_requests(server, before))
                assert (again & stored, again | stored) == (set(), asked)
                verify_run(folder)
                partly += 0 < len(stored) < len(asked)
        assert partly >= 3

    @pytest.mark.parametrize("full_from", [2, pytest.param(5, marks=pytest.mark.exhaustive)])
    def test_on_a_full_disk_at_most_the_calls_in_flight_and_as_many_being_stored_are_lost(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_from: int
    ):
        commit = Ledger.commit
        commits = itertools.count(1)

        def commit_until_full(ledger: Ledger) -> None:
            if ledger.path.parent == tmp_path / "run" and next(commits) >= full_from:
                raise sqlite3.OperationalError("database or disk is full")
            commit(ledger)

        with run_server(judge_by_request) as server:
            given = (
                write_tasks(tmp_path, tasks_with_rubrics(16, 4)),
                judge_config(server, concurrency=IN_FLIGHT),
            )
            with monkeypatch.context() as patch:
                patch.setattr(Ledger, "commit", commit_until_full)
                with pytest.raises(Exception, match="database or disk is full"):
                    run_session(tmp_path / "run", *given)
            stored = len(list(stored_calls(tmp_path / "run")))
            lost = server.count - stored
            run_session(tmp_path / "run", *given)
            assert lost <= 2 * IN_FLIGHT
            assert len(set(sent_requests(server))) == server.count - lost


class TestCallLimit:
    @pytest.mark.exhaustive
    def test_pending_calls_are_kept_when_the_limit_is_reached(self, tmp_path: Path):
        def script(body: dict[str, Any], number: int) -> Answer:
            if len(body["messages"]) == 2 and "letter number 0" in body["messages"][1]["content"]:
                return reply_with("to be repaired")
            return slow(0.2, judge_by_request(body, number))

        tasks = write_tasks(tmp_path, tasks_with_rubrics(3, 1))
        first = 3 * CALLS_EACH
        with run_server(script) as server:
            with pytest.raises(BudgetExceeded):
                run_session(tmp_path / "run", tasks, judge_config(server), max_calls=first)
            assert server.count == first
            run_session(tmp_path / "run", tasks, judge_config(server))
            assert server.count == first + CALLS_EACH, "the repairs alone were left to be asked"
        assert verify_run(tmp_path / "run").closed


WORD = "Zwielicht"


def answer_with_quote(text: str) -> Callable[[dict[str, Any], int], Answer]:
    """Return a judge that quotes the response, and whose first reply is malformed."""

    def script(body: dict[str, Any], number: int) -> Answer:
        if text not in body["messages"][-1]["content"] and len(body["messages"]) == 2:
            return judge_reply(body)
        if len(body["messages"]) == 2:
            return reply_with(f"It says {text}!")
        return judge_reply(body, reason=f"it says {text}")

    return script


class TestErasedCalls:
    @pytest.mark.parametrize(
        "text", [WORD, f'{WORD}, and\n"a great deal" more than that: ü'], ids=["short", "long"]
    )
    def test_erased_text_is_gone_from_the_calls(self, tmp_path: Path, text: str):
        content = tasks_with_rubrics(2)
        content[0]["responses"][1]["text"] = text
        with run_server(answer_with_quote(text)) as server:
            before = run_session(
                tmp_path / "run", write_tasks(tmp_path, content), judge_config(server)
            )
            assert server.count == 4 * CALLS_EACH + CALLS_EACH, "each of its calls was repaired"
        assert self.runs_containing(tmp_path / "run")
        calls = len(stored_calls(tmp_path / "run"))
        erase(tmp_path / "run", "response", "t0/r1", "")
        assert self.runs_containing(tmp_path / "run") == []
        assert len(stored_calls(tmp_path / "run")) == calls - 2 * CALLS_EACH, (
            "those about others stay"
        )
        assert read_rewards(tmp_path / "run") == before
        assert verify_run(tmp_path / "run").erased > 0

    def test_an_erased_call_is_requested_again_for_an_equal_response(
        self, server: Server, tmp_path: Path
    ):
        twins = tasks_with_rubrics(2, 1)
        for task in twins:
            task["query"] = "Write a letter."
            task["responses"][0]["text"] = WORD
        tasks = write_tasks(tmp_path, twins)
        run_session(tmp_path / "run", tasks, judge_config(server), limit=1)
        erase(tmp_path / "run", "response", "t0/r0", "")
        run_session(tmp_path / "run", tasks, judge_config(server))
        assert server.count == 2 * CALLS_EACH
        assert verify_run(tmp_path / "run").closed
        erase(tmp_path / "run", "response", "t0/r0", "again")
        with closing(Run.open(tmp_path / "run")) as run:
            verify_deep(run, lambda count: None)

    @staticmethod
    def runs_containing(folder: Path) -> list[str]:
        return [
            path.name
            for path in folder.rglob("*")
            if path.is_file() and WORD.encode() in path.read_bytes()
        ]


class TestRecordings:
    def replay(self, folder: Path, tasks: Path, recording: Path) -> dict[str, Any]:
        return run_session(
            folder, tasks, {"model": f"replay:{recording}", "evaluators": ["criteria"]}
        )

    def test_a_recording_gives_the_same_rewards_without_the_server(self, tmp_path: Path):
        tasks, recording = write_tasks(tmp_path, tasks_with_rubrics()), tmp_path / "calls.jsonl"
        with run_server(judge_by_request) as server:
            before = run_session(
                tmp_path / "run", tasks, judge_config(server, record=str(recording))
            )
        assert self.replay(tmp_path / "again", tasks, recording) == before
        verify_run(tmp_path / "again")

    def test_calls_of_the_run_are_recorded(self, server: Server, tmp_path: Path):
        tasks, recording = write_tasks(tmp_path, tasks_with_rubrics(3, 1)), tmp_path / "calls.jsonl"
        # or three calls could be one of each task, none of which is scored
        one_by_one = {"concurrency": 1}
        with pytest.raises(BudgetExceeded):
            run_session(tmp_path / "run", tasks, judge_config(server, **one_by_one), max_calls=3)
        settings = judge_config(server, record=str(recording), **one_by_one)
        run_session(tmp_path / "run", tasks, settings)
        assert server.count == 3 * CALLS_EACH
        assert len(recording.read_text().splitlines()) == 2 * CALLS_EACH, (
            "of the two tasks that were not yet scored"
        )
