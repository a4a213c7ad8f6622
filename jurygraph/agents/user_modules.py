"""Load the modules that a config names by a dotted path from their files in the config's folder.

Nothing else in that folder can be imported, neither by jurygraph nor by a library that probes for an optional package:
the folder is on `sys.path` only while one of its modules is loaded, which may import others. A name that already
resolves to another module is refused.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from jurygraph.errors import ConfigError
from jurygraph.schema import Config

CODE_PARAMS = ("choice", "functions", "tools")
"""Params of our evaluators and derivers that name code: a dotted path, or a mapping of names to dotted paths."""

_DOTTED = re.compile(r"([^\W\d]\w*)(?:\.[^\W\d]\w*)*[.:][^\W\d]\w*")


class _Loader(SourceFileLoader):
    """Runs a module of the folder; meanwhile its siblings can be imported, too."""

    def exec_module(self, module: ModuleType) -> None:
        before = set(sys.modules)
        sys.path.append(_folder.path)
        try:
            super().exec_module(module)
        finally:
            sys.path.remove(_folder.path)
            _folder.loaded.update(filter(_folder.holds, set(sys.modules) - before))


class _Folder(MetaPathFinder):
    """A folder in which the modules that a config names are found, if they are found nowhere else."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.loaded: set[str] = set()
        self._named: set[str] = set()
        self._files = FileFinder(path, (_Loader, SOURCE_SUFFIXES))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return self._files.find_spec(fullname) if fullname in self._named else None

    def allow(self, key: str, name: str) -> bool:
        """Allow importing a module if the folder has it; return true then."""
        spec = self._files.find_spec(name)
        if spec is None:
            return False
        if not _is_importable(key, name, spec):
            self._named.add(name)
            self.loaded.add(name)
        return True

    def holds(self, name: str) -> bool:
        """Return true if the file of an imported module lies in the folder."""
        spec = None if "." in name else self._files.find_spec(name)
        return spec is not None and spec.origin == getattr(sys.modules[name], "__file__", None)

    def leave(self) -> None:
        """Forget the modules of this folder: those of another may have the same names."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in list(sys.modules):
            if name.partition(".")[0] in self.loaded:
                del sys.modules[name]


_folder = _Folder("")


def allow_modules_in_folder(*configs: Config, folder: Path) -> bool:
    """Allow importing the modules that configs name and that lie in `folder`; return true if there are any.

    The folder replaces an earlier one. Raises `ConfigError`, naming the key, if a module has the name of one that can
    be imported already.
    """
    global _folder
    home = str(folder.resolve())
    if home != _folder.path:
        _folder.leave()
        _folder = _Folder(home)
        sys.meta_path.append(_folder)
    named = [_folder.allow(key, name) for config in configs for key, name in modules_named_in(config)]
    return any(named)


def folder_of_modules() -> str | None:
    return _folder.path or None


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
