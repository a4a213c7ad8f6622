"""Constraints and tensions read from the profiles of stakeholders that a task describes in text only."""

from typing import Self

from pydantic import Field, model_validator

from jurygraph.schema.frozen_model import FrozenModel, Id, require_unique
from jurygraph.schema.task import Constraint, Stakeholder, Task, Tension, sort_by_id

READ_FROM_FILE = "file"
"""The value of `Profiles.by` for a profile that was read from a PROFILES file instead of by a model."""


class ReadConstraint(Constraint):
    """A constraint, and the quotation from the profile that supports it."""

    quote: str = ""


class ReadTension(Tension):
    """A tension, and the reason for it."""

    reason: str = ""


class ReadStakeholder(Stakeholder):
    """A stakeholder with the constraints that were read from its profile, and the profile itself."""

    profile: str = Field(default="", exclude_if=lambda profile: not profile)
    constraints: tuple[ReadConstraint, ...] = Field(min_length=1)


class Profiles(FrozenModel):
    """The constraints and tensions read from a task's profiles, frozen into its plan and sorted by id.

    `by` is the reader of each stakeholder's profile: a model and its prompt, or `file`. `tensions_by` is the reader of
    the tensions, None where they were not read. `dropped` are statements of a model that do not count; they are not
    part of the stored value or its digest.
    """

    stakeholders: tuple[ReadStakeholder, ...]
    by: dict[Id, str]
    tensions: tuple[ReadTension, ...] = ()
    tensions_by: str | None = None
    dropped: tuple[str, ...] = Field(default=(), exclude=True, repr=False)


class ProfilesLine(FrozenModel):
    """One line of a PROFILES file: the constraints and tensions of a task's profiles.

    A `profile` in it is the text that was read. Without `tensions`, the tensions are left open: a model determines
    them if it has to read another profile of the task.
    """

    task: Id
    stakeholders: tuple[ReadStakeholder, ...] = Field(min_length=1)
    tensions: tuple[ReadTension, ...] | None = None

    @model_validator(mode="after")
    def _require_unique_stakeholders(self) -> Self:
        ids = [person.id for person in self.stakeholders]
        require_unique("stakeholder", "stakeholders[{}].id", ids, "one entry")
        return self

    def to_profiles(self) -> Profiles:
        """Return the profiles as frozen into a plan: sorted by id, without the profile texts."""
        people = tuple(
            item.model_copy(update={"profile": "", "constraints": sort_by_id(item.constraints)})
            for item in sort_by_id(self.stakeholders)
        )
        tensions = (item.sorted_by_id for item in self.tensions or ())
        return Profiles(
            stakeholders=people,
            by={item.id: READ_FROM_FILE for item in people},
            tensions=tuple(sorted(tensions, key=lambda item: (item.between, item.strength, item.reason))),
            tensions_by=None if self.tensions is None else READ_FROM_FILE,
        )


def is_text_only(person: Stakeholder) -> bool:
    """Return whether a stakeholder has a profile in text and no constraints."""
    return bool(person.profile) and not person.constraints


def with_profiles(task: Task, profiles: Profiles | None) -> Task:
    """Return the task with the constraints and tensions that were read from its profiles."""
    if profiles is None:
        return task
    read = {  # without their quotations, so that they are judged like constraints of the task
        person.id: tuple(Constraint.model_validate(c.model_dump(exclude={"quote"})) for c in person.constraints)
        for person in profiles.stakeholders
    }
    people = (s.model_copy(update={"constraints": read.get(s.id, s.constraints)}) for s in task.stakeholders)
    return task.model_copy(update={"stakeholders": tuple(people), "tensions": task.tensions + profiles.tensions})
