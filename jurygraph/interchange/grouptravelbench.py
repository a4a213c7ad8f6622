"""GroupTravelBench (small-xiangcheng/GroupTravelbench, arXiv 2605.25200): travellers as stakeholders, as in DecompR.

It scores its strong tier (must, reject, budget, intensity) with 2 points and the weak one (prefer, avoid, kinds of
places and hotels) with 1: here hard and soft.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import JsonValue

from jurygraph.interchange.rows import (
    NOT_EMPTY,
    ImportedRow,
    ImportNote,
    RowKey,
    ShortName,
    TaskFieldsAndNotes,
    TaskRow,
)
from jurygraph.schema.frozen_model import JsonFields, JsonObject

UNREAD_FIELDS_IMPORT_NOTE = "preferences in fields that are not read are left out"
NO_PREFERENCE_IMPORT_NOTE = "tasks in which nobody states a preference are left out"

_CONSTRAINT_SENTENCE_BY_FIELD: Mapping[str, tuple[Literal["hard", "soft"], str]] = {
    "avg_budget": ("hard", "The trip costs this person {} yuan at most."),
    "transport.must": ("hard", "Travel between cities is by {}."),
    "transport.prefer": ("soft", "Travel between cities is preferably by {}."),
    "transport.avoid": ("soft", "Travel between cities is preferably not by {}."),
    "transport.reject": ("hard", "Travel between cities is never by {}."),
    "intensity.max_poi_per_day": ("hard", "There are at most {} attractions a day."),
    "intensity.max_active_hours": (
        "hard",
        "Attractions and travel within a city take at most {} hours a day.",
    ),
    "hotel_preference.prefer": ("soft", "Hotels are preferably of the kind {}."),
    "hotel_preference.avoid": ("soft", "Hotels are preferably not of the kind {}."),
    "attractions.must_visit": ("hard", "{city}: {} is visited."),
    "attractions.reject_visit": ("hard", "{city}: {} is not visited."),
    "attractions.category_pref.positive": (
        "soft",
        "{city}: attractions of the kind {} are preferred.",
    ),
    "attractions.category_pref.negative": (
        "soft",
        "{city}: attractions of the kind {} are preferably avoided.",
    ),
    "food.must_eat": ("hard", "{city}: there is a meal of the kind {}."),
    "food.prefer_eat": ("soft", "{city}: meals of the kind {} are preferred."),
    "food.avoid_eat": ("soft", "{city}: meals of the kind {} are preferably avoided."),
    "food.reject_eat": ("hard", "{city}: there is no meal of the kind {}."),
}
"""The kind and the words of a preference, by its field; the fields of a city hold for that city."""


class Traveller(ImportedRow):
    """A person: a role in the group, and what the person wants."""

    role: str
    preference: JsonObject


class Opening(ImportedRow):
    """The statement with which a person opens the conversation."""

    role: ShortName
    content: str


class GroupTrip(TaskRow):
    """A task of `datas/test.jsonl`. Files of results have other rows, and are not read."""

    KEY = "task_id"
    EXPECTED_FILE_CONTENT = "GroupTravelBench's tasks"

    task_id: RowKey
    query: Annotated[str, NOT_EMPTY]
    user_preferences: dict[Annotated[ShortName, NOT_EMPTY], Traveller]
    context: str | None = None
    time: str | None = None
    initial_messages: tuple[Opening, ...] = ()

    def to_content(self) -> TaskFieldsAndNotes:
        """Return the trip with a stakeholder for each person who states a preference; the query has nobody's words."""
        stakeholders = []
        notes = []
        for name, user in self.user_preferences.items():
            constraints, unread_fields = _preferences_to_constraints(user.preference)
            notes += [
                ImportNote(UNREAD_FIELDS_IMPORT_NOTE, f"{self.task_id}: {name} {field}")
                for field in unread_fields
            ]
            if constraints:
                statements = (item.content for item in self.initial_messages if item.role == name)
                profile = "\n".join(filter(None, (user.role, *statements)))
                stakeholders.append({"id": name, "profile": profile, "constraints": constraints})
        if not stakeholders:
            return None, [*notes, ImportNote(NO_PREFERENCE_IMPORT_NOTE, self.task_id)]
        date = None if self.time and self.time in (self.context or "") else self.time
        query = "\n".join(filter(None, (self.query, self.context, date)))
        task = {"id": self.task_id, "query": query, "metadata": self.other}
        return {**task, "stakeholders": stakeholders}, notes


def _preferences_to_constraints(
    preference: JsonObject,
) -> tuple[list[JsonFields], list[str]]:
    """Return the fields of a person's constraints, and the paths of preferences in fields that are not read."""
    constraints = {}
    unread_fields: dict[str, None] = {}
    for path, value in _flatten_preferences(preference):
        part, _, field = path.partition(".")
        city = ""
        if part == "city_specific_preferences":
            city, field = _split_city_field(field)
        kind, words = _CONSTRAINT_SENTENCE_BY_FIELD.get(field, ("", ""))
        is_city_constraint = "{city}" in words
        is_supported_field = (
            bool(city) if is_city_constraint else not city and part == "global_constraints"
        )
        if kind and is_supported_field:
            name = f"{path}: {value}"
            constraints[name] = {"id": name, "kind": kind, "text": words.format(value, city=city)}
        else:
            unread_fields[path] = None
    return list(constraints.values()), list(unread_fields)


def _split_city_field(field: str) -> tuple[str, str]:
    """Return a city, whose name may hold a dot, and the known field that follows it; empty texts without one."""
    for name in _CONSTRAINT_SENTENCE_BY_FIELD:
        if field.endswith(f".{name}"):
            return field[: -len(name) - 1], name
    return "", ""


def _flatten_preferences(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every entry of a list and every limit above 0, as the benchmark counts them, each after its field."""
    if isinstance(value, dict):
        for name, part in value.items():
            nested_field_path = f"{path}.{name}" if path else name
            yield from _flatten_preferences(part, nested_field_path)
    elif isinstance(value, list):
        for entry in value:
            yield from _flatten_preferences(entry, path)
    elif value:  # a limit of 0 is none
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        yield path, str(value)
