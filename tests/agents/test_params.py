"""The params of the built-in evaluators, derivers and combiners: their models refuse what does not fit, by its name."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from jurygraph.agents.registry import (
    builtin_params_models,
    load_combiner,
    load_deriver,
    load_evaluator,
)
from jurygraph.errors import JurygraphError
from jurygraph.schema import ComponentInput, DeriverUse, EvaluatorUse
from tests.rows import all_rows

QUALITY = {"quality": {"text": "How good it is.", "scale": [1, 5]}}
PROFILE = {"profile": "terse"}, "profile: is the text 'terse'; write 'full' or 'compact'"
ROTATE = {"rotate": "no"}, "rotate: is the text 'no'; write true or false, without quotes"
PROTOCOLS = ("direct", "rubric", "checklist", "decomposed-adaptive", "decomposed-uniform")
ABOVE_0 = "is the number 0; write a number of 1 or more"
REVIEWERS: Mapping[str, tuple[Any, str]] = {
    "dimensions": (
        QUALITY["quality"],
        "dimensions.text: is the text 'How good it is.'; write an object",
    ),
    "columns": ({"item": 3}, "columns.item: is the number 3; write text, in quotes"),
    "shots": (-1, "shots: is the number -1; write a number of 0 or more"),
    "samples": (0, f"samples: {ABOVE_0}"),
    "profile": ("terse", PROFILE[1]),
}
EVALUATORS = {
    **{f"protocols.{name}": [ROTATE] for name in PROTOCOLS},
    "maths.accuracy": [
        ({"time_limit": 0}, "time_limit: is the number 0; write a number above 0"),
        ({"workers": 0}, f"workers: {ABOVE_0}"),
    ],
    "maths.repetition": [({"n": 0}, f"n: {ABOVE_0}")],
    "maths.steps": [({"full": 0}, f"full: {ABOVE_0}")],
    "maths.length": [
        ({"limit": 0}, f"limit: {ABOVE_0}"),
        ({"limti": 3}, "limti: unknown; did you mean limit?"),
    ],
    "facts.confirmed": [
        (
            {"audience": "everybody"},
            "audience: is the text 'everybody'; did you mean everyone? write 'task'",
        ),
    ],
    "tools.grounded": [({"user": 1}, "user: is the number 1; write true or false, without quotes")],
    "checks.constraints": [
        ({"functions": {"f": 1}}, "functions.f: is the number 1; write text, in quotes")
    ],
    "criteria": [
        PROFILE,
        ({"criteria": []}, "criteria: has 0 entries; give it at least 1"),
    ],
    "preferences": [PROFILE, ROTATE],
    "checklist": [
        PROFILE,
        ({"items": ["  "]}, "items[0]: is empty; write at least one character"),
        ({"items": ["It is kind."] * 21}, "items: has 21 entries; give it at most 20"),
        (
            {"audience": "criterion"},
            "audience: is the text 'criterion'; write 'stakeholder' or 'task'",
        ),
    ],
    "context": [
        PROFILE,
        (
            {"questions": {"faithfull": "So."}},
            "questions.faithfull: is the text 'faithfull'; did you mean faithful? "
            "write 'faithful', 'answers' or 'sufficient'",
        ),
        ({"questions": {"answers": " "}}, "questions.answers: is empty; write at least one"),
    ],
    "goal_reached": [PROFILE],
    "tools.match": [
        (
            {"trajectory_match_mode": "any"},
            "trajectory_match_mode: is the text 'any'; write 'strict', 'unordered', 'subset' or 'superset'",
        ),
        (
            {"tool_args_match_overrides": {"book": 1}},
            "tool_args_match_overrides.book: is the number 1",
        ),
    ],
    "trajectory.budget": [
        ({"max_calls": -1}, "max_calls: is the number -1; write a number of 0 or more"),
    ],
    "optimizer.efficiency": [({"limit": 1.0}, "limit: is the number 1.0; write a number above 1")],
    "similarity": [
        (
            {},
            "embedder: is missing; write it: A name that `open_embedder` accepts, such as sentence-",
        )
    ],
    "ranker": [
        (
            {"ranker": "a:b", "logits": 1},
            "logits: is the number 1; write true or false, without quotes",
        )
    ],
    "pairwise": [
        PROFILE,
        ({"criterion": " "}, "criterion: is empty; write at least one character"),
    ],
    "listwise": [PROFILE, ({"criterion": 3}, "criterion: is the number 3; write text, in quotes")],
    "zero-shot": [
        ({"dimensions": QUALITY, name: bad}, said) for name, (bad, said) in REVIEWERS.items()
    ],
    "aggregate": [({"dimensions": QUALITY, "shot": 1}, "shot: unknown; did you mean shots?")],
    "personalized": [
        ({"dimensions": QUALITY, "choice": "best"}, "choice: is the text 'best'; write 'random'")
    ],
}
DERIVERS = {
    "facts.claims": [({"tools": ["maps"]}, "tools: is a list; write an object")],
    "extract": [({}, "records: is missing; write it: Kinds of records, each with its fields")],
    "synthesizer": [
        ({"by": "magic"}, "by: is the text 'magic'; write 'rule' or 'model'"),
        ({"kinds": ["sound"]}, "kinds[0]: is the text 'sound'; write 'number'"),
        ({"each": 11}, "each: is the number 11; write a number of 10 or less"),
    ],
}
KAPPA = {"kappa": -1.0}, "kappa: is the number -1.0; write a number of 0 or more"
CAP = {"cap": 2}, "cap: is the number 2; write a number of 1 or less"
CONFUSIONS = {"classes": [0, 1], "prior": [0.5, 0.5], "annotators": {"a": [[1, 0], [0, 1]]}}
COMBINERS = {
    "flat": [KAPPA],
    "gear": [
        KAPPA,
        ({"exact": True}, "exact: is true; write 'auto', 'ten-nodes', 'always' or 'never'"),
        ({"edge": []}, "edge: unknown; did"),
    ],
    "hard-local": [KAPPA],
    "hard-transitive": [KAPPA],
    "stakeholders": [CAP],
    "egalitarian": [CAP, ({}, "floor: is missing; write it: The least û_i")],
    "nash": [CAP],
    "consensus": [
        ({"levels": [1, 0]}, "levels: do not rise; write them from low to high, each once"),
        ({"levels": [0]}, "levels: has 1 entries; give it at least 2"),
        (
            {"confusions": "panel.json"},
            "confusions: names 'panel.json', which was not read; write the content",
        ),
        (
            {"confusions": {**CONFUSIONS, "digest": "x"}},
            "confusions.digest: is not that of the rest",
        ),
        ({"confusions": {"classes": [0, 1]}}, "confusions.prior: is missing; confusions need it"),
    ],
    "bradley-terry": [
        ({"prior": 0}, "prior: is the number 0; write a number of 0.01 or more"),
        (
            {"shown": "list"},
            "shown: is the text 'list'; did you mean lists? write 'pairs' or 'lists'",
        ),
    ],
}
TABLES: Mapping[str, Mapping[str, Any]] = {
    "evaluators": EVALUATORS,
    "derivers": DERIVERS,
    "combiners": COMBINERS,
}
INPUTS = {"a": ComponentInput(questions=("q",), weights=(1.0,))}


def rows() -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    for role, table in TABLES.items():
        for name, cases in table.items():
            yield from ((role, name, params, said) for params, said in cases)


def use(role: str, name: str, params: Mapping[str, Any]) -> None:
    if role == "evaluators":
        load_evaluator(EvaluatorUse(use=name, params=dict(params)))
    elif role == "derivers":
        load_deriver(DeriverUse(use=name, params=dict(params)))
    else:
        load_combiner(name).freeze(INPUTS, params)


@all_rows(("role", "name", "params", "said"), rows())
def test_a_wrong_param_is_refused_by_its_name(
    role: str, name: str, params: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(JurygraphError) as refused:
        use(role, name, params)
    owner = f"combiner {name!r}" if role == "combiners" else name
    assert str(refused.value).startswith(f"{owner}: params.{said}")


@all_rows("role", TABLES)
def test_the_table_has_all_that_take_params_and_each_param_is_described(role: str) -> None:
    models = builtin_params_models(role)
    assert {name for name, model in models.items() if model.model_fields} == set(TABLES[role])
    assert all(
        field.description for model in models.values() for field in model.model_fields.values()
    )
