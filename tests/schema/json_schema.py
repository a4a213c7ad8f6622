"""As much of JSON Schema as pydantic writes for our models: enough to validate a document."""

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
ASIDE = frozenset(("title", "description", "default", "discriminator", "$defs", "readOnly"))


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, at: str = "") -> list[str]:
    """Where a JSON value is not what the schema says, each as `.path: what is wrong`; none where it conforms."""
    root = schema if root is None else root
    return [fault for keyword in schema for fault in _faults(keyword, value, schema, root, at)]


def _faults(keyword: str, value: Any, schema: dict[str, Any], root: dict[str, Any], at: str) -> Iterator[str]:
    rule = schema[keyword]
    if keyword == "$ref":
        yield from faults(value, root["$defs"][rule.rpartition("/")[2]], root, at)
    elif keyword in ("anyOf", "oneOf"):
        if all(faults(value, one, root, at) for one in rule):
            yield f"{at}: {value!r} fits none of {len(rule)}"
    elif keyword == "type":
        if not isinstance(value, TYPES[rule]) or (isinstance(value, bool) and rule in ("number", "integer")):
            yield f"{at}: {value!r} is no {rule}"
    elif keyword in _INSIDE:
        yield from _INSIDE[keyword](value, schema, root, at)
    elif keyword in _BOUNDS:
        kinds, holds = _BOUNDS[keyword]
        if isinstance(value, kinds) and not holds(value, rule):
            yield f"{at}: {value!r} breaks {keyword} {rule}"
    else:
        assert keyword in ASIDE, f"this reader does not know {keyword!r}"


def _properties(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    known = schema["properties"]
    if not isinstance(value, dict):
        return []
    return [one for key in value.keys() & known.keys() for one in faults(value[key], known[key], root, f"{at}.{key}")]


def _others(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    others = sorted(value.keys() - schema.get("properties", {}).keys()) if isinstance(value, dict) else []
    rule = schema["additionalProperties"]
    if rule is False:
        return [f"{at}: {key!r} is unknown" for key in others]
    return [] if rule is True else [one for key in others for one in faults(value[key], rule, root, f"{at}.{key}")]


def _keys(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    keys = value if isinstance(value, dict) else {}
    return [one for key in keys for one in faults(key, schema["propertyNames"], root, f"{at}.{key}")]


def _items(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    first = schema.get("prefixItems", [])
    if not isinstance(value, list):
        return []
    each = [*first, *[schema.get("items", {})] * (len(value) - len(first))]
    return [one for i, item in enumerate(value) for one in faults(item, each[i], root, f"{at}[{i}]")]


def _required(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    return [f"{at}: {key!r} is missing" for key in schema["required"] if isinstance(value, dict) and key not in value]


_INSIDE: dict[str, Any] = {
    "properties": _properties,
    "additionalProperties": _others,
    "propertyNames": _keys,
    "items": _items,
    "prefixItems": lambda value, schema, root, at: [] if "items" in schema else _items(value, schema, root, at),
    "required": _required,
    "const": lambda value, schema, root, at: [] if value == schema["const"] else [f"{at}: {value!r} is another"],
    "enum": lambda value, schema, root, at: [] if value in schema["enum"] else [f"{at}: {value!r} is not listed"],
}
_NUMBER, _SIZED = (int, float), (str, list, dict)
_BOUNDS: dict[str, Any] = {
    "minimum": (_NUMBER, lambda value, rule: value >= rule),
    "maximum": (_NUMBER, lambda value, rule: value <= rule),
    "exclusiveMinimum": (_NUMBER, lambda value, rule: value > rule),
    "exclusiveMaximum": (_NUMBER, lambda value, rule: value < rule),
    "minLength": (_SIZED, lambda value, rule: len(value) >= rule),
    "maxLength": (_SIZED, lambda value, rule: len(value) <= rule),
    "minItems": (_SIZED, lambda value, rule: len(value) >= rule),
    "maxItems": (_SIZED, lambda value, rule: len(value) <= rule),
    "minProperties": (_SIZED, lambda value, rule: len(value) >= rule),
}
