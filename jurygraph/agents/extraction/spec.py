"""The models of the config's record kinds for extraction, and of the reply."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, create_model, model_validator

from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Flag, Number, ParamsModel

QUOTE = "quote"
"""The field of every record of a reply that quotes the passage with the record's values."""

MAX_RECORDS = 60
"""The largest number of records per kind in one reply."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
_Words = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
_Value = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_Quote = Annotated[str, StringConstraints(max_length=20_000)]


class FieldSpec(FrozenModel):
    """One field of a record: the description `about` that the model sees; a plain text means only that.

    The value consists of words of the quoted passage, or with `number` of a number written there in digits. With
    `context` it may occur anywhere before, as in a heading. With `one_of` it is one of these words, whose only evidence
    is the passage that it was decided on. A record may lack a field that is `optional`.
    """

    about: _Words
    number: Flag = False
    context: Flag = False
    optional: Flag = False
    one_of: tuple[_Value, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _expand_text(cls, value: Any) -> Any:
        return {"about": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        conflicting = [name for name in ("number", "context") if getattr(self, name)]
        if self.one_of and conflicting:
            raise ValueError(f"`one_of` is not sought in the response, and `{conflicting[0]}` is; keep one of them")
        if len(set(self.one_of)) < len(self.one_of):
            raise ValueError("`one_of` has a duplicate; remove it")
        return self


Kind = Mapping[str, FieldSpec]
Kinds = Mapping[str, Kind]


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("a name begins with a letter, and has up to 60 letters, digits and _")
    return name


def _check_field_name(name: str) -> str:
    if name == QUOTE:
        raise ValueError("every record has one already; leave it out")
    return _check_name(name)


_KindName = Annotated[str, AfterValidator(_check_name)]
_FieldName = Annotated[str, AfterValidator(_check_field_name)]


class RecordParams(ParamsModel):
    """The params of `extract`."""

    records: dict[_KindName, Annotated[dict[_FieldName, FieldSpec], Field(min_length=1, max_length=30)]] = Field(
        min_length=1, max_length=30
    )
    """Kinds of records, each with its fields: a description of each, or `about` with `number`, `context`, `optional` or
    `one_of`."""


def reply_model(kinds: Kinds) -> type[FrozenModel]:
    """Return the reply model: a list of records for each kind, in which the quoted passage comes first.

    Kinds and fields are aliases, so that no name hides an attribute of `FrozenModel` (digest, …).
    """
    lists: dict[str, Any] = {}
    for place, (kind, fields) in enumerate(kinds.items(), start=1):
        record_fields: dict[str, Any] = {
            f"field_{number}": (_value(field), Field(alias=name))
            for number, (name, field) in enumerate(fields.items(), start=1)
        }
        record = create_model(f"Record_{kind}", __base__=FrozenModel, quote=(_Quote, ...), **record_fields)
        records = Annotated[tuple[record, ...], Field(max_length=MAX_RECORDS)]
        lists[f"kind_{place}"] = (records, Field(alias=kind))
    return create_model("Extracted", __base__=FrozenModel, **lists)


def _value(field: FieldSpec) -> Any:
    value: Any = Literal[field.one_of] if field.one_of else Number if field.number else _Value
    return value | None if field.optional else value
