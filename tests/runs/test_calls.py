"""Runs that ask a model: every call is kept, and what is kept is never asked again, whatever happens to the run."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import BudgetExceeded, InputError
from jurygraph.models.request import Reply, Request
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import ErasureTarget, erase
from tests.models.judging import config, judged, rubric
from tests.models.server import TOKENS_IN, TOKENS_OUT, Answer, Server, said, serving, slow, status
from tests.runs.judge import asked, by_what_is_shown
from tests.runs.made import ASKED, checked, counted, sat, write_tasks

CRITERIA = ("kind", "short", "clear", "right", "new")
"""One more than fit into a call."""

CALLS_EACH = 2
UNCACHED: dict[str, Any] = {"cache": False}


def lines(tasks: int = 3, size: int = 2) -> list[dict[str, Any]]:
    found = []
    for t in range(tasks):
        task = rubric(*CRITERIA, name=f"t{t}", query=f"Write letter number {t}.").model_dump(mode="json")
        task["responses"] = [
            {"id": f"t{t}/r{r}", "text": f"Dear reader of letter {t}, this is try {r}.", "data": {"same": 0.5}}
            for r in range(size)
        ]
        found.append(task)
    return found


def plain(server: Server, **calls: Any) -> dict[str, Any]:
    return config(server.url, **{**UNCACHED, **calls})


def sit(folder: Path, *given: Any, **more: Any) -> dict[str, Any]:
    """Score in this process; the rewards by response."""
    with sat(folder, *given, **more):
        return rewards(folder)


def rewards(folder: Path) -> dict[str, Any]:
    return {trace.response_id: trace.reward.model_dump(mode="json") for trace in Run.open(folder).traces()}


def kept(folder: Path) -> list[tuple[Request, Reply]]:
    """The calls of a run as its file holds them, but for such as were erased."""
    with closing(Run.open(folder)) as run:
        found = {record.seq: record.content["texts"] for record in run.ledger.records("call")}
        texts = run.ledger.texts(found).values() if found else ()
        return [(Request.model_validate_json(one[0]), Reply.model_validate_json(one[1])) for one in texts if one]


def sent(server: Server, start: int = 0) -> list[str]:
    return [asked(request.body) for request in server.requests[start:]]


def as_sent(request: Request) -> str:
    """A kept request as the server saw it."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    return asked({"model": request.model, "messages": messages, **request.parameters})


class TestKept:
    def test_every_call_is_a_record_with_its_request_and_reply(self, server: Server, tmp_path: Path):
        sit(tmp_path / "run", write_tasks(tmp_path, lines()), plain(server))
        found = kept(tmp_path / "run")
        assert server.count == len(found) == 3 * 2 * CALLS_EACH
        assert sorted(as_sent(request) for request, _ in found) == sorted(sent(server))
        for _, reply in found:
            assert {"criterion_1"} <= json.loads(reply.text).keys()

    def test_the_record_goes_by_the_digest_of_its_request(self, server: Server, tmp_path: Path):
        sit(tmp_path / "run", write_tasks(tmp_path, lines(1)), plain(server))
        run = Run.open(tmp_path / "run")
        digests = sorted(request.digest for request, _ in kept(tmp_path / "run"))
        assert sorted(run.ledger.keys("call")) == digests
        assert {call.id for trace in run.traces() for call in trace.calls} == set(digests)

    def test_every_verdict_names_a_call_of_its_trace(self, server: Server, tmp_path: Path):
        sit(tmp_path / "run", write_tasks(tmp_path, lines()), plain(server))
        for trace in Run.open(tmp_path / "run").traces():
            assert len(trace.calls) == CALLS_EACH
            assert {verdict.call for verdict in trace.verdicts} == {call.id for call in trace.calls}

    def test_the_run_verifies(self, server: Server, tmp_path: Path):
        sit(tmp_path / "run", write_tasks(tmp_path, lines()), plain(server))
        found = checked(tmp_path / "run")
        assert (found.traces, found.closed) == (6, True)

    def test_what_is_asked_twice_is_one_call(self, server: Server, tmp_path: Path):
        twins = lines(2, 3)
        for task in twins:
            task["query"] = "Write a letter."
            for response in task["responses"]:
                response["text"] = "Dear all."
        found = sit(tmp_path / "run", write_tasks(tmp_path, twins), plain(server))
        assert server.count == len(kept(tmp_path / "run")) == CALLS_EACH
        assert len({json.dumps(reward) for reward in found.values()}) == 1
        assert checked(tmp_path / "run").traces == 6


class TestCache:
    def test_a_warm_run_sends_nothing_and_bills_nothing(self, server: Server, tmp_path: Path):
        tasks = write_tasks(tmp_path, lines())
        settings = plain(server, cache=True, prices={"tiny": {"input": 2.0, "output": 10.0}})
        cold = sit(tmp_path / "cold", tasks, settings)
        before = server.count
        assert sit(tmp_path / "warm", tasks, settings, max_cost=0.0, max_calls=0) == cold
        assert server.count == before
        paid = (TOKENS_IN * 2.0 + TOKENS_OUT * 10.0) / 1e6
        for name, hit in (("cold", False), ("warm", True)):
            calls = [call for trace in Run.open(tmp_path / name).traces() for call in trace.calls]
            assert {(call.cache_hit, call.cost, call.attempts) for call in calls} == {(hit, paid, int(not hit))}
        assert len(kept(tmp_path / "warm")) == len(kept(tmp_path / "cold"))
        checked(tmp_path / "warm")

    @pytest.mark.parametrize("calls", [{"parameters": {"temperature": 0.5}}, {"max_tokens": 512}], ids=str)
    def test_another_parameter_is_another_request(self, server: Server, tmp_path: Path, calls: dict[str, Any]):
        tasks = write_tasks(tmp_path, lines())
        sit(tmp_path / "one", tasks, plain(server, cache=True))
        before = server.count
        sit(tmp_path / "other", tasks, plain(server, cache=True, **calls))
        assert server.count == 2 * before

    def test_another_endpoint_is_another_request(self, server: Server, tmp_path: Path):
        tasks = write_tasks(tmp_path, lines())
        sit(tmp_path / "one", tasks, plain(server, cache=True))
        with serving(by_what_is_shown) as second:
            sit(tmp_path / "other", tasks, plain(second, cache=True))
            assert second.count == server.count

    def test_a_cache_that_is_off_is_neither_read_nor_written(self, server: Server, tmp_path: Path):
        tasks = write_tasks(tmp_path, lines(1))
        sit(tmp_path / "one", tasks, plain(server))
        assert not (tmp_path / "cache").exists()
        before = server.count
        sit(tmp_path / "other", tasks, plain(server))
        assert server.count == 2 * before


def other_text(tasks: list[dict[str, Any]]) -> None:
    tasks[1]["responses"][0]["text"] = "Dear Sir, I have thought again."


def other_criterion(tasks: list[dict[str, Any]]) -> None:
    tasks[2]["rubric"]["criteria"][0]["text"] = "It is kinder."


def one_more(tasks: list[dict[str, Any]]) -> None:
    tasks[0]["responses"].append({"id": "t0/r9", "text": "A last try.", "data": {"same": 0.5}})


def other_agents(tasks: list[dict[str, Any]]) -> None:
    for response in tasks[0]["responses"]:
        response |= {"agent": "dora", "labels": {"gold": 1}}


OTHER_FILES: dict[str, tuple[Callable[[list[dict[str, Any]]], None], int, set[str]]] = {
    "a text": (other_text, CALLS_EACH, {"t1/r0"}),
    "a criterion": (other_criterion, 2, set()),
    "one response more": (one_more, CALLS_EACH, {"t0/r9"}),
    "agents and labels": (other_agents, 0, set()),
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


class TestChanged:
    """Something changed since the run was begun."""

    @pytest.fixture
    def begun(self, server: Server, tmp_path: Path) -> Path:
        sit(tmp_path / "run", write_tasks(tmp_path, lines()), self.settings(server))
        return tmp_path / "run"

    @staticmethod
    def settings(server: Server, model: str = "tiny", **calls: Any) -> dict[str, Any]:
        """A model judges, and beside it an evaluator that needs none."""
        stated = plain(server, **calls)
        stated["model"] = f"openai-compatible:{server.url}#{model}"
        return {**stated, "evaluators": ["criteria", counted("same")], "reward": {"rubric": 1.0, "same": 0.5}}

    @pytest.mark.parametrize(("edit", "calls", "same"), OTHER_FILES.values(), ids=OTHER_FILES)
    def test_a_branch_asks_again_what_another_file_changed(
        self,
        begun: Path,
        server: Server,
        tmp_path: Path,
        edit: Callable[[list[dict[str, Any]]], None],
        calls: int,
        same: set[str],
    ):
        changed = lines()
        edit(changed)
        tasks = write_tasks(tmp_path, changed, "changed.jsonl")
        before = server.count
        with pytest.raises(InputError, match=r"was started with other settings: the tasks file is"):
            sit(begun, tasks, self.settings(server))
        assert server.count == before
        sit(tmp_path / "new", tasks, self.settings(server), branch=begun)
        assert server.count - before == calls
        assert {name for _, (name,), _ in ASKED} == same
        assert checked(tmp_path / "new").closed
        with closing(Run.open(tmp_path / "new")) as run:
            verify_deep(run, lambda count: None)
        assert server.count - before == calls

    @pytest.mark.parametrize("calls", OTHER_MODELS.values(), ids=OTHER_MODELS)
    def test_other_settings_of_the_model_refuse_a_resume_and_have_a_branch_ask_it_again(
        self, begun: Path, server: Server, tmp_path: Path, calls: dict[str, Any]
    ):
        self.check_all_is_asked_again(begun, server, tmp_path, self.settings(server, **calls), "config calls.")

    def test_another_model_refuses_a_resume_and_has_a_branch_ask_it(self, begun: Path, server: Server, tmp_path: Path):
        self.check_all_is_asked_again(begun, server, tmp_path, self.settings(server, "other"), "config model is ")

    @staticmethod
    def check_all_is_asked_again(
        begun: Path, server: Server, tmp_path: Path, settings: Mapping[str, Any], difference: str
    ) -> None:
        tasks, before = tmp_path / "tasks.jsonl", server.count
        with pytest.raises(InputError, match=f"was started with other settings: {difference}"):
            sit(begun, tasks, settings)
        assert server.count == before
        branched = sit(tmp_path / "new", tasks, settings, branch=begun)
        assert server.count == 2 * before, "of the model everything is asked again"
        assert ASKED == [], "an evaluator that needs no model is not asked again"
        assert branched == sit(tmp_path / "anew", tasks, settings)
        checked(tmp_path / "new")

    @pytest.mark.parametrize("calls", OTHER_MANNERS.values(), ids=OTHER_MANNERS)
    def test_how_it_is_asked_refuses_no_resume_and_has_a_branch_ask_nothing(
        self, begun: Path, server: Server, tmp_path: Path, calls: dict[str, Any]
    ):
        before, whole = server.count, rewards(begun)
        tasks, settings = tmp_path / "tasks.jsonl", self.settings(server, **calls)
        assert sit(begun, tasks, settings) == whole
        assert sit(tmp_path / "new", tasks, settings, branch=begun) == whole
        assert server.count == before
        carried = [call for trace in Run.open(tmp_path / "new").traces() for call in trace.calls]
        assert len(carried) == before, "the calls come along with the verdicts that name them"


SCORE = "import sys; from jurygraph.cli import main; main(sys.argv[1:])"
IN_FLIGHT = 4


class Project:
    """A run that is scored by processes that are killed."""

    def __init__(self, folder: Path, server: Server, tasks: int, size: int) -> None:
        self.folder, self.server = folder, server
        self.tasks = write_tasks(folder, lines(tasks, size))
        self.settings = plain(server, concurrency=IN_FLIGHT)
        (folder / "jury.yaml").write_text(json.dumps(self.settings))
        self.whole = sit(folder / "unbroken", self.tasks, self.settings)
        self.calls = server.count

    @contextmanager
    def scoring(self, name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """A process that scores; it is not left behind."""
        command = [sys.executable, "-c", SCORE, "score", str(self.tasks), "--out", str(self.folder / name)]
        environment = {**os.environ, "PYTHONPATH": str(Path(jg.__file__).parents[1])}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def killed(self, name: str, requests: int, seconds: float) -> bool:
        """Score until the server has seen so many more requests, and kill it some seconds later; False if it ended."""
        until = self.server.count + requests
        with self.scoring(name) as process:
            self._wait(process, lambda: self._held(name, process) and self.server.count >= until)
            time.sleep(seconds)
            ended = process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert process.returncode == (0 if ended else -signal.SIGKILL), process.args
        return not ended

    def _held(self, name: str, process: "subprocess.Popen[bytes]") -> bool:
        lock = self.folder / name / "run.lock"
        return lock.exists() and f'"pid": {process.pid},' in lock.read_text()

    @staticmethod
    def _wait(process: "subprocess.Popen[bytes]", for_it: Callable[[], bool]) -> None:
        until = time.monotonic() + 60
        while process.poll() is None and not for_it():
            assert time.monotonic() < until
            time.sleep(0.001)

    def durable(self, name: str) -> set[str]:
        """What the run's file holds of what was sent."""
        try:
            return {as_sent(request) for request, _ in kept(self.folder / name)}
        except InputError:
            return set()  # it has no record yet

    def check_killed(self, name: str, kills: Iterator[tuple[int, float]]) -> int:
        """Kill a run again and again, and let it end: what it had recorded it never sent again. How many kills."""
        start, killed = self.server.count, 0
        for requests, seconds in kills:
            before, durable = self.server.count, self.durable(name)
            if not self.killed(name, requests, seconds):
                break
            killed += 1
            assert durable.isdisjoint(sent(self.server, before)), "a call that was recorded is sent again"
        before, durable = self.server.count, self.durable(name)
        assert sit(self.folder / name, self.tasks, self.settings) == self.whole
        assert durable.isdisjoint(sent(self.server, before))
        requests = sent(self.server, start)
        assert set(requests) == set(sent(self.server)), "and everything was asked"
        assert len(requests) - self.calls <= killed * IN_FLIGHT
        assert checked(self.folder / name).closed
        return killed


def slowly(body: dict[str, Any], number: int) -> Answer:
    return slow(0.01, by_what_is_shown(body, number))


class TestKilled:
    @pytest.fixture
    def server(self) -> Iterator[Server]:
        with serving(slowly) as running:
            yield running

    @pytest.mark.slow
    def test_a_run_that_is_killed_three_times_sends_nothing_again_that_it_had_recorded(
        self, server: Server, tmp_path: Path
    ):
        draw = random.Random(5)
        project = Project(tmp_path, server, tasks=10, size=6)
        moments = ((draw.randrange(2, 16), draw.uniform(0.0, 0.03)) for _ in range(3))
        assert project.check_killed("run", moments) == 3

    @pytest.mark.slow
    def test_killed_at_a_hundred_moments_it_sends_nothing_again_that_it_had_recorded(
        self, server: Server, tmp_path: Path
    ):
        draw = random.Random(6)
        project = Project(tmp_path, server, tasks=30, size=8)
        kills = runs = 0
        while kills < 100:
            moments = ((draw.randrange(60), draw.uniform(0.0, 0.05)) for _ in range(100 - kills))
            kills += project.check_killed(f"run-{runs}", moments)
            runs += 1
        assert kills == 100

    def test_a_torn_end_of_the_log_is_survived(self, server: Server, tmp_path: Path):
        project = Project(tmp_path, server, tasks=5, size=4)
        assert project.killed("run", requests=26, seconds=0.0)
        log = tmp_path / "run" / "run.sqlite-wal"
        whole = len(project.durable("run"))
        assert whole > 10
        for number, lost in enumerate((1, 3000, log.stat().st_size // 2)):
            torn = shutil.copytree(tmp_path / "run", tmp_path / f"torn-{number}")
            os.truncate(torn / log.name, log.stat().st_size - lost)
            durable, before = project.durable(torn.name), server.count
            assert 0 < len(durable) <= whole
            assert sit(torn, project.tasks, project.settings) == project.whole
            assert durable.isdisjoint(sent(server, before))
            assert server.count - before == project.calls - len(durable)
            assert checked(torn).closed
            shutil.rmtree(torn)


class TestLimited:
    def test_what_is_under_way_when_the_limit_is_reached_is_kept(self, tmp_path: Path):
        def script(body: dict[str, Any], number: int) -> Answer:
            if len(body["messages"]) == 2 and "letter number 0" in body["messages"][1]["content"]:
                return said("to be repaired")
            return slow(0.2, by_what_is_shown(body, number))

        tasks = write_tasks(tmp_path, lines(3, 1))
        first = 3 * CALLS_EACH
        with serving(script) as server:
            with pytest.raises(BudgetExceeded):
                sit(tmp_path / "run", tasks, plain(server), max_calls=first)
            assert server.count == first
            sit(tmp_path / "run", tasks, plain(server))
            assert server.count == first + CALLS_EACH, "the repairs alone were left to be asked"
        assert checked(tmp_path / "run").closed


WORD = "Zwielicht"


def quoting(text: str) -> Callable[[dict[str, Any], int], Answer]:
    """A model that says the response's words, and at first in no form that can be used."""

    def script(body: dict[str, Any], number: int) -> Answer:
        if text not in body["messages"][-1]["content"] and len(body["messages"]) == 2:
            return judged(body)
        if len(body["messages"]) == 2:
            return said(f"It says {text}!")
        return judged(body, reason=f"it says {text}")

    return script


class TestErased:
    @pytest.mark.parametrize("text", [WORD, f'{WORD}, and\n"a great deal" more than that: ü'], ids=["short", "long"])
    def test_the_words_are_gone_from_the_calls_too(self, tmp_path: Path, text: str):
        content = lines(2)
        content[0]["responses"][1]["text"] = text
        with serving(quoting(text)) as server:
            before = sit(tmp_path / "run", write_tasks(tmp_path, content), plain(server))
            assert server.count == 4 * CALLS_EACH + CALLS_EACH, "each of its calls was repaired"
        assert self.holding(tmp_path / "run")
        calls = len(kept(tmp_path / "run"))
        erase(tmp_path / "run", "response", "t0/r1", "")
        assert self.holding(tmp_path / "run") == []
        assert len(kept(tmp_path / "run")) == calls - 2 * CALLS_EACH, "those about others stay"
        assert rewards(tmp_path / "run") == before
        assert checked(tmp_path / "run").erased > 0

    @pytest.mark.parametrize("what", [("response", "t0/r1"), ("task", "t0")], ids=" ".join)
    def test_also_from_a_call_whose_repair_came_to_nothing(self, tmp_path: Path, what: tuple[ErasureTarget, str]):
        content = lines(2)
        content[0]["responses"][1]["text"] = WORD

        def script(body: dict[str, Any], number: int) -> Answer:
            return status(400) if len(body["messages"]) > 2 else quoting(WORD)(body, number)

        with serving(script) as server:
            sit(tmp_path / "run", write_tasks(tmp_path, content), plain(server))
        assert self.holding(tmp_path / "run")
        erase(tmp_path / "run", *what, "")
        assert self.holding(tmp_path / "run") == []
        assert checked(tmp_path / "run").erased > 0

    def test_what_was_erased_is_asked_again_where_another_has_the_same_words(self, server: Server, tmp_path: Path):
        twins = lines(2, 1)
        for task in twins:
            task["query"] = "Write a letter."
            task["responses"][0]["text"] = WORD
        tasks = write_tasks(tmp_path, twins)
        sit(tmp_path / "run", tasks, plain(server), limit=1)
        erase(tmp_path / "run", "response", "t0/r0", "")
        sit(tmp_path / "run", tasks, plain(server))
        assert server.count == 2 * CALLS_EACH
        assert checked(tmp_path / "run").closed
        erase(tmp_path / "run", "response", "t0/r0", "again")
        with closing(Run.open(tmp_path / "run")) as run:
            verify_deep(run, lambda count: None)

    @staticmethod
    def holding(folder: Path) -> list[str]:
        return [path.name for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]


class TestRecorded:
    def replayed(self, folder: Path, tasks: Path, recording: Path) -> dict[str, Any]:
        return sit(folder, tasks, {"model": f"replay:{recording}", "evaluators": ["criteria"]})

    def test_a_recording_scores_the_same_when_the_server_is_gone(self, tmp_path: Path):
        tasks, recording = write_tasks(tmp_path, lines()), tmp_path / "calls.jsonl"
        with serving(by_what_is_shown) as server:
            before = sit(tmp_path / "run", tasks, plain(server, record=str(recording)))
        assert self.replayed(tmp_path / "again", tasks, recording) == before
        checked(tmp_path / "again")

    def test_what_the_cache_knew_is_recorded_too(self, tmp_path: Path):
        tasks, recording = write_tasks(tmp_path, lines()), tmp_path / "calls.jsonl"
        with serving(by_what_is_shown) as server:
            sit(tmp_path / "warming", tasks, plain(server, cache=True))
            before = sit(tmp_path / "run", tasks, plain(server, cache=True, record=str(recording)))
        assert self.replayed(tmp_path / "again", tasks, recording) == before

    def test_what_the_run_knew_is_recorded_too(self, server: Server, tmp_path: Path):
        tasks, recording = write_tasks(tmp_path, lines(3, 1)), tmp_path / "calls.jsonl"
        with pytest.raises(BudgetExceeded):
            sit(tmp_path / "run", tasks, plain(server), max_calls=3)
        sit(tmp_path / "run", tasks, plain(server, record=str(recording)))
        assert server.count == 3 * CALLS_EACH
        assert len(recording.read_text().splitlines()) == 2 * CALLS_EACH, "of the two tasks that were not yet scored"
