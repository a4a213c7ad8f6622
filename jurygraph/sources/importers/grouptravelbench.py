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
REPEATED = "preferences that are listed twice count once"
WISHLESS = "people who state no preference are left out"
NOBODY = "tasks in which nobody states a preference are left out"
UNKNOWN = "opening statements of people without preferences are left out"

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

_Text = Annotated[str, Field(min_length=1, max_length=200)]
"""A city or an entry of a list: both, and the path of the field, are no longer than an id may be."""
_Texts = tuple[_Text, ...] | None
_Limit = Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)]


class Transport(ImportedRow):
    """Modes of travel between cities, in four tiers."""

    must: _Texts = None
    prefer: _Texts = None
    avoid: _Texts = None
    reject: _Texts = None


class Intensity(ImportedRow):
    """Upper limits of a day; 0 is no limit."""

    max_poi_per_day: _Limit | None = None
    max_active_hours: _Limit | None = None


class HotelPreference(ImportedRow):
    """Kinds of hotels."""

    prefer: _Texts = None
    avoid: _Texts = None


class GlobalConstraints(ImportedRow):
    """Preferences about the whole trip."""

    avg_budget: _Limit | None = None
    transport: Transport | None = None
    intensity: Intensity | None = None
    hotel_preference: HotelPreference | None = None


class CategoryPreference(ImportedRow):
    """Kinds of attractions."""

    positive: _Texts = None
    negative: _Texts = None


class Attractions(ImportedRow):
    """Attractions by name, and kinds of them."""

    must_visit: _Texts = None
    reject_visit: _Texts = None
    category_pref: CategoryPreference | None = None


class Food(ImportedRow):
    """Kinds of food, in four tiers."""

    must_eat: _Texts = None
    prefer_eat: _Texts = None
    avoid_eat: _Texts = None
    reject_eat: _Texts = None


class City(ImportedRow):
    """Preferences about a city."""

    attractions: Attractions | None = None
    food: Food | None = None


class Preference(ImportedRow):
    """Everything that a person wants."""

    global_constraints: GlobalConstraints | None = None
    city_specific_preferences: dict[_Text, City | None] | None = None


class User(ImportedRow):
    """A person: a role in the group, preferences, and if the person gives way on request."""

    role: str
    preference: Preference
    compromisable: bool | None = None


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
    difficulty_score: float | None = None
    difficulty_type: str | None = None

    def to_content(self) -> Content:
        """Return the trip with a stakeholder for each person; the query has nobody's own words."""
        stakeholders = []
        notes = []
        for name, user in self.user_preferences.items():
            constraints, remarks = _read_constraints(user.preference)
            notes += [Note(what, f"{self.task_id}: {name} {where}") for what, where in remarks]
            if constraints:
                openings = (opening.content for opening in self.initial_messages if opening.role == name)
                profile = "\n".join(filter(None, (user.role, *openings)))
                stakeholders.append({"id": name, "profile": profile, "constraints": constraints})
            else:
                notes.append(Note(WISHLESS, f"{self.task_id}: {name}"))
        for opening in self.initial_messages:
            if opening.role not in self.user_preferences:
                notes.append(Note(UNKNOWN, f"{self.task_id}: {opening.role}"))
        if not stakeholders:
            return None, [*notes, Note(NOBODY, self.task_id)]
        date = self.time if self.time and self.time not in (self.context or "") else None
        people = {
            name: {**({} if user.compromisable is None else {"compromisable": user.compromisable}), **user.other}
            for name, user in self.user_preferences.items()
        }
        about = nonempty_fields(
            trip=self.metadata,
            time=self.time,
            people={name: facts for name, facts in people.items() if facts},
            difficulty_score=self.difficulty_score,
            difficulty_type=self.difficulty_type,
            other=self.other,
        )
        query = "\n".join(filter(None, (self.query, self.context, date)))
        return {"id": self.task_id, "query": query, "stakeholders": stakeholders, "metadata": about}, notes


def _read_constraints(preference: Preference) -> tuple[list[dict[str, Any]], list[Note]]:
    """Return the fields of a person's constraints, and notes on what is not read, both by their paths."""
    parts: dict[tuple[str, str], ImportedRow | None] = {("global_constraints", ""): preference.global_constraints}
    for city, wishes in (preference.city_specific_preferences or {}).items():
        parts[f"city_specific_preferences.{city}", city] = wishes
    notes = [Note(UNREAD, name) for name in preference.other]
    constraints: dict[str, dict[str, Any]] = {}
    for (path, city), row in parts.items():
        notes += [Note(UNREAD, f"{path}.{field}") for field in _unread(row)]
        for field, value in _entries(row):
            kind, words = _WORDS[field]
            name = f"{path}.{field}: {value}"
            if name in constraints:
                notes.append(Note(REPEATED, name))
            constraints[name] = {"id": name, "kind": kind, "text": words.format(value, city=city)}
    return list(constraints.values()), notes


def _entries(row: ImportedRow | None, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every entry of a list and every limit above 0, as the benchmark counts them, each after its field."""
    for name in () if row is None else type(row).model_fields:
        value = getattr(row, name)
        if isinstance(value, ImportedRow):
            yield from _entries(value, f"{path}{name}.")
        elif isinstance(value, tuple):
            yield from ((f"{path}{name}", entry) for entry in value)
        elif value:
            yield f"{path}{name}", str(int(value) if value.is_integer() else value)


def _unread(row: ImportedRow | None, path: str = "") -> Iterator[str]:
    """Yield the fields that are not read and not empty."""
    if row is not None:
        yield from (f"{path}{name}" for name in nonempty_fields(**row.other))
        for name in type(row).model_fields:
            if isinstance(value := getattr(row, name), ImportedRow):
                yield from _unread(value, f"{path}{name}.")
