"""A scripted judge in the place of a model: it acts by rules, from what a request shows, and knows nothing else.

Without tools it believes the prices that a plan states. With tools it looks each of them up, adds them up, and quotes
what it found. As small local models, it reads no more than 8,192 tokens. It is no model: what a real one would say
with and without tools is for you to find out, with --model.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

CONTEXT = 8_192
CHARACTERS_PER_TOKEN = 4
MAX_CALLS = 8
"""Calls in one reply."""
CHANGES = ("book", "cancel", "update")
"""How the names of tools begin that change a booking."""
LOSSES = ("error", "failed", "rejected", "dropped")
"""What a log calls rows that were not written."""
_FENCE = r"<<<{name} (?P<mark>\w+)\n(?P<inside>.*?)\n{name} (?P=mark)>>>"
_RESULT = re.compile(
    r"^(?:Result|Call) (?P<number>\d+)\b[^\n]*\n\n" + _FENCE.format(name="result"), re.M | re.S
)
_ITEM = re.compile(r"^(?P<name>\w+):\n" + _FENCE.format(name="item"), re.M | re.S)
_ROW = re.compile(r"^(?P<line>\d+)\| (?P<words>.*)$", re.M)
_PLANNED = re.compile(r"^- (?P<purpose>[^:\n]+): (?P<name>.+), \$(?P<price>\d+)$", re.M)


class ToolUse(NamedTuple):
    """A call of a tool, and its result once there is one."""

    tool: str
    arguments: Mapping[str, Any]
    result: str = ""


class Finding(NamedTuple):
    """What the judge says of a criterion; `met` is None where it cannot tell."""

    met: bool | None
    reason: str
    quotes: Sequence[str]


class Question(NamedTuple):
    """What a request shows: the task, the response, the criteria by name, and what was looked up so far."""

    task: str
    response: str
    criteria: Mapping[str, str]
    has_tools: bool
    looked_up: Sequence[ToolUse]

    def missing(self, wanted: Sequence[ToolUse]) -> list[ToolUse]:
        """Return the calls that were not made yet, each once."""
        calls = [(use.tool, use.arguments) for use in self.looked_up]
        missing = []
        for use in wanted:
            if (use.tool, use.arguments) not in calls:
                calls.append((use.tool, use.arguments))
                missing.append(use)
        return missing

    def result_of(self, wanted: ToolUse) -> str:
        """Return what a call found; nothing if it was not made, or failed."""
        for use in self.looked_up:
            if (use.tool, use.arguments) == (wanted.tool, wanted.arguments):
                return use.result
        return ""

    def rows(self) -> Iterator[tuple[int, str]]:
        """Yield the rows of the response that were found, with their line numbers."""
        for use in self.looked_up:
            for row in _ROW.finditer(use.result):
                yield int(row["line"]), row["words"]


class ContextExceededError(Exception):
    """The error of a server whose model cannot read so much."""

    status_code = 400
    code = "context_length_exceeded"


class ScriptedJudge(BaseChatModel):
    """A chat model of langchain-core that follows the script."""

    model_name: str = "scripted-judge"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: Any = None,
        run_manager: Any = None,
        **settings: Any,
    ) -> ChatResult:
        tokens = sum(len(str(message.content)) for message in messages) // CHARACTERS_PER_TOKEN
        if tokens > CONTEXT:
            raise ContextExceededError(f"maximum context length is {CONTEXT} tokens, not {tokens}")
        reply = json.dumps(reply_to(read_question(messages)), ensure_ascii=False)
        usage = {"input_tokens": tokens, "output_tokens": len(reply) // CHARACTERS_PER_TOKEN}
        usage["total_tokens"] = sum(usage.values())
        message = AIMessage(reply, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


JUDGE = ScriptedJudge()


def read_question(messages: Sequence[BaseMessage]) -> Question:
    texts = [str(message.content) for message in messages]
    shown = texts[1]
    results = {
        int(found["number"]): found["inside"]
        for text in texts[2:]
        for found in _RESULT.finditer(text)
    }
    looked_up: list[ToolUse] = []
    for message in messages:
        calls = json.loads(str(message.content))["look_up"] if message.type == "ai" else []
        for call in calls:
            result = results.get(len(looked_up) + 1, "")
            looked_up.append(ToolUse(call["tool"], call["arguments"], result))
    return Question(
        task=_fenced("task", shown),
        response=_fenced("response", shown),
        criteria={item["name"]: item["inside"] for item in _ITEM.finditer(shown)},
        has_tools='"look_up"' in shown and "No more tools can be called" not in texts[-1],
        looked_up=looked_up,
    )


def _fenced(name: str, text: str) -> str:
    found = re.search(_FENCE.format(name=name), text, re.S)
    return "" if found is None else found["inside"]


def reply_to(question: Question) -> dict[str, Any]:
    """Return the calls that are still to be made, or else the verdict on each criterion."""
    judgements = {name: _rule_for(text) for name, text in question.criteria.items()}
    if question.has_tools:
        for rule in judgements.values():
            calls = question.missing(rule.wanted(question))
            if calls:
                listed = [{"tool": use.tool, "arguments": use.arguments} for use in calls]
                return {"look_up": listed[:MAX_CALLS]}
    verdicts = {}
    for name, rule in judgements.items():
        finding = rule.judge(question)
        probability = None if finding.met is None else 0.9 if finding.met else 0.1
        fields = {"reason": finding.reason, "quotes": list(finding.quotes)}
        verdicts[name] = {**fields, "met": finding.met, "probability": probability}
    return verdicts


class Rule(NamedTuple):
    """How the script goes about a criterion that has some words: what it looks up, and what it says then."""

    words: str
    wanted: Callable[[Question], list[ToolUse]]
    judge: Callable[[Question], Finding]


def _rule_for(criterion: str) -> Rule:
    for rule in RULES:
        if rule.words in criterion:
            return rule
    raise ValueError(f"the script has no rule for {criterion!r}")


# Plans of trips


class PlannedItem(NamedTuple):
    """A line of a plan, its price there, and the price that was looked up, with the words that have it."""

    line: str
    price: int
    found: int
    words: str


def _price_call(purpose: str, name: str) -> ToolUse:
    if purpose.startswith("flight"):
        return ToolUse("look_up", {"table": "flights", "where": {"Flight Number": name}})
    return ToolUse("price", {"item": name})


def _price_calls(question: Question) -> list[ToolUse]:
    return [
        _price_call(line["purpose"], line["name"]) for line in _PLANNED.finditer(question.response)
    ]


def _planned_items(question: Question) -> list[PlannedItem]:
    """Return the lines of a plan; where no price was found, the plan is believed."""
    items = []
    for line in _PLANNED.finditer(question.response):
        result = question.result_of(_price_call(line["purpose"], line["name"]))
        found = re.search(r'[^\n]*: \$(?P<table>\d+) a \w+|"Price":\s*(?P<flight>\d+)', result)
        written = int(line["price"])
        if found is None:
            items.append(PlannedItem(line[0], written, written, ""))
        else:
            price = int(found["table"] or found["flight"])
            items.append(PlannedItem(line[0], written, price, found[0]))
    return items


def _sum_call(question: Question) -> ToolUse:
    prices = [str(item.found) for item in _planned_items(question)]
    return ToolUse("calculate", {"expression": " + ".join(prices)})


def _calls_for_sum(question: Question) -> list[ToolUse]:
    calls = question.missing(_price_calls(question))
    return calls or [_sum_call(question)]


def _judge_prices(question: Question) -> Finding:
    items = _planned_items(question)
    wrong = [item for item in items if item.price != item.found]
    if not wrong:
        return Finding(True, "No price is another one.", _quotes(items[:1]))
    reason = f"{wrong[0].line.removeprefix('- ')}: it is ${wrong[0].found}."
    return Finding(False, reason, _quotes(wrong[:1]))


def _judge_budget(question: Question) -> Finding:
    items = _planned_items(question)
    total = sum(item.found for item in items)
    budget = int(re.findall(r"\$([\d,]+)", question.task)[-1].replace(",", ""))
    reason = f"The plan costs ${total:,}, and the budget is ${budget:,}."
    stated = question.response.splitlines()[-1]
    result = question.result_of(_sum_call(question))
    return Finding(total <= budget, reason, [words for words in (stated, result) if words])


def _quotes(items: Sequence[PlannedItem]) -> list[str]:
    """Return the lines of a plan, and what was found on them."""
    return [words for item in items for words in (item.line, item.words) if words]


# Conversations with tools


def _calls_for_turns(question: Question) -> list[ToolUse]:
    """Search for messages to the user and for calls that change a booking, then read the turn that has both."""
    calls = [ToolUse("search", {"text": f"assistant → {change}"}) for change in CHANGES]
    calls.append(ToolUse("search", {"text": "assistant:"}))
    broken = _broken_turn(question)
    if question.missing(calls) or broken is None:
        return calls
    first, last = broken
    return [*calls, ToolUse("read", {"from_line": first, "to_line": last})]


def _broken_turn(question: Question) -> tuple[int, int] | None:
    """Return the lines in which the message and the call of the first turn that has both begin."""
    messages: dict[str, int] = {}
    for line, words in sorted(question.rows()):
        turn = re.match(r"\[(\d+)\] assistant(?P<writes>:)?(?: → (?P<tool>\w+))?", words)
        if turn is None:
            continue
        if turn["writes"]:
            messages[turn[1]] = line
        elif turn["tool"].startswith(CHANGES) and turn[1] in messages:
            return messages[turn[1]], line
    return None


def _judge_turns(question: Question) -> Finding:
    if not question.looked_up:
        return Finding(None, "The turns were not read.", ())
    broken = _broken_turn(question)
    if broken is None:
        return Finding(True, "No turn does both.", ())
    rows = dict(question.rows())
    turn = rows[broken[0]].partition("]")[0].removeprefix("[")
    return Finding(False, f"Turn {turn} does both.", [rows[broken[0] + 1]])


# Logs


def _calls_for_losses(question: Question) -> list[ToolUse]:
    return [ToolUse("search", {"text": word}) for word in LOSSES]


def _judge_losses(question: Question) -> Finding:
    if not question.looked_up:
        return Finding(None, "The log was not searched.", ())
    lost = [words for _, words in question.rows() if any(word in words for word in LOSSES)]
    if lost:
        return Finding(False, "A batch was not written as a whole.", lost[:1])
    return Finding(True, "No line speaks of a loss.", [words for _, words in question.rows()][:1])


RULES = (
    Rule("Each price", _price_calls, _judge_prices),
    Rule("no more than the budget", _calls_for_sum, _judge_budget),
    Rule("respond to the user", _calls_for_turns, _judge_turns),
    Rule("every row that it read", _calls_for_losses, _judge_losses),
)
