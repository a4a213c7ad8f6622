"""One of each document that a user writes or reads, every field of it filled in; digests of them are compared between
processes, so this module imports the schema alone."""

from typing import Any

from jurygraph.schema import Config, Decision, Plan, Question, Survey, TaskLine, TaskView, Trace

TASK: dict[str, Any] = {
    "id": "trip-1",
    "query": [{"role": "user", "content": "Plan a weekend for Ann and Bo."}],
    "stakeholders": [
        {
            "id": "ann",
            "profile": "travels with a dog",
            "constraints": [
                {
                    "id": "dog",
                    "text": "dogs are allowed",
                    "kind": "hard",
                    "restrictiveness": 2.0,
                    "check": {"dogs": True},
                }
            ],
        },
        {"id": "bo", "profile": "dislikes flying", "constraints": []},
    ],
    "tensions": [{"between": ["ann", "bo"], "strength": 0.5}],
    "rubric": {
        "criteria": [
            {"id": "c1", "text": "names a hotel", "weight": 2.0, "role": "core", "scale": [1, 10]},
            {"id": "c2", "text": "invents a train", "weight": -1, "role": "penalty", "scale": None},
        ],
        "edges": [{"parent": "c1", "child": "c2", "kind": "strong", "retention": 0.25}],
    },
    "reviewers": ["r1", "r2"],
    "reference": "Hotel Sole",
    "facts": {"hotels": [{"name": "Sole", "dogs": True}]},
    "group": "weekend",
    "metadata": {"source": "made up"},
    "responses": [
        {
            "id": "trip-1/a",
            "text": "Stay at the Sole.",
            "agent": "agent-a",
            "data": {"hotel": "Sole"},
            "labels": {"good": True},
            "metadata": {"length": 17},
        }
    ],
}
RESPONSE: dict[str, Any] = {
    "task": "trip-1",
    "id": "trip-1/b",
    "text": "Stay at home.",
    "agent": "agent-b",
}
CONFIG: dict[str, Any] = {
    "model": "none",
    "evaluators": ["maths.accuracy", "maths.format", "my_package.tone"],
    "weights": {"method": "calibrated", "gamma": 0.5, "beta": 0.5, "temperature": 5},
    "rubric": {"aggregation": "gear", "kappa": 1},
    "reward": {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2},
    "failure": {"rule": "conservative", "min_coverage": 0.8, "max_error_rate": 0.1},
}
"""The contract's example, as it stands there."""

VERDICT: dict[str, Any] = {
    "question": "my_package.tone@ann",
    "evaluator": "my_package.tone",
    "version": "3",
    "layer": "model",
    "subject": "ann",
    "stakeholder": "ann",
    "reviewer": None,
    "about": "trip-1/a",
    "responses": ["trip-1/a"],
    "sample": 0,
    "score": 0.75,
    "met": True,
    "native": 7.5,
    "scale": [1, 10],
    "confidence": 0.9,
    "status": "ok",
    "failure": None,
    "gated_by": None,
    "reason": "kind words",
    "evidence": [{"quote": "Stay", "start": 0, "end": 4, "source": "response", "verified": True}],
    "call": "call-1",
}
CALL: dict[str, Any] = {
    "id": "call-1",
    "provider": "openai",
    "model": "gpt-5-mini",
    "served": "gpt-5-mini-2025-08-07",
    "endpoint": "https://api.example/v1",
    "parameters": {"temperature": 0},
    "prompt": "tone",
    "prompt_version": "3",
    "tokens_in": 120,
    "tokens_out": 8,
    "cost": None,
    "latency": 0.8,
    "cache_hit": False,
    "attempts": 1,
}
REWARD: dict[str, Any] = {
    "value": 0.75,
    "status": "degraded",
    "partial": 0.8,
    "coverage": 0.9,
    "range": [0.7, 0.85],
    "components": {"tone": 0.75, "absent": None},
    "terms": [{"name": "tone", "weight": 1.0, "value": 0.75, "contribution": 0.75}],
    "counts": {"judged": 1, "abstained": 0, "failed": 1, "not_applicable": 0},
    "parts": {"tone": {"ann": 0.75}},
    "adjustments": [{"name": "clip", "before": 1.5, "after": 1.0}],
    "weights_fixed": True,
    "notes": ["0.9 of the weight was judged"],
}
FAILED: dict[str, Any] = {
    "question": "q2",
    "status": "failed",
    "failure": {"cause": "response", "kind": "refused", "message": "it would not say"},
}
MATERIAL: dict[str, Any] = {
    "name": "rewritten",
    "response": "trip-1/a",
    "status": "ok",
    "data": {"hotels": 1},
    "variants": [
        {"response": {"id": "trip-1/a#1", "text": "At the Sole, stay."}, "edit": {"moved": "verb"}}
    ],
    "evidence": [],
    "failure": None,
    "call": "call-1",
}
TRACE: dict[str, Any] = {
    "task_id": "trip-1",
    "response_id": "trip-1/a",
    "agent": "agent-a",
    "group": "0f" * 32,
    "labels": {"good": True},
    "plan_digest": "a1" * 32,
    "reward": REWARD,
    "verdicts": [VERDICT, FAILED],
    "calls": [CALL],
    "material": [MATERIAL],
    "statistics": {"questions": {"q": {"judged": 2}}},
    "previous": "b2" * 32,
}


def plan() -> Plan:
    """A plan of one question."""
    view = TaskView(id="t", query="1+1?", reference="2", facts={"b": 1, "a": [2.5, None]})
    question = Question(
        id="tone", evaluator="tone", version="1", subject="tone", view=view.digest, params={"z": 1}
    )
    survey = Survey(views={view.digest: view}, questions=(question,), waves=())
    return Plan(task_id="t", task_digest="d", survey=survey, decision=Decision(specs=()))


def digests() -> list[str]:
    """Of everything here."""
    models = (
        TaskLine.model_validate(TASK),
        Config.model_validate(CONFIG),
        Trace.model_validate(TRACE),
        plan(),
    )
    return [model.digest for model in models]
