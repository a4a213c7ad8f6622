"""A session with a model that never answers in form: it stops, says why, and the same command goes on once mended."""

from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import UnusableRepliesError
from jurygraph.runs.run import Run
from tests.models.server import Answer, reply_with, run_server
from tests.runs.judge import judge_by_request
from tests.runs.reports.test_forecast import judge_config, make_task, score
from tests.runs.sample_runs import evaluator_config, traces_of, verify_deeply, write_tasks

TEXTS = [f"A rose is a rose, said {number} of them." for number in range(12)]


def answer_in_prose(body: dict[str, Any], number: int) -> Answer:
    return (
        reply_with("All of them are met.")
        if "response_format" in body
        else judge_by_request(body, number)
    )


def test_a_run_stops_after_twenty_unusable_replies_and_the_same_command_goes_on(
    tmp_path: Path,
) -> None:
    tasks = write_tasks(tmp_path, [make_task("a", *TEXTS, criteria=1)])
    with run_server(answer_in_prose) as server:
        with pytest.raises(UnusableRepliesError) as stopped:
            score(tmp_path / "run", tasks, judge_config(server.url, cache=False))
        assert "such as 'All of them are met.'; set calls.form" in str(stopped.value)
        assert str(stopped.value).endswith(
            "nothing was scored; run the same command again once that is changed"
        )
        assert not (tmp_path / "run").exists()
        score(tmp_path / "run", tasks, judge_config(server.url, cache=False, form="instructed"))
    with Run.open(tmp_path / "run") as run:
        assert run.tasks_scored == 1


def test_the_cache_keeps_no_reply_of_a_session_in_which_none_could_be_used(tmp_path: Path) -> None:
    """Replies that were in flight, or read without being repaired, are unusable, too."""
    names = [f"task-{number}" for number in range(48)]
    tasks = write_tasks(tmp_path, [make_task(name, TEXTS[0], criteria=1) for name in names])
    replies = [answer_in_prose]
    with run_server(lambda body, number: replies[0](body, number)) as server:
        config = judge_config(server.url, cache=True, concurrency=16)
        with pytest.raises(UnusableRepliesError):
            score(tmp_path / "run", tasks, config)
        replies[0] = judge_by_request
        count_before = server.count
        score(tmp_path / "run", tasks, config)
        assert server.count - count_before == len(names)


@pytest.mark.parametrize("has_values", [False, True])
def test_groups_are_kept_where_a_reward_has_a_value(tmp_path: Path, has_values: bool) -> None:
    """What failed for the same reason is no reason to refuse the same command; what another evaluator gave is."""
    names = "abcdefghijklmn"
    tasks = write_tasks(
        tmp_path, [make_task(name, TEXTS[0], criteria=1, data={"tone": 1.0}) for name in names]
    )
    others = [evaluator_config("tone")] if has_values else []
    with run_server(answer_in_prose) as server:
        config = judge_config(server.url, *others, cache=False, concurrency=1)
        config["failure"] = {"min_coverage": 0.4}
        with pytest.raises(UnusableRepliesError) as stopped:
            score(tmp_path / "run", tasks, config)
    assert (tmp_path / "run").exists() is has_values
    if has_values:
        branch = f"once that is changed, continue in another --out with --branch {tmp_path / 'run'}"
        with Run.open(tmp_path / "run") as run:
            assert 0 < run.tasks_scored < 14
            progress = f"{run.tasks_scored} of 14 tasks"
        assert str(stopped.value).endswith(
            f"finished groups are kept ({progress}); {branch}, or without it if the config stays, since it "
            "reuses unusable replies"
        )


def test_a_branch_of_a_record_has_the_reply_that_a_later_group_got(tmp_path: Path) -> None:
    """It sends nothing, and is judged alike wherever the text is: by one reply, not by an earlier useless one."""
    line = make_task("a", TEXTS[0], TEXTS[1], TEXTS[0], criteria=1)
    useless, other, mended = [jg.Response(id=r["id"], text=r["text"]) for r in line["responses"]]
    task = jg.Task.model_validate({name: line[name] for name in ("id", "query", "rubric")})
    replies = [answer_in_prose]
    with run_server(lambda body, number: replies[0](body, number)) as server:
        config = judge_config(server.url, cache=False)
        with jg.Jury.from_config(config) as jury, jury.record(tmp_path / "record"):
            assert jury.score(task, [useless])[0].reward.value is None
            replies[0] = judge_by_request
            assert jury.score(task, [other, mended])[1].reward.value is not None
        count_before = server.count
        tasks = write_tasks(tmp_path, [line])
        score(tmp_path / "run", tasks, config, branch=tmp_path / "record")
        assert server.count == count_before
    first, _, last = traces_of(tmp_path / "run")
    assert first.reward.value == last.reward.value is not None
    assert verify_deeply(tmp_path / "run").recomputed == 3
