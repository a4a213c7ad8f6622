"""A run that is decided from tables of its verdicts has the rewards of `rescore`, bit for bit."""

import math
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jurygraph as jg
from jurygraph.decision import decide
from jurygraph.errors import JurygraphError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows import deciding
from jurygraph.runs.workflows.deciding import VerdictTables
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import TaskWithSurvey, rescore
from jurygraph.sources.config import apply_settings
from tests.examples import some_or_all
from tests.runs.sample_runs import traces_of

SETTINGS = {
    "plain": (
        "reward.same={}",
        "reward.same=-{}",
        "reward.late=0",
        "reward={{same: {}}}",
        "scale={}",
        "failure.rule=strict",
        "failure.rule=gear",
        "failure.min_coverage=0.9",
        "failure.group_rule=drop-criterion",
        "clip=[0, 0.5]",
        "gates=[{{kind: format, component: same, below: 0.{}}}]",
    ),
    "rich": (
        "rubric.kappa={}",
        "rubric.aggregation=hard-local",
        "rubric.exact=never",
        "weights.temperature={}",
        "weights.method=uniform",
        "weights.welfare=nash",
        "panel.min_confidence=0.{}",
        "panel.vote=all-seats",
        "reward.rubric={}",
        "reward.place=-{}",
        "reward.rank=0",
        "failure.rule=strict",
        "failure.rule=decisive",
        "failure.group_rule=drop-criterion",
        "gates=[{{kind: format, component: place, below: 0.{}}}]",
    ),
}


def draw_settings(name: str, seed: int) -> list[str]:
    draw = random.Random(f"{name} {seed}")
    chosen = draw.sample(SETTINGS[name], draw.randint(1, 3))
    return [setting.format(draw.randint(1, 9)) for setting in chosen]


@some_or_all("count", 8, 25)
@pytest.mark.parametrize("name", SETTINGS)
def test_random_changes_give_the_rewards_of_rescore(
    request: Any, tmp_path: Path, name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "_ROWS_PER_DECISION_BATCH", 10)  # several tables
    with closing(Run.open(request.getfixturevalue(name))) as run:
        tables = VerdictTables(run)
        names = tables.responses
        assert sorted(names) == sorted(trace.response_id for trace in run.traces())
        decided = 0
        for seed in range(count):
            config = apply_settings(run.config, draw_settings(name, seed))
            folder = tmp_path / f"{name}-{seed}"
            try:
                rescore(run, folder, config, lambda count: None)
            except JurygraphError as error:  # such as a gate on a component that is not there
                with pytest.raises(type(error)):
                    tables.decide(config)
                continue
            decided += 1
            rewards = dict(zip(names, tables.decide(config).values.value.tolist(), strict=True))
            for trace in traces_of(folder):
                expected = trace.reward.value
                found = rewards[trace.response_id]
                assert math.isnan(found) if expected is None else found.hex() == expected.hex()
        assert decided > 0.8 * count


def test_a_task_without_its_texts_is_decided_with_unchanged_settings_alone(plain: Path) -> None:
    with closing(Run.open(plain)) as run:
        task = next(run.traces()).task_id
        before = VerdictTables(run).decide(run.config).values.value
    erase(plain, "task", task, "as its author wished")
    with closing(Run.open(plain)) as run:
        tables = VerdictTables(run)
        assert sorted(map(str, tables.decide(run.config).values.value)) == sorted(map(str, before))
        other_config = apply_settings(run.config, ["failure.rule=strict"])
        assert tables.erased_tasks == {task}
        now, then = tables.decide(run.config).values, tables.decide(other_config).values
        kept = [index for index, (name, _) in enumerate(tables.tasks) if name == task]
        assert kept
        np.testing.assert_array_equal(now.value[kept], then.value[kept])


def test_tasks_of_other_words_are_decided_at_once_where_no_decision_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of other weights are decided apart, though the config of the run gave them one decision."""
    config: Any = {
        "evaluators": ["checks.constraints"],
        "weights": {"method": "uniform"},
    }
    check = {"count": "$.items[*]", "at_least": 1}
    with jg.Jury(**config) as jury, jury.record(tmp_path / "run"):
        for name, restrictiveness in {"a": 1.0, "b": 1.0, "c": 3.0}.items():
            stakeholders = []
            for person in ("ann", "bob"):
                constraint = jg.Constraint(
                    id="some",
                    kind="soft",
                    text=f"one for {name}",
                    check=check,
                    restrictiveness=restrictiveness if person == "ann" else 1.0,
                )
                stakeholders.append(jg.Stakeholder(id=person, constraints=(constraint,)))
            task = jg.Task(id=name, query="?", stakeholders=tuple(stakeholders))
            data = {"items": [1] * (name != "b")}
            jury.score(task, [jg.Response(id=name, text=name, data=data)])
    with closing(Run.open(tmp_path / "run")) as run:
        configs = {
            method: apply_settings(run.config, [f"weights.method={method}"])
            for method in ("uniform", "calibrated")
        }
        for method, changed in configs.items():
            rescore(run, tmp_path / method, changed, lambda count: None)
        measured_rows = record_measured_rows(monkeypatch, "stakeholders")
        tables = VerdictTables(run)
        for method, changed in configs.items():
            rewards = dict(zip(tables.responses, tables.decide(changed).values.value, strict=True))
            traces = traces_of(tmp_path / method)
            assert rewards == {trace.response_id: trace.reward.value for trace in traces}
    assert measured_rows == [3, 1, 1, 1]


def record_measured_rows(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[int]:
    """Return a list that grows by the number of rows of each table whose components of these names are computed."""
    measured_rows: list[int] = []
    measure = decide._measure_component

    def measure_and_count(spec: Any, rule: str, table: Any, *inputs: Any) -> Any:
        if spec.name in names:
            measured_rows.append(table.rows)
        return measure(spec, rule, table, *inputs)

    monkeypatch.setattr(decide, "_measure_component", measure_and_count)
    return measured_rows


@pytest.mark.parametrize(
    ("group_rule", "tables"),
    [
        ("null", [12]),  # also the questions about pairs and groups, and about variants
        ("drop-criterion", [3, 3, 3, 3]),  # here a row depends on the others of its group
    ],
)
def test_a_component_is_computed_again_only_where_a_setting_changes_it(
    group_rule: str, tables: list[int], rich: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rubrics = record_measured_rows(monkeypatch, "rubric")
    others = record_measured_rows(monkeypatch, "same")
    rule = f"failure.group_rule={group_rule}"
    gate = "gates=[{kind: format, component: same, below: 0.5}]"
    with closing(Run.open(rich)) as run:
        tables_of_run = VerdictTables(run)

        def decide_with(*settings: str) -> None:
            tables_of_run.decide(apply_settings(run.config, [rule, *settings]))

        for setting in ("reward.same=2", "reward.rubric=0.5", "scale=3", "clip=null", gate):
            decide_with(setting)
        assert rubrics == others == tables
        decide_with("rubric.kappa=3")
        decide_with("rubric.kappa=3", "reward.same=2")
        assert rubrics == 2 * tables
        assert others == tables
        decide_with(
            "rubric.kappa=3", "reward.same=-2"
        )  # what is missing of it is now the other worst
        assert others == 2 * tables


def test_a_task_is_planned_once_for_weights_of_one_sign(
    rich: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[Any] = []
    plan = TaskWithSurvey.decide

    def plan_and_count(task: TaskWithSurvey, *inputs: Any) -> Any:
        planned.append(task)
        return plan(task, *inputs)

    monkeypatch.setattr(TaskWithSurvey, "decide", plan_and_count)
    with closing(Run.open(rich)) as run:
        tables = VerdictTables(run)
        tables.decide(apply_settings(run.config, ["reward.same=2"]))
        tasks = len(planned)
        tables.decide(apply_settings(run.config, ["reward.same=3", "reward.rubric=0.7"]))
        assert 0 < tasks == len(planned)
        tables.decide(apply_settings(run.config, ["reward.same=-3"]))
        assert len(planned) == 2 * tasks


def test_what_was_decided_before_changes_no_reward(
    rich: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these differs from the next in one thing that components depend on."""
    monkeypatch.setattr(deciding, "_ROWS_PER_DECISION_BATCH", 1)  # a table for each group
    dropped = "failure.group_rule=drop-criterion"
    gate = "gates=[{kind: format, component: tone, below: 0.5}]"
    must = "gates=[{kind: must, component: tone}]"
    steps = [
        ["reward.tone=1"],
        ["reward.tone=-1"],
        ["reward.tone=-2"],
        ["reward.tone=-1", "failure.rule=gear"],
        ["reward.tone=-1"],
        ["reward.tone=-1", dropped],
        ["reward.tone=0", dropped],
        ["reward.tone=0", dropped, gate],
        ["reward.tone=0", dropped, must],
    ]
    with closing(Run.open(rich)) as run:
        tables = VerdictTables(run)
        for settings in steps:
            config = apply_settings(run.config, [*settings, "failure.min_coverage=0"])
            expected = VerdictTables(run).decide(config).values
            found = tables.decide(config).values
            assert [part.tobytes() for part in found] == [part.tobytes() for part in expected]
