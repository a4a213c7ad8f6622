"""docs/judges.md is run: its configs plan real tasks and get rewards, and its script counts what the order did."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jurygraph import Jury, Response, Task
from jurygraph.sources import read_tasks
from tests.judges.pairwise.comparisons import judge_script, shown_order
from tests.judges.protocols.trip import PLAN, find_everything, trip
from tests.models.server import run_server

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")
TEMPLATES = ROOT / "jurygraph" / "cli" / "templates"
HERE = "http://127.0.0.1:8000/v1"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


PROTOCOLS, PAIRWISE, COMBINED, REVIEWERS, IDEAS = blocks("yaml")
"""The configs, in the order of the page."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


def written(folder: Path, config: str, url: str = HERE) -> Path:
    path = folder / "jury.yaml"
    path.write_text(config.replace(HERE, url), encoding="utf-8")
    return path


def group() -> list[Response]:
    return [Response(id=name, text=f"Dear Ann, come at {name}.") for name in ("seven", "eight", "nine")]


@pytest.mark.parametrize(("config", "template", "asked"), [(REVIEWERS, "reviewers", 3), (IDEAS, "ideas", 18)])
def test_the_configs_of_reviewers_plan_the_tasks_of_the_templates(
    config: str, template: str, asked: int, tmp_path: Path
) -> None:
    for path in (TEMPLATES / template).glob("*.jsonl"):
        shutil.copy(path, tmp_path)
    with Jury.from_config(written(tmp_path, config)) as jury:
        for task, _ in read_tasks(tmp_path / "tasks.jsonl"):
            assert len(jury.prepare(task).survey.questions) == asked


def test_five_protocols_are_four_calls_and_give_what_the_page_calls_them(tmp_path: Path) -> None:
    with run_server(find_everything) as server, Jury.from_config(written(tmp_path, PROTOCOLS, server.url)) as jury:
        (trace,) = jury.score(trip(3), [Response(id="a", text=PLAN)])
        assert server.count == 4
    assert set(trace.reward.components) == set(re.findall(r"`([a-z-]+)`", _line("- **A component is R", "If you")))
    assert all("R" in figures for figures in trace.reward.diagnostics.values())


def _line(start: str, end: str) -> str:
    found = re.search(rf"{re.escape(start)}.*?named(.*?){re.escape(end)}", PAGE, flags=re.DOTALL)
    assert found is not None
    return found[1]


def test_pairs_and_lists_make_rewards(tmp_path: Path) -> None:
    with (
        run_server(judge_script(shown_order)) as server,
        Jury.from_config(written(tmp_path, COMBINED, server.url)) as jury,
    ):
        traces = jury.score(Task(id="t", query="Write to Ann."), group())
        assert server.count == 3 * 2 + 2
    assert [trace.reward.value for trace in traces] == [0.5, 0.5, 0.5]


@pytest.mark.slow
def test_the_script_counts_what_the_order_did(tmp_path: Path) -> None:
    responses = [one.model_dump(mode="json", include={"id", "text"}) for one in group()]
    row = {"id": "t", "query": "Write to Ann.", "responses": responses}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (script,) = blocks("python")
    with run_server(judge_script(shown_order)) as server:
        written(tmp_path, PAIRWISE, server.url)
        score = [str(Path(sys.executable).with_name("jurygraph")), "score", "tasks.jsonl", "--out", "run"]
        subprocess.run(score, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "3 3 3 0 1.0\n"
