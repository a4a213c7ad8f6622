"""The command line with a model: records of calls, limits on them, and no disclosure of keys."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from jurygraph.prompts import load_prompt
from tests.cli.conftest import Command, CommandResult, traces
from tests.models.judge_scripts import config, judge_reply, rubric
from tests.models.server import TOKENS_IN, TOKENS_OUT, Answer, Server, reply_with, run_server, status

CALLS = 6
"""What the project needs: two for each of three responses, as four criteria fit into one."""

PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
BILL = (TOKENS_IN * 2.0 + TOKENS_OUT * 10.0) / 1e6


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


def score_by_length(body: dict[str, Any], number: int) -> Answer:
    return judge_reply(body, probability=0.5 + len(body["messages"][1]["content"]) % 50 / 100)


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(score_by_length) as running:
        yield running


class Project:
    """A project in a folder, and the commands on it."""

    def __init__(self, folder: Path, run: Command, texts: Mapping[str, str]) -> None:
        self.folder, self._run = folder, run
        lines = []
        for name, text in texts.items():
            task = rubric("kind", "short", "clear", "right", "new", name=name, query=f"Write to {name}.")
            lines.append({**task.model_dump(mode="json"), "responses": [{"id": f"{name}/a", "text": text}]})
        (folder / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def write_config(self, url: str, **calls: Any) -> None:
        settings = {**config(url, **{"cache": False, **calls}), "failure": {"max_error_rate": 1.0}}
        (self.folder / "jury.yaml").write_text(json.dumps(settings))

    def score(self, name: str, *more: object) -> CommandResult:
        return self._run("score", self.folder / "tasks.jsonl", "--out", self.folder / name, *more)

    def rewards(self, name: str) -> dict[str, Any]:
        return {trace["response_id"]: trace["reward"] for trace in traces(self._run, self.folder / name)}


@pytest.fixture
def project(tmp_path: Path, run: Command) -> Project:
    return Project(tmp_path, run, {"ann": "Dear Ann,", "bob": "Dear Bob, hello", "cas": "Dear Cas, hello, and so on"})


def cost_lines(ended: CommandResult) -> list[str]:
    assert ended.code in (0, 1), ended.err
    return [line for line in ended.out.splitlines() if line.startswith(("calls: ", "requests: "))]


def calls_of(run: Command, folder: Path) -> list[dict[str, Any]]:
    return [call for trace in traces(run, folder) for call in trace["calls"]]


def test_a_trace_has_the_parameters_tokens_and_cost_of_each_call(project: Project, server: Server, run: Command):
    project.write_config(server.url, parameters={"seed": 7}, prices=PRICES, cache=True)
    assert project.score("run").code == 0
    found = calls_of(run, project.folder / "run")
    assert len(found) == CALLS
    for call in found:
        latency = call.pop("latency")
        assert 0.0 < latency < 60.0
        assert len(call.pop("id")) == 64
        assert call == {
            "provider": "openai-compatible",
            "model": "tiny",
            "served": "tiny-1",
            "endpoint": server.url,
            "parameters": call["parameters"],
            "prompt": "criteria",
            "prompt_version": load_prompt("criteria").full_version,
            "tokens_in": TOKENS_IN,
            "tokens_out": TOKENS_OUT,
            "cost": BILL,
            "cache_hit": False,
            "attempts": 1,
            "fault": None,
        }
        assert {"temperature": 0.0, "max_tokens": 1024, "seed": 7}.items() <= call["parameters"].items()
    assert project.score("warm").code == 0
    assert server.count == CALLS
    assert {(call["cache_hit"], call["attempts"]) for call in calls_of(run, project.folder / "warm")} == {(True, 0)}
    assert project.rewards("warm") == project.rewards("run")


def test_a_recording_gives_the_same_scores_without_the_server_and_is_not_needed_to_verify(
    project: Project, tmp_path: Path, run: Command
):
    recording = tmp_path / "calls.jsonl"
    with run_server(score_by_length) as server:
        project.write_config(server.url, record=str(recording))
        assert project.score("run").code == 0
    assert len(recording.read_text().splitlines()) == CALLS
    project.write_config(server.url)
    replayed = project.score("again", "--model", f"replay:{recording}", "--max-cost", 0)
    assert cost_lines(replayed) == [f"calls: {CALLS} replayed (no request)"]
    assert json.loads(project.score("again", "--model", f"replay:{recording}", "--json").out)["requests"] is None
    assert project.rewards("again") == project.rewards("run")
    assert {call["model"] for call in calls_of(run, tmp_path / "again")} == {"tiny"}
    recording.unlink()
    ended = run("verify", project.folder / "again", "--deep")
    assert ended.code == 0, ended.err
    assert "repeated: 15 verdicts are the same" in ended.out


class TestMaxCalls:
    def test_a_reached_limit_exits_with_4_and_a_higher_limit_repeats_no_call(self, project: Project, server: Server):
        project.write_config(server.url, concurrency=1)
        unbroken = project.score("unbroken")
        assert (unbroken.code, server.count) == (0, CALLS)
        limited = project.score("run", "--max-calls", 3)
        assert (limited.code, limited.out, server.count) == (4, "", CALLS + 3)
        assert "the limit of 3 calls is reached (3 sent, 0 in flight); raise --max-calls to go on" in limited.err
        assert "finished groups are kept; run the same command again to continue" in limited.err
        assert len(project.rewards("run")) == 1
        resumed = project.score("run", "--max-calls", 10)
        assert (resumed.code, server.count) == (0, 2 * CALLS)
        assert "1 tasks are scored already and are kept" in resumed.err
        assert project.rewards("run") == project.rewards("unbroken")


class TestMaxCost:
    DEAR: Mapping[str, Any] = {"tiny": {"input": 0.001, "output": 100_000.0}}
    DEAR_BILL = (TOKENS_IN * 0.001 + TOKENS_OUT * 100_000.0) / 1e6
    """Of a request that may cost 1.6 dollars and a little, with 16 tokens at most."""

    def test_the_budget_is_not_exceeded_and_a_larger_one_repeats_no_call(
        self, project: Project, server: Server, run: Command
    ):
        project.write_config(server.url, prices=self.DEAR, max_tokens=16)
        limited = project.score("run", "--max-cost", 3.05)
        assert (limited.code, limited.out) == (4, "")
        assert "might be passed" in limited.err
        assert "raise --max-cost to go on" in limited.err
        assert server.count == 3
        assert project.score("run", "--max-cost", 1000).code == 0
        assert server.count == CALLS
        assert [call["cost"] for call in calls_of(run, project.folder / "run")] == [self.DEAR_BILL] * CALLS


class TestBill:
    """The lines on calls and cost below the result."""

    def test_the_bill_distinguishes_requests_from_other_replies(self, project: Project, server: Server):
        project.write_config(server.url, cache=True, prices=PRICES)
        cost = f"${CALLS * BILL:.4f}"
        assert cost_lines(project.score("cold")) == [
            f"calls: {CALLS} answered by the model ({cost})",
            f"requests: {CALLS} by this command (at most {cost})",
        ]
        assert cost_lines(project.score("warm")) == [
            f"calls: {CALLS} from the cache (originally {cost})",
            "requests: none by this command",
        ]
        assert cost_lines(project.score("cold")) == [
            f"calls: {CALLS} answered by the model ({cost})",
            "requests: none by this command",
        ]
        assert cost_lines(project.score("new", "--branch", project.folder / "cold")) == [
            f"calls: {CALLS} reused from another run (originally {cost})",
            "requests: none by this command",
        ]
        none = {"number": 0, "cost": 0.0, "unpriced": 0}
        sent = {"number": CALLS, "cost": pytest.approx(CALLS * BILL), "unpriced": 0}
        printed = json.loads(project.score("cold", "--json").out)
        assert printed["calls"] == {"sent": sent, "cached": none, "carried": none, "replayed": none, "unanswered": none}
        assert printed["requests"] == none


NO_LIMIT = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."


class TestFailures:
    """Failures are reported with their reason and the command that repeats them."""

    def test_the_reason_for_failed_verdicts_is_printed_every_time(self, project: Project):
        with run_server(lambda body, number: status(400, body={"error": {"message": NO_LIMIT}})) as server:
            project.write_config(server.url, attempts=1)
            ended = [project.score("run"), project.score("run")]
        failure = (
            f"rejected (criteria 15), for example: {server.url}: 400: {NO_LIMIT}; "
            "try calls.parameters: {max_tokens: null, max_completion_tokens: 1024} in the config"
        )
        assert "is complete; only failures are left to repeat" in ended[1].err
        for one in ended:
            assert one.err.count("failed verdicts: ") == 1
            assert f"failed verdicts: 15 of kind {failure}\n" in one.err

    def test_the_retry_command_repeats_the_failed_verdicts_alone(self, project: Project, run: Command):
        mended = False

        def script(body: dict[str, Any], number: int) -> Answer:
            return (
                score_by_length(body, number)
                if mended or "to ann." not in body["messages"][1]["content"]
                else status(400)
            )

        folder = project.folder
        with run_server(script) as server:
            project.write_config(server.url)
            given = ("--config", folder / "jury.yaml", "--max-calls", 100, "--limit", 2)
            command = self.printed_retry_command(project.score("a run", *given))
            options = f"--config {folder}/jury.yaml --limit 2 --max-calls 100"
            folders = f"--branch '{folder}/a run' --out '{folder}/a run-2'"
            assert command == f"jurygraph score {folder}/tasks.jsonl {options} {folders}"
            assert json.loads(project.score("a run", *given, "--json").out)["retry_command"] == command
            before, mended = server.count, True
            ended = run(*shlex.split(command)[1:])
            assert (ended.code, server.count - before) == (0, 2), ended.err
        assert "verdicts: 5 reused" in ended.err
        assert self.printed_retry_command(project.score("a run", *given)).endswith("a run-3'"), "the other is there now"

    @staticmethod
    def printed_retry_command(ended: CommandResult) -> str:
        return ended.err.partition("that may succeed now:  ")[2].splitlines()[0]

    def test_failures_caused_by_a_response_have_no_retry_command(self, project: Project):
        with run_server(lambda body, number: reply_with("a lot", finish="length")) as server:
            project.write_config(server.url)
            ended = project.score("run", "--json")
        assert "failed verdicts: 15 of kind truncated" in ended.err
        assert "to repeat" not in ended.err
        assert json.loads(ended.out)["retry_command"] is None

    def test_an_unreachable_server_is_named_and_the_retry_command_of_the_current_folder_names_a_sibling(
        self, project: Project, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        (project.folder / "here").mkdir()
        monkeypatch.chdir(project.folder / "here")
        project.write_config("http://127.0.0.1:9/v1", attempts=1)
        ended = run("score", project.folder / "tasks.jsonl", "--out", ".")
        reason = "15 of kind connection (criteria 15), for example: http://127.0.0.1:9/v1: "
        assert f"failed verdicts: {reason}" in ended.err
        assert f"--branch . --out {project.folder / 'here-2'}\n" in ended.err


REFUSALS: dict[str, tuple[Answer, str]] = {
    "wrong key": (status(401), "does not accept the key for model '{model}': check {variable}"),
    "wrong model": (status(404), "does not offer model '{model}' to this key: check the name and {variable}"),
    "model not found": (
        status(400, body={"error": {"code": "model_not_found", "message": "planted 400"}}),
        "does not offer model '{model}' to this key: check the name and {variable}",
    ),
}

NAMES = {
    "native": {"model": "tiny", "variable": "JURYGRAPH_API_KEY"},
    "litellm": {"model": "openai/tiny", "variable": "OPENAI_API_KEY"},
}

WITH_LITELLM = [pytest.param(case, "litellm", marks=pytest.mark.heavy) for case in ("wrong key", "wrong model")]


@pytest.mark.filterwarnings("ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning")  # litellm's
class TestRefusedAccess:
    """A server that refuses the key, or does not have the model, would refuse every question."""

    KEY = "sk-canary-0123456789abcdef"
    TASKS = 8
    ANSWERED = 9
    """Requests that are answered before the server refuses; each task needs two."""

    @pytest.fixture
    def project(self, tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Project:
        monkeypatch.setenv("JURYGRAPH_API_KEY", self.KEY)
        return Project(tmp_path, run, {f"t{number}": f"Dear number {number}," for number in range(self.TASKS)})

    @pytest.mark.parametrize(
        ("case", "backend"),
        [
            ("wrong key", "native"),
            ("model not found", "native"),
            *WITH_LITELLM,
        ],
    )
    def test_the_run_stops_at_the_first_refusal_and_is_resumed_once_it_is_mended(
        self, project: Project, run: Command, case: str, backend: str, monkeypatch: pytest.MonkeyPatch
    ):
        answer, problem = REFUSALS[case]
        refuses = True

        def script(body: dict[str, Any], number: int) -> Answer:
            return answer if refuses and number > self.ANSWERED else score_by_length(body, number)

        more = ("--model", "openai/tiny") if backend == "litellm" else ()
        with run_server(script) as server:
            project.write_config(server.url, concurrency=3)
            monkeypatch.setenv("OPENAI_API_KEY", self.KEY)
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            stopped = project.score("run", *more)
            assert (stopped.code, stopped.out) == (3, "")
            assert self.ANSWERED < server.count <= self.ANSWERED + 3  # those in flight
            assert stopped.err.count(server.url) == 1
            advice = problem.format(**NAMES[backend])
            assert f" {advice}; finished groups are kept; run the same" in stopped.err
            assert self.KEY not in stopped.err
            kept = project.rewards("run")
            assert 0 < len(kept) <= self.ANSWERED // 2
            assert all(reward["status"] == "ok" for reward in kept.values())
            before, refuses = server.count, False
            assert project.score("run", *more).code == 0
            assert server.count - before == 2 * self.TASKS - self.ANSWERED  # nothing that was answered is sent again
            assert project.score("unbroken", *more).code == 0
        assert project.rewards("run") == project.rewards("unbroken")
        assert kept.items() <= project.rewards("run").items()
        assert run("verify", project.folder / "run", "--deep").code == 0

    def test_a_key_that_is_not_set_is_reported_as_such(self, project: Project, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("JURYGRAPH_API_KEY")
        with run_server(lambda body, number: status(401)) as server:
            project.write_config(server.url, concurrency=1)
            assert "check JURYGRAPH_API_KEY, which is not set; " in project.score("run").err
        assert server.count == 1


class TestDryRun:
    """`--dry-run` reports the requests that are answered without being sent."""

    @staticmethod
    def known(project: Project, name: str) -> tuple[int, int, int, str]:
        """Return the expected calls, the requests with a reply in the cache and in the run, and the printed line."""
        model = json.loads(project.score(name, "--dry-run", "--json").out)["model"]
        lines = project.score(name, "--dry-run").out.splitlines()
        (line,) = (line for line in lines if line.startswith("answered without a request: "))
        return model["expected"]["calls"], model["from_cache"], model["from_run"], line.partition(": ")[2]

    def test_replies_in_the_cache_and_in_an_unfinished_run_are_counted(self, project: Project, server: Server):
        project.write_config(server.url, cache=True)
        assert self.known(project, "run") == (CALLS, 0, 0, "0 from the cache")
        project.score("one", "--limit", 1)
        assert self.known(project, "run") == (CALLS - 2, 2, 0, "2 from the cache")
        project.write_config(server.url, concurrency=1)
        assert project.score("limited", "--max-calls", 3).code == 4
        recorded = "0 from the cache, 1 from recorded calls"
        assert self.known(project, "limited") == (CALLS - 3, 0, 1, recorded)
        assert server.count == 2 + 3


def test_a_model_that_never_answers_in_form_is_told_with_what_to_change(tmp_path: Path, run: Command) -> None:
    """At once after twenty replies, with nothing left behind; at the end of a run that has fewer."""
    for count, code in ((12, 3), (2, 1)):
        folder = tmp_path / str(count)
        folder.mkdir()
        project = Project(folder, run, {str(number): f"Text {number}." for number in range(count)})
        with run_server(lambda body, number: reply_with("Certainly.")) as server:
            project.write_config(server.url, cache=False)
            ended = project.score("run")
        assert ended.code == code
        assert "the reply is not valid JSON: expected value at line 1 column 1; such as 'Certainly.'" in ended.err
        assert "set calls.form (native or instructed), raise calls.max_tokens, or name another model" in ended.err
        assert (folder / "run").exists() == (count == 2)
