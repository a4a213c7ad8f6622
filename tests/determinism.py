"""What code may not use whose result must be the same bits everywhere: a walk over its syntax tree."""

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

# Their results depend on shape, memory order or CPU; the builtin `sum` on the version of Python.
# fmt: off
BANNED = frozenset({
    "sum", "nansum", "fsum", "sumprod", "cumsum", "mean", "nanmean", "average", "median", "std", "var", "trace",
    "prod", "nanprod", "cumprod", "reduce", "accumulate", "reduceat",
    "dot", "vdot", "inner", "outer", "matmul", "tensordot", "einsum", "kron", "convolve", "correlate", "linalg", "norm",
    "cov", "corrcoef",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2",
    "power", "float_power", "pow", "cbrt", "hypot",
    "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2",
})
# fmt: on
OPERATORS: Mapping[type[ast.operator], str] = {ast.Pow: "**", ast.MatMult: "@"}


def violations(path: Path, allowed: Mapping[str, Collection[str]] | None = None) -> list[str]:
    """Banned names and operators in a module, each as `file:line: name in function`.

    Args:
        path: a Python file.
        allowed: what a function (by qualified name; "" is the module itself) may use all the same. An allowance that is
            not used is a violation too, so that the list stays short.
    """
    allowed = allowed or {}
    found = list(_uses(ast.parse(path.read_text(encoding="utf-8")), ""))
    unused = {(scope, name) for scope, names in allowed.items() for name in names} - {
        (s, n) for s, n, _ in found
    }
    wrong = [
        f"{path.name}:{line}: {name} in {scope or 'the module'}"
        for scope, name, line in found
        if name not in allowed.get(scope, ())
    ]
    return wrong + [
        f"{path.name}: {name} is allowed in {scope} but not used" for scope, name in sorted(unused)
    ]


def _uses(node: ast.AST, scope: str) -> Iterator[tuple[str, str, int]]:
    for child in ast.iter_child_nodes(node):
        inside = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{scope}.{child.name}" if scope else child.name
        yield from ((scope, name, line) for name, line in _banned(child))
        yield from _uses(child, inside)


def _banned(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Attribute) and node.attr in BANNED:
        yield node.attr, node.lineno
    elif isinstance(node, ast.Name) and node.id in BANNED:
        yield node.id, node.lineno
    elif isinstance(node, ast.ImportFrom):
        # What is imported under its own name is found where it is used; another name would hide it.
        yield from (
            (alias.name, node.lineno)
            for alias in node.names
            if alias.name in BANNED and alias.asname
        )
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield OPERATORS[type(node.op)], node.lineno
