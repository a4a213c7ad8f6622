"""The description of the server for clients, made from the models that read its bodies."""

from importlib.metadata import version

from pydantic.json_schema import models_json_schema

from jurygraph.schema import Trace
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.server.protocols import (
    PROTOCOL_CLASSES,
    EndpointProtocol,
    NemoGymProtocol,
    OpenRlhfProtocol,
    ScoreProtocol,
    SlimeProtocol,
)


def openapi_document() -> JsonFields:
    """Return the OpenAPI document."""
    references, schemas = models_json_schema(
        [
            (Trace, "serialization"),
            *((protocol.body, "validation") for protocol in PROTOCOL_CLASSES),
        ],
        ref_template="#/components/schemas/{model}",
    )
    # `complete_task_content` names a task without one
    schemas["$defs"]["Task"]["required"].remove("id")
    paths = {}
    for protocol in PROTOCOL_CLASSES:
        reference = references[protocol.body, "validation"]
        paths[protocol.path] = {
            "post": {
                "summary": (protocol.__doc__ or "").strip(),
                "parameters": [_IDEMPOTENCY_KEY_HEADER],
                "requestBody": {
                    "required": True,
                    "content": _json_media_content(reference),
                },
                "responses": {
                    "200": {
                        "description": "rewards",
                        "content": _json_media_content(_REPLY_SCHEMA_BY_PROTOCOL[protocol]),
                    },
                    "default": {
                        "description": "no rewards, and why",
                        "content": _json_media_content(_ERROR_REPLY_SCHEMA),
                    },
                },
            }
        }
    for path, summary in STATUS_PATHS.items():
        paths[path] = {"get": {"summary": summary, "responses": {"200": {"description": "yes"}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "jurygraph serve", "version": version("jurygraph")},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": _TOKEN_SECURITY_SCHEME},
        },
        "security": [{"token": []}, {}],
    }


STATUS_PATHS = {
    "/healthz": "Whether the process is up.",
    "/readyz": "Whether rewards can be had: the jury is open, the judge answers, the server does not end.",
    "/metrics": "Figures for Prometheus.",
    "/openapi.json": "This description.",
}
_TOKEN_SECURITY_SCHEME = {"type": "http", "scheme": "bearer"}
_IDEMPOTENCY_KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The same key with the same body gets the same reply, also while that is in work.",
}
_ERROR_REPLY_SCHEMA = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}
_NUMBERS_SCHEMA = {"type": "array", "items": {"type": "number"}}
_SCORE_REPLY_SCHEMA = {
    "type": "object",
    "properties": {
        "traces": {"type": "array", "items": {"$ref": "#/components/schemas/Trace"}},
        "rewards": {"type": "array", "items": {"type": ["number", "null"]}},
        "filled": {"type": "integer"},
        "factor": {"type": ["number", "null"]},
    },
    "required": ["traces", "rewards", "filled", "factor"],
}
_OPENRLHF_REPLY_SCHEMA = {
    "type": "object",
    "properties": {
        "rewards": _NUMBERS_SCHEMA,
        "scores": _NUMBERS_SCHEMA,
        "extra_logs": {
            "type": "object",
            "properties": {"coverage": _NUMBERS_SCHEMA, "filled": _NUMBERS_SCHEMA},
            "required": ["coverage", "filled"],
            "additionalProperties": _NUMBERS_SCHEMA,
            "description": "Components too; NaN, as Python's json writes it, where one has no value.",
        },
    },
    "required": ["rewards", "scores", "extra_logs"],
}
_NEMO_GYM_REPLY_SCHEMA = {
    "allOf": [{"$ref": "#/components/schemas/VerifyBody"}],
    "properties": {
        "reward": {"type": "number"},
        "reward_components": {"type": "object", "additionalProperties": {"type": "number"}},
        "failure_reason": {"type": "string"},
        "_ng_failure_class": {"const": "judge_failed"},
        "_ng_failure_judge_error": {"type": "string"},
    },
    "required": ["reward", "reward_components"],
}
_REPLY_SCHEMA_BY_PROTOCOL: dict[type[EndpointProtocol], JsonFields] = {
    ScoreProtocol: _SCORE_REPLY_SCHEMA,
    OpenRlhfProtocol: _OPENRLHF_REPLY_SCHEMA,
    SlimeProtocol: {"type": "number"},
    NemoGymProtocol: _NEMO_GYM_REPLY_SCHEMA,
}


def _json_media_content(schema: JsonFields) -> JsonFields:
    return {"application/json": {"schema": schema}}
