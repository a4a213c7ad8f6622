"""Import the modules that a config names by a dotted path from their files in the config's folder.

Nothing else in that folder can be imported, neither by jurygraph nor by a library that probes for an optional package:
the folder is on `sys.path` only while one of its modules is imported, which may import others. A name that already
resolves to another module is refused.
"""

import importlib
import re
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from jurygraph.errors import ConfigError
from jurygraph.schema import Config

CODE_PARAMS = ("functions", "tools")
"""Params of our evaluators and derivers that name code: a dotted path, or a mapping of names to dotted paths."""

_DOTTED = re.compile(r"([^\W\d]\w*)(?:\.[^\W\d]\w*)*[.:][^\W\d]\w*")
_folder = ""
_named: set[str] = set()  # the outermost modules that are imported from the folder
_loaded: set[str] = set()  # those of its modules that were imported, and what they imported there


def import_module(name: str) -> ModuleType:
    """Import a module by its dotted name: from the folder if a config names it and it is nowhere else."""
    if name.partition(".")[0] not in _named:
        return importlib.import_module(name)
    before = set(sys.modules)
    importlib.invalidate_caches()
    sys.path.append(_folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(_folder)
        _loaded.update(filter(_is_in_folder, set(sys.modules) - before))


def allow_modules_in_folder(*configs: Config, folder: Path) -> bool:
    """Allow importing the modules that configs name and that lie in `folder`; return true if there are any.

    The folder replaces an earlier one, whose modules are forgotten: those of another may have the same names. Raises
    `ConfigError`, naming the key, if a module has the name of one that can be imported already.
    """
    global _folder
    home = str(folder.resolve())
    if home != _folder:
        for name in list(sys.modules):
            if name.partition(".")[0] in _loaded:
                del sys.modules[name]
        _named.clear()
        _loaded.clear()
        _folder = home
    has_any = False
    for key, name in (named for config in configs for named in modules_named_in(config)):
        spec = PathFinder.find_spec(name, [home])
        if spec is not None:
            has_any = True
            if not _is_importable(key, name, spec):
                _named.add(name)
    return has_any


def _is_in_folder(name: str) -> bool:
    file = getattr(sys.modules[name], "__file__", None)
    return "." not in name and file is not None and Path(_folder) in Path(file).parents[:2]


def folder_of_modules() -> str | None:
    return _folder or None


def modules_named_in(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the keys of a config that name code by a dotted path, each with the name of its outermost module."""
    for key, path in _paths(config):
        if isinstance(path, str) and (match := _DOTTED.fullmatch(path)):
            yield key, match[1]


def _paths(config: Config) -> Iterator[tuple[str, Any]]:
    models = {"model": config.model, **{f"models.{name}": use.model for name, use in config.models.items()}}
    for key, model in models.items():
        if model.startswith("langchain:"):
            yield key, model.removeprefix("langchain:")
    for role in ("evaluators", "derivers"):
        for place, use in enumerate(getattr(config, role)):
            yield f"{role}[{place}]", use.use
            for paths in map(use.params.get, CODE_PARAMS):
                for path in paths.values() if isinstance(paths, dict) else [paths]:
                    yield f"{role}[{place}]", path
    for name, component in config.components.items():
        yield f"components.{name}.combiner", component.combiner


def _is_importable(key: str, name: str, spec: ModuleSpec) -> bool:
    """Return true if a module is found without its folder. Raises ConfigError if that is another of this name."""
    try:
        existing = find_spec(name) if spec.loader is not None else None
    except ValueError:
        raise ConfigError(f"{key}: {name!r} names no module that can be imported; rename it") from None
    if existing is None or existing.loader is None:
        return False  # a namespace package (no __init__.py) hides nothing: a regular module of that name comes first
    if existing.origin and spec.origin and Path(existing.origin).resolve() == Path(spec.origin).resolve():
        return True
    file = Path(str(spec.origin))
    module_file = f"{file.parent.name}/" if file.name == "__init__.py" else file.name
    is_standard = name in sys.stdlib_module_names
    owner = "a module of Python itself" if is_standard else f"an installed module ({existing.origin})"
    problem = f"{module_file} next to the config has the same name as {owner}, which would be imported in its place"
    raise ConfigError(f"{key}: {problem}; rename {module_file}, and name it so in the config")
