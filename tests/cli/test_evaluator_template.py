"""`jurygraph init --template evaluator`: a package of evaluators that runs from its folder and when installed."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from jurygraph.agents.functions import REGISTERED
from jurygraph.sources import read_config
from tests.cli.conftest import Command, traces
from tests.models.judge_scripts import response_in
from tests.models.server import Answer, reply_with, run_server

FILES = [
    "README.md",
    "jury.yaml",
    "plain_letters/__init__.py",
    "plain_letters/warm.md",
    "pyproject.toml",
    "tasks.jsonl",
    "tests/test_plain_letters.py",
]
SCORES = {"parcel/kind": 1.0, "parcel/stiff": 0.0, "parcel/silent": 0.0, "refund/kind": 1.0, "refund/stiff": 0.6}


@pytest.fixture(autouse=True)
def _restore_modules() -> Iterator[None]:
    registered = dict(REGISTERED)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "plain_letters"]:
        del sys.modules[name]
    REGISTERED.clear()
    REGISTERED.update(registered)


@pytest.fixture
def folder(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    assert run("init", tmp_path / "letters", "--template", "evaluator").code == 0
    return tmp_path / "letters"


def rewards(run: Command, folder: Path) -> dict[str, float]:
    return {trace["response_id"]: trace["reward"]["value"] for trace in traces(run, folder)}


def test_the_readme_names_every_file(folder: Path) -> None:
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == FILES
    readme = (folder / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([\w./]+)` \|", readme, flags=re.MULTILINE)
    assert sorted(["README.md", *named]) == FILES
    assert read_config(folder / "jury.yaml").model == "none"


def test_it_runs_without_a_model_and_warmth_is_not_judged(
    folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    ended = run("score", "tasks.jsonl", "--out", "run")
    assert ended.code == 0, ended.err
    assert "5 judged + 1 set by empty-response + 4 abstained + 0 failed" in ended.out
    assert rewards(run, folder / "run") == pytest.approx(SCORES)
    explanation = run("explain", "run", "--response", "parcel/stiff").out
    assert "stiff words: pursuant to" in explanation


def judge_warmth(body: dict[str, Any], number: int) -> Answer:
    """Judge a response as warm if it says sorry or a pity."""
    assert "customer of this house" in body["messages"][1]["content"]
    quotes = re.findall(r"I am sorry[^.]*\.|What a pity[^.]*\.", response_in(body))
    reply = {"reason": "so it is", "quotes": quotes, "met": bool(quotes), "probability": 0.8 if quotes else 0.1}
    return reply_with(json.dumps({"item_1": reply}))


def test_a_model_judges_warmth_with_a_quotation(folder: Path, run: Command) -> None:
    with run_server(judge_warmth) as server:
        model = f"openai-compatible:{server.url}#tiny"
        ended = run("score", folder / "tasks.jsonl", "--out", folder / "judged", "--model", model)
        assert (ended.code, server.count) == (0, 4), ended.err
    traces_by_id = {trace["response_id"]: trace for trace in traces(run, folder / "judged")}
    assert rewards(run, folder / "judged")["parcel/kind"] == pytest.approx(1.0 + 0.5 * 0.8)
    (verdict,) = (one for one in traces_by_id["refund/kind"]["verdicts"] if one["evaluator"] == "warm")
    assert [(one["quote"], one["verified"]) for one in verdict["evidence"]] == [
        ("What a pity that the book came torn.", True)
    ]
    assert "prompt 1 in items" in verdict["version"]


def test_its_entry_points_are_the_evaluators_of_its_config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    groups = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    points = {
        name: EntryPoint(name, value, group).load() for group, own in groups.items() for name, value in own.items()
    }
    config = read_config(folder / "jury.yaml")
    assert {use.use for use in config.evaluators} == set(points)


@pytest.mark.exhaustive
def test_its_own_tests_pass(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "4 passed" in done.stdout, done.stdout


@pytest.mark.exhaustive
def test_the_installed_package_is_found_by_its_entry_points_from_any_folder(folder: Path, tmp_path: Path) -> None:
    """The package is installed into its own environment; no module is in the folder of the config."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = tmp_path / "env" / "lib" / version / "site-packages"
    (site / "beside.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    (site / "jurygraph.pth").write_text(str(Path(__file__).parents[2]))
    isolation = ["--no-build-isolation"] if find_spec("setuptools") else []
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", *isolation, "-e", folder]
    done = subprocess.run(list(map(str, install)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("jury.yaml", "tasks.jsonl"):
        (elsewhere / name).write_text((folder / name).read_text(encoding="utf-8"), encoding="utf-8")
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
