"""docs/judges.md is run: its configs plan real tasks and get rewards, and its script counts what the order did."""

import json
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Response, Task
from jurygraph.aggregation.pairwise import bradley_terry
from jurygraph.sources import read_tasks
from tests.judges.few_shot.reviewers import examples_shown, prose
from tests.judges.pairwise.comparisons import judge_script, longest, shown_order
from tests.judges.protocols.trip import PLAN, find_everything, trip
from tests.models.judge_scripts import quotable, response_in
from tests.models.server import Answer, reply_with, run_server
from tests.test_readme import COMMAND, commands, run, words

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")
TEMPLATES = ROOT / "jurygraph" / "cli" / "templates"
HERE = "http://127.0.0.1:8000/v1"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


PROTOCOLS, PAIRWISE, COMBINED, REVIEWERS, MEASURED, IDEAS = blocks("yaml")
ORDER, RANKING, MEASURE = blocks("python")
"""The configs and scripts, in the order of the page."""


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


@pytest.mark.exhaustive
def test_the_script_counts_what_the_order_did(tmp_path: Path) -> None:
    responses = [one.model_dump(mode="json", include={"id", "text"}) for one in group()]
    row = {"id": "t", "query": "Write to Ann.", "responses": responses}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with run_server(judge_script(shown_order)) as server:
        written(tmp_path, PAIRWISE, server.url)
        score = [COMMAND, "score", "tasks.jsonl", "--out", "run"]
        subprocess.run(score, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", ORDER], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "3 3 3 0 1.0\n"


@pytest.mark.exhaustive
def test_the_script_ranks_the_agents_over_tasks(tmp_path: Path) -> None:
    """Of two agents the longer response wins in both orders, but for one task of four."""
    rows = [
        {
            "id": f"t{number}",
            "query": "Write to Ann.",
            "responses": [
                {
                    "id": f"t{number}/{agent}",
                    "agent": agent,
                    "text": "Dear Ann, come at seven." + more * " Do come soon.",
                }
                for agent, more in (("long", number > 0), ("short", number == 0))
            ],
        }
        for number in range(4)
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with run_server(judge_script(longest)) as server:
        written(tmp_path, PAIRWISE, server.url)
        subprocess.run([COMMAND, "score", "tasks.jsonl", "--out", "run"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", RANKING], cwd=tmp_path, check=True, capture_output=True, text=True)
    wins = [[0.0, 3.0], [1.0, 0.0]]
    assert done.stdout.splitlines() == [
        f"{name}: {strength:.2f}"
        for name, strength in zip(("long", "short"), bradley_terry(wins).strength, strict=True)
    ]


@pytest.mark.exhaustive
def test_the_predictions_are_measured_as_typed(tmp_path: Path) -> None:
    (form,) = blocks("json")

    def predict(body: dict[str, Any], number: int) -> Answer:
        """Reply in the form of the page with the median of the shown scores, or 5; every reply is unsure."""
        shown = [score for _, score in examples_shown(body)]
        score = {"value": int(statistics.median_low(shown)) if shown else 5, "confidence": 50}
        reply = {**json.loads(form)["score"], **score, "quotes": quotable(response_in(body))}
        return reply_with(json.dumps({"score": reply}))

    stars = {"ann": (1, 1, 1, 2), "bo": (5, 5, 5, 4)}
    people = [f"i{n},{who},{given},{prose(n)},so" for who, row in stars.items() for n, given in enumerate(row)]
    (tmp_path / "people.csv").write_text("\n".join(["item,person,stars,text,reason", *people, ""]), encoding="utf-8")
    with run_server(predict) as server:
        written(tmp_path, MEASURED, server.url)
        for line in commands(PAGE):
            run(words(line), tmp_path)
        assert server.count == 3 * (8 + 8 + 4)
    done = subprocess.run([sys.executable, "-c", MEASURE], cwd=tmp_path, check=True, capture_output=True, text=True)
    far, near = "mean error 3.75 (2.95 to 4.55)", "mean error 0.25 (-0.55 to 1.05)"
    expected = {"ann": (far, near, far), "bo": (far, near, near)}
    assert done.stdout.splitlines() == [
        f"{who} {judge}, 4 items: {error}, kappa 0.00"  # without an interval: each judge gives one score to all
        for who, errors in expected.items()
        for judge, error in zip(("aggregate", "personalized", "zero-shot"), errors, strict=True)
    ]
