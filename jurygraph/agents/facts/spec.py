"""The models of a task's `facts`: tables, and how claims about them are read from a response's data."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

from pydantic import Field, JsonValue, model_validator

from jurygraph.agents import notation
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Id, Unit


class TableSpec(FrozenModel):
    """A table of facts, from one of three sources: `rows` in the task, a `file`, or a `tool` of the config.

    `key` are the columns that identify a row: the name first, then place or time. Of rows that share a key the first
    counts, by the column `order` or else as listed. `lists` maps columns that hold several values in one text to their
    separators. `file` is CSV, JSON, JSON lines or Parquet, relative to the working directory. In a TASKS file it must
    lie below the folder of that file (`jurygraph.sources.table_rows`).
    """

    key: tuple[Id, ...] = Field(min_length=1)
    rows: tuple[dict[str, JsonValue], ...] | None = None
    file: str | None = None
    tool: str | None = None
    order: Id | None = None
    lists: dict[Id, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_single_source(self) -> Self:
        sources = [name for name in ("rows", "file", "tool") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(f"is given by {' and '.join(sources) or 'nothing'}; give one of rows, file and tool")
        return self


class ClaimPattern(FrozenModel):
    """One way in which a claim may be written.

    `pattern` (RE2) has a named group for every claimed column; `columns` maps groups with other names to their columns.
    Without a pattern the whole text is the name. `states` are fixed values of this form, and `within` is the share by
    which a claimed number may differ.
    """

    table: Id
    pattern: notation.Pattern | None = None
    columns: dict[Id, Id] = Field(default_factory=dict)
    states: dict[Id, JsonValue] = Field(default_factory=dict)
    within: dict[Id, Unit] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_pattern(self) -> Self:
        unknown = sorted(self.columns.keys() - self.groups)
        if unknown:
            known = ", ".join(self.groups) or "none"
            raise ValueError(f"`columns.{unknown[0]}` is not a group of the pattern; it has {known}")
        return self

    @cached_property
    def compiled(self) -> Any:
        return None if self.pattern is None else notation.compile_pattern(self.pattern)

    @property
    def groups(self) -> tuple[str, ...]:
        return () if self.compiled is None else tuple(self.compiled.groupindex)


class RecordField(FrozenModel):
    """A value from the record that holds a claim: that of a `field`, translated by `map` if given."""

    field: Id
    map: dict[str, JsonValue] | None = None


class ClaimsSpec(FrozenModel):
    """One kind of claims: their JSONPaths `at` (RFC 9535) in the response's data, and the `forms` they may have.

    `split` separates several claims in one text; "" and "-" claim nothing. `beside` are values of the record
    that contains the claim: numbers, and texts of up to 1,000 characters. Claims are ordered by the record's field
    `order`, or as in the data. With `merged`, equal claims of successive orders become one, and their number is its
    value of that name.
    """

    at: tuple[notation.JsonPath, ...] = Field(min_length=1)
    forms: tuple[ClaimPattern, ...] = Field(min_length=1)
    split: str | None = None
    beside: dict[Id, RecordField] = Field(default_factory=dict)
    order: Id | None = None
    merged: Id | None = None

    @model_validator(mode="after")
    def _check_merged(self) -> Self:
        if self.merged is not None and self.order is None:
            raise ValueError("`merged` joins claims of successive orders; name the field that has them in `order`")
        return self

    @cached_property
    def paths(self) -> list[Any]:
        return [notation.compile_jsonpath(path) for path in self.at]

    def form_of(self, text: str) -> tuple[ClaimPattern | None, Mapping[str, str]]:
        """Return the form that a text matches, and its values by column."""
        for form in self.forms:
            if form.compiled is None:
                return form, {}
            match = form.compiled.fullmatch(text)
            if match is not None:
                groups = ((group, value) for group, value in match.groupdict().items() if value is not None)
                return form, {form.columns.get(group, group): value.strip() for group, value in groups}
        return None, {}


class FactsSpec(FrozenModel):
    tables: dict[Id, TableSpec]
    claims: dict[Id, ClaimsSpec] = Field(default_factory=dict)
