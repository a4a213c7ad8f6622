"""Shards are merged into the run that one process would have written; nothing else is merged."""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.calls import read_calls
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.merging import merge_shards
from jurygraph.runs.writable_run import close_run
from jurygraph.sources import Shard
from tests.models.judge_scripts import judge_reply
from tests.models.server import Answer, run_server
from tests.rows import all_rows
from tests.runs.sample_runs import (
    FULL_CONFIG,
    REQUESTED,
    SIMPLE_CONFIG,
    make_tasks,
    score,
    trace_contents,
    traces_of,
    verify_deeply,
    verify_run,
    write_tasks,
)
from tests.runs.test_calls import judge_config, tasks_with_rubrics


def score_shards(folder: Path, tasks: Path, number: int, config: Any = SIMPLE_CONFIG) -> list[Path]:
    """Score all shards of a file, and return their runs."""
    runs = [folder / f"{number}-shards" / str(index) for index in range(1, number + 1)]
    for index, run in enumerate(runs, start=1):
        score(run, tasks, config, shard=Shard(index=index, of=number))
    return runs


def stored_kinds(folder: Path) -> list[tuple[str, str]]:
    with Run.open(folder) as run:
        return [(record.kind, record.key) for record in run.ledger.records() if record.seq > 1]


@all_rows("number, order", [(2, 1), (5, -1)])
def test_merged_shards_are_the_run_of_one_process(tmp_path: Path, number: int, order: int) -> None:
    folder = tmp_path / f"{number} {order}"
    tasks = write_tasks(folder, make_tasks(8))
    score(folder / "whole", tasks, FULL_CONFIG)
    shards = score_shards(folder, tasks, number, FULL_CONFIG)
    merged = merge_shards(shards[::order], folder / "merged")
    assert trace_contents(folder / "merged") == trace_contents(folder / "whole")
    digests = [trace.digest for trace in traces_of(folder / "whole")]
    assert [trace.digest for trace in traces_of(folder / "merged")] == digests
    assert stored_kinds(folder / "merged") == stored_kinds(folder / "whole")
    verified = verify_run(folder / "merged")
    assert (verified.traces, verified.closed, verified.head) == (24, True, merged.head)
    assert verify_deeply(folder / "merged") == verify_deeply(folder / "whole")
    with Run.open(folder / "merged") as run, Run.open(folder / "whole") as whole:
        assert [run.folder_of_origin(origin) for origin in run.header.merged] == shards
        assert [origin.head for origin in run.header.merged] == [
            verify_run(shard).head for shard in shards
        ]
        assert run.header.extent == whole.header.extent
        assert run.header.shard is None
    REQUESTED.clear()
    score(folder / "merged", tasks, FULL_CONFIG)
    assert not REQUESTED, "it is complete, also for the command of one process"


def test_a_folder_of_shards_is_read_as_one_run(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path, make_tasks(8))
    score(tmp_path / "whole", tasks)
    score_shards(tmp_path, tasks, 2)
    assert sorted(trace_contents(tmp_path / "2-shards")) == sorted(
        trace_contents(tmp_path / "whole")
    )
    with Run.open(tmp_path / "2-shards") as run, Run.open(tmp_path / "whole") as whole:
        assert (run.header.shard, run.header.extent) == (None, whole.header.extent)


def test_a_limit_counts_the_tasks_of_the_file(tmp_path: Path) -> None:
    from jurygraph.sources import open_task_source

    tasks = write_tasks(tmp_path, make_tasks(8))
    with (
        open_task_source(tasks, shard=Shard(index=1, of=2)) as first,
        open_task_source(tasks, shard=Shard(index=2, of=2)) as second,
    ):
        for limit in range(10):
            assert first.count_leading_tasks(limit) + second.count_leading_tasks(limit) == min(
                limit, 8
            )
        assert first.file_extent() == second.file_extent() == (8, 24)


def _change(query: str) -> Callable[[list[Path]], list[Path]]:
    """Return a function that changes the database of the second shard."""

    def change(shards: list[Path]) -> list[Path]:
        with closing(sqlite3.connect(shards[1] / "run.sqlite")) as database, database:
            assert database.execute(query).rowcount > 0
        return shards

    return change


def _change_config(shards: list[Path]) -> list[Path]:
    with (shards[1] / "config.yaml").open("a") as file:
        file.write("# changed\n")
    return shards


def _remove_config(shards: list[Path]) -> list[Path]:
    (shards[1] / "config.yaml").unlink()
    return shards


def _score_again(index: int, of: int, config: Any = SIMPLE_CONFIG, **more: Any) -> Any:
    """Return a function that puts another shard in the place of the second."""

    def change(shards: list[Path]) -> list[Path]:
        shutil.rmtree(shards[1])
        tasks = shards[0].parent.parent / "tasks.jsonl"
        score(shards[1], tasks, config, shard=Shard(index=index, of=of), **more)
        return shards

    return change


def _close_early(shards: list[Path]) -> list[Path]:
    _score_again(2, 2, limit=1)(shards)
    close_run(shards[1])
    return shards


OTHER_CONFIG = {**SIMPLE_CONFIG, "clip": [-1.0, 1.0]}
REFUSED = [
    (lambda shards: shards[:1], InputError, "shard 2/2 is missing"),
    (lambda shards: [*shards, shards[1]], InputError, "2: shard 2/2 is there twice"),
    (_change("INSERT INTO texts VALUES ((8 << 20) + 9, x'', x'')"), TraceMismatch, "2/run.sqlite"),
    (lambda shards: [shards[0], shards[0].parent.parent / "whole"], InputError, "is no shard"),
    (_score_again(1, 2), InputError, "shard 1/2 is there twice"),
    (_score_again(2, 3), InputError, "2: is shard 2/3, and .*1 is 1 of 2"),
    (_score_again(2, 2, OTHER_CONFIG), InputError, "2: has other settings than .*: config clip is"),
    (_score_again(2, 2, limit=1), InputError, "2: is not complete: 1 of its 2 tasks are scored"),
    (_close_early, InputError, "2: is not complete: 1 of its 2 tasks"),
    (_change_config, TraceMismatch, "2/config.yaml: is not the config that was written"),
    (_remove_config, TraceMismatch, "2/config.yaml: is missing; put it back from a copy"),
    (_change("UPDATE texts SET content = x'00' WHERE id % 2 = 0"), TraceMismatch, "2/run.sqlite"),
    (_change("DELETE FROM texts WHERE id >= 8 << 20"), TraceMismatch, "2/run.sqlite, rec"),
    (_change("DELETE FROM records WHERE kind = 'trace'"), TraceMismatch, "2/run.sqlite: record"),
    (_change("UPDATE records SET at = at + 1 WHERE kind = 'group'"), TraceMismatch, "2/run.sqlite"),
    (_change("UPDATE records SET body = '{}' WHERE kind = 'task'"), TraceMismatch, "2/run.sqlite"),
]


def test_other_runs_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "made", make_tasks(8))
    score(tmp_path / "made" / "whole", tasks)
    score_shards(tmp_path / "made", tasks, 2)
    refused = []
    for number, (change, kind, problem) in enumerate(REFUSED):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "made", folder)
        shards = change([folder / "2-shards" / "1", folder / "2-shards" / "2"])
        with pytest.raises(kind, match=problem):
            merge_shards(shards, folder / "merged")
        refused.append((folder / "merged").exists())
    assert not any(refused)
    existing = tmp_path / "made" / "whole"
    before = (existing / "run.sqlite").read_bytes()
    with pytest.raises(InputError, match="contains a run already"):
        merge_shards([tmp_path / "made" / "2-shards"], existing)
    assert (existing / "run.sqlite").read_bytes() == before


def test_a_shard_resumes_as_that_shard_alone(tmp_path: Path) -> None:
    """It may have planned tasks after it had scored others; merged, all tasks come first."""
    tasks = write_tasks(tmp_path, make_tasks(8))
    score(tmp_path / "run", tasks, shard=Shard(index=1, of=2), limit=4)
    score(tmp_path / "run", tasks, shard=Shard(index=1, of=2))
    assert {responses[0][:2] for _, responses, _ in REQUESTED} < {
        f"t{number}" for number in range(8)
    }
    for shard in (Shard(index=2, of=2), Shard(index=1, of=3), None):
        with pytest.raises(InputError, match=r"--shard is 1/2 in the run and .* here"):
            score(tmp_path / "run", tasks, shard=shard)
    score(tmp_path / "whole", tasks)
    score(tmp_path / "other", tasks, shard=Shard(index=2, of=2))
    merge_shards([tmp_path / "other", tmp_path / "run"], tmp_path / "merged")
    assert trace_contents(tmp_path / "merged") == trace_contents(tmp_path / "whole")
    merged, whole = stored_kinds(tmp_path / "merged"), stored_kinds(tmp_path / "whole")
    assert [kind for kind, _ in merged] == [kind for kind, _ in whole]
    assert sorted(merged) == sorted(whole)  # a busy machine finishes groups in another order
    assert verify_deeply(tmp_path / "merged") == verify_deeply(tmp_path / "whole")


def test_shards_with_other_replies_to_one_request_keep_them(tmp_path: Path) -> None:
    """Two tasks of the same words are one request; each shard sent it, and the replies differ."""

    def reply(body: dict[str, Any], number: int) -> Answer:
        return judge_reply(body, met=number < 2, probability=0.5)

    first, second, _ = tasks_with_rubrics(3, 1)
    names = [name for name in map(str, range(8)) if Shard(index=1, of=2).includes_task(name)]
    others = [name for name in map(str, range(8)) if name not in names]
    same = [
        {**first, "id": name, "responses": [{**first["responses"][0], "id": f"{name}/r"}]}
        for name in sorted([*names[:2], *others[:2]])
    ]
    tasks = write_tasks(tmp_path, [*same, second])
    with run_server(reply) as server:
        shards = score_shards(tmp_path, tasks, 2, judge_config(server))
    merge_shards(shards, tmp_path / "merged")
    found = verify_deeply(tmp_path / "merged")
    assert found.recomputed > 0
    assert found.needing_model == 0
    by_shard: dict[str, Sequence[Any]] = {}
    for folder in shards:
        by_shard |= _replies(folder)
    assert _replies(tmp_path / "merged") == by_shard


def _replies(folder: Path) -> dict[str, Sequence[Any]]:
    with Run.open(folder) as run:
        return {
            trace.response_id: [call.reply for call in read_calls(run, trace, [verdict])]
            for trace in run.traces()
            for verdict in trace.verdicts[:1]
        }
