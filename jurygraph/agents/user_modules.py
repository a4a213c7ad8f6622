"""Import the modules in a config's folder: those that the config names by a dotted path, and what these import.

Nothing else in that folder can be imported, neither by jurygraph nor by a library that probes for an optional package.
The folder is the last entry of `sys.path`; a name that already resolves to another module is refused.
"""

import re
import sys
from collections.abc import Iterator
from importlib.abc import PathEntryFinder
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from jurygraph.errors import ConfigError
from jurygraph.schema import Config

CODE_PARAMS = ("choice", "functions", "tools")
"""Params of our evaluators and derivers that name code: a dotted path, or a mapping of names to dotted paths."""

_DOTTED = re.compile(r"([^\W\d]\w*)(?:\.[^\W\d]\w*)*[.:][^\W\d]\w*")
_MACHINERY = ("importlib", "_frozen_importlib", "_frozen_importlib_external")
_LOADERS = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


class _FolderFinder(PathEntryFinder):
    """Find the allowed modules of a folder, and any of its modules imported by a module found earlier.

    It is also the hook that gives `sys.path` this finder for the folder.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.allowed: set[str] = set()
        self._files = FileFinder(folder, *_LOADERS)

    def __call__(self, path: str) -> PathEntryFinder:
        if path != self.folder:
            raise ImportError(f"only for {self.folder}")
        return self

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self.allowed and _importing_module() not in self.allowed:
            return None
        spec = self._files.find_spec(name, target)
        if spec is not None:
            self.allowed.add(name)
        return spec

    def invalidate_caches(self) -> None:
        self._files.invalidate_caches()


def allow_modules_in_folder(*configs: Config, folder: Path) -> bool:
    """Allow importing the modules that configs name and that lie in `folder`; return true if there are any.

    The folder replaces an earlier one. Raises `ConfigError`, naming the key, if a module has the name of one that can
    be imported already.
    """
    home = str(folder.resolve())
    _forget_other_folders(home)
    files = FileFinder(home, *_LOADERS)
    named: set[str] = set()
    for config in configs:
        for key, name in modules_named_in(config):
            if spec := files.find_spec(name):
                _require_free_name(key, name, spec)
                named.add(name)
    hook = next((hook for hook in sys.path_hooks if isinstance(hook, _FolderFinder)), None)
    if named and hook is None and home not in map(_resolve, sys.path):
        hook = _FolderFinder(home)
        sys.path_hooks.insert(0, hook)
        sys.path_importer_cache.pop(home, None)
        sys.path.append(home)
    if hook is not None:
        hook.allowed |= named
    return bool(named)


def folder_of_modules() -> str | None:
    """Return the folder whose modules a config may name; None without one."""
    return next((hook.folder for hook in sys.path_hooks if isinstance(hook, _FolderFinder)), None)


def modules_named_in(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the keys of a config that name code by a dotted path, each with the name of its outermost module."""
    for key, path in _paths(config):
        if isinstance(path, str) and (match := _DOTTED.fullmatch(path)):
            yield key, match[1]


def _paths(config: Config) -> Iterator[tuple[str, Any]]:
    if config.model.startswith("langchain:"):
        yield "model", config.model.removeprefix("langchain:")
    for role in ("evaluators", "derivers"):
        for place, use in enumerate(getattr(config, role)):
            yield f"{role}[{place}]", use.use
            for paths in map(use.params.get, CODE_PARAMS):
                for path in paths.values() if isinstance(paths, dict) else [paths]:
                    yield f"{role}[{place}]", path
    for name, component in config.components.items():
        yield f"components.{name}.combiner", component.combiner


def _forget_other_folders(home: str) -> None:
    """Undo the folder of an earlier config and its imports: modules here may have the same names."""
    for hook in [hook for hook in sys.path_hooks if isinstance(hook, _FolderFinder)]:
        if hook.folder == home and home in sys.path:
            continue
        sys.path_hooks.remove(hook)
        sys.path_importer_cache.pop(hook.folder, None)
        if hook.folder in sys.path:
            sys.path.remove(hook.folder)
        if hook.folder != home:
            for name in [name for name in sys.modules if name.partition(".")[0] in hook.allowed]:
                del sys.modules[name]


def _require_free_name(key: str, name: str, spec: ModuleSpec) -> None:
    """Raise ConfigError if a file next to the config has a name that resolves to another module already."""
    try:
        existing = find_spec(name) if spec.loader is not None else None
    except ValueError:
        raise ConfigError(f"{key}: {name!r} names no module that can be imported; rename it") from None
    if existing is None or existing.loader is None:
        return  # a namespace package (no __init__.py) hides nothing: a regular module of that name comes first
    if existing.origin and spec.origin and _resolve(existing.origin) == _resolve(spec.origin):
        return
    file = Path(str(spec.origin))
    module_file = f"{file.parent.name}/" if file.name == "__init__.py" else file.name
    is_standard = name in sys.stdlib_module_names
    owner = "a module of Python itself" if is_standard else f"an installed module ({existing.origin})"
    problem = f"{module_file} next to the config has the same name as {owner}, which would be imported in its place"
    raise ConfigError(f"{key}: {problem}; rename {module_file}, and name it so in the config")


def _resolve(path: str) -> str:
    return str(Path(path).resolve())


def _importing_module() -> str | None:
    """Return the top-level name of the module that executes the current import statement."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in _MACHINERY:
            return name
        frame = frame.f_back
    return None
