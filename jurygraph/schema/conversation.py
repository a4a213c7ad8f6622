"""Conversations: messages in the form of OpenAI's chats, and the text that they are judged as.

Judges, gates and quotations need one text, so that messages are rendered: each part under a line that says whose it is.
The rendering is frozen (`RENDERING_VERSION`), because stored offsets of quotations count its characters; the messages
are stored, and the text is made again from them. Nothing in a message is escaped: a message can write lines that look
like headers, and so the text remembers which characters are whose (`Turn`), and prompts fence each message by itself.
"""

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple, NoReturn

from pydantic import Field, model_validator

from jurygraph.messages import describe_value, quote
from jurygraph.schema.frozen_model import (
    FrozenModel,
    JsonFields,
    JsonObject,
    ReadOnlyFields,
    canonical_json,
)

RENDERING_VERSION = 1
"""Version of the rendering of messages. Another way to render them gets another number, and this one stays."""

MessageRole = Literal["system", "developer", "user", "assistant", "tool"]
TurnContentKind = Literal["text", "reasoning", "call", "result", "part"]
VisiblePart = Literal["last_reply", "full_trace", "without_reasoning"]
"""How much of a conversation an evaluator sees as the text of a response."""
ResponseStart = int | Literal["first-reply"] | None
"""Where a response begins: at the message of this index, with the first of an assistant, or after the last user's."""
UNJUDGED_REPLIES_NOTE = (
    "they are not judged; score the chats with --response-from first-reply to judge them"
)
"""What becomes of replies and calls before the last message of a user, and the remedy."""


def is_none(value: object) -> bool:
    return value is None


def is_empty_value(value: object) -> bool:
    return not value


OMITTED_IF_NONE: Any = Field(default=None, exclude_if=is_none)
"""The default None of a field that is written only where it has a value."""
OMITTED_IF_EMPTY: Any = Field(default=(), exclude_if=is_empty_value)
"""The same of a field of several values."""


class FunctionCall(FrozenModel):
    """A function's name, and its arguments as the model wrote them: JSON of an object, if the model made no mistake."""

    name: str
    arguments: str = "{}"


class ToolCall(FrozenModel):
    """A call of a tool by the assistant."""

    id: str = Field(default="", exclude_if=is_empty_value)
    type: Literal["function"] = "function"
    function: FunctionCall

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def arguments(self) -> JsonFields | None:
        """Return the arguments; None where they are not the JSON of an object, which is the model's mistake."""
        return parse_tool_arguments(self.function.arguments)

    @property
    def normalized_text(self) -> str:
        """Return the tool and the arguments, equal for equal calls."""
        return f"{self.name}({canonical_tool_arguments(self.function.arguments)})"


_HEADER_SAFE_NAME_PATTERN = re.compile(r"[\w.:/-]{1,64}")
"""A name of a tool that can stand in a header: it has no line break, and no space."""

MessageContent = str | tuple[JsonObject, ...] | None


class ChatMessage(FrozenModel):
    """One message of a conversation, in the form of OpenAI's chats, with the `reasoning` before it.

    `content` is a text, or a list of parts; parts that are no text are kept, and described in the rendering.
    """

    role: MessageRole
    content: MessageContent = None
    tool_calls: tuple[ToolCall, ...] = OMITTED_IF_EMPTY
    tool_call_id: str | None = OMITTED_IF_NONE
    name: str | None = OMITTED_IF_NONE
    reasoning: str | None = OMITTED_IF_NONE

    @model_validator(mode="after")
    def _validate_message_content(self) -> "ChatMessage":
        if self.content is None and not self.tool_calls and not self.reasoning:
            raise ValueError(
                '`content` is null, and the message calls no tool; write its text, "" if it is empty'
            )
        parts = self.content if isinstance(self.content, tuple) else ()
        for index, part in enumerate(parts):
            text = part.get("text")
            if part.get("type") == "text" and not isinstance(text, str):
                raise ValueError(
                    f'`content[{index}].text` is {describe_value(text)}; write the text of the part, "" if it is '
                    "empty"
                )
        return self

    @property
    def text(self) -> str:
        """Return the text of the content alone, without reasoning, calls and other parts."""
        return "\n".join(text for kind, text in self.parts() if kind == "text")

    def parts(self) -> Iterator[tuple[TurnContentKind, str]]:
        """Yield the kind and the words of each part of the content."""
        if isinstance(self.content, str):
            yield "text", self.content
        elif self.content is not None:
            for part in self.content:
                text = part.get("text")
                if part.get("type") == "text" and isinstance(text, str):
                    yield "text", text
                else:
                    yield "part", content_part_placeholder(part)


ChatMessages = tuple[ChatMessage, ...]


def content_part_placeholder(part: ReadOnlyFields) -> str:
    """Return the line that stands for a part that is no text: its type and its digest."""
    digest = hashlib.sha256(canonical_json(dict(part))).hexdigest()
    return f"[{part.get('type', 'part')}, sha256 {digest}]"


def parse_tool_arguments(arguments: str) -> JsonFields | None:
    """Return the arguments of a call; None if they are not the JSON of an object."""
    try:
        parsed_arguments = json.loads(arguments, parse_constant=_refuse_json_constant)
    except (ValueError, RecursionError):
        return None
    return parsed_arguments if isinstance(parsed_arguments, dict) else None


def _refuse_json_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def canonical_tool_arguments(arguments: str) -> str:
    """Return the arguments of a call as canonical JSON (sorted keys, no spaces); unchanged if they are no JSON."""
    parsed_arguments = parse_tool_arguments(arguments)
    if parsed_arguments is None:
        return arguments
    try:
        text = json.dumps(
            parsed_arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        text.encode()  # an escaped half of a surrogate pair is no text
    except (ValueError, RecursionError):
        return arguments
    return text


class Turn(NamedTuple):
    """A part of a message in a rendering: the characters from `start` to `end` are its words, without its header.

    `message` is the index of the message. `origin` is the start of the same part in the rendering of all messages.
    """

    message: int
    role: MessageRole
    kind: TurnContentKind
    start: int
    end: int
    origin: int


class RenderedText(str):
    """The text of messages, which remembers whose its characters are."""

    turns: tuple[Turn, ...]
    is_whole_conversation: bool
    """Whether it is the rendering of all that the messages have."""
    judged_message_index: int | None
    """The index of the one message that is judged, of which a prompt tells; None for the whole text."""

    def __new__(
        cls,
        text: str,
        turns: Sequence[Turn],
        is_whole_conversation: bool,
        judged_message_index: int | None = None,
    ) -> "RenderedText":
        rendered = super().__new__(cls, text)
        rendered.turns = tuple(turns)
        rendered.is_whole_conversation = is_whole_conversation
        rendered.judged_message_index = judged_message_index
        return rendered

    def __eq__(self, other: object) -> bool:
        # Two conversations can have one text: a message may write the header of another.
        has_same_turns = not isinstance(other, RenderedText) or (
            other.turns == self.turns and other.judged_message_index == self.judged_message_index
        )
        return has_same_turns and str.__eq__(self, other) is True

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __reduce__(self) -> Any:
        return RenderedText, (
            str(self),
            self.turns,
            self.is_whole_conversation,
            self.judged_message_index,
        )

    @property
    def has_turn_headers(self) -> bool:
        """Return whether it has more than the words of one turn."""
        return len(self.turns) > 1 or any(turn.start > 0 for turn in self.turns)

    def find_enclosing_turn(self, start: int, end: int) -> Turn | None:
        """Return the turn that has all of these characters; None if they are of several, or of a header."""
        index = bisect_right(self.turns, start, key=attrgetter("start")) - 1
        while index >= 0:
            turn = self.turns[index]
            is_turn_nonempty = not (turn.start == turn.end == start)
            if is_turn_nonempty or start >= end:
                return turn if end <= turn.end else None
            index -= 1  # an empty turn has no characters
        return None

    def blocks(self) -> Iterator[tuple[str, str]]:
        """Yield each turn's header, with what separates it from the turn before, and its words."""
        end = 0
        for turn in self.turns:
            yield str(self[end : turn.start]), str(self[turn.start : turn.end])
            end = turn.end


_GET_MESSAGE_INDEX = attrgetter("message")


class _MessageBlock(NamedTuple):
    """A part of a message before it is rendered."""

    header: str
    words: str
    message: int
    role: MessageRole
    kind: TurnContentKind


def render(messages: Sequence[ChatMessage]) -> RenderedText:
    """Return the text of a conversation. That of one message of an assistant, without calls, is its content alone."""
    blocks = _build_message_blocks(messages)
    return _join_message_blocks(blocks, has_turn_headers=not is_single_reply(messages))


def render_visible_part(
    messages: Sequence[ChatMessage],
    sees: VisiblePart,
    turn: int | None = None,
    names_turn: bool = False,
    rendering: RenderedText | None = None,
) -> RenderedText:
    """Return the part of the rendering that an evaluator sees: `last_reply` is the last assistant's text, alone.

    With the index of a message as `turn` it is the view of the conversation as it was then, which knows nothing later;
    with `names_turn`, a prompt says that this message is judged. `rendering` is that of all messages, if there is one:
    the part is cut out of it, in the time of what it has and not of what it leaves out.
    """
    if rendering is None:
        rendering = render(messages)
    if turn is None and sees != "last_reply" and is_single_reply(messages):
        return rendering
    parts = rendering.turns
    first = 0
    end = len(messages) if turn is None else turn + 1
    if sees == "last_reply":
        indices = range(end - 1, -1, -1)
        last_reply = next((i for i in indices if messages[i].role == "assistant"), -1)
        first = bisect_left(parts, last_reply, key=_GET_MESSAGE_INDEX)
        end = last_reply + 1
    indices_of_parts = [
        index
        for index in range(first, bisect_left(parts, end, key=_GET_MESSAGE_INDEX))
        if parts[index].kind == "text"
        or (sees != "last_reply" and parts[index].kind != "reasoning")
        or sees == "full_trace"
    ]
    count = len(indices_of_parts)
    has_turn_headers = sees != "last_reply" and not is_single_reply(messages[:end])
    judged_message_index = turn if names_turn else None
    if has_turn_headers and count and indices_of_parts[-1] == count - 1:
        # nothing before is hidden: it is cut out as a whole, since up to each turn it is long
        text = rendering[: parts[count - 1].end]
        is_whole = turn is None and count == len(parts)
        return RenderedText(text, parts[:count], is_whole, judged_message_index)
    blocks = []
    for index in indices_of_parts:
        part = parts[index]
        header_start = parts[index - 1].end if index else 0
        header = rendering[header_start : part.start].removeprefix("\n\n")
        words = rendering[part.start : part.end]
        blocks.append(_MessageBlock(header, words, part.message, part.role, part.kind))
    return _join_message_blocks(
        blocks,
        has_turn_headers=has_turn_headers,
        origins=[parts[index].start for index in indices_of_parts],
        judged_message_index=judged_message_index,
    )


def assistant_turn_indices(messages: Sequence[ChatMessage]) -> tuple[int, ...]:
    """Return the indices of the messages of an assistant that say something, or that do nothing at all.

    A message that only calls tools is a step on the way to the next turn, which shows it.
    """
    return tuple(
        index
        for index, message in enumerate(messages)
        if message.role == "assistant" and (message.text.strip() or not message.tool_calls)
    )


def render_with_turn_headers(messages: Sequence[ChatMessage]) -> RenderedText:
    """Return the rendering with a header for each part, also where there is only one reply."""
    return _join_message_blocks(_build_message_blocks(messages), has_turn_headers=True)


class SplitConversation(NamedTuple):
    """A conversation in two: what the response answers, and the response."""

    query: ChatMessages
    response: ChatMessages


def split_conversation(messages: ChatMessages, start: ResponseStart = None) -> SplitConversation:
    """Return the messages before the response and those of it, which begins at `start`.

    By default it begins after the last message of a user, and is empty where that is the end. Raises ValueError where
    another part is empty, or where the response has the result of a call that comes before it.
    """
    number = len(messages)
    if start == "first-reply":
        roles = [message.role for message in messages]
        if "assistant" not in roles:
            raise ValueError(
                "has no reply to judge: no message is an assistant's; leave the chat out"
            )
        start = roles.index("assistant")
    elif start is None:
        user_message_indices = [
            index for index, message in enumerate(messages) if message.role == "user"
        ]
        start = user_message_indices[-1] + 1 if user_message_indices else 0
        if start == number:
            return SplitConversation(messages, ())
    if not 0 < start < number:
        side = "before" if start <= 0 else "after"
        raise ValueError(
            f"no message is {side} the start of the response, message {start} of {number}; say where it starts with "
            "--response-from"
        )
    require_calls_before_results(messages, start)
    return SplitConversation(messages[:start], messages[start:])


def has_replies(query: str | Sequence[ChatMessage]) -> bool:
    """Return whether what comes before a response has messages of an assistant."""
    return any(not isinstance(part, str) and part.role == "assistant" for part in query)


def is_left_unanswered(messages: Sequence[ChatMessage]) -> bool:
    """Return whether a conversation ends in a call of a tool without a word, or in a result."""
    return any(
        last.role == "tool" or (last.tool_calls and not last.text.strip()) for last in messages[-1:]
    )


def require_calls_before_results(messages: ChatMessages, start: int = 0) -> ChatMessages:
    """Return the messages. Raises ValueError for a result of a tool that no message from `start` up to it called."""
    index_by_call_id: dict[str, int] = {}
    for index, message in enumerate(messages):
        index_by_call_id.update((call.id, index) for call in message.tool_calls)
        name = message.tool_call_id
        if index < start or message.role != "tool" or name is None:
            continue
        calling_message_index = index_by_call_id.get(name)
        # A response from later on is a part of a conversation, whose messages a sentence counts.
        field = (
            f"message {index} of the chat answers" if start else f"`[{index}].tool_call_id` names"
        )
        if calling_message_index is None:
            raise ValueError(
                f"{field} {quote(name)}, which no message before it calls; correct the id, put the call "
                "in, or leave the result out"
            )
        if calling_message_index < start:
            raise ValueError(
                f"{field} {quote(name)}, a call of message {calling_message_index}, before the response; begin the "
                f"response there with --response-from {calling_message_index}"
            )
    return messages


def is_single_reply(messages: Sequence[ChatMessage]) -> bool:
    """Return whether the conversation is one message of an assistant, and no more than a text."""
    only_message = messages[0]
    has_more_than_text = len(messages) > 1 or only_message.tool_calls or only_message.reasoning
    if has_more_than_text or only_message.role != "assistant":
        return False
    return [kind for kind, _ in only_message.parts()] == ["text"]


def _build_message_blocks(messages: Sequence[ChatMessage]) -> list[_MessageBlock]:
    """Return the parts of the messages in their order: reasoning comes before content, and content before calls."""
    tool_names: dict[str, str] = {}
    blocks = []
    for index, message in enumerate(messages):
        role = message.role
        header = f"[{index}] {role}"
        if message.reasoning:
            title = f"{header} reasoning:\n"
            blocks.append(_MessageBlock(title, message.reasoning, index, role, "reasoning"))
        if role == "tool":
            name = tool_names.get(message.tool_call_id or "", message.name or "")
            header = f"{header} {name}" if _HEADER_SAFE_NAME_PATTERN.fullmatch(name) else header
        has_calls_or_reasoning = bool(message.tool_calls or message.reasoning)
        for kind, words in message.parts():
            if not words and has_calls_or_reasoning:
                continue
            if role == "tool" and kind == "text":
                kind = "result"
            blocks.append(_MessageBlock(f"{header}:\n", words, index, role, kind))
        for call in message.tool_calls:
            tool_names[call.id] = call.name
            blocks.append(_MessageBlock(f"{header} → ", call.normalized_text, index, role, "call"))
    return blocks


def _join_message_blocks(
    blocks: Sequence[_MessageBlock],
    *,
    has_turn_headers: bool,
    origins: Sequence[int] | None = None,
    judged_message_index: int | None = None,
) -> RenderedText:
    """Return the blocks as paragraphs. `origins` are their starts in the rendering of all; None if they are all."""
    pieces: list[str] = []
    turns = []
    length = 0
    for index, block in enumerate(blocks):
        header = "\n\n" if pieces else ""
        if has_turn_headers:
            header += block.header
        start = length + len(header)
        length = start + len(block.words)
        origin = start if origins is None else origins[index]
        turns.append(Turn(block.message, block.role, block.kind, start, length, origin))
        pieces += header, block.words
    return RenderedText("".join(pieces), turns, origins is None, judged_message_index)
