"""The investigate graph: a judge looks things up by tools, step by step, and then gives its verdict.

ask → look up → ask → … → conclude → ask. Each step is an ordinary call, whose request has the conversation so far, and
each result is stored before it is shown, so that a run that was killed goes on where it stopped. An investigation
concludes after `max_steps` requests, after results of `max_tokens`, and when a model only repeats itself; the request
for the verdict lets it call no tool. The question, and how the answer counts, are as without tools.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from time import monotonic
from typing import Any, Literal, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from pydantic import JsonValue

from jurygraph.graphs.lookups import Toolbox, ToolOutcome
from jurygraph.models.judge_client import (
    InvestigationResult,
    JudgeClient,
    add_to_user_message,
    with_schema_instructions,
)
from jurygraph.models.request import (
    AnsweredCall,
    Investigation,
    PlannedLookup,
    Reply,
    Request,
    StoredLookup,
    ToolResult,
    double_wrong_backslashes,
    find_json,
)
from jurygraph.prompts import RenderedPrompt, load_prompt
from jurygraph.schema import FunctionCall, Lookup, Message, ToolCall, ToolSpec, digest_of
from jurygraph.schema.frozen_model import JsonFields, JsonObject

MAX_INVESTIGATION_STEPS = 8
"""Requests of an investigation, unless an evaluator sets `max_steps`."""
MAX_TOOL_RESULT_TOKENS = 16_000
"""Tokens of all results of an investigation, unless an evaluator sets `max_tokens`."""
MAX_TOOL_CALLS_AT_ONCE = 8
_BYTES_PER_TOKEN = 4  # as the gateway estimates
_LOOK_UP_KEY = "look_up"  # the key of calls where the prompt describes the tools


@dataclass(frozen=True, slots=True)
class _InvestigationContext:
    """The context of one investigation: who asks, what may be looked up, and the request before any step."""

    client: JudgeClient
    toolbox: Toolbox
    purpose: str | None
    question: Request


class InvestigateState(TypedDict):
    """The state of an investigation: the next request, the last reply, and the results so far.

    `calls` are what the last reply asks for. `made` has the numbers of the calls that were made, by tool and arguments.
    """

    request: Request
    answered: AnsweredCall | None
    calls: Sequence[ToolCall]
    results: Sequence[ToolResult]
    made: Mapping[str, int]
    steps: int


class ToolInvestigator(Toolbox):
    """Lets a model call the tools of a toolbox before it answers, within its limits of requests and tokens."""

    async def investigate(
        self, client: JudgeClient, request: Request, purpose: str | None
    ) -> InvestigationResult:
        """Return the reply with which the model ends its investigation. Raises `Fault`."""
        # of its own: what tools read is opened for each investigation, in its event loop
        context = _InvestigationContext(client, replace(self), purpose, request)
        if client.gateway.backend.can_run_tools:
            await context.toolbox.opened  # before a model is paid for what has no files
        start: InvestigateState = {
            "request": self._make_first_request(request, client),
            "answered": None,
            "calls": (),
            "results": (),
            "made": {},
            "steps": 0,
        }
        config: Any = {"recursion_limit": 3 * self._max_steps + 4}
        end = await build().ainvoke(start, config, context=context)
        return InvestigationResult(
            _make_verdict_request(end["request"], request), end["answered"], tuple(end["results"])
        )

    @property
    def _max_steps(self) -> int:
        return self.toolset.max_steps or MAX_INVESTIGATION_STEPS

    def _make_first_request(self, request: Request, client: JudgeClient) -> Request:
        """Return the first request: with the schema of the answer in words, since the model may also call tools."""
        native = client.gateway.backend.capabilities.tools
        specs = self.toolset.specs
        passages = self.task.context or ()
        reads_hidden_passages = self.reads_documents and any(
            passage.text not in request.messages[-1].content for passage in passages
        )
        if request.form == "native":
            request = with_schema_instructions(request)
        tool_descriptions = [
            {
                "name": spec.name,
                "description": spec.description,
                "schema": json.dumps(spec.parameters, ensure_ascii=False, separators=(",", ":")),
            }
            for spec in specs
        ]
        (tool_instructions,), _ = load_prompt("investigate").render(
            tools=tool_descriptions,
            rounds=self._max_steps - 1,
            native=native,
            responses=len(self.responses),
            passages=len(passages) if reads_hidden_passages else 0,
        )
        fields = {
            "messages": add_to_user_message(request.messages, tool_instructions.content.strip()),
            "investigation": Investigation(
                tools=specs,
                native=native,
                steps_left=self._max_steps - 1,
                tokens_left=self.toolset.max_tokens or MAX_TOOL_RESULT_TOKENS,
                sources=self.sources,
            ),
        }
        if request.answer is not None and not native:
            fields["answer"] = {"anyOf": [_tool_calls_schema(specs), request.answer]}
        return request.model_copy(update=fields)


def _tool_calls_schema(specs: Sequence[ToolSpec]) -> JsonObject:
    """Return the schema of a reply that calls tools, where the endpoint has no form of its own for it."""
    alternatives: list[JsonValue] = []
    for spec in specs:
        parameters: Any = spec.parameters
        if "$defs" in parameters:  # no grammar resolves them inside another schema
            parameters = {"type": "object"}
        alternatives.append(
            {
                "type": "object",
                "properties": {"tool": {"enum": [spec.name]}, "arguments": parameters},
                "required": ["tool", "arguments"],
                "additionalProperties": False,
            }
        )
    calls: JsonObject = {
        "type": "array",
        "items": {"anyOf": alternatives},
        "minItems": 1,
        "maxItems": MAX_TOOL_CALLS_AT_ONCE,
    }
    return {
        "type": "object",
        "properties": {_LOOK_UP_KEY: calls},
        "required": [_LOOK_UP_KEY],
        "additionalProperties": False,
    }


def _make_verdict_request(request: Request, question: Request) -> Request:
    """Return a request that goes on from a conversation, and lets the model do nothing but answer."""
    assert request.investigation is not None
    investigation = request.investigation.model_copy(update={"steps_left": 0})
    return request.model_copy(
        update={
            "investigation": investigation,
            "answer": question.answer,
            "form": question.form,
        }
    )


async def _send_request(
    state: InvestigateState, runtime: Runtime[_InvestigationContext]
) -> JsonFields:
    context = runtime.context
    request = state["request"]
    before = state["answered"]
    steps = state["steps"] + 1
    purpose = context.purpose if before is None else f"step {steps}"
    after = None if before is None else before.call.id
    answered_call = await context.client.send(request, purpose, after)
    calls: Sequence[ToolCall] = ()
    if not request.asks_for_verdict:
        calls = _tool_calls_in(request, answered_call.reply)
    if calls:  # which is no sign of wrong settings
        context.client.gateway.note_read_reply(answered_call, None)
    return {"answered": answered_call, "calls": calls, "steps": steps}


def _tool_calls_in(request: Request, reply: Reply) -> Sequence[ToolCall]:
    """Return the tools that a reply calls; none if it is an answer, or neither."""
    assert request.investigation is not None
    if request.investigation.native:
        return reply.tool_calls[:MAX_TOOL_CALLS_AT_ONCE]
    try:
        value = json.loads(
            double_wrong_backslashes(find_json(reply.text, allow_words_around=True).text)
        )
    except (ValueError, RecursionError):
        return ()
    tool_call_entries = (
        value.get(_LOOK_UP_KEY) if isinstance(value, dict) and len(value) == 1 else None
    )
    calls = []
    for entry in tool_call_entries if isinstance(tool_call_entries, list) else ():
        if isinstance(entry, dict):
            arguments = json.dumps(entry.get("arguments", {}), ensure_ascii=False)
            function = FunctionCall(name=str(entry.get("tool", "")), arguments=arguments)
            calls.append(ToolCall(function=function))
    return calls[:MAX_TOOL_CALLS_AT_ONCE]


def _node_after_reply(state: InvestigateState) -> Literal["look_up", "conclude", "__end__"]:
    """Return what follows a reply: after a reply without words and calls the verdict is requested, too."""
    answered_call = state["answered"]
    assert answered_call is not None
    if state["calls"]:
        return "look_up"
    reply = answered_call.reply
    is_blank = not reply.text.strip() and reply.refusal is None and reply.finish != "length"
    return "conclude" if is_blank and not state["request"].asks_for_verdict else "__end__"


async def _look_up(state: InvestigateState, runtime: Runtime[_InvestigationContext]) -> JsonFields:
    """Make the calls that the reply asks for, one after another, and show their results in the next request."""
    context = runtime.context
    request = state["request"]
    answered_call = state["answered"]
    assert answered_call is not None
    assert request.investigation is not None
    results = list(state["results"])
    result_number_by_call = dict(state["made"])
    tokens_left = request.investigation.tokens_left
    marks = dict.fromkeys(request.marks)
    shown_result_texts = []
    outcomes = set()
    for index, call in enumerate(state["calls"]):
        stored_lookup = await _run_tool_call(
            context, answered_call.call.id, index, call, result_number_by_call
        )
        results.append(context.toolbox.to_tool_result(call, stored_lookup, number=len(results) + 1))
        result_number_by_call.setdefault(call.normalized_text, len(results))
        outcomes.add(stored_lookup.lookup.outcome)
        tokens_left -= len(stored_lookup.result.encode()) // _BYTES_PER_TOKEN
        rendered_lookup = _render_tool_result(context.client, len(results), stored_lookup)
        marks.update(dict.fromkeys(rendered_lookup.marks))
        shown_result_texts.append(rendered_lookup.messages[0].content.strip())
    limits = {
        # a model that only repeats itself has nothing to look up
        "steps_left": 0 if outcomes == {"repeated"} else request.investigation.steps_left - 1,
        "tokens_left": max(0, tokens_left),
    }
    reply_messages = _messages_for_next_step(
        answered_call.reply, state["calls"], shown_result_texts, request.investigation.native
    )
    fields = {
        "messages": (*request.messages, *reply_messages),
        "marks": tuple(marks),
        "investigation": request.investigation.model_copy(update=limits),
    }
    return {
        "request": request.model_copy(update=fields),
        "results": results,
        "made": result_number_by_call,
    }


async def _run_tool_call(
    context: _InvestigationContext,
    call_id: str,
    index: int,
    call: ToolCall,
    result_number_by_call: Mapping[str, int],
) -> StoredLookup:
    """Return what becomes of a call, as it is stored: a recorded one is not made again."""
    tool = context.toolbox.toolset.tools.get(call.name)
    version = "" if tool is None else tool.version
    arguments = call.function.arguments
    key = digest_of([call_id, index, call.name, version, arguments])
    planned_lookup = Lookup(
        id=key,
        call=call_id,
        tool="" if tool is None else call.name,
        version=version,
        deterministic=tool is None or tool.deterministic,
        result="",
        length=0,
    )
    words = arguments if tool is not None else call.normalized_text
    redactor = context.client.gateway.redactor
    words = redactor.redact_text(words)

    async def make(is_gated: bool) -> StoredLookup:
        start = monotonic()
        earlier = result_number_by_call.get(call.normalized_text)
        if earlier is None:
            tool_outcome = await context.toolbox.run(call, redactor, is_gated)
        else:
            text = f"it was made before, as call {earlier}, see its result there"
            tool_outcome = ToolOutcome("repeated", text, len(text))
        fields = {
            "outcome": tool_outcome.outcome,
            "result": sha256(tool_outcome.text.encode()).hexdigest(),
            "length": tool_outcome.length,
            "duration": monotonic() - start,
        }
        return StoredLookup(planned_lookup.model_copy(update=fields), words, tool_outcome.text)

    return await context.client.look_up(PlannedLookup(planned_lookup, words, make))


def _render_tool_result(
    client: JudgeClient, number: int, stored_lookup: StoredLookup
) -> RenderedPrompt:
    note = ""
    if stored_lookup.lookup.outcome == "cut":
        note = (
            f"These are the first {len(stored_lookup.result):,} of {stored_lookup.lookup.length:,} characters: ask for "
            "less to see other parts."
        )
    return client.render(
        load_prompt("result"),
        number=number,
        tool=stored_lookup.lookup.tool,
        outcome=stored_lookup.lookup.outcome,
        note=note,
        result=stored_lookup.result,
    )


def _messages_for_next_step(
    reply: Reply, calls: Sequence[ToolCall], shown_result_texts: Sequence[str], native: bool
) -> tuple[Message, ...]:
    """Return the messages of a reply that calls tools and of their results."""
    if not native:
        results = "\n\n".join(shown_result_texts)
        return (
            Message(role="assistant", content=reply.text),
            Message(role="user", content=results),
        )
    tool_calls_message = Message(role="assistant", content=reply.text, tool_calls=tuple(calls))
    calls_with_results = zip(calls, shown_result_texts, strict=True)
    answers = [
        Message(role="tool", content=text, tool_call_id=call.id)
        for call, text in calls_with_results
    ]
    return (tool_calls_message, *answers)


def _node_after_lookups(state: InvestigateState) -> Literal["ask", "conclude"]:
    investigation = state["request"].investigation
    assert investigation is not None
    return "ask" if investigation.steps_left and investigation.tokens_left else "conclude"


async def _ask_for_final_verdict(
    state: InvestigateState, runtime: Runtime[_InvestigationContext]
) -> JsonFields:
    """Ask for the verdict, after the results and not in their place."""
    request = _make_verdict_request(state["request"], runtime.context.question)
    (message,) = load_prompt("conclude").render().messages
    messages = add_to_user_message(request.messages, message.content.strip())
    return {"request": request.model_copy(update={"messages": messages})}


@cache
def build() -> CompiledStateGraph[
    InvestigateState, _InvestigationContext, InvestigateState, InvestigateState
]:
    """Return the compiled graph: ask → look_up → ask → … → conclude → ask."""
    graph = StateGraph(InvestigateState, context_schema=_InvestigationContext)
    graph.add_node("ask", _send_request)
    graph.add_node("look_up", _look_up)
    graph.add_node("conclude", _ask_for_final_verdict)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", _node_after_reply)
    graph.add_conditional_edges("look_up", _node_after_lookups)
    graph.add_edge("conclude", "ask")
    return graph.compile(name="investigate")
