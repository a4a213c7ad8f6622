"""A judge of little weight that fails is no 0 in a training: by every door its row has no number, siblings theirs."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.cli.commands import serve
from jurygraph.errors import NoRewardError
from jurygraph.graphs.groups import Group
from jurygraph.integrations import openrlhf, verifiers
from jurygraph.integrations.lazy_jury import LazyJury, find_shared_jury
from jurygraph.integrations.trl import reward_function
from jurygraph.integrations.verl import compute_score
from jurygraph.server.reward_service import RewardService, Submission
from jurygraph.testing import ScriptedJudge
from tests.command import run_command
from tests.integrations.trainers import Trainer, texts
from tests.rows import all_rows

CONFIG: dict[str, Any] = {
    "evaluators": ["tests.integrations.trainers.fixed", "tests.integrations.trainers.graded"],
    "reward": {"fixed": 1.0, "graded": 0.2},
}
"""With the judge's share of the weight, 1/6, a reward without it has enough coverage."""
GROUP = [0.5, None, 1.0, 1.0]
REWARDS = [1.1, None, 1.2, 1.2]
COUNTED_0 = [1.1, 1.0, 1.2, 1.2]


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "jury.yaml"
    path.write_text(json.dumps(CONFIG))
    yield path
    find_shared_jury(path).close()


def train(config: Any, **settings: Any) -> tuple[list[float | None], dict[str, float]]:
    """Return the rewards that TRL gets for the group, and what it logs."""
    function = reward_function(config, **settings)
    trainer = Trainer()
    rewards = function(prompts=["2 + 2?"] * 4, completions=texts(GROUP), **trainer.columns())
    values = asyncio.run(rewards)  # type: ignore[arg-type]
    function.close()
    return values, trainer.metrics


def serve_group(monkeypatch: pytest.MonkeyPatch, *options: Any) -> list[float | None]:
    """Return the rewards that `jurygraph serve` has for the group."""
    scored: list[float | None] = []

    async def score(jury: jg.Jury, settings: Any, plans: Any, *address: Any) -> None:
        service = RewardService(jury, settings, plans)
        responses = [jg.Response(text=text) for text in texts(GROUP)]
        task = None if plans is not None else jg.Task(id="sum", query="2 + 2?")
        submission = Submission(responses, task, "sum")
        scored.extend((await service.score(submission, "none")).rewards)
        await service.close()

    monkeypatch.setattr(serve, "_serve", score)
    ended = run_command("serve", *options)
    assert ended.code == 0, ended.err
    return scored


def test_no_trainer_gets_a_number_for_it_and_siblings_keep_theirs(config: Path) -> None:
    values, metrics = train(config)
    assert values == pytest.approx(REWARDS)
    assert (metrics["jury/failed"], metrics["jury/degraded"]) == (0.25, 0.0)
    assert train(config, failed="neutral")[0] == pytest.approx([1.1, 3.5 / 3, 1.2, 1.2])

    jury = LazyJury(config)  # of slime, whose groups are filled in after that
    responses = [jg.Response(text=text) for text in texts(GROUP)]
    (traces,) = asyncio.run(jury.score([Group(jg.Task(id="a", query="2 + 2?"), responses)]))
    assert [trace.reward.value for trace in traces] == pytest.approx(REWARDS)
    jury.close()

    class Judge(verifiers.JuryJudge):
        jury = config

    task = SimpleNamespace(id="sum", prompt="2 + 2?")
    for failing in (
        lambda: asyncio.run(compute_score("m", "x", "4", {"query": "2 + 2?"}, config=config)),
        lambda: openrlhf.reward_func(["2 + 2? x"], ["2 + 2?"], ["4"], config=config),
        lambda: asyncio.run(Judge().score(task, SimpleNamespace(last_reply="x"))),
    ):
        find_shared_jury(config).outages.observe([0.0])
        with pytest.raises(NoRewardError, match="1 of 1 rewards failed"):
            failing()


def test_the_server_gives_it_none_also_by_plans_of_the_conservative_rule(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, plans, run = (config.with_name(name) for name in ("t.jsonl", "plans.jsonl", "run"))
    tasks.write_text(json.dumps({"id": "sum", "query": "2 + 2?"}))
    assert run_command("plan", tasks, "--out", plans).code == 0
    assert '"rule":"conservative"' in plans.read_text()
    for options in ((), ("--tasks", tasks), ("--tasks", plans, "--out", run)):
        scored = serve_group(monkeypatch, "--config", config, *options)
        assert scored == pytest.approx(REWARDS), options
    assert run_command("verify", run, "--deep").code == 0
    config.write_text(json.dumps({**CONFIG, "failure": {"rule": "conservative"}}))
    scored = serve_group(monkeypatch, "--config", config, "--tasks", plans)
    assert scored == pytest.approx(COUNTED_0), "a config that names a rule keeps its word"


@all_rows(
    "failure, values",
    [
        ({"rule": "conservative"}, COUNTED_0),
        ({"group_rule": "drop-criterion"}, [1.0] * 4),
        ({"min_coverage": 0.5}, REWARDS),
    ],
)
def test_a_config_that_says_what_a_failure_does_keeps_its_word_and_is_seen(
    failure: Any, values: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    rewards, metrics = train({**CONFIG, "failure": failure})
    assert rewards == pytest.approx(values)
    is_degraded = None not in values
    assert bool(metrics["jury/degraded"]) is is_degraded
    assert ("has a value and lacks a verdict" in caplog.text) is is_degraded


def test_missing_verdicts_are_told_of_by_powers_of_ten(caplog: pytest.LogCaptureFixture) -> None:
    jury = LazyJury({**CONFIG, "failure": {"rule": "conservative"}})
    groups = [
        Group(jg.Task(id=f"t{number}", query="?"), [jg.Response(text="x")]) for number in range(12)
    ]
    asyncio.run(jury.score(groups))
    jury.close()
    first, tenth = (record.message for record in caplog.records)
    assert first == (
        "the reward of response t0/1 has a value and lacks a verdict: there is no number; 0.833 of the weight was "
        "judged; the rest counts as the conservative rule says (number 1 of its kind: the first, the tenth and so on "
        "are said)"
    )
    assert "(number 10 of its kind" in tenth


def test_a_record_goes_on_under_the_rule_that_it_was_begun_with(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("trained", "served"):
        with jg.Jury.from_config(config, record=tmp_path / name) as jury:
            jury.score(jg.Task(id="first", query="2 + 2?"), texts(GROUP))
    values, metrics = train(config, record=tmp_path / "trained")
    assert values == pytest.approx(COUNTED_0)
    assert metrics["jury/degraded"] == 0.25
    scored = serve_group(monkeypatch, "--config", config, "--out", tmp_path / "served")
    assert scored == pytest.approx(COUNTED_0)
    for name in ("trained", "served"):
        with jg.Run.open(tmp_path / name) as run:
            assert len(list(run.traces())) == 8
        assert run_command("verify", tmp_path / name, "--deep").code == 0


def test_a_new_process_goes_on_under_the_rule_of_the_others(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with jg.Jury.from_config(config, record=tmp_path / "[a]" / "{rank}") as jury:
        jury.score(jg.Task(id="first", query="2 + 2?"), texts(GROUP))
    assert train(config, record=tmp_path / "[a]" / "{pid}")[0] == pytest.approx(COUNTED_0)
    scored = serve_group(monkeypatch, "--config", config, "--out", tmp_path / "[a]" / "{rank}")
    assert scored == pytest.approx(COUNTED_0)
    monkeypatch.setenv("RANK", "1")
    assert train(config, record=tmp_path / "[a]" / "{rank}")[0] == pytest.approx(COUNTED_0)
    with jg.Run.open(tmp_path / "[a]") as run:
        assert len(list(run.traces())) == 16


@all_rows(("rule", "value"), [({}, 1.0), ({"rule": "strict"}, None)])
def test_a_dead_judge_that_two_others_outvote_masks_nothing(
    rule: dict[str, Any], value: float | None
) -> None:
    judges = {name: ScriptedJudge({"It is right.": 1.0}, name) for name in "ab"}
    judges["dead"] = ScriptedJudge({"It is right.": "?"}, "dead")
    config: dict[str, Any] = {
        "models": judges,
        "evaluators": [{"use": "criteria", "judges": [*judges], "fold": "majority"}],
        "failure": {"min_coverage": 0.0, **rule},
    }
    rubric: Any = {"criteria": [{"id": "right", "text": "It is right.", "weight": 1}]}
    jury = LazyJury(config)
    group = Group(jg.Task(id="sum", query="2 + 2?", rubric=rubric), [jg.Response(text="4")])
    ((trace,),) = asyncio.run(jury.score([group]))
    jury.close()
    assert trace.reward.value == value
