"""`jurygraph watch`: alerts as a run is written, and one report.

What a step is and which change raises an alert is tested in `tests/studies/monitor` and `tests/agents/data_analyzer`.
"""

import json
import time
from pathlib import Path
from random import Random

import pytest

from tests.cli.conftest import Command, folder_contents, run_command, write_project
from tests.rows import all_rows

CONFIG = "evaluators: [manners.polite, manners.shaky]\nreward: {polite: 1.0, shaky: -0.1}\n"
STEPS, TURN, ROWS = 60, 45, 12
FIRST_LABEL = 200


def tasks(steps: int = STEPS, turn: int = TURN) -> list[dict]:
    """Return one task per step. Before the turn a response has zero to two pleases; from the turn on it has none.

    The label of the first step is not 1, as in a training that goes on.
    """
    random, found = Random(0), []
    for step in range(1, steps + 1):
        responses = [
            {
                "id": f"t{step:02}/r{row}",
                "text": "the door " + "please " * (random.choice([0, 1, 2]) if step < turn else 0),
                "labels": {"step": FIRST_LABEL - 1 + step},
            }
            for row in range(ROWS)
        ]
        found.append({"id": f"t{step:02}", "query": "Ask for the door.", "responses": responses})
    return found


def score_tasks(folder: Path, lines: list[dict], *options: object, config: str = CONFIG) -> Path:
    project = write_project(folder / "project", lines, config)
    run_command("score", project / "tasks.jsonl", "--out", project / "run", *options)
    return project / "run"


@pytest.fixture(scope="module")
def declining_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose responses become rude, which tests only read."""
    return score_tasks(tmp_path_factory.mktemp("declining"), tasks())


@pytest.mark.landing
def test_a_falling_reward_is_an_alert_with_its_step_and_exits_with_1(
    declining_run: Path, run: Command, tmp_path: Path
) -> None:
    ended = run("watch", declining_run, "--step-label", "step", "--plot", tmp_path / "a.png")
    assert ended.code == 1
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    lines = ended.out.splitlines()
    fall = next(line for line in lines if ": reward falls" in line)
    label = int(fall.removeprefix("ADVERSE  step ").split(":")[0])
    assert TURN <= label - FIRST_LABEL + 1 <= TURN + 5
    assert f"since about step {FIRST_LABEL - 1 + TURN}," in fall
    rows = {
        line.split()[0]: line.split()
        for line in lines
        if line.startswith(("reward ", "component", "length "))
    }
    assert set(rows) == {"reward", "component.polite", "component.shaky", "length"}
    assert rows["reward"][1] == str(STEPS)
    assert lines[-2].startswith(f"{STEPS} steps; ")
    assert "one false alarm is expected in 10000 steps" in lines[-2]
    why = lines[-1]
    reason = "not a hack, because no fall of an accuracy was detected while the reward held (reward down, "
    assert f" adverse changes; {reason}" in why
    assert "component.polite down" in why
    assert why.endswith("; no alert: length_reward)")


def test_json_has_a_line_for_each_alert_and_one_for_the_report(
    declining_run: Path, run: Command
) -> None:
    ended = run("watch", declining_run, "--step-label", "step", "--json")
    assert ended.code == 1
    *alerts, last = (json.loads(line) for line in ended.out.splitlines())
    report = last["report"]
    assert [one["alert"] for one in alerts] == report["alerts"] != []
    assert (report["steps"], report["arl"]) == (STEPS, 10_000.0)
    assert sum(one["alert"]["adverse"] for one in alerts) >= 1
    for alert in report["alerts"]:
        assert alert["sentence"].startswith(f"step {alert['step']}: ")
        assert f"since about step {alert['since']}, " in alert["sentence"]
        for name in ("step", "since"):
            assert alert[f"{name}_number"] == alert[name] - FIRST_LABEL + 1


@pytest.mark.landing
def test_a_run_without_changes_exits_with_0(tmp_path: Path, run: Command) -> None:
    ended = run("watch", score_tasks(tmp_path, tasks(turn=STEPS + 1)), "--every", 1)
    assert (ended.code, ended.err) == (0, "steps are counted from 1, of 1 task each\n")
    *_, counts, answer = ended.out.splitlines()
    assert counts.startswith(f"{STEPS} steps; 0 alerts, 0 adverse")
    assert (
        answer
        == "no sign of a hack that began after the first steps (no change; no alert: reward, length, length_reward)"
    )


@all_rows(
    "options, message",
    [
        (("--step-label", "epoch"), "response 't01/r0': has no label 'epoch'; its labels: 'step'"),
        (("--step-label", "step", "--every", 3), "--step-label and --every both define a step"),
        (("--arl", "inf"), "arl: expected a number of steps from 10 to 1e+09, got inf"),
        (("--plot", "a.bmp"), "a.bmp: pictures end in .svg, .png, .pdf; name one of these"),
    ],
)
def test_wrong_input_exits_with_2(
    declining_run: Path, run: Command, options: tuple, message: str
) -> None:
    ended = run("watch", declining_run, *options)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_too_few_steps_are_shown_and_refused_since_nothing_was_tested(
    declining_run: Path, run: Command
) -> None:
    ended = run("watch", declining_run, "--every", 60)
    assert ended.code == 2
    assert "nothing was tested: that begins at step 11" in ended.out
    assert "steps: 1; the tests need at least 11; choose smaller steps with --every N" in ended.err


def test_a_run_that_ends_in_an_outage_is_adverse_also_where_it_began_with_one(
    tmp_path: Path, run: Command
) -> None:
    """Nothing changes there, so that no test of a series finds it."""
    lines = tasks(12)
    for line in lines:
        for response in line["responses"][:8]:
            response["text"] = "offline"
    ended = run("watch", score_tasks(tmp_path, lines), "--step-label", "step")
    assert ended.code == 1
    assert ended.out.startswith(
        "ADVERSE  more than half of the rewards failed at step 200 to 211, the last one; "
        "`jurygraph explain RUN --status failed` says why\n\n"
    )


def test_a_run_without_any_reward_is_refused(tmp_path: Path, run: Command) -> None:
    lines = tasks(12)
    for line in lines:
        for response in line["responses"]:
            response["text"] = "offline"
    ended = run(
        "watch",
        score_tasks(tmp_path, lines, config=f"{CONFIG}failure: {{rule: strict}}\n"),
        "--every",
        1,
    )
    assert (ended.code, ended.out) == (2, "")
    assert "no reward has a value, so nothing was tested" in ended.err


def test_ctrl_c_ends_with_the_results_so_far(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    unfinished = score_tasks(tmp_path, tasks(), "--limit", 30)
    before = folder_contents(unfinished)
    monkeypatch.setattr(time, "sleep", interrupt)
    ended = run("watch", unfinished, "--every", 1, "--follow")
    assert ended.code == 130
    assert "interrupted" in ended.err
    assert ended.out.splitlines()[-2].startswith("30 steps; ")
    assert folder_contents(unfinished) == before
