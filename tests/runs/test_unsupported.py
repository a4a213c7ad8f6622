"""Runs whose judge misquotes: what it was told and what came of it is in the run, and is not asked again."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph import RecordedVerdict
from jurygraph.errors import BudgetExceeded
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from tests.models.judging import asked_for, quotable, response_in
from tests.models.server import Answer, said, serving, status
from tests.runs.made import checked, write_tasks
from tests.runs.test_calls import kept, lines, plain, sit


def misquoting(body: dict[str, Any], number: int) -> Answer:
    """Quotes what nobody wrote; once told, it does better, or worse, or nothing, by the number in the response."""
    told, text = len(body["messages"]) > 2, response_in(body)
    quotes = quotable(text) if told and "try 0" in text else [f"what nobody wrote, {told}"]
    if told and "letter 1" in text and "try 1" in text:
        return said("I cannot.")
    one = {"reason": "so it is", "quotes": quotes, "met": True, "probability": 0.75}
    return said(json.dumps(dict.fromkeys(asked_for(body), one)))


def verdicts_of(folder: Path) -> list[RecordedVerdict]:
    with closing(Run.open(folder)) as run:
        return [verdict for trace in run.traces() for verdict in trace.verdicts]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, lines(2))


def test_a_run_holds_what_was_told_and_verifies_without_the_model(tasks: Path, tmp_path: Path) -> None:
    with serving(misquoting) as server:
        sit(tmp_path / "run", tasks, plain(server))
        assert server.count == len(kept(tmp_path / "run")) == 2 * 2 * 2 * 2
    checked(tmp_path / "run")
    with closing(Run.open(tmp_path / "run")) as run:
        outcomes = {t.response_id: {(v.status, v.failure and v.failure.kind) for v in t.verdicts} for t in run.traces()}
        found = verify_deep(run, lambda count: None)
    good, bad = {("ok", None)}, {("failed", "unsupported")}
    assert outcomes == {"t0/r0": good, "t0/r1": bad, "t1/r0": good, "t1/r1": bad}
    assert (found.recomputed, found.quotations, found[2:]) == (2 * 2 * 5, 2 * 5, (0, 0, 0))


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_run_that_ends_between_two_answers_goes_on_with_the_first(tasks: Path, tmp_path: Path, most: int) -> None:
    with serving(misquoting) as server:
        sit(tmp_path / "whole", tasks, plain(server))
        whole = server.count
        with pytest.raises(BudgetExceeded):
            sit(tmp_path / "run", tasks, plain(server), max_calls=most)
        assert server.count == whole + most
        sit(tmp_path / "run", tasks, plain(server))
        assert server.count == 2 * whole
    assert verdicts_of(tmp_path / "run") == verdicts_of(tmp_path / "whole")


def test_our_own_trouble_in_between_is_told_as_such(tasks: Path, tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        return status(400) if len(body["messages"]) > 2 else misquoting(body, number)

    with serving(script) as server:
        sit(tmp_path / "run", tasks, plain(server))
    with closing(Run.open(tmp_path / "run")) as run:
        traces = list(run.traces())
        found = verify_deep(run, lambda count: None)
    assert {v.failure and v.failure.cause for t in traces for v in t.verdicts} == {"infrastructure"}
    assert [len(trace.calls) for trace in traces] == [2, 2, 2, 2]
    assert found.infrastructure_failures == 2 * 2 * 5


def test_what_is_erased_takes_what_was_told_of_it(tasks: Path, tmp_path: Path) -> None:
    with serving(misquoting) as server:
        sit(tmp_path / "run", tasks, plain(server))
    erase(tmp_path / "run", "response", "t1/r1", "")
    text = "Dear reader of letter 1, this is try 1."
    assert all(text not in request.model_dump_json() for request, _ in kept(tmp_path / "run"))
    assert len(kept(tmp_path / "run")) == 3 * 2 * 2
    checked(tmp_path / "run")
