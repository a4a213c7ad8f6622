"""The command line with a model behind it: what is shown of calls, what limits them, and that no key gets out."""

import base64
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

import jurygraph
from jurygraph.prompts import load_prompt
from tests.cli.conftest import Command, Ended, contents, traces
from tests.cli.test_interrupt import scoring
from tests.models.judging import asked_for, config, judged, quotable, response_in, rubric
from tests.models.server import TOKENS_IN, TOKENS_OUT, Answer, Server, raw, said, serving, slow, status

CALLS = 6
"""What the project needs: two for each of three responses, as four criteria fit into one."""

PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
BILL = (TOKENS_IN * 2.0 + TOKENS_OUT * 10.0) / 1e6


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


def by_length(body: dict[str, Any], number: int) -> Answer:
    return judged(body, probability=0.5 + len(body["messages"][1]["content"]) % 50 / 100)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(by_length) as running:
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

    def configured(self, url: str, **calls: Any) -> None:
        settings = {**config(url, **{"cache": False, **calls}), "failure": {"max_error_rate": 1.0}}
        (self.folder / "jury.yaml").write_text(json.dumps(settings))

    def score(self, name: str, *more: object) -> Ended:
        return self._run("score", self.folder / "tasks.jsonl", "--out", self.folder / name, *more)

    def rewards(self, name: str) -> dict[str, Any]:
        return {trace["response_id"]: trace["reward"] for trace in traces(self._run, self.folder / name)}


@pytest.fixture
def project(tmp_path: Path, run: Command) -> Project:
    return Project(tmp_path, run, {"ann": "Dear Ann,", "bob": "Dear Bob, hello", "cas": "Dear Cas, hello, and so on"})


def calls_of(run: Command, folder: Path) -> list[dict[str, Any]]:
    return [call for trace in traces(run, folder) for call in trace["calls"]]


class TestShown:
    def test_a_trace_tells_of_each_call_all_that_it_hangs_on_and_took(
        self, project: Project, server: Server, run: Command
    ):
        project.configured(server.url, parameters={"seed": 7})
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
                "cost": None,
                "cache_hit": False,
                "attempts": 1,
            }
            assert {"temperature": 0.0, "max_tokens": 1024, "seed": 7}.items() <= call["parameters"].items()

    def test_the_cost_is_there_where_the_price_is(self, project: Project, server: Server, run: Command):
        project.configured(server.url, prices=PRICES)
        assert project.score("run").code == 0
        assert [call["cost"] for call in calls_of(run, project.folder / "run")] == [BILL] * CALLS

    def test_attempts_are_counted(self, project: Project, run: Command):
        seen: set[str] = set()

        def script(body: dict[str, Any], number: int) -> Answer:
            again = (asked := json.dumps(body["messages"])) in seen
            seen.add(asked)
            return by_length(body, number) if again else status(503)

        with serving(script) as server:
            project.configured(server.url)
            assert project.score("run").code == 0
            assert server.count == 2 * CALLS
        assert {call["attempts"] for call in calls_of(run, project.folder / "run")} == {2}

    def test_a_reply_from_the_cache_says_so(self, project: Project, server: Server, run: Command):
        project.configured(server.url, cache=True)
        assert project.score("cold").code == project.score("warm").code == 0
        assert server.count == CALLS
        told = [(call["cache_hit"], call["attempts"]) for call in calls_of(run, project.folder / "warm")]
        assert told == [(True, 0)] * CALLS
        assert project.rewards("warm") == project.rewards("cold")


class TestProven:
    def test_the_run_verifies_and_no_model_is_asked_for_that(self, project: Project, server: Server, run: Command):
        project.configured(server.url)
        assert project.score("run").code == 0
        for deep in ((), ("--deep",)):
            ended = run("verify", project.folder / "run", *deep)
            assert ended.code == 0, ended.err
        assert server.count == CALLS

    def test_for_that_neither_a_recording_nor_another_model_need_be_there(
        self, project: Project, server: Server, run: Command, tmp_path: Path
    ):
        recording = tmp_path / "calls.jsonl"
        project.configured(server.url, record=str(recording))
        assert project.score("run").code == project.score("again", "--model", f"replay:{recording}").code == 0
        recording.unlink()
        ended = run("verify", project.folder / "again", "--deep")
        assert ended.code == 0, ended.err
        assert "repeated: 15 verdicts are the same" in ended.out

    def test_its_audit_bundle_verifies_with_nothing_but_python(self, project: Project, server: Server, run: Command):
        project.configured(server.url)
        assert project.score("run").code == 0
        bundle = project.folder / "run.zip"
        assert run("export", project.folder / "run", "--to", "audit-bundle", "-o", bundle).code == 0
        with zipfile.ZipFile(bundle) as archive:
            archive.extractall(project.folder / "bundle")
        command = [sys.executable, "-I", "-S", project.folder / "bundle" / "verify.py", bundle]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_a_reply_that_was_changed_is_found(self, project: Project, server: Server, run: Command):
        project.configured(server.url)
        assert project.score("run").code == 0
        database = project.folder / "run" / "run.sqlite"
        content = database.read_bytes()
        place = content.rindex(b"so it is")
        database.write_bytes(content[:place] + b"so it IS" + content[place + 8 :])
        ended = run("verify", project.folder / "run")
        assert ended.code == 5
        assert "differs from what was written" in ended.err


class TestMaxCalls:
    def test_it_ends_with_4_and_the_same_command_with_more_asks_nothing_twice(self, project: Project, server: Server):
        project.configured(server.url, concurrency=1)
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

    def test_several_sittings_of_one_call_each_come_to_the_end(self, project: Project, server: Server, run: Command):
        project.configured(server.url)
        codes = [project.score("run", "--max-calls", 1).code for _ in range(CALLS)]
        assert codes == [4] * (CALLS - 1) + [0]
        assert server.count == CALLS
        assert run("verify", project.folder / "run").code == 0

    def test_with_none_allowed_nothing_is_sent(self, project: Project, server: Server):
        project.configured(server.url)
        assert project.score("run", "--max-calls", 0).code == 4
        assert server.count == 0

    def test_attempts_that_fail_count_too(self, project: Project):
        with serving(lambda body, number: status(503)) as server:
            project.configured(server.url, attempts=3)
            assert project.score("run", "--max-calls", 2).code == 4
            assert server.count == 2


class TestMaxCost:
    DEAR: Mapping[str, Any] = {"tiny": {"input": 0.001, "output": 100_000.0}}
    DEAR_BILL = (TOKENS_IN * 0.001 + TOKENS_OUT * 100_000.0) / 1e6
    """Of a request that may cost 1.6 dollars and a little, with 16 tokens at most."""

    @pytest.mark.parametrize(("limit", "sent"), [(0.001, 0), (1.65, 1), (3.05, 3)])
    def test_no_more_is_spent_and_the_same_command_with_more_asks_nothing_twice(
        self, project: Project, server: Server, run: Command, limit: float, sent: int
    ):
        project.configured(server.url, prices=self.DEAR, max_tokens=16)
        limited = project.score("run", "--max-cost", limit)
        assert (limited.code, limited.out) == (4, "")
        assert "might be passed" in limited.err
        assert "raise --max-cost to go on" in limited.err
        assert server.count == sent
        assert project.score("run", "--max-cost", 1000).code == 0
        assert server.count == CALLS
        assert [call["cost"] for call in calls_of(run, project.folder / "run")] == [self.DEAR_BILL] * CALLS

    def test_a_model_of_unknown_price_is_refused_before_anything_is_sent(self, project: Project, server: Server):
        project.configured(server.url)
        ended = project.score("run", "--max-cost", 1)
        assert (ended.code, ended.out, server.count) == (2, "", 0)
        assert "the price of 'tiny' is not known, so --max-cost cannot be kept" in ended.err
        assert "state it in calls.prices, such as {tiny: {input: 0.25, output: 2}}, or use --max-calls" in ended.err
        assert not (project.folder / "run").exists()


class TestBill:
    """What a person who pays reads under the result."""

    @staticmethod
    def told(ended: Ended) -> list[str]:
        assert ended.code in (0, 1), ended.err
        return [line for line in ended.out.splitlines() if line.startswith(("calls: ", "requests: "))]

    def test_a_cold_run_and_a_warm_one(self, project: Project, server: Server):
        project.configured(server.url, cache=True, prices=PRICES)
        cost = f"${CALLS * BILL:.4f}"
        assert self.told(project.score("cold")) == [
            f"calls: {CALLS} answered by the model ({cost})",
            f"requests: {CALLS} by this command (at most {cost})",
        ]
        assert self.told(project.score("warm")) == [
            f"calls: {CALLS} from the cache (originally {cost})",
            "requests: none by this command",
        ]
        again = project.score("cold")
        assert self.told(again) == [f"calls: {CALLS} answered by the model ({cost})", "requests: none by this command"]

    def test_a_branch_that_sends_nothing_bills_nothing(self, project: Project, server: Server):
        project.configured(server.url, prices=PRICES)
        project.score("run")
        assert self.told(project.score("new", "--branch", project.folder / "run")) == [
            f"calls: {CALLS} reused from another run (originally ${CALLS * BILL:.4f})",
            "requests: none by this command",
        ]

    def test_what_came_to_nothing_is_told_as_well(self, project: Project):
        with serving(lambda body, number: status(500)) as server:
            calls = {"attempts": 3, "max_tokens": 16, "outage": {"after": 1000}}
            project.configured(server.url, prices=TestMaxCost.DEAR, **calls)
            (line,) = self.told(project.score("run"))
        least = 3 * CALLS * 16 * 100_000.0 / 1e6
        told = re.fullmatch(rf"requests: {3 * CALLS} by this command \(at most \$(\d+\.\d{{4}})\)", line)
        assert told is not None
        assert least <= float(told[1]) < 1.01 * least

    def test_a_cost_that_is_not_known_and_one_of_next_to_nothing(self, project: Project, server: Server):
        project.configured(server.url)
        assert self.told(project.score("run")) == [
            f"calls: {CALLS} answered by the model (cost unknown)",
            f"requests: {CALLS} by this command (cost unknown)",
        ]
        project.configured(server.url, prices={"tiny": {"input": 0.001, "output": 0.001}})
        (line, _) = self.told(project.score("cheap"))
        assert line == f"calls: {CALLS} answered by the model (under $0.0001)"

    def test_what_of_some_is_not_known(self, project: Project):
        def script(body: dict[str, Any], number: int) -> Answer:
            return said(right(body), usage="ann" not in body["messages"][1]["content"])

        with serving(script) as server:
            project.configured(server.url, prices=PRICES)
            line, _ = self.told(project.score("run"))
        assert line == f"calls: {CALLS} answered by the model (${(CALLS - 2) * BILL:.4f}, and 2 of unknown cost)"

    def test_a_recording_is_sent_to_nobody(self, project: Project, server: Server, tmp_path: Path):
        recording = tmp_path / "calls.jsonl"
        project.configured(server.url, record=str(recording))
        project.score("run")
        replayed = project.score("again", "--model", f"replay:{recording}")
        assert self.told(replayed) == [f"calls: {CALLS} replayed (no request)"]
        assert json.loads(project.score("again", "--model", f"replay:{recording}", "--json").out)["requests"] is None

    def test_what_was_sent_before_ctrl_c_is_told(self, project: Project):
        with serving(lambda body, number: slow(60.0, judged(body))) as server:
            project.configured(server.url, concurrency=2)
            process = scoring(project.folder, "run")
            while server.count < 2:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, "")
        assert "interrupted; " in err
        assert "requests: 2 by this command (cost unknown)\n" in err

    def test_json_gives_the_same(self, project: Project, server: Server):
        project.configured(server.url, prices=PRICES)
        told = json.loads(project.score("run", "--json").out)
        none = {"number": 0, "cost": 0.0, "unpriced": 0}
        sent = {"number": CALLS, "cost": pytest.approx(CALLS * BILL), "unpriced": 0}
        assert told["calls"] == {"sent": sent, "cached": none, "carried": none, "replayed": none}
        assert told["requests"] == sent
        project.configured(server.url)
        unpriced = {"number": CALLS, "cost": None, "unpriced": CALLS}
        assert json.loads(project.score("unpriced", "--json").out)["requests"] == unpriced


FAULTS: dict[str, tuple[Answer, str]] = {
    "wrong key": (status(401), "unauthorised, for example: {url}: 401: planted 401"),
    "broken server": (status(500), "server, for example: {url}: 500: planted 500"),
    "wrong model": (status(404), "unknown-model, for example: {url}: 404: planted 404"),
}


class TestFailures:
    """When nothing works, it is told why, and how to go on once that is mended."""

    @pytest.mark.parametrize(("answer", "told"), FAULTS.values(), ids=FAULTS)
    def test_why_verdicts_failed_is_told_whenever_the_command_is_given(
        self, project: Project, answer: Answer, told: str
    ):
        with serving(lambda body, number: answer) as server:
            project.configured(server.url, attempts=1)
            ended = [project.score("run"), project.score("run")]
            expected = f"failed verdicts: 15 of kind {told.format(url=server.url)}\n"
        assert "is complete; nothing to do" in ended[1].err
        for one in ended:
            assert one.err.count("failed verdicts: ") == 1
            assert expected in one.err

    def test_a_dead_server_is_told_too(self, project: Project):
        project.configured("http://127.0.0.1:9/v1", attempts=1)
        assert (
            "failed verdicts: 15 of kind connection, for example: http://127.0.0.1:9/v1: " in project.score("run").err
        )

    def test_the_command_that_asks_again_does_and_asks_nothing_else(self, project: Project, run: Command):
        mended = False

        def script(body: dict[str, Any], number: int) -> Answer:
            return by_length(body, number) if mended or "ann" not in body["messages"][1]["content"] else status(401)

        folder = project.folder
        with serving(script) as server:
            project.configured(server.url)
            given = ("--config", folder / "jury.yaml", "--max-calls", 100, "--limit", 2)
            command = self.offered(project.score("a run", *given))
            options = f"--config {folder}/jury.yaml --limit 2 --max-calls 100"
            folders = f"--branch '{folder}/a run' --out '{folder}/a run-2'"
            assert command == f"jurygraph score {folder}/tasks.jsonl {options} {folders}"
            assert json.loads(project.score("a run", *given, "--json").out)["retry_command"] == command
            before, mended = server.count, True
            ended = run(*shlex.split(command)[1:])
            assert (ended.code, server.count - before) == (0, 2), ended.err
        assert "5 verdicts were reused" in ended.err
        assert self.offered(project.score("a run", *given)).endswith("a run-3'"), "the other is there now"

    @staticmethod
    def offered(ended: Ended) -> str:
        return ended.err.partition("failed for infrastructure reasons:  ")[2].splitlines()[0]

    def test_of_many_ways_the_three_most_frequent_are_told_each_in_a_line(self, project: Project, tmp_path: Path):
        kinds = {"ann": status(401), "bob": status(404), "cas": status(400, body="two\nlines " + "x" * 500)}

        def script(body: dict[str, Any], number: int) -> Answer:
            shown = body["messages"][1]["content"]
            if len(asked_for(body)) == 1 and "cas" in shown:
                return said("a lot", finish="length")
            return next(answer for name, answer in kinds.items() if name in shown)

        with serving(script) as server:
            project.configured(server.url)
            told = [line for line in project.score("run").err.splitlines() if "failed verdicts" in line]
            plain = json.loads(project.score("run", "--json").out)["failures"]
        assert [line.partition(",")[0] for line in told] == [
            "failed verdicts: 5 of kind unauthorised",
            "failed verdicts: 5 of kind unknown-model",
            "failed verdicts: 4 of kind rejected",
        ]
        assert max(map(len, told)) < 240
        assert [(row["kind"], row["cause"], row["verdicts"]) for row in plain][3:] == [("truncated", "response", 1)]

    def test_what_the_response_provoked_is_not_offered_to_be_asked_again(self, project: Project):
        with serving(lambda body, number: said("a lot", finish="length")) as server:
            project.configured(server.url)
            ended = project.score("run", "--json")
        assert "failed verdicts: 15 of kind truncated" in ended.err
        assert "to repeat" not in ended.err
        assert json.loads(ended.out)["retry_command"] is None

    def test_in_the_folder_one_stands_in_the_command_names_one_beside_it(
        self, project: Project, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        (project.folder / "here").mkdir()
        monkeypatch.chdir(project.folder / "here")
        project.configured("http://127.0.0.1:9/v1", attempts=1)
        ended = run("score", project.folder / "tasks.jsonl", "--out", ".")
        assert f"--branch . --out {project.folder / 'here-2'}\n" in ended.err


def test_a_recording_scores_the_same_with_the_server_gone(project: Project, tmp_path: Path, run: Command):
    recording = tmp_path / "calls.jsonl"
    with serving(by_length) as server:
        project.configured(server.url, record=str(recording))
        assert project.score("run").code == 0
    assert len(recording.read_text().splitlines()) == CALLS
    project.configured(server.url)
    ended = project.score("again", "--model", f"replay:{recording}", "--max-cost", 0)
    assert ended.code == 0, ended.err
    assert project.rewards("again") == project.rewards("run")
    assert run("verify", tmp_path / "again").code == 0
    assert {call["model"] for call in calls_of(run, tmp_path / "again")} == {"tiny"}


CANARIES = {
    "JURYGRAPH_API_KEY": "sk-jury/4f81+Qz=9&odd%41chars?77",
    "OPENAI_API_KEY": "sk-openai-3c9a71be5d0f42",
    "ANTHROPIC_API_KEY": "sk-ant-88d1_77aa~b0",
    "HF_TOKEN": "hf_CanaryCanary123456",
    "SOME_OTHER_TOKEN": 'token "with" quotes\\and é',
}


def plain(secret: str) -> set[str]:
    """How a secret may stand in a file: as it is, in JSON, in a URL, in hexadecimal."""
    found = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], secret.encode().hex()}
    return found | {quote(secret), quote(secret, safe=""), quote_plus(secret)}


def in_base64(secret: str) -> Iterator[tuple[str, str]]:
    """A secret in base64, alone or behind other words, and the part of that which is the secret's alone."""
    for before in (b"", b"x", b"xy", b"Bearer "):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(before + secret.encode()).decode()
            yield encoded, encoded.rstrip("=")[-(-len(before) * 4 // 3) : -1]


ECHO = " ".join(
    form for secret in CANARIES.values() for form in sorted(plain(secret) | {whole for whole, _ in in_base64(secret)})
)


def echoed() -> str:
    """What a server may send back: every key in every form."""
    return f"you sent {ECHO}, and again Bearer {CANARIES['JURYGRAPH_API_KEY']}."


def complaining(code: int, **headers: str) -> Callable[[dict[str, Any]], Answer]:
    return lambda body: status(code, headers, {"error": {"message": echoed(), "type": "invalid", "code": echoed()}})


def redirecting(body: dict[str, Any]) -> Answer:
    return status(307, {"Location": f"http://127.0.0.1:9/v1?{quote(ECHO, safe='')}"}, echoed())


def malformed(body: dict[str, Any]) -> Answer:
    return said(echoed()) if len(body["messages"]) == 2 else judged(body, reason=echoed())


def right(body: dict[str, Any]) -> str:
    one = {"reason": "so it is", "quotes": quotable(response_in(body)), "met": True, "probability": 0.9}
    return json.dumps(dict.fromkeys(asked_for(body), one))


CASES: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "wrong request": complaining(400),
    "wrong key": complaining(401),
    "wrong model": complaining(404),
    "broken server": complaining(500),
    "too many requests": complaining(429, **{"Retry-After": quote(ECHO)}),
    "redirect": redirecting,
    "no JSON": lambda body: raw(echoed()),
    "no completion": lambda body: raw(json.dumps({"choices": echoed()})),
    "reason": lambda body: judged(body, reason=echoed()),
    "malformed": malformed,
    "refusal": lambda body: said(None, refusal=echoed()),
    "finish": lambda body: said(right(body), finish=echoed()),
    "served": lambda body: said(right(body), served=echoed()),
    "tokens": lambda body: said(right(body), logprobs=[(ECHO, -0.1, {ECHO: -0.1, "no": -2.0})]),
}


def test_no_key_gets_out_whatever_a_server_sends_back(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    def script(body: dict[str, Any], number: int) -> Answer:
        shown = body["messages"][1]["content"]
        return next(answer for name, answer in CASES.items() if f"case {name}!" in shown)(body)

    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, run, {name.replace(" ", "-"): f"case {name}!" for name in CASES})
    score = [sys.executable, "-c", "import sys; from jurygraph.cli import main; main(sys.argv[1:])", "score"]
    with serving(script) as server:
        project.configured(server.url, cache=True, record=str(folder / "calls.jsonl"), attempts=2)
        done = subprocess.run(
            [*score, folder / "tasks.jsonl", "--out", folder / "run"],
            env={**os.environ, "PYTHONPATH": str(Path(jurygraph.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert {request.headers["authorization"] for request in server.requests} == {
            f"Bearer {CANARIES['JURYGRAPH_API_KEY']}"
        }
    assert done.returncode in (0, 1), done.stderr
    told = [done.stdout, done.stderr]
    ran = folder / "run"
    for form in ("jsonl", "csv", "parquet", "audit-bundle"):
        told += run("export", ran, "--to", form, "-o", folder / f"run.{form}")[1:]
    with zipfile.ZipFile(folder / "run.audit-bundle") as archive:
        archive.extractall(folder / "bundle")
    for command in (["show", ran], ["show", ran, "--json"], ["verify", ran, "--deep"]):
        told += run(*command)[1:]
    for name in CASES:
        told += run("explain", ran, "--response", f"{name.replace(' ', '-')}/a")[1:]
    told.append(project.score("again", "--max-calls", 3).err)
    files = {**contents(folder), **{f"cache/{name}": content for name, content in contents(tmp_path / "cache").items()}}
    assert {"run/run.sqlite", "calls.jsonl", "cache/cache.db", "run.parquet"} <= files.keys()
    written = {**files, **{f"output {place}": text.encode() for place, text in enumerate(told)}}
    needles = {
        form.encode(): name
        for name, secret in CANARIES.items()
        for form in plain(secret) | {own for _, own in in_base64(secret)}
    }
    assert all(needle in echoed().encode() for needle in needles)
    found = {(place, name, form) for place, text in written.items() for form, name in needles.items() if form in text}
    assert found == set()
    assert any(b"[redacted]" in content for content in files.values()), "it was there to be struck out"
