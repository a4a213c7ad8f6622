"""`jurygraph rescore`: other settings, the same verdicts, and no request."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.workflows import rescoring
from tests.cli.conftest import (
    CONFIG,
    LETTERS,
    Command,
    change_ledger,
    folder_contents,
    read_calls,
    run_command,
    traces,
    write_project,
)


def stored_rewards(run: Command, folder: Path | str) -> list[tuple[Any, ...]]:
    """Return the exact rewards of a run and their plan digests."""
    return [(t["response_id"], json.dumps(t["reward"]), t["plan_digest"]) for t in traces(run, Path(folder))]


def stored_verdicts(run: Command, folder: Path | str) -> list[tuple[Any, ...]]:
    """Return the verdicts of a run."""
    return [(t["response_id"], t["verdicts"], t["group"], t["statistics"]) for t in traces(run, Path(folder))]


RUBRIC = {
    "criteria": [
        {"id": "core", "text": "It is right.", "weight": 2.0},
        {"id": "more", "text": "It is kind.", "weight": 1.0},
        {"id": "rude", "text": "It is rude.", "weight": -0.3},
    ],
    "edges": [{"parent": "core", "child": "more", "kind": "strong"}],
}
PEOPLE = [
    {"id": "ann", "profile": "in a hurry", "constraints": [{"id": "soon", "kind": "hard", "restrictiveness": 3.0}]},
    {"id": "ben", "profile": "at ease", "constraints": [{"id": "calm", "kind": "soft"}]},
]
RICH = """\
import jurygraph as jg


def share(text):
    return (len(text) % 7) / 7


@jg.evaluator(audience="criterion")
def met(task, response):
    return jg.Verdict(score=share(response.text + str(task.about.id)), reason=response.text)


@jg.evaluator(audience="stakeholder")
def useful(task, response):
    return share(response.text + str(task.about.id) * 2)


@jg.evaluator(scope="pair", pairs="ordered")
def better(task, first, second):
    return share(first.text + second.text)


def wary(task, response):
    return jg.Verdict.fail("refused", "it says nothing") if not response.text else share(response.text)
"""
USUAL_SETTINGS = {"a weight", "kappa", "a gate", "a component"}
"""Settings that are tested in every run of the tests; see `SETTINGS`."""

RICH_CONFIG = """\
evaluators: [manners.met, manners.useful, manners.better, manners.wary]
reward: {rubric: 0.7, stakeholders: 0.1, better: 0.3, wary: 0.2}
failure: {min_coverage: 0.1}
"""


@pytest.fixture
def rich(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a rubric, stakeholders, pairs, and a verdict that failed."""
    tasks = [{**task, "rubric": RUBRIC, "stakeholders": PEOPLE} for task in LETTERS]
    project = write_project(tmp_path / "rich", tasks, RICH_CONFIG, RICH)
    monkeypatch.chdir(project)
    ended = run("score", "tasks.jsonl", "--out", "run")
    assert ended.code in (0, 1), ended.err
    return project / "run"


SETTINGS = {
    "a weight": (["reward.rubric=-0.1"], {"rubric: 0.7": "rubric: -0.1"}),
    "a weight that is left out": (
        ["reward={better: 1.0}"],
        {"{rubric: 0.7, stakeholders: 0.1, better: 0.3, wary: 0.2}": "{better: 1.0}"},
    ),
    "kappa": (["rubric.kappa=2.5"], {"failure:": "rubric: {kappa: 2.5}\nfailure:"}),
    "the aggregation": (["rubric.aggregation=flat"], {"failure:": "rubric: {aggregation: flat}\nfailure:"}),
    "stakeholders alike": (["weights.method=uniform"], {"failure:": "weights: {method: uniform}\nfailure:"}),
    "the failure rule": (["failure.rule=gear"], {"min_coverage": "rule: gear, min_coverage"}),
    "least coverage": (["failure.min_coverage=0.99"], {"0.1}\n": "0.99}\n"}),
    "scale and clip": (["scale=3", "clip=[0.25, 0.5]"], {"failure:": "scale: 3\nclip: [0.25, 0.5]\nfailure:"}),
    "a gate": (
        ["gates=[{kind: format, component: wary, below: 0.5}]"],
        {"failure:": "gates: [{kind: format, component: wary, below: 0.5}]\nfailure:"},
    ),
    "a component": (
        ["components={both: {inputs: {a: manners.wary, b: manners.better}}}", "reward={both: 0.3}"],
        {
            "reward: {rubric: 0.7, stakeholders: 0.1, better: 0.3, wary: 0.2}": "reward: {both: 0.3}\n"
            "components: {both: {inputs: {a: manners.wary, b: manners.better}}}"
        },
    ),
}


@pytest.mark.landing
@pytest.mark.parametrize(
    ("settings", "edits"),
    [
        pytest.param(*values, id=name, marks=() if name in USUAL_SETTINGS else pytest.mark.exhaustive)
        for name, values in SETTINGS.items()
    ],
)
def test_rescoring_equals_scoring_under_the_same_settings(
    rich: Path, run: Command, settings: list[str], edits: dict[str, str]
):
    ended = run("rescore", rich, "--out", "again", *(part for one in settings for part in ("--set", one)))
    assert ended.code == 0, ended.err
    config = RICH_CONFIG
    for old, new in edits.items():
        assert config.count(old) == 1
        config = config.replace(old, new)
    Path("other.yaml").write_text(config)
    assert run("score", "tasks.jsonl", "--config", "other.yaml", "--out", "other").code in (0, 1)
    assert stored_rewards(run, "again") == stored_rewards(run, "other")
    assert stored_verdicts(run, "again") == stored_verdicts(run, rich)
    verified = run("verify", "again", "--deep")
    assert verified.code == 0, verified.err


def test_unchanged_settings_give_identical_rewards(rich: Path, run: Command):
    before = traces(run, rich)
    result = json.loads(run("rescore", rich, "--out", "again", "--json").out)
    assert result["changed"] == 0
    assert traces(run, Path("again")) == before
    assert (rich / "config.yaml").read_bytes() == Path("again/config.yaml").read_bytes()


def test_rescoring_calls_no_evaluator(letters_folder: Path, run: Command):
    read_calls(letters_folder.parent)
    (letters_folder.parent / "manners.py").unlink()
    assert run("rescore", letters_folder, "--out", "again", "--set", "reward.echo=3").code == 0
    assert run("verify", "again").code == 0
    assert read_calls(letters_folder.parent) == []


def test_rescore_prints_the_changes_and_the_command_to_compare(scored_folder: Path, run: Command, tmp_path: Path):
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


def test_json_gives_exact_numbers(scored_folder: Path, run: Command, tmp_path: Path):
    ended = run("rescore", scored_folder, "--out", tmp_path / "again", "--set", "reward.shaky=0", "--json")
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


def test_newly_failed_rewards_are_counted_and_are_not_zero(rich: Path, run: Command):
    settings = ("--set", "failure.min_coverage=1", "--set", "reward={wary: 1.0, better: 1.0}")
    result = json.loads(run("rescore", rich, "--out", "again", *settings, "--json").out)
    values = [trace["reward"]["value"] for trace in traces(run, Path("again"))]
    assert (result["failed_before"], result["failed_after"], values.count(None)) == (0, 1, 1)
    assert result["mean_after"] == pytest.approx(sum(value or 0 for value in values) / 4)


def test_the_original_run_is_unchanged(scored_folder: Path, run: Command, tmp_path: Path):
    before = folder_contents(scored_folder)
    run("rescore", scored_folder, "--out", tmp_path / "again", "--set", "scale=2")
    assert folder_contents(scored_folder) == before


def test_a_rescored_run_has_no_text_and_no_verdict(letters_folder: Path, run: Command):
    run("rescore", letters_folder, "--out", "again", "--set", "scale=2")
    content = b"".join(folder_contents(Path("again")).values())
    for text in (response["text"] for task in LETTERS for response in task["responses"] if response["text"]):
        assert text.encode() not in content
    assert b"it says" not in content


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["reward.plite=1"], "there is no component 'plite'; did you mean 'polite'?"),
        (["reword.polite=1"], "key reword: unknown; did you mean reward?"),
        (["failure.rle=strict"], "key failure.rle: unknown; did you mean rule?"),
        (["failure.rule=strct"], "key failure.rule: is the text 'strct'; did you mean strict?"),
        (["reward.polite=much"], "key reward.polite: is the text 'much'; write a number, without quotes"),
        (["reward.polite="], "key reward.polite: is null; write a number"),
        (["reward.polite=.nan"], "key reward.polite: is not a finite number"),
        (["scale=0"], "key scale: is the number 0; write a number above 0"),
        (["scale=1", "scale=-1"], "key scale: is the number -1"),
        (["clip=[1, 0]"], "key clip: does not rise"),
        (["scale.x=1"], "--set scale.x: 'scale' has no settings of its own; set it as a whole"),
        (["reward"], "--set 'reward': expected key=value, such as rubric.kappa=2"),
        ([""], "--set '': expected key=value"),
        (["=1"], "--set '=1': expected key=value"),
        (["reward={"], "--set reward={: expected a YAML value"),
        (["reward=!!python/object:os.system {}"], "--set reward=!!python/object:os.system {}"),
        (["components={x: {combiner: nothing.like_it, inputs: {a: manners.polite}}}"], "nothing.like_it"),
        (["rubric.aggregation=geer"], "key rubric.aggregation: is the text 'geer'; did you mean gear?"),
        (["evaluators=[manners.polite]"], "evaluators changes the questions, and re-scoring keeps them"),
        (["model=openai/x"], "model changes the questions"),
        (["langsmith=true"], "langsmith changes the questions"),
        (["derivers=[manners.none]"], "derivers changes the questions"),
        (["version=2"], "version: is the number 2; this jurygraph reads configs of version 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_invalid_setting_is_refused_with_what_is_expected(
    scored_folder: Path, run: Command, tmp_path: Path, settings: list[str], message: str
):
    before = sorted(tmp_path.rglob("*"))
    ended = run(
        "rescore", scored_folder, "--out", tmp_path / "again", *(part for one in settings for part in ("--set", one))
    )
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_settings_that_need_requests_are_refused_with_a_hint_at_branch(
    scored_folder: Path, run: Command, tmp_path: Path
):
    ended = run("rescore", scored_folder, "--out", tmp_path / "again", "--set", "evaluators=[manners.polite]")
    assert f"use `jurygraph score --branch {scored_folder}` with the other config" in ended.err


@pytest.mark.parametrize("empty", ["reward..polite=1", ".reward=1", "reward.=1", " =1"])
def test_an_empty_part_of_a_key_is_refused(scored_folder: Path, run: Command, tmp_path: Path, empty: str):
    ended = run("rescore", scored_folder, "--out", tmp_path / "again", "--set", empty)
    assert (ended.code, ended.out) == (2, "")
    assert not (tmp_path / "again").exists()


class TestWhereItGoes:
    @pytest.mark.parametrize("name", ["run", "./run/", "../project/run", "again", "link"])
    def test_an_existing_run_is_not_overwritten(
        self, scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch, name: str
    ):
        monkeypatch.chdir(scored_folder.parent)
        assert run("rescore", "run", "--out", "again").code == 0
        Path("link").symlink_to("run")
        before = folder_contents(scored_folder.parent)
        ended = run("rescore", "run", "--out", name, "--set", "scale=2")
        assert (ended.code, ended.out) == (2, "")
        assert "contains a run already; name another folder with --out" in ended.err
        assert folder_contents(scored_folder.parent) == before

    @pytest.mark.parametrize("name", [".", "tasks.jsonl", "tasks.jsonl/x"])
    def test_an_existing_file_is_not_overwritten(
        self, scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch, name: str
    ):
        monkeypatch.chdir(scored_folder.parent)
        before = folder_contents(scored_folder.parent)
        ended = run("rescore", "run", "--out", name)
        assert (ended.code, ended.out) == (2, "")
        assert name in ended.err
        assert folder_contents(scored_folder.parent) == before

    def test_an_empty_folder_can_be_used(self, scored_folder: Path, run: Command, tmp_path: Path):
        (tmp_path / "empty").mkdir()
        assert run("rescore", scored_folder, "--out", tmp_path / "empty").code == 0

    def test_missing_parent_folders_are_created(self, scored_folder: Path, run: Command, tmp_path: Path):
        assert run("rescore", scored_folder, "--out", tmp_path / "a" / "b" / "c").code == 0
        assert run("verify", tmp_path / "a" / "b" / "c").code == 0

    def test_a_rescored_run_can_be_inside_the_original_run(self, scored_folder: Path, run: Command):
        assert run("rescore", scored_folder, "--out", scored_folder / "again", "--set", "scale=2").code == 0
        for folder in (scored_folder, scored_folder / "again"):
            assert run("verify", folder).code == 0

    def test_a_rescored_run_works_from_any_current_folder(
        self, scored_folder: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.chdir(scored_folder)
        assert run("rescore", ".", "--out", "../again").code == 0
        monkeypatch.chdir(tmp_path)
        assert run("verify", "project/again").code == 0
        monkeypatch.chdir("project/again")
        assert run("verify", ".").code == 0

    def test_a_link_to_the_run_is_accepted(self, scored_folder: Path, run: Command, tmp_path: Path):
        (tmp_path / "link").symlink_to(scored_folder)
        assert run("rescore", tmp_path / "link", "--out", tmp_path / "again").code == 0
        (tmp_path / "link").unlink()
        assert run("verify", tmp_path / "again").code == 0

    def test_an_interrupt_leaves_no_new_run(
        self, scored_folder: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        def interrupt(made: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(rescoring, "append_close_record", interrupt)
        ended = run("rescore", scored_folder, "--out", tmp_path / "new" / "again")
        assert (ended.code, ended.out) == (130, "")
        assert not (tmp_path / "new").exists()


class TestOriginalRun:
    @pytest.fixture
    def again(self, scored_folder: Path, run: Command) -> Path:
        folder = scored_folder.parent / "again"
        assert run("rescore", scored_folder, "--out", folder, "--set", "scale=2").code == 0
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

    @pytest.mark.parametrize("command", READING, ids=" ".join)
    def test_every_command_reads_a_rescored_run(
        self, again: Path, run: Command, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.chdir(again.parent)
        ended = run(command[0], again, *command[1:])
        assert ended.code == 0, ended.err

    def test_its_rewards_are_shown_explained_and_exported(self, again: Path, run: Command):
        assert "salt/a    alice  ok      -0.5000    1.0000" in run("show", again).out
        assert run("explain", again, "--response", "salt/a").out.splitlines()[0].endswith("gets -0.5.")
        assert "Scale: -0.25 × 2 = -0.5." in run("explain", again, "--response", "salt/a").out
        assert "salt,salt/a,alice,-0.5,ok" in run("export", again, "--to", "csv").out
        assert f"the verdicts are those of {again.parent / 'run'}" in run("verify", again).out

    def test_an_unknown_response_is_refused_with_the_nearest(self, again: Path, run: Command):
        ended = run("show", again, "--response", "salt/aa")
        assert (ended.code, ended.out) == (2, "")
        assert "did you mean salt/a?" in ended.err

    @pytest.mark.parametrize("command", READING, ids=" ".join)
    def test_without_the_original_run_nothing_can_be_read_and_the_missing_folder_is_named(
        self, again: Path, scored_folder: Path, run: Command, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.chdir(again.parent)
        scored_folder.rename(scored_folder.with_name("elsewhere"))
        ended = run(command[0], again, *command[1:])
        assert (ended.code, ended.out) == (2, "")
        assert f"again: refers to the verdicts of {scored_folder}, which is not there" in ended.err

    def test_both_runs_can_be_moved_together(self, again: Path, scored_folder: Path, run: Command, tmp_path: Path):
        shutil.move(scored_folder.parent, tmp_path / "moved")
        assert run("verify", tmp_path / "moved" / "again").code == 0

    def test_another_run_in_place_of_the_original_is_refused(self, again: Path, scored_folder: Path, run: Command):
        shutil.rmtree(scored_folder)
        run("score", scored_folder.parent / "tasks.jsonl", "--out", scored_folder)
        for command in (("show", again), ("verify", again)):
            ended = run(*command)
            assert (ended.code, ended.out) == (5, "")
            assert "is another run than the one that" in ended.err

    @pytest.mark.parametrize("where", ["run", "again"])
    def test_a_change_in_either_run_is_detected(self, again: Path, run: Command, where: str):
        change_ledger(
            again.parent / where, "UPDATE records SET body = replace(body, '0.5', '0.6') WHERE key = 'door/a'"
        )
        ended = run("verify", again)
        assert (ended.code, ended.out) == (5, "")
        assert f"{again.parent / where / 'run.sqlite'}, record " in ended.err

    @pytest.mark.parametrize("command", [("show",), ("explain", "--response", "door/a"), ("export", "--to", "csv")])
    def test_a_changed_reward_is_never_shown(self, again: Path, run: Command, command: tuple[str, ...]):
        change_ledger(again, "UPDATE records SET body = replace(body, '1.0', '9.0') WHERE key = 'door/a'")
        ended = run(command[0], again, *command[1:])
        assert (ended.code, ended.out) == (5, "")

    def test_a_changed_run_cannot_be_rescored(self, scored_folder: Path, run: Command, tmp_path: Path):
        change_ledger(scored_folder, "UPDATE records SET body = replace(body, '0.25', '0.75') WHERE key = 'salt/a'")
        ended = run("rescore", scored_folder, "--out", tmp_path / "again")
        assert (ended.code, ended.out) == (5, "")
        assert not (tmp_path / "again").exists()

    def test_rescoring_a_rescored_run_refers_to_the_original_verdicts(self, again: Path, run: Command):
        third = again.parent / "third"
        assert run("rescore", again, "--out", third, "--set", "reward.shaky=0").code == 0
        shutil.rmtree(again)
        assert run("verify", third).code == 0
        assert [json.loads(reward)["value"] for _, reward, _ in stored_rewards(run, third)] == [2.0, 0.0, 0.5, 0.0]

    def test_settings_of_repeated_rescoring_accumulate(self, again: Path, run: Command):
        third = again.parent / "third"
        run("rescore", again, "--out", third, "--set", "scale=1")
        assert stored_rewards(run, third) == stored_rewards(run, again.parent / "run")

    def test_score_refuses_to_add_to_a_rescored_run(self, again: Path, run: Command):
        (again.parent / "jury.yaml").write_text(f"{CONFIG}scale: 2\n")
        before = folder_contents(again)
        ended = run_command("score", again.parent / "tasks.jsonl", "--out", again)
        assert ended.code in (0, 2)
        assert folder_contents(again) == before


def test_a_stopped_run_is_rescored_up_to_its_last_reward(project: Path, run: Command):
    run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
    assert json.loads(run("rescore", project / "run", "--out", project / "again", "--json").out)["responses"] == 2
    run("score", project / "tasks.jsonl", "--out", project / "run")
    assert len(stored_rewards(run, project / "again")) == 2
    assert len(stored_rewards(run, project / "run")) == 4
    assert run("verify", project / "again").code == 0


def test_a_run_stopped_before_its_first_reward_gives_an_empty_rescored_run(scored_folder: Path, run: Command):
    change_ledger(scored_folder, "DELETE FROM texts WHERE id >= 6 << 20")
    change_ledger(scored_folder, "DELETE FROM records WHERE seq > 5")
    found = json.loads(run("rescore", scored_folder, "--out", scored_folder.parent / "again", "--json").out)
    assert (found["responses"], found["mean_before"], found["mean_after"]) == (0, None, None)
    assert run("verify", scored_folder.parent / "again").code == 0


def test_compare_shows_the_effect_of_the_settings(scored_folder: Path, run: Command, tmp_path: Path):
    run("rescore", scored_folder, "--out", tmp_path / "again", "--set", "reward.shaky=0")
    found = json.loads(run("compare", scored_folder, tmp_path / "again", "--json").out)
    assert (found["mean_delta"], found["flips"], found["judged_both"]) == (0.375, 0, 8)
