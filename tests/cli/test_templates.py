"""`jurygraph init`: each template is a project that runs as it is, and does what its README says."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from jurygraph.agents.functions import REGISTERED_EVALUATORS
from jurygraph.cli.commands import setup
from jurygraph.judges.reviewers import load_ready_dimensions
from jurygraph.sources import read_config, read_tasks
from tests.cli.conftest import Command, traces
from tests.models.judge_scripts import items_of, quotable, response_in
from tests.models.server import Answer, reply_with, run_server
from tests.pages import commands, follow

TEMPLATES = sorted(
    path.name for path in (Path(setup.__file__).parents[1] / "templates").iterdir() if path.is_dir()
)
PREDICTED = {"reviewers": 54, "ideas": 270}
"""Verdicts of the templates with a judge for each reviewer."""
OPEN = {"reviewers": 54, "ideas": 120}
"""Their abstained verdicts without a model: a question with an open condition has one, not three."""
each_template = pytest.mark.parametrize("template", TEMPLATES)
each_of_reviewers = pytest.mark.parametrize("template", PREDICTED)


@pytest.fixture
def folder(
    tmp_path: Path, run: Command, template: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A new project, which is the current folder."""
    monkeypatch.setattr(
        "jurygraph.agents.functions.REGISTERED_EVALUATORS", dict(REGISTERED_EVALUATORS)
    )
    assert run("init", tmp_path / "jury", "--template", template).code == 0
    monkeypatch.chdir(tmp_path / "jury")
    yield tmp_path / "jury"
    sys.modules.pop("plain_letters", None)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answer_anything(body: dict[str, Any], number: int) -> Answer:
    """Meet every criterion, with a quotation, and predict the lowest score that any scale has."""
    given = {
        "reason": "So.",
        "quotes": quotable(response_in(body)),
        "met": True,
        "probability": 0.9,
        "value": 1,
    }
    given["confidence"] = 90
    items = {
        name: {field: given[field] for field in item["properties"]}
        for name, item in items_of(body).items()
    }
    return reply_with(json.dumps(items))


@each_template
def test_the_readme_names_every_file_and_each_config_is_valid(folder: Path) -> None:
    readme = (folder / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([\w./]+\.\w+)` \|", readme, flags=re.MULTILINE)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"README.md", *named}
    assert all(read_config(path).model == "none" for path in folder.glob("*.yaml"))


@pytest.mark.landing
@each_template
def test_the_commands_of_the_readme_run_as_typed(folder: Path, template: str) -> None:
    """Those of hosted models and of Python's tools are left out."""
    readme = (folder / "README.md").read_text(encoding="utf-8")
    page = re.sub(r"^    (jurygraph .*)$", r"```sh\n\1\n```", readme, flags=re.MULTILINE)
    hosted = tuple(line for line in commands(page) if "openai/" in line)
    followed = follow(page, folder, answer_anything, hosted)
    assert any(words[:2] == ["jurygraph", "score"] for words in map(shlex.split, followed))
    (estimated, *_) = [
        typed.printed for line, typed in followed.items() if "--dry-run" in line
    ] or [""]
    number = PREDICTED.get(template)
    assert number is None or re.search(
        rf"^calls +{number} +{number} ", estimated, flags=re.MULTILINE
    )


@each_of_reviewers
def test_without_a_model_judges_abstain_and_every_rating_can_be_shown(
    folder: Path, template: str, run: Command
) -> None:
    ended = run("score", "tasks.jsonl", "--out", "run")
    assert ended.code == 1
    assert f"0 judged + {OPEN[template]} abstained + 0 failed" in ended.out
    number = len(rows(folder / "ratings.jsonl"))
    for printed in (ended.err, run("doctor", "--config", "jury.yaml").out):
        assert (
            f"Of {number} ratings in ratings.jsonl, {number} can be shown, by 3 reviewers."
            in printed
        )
        assert "Left out" not in printed
    reviewers = {row["reviewer"] for row in rows(folder / "ratings.jsonl")}
    assert all(set(task.reviewers) == reviewers for task, _ in read_tasks(folder / "tasks.jsonl"))


@pytest.mark.parametrize("template", ["ideas"])
def test_the_history_of_ideas_follows_the_screening_of_the_judges(folder: Path) -> None:
    """Every reviewer rated exactly the items that passed their own gates, on the scales of the dimensions."""
    dimensions = load_ready_dimensions("ideas")
    given: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows(folder / "ratings.jsonl"):
        given.setdefault((row["item"], row["reviewer"]), {})[row["dimension"]] = row["score"]
    assert len(given) == 8 * 3
    for scores in given.values():
        expected = [
            name
            for name, dimension in dimensions.items()
            if all(
                scores.get(before, 0) > threshold for before, threshold in dimension.above.items()
            )
        ]
        assert set(scores) == set(expected)
        assert all(dimensions[name].form.is_valid_score(value) for name, value in scores.items())


@pytest.mark.parametrize("template", ["evaluator"])
class TestEvaluator:
    """A package of evaluators that runs from its folder and when it is installed."""

    def test_without_a_model_warmth_is_not_judged(self, folder: Path, run: Command) -> None:
        ended = run("score", "tasks.jsonl", "--out", "run")
        assert ended.code == 0, ended.err
        assert "5 judged + 1 set by empty-response + 4 abstained + 0 failed" in ended.out
        rewards = {
            trace["response_id"]: trace["reward"]["value"] for trace in traces(run, folder / "run")
        }
        letters = {
            "parcel/kind": 1.0,
            "parcel/stiff": 0.0,
            "parcel/silent": 0.0,
            "refund/kind": 1.0,
            "refund/stiff": 0.6,
        }
        assert rewards == pytest.approx(letters)
        assert "stiff words: pursuant to" in run("explain", "run", "--response", "parcel/stiff").out

    def test_a_model_judges_warmth_with_a_quotation(self, folder: Path, run: Command) -> None:
        def judge_warmth(body: dict[str, Any], number: int) -> Answer:
            """Judge a response as warm if it says sorry or a pity."""
            assert "customer of this house" in body["messages"][1]["content"]
            quotes = re.findall(r"I am sorry[^.]*\.|What a pity[^.]*\.", response_in(body))
            reply = {
                "reason": "so",
                "quotes": quotes,
                "met": bool(quotes),
                "probability": 0.8 if quotes else 0.1,
            }
            return reply_with(json.dumps({"item_1": reply}))

        with run_server(judge_warmth) as server:
            model = f"openai-compatible:{server.url}#tiny"
            ended = run("score", "tasks.jsonl", "--out", "judged", "--model", model)
            assert (ended.code, server.count) == (0, 4), ended.err
        found = {trace["response_id"]: trace for trace in traces(run, folder / "judged")}
        assert found["parcel/kind"]["reward"]["value"] == pytest.approx(1.0 + 0.5 * 0.8)
        (verdict,) = (one for one in found["refund/kind"]["verdicts"] if one["evaluator"] == "warm")
        quoted = [(one["quote"], one["verified"]) for one in verdict["evidence"]]
        assert quoted == [("What a pity that the book came torn.", True)]
        assert "prompt 1 in items" in verdict["version"]

    def test_its_entry_points_are_the_evaluators_of_its_config(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(folder)
        groups = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "entry-points"
        ]
        points = [
            EntryPoint(name, value, group)
            for group, own in groups.items()
            for name, value in own.items()
        ]
        assert all(callable(point.load().answer) for point in points)
        assert {use.use for use in read_config(folder / "jury.yaml").evaluators} == {
            point.name for point in points
        }

    @pytest.mark.exhaustive
    def test_its_own_tests_pass(self, folder: Path) -> None:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert "4 passed" in done.stdout, done.stdout

    @pytest.mark.exhaustive
    def test_the_installed_package_is_found_by_its_entry_points_from_any_folder(
        self, folder: Path, tmp_path: Path
    ) -> None:
        """The package is installed into its own environment; no module is in the folder of the config."""
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True
        )
        python = tmp_path / "env" / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = tmp_path / "env" / "lib" / version / "site-packages"
        (site / "beside.pth").write_text(
            "\n".join(path for path in sys.path if path.endswith("site-packages"))
        )
        (site / "jurygraph.pth").write_text(str(Path(__file__).parents[2]))
        # which older setuptools need
        isolation = ["--no-build-isolation"] if find_spec("wheel") else []
        install = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--no-deps",
            *isolation,
            "-e",
            folder,
        ]
        done = subprocess.run(list(map(str, install)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        for name in ("jury.yaml", "tasks.jsonl"):
            (elsewhere / name).write_text(
                (folder / name).read_text(encoding="utf-8"), encoding="utf-8"
            )
        script = "import sys; from jurygraph.cli import main; main(sys.argv[1:])"
        scored = subprocess.run(
            [python, "-c", script, "score", "tasks.jsonl", "--out", "run"],
            cwd=elsewhere,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert scored.returncode == 0, scored.stderr
        assert "5 judged + 1 set by empty-response + 4 abstained + 0 failed" in scored.stdout


@pytest.mark.parametrize("template", ["ci"])
def test_the_workflow_comments_and_fails_where_a_change_is_worse(
    folder: Path, run: Command
) -> None:
    (path,) = folder.glob(".github/workflows/*.yml")
    workflow = YAML(typ="safe").load(path)
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    steps = workflow["jobs"]["compare"]["steps"]
    lines = [step["run"] for step in steps if "run" in step]
    score, compare = [line for line in lines if line.startswith("jurygraph ")]
    assert score.endswith(" || test $? = 1")
    compare, comment = compare.split(" > ")
    (posting,) = [step for step in steps if step.get("run", "").startswith("gh ")]
    assert f"--body-file {comment}" in posting["run"]
    assert posting["if"].startswith("always()")

    score = shlex.split(score.removesuffix(" || test $? = 1"))[1:]
    assert run(*score[:-1], "baseline").code == 0
    assert run(*score).code == 0
    unchanged = run(*shlex.split(compare)[1:])
    assert (unchanged.code, "The gate is met." in unchanged.out) == (0, True)

    tasks = folder / "tasks.jsonl"
    tasks.write_text(tasks.read_text().replace("<answer>", "<answer>9"))
    assert run(*score[:-1], "worse").code == 0
    worse = run(*(word.replace("run", "worse") for word in shlex.split(compare)[1:]))
    assert worse.code == 1
    assert re.match(
        r"\*\*of the agents only careful .* changed; worse is 0\.\d+ lower.*\*\* The gate is missed: 2 of 3 conditions",
        worse.out,
    )
    flips, gate = worse.out.index("met -\\> unmet"), worse.out.index("| mean\\_delta")
    assert gate < flips < worse.out.index("<details>")
