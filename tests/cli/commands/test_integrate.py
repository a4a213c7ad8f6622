"""`integrate` writes examples that run: rows with the ids of tasks, and rewards of a jury."""

import asyncio
import json
import runpy
import sys
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest

import jurygraph as jg
from jurygraph.cli.commands.serve import serve
from jurygraph.integrations import lazy_jury
from tests.command import run_command, run_script

RIGHT = "<think>17 + 25 = 42</think><answer>42</answer>"
WRONG = "<think>17 + 25 = 41</think><answer>41</answer>"
OPEN_CLIENT = httpx.AsyncClient
SERVER_PORT = signature(serve).parameters["port"].default


@pytest.fixture(autouse=True)
def _close_juries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the juries that an example opened."""
    opened: list[lazy_jury.LazyJury] = []
    make = lazy_jury.LazyJury.__init__

    def keep(jury: lazy_jury.LazyJury, *arguments: Any) -> None:
        make(jury, *arguments)
        opened.append(jury)

    monkeypatch.setattr(lazy_jury.LazyJury, "__init__", keep)
    lazy_jury._make_shared_jury.cache_clear()
    yield
    for jury in opened:
        jury.close()
    lazy_jury._make_shared_jury.cache_clear()


def write(trainer: str, folder: Path) -> Path:
    written = run_command("integrate", trainer, "--out", folder / trainer)
    assert written.code == 0, written.err
    return folder / trainer


def load(file: Path, monkeypatch: pytest.MonkeyPatch, **modules: dict[str, Any]) -> Any:
    """Return the names of an example's file, where stubs stand for the modules of its trainer."""
    for name, content in modules.items():
        stub = ModuleType(name.replace("__", "."))
        stub.__dict__.update(content)
        monkeypatch.setitem(sys.modules, stub.__name__, stub)
        parent, _, last = stub.__name__.rpartition(".")
        if parent:
            package = ModuleType(parent)
            setattr(package, last, stub)
            monkeypatch.setitem(sys.modules, parent, package)
    names: dict[str, Any] = {"__name__": "example", "__file__": str(file)}
    exec(compile(file.read_text("utf-8"), str(file), "exec"), names)
    return SimpleNamespace(**names)


def test_the_example_of_trl_scores_the_rows_that_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write("trl", tmp_path)
    monkeypatch.setenv("RANK", "0")
    example = load(folder / "train.py", monkeypatch)
    row = example.read_rows()[0]
    judge, brief = example.make_functions()
    columns = {name: [row[name]] * 2 for name in ("task_id", "reference", "rubric")}
    chats = [[{"role": "assistant", "content": text}] for text in (RIGHT, WRONG)]
    given = {"prompts": [row["prompt"]] * 2, "completions": chats, **columns}
    assert brief(**given) == [1.0, 1.0]
    right, wrong = asyncio.run(judge(**given))
    assert (right, wrong) == (1.5, 0.5)
    judge.close()
    shown = run_command("show", folder / "run" / "0", "--json")
    traces = [json.loads(line) for line in shown.out.splitlines()]
    assert [trace["task_id"] for trace in traces] == ["addition", "addition"]


def test_the_example_of_openrlhf_scores_the_rows_that_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write("openrlhf", tmp_path)
    assert run_script(folder / "make_data.py").code == 0
    row = json.loads((folder / "train.jsonl").read_text("utf-8").splitlines()[0])
    example = load(folder / "reward.py", monkeypatch)
    scored = example.reward_func([row["input"] + RIGHT], [row["input"]], [row["label"]])
    assert scored["rewards"] == [1.5]


def test_the_rows_of_verl_are_scored_by_its_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jurygraph.integrations.verl import compute_score

    folder = write("verl", tmp_path)
    row = load(folder / "make_data.py", monkeypatch).read_rows()[0]
    truth = row["reward_model"]["ground_truth"]
    work = compute_score("x", RIGHT, truth, row["extra_info"], config=folder / "jury.yaml")
    scored = asyncio.run(work)
    assert (scored["score"], scored["jury_task"]) == (1.5, "addition")
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "pandas", None)
        problem = r"^train.parquet: pandas is not installed; pip install 'jurygraph\[pandas]'$"
        with pytest.raises(SystemExit, match=problem):
            runpy.run_path(str(folder / "make_data.py"), run_name="__main__")
    assert run_script(folder / "make_data.py").code == 0
    assert (folder / "train.parquet").exists()
    script = (folder / "train.sh").read_text("utf-8")
    assert "reward.reward_manager.name=JuryRewardManager" in script
    assert f"reward_kwargs.url=http://127.0.0.1:{SERVER_PORT} " in script


class VerifiersTask:
    """verifiers' Task and Taskset, which keep what they are made of."""

    def __init__(self, *content: Any) -> None:
        (self.data, self.config) = (content[0], content[-1])

    @classmethod
    def __class_getitem__(cls, types: Any) -> Any:
        return cls


class TaskData(SimpleNamespace):
    """verifiers' TaskData."""


def test_the_judge_of_verifiers_scores_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write("verifiers", tmp_path)
    stubs: dict[str, Any] = {"Judge": object, "TaskData": TaskData, "TaskConfig": TaskData}
    stubs |= dict.fromkeys(("Task", "Taskset", "TasksetConfig"), VerifiersTask)
    example = load(folder / "jury_taskset.py", monkeypatch, verifiers__v1=stubs)
    config = example.JuryTasksetConfig
    assert config.task.judges == [{"id": "jury_judge"}]
    (taskset_name,) = example.__all__
    task, _ = getattr(example, taskset_name)(config).load()
    assert (task.data.id, task.config) == ("addition", config.task)
    judge = load(folder / "jury_judge.py", monkeypatch, verifiers__v1=stubs).Jury()
    judged = asyncio.run(judge.score(task.data, SimpleNamespace(last_reply=RIGHT)))
    assert sum(judged.values()) == 1.5
    assert len(run_command("show", folder / "run", "--json").out.splitlines()) == 1


def test_the_plugin_of_ms_swift_and_the_group_function_of_slime_score_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orms: dict[str, Any] = {}
    plugin = load(
        write("ms-swift", tmp_path) / "plugin.py",
        monkeypatch,
        swift__rewards={"AsyncORM": object, "orms": orms},
    )
    prompt = {"role": "user", "content": "What is 17 + 25?"}
    chats = [[prompt, {"role": "assistant", "content": text}] for text in (RIGHT, WRONG)]
    values = orms["jurygraph"]()([RIGHT, WRONG], messages=chats, reference=["42", "42"])
    assert asyncio.run(values) == [1.5, 0.5]
    plugin.reward.close()
    example = load(write("slime", tmp_path) / "reward.py", monkeypatch)
    samples = [
        SimpleNamespace(prompt="What is 17 + 25?", label="42", response=text)
        for text in (RIGHT, WRONG)
    ]
    assert asyncio.run(example.score_group(None, samples)) == [1.5, 0.5]


@pytest.fixture
def bodies(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bodies that clients sent, in their order, to a server that gives a reward to right answers alone."""
    received: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.port == SERVER_PORT
        received.append(json.loads(request.content))
        reward = 1.5 if received[-1]["responses"] == [RIGHT] else None
        return httpx.Response(200, json={"rewards": [reward], "traces": []})

    transport = httpx.MockTransport(answer)
    monkeypatch.setattr(httpx, "AsyncClient", lambda **settings: OPEN_CLIENT(transport=transport))
    return received


def test_the_function_of_trl_that_asks_the_server_sends_each_member_of_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bodies: list[Any]
) -> None:
    folder = write("trl", tmp_path)
    row = load(folder / "train.py", monkeypatch).read_rows()[0]
    example = load(folder / "server_reward.py", monkeypatch)
    columns = {name: [value] * 2 for name, value in row.items() if name != "prompt"}
    rewards = example.server_reward(
        prompts=[row["prompt"]] * 2,
        completions=[[{"role": "assistant", "content": text}] for text in (RIGHT, WRONG)],
        trainer_state=SimpleNamespace(global_step=3),
        **columns,
    )
    assert asyncio.run(rewards) == [1.5, None]
    assert [(body["step"], body["cohort"]) for body in bodies] == [(4, {"size": 8})] * 2
    assert jg.Task(**bodies[0]["task"]).reference == "42"


def test_the_environment_of_skyrl_asks_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bodies: list[Any]
) -> None:
    folder = write("skyrl", tmp_path)
    stubs = {"BaseTextEnv": object}
    example = load(
        folder / "env.py",
        monkeypatch,
        skyrl_gym={},
        skyrl_gym__envs__base_text_env=stubs,
    )
    line = (folder / "tasks.jsonl").read_text("utf-8").splitlines()[0]
    step = example.JuryEnv(None, {"task": line, "n": 8}).step(RIGHT)
    assert (step["reward"], bodies[0]["cohort"]) == (1.5, {"size": 8})
    assert jg.Task(**bodies[0]["task"]).id == "addition"


def test_an_unknown_trainer_and_a_folder_that_exists_are_refused(tmp_path: Path) -> None:
    wrong = run_command("integrate", "trll", cwd=tmp_path)
    assert (wrong.code, "did you mean trl" in wrong.err) == (2, True)
    write("trl", tmp_path)
    again = run_command("integrate", "trl", "--out", tmp_path / "trl")
    assert (again.code, "was not overwritten" in again.err) == (2, True)


def test_the_config_says_what_a_failure_does_and_has_a_judge_to_put_in(tmp_path: Path) -> None:
    path = write("trl", tmp_path) / "jury.yaml"
    config = path.read_text(encoding="utf-8")
    assert (
        "\nfailure: {rule: decisive}   # a failed judgement that could change a reward leaves none; "
        in config
    )
    _, judge_lines = config.split("these lines replace those above:\n")
    replaced = [line.removeprefix("# ") for line in judge_lines.splitlines()]
    path.write_text("\n".join([*replaced, "failure: {rule: decisive}"]), encoding="utf-8")
    with jg.Jury.from_config(path) as jury:
        assert jury.config.reward["reasoning"] == 0.25
        assert [None, *jury.evaluators][-1] == "quality.reasoning"
