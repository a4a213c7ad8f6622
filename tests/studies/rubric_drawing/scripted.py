"""A run whose judge gives every criterion the score in the response's data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jurygraph as jg
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.runs.run import Run
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


class Scripted(Evaluator):
    """Gives the score in the data under the criterion's id; a list has a score for each sample, and None abstains."""

    name, audience = "scripted", "criterion"

    def answer(self, inputs: EvaluatorInput) -> Any:
        data: Any = inputs.response.data
        score = data[inputs.question.subject]
        score = score[inputs.sample] if isinstance(score, list) else score
        if score is None:
            return jg.Verdict.abstain("cannot tell")
        return jg.Verdict(score=score, reason=f"it says {score} of {inputs.question.subject}")


def config(samples: int = 1, **fields: Any) -> dict[str, Any]:
    judge = {"use": "tests.studies.rubric_drawing.scripted:Scripted", "name": "scripted", "samples": samples}
    return {"evaluators": [judge], "failure": {"min_coverage": 0.1}, **fields}


def write(folder: Path, responses: Mapping[str, Mapping[str, Any]], rubric: Any = RUBRIC) -> Path:
    """Write a file with one task, "letter"; the responses map ids to their scores by criterion."""
    lines = [{"id": name, "text": f"the text of {name}", "data": data} for name, data in responses.items()]
    return write_tasks(folder, [{"id": "letter", "query": "Write it.", "rubric": rubric, "responses": lines}])


def score_run(
    folder: Path, responses: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any] | None = None
) -> Run:
    score(folder / "run", write(folder, responses), settings or config())
    return Run.open(folder / "run")
