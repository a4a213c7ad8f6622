"""The study of stored runs uses the scores, decisions and weights of their rewards."""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.sources.config import apply_settings
from jurygraph.studies.credit import EDGE_KINDS, RunRubricScores, read_rubric_scores, report
from tests.graphs.scripted import evaluator_use
from tests.runs.sample_runs import score, write_tasks
from tests.studies.figures import Figures, figures_of

CONFIG: dict[str, Any] = {
    "evaluators": [evaluator_use("met", audience="criterion")],
    "reward": {"rubric": 1.0},
    "failure": {"min_coverage": 0.01},
}
CHAIN = [("a", "b", "strong"), ("b", "c", "strong")]


def task_line(
    name: str,
    weights: Mapping[str, float],
    edges: Sequence[Any],
    scripts: Sequence[Mapping[str, Any]],
) -> Any:
    """Return a task; a script has the answer of the evaluator for each criterion of a response."""
    return {
        "id": name,
        "query": "What is right?",
        "rubric": {
            "criteria": [
                {"id": one, "text": f"criterion {one}", "weight": weight}
                for one, weight in weights.items()
            ],
            "edges": [
                {"parent": p, "child": c, "kind": k, "reason": f"{c} needs {p}"}
                for p, c, k in edges
            ],
        },
        "responses": [
            {
                "id": f"{name}/{row}",
                "text": "a response",
                "data": {f"met@{one}": given for one, given in script.items()},
            }
            for row, script in enumerate(scripts)
        ],
    }


def score_run(folder: Path, lines: Sequence[Any], config: Mapping[str, Any] = CONFIG) -> Path:
    score(folder / "run", write_tasks(folder, lines), config)
    return folder / "run"


def rescore_run(folder: Path, name: str, *settings: str) -> Path:
    with closing(Run.open(folder)) as run:
        rescore(run, folder.parent / name, apply_settings(run.config, settings), lambda count: None)
    return folder.parent / name


def read_run_sheets(folder: Path) -> RunRubricScores:
    with closing(Run.open(folder)) as run:
        return read_rubric_scores(run, lambda count: None)


def study_run(folder: Path) -> Figures:
    return figures_of(report(read_run_sheets(folder), random_graph_count=1))


def rewards_of(folder: Path) -> list[float]:
    """Return the rewards of the responses that have one."""
    with closing(Run.open(folder)) as run:
        return [trace.reward.value for trace in run.traces() if trace.reward.value is not None]


def random_tasks(tasks: int, seed: int = 3) -> list[Any]:
    """Return random rubrics and answers: scores, the judges' own decisions, and missing verdicts."""
    draw = random.Random(seed)
    return [_random_task(f"t{place}", draw) for place in range(tasks)]


def _random_task(name: str, draw: random.Random) -> Any:
    criteria = [f"c{i}" for i in range(draw.randint(2, 6))]
    weights = {one: draw.choice([1.0, 2.0, 3.0, -1.0]) for one in criteria} | {
        draw.choice(criteria): 1.5
    }
    order = draw.sample(criteria, len(criteria))
    edges = [
        (parent, child, draw.choice(EDGE_KINDS))
        for at, parent in enumerate(order)
        for child in order[at + 1 :]
        if draw.random() < 0.7
    ]
    answers: list[Callable[[], Any]] = [lambda: draw.choice([0.0, 0.25, 0.5, 0.75, 1.0])] * 8 + [
        lambda: {"score": draw.random(), "met": draw.random() < 0.5},
        lambda: "response",
    ]
    return task_line(
        name, weights, edges, [{one: draw.choice(answers)() for one in criteria} for _ in range(3)]
    )


@pytest.fixture(scope="module")
def lines() -> list[Any]:
    return random_tasks(25)


@pytest.fixture(scope="module")
def run(lines: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return score_run(tmp_path_factory.mktemp("credit"), lines)


@pytest.fixture(scope="module")
def figures(run: Path) -> Figures:
    return study_run(run)


def test_every_reward_equals_that_of_the_run_bit_for_bit(run: Path) -> None:
    found = {}
    for one in read_run_sheets(run).sheets:
        found |= zip(
            one.responses,
            one.rewards(one.graph_gated_scores(one.retention(1.0))).tolist(),
            strict=True,
        )
    assert found == {trace.response_id: trace.reward.value for trace in Run.open(run).traces()}


@pytest.mark.parametrize("setting", ["rubric.aggregation=flat", "rubric.aggregation=hard-local"])
def test_the_aggregation_of_the_run_does_not_change_the_report(
    run: Path, figures: Figures, setting: str
) -> None:
    assert study_run(rescore_run(run, f"as {setting}", setting)) == figures


def test_the_order_of_the_file_does_not_change_the_report(
    lines: list[Any], figures: Figures, tmp_path: Path
) -> None:
    shuffled = [
        {
            **one,
            "rubric": {name: part[::-1] for name, part in one["rubric"].items()},
            "responses": one["responses"][::-1],
        }
        for one in reversed(lines)
    ]
    assert study_run(score_run(tmp_path, shuffled)) == figures


def test_omitted_tasks_and_responses_are_counted(tmp_path: Path) -> None:
    lines = [
        task_line(
            "failed",
            {"a": 1.0, "b": -1.0},
            [("a", "b", "weak")],
            [{"a": 0.0, "b": given} for given in (1.0, "infrastructure")],
        ),
        {
            "id": "bare",
            "query": "And else?",
            "responses": [{"id": "bare/0", "text": "a response", "data": {"plain": 1.0}}],
        },
        task_line("edgeless", {"a": 1.0}, [], [{"a": 1.0}]),
    ]
    for one in lines:
        for response in one["responses"]:
            response["data"]["plain"] = 0.5
    config = {
        "evaluators": [*CONFIG["evaluators"], evaluator_use("plain")],
        "reward": {"plain": 1.0},
    }
    found = study_run(score_run(tmp_path, lines, config))
    assert found.census.left_out == {"tasks without a rubric that counts by its criteria": 1}
    assert (
        found.census.tasks,
        found.census.responses,
        found.census.rubrics,
        found.census.graphs,
    ) == (3, 4, 2, 1)
    assert (found.census.examples, found.census.edges, found.census.unjudged) == (3, 2, 1)


EDGE = [("a", "b", "weak")]


def component(combiner: str, names: str, *edges: tuple[str, str, str]) -> dict[str, Any]:
    """Return a config whose rubric component is written by hand, with other edges."""
    params = (
        {"edges": [dict(zip(("parent", "child", "kind"), edge, strict=True)) for edge in edges]}
        if edges
        else {}
    )
    inputs = {one: {"verdicts_of": f"met@{one}"} for one in names}
    return {"components": {"rubric": {"combiner": combiner, "inputs": inputs, "params": params}}}


CYCLE = "tasks whose edges form a cycle"
OTHER = "tasks of which the config states other edges, κ or inference than their rubric and the run"


@pytest.mark.parametrize(
    ("config", "edges", "why"),
    [
        ({"rubric": {"aggregation": "flat"}}, [*EDGE, ("b", "a", "weak")], CYCLE),
        (component("gear", "ab", ("b", "a", "weak")), EDGE, OTHER),
        (component("gear", "ab", ("a", "b", "strong")), EDGE, OTHER),
        (component("mean", "a"), EDGE, "tasks without a rubric that counts by its criteria"),
    ],
    ids=["a cycle", "other edges", "another kind", "another combiner"],
)
def test_a_task_whose_rubric_was_not_used_with_its_graph_is_omitted(
    tmp_path: Path, config: dict[str, Any], edges: list[Any], why: str
) -> None:
    run = score_run(
        tmp_path,
        [task_line("t", {"a": 1.0, "b": 1.0}, edges, [{"a": 0.0, "b": 1.0}])],
        CONFIG | config,
    )
    with pytest.raises(InputError, match=f"{why}: 1"):
        study_run(run)


def test_a_criterion_that_does_not_apply_is_removed_from_the_total_weight(tmp_path: Path) -> None:
    """b is asked only where a is met, and counts as missing where it is not: the rest is the whole then."""
    config = {
        **CONFIG,
        "evaluators": [
            evaluator_use(
                "met", audience="criterion", whens={"b": {"question": "met@a", "threshold": 0.5}}
            )
        ],
        "rubric": {"if_skipped": "left-out"},
    }
    edges = [("a", "b", "weak"), ("a", "c", "strong")]
    scripts = [{"a": 0.0, "b": 1.0, "c": 1.0}, {"a": 1.0, "b": 1.0, "c": 1.0}]
    run = score_run(
        tmp_path, [task_line("t", {"a": 1.0, "b": 2.0, "c": 1.0}, edges, scripts)], config
    )
    found = study_run(run)
    assert (found.census.edges, found.census.unjudged) == (4, 1)
    assert found.methods["flat"].leakage.value == 0.5  # c of a and c
    assert found.methods["gear"].reward == pytest.approx(sum(rewards_of(run)) / 2)


@pytest.mark.parametrize(
    "task",
    [
        task_line("t", {"a": 1.0, "b": 1.0}, [], [{"a": 0.0, "b": 1.0}]),
        task_line(
            "t", {"a": 1.0, "b": -1.0}, [("a", "b", "weak")], [{"a": 0.0, "b": "infrastructure"}]
        ),
    ],
    ids=["no edge", "no reward"],
)
def test_a_run_without_rewards_from_edges_is_refused(task: Any, tmp_path: Path) -> None:
    run = score_run(tmp_path, [task])
    with pytest.raises(
        InputError, match="none of its 1 responses has a reward from a rubric with edges"
    ):
        study_run(run)
