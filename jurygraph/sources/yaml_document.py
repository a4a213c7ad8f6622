"""A YAML file as plain values, with the line of every key. Only text, numbers, lists and mappings are constructed."""

import math
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from jurygraph.messages import MAX_INT_BITS, Path, format_path, shorten

_TAG = "tag:yaml.org,2002:"
_MAX_VALUES = 100_000
_SYNTAX_HINT = "indent lines alike, close quotes and brackets, and quote texts that hold : # * or @"


class YamlFault(ValueError):
    """An error in a document, with its line."""

    def __init__(self, line: int | None, message: str, path: Path = ()) -> None:
        self.line = line
        self.path = path
        super().__init__(message)


class Document:
    """The value of a YAML text. `line_of` returns the line in which a part of it was written."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._count = 0
        self._yaml = YAML(typ="safe", pure=True)
        self._yaml.composer.warn_double_anchors = False  # YAML 1.2 allows to reuse an anchor's name
        root = self._compose(text)
        self.value: Any = None if root is None else self._to_value(root, ())

    def line_of(self, path: Path) -> int:
        """Return the line of the deepest part of the path that exists."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def line_of_key(self, key: str) -> int | None:
        """Return the line of a key written as `gates[0].kind`, or of its nearest parent; None if there is neither."""
        lines = {format_path(path): line for path, line in self._lines.items() if path}
        holders = [name for name in lines if key == name or key.startswith((f"{name}.", f"{name}["))]
        return lines[max(holders, key=len)] if holders else None

    def _compose(self, text: str) -> Node | None:
        try:
            root: Node | None = self._yaml.compose(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = None if mark is None else mark.line + 1
            raise YamlFault(line, f"is not valid YAML: {_explain(error)}") from None
        except ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            problem = f"holds the control character #x{error.character:02x}, which YAML does not"
            raise YamlFault(line, f"{problem}; take it out, or save the file as UTF-8") from None
        except (YAMLError, ValueError) as error:
            problem = shorten(str(error).splitlines()[0], 200)
            raise YamlFault(None, f"is not valid YAML: {problem}; {_SYNTAX_HINT}") from None
        except RecursionError:
            raise YamlFault(None, "is nested too deeply; a config has a few levels") from None
        return root

    def _to_value(self, node: Node, path: Path) -> Any:
        self._count += 1
        if self._count > _MAX_VALUES or len(path) > 100:
            raise YamlFault(_line_number(node), "its aliases expand without end; write the values out")
        self._lines.setdefault(path, _line_number(node))
        if isinstance(node, MappingNode):
            return self._mapping_value(node, path)
        if isinstance(node, SequenceNode):
            _refuse_tag(node, path, "seq")
            return [self._to_value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar_value(node, path)

    def _mapping_value(self, node: MappingNode, path: Path) -> dict[str, Any]:
        _refuse_tag(node, path, "map")
        values: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key, ScalarNode) or key.tag != f"{_TAG}str":
                shown = shorten(str(key.value)) if isinstance(key, ScalarNode) else "a list or mapping"
                problem = f"{shown} is not text, as a key must be; put it in quotes"
                raise YamlFault(_line_number(key), problem, path)
            name = str(key.value)
            if name in values:
                first = self._lines[*path, name]
                raise YamlFault(_line_number(key), f"is already in line {first}; keep one of them", (*path, name))
            self._lines[*path, name] = _line_number(key)
            values[name] = self._to_value(item, (*path, name))
        return values

    def _scalar_value(self, node: Node, path: Path) -> Any:
        _refuse_tag(node, path, "null", "bool", "int", "float", "str", "timestamp")
        if node.tag in (f"{_TAG}str", f"{_TAG}timestamp"):
            return str(node.value)
        try:
            value = self._yaml.constructor.construct_object(node)
        except ValueError:
            problem = f"{shorten(str(node.value))} is not a valid number"
            raise YamlFault(_line_number(node), f"{problem}; write a shorter one, or put it in quotes", path) from None
        if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
            problem = f"{shorten(str(node.value))} is too large a number"
            raise YamlFault(_line_number(node), f"{problem}; a 64-bit float holds up to 1.7e308", path)
        if isinstance(value, float) and not math.isfinite(value):
            raise YamlFault(_line_number(node), f"{node.value} is not a finite number; write one", path)
        return value


def _line_number(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _refuse_tag(node: Node, path: Path, *known: str) -> None:
    if not str(node.tag).startswith(_TAG) or str(node.tag).removeprefix(_TAG) not in known:
        problem = f"has the tag {shorten(str(node.tag).replace(_TAG, '!!'))}, which is not read"
        raise YamlFault(_line_number(node), f"{problem}; write a plain value", path)


def _explain(error: MarkedYAMLError) -> str:
    problem = shorten(str(error.problem or error.context or "it cannot be read"), 120)
    if "\\t" in problem:
        return "a tab is used where spaces belong; indent with spaces"
    if "another document" in problem:
        return "a second document begins; a config is one, so take out the `---`"
    return f"{problem}; {_SYNTAX_HINT}"
