"""Draw a picture of a rubric graph as SVG: one self-contained document, without scripts and external references."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise
from math import fsum

from jurygraph.studies.pictures.layout import WIDTH, Box, Layout, Point, compute_layout
from jurygraph.studies.pictures.picture import Link, Node, Picture
from jurygraph.studies.pictures.text_width import SIZE, escape_invisible, wrap_text

_PADDING, _POINT_WIDTH, _LINE_HEIGHT, _BAR_HEIGHT = 18.0, 12.0, 15.0, 5.0
_TEXT_WIDTH = WIDTH - 2 * _PADDING
_MARGIN, _MIN_WIDTH, _COLUMN_WIDTH = 24.0, 640.0, 310.0
_MAX_LINES, _TITLE_SIZE = 4, 16
_INK, _GREY = "#1d2733", "#56616e"
_STROKES = {
    "weak": 'stroke="#5b6770" stroke-width="1.5" stroke-dasharray="6 4"',
    "strong": 'stroke="#1f4e79" stroke-width="2.6"',
    "activation": 'stroke="#9a4d00" stroke-width="1.6" stroke-dasharray="11 3 2 3"',
}
_HEAD_SIZE = 9.0
_LABEL_LETTER = (6.0, 13.0)
"""Approximate width and height of a letter of a label."""
_LABEL_SHARES = (0.5, 0.35, 0.65, 0.22, 0.78)
"""Places of a label on its line, as shares of the gap that the line crosses; the first is the best."""
LabelPosition = tuple[float, float, float]  # x and y of the middle of a label, and its width
_KINDS = {
    "weak": "helps to support what is below",
    "strong": "needed by what is below",
    "activation": "makes what is below apply",
}
_SAMPLE = Box(0.0, 0.0, 18.0, 44.0)


def to_svg(picture: Picture) -> str:
    """Return the document, with full texts and reasons as tooltips; the same picture gives the same text."""
    texts = [_lines(node) for node in picture.nodes]
    heights = [
        16.0 + _LINE_HEIGHT * (1 + len(lines) + len(node.results)) + (_BAR_HEIGHT + 9.0) * (node.score is not None)
        for node, lines in zip(picture.nodes, texts, strict=True)
    ]
    styles = [(link.edge.kind, link.closes_cycle) for link in picture.links]
    ends = [(link.child, link.parent) if link.closes_cycle else (link.parent, link.child) for link in picture.links]
    layout = compute_layout(heights, ends, picture.order, styles)
    width = max(layout.width, _MIN_WIDTH)
    heading = wrap_text(picture.title, width * SIZE / _TITLE_SIZE, 2)
    top = _MARGIN + 22.0 * len(heading) + 8.0
    columns = int(width // _COLUMN_WIDTH)
    legend = list(_legend(picture, columns))
    bottom = top + layout.height + 36.0
    size = width + 2 * _MARGIN, bottom + 26.0 * -(-len(legend) // columns) + _MARGIN
    body = [
        *_links(picture, layout),
        *map(_node, picture.nodes, layout.boxes, texts),
        *_labels(picture.links, layout.routes),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{size[0]:.0f}" height="{size[1]:.0f}"'
            f' viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="12">',
            f"<title>{escape(escape_invisible(picture.title))}</title>",
            f"<desc>{escape(escape_invisible(picture.summary))}</desc>",
            f'<rect width="{size[0]:.0f}" height="{size[1]:.0f}" fill="#ffffff"/>',
            *(
                _text(_MARGIN, _MARGIN + 14 + 22 * i, line, bold=True, size=_TITLE_SIZE)
                for i, line in enumerate(heading)
            ),
            _translate((layout.width < width) * (width - layout.width) / 2 + _MARGIN, top, body),
            _translate(_MARGIN, bottom, legend),
            "</svg>",
            "",
        ]
    )


def _lines(node: Node) -> list[tuple[str, str]]:
    """Return the lines below a criterion's id, each with its colour."""
    return [
        *((line, _GREY) for line in wrap_text(node.role_and_weight, _TEXT_WIDTH, 2)),
        *((line, _INK) for line in wrap_text(node.criterion.text, _TEXT_WIDTH, _MAX_LINES)),
    ]


def _translate(x: float, y: float, body: Iterable[str]) -> str:
    return "\n".join([f'<g transform="translate({x:.1f} {y:.1f})">', *body, "</g>"])


def _text(x: float, y: float, text: str, fill: str = _INK, bold: bool = False, size: int = 12) -> str:
    weight = ' font-weight="bold"' * bold
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}"{weight}>{escape(text)}</text>'


def _node(node: Node, box: Box, lines: Sequence[tuple[str, str]]) -> str:
    x, y = box.x + _PADDING, box.y + 6.0 + _LINE_HEIGHT
    texts = [node.criterion.id, node.role_and_weight, node.criterion.text]
    texts += [] if node.score is None else [*node.results, node.score.reason]
    elements = [
        _tooltip(texts),
        _outline(box, node.penalty, node.suppressed, bool(node.missing)),
        _text(x, y, wrap_text(node.criterion.id, _TEXT_WIDTH * 0.92, 1)[0], bold=True),
        *(_text(x, y + _LINE_HEIGHT * i, line, ink) for i, (line, ink) in enumerate(lines, start=1)),
    ]
    if node.score is not None:
        y += _LINE_HEIGHT * (1 + len(lines)) + 3.0
        elements += [_text(x, y + _LINE_HEIGHT * i, line, bold=True) for i, line in enumerate(node.results)]
        y += _LINE_HEIGHT * (len(node.results) - 1) + 6.0
        elements += _bars(x, y, _TEXT_WIDTH, node.score.judged_score, node.score.remaining)
    return "\n".join(["<g>", *elements, "</g>"])


def _outline(box: Box, penalty: bool, suppressed: bool, missing: bool) -> str:
    """Return the border of a box: pointed sides for a penalty, heavy if suppressed, dashed if a verdict is missing."""
    fill = "#fff0c2" if suppressed else "#f3f6fa"
    border = f'stroke="{"#8a1c2b" if penalty else "#33475b"}" stroke-width="{3.5 if suppressed else 1.3}"'
    border += ' stroke-dasharray="4 4"' * missing
    left, right, top, bottom = box.x, box.x + box.width, box.y, box.y + box.height
    if not penalty:
        corner = f'x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5"'
        return f'<rect {corner} fill="{fill}" {border}/>'
    middle, inset = top + box.height / 2, min(_POINT_WIDTH, box.height / 2)
    upper, lower = ((left + inset, top), (right - inset, top)), ((right - inset, bottom), (left + inset, bottom))
    return f'<polygon points="{_points([(left, middle), *upper, (right, middle), *lower])}" fill="{fill}" {border}/>'


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _bars(x: float, y: float, room: float, local: float, left: float) -> Iterator[str]:
    """Yield p as a frame, and q as the filled part of it."""
    for share, style in ((1.0, 'fill="#d6dde5"'), (local, 'fill="#ffffff" stroke="#33475b"'), (left, 'fill="#33475b"')):
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{room * share:.1f}" height="{_BAR_HEIGHT:.1f}" {style}/>'


def _tooltip(lines: Iterable[str]) -> str:
    text = "\n".join(escape_invisible(line) for line in lines if line)
    return f"<title>{escape(text)}</title>"


def _links(picture: Picture, layout: Layout) -> Iterator[str]:
    for link, route in zip(picture.links, layout.routes, strict=True):
        ends = (picture.nodes[end].criterion.id for end in (link.parent, link.child))
        title = _tooltip([f"{' → '.join(ends)}: {link.label}", link.edge.reason])
        yield f"<g>{title}{_line(link.edge.kind, route, link.closes_cycle)}</g>"


def _line(kind: str, route: Sequence[Point], upward: bool = False) -> str:
    """Return a route as a line with the arrow head of its kind (open, filled or a ring) at its lower end, or at its
    upper end if `upward`."""
    (x, y), second, *others, tip = route
    path = [f"M{x:.1f},{y + _HEAD_SIZE * upward:.1f}"]
    turns = [(x, max(second[1], y + _HEAD_SIZE * upward)), *others, (tip[0], tip[1] - _HEAD_SIZE * (not upward))]
    for number, ((x1, y1), (x2, y2)) in enumerate(pairwise(turns)):
        middle = (y1 + y2) / 2
        path.append(f"L{x1:.1f},{y1:.1f}" if number % 2 == 0 else "")
        path.append(f"C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}" if number % 2 == 0 else "")
    head = f'<g transform="rotate(180 {x:.1f} {y:.1f})">{_head(kind, x, y)}</g>' if upward else _head(kind, *tip)
    return f'<path d="{"".join(path)}" fill="none" {_STROKES[kind]}/>{head}'


def _head(kind: str, x: float, y: float) -> str:
    stroke = _STROKES[kind].split(" stroke-dasharray")[0]
    if kind == "activation":
        return f'<circle cx="{x:.1f}" cy="{y - _HEAD_SIZE / 2:.1f}" r="{_HEAD_SIZE / 2:.1f}" fill="#ffffff" {stroke}/>'
    corners = ((x - 4.5, y - _HEAD_SIZE), (x, y - 1.0), (x + 4.5, y - _HEAD_SIZE))
    if kind == "weak":
        return f'<path d="M{x:.1f},{y - _HEAD_SIZE:.1f}V{y - 1:.1f}M{_points(corners)}" fill="none" {stroke}/>'
    return f'<polygon points="{_points(corners)}" fill="#1f4e79" {stroke}/>'


def _labels(links: Sequence[Link], routes: Sequence[Sequence[Point]]) -> Iterator[str]:
    """Yield the labels, each on its line at the spot where it overlaps the fewest others."""
    letter_width, height = _LABEL_LETTER
    widths = [letter_width * len(link.label) for link in links]
    widest = max(widths, default=1.0)
    placed: dict[tuple[int, int], list[LabelPosition]] = defaultdict(list)  # by cell as large as the widest label

    def covered_area(spot: LabelPosition) -> float:
        """Return the area in which a label here overlaps others, in square pixels."""
        column, row = int(spot[0] // widest), int(spot[1] // height)
        cells = ((column + across, row + down) for across in (-1, 0, 1) for down in (-1, 0, 1))
        others = (other for cell in cells for other in placed.get(cell, ()))
        offsets = (((spot[2] + width) / 2 - abs(spot[0] - x), height - abs(spot[1] - y)) for x, y, width in others)
        return fsum(max(0.0, across) * max(0.0, down) for across, down in offsets)

    for link, route, width in zip(links, routes, widths, strict=True):
        x, y, _ = spot = min(((*place, width) for place in _label_places(route)), key=covered_area)
        placed[int(x // widest), int(y // height)].append(spot)
        yield (
            f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="11" text-anchor="middle" fill="{_INK}" stroke="#ffffff"'
            f' stroke-width="4" paint-order="stroke">{escape(link.label)}</text>'
        )


def _label_places(route: Sequence[Point]) -> Iterator[Point]:
    """Yield the possible places of a label: on the last gap that its line crosses, or on the first."""
    for (x1, y1), (x2, y2) in ((route[-2], route[-1]), (route[1], route[2])):
        for t in _LABEL_SHARES:  # as on the curve of `_line`
            yield x1 + (x2 - x1) * (3 * t * t - 2 * t**3), y1 + (y2 - y1) * (1.5 * t * (1 - t) + t**3)


def _legend(picture: Picture, columns: int) -> Iterator[str]:
    """Yield a sample of each sign, with its explanation."""
    samples = [
        (
            f'<g transform="translate(44 9) rotate(-90)">{_line(kind, ((0, -44), (0, -44), (0, 0)))}</g>',
            f"{kind}: {text}",
        )
        for kind, text in _KINDS.items()
    ]
    samples.append((_outline(_SAMPLE, False, False, False), "criterion"))
    samples.append((_outline(_SAMPLE, True, False, False), "penalty: its weight takes away"))
    if picture.scores is not None:
        samples.append((_outline(_SAMPLE, False, True, False), "▼ suppressed: q below p"))
        samples.append((_outline(_SAMPLE, False, False, True), "? not or not wholly judged"))
        samples.append(("".join(_bars(0, 6, 44, 0.8, 0.5)), "p as judged or counted (frame), q (filled)"))
    for number, (sample, explanation) in enumerate(samples):
        body = [sample, _text(54, 13, explanation, fill=_GREY)]
        yield _translate(number % columns * _COLUMN_WIDTH, number // columns * 26.0, body)
