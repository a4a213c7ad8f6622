"""A run whose judge says of every criterion what the response's data tell it to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jurygraph as jg
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.runs.run import Run
from tests.runs.made import score, write_tasks

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


class Scripted(Evaluator):
    """Says what stands in the data under the criterion's id: a score, scores by sample, or nothing (abstains)."""

    name, audience = "scripted", "criterion"

    def answer(self, inputs: EvaluatorInput) -> Any:
        data: Any = inputs.response.data
        told = data[inputs.question.subject]
        told = told[inputs.sample] if isinstance(told, list) else told
        if told is None:
            return jg.Verdict.abstain("cannot tell")
        return jg.Verdict(score=told, reason=f"it says {told} of {inputs.question.subject}")


def config(samples: int = 1, **fields: Any) -> dict[str, Any]:
    judge = {"use": "tests.studies.pictures.scripted:Scripted", "name": "scripted", "samples": samples}
    return {"evaluators": [judge], "failure": {"min_coverage": 0.1}, **fields}


def write(folder: Path, responses: Mapping[str, Mapping[str, Any]], rubric: Any = RUBRIC) -> Path:
    """A TASKS file with one task "letter"; what its responses are scored."""
    stated = [{"id": name, "text": f"the text of {name}", "data": data} for name, data in responses.items()]
    return write_tasks(folder, [{"id": "letter", "query": "Write it.", "rubric": rubric, "responses": stated}])


def run_of(folder: Path, responses: Mapping[str, Mapping[str, Any]], stated: Mapping[str, Any] | None = None) -> Run:
    score(folder / "run", write(folder, responses), config() if stated is None else stated)
    return Run.open(folder / "run")
