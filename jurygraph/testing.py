"""A judge for your own tests: it answers as you script it, in process, without a network or a bill.

judge = jg.testing.ScriptedJudge({"polite": True, "names a date": 0.2})
with jg.Jury(model=judge, evaluators=[jg.criteria(["It is polite.", "It names a date."])]) as jury:
    traces = jury.score(task, ["Dear Ann, thank you."])
assert len(judge.requests) == 1
"""

import json
import re
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from jurygraph.display import ShortRepr, format_value
from jurygraph.errors import InputError, ModelError
from jurygraph.messages import describe_type
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.request import Reply, Request
from jurygraph.schema.frozen_model import JsonFields, ReadOnlyFields, require_argument_type

Answer = bool | float | str | Mapping[str, Any] | Sequence[bool] | Callable[[str], Any]
"""A scripted answer to one item; see `ScriptedJudge`."""


class ScriptedJudge(ShortRepr, Backend):
    """A model that answers by rules or by a list; give it as the `model` of a jury.

    Rules are a mapping: the first key that occurs in an item's text (of a criterion, a preference, …) gives the answer
    to it; in the whole request for a judge whose replies have no items. A list has the answer to all items of the first
    request, of the second, and so on, as they arrive: for criteria by the ids of the responses, and for an evaluator of
    yours in any order; give rules there.

    An answer is True or False; a probability, or a value on the item's scale; one of these for each of its parts; a
    function of the response's text that returns one of these; a mapping of fields of the reply itself, such as
    {"met": None, "probability": None} where the judge cannot tell; or a text, the whole reply, valid or not.
    Quotations, and a reviewer's full confidence, are added where a judge needs them. A judge with tools calls one by
    `look_up`.

    A request without an answer gives a failed verdict; closing the jury (the end of its `with` block) then raises
    ModelError. `requests` are all requests so far, in the order in which they arrived. Each of several judges of a jury
    needs a `name` of its own, by which requests name the model.
    """

    provider = "scripted"
    capabilities = EndpointCapabilities("native")
    costs_nothing = True

    def __init__(
        self,
        answers: Mapping[str, Answer] | Sequence[Answer],
        name: str = "scripted-judge",
    ) -> None:
        require_argument_type("name", name, str, "write text")
        self.model = self.name = name
        if isinstance(answers, str) or not isinstance(answers, Mapping | Sequence):
            raise InputError(f"answers: is {describe_type(answers)}; give a dict or a list")
        entries = answers.items() if isinstance(answers, Mapping) else enumerate(answers)
        for key, answer in entries:
            if isinstance(answers, Mapping):
                require_argument_type(f"answers, key {format_value(key)}", key, str, "write text")
            if not isinstance(answer, bool | int | float | str | Mapping | Sequence | Callable):
                raise InputError(
                    f"answers[{key!r}]: is {describe_type(answer)}; give True or False, a number, a list of booleans, "
                    "a dict, a text or a function"
                )
        self.requests: list[Request] = []
        self._answers = answers
        self._unscripted: list[str] = []

    def _repr_parts(self) -> list[tuple[str, Any]]:
        return [("answers", self._answers), ("requests", len(self.requests))]

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Return the scripted reply. Raises `Fault` of kind `unrecorded` if there is none."""
        self.requests.append(request)
        reply = self._make_reply(request, len(self.requests) - 1)
        return Reply(text=reply if isinstance(reply, str) else json.dumps(reply), finish="stop")

    async def close(self) -> None:
        """Raise ModelError, once, if there were requests without an answer."""
        unscripted_requests = self._unscripted
        self._unscripted = []
        if unscripted_requests:
            more = (
                f" and {len(unscripted_requests) - 1} more" if len(unscripted_requests) > 1 else ""
            )
            raise ModelError(
                f"no scripted answer to {unscripted_requests[0]}{more}; add one to the ScriptedJudge"
            )

    def _make_reply(self, request: Request, turn: int) -> Any:
        """Return the reply to a request; an answer that is a text takes the place of all of it."""
        text = "\n\n".join(message.content for message in request.messages)
        response = _strip_message_fences(
            _text_in_prompt_fence("response", text, request.marks), request.marks
        )
        answers: Any = request.answer or {}
        *_, verdict = answers.get("anyOf", [answers])  # after the calls of tools, if there are any
        properties: Any = verdict.get("properties", {})
        items = {name: schema.get("properties", {}) for name, schema in properties.items()}
        judgements = {"met", "value", "part_1"}
        if not items or any(judgements.isdisjoint(fields) for fields in items.values()):
            last = format_value(request.messages[-1].content, 150)
            label = f"the prompt {request.prompt}" if request.prompt else last
            return self._answer(text, turn, response, f"a request with {label}")
        reply = {}
        for name, fields in items.items():
            item = _text_in_prompt_fence("item", text, request.marks, f"\n{name}:\n") or text
            answer = self._answer(item, turn, response, format_value(item, 150))
            if isinstance(answer, str):
                return answer
            reply[name] = _fill_reply(fields, answer, response)
        return reply

    def _answer(self, text: str, turn: int, response: str, label: str) -> Any:
        """Return the answer to the text of an item or a request. Raises `Fault` with the label if there is none."""
        if isinstance(self._answers, Mapping):
            answers = [answer for key, answer in self._answers.items() if key in text]
        else:
            answers = list(self._answers[turn : turn + 1])
        if not answers:
            self._unscripted.append(label)
            raise self.fault("unrecorded", f"no scripted answer to {label}; add one")
        answer = answers[0]
        return answer(response) if callable(answer) else answer


# Of a message: nobody's words.
_MESSAGE_HEADER_PATTERN = re.compile(r"\[\d+\] (system|developer|user|assistant|tool)\b")


def look_up(tool: str, **arguments: Any) -> str:
    """Return the answer by which a scripted judge calls one of its tools, in the place of a verdict.

    judge = jg.testing.ScriptedJudge([jg.testing.look_up("price", item="room"), True])
    """
    return json.dumps({"look_up": [{"tool": tool, "arguments": arguments}]})


def _text_in_prompt_fence(name: str, text: str, marks: Sequence[str], before: str = "") -> str:
    """Return the first text in a fence of this name, with one of the marks, after `before`; empty if there is none."""
    for fence_match in re.finditer(rf"<<<{name} ([0-9a-f]+)\n", text):
        if fence_match[1] in marks and text.endswith(before, 0, fence_match.start()):
            return text[fence_match.end() :].partition(f"\n{name} {fence_match[1]}>>>")[0]
    return ""


def _strip_message_fences(text: str, marks: Collection[str]) -> str:
    """Return the rendering of a conversation, of which a prompt fences each message."""

    def strip(edge: re.Match[str]) -> str:
        return "" if edge[edge.lastindex or 0] in marks else edge[0]

    return re.sub(r"<<<message ([0-9a-f]+)\n|\nmessage ([0-9a-f]+)>>>", strip, text)


def _fill_reply(fields: ReadOnlyFields, answer: Any, response: str) -> JsonFields:
    """Return the reply to an item whose schema has these fields."""
    lines = [
        line
        for line in response.splitlines()
        if line.strip() and not _MESSAGE_HEADER_PATTERN.match(line)
    ]
    quotes = []
    if lines:
        pieces = textwrap.wrap(lines[0], 200, break_long_words=False, break_on_hyphens=False)
        quotes.append(pieces[0][:1000])
    reply_fields: JsonFields = {"reason": "scripted", "quotes": quotes, "confidence": 100}
    answered_fields: ReadOnlyFields = {}
    if isinstance(answer, Mapping):
        answered_fields = answer
    elif "met" in fields or "probability" in fields:
        reply_fields |= {"met": answer >= 0.5, "probability": float(answer)}
    elif "value" in fields:
        schema = fields["value"]
        (bounds,) = (choice for choice in schema.get("anyOf", [schema]) if "maximum" in choice)
        if isinstance(answer, bool):
            answer = bounds["maximum"] if answer else bounds["minimum"]
        reply_fields["value"] = answer
    else:
        parts = [name for name in fields if name.startswith("part_")]
        answers_by_part = (
            [answer] * len(parts) if isinstance(answer, bool | int | float) else answer
        )
        for name, part_answer in zip(parts, answers_by_part, strict=True):
            reply_fields[name] = _fill_reply(fields[name]["properties"], part_answer, response)
    return {name: reply_fields[name] for name in reply_fields if name in fields} | dict(
        answered_fields
    )
