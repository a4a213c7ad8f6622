"""A task with its rubric, and its stakeholders with what their profiles ask for; and the responses to it."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationInfo,
    model_validator,
)
from pydantic_core import core_schema, from_json

from jurygraph.messages import (
    RUBRIC_FORMS,
    Problem,
    escape_hidden_characters,
    format_field_path,
    quote,
    shorten,
    validate,
)
from jurygraph.schema.conversation import (
    OMITTED_IF_EMPTY,
    OMITTED_IF_NONE,
    RENDERING_VERSION,
    ChatMessage,
    ChatMessages,
    RenderedText,
    ToolCall,
    Turn,
    VisiblePart,
    assistant_turn_indices,
    is_empty_value,
    is_none,
    is_single_reply,
    render,
    render_visible_part,
    render_with_turn_headers,
    require_calls_before_results,
)
from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    Count,
    FrozenModel,
    Id,
    JsonFields,
    JsonObject,
    Number,
    PositiveNumber,
    RisingRange,
    StrictBool,
    UnitInterval,
    decode_json_strictly,
    digest_of,
    require_unique_ids,
    suggest_name,
)
from jurygraph.schema.message_forms import read_messages

CriterionRole = Literal["core", "additional", "penalty", "applicability"]
EdgeKind = Literal["weak", "strong", "activation"]


class Part(FrozenModel):
    """One part of a criterion with partial credit, with its weight among the parts."""

    text: str
    weight: PositiveNumber = 1.0


class Criterion(FrozenModel):
    """One criterion of a rubric. A negative weight makes it a penalty: its score is that of the violation.

    It is binary, or scored on a `scale`, of which `anchors` describe values or ranges ("7-8"), or by its `parts`. If it
    is a `must`, a fault there costs everything: the reward is at most 0 below a score of 0.5. A penalty cannot be one.
    """

    id: Id
    text: str
    weight: Number
    role: CriterionRole | None = None
    scale: RisingRange | None = None
    anchors: dict[Id, str] = EMPTY_OBJECT
    parts: tuple[Part, ...] = Field(default=(), max_length=20)
    must: StrictBool = Field(default=False, exclude_if=is_empty_value)

    @model_validator(mode="after")
    def _check(self) -> Self:
        texts = [self.text, *(part.text for part in self.parts)]
        if not all(text.strip() for text in texts):
            raise ValueError("`text` is empty; write what must hold of a response")
        if self.weight == 0:
            raise ValueError(
                "`weight` is 0, so it would not count; give it a weight, or leave the criterion out"
            )
        if self.scale is not None and self.parts:
            raise ValueError("it has both a `scale` and `parts`; keep one of them")
        if self.anchors and self.scale is None:
            raise ValueError(
                "`anchors` describe values of a `scale`, and there is none; add one, or leave them out"
            )
        return self

    @property
    def content(self) -> list[JsonValue]:
        """Return its text, the texts of its parts, and whether its weight is positive; the size is left out."""
        return [self.text, [part.text for part in self.parts], self.weight > 0]


def require_different_criteria(criteria: Sequence[Criterion]) -> None:
    """Raise ValueError for two criteria with one id, or with the same text: it would be judged, and count, twice."""
    require_unique_ids("criterion", "criteria[{}].id", [criterion.id for criterion in criteria])
    ids: dict[str, str] = {}
    for index, criterion in enumerate(criteria):
        other = ids.setdefault(criterion.text.strip(), criterion.id)
        if other != criterion.id:
            raise ValueError(
                f"`criteria[{index}].text` is the same for {quote(other)} and {quote(criterion.id)}; leave one of them "
                "out, or write how they differ"
            )


class Edge(FrozenModel):
    """`child` counts only as far as `parent` holds (GEAR); `retention` λ overrides the default of its kind.

    The other fields explain the edge and have no effect on rewards: a `reason`, and on an edge from an annotator its
    `confidence`, the `votes` (samples for it, all samples), the `model`, and the digest of the `prompt`.
    """

    parent: Id
    child: Id
    kind: EdgeKind
    retention: UnitInterval | None = None
    reason: str = ""
    confidence: UnitInterval | None = None
    votes: tuple[Count, Count] | None = None
    model: str = ""
    prompt: str = ""


class RejectedEdge(FrozenModel):
    """An edge that an annotator proposed and that is not in the graph; `why` is the reason.

    `stage` is what rejected it: the check of an answer, the vote among several, or the projection that removes cycles.
    """

    stage: Literal["check", "vote", "projection"]
    parent: str
    child: str
    kind: str
    reason: str = ""
    confidence: UnitInterval | None = None
    model: str = ""
    prompt: str = ""
    why: str


class UnansweredPair(FrozenModel):
    """A pair of criteria for which the annotator gave no answer, and `why`. It has no edge until a later answer."""

    parent: Id
    child: Id
    why: str


class Annotation(FrozenModel):
    """The record of how an annotator made a rubric's graph: its input, and the answers that give no edge.

    `seen` has the digest of each criterion as it was shown: a pair of unchanged criteria is not asked about again.
    `roles` are the annotator's; a role in the criterion itself overrides them. `unassigned` has the reason for each
    criterion without a role. `candidates` is the number of pairs that can have an edge given their roles.
    """

    domain: str
    candidates: Count
    roles: dict[Id, CriterionRole] = EMPTY_OBJECT
    unassigned: dict[Id, str] = EMPTY_OBJECT
    seen: dict[Id, str]
    rejected: tuple[RejectedEdge, ...] = ()
    unanswered: tuple[UnansweredPair, ...] = ()


class Rubric(FrozenModel):
    """Criteria, and edges that give no credit beyond an unmet prerequisite.

    `annotation` records how an annotator made the edges, if one did; it has no effect on rewards.
    """

    criteria: tuple[Criterion, ...] = Field(min_length=1)
    edges: tuple[Edge, ...] = ()
    annotation: Annotation | None = None

    @model_validator(mode="after")
    def _check_edges(self) -> Self:
        require_different_criteria(self.criteria)
        criterion_ids = {criterion.id for criterion in self.criteria}
        edge_pairs = set()
        for index, edge in enumerate(self.edges):
            field = f"edges[{index}]"
            for end, name in (("parent", edge.parent), ("child", edge.child)):
                if name not in criterion_ids:
                    raise ValueError(
                        f"`{field}.{end}` names {quote(name)}, which is not a criterion; "
                        f"{suggest_name(name, criterion_ids)}"
                    )
            if edge.parent == edge.child:
                raise ValueError(
                    f"`{field}` joins {quote(edge.parent)} to itself; name two criteria, or leave it out"
                )
            if (edge.parent, edge.child) in edge_pairs:
                raise ValueError(
                    f"`{field}` joins {quote(edge.parent)} -> {quote(edge.child)} again; keep one of them"
                )
            edge_pairs.add((edge.parent, edge.child))
        return self


def read_rubric_fields(value: Any) -> Any:
    """Return the fields of a rubric: of a JSON object or list, or of a criterion of weight 1 in each line of a text.

    A list has texts, with the ids c1, c2, …, or criteria as objects. Any other value, such as broken JSON, is returned
    as it is.
    """
    content = value
    if isinstance(value, str):
        is_json = value.lstrip().startswith(("{", "["))
        content = _read_json(value) if is_json else split_criteria(value)
    if not isinstance(content, list | tuple):
        return content
    enumerated_items = enumerate(content, start=1)
    return {"criteria": [_read_criterion(f"c{number}", item) for number, item in enumerated_items]}


def split_criteria(text: str) -> list[str]:
    """Return the lines of a text that are not blank, each a criterion."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _read_json(text: str) -> Any:
    """Return the value of a JSON text; the text itself where it is broken, ambiguous or nested too deeply."""
    try:
        from_json(text)  # which refuses half of a surrogate pair, and what is nested too deeply
        content = decode_json_strictly(text)
    except ValueError:
        return text
    return text if isinstance(content, Problem) else content


def _read_criterion(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return {"id": name, "text": value, "weight": 1.0}
    if isinstance(value, Mapping):  # in Parquet, each has the fields of all
        return {field: content for field, content in value.items() if content is not None}
    return value


def _read_rubric(value: str | Sequence[Any]) -> Rubric:
    rubric = validate(Rubric, read_rubric_fields(value))
    if isinstance(rubric, Problem):
        field = f"`{rubric.field}` " if rubric.path else ""
        forms = "" if rubric.path else RUBRIC_FORMS
        raise ValueError(f"{field}{rubric}{forms}")
    return rubric


class _RubricForms:
    """The forms of a rubric, as pydantic validates them: an object, and what `read_rubric_fields` reads."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        text_or_list = core_schema.union_schema(
            [core_schema.str_schema(), core_schema.list_schema()]
        )
        # Other validators would make Python values of JSON, in which a list is no tuple where types are strict.
        return core_schema.tagged_union_schema(
            {
                "object": handler(source),
                "lines": core_schema.no_info_plain_validator_function(
                    _read_rubric, json_schema_input_schema=text_or_list
                ),
            },
            lambda value: "lines" if isinstance(value, str | list | tuple) else "object",
        )


Audience = Literal["task", "everyone", "stakeholder", "criterion", "reviewer"]
NonNegativeNumber = Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)]


class Message(FrozenModel):
    """One message to a model. In a chat with tools an assistant calls some, and a message of a tool answers a call."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = OMITTED_IF_EMPTY
    tool_call_id: str | None = OMITTED_IF_NONE


Messages = Annotated[ChatMessages, BeforeValidator(read_messages)]
TranscriptMessages = Annotated[Messages, AfterValidator(require_calls_before_results)]
"""The messages of a conversation that took place: each result of a tool belongs to a call before it."""
Query = Annotated[str | ChatMessages, BeforeValidator(read_messages)]


def query_to_text(query: str | ChatMessages) -> str:
    """Return the text of a query; the messages of a chat are joined by line breaks."""
    return query if isinstance(query, str) else "\n".join(message.text for message in query)


def is_empty_query(query: str | ChatMessages) -> bool:
    """Return whether a query asks nothing: a blank text, no message, or a user's last message that is blank."""
    if isinstance(query, str):
        return not query.strip()
    return not query or (query[-1].role == "user" and not str(query[-1].content or "").strip())


def chat_to_prompt_text(query: str | ChatMessages) -> str:
    """Return the text of a query as prompts show it: the messages of a chat are paragraphs that begin with the role.

    A chat in which tools are called is rendered as the messages of a response are.
    """
    if isinstance(query, str):
        return query
    if all(
        isinstance(message.content, str) and message.role != "tool" and not message.tool_calls
        for message in query
    ):
        return "\n\n".join(f"{message.role}: {message.content}" for message in query)
    return render_visible_part(query, "without_reasoning")


def last_request_text(query: str | ChatMessages) -> str:
    """Return what a line of text has room for: the last message of a chat's user, without the system's before it."""
    if isinstance(query, str):
        return query
    texts = [message.text for message in query if message.role == "user"]
    return next(filter(str.strip, reversed(texts)), chat_to_prompt_text(query))


class Constraint(FrozenModel):
    """A need (`hard`) or a wish (`soft`) of a stakeholder; `restrictiveness` is DecompR's α(c)."""

    id: Id
    text: str = ""
    kind: Literal["hard", "soft"]
    restrictiveness: NonNegativeNumber = 1.0
    check: JsonObject | None = None


class Stakeholder(FrozenModel):
    """A person whose utility counts: a profile in text, and constraints."""

    id: Id
    profile: str = ""
    constraints: tuple[Constraint, ...] = ()

    @model_validator(mode="after")
    def _require_unique_constraints(self) -> Self:
        require_unique_ids("constraint", "constraints[{}].id", [c.id for c in self.constraints])
        return self


class Tension(FrozenModel):
    """Two stakeholders with conflicting wishes; the strengths add up to DecompR's s_i."""

    between: tuple[Id, Id]
    strength: NonNegativeNumber = 1.0

    @model_validator(mode="after")
    def _require_two_stakeholders(self) -> Self:
        if self.between[0] == self.between[1]:
            member = quote(self.between[0])
            raise ValueError(
                f"`between` names {member} twice; name two stakeholders, or leave the tension out"
            )
        return self


class Reviewer(FrozenModel):
    """A person who rates responses, identified by a pseudonym."""

    id: Id


ItemWithId = TypeVar("ItemWithId", Stakeholder, Criterion, Reviewer, Constraint)


def sort_by_id(items: Iterable[ItemWithId]) -> tuple[ItemWithId, ...]:
    """Return things sorted by id, because the order in a file must not matter."""
    return tuple(sorted(items, key=attrgetter("id")))


class TaskMembers(FrozenModel):
    """The members of a task's audiences: its stakeholders, the criteria of its rubric, and its reviewers."""

    stakeholders: tuple[Stakeholder, ...] = ()
    tensions: tuple[Tension, ...] = ()
    rubric: Annotated[Rubric, _RubricForms()] | None = None
    reviewers: tuple[Id, ...] = ()

    @model_validator(mode="after")
    def _check_stakeholders(self) -> Self:
        """Raise ValueError where an id is repeated, and for a tension that names an unknown stakeholder."""
        ids = [stakeholder.id for stakeholder in self.stakeholders]
        require_unique_ids("stakeholder", "stakeholders[{}].id", ids)
        require_unique_ids("reviewer", "reviewers[{}]", self.reviewers)
        for index, tension in enumerate(self.tensions):
            for end, member in enumerate(tension.between):
                if member not in ids:
                    hint = suggest_name(member, ids)
                    raise ValueError(
                        f"`tensions[{index}].between[{end}]` names {quote(member)}, which is not a stakeholder; {hint}"
                    )
        return self


class ReferenceCall(FrozenModel):
    """A call of a tool that a reference asks for."""

    name: Id
    arguments: JsonObject = EMPTY_OBJECT


class ContextPassage(FrozenModel):
    """A passage that was before the one who answered, such as a retrieved document; untrusted text."""

    text: str
    source: str | None = None


def _to_passages(value: Any) -> Any:
    """Return a text, or a list of texts or of LangChain's documents, as passages."""
    passages = [value] if isinstance(value, str) else value
    return tuple(map(_to_passage, passages)) if isinstance(passages, list | tuple) else value


def _to_passage(item: Any) -> Any:
    match item:
        case str():
            return {"text": item}
        case {"page_content": text, "metadata": {"source": str(source)}}:
            return {"text": text, "source": source}
        case {"page_content": text}:
            return {"text": text}
        case _:
            return item


ToolDefinitions = tuple[JsonObject, ...]
ContextPassages = Annotated[tuple[ContextPassage, ...], BeforeValidator(_to_passages)]


class TaskBackground(FrozenModel):
    """The rest of a task that evaluators get to know; its `group` only where they predict reviewers."""

    reference: str | None = None
    facts: JsonObject | None = None
    group: str | None = None
    metadata: JsonObject = EMPTY_OBJECT
    reference_messages: Messages | None = OMITTED_IF_NONE
    reference_actions: tuple[ReferenceCall, ...] | None = OMITTED_IF_NONE
    tools: ToolDefinitions | None = OMITTED_IF_NONE
    context: ContextPassages | None = OMITTED_IF_NONE

    @property
    def passages_by_name(self) -> dict[str, str]:
        """The passages of the context by the names that prompts and evidence have for them."""
        texts_by_name = {}
        for number, passage in enumerate(self.context or (), start=1):
            source = escape_hidden_characters(passage.source or "")
            about = "" if passage.source is None else f" ({shorten(source)})"
            texts_by_name[f"passage {number}{about}"] = passage.text
        return texts_by_name


class IdentifiedQuery(FrozenModel):
    """The first fields of a task."""

    id: Id
    query: Query


class Task(TaskBackground, TaskMembers, IdentifiedQuery):
    """One task. It has no field for responses, so nothing computed from it can depend on one.

    `group` names a set of tasks that resemble each other, such as variants of one prompt: no history shows one of them
    to a judge of another, and studies take them as one unit. It is not the group of responses. Trajectories are
    compared with `reference_messages` or `reference_actions`. `tools` are those that may be called, in OpenAI's form;
    `context` is what was retrieved for whoever answers.
    """

    @cached_property
    def content_digest(self) -> str:
        """Digest of the task that does not depend on the order of its unordered parts in a file."""
        content = self.model_dump(mode="json")
        for person in content["stakeholders"]:
            person["constraints"].sort(key=_GET_ID_ITEM)
        for tension in content["tensions"]:
            tension["between"].sort()
        if content["rubric"] is not None:
            content["rubric"]["criteria"].sort(key=_GET_ID_ITEM)
            content["rubric"]["edges"].sort(key=itemgetter("parent", "child"))
        content["stakeholders"].sort(key=_GET_ID_ITEM)
        content["tensions"].sort(key=itemgetter("between", "strength"))
        content["reviewers"].sort()
        return digest_of(content)


_GET_ID_ITEM = itemgetter("id")


class TaskDefaults(TaskMembers):
    """Parts that a config gives to every task that has none of its own, with the names that they have in a task.

    `tensions` come with the `stakeholders`: a task with stakeholders of its own gets neither.
    """

    facts: JsonObject | None = None
    tools: ToolDefinitions | None = OMITTED_IF_NONE

    def complete(self, task: Task) -> Task:
        """Return the task with the parts that it lacks; unchanged if it lacks none of these."""
        names = ["rubric", "reviewers", "facts", "tools"]
        missing_field_names = [name for name in names if getattr(task, name) in (None, ())]
        if not task.stakeholders:
            missing_field_names += ["stakeholders", "tensions"]
        parts = {}
        for name in missing_field_names:
            part = getattr(self, name)
            if part not in (None, ()):
                parts[name] = part
        return task.model_copy(update=parts) if parts else task

    def key_of_part(self, part: Sequence[str]) -> str:
        """Return the key of a part whose members are named by their ids: `reviewers[0]` for ("reviewers", "ann")."""
        path = []
        value = self
        for step in part:
            if isinstance(value, tuple):
                ids = [getattr(member, "id", member) for member in value]
                index = ids.index(step)
                path.append(index)
                value = value[index]
            else:
                path.append(step)
                value = getattr(value, step)
        return format_field_path(tuple(path))


NO_TASK_DEFAULTS = TaskDefaults()

_MEMBER_TYPE_BY_AUDIENCE: dict[Audience, type] = {
    "stakeholder": Stakeholder,
    "criterion": Criterion,
    "reviewer": Reviewer,
}


class _ViewOfMember(FrozenModel):
    """The first fields of a view."""

    id: Id
    audience: Audience = "task"
    about: Reviewer | Stakeholder | Criterion | None = None
    people: tuple[Stakeholder, ...] = ()
    query: Query


class TaskView(TaskBackground, _ViewOfMember):
    """The part of a task that is shown for one member of an audience: the task itself, and this member only.

    `about` is the stakeholder, criterion or reviewer of the view; None for the view of the whole task. `people` are all
    stakeholders, set only for the audience `everyone`. `group` is the task's group of items, set only for a reviewer.
    """

    @model_validator(mode="after")
    def _require_audience_type(self) -> Self:
        if not isinstance(self.about, _MEMBER_TYPE_BY_AUDIENCE.get(self.audience, type(None))):
            raise ValueError(
                f"a view for audience {self.audience!r} is not about a {type(self.about).__name__}"
            )
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, which the plan's digest needs, too."""
        return digest_of(self.json_object)

    @property
    def member(self) -> str | None:
        """Return the id of the stakeholder, criterion or reviewer; None for the view of the whole task."""
        return None if self.about is None else self.about.id


def _drop_reasoning(messages: Sequence[ChatMessage]) -> ChatMessages:
    return tuple(
        message.model_copy(update={"reasoning": None}) if message.reasoning else message
        for message in messages
    )


def _is_rendered_conversation(text: str) -> bool:
    return isinstance(text, RenderedText) and text.is_whole_conversation


def _require_text_or_messages(schema: JsonFields) -> None:
    del schema["properties"]["text"]["default"]
    schema["anyOf"] = [{"required": ["text"]}, {"required": ["messages"]}]


class Response(FrozenModel):
    """One response to a task: an agent's `text`, or the `messages` of its conversation; and its structured `data`.

    The text of messages is their rendering, of the version in `rendering`; `turns` says whose its characters are.
    An `id` that is left out comes from the task and the position in its group; files name theirs.
    `labels` and `metadata` are facts about the response. They and the agent's name are not shown to evaluators: put
    everything that evaluators judge into `text`, `messages` or `data`. `workspace` is the folder or archive of its
    files, below the config's `workspaces`; judges read them by tools.
    """

    model_config = ConfigDict(json_schema_extra=_require_text_or_messages)

    id: Id = ""
    # None is no text of a response, since messages or a text are required: an empty text is written to files.
    text: str = Field(default=cast(str, None), exclude_if=_is_rendered_conversation)
    agent: str | None = None
    data: JsonValue = None
    labels: JsonObject = EMPTY_OBJECT
    metadata: JsonObject = EMPTY_OBJECT
    messages: TranscriptMessages | None = Field(default=None, min_length=1, exclude_if=is_none)
    rendering: Literal[1] | None = OMITTED_IF_NONE
    workspace: Id | None = OMITTED_IF_NONE

    @model_validator(mode="wrap")
    @classmethod
    def _render_messages(cls, value: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        """Make the text of messages. A text beside them is one of theirs, as a worker process gets it, or an error."""
        if not isinstance(value, Mapping) or value.get("messages") is None:
            if isinstance(value, Mapping) and "text" not in value:
                build({"text": "", **value})  # a wrong name of a field is the better error
                raise ValueError(
                    "`text` is missing; write it, or `messages`: every response needs it"
                )
            return build(value)
        response = build({"text": "", **value})
        messages = response.messages
        assert messages is not None
        texts = [render(messages)]
        if "text" in value:
            texts += [
                render_visible_part(messages, "last_reply"),
                render_with_turn_headers(messages),
            ]
            texts = [text for text in texts if str(text) == response.text]
        if not texts:
            raise ValueError(
                "`text` is not that of the `messages`, from which it is made; leave one of them out"
            )
        response.__dict__.update(text=texts[0], rendering=RENDERING_VERSION)
        return response

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return whose the characters of the text are, in order; none for a response without messages."""
        return self.text.turns if isinstance(self.text, RenderedText) else ()

    def excerpt(self, limit: int) -> str:
        """Return at most so many characters: the beginning of a text, or the end of a conversation."""
        if self.messages is None or len(self.text) <= limit:
            return shorten(self.text, limit)
        return "…" + self.text[len(self.text) - limit + 1 :]

    def without_metadata(self) -> "Response":
        """Return the response as evaluators see it: its id, its text and a copy of its data, without the rest."""
        # `data` is copied because an evaluator may change what it is given, which the next one would see
        update = {"agent": None, "data": deepcopy(self.data), "labels": {}, "metadata": {}}
        return self.model_copy(update=update)

    @property
    def assistant_turn_indices(self) -> tuple[int, ...]:
        """Return the indices of the messages that are a turn of an assistant; a text is one, with index 0."""
        return (0,) if self.messages is None else assistant_turn_indices(self.messages)

    def view(
        self, sees: VisiblePart, turn: int | None = None, names_turn: bool = False
    ) -> "Response":
        """Return the response with the part of its messages that an evaluator sees as its text.

        Only `full_trace` leaves the reasoning in the messages. With the index of a message as `turn`, it ends with that
        message; it then has an id of its own, and no data, which may be of what came later. With `names_turn`, prompts
        say that this message is judged.
        """
        if turn is not None:
            update: JsonFields = {"id": f"{self.id}#{turn}", "data": None}
            if self.messages is not None:
                shown = self.view(sees)
                rendering = (self if sees == "last_reply" else shown)._rendering
                arguments = self.messages, sees, turn, names_turn, rendering
                update["text"] = render_visible_part(*arguments)
                update["messages"] = (shown.messages or ())[: turn + 1]
            return self.model_copy(update=update)
        if self.messages is None or sees == "full_trace":
            return self
        if sees not in self._views:
            text: str = render_visible_part(self.messages, sees, rendering=self._rendering)
            if text == self.text:  # then a long text is kept once
                text = self.text
            update = {"text": text, "messages": _drop_reasoning(self.messages)}
            self._views[sees] = self.model_copy(update=update)
        return self._views[sees]

    @property
    def _rendering(self) -> RenderedText | None:
        """Return the text if it renders all messages; None if it has to be made, such as for a last reply."""
        last = len(self.messages or ()) - 1
        ends = [turn.message for turn in self.turns[:1] + self.turns[-1:]]
        return cast(RenderedText, self.text) if last > 0 and {*ends} == {0, last} else None

    @cached_property
    def _views(self) -> "dict[VisiblePart, Response]":
        """The views that were made: every question of a part shows the same, and a conversation may be long."""
        return {}

    @cached_property
    def content_digest(self) -> str:
        """Digest of what is judged, text or messages, data and workspace: equal for equal answers of two agents."""
        words: Any = self.text
        if self.messages is not None and not is_single_reply(self.messages):
            messages = [message.model_dump(mode="json") for message in self.messages]
            words = {"messages": messages, "rendering": self.rendering}
        files = [] if self.workspace is None else [self.workspace]
        return digest_of([words, self.data, *files])


def _read_texts(responses: Any, info: ValidationInfo) -> Any:
    """Return texts as responses; each gets the id that it has in Python, that of its task and its number."""
    if not isinstance(responses, list | tuple):
        return responses
    name = info.data.get("id")
    return tuple(
        {"id": f"{name}/{number}", "text": item} if isinstance(item, str) else item
        for number, item in enumerate(responses, start=1)
    )  # a list is no tuple where types are strict


class TaskLine(Task):
    """One line of a TASKS file: a task and, unless they are in a file of their own, its responses."""

    responses: Annotated[
        tuple[Response, ...],
        BeforeValidator(_read_texts, json_schema_input_type=tuple[str | Response, ...]),
    ] = ()

    def split(self) -> tuple[Task, tuple[Response, ...]]:
        values = {name: getattr(self, name) for name in Task.model_fields}
        return Task.model_construct(**values), self.responses  # the line has validated them


class ResponseLine(Response):
    """One line of a RESPONSES file: a response, and the id of its task."""

    id: Id
    task: Id

    def split(self) -> tuple[str, Response]:
        values = {name: getattr(self, name) for name in Response.model_fields}
        return self.task, Response.model_construct(**values)


PROFILES_FILE_SOURCE = "file"
"""The value of `Profiles.by` for a profile that was read from a PROFILES file instead of by a model."""


class ReadConstraint(Constraint):
    """A constraint, and the quotation from the profile that supports it."""

    quote: str = ""


class ReadTension(Tension):
    """A tension, and the reason for it."""

    reason: str = ""


class ReadStakeholder(Stakeholder):
    """A stakeholder with the constraints that were read from its profile, and the profile itself."""

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
        require_unique_ids("stakeholder", "stakeholders[{}].id", ids, "one entry")
        return self

    def to_profiles(self) -> Profiles:
        """Return the profiles as frozen into a plan: sorted by id, without the profile texts."""
        people = []
        for person in sort_by_id(self.stakeholders):
            constraints = sort_by_id(person.constraints)
            people.append(person.model_copy(update={"profile": "", "constraints": constraints}))
        tensions = []
        for tension in self.tensions or ():
            sorted_member_ids = tuple(sorted(tension.between))
            tensions.append(tension.model_copy(update={"between": sorted_member_ids}))
        tensions.sort(key=attrgetter("between", "strength", "reason"))
        return Profiles(
            stakeholders=tuple(people),
            by={person.id: PROFILES_FILE_SOURCE for person in people},
            tensions=tuple(tensions),
            tensions_by=None if self.tensions is None else PROFILES_FILE_SOURCE,
        )


def has_text_profile_only(person: Stakeholder) -> bool:
    return bool(person.profile) and not person.constraints


def apply_profiles(task: Task, profiles: Profiles | None) -> Task:
    """Return the task with the constraints and tensions that were read from its profiles."""
    if profiles is None:
        return task
    constraints = {}
    for read_person in profiles.stakeholders:
        # without their quotations, so that they are judged like constraints of the task
        constraints[read_person.id] = tuple(
            Constraint.model_validate(constraint.model_dump(exclude={"quote"}))
            for constraint in read_person.constraints
        )
    people = []
    for person in task.stakeholders:
        person_constraints = constraints.get(person.id, person.constraints)
        people.append(person.model_copy(update={"constraints": person_constraints}))
    tensions = task.tensions + profiles.tensions
    return task.model_copy(update={"stakeholders": tuple(people), "tensions": tensions})
