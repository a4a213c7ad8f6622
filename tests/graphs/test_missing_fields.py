"""Tasks that lack what an evaluator needs: it abstains, or does not apply where the config leaves such tasks out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jurygraph as jg
from jurygraph.errors import ConfigError, PlanError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.deciding import VerdictTables
from jurygraph.testing import ScriptedJudge
from tests.runs.sample_runs import scored_session, traces_of, verify_deeply, verify_run, write_tasks

RUBRIC = {"criteria": [{"id": "kind", "text": "It is kind.", "weight": 1}]}
ANSWER = "The answer is 4."
TASKS = [
    {
        "id": "advice",
        "query": "What now?",
        "reference": "",
        "responses": [{"id": "a", "text": ANSWER}],
    },
    {
        "id": "sum",
        "query": "2 + 2?",
        "reference": "#### 4",
        "responses": [{"id": "b", "text": ANSWER}],
    },
]


def config_of(**use: Any) -> dict[str, Any]:
    return {
        "evaluators": [{"use": "maths.accuracy", **use}, "criteria"],
        "model": "scripted",
        "task_defaults": {"rubric": RUBRIC},
        "reward": {"accuracy": 1, "rubric": 0.5},
    }


def test_a_task_without_a_reference_is_left_out_where_the_config_says_so(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path, TASKS)
    config = config_of(if_missing="not_applicable")
    judge = ScriptedJudge({"kind": 1.0})
    with scored_session(tmp_path / "run", tasks, config, model=judge) as scored:
        assert scored.summary.failed == 0
    advice, total = traces_of(tmp_path / "run")
    assert [advice.reward.value, total.reward.value] == [0.5, 1.5]
    assert (advice.reward.status, advice.reward.coverage) == ("ok", 1.0)
    (accuracy,) = (one for one in advice.verdicts if one.evaluator == "maths.accuracy")
    assert (accuracy.status, accuracy.gated_by) == ("not_applicable", "missing-field")
    assert accuracy.reason == "the task has no reference"
    with Run.open(tmp_path / "run") as run:
        explanation = str(run.explain("a"))
    assert "because of missing-field: the task has no reference" in explanation
    assert verify_run(tmp_path / "run").traces == 2
    assert verify_deeply(tmp_path / "run").recomputed == 4


def test_it_abstains_unless_the_config_says_so() -> None:
    with jg.Jury.from_config(config_of(), model=ScriptedJudge({"kind": 1.0})) as jury:
        (trace,) = jury.score(jg.Task(id="advice", query="What now?"), [ANSWER])
    assert trace.reward.value is None
    assert {one.evaluator: one.status for one in trace.verdicts} == {
        "maths.accuracy": "abstained",
        "criteria": "ok",
    }


def test_a_task_without_a_rubric_goes_without_its_component_where_the_config_says_so() -> None:
    config = {
        "evaluators": ["maths.accuracy", {"use": "criteria", "if_missing": "not_applicable"}],
        "reward": {"accuracy": 1, "rubric": 0.5},
    }
    with jg.Jury.from_config(config, model=ScriptedJudge({"kind": 1.0})) as jury:
        without = jg.Task(id="sum", query="2 + 2?", reference="4")
        judged = without.model_copy(update={"rubric": jg.Rubric.model_validate(RUBRIC)})
        rewards = [jury.score(task, [ANSWER])[0].reward for task in (without, judged)]
    assert [reward.value for reward in rewards] == [1.0, 1.5]
    assert [sorted(reward.components) for reward in rewards] == [
        ["accuracy"],
        ["accuracy", "rubric"],
    ]
    nothing = {"reward": {"rubric": 1}}, "task 'sum': has nothing that an evaluator is about"
    gate = {"gates": [{"kind": "format", "component": "rubric", "below": 0.5}]}, "a gate reads"
    for change, problem in (nothing, gate):
        with (
            jg.Jury.from_config(config | change, model=ScriptedJudge({"kind": 1.0})) as jury,
            pytest.raises(PlanError, match=problem),
        ):
            jury.prepare(without)


def test_agents_are_ranked_where_some_tasks_have_no_rubric(tmp_path: Path) -> None:
    responses = [{"id": f"{name}", "agent": name, "text": ANSWER} for name in ("ann", "bob")]
    tasks = []
    for number in range(4):
        rubric = {"rubric": RUBRIC} if number % 2 else {}
        names = [{**one, "id": f"{number}/{one['id']}"} for one in responses]
        task = {"id": f"t{number}", "query": "2 + 2?", "reference": "4", "responses": names}
        tasks.append(task | rubric)
    config = {
        "evaluators": ["maths.accuracy", {"use": "criteria", "if_missing": "not_applicable"}],
        "model": "scripted",
        "reward": {"accuracy": 1, "rubric": 0.5},
    }
    judge = ScriptedJudge({"kind": 1.0})
    with scored_session(tmp_path / "run", write_tasks(tmp_path, tasks), config, model=judge):
        pass
    with Run.open(tmp_path / "run") as run:
        decided = VerdictTables(run).decide(run.config)
    assert decided.components == ["accuracy", "rubric"]
    assert sorted(decided.values.value.tolist()) == [1.0] * 4 + [1.5] * 4
    assert np.isnan(decided.values.judged[:, 1]).sum() == 4


def test_an_evaluator_that_needs_nothing_of_a_task_has_nothing_to_leave_out() -> None:
    use = {"use": "maths.length", "if_missing": "not_applicable"}
    problem = r"evaluators\[0\].if_missing: 'maths.length' names nothing"
    with pytest.raises(ConfigError, match=problem):
        jg.Jury.from_config({"evaluators": [use]})


def test_one_judge_may_not_see_the_reference_that_others_see(tmp_path: Path) -> None:
    """Its questions are asked together as ever, and the requests of others stay the same to the byte."""
    polite = {"criteria": [*RUBRIC["criteria"], {"id": "calm", "text": "It is calm.", "weight": 1}]}
    tasks = write_tasks(tmp_path, TASKS[1:])

    def score(name: str, **fields: Any) -> tuple[ScriptedJudge, Path]:
        judge = ScriptedJudge({"kind": 1.0, "calm": 0.5, "short": 1.0})
        short = {
            "use": "criteria",
            "name": "short",
            "params": {"criteria": {"short": "It is short."}},
        }
        config = {
            "evaluators": [{**short, **fields}, {"use": "criteria", **fields}, "maths.accuracy"],
            "model": "scripted",
            "task_defaults": {"rubric": polite},
            "reward": {"accuracy": 1, "rubric": 0.5, "short": 0.5},
        }
        config["evaluators"][0].pop("reference", None)
        with scored_session(tmp_path / name, tasks, config, model=judge) as scored:
            assert scored.summary.failed == 0
        return judge, tmp_path / name

    def prompts(judge: ScriptedJudge) -> list[str]:
        return sorted(request.model_dump_json() for request in judge.requests)

    seeing, seen = score("seen")
    hiding, hidden = score("hidden", reference="hidden")
    assert [text.count("#### 4") for text in prompts(seeing)] == [1, 1]
    assert sorted(text.count("#### 4") for text in prompts(hiding)) == [0, 1]
    assert len(set(prompts(seeing)) & set(prompts(hiding))) == 1
    assert verify_deeply(hidden).recomputed == 4
    (trace,) = traces_of(hidden)
    assert trace.reward.value == traces_of(seen)[0].reward.value
    plan = Run.open(hidden).plan_of("sum")
    assert {q.evaluator: q.reference for q in plan.survey.questions} == {
        "criteria": "hidden",
        "maths.accuracy": None,
        "short": None,
    }
    assert Run.open(seen).plan_of("sum").model_dump_json().count('"hidden"') == 0


def test_who_needs_the_reference_or_asks_no_model_cannot_hide_it() -> None:
    for name in ("maths.accuracy", "maths.length"):
        with pytest.raises(ConfigError, match=rf"evaluators\[0\].reference: '{name}' needs it, or"):
            jg.Jury.from_config({"evaluators": [{"use": name, "reference": "hidden"}]})
