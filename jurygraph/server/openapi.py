"""The description of the server for clients, made from the models that read its bodies."""

from importlib.metadata import version

from pydantic.json_schema import models_json_schema

from jurygraph.schema import Trace
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.server.protocols import PROTOCOL_CLASSES, ScoreProtocol


def openapi_document() -> JsonFields:
    """Return the OpenAPI document."""
    bodies = [protocol.body for protocol in PROTOCOL_CLASSES]
    references, schemas = models_json_schema(
        [(model, "validation") for model in (Trace, *bodies)],
        ref_template="#/components/schemas/{model}",
    )
    paths = {}
    for protocol in PROTOCOL_CLASSES:
        reference = references[protocol.body, "validation"]
        reply = _SCORE_REPLY_SCHEMA if protocol is ScoreProtocol else {}
        paths[protocol.path] = {
            "post": {
                "summary": (protocol.__doc__ or "").strip(),
                "parameters": [_IDEMPOTENCY_KEY_HEADER],
                "requestBody": {
                    "required": True,
                    "content": _json_media_content(reference),
                },
                "responses": {
                    "200": {"description": "rewards", "content": _json_media_content(reply)},
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


def _json_media_content(schema: JsonFields) -> JsonFields:
    return {"application/json": {"schema": schema}}
