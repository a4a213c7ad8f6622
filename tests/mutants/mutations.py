"""The mutants of a module, by mutmut's operators, and a seeded sample of them.

mutmut is used for its operators and its rules of what not to mutate. Its runner is not: it copies every function once
for each mutant, which properties, frozen classes and code that is read by `inspect` do not survive.
"""

import ast
import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import Mutation, MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode


@dataclass(frozen=True)
class Mutant:
    """One change to one function. `before` and `after` are the lines that differ, without their indentation.

    `lines` are the first and last line of the statement that is changed, in the original.
    """

    module: str
    function: str
    line: int
    lines: tuple[int, int]
    before: str
    after: str
    source: str

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Where and what it is, whatever the line numbers are."""
        return self.module, self.function, self.before, self.after


def sample_mutants(modules: Sequence[str], size: int, seed: str) -> list[Mutant]:
    """Draw `size` different mutants of these modules (all of them where there are fewer)."""
    parsed = {str(path): _Parsed(path) for module in modules for path in _files(Path(module))}
    places = [
        (path, index) for path, one in sorted(parsed.items()) for index in range(len(one.mutations))
    ]
    random.Random(seed).shuffle(places)
    drawn: dict[tuple[str, str, str, str], Mutant] = {}
    for path, index in places:
        if len(drawn) == size:
            break
        mutant = parsed[path].mutant(index)
        if mutant is not None:
            drawn.setdefault(mutant.identity, mutant)
    return sorted(drawn.values(), key=lambda mutant: (mutant.module, mutant.line, mutant.after))


def harmless(mutants: Sequence[Mutant]) -> Mutant:
    """Return a change that does nothing, where one of these mutants is: no test may notice it."""
    for mutant in mutants:
        lines = Path(mutant.module).read_text(encoding="utf-8").splitlines()
        first = lines[mutant.lines[0] - 1]
        lines.insert(
            mutant.lines[0] - 1, f"{first[: len(first) - len(first.lstrip())]}harmless = 1"
        )
        source = "\n".join(lines) + "\n"
        if _compiles(source):
            return replace(mutant, before="", after="harmless = 1", source=source)
    raise ValueError("there is no mutant beside which a statement can stand")


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


class _Visitor(MutationVisitor):
    """mutmut's visitor, but for functions with decorators: it skips them because it cannot wrap them."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        plain = node.with_changes(decorators=()) if isinstance(node, cst.FunctionDef) else node
        return super()._skip_node_and_children(plain)


class _Parsed:
    """A module and all its mutations inside functions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source = path.read_text(encoding="utf-8")
        wrapper = MetadataWrapper(cst.parse_module(self._source))
        visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()))
        self._module = wrapper.visit(visitor)
        self._tree = ast.parse(self._source)
        self._meaning = _meaning(self._source)
        self.mutations = [one for one in visitor.mutations if _is_wanted(one)]

    def mutant(self, index: int) -> Mutant | None:
        """Return a mutation as a mutant, or None where it changes no code or makes none that compiles."""
        mutation = self.mutations[index]
        mutated = self._module.deep_replace(mutation.original_node, mutation.mutated_node)
        assert isinstance(mutated, cst.Module)
        source = mutated.code
        if not _compiles(source) or _meaning(source) == self._meaning:
            return None
        first, before, after = _difference(self._source, source)
        function, lines = _place(self._tree, first)
        return Mutant(str(self._path), function, first, lines, before, after, source)


class _WithoutStrict(ast.NodeTransformer):
    """Leaves out `strict` of `zip`: an assertion on lengths that no caller can make fail."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            node.keywords = [one for one in node.keywords if one.arg != "strict"]
        return node


def _meaning(source: str) -> str:
    """Return what two sources have in common that do the same."""
    return ast.dump(_WithoutStrict().visit(ast.parse(source)))


def _is_wanted(mutation: Mutation) -> bool:
    """Whether it lies in a function and is no change to text for people.

    A string with a blank in it is prose: tests quote what matters of it. Of a string's mutants the first is enough:
    changed letters are as wrong as changed case.
    """
    if not isinstance(mutation.contained_by_top_level_function, cst.FunctionDef):
        return False
    node, mutated = mutation.original_node, mutation.mutated_node
    if isinstance(node, cst.SimpleString) and isinstance(mutated, cst.SimpleString):
        return " " not in node.value and mutated.raw_value.startswith("XX")
    return True


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _difference(source: str, mutated: str) -> tuple[int, str, str]:
    """Return the first line that differs, and what stands there before and after."""
    old, new = source.splitlines(), mutated.splitlines()
    blocks = [
        block
        for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if block[0] != "equal"
    ]
    _, first, last, start, stop = (
        blocks[0][0],
        blocks[0][1],
        blocks[-1][2],
        blocks[0][3],
        blocks[-1][4],
    )
    return first + 1, _joined(old[first:last]), _joined(new[start:stop])


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(line.strip() for line in lines)


def _place(tree: ast.Module, line: int) -> tuple[str, tuple[int, int]]:
    """Return the qualified name of the function around a line, and the lines of the innermost statement there."""
    names: list[str] = []
    lines = (line, line)
    for node in _around(tree, line):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        lines = (node.lineno, _end_of_header(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and line < node.body[0].lineno:
            # a default: reached where the body is
            lines = (
                node.body[0].lineno,
                node.end_lineno or line,
            )
    return ".".join(names), lines


def _around(tree: ast.AST, line: int) -> Iterator[ast.stmt]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            yield node
        if not isinstance(node, ast.stmt) or node.lineno <= line <= (
            node.end_lineno or node.lineno
        ):
            yield from _around(node, line)


def _end_of_header(node: ast.stmt) -> int:
    """Return the last line of a statement, without the statements inside it."""
    body = getattr(node, "body", None)
    return (
        body[0].lineno - 1
        if body and body[0].lineno > node.lineno
        else node.end_lineno or node.lineno
    )
