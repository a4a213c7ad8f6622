"""The base of all data models and of parameters, their canonical JSON and digests, and JSON that is read strictly."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from inspect import signature
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)

from jurygraph.display import ReprParts, ShortRepr
from jurygraph.errors import InputError, JurygraphError
from jurygraph.messages import (
    FieldPath,
    Problem,
    describe_type,
    describe_validation_error,
    describe_value,
    nearest_name,
    quote,
    shorten,
    validate,
)

JsonFields = dict[str, Any]
"""The fields of a JSON object that is written or was read: their types are those of the code that makes it."""
ReadOnlyFields = Mapping[str, Any]
"""The same, or other values by name, for code that only reads them."""

JsonMapping = Mapping[str, Any]
"""The same, only to be read."""

StrPath = str | Path
"""A path, or its text."""


def decode_json_strictly(text: str, *, allow_negative_zero: bool = True) -> Any:
    """Return the value of a JSON text, or the `Problem` of its first part that JSON leaves ambiguous.

    Raises `json.JSONDecodeError` where the text is no JSON, and `RecursionError` where it is nested too deeply.
    """
    problems: list[Problem] = []
    value = _make_decoder(allow_negative_zero, problems).decode(text)
    if not problems:
        return value
    path, problem = next(
        (path, part) for path, part in iter_json_values(value) if isinstance(part, Problem)
    )
    return Problem((*path, *problem.path), problem.problem, problem.remedy)


def iter_json_values(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Yield every part of a value with its path; a key has the path of its object."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, key
            yield from iter_json_values(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from iter_json_values(inner, (*path, index))


def _make_decoder(allow_negative_zero: bool, problems: list[Problem]) -> json.JSONDecoder:
    """Return a decoder that puts a problem in the place of each ambiguous part, which locates it, and lists it."""

    def refuse(path: FieldPath, problem: str, remedy: str) -> Problem:
        problems.append(Problem(path, problem, remedy))
        return problems[-1]

    def parse_object(pairs: list[tuple[str, Any]]) -> Any:
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        duplicate_key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return refuse((duplicate_key,), "occurs twice in one object", "keep one of them")

    def parse_constant(name: str) -> Any:
        return refuse((), f"{name} is not JSON", "write a number, or leave the field out")

    def parse_float(digits: str) -> Any:
        value = float(digits)
        if math.isinf(value):
            return refuse(
                (), f"{shorten(digits)} is too large a number", "a 64-bit float holds up to 1.7e308"
            )
        if value == 0 and digits[0] == "-" and not allow_negative_zero:
            return refuse((), f"is {shorten(digits)}", "write 0")
        return value

    def parse_int(digits: str) -> Any:
        if math.isinf(float(digits)):
            return refuse(
                (),
                f"{shorten(digits, 20)} has {len(digits)} digits",
                "write so long a number as text",
            )
        return int(digits) if allow_negative_zero or digits != "-0" else parse_float(digits)

    return json.JSONDecoder(
        object_pairs_hook=parse_object,
        parse_constant=parse_constant,
        parse_float=parse_float,
        parse_int=parse_int,
    )


Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A finite number. A number written as a string, or a boolean, is refused."""

NumberRange = tuple[Number, Number]
"""The lower and the upper end of a range."""


def _require_rising_ends(ends: tuple[float, float]) -> tuple[float, float]:
    if not ends[0] < ends[1]:
        raise ValueError("does not rise; write the lower end first, such as [0, 1]")
    return ends


RisingRange = Annotated[NumberRange, AfterValidator(_require_rising_ends)]
"""A range whose upper end is above its lower one."""

UnitInterval = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
"""A number in [0, 1]."""

PositiveNumber = Annotated[float, Field(strict=True, gt=0.0, allow_inf_nan=False)]
"""A finite number above 0."""

JsonObject = dict[str, JsonValue]
"""An object of JSON, whatever is in it."""

EMPTY_OBJECT: Any = Field(default_factory=dict)
"""The default of a field: an object or a dict of its own, without entries."""

Id = Annotated[str, StringConstraints(min_length=1, max_length=512)]
LongId = Annotated[str, StringConstraints(min_length=1)]
"""An id composed of other ids, without a limit on its length."""

StrictBool = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
PositiveInt = Annotated[int, Field(strict=True, ge=1)]

_CANONICAL_JSON_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_ASCII_JSON_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_COMPACT_JSON_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_ESCAPED_CHARACTERS_PATTERN = re.compile(
    r"[^\x00-\x7e]+"
)  # what `json` escapes and orjson does not


class ConstantJsonObject(dict[str, Any]):
    """A JSON object that is part of many others and never changes: its canonical JSON is computed once."""

    @cached_property
    def canonical_bytes(self) -> bytes:
        return canonical_json(dict(self))


_MIN_LONG_TEXT_LENGTH = 1 << 16
"""Length in characters from which a text is encoded in pieces."""

_STRING_KEY_TYPES = {str}
_PLAIN_TYPES = frozenset((str, int, bool, type(None), ConstantJsonObject))


def canonical_json(value: Any) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, ASCII, shortest floats. ValueError for NaN and infinities."""
    text = _write_plain_json(value, _to_json_fragment, orjson.OPT_SORT_KEYS)
    return _to_ascii(text, value, _CANONICAL_JSON_ENCODER)


def to_ascii_json(value: Any) -> bytes:
    """Return JSON as `canonical_json` does, with the keys in the order of the value."""
    return _to_ascii(_write_plain_json(value), value, _ASCII_JSON_ENCODER)


def to_compact_json(value: Any) -> bytes:
    """Return JSON in UTF-8 without spaces, with the keys in the order of the value."""
    text = _write_plain_json(value)
    return _COMPACT_JSON_ENCODER.encode(value).encode() if text is None else text


def iter_strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value; the keys of objects are not included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from iter_strings(inner)


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with every string in it changed, except the keys of objects.

    A tuple counts as a list; one with named fields stays as it is.
    """
    if isinstance(value, str):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(map_strings(item, change) for item in value)
    if isinstance(value, dict):
        return {name: map_strings(item, change) for name, item in value.items()}
    return value


def _write_plain_json(
    value: Any, default_encoder: Callable[[Any], Any] | None = None, options: int = 0
) -> bytes | None:
    """Return the JSON by orjson, in a tenth of the time, where the standard library writes the same but for escapes."""
    try:
        text = orjson.dumps(value, default_encoder, options | orjson.OPT_PASSTHROUGH_SUBCLASS)
    # integers of more than 64 bits, unpaired surrogates, keys that are no text, deep nesting
    except TypeError:
        return None
    return text if _has_plain_values(value) else None


def _to_ascii(text: bytes | None, value: Any, encoder: json.JSONEncoder) -> bytes:
    """Return a value's JSON in ASCII: from its `text` by orjson, or by the encoder if there is none."""
    if text is None:
        return encoder.encode(value).encode("ascii")
    if text.isascii() and b"\x7f" not in text:
        return text
    return _ESCAPED_CHARACTERS_PATTERN.sub(
        lambda match: encode_basestring_ascii(match[0])[1:-1], text.decode()
    ).encode("ascii")


def _to_json_fragment(value: Any) -> orjson.Fragment:
    """Return the JSON of a value of another type for orjson."""
    if type(value) is ConstantJsonObject:
        return orjson.Fragment(value.canonical_bytes)
    raise TypeError


def _has_plain_values(value: Any) -> bool:
    """Return True if orjson and `json` write every value alike: no subclasses, no NaN, no floats with an exponent."""
    values = [value]
    for part in values:  # grows with the parts of its parts
        kind = type(part)
        if kind in _PLAIN_TYPES:
            continue
        if kind is dict:
            values += part.values()
        elif kind is list or kind is tuple:
            values += part
        elif kind is not float or not (part == 0 or 1e-4 <= abs(part) < 1e16):
            return False
    return True


def digest_of(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of a plain JSON value, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in _iter_json_chunks(value):
        digest.update(piece)
    return digest.hexdigest()


def _iter_json_chunks(value: Any) -> Iterator[bytes]:
    """Yield the canonical JSON: orjson takes eight bytes for each character of a long text, which a digest need not."""
    kind = type(value)
    if not _contains_long_text(value):
        yield canonical_json(value)
    elif kind is str:
        yield b'"'
        for piece in split_into_pieces(value):
            yield encode_basestring_ascii(piece)[1:-1].encode("ascii")
        yield b'"'
    elif kind is dict:
        mark = b"{"
        for key in sorted(value):
            yield mark + canonical_json(key) + b":"
            yield from _iter_json_chunks(value[key])
            mark = b","
        yield b"}"
    else:
        mark = b"["
        for part in value:
            yield mark
            yield from _iter_json_chunks(part)
            mark = b","
        yield b"]"


def split_into_pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a long text, so that its bytes are not in memory all at once."""
    for start in range(0, len(text), _MIN_LONG_TEXT_LENGTH):
        yield text[start : start + _MIN_LONG_TEXT_LENGTH]


def _contains_long_text(value: Any) -> bool:
    """Return whether a plain JSON value has a text to be written in pieces; False for keys that are no text."""
    values = [value]
    has_long_text = False
    for part in values:  # grows with the parts of its parts
        kind = type(part)
        if kind is str:
            has_long_text = has_long_text or len(part) > _MIN_LONG_TEXT_LENGTH
        elif kind is dict:
            values += part.values()
        elif kind is list or kind is tuple:
            values += part
    # few values have one: the keys of all others need not be looked at
    return has_long_text and all(
        {*map(type, part)} <= _STRING_KEY_TYPES for part in values if type(part) is dict
    )


class FrozenModel(ShortRepr, BaseModel):
    """A frozen value. Equal content gives an equal `digest`, on any machine and in any order of keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=False
    )

    def __init__(self, /, *values: Any, **fields: Any) -> None:
        """Validate the fields. Raises InputError that names the first wrong one; `model_validate` pydantic's own."""
        name = type(self).__name__
        if values:
            raise InputError(
                f"{name}: {describe_value(values[0])} is given without the name of its field; write "
                f"{'=…, '.join(type(self).model_fields)}=…"
            )
        try:
            self.__pydantic_validator__.validate_python(
                self._read_arguments(fields), self_instance=self
            )
        except ValidationError as error:
            problem = describe_validation_error(error, type(self), fields)
            error_location = f"{name}.{problem.field}".removesuffix(".")
            model_type_errors = [item for item in error.errors() if item["type"] == "model_type"]
            class_names = {item["ctx"]["class_name"] for item in model_type_errors}
            if len(class_names) == 1 and (problem.remedy or "").startswith("write an object"):
                problem = replace(problem, remedy=f"write {class_names.pop()}(…)")
            raise InputError(f"{error_location}: {problem}") from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # so that no validation calls it
    __init__.__signature__ = signature(BaseModel.__init__)  # type: ignore[attr-defined]  # `values` are always refused

    @classmethod
    def _read_arguments(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the class as they are validated; what is stored never comes here."""
        return fields

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            try:
                super().__setattr__(name, value)
            except ValidationError:
                kind = type(self).__name__
                raise InputError(
                    f"{kind}.{name}: a {kind} cannot be changed; make a changed copy with `.model_copy(update={{…}})`"
                ) from None

    def _repr_parts(self) -> ReprParts:
        """Return the fields that are not at their defaults."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name, None)
            if not field.repr:
                continue
            if field.is_required() or value != field.get_default(call_default_factory=True):
                yield name, value

    def __repr_args__(self) -> ReprParts:
        return self._repr_parts()  # for rich and other printers of pydantic models

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the whole model, in hexadecimal."""
        return digest_of(self.model_dump(mode="json"))

    @cached_property
    def json_object(self) -> ConstantJsonObject:
        """The model as JSON, for one that is part of several others."""
        return ConstantJsonObject(self.model_dump(mode="json"))

    def model_copy(self, *, update: ReadOnlyFields | None = None, deep: bool = False) -> Self:
        """Copy as pydantic does, without validation, and drop the cached properties of the old content."""
        copied_model = super().model_copy(update=update, deep=deep)
        for name in ("digest", "content_digest", "json_object", "without_texts", "_views"):
            copied_model.__dict__.pop(name, None)
        return copied_model


def require_argument_type(argument: str, value: Any, kinds: Any, hint: str) -> None:
    """Raise InputError with the name of an argument that is not of one of these kinds."""
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise InputError(f"{argument}: is {describe_type(value)}; {hint}")


def require_unique_ids(
    noun: str, field: str, ids: Sequence[str], remedy: str = "an id of its own"
) -> None:
    """Raise ValueError where an id is repeated; `field` is the path of an id, with `{}` for its index."""
    earlier_ids = set()
    for index, name in enumerate(ids):
        if name in earlier_ids:
            raise ValueError(
                f"`{field.format(index)}` is {quote(name)} again; give each {noun} {remedy}"
            )
        earlier_ids.add(name)


def suggest_name(
    name: str,
    known_names: Iterable[str],
    otherwise: str = "name one that is listed, or list it too",
) -> str:
    """Return a hint for an unknown name: the nearest known one, if there is any."""
    similar_name = nearest_name(name, sorted(known_names))
    return otherwise if similar_name is None else f"did you mean {quote(similar_name)}?"


M = TypeVar("M", bound="ParamsModel")

RawParams = Mapping[str, Any]
"""Params as a config has them, or as a plan stores them."""


class StoredModel(FrozenModel):
    """Base class of what is stored with its digest: a `digest` among its fields is that of the rest."""

    @model_validator(mode="wrap")
    @classmethod
    def _require_matching_digest(cls, value: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(value, Mapping) or "digest" not in value:
            return build(value)
        fields = {name: content for name, content in value.items() if name != "digest"}
        model = build(fields)
        if value["digest"] != model.digest:
            raise model._digest_mismatch(value["digest"])
        return model

    def _digest_mismatch(self, stored_digest: str) -> Exception:
        return ValueError(
            "`digest` is not that of the rest, which was changed; leave it out, or fit it again"
        )


class ParamsModel(FrozenModel):
    """Base class of params, and no params by itself; the docstring below a field is its description in schemas."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def read_params(owner: str, model: type[M], params: RawParams, error: type[JurygraphError]) -> M:
    """Return params as their model. Raises `error`, which names the owner, the first wrong one and what is right."""
    settings = validate(model, params)
    if isinstance(settings, Problem):
        raise error(f"{owner}: {'.'.join(filter(None, ('params', settings.field)))}: {settings}")
    return settings
