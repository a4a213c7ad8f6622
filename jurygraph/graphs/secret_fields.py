"""Refuses what a run would keep for good and cannot redact: secrets in a config, or in the params of a plan.

A parameter with a secret struck out would be another parameter, so that it is refused where it is stated. What a task
itself says is kept as it is.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from jurygraph.errors import ConfigError, PlanError
from jurygraph.safety.known_secrets import process_redactor, variable_of
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Config, Decision, Survey, Task

_KEPT = "which a run would keep; read that variable in your own code instead"


def refuse_secrets_in_config(config: Config) -> None:
    """Raise ConfigError naming the field of a config that holds a secret, and the variable that it is from."""
    redactor = process_redactor()
    if not redactor.finds(config.model_dump_json()):
        return
    for place, value in _secret_texts(config.model_dump(mode="json"), redactor):
        raise ConfigError(f"{place}: holds the secret of {_variable(value)}, {_KEPT}")


def refuse_secrets_in_plan(task: Task, survey: Survey, decision: Decision, redactor: Redactor) -> None:
    """Raise PlanError naming what user code put a secret into: a question, a derivation or a component."""
    if not redactor.has_secrets or redactor.finds(task.model_dump_json()):
        return
    for name, made in _named(survey, decision):
        if not redactor.finds(made.model_dump_json()):
            continue
        for place, value in _secret_texts(made.model_dump(mode="json"), redactor):
            raise PlanError(f"task {task.id!r}: {name}, {place}: holds the secret of {_variable(value)}, {_KEPT}")


def _named(survey: Survey, decision: Decision) -> Iterator[tuple[str, Any]]:
    yield from ((f"question {one.id!r}", one) for one in survey.questions)
    yield from ((f"material {one.gives!r}", one) for one in survey.derivations)
    yield from ((f"component {one.name!r}", one) for one in decision.specs)


def _variable(value: str) -> str:
    return variable_of(value, os.environ) or "the model's key"


def _secret_texts(value: Any, redactor: Redactor, place: str = "") -> Iterator[tuple[str, str]]:
    """The places of texts that hold a secret, as `params.key` or `evaluators[0].use`, and the texts."""
    if isinstance(value, str):
        if redactor.finds(value):
            yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _secret_texts(name, redactor, place or "a name")
            yield from _secret_texts(inner, redactor, f"{place}.{name}" if place else name)
    elif isinstance(value, Sequence):
        for number, inner in enumerate(value):
            yield from _secret_texts(inner, redactor, f"{place}[{number}]")
