"""`jurygraph rescore`: other settings, the same verdicts, and no request.

Which rewards come out, and what may be set, is tested in `tests/runs/workflows/test_rescoring.py`.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import CONFIG, Command, folder_contents, run_command, traces, write_project
from tests.rows import all_rows


def test_rescore_prints_the_changes_and_the_command_to_compare(scored_folder: Path, run: Command, tmp_path: Path):
    before = folder_contents(scored_folder)
    ended = run("rescore", scored_folder, "--out", tmp_path / "again", "--set", "reward.shaky=0")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "rewards",
        "─────────────  ───────",
        "responses            4",
        "changed              3",
        "mean before    -0.0625",
        "mean after      0.3125",
        "failed before        0",
        "failed after         0",
    ]
    assert ended.err == f"compare:  jurygraph compare {scored_folder} {tmp_path / 'again'}\n"
    assert folder_contents(scored_folder) == before, "the run itself stays"
    compared = json.loads(run("compare", scored_folder, tmp_path / "again", "--json").out)
    assert (compared["mean_delta"], compared["flips"], compared["judged_both"]) == (0.375, 0, 8)


def test_json_gives_exact_numbers(scored_once: Path, run: Command, tmp_path: Path):
    ended = run("rescore", scored_once, "--out", tmp_path / "again", "--set", "reward.shaky=0", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == {
        "run": str(tmp_path / "again"),
        "responses": 4,
        "changed": 3,
        "mean_before": -0.0625,
        "mean_after": 0.3125,
        "failed_before": 0,
        "failed_after": 0,
    }


@all_rows(
    "settings, message",
    [
        (["reward.plite=1"], "there is no component 'plite'; did you mean 'polite'?"),
        (["scale=1", "scale=-1"], "key scale: is the number -1"),
        (["reward"], "--set 'reward': expected key=value, such as rubric.kappa=2"),
        (["evaluators=[manners.polite]"], "with the other config"),
    ],
)
def test_an_invalid_setting_is_one_line_and_nothing_is_written(
    scored_once: Path, run: Command, tmp_path: Path, settings: list[str], message: str
):
    options = [part for one in settings for part in ("--set", one)]
    ended = run("rescore", scored_once, "--out", tmp_path / "again", *options)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_exists_is_overwritten(scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(scored_folder.parent)
    Path("link").symlink_to("run")
    before = folder_contents(scored_folder.parent)
    for name in ("run", "./run/", "../project/run", "link"):
        ended = run("rescore", "run", "--out", name, "--set", "scale=2")
        assert (ended.code, ended.out) == (2, "")
        assert "contains a run already; name another folder with --out" in ended.err
    for name in (".", "tasks.jsonl", "tasks.jsonl/x"):
        ended = run("rescore", "run", "--out", name)
        assert (ended.code, ended.out) == (2, "")
        assert name in ended.err
    assert folder_contents(scored_folder.parent) == before


def test_a_rescored_run_may_be_anywhere_and_works_from_any_current_folder(
    scored_folder: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(scored_folder)
    monkeypatch.chdir(scored_folder)
    for name in ("../../empty", "../../a/b/c", "inside"):
        assert run("rescore", ".", "--out", name).code == 0
    assert run("rescore", tmp_path / "link", "--out", tmp_path / "linked").code == 0
    (tmp_path / "link").unlink()
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "a/b/c", "linked", "project/run/inside", "project/run"):
        assert run("verify", name).code == 0
    monkeypatch.chdir("a/b/c")
    for command in (("verify", "."), ("show", "."), ("compare", ".", "../../../project/run")):
        assert run(*command).code == 0
    shutil.move(tmp_path / "project", tmp_path / "moved")
    assert run("verify", tmp_path / "moved" / "run" / "inside").code == 0, "both were moved together"


class TestOriginalRun:
    @pytest.fixture
    def again(self, scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
        folder = scored_folder.parent / "again"
        assert run("rescore", scored_folder, "--out", folder, "--set", "scale=2").code == 0
        monkeypatch.chdir(scored_folder.parent)
        return folder

    READING = (
        ("show",),
        ("show", "--response", "door/a"),
        ("explain", "--response", "door/a"),
        ("export", "--to", "jsonl"),
        ("verify",),
        ("rescore", "--out", "third"),
        ("compare", "again"),
    )

    def test_every_command_reads_a_rescored_run(self, again: Path, run: Command):
        for command in self.READING:
            ended = run(command[0], again, *command[1:])
            assert ended.code == 0, ended.err
        assert "salt/a    alice  ok      -0.5000    1.0000" in run("show", again).out
        explained = run("explain", again, "--response", "salt/a").out
        assert explained.splitlines()[0].endswith("gets -0.5.")
        assert "Scale: -0.25 × 2 = -0.5." in explained
        assert "salt,salt/a,alice,-0.5,ok" in run("export", again, "--to", "csv").out
        assert f"the verdicts are those of {again.parent / 'run'}" in run("verify", again).out
        unknown = run("show", again, "--response", "salt/aa")
        assert unknown.code == 2
        assert "did you mean salt/a?" in unknown.err

    def test_score_adds_nothing_to_a_rescored_run(self, again: Path, run: Command):
        (again.parent / "jury.yaml").write_text(f"{CONFIG}scale: 2\n")
        before = folder_contents(again)
        assert run("score", "tasks.jsonl", "--out", again).code in (0, 2)
        assert folder_contents(again) == before

    def test_without_the_original_run_nothing_can_be_read_and_the_missing_folder_is_named(
        self, again: Path, scored_folder: Path, run: Command
    ):
        scored_folder.rename(scored_folder.with_name("elsewhere"))
        for command in self.READING:
            ended = run(command[0], again, *command[1:])
            assert (ended.code, ended.out) == (2, "")
            assert f"again: refers to the verdicts of {scored_folder}, which is not there" in ended.err
        run("score", "tasks.jsonl", "--out", scored_folder)
        for command in self.READING:
            ended = run(command[0], again, *command[1:])
            assert (ended.code, ended.out) == (5, "")
            assert "is another run than the one that" in ended.err


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 40 tasks whose `polite` scores 0, .25, .5 and .75, and people accept from three times please on."""
    tasks = [
        {
            "id": f"t{n}",
            "query": "Ask.",
            "responses": [{"id": f"t{n}/r", "text": "please " * (n % 4), "labels": {"gold": n % 4 == 3}}],
        }
        for n in range(40)
    ]
    config = "evaluators: [manners.polite]\nreward: {polite: 2.0}\n"
    project = write_project(tmp_path_factory.mktemp("calibrated") / "p", tasks, config)
    run_command("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "run")
    return project


def test_calibrated_scores_count_and_a_config_can_name_them(calibrated: Path, run: Command, tmp_path: Path):
    project = shutil.copytree(calibrated, tmp_path / "p")
    options = ("--calibrate", "manners.polite=label.gold", "--map", "isotonic", "--artifact", project / "map.json")
    ended = run("rescore", project / "run", "--out", project / "second", *options, "--json")
    assert (ended.code, ended.err) == (0, "")
    (found,) = json.loads(ended.out)["calibrated"]
    assert (found["labels"], found["tasks"], found["rows"]["calibrated"]["error"]["value"]) == (40, 40, 0.0)
    rewards = {one["response_id"]: one["reward"]["value"] for one in traces(run, project / "second")}
    assert (rewards["t1/r"], rewards["t2/r"], rewards["t3/r"]) == (0.0, 0.0, 2.0)
    assert run("verify", project / "second").code == 0
    assert "polite 0 of 1, weight 2" in run("explain", project / "second", "--response", "t2/r").out
    config = (project / "jury.yaml").read_text() + "calibration: map.json\n"
    (project / "jury.yaml").write_text(config)
    run("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "third")
    assert {one["response_id"]: one["reward"]["value"] for one in traces(run, project / "third")} == rewards
    (project / "map.json").write_text((project / "map.json").read_text().replace("1.0", "0.9"))
    ended = run("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "fourth")
    assert ended.code == 2
    assert "key calibration.manners.polite.digest: is not that of the rest" in ended.err


def test_a_calibration_shows_its_gain_and_a_threshold(calibrated: Path, run: Command, tmp_path: Path):
    options = ("--calibrate", "manners.polite=label.gold", "--false-positives", 0.2)
    ended = run("rescore", calibrated / "run", "--out", tmp_path / "second", *options)
    assert ended.code == 0
    assert "manners.polite: platt map of 40 labels in 40 tasks" in ended.out
    assert "gate: below 0." in ended.out
    for setting, message in {
        "manners.polite": "expected QUESTION=LABEL",
        "manners.polte=label.gold": "no question 'manners.polte' has labels; did you mean manners.polite?",
        "manners.polite=label.gld": "no response has the label 'gld'; did you mean gold?",
    }.items():
        ended = run("rescore", calibrated / "run", "--out", tmp_path / "third", "--calibrate", setting)
        assert ended.code == 2
        assert message in ended.err
        assert not (tmp_path / "third").exists()
