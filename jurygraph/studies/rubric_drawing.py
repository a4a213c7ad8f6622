"""Rubric graphs as Mermaid flowcharts. Texts are untrusted: they are quoted, with all Mermaid syntax encoded."""

import textwrap
from collections.abc import Iterable

from jurygraph.aggregation import gear
from jurygraph.safety.text_folding import escape_hidden
from jurygraph.schema import Criterion, Edge, Rubric

_LINE_LENGTH = 24
_MAX_LINES = 4
"""Letters in a line of a label, and maximum number of lines: Mermaid breaks lines by itself from 200 pixels."""
_ARROWS = {"weak": "-.->", "strong": "==>", "activation": "--o"}
_SAFE = frozenset(" ,.-()")
_REPLACEMENTS = str.maketrans({"ﬂ": "fl", **{letter: letter + "\u2060" for letter in "¶$:\\"}})
"""Replacements for characters that Mermaid interprets even if they are encoded: its own marks for codes, formulas
between "$$", "fa:fa-car", and a backslash before "n" as a line break. A word joiner separates them."""


def to_mermaid(task: str, rubric: Rubric) -> str:
    """Return the flowchart of a task's rubric. Raises `GraphCycleError` if its edges form a cycle.

    Nodes are named n1, n2, … in the rubric's order; the same rubric gives the same text.
    """
    number = {criterion.id: place for place, criterion in enumerate(rubric.criteria, start=1)}
    parents = [number[edge.parent] - 1 for edge in rubric.edges]
    children = [number[edge.child] - 1 for edge in rubric.edges]
    gear.compile(len(number), parents, children, list(number))  # refuses a cycle
    title = _label(_wrap(f"Rubric of task {task}", 3 * _LINE_LENGTH, 2))
    lines = ["flowchart TD", f'  subgraph rubric["{title}"]', "    direction TB"]
    annotated_roles = {} if rubric.annotation is None else rubric.annotation.roles
    for criterion in rubric.criteria:
        role = criterion.role or annotated_roles.get(criterion.id)
        lines.append(f"    n{number[criterion.id]}{_node(criterion, role)}")
    for edge in rubric.edges:
        arrow = f'{_ARROWS[edge.kind]}|"{_encode(_edge_label(edge))}"|'
        lines.append(f"    n{number[edge.parent]} {arrow} n{number[edge.child]}")
    lines.append("  end")
    penalties = [f"n{number[one.id]}" for one in rubric.criteria if one.weight < 0]
    if penalties:
        lines += ["  classDef penalty stroke:#8a1c2b", f"  class {','.join(penalties)} penalty"]
    return "\n".join([*lines, ""])


def _node(criterion: Criterion, role: str | None) -> str:
    name = f"<b>{_label(_wrap(criterion.id, _LINE_LENGTH, 2))}</b>"
    sign = "+" * (criterion.weight > 0)
    weight = f"weight {sign}{_format_exact(criterion.weight)}".replace("-", "−")
    text = [f"{role}, {weight}" if role else weight, *_wrap(criterion.text, _LINE_LENGTH, _MAX_LINES)]
    label = f"{name}<br/>{_label(text)}"
    return f'{{{{"{label}"}}}}' if criterion.weight < 0 else f'["{label}"]'


def _edge_label(edge: Edge) -> str:
    share = gear.BASE_RETENTION[edge.kind] if edge.retention is None else edge.retention
    return f"{edge.kind} {share:.2g}".replace(" 0.", " .", 1)


def _format_exact(value: float) -> str:
    return str(value).removesuffix(".0")


def _wrap(text: str, length: int, most: int) -> list[str]:
    """Return the text in at most `most` lines; "…" replaces the rest, and escapes replace what is invisible."""
    return textwrap.wrap(escape_hidden(" ".join(text.split())), length, max_lines=most, placeholder="…") or [""]


def _label(lines: Iterable[str]) -> str:
    return "<br/>".join(map(_encode, lines))


def _encode(text: str) -> str:
    text = text.translate(_REPLACEMENTS)
    return "".join(c if c.isalnum() or c in _SAFE else f"#{ord(c)};" for c in text)
