"""Tasks with their stakeholders, reviewers and rubric, and the responses to them."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import cached_property
from operator import itemgetter
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, JsonValue, model_validator

from jurygraph.messages import format_path, quote
from jurygraph.schema.frozen_model import FrozenModel, Id, digest_of, require_unique, suggest_name
from jurygraph.schema.rubric import Criterion, Rubric

Audience = Literal["task", "everyone", "stakeholder", "criterion", "reviewer"]
NonNegative = Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)]


class Message(FrozenModel):
    """One message of a query given as a chat."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str


def query_text(query: str | tuple[Message, ...]) -> str:
    """Return the text of a query; the messages of a chat are joined by line breaks."""
    return query if isinstance(query, str) else "\n".join(message.content for message in query)


def chat_text(query: str | tuple[Message, ...]) -> str:
    """Return the text of a query as prompts show it: the messages of a chat are paragraphs that begin with the role."""
    return query if isinstance(query, str) else "\n\n".join(f"{each.role}: {each.content}" for each in query)


class Constraint(FrozenModel):
    """A need (`hard`) or a wish (`soft`) of a stakeholder; `restrictiveness` is DecompR's α(c)."""

    id: Id
    text: str = ""
    kind: Literal["hard", "soft"]
    restrictiveness: NonNegative = 1.0
    check: dict[str, JsonValue] | None = None


class Stakeholder(FrozenModel):
    """A person whose utility counts: a profile in text, and constraints."""

    id: Id
    profile: str = ""
    constraints: tuple[Constraint, ...] = ()

    @model_validator(mode="after")
    def _require_unique_constraints(self) -> Self:
        require_unique("constraint", "constraints[{}].id", [c.id for c in self.constraints])
        return self


class Tension(FrozenModel):
    """Two stakeholders with conflicting wishes; the strengths add up to DecompR's s_i."""

    between: tuple[Id, Id]
    strength: NonNegative = 1.0

    @model_validator(mode="after")
    def _require_two_stakeholders(self) -> Self:
        if self.between[0] == self.between[1]:
            member = quote(self.between[0])
            raise ValueError(f"`between` names {member} twice; name two stakeholders, or leave the tension out")
        return self

    @property
    def sorted_by_id(self) -> Self:
        """Return the tension with its two stakeholders sorted by id."""
        first, second = sorted(self.between)
        return self.model_copy(update={"between": (first, second)})


class Reviewer(FrozenModel):
    """A person who rates responses, identified by a pseudonym."""

    id: Id


Named = TypeVar("Named", Stakeholder, Criterion, Reviewer, Constraint)


def sort_by_id(things: Iterable[Named]) -> tuple[Named, ...]:
    """Return things sorted by id, because the order in a file must not matter."""
    return tuple(sorted(things, key=lambda thing: thing.id))


def _check_people(
    stakeholders: tuple[Stakeholder, ...], tensions: tuple[Tension, ...], reviewers: tuple[Id, ...]
) -> None:
    """Raise ValueError where an id is repeated, and for a tension that names an unknown stakeholder."""
    require_unique("stakeholder", "stakeholders[{}].id", [s.id for s in stakeholders])
    require_unique("reviewer", "reviewers[{}]", reviewers)
    known = {s.id for s in stakeholders}
    for place, tension in enumerate(tensions):
        for end, member in enumerate(tension.between):
            if member not in known:
                problem = f"`tensions[{place}].between[{end}]` names {quote(member)}"
                raise ValueError(f"{problem}, which is not a stakeholder; {suggest_name(member, known)}")


class Task(FrozenModel):
    """One task. It has no field for responses, so nothing computed from it can depend on one.

    `group` names a set of items that the task belongs to, for reviewers' histories; it is not the group of responses.
    """

    id: Id
    query: str | tuple[Message, ...]
    stakeholders: tuple[Stakeholder, ...] = ()
    tensions: tuple[Tension, ...] = ()
    rubric: Rubric | None = None
    reviewers: tuple[Id, ...] = ()
    reference: str | None = None
    facts: dict[str, JsonValue] | None = None
    group: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        _check_people(self.stakeholders, self.tensions, self.reviewers)
        return self

    @cached_property
    def content_digest(self) -> str:
        """Digest of the task that does not depend on the order of its unordered parts in a file."""
        content = self.model_dump(mode="json")
        for person in content["stakeholders"]:
            person["constraints"].sort(key=_ID)
        for tension in content["tensions"]:
            tension["between"].sort()
        if content["rubric"] is not None:
            content["rubric"]["criteria"].sort(key=_ID)
            content["rubric"]["edges"].sort(key=itemgetter("parent", "child"))
        content["stakeholders"].sort(key=_ID)
        content["tensions"].sort(key=itemgetter("between", "strength"))
        content["reviewers"].sort()
        return digest_of(content)


_ID = itemgetter("id")


class TaskDefaults(FrozenModel):
    """Parts that a config gives to every task that has none of its own, with the names that they have in a task.

    `tensions` come with the `stakeholders`: a task with stakeholders of its own gets neither.
    """

    stakeholders: tuple[Stakeholder, ...] = ()
    tensions: tuple[Tension, ...] = ()
    rubric: Rubric | None = None
    reviewers: tuple[Id, ...] = ()
    facts: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        _check_people(self.stakeholders, self.tensions, self.reviewers)
        return self

    def complete(self, task: Task) -> Task:
        """Return the task with the parts that it lacks; unchanged if it lacks none of these."""
        names = [name for name in ("rubric", "reviewers", "facts") if getattr(task, name) in (None, ())]
        names += [] if task.stakeholders else ["stakeholders", "tensions"]
        parts = {name: part for name in names if (part := getattr(self, name)) not in (None, ())}
        return task.model_copy(update=parts) if parts else task

    def key_of(self, part: Sequence[str]) -> str:
        """Return the key of a part whose members are named by their ids: `reviewers[0]` for ("reviewers", "ann")."""
        path: list[str | int] = []
        value: Any = self
        for step in part:
            ids = [getattr(one, "id", one) for one in value] if isinstance(value, tuple) else None
            path.append(step if ids is None else ids.index(step))
            value = getattr(value, step) if ids is None else value[path[-1]]
        return format_path(tuple(path))


NO_TASK_DEFAULTS = TaskDefaults()

_MEMBERS: dict[Audience, type] = {
    "stakeholder": Stakeholder,
    "criterion": Criterion,
    "reviewer": Reviewer,
}


class TaskView(FrozenModel):
    """The part of a task that is shown for one member of an audience: the task itself, and this member only.

    `about` is the stakeholder, criterion or reviewer of the view; None for the view of the whole task. `people` are all
    stakeholders, set only for the audience `everyone`. `group` is the task's group of items, set only for a reviewer.
    """

    id: Id
    audience: Audience = "task"
    about: Reviewer | Stakeholder | Criterion | None = None
    people: tuple[Stakeholder, ...] = Field(default=(), exclude_if=lambda people: not people)
    query: str | tuple[Message, ...]
    reference: str | None = None
    facts: dict[str, JsonValue] | None = None
    group: str | None = Field(default=None, exclude_if=lambda group: group is None)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_member(self) -> Self:
        if not isinstance(self.about, _MEMBERS.get(self.audience, type(None))):
            raise ValueError(f"a view for audience {self.audience!r} is not about a {type(self.about).__name__}")
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, which the plan's digest needs, too."""
        return digest_of(self.constant)

    @property
    def member(self) -> str | None:
        """Return the id of the stakeholder, criterion or reviewer; None for the view of the whole task."""
        return None if self.about is None else self.about.id


class Response(FrozenModel):
    """One response to a task: an agent's `text`, and its structured `data`.

    `labels` and `metadata` are facts about the response. They and the agent's name are not shown to evaluators: put
    everything that evaluators judge into `text` or `data`.
    """

    id: Id
    text: str
    agent: str | None = None
    data: JsonValue = None
    labels: dict[str, JsonValue] = Field(default_factory=dict)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    def strip_metadata(self) -> "Response":
        """Return the response as evaluators see it: its id, its text and a copy of its data, without the rest."""
        return Response.model_construct(
            id=self.id, text=self.text, agent=None, data=deepcopy(self.data), labels={}, metadata={}
        )

    @cached_property
    def content_digest(self) -> str:
        """Digest of text and data only: equal for equal answers of different agents."""
        return digest_of([self.text, self.data])


class TaskLine(Task):
    """One line of a TASKS file: a task and, unless they are in a file of their own, its responses."""

    responses: tuple[Response, ...] = ()

    def split(self) -> tuple[Task, tuple[Response, ...]]:
        """Return the task, and the responses of its line."""
        values = {name: getattr(self, name) for name in Task.model_fields}
        return Task.model_construct(**values), self.responses


class ResponseLine(Response):
    """One line of a RESPONSES file: a response, and the id of its task."""

    task: Id

    def split(self) -> tuple[str, Response]:
        """Return the task's id, and the response."""
        values = {name: getattr(self, name) for name in Response.model_fields}
        return self.task, Response.model_construct(**values)
