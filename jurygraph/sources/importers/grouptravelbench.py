"""GroupTravelBench (small-xiangcheng/GroupTravelbench, arXiv 2605.25200): trips of groups, with what each person wants.

Each person becomes a stakeholder, and each entry of their preferences a constraint. The benchmark scores the strong
tier (must, reject, budget, intensity) with 2 points and the weak one (prefer, avoid, kinds of places and hotels) with
1: these are hard and soft constraints.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from jurygraph.sources.importers.rows import Content, ImportedRow, Key, Name, Note, TaskRow, nonempty_fields

UNREAD = "preferences in fields that are not read are left out"
WISHLESS = "people who state no preference are left out"
NOBODY = "tasks in which nobody states a preference are left out"

_GENERAL = "global_constraints"
_BY_CITY = "city_specific_preferences"
_WORDS: Mapping[str, tuple[Literal["hard", "soft"], str]] = {
    "avg_budget": ("hard", "The trip costs this person {} yuan at most."),
    "transport.must": ("hard", "Travel between cities is by {}."),
    "transport.prefer": ("soft", "Travel between cities is preferably by {}."),
    "transport.avoid": ("soft", "Travel between cities is preferably not by {}."),
    "transport.reject": ("hard", "Travel between cities is never by {}."),
    "intensity.max_poi_per_day": ("hard", "There are at most {} attractions a day."),
    "intensity.max_active_hours": ("hard", "Attractions and travel within a city take at most {} hours a day."),
    "hotel_preference.prefer": ("soft", "Hotels are preferably of the kind {}."),
    "hotel_preference.avoid": ("soft", "Hotels are preferably not of the kind {}."),
    "attractions.must_visit": ("hard", "{city}: {} is visited."),
    "attractions.reject_visit": ("hard", "{city}: {} is not visited."),
    "attractions.category_pref.positive": ("soft", "{city}: attractions of the kind {} are preferred."),
    "attractions.category_pref.negative": ("soft", "{city}: attractions of the kind {} are preferably avoided."),
    "food.must_eat": ("hard", "{city}: there is a meal of the kind {}."),
    "food.prefer_eat": ("soft", "{city}: meals of the kind {} are preferred."),
    "food.avoid_eat": ("soft", "{city}: meals of the kind {} are preferably avoided."),
    "food.reject_eat": ("hard", "{city}: there is no meal of the kind {}."),
}
"""The kind and the words of a preference, by its field; the fields of a city hold for that city."""


class User(ImportedRow):
    """A person: a role in the group, and what the person wants."""

    role: str
    preference: dict[str, JsonValue]


class Opening(ImportedRow):
    """The statement with which a person opens the conversation."""

    role: Name
    content: str


class GroupTrip(TaskRow):
    """A task of `datas/test.jsonl`. Files of results have other rows, and are not read."""

    KEY = "task_id"
    EXPECTED = "GroupTravelBench's tasks"

    task_id: Key
    query: Annotated[str, Field(min_length=1)]
    user_preferences: dict[Annotated[Name, Field(min_length=1)], User]
    context: str | None = None
    time: str | None = None
    metadata: dict[str, JsonValue] | None = None
    initial_messages: tuple[Opening, ...] = ()

    def to_content(self) -> Content:
        """Return the trip with a stakeholder for each person; the query has nobody's own words."""
        stakeholders = []
        notes = []
        people = {}
        for name, user in self.user_preferences.items():
            constraints, unread = _read_constraints(user.preference)
            notes += [Note(UNREAD, f"{self.task_id}: {name} {field}") for field in unread]
            people[name] = user.other
            if constraints:
                openings = (opening.content for opening in self.initial_messages if opening.role == name)
                profile = "\n".join(filter(None, (user.role, *openings)))
                stakeholders.append({"id": name, "profile": profile, "constraints": constraints})
            else:
                notes.append(Note(WISHLESS, f"{self.task_id}: {name}"))
        if not stakeholders:
            return None, [*notes, Note(NOBODY, self.task_id)]
        about = self.other | nonempty_fields(trip=self.metadata, time=self.time, people=nonempty_fields(**people))
        date = self.time if self.time and self.time not in (self.context or "") else None
        query = "\n".join(filter(None, (self.query, self.context, date)))
        return {"id": self.task_id, "query": query, "stakeholders": stakeholders, "metadata": about}, notes


def _read_constraints(preference: Mapping[str, JsonValue]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the fields of a person's constraints, and the paths of preferences in fields that are not read."""
    entries = [(f"{_GENERAL}.{field}", field, value, "") for field, value in _entries(preference.get(_GENERAL))]
    by_city = preference.get(_BY_CITY)
    for city, wishes in by_city.items() if isinstance(by_city, dict) else ():
        entries += [(f"{_BY_CITY}.{city}.{field}", field, value, city) for field, value in _entries(wishes)]
    constraints: dict[str, dict[str, Any]] = {}
    unread = [name for name in nonempty_fields(**preference) if name not in (_GENERAL, _BY_CITY)]
    for path, field, value, city in entries:
        if field in _WORDS and ("{city}" in _WORDS[field][1]) == bool(city):
            kind, words = _WORDS[field]
            name = f"{path}: {value}"
            constraints[name] = {"id": name, "kind": kind, "text": words.format(value, city=city)}
        else:
            unread.append(path)
    return list(constraints.values()), unread


def _entries(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every entry of a list and every limit above 0, as the benchmark counts them, each after its field."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _entries(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for entry in value:
            yield from _entries(entry, path)
    elif value:  # a limit of 0 is none
        yield path, str(int(value) if isinstance(value, float) and value.is_integer() else value)
