"""The study of real runs: the same scores, decisions and weights as the rewards were made of."""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import apply_settings, rescore
from jurygraph.studies.credit import EDGE_KINDS, CreditReport, CreditStudy, Settings, read_sheets
from jurygraph.studies.credit.sheets import Sheets
from tests.graphs.cast import told
from tests.runs.made import score, write_tasks
from tests.studies.credit import reference
from tests.studies.credit.reference import RULES, Example, Link

CONFIG: dict[str, Any] = {
    "evaluators": [told("met", audience="criterion")],
    "reward": {"rubric": 1.0},
    "failure": {"min_coverage": 0.01},
}
CHAIN = [("a", "b", "strong"), ("b", "c", "strong")]


def line(name: str, weights: Mapping[str, float], edges: Sequence[Any], scripts: Sequence[Mapping[str, Any]]) -> Any:
    """A line of TASKS; a script says of each criterion what its evaluator answers."""
    return {
        "id": name,
        "query": "What is right?",
        "rubric": {
            "criteria": [{"id": one, "text": f"criterion {one}", "weight": weight} for one, weight in weights.items()],
            "edges": [{"parent": p, "child": c, "kind": k, "reason": f"{c} needs {p}"} for p, c, k in edges],
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


def made(folder: Path, lines: Sequence[Any], config: Mapping[str, Any] = CONFIG) -> Path:
    score(folder / "run", write_tasks(folder, lines), config)
    return folder / "run"


def again(folder: Path, name: str, *settings: str) -> Path:
    with closing(Run.open(folder)) as run:
        rescore(run, folder.parent / name, apply_settings(run.config, settings), lambda count: None)
    return folder.parent / name


def sheets(folder: Path) -> Sheets:
    with closing(Run.open(folder)) as run:
        return read_sheets(run, lambda count: None)


def studied(folder: Path, **settings: Any) -> CreditReport:
    return CreditStudy(sheets(folder), Settings(**{"seeds": 1, "resamples": 20} | settings)).run(lambda count: None)


def rewards(folder: Path) -> list[float]:
    """Of the responses that have one."""
    with closing(Run.open(folder)) as run:
        return [trace.reward.value for trace in run.traces() if trace.reward.value is not None]


def drawn(tasks: int, seed: int = 3) -> list[Any]:
    """Random rubrics and scripts: scores, decisions of the judges' own, and questions that nobody answered."""
    draw = random.Random(seed)
    return [_drawn(f"t{place}", draw) for place in range(tasks)]


def _drawn(name: str, draw: random.Random) -> Any:
    criteria = [f"c{i}" for i in range(draw.randint(2, 6))]
    weights = {one: draw.choice([1.0, 2.0, 3.0, -1.0]) for one in criteria} | {draw.choice(criteria): 1.5}
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
    return line(name, weights, edges, [{one: draw.choice(answers)() for one in criteria} for _ in range(3)])


def examples(lines: Sequence[Any]) -> list[Example]:
    """The same as plain examples, under the conservative rule: what nobody judged is 0, and a penalty there.

    Without responses of which nothing was judged, which have no reward.
    """
    found = [_example(task, response["data"]) for task in lines for response in task["responses"]]
    return [one for one in found if any(one.judged)]


def _example(task: Any, script: Mapping[str, Any]) -> Example:
    names = [one["id"] for one in task["rubric"]["criteria"]]
    weights = [one["weight"] for one in task["rubric"]["criteria"]]
    answers = [script[f"met@{name}"] for name in names]
    judged = [answer != "response" for answer in answers]
    p = [_score(answer) if known else float(w < 0) for answer, known, w in zip(answers, judged, weights, strict=True)]
    met = [a["met"] if isinstance(a, dict) else score >= 0.5 for a, score in zip(answers, p, strict=True)]
    links = [Link(names.index(e["parent"]), names.index(e["child"]), e["kind"]) for e in task["rubric"]["edges"]]
    return Example(weights, links, p, judged, met)


def _score(answer: Any) -> float:
    return answer["score"] if isinstance(answer, dict) else answer


@pytest.fixture(scope="module")
def lines() -> list[Any]:
    return drawn(25)


@pytest.fixture(scope="module")
def run(lines: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("credit"), lines)


@pytest.fixture(scope="module")
def report(run: Path) -> CreditReport:
    return studied(run)


def test_the_figures_of_a_run_are_those_of_the_reference(report: CreditReport, lines: list[Any]) -> None:
    assert report.census.examples == len(examples(lines)) > 70
    assert report.census.unjudged > 20
    for name, rule in RULES.items():
        method = report.methods[name]
        assert method.leakage.cases > 20
        expected = [figure(examples(lines), rule, EDGE_KINDS) for figure in (reference.leakage, reference.preservation)]
        assert [method.leakage.value, method.preservation.value] == pytest.approx(expected, abs=1e-12, rel=0)
    assert report.methods["hard-local"].leakage.value > 0  # of parents below 0.5 that their judge calls met
    assert report.methods["hard-transitive"].preservation.value < report.methods["hard-local"].preservation.value


@pytest.mark.parametrize("name", RULES)
def test_the_mean_reward_of_a_rule_is_that_of_the_run_re_scored_by_it(
    run: Path, report: CreditReport, name: str
) -> None:
    values = rewards(again(run, name, f"rubric.aggregation={name}"))
    assert report.methods[name].reward == pytest.approx(sum(values) / len(values), abs=1e-12)


def test_every_reward_is_the_run_s_to_the_last_bit(run: Path) -> None:
    found = {}
    for one in sheets(run).sheets:
        found |= zip(one.responses, one.rewards(one.gated_scores(one.retention(1.0))).tolist(), strict=True)
    assert found == {trace.response_id: trace.reward.value for trace in Run.open(run).traces()}


@pytest.mark.parametrize("setting", ["rubric.aggregation=flat", "rubric.aggregation=hard-local"])
def test_how_the_run_itself_aggregated_changes_nothing(run: Path, report: CreditReport, setting: str) -> None:
    assert studied(again(run, f"as {setting}", setting)) == report


def test_of_a_re_scored_run_its_own_kappa_counts(run: Path, report: CreditReport) -> None:
    found = studied(again(run, "stronger", "rubric.kappa=2"))
    assert found.kappa == 2.0
    assert found.methods["gear"].leakage.value == report.ablations.kappas["2"].leakage
    assert found.ablations.kappas == report.ablations.kappas
    assert {one.retention for one in found.losses if one.kind == "weak"} == {0.36}


def test_kappa_zero_is_the_flat_run_bit_for_bit(run: Path) -> None:
    assert rewards(again(run, "zero", "rubric.kappa=0")) == rewards(again(run, "flattened", "rubric.aggregation=flat"))


def test_the_order_of_the_file_changes_no_figure(lines: list[Any], report: CreditReport, tmp_path: Path) -> None:
    shuffled = [
        {
            **one,
            "rubric": {name: part[::-1] for name, part in one["rubric"].items()},
            "responses": one["responses"][::-1],
        }
        for one in reversed(lines)
    ]
    assert studied(made(tmp_path, shuffled)) == report


def test_the_hard_gates_differ_at_depth_two_of_a_chain(tmp_path: Path) -> None:
    """a is not met, b and c are. Local gates shut b alone, for c's own parent holds; transitive ones c as well."""
    run = made(tmp_path, [line("t", dict.fromkeys("abc", 1.0), CHAIN, [{"a": 0.0, "b": 1.0, "c": 0.9}])])
    assert rewards(again(run, "local", "rubric.aggregation=hard-local")) == [pytest.approx(0.9 / 3)]
    assert rewards(again(run, "transitive", "rubric.aggregation=hard-transitive")) == [0.0]
    found = studied(run).methods
    assert found["hard-local"].preservation.value == 1.0
    assert found["hard-transitive"].preservation.value == 0.0
    assert found["gear"].preservation.value == pytest.approx(0.2 + 0.8 * 0.2)
    assert found["flat"].leakage.value == pytest.approx(1 / 3)
    assert found["gear"].leakage.value == pytest.approx(0.2 / 3)


def test_an_edge_s_own_retention_and_reason_are_kept(tmp_path: Path) -> None:
    task = line("t", {"a": 1.0, "b": 1.0}, [("a", "b", "strong")], [{"a": 0.0, "b": 1.0}])
    task["rubric"]["edges"][0]["retention"] = 0.5
    (lost,) = studied(made(tmp_path, [task])).losses
    assert (lost.retention, lost.reason, lost.mean_loss) == (0.5, "b needs a", 0.25)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    lines = [
        line(
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
        line("edgeless", {"a": 1.0}, [], [{"a": 1.0}]),
    ]
    for one in lines:
        for response in one["responses"]:
            response["data"]["plain"] = 0.5
    config = {"evaluators": [*CONFIG["evaluators"], told("plain")], "reward": {"plain": 1.0}}
    found = studied(made(tmp_path, lines, config))
    assert found.census.left_out == {"tasks without a rubric that counts by its criteria": 1}
    assert (found.census.tasks, found.census.responses, found.census.rubrics, found.census.graphs) == (3, 4, 2, 1)
    assert (found.census.examples, found.census.edges, found.census.unjudged) == (3, 2, 1)


@pytest.mark.parametrize(
    ("config", "edges", "why"),
    [
        (
            {"rubric": {"aggregation": "flat"}},
            [("a", "b", "weak"), ("b", "a", "weak")],
            "tasks whose edges form a cycle",
        ),
        (
            {
                "components": {
                    "rubric": {
                        "combiner": "gear",
                        "inputs": {one: {"of": f"met@{one}"} for one in "ab"},
                        "params": {"edges": [{"parent": "b", "child": "a", "kind": "weak"}]},
                    }
                }
            },
            [("a", "b", "weak")],
            "tasks of which the config states other edges or another κ than their rubric and the run",
        ),
        (
            {
                "components": {
                    "rubric": {
                        "combiner": "gear",
                        "inputs": {one: {"of": f"met@{one}"} for one in "ab"},
                        "params": {"edges": [{"parent": "a", "child": "b", "kind": "strong"}]},
                    }
                }
            },
            [("a", "b", "weak")],
            "tasks of which the config states other edges or another κ than their rubric and the run",
        ),
        (
            {"components": {"rubric": {"combiner": "mean", "inputs": {"a": {"of": "met@a"}}}}},
            [("a", "b", "weak")],
            "tasks without a rubric that counts by its criteria",
        ),
    ],
    ids=["a cycle", "other edges", "another kind", "another combiner"],
)
def test_a_task_whose_rubric_did_not_count_by_its_graph_is_left_out(
    tmp_path: Path, config: dict[str, Any], edges: list[Any], why: str
) -> None:
    run = made(tmp_path, [line("t", {"a": 1.0, "b": 1.0}, edges, [{"a": 0.0, "b": 1.0}])], CONFIG | config)
    with pytest.raises(InputError, match=f"{why}: 1"):
        studied(run)


def test_a_response_whose_reward_failed_is_left_out(tmp_path: Path) -> None:
    task = line(
        "t", {"a": 1.0, "b": -1.0}, [("a", "b", "weak")], [{"a": 0.0, "b": given} for given in (1.0, "infrastructure")]
    )
    found = studied(made(tmp_path, [task]))
    assert found.census.left_out == {"responses whose reward failed": 1}
    assert (found.census.examples, found.methods["flat"].leakage.cases) == (1, 1)


def test_a_criterion_that_does_not_apply_leaves_the_whole(tmp_path: Path) -> None:
    """b is asked only where a is met, and counts as missing where it is not: the rest is the whole then."""
    config = {
        **CONFIG,
        "evaluators": [told("met", audience="criterion", whens={"b": {"question": "met@a", "threshold": 0.5}})],
        "rubric": {"gated": "missing"},
    }
    edges = [("a", "b", "weak"), ("a", "c", "strong")]
    scripts = [{"a": 0.0, "b": 1.0, "c": 1.0}, {"a": 1.0, "b": 1.0, "c": 1.0}]
    run = made(tmp_path, [line("t", {"a": 1.0, "b": 2.0, "c": 1.0}, edges, scripts)], config)
    found = studied(run)
    assert (found.census.edges, found.census.unjudged) == (4, 1)
    assert found.methods["flat"].leakage.value == 0.5  # c of a and c
    assert found.exact.unjudged == 1
    assert found.methods["gear"].reward == pytest.approx(sum(rewards(run)) / 2)


def test_a_criterion_dropped_for_its_group_is_no_case(tmp_path: Path) -> None:
    config = {**CONFIG, "failure": {"min_coverage": 0.01, "group_rule": "drop-criterion"}}
    scripts = [{"a": 0.0, "b": "abstained", "c": 1.0}, {"a": 0.0, "b": 1.0, "c": 1.0}]
    run = made(tmp_path, [line("t", dict.fromkeys("abc", 1.0), CHAIN, scripts)], config)
    found = studied(run)
    assert (found.census.edges, found.census.unjudged) == (4, 4)
    assert found.methods["gear"].leakage.value is None
    assert found.methods["gear"].reward == pytest.approx(sum(rewards(run)) / 2)


def test_erased_tasks_are_counted(tmp_path: Path) -> None:
    lines = [line(name, {"a": 1.0, "b": 1.0}, [("a", "b", "weak")], [{"a": 0.0, "b": 1.0}]) for name in ("t", "u")]
    run = made(tmp_path, lines)
    erase(run, "task", "t", "")
    found = studied(run)
    assert found.census.left_out == {"tasks that were erased": 1}
    assert found.census.examples == 1


@pytest.mark.parametrize(
    "task",
    [
        line("t", {"a": 1.0, "b": 1.0}, [], [{"a": 0.0, "b": 1.0}]),
        line("t", {"a": 1.0, "b": -1.0}, [("a", "b", "weak")], [{"a": 0.0, "b": "infrastructure"}]),
    ],
    ids=["no edge", "no reward"],
)
def test_without_credit_to_follow_the_run_is_refused(task: Any, tmp_path: Path) -> None:
    run = made(tmp_path, [task])
    with pytest.raises(InputError, match="none of its 1 responses has a reward from a rubric with edges"):
        studied(run)


def test_it_is_the_same_every_time(run: Path, report: CreditReport) -> None:
    assert studied(run).model_dump_json() == report.model_dump_json()
