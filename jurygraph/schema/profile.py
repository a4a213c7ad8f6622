"""What profiles were read as: constraints and tensions for stakeholders of whom a task tells in text alone."""

from typing import Self

from pydantic import Field, model_validator

from jurygraph.schema.noun import Id, Noun
from jurygraph.schema.task import Constraint, Stakeholder, Task, Tension

FILE = "file"
"""Stands for the reader of a profile where what it was read as came from a PROFILES file."""


class ReadConstraint(Constraint):
    """A constraint, and the words of the profile on which it rests."""

    quote: str = ""


class ReadTension(Tension):
    """A tension, and why there is one."""

    reason: str = ""


class ReadStakeholder(Stakeholder):
    """A stakeholder with the constraints that its profile was read as; the profile itself is told beside them."""

    profile: str = Field(default="", exclude_if=lambda profile: not profile)
    constraints: tuple[ReadConstraint, ...] = Field(min_length=1)


class Profiles(Noun):
    """What profiles of a task were read as, frozen into its plan. Stakeholders and tensions are in the order of ids.

    `by` says of each stakeholder who read it: a model and its prompt, or `file`; `tensions_by` says so of the tensions
    and is None where nobody was asked. `dropped`, what a model said and does not count, is told beside what is
    frozen and is no part of it.
    """

    stakeholders: tuple[ReadStakeholder, ...]
    by: dict[Id, str]
    tensions: tuple[ReadTension, ...] = ()
    tensions_by: str | None = None
    dropped: tuple[str, ...] = Field(default=(), exclude=True, repr=False)


class ProfilesLine(Noun):
    """One line of a PROFILES file: how profiles of a task are read.

    Where a `profile` is stated, it is the one that was read. Without `tensions` nothing is said of them: the model is
    asked, should it read another profile of the task.
    """

    task: Id
    stakeholders: tuple[ReadStakeholder, ...] = Field(min_length=1)
    tensions: tuple[ReadTension, ...] | None = None

    @model_validator(mode="after")
    def _stakeholders_are_told_apart(self) -> Self:
        ids = [one.id for one in self.stakeholders]
        for place, name in enumerate(ids):
            if name in ids[:place]:
                again = f"`stakeholders[{place}].id` is {name[:60]!r} again"
                raise ValueError(f"{again}; give each stakeholder one entry")
        return self

    def by_hand(self) -> Profiles:
        """What it says, as a plan freezes it: in the order of ids, without the profiles themselves."""
        people = tuple(sorted(map(_alone, self.stakeholders), key=lambda one: one.id))
        tensions = (one.ordered for one in self.tensions or ())
        return Profiles(
            stakeholders=people,
            by={one.id: FILE for one in people},
            tensions=tuple(sorted(tensions, key=lambda one: (one.between, one.strength, one.reason))),
            tensions_by=None if self.tensions is None else FILE,
        )


def _alone(read: ReadStakeholder) -> ReadStakeholder:
    constraints = tuple(sorted(read.constraints, key=lambda one: one.id))
    return read.model_copy(update={"profile": "", "constraints": constraints})


def in_text_alone(person: Stakeholder) -> bool:
    """Whether all that a task tells of a stakeholder's needs is a profile in text."""
    return bool(person.profile) and not person.constraints


def with_profiles(task: Task, profiles: Profiles | None) -> Task:
    """The task with the constraints and tensions that its profiles were read as."""
    if profiles is None:
        return task
    read = {one.id: tuple(map(_plain, one.constraints)) for one in profiles.stakeholders}
    people = (s.model_copy(update={"constraints": read.get(s.id, s.constraints)}) for s in task.stakeholders)
    return task.model_copy(update={"stakeholders": tuple(people), "tensions": task.tensions + profiles.tensions})


def _plain(constraint: ReadConstraint) -> Constraint:
    """Without the quotation: it is asked about as if the task had stated it."""
    return Constraint.model_validate(constraint.model_dump(exclude={"quote"}))
