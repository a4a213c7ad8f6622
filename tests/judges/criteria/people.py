"""A trip of three people, of whom each needs and wishes something of its own, and responses to it."""

from collections.abc import Mapping, Sequence
from typing import Any

from jurygraph import Task

WISHES: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "ann": (
        ("tea", "soft", "A pot of assam each afternoon."),
        ("step-free", "hard", "No stairs anywhere."),
    ),
    "bob": (
        ("fish", "soft", "Herring for supper."),
        ("cheap", "hard", "Under forty pounds a day."),
    ),
    "cyd": (
        ("quiet", "soft", "An hour of reading after lunch."),
        ("back", "hard", "Home by Sunday evening."),
    ),
}
PROFILES = {"ann": "a retired gardener", "bob": "a student of law", "cyd": "a violinist on leave"}
TRIP = "Plan a weekend in Leeds for all of us."
RESPONSE_TEXT = (
    "Saturday: herring at the Fish Bar.\nSunday: tea at the Old Mill, step-free.\nHome at six."
)


def people(*names: str, checks: Mapping[str, Any] | None = None, **fields: Any) -> Task:
    """The task with these people, and a `check` for each constraint that has one."""
    stakeholders = [
        {
            "id": name,
            "profile": PROFILES[name],
            "constraints": [
                {"id": each, "kind": kind, "text": text, "check": (checks or {}).get(each)}
                for each, kind, text in WISHES[name]
            ],
        }
        for name in names or WISHES
    ]
    return Task.model_validate(
        {"id": "letter", "query": TRIP, "stakeholders": stakeholders} | fields
    )


def texts_about(name: str) -> list[str]:
    """Return all texts about a person, which occur with no other person."""
    return [PROFILES[name], *(text for _, _, text in WISHES[name])]
