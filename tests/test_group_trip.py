"""The example of group trips: who pays for a fault, and what must not matter."""

import gzip
import json
import random
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from jurygraph import Jury, Plan, Response, Task, Trace
from jurygraph.cli.render.trace import trace_lines
from jurygraph.explanation.terms import ExplainedTrace
from jurygraph.sources import read_config, read_tasks

ROOT = Path(__file__).parent.parent
TRIP = ROOT / "examples" / "group_trip"
FAULTS = ["invented-restaurant", "budget-broken", "cuisine-dropped", "house-rule-broken", "impossible-leg"]
Group = tuple[Task, Plan, dict[str, Trace]]


@pytest.fixture(scope="module")
def jury() -> Iterator[Jury]:
    with Jury.from_config(TRIP / "jury.yaml") as jury:
        yield jury


@pytest.fixture(scope="module")
def groups(jury: Jury) -> list[Group]:
    """Every task with its plan, and its traces by agent."""
    return [_scored(jury, task, responses) for task, responses in read_tasks(TRIP / "tasks.jsonl.gz")]


def _scored(jury: Jury, task: Task, responses: tuple[Response, ...]) -> Group:
    plan = jury.prepare(task)
    return task, plan, {str(trace.agent): trace for trace in jury.score(task, responses, plan)}


def utilities(trace: Trace) -> dict[str, float]:
    return trace.reward.parts["stakeholders"]


def uniform(trace: Trace) -> float:
    return trace.reward.diagnostics["stakeholders"]["group utility"]


def worth(trace: Trace) -> float:
    assert trace.reward.value is not None
    return trace.reward.value


@pytest.mark.landing
def test_the_share_that_a_stakeholder_gives_up_is_exact(groups: list[Group]) -> None:
    _, plan, traces = next(group for group in groups if group[0].id == "travelplanner-train-28")
    lines = trace_lines(ExplainedTrace(traces["impossible-leg"], plan.decision))
    assert [line.split()[-2:] for line in lines if line.startswith("milo ")] == [["0.8750", "12.5%"]]


def test_a_capped_utility_names_what_is_below_its_best_and_the_restrictiveness_is_shown(groups: list[Group]) -> None:
    rests, shown = [], []
    for task, plan, traces in groups:
        for trace in traces.values():
            text = "\n".join(trace_lines(ExplainedTrace(trace, plan.decision), (), task.stakeholders))
            shown += re.findall(r"^restrictiveness for (\S+): hard (.+?)(?:; soft .*)?$", text, re.MULTILINE)
            rests += re.findall(
                r"its hard constraints: [^;(]+; also below its best: ([^(]+) \(", str(trace.explain(plan))
            )
    assert "no-smoking of cleo 0, stars of cleo 0.5" in rests
    person = next(person for task, _, _ in groups for person in task.stakeholders)
    hard = ", ".join(f"{one.id} {one.restrictiveness:g}" for one in person.constraints if one.kind == "hard")
    assert (person.id, hard) in shown


def test_ten_groups_of_three_to_five_people_with_five_faults_each(groups: list[Group]) -> None:
    assert len(groups) == 10
    for task, _, traces in groups:
        assert 3 <= len(task.stakeholders) <= 5
        assert list(traces) == ["reference", *FAULTS]
        assert {c.kind for s in task.stakeholders for c in s.constraints} == {"hard", "soft"}


def test_everything_is_judged(groups: list[Group]) -> None:
    for _, _, traces in groups:
        assert {(trace.reward.status, trace.reward.coverage) for trace in traces.values()} == {("ok", 1.0)}


def test_the_reference_plan_ranks_first_and_every_fault_lowers_the_reward(groups: list[Group]) -> None:
    for _, _, traces in groups:
        best = worth(traces["reference"])
        assert all(
            worth(traces[fault]) < best and uniform(traces[fault]) < uniform(traces["reference"]) for fault in FAULTS
        )


def test_the_reference_plan_meets_every_need(groups: list[Group]) -> None:
    for task, _, traces in groups:
        needs = {(s.id, c.id) for s in task.stakeholders for c in s.constraints if c.kind == "hard"}
        assert not {(v.stakeholder, v.subject) for v in traces["reference"].verdicts if v.met is not True} & needs


@pytest.mark.landing
def test_without_our_cap_every_fault_still_costs_something_but_less_as_the_readme_says() -> None:
    config = read_config(TRIP / "jury.yaml")
    falls = {}
    for cap in (config.weights.cap, "none"):
        weights = config.weights.model_copy(update={"cap": cap})
        with Jury(config.model_copy(update={"weights": weights})) as jury:
            rewards = [
                {agent: worth(trace) for agent, trace in _scored(jury, task, responses)[2].items()}
                for task, responses in read_tasks(TRIP / "tasks.jsonl.gz")
            ]
        assert all(of_group[fault] < of_group["reference"] for of_group in rewards for fault in FAULTS)
        mean_falls = [fmean(of_group["reference"] - of_group[fault] for of_group in rewards) for fault in FAULTS]
        falls[cap] = f"{min(mean_falls):.2f} to {max(mean_falls):.2f}"
    text = " ".join((TRIP / "README.md").read_text(encoding="utf-8").split())
    assert f"costs {falls['none']} of the reward on average instead of {falls[0.5]}" in text


SAID = {
    "invented-restaurant": "The Gilded Lantern",
    "budget-broken": "or less",
    "cuisine-dropped": "does not include",
    "house-rule-broken": "of stays",
    "impossible-leg": "Honolulu",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_trace_names_the_fault_and_who_pays(groups: list[Group], fault: str) -> None:
    for _, _, traces in groups:
        before = {(v.stakeholder, v.question) for v in traces["reference"].verdicts if v.met is not True}
        new = [v for v in traces[fault].verdicts if v.met is not True and (v.stakeholder, v.question) not in before]
        lost = {name for name, û in utilities(traces[fault]).items() if û < utilities(traces["reference"])[name]}
        assert {v.stakeholder for v in new} <= lost
        assert any(SAID[fault] in v.reason for v in new)
        assert all(v.evidence for v in new if "does not include" not in v.reason)


def test_a_fault_that_one_heavy_traveller_pays_costs_more_than_under_equal_weights(groups: list[Group]) -> None:
    seen = 0
    for _, plan, traces in groups:
        weights = {name: one.input_weight for name, one in plan.decision.specs[0].inputs.items()}
        before = utilities(traces["reference"])
        for fault in FAULTS:
            paid = [name for name, û in utilities(traces[fault]).items() if û != before[name]]
            if len(paid) == 1 and weights[paid[0]] > 1 / len(weights):
                seen += 1
                fall = worth(traces["reference"]) - worth(traces[fault])
                assert fall > uniform(traces["reference"]) - uniform(traces[fault])
    assert seen >= 10


def test_another_profile_of_one_traveller_changes_no_bit_of_anothers_utility(jury: Jury, groups: list[Group]) -> None:
    task, plan, traces = groups[0]
    responses = _responses(task.id)
    first, *others = task.stakeholders
    changed = first.model_copy(update={"profile": "somebody else", "constraints": first.constraints[:1]})
    other = task.model_copy(update={"stakeholders": (changed, *others)})
    _, again, rescored = _scored(jury, other, responses)
    for fault, trace in traces.items():
        assert [utilities(trace)[s.id] for s in others] == [utilities(rescored[fault])[s.id] for s in others]
    asked = {q.id: q.digest for q in plan.survey.questions if not q.id.endswith(f"@{first.id}")}
    assert asked == {q.id: q.digest for q in again.survey.questions if q.id in asked}
    for view in plan.survey.views.values():
        names = {s.id for s in task.stakeholders} - {view.member}
        assert not any(f'"id":"{name}"' in view.model_dump_json() for name in names)


def _responses(task_id: str) -> tuple[Response, ...]:
    return next(responses for task, responses in read_tasks(TRIP / "tasks.jsonl.gz") if task.id == task_id)


def test_a_plan_is_of_the_task_alone_and_the_same_for_every_response(jury: Jury, groups: list[Group]) -> None:
    for task, plan, traces in groups[:3]:
        assert jury.prepare(task) == plan
        assert {trace.plan_digest for trace in traces.values()} == {plan.digest}


@pytest.mark.landing
@pytest.mark.parametrize("seed", range(4))
def test_no_order_changes_a_bit_of_a_reward(jury: Jury, groups: list[Group], seed: int) -> None:
    for task, _, traces in groups[seed::4]:
        draw = random.Random(seed)
        shuffled = Task.model_validate_json(json.dumps(_shuffled(json.loads(task.model_dump_json()), draw, True)))
        responses = [r.model_copy(update={"data": _shuffled(r.data, draw, True)}) for r in _responses(task.id)]
        again = jury.score(shuffled, responses)
        assert [t.reward.model_dump_json() for t in again] == [t.reward.model_dump_json() for t in traces.values()]


ORDERED = ("key", "at", "forms", "between", "sum")


def _shuffled(value: Any, draw: random.Random, lists: bool) -> Any:
    """Keys in another order, and lists too: but for those in which the order is part of what is said."""
    if isinstance(value, Mapping):
        keys = draw.sample(sorted(value), len(value))
        return {key: _shuffled(value[key], draw, key not in ORDERED) for key in keys}
    if isinstance(value, list):
        parts = [_shuffled(one, draw, True) for one in value]
        return draw.sample(parts, len(parts)) if lists else parts
    return value


@pytest.mark.exhaustive
def test_the_tasks_are_what_the_script_makes_of_the_reference_plans(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    built = runpy.run_path(str(TRIP / "build.py"))
    main = built["main"]
    monkeypatch.setitem(main.__globals__, "HERE", tmp_path)
    (tmp_path / "jury.yaml").write_bytes((TRIP / "jury.yaml").read_bytes())
    main(ROOT / "tests" / "data" / "travelplanner" / "train.jsonl.gz")
    made, shipped = (gzip.decompress((folder / "tasks.jsonl.gz").read_bytes()) for folder in (tmp_path, TRIP))
    assert made == shipped


@pytest.mark.exhaustive
def test_the_table_of_faults_names_the_payers(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("jurygraph")
    score = ["score", TRIP / "tasks.jsonl.gz", "--config", TRIP / "jury.yaml", "--out", tmp_path / "run"]
    subprocess.run([command, *score], check=True, capture_output=True)
    table = subprocess.run(
        [sys.executable, TRIP / "faults.py", tmp_path / "run"], check=True, capture_output=True, text=True
    )
    lines = [line.split(maxsplit=3) for line in table.stdout.splitlines() if line.startswith("  ")]
    assert [line[0] for line in lines] == ["plan", "reference", *FAULTS] * 10
    assert "cleo 0.70 → 0.00: " in next(line[3] for line in lines if line[0] == "cuisine-dropped")
    assert "…" not in table.stdout
    with subprocess.Popen(
        [sys.executable, TRIP / "faults.py", tmp_path / "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as piped:
        assert piped.stdout is not None
        assert piped.stderr is not None
        piped.stdout.close()
        assert piped.stderr.read() == b""
