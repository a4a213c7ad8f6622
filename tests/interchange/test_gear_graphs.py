"""Graphs and scores of GEAR's authors: their rows become tasks, their scores responses, and the rewards are theirs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Task
from jurygraph.errors import InputError
from jurygraph.interchange.gear_graphs import (
    NO_TEXT_IMPORT_NOTE,
    OMITTED_EDGES_IMPORT_NOTE,
    read_gear_graphs,
)
from jurygraph.schema import Edge
from tests.aggregation.test_gear_reference import EXACT, VALID
from tests.rows import all_rows

NODES = {"r1": "foundation", "r2": "bonus", "r3": "penalty", "r4": "trigger"}


def make_row(edges: list[Mapping[str, str]], **reward_model: Any) -> dict[str, Any]:
    points = {"r1": 4.0, "r2": 6.0, "r3": -3.0, "r4": 1.0}
    rubrics = [
        {"id": name, "criterion": f"It is {name}.", "points": points[name]} for name in NODES
    ]
    nodes = [{"id": name, "node_type": kind} for name, kind in NODES.items()]
    graph = {"nodes": nodes, "edges": edges}
    model = {"style": "rubric", "rubrics": rubrics, "graph": graph, **reward_model}
    prompt = [{"role": "user", "content": "Is it theft?"}]
    return {"data_source": "plawbench", "prompt": prompt, "reward_model": model}


def make_edge(parent: str, child: str, kind: str = "strong_prerequisite") -> dict[str, str]:
    return {"parent": parent, "child": child, "type": kind}


def make_line(*p: float, **fields: Any) -> dict[str, Any]:
    return {"output": "It is.", "p_list": list(p), "score": 0.5, "step": 20, **fields}


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_row_is_a_task_with_its_graph_and_roles(tmp_path: Path) -> None:
    edges = [
        make_edge("r1", "r2"),
        make_edge("r1", "r3", "weak_prerequisite"),
        make_edge("r4", "r3", "trigger"),
        make_edge("r1", "r3"),
        make_edge("r2", "r1"),
        make_edge("r1", "r1"),
        make_edge("r9", "r1"),
        make_edge("r3", "r2", "unknown"),
    ]
    about = {"prompt": [], "reward_model": {}, "source_meta": {"label": "theft"}}
    row = {**make_row(edges), "ability": "law", "extra_info": about}
    ((task, notes),) = read_gear_graphs(write_lines(tmp_path / "rows.jsonl", [row]))
    assert task is not None
    assert task.rubric is not None
    assert task.id == "plawbench-1"
    assert task.metadata == {"ability": "law", "source_meta": {"label": "theft"}}
    roles = [criterion.role for criterion in task.rubric.criteria]
    assert roles == ["core", "additional", "penalty", "applicability"]
    assert task.rubric.edges == (
        Edge(parent="r1", child="r2", kind="strong"),
        Edge(parent="r1", child="r3", kind="weak"),
        Edge(parent="r4", child="r3", kind="activation"),
    )
    assert [(note.what, note.where) for note in notes] == [
        (OMITTED_EDGES_IMPORT_NOTE, "plawbench-1: 5")
    ]


def test_the_lines_of_a_dump_are_responses_equally_many_for_each_row(tmp_path: Path) -> None:
    # verl writes nested columns as JSON texts, too
    row = {**make_row([]), "reward_model": json.dumps(make_row([])["reward_model"])}
    rows = write_lines(tmp_path / "rows.jsonl", [row, row])
    lines = [make_line(0.1, 0.2, 0.3, 0.4), make_line(1, 1, 1, 1, output=" ")]
    lines += [make_line(0, 1, 0, 1, criteria_met_list=[False, True, False, True], dag_reward=0.7)]
    lines += [make_line(0, 0, 0, 1, rubric_ids=["r4", "r3", "r2", "r1"])]
    tasks = list(read_gear_graphs(rows, write_lines(tmp_path / "dump.jsonl", lines)))
    found = {response.id: response for task, _ in tasks if task for response in task.responses}
    assert list(found) == ["plawbench-1/1", "plawbench-2/1", "plawbench-2/2"]
    assert found["plawbench-2/1"].data == {
        "scores": {
            "r1": {"score": 0.0, "met": False},
            "r2": {"score": 1.0, "met": True},
            "r3": {"score": 0.0, "met": False},
            "r4": {"score": 1.0, "met": True},
        }
    }
    assert found["plawbench-2/1"].metadata == {"step": 20, "rewards": {"gear": 0.7}}
    assert found["plawbench-2/2"].data["scores"]["r1"] == {"score": 1.0}
    assert [note.what for note in tasks[0].notes] == [NO_TEXT_IMPORT_NOTE]


@all_rows(
    ("line", "message"),
    [
        (make_line(0.1), "field p_list: has 1 values for 4 criteria; give one for each"),
        (make_line(0, 0, 0, 2), "field p_list[3]: is the number 2"),
        (make_line(0, 0, 0, 0, criteria_met_list=[True]), "field criteria_met_list: has 1 values"),
        (make_line(0, 0, 0, 0, input="Is it murder?"), "field input: does not contain the prompt"),
        (make_line(0, 0, 0, 0, rubric_ids=["r1", "r2", "r3", "x"]), "field rubric_ids: names 'x'"),
    ],
)
def test_a_line_that_is_not_about_its_row_is_refused(
    line: dict[str, Any], message: str, tmp_path: Path
) -> None:
    rows = write_lines(tmp_path / "rows.jsonl", [make_row([])])
    dump = write_lines(tmp_path / "dump.jsonl", [line])
    with pytest.raises(InputError) as refused:
        list(read_gear_graphs(rows, dump))
    assert str(refused.value).startswith(f"{dump}, line 1, {message}")


def test_lines_that_are_no_multiple_of_the_rows_are_refused(tmp_path: Path) -> None:
    rows = write_lines(tmp_path / "rows.jsonl", [make_row([]), make_row([])])
    dump = write_lines(tmp_path / "dump.jsonl", [make_line(0, 0, 0, 0)] * 3)
    with pytest.raises(InputError, match="3 lines for the 2 rows"):
        list(read_gear_graphs(rows, dump))


@pytest.mark.parametrize(
    ("cases", "exact", "name"), [(VALID, "never", "gear"), (EXACT, "ten-nodes", "gear_exact")]
)
def test_scores_in_give_the_reward_of_the_authors_aggregator(
    cases: list[dict[str, Any]], exact: str, name: str, tmp_path: Path
) -> None:
    """As by their scripts, one pass, or enumeration up to ten criteria (`exact_auto`)."""
    rows = []
    lines = []
    for case in cases:
        rubrics = [{**rubric, "criterion": f"It is {rubric['id']}."} for rubric in case["rubrics"]]
        rows.append(make_row([], rubrics=rubrics, graph={"edges": case["edges"]}))
        lines.append(make_line(*case["p"], criteria_met_list=case["met"]))
    imported = read_gear_graphs(
        write_lines(tmp_path / "rows.jsonl", rows), write_lines(tmp_path / "dump.jsonl", lines)
    )
    config = {"evaluators": ["scores"], "rubric": {"exact": exact}}
    rewards = []
    with Jury.from_config(config) as jury:
        for line, _ in imported:
            assert line is not None
            task = Task.model_validate(line.model_dump(exclude={"responses"}))
            (trace,) = jury.score(task, line.responses)
            rewards.append(trace.reward.value)
    expected = [case["expected"][name]["reward"] for case in cases]
    assert rewards == pytest.approx(expected, rel=1e-12, abs=1e-12)
