"""The calls of tools in a conversation, and whether they match others: openevals' rules, in its words.

Calls are multisets: one call matches one. A call is matched by the first fitting one that is free, in order, as
openevals does (`openevals.trajectory`, 0.2.2), and not by the assignment that fits most.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from jurygraph.schema import Response
from jurygraph.schema.conversation import ChatMessage, canonical_tool_arguments

ArgumentsMode = Literal["exact", "ignore", "subset", "superset"]
Arguments = Mapping[str, Any]


class AgentToolCall(NamedTuple):
    """A call of a tool. `message` and `number` are the indices of its message, and of it among that one's calls.

    `arguments` is None where the model wrote no JSON of an object; `raw_arguments` is what it wrote.
    """

    message: int
    number: int
    name: str
    arguments: Arguments | None
    raw_arguments: str

    @property
    def path(self) -> str:
        """Return the place of the arguments in the messages."""
        return f"messages[{self.message}].tool_calls[{self.number}].function.arguments"

    @property
    def text(self) -> str:
        """Return the call as the rendering of the conversation has it."""
        return f"{self.name}({canonical_tool_arguments(self.raw_arguments)})"


def list_messages(response: Response) -> Sequence[ChatMessage]:
    """Return the messages of a response; a text is one message that calls no tool."""
    return response.messages or (ChatMessage(role="assistant", content=response.text),)


def list_tool_calls(
    messages: Sequence[ChatMessage], tool_names: Sequence[str] = ()
) -> list[AgentToolCall]:
    """Return the assistant's calls in their order; those of some tools `tool_names`, if any are named."""
    calls = []
    for index, message in enumerate(messages):
        if message.role != "assistant":
            continue
        for number, call in enumerate(message.tool_calls):
            if not tool_names or call.name in tool_names:
                calls.append(
                    AgentToolCall(index, number, call.name, call.arguments, call.function.arguments)
                )
    return calls


class ArgumentsRule(NamedTuple):
    """The rule by which the arguments of two calls match: a mode for all tools, and others for some by their names.

    An override is a mode, or the names of the arguments that count, with points for nested ones.
    """

    mode: ArgumentsMode
    mode_by_tool: Mapping[str, ArgumentsMode | tuple[str, ...]]

    def matches(self, call: AgentToolCall, reference: AgentToolCall) -> bool:
        arguments = call.arguments
        expected = reference.arguments
        if call.name != reference.name or arguments is None or expected is None:
            return False
        mode_or_argument_names = self.mode_by_tool.get(call.name) or self.mode
        if isinstance(mode_or_argument_names, str):
            return _ARGUMENT_COMPARISON_BY_MODE[mode_or_argument_names](arguments, expected)
        return all(
            _have_equal_value_at_path(arguments, expected, path.split("."))
            for path in mode_or_argument_names
        )


def _are_arguments_subset(arguments: Arguments, others: Arguments) -> bool:
    # Values are compared by ==: unlike in `items() <=`, no NaN is equal to itself.
    return all(name in others and others[name] == value for name, value in arguments.items())


_ARGUMENT_COMPARISON_BY_MODE: Mapping[ArgumentsMode, Callable[[Arguments, Arguments], bool]] = {
    "exact": operator.eq,
    "ignore": lambda arguments, reference: True,
    "subset": _are_arguments_subset,
    "superset": lambda arguments, reference: _are_arguments_subset(reference, arguments),
}


def _have_equal_value_at_path(arguments: Any, reference: Any, path: Sequence[str]) -> bool:
    """Return whether both have a value at a path, and the same."""
    for step in path:
        for value in (arguments, reference):
            if not isinstance(value, Mapping) or step not in value:
                return False
        arguments = arguments[step]
        reference = reference[step]
    return bool(arguments == reference)


def find_unmatched_calls(
    calls: Sequence[AgentToolCall],
    others: Sequence[AgentToolCall],
    is_match: Callable[[AgentToolCall, AgentToolCall], bool],
) -> list[AgentToolCall]:
    """Return the calls to which none of the others corresponds; `is_match` takes a call and one of the others."""
    candidate_calls = list(others)
    unmatched_calls = []
    for call in calls:
        match = next((other for other in candidate_calls if is_match(call, other)), None)
        if match is None:
            unmatched_calls.append(call)
        else:
            candidate_calls.remove(match)
    return unmatched_calls


def first_difference(
    messages: Sequence[ChatMessage],
    reference_messages: Sequence[ChatMessage],
    rule: ArgumentsRule,
    only: Sequence[str],
) -> str | None:
    """Return where two conversations differ in messages, roles or calls; within a message the order is free."""
    if len(messages) != len(reference_messages):
        return f"there are {len(messages)} messages, and {len(reference_messages)} in the reference"
    for index, (message, reference) in enumerate(zip(messages, reference_messages, strict=True)):
        if message.role != reference.role:
            return f"message {index} is of role {message.role}, in the reference {reference.role}"
        calls = list_tool_calls([message], only)
        reference_calls = list_tool_calls([reference], only)
        if len(calls) != len(reference_calls) or find_unmatched_calls(
            calls, reference_calls, rule.matches
        ):
            return f"message {index} has other calls than the reference"
    return None
