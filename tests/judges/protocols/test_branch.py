"""In a branch, an earlier request gets its earlier reply, whatever the model would reply now."""

import json
from itertools import chain, product, repeat
from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from tests.examples import one_in
from tests.judges.protocols.trip import ADAPTIVE, HOMES, PLAN, UNIFORM, decomposed, trip
from tests.models.server import Answer, reply_with, run_server
from tests.runs.sample_runs import write_tasks
from tests.runs.test_calls import run_session

FIRST, LATER = decomposed([10, 5.5, 1], [0.5, 0.3, 0.2]), decomposed([2, 2, 2], [0.5, 0.3, 0.2])


def replying_in_turn(*replies: Any) -> Any:
    """Return a model that replies these in turn, and then `LATER`."""
    queue = chain(replies, repeat(LATER))

    def script(body: dict[str, Any], number: int) -> Answer:
        one = next(queue)
        return reply_with(one if isinstance(one, str) else json.dumps(one))

    return script


ORDERS = ((ADAPTIVE, UNIFORM), (UNIFORM, ADAPTIVE))
REPLIES = ([FIRST], ["no idea", "none"])


@pytest.mark.parametrize(
    ("first", "before", "after", "cache"),
    one_in(
        3,
        ((first, *order, cache) for first, order, cache in product(REPLIES, ORDERS, (True, False))),
    ),
)
def test_the_second_decomposed_judge_gets_the_prompt_of_the_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: list[Any],
    before: str,
    after: str,
    cache: bool,
) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    line = trip(3).model_dump(mode="json", exclude_defaults=True) | {
        "responses": [{"id": "r", "text": PLAN}]
    }
    tasks = write_tasks(tmp_path, [line])
    with run_server(replying_in_turn(*first)) as server:
        config: dict[str, Any] = {
            "model": f"openai-compatible:{server.url}#tiny",
            "calls": {"cache": cache},
        }
        run_session(
            tmp_path / "one",
            tasks,
            {**config, "evaluators": [before], "reward": {HOMES[before]: 1.0}},
        )
        count = server.count
        both = {
            **config,
            "evaluators": [before, after],
            "reward": {HOMES[before]: 1.0, HOMES[after]: 1.0},
        }
        run_session(tmp_path / "two", tasks, both, tmp_path / "one")
        assert server.count == count == len(first)
    (trace,) = Run.open(tmp_path / "two").traces()
    assert len({verdict.call for verdict in trace.verdicts}) == 1
    assert {verdict.status for verdict in trace.verdicts} == {"ok" if len(first) == 1 else "failed"}
    verify_deep(Run.open(tmp_path / "two"), lambda count: None)
