"""Refuse secrets in fields that a run stores and cannot redact: in a config, or in the params of a plan.

A redacted parameter would be a different parameter, so a secret is refused where it is written. The content of a task
is kept unchanged.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from jurygraph.errors import ConfigError, PlanError
from jurygraph.safety.known_secrets import process_redactor, variable_with_secret
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Config, Decision, Survey, Task

_REASON = "which a run would keep; read that variable in your own code instead"


def refuse_secrets_in_config(config: Config) -> None:
    """Raise ConfigError if a field of the config holds a secret; it names the field and the secret's variable."""
    redactor = process_redactor()
    if not redactor.has_secret_in(config.model_dump_json()):
        return
    for place, value in _secret_texts(config.model_dump(mode="json"), redactor):
        raise ConfigError(f"{place}: holds the secret of {_variable_name(value)}, {_REASON}")


def refuse_secrets_in_plan(task: Task, survey: Survey, decision: Decision, redactor: Redactor) -> None:
    """Raise PlanError if user code put a secret into a question, derivation or component; it names the place.

    Nothing is refused where the task itself contains a secret.
    """
    if not redactor.has_secrets or redactor.has_secret_in(task.model_dump_json()):
        return
    for name, part in _named_parts(survey, decision):
        if not redactor.has_secret_in(part.model_dump_json()):
            continue
        for place, value in _secret_texts(part.model_dump(mode="json"), redactor):
            raise PlanError(
                f"task {task.id!r}: {name}, {place}: holds the secret of {_variable_name(value)}, {_REASON}"
            )


def _named_parts(survey: Survey, decision: Decision) -> Iterator[tuple[str, Any]]:
    yield from ((f"question {part.id!r}", part) for part in survey.questions)
    yield from ((f"material {part.gives!r}", part) for part in survey.derivations)
    yield from ((f"component {part.name!r}", part) for part in decision.specs)


def _variable_name(value: str) -> str:
    return variable_with_secret(value, os.environ) or "the model's key"


def _secret_texts(value: Any, redactor: Redactor, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place of each text that holds a secret, such as `params.key` or `evaluators[0].use`, and the text."""
    if isinstance(value, str):
        if redactor.has_secret_in(value):
            yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _secret_texts(name, redactor, place or "a name")
            yield from _secret_texts(inner, redactor, f"{place}.{name}" if place else name)
    elif isinstance(value, Sequence):
        for number, inner in enumerate(value):
            yield from _secret_texts(inner, redactor, f"{place}[{number}]")
