"""What a config states of the records that are to be taken out of a response, and the reply that is asked for."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, create_model, model_validator

from jurygraph.errors import ConfigError
from jurygraph.schema import Noun
from jurygraph.schema.noun import Flag, Number
from jurygraph.sources.complaint import complaint, shortened

QUOTE = "quote"
"""The field of every record of a reply that quotes the passage which states it."""

MOST_RECORDS = 60
"""Records of a kind in one reply."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
_Words = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
_Value = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_Quote = Annotated[str, StringConstraints(max_length=20_000)]


class FieldStated(Noun):
    """One field of a record: what it is `about`, as the model is told; a text alone is that.

    Its value is words of the passage that is quoted for the record, or with `number` a number that is written there in
    digits. With `context` it may stand anywhere before, as a heading does. With `one_of` it is one of these words,
    which no evidence confirms: the passage is what it was decided on. A record may lack a field that is `optional`.
    """

    about: _Words
    number: Flag = False
    context: Flag = False
    optional: Flag = False
    one_of: tuple[_Value, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _text_alone_is_about(cls, stated: Any) -> Any:
        return {"about": stated} if isinstance(stated, str) else stated

    @model_validator(mode="after")
    def _is_sought_in_one_way(self) -> Self:
        others = [name for name in ("number", "context") if getattr(self, name)]
        if self.one_of and others:
            raise ValueError(f"`one_of` is not sought in the response, and `{others[0]}` is; keep one of them")
        if len(set(self.one_of)) < len(self.one_of):
            raise ValueError("`one_of` says something twice; say it once")
        return self


Kind = Mapping[str, FieldStated]
Kinds = Mapping[str, Kind]


class _Stated(Noun):
    records: Annotated[
        dict[str, Annotated[dict[str, FieldStated], Field(min_length=1, max_length=30)]],
        Field(min_length=1, max_length=30),
    ]


def read_kinds(records: Any) -> Kinds:
    """The fields of each kind of records, by name. Raises ConfigError naming the param."""
    stated = {"records": records}
    try:
        kinds = _Stated.model_validate(stated).records
    except ValidationError as error:
        wrong = complaint(error, _Stated, stated)
        raise ConfigError(f"extract: {wrong.field}: {wrong}") from error
    for kind, fields in kinds.items():
        _check_name(f"records.{shortened(kind)}", kind)
        for name in fields:
            _check_name(f"records.{kind}.{shortened(name)}", name)
        if QUOTE in fields:
            raise ConfigError(f"extract: records.{kind}.{QUOTE}: every record has one already; leave it out")
    return kinds


def _check_name(where: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"extract: {where}: a name begins with a letter, and has up to 60 letters, digits and _")


def reply_noun(kinds: Kinds) -> type[Noun]:
    """What a model replies: a list of records for each kind, with the passage first that states each."""
    lists: dict[str, Any] = {
        f"kind_{place}": (_records(kind, fields), _called(kind))
        for place, (kind, fields) in enumerate(kinds.items(), start=1)
    }
    return create_model("Extracted", __base__=Noun, **lists)


def _records(kind: str, fields: Kind) -> Any:
    stated: dict[str, Any] = {
        f"field_{place}": (_value(field), _called(name)) for place, (name, field) in enumerate(fields.items(), start=1)
    }
    record = create_model(f"Record_{kind}", __base__=Noun, quote=(_Quote, ...), **stated)
    return Annotated[tuple[record, ...], Field(max_length=MOST_RECORDS)]


def _called(name: str) -> Any:
    """The name that a reply has for a field: of a noun's own names (digest, …) none may be taken."""
    return Field(alias=name)


def _value(field: FieldStated) -> Any:
    value: Any = Literal[field.one_of] if field.one_of else Number if field.number else _Value
    return value | None if field.optional else value
