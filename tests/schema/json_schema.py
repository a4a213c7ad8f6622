"""What is wrong with a document by a JSON Schema."""

from typing import Any

from jsonschema import Draft202012Validator


def faults(value: Any, schema: dict[str, Any]) -> list[str]:
    """Return each place of a JSON value that breaks the schema, with the keyword that it breaks."""
    errors = Draft202012Validator(schema).iter_errors(value)
    return [f"{error.json_path} {error.validator}" for error in errors]
