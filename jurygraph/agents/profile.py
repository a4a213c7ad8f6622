"""DecompR's offline parser: turn profiles in text into constraints and tensions, before any response is seen (Eq. 9).

The model sees the task's query and one profile at a time, never another's. Each constraint it lists must quote words of
the profile; one that does not is shown to the model once, to be repaired, and then dropped.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TypeVar

from pydantic import Field

from jurygraph.agents.checks.spec import find_tensions
from jurygraph.agents.roles import QuoteText, ask_model
from jurygraph.concurrency import gather_all
from jurygraph.errors import InputError, ModelError, PlanError
from jurygraph.messages import quote_prose
from jurygraph.models.request import Fault
from jurygraph.prompts import Prompt, load_prompt
from jurygraph.safety.evidence import SearchableText
from jurygraph.schema import FrozenModel, Stakeholder, Task
from jurygraph.schema.frozen_model import ReadOnlyFields
from jurygraph.schema.task import (
    Profiles,
    ProfilesLine,
    ReadConstraint,
    ReadStakeholder,
    ReadTension,
    apply_profiles,
    chat_to_prompt_text,
    has_text_profile_only,
    sort_by_id,
)
from jurygraph.sources.tasks import profile_line_problems

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient

DegreeName = Literal["low", "usual", "high"]
VALUE_BY_DEGREE: Mapping[DegreeName, float] = {"low": 0.5, "usual": 1.0, "high": 1.5}
"""The numbers behind the words for α(c) and for the strength of a tension: our reading. The paper fixes α and gives no
values, and numbers of the model's own would be on another scale in each reply."""

# far above any real profile: it stops a model that repeats itself, and needs no choice of ours
_MAX_REPLY_ENTRIES = 1000
_STAKEHOLDER_PSEUDONYM_PATTERN = re.compile(r"\bstakeholder_\d+\b")
R = TypeVar("R", bound=FrozenModel)
T = TypeVar("T")


class ConstraintSpec(FrozenModel):
    """A constraint as a model states it."""

    quote: QuoteText
    text: Annotated[str, Field(max_length=500)]
    kind: Literal["hard", "soft"]
    restrictiveness: DegreeName


class ConstraintsReply(FrozenModel):
    constraints: tuple[ConstraintSpec, ...] = Field(max_length=_MAX_REPLY_ENTRIES)


class TensionReply(FrozenModel):
    """A tension as a model states it, between two of the names that it was given."""

    reason: Annotated[str, Field(max_length=1000)]
    one: str
    other: str
    strength: DegreeName


class TensionsReply(FrozenModel):
    tensions: tuple[TensionReply, ...] = Field(max_length=_MAX_REPLY_ENTRIES)


async def read_profiles(
    task: Task, line: ProfilesLine | None, client: "JudgeClient | None"
) -> Profiles | None:
    """Return the parsed profiles of a task: those of `line`, and the others as read by the model, if there is one.

    Returns None if nothing is read. Raises `InputError` if `line` does not fit the task, `PlanError` if no
    constraint is found in a profile, and `ModelError` or `BudgetExceeded` if the model gave no usable reply.
    """
    profiles = Profiles(stakeholders=(), by={})
    if line is not None:
        for profile_error in profile_line_problems(task, line):
            raise InputError(
                f"profiles of task {task.id!r}, field {profile_error.field}: {profile_error}"
            )
        profiles = line.to_profiles()
    stakeholder_ids = {stakeholder.id for stakeholder in profiles.stakeholders}
    unread_people = [
        person
        for person in sort_by_id(task.stakeholders)
        if has_text_profile_only(person) and person.id not in stakeholder_ids
    ]
    if not unread_people or client is None:
        return None if line is None else profiles
    # All are read before the first failure is raised, each profile by itself.
    results = await gather_all(_ask_constraints(task, person, client) for person in unread_people)
    profiled_stakeholders = [*profiles.stakeholders]
    model_by_stakeholder = {**profiles.by}
    dropped_notes = []
    for person, (model, kept_constraints, problems) in zip(unread_people, results, strict=True):
        if not kept_constraints:
            why = f" ({'; '.join(problems)})" if problems else ""
            raise PlanError(
                f"task {task.id!r}: no constraint was found in the profile of stakeholder {person.id!r}{why}; "
                "list its constraints in the task or in a file for --profiles-from, or leave the profile out"
            )
        profiled_stakeholders.append(
            ReadStakeholder(id=person.id, constraints=tuple(kept_constraints))
        )
        model_by_stakeholder[person.id] = model
        dropped_notes += [f"{person.id}: {why}" for why in problems]
    update = {
        "stakeholders": tuple(sort_by_id(profiled_stakeholders)),
        "by": model_by_stakeholder,
        "dropped": tuple(dropped_notes),
    }
    profiles = profiles.model_copy(update=update)
    task_with_profiles = apply_profiles(task, profiles)
    has_tensions = profiles.tensions_by is not None or task.tensions
    if not has_tensions and len(task_with_profiles.stakeholders) > 1:
        profiles = await _add_tensions(profiles, task_with_profiles, client)
    return profiles


async def _ask_constraints(
    task: Task, person: Stakeholder, client: "JudgeClient"
) -> tuple[str, list[ReadConstraint], list[str]]:
    text = SearchableText(person.profile)
    variables = {"query": chat_to_prompt_text(task.query), "profile": person.profile}
    subject = f"task {task.id!r}: the profile of stakeholder {person.id!r}"
    hint = "list each constraint once, and quote for each a clause of the profile letter by letter"
    empty_reply_problem = "no constraint is listed; read the profile again, and list what it says"
    return await _ask_accepted_entries(
        client,
        load_prompt("profile"),
        ConstraintsReply,
        variables,
        lambda reply: parse_constraints(reply, text),
        subject,
        hint,
        empty_reply_problem,
    )


async def _ask_accepted_entries(
    client: "JudgeClient",
    prompt: Prompt,
    model: type[R],
    variables: ReadOnlyFields,
    parse_reply: Callable[[R], tuple[list[T], list[str]]],
    subject: str,
    hint: str,
    empty_reply_problem: str | None = None,
) -> tuple[str, list[T], list[str]]:
    """Return the reader's name, and what `parse` accepts of its reply, with the problems of the rest.

    A reply with problems, or one with nothing if there is an `empty_reply_problem`, is repaired once. Raises
    `ModelError` that names the subject, and the errors that end a run.
    """

    def find_reply_flaw(reply: R) -> str | None:
        accepted_entries, problems = parse_reply(reply)
        if problems:
            return f"{'; '.join(problems)}; {hint}"
        return None if accepted_entries else empty_reply_problem

    def raise_model_error(fault: Fault) -> NoReturn:
        raise ModelError(f"{subject} could not be read: {fault}") from fault

    request = client.request(prompt, model, variables)
    accepted_entries, problems = await ask_model(
        client,
        request,
        model,
        read=lambda reply: parse_reply(reply.value),
        fail=raise_model_error,
        find_reply_flaw=find_reply_flaw,
    )
    reader = f"{request.model}, prompt {request.prompt} {request.prompt_version}"
    return reader, accepted_entries, problems


def parse_constraints(
    reply: ConstraintsReply, text: SearchableText
) -> tuple[list[ReadConstraint], list[str]]:
    """Accept the constraints that quote the profile, named by their order, and list problems of the others."""
    accepted_constraints: list[ReadConstraint] = []
    problems = []
    for reply_constraint in reply.constraints:
        passage = text.find_support(reply_constraint.quote)
        words = " ".join(reply_constraint.text.split())
        if not words:
            problems.append(
                f"a constraint that rests on {quote_prose(reply_constraint.quote)} says nothing"
            )
        elif passage is None:
            why = "does not stand in the profile"
            if text.find(reply_constraint.quote) is not None:
                why = "is too short, or cuts a word"
            problems.append(
                f"{quote_prose(words)} rests on {quote_prose(reply_constraint.quote)}, which {why}"
            )
        elif words.casefold() in {
            constraint.text.casefold() for constraint in accepted_constraints
        }:
            problems.append(f"{quote_prose(words)} is listed twice")
        else:
            constraint = ReadConstraint(
                id=f"c{len(accepted_constraints) + 1}",
                text=words,
                kind=reply_constraint.kind,
                restrictiveness=VALUE_BY_DEGREE[reply_constraint.restrictiveness],
                quote=passage.text,
            )
            accepted_constraints.append(constraint)
    return accepted_constraints, problems


async def _add_tensions(profiles: Profiles, task: Task, client: "JudgeClient") -> Profiles:
    names = {}
    people = []
    for number, person in enumerate(sort_by_id(task.stakeholders), start=1):
        name = f"stakeholder_{number}"
        names[name] = person
        lines = [
            f"- {constraint.kind}: {constraint.text or constraint.id}"
            for constraint in sort_by_id(person.constraints)
        ]
        people.append({"name": name, "text": "\n".join(lines) or "(nothing)"})
    variables = {"query": chat_to_prompt_text(task.query), "people": people}
    model_and_prompt_text, kept_tensions, problems = await _ask_accepted_entries(
        client,
        load_prompt("tensions"),
        TensionsReply,
        variables,
        lambda reply: _parse_tensions(reply, names),
        f"task {task.id!r}: the tensions between its stakeholders",
        f"the names are {', '.join(names)}",
    )
    tensions = tuple(sorted(kept_tensions, key=lambda tension: tension.between))
    dropped_notes = (*profiles.dropped, *(f"tensions: {why}" for why in problems))
    update = {"tensions": tensions, "tensions_by": model_and_prompt_text, "dropped": dropped_notes}
    return profiles.model_copy(update=update)


def _parse_tensions(
    reply: TensionsReply, names: Mapping[str, Stakeholder]
) -> tuple[list[ReadTension], list[str]]:
    """Return the accepted tensions and the problems of the others. Pairs whose checks show a tension are left out."""
    tension_by_pair = {}
    problems = []
    for reply_tension in reply.tensions:
        unknown_names = [
            name for name in (reply_tension.one, reply_tension.other) if name not in names
        ]
        if unknown_names:
            problems.append(f"{quote_prose(unknown_names[0])} is nobody's name")
            continue
        first, second = sort_by_id((names[reply_tension.one], names[reply_tension.other]))
        pair = (first.id, second.id)
        if first is second:
            problems.append(f"{quote_prose(reply_tension.one)} is paired with itself")
        elif pair in tension_by_pair:
            problems.append(
                f"the pair of {quote_prose(reply_tension.one)} and {quote_prose(reply_tension.other)} is listed twice"
            )
        elif not find_tensions(first, second):
            # with the stakeholders' ids in place of the names that the model was given
            reason = _STAKEHOLDER_PSEUDONYM_PATTERN.sub(
                lambda name: names[name[0]].id if name[0] in names else name[0],
                reply_tension.reason,
            )
            strength = VALUE_BY_DEGREE[reply_tension.strength]
            tension_by_pair[pair] = ReadTension(between=pair, strength=strength, reason=reason)
    return list(tension_by_pair.values()), problems
