"""A run whose judge gives every criterion the score in the response's data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jurygraph.runs.run import Run
from tests.graphs.scripted import evaluator_use
from tests.runs.sample_runs import score, write_tasks

RUBRIC: dict[str, Any] = {
    "criteria": [
        {"id": "facts", "text": "It states the facts.", "weight": 2.0},
        {"id": "advice", "text": "It advises on these facts.", "weight": 1.0},
        {"id": "thanks", "text": "It closes kindly.", "weight": 0.5},
        {"id": "wrong", "text": "It advises wrongly.", "weight": -1.0},
    ],
    "edges": [
        {"parent": "facts", "child": "advice", "kind": "strong", "reason": "advice rests on facts"},
        {"parent": "advice", "child": "thanks", "kind": "weak"},
        {"parent": "facts", "child": "wrong", "kind": "activation"},
    ],
}


def config(samples: int = 1, **fields: Any) -> dict[str, Any]:
    use = evaluator_use("met", audience="criterion", samples=samples)
    return {"evaluators": [use], "failure": {"min_coverage": 0.1}, **fields}


def write(folder: Path, responses: Mapping[str, Mapping[str, Any]], rubric: Any = RUBRIC) -> Path:
    """Write a file with one task, "letter"; the responses map ids to their scores by criterion."""
    lines = [
        {"id": name, "text": f"the text of {name}", "data": {f"met@{one}": score for one, score in scores.items()}}
        for name, scores in responses.items()
    ]
    return write_tasks(folder, [{"id": "letter", "query": "Write it.", "rubric": rubric, "responses": lines}])


def score_run(
    folder: Path, responses: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any] | None = None
) -> Run:
    score(folder / "run", write(folder, responses), settings or config())
    return Run.open(folder / "run")
