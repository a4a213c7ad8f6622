"""Read messages in the forms in which people have them: OpenAI's, Anthropic's, LangChain's and ShareGPT's.

LangChain's own converter reads its messages. Those of OpenAI's form are read here, because the converter raises for
arguments that are no JSON, which are a mistake to be judged, and leaves reasoning out.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from jurygraph.messages import describe_value, did_you_mean, quote
from jurygraph.schema.conversation import ChatMessage
from jurygraph.schema.frozen_model import ReadOnlyFields

MessageFields = dict[str, Any]
M = TypeVar("M")

_MESSAGE_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning")
_ROLE_BY_ALIAS = {"human": "user", "ai": "assistant", "gpt": "assistant", "function": "tool"}
_LANGCHAIN_MESSAGE_TYPES = ("human", "ai", "system", "tool", "function")
"""What LangChain's messages have as `type`, instead of a role."""
_REASONING_FIELDS = ("reasoning", "reasoning_content", "thinking")
"""Names of the reasoning before a message: OpenRouter's and vLLM's, DeepSeek's, Ollama's."""
_SINGLE_WORD_PATTERN = re.compile(r"\s*[!-~]+\s*")
_MIN_FIELD_SIMILARITY = 0.85
"""Similarity from which an unknown field is taken for a slip; servers add others, such as `annotations`."""


def read_messages(value: Any) -> Any:
    """Return the messages as fields of `ChatMessage`. Values that are no messages are left to its validation.

    Fields of no meaning here, such as `id` or `annotations`, are left out. Raises ValueError that names a field.
    """
    if isinstance(value, Mapping) and "messages" in value:
        value = _list_messages_with_system(value)
    if not isinstance(value, list | tuple):
        return value
    messages = []
    for index, item in enumerate(value):
        messages += _read_message(item, index)
    return tuple(messages)  # a list is no tuple where types are strict


def _list_messages_with_system(conversation: ReadOnlyFields) -> Any:
    """Return the messages, after the `system` that Anthropic's form has outside them, unless they begin with one."""
    messages = conversation["messages"]
    system = conversation.get("system")
    if not (system and isinstance(system, str | list) and isinstance(messages, list | tuple)):
        return messages
    first = messages[0] if messages else None
    if isinstance(first, Mapping) and first.get("role") in ("system", "developer"):
        return messages
    return [{"role": "system", "content": system}, *messages]


def refuse_single_word(system: M) -> M:
    """Return what is called `system`. Raises ValueError for a word, such as the name of the system that is compared.

    A word is one of ASCII: other scripts may write whole sentences without spaces.
    """
    if isinstance(system, str) and _SINGLE_WORD_PATTERN.fullmatch(system):
        raise ValueError(
            f"is {quote(system)}, and a single word is no system message for the prompt; rename it, to `agent` "
            "if it names the agent"
        )
    return system


def _read_message(item: Any, index: int) -> list[Any]:
    """Return one message; several if it has results of tools among its parts, as Anthropic's have."""
    if isinstance(item, ChatMessage):
        return [item]
    if isinstance(item, BaseModel):
        item = _message_model_to_fields(item)
    if isinstance(item, Mapping) and "role" not in item:
        item = _with_message_role(item)
    if not isinstance(item, Mapping):
        raise ValueError(
            f"`[{index}]` is {describe_value(item)}; write an object with `role` and `content`"
        )
    fields = {name: content for name, content in item.items() if content is not None}
    _refuse_misspelled_fields(fields, index)
    message = {name: fields[name] for name in _MESSAGE_FIELDS if name in fields}
    if isinstance(message.get("role"), str):
        message["role"] = _ROLE_BY_ALIAS.get(message["role"], message["role"])
    reasoning = [fields[name] for name in _REASONING_FIELDS if isinstance(fields.get(name), str)]
    calls = list(_read_tool_calls(fields, index))
    results: list[MessageFields] = []
    content = fields.get("content")
    if isinstance(content, list | tuple):
        content = _read_content_parts(content, reasoning, calls, results)
    elif content is None and isinstance(fields.get("refusal"), str):
        content = fields["refusal"]
    message["content"] = content
    message.pop("tool_calls", None)
    if calls:
        message["tool_calls"] = tuple(calls)
    if reasoning:
        message["reasoning"] = "\n".join(dict.fromkeys(reasoning))
    has_only_tool_results = bool(results) and not content
    return results if has_only_tool_results else [*results, message]


def _message_model_to_fields(item: BaseModel) -> Any:
    """Return a message of LangChain's, or another model's fields, as fields."""
    module = sys.modules.get("langchain_core.messages")
    if module is None or not isinstance(item, module.BaseMessage):
        return item.model_dump()
    # Its converter parses the arguments of all calls, and raises for those of a call that is no JSON.
    (fields,) = module.convert_to_openai_messages([item])
    invalid_calls = getattr(item, "invalid_tool_calls", None)
    calls = {"tool_calls": fields.get("tool_calls"), "invalid_tool_calls": invalid_calls}
    return {**item.additional_kwargs, **fields, **calls, "function_call": None}


def _with_message_role(item: ReadOnlyFields) -> ReadOnlyFields:
    """Return a message of ShareGPT's, or a stored one of LangChain's, with its role; others unchanged.

    LangChain's is flat, with `data`, or a constructor.
    """
    if item.keys() >= {"from", "value"}:
        return {"role": item["from"], "content": item["value"]}
    inner = item.get("data", item.get("kwargs"))
    fields = inner if isinstance(inner, Mapping) else item
    path = item.get("id") if item.get("type") == "constructor" else None
    kind = str(path[-1] if isinstance(path, list) and path else item.get("type"))
    kind = kind.removesuffix("Chunk").removesuffix("Message").lower()
    if "role" in fields or kind not in _LANGCHAIN_MESSAGE_TYPES:
        return fields
    extra_fields = fields.get("additional_kwargs")
    if isinstance(extra_fields, Mapping):
        fields = {**extra_fields, **fields}
    return {**fields, "role": kind}


def _refuse_misspelled_fields(fields: MessageFields, index: int) -> None:
    for name in fields:
        if name in _MESSAGE_FIELDS or name in _REASONING_FIELDS or not isinstance(name, str):
            continue
        hint = did_you_mean(name, _MESSAGE_FIELDS, min_similarity=_MIN_FIELD_SIMILARITY)
        if hint is not None:
            raise ValueError(f"`[{index}].{name}` unknown; {hint}")


def _read_tool_calls(fields: MessageFields, index: int) -> Iterator[Any]:
    """Yield the calls in OpenAI's form, from its present or former field, or from LangChain's form."""
    calls = fields.get("tool_calls", [])
    if isinstance(fields.get("function_call"), Mapping):
        calls = [*calls, {"function": fields["function_call"]}]
    if not isinstance(calls, list | tuple):
        raise ValueError(f"`[{index}].tool_calls` is {describe_value(calls)}; write a list")
    invalid_calls = fields.get("invalid_tool_calls")
    if isinstance(invalid_calls, list):  # LangChain's, whose arguments are no JSON, or None
        calls = [*calls, *map(_fill_missing_call_fields, invalid_calls)]
    for number, call in enumerate(calls):
        if isinstance(call, BaseModel):
            call = call.model_dump()
        if not isinstance(call, Mapping):
            yield call
            continue
        function = call.get("function", call)
        if not isinstance(function, Mapping):
            yield {"function": function}
            continue
        arguments = function.get("arguments", function.get("args", {}))
        if isinstance(arguments, Mapping):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if not isinstance(arguments, str):
            raise ValueError(
                f"`[{index}].tool_calls[{number}].function.arguments` is {describe_value(arguments)}; write an object, "
                "or its JSON as text"
            )
        function_name_field = {"name": function["name"]} if "name" in function else {}
        yield {
            "id": call.get("id") or "",
            "function": {**function_name_field, "arguments": arguments},
        }


def _fill_missing_call_fields(call: Any) -> Any:
    if not isinstance(call, Mapping):
        return call
    return {name: call.get(name) or "" for name in ("id", "name", "args")}


def _read_content_parts(
    parts: Sequence[Any], reasoning: list[str], calls: list[Any], results: list[MessageFields]
) -> tuple[Any, ...] | None:
    """Return the parts that stay in the content; add reasoning, calls and results of tools to their lists."""
    content = []
    # LangChain stores a call of Anthropic's among `tool_calls`, too.
    known_call_ids = [call.get("id") for call in calls if isinstance(call, dict)]
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        elif kind in ("output_text", "input_text"):
            content.append({"type": "text", "text": part.get("text")})
        elif kind in ("thinking", "reasoning"):
            words = part.get(kind) or part.get("text")
            if isinstance(words, str):
                reasoning.append(words)
        elif kind == "tool_use":
            if part.get("id") in known_call_ids:
                continue
            arguments = json.dumps(part.get("input", {}), ensure_ascii=False)
            function = {"name": part.get("name"), "arguments": arguments}
            calls.append({"id": part.get("id") or "", "function": function})
        elif kind == "tool_result":
            result = part.get("content") or ""
            if isinstance(result, list | tuple):
                result = tuple(result)
            name = part.get("tool_use_id")
            results.append({"role": "tool", "content": result, "tool_call_id": name})
        else:
            content.append(part)
    return tuple(content) or None
