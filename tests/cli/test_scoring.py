"""What `score` and the studies that score share: the command that repeats failures, and the runs of a study."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.render import text
from jurygraph.cli.scoring import ScoreOptions, StudyRun, score_study
from jurygraph.errors import BudgetExceeded, InputError
from jurygraph.runs.run import Run
from jurygraph.schema import Config
from jurygraph.sources import TableColumns
from tests.cli.conftest import folder_contents, write_project
from tests.command import run_command
from tests.models.judge_scripts import requested_items
from tests.models.server import Answer, reply_with, run_server
from tests.runs.judge import judge_by_request
from tests.runs.test_calls import judge_config


def lines(*texts: str) -> list[bytes]:
    responses = [{"id": f"t/{content}", "text": content} for content in texts]
    return [json.dumps({"id": "t", "query": "?", "responses": responses}).encode() + b"\n"]


def as_it_is(config: Config) -> Config:
    return config


def test_the_retry_command_has_the_same_options_and_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ScoreOptions(
        tasks="tasks.jsonl",
        run=Path("a run"),
        config=Path("jury.yaml"),
        model="gguf:a judge",
        settings=["scale=2", "clip=[0, 1]"],
        limit=2,
        max_calls=100,
        rewards_from=[Path("old")],
        allow_files_outside=True,
    )
    monkeypatch.chdir(tmp_path)
    words = "--config jury.yaml --set scale=2 --set 'clip=[0, 1]'"
    words += " --model 'gguf:a judge' --limit 2 --max-calls 100 --branch 'a run' --out 'a run-2'"
    words += " --rewards-from old --allow-files-outside"
    assert options.retry_command == f"jurygraph score tasks.jsonl {words}"
    Path("a run-2").mkdir()
    assert "--out 'a run-3'" in replace(options).retry_command, "the other is there now"
    table = TableColumns(prompt="question", response=("one", "a b"))
    here = ScoreOptions(tasks="tasks.jsonl", run=Path("."), columns=table)
    columns = "--prompt-column question --response-column one --response-column 'a b'"
    assert (
        here.retry_command == f"jurygraph score tasks.jsonl {columns} --branch . --out {tmp_path}-2"
    )


def test_the_progress_of_a_judge_is_also_in_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_MIN_SECONDS_BETWEEN_REPORTS", 0.0)
    criteria = {"use": "criteria", "params": {"criteria": ["It is kind.", "It is short."]}}
    config = tmp_path / "jury.yaml"
    with run_server(judge_by_request) as server:
        for settings, progress in (
            (
                judge_config(server) | {"evaluators": [criteria]},
                "2 of 2 responses (100%); 2 requests",
            ),
            ({"evaluators": ["maths.format"]}, "2 of 2 responses (100%)"),
        ):
            config.write_text(json.dumps(settings))
            run = StudyRun(f"run {len(progress)}", lines("a", "b"), as_it_is)
            score_study(tmp_path, [run], ScoreOptions(tasks="", run=tmp_path, config=config))
            assert f"scoring: {progress}\n" in capsys.readouterr().err


def test_the_cost_comes_first_and_what_is_scored_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def count(body: dict[str, Any], number: int) -> Answer:
        asked.append(number)
        found = {"reason": "no", "quotes": [], "met": False, "probability": 0.1}
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), found)))

    with run_server(count) as server:
        use = {"use": "criteria", "params": {"criteria": ["It is kind."]}}
        path = tmp_path / "jury.yaml"
        path.write_text(json.dumps(judge_config(server, concurrency=1) | {"evaluators": [use]}))
        options = ScoreOptions(tasks="", run=tmp_path, config=path)
        runs = [StudyRun("one", lines("a"), as_it_is), StudyRun("two", lines("b", "c"), as_it_is)]
        before = folder_contents(tmp_path)
        assert score_study(tmp_path / "out", runs, replace(options, dry_run=True)) == []
        assert folder_contents(tmp_path) == before
        assert not asked
        table = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert (
            table[0]
            == "to score tasks responses verdicts requests expected worst US dollars, worst"
        )
        assert "two 1 2 2 2 2 4 unknown" in table
        with pytest.raises(BudgetExceeded):
            score_study(tmp_path / "out", runs, replace(options, max_calls=2))
        assert len(asked) == 2
        found = score_study(tmp_path / "out", runs, options)
        assert "two 1 2 2 1 1 2 unknown" in " ".join(capsys.readouterr().err.split())
        assert (len(asked), score_study(tmp_path / "out", runs, options)) == (3, found)
        assert len(asked) == 3
    for folder in found:
        with closing(Run.open(folder)) as run:
            assert run.is_closed
    with pytest.raises(InputError, match=r"two\.jsonl: holds other tasks; name another --out"):
        score_study(tmp_path / "out", [StudyRun("two", lines("x"), as_it_is)], options)


def test_a_shard_knows_the_criteria_of_the_whole_file(tmp_path: Path) -> None:
    """`criteria` weighs a criterion that only a task of another shard has: no name is unknown for that."""
    evaluator = (
        "import jurygraph as jg\n\n@jg.evaluator(audience='criterion')\n"
        "def met(task, response):\n    return jg.Verdict(score=1.0)\n"
    )
    tasks = [
        {
            "id": name,
            "query": "q",
            "rubric": {"criteria": [{"id": f"of-{name}", "text": "It is.", "weight": 1.0}]},
            "responses": [{"id": f"{name}/a", "text": "Dear Ann"}],
        }
        for name in ("task-3", "task-4")  # of shards 2 and 1
    ]
    config = "evaluators: [manners.met]\ncriteria: {of-task-3: {weight: 2}}\n"
    folder = write_project(tmp_path / "project", tasks, config, evaluator)
    for index in (1, 2):
        out = tmp_path / str(index)
        typed = run_command("score", folder / "tasks.jsonl", "--shard", f"{index}/2", "--out", out)
        assert typed.code == 0, typed.err
