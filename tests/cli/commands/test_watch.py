"""`jurygraph watch`."""

import json
import time
from pathlib import Path
from random import Random

import pytest

from jurygraph.cli.commands import watch
from jurygraph.runs.store.ledger import Ledger
from tests.cli.conftest import Command, called, contents, write_project

CONFIG = "evaluators: [manners.polite, manners.shaky]\nreward: {polite: 1.0, shaky: -0.1}\n"
STEPS, TURN, ROWS = 60, 45, 12


def tasks(steps: int = STEPS, turn: int = TURN) -> list[dict]:
    """A task a step. From the turn on responses are ruder; before it two of three say please once, twice or not."""
    random, found = Random(0), []
    for step in range(1, steps + 1):
        responses = [
            {
                "id": f"t{step:02}/r{row}",
                "text": "the door " + "please " * (random.choice([0, 1, 2]) if step < turn else 0),
                "labels": {"step": step},
            }
            for row in range(ROWS)
        ]
        found.append({"id": f"t{step:02}", "query": "Ask for the door.", "responses": responses})
    return found


@pytest.fixture
def polite(tmp_path: Path, run: Command) -> Path:
    """A run whose responses become rude."""
    return scored(tmp_path, run, tasks())


def scored(folder: Path, run: Command, lines: list[dict], *options: object) -> Path:
    project = write_project(folder / "project", lines, CONFIG)
    assert run("score", project / "tasks.jsonl", "--out", project / "run", *options).code == 0
    return project / "run"


def test_a_fall_is_told_with_its_step_and_the_command_exits_with_1(polite: Path, run: Command) -> None:
    ended = run("watch", polite, "--step-label", "step")
    assert ended.code == 1
    lines = ended.out.splitlines()
    fall = next(line for line in lines if "the mean reward" in line)
    step = int(fall.removeprefix("ADVERSE  step ").split(":")[0])
    assert TURN <= step <= TURN + 5
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("reward ", "component", "length "))}
    assert set(rows) == {"reward", "component.polite", "component.shaky", "length"}
    assert rows["reward"][1] == str(STEPS)
    assert lines[-1].startswith(f"{STEPS} steps; ")
    assert lines[-1].endswith("one false alarm is expected in 10000 steps")


def test_json_is_a_line_for_each_alert_and_one_for_the_report(polite: Path, run: Command) -> None:
    ended = run("watch", polite, "--step-label", "step", "--json")
    *alerts, last = (json.loads(line) for line in ended.out.splitlines())
    report = last["report"]
    assert [one["alert"] for one in alerts] == report["alerts"] != []
    assert (report["steps"], report["arl"]) == (STEPS, 10_000.0)
    assert sum(one["alert"]["adverse"] for one in alerts) >= 1


def test_without_change_it_exits_with_0(tmp_path: Path, run: Command) -> None:
    steady = scored(tmp_path, run, tasks(turn=STEPS + 1))
    ended = run("watch", steady, "--every", 1)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1].startswith(f"{STEPS} steps; 0 alerts, 0 adverse")


def test_steps_by_number_are_those_by_label_where_they_hold_the_same(polite: Path, run: Command) -> None:
    assert run("watch", polite, "--every", 1).out == run("watch", polite, "--step-label", "step").out


def test_what_is_left_over_is_no_step(polite: Path, run: Command) -> None:
    report = json.loads(run("watch", polite, "--every", 4, "--json").out.splitlines()[-1])["report"]
    assert report["steps"] == 15
    assert json.loads(run("watch", polite, "--every", 5, "--json").out.splitlines()[-1])["report"]["steps"] == 12


def test_a_component_of_negative_weight_is_a_penalty(tmp_path: Path, run: Command) -> None:
    """`shaky` is 1 unless a text says "bad": it falls, which spares a penalty, so that it is told and is not bad."""
    lines = tasks(turn=STEPS + 1)
    for line in lines[TURN:]:
        for response in line["responses"]:
            response["text"] += "bad"
    ended = run("watch", scored(tmp_path, run, lines), "--every", 1, "--json")
    alerts = [json.loads(line)["alert"] for line in ended.out.splitlines()[:-1]]
    assert {(one["direction"], one["adverse"]) for one in alerts if one["series"] == "component.shaky"} == {
        ("down", False)
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--every", 60), "has 1 step; the tests need at least 11; choose smaller steps with --every N"),
        ((), "has 1 step; the tests need at least 11"),
        (("--every", 25), "has 2 steps; the tests need at least 11"),
        (("--step-label", "epoch"), "response 't01/r0': has no label 'epoch'; its labels: 'step'"),
        (("--step-label", "step", "--every", 3), "--step-label and --every both define a step"),
        (("--every", 1, "--plot", "a.gif"), "a.gif: pictures end in"),
    ],
)
def test_wrong_input_is_told_and_exits_with_2(polite: Path, run: Command, options: tuple, said: str) -> None:
    ended = run("watch", polite, *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_no_run_is_wrong_input(tmp_path: Path, run: Command) -> None:
    assert run("watch", tmp_path).code == 2


def labelled(*steps: object) -> list[dict]:
    lines = tasks(len(steps))
    for line, step in zip(lines, steps, strict=True):
        for response in line["responses"]:
            response["labels"] = {"step": step}
    return lines


def test_a_label_that_comes_again_is_refused(tmp_path: Path, run: Command) -> None:
    ended = run("watch", scored(tmp_path, run, labelled(1, 2, 1)), "--step-label", "step")
    assert ended.code == 2
    assert "task 't03': label 'step' is 1 again, after others; order tasks by it" in ended.err


def test_a_task_of_two_steps_is_refused(tmp_path: Path, run: Command) -> None:
    lines = labelled(1, 2)
    lines[1]["responses"][3]["labels"] = {"step": 7}
    ended = run("watch", scored(tmp_path, run, lines), "--step-label", "step")
    assert ended.code == 2
    assert "task 't02': its responses differ in label 'step'" in ended.err


def test_the_picture_is_drawn(polite: Path, run: Command, tmp_path: Path) -> None:
    assert run("watch", polite, "--every", 1, "--plot", tmp_path / "a.png").code == 1
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def half(tmp_path: Path, run: Command) -> Path:
    """A run of which the first 30 steps are scored."""
    return scored(tmp_path, run, tasks(), "--limit", 30)


def test_a_run_is_followed_until_it_is_closed_and_its_writer_is_not_held_up(
    half: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []

    def rest(seconds: float) -> None:
        """Another process goes on with the run while this one waits."""
        waits.append(seconds)
        done = called("score", half.parent / "tasks.jsonl", "--out", half)
        assert done.code == 0, done.err

    monkeypatch.setattr(watch.time, "sleep", rest)
    followed = run("watch", half, "--every", 1, "--follow")
    assert len(waits) == 1
    assert followed.code == 1
    assert followed.out == run("watch", half, "--every", 1).out


def test_ctrl_c_ends_with_what_was_seen(half: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    before = contents(half)
    monkeypatch.setattr(time, "sleep", interrupt)
    ended = run("watch", half, "--every", 1, "--follow")
    assert ended.code == 130
    assert "interrupted" in ended.err
    assert ended.out.splitlines()[-1].startswith("30 steps; ")
    assert contents(half) == before


def test_what_is_there_of_an_open_run_is_watched_without_following(half: Path, run: Command) -> None:
    ended = run("watch", half, "--every", 1)
    assert ended.code == 0
    assert ended.out.splitlines()[-1].startswith("30 steps; 0 alerts")


def test_erased_responses_take_no_label_away_and_are_counted(tmp_path: Path, run: Command) -> None:
    """A task that lost one is where it was; tasks that lost all belong to the step before, the first to that behind."""
    lines = tasks()
    for response in (response for line in lines for response in line["responses"]):
        response["text"] += response["id"]  # a text that others have is erased there, too
    polite = scored(tmp_path, run, lines)
    for what in (("--response", "t20/r3"), ("--task", "t30"), ("--task", "t01")):
        assert called("erase", polite, *what).code == 0
    ended = run("watch", polite, "--step-label", "step", "--json")
    assert ended.code == 1
    assert json.loads(ended.out.splitlines()[-1])["report"]["steps"] == STEPS - 2
    assert f"{1 + 2 * ROWS} responses were erased; their rewards are used" in ended.err


def test_a_label_that_is_missing_is_named_by_a_response_that_is_there(polite: Path, run: Command) -> None:
    assert called("erase", polite, "--response", "t01/r0").code == 0
    ended = run("watch", polite, "--step-label", "epoch")
    assert (ended.code, "response 't01/r1': has no label 'epoch'; its labels: 'step'" in ended.err) == (2, True)


def test_a_run_that_is_not_there_yet_or_is_still_planned_is_waited_for(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write_project(tmp_path / "project", tasks(), CONFIG)
    folder, seen = project / "run", []

    def rest(seconds: float) -> None:
        """First nothing is there, then an empty folder, then a ledger without a record, then the run."""
        seen.append(sorted(path.name for path in folder.iterdir()) if folder.exists() else None)
        if len(seen) == 1:
            folder.mkdir()
        elif len(seen) == 2:
            Ledger.create(folder / "run.sqlite").close()
        else:
            assert called("score", project / "tasks.jsonl", "--out", folder).code == 0

    monkeypatch.setattr(watch.time, "sleep", rest)
    followed = run("watch", folder, "--every", 1, "--follow")
    assert (len(seen), seen[:2], followed.code) == (3, [None, []], 1)
    assert followed.out == run("watch", folder, "--every", 1).out


def test_a_run_that_never_comes_is_waited_for_until_ctrl_c(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch.time, "sleep", interrupt)
    ended = run("watch", tmp_path / "never", "--follow")
    assert (ended.code, ended.out) == (130, "")
    assert "interrupted" in ended.err


def test_where_no_run_can_come_nothing_is_waited_for(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: pytest.fail("it waits"))
    (tmp_path / "file").write_text("")
    for path, said in ((tmp_path / "file", "is not a folder"), (tmp_path, "contains no run")):
        ended = run("watch", path, "--follow")
        assert (ended.code, said in ended.err) == (2, True)


@pytest.mark.parametrize("arl", ["inf", "1e300"])
def test_an_average_run_length_out_of_bounds_is_wrong_input(polite: Path, run: Command, arl: str) -> None:
    ended = run("watch", polite, "--arl", arl)
    assert (ended.code, ended.out) == (2, "")
    assert f"--arl: expected a number of steps from 10 to 1e+09, got {float(arl):g}" in ended.err


def test_a_run_whose_rewards_all_failed_tested_nothing(tmp_path: Path, run: Command) -> None:
    project = write_project(tmp_path / "project", tasks(12), CONFIG + "failure: {rule: strict}\n")
    lines = (project / "tasks.jsonl").read_text().replace("the door ", "crash ")
    (project / "tasks.jsonl").write_text(lines)
    run("score", project / "tasks.jsonl", "--out", project / "run")
    ended = run("watch", project / "run", "--every", 1)
    assert (ended.code, ended.out) == (2, "")
    assert "no reward has a value, so nothing was tested" in ended.err
