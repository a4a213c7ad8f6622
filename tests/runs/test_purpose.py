"""A run that evaluates: its judge is none of those that gave the rewards in training, and every trace says whose they
were (GEAR, D.6)."""

from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import ConfigError
from jurygraph.runs.run import Run
from jurygraph.schema import Purpose
from tests.models.judge_scripts import config, judge_reply, responses, rubric
from tests.models.server import run_server
from tests.runs.sample_runs import (
    rescore_run,
    scored_session,
    task_line,
    traces_of,
    verify_deeply,
    write_tasks,
)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, [task_line(rubric("kind"), responses("a long and kind letter"))])


def evaluate(folder: Path, tasks: Path, model: str, served: str, **purpose: Any) -> None:
    """Score as an evaluation of what `tiny` and `tiny-1` have trained, by a model that gives its name as `served`."""
    with run_server(lambda body, number: judge_reply(body, served=served)) as server:
        settings = {"kind": "evaluation", "reward_judges": ["tiny", "tiny-1"], **purpose}
        settings = {**config(server.url, cache=False), "purpose": settings}
        with scored_session(
            folder, tasks, {**settings, "model": f"openai-compatible:{server.url}#{model}"}
        ):
            pass


def test_the_judges_of_a_run_are_its_models_and_those_that_answered(
    tasks: Path, tmp_path: Path
) -> None:
    with (
        run_server(lambda body, number: judge_reply(body, served="tiny-1")) as server,
        scored_session(tmp_path / "train", tasks, config(server.url, cache=False)),
    ):
        assert [trace.purpose for trace in traces_of(tmp_path / "train")] == [None]
    for folder in (
        tmp_path / "train",
        rescore_run(tmp_path / "train", tmp_path / "again", "scale=2"),
    ):
        with Run.open(folder) as run:
            assert run.judges == ("tiny", "tiny-1")


def test_every_trace_names_the_judges_of_both(tasks: Path, tmp_path: Path) -> None:
    evaluate(tmp_path / "run", tasks, "large", "large-1")
    verify_deeply(tmp_path / "run")
    purpose = Purpose(
        kind="evaluation", judge="large", reward_judges=("tiny", "tiny-1"), same_judge=False
    )
    for folder in (tmp_path / "run", rescore_run(tmp_path / "run", tmp_path / "again", "scale=2")):
        assert [trace.purpose for trace in traces_of(folder)] == [purpose]


def test_a_judge_behind_an_alias_is_recognized_by_the_model_that_answers(
    tasks: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        ConfigError, match=r"'large' \(or who answers for it\) would evaluate what was trained on"
    ):
        evaluate(tmp_path / "refused", tasks, "large", "tiny-1")
    evaluate(tmp_path / "allowed", tasks, "large", "tiny-1", same_judge="allow")
    (trace,) = traces_of(tmp_path / "allowed")
    assert trace.purpose is not None
    assert (trace.purpose.judge, trace.purpose.same_judge) == ("large", True)
