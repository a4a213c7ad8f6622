"""The jury that a process opens when it scores first: which session of a training it is."""

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.graphs.groups import Group
from jurygraph.integrations.lazy_jury import LazyJury
from jurygraph.integrations.trl import reward_function
from jurygraph.runs.recorder import open_open_ended_run
from jurygraph.runs.store.folder import LEDGER_FILE
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.workflows.erasure import erase
from tests.integrations.trainers import CONFIG, QUESTIONS, Trainer, texts
from tests.rows import all_rows


def create_ledger_without_records(folder: Path) -> None:
    """Leave what a process leaves that is killed before the header of its run is durable."""
    folder.mkdir()
    Ledger.create(folder / LEDGER_FILE)


def create_run_without_groups(folder: Path) -> None:
    with jg.Jury(**CONFIG) as jury, open_open_ended_run(folder, jury) as run:
        run.ledger.commit()


@all_rows("leave_behind", [create_ledger_without_records, create_run_without_groups])
def test_a_record_without_a_group_is_begun_by_the_first_session(
    leave_behind: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / leave_behind.__name__
    leave_behind(folder)
    assert (folder / LEDGER_FILE).is_file()
    jury = LazyJury(CONFIG, folder)
    assert jury.session == 1
    response = jg.Response(text="it is 0.5", labels={"step": 1})
    group = Group(jg.Task(id="a", query="2 + 2?"), [response])
    assert [trace.reward.value for (trace,) in asyncio.run(jury.score([group]))] == [0.5]
    jury.close()
    assert caplog.text == ""


def test_a_function_that_is_pickled_begins_a_session_with_its_first_batch(tmp_path: Path) -> None:
    function: Any = reward_function(CONFIG, record=tmp_path / "run")
    for _ in range(2):
        columns = Trainer().columns(1)
        answers = texts([0.5, 1.0])
        asyncio.run(function(prompts=[QUESTIONS[0]] * 2, completions=answers, **columns))
        function.close()
        function = pickle.loads(pickle.dumps(function))
    with jg.Run.open(tmp_path / "run") as run:
        sessions = [trace.labels.get("session") for trace in run.traces()]
    assert sessions == [None, None, 2, 2]


def test_sessions_count_on_where_a_response_of_the_last_group_was_erased(tmp_path: Path) -> None:
    def train() -> int:
        jury = LazyJury(CONFIG, tmp_path / "run")
        session = jury.session
        labels = {"step": 1} if session == 1 else {"step": 1, "session": session}
        responses = [jg.Response(text=f"it is {value}", labels=labels) for value in (0.5, 1.0)]
        asyncio.run(jury.score([Group(jg.Task(id="a", query="2 + 2?"), responses)]))
        jury.close()
        return session

    assert [train(), train()] == [1, 2]
    erase(tmp_path / "run", "response", "a@2/1", "asked for")
    assert train() == 3
