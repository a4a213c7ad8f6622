"""The judge of the training rewards does not evaluate the trained model unless the config allows it, and every trace
records that (GEAR, D.6)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, CommandResult, traces
from tests.models.judge_scripts import config, judge_reply, responses, rubric
from tests.models.server import Server, run_server


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(lambda body, number: judge_reply(body, served=f"{body['model']}-1")) as running:
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


def score(run: Command, project: Path, out: str, *options: object) -> CommandResult:
    return run("score", project / "tasks.jsonl", "--out", project / out, *options)


def test_the_purpose_is_training_by_default(run: Command, project: Path) -> None:
    assert score(run, project, "train").code == 0
    (trace,) = traces(run, project / "train")
    assert trace["purpose"] is None
    assert "kind: reward" in (project / "train" / "config.yaml").read_text()


def test_a_judge_cannot_evaluate_a_model_that_was_trained_on_its_rewards(
    run: Command, project: Path, server: Server
) -> None:
    score(run, project, "train")
    count_before = server.count
    ended = score(run, project, "eval", "--rewards-from", project / "train")
    assert ended.code == 2
    assert "'tiny' (or who answers for it) would evaluate what was trained on its own rewards; name" in ended.err
    assert not (project / "eval").exists()
    assert server.count == count_before, "nothing is asked"


def test_another_judge_can_evaluate_and_the_trace_names_both_judges(
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
    shown = run("show", project / "eval", "--response", "letter/0")
    assert "purpose: evaluation of what was trained on rewards of tiny, tiny-1, by large" in shown.out


def test_a_judge_behind_an_alias_is_recognized_by_the_model_that_answers(run: Command, project: Path) -> None:
    with run_server(lambda body, number: judge_reply(body, served="tiny-1")) as alias:
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


def test_the_same_judge_evaluates_if_the_config_allows_it_and_the_trace_records_that(
    run: Command, project: Path, server: Server
) -> None:
    score(run, project, "train")
    write(project, server, purpose={"same_judge": "allow"})
    ended = score(run, project, "eval", "--rewards-from", project / "train")
    assert ended.code == 0, ended.err
    (trace,) = traces(run, project / "eval")
    assert trace["purpose"]["same_judge"] is True
    assert "which is one of them (allowed by the config)" in run("show", project / "eval", "--response", "letter/0").out


def test_the_config_can_name_the_training_judges_by_model(run: Command, project: Path, server: Server) -> None:
    write(project, server, purpose={"kind": "evaluation", "reward_judges": ["some/Tiny"]})
    ended = score(run, project, "eval")
    assert ended.code == 2
    assert "jury.yaml, line 1, key purpose.reward_judges: 'tiny' (or who answers" in ended.err
    write(project, server, purpose={"kind": "evaluation"})
    ended = score(run, project, "eval")
    assert ended.code == 2
    assert "an evaluation lacks `reward_judges`" in ended.err


def test_a_rescored_run_keeps_its_judges_and_its_purpose(run: Command, project: Path, server: Server) -> None:
    score(run, project, "train")
    assert run("rescore", project / "train", "--out", project / "again", "--set", "scale=2").code == 0
    assert score(run, project, "eval", "--rewards-from", project / "again").code == 2
    other = f"openai-compatible:{server.url}#large"
    score(run, project, "eval", "--rewards-from", project / "again", "--model", other)
    assert run("rescore", project / "eval", "--out", project / "eval2", "--set", "scale=2").code == 0
    (trace,) = traces(run, project / "eval2")
    assert trace["purpose"]["judge"] == "large"
