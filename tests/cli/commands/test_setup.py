"""`jurygraph init`, `doctor` and `preset`, the version, and the boundary."""

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from jurygraph.cli.commands import setup
from jurygraph.sources import parse_config_mapping, read_config, read_tasks
from jurygraph.sources.config import PRESETS
from tests.cli.conftest import Command, folder_contents
from tests.rows import all_rows

FILES = ["README.md", "jury.yaml", "tasks.jsonl"]


def test_init_creates_a_project_with_valid_files(tmp_path: Path, run: Command):
    ended = run("init", tmp_path / "new" / "jury")
    folder = tmp_path / "new" / "jury"
    assert ended.code == 0
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert ended.out.splitlines() == [str(folder / name) for name in FILES]
    assert f"next: cd {folder}, then jurygraph score tasks.jsonl --out run\n" in ended.err
    pairs = read_tasks(folder / "tasks.jsonl")
    assert 5 <= len(pairs) <= 6
    assert any(response.text == "" for _, responses in pairs for response in responses)
    assert read_config(folder / "jury.yaml").model == "none"


def test_the_project_runs_as_it_is(tmp_path: Path, run: Command):
    run("init", tmp_path / "jury")
    folder = tmp_path / "jury"
    ended = run(
        "score", folder / "tasks.jsonl", "--config", folder / "jury.yaml", "--out", folder / "run"
    )
    assert ended.code == 0, ended.err
    rewards = {
        trace["response_id"]: trace["reward"]["value"]
        for trace in map(json.loads, run("show", folder / "run", "--json").out.splitlines())
    }
    for task in ("eggs", "train", "cake", "shirt", "ages"):
        assert rewards[f"{task}/careful"] > rewards[f"{task}/hasty"]
    assert rewards["cake/silent"] <= rewards["cake/hasty"]


def test_every_template_is_named_in_the_help(run: Command):
    folders = [
        path for path in (Path(setup.__file__).parents[1] / "templates").iterdir() if path.is_dir()
    ]
    assert len(folders) == 10
    text = run("init", "--help").out
    assert all(folder.name in text for folder in folders)


@all_rows(
    "arguments, message",
    [
        (("init", "."), ".: exists and was not overwritten; name another folder"),
        (("init", "jury", "--template", "math"), "unknown template 'math'; did you mean maths?"),
        (("preset", "macrm-vanilla-5"), "did you mean macrm-vanilla-"),
    ],
)
def test_wrong_input_exits_with_2_and_writes_nothing(
    tmp_path: Path,
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jury.yaml").write_text("mine")
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert folder_contents(tmp_path) == {"jury.yaml": b"mine"}


def test_doctor_prints_names_of_keys_and_never_their_values(
    run: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-do-not-show")
    for ended in (run("doctor"), run("doctor", "--json")):
        assert ended.code == 0
        assert "OPENAI_API_KEY" in ended.out
        assert "sk-do-not-show" not in ended.out + ended.err


def test_doctor_lists_the_extras_that_a_user_installs(run: Command):
    checks = json.loads(run("doctor", "--json").out)["checks"]
    extras = [check["detail"].partition(":")[0] for check in checks if check["name"] == "extra"]
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert extras == sorted({*project["optional-dependencies"]} - {"dev", "heavy", "mutants"})


def test_doctor_checks_that_a_config_can_run(project: Path, run: Command):
    assert run("doctor", "--config", project / "jury.yaml").code == 0
    (project / "jury.yaml").write_text("evaluators: [maths.acuracy]")
    ended = run("doctor", "--config", project / "jury.yaml")
    assert ended.code == 2
    assert "did you mean maths.accuracy?" in ended.out


def test_doctor_opens_the_jury_of_a_config_and_contacts_no_model(project: Path, run: Command):
    source = "import jurygraph as jg\n\n\nclass Manners(jg.Evaluator):\n"
    source += "    name = 'manners'\n\n    def open(self):\n        open('words.txt').close()\n\n"
    source += "    def answer(self, inputs):\n        return 1.0\n"
    (project / "manners.py").write_text(source)
    (project / "jury.yaml").write_text("evaluators: [manners.Manners]\n")
    ended = run("doctor", "--config", project / "jury.yaml")
    assert ended.code == 2
    assert "words.txt" in ended.out
    (project / "manners.py").write_text(source.replace("open('words.txt').close()", "pass"))
    ended = run("doctor", "--config", project / "jury.yaml")
    assert ended.code == 0, ended.out
    assert "contacted" not in ended.out, "there is no model"
    nobody = "model: openai-compatible:http://127.0.0.1:9/v1#nobody\n"
    (project / "jury.yaml").write_text(f"{nobody}evaluators: [manners.Manners]\n")
    last_line = run("doctor", "--config", project / "jury.yaml").out.splitlines()[-1]
    assert "no model was contacted" in last_line
    command = f"jurygraph score TASKS --config {project / 'jury.yaml'} --dry-run"
    assert last_line.endswith(command)


def test_doctor_refuses_a_reviewer_of_all_tasks_who_has_no_ratings(
    project: Path, run: Command
) -> None:
    (project / "ratings.csv").write_text("item,reviewer,score,text\na,Bea,4,one\n")
    config = (
        "evaluators: [{use: personalized, params: {history: ratings.csv, shots: 1, dimensions: "
        "{stars: {text: Good., scale: [1, 5]}}}}]\ntask_defaults: {reviewers: [%s]}\n"
    )
    for name, code in (("Bea", 0), ("bea", 2)):
        (project / "jury.yaml").write_text(config % name)
        ended = run("doctor", "--config", project / "jury.yaml")
        assert ended.code == code, ended.out
    assert "reviewers: personalized has no ratings of 'bea'; did you mean Bea?" in ended.out


def test_version_prints_the_version(run: Command):
    assert run("--version").out == f"jurygraph {version('jurygraph')}\n"


def test_an_unexpected_exception_is_reported_as_a_bug(
    run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("never so")

    monkeypatch.setattr("jurygraph.cli.commands.setup._copy_files", fail)
    ended = run("init", tmp_path / "jury")
    assert ended.code == 70
    assert "Traceback" in ended.err
    assert ended.err.splitlines()[-1].startswith(
        "error: this is a bug in jurygraph, please report it"
    )


def test_without_a_name_all_presets_are_listed(run: Command) -> None:
    ended = run("preset")
    assert (ended.code, ended.out.split()) == (0, list(PRESETS))
    assert json.loads(run("preset", "--json").out) == list(PRESETS)


@all_rows("name", PRESETS)
def test_a_preset_is_printed_as_an_equivalent_config(
    run: Command, tmp_path: Path, name: str
) -> None:
    written = tmp_path / "jury.yaml"
    written.write_text(run("preset", name).out, encoding="utf-8")
    expected = parse_config_mapping({"preset": name})
    assert read_config(written) == expected
    assert parse_config_mapping(json.loads(run("preset", name, "--json").out)) == expected
