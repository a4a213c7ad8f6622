"""`tools.match` against openevals' evaluators, on trajectories drawn by a seeded generator."""

import json
import random
from itertools import product
from typing import Any

import pytest
from openevals.trajectory.match import create_trajectory_match_evaluator

from jurygraph.agents.roles import EvaluatorInput
from jurygraph.agents.trajectory.evaluators import ToolsMatch
from jurygraph.schema import Response, TaskView
from tests.examples import some_or_all

MODES = ("strict", "unordered", "subset", "superset")
ARGUMENT_MODES = ("exact", "ignore", "subset", "superset")
OVERRIDES: tuple[dict[str, Any], ...] = (
    {},
    {"book": "ignore", "look": ["to.city"]},
    {"look": "subset", "book": ["to.city", "n"]},
)
Messages = list[dict[str, Any]]


def draw_arguments(draw: random.Random) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if draw.random() < 0.7:
        arguments["to"] = draw.choice([{"city": "SF"}, {"city": "LA"}, "SF"])
    if draw.random() < 0.5:
        arguments["n"] = draw.choice([1, 2])
    return arguments


def draw_messages(draw: random.Random) -> Messages:
    messages: Messages = []
    for _ in range(draw.randint(1, 3)):
        calls = [
            {
                "id": f"{len(messages)}.{number}",
                "type": "function",
                "function": {
                    "name": draw.choice(["book", "look"]),
                    "arguments": json.dumps(draw_arguments(draw)),
                },
            }
            for number in range(draw.choice([0, 1, 1, 2]))
        ]
        messages.append({"role": "assistant", "content": "Well.", "tool_calls": calls})
        if not calls:
            del messages[-1]["tool_calls"]
        for call in calls:
            messages.append({"role": "tool", "content": "done", "tool_call_id": call["id"]})
    return messages


def change(messages: Messages, draw: random.Random) -> Messages:
    """Return a trajectory that is near: shuffled calls, a call less, or other arguments."""
    changed = json.loads(json.dumps(messages))
    calls = [message["tool_calls"] for message in changed if message.get("tool_calls")]
    if calls:
        chosen = draw.choice(calls)
        kind = draw.randrange(4)
        if kind == 0:
            draw.shuffle(chosen)
        elif kind == 1:
            chosen[0]["function"]["arguments"] = json.dumps(draw_arguments(draw))
        elif kind == 2:
            draw.shuffle(calls)
    return changed


def match(messages: Messages, reference: Messages, **params: Any) -> float | None:
    evaluator = ToolsMatch(**params)
    task = TaskView(id="t", query="Book.", reference_messages=reference)
    response = Response(id="r", messages=messages).view("without_reasoning")
    question = evaluator.question(task)
    return evaluator.answer(EvaluatorInput(question, task, (response,), ({},))).score


def count_calls(messages: Messages) -> int:
    return sum(len(message.get("tool_calls", ())) for message in messages)


@some_or_all("trajectories", 40, 200)
@pytest.mark.parametrize(("mode", "arguments"), list(product(MODES, ARGUMENT_MODES)))
def test_it_agrees_with_openevals(mode: Any, arguments: Any, trajectories: int) -> None:
    draw = random.Random(7)
    matched = 0
    for _ in range(trajectories):
        reference = draw_messages(draw)
        messages = change(reference, draw) if draw.random() < 0.8 else draw_messages(draw)
        for overrides in OVERRIDES:
            theirs = create_trajectory_match_evaluator(
                trajectory_match_mode=mode,
                tool_args_match_mode=arguments,
                tool_args_match_overrides=overrides,
            )(outputs=messages, reference_outputs=reference)
            ours = match(
                messages,
                reference,
                trajectory_match_mode=mode,
                tool_args_match_mode=arguments,
                tool_args_match_overrides=overrides,
            )
            is_exception = mode == "subset" and not count_calls(messages)
            if is_exception:
                assert ours == float(not count_calls(reference))
            else:
                assert ours == float(theirs["score"])
            matched += ours == 1.0
    assert trajectories / 10 < matched < trajectories * len(OVERRIDES)
