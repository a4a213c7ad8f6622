"""GroupTravelBench (small-xiangcheng/GroupTravelbench, arXiv 2605.25200): trips of groups, with what each person wants.

Each person becomes a stakeholder, and each entry of their preferences a constraint. The benchmark scores the strong
tier (must, reject, budget, intensity) with 2 points and the weak one (prefer, avoid, kinds of places and hotels) with
1: these are hard and soft constraints.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, create_model

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


_LIMITS = ("avg_budget", "max_poi_per_day", "max_active_hours")
"""Fields with an upper limit instead of a list; 0 is no limit."""


def _row_of(name: str, paths: Iterable[str]) -> Any:
    """Return the model of a part of the preferences, whose fields are given by their paths."""
    parts: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        field, _, rest = path.partition(".")
        parts[field].append(rest)
    fields: dict[str, Any] = {}
    for field, rests in parts.items():
        kind: Any = _Limit | None if field in _LIMITS else _Texts
        fields[field] = (kind if rests == [""] else _row_of(field, rests) | None, None)
    return create_model(name, __base__=ImportedRow, **fields)


GlobalConstraints = _row_of("GlobalConstraints", (path for path, (_, words) in _WORDS.items() if "{city}" not in words))
City = _row_of("City", (path for path, (_, words) in _WORDS.items() if "{city}" in words))


class Preference(ImportedRow):
    """Everything that a person wants."""

    global_constraints: GlobalConstraints | None = None  # type: ignore[valid-type]
    city_specific_preferences: dict[_Text, City | None] | None = None  # type: ignore[valid-type]


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
