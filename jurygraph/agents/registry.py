"""From a name in the config to an evaluator, deriver or combiner.

Looked up in this order: jurygraph's own, those that the decorator registered, installed plug-ins (entry points
`jurygraph.evaluators`, `jurygraph.derivers`, `jurygraph.combiners`), and a dotted path such as `my_package.tone`.
"""

import copy
import difflib
import importlib
import inspect
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from jurygraph.agents.functions import REGISTERED, adapt, is_runnable
from jurygraph.agents.roles import Combiner, Deriver, Evaluator
from jurygraph.errors import ConfigError
from jurygraph.schema import DeriverUse, EvaluatorUse

OWN_EVALUATORS = {
    f"maths.{name.lower()}": f"jurygraph.agents.maths.evaluators:{name}"
    for name in ("Accuracy", "Calculation", "Format", "Steps", "Repetition", "Length")
}
OWN_COMBINERS = {
    "mean": "jurygraph.agents.combiners:Mean",
    "product": "jurygraph.agents.combiners:Product",
    "flat": "jurygraph.agents.combiners:Flat",
    "gear": "jurygraph.agents.combiners:Gear",
    "hard-local": "jurygraph.agents.combiners:HardLocal",
    "hard-transitive": "jurygraph.agents.combiners:HardTransitive",
    "stakeholders": "jurygraph.agents.combiners:Stakeholders",
}


def load_evaluator(use: EvaluatorUse) -> Evaluator:
    """The evaluator that the config names, set up with its params. ConfigError if there is none such."""
    found = REGISTERED.get(use.use) or _find("evaluator", use.use, OWN_EVALUATORS, REGISTERED)
    made = _made_evaluator(found, use)
    made.name = use.name or use.use.replace(":", ".")
    return made


def load_deriver(use: DeriverUse) -> Deriver:
    """The deriver that the config names. ConfigError if there is none such."""
    found = _find("deriver", use.use, {}, ())
    made = _instance("deriver", use.use, found, use.params)
    if not isinstance(made, Deriver) or not getattr(made, "gives", None):
        raise ConfigError(f"{use.use!r} is no deriver: subclass jurygraph.Deriver and say what it `gives`")
    made.name = use.name or use.use.replace(":", ".")
    return made


def load_combiner(name: str) -> Combiner:
    """The combiner of that name. ConfigError if there is none such."""
    made = _instance("combiner", name, _find("combiner", name, OWN_COMBINERS, ()), {})
    if not isinstance(made, Combiner):
        raise ConfigError(f"{name!r} is no combiner: subclass jurygraph.Combiner")
    return made


def _made_evaluator(found: Any, use: EvaluatorUse) -> Evaluator:
    if isinstance(found, Evaluator):
        made = copy.copy(found)
    elif inspect.isclass(found) and issubclass(found, Evaluator):
        return _instance("evaluator", use.use, found, use.params)  # type: ignore[no-any-return]
    elif is_runnable(found) or inspect.isroutine(found):
        made = adapt(found, use.use)
    else:
        raise ConfigError(
            f"{use.use!r} is no evaluator: write a function with @jurygraph.evaluator, subclass jurygraph.Evaluator, "
            f"or name a langchain-core Runnable; found {type(found).__name__}"
        )
    _give(made, use)
    return made


def _give(made: Evaluator, use: EvaluatorUse) -> None:
    given = getattr(made, "given", None)
    if given is not None:
        given(use.params)
    elif use.params:
        raise ConfigError(f"evaluator {use.use!r} is already set up and takes no params here")


def _instance(role: str, name: str, found: Any, params: Mapping[str, Any]) -> Any:
    if not inspect.isclass(found):
        return found
    try:
        inspect.signature(found).bind(**params)
    except TypeError as error:
        raise ConfigError(f"{role} {name!r} with params {sorted(params)}: {error}") from error
    return found(**params)


def _find(role: str, name: str, own: Mapping[str, str], registered: Iterable[str]) -> Any:
    if name in own:
        return _import(role, own[name])
    plugins = {point.name: point for point in entry_points(group=f"jurygraph.{role}s")}
    if name in plugins:
        return plugins[name].load()
    if "." in name or ":" in name:
        return _import(role, name)
    raise ConfigError(_unknown(role, name, [*own, *registered, *plugins]))


def _import(role: str, path: str) -> Any:
    """The object at `package.module:name` or `package.module.name`."""
    module_name, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    if not module_name or not attribute:
        raise ConfigError(_unknown(role, path, []))
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        missing = error.name and (module_name == error.name or module_name.startswith(f"{error.name}."))
        if not missing:
            raise ConfigError(f"{role} {path!r} cannot be imported: {error}") from error
        raise ConfigError(_unknown(role, path, [*OWN_EVALUATORS, *REGISTERED])) from error
    if not hasattr(module, attribute):
        hint = _hint(attribute, dir(module))
        raise ConfigError(f"{role} {path!r}: module {module_name!r} has no {attribute!r}{hint}")
    return getattr(module, attribute)


def _unknown(role: str, name: str, known: Iterable[str]) -> str:
    return f"unknown {role} {name!r}" + (_hint(name, known) or f"; name one as package.module.{role}")


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
