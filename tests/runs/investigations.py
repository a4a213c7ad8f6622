"""Investigations by a scripted model: each step follows from the conversation alone, so that a run can resume."""

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jurygraph as jg
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.request import Reply, Request
from jurygraph.schema import FunctionCall, ToolCall

PRICES = {"room": "The room is 120 euros a night.", "train": "The train is 49 euros each way."}
CALLS: list[str] = []
"""Calls of the tools of this module, in order."""

TASK = jg.Task(id="trip", query="Plan a weekend.", facts={"hotels": [{"name": "Sole", "stars": 3}]})
RESPONSES = [
    jg.Response(id="trip/a", text="We stay at the Sole.\nThe room is 90 euros a night, says Ann."),
    jg.Response(id="trip/b", text="We take the train at noon.\nIt is 49 euros each way, I think."),
]


def price(item: str) -> str:
    """Return the price of an item."""
    CALLS.append(f"price {item}")
    return PRICES[item]


def dice(sides: int) -> str:
    """Return another number each time."""
    CALLS.append(f"dice {sides}")
    return f"The dice shows {len(CALLS)} of {sides}, this time."


PRICE = {"use": "tests.runs.investigations:price", "deterministic": True}
TOOLS: Sequence[Any] = (
    *("search", "read", "look_up", "calculate"),
    PRICE,
    "tests.runs.investigations:dice",
)
Script = Callable[[Request, int], Any]
"""Returns calls, as pairs of a name and arguments, or the fields of a verdict; given the request and its step."""


class Investigator(Backend):
    """A model that follows a script; `native` says whether it takes tools as such. `sent` are its requests."""

    provider = "scripted"
    model = "investigator"
    costs_nothing = True

    def __init__(self, script: Script, *, native: bool = True) -> None:
        self.capabilities = EndpointCapabilities("native", tools=native)
        self.sent: list[Request] = []
        self._script = script

    async def complete(self, request: Request, timeout: float) -> Reply:
        self.sent.append(request)
        step = sum(message.role == "assistant" for message in request.messages)
        answer = self._script(request, step)
        tokens = {"tokens_in": 20_000, "tokens_out": 1}
        if isinstance(answer, dict):
            met = answer.get("met", True)
            probability = 0.9 if met else 0.1
            item = {"reason": "so it is", "quotes": [], "met": met, "probability": probability}
            item |= answer
            return Reply(text=json.dumps({"criterion_1": item}), **tokens)
        if request.asks_for_verdict:
            return Reply(text=json.dumps({"look_up": []}), **tokens)
        if not self.capabilities.tools:
            listed = [{"tool": name, "arguments": arguments} for name, arguments in answer]
            return Reply(text=json.dumps({"look_up": listed}), **tokens)
        calls: list[ToolCall] = []
        for number, (name, arguments) in enumerate(answer):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            function = FunctionCall(name=name, arguments=text)
            calls.append(ToolCall(id=f"call{step}x{number}", function=function))
        return Reply(text="", finish="tool_calls", tool_calls=tuple(calls), **tokens)


def results_in(request: Request) -> list[str]:
    """Return the results that a request shows."""
    content = "\n".join(message.content for message in request.messages)
    return re.findall(r"<<<result (?:\w+)\n(.*?)\nresult \w+>>>", content, re.DOTALL)


def random_script(seed: int) -> Script:
    """Return a script of up to six random steps; its verdict quotes results, the response, or what nobody wrote."""

    def follow(request: Request, step: int) -> Any:
        base = next(message.content for message in request.messages if message.role == "user")
        draw = random.Random(f"{seed} {'Sole' in base} {step}")
        length = random.Random(f"{seed} {'Sole' in base}").randrange(6)
        if step < length and not request.asks_for_verdict:
            return [draw.choice(_CALLS) for _ in range(draw.choice((1, 1, 2)))]
        sources = ["nobody wrote these words", "The room is 90 euros a night", *results_in(request)]
        quotes = [draw.choice(sources)[:60] for _ in range(2)]
        return {"quotes": quotes, "met": draw.random() < 0.7}

    return follow


_CALLS: Sequence[tuple[str, Any]] = (
    ("search", {"text": "euros"}),
    ("read", {"document": "query"}),
    ("look_up", {"table": "hotels"}),
    ("calculate", {"expression": "2 * 49"}),
    ("price", {"item": "room"}),
    ("price", {"item": "train"}),
    ("price", {"item": "yacht"}),  # raises
    ("dice", {"sides": 6}),
    ("dice", {"sides": "six"}),
    ("dream", {}),
    ("search", "{broken"),
)


def judge(
    model: Any, folder: Path | None = None, *, tools: Sequence[Any] = TOOLS, **settings: Any
) -> list[jg.Trace]:
    criteria = jg.criteria(["The prices are right."], tools=list(tools))
    with jg.Jury(model=model, evaluators=[criteria], record=folder, **settings) as jury:
        return jury.score(TASK, RESPONSES, step=1)
