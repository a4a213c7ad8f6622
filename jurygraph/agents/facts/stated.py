"""What a task states under `facts`: tables, and how claims about them are read out of a response's data."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, Self

from pydantic import Field, JsonValue, model_validator

from jurygraph.agents import notation
from jurygraph.schema import Noun
from jurygraph.schema.noun import Flag, Id, Unit
from jurygraph.sources.complaint import quoted

_LONGEST_KEPT, _MOST_KEPT = 500, 4096


class TableStated(Noun):
    """A table of facts, in one of three places: `rows` in the task, a `file`, or a `tool` of the config.

    `key` are the columns by which a row is known: the name first, then where or when. Rows that share a key are
    alternatives, told apart by the column `order`, else by their content; `unique` refuses them. `lists` are the
    columns that hold several values in one text, each with what separates them. `file` is CSV, JSON, JSON lines,
    Parquet or SQLite (of which `table` is one table), looked for from the folder in which jurygraph runs. In a TASKS
    file it has to lie below the folder of that (`jurygraph.sources.fact_files`).
    """

    key: tuple[Id, ...] = Field(min_length=1)
    rows: tuple[dict[str, JsonValue], ...] | None = None
    file: str | None = None
    table: str | None = None
    tool: str | None = None
    unique: Flag = False
    order: Id | None = None
    lists: dict[Id, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _in_one_place(self) -> Self:
        given = [name for name in ("rows", "file", "tool") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"is given by {' and '.join(given) or 'nothing'}; give one of rows, file and tool")
        if self.table is not None and self.file is None:
            raise ValueError("`table` is one of a SQLite file, and there is no `file`; leave it out")
        return self


class Form(Noun):
    """One way in which a claim may be written.

    `pattern` (RE2) has a named group for every column that is claimed; `columns` gives the column of a group whose
    name is another. Without one the whole text is the name. `states` are values that this form says of itself, and
    `within` by which share a claimed number may be off.
    """

    table: Id
    pattern: str | None = None
    columns: dict[Id, Id] = Field(default_factory=dict)
    states: dict[Id, JsonValue] = Field(default_factory=dict)
    within: dict[Id, Unit] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _pattern_is_one(self) -> Self:
        if self.pattern is not None:
            notation.require("pattern", self.pattern, notation.pattern)
        unknown = sorted(self.columns.keys() - self.groups)
        if unknown:
            known = ", ".join(self.groups) or "none"
            raise ValueError(f"`columns.{unknown[0]}` is no group of the pattern; it has {known}")
        return self

    @cached_property
    def compiled(self) -> Any:
        """The pattern, compiled; None where there is none."""
        return None if self.pattern is None else notation.pattern(self.pattern)

    @property
    def groups(self) -> tuple[str, ...]:
        """The named groups of the pattern."""
        return () if self.compiled is None else tuple(self.compiled.groupindex)


class Beside(Noun):
    """A value that stands beside a claim in its record: at a `field`, and, with `map`, what that stands for."""

    field: Id
    map: dict[str, JsonValue] | None = None


class ClaimsStated(Noun):
    """One kind of claims: `at` which JSONPaths (RFC 9535) of the response's data they stand, and in which `forms`.

    `split` separates several in one text; a text in `none` claims nothing. `beside` are values of the record that a
    claim stands in: numbers, and texts of up to 1,000 characters. Claims count in the order of the record's field
    `order`, or of the data. With `merged`, equal claims in a row are one, and their number is its value of that name.
    """

    at: tuple[str, ...] = Field(min_length=1)
    forms: tuple[Form, ...] = Field(min_length=1)
    split: str | None = None
    none: tuple[str, ...] = ("", "-")
    beside: dict[Id, Beside] = Field(default_factory=dict)
    order: Id | None = None
    merged: Id | None = None

    @model_validator(mode="after")
    def _paths_are_such(self) -> Self:
        for place, path in enumerate(self.at):
            notation.require(f"at[{place}]", path, notation.path)
        return self

    @cached_property
    def paths(self) -> list[Any]:
        """The JSONPaths, compiled."""
        return [notation.path(path) for path in self.at]

    def form_of(self, text: str) -> tuple[Form | None, Mapping[str, str]]:
        """The form that a text has, and what it says by column."""
        return self._kept(text) if len(text) <= _LONGEST_KEPT else _form_of(self.forms, text)

    @cached_property
    def _kept(self) -> Callable[[str], tuple[Form | None, Mapping[str, str]]]:
        """The responses of a group say much the same."""
        return lru_cache(maxsize=_MOST_KEPT)(partial(_form_of, self.forms))


def _form_of(forms: Sequence[Form], text: str) -> tuple[Form | None, Mapping[str, str]]:
    for form in forms:
        if form.compiled is None:
            return form, {}
        found = form.compiled.fullmatch(text)
        if found is not None:
            said = ((group, value) for group, value in found.groupdict().items() if value is not None)
            return form, {form.columns.get(group, group): value.strip() for group, value in said}
    return None, {}


class FactsStated(Noun):
    """All that a task states of its facts."""

    tables: dict[Id, TableStated]
    claims: dict[Id, ClaimsStated] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _claims_are_of_tables(self) -> Self:
        for name, kind in self.claims.items():
            for place, form in enumerate(kind.forms):
                if form.table not in self.tables:
                    known = ", ".join(self.tables) or "none"
                    wrong = f"`claims.{name}.forms[{place}].table` names {quoted(form.table)}"
                    raise ValueError(f"{wrong}, which is no table; there are {known}")
        return self
