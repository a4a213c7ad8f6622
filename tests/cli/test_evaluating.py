"""The judge that gave the rewards in training does not evaluate what was trained on them, unless it is asked to; and
every trace says so (GEAR, D.6)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, Ended, traces
from tests.models.judging import config, judged, responses, rubric
from tests.models.server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda body, number: judged(body, served=f"{body['model']}-1")) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, server: Server) -> Path:
    task, texts = rubric("kind"), responses("a long and kind letter")
    content = {**task.model_dump(mode="json"), "responses": [one.model_dump(mode="json") for one in texts]}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(content) + "\n")
    write(tmp_path, server)
    return tmp_path


def write(project: Path, server: Server, **fields: Any) -> None:
    (project / "jury.yaml").write_text(json.dumps({**config(server.url, cache=False), **fields}))


def score(run: Command, project: Path, out: str, *options: object) -> Ended:
    return run("score", project / "tasks.jsonl", "--out", project / out, *options)


def test_rewards_are_there_to_train_on_unless_something_else_is_said(run: Command, project: Path) -> None:
    assert score(run, project, "train").code == 0
    (trace,) = traces(run, project / "train")
    assert "purpose" not in trace
    assert "kind: reward" in (project / "train" / "config.yaml").read_text()


def test_the_judge_of_a_run_may_not_evaluate_what_was_trained_on_its_rewards(
    run: Command, project: Path, server: Server
) -> None:
    score(run, project, "train")
    asked = server.count
    ended = score(run, project, "eval", "--rewards-from", project / "train")
    assert ended.code == 2
    assert "'tiny' (or who answers for it) would evaluate what was trained on its own rewards; name" in ended.err
    assert not (project / "eval").exists()
    assert server.count == asked, "nothing is asked"


def test_another_judge_may_and_the_trace_says_who_it_was_and_whose_rewards_were_trained_on(
    run: Command, project: Path, server: Server
) -> None:
    score(run, project, "train")
    other = f"openai-compatible:{server.url}#large"
    ended = score(run, project, "eval", "--rewards-from", project / "train", "--model", other)
    assert ended.code == 0, ended.err
    assert "purpose: evaluation of what was trained on rewards of tiny, tiny-1, by large" in ended.err
    (trace,) = traces(run, project / "eval")
    expected = {"kind": "evaluation", "judge": "large", "reward_judges": ["tiny", "tiny-1"], "same_judge": False}
    assert trace["purpose"] == expected
    assert run("verify", project / "eval", "--deep").code == 0
    shown = run("explain", project / "eval", "--response", "letter/0")
    assert "Purpose: evaluation of what was trained on rewards of tiny, tiny-1, by large." in shown.out


def test_a_judge_that_goes_by_another_name_is_known_by_that_under_which_it_answers(run: Command, project: Path) -> None:
    with serving(lambda body, number: judged(body, served="tiny-1")) as alias:
        other = f"openai-compatible:{alias.url}#large"
        score(run, project, "train")
        ended = score(run, project, "eval", "--rewards-from", project / "train", "--model", other)
        assert ended.code == 2
        assert "'large' (or who answers for it) would evaluate what was trained on its own rewards" in ended.err
        (project / "jury.yaml").write_text(
            (project / "jury.yaml").read_text().replace("{", '{"purpose": {"same_judge": "allow"}, ', 1)
        )
        ended = score(run, project, "asked-for", "--rewards-from", project / "train", "--model", other)
    assert ended.code == 0, ended.err
    (trace,) = traces(run, project / "asked-for")
    assert (trace["purpose"]["judge"], trace["purpose"]["same_judge"]) == ("large", True)


def test_asked_for_the_same_judge_evaluates_and_the_trace_says_that_too(
    run: Command, project: Path, server: Server
) -> None:
    score(run, project, "train")
    write(project, server, purpose={"same_judge": "allow"})
    ended = score(run, project, "eval", "--rewards-from", project / "train")
    assert ended.code == 0, ended.err
    (trace,) = traces(run, project / "eval")
    assert trace["purpose"]["same_judge"] is True
    assert "which is one of them (allowed by the config)" in run("show", project / "eval", "--response", "letter/0").out


def test_the_config_can_name_the_judges_of_training_by_model(run: Command, project: Path, server: Server) -> None:
    write(project, server, purpose={"kind": "evaluation", "reward_judges": ["some/Tiny"]})
    ended = score(run, project, "eval")
    assert ended.code == 2
    assert "jury.yaml, line 1, key purpose.reward_judges: 'tiny' (or who answers" in ended.err
    write(project, server, purpose={"kind": "evaluation"})
    ended = score(run, project, "eval")
    assert ended.code == 2
    assert "an evaluation lacks `reward_judges`" in ended.err


def test_a_run_that_was_re_scored_keeps_its_judges_and_its_purpose(run: Command, project: Path, server: Server) -> None:
    score(run, project, "train")
    assert run("rescore", project / "train", "--out", project / "again", "--set", "scale=2").code == 0
    assert score(run, project, "eval", "--rewards-from", project / "again").code == 2
    other = f"openai-compatible:{server.url}#large"
    score(run, project, "eval", "--rewards-from", project / "again", "--model", other)
    assert run("rescore", project / "eval", "--out", project / "eval2", "--set", "scale=2").code == 0
    (trace,) = traces(run, project / "eval2")
    assert trace["purpose"]["judge"] == "large"
