"""Count the words of a private dialect in identifiers and docstrings; `make lint` fails where there are too many.

    python -m tests.plain_words [-v] [FOLDER or FILE ...]

Other projects of this field use these words less than once in 10,000 lines. With `-v` every place is printed.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

WORDS = ("stated", "asked", "said", "told", "stands", "heard", "beside")
LIMIT = 3.0
"""Most occurrences of each word in 10,000 lines."""

RIDDLES = ("What", "Whether")
"""No docstring begins with these: it begins with a verb in the imperative, or with the noun that is returned."""

_IRREGULAR = frozenset(
    "apart begun beside bound brought built caught chosen done drawn felt found given gone heard held kept known laid "
    "left lost made meant met paid plain said seen sent shown sold sought spent stood taken taught thought told "
    "understood won worn written".split()
)
_NOT_PARTICIPLES = frozenset("embed exceed feed need proceed seed succeed".split())
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *_FUNCTION)


class Place(NamedTuple):
    """The line of a finding, and what was found there."""

    line: int
    finding: str


def main(arguments: list[str]) -> int:
    """Print the counts, and return 1 if there are too many."""
    paths = [Path(argument) for argument in arguments if argument != "-v"] or [Path("jurygraph")]
    texts = {
        file: file.read_text(encoding="utf-8") for path in paths for file in _python_files(path)
    }
    trees = {file: ast.parse(text) for file, text in texts.items()}
    words = Counter(word for tree in trees.values() for word, _ in find_words(tree))
    refused = [
        f"{file}:{line}: {finding}"
        for file, tree in trees.items()
        for line, finding in find_refused(tree)
    ]
    lines = sum(text.count("\n") for text in texts.values())
    rates = {word: 10_000 * words[word] / max(lines, 1) for word in WORDS}
    if "-v" in arguments:
        places = [(file, place) for file, tree in trees.items() for _, place in find_words(tree)]
        print(*(f"{file}:{line}: {finding}" for file, (line, finding) in places), sep="\n")
    print(*refused, sep="\n", end="\n" * bool(refused))
    print(
        f"{lines} lines; of 10,000 with:",
        ", ".join(f"{word} {rate:.1f}" for word, rate in rates.items()),
    )
    return int(bool(refused) or max(rates.values()) > LIMIT)


def find_words(tree: ast.Module) -> Iterator[tuple[str, Place]]:
    """Yield each of `WORDS` in identifiers and docstrings of a module, with its place."""
    for node in ast.walk(tree):
        texts = [(name, f"in {name}") for name in _names(node)]
        if isinstance(node, _DOCUMENTED):
            texts.append((ast.get_docstring(node) or "", "in a docstring"))
        for text, where in texts:
            for word in map(str.lower, _WORD.findall(text)):
                if word in WORDS:
                    yield word, Place(getattr(node, "lineno", 1), f"{word} {where}")


def find_refused(tree: ast.Module) -> Iterator[Place]:
    """Yield docstrings that begin with one of `RIDDLES`, and public functions whose name is a bare participle."""
    for node in ast.walk(tree):
        docstring = (ast.get_docstring(node) if isinstance(node, _DOCUMENTED) else None) or "-"
        if (first := docstring.split()[0]) in RIDDLES:
            yield Place(getattr(node, "lineno", 1), f"a docstring begins with {first}")
        if isinstance(node, _FUNCTION) and _is_participle(node.name) and not _is_property(node):
            yield Place(
                node.lineno,
                f"the function {node.name} is called by a participle or adjective alone; use a verb",
            )


def _is_participle(name: str) -> bool:
    return name in _IRREGULAR or (
        name.isalpha() and name.endswith("ed") and name not in _NOT_PARTICIPLES
    )


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the identifiers that a node defines or uses."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.arg(arg=name)
            | ast.Name(id=name)
            | ast.Attribute(attr=name)
            | ast.keyword(arg=str(name))
        ):
            yield name


def _python_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
