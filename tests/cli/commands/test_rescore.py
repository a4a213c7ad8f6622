"""`jurygraph rescore`: other settings, the same verdicts, and no request.

Which rewards come out, and what may be set, is tested in `tests/runs/workflows/test_rescoring.py` and
`test_calibration.py`; how a map is fitted to labels in `tests/studies/test_calibration.py`.
"""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CONFIG, Command, folder_contents, write_project
from tests.rows import all_rows


def test_rescore_prints_the_changes_and_the_command_to_compare(
    scored_folder: Path, run: Command, tmp_path: Path
):
    before = folder_contents(scored_folder)
    ended = run("rescore", scored_folder, "--out", tmp_path / "again", "--set", "reward.shaky=0")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "rewards",
        "──────────────  ───────",
        "responses             4",
        "changed               3",
        "mean before     -0.0625",
        "mean after       0.3125",
        "failed before         0",
        "failed after          0",
        "largest change   0.5000",
    ]
    again = tmp_path / "again"
    assert ended.err == f"compare: jurygraph compare {scored_folder} {again}\n"
    assert (
        run("explain", again).err
        == "the lowest one, one of 2 at 0; --response ID explains another\n"
    )
    assert folder_contents(scored_folder) == before, "the run itself stays"
    compared = json.loads(run("compare", scored_folder, tmp_path / "again", "--json").out)
    assert (compared["mean_delta"], compared["flips"], compared["judged_both"]) == (0.375, 0, 8)


def test_json_gives_exact_numbers(scored_once: Path, run: Command, tmp_path: Path):
    ended = run(
        "rescore", scored_once, "--out", tmp_path / "again", "--set", "reward.shaky=0", "--json"
    )
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == {
        "run": str(tmp_path / "again"),
        "responses": 4,
        "changed": 3,
        "mean_before": -0.0625,
        "mean_after": 0.3125,
        "failed_before": 0,
        "failed_after": 0,
        "largest_change": 0.5,
        "kept": 0,
    }


@all_rows(
    "options, message",
    [
        (["--set", "reward.plite=1"], "there is no component 'plite'; did you mean polite?"),
        (["--set", "scale=1", "--set", "scale=-1"], "key scale: is the number -1"),
        (["--set", "reward"], "--set 'reward': expected key=value, such as rubric.kappa=2"),
        (["--set", "evaluators=[manners.polite]"], "with the other config"),
        (
            ["--artifact", "map.json"],
            "--artifact: stores the confusions of one component, or calibrations",
        ),
        (
            ["--calibrate", "manners.polite"],
            "--calibrate 'manners.polite': expected QUESTION=LABEL, such as crit",
        ),
        (["--out", "run"], "run: contains a run already; name another folder with --out"),
        (["--out", "./run/"], "contains a run already; name another folder with --out"),
        (["--out", "link"], "contains a run already; name another folder with --out"),
        (["--out", "."], ".: is neither a run nor empty"),
        (["--out", "tasks.jsonl"], "tasks.jsonl"),
        (["--out", "tasks.jsonl/x"], "tasks.jsonl/x"),
    ],
)
def test_wrong_input_is_one_line_and_nothing_is_written(
    scored_folder: Path,
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
):
    monkeypatch.chdir(scored_folder.parent)
    if not Path("link").is_symlink():
        Path("link").symlink_to("run")
    before = folder_contents(scored_folder.parent)
    ended = run("rescore", "run", "--out", "again", *options)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert folder_contents(scored_folder.parent) == before


READING = (
    ("show",),
    ("show", "--response", "door/a"),
    ("explain", "--response", "door/a"),
    ("export", "--to", "jsonl"),
    ("verify",),
    ("rescore", "--out", "third"),
    ("compare", "again"),
)


def test_every_command_reads_a_rescored_run_while_the_original_is_there(
    scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(scored_folder.parent)
    assert run("rescore", "run", "--out", "again", "--set", "scale=2").code == 0
    for command in READING:
        ended = run(command[0], "again", *command[1:])
        assert ended.code == 0, ended.err
    assert "salt/a    alice  ok      -0.5000    1.0000" in run("show", "again").out
    assert "scale: -0.2500 -> -0.5000" in run("show", "again", "--response", "salt/a").out
    assert "Scale: -0.25 × 2 = -0.5." in run("explain", "again", "--response", "salt/a").out
    assert f"the verdicts are those of {scored_folder}" in run("verify", "again").out
    scored_folder.rename(scored_folder.with_name("elsewhere"))
    for command in READING:
        ended = run(command[0], "again", *command[1:])
        assert (ended.code, ended.out) == (2, "")
        assert f"again: refers to the verdicts of {scored_folder}, which is not there" in ended.err


def test_score_adds_nothing_to_a_rescored_run(
    scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(scored_folder.parent)
    run("rescore", "run", "--out", "again", "--set", "scale=2")
    Path("jury.yaml").write_text(f"{CONFIG}scale: 2\n")
    before = folder_contents(Path("again"))
    assert run("score", "tasks.jsonl", "--out", "again").code in (0, 2)
    assert folder_contents(Path("again")) == before


def test_a_calibration_shows_its_gain_and_a_threshold_and_is_stored(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`polite` scores 0, .25, .5 and .75, and people accept from three times please on."""
    tasks = [
        {
            "id": f"t{n}",
            "query": "Ask.",
            "responses": [
                {"id": f"t{n}/r", "text": "please " * (n % 4), "labels": {"gold": n % 4 == 3}}
            ],
        }
        for n in range(40)
    ]
    project = write_project(
        tmp_path / "p", tasks, "evaluators: [manners.polite]\nreward: {polite: 2.0}\n"
    )
    monkeypatch.chdir(project)
    run("score", "tasks.jsonl", "--out", "run")
    rescore = (
        "rescore",
        "run",
        "--calibrate",
        "manners.polite=label.gold",
        "--false-positives",
        0.2,
    )
    ended = run(*rescore, "--out", "second")
    assert ended.code == 0
    assert "manners.polite: platt map of 40 labels in 40 tasks" in ended.out
    assert "gate: below 0." in ended.out
    ended = run(*rescore, "--out", "third", "--map", "isotonic", "--artifact", "map.json", "--json")
    assert (ended.code, ended.err) == (0, "")
    (found,) = json.loads(ended.out)["calibrated"]
    assert (found["labels"], found["tasks"], found["rows"]["calibrated"]["error"]["value"]) == (
        40,
        40,
        0.0,
    )
    assert list(json.loads((project / "map.json").read_text())) == ["manners.polite"]
    assert "polite 0 of 1, weight 2" in run("explain", "third", "--response", "t2/r").out
