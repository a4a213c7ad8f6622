"""Import the modules that a config names by a dotted path from their files in the config's folder.

The folder is no entry of `sys.path`: nothing else in it can be imported, neither by jurygraph nor by a library that
probes for an optional package. Its modules have names of their own in `sys.modules`, below a package that stands for
the folder as its files are, so that two folders may have modules of one name, and changed files are imported anew. What
such a module imports, also within its functions, is looked for among its siblings, too: it is executed with an
`__import__` of its own, as `exec` allows. A name that already resolves to another module is refused.
"""

import builtins
import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

from jurygraph.errors import ConfigError
from jurygraph.schema import Config, ToolUse

CODE_PATH_PARAMS = ("functions", "tools")
"""Params of our evaluators and derivers that name code: a dotted path, or a mapping of names to dotted paths."""

_DOTTED_NAME_PATTERN = re.compile(r"([^\W\d]\w*)(?:\.[^\W\d]\w*)*[.:][^\W\d]\w*")
_FOLDER_PACKAGE_PREFIX = "jurygraph_folder_"


class FolderModules:
    """The modules in a folder that configs name; `named` are the outermost of them, and may be none.

    Raises `ConfigError`, naming the key, if a module has the name of one that can be imported already.
    """

    def __init__(self, folder: Path, *configs: Config) -> None:
        self.folder = folder
        self._home = str(folder.resolve())
        self._is_folder_module_by_name: dict[str, bool] = {}
        self.named = set()
        for key, name in chain.from_iterable(map(iter_config_modules, configs)):
            spec = PathFinder.find_spec(name, [self._home])
            if spec is None:
                continue
            self.named.add(name)
            try:
                self._is_folder_module_by_name[name] = not _is_importable(name, spec)
            except ValueError as error:
                raise ConfigError(f"{key}: {error}, and name it so in the config") from None

    @cached_property
    def _package(self) -> str:
        """The name of the package that stands for the folder as it is; most configs name none of its modules."""
        identity = repr([self._home, *_code_file_stamps(self.folder)])
        return _FOLDER_PACKAGE_PREFIX + sha256(identity.encode()).hexdigest()[:16]

    def name_in_sys_modules(self, name: str) -> str:
        """Return the name that a module has in `sys.modules`: another one if it is a named module of the folder."""
        top_level_name = name.partition(".")[0]
        is_folder_module = (
            top_level_name in self.named and self._is_folder_module_by_name[top_level_name]
        )
        return f"{self._package}.{name}" if is_folder_module else name

    def import_module(self, name: str) -> ModuleType:
        imported_name = self.name_in_sys_modules(name)
        if imported_name != name:
            self._install_finder()
        try:
            return importlib.import_module(imported_name)
        except ModuleNotFoundError as error:
            missing = module_name_in_config(error.name or "")
            if missing == error.name:
                raise
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing) from None

    def import_sibling(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the names of the built-in function
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as `__import__` does, for code of the folder: from there what is nowhere else.

        Raises ImportError for a sibling with the name of another module, instead of running the wrong one.
        """
        top_level_name = name.partition(".")[0]
        names = fromlist or ()
        if level or not self._is_sibling_module(top_level_name):
            return builtins.__import__(name, globals, locals, names, level)
        module = builtins.__import__(f"{self._package}.{name}", globals, locals, names)
        return module if fromlist else sys.modules[f"{self._package}.{top_level_name}"]

    def _is_sibling_module(self, name: str) -> bool:
        if name in sys.stdlib_module_names:
            return False
        if name not in self._is_folder_module_by_name:
            spec = PathFinder.find_spec(name, [self._home])
            try:
                self._is_folder_module_by_name[name] = spec is not None and not _is_importable(
                    name, spec
                )
            except ValueError as error:
                raise ImportError(str(error), name=name) from None
        return self._is_folder_module_by_name[name]

    def _install_finder(self) -> None:
        """Let the folder's modules be found below a package of their own, which stands for the folder."""
        if not any(isinstance(finder, _FolderFinder) for finder in sys.meta_path):
            # First, as the usual finder would find them, too, and execute them as usual.
            sys.meta_path.insert(0, _FolderFinder())
        if self._package not in sys.modules:
            package = ModuleType(self._package, f"The modules in {self._home}.")
            package.__path__ = [self._home]
            sys.modules[self._package] = package
        vars(sys.modules[self._package])["import_sibling"] = self.import_sibling


class _FolderFinder(MetaPathFinder):
    """Finds the modules below the packages that stand for folders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = sys.modules.get(fullname.partition(".")[0])
        if not fullname.startswith(_FOLDER_PACKAGE_PREFIX) or path is None or package is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _FolderLoader(fullname, spec.loader.path)
        return spec


class _FolderLoader(SourceFileLoader):
    """Executes a module with the `__import__` of its folder."""

    def exec_module(self, module: ModuleType) -> None:
        package = sys.modules[module.__name__.partition(".")[0]]
        import_sibling = vars(package)["import_sibling"]
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": import_sibling}
        super().exec_module(module)


_IMPORTING_MODULES: ContextVar[FolderModules | None] = ContextVar("importing_from", default=None)


@contextmanager
def importing_from(folder_modules: FolderModules | None) -> Iterator[None]:
    """Let `import_module` find these modules, for as long as a config's code is loaded."""
    token = _IMPORTING_MODULES.set(folder_modules)
    try:
        yield
    finally:
        _IMPORTING_MODULES.reset(token)


def current_folder_modules() -> FolderModules | None:
    return _IMPORTING_MODULES.get()


def import_module(name: str) -> ModuleType:
    """Import a module by its dotted name: from the current folder if a config names it and it is nowhere else."""
    folder_modules = _IMPORTING_MODULES.get()
    return (
        importlib.import_module(name)
        if folder_modules is None
        else folder_modules.import_module(name)
    )


def module_name_in_config(name: str) -> str:
    """Return the name of a module as its config has it, without the package that stands for its folder."""
    return name.partition(".")[2] if name.startswith(_FOLDER_PACKAGE_PREFIX) else name


def iter_config_modules(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the keys of a config that name code by a dotted path, each with the name of its outermost module."""
    for key, path in _iter_config_code_paths(config):
        if isinstance(path, str) and (match := _DOTTED_NAME_PATTERN.fullmatch(path)):
            yield key, match[1]


def _iter_config_code_paths(config: Config) -> Iterator[tuple[str, Any]]:
    models = {"model": config.model}
    for name, model_use in config.models.items():
        models[f"models.{name}"] = model_use.model
    for key, model in models.items():
        if model.startswith("langchain:"):
            yield key, model.removeprefix("langchain:")
    for role in ("evaluators", "derivers"):
        for index, use in enumerate(getattr(config, role)):
            key = f"{role}[{index}]"
            yield key, use.use
            for param_name in CODE_PATH_PARAMS:
                paths = use.params.get(param_name)
                for path in paths.values() if isinstance(paths, dict) else [paths]:
                    yield key, path
            yield from _iter_tool_code_paths(key, use.tools)
    for name, component in config.components.items():
        yield f"components.{name}.combiner", component.combiner


def _iter_tool_code_paths(key: str, tools: Sequence[ToolUse]) -> Iterator[tuple[str, Any]]:
    for index, tool in enumerate(tools):
        tool_config_key = f"{key}.tools[{index}]"
        yield tool_config_key, tool.use
        checks = tool.params.get("checks")
        for check in checks if isinstance(checks, list) else []:  # of `run_check`
            yield tool_config_key, check.get("use") if isinstance(check, dict) else check


def _code_file_stamps(folder: Path) -> list[tuple[str, int, int]]:
    """Return the files of the modules and packages in a folder, each with its time of change and its size."""
    files = list(folder.glob("*.py"))
    for init_file in folder.glob("*/__init__.py"):
        files += init_file.parent.rglob("*.py")
    states = []
    for path in sorted(files):
        if path.is_file():
            status = path.stat()
            states.append((str(path), status.st_mtime_ns, status.st_size))
    return states


def _is_importable(name: str, spec: ModuleSpec) -> bool:
    """Return true if a module is found without its folder. Raises ValueError if that is another of this name."""
    try:
        spec_without_folder = find_spec(name) if spec.loader is not None else None
    except ValueError:
        raise ValueError(f"{name!r} names no module that can be imported; rename it") from None
    if spec_without_folder is None or spec_without_folder.loader is None:
        return False  # a namespace package (no __init__.py) hides nothing: a regular module of that name comes first
    if (
        spec_without_folder.origin
        and spec.origin
        and Path(spec_without_folder.origin).resolve() == Path(spec.origin).resolve()
    ):
        return True
    file = Path(str(spec.origin))
    shown_file_name = f"{file.parent.name}/" if file.name == "__init__.py" else file.name
    owner = f"an installed module ({spec_without_folder.origin})"
    if name in sys.stdlib_module_names:
        owner = "a module of Python itself"
    raise ValueError(
        f"{shown_file_name} next to the config has the same name as {owner}, which would be imported in its place; "
        f"rename {shown_file_name}"
    )
