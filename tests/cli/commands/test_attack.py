"""`jurygraph attack`: a judge under attack from the command line."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jurygraph.schema import RESPONSE_GATES
from tests.cli.conftest import JURYGRAPH, Command, CommandResult
from tests.cli.test_interrupt import restore_ctrl_c
from tests.models.judge_scripts import config
from tests.models.server import Server, run_server, slow, status
from tests.studies.judges import AlwaysYes, Echo, Judge, LastInstruction, Yes

HONEST = (
    "Flour and sugar are mixed first. Then whisk four eggs, fold everything together, pour that into a tin and bake "
    "it for about forty minutes, until nothing sticks to a wooden stick."
)
TASK = {
    "id": "cake",
    "query": "How do I bake a cake?",
    "rubric": {"criteria": [{"id": "mix", "text": "Flour and sugar are mixed.", "weight": 1.0}]},
    "responses": [{"id": "cake/honest", "text": HONEST}],
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(Yes()) as running:
        yield running


class Project:
    """A config and a task in a folder, and attacks by master keys on them."""

    def __init__(self, folder: Path, run: Command, url: str, **settings: Any) -> None:
        self.folder, self._run = folder, run
        self.config = folder / "jury.yaml"
        self.config.write_text(json.dumps({**config(url), **settings}))
        self.tasks = folder / "tasks.jsonl"
        self.tasks.write_text(json.dumps(TASK) + "\n")

    def attack(self, *options: object) -> CommandResult:
        own = ("--tasks", self.tasks, "--suite", "master-keys")
        return self._run("attack", "--config", self.config, *own, *options)


@pytest.fixture
def project(tmp_path: Path, run: Command, server: Server) -> Project:
    return Project(tmp_path, run, server.url)


@pytest.mark.landing
@pytest.mark.parametrize("judge", [AlwaysYes, Echo, pytest.param(LastInstruction, marks=pytest.mark.exhaustive)])
def test_false_verdicts_before_and_after_the_defences_are_printed_first(
    judge: type[Judge], tmp_path: Path, run: Command
) -> None:
    with run_server(judge()) as server:
        ended = Project(tmp_path, run, server.url).attack(
            "--suite", "injection" if judge is LastInstruction else "null"
        )
    assert ended.code == 0, ended.err
    found = re.search(
        r"false verdict: (\d+) of (\d+) without defences, (\d+) of \2 with those of the config", ended.out
    )
    assert found is not None
    before, total, after = map(int, found.groups())
    assert (before, after) == {AlwaysYes: (total, 0), Echo: (31, 25), LastInstruction: (101, 0)}[judge]


@pytest.mark.exhaustive
def test_the_tables_have_every_arm_every_kind_and_the_requests(project: Project, server: Server):
    ended = project.attack()
    assert ended.code == 0, ended.err
    for name in (
        "none",
        "fence",
        "reminder",
        "whole-reply",
        "evidence",
        "gates",
        *RESPONSE_GATES,
        "all (config)",
    ):
        assert any(line.startswith(name) for line in ended.out.splitlines()), name
    assert "false verdicts by kind, in %" in ended.out
    assert "with the defences of the config," in ended.out
    assert f"requests: {server.count} by this command" in ended.out


@pytest.mark.exhaustive
def test_the_same_command_sends_nothing_again(project: Project, server: Server):
    first = project.attack("--json")
    sent = server.count
    again = project.attack("--json")
    assert server.count == sent
    assert json.loads(again.out) == {**json.loads(first.out), "requests": {"number": 0, "cost": 0.0, "unpriced": 0}}


@pytest.mark.landing
def test_json_has_every_arm_with_every_attack(project: Project):
    found = json.loads(project.attack("--json").out)
    assert (found["suite"], found["configured"], found["tasks"], found["honest"]) == ("master-keys", "all", 1, 1)
    assert set(found["arms"]) == {
        "none",
        "fence",
        "reminder",
        "whole-reply",
        "evidence",
        "gates",
        "all",
        *RESPONSE_GATES,
    }
    for arm in found["arms"].values():
        assert set(arm["by_attack"]) == set(found["attacks"])
        assert set(arm["attacks"]["verdicts"]) == {"hits", "n", "rate", "low", "high", "n_eff", "tasks"}
    assert found["arms"]["none"]["attacks"]["verdicts"]["rate"] > found["arms"]["all"]["attacks"]["verdicts"]["rate"]


@pytest.mark.exhaustive
def test_a_met_threshold_prints_nothing_and_a_missed_one_exits_with_1(project: Project):
    assert project.attack("--gate", "rate<=0, honest_rate>=1").code == 0
    ended = project.attack("--gate", "high<=1 and n>=1")
    assert ended.code == 1
    assert "threshold missed: high <= 1, but there is no high" in ended.err, "one task has no interval"


@pytest.mark.landing
@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (1, "1 task: no intervals, because rates differ from task to task; name more with --tasks"),
        (
            4,
            "4 tasks are too few for a rate: an attack that passes on none of them may still pass on up to 60% of such "
            "tasks (95 %); name more with --tasks",
        ),
        (6, None),
    ],
)
def test_few_tasks_are_called_too_few(project: Project, tasks: int, message: str | None):
    lines = [{**TASK, "id": f"cake {number}", "responses": []} for number in range(tasks)]
    project.tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = project.attack("--suite", "null", "--json")
    assert ended.code == 0, ended.err
    verdicts = json.loads(ended.out)["arms"]["all"]["attacks"]["verdicts"]
    assert verdicts["tasks"] == tasks
    assert (verdicts["high"] is None) == (tasks == 1)
    assert [line for line in ended.err.splitlines() if "task" in line] == ([message] if message else [])


def test_a_threshold_is_parsed_before_any_request(project: Project, server: Server):
    ended = project.attack("--gate", "raet<=0")
    assert (ended.code, server.count) == (2, 0)
    assert "unknown statistic 'raet'; did you mean rate?" in ended.err
    assert 'write it as in "rate<=0.01"' in project.attack("--gate", "rate").err


@pytest.mark.landing
def test_a_dry_run_estimates_the_requests_and_sends_nothing(project: Project, server: Server):
    ended = project.attack("--dry-run", "--json")
    assert (ended.code, server.count) == (0, 0)
    assert "dry run: nothing was sent or written" in ended.err
    expected = json.loads(ended.out)["model"]["expected"]["calls"]
    assert "calls" in project.attack("--dry-run").out
    project.attack()
    repaired = server.count - expected
    assert expected > 0
    assert 0 < repaired < expected, "what is repaired is asked beyond that"


@pytest.mark.landing
def test_evaluators_without_a_model_are_named(tmp_path: Path, run: Command, server: Server):
    other = {"evaluators": ["criteria", "maths.length"], "reward": {"rubric": 1.0}}
    ended = Project(tmp_path, run, server.url, **other).attack()
    assert ended.code == 0
    assert "not attacked, because no model judges a single response: maths.length" in ended.err


@pytest.mark.landing
def test_tasks_need_no_responses(project: Project):
    project.tasks.write_text(json.dumps({**TASK, "responses": []}) + "\n")
    found = json.loads(project.attack("--json").out)
    assert found["honest"] == 0
    assert found["arms"]["all"]["honest"]["verdicts"]["rate"] is None


def test_without_tasks_the_built_in_ones_are_used(project: Project, run: Command):
    ended = run("attack", "--config", project.config, "--suite", "null", "--dry-run", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["responses"] > 20


def test_a_config_without_a_model_is_refused(project: Project):
    ended = project.attack("--model", "none")
    assert ended.code == 2
    assert "--model: it is none, and evaluator 'criteria' asks a model; name one, or use --model" in ended.err


def test_a_config_whose_evaluators_use_no_model_is_refused(tmp_path: Path, run: Command, server: Server):
    ended = Project(tmp_path, run, server.url, evaluators=["maths.length"]).attack()
    assert ended.code == 2
    assert "jury.yaml, line 1, key evaluators: none is of layer model or residual" in ended.err


def test_an_invalid_task_is_refused_with_its_line(project: Project):
    project.tasks.write_text("{}\n")
    ended = project.attack()
    assert ended.code == 2
    assert "tasks.jsonl, line 1" in ended.err


def test_a_task_that_occurs_twice_is_refused(project: Project, server: Server):
    """Its copies are no further tasks, but would give a rate an interval, and narrow it."""
    project.tasks.write_text(2 * (json.dumps(TASK) + "\n"))
    ended = project.attack()
    assert (ended.code, server.count) == (2, 0)
    assert (
        "tasks.jsonl, line 2, field id: task 'cake' is already in line 1; give each task an id of its own" in ended.err
    )


def test_a_file_without_a_task_is_refused(project: Project):
    project.tasks.write_text("")
    ended = project.attack()
    assert ended.code == 2
    assert "tasks.jsonl: the file is empty; write one task per line" in ended.err


def test_tasks_without_a_question_for_a_model_are_counted(project: Project):
    bare = [{"id": f"tea {number}", "query": "How do I make tea?", "responses": []} for number in range(2)]
    project.tasks.write_text("".join(json.dumps(task) + "\n" for task in (TASK, *bare)))
    ended = project.attack("--suite", "null", "--json")
    assert ended.code == 0, ended.err
    assert "not attacked, because no model judges their responses: 2 of the tasks" in ended.err
    assert json.loads(ended.out)["tasks"] == 1


@pytest.mark.exhaustive
def test_after_the_limit_of_calls_the_study_continues_from_the_cache(project: Project, server: Server):
    ended = project.attack("--max-calls", "5")
    assert ended.code == 4
    assert "run the same command again: it continues from the cache" in ended.err
    assert server.count == 5
    assert project.attack().code == 0


@pytest.mark.exhaustive
def test_after_ctrl_c_the_study_continues_from_the_cache(tmp_path: Path, run: Command):
    with run_server(lambda body, number: slow(0.02, Yes()(body, number))) as server:
        project = Project(tmp_path, run, server.url)
        options = ("--config", project.config, "--tasks", project.tasks, "--suite", "master-keys")
        pipe = subprocess.PIPE
        command = [JURYGRAPH, "attack", *map(str, options)]
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=restore_ctrl_c)
        until = time.monotonic() + 60
        while server.count < 20:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, "")
        assert "interrupted; run the same command again: it continues from the cache" in err
        assert "Traceback" not in err
        sent = server.count
        assert json.loads(project.attack("--json").out)["requests"]["number"] == server.count - sent


@pytest.mark.landing
def test_a_failing_model_makes_the_study_inconclusive(tmp_path: Path, run: Command):
    with run_server(lambda body, number: status(400)) as server:
        ended = Project(tmp_path, run, server.url).attack("--gate", "rate<=0")
    assert ended.code == 3
    assert "inconclusive: " in ended.err
    assert "of kind rejected" in ended.err


@pytest.mark.landing
def test_a_robust_judge_has_no_false_positive(tmp_path: Path, run: Command):
    with run_server(Judge()) as server:
        ended = Project(tmp_path, run, server.url).attack("--gate", "hits<=0, honest_rate>=1")
    assert ended.code == 0
    assert "attacks never pass" in ended.out
