"""The examples' plans, traces and rewards: the bits recorded in `tests/data/recorded_examples.json`.

How groups are batched, and how fast, must not change a bit of them. `make test` compares the first tasks of each, and
`make test-exhaustive` all. If a change of meaning is intended, record them again with
`python -m tests.test_recorded_examples`.
"""

import json
import sys
from collections.abc import Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from examples.panel.scripted_judge import NAME, replied
from jurygraph import Config, Jury, jury
from jurygraph.graphs.groups import split_into_batches
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.request import Reply, Request
from jurygraph.sources import open_task_source, read_config
from tests.examples import some_or_all

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "data" / "recorded_examples.json"
EXAMPLES = {
    "maths": ("maths/tasks.jsonl", "maths/jury.yaml"),
    "maths by specialists": ("maths/tasks.jsonl", "maths/macrm.yaml"),
    "group trip": ("group_trip/tasks.jsonl.gz", "group_trip/jury.yaml"),
    "group trip in prose, without a model": ("group_trip/prose.jsonl.gz", "group_trip/prose.yaml"),
    "rubric": ("rubric/tasks.jsonl.gz", "rubric/jury.yaml"),
    "rubric, read": ("rubric/tasks.jsonl.gz", "rubric/read.yaml"),
    "reviewers, without a model": ("reviewers/tasks.jsonl.gz", "reviewers/jury.yaml"),
    "constructors, without a model": ("reviewers/tasks.jsonl.gz", "reviewers/constructors.yaml"),
    "monitor": ("monitor/tasks.jsonl.gz", "monitor/jury.yaml"),
    "panel": ("panel/tasks.jsonl", "panel/jury.yaml"),
}
"""By name: the files of tasks and of the config."""


class InProcessJudge(Backend):
    """The scripted judge of the panel, without a server, whose address would be part of every request."""

    provider, model = "scripted", NAME
    capabilities = EndpointCapabilities("native")
    costs_nothing = True

    async def complete(self, request: Request, timeout: float) -> Reply:
        messages = [
            {"role": message.role, "content": message.content} for message in request.messages
        ]
        reply = replied(
            {"messages": messages, "response_format": {"json_schema": {"schema": request.answer}}}
        )
        return Reply(text=json.dumps(reply, ensure_ascii=False), finish="stop", served=NAME)


QUICK = [("panel", 7)]  # the example in which every family takes part


PARTS = {"first": 12, "whole": sys.maxsize}
"""Numbers of tasks by what they are called in the recorded file."""


@some_or_all("part", "first", "whole")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_the_recorded_bits(
    name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JURYGRAPH_FENCE_KEY", "")
    recorded: Mapping[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert digests(*EXAMPLES[name], PARTS[part]) == recorded[name][part]


@pytest.mark.landing
@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, marks=() if (name, size) in QUICK else pytest.mark.exhaustive)
        for name in ("maths by specialists", "group trip", "rubric", "panel")
        for size in (1, 2, 7, 64)
    ],
)
def test_the_size_of_batches_changes_no_bit(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        jury,
        "split_into_batches",
        lambda items, _count, _size: split_into_batches(items, lambda _: 1, size),
    )
    test_an_example_has_the_recorded_bits(name, "whole", monkeypatch)


def digests(tasks: str, config: str, count_of_tasks: int) -> dict[str, Any]:
    """Return the digests of the plans, traces and rewards of the first tasks, and the number of traces."""
    plans, traces, rewards, count = sha256(), sha256(), sha256(), 0
    with (
        _open(config) as made,
        open_task_source(ROOT / "examples" / tasks, defaults=made.config.task_defaults) as source,
    ):
        for scored in made.score_many(islice(source.pairs(), count_of_tasks)):
            plan = scored[0].plan
            assert plan is not None
            plans.update(plan.digest.encode())
            for trace in scored:
                traces.update(trace.digest.encode())
                rewards.update(
                    f"{trace.response_id} {trace.reward.status} {_bits(trace.reward.value)}\n".encode()
                )
                count += 1
    return {
        "traces": count,
        "plans": plans.hexdigest(),
        "trace": traces.hexdigest(),
        "rewards": rewards.hexdigest(),
    }


def _open(config: str) -> Jury:
    path = ROOT / "examples" / config
    if not config.startswith("panel"):
        return Jury.from_config(path)
    judge: Any = InProcessJudge()
    uncached: Config = read_config(path, judge)
    calls = uncached.calls.model_copy(update={"cache": False})
    return Jury(uncached.model_copy(update={"calls": calls}), code_folder=path.parent)


def _bits(value: float | None) -> str:
    return "none" if value is None else value.hex()


if __name__ == "__main__":
    found = {
        name: {part: digests(*files, count) for part, count in PARTS.items()}
        for name, files in EXAMPLES.items()
    }
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
