"""Tasks of one `group` are one unit in every study of a run, and a report says so."""

from contextlib import closing
from pathlib import Path
from typing import Any

from jurygraph.runs.run import Run
from jurygraph.studies import credit, disagreement, preference, reliability
from jurygraph.studies.certificate import _coverage_figures
from jurygraph.studies.compared_responses import iter_compared_responses
from jurygraph.studies.comparison import compare
from jurygraph.studies.preference import read_comparisons
from jurygraph.studies.report import Report
from tests.runs.sample_runs import evaluator_config, make_tasks, score, write_tasks
from tests.studies.credit.test_runs import CONFIG, task_line

EVALUATORS = [evaluator_config("same"), evaluator_config("tone")]


def scored(folder: Path, tasks: list[Any], config: Any) -> Run:
    score(folder / "run", write_tasks(folder, tasks), config)
    return Run.open(folder / "run")


def units_of(report: Report) -> tuple[object, object]:
    return report.figures["units"], report.figures["tasks"]


def test_tasks_of_one_group_are_one_unit(tmp_path: Path) -> None:
    """Six tasks in four units: two pairs and two alone."""
    tasks = make_tasks(tasks=6)
    for place, task in enumerate(tasks[:4]):
        task["group"] = f"g{place // 2}"
        for number, response in enumerate(task["responses"]):
            response["labels"] = {"preferred": number == 0}
    with closing(
        scored(tmp_path, tasks, {"evaluators": EVALUATORS, "reward": {"same": 1.0, "tone": 0.5}})
    ) as run:
        compared = compare(iter_compared_responses(run), iter_compared_responses(run))
        assert units_of(compared) == ("groups of tasks", 4)
        assert "up to 52.7% of all groups of tasks may differ" in compared.notes[0]
        rewards = reliability.report(reliability.read_scores(run))
        assert (rewards.figures["mean"].clusters, rewards.figures["rewards"]["tasks"]) == (4, 6)
        assert (
            "4 groups of tasks: with fewer than 20, shares and intervals are rough" in rewards.notes
        )
        differing = disagreement.report([disagreement.collect_component_samples(run)])
        (figures,) = differing.figures["runs"]
        assert (figures["units"], figures["tasks"]) == ("groups of tasks", 4)
        (preferred,) = preference.report(read_comparisons(run)).figures["benchmarks"]
        found = {outcome.unit for outcome in read_comparisons(run).outcomes}
        assert (found, preferred["overall"]["tasks"]) == ({"group g0", "group g1"}, 4)
        coverage, *_ = _coverage_figures(run, lambda tasks: None)
        assert coverage.value is not None


def test_rubrics_of_one_group_are_one_unit(tmp_path: Path) -> None:
    scripts = [{"a": 0.2, "b": 0.9, "c": 0.8}, {"a": 0.9, "b": 0.7, "c": 0.6}]
    lines = [
        task_line(
            f"t{n}",
            {"a": 1.0, "b": 1.0, "c": 1.0},
            [("a", "b", "strong"), ("b", "c", "weak")],
            scripts,
        )
        | {"group": f"g{n // 2}"}
        for n in range(6)
    ]
    with closing(scored(tmp_path, lines, CONFIG)) as run:
        report = credit.report(credit.read_rubric_scores(run, lambda tasks: None), 2)
    assert report.figures["census"]["units"] == "groups of tasks"
    assert report.figures["methods"]["gear"]["leakage"]["tasks"] == 3
    assert "groups of tasks with a case of leakage: 3" in "\n".join(report.notes)
