"""A YAML file as plain values, with the line of every key. Nothing but text, numbers, lists and mappings is made."""

import math
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from jurygraph.sources.complaint import Path, shortened

_TAG = "tag:yaml.org,2002:"
_MOST_VALUES = 100_000


class YamlFault(ValueError):
    """What is wrong with a document, and in which line."""

    def __init__(self, line: int | None, message: str, path: Path = ()) -> None:
        self.line, self.path = line, path
        super().__init__(message)


class Document:
    """The value that a YAML text stands for. `line_of` gives the line in which a part of it was written."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._count = 0
        self._yaml = YAML(typ="safe", pure=True)
        root = self._composed(text)
        self.value: Any = None if root is None else self._plain(root, ())

    def line_of(self, path: Path) -> int:
        """The line of the deepest part of the path that is there."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _composed(self, text: str) -> Node | None:
        try:
            root: Node | None = self._yaml.compose(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = None if mark is None else mark.line + 1
            raise YamlFault(line, f"is not valid YAML: {_reason(error)}") from None
        except (YAMLError, ValueError) as error:
            raise YamlFault(None, f"is not valid YAML: {shortened(str(error).splitlines()[0], 200)}") from None
        except RecursionError:
            raise YamlFault(None, "is nested too deeply; a config has a few levels") from None
        return root

    def _plain(self, node: Node, path: Path) -> Any:
        self._count += 1
        if self._count > _MOST_VALUES or len(path) > 100:
            raise YamlFault(_line(node), "its aliases expand without end; write the values out")
        self._lines.setdefault(path, _line(node))
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            _refuse_tag(node, path, ("seq",))
            return [self._plain(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        _refuse_tag(node, path, ("map",))
        values: dict[str, Any] = {}
        for key, item in node.value:
            name = self._key(key, path)
            if name in values:
                first = self._lines[*path, name]
                raise YamlFault(_line(key), f"stands already in line {first}; keep one of them", (*path, name))
            self._lines[*path, name] = _line(key)
            values[name] = self._plain(item, (*path, name))
        return values

    def _key(self, key: Node, path: Path) -> str:
        if isinstance(key, ScalarNode) and key.tag == f"{_TAG}str":
            return str(key.value)
        shown = shortened(str(key.value)) if isinstance(key, ScalarNode) else "a list or mapping"
        raise YamlFault(_line(key), f"{shown} is no text, and a key must be; put it in quotes", path)

    def _scalar(self, node: Node, path: Path) -> Any:
        _refuse_tag(node, path, ("null", "bool", "int", "float", "str", "timestamp"))
        if node.tag in (f"{_TAG}str", f"{_TAG}timestamp"):
            return str(node.value)
        try:
            value = self._yaml.constructor.construct_object(node)
        except ValueError:
            raise YamlFault(_line(node), f"{shortened(str(node.value))} is no number that can be read", path) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise YamlFault(_line(node), f"{node.value} is not a finite number; write one", path)
        return value


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _refuse_tag(node: Node, path: Path, known: tuple[str, ...]) -> None:
    tag = str(node.tag)
    if tag not in {_TAG + name for name in known}:
        shown = tag.replace(_TAG, "!!")
        raise YamlFault(_line(node), f"has the tag {shortened(shown)}, which is not read; write a plain value", path)


def _reason(error: MarkedYAMLError) -> str:
    problem = str(error.problem or error.context or "it cannot be read")
    if "\\t" in problem:
        return "a tab stands where spaces belong; indent with spaces"
    return problem
