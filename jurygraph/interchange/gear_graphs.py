"""Graphs and scores of GEAR's authors (LvCan926/GEAR): annotated rows of verl, and the dump of a validation.

`rubric_graph.py` writes the rows, as Parquet, each with its rubric and graph in `reward_model`; verl's dump has a line
for each response with the scores of its criteria. Lines have no id: those of a row follow one another, equally many for
each row, as in the authors' `compute_fcp_metrics.py`.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.interchange.exports import read_located_entries
from jurygraph.interchange.rows import (
    NOT_EMPTY,
    ImportedRow,
    ImportedTurn,
    ImportNote,
    ImportResult,
    ScoredItem,
    add_rubric,
    nonempty_fields,
)
from jurygraph.messages import quote
from jurygraph.schema import TaskLine
from jurygraph.schema.frozen_model import (
    Count,
    JsonFields,
    JsonMapping,
    Number,
    StrictBool,
    StrPath,
    UnitInterval,
)
from jurygraph.sources.files import validate_at_location

ROLE_BY_NODE_TYPE = {
    "foundation": "core",
    "bonus": "additional",
    "penalty": "penalty",
    "trigger": "applicability",
}
"""Roles by the authors' types of nodes."""
EDGE_KIND_BY_SOURCE_TYPE = {
    "weak_prerequisite": "weak",
    "strong_prerequisite": "strong",
    "trigger": "activation",
}
"""Kinds of edges by the authors' types."""
OMITTED_EDGES_IMPORT_NOTE = (
    "edges are left out that join no two criteria, are of an unknown type, "
    "join a pair again, or close a cycle"
)
NO_GRAPH_IMPORT_NOTE = "rubrics have no graph in `reward_model.graph`"
NO_TEXT_IMPORT_NOTE = "responses without text are left out"


def _parse_json_if_text(value: Any) -> Any:
    """Return the value of a JSON text, as verl writes nested columns; anything else as it is."""
    try:
        return from_json(value) if isinstance(value, str) else value
    except ValueError:
        return value


class GraphItem(ScoredItem):
    id: str | None = None


class ImportedNode(ImportedRow):
    id: str
    node_type: str | None = None


class ImportedEdge(ImportedRow):
    parent: str | None = None
    child: str | None = None
    type: str | None = None


class AuthorsGraph(ImportedRow):
    nodes: tuple[ImportedNode, ...] = ()
    edges: tuple[ImportedEdge, ...] = ()


class RewardModel(ImportedRow):
    rubrics: tuple[GraphItem, ...] = NOT_EMPTY
    graph: AuthorsGraph | None = None

    @property
    def ids(self) -> list[str]:
        """Return the criteria's ids, as the authors' code makes them where there is none."""
        return [item.id or f"r{number}" for number, item in enumerate(self.rubrics, 1)]


class AnnotatedRow(ImportedRow):
    prompt: Annotated[tuple[ImportedTurn, ...], BeforeValidator(_parse_json_if_text), NOT_EMPTY]
    reward_model: Annotated[RewardModel, BeforeValidator(_parse_json_if_text)]
    data_source: str = "gear"


class DumpRow(ImportedRow):
    """A line of the dump: the rendered prompt, p of each criterion, and the authors' own rewards."""

    input: str | None = None
    output: str
    p_list: tuple[UnitInterval, ...]
    criteria_met_list: tuple[StrictBool, ...] = ()
    rubric_ids: tuple[str, ...] = ()
    step: Count | None = None
    flat_reward: Number | None = None
    hard_reward: Number | None = None
    dag_reward: Number | None = None


def read_gear_graphs(path: StrPath, scores: StrPath | None = None) -> Iterator[ImportResult]:
    """Yield each row as a task, with its responses and their scores from the dump, if there is one.

    Raises `InputError` naming file, row and field; also where the dump's lines are no multiple of the rows.
    """
    rows = list(read_located_entries(Path(path), AnnotatedRow))
    if not rows:
        raise InputError(f"{path}: holds no rows; name a file that GEAR's rubric_graph.py wrote")
    lines = [] if scores is None else list(read_located_entries(Path(scores), DumpRow))
    lines_per_row, rest = divmod(len(lines), len(rows))
    if scores is not None and (rest or not lines):
        raise InputError(
            f"{scores}: has {len(lines)} lines for the {len(rows)} rows of {path}; each row needs equally many"
        )
    unread_lines = iter(lines)
    for number, (where, row) in enumerate(rows, 1):
        dump_lines = list(islice(unread_lines, lines_per_row))
        fields, notes = _to_task_content(f"{row.data_source}-{number}", row, dump_lines)
        task = None if fields is None else validate_at_location(where, TaskLine, fields)
        yield ImportResult(task, tuple(notes))


def _to_task_content(
    name: str, row: AnnotatedRow, lines: Sequence[tuple[str, DumpRow]]
) -> tuple[JsonMapping | None, Sequence[ImportNote]]:
    """Return the fields of a row's task, or None if no reward can be formed from its rubric; and the notes."""
    model = row.reward_model
    graph = model.graph or AuthorsGraph()
    node_type_by_id = {node.id: node.node_type for node in graph.nodes}
    items = []
    for criterion, item in zip(model.ids, model.rubrics, strict=True):
        role = ROLE_BY_NODE_TYPE.get(node_type_by_id.get(criterion) or "")
        items.append({"id": criterion, **nonempty_fields(role=role), **item.criterion_fields()})
    notes = [ImportNote(NO_GRAPH_IMPORT_NOTE, name)] if model.graph is None else []
    responses = []
    for number, (where, line) in enumerate(lines, 1):
        _check_dump_row(line, model.ids, where)
        if line.input is not None and row.prompt[-1].content.strip() not in line.input:
            raise InputError(
                f"{where}, field input: "
                "does not contain the prompt of its row; write the dump in the order of the rows "
                "(`validation_shuffle: False`)"
            )
        if not line.output.strip():
            notes.append(ImportNote(NO_TEXT_IMPORT_NOTE, where))
            continue
        responses.append(_to_response(f"{name}/{number}", line, line.rubric_ids or model.ids))
    task = {
        "id": name,
        "query": [turn.message() for turn in row.prompt],
        "responses": responses,
        "metadata": _collect_metadata(row),
    }
    content, rubric_import_notes = add_rubric(task, items, notes)
    if content is None:
        return None, rubric_import_notes
    criteria = {criterion["id"] for criterion in content["rubric"]["criteria"]}
    edges = _select_acyclic_edges(graph.edges, criteria)
    left_out = len(graph.edges) - len(edges)
    if left_out:
        rubric_import_notes = [
            *rubric_import_notes,
            ImportNote(OMITTED_EDGES_IMPORT_NOTE, f"{name}: {left_out}"),
        ]
    return {**content, "rubric": {**content["rubric"], "edges": edges}}, rubric_import_notes


def _collect_metadata(row: AnnotatedRow) -> JsonFields:
    """Return the other fields of a row; of `extra_info`, in which verl repeats the rubric, what is not repeated."""
    metadata = row.other
    extra_info = metadata.pop("extra_info", None)
    if isinstance(extra_info, dict):
        metadata |= nonempty_fields(**extra_info)
    for name in AnnotatedRow.model_fields:
        metadata.pop(name, None)
    return metadata


def _check_dump_row(line: DumpRow, criteria: Sequence[str], where: str) -> None:
    """Raise `InputError` if a line is not about the criteria of its row."""
    lists = {
        "p_list": line.p_list,
        "criteria_met_list": line.criteria_met_list or criteria,
        "rubric_ids": line.rubric_ids or criteria,
    }
    for field, values in lists.items():
        if len(values) != len(criteria):
            raise InputError(
                f"{where}, field {field}: "
                f"has {len(values)} values for {len(criteria)} criteria; give one for each"
            )
    unknown_ids = [name for name in line.rubric_ids if name not in criteria]
    if unknown_ids:
        raise InputError(
            f"{where}, field rubric_ids: "
            f"names {quote(unknown_ids[0])}, which is no criterion of its row; give the file that was scored"
        )


def _to_response(name: str, line: DumpRow, criteria: Sequence[str]) -> JsonFields:
    met_flags = line.criteria_met_list or (None,) * len(criteria)
    scores = {
        criterion: nonempty_fields(score=p, met=is_met)
        for criterion, p, is_met in zip(criteria, line.p_list, met_flags, strict=True)
    }
    rewards = {"flat": line.flat_reward, "hard": line.hard_reward, "gear": line.dag_reward}
    metadata = nonempty_fields(step=line.step, rewards=nonempty_fields(**rewards))
    return {"id": name, "text": line.output, "data": {"scores": scores}, "metadata": metadata}


def _select_acyclic_edges(
    edges: Sequence[ImportedEdge], criteria: set[str]
) -> list[dict[str, str]]:
    """Return the edges that the authors' aggregator uses, in their order; of one pair, the first."""
    parents: dict[str, set[str]] = defaultdict(set)
    kept = []
    for edge in edges:
        kind = EDGE_KIND_BY_SOURCE_TYPE.get(edge.type or "")
        if kind is None or edge.parent not in criteria or edge.child not in criteria:
            continue
        parent_ids = parents[edge.child]
        if edge.parent in parent_ids:
            continue
        parent_ids.add(edge.parent)
        try:
            TopologicalSorter(parents).prepare()
            kept.append({"parent": edge.parent, "child": edge.child, "kind": kind})
        except CycleError:  # an edge of a criterion with itself, too
            parent_ids.remove(edge.parent)
    return kept
