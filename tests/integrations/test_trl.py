"""The reward function for TRL: it pickles, groups equal prompts, stores what it scored, and never makes None a 0."""

import asyncio
import csv
import gc
import inspect
import json
import logging
import os
import pickle
import re
from collections import UserList
from collections.abc import Iterator
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jurygraph as jg
from jurygraph.errors import ConfigError, InputError, ModelOutageError, NoRewardError, PlanError
from jurygraph.integrations import lazy_jury
from jurygraph.integrations.trl import (
    JuryReward,
    read_trainer_settings,
    reward_function,
    reward_functions,
)
from jurygraph.models import limits
from jurygraph.schema import Config, EvaluatorUse
from tests.command import run_command
from tests.integrations.trainers import CONFIG, PAIRS, QUESTIONS, Trainer, texts
from tests.models import judge_scripts
from tests.models.judge_scripts import judge_reply, requested_items, response_in
from tests.models.server import Answer, reply_with, run_server, status
from tests.rows import all_rows

REWARDS = [0.25, 0.5, None, 1.0]


@pytest.fixture
def opened() -> Iterator[list[JuryReward]]:
    """Close what a test opened."""
    functions: list[JuryReward] = []
    yield functions
    for function in functions:
        function.close()


def call(function: Any, prompts: list[Any], completions: list[Any], **columns: Any) -> Any:
    return asyncio.run(function(prompts=prompts, completions=completions, **columns))


def test_every_version_of_trl_takes_it_for_asynchronous_and_it_pickles(
    opened: list[JuryReward],
) -> None:
    function = reward_function(CONFIG, failed="none")
    sent = pickle.loads(pickle.dumps(function))
    opened += [function, sent]
    assert inspect.iscoroutinefunction(sent), "trl <= 1.9"
    assert inspect.iscoroutinefunction(sent.func), "trl 1.16"
    assert sent.__name__ == sent.func.__name__
    assert call(function, ["2 + 2?"] * 4, texts(REWARDS)) == REWARDS
    assert call(sent, ["2 + 2?"] * 4, texts(REWARDS)) == REWARDS


def test_with_plans_a_row_needs_its_id_alone(tmp_path: Path, opened: list[JuryReward]) -> None:
    config, tasks, plans = (tmp_path / name for name in ("jury.yaml", "tasks.jsonl", "plans.jsonl"))
    config.write_text("evaluators: [maths.accuracy]\n")
    tasks.write_text('{"id": "four", "query": "2 + 2?", "reference": "4"}\n')
    assert run_command("plan", tasks, "--config", config, "--out", plans).code == 0
    with pytest.raises(InputError, match="plans: has the tasks whole; leave out `reference`"):
        reward_function(config, plans=plans, reference="answer")
    function = reward_function(config, plans=plans)
    opened += [function, pickle.loads(pickle.dumps(function))]
    function.close()
    for copy in opened:
        with pytest.raises(InputError, match=r"row 2 .*, column 'task_id': there is no task 'for'"):
            copy.check([{"prompt": "2 + 2?", "task_id": "four"}, {"prompt": "?", "task_id": "for"}])
        assert call(copy, ["a chat"] * 2, ["#### 4", "#### 5"], task_id=["four"] * 2) == [1.0, 0.0]


def test_a_config_that_is_gone_is_all_that_another_process_is_told_of(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "jury.yaml"
    path.write_text("evaluators: [maths.accuracy]\n")
    sent = pickle.loads(pickle.dumps(reward_function(str(path), reference="answer")))
    path.unlink()
    with pytest.raises(ConfigError, match="there is no such file"):
        call(sent, ["2 + 2?"], ["4"], answer=["4"])
    gc.collect()
    assert not recwarn.list, "such as of a coroutine that nobody awaits"


def test_the_end_of_the_process_closes_the_jury_but_not_that_of_the_parent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at_exit: list[Any] = []
    monkeypatch.setattr(lazy_jury.atexit, "register", at_exit.append)
    function = reward_function(CONFIG, failed="none")
    assert call(function, ["2 + 2?"] * 2, texts([None, 1.0])) == [None, 1.0]
    for _ in range(9):
        call(function, ["2 + 2?"] * 2, texts([None, 1.0]))
    first, tenth = (record.message for record in caplog.records)
    row = r"row 1 of the call \('2 \+ 2\?'\)"
    warning = rf"1 of the 2 rewards of {row} failed: there is no number \(response prompt-\S+; "
    assert re.match(warning + r"1 such group so far\); the first, the tenth", first)
    assert re.match(warning + "10 such groups so far", tenth)
    jury = function.scorer.jury.open()
    with monkeypatch.context() as child:
        child.setattr(lazy_jury.os, "getpid", lambda: -1)
        at_exit[0]()
    assert not jury._closed
    call(function, ["2 + 2?"] * 2, texts([None, 1.0]))
    assert function.scorer.jury.open() is not jury
    jury.close()
    jury = function.scorer.jury.open()
    at_exit[-1]()
    assert jury._closed


@pytest.mark.parametrize("if_missing", [None, "not_applicable"])
def test_the_warning_of_a_failed_reward_says_why_nothing_was_judged(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture, if_missing: Any
) -> None:
    function = reward_function(
        Config(evaluators=(EvaluatorUse(use="maths.accuracy", if_missing=if_missing),)),
        reference="solution",
        failed="none",
    )
    opened.append(function)
    call(function, ["2 + 2?"] * 2, ["4", "5"], solution=[None] * 2)
    call(function, ["2 + 2?"] * 2, ["4", "5"], solution=["It cannot\nbe told."] * 2)
    why, *others = (record.message for record in caplog.records)
    lack = "it has nothing to be judged by: `reference='solution'` has no value there"
    assert why.startswith(f"2 of the 2 rewards of row 1 of the call ('2 + 2?') failed: {lack} (")
    (other,) = others
    assert "failed: the task's reference states no final answer (response" in other


def test_an_empty_text_is_named_by_column_and_row(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    evaluators = [
        {"use": name, "if_missing": "not_applicable"} for name in ("criteria", "maths.accuracy")
    ]
    columns = {"reference": "solution", "rubric": "points"}
    config = {"evaluators": evaluators, "reward": {"accuracy": 0.5, "rubric": 0.5}}
    opened.append(reward_function(config, **columns))
    prompts, completions = ["2 + 2?", "3 + 3?"], ["4", "6"]
    remedy = "where a prompt has no {0}"
    with pytest.raises(InputError) as refused:
        call(opened[0], prompts, completions, solution=["4", "6"], points=["Is it 4?", " "])
    problem = "rubric: column 'points' is empty in row 2 of the call ('3 + 3?'); make it None "
    assert str(refused.value) == problem + remedy.format("rubric")
    with pytest.raises(InputError):
        call(opened[0], prompts, completions, solution=["4", ""], points=["", None])
    with pytest.raises(InputError, match=r"'points' is empty in row 2 of the call \('3 \+"):
        call(opened[0], prompts, completions, solution=["4", "6"], points=["Is it 4?", []])
    place = "row 2 of the call ('3 + 3?')"
    problem = f"reference: column 'solution' is empty in {place} (said once); make it None "
    assert [record.getMessage() for record in caplog.records] == [
        problem + remedy.format("reference")
    ]
    caplog.clear()
    opened.append(reward_function(config, **columns))
    missing = {"solution": ["4", float("nan")], "points": [None, None]}
    assert call(opened[1], ["2 + 2?"] * 2, ["4", "5"], **missing) == [0.5, 0.0]
    (record,) = caplog.records
    assert record.getMessage() == (
        "reference: column 'solution' is NaN (missing) in row 2 of the call ('2 + 2?') (said once); it counts as that "
        "of the row before with its prompt, else as None"
    )


def test_responses_without_a_final_answer_are_told_of_once(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    trainer = Trainer()
    function = reward_function({"evaluators": ["maths.accuracy"]}, reference="solution")
    opened.append(function)
    missing = "First we add.\nThen we think about it."
    for texts_of_call, share in (
        ([missing, missing, "The answer is 4.", r"\boxed{5}"], 0.5),
        ([missing] * 3 + ["The answer is 4."], 0.75),
        ([missing] * 4, 1.0),
    ):
        columns = trainer.columns(solution=["4"] * 4)
        rewards = call(function, ["2 + 2?"] * 4, texts_of_call, **columns)
        assert rewards == [float("is 4" in text) for text in texts_of_call]
        assert trainer.metrics["jury/no_answer"] == share
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "3 of the 4 responses of a call state no final answer, which counts as 0 (said once;"
    )


def test_completions_that_always_get_a_500_fail_alone_and_the_training_goes_on(
    opened: list[JuryReward], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FIRST_PROBE_PAUSE_SECONDS", 0.0)

    def script(body: dict[str, Any], number: int) -> Answer:
        if body["messages"][0]["content"].startswith("Reply with ok"):
            return reply_with("ok")
        return status(500) if "poison" in response_in(body) else judge_reply(body)

    rubric = {"criteria": [{"id": "kind", "text": "Is it kind?", "weight": 1}]}
    with run_server(script) as server:
        config = judge_scripts.config(server.url, attempts=1, cache=False, outage={"wait": 10})
        function = reward_function(
            {**config, "task_defaults": {"rubric": rubric}}, record=tmp_path / "run", failed="none"
        )
        opened.append(function)
        for number, word in enumerate(("poison", "kind")):
            answers = [f"Dear Ann, a {word} letter, {number} {index}." for index in range(10)]
            rewards = call(function, ["Write."] * 10, answers)
            assert {reward is None for reward in rewards} == {word == "poison"}
        function.close()
    with jg.Run.open(tmp_path / "run") as run:
        assert len(list(run.traces())) == 20


def test_a_run_that_has_replies_is_gone_on_with_once_its_server_is_up(tmp_path: Path) -> None:
    """Its first outage is no wrong URL: `calls.outage.first`, here 0.1, is for those that never answered."""
    rubric = {"criteria": [{"id": "kind", "text": "Is it kind?", "weight": 1}]}
    with run_server(lambda body, _: judge_reply(body)) as server:
        outage = {"after": 1, "first": 0.1, "wait": 2}
        config = judge_scripts.config(server.url, attempts=1, cache=False, outage=outage)
        config["task_defaults"] = {"rubric": rubric}
        function = reward_function(config, record=tmp_path / "run")
        assert call(function, ["Write."], ["Dear Ann."]) == [0.9]
        function.close()
    function = reward_function(config, record=tmp_path / "run")
    with pytest.raises(ModelOutageError, match=r"for 2 s .* calls\.outage\.wait sets"):
        call(function, ["Write."], ["Dear Ben."])
    function.close()
    for _ in range(2):  # the second finds calls that were not answered
        function = reward_function(config, record=tmp_path / "other")
        with pytest.raises(ModelOutageError, match=r"calls\.outage\.first sets"):
            call(function, ["Write."], ["Dear Ben."])
        function.close()


def test_each_kind_of_failure_is_warned_of_once(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    function = reward_function(CONFIG, failed="none")
    opened.append(function)
    for completion in ("none", "none", "torn ...", "torn ..."):
        call(function, ["2 + 2?"] * 2, ["1.0", completion])
    reasons = [re.search(r"failed: (.*) \(response", record.message) for record in caplog.records]
    assert [found and found[1] for found in reasons] == ["there is no number", "it is torn"]
    caplog.clear()
    other = reward_function(CONFIG, failed="none")
    opened.append(other)
    call(other, ["2 + 2?"] * 4, ["1.0", "torn ...", "none", "torn ..."], task_id=["a"] * 4)
    (message,) = [record.message for record in caplog.records]
    assert message == (
        "3 of the 4 rewards of row 1 of the call ('2 + 2?') failed: it is torn (response a/2; 1 such group so far); "
        "there is no number (response a/3; 1 such group so far); the first, the tenth and so on are said; jury/failed "
        "has the share of all"
    )


def test_rewards_are_those_of_the_jury_and_what_is_logged_names_them(
    opened: list[JuryReward],
) -> None:
    trainer = Trainer()
    function = reward_function(CONFIG)
    opened.append(function)
    chats = [[{"role": "user", "content": question}] for question in QUESTIONS for _ in range(4)]
    answers = [[{"role": "assistant", "content": text}] for text in texts([*REWARDS, *REWARDS])]
    ids = [name for name in "ab" for _ in range(4)]
    columns = trainer.columns(task_id=ids)
    assert call(function, chats, answers, **columns) == [*REWARDS, *REWARDS]
    assert trainer.metrics == {
        "jury/failed": 0.25,
        "jury/degraded": 0.0,
        "jury/reward": pytest.approx(1.75 / 3),
        "jury/graded": pytest.approx(1.75 / 3),
        "jury/factor": 1.0,
    }
    assert trainer.extra["task_id"] == ids
    assert trainer.extra["response_id"][:5] == ["a/1", "a/2", "a/3", "a/4", "b/1"]


def test_the_means_of_components_are_those_of_the_rows_with_a_reward(
    opened: list[JuryReward],
) -> None:
    trainer = Trainer()
    judges = [*CONFIG["evaluators"], "tests.integrations.trainers.stated"]
    config = {"evaluators": judges, "reward": {"graded": 0.5, "stated": 0.5}}
    opened.append(reward_function(config, failed="mask"))
    completions = ["it is 1.0", "it is 0.0", "torn...", "x"]
    call(opened[0], [QUESTIONS[0]] * 4, completions, **trainer.columns())
    means = {name: trainer.metrics[f"jury/{name}"] for name in ("reward", "graded", "stated")}
    assert means == {"reward": 0.75, "graded": 0.5, "stated": 1.0}
    assert trainer.metrics["jury/failed"] == 0.5


@pytest.mark.parametrize("has_record", [False, True])
def test_replies_that_were_repaired_or_cost_no_request_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_record: bool
) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path))

    def script(body: dict[str, Any], number: int) -> Answer:
        is_repair = any(message["role"] == "assistant" for message in body["messages"])
        is_wrong = "Ann" in str(body["messages"]) and not is_repair
        return reply_with("It is kind.") if is_wrong else judge_reply(body)

    rubric = {"criteria": [{"id": "kind", "text": "Is it kind?", "weight": 1}]}
    shares = []
    with run_server(script) as server:
        config = judge_scripts.config(server.url, cache=not has_record)
        config["task_defaults"] = {"rubric": rubric}
        for answers in (["Dear Ann.", "Dear Ben."], ["Dear Ann.", "Dear Eve."]):
            trainer = Trainer()
            function = reward_function(config, record=tmp_path / "run" if has_record else None)
            call(function, ["Write."] * 2, answers, **trainer.columns())
            function.close()
            shares.append([trainer.metrics[f"jury/{name}"] for name in ("cached", "repaired")])
    assert shares == [[0.0, 1 / 3], [2 / 3, 1 / 3]]


def test_a_step_is_a_label_of_what_is_stored_and_a_prompt_may_recur(
    opened: list[JuryReward],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("RANK", "3")
    trainer = Trainer(num_generations=2)
    function = reward_function(CONFIG, record=tmp_path / "run" / "{rank}", task_id="name")
    opened.append(function)
    with pytest.raises(InputError, match="task_id: the data set has no column 'name'; it has id"):
        call(function, [QUESTIONS[0]] * 4, texts(REWARDS), id=["a"] * 4)
    columns = trainer.columns(name=["a"] * 4)
    assert call(function, [QUESTIONS[0]] * 4, texts(REWARDS), **columns) == REWARDS
    assert trainer.extra["response_id"] == ["a@1#3/1", "a@1#3/2", "a@2#3/1", "a@2#3/2"]
    function.close()
    assert "contains a run" not in caplog.text
    opened.append(reward_function(CONFIG, record=tmp_path / "run" / "{rank}"))
    record = caplog.records[-1]
    earlier = (
        f"{tmp_path / 'run' / '3'} contains a run already, and this training continues it: where"
    )
    assert record.getMessage().startswith(earlier)
    with jg.Run.open(tmp_path / "run" / "3") as run:
        assert [trace.labels for trace in run.traces()] == [{"step": 312}] * 4
    shown = run_command("show", tmp_path / "run" / "3", "--label", "step=312", "--json")
    assert len(shown.out.splitlines()) == 4
    for label, problem in (("step=313", "values of step: 312"), ("step", "NAME=VALUE")):
        refused = run_command("show", tmp_path / "run" / "3", "--label", label)
        assert (refused.code, problem in refused.err) == (2, True)
    exported = run_command("export", tmp_path / "run" / "3", "--to", "csv", "--advantages")
    rows = list(csv.DictReader(exported.out.splitlines()))
    assert [row["advantage"][:6] for row in rows] == ["-0.707", "0.7071", "", "0.0"]


@pytest.mark.parametrize("make", [reward_function, partial(reward_functions, beside=[])])
def test_a_misspelt_argument_is_named_with_the_one_that_is_meant(make: Any) -> None:
    with pytest.raises(
        TypeError, match=r"no argument 'referense' of a .*; did you mean reference\?"
    ):
        make(CONFIG, referense="solution")


def test_another_config_is_refused_before_a_training_and_does_not_go_on_with_the_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    function = reward_function(CONFIG, record=tmp_path / "run")
    call(function, [QUESTIONS[0]] * 2, texts([0.5, 1.0]), **Trainer().columns(1))
    function.close()
    with pytest.raises(InputError, match=r"run: was started with other settings: .*max_error_rate"):
        reward_function({**CONFIG, "failure": {"max_error_rate": 0.5}}, record=tmp_path / "run")
    assert "continues it" not in caplog.text


def test_without_a_rank_a_training_that_is_started_again_goes_on_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    for step in (1, 2):
        function = reward_function(CONFIG, record=tmp_path / "run" / "{rank}")
        call(function, [QUESTIONS[0]] * 2, texts([0.5, 1.0]), **Trainer().columns(step))
        with (
            pytest.raises(InputError, match="each needs its RANK"),
            jg.Jury(**CONFIG) as jury,
            jury.record(tmp_path / "run" / "{rank}"),
        ):
            pass
        function.close()
    assert "this training continues it" in caplog.text
    with jg.Run.open(tmp_path / "run" / "0") as run:
        labels = [trace.labels for trace in run.traces()]
    assert labels[1:3] == [{"step": 1}, {"step": 2, "session": 2}]
    for session, step in (("1", "step 1, session 1."), ("2", "step 2, session 2.")):
        selection = ("--label", f"session={session}", "--label", f"step={session}")
        shown = run_command("show", tmp_path / "run", *selection, "--json")
        assert (shown.code, len(shown.out.splitlines())) == (0, 2)
        explained = run_command("explain", tmp_path / "run", *selection, "--limit", "1")
        assert f"Labels: {step}" in explained.out


def test_processes_without_ranks_may_have_a_folder_each(tmp_path: Path) -> None:
    function = reward_function(CONFIG, record=tmp_path / "{pid}", task_id="id")
    trainer = Trainer()
    call(function, [QUESTIONS[0]] * 2, texts([0.5, 1.0]), **trainer.columns(id=["a"] * 2))
    function.close()
    assert (tmp_path / str(os.getpid()) / "config.yaml").is_file()
    assert trainer.extra["response_id"][0].endswith(f"@1#{os.getpid()}/1")


@all_rows(
    "failed, settings, expected, factor",
    [
        ("auto", {}, REWARDS, 1.0),
        ("neutral", {}, [0.25, 0.5, 1.75 / 3, 1.0], (3 / 2) ** 0.5),
        ("neutral", {"scale_rewards": "none"}, [0.25, 0.5, 1.75 / 3, 1.0], 1.0),
        ("neutral", {"scale_rewards": "batch"}, [0.25, 0.5, 1.75 / 3, 1.0], None),
        (
            "neutral",
            {"normalize_advantages": False},
            [0.25, 0.5, 1.75 / 3, 1.0],
            4 * 2 / (3 * 3),
        ),
        (-1, {}, [0.25, 0.5, -1.0, 1.0], None),
        ("none", {"functions": (None, None)}, REWARDS, 1.0),
    ],
)
def test_a_failed_reward_becomes_what_the_setting_says_and_the_factor_is_logged(
    failed: str | float, settings: dict[str, Any], expected: list[float], factor: float | None
) -> None:
    trainer = Trainer(**settings)
    function = reward_function(CONFIG, failed=failed)
    values = call(function, [QUESTIONS[0]] * 4, texts(REWARDS), **trainer.columns())
    function.close()
    assert values == pytest.approx(expected)
    assert trainer.metrics.get("jury/factor") == (None if factor is None else pytest.approx(factor))
    assert trainer.extra["jury_factor"][0] == (None if factor is None else pytest.approx(factor))


def test_a_factor_that_is_not_known_for_a_group_is_in_no_mean(opened: list[JuryReward]) -> None:
    trainer = Trainer(scale_rewards="batch")
    function = reward_function(CONFIG, failed="neutral")
    opened.append(function)
    prompts = [QUESTIONS[0]] * 4 + [QUESTIONS[1]] * 4
    call(function, prompts, texts([1.0] * 4 + REWARDS), **trainer.columns())
    assert "jury/factor" not in trainer.metrics
    assert trainer.extra["jury_factor"] == [1.0] * 4 + [None] * 4


def form(completions: list[str], **columns: Any) -> list[float]:
    return [0.5 for _ in completions]


class SDPOTrainer:
    """What trl 1.16's SDPOTrainer and OnlineDPOTrainer do with a function: none of it is awaited, or tells of them."""

    def calculate_rewards(self, function: Any, completions: list[str]) -> list[float]:
        values = function(
            prompts=[QUESTIONS[0]] * len(completions),
            completions=completions,
            completion_ids=[],
            trainer_state=SimpleNamespace(global_step=0),
        )
        return [float("nan") if value is None else value for value in values]


class GRPOWithReplayBufferTrainer(Trainer):
    """It has advantages of its own, in which None counts as 0 (trl 1.13.0)."""

    def _generate_and_score_completions(self) -> None:
        """It is looked up only."""


class LoggingTrainer(Trainer):
    """A user's own, which leaves the advantages to GRPOTrainer."""

    def log(self) -> None:
        """It says nothing of a mask."""


FILLED = [0.25, 0.5, pytest.approx(1.75 / 3), 1.0]


@all_rows(
    "trainer, expected",
    [
        (LoggingTrainer(), REWARDS),
        (GRPOWithReplayBufferTrainer(), FILLED),
        (Trainer(functions=[None, None], _calculate_rewards=form), FILLED),
        (None, FILLED),
    ],
)
def test_only_a_trainer_that_is_known_to_have_a_mask_gets_none(
    trainer: Trainer | None, expected: list[Any]
) -> None:
    """Whoever shows no trainer, such as AsyncGRPO, may have another function, beside which None counts as 0."""
    columns = {"completion_ids": []} if trainer is None else trainer.columns()
    function = reward_function(CONFIG)
    assert call(function, [QUESTIONS[0]] * 4, texts(REWARDS), **columns) == expected
    function.close()
    function = reward_function(CONFIG, failed="mask")
    if expected is FILLED:
        with pytest.raises(InputError, match="is `mask`, and no trainer that has one is seen: No"):
            call(function, [QUESTIONS[0]] * 4, texts(REWARDS), **columns)
    function.close()


def test_a_trainer_that_awaits_nothing_gets_the_mean_by_a_function_that_waits(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    function = reward_function(CONFIG)
    opened.append(function)

    def waiting(**columns: Any) -> Any:
        return asyncio.run(function(**columns))

    with pytest.raises(TypeError, match="'coroutine' object is not iterable"):
        SDPOTrainer().calculate_rewards(function, texts(REWARDS))
    for _ in range(2):
        assert SDPOTrainer().calculate_rewards(waiting, texts(REWARDS)) == FILLED
    assert [record.message for record in caplog.records if "group_size" in record.message] == [
        "a failed reward got the mean of those of its prompt in the call (said once), which may be a part of its "
        "group; set `group_size`, so that a part is refused"
    ]
    with pytest.raises(NoRewardError, match="no mean: there is no number; `auto` is `neutral`, as"):
        SDPOTrainer().calculate_rewards(waiting, texts([None, None]))


async def brevity(completions: list[str], **columns: Any) -> list[float | None]:
    return [None if "0.25" in text else 1 / len(text) for text in completions]


def test_functions_beside_the_jury_return_none_where_it_failed(opened: list[JuryReward]) -> None:
    functions: list[Any] = pickle.loads(
        pickle.dumps(reward_functions(CONFIG, beside=[form, brevity]))
    )
    judge, formed, brief = functions
    opened.append(judge)
    trainer = Trainer(functions=functions)
    prompts = [QUESTIONS[0]] * 4
    completions = texts(REWARDS)
    for step in (1, 2):  # an equal call later is another one
        given = {"prompts": prompts, "completions": completions, **trainer.columns(step)}
        assert formed(**given) == [0.5, 0.5, None, 0.5]
        assert asyncio.run(judge(**given)) == REWARDS
        assert [value is None for value in brief(**given)] == [True, False, True, False]
    assert [formed.__name__, brief.__name__] == ["form", "brevity"]
    filled = reward_functions(CONFIG, beside=[form], failed="neutral")
    opened.append(filled[0])  # type: ignore[arg-type]
    given = {"prompts": prompts, "completions": completions, **Trainer(functions=filled).columns()}
    assert filled[1](**given) == [0.5] * 4, "a filled row is no missing one"


def functions_and_samples(opened: list[JuryReward]) -> tuple[Any, Any, dict[str, Any]]:
    """Return the function of a jury, one beside it, and four samples for both."""
    jury, brief = reward_functions(
        CONFIG, beside=[lambda completions, **_: [1.0] * 4], failed="none"
    )
    opened.append(jury)  # type: ignore[arg-type]
    return jury, brief, {"prompts": ["2 + 2?"] * 4, "completions": texts(REWARDS)}


def test_a_function_that_waits_in_the_event_loop_of_the_jurys_function_gets_the_rewards(
    opened: list[JuryReward],
) -> None:
    jury, brief, samples = functions_and_samples(opened)

    async def call_both() -> Any:
        started = asyncio.ensure_future(jury(**samples))
        await asyncio.sleep(0)
        return brief(**samples), await started

    assert asyncio.run(call_both()) == ([None if r is None else 1.0 for r in REWARDS], REWARDS)


def test_a_call_that_was_cancelled_and_is_made_again_is_a_new_one(opened: list[JuryReward]) -> None:
    jury, brief, samples = functions_and_samples(opened)

    async def begin_and_cancel() -> None:
        started = asyncio.ensure_future(jury(**samples))
        await asyncio.sleep(0)
        started.cancel()
        with pytest.raises(asyncio.CancelledError):
            await started

    asyncio.run(begin_and_cancel())
    assert brief(**samples) == [None if r is None else 1.0 for r in REWARDS]
    assert asyncio.run(jury(**samples)) == REWARDS  # type: ignore[arg-type]


def test_a_function_beside_the_jury_that_is_not_wrapped_is_refused(
    opened: list[JuryReward],
) -> None:
    """Otherwise None beside its value would count as a judged 0."""
    function = reward_function(CONFIG, beside=[form])
    opened.append(function)
    trainer = Trainer(functions=[function, form])
    with pytest.raises(InputError, match="make all by `reward_functions"):
        call(function, [QUESTIONS[0]] * 4, texts(REWARDS), **trainer.columns())


def test_an_evaluation_has_a_group_size_of_its_own() -> None:
    trainer = Trainer(
        num_generations=8, num_generations_eval=2, model=SimpleNamespace(training=True)
    )
    assert read_trainer_settings(trainer.log_metric).group_sizes == (8,)
    trainer.model.training = False  # type: ignore[attr-defined]
    assert read_trainer_settings(trainer.log_metric).group_sizes == (2,)


def test_an_evaluation_at_a_step_of_the_training_is_a_phase_of_its_own(
    opened: list[JuryReward], tmp_path: Path
) -> None:
    function = reward_function(CONFIG, record=tmp_path / "run")
    opened.append(function)
    trainer = Trainer(num_generations_eval=2, model=SimpleNamespace(training=True))
    for is_training, count in ((True, 4), (False, 2), (True, 4)):
        trainer.model.training = is_training  # type: ignore[attr-defined]
        columns = trainer.columns(task_id=["a"] * count)
        call(function, [QUESTIONS[0]] * count, texts(REWARDS[:count]), **columns)
    function.close()
    with jg.Run.open(tmp_path / "run") as run:
        labels = {trace.response_id: trace.labels for trace in run.traces()}
    evaluated = {"step": 311, "phase": "eval"}  # of what 311 steps have made
    assert labels == {
        **{f"a@{number}/{place}": {"step": 312} for number in (1, 2) for place in (1, 2, 3, 4)},
        **{f"a@eval:1/{place}": evaluated for place in (1, 2)},
    }


def test_three_groups_without_a_reward_stop_the_training_also_over_calls(
    opened: list[JuryReward], tmp_path: Path
) -> None:
    function = reward_function(CONFIG, record=tmp_path / "run", failed="none")
    opened.append(function)
    for question in QUESTIONS:
        assert call(function, [question] * 2, ["x", "y"]) == [None, None]
    told = f"3 groups in a row .*'4 \\+ 4\\?'; `jurygraph show {tmp_path / 'run'}` has"
    with pytest.raises(NoRewardError, match=told):
        call(function, ["4 + 4?"] * 2, ["x", "y"])


MIXED: dict[str, Any] = {
    "evaluators": [
        {"use": "maths.accuracy", "if_missing": "not_applicable"},
        {"use": "criteria", "if_missing": "not_applicable"},
    ],
    "reward": {"accuracy": 1.0, "rubric": 1.0},
}


@pytest.mark.parametrize("judged_position", [0, 3])
def test_prompts_that_the_judge_never_answers_stop_no_training_in_which_it_judges_others(
    judged_position: int, opened: list[JuryReward]
) -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        is_refused = "Refuse" in str(body["messages"])
        return status(500) if is_refused else judge_reply(body)

    prompts = [f"Refuse {number}." for number in range(4)]
    prompts[judged_position] = "Thank Ann."
    with run_server(script) as server:
        calls = {"attempts": 1, "cache": False}
        config = {**MIXED, "model": f"openai-compatible:{server.url}#tiny", "calls": calls}
        function = reward_function(config, reference="answers", rubric="points", failed="none")
        opened.append(function)
        columns = {"answers": [None] * 4, "points": ["Does it thank?"] * 4}
        for _ in range(2):
            rewards = call(function, prompts, ["Thank you, Ann."] * 4, **columns)
            assert [reward is not None for reward in rewards].index(True) == judged_position
        prompts[judged_position] = "2 + 2?"  # a right answer says nothing of the judge
        columns["answers"][judged_position] = "4"
        columns["points"][judged_position] = None  # type: ignore[call-overload]
        with pytest.raises(NoRewardError, match=r"3 groups in a row got no reward at all: .*500"):
            call(function, prompts, ["It is 4."] * 4, **columns)


@all_rows(
    "rubric, others, problem",
    [
        (None, (), "`rubric=` names no column"),
        ("points", (), "`rubric='points'` has no value there"),
        (
            None,
            ("checks",),
            "`rubric=` names no column; column 'checks' is filled there, and no parameter names it: rubric='checks'?",
        ),
        (
            None,
            ("checks", "source"),
            "`rubric=` names no column; columns 'checks', 'source' are filled there, and no parameter names them",
        ),
    ],
)
def test_rows_to_which_nothing_applies_name_the_columns_that_they_lack(
    rubric: str | None, others: tuple[str, ...], problem: str
) -> None:
    function = reward_function(
        {**MIXED, "model": "none"}, reference="answers", rubric=rubric, failed="none"
    )
    columns: dict[str, Any] = {"answers": [None] * 3, "points": [None] * 3, "images": ["a"] * 3}
    columns |= {name: ["Does it thank?"] * 3 for name in others}
    message = (
        r"3 groups in a row got no reward at all: row 3 of the call \('Thank Eve.'\) has nothing to be judged by: "
        rf"`reference='answers'` has no value there, {re.escape(problem)}; "
    )
    chats = [[{"role": "user", "content": f"Thank {name}."}] for name in ("Ann", "Ben", "Eve")]
    with pytest.raises(NoRewardError, match=message):
        call(function, chats, ["Thanks."] * 3, **columns)
    function.close()


def test_a_row_without_what_the_reward_counts_is_named_by_its_prompt(
    opened: list[JuryReward],
) -> None:
    evaluators = ["maths.accuracy", "criteria"]
    columns = {"reference": "answers", "rubric": "points"}
    opened.append(reward_function({**MIXED, "evaluators": evaluators, "model": "none"}, **columns))
    with pytest.raises(
        PlanError, match=r"row 2 of the call \('3 \+ 3\?'\): task 'prompt-.* no rubric"
    ):
        call(
            opened[0],
            ["2 + 2?", "3 + 3?"],
            ["4", "6"],
            answers=["4", "6"],
            points=["Is it 4?", None],
        )


def test_a_column_with_the_name_of_a_parameter_that_names_none_is_refused(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    opened.append(reward_function({**MIXED, "model": "none"}, reference="answers", failed="none"))
    (record,) = caplog.records
    assert record.getMessage().startswith("criteria needs a rubric for each prompt; name the")
    prompts = ["2 + 2?", "Thank Ann."]
    columns = {"answers": ["4", None], "rubric": [None, "Does it thank?"]}
    problem = (
        "column 'rubric' is filled in row 2 of the call ('Thank Ann.'), criteria needs it, and no parameter names it; "
        "write rubric='rubric', or remove or rename the column"
    )
    with pytest.raises(InputError, match=re.escape(problem)):
        call(opened[0], prompts, ["4", "Thanks."], **columns)
    columns["rubric"] = [None, None]
    assert call(opened[0], prompts, ["4", "Thanks."], **columns) == [1.0, None]
    defaults = {"rubric": {"criteria": [{"id": "kind", "text": "Is it kind?", "weight": 1}]}}
    config = {**MIXED, "model": "none", "task_defaults": defaults}
    opened.append(reward_function(config, reference="answers", failed="none"))
    columns["rubric"] = [None, "Does it thank?"]
    assert call(opened[1], prompts, ["4", "Thanks."], **columns) == [None, None], "no model"


def test_a_jury_of_pairs_refuses_a_part_of_a_group(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    whole = reward_function(PAIRS, group_size=2)
    opened.append(whole)
    assert call(whole, [QUESTIONS[0]] * 2, ["long", "short one"]) == [0.0, 1.0]
    with pytest.raises(InputError, match=r"has 3 of the 2 samples .* `jurygraph serve` judges"):
        call(whole, [QUESTIONS[0]] * 3, ["a", "bb", "ccc"])
    seen = reward_function(PAIRS)
    opened.append(seen)
    with pytest.raises(InputError, match="has 1 of the 4 samples"):
        call(seen, [QUESTIONS[0]], ["a"], **Trainer().columns())
    unknown = reward_function(PAIRS, failed="none")
    opened.append(unknown)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            call(unknown, [QUESTIONS[0]], ["a"])
    assert len([record for record in caplog.records if "group_size" in record.message]) == 1


def test_findings_without_a_quotation_are_said_once_and_once_more_where_they_are_the_most(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        quotes = response_in(body).split()[:1]
        met = {"reason": "It thanks.", "quotes": quotes, "met": True, "probability": 0.9}
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), met)))

    weak, good = "Thank you. It has two.", "Congratulations, Ann."
    with run_server(script) as server:
        config = {
            "model": f"openai-compatible:{server.url}#tiny",
            "evaluators": [{"use": "criteria", "params": {"criteria": ["It is polite."]}}],
            "calls": {"cache": False},
        }
        function = reward_function(config)
        opened.append(function)
        trainer = Trainer()
        for answers in ([weak, good], [weak, good], [weak] * 3 + [good], [weak] * 4):
            scores = [0.0 if answer == weak else 0.9 for answer in answers]
            columns = trainer.columns()
            assert call(function, ["Hello?"] * len(answers), answers, **columns) == scores
        opened.append(reward_function({**config, "safety": {"evidence": "preferred"}}))
        assert call(opened[1], ["Hello?"] * 2, [weak] * 2) == [0.9, 0.9]
    assert trainer.metrics["jury/unsupported"] == 1.0
    assert trainer.extra["jury_unsupported"] == [1] * 4
    one, most = (record.getMessage() for record in caplog.records)
    assert one.startswith("a finding on prompt-")
    assert most.startswith("of a call, 3 of 4 findings had no quotation that counts (")
    assert all("evidence: preferred" in warning for warning in (one, most))


def test_what_is_wrong_is_named_when_the_function_is_made(tmp_path: Path) -> None:
    config = tmp_path / "jury.yaml"
    config.write_text("model: none\nevaluators: [maths.acuracy]\n", encoding="utf-8")
    slip = r"jury\.yaml, line 2, key evaluators\[0\]: .*did you mean maths\.accuracy"
    with pytest.raises(ConfigError, match=slip):
        reward_function(config)
    with pytest.raises(InputError, match=r"jury\.yaml: is a file; to record, name a folder"):
        reward_function(CONFIG, record=config)
    with pytest.raises(InputError, match="there is no such file"):
        reward_function("missing.yaml")
    with pytest.raises(InputError, match="failed: is 'skip'"):
        reward_function(CONFIG, failed="skip")
    with pytest.raises(InputError, match="group_size: is 0"):
        reward_function(CONFIG, group_size=0)
    with pytest.raises(InputError, match="beside: is 'brief'; give a list of functions"):
        reward_functions(CONFIG, beside="brief")
    with pytest.raises(InputError, match=r"beside: is .*; give a list of functions"):
        reward_functions(CONFIG, beside=form)  # type: ignore[arg-type]
    other = reward_function(CONFIG)

    @wraps(other)
    async def with_zeros(**columns: Any) -> list[float]:
        return [value or 0.0 for value in await other(**columns)]

    masked = reward_functions(CONFIG, beside=[form])[1]
    for function in (other, partial(other, task_id=["a"]), other.__call__, with_zeros, masked):
        with pytest.raises(InputError, match="function of another jury, and TRL counts what fails"):
            reward_functions(CONFIG, beside=[partial(form), function])


def test_two_juries_give_the_mean_for_what_fails_under_names_of_their_own(
    opened: list[JuryReward],
) -> None:
    functions = [
        reward_function(CONFIG, failed="neutral", name=name) for name in ("jury", "strict")
    ]
    opened += functions
    trainer = Trainer(functions=functions)
    for function in functions:
        copy = pickle.loads(pickle.dumps(function))
        opened.append(copy)
        values = call(copy, [QUESTIONS[0]] * 4, texts(REWARDS), **trainer.columns())
        assert values == pytest.approx([0.25, 0.5, 1.75 / 3, 1.0])
        assert copy.__name__ == function.__name__
    assert [function.__name__ for function in functions] == ["jury_reward", "strict_reward"]
    assert trainer.metrics["strict/failed"] == trainer.metrics["jury/failed"] == 0.25


@all_rows(
    "folder, field", [("run/{ranks}", "{ranks}"), ("run/{rank", "{rank"), ("{step}/run", "{step}")]
)
def test_a_folder_to_record_in_has_one_field(folder: str, field: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"'{field}' is no field of a folder")):
        reward_function(CONFIG, record=folder)


def test_a_call_with_wrong_samples_says_which(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    function = reward_function(CONFIG, group_size=3, failed="none")
    opened.append(function)
    with pytest.raises(InputError, match="group_size: is 3, and a call has 4 samples of a prompt"):
        call(function, ["2 + 2?"] * 4, texts(REWARDS))
    with pytest.raises(InputError, match="completion 2 of the call is None"):
        call(function, ["2 + 2?"] * 3, ["4", None, "5"])
    other = reward_function(CONFIG, failed="none")
    opened.append(other)
    call(other, ["2 + 2?"] * 2, ["4", "5"], task_id=["a", "b"])
    assert "samples of one prompt have the ids 'a' and 'b'" in caplog.text


@all_rows(
    "column",
    [np.array([4, 5]), np.array(["4", "5"], dtype=object), UserList(["4", "5"]), ("4", "5")],
)
def test_a_column_may_be_an_array_or_another_sequence(column: Any) -> None:
    function = reward_function({"evaluators": ["maths.accuracy"]}, reference="sol")
    assert call(function, ["2 + 2?", "2 + 3?"], ["4", "4"], sol=column) == [1.0, 0.0]
    function.check({"prompt": "2 + 2?", "sol": cell} for cell in column)
    with pytest.raises(InputError, match="column 'sol' has 2 values, and there are 1 prompts"):
        call(function, ["2 + 2?"], ["4"], sol=column)
    function.close()


def test_a_call_without_samples_has_no_rewards(opened: list[JuryReward]) -> None:
    trainer = Trainer()
    functions: list[Any] = reward_functions(CONFIG, beside=[form])
    opened.append(functions[0])
    assert call(functions[0], [], [], **trainer.columns()) == []
    assert functions[1](prompts=[], completions=[], **trainer.columns()) == []
    assert (trainer.metrics, trainer.extra) == ({}, {})


def test_a_column_and_a_function_with_other_numbers_of_values_are_named(
    opened: list[JuryReward],
) -> None:
    jury, short = reward_functions(
        CONFIG, beside=[partial(lambda completions, **_: [1.0])], reference="answer"
    )
    opened.append(jury)  # type: ignore[arg-type]
    samples: dict[str, Any] = {"prompts": ["2 + 2?"] * 2, "completions": texts([1.0, 1.0])}
    with pytest.raises(
        InputError, match=r"reference: column 'answer' has 1 values, and there are 2"
    ):
        call(jury, *samples.values(), answer=["4"])
    with pytest.raises(InputError, match=r"<lambda>: returned 1 rewards for 2 completions"):
        short(**samples, answer=["4", "4"])


def test_a_reference_that_no_column_gives_is_missed_when_the_function_is_made(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    opened.append(reward_function({"evaluators": ["maths.accuracy"]}))
    (record,) = caplog.records
    assert record.message.startswith("maths.accuracy needs a reference for each prompt; name the")
    opened.append(reward_function({"evaluators": ["maths.accuracy"]}, reference="answer"))
    assert caplog.records == [record]


def test_a_version_of_trl_without_a_mask_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, has_mask in (("1.5.1", False), ("1.6.0", True), ("0.29.0", False)):
        monkeypatch.setitem(
            __import__("sys").modules, "trl", type("trl", (), {"__version__": version})
        )
        assert read_trainer_settings(Trainer().log_metric).has_trainer_nan_masking is has_mask


def test_the_rows_of_a_data_set_are_checked_before_a_training(opened: list[JuryReward]) -> None:
    evaluators = [
        {"use": name, "if_missing": "not_applicable"} for name in ("criteria", "maths.accuracy")
    ]
    config = {"evaluators": evaluators, "reward": {"accuracy": 0.5, "rubric": 0.5}}
    opened.append(reward_function(config, reference="solution", rubric="points"))
    right = {"prompt": "2 + 2?", "solution": "4", "points": None}
    opened[0].check([right, {"prompt": "Thank Ann.", "solution": None, "points": "Is it polite?"}])
    with pytest.raises(InputError) as refused:
        opened[0].check(
            [
                right,
                right | {"points": " "},
                {"prompt": "Thank Ann.", "solution": None, "points": "Short?\nShort?"},
                {"prompt": "Thank Bo.", "solution": None, "points": None},
                {"solution": "4", "points": None},
            ]
        )
    blank, repeated, lacking, unasked = str(refused.value).splitlines()
    assert blank.startswith("rubric: column 'points' is empty in row 2 of the data set")
    assert repeated.startswith("row 3 of the data set ('Thank Ann.'), column 'points', `rubric")
    assert lacking == (
        "row 4 of the data set ('Thank Bo.') has nothing to be judged by: `reference='solution'` has no value there, "
        "`rubric='points'` has no value there"
    )
    assert unasked == "row 5 of the data set: has no `prompt`; it has points, solution"
    with pytest.raises(InputError, match="has 'prompt' in the place of a row; give a list of rows"):
        opened[0].check(["prompt", "solution"])


def test_rows_without_a_column_or_a_reference_are_named_before_a_training(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    def check(*rows: dict[str, Any], **use: str) -> None:
        evaluators = [{"use": "maths.accuracy", **use}, "maths.format"]
        config = {"evaluators": evaluators, "reward": {"accuracy": 1.0, "format": 0.2}}
        opened.append(reward_function(config, reference="solution"))
        opened[-1].check(rows)

    right = {"prompt": "2 + 2?", "task_id": "T-1", "solution": "4"}
    with pytest.raises(InputError) as refused:
        check(right, {"prompt": "3 + 3?"}, {"prompt": "3 + 4?", "solution": "7"})
    assert str(refused.value) == (
        "row 2 of the data set ('3 + 3?'): lacks the column 'solution' (reference), which rows before it have"
    )
    with pytest.raises(InputError, match=r"no column 'solution'; it has none but the prompt$"):
        check({"prompt": "3 + 3?"}, {"prompt": "3 + 4?"})
    missing = [{"prompt": prompt, "solution": None} for prompt in ("3 + 3?", "3 + 4?")]
    check(right, *missing, if_missing="not_applicable")
    assert caplog.records == []
    check(right, *missing)
    (record,) = caplog.records
    assert record.message == (
        "maths.accuracy: judges nothing without reference, so that the reward may fail; give it, or set its "
        "`if_missing: not_applicable` (rows 2 (None), 3 (None))"
    )


def test_rows_with_one_id_that_differ_are_found_before_a_training(opened: list[JuryReward]) -> None:
    opened.append(reward_function(Config(evaluators=("maths.accuracy",)), reference="solution"))
    row = {"task_id": "T-1", "prompt": "2 + 2?", "solution": "4"}
    opened[0].check([row, row])
    with pytest.raises(InputError) as refused:
        opened[0].check([row, row | {"prompt": "3 + 3?"}, row, row | {"solution": "5"}])
    remedy = "of the data set differ; give each prompt an id of its own"
    assert str(refused.value).splitlines() == [
        f"task 'T-1': rows 1 and 2 {remedy}",
        f"task 'T-1': rows 1 and 4 {remedy}",
    ]


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        " ",
        [],
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ""}],
    ],
)
def test_a_row_with_an_empty_prompt_is_found_before_a_training(
    opened: list[JuryReward], prompt: Any
) -> None:
    opened.append(reward_function(Config(evaluators=("maths.accuracy",)), reference="solution"))
    image = [{"type": "image", "image": "sign.png"}]
    opened[0].check([{"prompt": [{"role": "user", "content": image}], "solution": "4"}])
    with pytest.raises(InputError, match="the prompt is empty; write one, or leave"):
        opened[0].check([{"prompt": prompt, "solution": "4"}])


def test_references_that_no_value_can_be_read_from_are_noted_before_a_training(
    opened: list[JuryReward], caplog: pytest.LogCaptureFixture
) -> None:
    opened.append(reward_function(Config(evaluators=("maths.accuracy",)), reference="solution"))
    references = ["80", "about eighty", "about 80 or so", "Paris"]
    opened[0].check([{"prompt": "8 * 10?", "solution": text} for text in references])
    words, unreadable = (record.message for record in caplog.records)
    assert "only the same words are right (rows 2 ('about eighty'), 4 ('Paris'))" in words
    assert "nothing is judged by it (row 3 ('about 80 or so'))" in unreadable
