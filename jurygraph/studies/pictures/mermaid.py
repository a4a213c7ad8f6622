"""Draw a picture of a rubric graph as a Mermaid flowchart. Texts are quoted, with all Mermaid syntax encoded."""

from collections.abc import Iterable, Iterator

from jurygraph.studies.pictures.picture import Picture
from jurygraph.studies.pictures.text_width import wrap_text

_LINE_WIDTH, _MAX_LINES = 150.0, 4
"""Width of a line of a label, in pixels of our font, and maximum number of lines: Mermaid's font is larger, and it
breaks lines by itself from 200 pixels."""
_ARROWS = {"weak": "-.->", "strong": "==>", "activation": "--o"}
_SAFE = frozenset(" ,.-()")
_REPLACEMENTS = str.maketrans({"ﬂ": "fl", **{letter: letter + "\u2060" for letter in "¶$:\\"}})
"""Replacements for characters that Mermaid interprets even if they are encoded: its own marks for codes, formulas
between "$$", "fa:fa-car", and a backslash before "n" as a line break. A word joiner separates them."""
_CLASSES = (
    ("penalty", "stroke:#8a1c2b", "k4"),
    ("suppressed", "fill:#fff0c2,stroke-width:4px", "k6"),
    ("missing", "stroke-dasharray:5 5", "k7"),
)
"""Property of nodes that have a class, its style, and the sample in the legend."""


def mermaid(picture: Picture) -> str:
    """Return the flowchart. Nodes are named n1, n2, … in the rubric's order; the same picture gives the same text."""
    return "\n".join(["flowchart TD", *_graph(picture), *_legend(picture), *_classes(picture), ""])


def _graph(picture: Picture) -> Iterator[str]:
    yield f'  subgraph rubric["{_label(wrap_text(picture.title, 3 * _LINE_WIDTH, 2))}"]'
    yield "    direction TB"
    for number, node in enumerate(picture.nodes, start=1):
        name = f"<b>{_label(wrap_text(node.criterion.id, _LINE_WIDTH, 2))}</b>"
        text = _label([node.role_and_weight, *wrap_text(node.criterion.text, _LINE_WIDTH, _MAX_LINES)])
        results = (f"<b>{_encode(line)}</b>" for line in node.results)
        yield f"    n{number}{_box(node.penalty, '<br/>'.join([name, text, *results]))}"
    for link in picture.links:
        yield f'    n{link.parent + 1} {_ARROWS[link.edge.kind]}|"{_encode(link.label)}"| n{link.child + 1}'
    yield "  end"


def _label(lines: Iterable[str]) -> str:
    return "<br/>".join(map(_encode, lines))


def _encode(text: str) -> str:
    """Return the text with all characters except letters, digits and safe punctuation replaced by their codes."""
    text = text.translate(_REPLACEMENTS)
    return "".join(c if c.isalnum() or c in _SAFE else f"#{ord(c)};" for c in text)


def _box(penalty: bool, label: str) -> str:
    return f'{{{{"{label}"}}}}' if penalty else f'["{label}"]'


def _legend(picture: Picture) -> Iterator[str]:
    yield '  subgraph legend["How to read it"]'
    yield "    direction TB"
    yield from (f"    k{number}{_box(False, 'criterion')}" for number in (1, 2, 3))
    yield f"    k4{_box(True, 'penalty')}"
    yield from (f'    k{at} {arrow}|"{kind}"| k{at + 1}' for at, (kind, arrow) in enumerate(_ARROWS.items(), start=1))
    if picture.scores is not None:
        yield f"    k5{_box(False, 'p as judged → q left of it')}"
        yield f"    k6{_box(False, '▼ suppressed, q below p')}"
        yield f"    k7{_box(False, '? not or not wholly judged')}"
    yield "  end"


def _classes(picture: Picture) -> Iterator[str]:
    for name, style, sample in _CLASSES if picture.scores is not None else _CLASSES[:1]:
        marked = [f"n{number}" for number, node in enumerate(picture.nodes, start=1) if getattr(node, name)]
        yield f"  classDef {name} {style}"
        yield f"  class {','.join([sample, *marked])} {name}"
