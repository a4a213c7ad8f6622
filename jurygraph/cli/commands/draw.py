"""`jurygraph graph` and `jurygraph schema`: drawings of graphs, and JSON Schemas of the file formats."""

import json
import textwrap
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Literal

import typer

from jurygraph.agents.registry import builtin_params_models
from jurygraph.aggregation import gear
from jurygraph.cli.options import argument, option
from jurygraph.cli.render.text import print_result
from jurygraph.errors import GraphCycleError, InputError
from jurygraph.messages import did_you_mean, escape_hidden_characters, join_names
from jurygraph.schema import Criterion, Edge, ResponseLine, Rubric, TaskLine, Trace
from jurygraph.sources.config import config_file_schema
from jurygraph.sources.tasks import TaskLinesFile


def graph(
    machine: Annotated[
        Literal["prepare", "score", "annotate", "investigate"] | None,
        typer.Argument(
            metavar="MACHINE",
            help="State machine to draw: prepare, score, annotate or investigate.",
            show_default="score",
        ),
    ] = None,
    task: Annotated[
        str | None, option("TASKS", "File of tasks: draw the rubric of one task.")
    ] = None,
    task_id: Annotated[str | None, option("TASK", "Id of the task.", "--id")] = None,
) -> None:
    """Draw a state machine, or the rubric graph of a task, as Mermaid.

    \b
    Example:
        jurygraph graph score > score.mmd
        jurygraph graph --task tasks.jsonl --id task-1 > rubric.mmd
    """
    if machine and task is not None:
        raise InputError(f"{machine} and --task: each draws another graph; remove one")
    if task_id is not None and task is None:
        raise InputError("--id: needs a file of tasks; name it with --task")
    if task is not None:
        text = _draw_task_graph(task, task_id)
    else:
        # lazily: LangGraph is slow to import
        module = import_module(f"jurygraph.graphs.{machine or 'score'}_graph")
        text = str(module.build().get_graph().draw_mermaid())
    print_result(text.removesuffix("\n"))


def _draw_task_graph(path: str, chosen: str | None) -> str:
    """Return the drawing of the task with this id, or of the only task. Raises `InputError` if there is none."""
    with TaskLinesFile(path, lambda task: chosen in (None, task.id)) as lines:
        ids = list(lines.ids)
        if len(lines) > 1:
            raise InputError(
                f"{path}: contains {len(ids)} tasks; choose one with --id: {join_names(ids)}"
            )
        if not len(lines):
            suggestion_text = did_you_mean(str(chosen), ids) or f"known: {join_names(ids)}"
            raise InputError(f"{path}: there is no task {chosen!r}; {suggestion_text}")
        line, task = next(lines.tasks())
    if task.rubric is None:
        raise InputError(f"{path}: task {task.id!r} has no rubric; choose another task with --id")
    try:
        return to_mermaid(task.id, task.rubric)
    except GraphCycleError as error:
        error.args = (f"{path}, line {line}: task {task.id!r}: {error}; remove one of these edges",)
        raise


def schema(
    document: Annotated[
        Literal["tasks", "responses", "config", "params", "trace"],
        argument("DOCUMENT", "tasks, responses, config, params or trace."),
    ],
) -> None:
    """Print the JSON Schema of tasks, responses, config, params or trace.

    For JSONL files it is the schema of one line. For params it is that of each built-in evaluator, deriver and
    combiner, by role and name.

    \b
    Example:
        jurygraph schema config > jury.schema.json
    """
    if document == "config":
        content = config_file_schema()
    elif document == "params":
        content = {}
        for role in ("evaluators", "derivers", "combiners"):
            models = builtin_params_models(role)
            content[role] = {name: model.model_json_schema() for name, model in models.items()}
    elif document == "trace":
        content = Trace.model_json_schema(mode="serialization")
    elif document == "tasks":
        content = TaskLine.model_json_schema()
    else:
        content = ResponseLine.model_json_schema()
    print_result(json.dumps(content, indent=2))


_LABEL_LINE_LENGTH = 24
_MAX_LABEL_LINES = 4
"""Letters in a line of a label, and maximum number of lines: Mermaid breaks lines by itself from 200 pixels."""
_ARROW_BY_EDGE_KIND = {"weak": "-.->", "strong": "==>", "activation": "--o"}
_MERMAID_SAFE_CHARACTERS = frozenset(" ,.-()")
_REPLACEMENT_TABLE = str.maketrans({"ﬂ": "fl", **{letter: letter + "\u2060" for letter in "¶$:\\"}})
"""Replacements for characters that Mermaid interprets even if they are encoded: its own marks for codes, formulas
between "$$", "fa:fa-car", and a backslash before "n" as a line break. A word joiner separates them."""


def to_mermaid(task: str, rubric: Rubric) -> str:
    """Return the flowchart of a task's rubric. Raises `GraphCycleError` if its edges form a cycle.

    Nodes are named n1, n2, … in the rubric's order; the same rubric gives the same text.
    """
    names = [criterion.id for criterion in rubric.criteria]
    number = {name: index + 1 for index, name in enumerate(names)}
    parents = [number[edge.parent] - 1 for edge in rubric.edges]
    children = [number[edge.child] - 1 for edge in rubric.edges]
    gear.compile(len(names), parents, children, names)  # refuses a cycle
    title = _format_label(_wrap_text(f"Rubric of task {task}", 3 * _LABEL_LINE_LENGTH, 2))
    lines = ["flowchart TD", f'  subgraph rubric["{title}"]', "    direction TB"]
    annotated_roles = {} if rubric.annotation is None else rubric.annotation.roles
    penalties = []
    for criterion in rubric.criteria:
        node = f"n{number[criterion.id]}"
        role = criterion.role or annotated_roles.get(criterion.id)
        lines.append(f"    {node}{_format_node(criterion, role)}")
        if criterion.weight < 0:
            penalties.append(node)
    for edge in rubric.edges:
        edge_arrow = (
            f'{_ARROW_BY_EDGE_KIND[edge.kind]}|"{_escape_for_mermaid(_format_edge_label(edge))}"|'
        )
        lines.append(f"    n{number[edge.parent]} {edge_arrow} n{number[edge.child]}")
    lines.append("  end")
    if penalties:
        lines += ["  classDef penalty stroke:#8a1c2b", f"  class {','.join(penalties)} penalty"]
    return "\n".join([*lines, ""])


def _format_node(criterion: Criterion, role: str | None) -> str:
    name = _format_label(_wrap_text(criterion.id, _LABEL_LINE_LENGTH, 2))
    sign = "+" if criterion.weight > 0 else ""
    number = str(criterion.weight).removesuffix(".0")
    heading = f"weight {sign}{number}".replace("-", "−")
    if role:
        heading = f"{role}, {heading}"
    text = _format_label(
        [heading, *_wrap_text(criterion.text, _LABEL_LINE_LENGTH, _MAX_LABEL_LINES)]
    )
    label = f"<b>{name}</b><br/>{text}"
    return f'{{{{"{label}"}}}}' if criterion.weight < 0 else f'["{label}"]'


def _format_edge_label(edge: Edge) -> str:
    share = gear.BASE_RETENTION[edge.kind] if edge.retention is None else edge.retention
    return f"{edge.kind} {share:.2g}".replace(" 0.", " .", 1)


def _wrap_text(text: str, length: int, max_lines: int) -> list[str]:
    """Return the text in at most `max_lines` lines; "…" replaces the rest, and escapes replace what is invisible."""
    line = escape_hidden_characters(" ".join(text.split()))
    return textwrap.wrap(line, length, max_lines=max_lines, placeholder="…") or [""]


def _format_label(lines: Iterable[str]) -> str:
    return "<br/>".join(map(_escape_for_mermaid, lines))


def _escape_for_mermaid(text: str) -> str:
    encoded_text = ""
    for letter in text.translate(_REPLACEMENT_TABLE):
        is_safe_letter = letter.isalnum() or letter in _MERMAID_SAFE_CHARACTERS
        encoded_text += letter if is_safe_letter else f"#{ord(letter)};"
    return encoded_text
