"""`jurygraph attack`: which defence stops which judge and attack is tested in `tests/studies/attack`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.commands.attack import _read_tasks
from tests.cli.conftest import Command, CommandResult
from tests.models.judge_scripts import config
from tests.models.server import Server, run_server, status
from tests.rows import all_rows
from tests.studies.attack.test_defences import ARMS
from tests.studies.judges import AlwaysYes, Yes

pytestmark = pytest.mark.usefixtures("own_cache")

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
def test_false_verdicts_before_and_after_the_defences_are_printed_first(
    tmp_path: Path, run: Command
) -> None:
    other = {"evaluators": ["criteria", "maths.length"], "reward": {"rubric": 1.0}}
    with run_server(AlwaysYes()) as server:
        ended = Project(tmp_path, run, server.url, **other).attack("--suite", "null")
    assert ended.code == 0, ended.err
    assert "false verdict: 31 of 31 without defences, 0 of 31 with those of the config" in ended.out
    assert "not attacked, because no model judges a single response: maths.length" in ended.err


@pytest.mark.landing
def test_json_has_every_arm_with_every_attack(project: Project):
    found = json.loads(project.attack("--json").out)
    assert (found["suite"], found["configured"], found["tasks"], found["honest"]) == (
        "master-keys",
        "all",
        1,
        1,
    )
    assert set(found["arms"]) == set(ARMS)
    for arm in found["arms"].values():
        assert set(arm["by_attack"]) == set(found["attacks"])
        assert set(arm["attacks"]["verdicts"]) == {
            "hits",
            "n",
            "rate",
            "low",
            "high",
            "n_eff",
            "tasks",
        }
    assert (
        found["arms"]["none"]["attacks"]["verdicts"]["rate"]
        > found["arms"]["all"]["attacks"]["verdicts"]["rate"]
    )


@pytest.mark.landing
def test_a_dry_run_estimates_the_requests_and_sends_nothing(project: Project, server: Server):
    ended = project.attack("--dry-run", "--json")
    assert (ended.code, server.count) == (0, 0)
    assert "dry run: nothing was sent or written" in ended.err
    assert json.loads(ended.out)["model"]["expected"]["calls"] > 0
    assert "calls" in project.attack("--dry-run").out
    project.tasks.write_text("".join(json.dumps({**TASK, "id": name}) + "\n" for name in "ab"))
    drawn = project.attack("--dry-run", "--sample", 1, "--seed", 3).out
    assert "tasks.jsonl: 1 of 2, drawn by --seed 3" in drawn
    assert "drawn" not in project.attack("--dry-run", "--sample", 2).out


@all_rows(
    "tasks, options, message",
    [
        ([TASK], ["--gate", "raet<=0"], "unknown statistic 'raet'; did you mean rate?"),
        ([TASK], ["--gate", "rate"], 'write it as in "rate<=0.01"'),
        (
            [TASK],
            ["--model", "none"],
            "--model: it is none, and evaluator 'criteria' asks a model; name one, or use",
        ),
        (
            [TASK, TASK],
            [],
            "tasks.jsonl, line 2, field id: task 'cake' is already in line 1; give each task an id of",
        ),
        ([], [], "tasks.jsonl: the file is empty; write one task per line"),
    ],
)
def test_wrong_input_is_refused_before_any_request(
    project: Project, server: Server, tasks: list[Any], options: list[str], message: str
):
    project.tasks.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    ended = project.attack(*options)
    assert (ended.code, server.count) == (2, 0)
    assert message in ended.err


def test_tasks_have_what_the_config_gives_all_and_one_arm_may_do(
    tmp_path: Path, run: Command, server: Server
) -> None:
    defaults = {"task_defaults": {"rubric": TASK["rubric"]}}
    project = Project(tmp_path, run, server.url, **defaults)
    project.tasks.write_text(json.dumps({**TASK, "rubric": None}) + "\n")
    ended = project.attack("--only", "configured", "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (list(found["arms"]), found["tasks"]) == (["all"], 1)
    assert "all (config)" in project.attack("--only", "configured").out


@pytest.mark.landing
def test_the_tasks_of_a_run_are_attacked_with_its_rubrics_and_texts(
    tmp_path: Path, run: Command, server: Server
) -> None:
    project = Project(tmp_path, run, server.url)
    other = {
        **TASK,
        "id": "pie",
        "responses": [{"id": f"pie/{n}", "text": HONEST + n} for n in "ab"],
    }
    project.tasks.write_text("".join(json.dumps(task) + "\n" for task in (TASK, other)))
    assert (
        run("score", project.tasks, "--config", project.config, "--out", tmp_path / "run").code == 0
    )
    assert run("erase", tmp_path / "run", "--response", "pie/b").code == 0
    options = ("--config", project.config, "--suite", "master-keys", "--only", "configured")
    ended = run("attack", *options, "--run", tmp_path / "run", "--json")
    assert ended.code == 0, ended.err
    figures = json.loads(ended.out)
    assert (figures["tasks"], figures["honest"]) == (2, 2)
    assert figures["source"] == f"tasks of {tmp_path / 'run'} with its rubrics"
    for model, code in ((), 0), (("--model", f"{config(server.url)['model']}-2"), 2):
        attacks = tmp_path / "attacks.json"
        attacks.write_text(run("attack", *options, *model, "--run", tmp_path / "run", "--json").out)
        ended = run("study", "certify", tmp_path / "run", "--attacks", attacks)
        assert (ended.code, "attacked than that of" in ended.err) == (code, code == 2), ended.err
    refused = run("attack", *options, "--run", tmp_path / "run", "--tasks", project.tasks)
    assert (refused.code, "expected one of --tasks TASKS and --run RUN" in refused.err) == (2, True)
    with_file = json.loads(run("attack", *options, "--tasks", project.tasks, "--json").out)
    assert figures["arms"]["all"]["attacks"] == with_file["arms"]["all"]["attacks"]


@pytest.mark.landing
def test_a_missed_threshold_exits_with_1_a_limit_with_4_and_a_failing_model_with_3(
    project: Project, server: Server, tmp_path: Path, run: Command
):
    stopped = project.attack("--max-calls", "5")
    assert (stopped.code, server.count) == (4, 5)
    assert "run the same command again: it continues from the cache" in stopped.err
    assert project.attack("--gate", "rate<=0, honest_rate>=1").code == 0
    missed = project.attack("--gate", "high<=1 and n>=1")
    assert missed.code == 1
    assert "threshold missed: high <= 1, but there is no high" in missed.err, (
        "one task has no interval"
    )
    other_reasons = lambda body, number: status(400, body={"error": {"message": "x" * number}})  # noqa: E731
    with run_server(other_reasons) as failing:
        ended = Project(tmp_path, run, failing.url).attack("--suite", "null", "--gate", "rate<=0")
    assert ended.code == 3
    assert "inconclusive: " in ended.err
    assert "of kind rejected" in ended.err


def test_attacks_through_what_a_judge_looks_up_are_a_suite(project: Project) -> None:
    """This judge looks nothing up, so that there is none of them, and the honest response is all to be judged."""
    ended = project.attack("--suite", "lookup", "--dry-run", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["responses"] == 1


def test_the_replies_of_chats_are_honest_responses(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": TASK["query"]},
        {"role": "assistant", "content": HONEST},
    ]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    ((_, (response,)),) = _read_tasks(str(tmp_path / "chats.jsonl"), allow_files_outside=False)
    assert response.text == HONEST
