"""Re-scoring: the same verdicts under other settings, without requests; unchanged settings give the same bits."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import ConfigError, InputError, PlanError, TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.deciding import VerdictTables
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import RescoringResult, rescore
from jurygraph.sources import read_tasks
from jurygraph.sources.config import apply_settings
from jurygraph.viewer.what_if import WhatIfChanges, explain_with_changes
from tests.rows import all_rows
from tests.runs.sample_runs import (
    REQUESTED,
    SIMPLE_CONFIG,
    score,
    trace_contents,
    traces_of,
    verify_run,
)


def rescore_run(folder: Path, other: Path, *settings: str) -> RescoringResult:
    REQUESTED.clear()
    with closing(Run.open(folder)) as run:
        return rescore(run, other, apply_settings(run.config, settings), lambda count: None)


def read_rewards(folder: Path) -> list[str]:
    return [trace.reward.model_dump_json() for trace in traces_of(folder)]


@pytest.mark.parametrize("name", ["plain", "rich"])
def test_unchanged_settings_give_the_same_bits(request: Any, tmp_path: Path, name: str) -> None:
    folder = request.getfixturevalue(name)
    result = rescore_run(folder, tmp_path / "other")
    assert read_rewards(tmp_path / "other") == read_rewards(folder)
    assert trace_contents(tmp_path / "other") == trace_contents(folder)
    assert (result.responses, result.changed, result.mean_before) == (12, 0, result.mean_after)
    assert REQUESTED == []


def test_a_reward_that_differs_in_its_last_bits_has_not_changed(
    plain: Path, tmp_path: Path
) -> None:
    result = rescore_run(plain, tmp_path / "other", "scale=1.0000000000000002")
    assert read_rewards(tmp_path / "other") != read_rewards(plain)
    assert result.changed == 0
    assert rescore_run(plain, tmp_path / "third", "scale=1.00001").changed > 0


@pytest.mark.landing
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("plain", ["reward.same=2", "failure.rule=strict", "clip=[-1, 1]"]),
        ("plain", ["failure.group_rule=drop-criterion"]),
        ("plain", ["failure.min_coverage=0.99", "reward={same: 1}"]),
        ("plain", ["failure.rule=gear", "scale=3", "clip=[0.25, 0.5]"]),
        ("rich", ["components={both: {inputs: {a: place, b: rank}}}", "reward={both: 0.3}"]),
        ("rich", ["rubric.kappa=3", "rubric.aggregation=flat", "reward={rubric: 1, rank: 2}"]),
        ("rich", ["criteria.more.weight=5", "criteria.core.weight=.5"]),
        ("rich", ["gates=[{kind: format, component: place, below: 0.5}]", "scale=2"]),
    ],
)
def test_rescoring_equals_scoring_with_the_same_settings(
    request: Any, tmp_path: Path, tasks: Path, name: str, settings: list[str]
) -> None:
    rescore_run(request.getfixturevalue(name), tmp_path / "other", *settings)
    assert REQUESTED == []
    config = apply_settings(Run.open(request.getfixturevalue(name)).config, settings)
    with jg.Jury.from_config(config) as jury:
        given = [
            trace for task, responses in read_tasks(tasks) for trace in jury.score(task, responses)
        ]
    assert trace_contents(tmp_path / "other") == [trace.model_dump_json() for trace in given]
    verify_run(tmp_path / "other")


def test_a_rescored_run_can_be_rescored_and_refers_to_the_first(
    plain: Path, tmp_path: Path
) -> None:
    rescore_run(plain, tmp_path / "second", "reward.same=2")
    result = rescore_run(tmp_path / "second", tmp_path / "third", "reward.same=0.5")
    assert read_rewards(tmp_path / "third") == read_rewards(plain)
    assert result.mean_before != result.mean_after
    base = Run.open(tmp_path / "third").header.base
    assert base is not None
    assert (base.folder, base.run) == (os.path.join("..", plain.name), Run.open(plain).id)


@pytest.mark.parametrize("kind", ["task", "trace"])
def test_a_changed_run_is_not_rescored(plain: Path, tmp_path: Path, kind: str) -> None:
    rescore_run(plain, tmp_path / "second", "reward.same=2")
    with closing(sqlite3.connect(tmp_path / "second" / "run.sqlite")) as ledger, ledger:
        ledger.execute("UPDATE records SET at = at + 1 WHERE kind = ?", (kind,))
    with pytest.raises(TraceMismatch, match="differs from what was written"):
        rescore_run(tmp_path / "second", tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_a_rescored_run_has_no_verdicts_and_texts_of_its_own(plain: Path, tmp_path: Path) -> None:
    rescore_run(plain, tmp_path / "other")
    ledger = Run.open(tmp_path / "other").ledger
    assert list(ledger.all_texts()) == []
    assert {record.kind for record in ledger.records()} == {
        "run",
        "decision",
        "task",
        "trace",
        "close",
    }
    assert set(next(ledger.records("trace")).content) == {"base", "reward"}


def test_newly_failed_rewards_are_counted_and_are_not_zero(tasks: Path, tmp_path: Path) -> None:
    score(tmp_path / "run", tasks, {**SIMPLE_CONFIG, "failure": {"min_coverage": 0.1}})
    result = rescore_run(tmp_path / "run", tmp_path / "other", "failure.min_coverage=1")
    values = [trace.reward.value for trace in traces_of(tmp_path / "other")]
    assert (result.failed_before, result.failed_after, values.count(None)) == (0, 1, 1)
    judged = [value for value in values if value is not None]
    assert result.mean_after == pytest.approx(sum(judged) / len(judged))


def test_a_stopped_run_is_rescored_up_to_its_last_reward(tasks: Path, tmp_path: Path) -> None:
    score(tmp_path / "run", tasks, limit=2)
    assert rescore_run(tmp_path / "run", tmp_path / "other").responses == 6
    score(tmp_path / "run", tasks)
    assert len(read_rewards(tmp_path / "other")) == 6
    assert verify_run(tmp_path / "other").traces == 6


WRONG_SETTINGS = [
    ("rubrik.kappa=2", ConfigError, r"config, key rubrik: unknown; did you mean rubric\?"),
    ("reward.tne=1", ConfigError, "reward.tne: there is no component 'tne'; did you mean tone"),
    (
        "reward.tone=much",
        ConfigError,
        "key reward.tone: is the text 'much'; write a number, without quotes",
    ),
    ("reward", ConfigError, "--set 'reward': expected key=value, such as rubric.kappa=2"),
    ("", ConfigError, "--set '': expected key=value"),
    ("=1", ConfigError, "--set '=1': expected key=value"),
    (
        "rubric.aggregation=geer",
        ConfigError,
        r"key rubric.aggregation: is the text 'geer'; did you mean gear\?",
    ),
    ("reward=[1", ConfigError, "expected a YAML value"),
    (
        "reward=!!python/object:os.system {}",
        ConfigError,
        "--set reward=!!python/object:os.system {}",
    ),
    (
        "scale.x=1",
        ConfigError,
        "--set scale.x: 'scale' has no settings of its own; set it as a whole",
    ),
    ("rubric.criteria={}", ConfigError, "key rubric.criteria: unknown; known here: "),
    (
        "evaluators.tone.fold=mean",
        ConfigError,
        "'evaluators' is a list, whose entries are counted from 0",
    ),
    (
        "components={x: {combiner: nothing.like_it, inputs: {a: tone}}}",
        ConfigError,
        "nothing.like_it",
    ),
    (
        "model=openai/gpt-5-mini",
        InputError,
        "model changes the questions, and re-scoring keeps them; use `jurygraph score --branch",
    ),
    ("evaluators=[maths.accuracy]", InputError, "evaluators changes the questions"),
    ("derivers=[manners.none]", InputError, "derivers changes the questions"),
    ("reward..tone=1", ConfigError, "key|--set"),
    (".reward=1", ConfigError, "key|--set"),
    ("reward.=1", ConfigError, "key|--set"),
    (" =1", ConfigError, "key|--set"),
]


WRONG_CRITERIA = [
    (
        "criteria.mroe.weight=2",
        ConfigError,
        "no rubric has a criterion 'mroe'; did you mean more",
    ),
    ("criteria.zzz.weight=2", ConfigError, "there are core, more$"),
    ("criteria.more.weight=0", ConfigError, "criteria.more.weight: is 0, so the criterion would"),
    ("criteria.more.weight=-1", PlanError, "'t0'.*: criteria.more.weight is -1 .* another sign"),
]


@all_rows("setting, error, message", WRONG_CRITERIA)
def test_a_weight_of_a_criterion_is_one_of_the_rubrics(
    rich: Path, tmp_path: Path, setting: str, error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        rescore_run(rich, tmp_path / "other", setting)
    with closing(Run.open(rich)) as run, pytest.raises(error, match=message):
        VerdictTables(run).decide(apply_settings(run.config, [setting]))
    with closing(Run.open(rich)) as run, pytest.raises(error, match=message):
        explain_with_changes(run, "t0/r0", WhatIfChanges(settings=(setting,)))


def test_criteria_of_an_evaluator_have_weights_too(tasks: Path, tmp_path: Path) -> None:
    criteria = {"kind": "It is kind.", "short": {"text": "It is short.", "weight": 3}}
    use = {"use": "criteria", "params": {"criteria": criteria}}
    score(tmp_path / "run", tasks, {"evaluators": [use]})
    for name, message in (
        ("short", "write --set criteria.short.weight=2"),
        ("kind", "is criteria.k"),
    ):
        with pytest.raises((ConfigError, InputError), match=message):
            rescore_run(
                tmp_path / "run", tmp_path / "no", f"evaluators.0.params.criteria.{name}.weight=2"
            )
    rescore_run(tmp_path / "run", tmp_path / "other", "criteria.kind.weight=2")
    with closing(Run.open(tmp_path / "other")) as run:
        (spec,) = run.decision_of("t0").specs
    assert {name: use.input_weight for name, use in spec.inputs.items()} == {"kind": 2, "short": 3}
    verify_run(tmp_path / "other")
    config = {"evaluators": [use], "criteria": {"sort": {"weight": 2}}}
    with pytest.raises(ConfigError, match="no rubric has a criterion 'sort'; did you mean short"):
        score(tmp_path / "new", tasks, config)


def test_the_weight_of_a_component_is_not_that_of_a_criterion(rich: Path, tmp_path: Path) -> None:
    with closing(Run.open(rich)) as run:
        name = next(iter(run.config.reward))
    with pytest.raises(ConfigError, match=f"it is a component, whose weight is reward.{name}$"):
        rescore_run(rich, tmp_path / "other", f"criteria.{name}.weight=2")


@all_rows("setting, error, message", WRONG_SETTINGS)
def test_a_wrong_setting_is_refused_and_nothing_written(
    plain: Path, tmp_path: Path, setting: str, error: type, message: str
) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=message):
        rescore_run(plain, tmp_path / "other", setting)
    assert sorted(tmp_path.iterdir()) == before


def test_an_existing_run_is_not_overwritten(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a").write_text("dear")
    for folder, message in (
        (plain, "contains a run already"),
        (tmp_path / "letters", "is neither a run nor empty"),
    ):
        with pytest.raises(InputError, match=message):
            rescore_run(plain, folder)
    verify_run(plain)


def test_a_rescored_run_finds_its_base_from_any_current_folder(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(plain)
    monkeypatch.chdir(plain)
    for name in ("../empty", "../a/b/c", "inside"):
        rescore_run(Path(), Path(name))
    rescore_run(tmp_path / "link", tmp_path / "linked")
    (tmp_path / "link").unlink()
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "a/b/c", "linked", "plain/inside"):
        assert verify_run(Path(name)).base is not None
    monkeypatch.chdir("a/b/c")
    verify_run(Path())
    plain.rename(tmp_path / "moved")
    verify_run(tmp_path / "moved" / "inside")


def test_an_erased_task_keeps_its_rewards_and_the_others_are_decided_again(
    rich: Path, tmp_path: Path
) -> None:
    rescore_run(rich, tmp_path / "whole", "rubric.aggregation=hard-local")
    erase(rich, "task", "t1", "")
    assert rescore_run(rich, tmp_path / "same").kept == 0
    assert read_rewards(tmp_path / "same") == read_rewards(rich)
    result = rescore_run(rich, tmp_path / "other", "rubric.aggregation=hard-local")
    assert result.kept == 3
    verify_run(tmp_path / "other")
    before, whole, after = (
        {trace.response_id: trace.reward.value for trace in traces_of(folder)}
        for folder in (rich, tmp_path / "whole", tmp_path / "other")
    )
    assert after == whole | {name: before[name] for name in before if name.startswith("t1/")}
    assert after != whole != before
    tried = WhatIfChanges(edges=(("core", "more", 0.0),))
    with closing(Run.open(rich)) as run, pytest.raises(InputError, match="its weights with them"):
        explain_with_changes(run, "t1/r1", tried)


WIDE = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX2 FMA3"


@pytest.mark.landing
def test_rescoring_gives_the_same_bits_without_wide_cpu_instructions(
    rich: Path, tmp_path: Path
) -> None:
    script = (
        "import sys; from pathlib import Path; from jurygraph.runs.run import Run\n"
        "from jurygraph.runs.workflows.rescoring import rescore\n"
        "from jurygraph.sources.config import apply_settings\n"
        "run = Run.open(sys.argv[1]); config = apply_settings(run.config, sys.argv[3:])\n"
        "rescore(run, Path(sys.argv[2]), config, lambda count: None)"
    )
    for name, features in (("with", ""), ("without", WIDE)):
        environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": features}
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            script,
            str(rich),
            str(tmp_path / name),
            "rubric.kappa=1.7",
        ]
        subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parents[3])
    assert read_rewards(tmp_path / "with") == read_rewards(tmp_path / "without")
