"""The example of rubrics: WritingBench's criteria under reviewed graphs, and responses that plant false credit."""

import csv
import gzip
import json
import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from jurygraph import Response, Rubric, Task
from jurygraph.agents.functions import REGISTERED
from jurygraph.aggregation import gear
from jurygraph.schema import Criterion
from jurygraph.sources import read_tasks
from tests.cli import conftest as command_line
from tests.cli.conftest import Command, traces
from tests.models.judge_scripts import items_of, quotable, requested_items, response_in
from tests.models.server import Answer, Server, reply_with, run_server

ROOT = Path(__file__).parent.parent
RUBRIC = ROOT / "examples" / "rubric"
TEMPLATE = ROOT / "jurygraph" / "cli" / "templates" / "rubric"
RAW = ROOT / "tests" / "data" / "writingbench" / "rubrics.jsonl.gz"
SCORE = ("score", RUBRIC / "tasks.jsonl.gz", "--config", RUBRIC / "read.yaml", "--out")
LICENSED = {"core": {"core", "additional", "penalty"}, "applicability": {"additional", "penalty"}}
"""Which roles may stand below which (GEAR, D.1)."""

run = command_line.run
Values = NDArray[np.float64]


class Case(NamedTuple):
    """A response with its task's rubric, its local scores and its graph, all in the order of the criteria."""

    response: Response
    rubric: Rubric
    p: Values
    parents: NDArray[np.intp]
    children: NDArray[np.intp]
    kinds: tuple[str, ...]

    @property
    def weights(self) -> Values:
        return np.array([criterion.weight for criterion in self.rubric.criteria])

    @property
    def rules(self) -> dict[str, Values]:
        """The scores under each rule."""
        edges = (self.p, self.parents, self.children)
        return {
            "flat": self.p,
            "gear": gear.exact_marginals(*edges, gear.retention(self.kinds)),
            "hard-local": gear.hard(*edges),
            "hard-transitive": gear.hard(*edges, mode="transitive"),
        }

    def reward(self, rule: str) -> float:
        return float(gear.reward(self.rules[rule], self.weights))


def read_in(folder: Path) -> dict[tuple[str, str], tuple[float, str]]:
    with (folder / "readings.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(row["response"], row["criterion"]): (float(row["value"]), row["reason"]) for row in rows}
    assert len(found) == len(rows)
    return found


def local(criterion: Criterion, value: float) -> float:
    low, high = criterion.scale or (0.0, 1.0)
    return (value - low) / (high - low)


@pytest.fixture(scope="module")
def groups() -> list[tuple[Task, tuple[Response, ...]]]:
    return list(read_tasks(RUBRIC / "tasks.jsonl.gz"))


@pytest.fixture(scope="module")
def rubrics(groups: list[tuple[Task, tuple[Response, ...]]]) -> list[Rubric]:
    return [task.rubric for task, _ in groups if task.rubric is not None]


@pytest.fixture(scope="module")
def cases(groups: list[tuple[Task, tuple[Response, ...]]]) -> list[Case]:
    read, found = read_in(RUBRIC), []
    for task, responses in groups:
        assert task.rubric is not None
        names = [criterion.id for criterion in task.rubric.criteria]
        graph = gear.edges(names, [(edge.parent, edge.child, edge.kind) for edge in task.rubric.edges])
        for response in responses:
            p = np.array([local(one, read[response.id, one.id][0]) for one in task.rubric.criteria])
            found.append(Case(response, task.rubric, p, *graph))
    return found


@pytest.fixture(autouse=True)
def _own_cache_and_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replies are kept in a folder of the test's own, and `reading` is imported anew: several folders have one."""
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop("reading", None)
    with patch.dict(REGISTERED):
        yield
    sys.modules.pop("reading", None)


@pytest.fixture
def server() -> Iterator[Server]:
    """A model that finds all that it is asked about at the top of its scale, or met."""

    def script(body: dict[str, Any], number: int) -> Answer:
        assert 1 <= len(requested_items(body)) <= 4
        quotes = quotable(response_in(body))
        return reply_with(json.dumps({name: answer(item, quotes) for name, item in items_of(body).items()}))

    def answer(item: dict[str, Any], quotes: list[str]) -> dict[str, Any]:
        best = {"value": 10} if "value" in item["properties"] else {"met": True, "probability": 1.0}
        return {"reason": "so it is", "quotes": quotes, **best}

    with run_server(script) as server:
        yield server


def test_the_files_are_what_the_script_makes_of_the_rubrics_and_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = runpy.run_path(str(RUBRIC / "build.py"))["main"]
    monkeypatch.setitem(main.__globals__, "HERE", tmp_path)
    main(RAW)
    made, shipped = (gzip.decompress((folder / "tasks.jsonl.gz").read_bytes()) for folder in (tmp_path, RUBRIC))
    assert made == shipped
    assert (tmp_path / "readings.csv").read_bytes() == (RUBRIC / "readings.csv").read_bytes()


def test_the_criteria_are_those_of_writingbench_with_its_anchors_and_some_marked_as_our_own(
    groups: list[tuple[Task, tuple[Response, ...]]],
) -> None:
    with gzip.open(RAW, "rt", encoding="utf-8") as file:
        raw = [json.loads(line) for line in file]
    assert len(raw) == 20
    for (task, _), row in zip(groups, raw, strict=True):
        assert (task.id, task.query) == (f"writingbench-{row['index']}", row["query"])
        assert task.rubric is not None
        theirs, own = task.rubric.criteria[:5], task.rubric.criteria[5:]
        for criterion, stated in zip(theirs, row["checklist"], strict=True):
            assert (criterion.text, criterion.scale) == (stated["criteria_description"], (1, 10))
            assert criterion.anchors == {level: stated[level] for level in ("1-2", "3-4", "5-6", "7-8", "9-10")}
        assert 1 <= len(own) <= 3
        assert all(criterion.id.startswith("own-") and criterion.scale is None for criterion in own)


def test_each_task_has_a_sound_and_a_hollow_response_and_a_third_that_say_what_they_are(
    groups: list[tuple[Task, tuple[Response, ...]]],
) -> None:
    third = [responses[2].agent for _, responses in groups]
    assert {agent: third.count(agent) for agent in third} == {"partial": 6, "uncited": 9, "overdone": 5}
    for _, responses in groups:
        assert [response.agent for response in responses[:2]] == ["sound", "hollow"]
        for response in responses:
            assert 120 <= len(response.text.split()) <= 350
            assert response.labels["made"]
            assert bool(response.labels["planted"]) == (response.agent != "sound")


def test_every_edge_has_a_reason_and_joins_roles_that_may_be_joined(rubrics: list[Rubric]) -> None:
    for rubric in rubrics:
        role = {criterion.id: criterion.role for criterion in rubric.criteria}
        assert 2 <= len(rubric.edges) <= 6
        for edge in rubric.edges:
            assert edge.reason.endswith(".")
            assert role[edge.child] in LICENSED[role[edge.parent] or "none"], edge
            assert (edge.kind == "activation") == (role[edge.parent] == "applicability"), edge


def test_a_penalty_is_what_has_a_negative_weight(rubrics: list[Rubric]) -> None:
    for criterion in (criterion for rubric in rubrics for criterion in rubric.criteria):
        assert (criterion.role == "penalty") == (criterion.weight < 0)


def test_all_that_a_graph_may_hold_is_there_and_no_cycle(rubrics: list[Rubric]) -> None:
    found: dict[str, int] = dict.fromkeys(("weak", "strong", "activation", "penalty", "depth 2", "two parents"), 0)
    for rubric in rubrics:
        names = [criterion.id for criterion in rubric.criteria]
        parents, children, kinds = gear.edges(names, [(one.parent, one.child, one.kind) for one in rubric.edges])
        gear.compile(len(names), parents, children)  # refuses a cycle
        for kind in kinds:
            found[kind] += 1
        penalties = {criterion.id for criterion in rubric.criteria if criterion.weight < 0}
        found["penalty"] += sum(edge.child in penalties and edge.kind != "activation" for edge in rubric.edges)
        found["depth 2"] += bool(set(parents) & set(children))
        found["two parents"] += len(set(children)) < len(children)
    assert found == {"weak": 46, "strong": 41, "activation": 14, "penalty": 6, "depth 2": 18, "two parents": 17}


def test_two_graphs_hold_a_diamond(rubrics: list[Rubric]) -> None:
    diamonds = 0
    for rubric in rubrics:
        above = {c.id: {edge.parent for edge in rubric.edges if edge.child == c.id} for c in rubric.criteria}
        diamonds += any(
            above[one] & above[other] for roots in above.values() for one in roots for other in roots if one < other
        )
    assert diamonds >= 2


def test_each_response_was_read_for_each_criterion_on_its_scale(cases: list[Case]) -> None:
    read = read_in(RUBRIC)
    asked = {(case.response.id, one.id) for case in cases for one in case.rubric.criteria}
    assert read.keys() == asked
    assert all(reason and not reason.endswith(".") for _, reason in read.values())
    assert all(((case.p >= 0) & (case.p <= 1)).all() for case in cases)


def test_the_planted_cases_are_all_the_edges_whose_child_is_met_and_parent_is_not(cases: list[Case]) -> None:
    for case in cases:
        names = [criterion.id for criterion in case.rubric.criteria]
        found = {
            f"{names[parent]} -> {names[child]}"
            for parent, child in zip(case.parents, case.children, strict=True)
            if case.p[parent] < 0.5 <= case.p[child]
        }
        assert found == set(case.response.labels["planted"]), case.response.id  # type: ignore[arg-type]


def test_gear_stops_most_false_credit_and_takes_no_rightful_credit_whole_as_hard_gates_do(cases: list[Case]) -> None:
    leaked: dict[str, list[float]] = {}
    kept: dict[str, list[float]] = {}
    for case in cases:
        full = case.weights[case.weights > 0].sum()
        for rule, scores in case.rules.items():
            for parent, child in zip(case.parents, case.children, strict=True):
                if case.p[child] < 0.5:
                    continue
                if case.p[parent] < 0.5:
                    leaked.setdefault(rule, []).append(abs(case.weights[child]) / full * scores[child])
                else:
                    kept.setdefault(rule, []).append(scores[child] / case.p[child])
    leakage = {rule: float(np.mean(found)) for rule, found in leaked.items()}
    assert (len(leaked["flat"]), len(kept["flat"])) == (69, 163)
    assert leakage["hard-local"] == leakage["hard-transitive"] == 0.0
    assert leakage["gear"] < 0.3 * leakage["flat"]
    assert min(kept["gear"]) > 0.1 > min(kept["hard-local"]) == min(kept["hard-transitive"]) == 0.0
    # Graded parents (7 of 10) shade GEAR's credit, where a gate is open or shut; so its mean is a little below here.
    assert 0.8 < np.mean(kept["gear"]) < np.mean(kept["hard-transitive"]) < np.mean(kept["hard-local"]) < 1.0


def test_a_hollow_response_beats_the_sound_one_under_flat_in_four_tasks_and_under_gear_in_none(
    cases: list[Case],
) -> None:
    rewards = {case.response.id: {rule: case.reward(rule) for rule in ("flat", "gear")} for case in cases}

    def beaten(rule: str) -> set[str]:
        tasks = {name.split("/")[0] for name in rewards}
        return {task for task in tasks if rewards[f"{task}/hollow"][rule] > rewards[f"{task}/sound"][rule]}

    assert beaten("flat") == {f"writingbench-{index}" for index in (91, 206, 366, 393)}
    assert beaten("gear") == set()


def test_a_chain_tells_the_hard_gates_apart(cases: list[Case]) -> None:
    (case,) = (one for one in cases if one.response.id == "writingbench-369/hollow")
    place = [criterion.id for criterion in case.rubric.criteria].index("own-fairy-tale")
    assert {rule: scores[place] > 0 for rule, scores in case.rules.items()} == {
        "flat": True,
        "gear": True,
        "hard-local": True,  # its parent, the romance, is met
        "hard-transitive": False,  # and is gated itself, since they meet on a beach
    }


def test_the_readings_are_verdicts_on_the_scale_and_become_the_rewards_of_gear(
    tmp_path: Path, run: Command, cases: list[Case]
) -> None:
    ended = run(*SCORE, tmp_path / "run")
    assert ended.code == 0, ended.err
    assert "462 judged + 0 abstained + 0 failed + 0 not applicable = 462 requested" in ended.out
    found = {trace["response_id"]: trace for trace in traces(run, tmp_path / "run")}
    for case in cases:
        trace = found[case.response.id]
        assert trace["reward"]["value"] == pytest.approx(case.reward("gear"), abs=1e-12)
        by_criterion = {verdict["subject"]: verdict for verdict in trace["verdicts"]}
        for criterion, score in zip(case.rubric.criteria, case.p, strict=True):
            verdict = by_criterion[criterion.id]
            assert (verdict["layer"], verdict["score"], verdict["met"]) == ("human", score, score >= 0.5)
            assert verdict["scale"] == list(criterion.scale or (0, 1))


def test_rescoring_without_suppression_is_the_flat_run_bit_for_bit(tmp_path: Path, run: Command) -> None:
    for name in ("reading.py", "readings.csv"):
        shutil.copyfile(RUBRIC / name, tmp_path / name)
    (tmp_path / "flat.yaml").write_text("evaluators: [reading.read]\nrubric: {aggregation: flat}\n")
    assert run(*SCORE, tmp_path / "run").code == 0
    assert run("rescore", tmp_path / "run", "--out", tmp_path / "anew", "--set", "rubric.kappa=0").code == 0
    scored = ("score", RUBRIC / "tasks.jsonl.gz", "--config", tmp_path / "flat.yaml", "--out", tmp_path / "flat")
    assert run(*scored).code == 0
    anew, flat = (
        {trace["response_id"]: trace["reward"]["value"].hex() for trace in traces(run, tmp_path / name)}
        for name in ("anew", "flat")
    )
    assert len(flat) == 60
    assert anew == flat


def test_what_nobody_has_read_abstains(tmp_path: Path, run: Command) -> None:
    shutil.copytree(RUBRIC, tmp_path / "rubric")
    rows = (RUBRIC / "readings.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "rubric" / "readings.csv").write_text("".join(rows[:-1]), encoding="utf-8")
    scored = ("score", tmp_path / "rubric" / "tasks.jsonl.gz", "--config", tmp_path / "rubric" / "read.yaml")
    ended = run(*scored, "--out", tmp_path / "run")
    assert ended.code == 0
    assert "461 judged + 1 abstained" in ended.out


def test_with_a_model_there_are_rewards_and_the_dry_run_foretells_the_calls(
    tmp_path: Path, run: Command, server: Server
) -> None:
    judged = ("score", RUBRIC / "tasks.jsonl.gz", "--config", RUBRIC / "jury.yaml", "--out", tmp_path / "run")
    named = (*judged, "--model", f"openai-compatible:{server.url}#tiny")
    expected = json.loads(run(*named, "--dry-run", "--json").out)["model"]["expected"]["calls"]
    assert server.count == 0
    ended = run(*named)
    assert ended.code == 0, ended.err
    assert "462 judged + 0 abstained" in ended.out
    assert server.count == expected


def test_without_a_model_every_question_to_one_abstains_and_the_command_says_so(tmp_path: Path, run: Command) -> None:
    ended = run("score", RUBRIC / "tasks.jsonl.gz", "--config", RUBRIC / "jury.yaml", "--out", tmp_path / "run")
    assert ended.code == 1
    assert "0 judged + 462 abstained" in ended.out
    assert "60 of 60 rewards failed and have no value" in ended.err


def test_the_template_holds_three_of_the_tasks_with_their_readings(
    groups: list[tuple[Task, tuple[Response, ...]]],
) -> None:
    there = list(read_tasks(TEMPLATE / "tasks.jsonl"))
    assert len(there) == 3
    assert all(one in groups for one in there)
    assert (TEMPLATE / "reading.py").read_bytes() == (RUBRIC / "reading.py").read_bytes()
    responses = {response.id for _, group in there for response in group}
    read = {key: found for key, found in read_in(RUBRIC).items() if key[0] in responses}
    assert read_in(TEMPLATE) == read


def test_the_template_stops_false_credit_without_a_model(tmp_path: Path, run: Command) -> None:
    jury = tmp_path / "jury"
    assert run("init", jury, "--template", "rubric").code == 0
    files = ["README.md", "judge.yaml", "jury.yaml", "reading.py", "readings.csv", "tasks.jsonl"]
    assert sorted(path.name for path in jury.iterdir()) == files
    assert run("score", jury / "tasks.jsonl", "--out", jury / "run").code == 0
    assert run("rescore", jury / "run", "--out", jury / "flat", "--set", "rubric.kappa=0").code == 0
    for name, better in (("run", "sound"), ("flat", "hollow")):
        reward = {trace["response_id"]: trace["reward"]["value"] for trace in traces(run, jury / name)}
        tasks = {response.split("/")[0] for response in reward}
        assert len(tasks) == 3
        assert all(max(f"{task}/sound", f"{task}/hollow", key=reward.__getitem__).endswith(better) for task in tasks)


def test_the_template_says_what_a_model_would_cost(tmp_path: Path, run: Command) -> None:
    jury = tmp_path / "jury"
    assert run("init", jury, "--template", "rubric").code == 0
    asked = ("score", jury / "tasks.jsonl", "--config", jury / "judge.yaml", "--out", jury / "run")
    ended = run(*asked, "--dry-run", "--json", "--model", "openai-compatible:http://127.0.0.1:9/v1#tiny")
    assert json.loads(ended.out)["model"]["expected"]["calls"] == 18


@pytest.mark.parametrize("page", [ROOT / "docs" / "credit.md", RUBRIC / "README.md"])
def test_the_pages_show_the_tables_of_study_credit(page: Path, tmp_path: Path, run: Command) -> None:
    assert run(*SCORE, tmp_path / "run").code == 0
    printed = " ".join(run("study", "credit", tmp_path / "run").out.split())
    found = re.search(r"```text\n(60 responses to 20 rubrics.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    for part in found[1].removesuffix("…\n").split("\n\n"):
        assert " ".join(part.split()) in printed


def test_the_readme_shows_what_explain_says_of_a_planted_case(tmp_path: Path, run: Command) -> None:
    assert run(*SCORE, tmp_path / "run").code == 0
    readme = (RUBRIC / "README.md").read_text(encoding="utf-8")
    shown = re.search(
        r"<!-- from: jurygraph explain my-rubric --response (\S+) -->\n```text\n(.*?)```", readme, re.DOTALL
    )
    assert shown is not None
    told = run("explain", tmp_path / "run", "--response", shown[1]).out
    assert told.split() == shown[2].split()  # the README wraps its lines
