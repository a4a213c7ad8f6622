"""The calls of tools in a conversation, and whether they match others: openevals' rules, in its words.

Calls are multisets: one call matches one. A call is matched by the first fitting one that is free, in order, as
openevals does (`openevals.trajectory`, 0.2.2), and not by the assignment that fits most.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from jurygraph.schema import Response
from jurygraph.schema.conversation import ChatMessage, RenderedText, format_arguments

ArgumentsMode = Literal["exact", "ignore", "subset", "superset"]
Overrides = Mapping[str, ArgumentsMode | tuple[str, ...]]
Arguments = Mapping[str, Any]


class MadeCall(NamedTuple):
    """A call of a tool. `message` and `number` are the indices of its message, and of it among that one's calls.

    `arguments` is None where the model wrote no JSON of an object; `written` is what it wrote.
    """

    message: int
    number: int
    name: str
    arguments: Arguments | None
    written: str

    @property
    def path(self) -> str:
        """Return the place of the arguments in the messages."""
        return f"messages[{self.message}].tool_calls[{self.number}].function.arguments"

    @property
    def text(self) -> str:
        """Return the call as the rendering of the conversation has it."""
        return f"{self.name}({format_arguments(self.written)})"


def messages_of(response: Response) -> Sequence[ChatMessage]:
    """Return the messages of a response; a text is one message that calls no tool."""
    return response.messages or (ChatMessage(role="assistant", content=response.text),)


def calls_of(messages: Sequence[ChatMessage], only: Sequence[str] = ()) -> list[MadeCall]:
    """Return the assistant's calls in their order; those of some tools `only`, if any are named."""
    calls = []
    for index, message in enumerate(messages):
        if message.role != "assistant":
            continue
        for number, call in enumerate(message.tool_calls):
            if not only or call.name in only:
                written_arguments = call.function.arguments
                calls.append(MadeCall(index, number, call.name, call.arguments, written_arguments))
    return calls


def call_spans(response: Response) -> Iterator[tuple[int, int]]:
    """Yield the offsets of all calls in the text of a response, in their order."""
    turns = response.text.turns if isinstance(response.text, RenderedText) else ()
    for turn in turns:
        if turn.kind == "call" and turn.role == "assistant":
            yield turn.start, turn.end


class ArgumentsRule(NamedTuple):
    """The rule by which the arguments of two calls match: a mode for all tools, and others for some by their names.

    An override is a mode, or the names of the arguments that count, with points for nested ones.
    """

    mode: ArgumentsMode
    overrides: Overrides

    def matches(self, call: MadeCall, reference: MadeCall) -> bool:
        arguments = call.arguments
        expected = reference.arguments
        if call.name != reference.name or arguments is None or expected is None:
            return False
        rule = self.overrides.get(call.name) or self.mode
        if isinstance(rule, str):
            return _ARGUMENT_COMPARISONS[rule](arguments, expected)
        return all(_has_equal(arguments, expected, path.split(".")) for path in rule)


def _are_arguments_part(arguments: Arguments, others: Arguments) -> bool:
    return all(name in others and others[name] == value for name, value in arguments.items())


_ARGUMENT_COMPARISONS: Mapping[ArgumentsMode, Callable[[Arguments, Arguments], bool]] = {
    "exact": lambda arguments, reference: arguments == reference,
    "ignore": lambda arguments, reference: True,
    "subset": _are_arguments_part,
    "superset": lambda arguments, reference: _are_arguments_part(reference, arguments),
}


def _has_equal(arguments: Any, reference: Any, path: Sequence[str]) -> bool:
    """Return whether both have a value at a path, and the same."""
    for step in path:
        for value in (arguments, reference):
            if not isinstance(value, Mapping) or step not in value:
                return False
        arguments = arguments[step]
        reference = reference[step]
    return bool(arguments == reference)


def find_unmatched(
    calls: Sequence[MadeCall],
    others: Sequence[MadeCall],
    fits: Callable[[MadeCall, MadeCall], bool],
) -> list[MadeCall]:
    """Return the calls to which none of the others corresponds; `fits` takes a call and one of the others."""
    free_calls = list(others)
    unmatched_calls = []
    for call in calls:
        match = next((other for other in free_calls if fits(call, other)), None)
        if match is None:
            unmatched_calls.append(call)
        else:
            free_calls.remove(match)
    return unmatched_calls


def first_difference(
    messages: Sequence[ChatMessage],
    references: Sequence[ChatMessage],
    rule: ArgumentsRule,
    only: Sequence[str] = (),
) -> str | None:
    """Return where two conversations differ in messages, roles or calls; within a message the order is free."""
    if len(messages) != len(references):
        return f"there are {len(messages)} messages, and {len(references)} in the reference"
    for index, (message, reference) in enumerate(zip(messages, references, strict=True)):
        if message.role != reference.role:
            return f"message {index} is of role {message.role}, in the reference {reference.role}"
        calls = calls_of([message], only)
        reference_calls = calls_of([reference], only)
        if len(calls) != len(reference_calls) or find_unmatched(
            calls, reference_calls, rule.matches
        ):
            return f"message {index} has other calls than the reference"
    return None
