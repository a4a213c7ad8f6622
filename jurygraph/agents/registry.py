"""Resolve names in the config to evaluators, derivers and combiners; an object in the place of a name is used itself.

The lookup order is: jurygraph's own, those registered by the decorator, installed plug-ins (entry points
`jurygraph.evaluators`, `jurygraph.derivers`, `jurygraph.combiners`), and a dotted path such as `my_package.tone`.
"""

import copy
import inspect
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from itertools import count, filterfalse
from pathlib import Path
from typing import Any, NamedTuple

from jurygraph.agents.feedback import declared_keywords
from jurygraph.agents.functions import (
    REGISTERED_EVALUATORS,
    CallableEvaluator,
    adapt_to_evaluator,
    declares_version,
    is_runnable,
    source_version,
)
from jurygraph.agents.isolation import IsolatedEvaluator, open_request_handler
from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.decision.combiners import Combiner
from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import (
    Problem,
    describe_type,
    did_you_mean,
    locate_user_code,
    quote,
    validate,
)
from jurygraph.schema import (
    Config,
    DeriverUse,
    EvaluatorRecord,
    EvaluatorUse,
    FrozenModel,
    ToolUse,
    digest_of,
)
from jurygraph.schema.frozen_model import JsonFields, ParamsModel, RawParams, StrPath
from jurygraph.schema.verdict import GATED_LAYERS
from jurygraph.sources.files import explain_unreadable_file, sha256_of_file
from jurygraph.sources.user_modules import (
    FolderModules,
    current_folder_modules,
    import_module,
    importing_from,
)

ImportPaths = Mapping[str, str]
"""Dotted paths by the names of what they lead to."""
_BUILTIN_PATHS_BY_ROLE = tomllib.loads(
    files("jurygraph.agents").joinpath("registry.toml").read_text("utf-8")
)
BUILTIN_EVALUATOR_PATHS: ImportPaths = _BUILTIN_PATHS_BY_ROLE["evaluators"]
BUILTIN_DERIVER_PATHS: ImportPaths = _BUILTIN_PATHS_BY_ROLE["derivers"]
BUILTIN_COMBINER_PATHS: ImportPaths = _BUILTIN_PATHS_BY_ROLE["combiners"]
BUILTIN_TOOL_PATHS: ImportPaths = _BUILTIN_PATHS_BY_ROLE["tools"]
READS_MARK = " reads "
"""Precedes the files of `reads` in a version, each with the beginning of its SHA-256."""
_MAX_NAMES_LISTED = 20
"""Of a role with more, such as the evaluators, the reference has a table."""
ROLE_CLASSES = (Evaluator, Deriver, Combiner)


def load_evaluator(use: EvaluatorUse) -> Evaluator:
    """Return the evaluator that the config names, set up with its params. Raises ConfigError if there is none."""
    target = find_target("evaluator", use)
    if use.use == "<lambda>":
        raise ConfigError("is a lambda, which has no name; write a function with `def`")
    is_class = inspect.isclass(target)
    kind: type = target if is_class else type(target)
    is_object_of_user = not is_class and not issubclass(kind, ROLE_CLASSES)
    is_target_function = inspect.isroutine(target) or (
        is_object_of_user and declared_keywords(target)
    )
    evaluator: Evaluator
    read_files = _find_read_files(target, use.params)
    if is_runnable(target) or is_target_function:
        evaluator = adapt_to_evaluator(target, use.use)
    elif isinstance(target, CallableEvaluator):
        evaluator = copy.copy(target)
    elif issubclass(kind, Evaluator):
        params = {**use.params, **read_files.params}
        evaluator = make_instance("evaluator", use.use, target, params)
    else:
        hint = (
            "write a function with @jurygraph.evaluator, subclass jurygraph.Evaluator, or name a langchain-core "
            f"Runnable; found {kind.__name__}"
        )
        if is_class:
            hint = "it is a class; subclass jurygraph.Evaluator, or name an instance that can be called"
        if hasattr(target, "compile"):
            hint = "it is a graph to be compiled; give what its `.compile()` returns"
        if issubclass(kind, Deriver):
            hint = "it is a deriver; move it to `derivers`"
        raise ConfigError(f"{use.use!r} is not an evaluator: {hint}")
    if isinstance(evaluator, CallableEvaluator):
        evaluator.set_params(use.params)
        evaluator.file_params = read_files.params
    _apply_use_settings(evaluator, use, target, read_files.version_suffix)
    return evaluator if use.isolate is None else _isolate_evaluator(evaluator, use)


def _apply_use_settings(
    component: Evaluator | Deriver,
    use: EvaluatorUse | DeriverUse,
    target: Any,
    version_suffix: str,
) -> None:
    component.name = use.known_as
    component.params = use.params
    component.timeout = use.timeout or component.timeout
    if target is use.target:
        add_settings_to_version(component, target)
    if version_suffix:  # a version to which nothing is added may be a property
        component.version += version_suffix


def _isolate_evaluator(evaluator: Evaluator, use: EvaluatorUse) -> Evaluator:
    """Return the evaluator in a process of its own. Raises ConfigError if that process could not run it."""
    if evaluator.uses_model:
        raise ConfigError(
            f"{use.use!r} uses the config's model, which no other process can reach: leave `isolate` out; its requests "
            "have the limits of `calls`"
        )
    paths = {
        **find_plugin_paths("evaluator"),
        **dict.fromkeys(REGISTERED_EVALUATORS, ""),
        **BUILTIN_EVALUATOR_PATHS,
    }
    module, _ = _split_import_path("" if use.target is not None else paths.get(use.use, use.use))
    folder_modules = current_folder_modules()
    module_name_in_process = (
        module if folder_modules is None else folder_modules.name_in_sys_modules(module)
    )
    spec = getattr(sys.modules.get(module_name_in_process), "__spec__", None)
    if spec is None or spec.name != module_name_in_process:
        raise ConfigError(
            f"{use.use!r} cannot be imported by another process, as `isolate` requires: write it in a module, and "
            "name it by its dotted path, as package.module.evaluator"
        )
    return IsolatedEvaluator(evaluator, use)


def prepare_isolated(setup: JsonFields) -> Callable[[str], Any]:
    """Load and open an isolated evaluator in its worker process, and return the function that answers requests."""
    use = EvaluatorUse.model_validate(setup["use"])
    folder = setup["folder"]
    folder_modules = None
    if folder is not None:
        folder_modules = FolderModules(Path(folder), Config(evaluators=(use,)))
    with importing_from(folder_modules):
        evaluator = load_evaluator(use)
    return open_request_handler(evaluator)


def load_deriver(use: DeriverUse) -> Deriver:
    """Return the deriver that the config names. Raises ConfigError if there is none."""
    target = find_target("deriver", use)
    read_files = _find_read_files(target, use.params)
    params = {**use.params, **read_files.params}
    deriver = make_instance("deriver", use.use, target, params)
    if not isinstance(deriver, Deriver) or not getattr(deriver, "gives", None):
        raise ConfigError(
            f"{use.use!r} is not a deriver: subclass jurygraph.Deriver and set `gives`"
        )
    _apply_use_settings(deriver, use, target, read_files.version_suffix)
    return deriver


class _ReadFiles(NamedTuple):
    """The absolute paths of files that params name, and what the version says of the contents of all."""

    params: RawParams
    version_suffix: str


def _find_read_files(target: Any, params: RawParams) -> _ReadFiles:
    """Find the files that user code reads, in the config's folder. Raises ConfigError for one that cannot be read."""
    if not getattr(target, "reads", ()):
        return _ReadFiles({}, "")
    folder_modules = current_folder_modules()
    folder = Path() if folder_modules is None else folder_modules.folder
    code = target.target if isinstance(target, CallableEvaluator) else target
    is_set_up = isinstance(code, ROLE_CLASSES)
    if is_set_up:  # its attributes are what its params were
        settings = getattr(code, "settings", None)
        values = dict(settings) if isinstance(settings, ParamsModel) else {}
        values.update(vars(code))
    else:
        values = {**_param_defaults(code), **params}
    paths = {}
    digests = []
    for name in target.reads:
        # A name that is no param is a path itself; `__init__` refuses a missing value.
        file = values.get(name, name)
        if file is None:
            continue
        if not isinstance(file, StrPath):
            hint = "; give the class of this object, and its params" if is_set_up else ""
            raise ConfigError(
                f"params.{name}: is {describe_type(file)}; by `reads` it is the path of a file{hint}"
            )
        path = (folder / file).resolve()
        try:
            with explain_unreadable_file(path):
                digests.append(f"{Path(name).name} {sha256_of_file(path)[:12]}")
        except InputError as error:
            raise ConfigError(f"params.{name}: {error}") from None
        if name in values and not is_set_up:
            paths[name] = str(path)
    return _ReadFiles(paths, f"{READS_MARK}{', '.join(digests)}" if digests else "")


def _param_defaults(code: Any) -> JsonFields:
    """Return the defaults of the params of a class or a function, None without one."""
    defaults = {}
    for name, parameter in inspect.signature(code).parameters.items():
        has_default = parameter.default is not parameter.empty
        defaults[name] = parameter.default if has_default else None
    for name, field in getattr(code, "Params", ParamsModel).model_fields.items():
        defaults[name] = None if field.is_required() else field.default
    return defaults


def builtin_params_models(role: str) -> dict[str, type[ParamsModel]]:
    """Return the models of the params of jurygraph's own `evaluators`, `derivers` or `combiners`, by name."""
    return {
        name: _import_object(role, path, ()).Params
        for name, path in _BUILTIN_PATHS_BY_ROLE[role].items()
    }


def load_evaluators(config: Config) -> dict[str, Evaluator]:
    """Return the config's evaluators by name, sorted. Raises ConfigError with the key of a faulty one."""
    evaluators = load_components_by_name("evaluators", load_evaluator, config.evaluators)
    for index, use in enumerate(config.evaluators):
        evaluator = evaluators[use.known_as]
        # a judge of criteria or of stakeholders needs tasks that have some
        is_about_part = evaluator.audience in ("criterion", "stakeholder")
        if use.if_missing is not None and not evaluator.task_fields and not is_about_part:
            raise ConfigError(
                f"evaluators[{index}].if_missing: {quote(evaluator.name)} names nothing that a task has to have; "
                "leave it out, or use `when`"
            )
        if use.reference is not None and (
            evaluator.layer not in GATED_LAYERS or "reference" in evaluator.task_fields
        ):
            raise ConfigError(
                f"evaluators[{index}].reference: {quote(evaluator.name)} needs it, or is no judge by a model; "
                "leave `reference` out"
            )
    return dict(sorted(evaluators.items()))


def check_judges(config: Config, evaluators: Mapping[str, Evaluator]) -> None:
    """Raise ConfigError for a judge that is not in `models`, or of no use."""
    for index, use in enumerate(config.evaluators):
        field = "judges" if use.escalate is None else "escalate"
        key = f"evaluators[{index}].{field}"
        for judge in use.all_judges:
            if judge not in config.models:
                names_text = ", ".join(sorted(config.models)) or "none"
                all_names_hint = f"there are {names_text}; add it to `models`"
                hint = did_you_mean(judge, config.models) or all_names_hint
                raise ConfigError(f"{key}: there is no model {judge!r}; {hint}")
        if use.all_judges and not evaluators[use.known_as].uses_model:
            raise ConfigError(f"{key}: {use.known_as!r} asks no model, so leave them out")


def load_derivers(config: Config) -> dict[str, Deriver]:
    """Return the config's derivers by name, sorted. Raises ConfigError with the key of a faulty one."""
    return dict(sorted(load_components_by_name("derivers", load_deriver, config.derivers).items()))


@contextmanager
def prefix_config_errors(location: str) -> Iterator[None]:
    """Put a location, such as `evaluators[0]: `, before the ConfigError that is raised inside."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{location}{error}") from error.__cause__


def load_components_by_name(
    key: str, load_component: Callable[[Any], Any], component_uses: Iterable[Any]
) -> JsonFields:
    """Return what is loaded for each use, by name. Raises ConfigError with the key, and the index, of a faulty one."""
    instances = []
    for index, use in enumerate(component_uses):
        with prefix_config_errors(f"{key}[{index}]: "):
            instances.append(load_component(use))
    names = [instance.name for instance in instances]
    for index, name in enumerate(names):
        if name in names[:index]:
            numbered_names = (f"{name.rpartition('.')[2]}_{number}" for number in count(2))
            free_name = next(filterfalse(names.__contains__, numbered_names))
            raise ConfigError(
                f"{key}[{index}]: {name!r} is listed twice; give one of them a `name` of its own, "
                f"such as `name: {free_name}`"
            )
    return dict(zip(names, instances, strict=True))


def load_combiner(name: str, target: Any = None) -> Combiner:
    """Return the combiner of that name, or made of the `target` known by it. Raises ConfigError if there is none."""
    code = _find_named_object("combiner", name) if target is None else target
    combiner = make_instance("combiner", name, code, {})
    if not isinstance(combiner, Combiner):
        raise ConfigError(f"{name!r} is not a combiner: subclass jurygraph.Combiner")
    if target is not None:
        add_settings_to_version(combiner, target)
    return combiner


class _LoadedCombiners(dict[str, Combiner]):
    """Combiners of a config, which finds built-in ones of another, too: of tasks that keep an earlier decision."""

    def __missing__(self, name: str) -> Combiner:
        if name not in BUILTIN_COMBINER_PATHS:
            raise KeyError(name)
        return load_combiner(name)


def load_combiners(config: Config, records: Iterable[EvaluatorRecord]) -> dict[str, Combiner]:
    """Return every combiner that decisions under the config may use, by name: the config's own and its evaluators'.

    Raises ConfigError if one does not exist.
    """
    keys = {
        component.combiner: f"components.{name}.combiner: "
        for name, component in config.components.items()
    }
    keys[config.rubric.aggregation] = "rubric.aggregation: "
    target_by_combiner = _combiner_targets_by_name(config)
    names = {"mean", config.weights.welfare, *keys}
    names.update(record.combiner for record in records)
    combiners_by_name = _LoadedCombiners()
    for name in sorted(names):
        with prefix_config_errors(keys.get(name, "")):
            combiners_by_name[name] = load_combiner(name, target_by_combiner.get(name))
    for key, component in config.components.items():
        combiner = combiners_by_name[component.combiner]
        has_freeze_of_its_own = type(combiner).freeze is not Combiner.freeze
        if combiner.Params is ParamsModel and has_freeze_of_its_own:
            continue  # which reads the params in its own way
        problem = validate(combiner.Params, component.params)
        if isinstance(problem, Problem):
            field = f"params.{problem.field}" if problem.field else "params"
            raise ConfigError(f"components.{key}.{field}: {problem}")
    return combiners_by_name


def _combiner_targets_by_name(config: Config) -> JsonFields:
    target_by_combiner: JsonFields = {}
    for key, component in config.components.items():
        name = component.combiner
        target = component.target
        if target is not None:
            other_target = target_by_combiner.setdefault(name, target)
            if name in BUILTIN_COMBINER_PATHS or other_target is not target:
                raise ConfigError(
                    f"components.{key}.combiner: another combiner is called {name!r}; set `name` on this one"
                )
    return target_by_combiner


def add_settings_to_version(component: Any, target: Any) -> None:
    """Add a digest of its attributes to the version of an instance that is an object of the config.

    Unlike the params of a class, they are in no plan otherwise. Only the type counts of one that is not plain data.
    """
    if inspect.isclass(target) or isinstance(component, CallableEvaluator):
        return
    settings = {
        name: _describe_setting(value)
        for name, value in sorted(vars(target).items())
        if name not in ("name", "params", "version")
    }
    if settings:
        component.version += f" with {digest_of(settings)[:12]}"


def _describe_setting(value: Any) -> Any:
    if isinstance(value, FrozenModel):
        return value.digest
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    try:
        return digest_of(value)
    except (TypeError, ValueError, RecursionError):
        kind = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
        return f"{kind.__module__}.{kind.__qualname__} {source_version(kind)}"


def make_instance(
    role: str,
    name: str,
    target: Any,
    params: RawParams,
    kinds: tuple[type, ...] = ROLE_CLASSES,
) -> Any:
    """Return an instance of a class, made with the params, or a copy of an instance, which takes none.

    Raises ConfigError for any other object, or if it cannot be made. `kinds` are the base classes that it may have.
    """
    if not inspect.isclass(target):
        if params:
            raise ConfigError(
                f"{role} {name!r} is already set up and takes no params here; leave them out"
            )
        if not isinstance(target, kinds):
            raise ConfigError(
                f"{name!r} is no {role}: it is a {type(target).__name__}; "
                f"subclass jurygraph.{role.capitalize()}"
            )
        return _set_source_version(copy.copy(target), kinds)
    if inspect.isabstract(target):
        abstract_methods = sorted(target.__abstractmethods__)  # type: ignore[attr-defined]
        missing = ", ".join(f"`{method}`" for method in abstract_methods)
        raise ConfigError(f"{role} {name!r} is abstract: subclass it and write {missing}")
    try:
        return _set_source_version(target(**params), kinds)
    except ConfigError:
        raise
    except InputError as error:
        raise ConfigError(f"{role} {name!r}: {error}") from error
    # The user's class may raise anything: the config is at fault.
    except (Exception, SystemExit) as error:
        hint = ""
        if params:
            names = list(inspect.signature(target).parameters)
            hint = f"; its params: {', '.join(names) or 'none'}"
            suggestions = [did_you_mean(name, names) for name in params if name not in names]
            hint += "".join(f"; {suggestion}" for suggestion in suggestions if suggestion)
        raise ConfigError(
            f"{role} {name!r} cannot be made: {type(error).__name__}: {error}{hint}"
        ) from error


def _set_source_version(instance: Any, kinds: tuple[type, ...]) -> Any:
    """Give an instance of a class without a version of its own one that changes with its module."""
    kind = type(instance)
    role = next((role for role in kinds if isinstance(instance, role)), None)
    keeps_version = role is None or "version" in vars(instance) or declares_version(kind, role)
    if not keeps_version:
        instance.version = source_version(kind)
    return instance


def find_target(role: str, use: EvaluatorUse | DeriverUse | ToolUse) -> Any:
    """Return the object of a use in a config, or the one that it names. Raises ConfigError if there is none."""
    return _find_named_object(role, use.use) if use.target is None else use.target


def _find_named_object(role: str, name: str) -> Any:
    """Return the object that a config names. Raises ConfigError, with what may be meant, if there is none."""
    builtin_paths = _BUILTIN_PATHS_BY_ROLE[f"{role}s"]
    registered_objects = REGISTERED_EVALUATORS if role == "evaluator" else {}
    if name in builtin_paths:
        return _import_object(role, builtin_paths[name], ())
    if name in registered_objects:
        if registered_objects[name] is None:
            raise ConfigError(
                f"several {role}s are registered as {name!r}: write the path of one, as package.{name}"
            )
        return registered_objects[name]
    plugin_paths = find_plugin_paths(role)
    names = (*builtin_paths, *registered_objects, *plugin_paths)
    if "." in name or ":" in name or name in plugin_paths:
        return _import_object(role, plugin_paths.get(name, name), names)
    raise ConfigError(_unknown_name_message(role, name, names))


@cache
def find_plugin_paths(role: str) -> ImportPaths:
    """Return the paths of the installed plug-ins of a role, by name. Cached: a scan reads every installed package."""
    return {
        entry_point.name: entry_point.value
        for entry_point in entry_points(group=f"jurygraph.{role}s")
    }


def _split_import_path(path: str) -> tuple[str, str]:
    module, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    return module, attribute


def _import_object(role: str, path: str, names: Collection[str]) -> Any:
    module_name, attribute = _split_import_path(path)
    if not module_name or not attribute or module_name.startswith("."):
        raise ConfigError(_unknown_name_message(role, path, names))
    try:
        module = import_module(module_name)
    # The user's module may raise anything: the config is at fault.
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) and error.name else ""
        # A module on the way to the named one is missing: the name is wrong, not the code behind it.
        if missing and f"{module_name}.".startswith(f"{missing}."):
            folder_modules = current_folder_modules()
            where = "was not found"
            if folder_modules is not None:
                where += f" in {folder_modules.folder.resolve()}"
            hint = f"module {missing!r} {where}, and is not installed: check its name"
            raise ConfigError(_unknown_name_message(role, path, names, hint)) from error
        # Anything in the module may be at fault, and not what the config names first of it.
        remedy = "install what it needs, or fix it" if isinstance(error, ImportError) else "fix it"
        raise ConfigError(
            f"module {module_name!r} cannot be imported{locate_user_code(error)}: "
            f"{type(error).__name__}: {error}; {remedy}"
        ) from error
    if not hasattr(module, attribute):
        hint = did_you_mean(attribute, dir(module), 0.5) or "name something that it defines"
        raise ConfigError(f"{role} {path!r}: module {module_name!r} has no {attribute!r}; {hint}")
    return getattr(module, attribute)


def import_objects_by_name(
    param_name: str, paths: ImportPaths, attribute: str, kind: str
) -> JsonFields:
    """Return the objects that a param of a config names, each by a dotted path.

    Raises ConfigError, naming the param, if one cannot be imported or lacks the attribute that all of its kind have.
    """
    objects_by_name = {}
    for name, path in paths.items():
        with prefix_config_errors(f"{param_name}.{name}: "):
            found = _import_object("name", path, ())
            if not hasattr(found, attribute):
                raise ConfigError(f"{path!r} is of type {type(found).__name__}; name {kind}")
        objects_by_name[name] = found
    return objects_by_name


def _unknown_name_message(
    role: str, name: str, names: Collection[str], hint: str | None = None
) -> str:
    if hint is None:
        hint = f"name one as package.module.{role}"
        if 0 < len(names) <= _MAX_NAMES_LISTED:
            hint += f", or write {', '.join(names)}"
    return f"unknown {role} {name!r}; {did_you_mean(name, names, 0.5) or hint}"
