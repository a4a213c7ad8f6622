"""Load the config of a jury from a YAML file or a mapping, and expand its preset.

Presets are MACRM with two, three and four agents, each without and with a global signal, and its two baselines. A
config with `preset: macrm-vanilla-3` is equal to one that spells out the preset's settings; its own settings are added
to these. The paper gives the weights of accuracy, format, steps and repetition (Table 3); the components of each agent,
and their weights, are our interpretation.

macrm-SIGNAL-AGENTS   SIGNAL: vanilla (none), rerank (a ranker), emb (similarity of embeddings)
                      AGENTS: 2 (Data Analyzer, Data Optimizer), 3 (and Quality Assessor), 4 (and Data Synthesizer)
macrm-single          one reward model: a single holistic judge
macrm-multi-head      several heads: the flat mean of the rule-based components
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ValidationError

from jurygraph.errors import ConfigError
from jurygraph.messages import Problem, describe_validation_error, describe_value, did_you_mean
from jurygraph.schema import Config
from jurygraph.schema.config import NamedModel
from jurygraph.schema.frozen_model import Id
from jurygraph.sources.ratings import read_confusions
from jurygraph.sources.yaml_document import Document, YamlFault

Signal = Literal["vanilla", "rerank", "emb"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)
AGENTS = (2, 3, 4)
SINGLE, MULTI_HEAD = "macrm-single", "macrm-multi-head"
PRESETS = (*(f"macrm-{signal}-{agents}" for signal in SIGNALS for agents in AGENTS), SINGLE, MULTI_HEAD)

EMBEDDER = "sentence-transformers:sentence-transformers/all-MiniLM-L6-v2"
RANKER = "sentence-transformers:cross-encoder/ms-marco-MiniLM-L6-v2"
"""Default models of the signals: the paper's encoder, and a small cross-encoder."""

_RULE_EVALUATORS = ("maths.accuracy", "maths.format", "maths.steps", "maths.repetition")
_TABLE_3 = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2}
_CONTRAST_EVALUATORS = ("maths.accuracy", "maths.calculation")
"""Evaluators whose questions are about contrasts too."""
_CONTRAST_KINDS = ("number", "answer")
"""Kinds of contrasts that these evaluators can detect: with other kinds, a response would do best to offer none."""
_MERGED_KEYS, _APPENDED_KEYS = ("reward", "components"), ("evaluators", "derivers")


class PresetUse(NamedModel):
    """A preset by its name, and who gives its global signal: an embedder for `emb`, a ranker for `rerank`.

    A bare name stands for `{name: …}`.
    """

    name: Id
    embedder: str | None = None
    ranker: str | None = None


def unknown_preset_hint(use: PresetUse) -> str | None:
    """Return a hint if there is no such preset; None if there is."""
    return None if use.name in PRESETS else did_you_mean(use.name, PRESETS) or f"there are {', '.join(PRESETS)}"


def unused_field(use: PresetUse) -> str | None:
    """Return the signal's field that is set but not used by this preset; None if there is none."""
    signals = {"embedder": "emb", "ranker": "rerank"}
    set_fields = (field for field in signals if getattr(use, field) is not None)
    return next((field for field in set_fields if f"-{signals[field]}-" not in use.name), None)


def expand_preset(use: PresetUse, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of a preset with the config's own `settings` added.

    `reward` and `components` are merged by name, `evaluators` and `derivers` are appended, except for those that
    replace one of the preset's, and any other setting replaces the preset's.
    """
    config = _preset_config(use, str(settings.get("model", "none")))
    for key, value in settings.items():
        if key in _MERGED_KEYS and isinstance(value, Mapping):
            value = {**config.get(key, {}), **value}
        elif key in _APPENDED_KEYS and isinstance(value, list | tuple):
            names = [_identity(entry) for entry in value]
            preset_entries = [entry for entry in config.get(key, []) if _identity(entry) not in names]
            value = [*value, *preset_entries]  # the config's own first: an error names its index there
        config[key] = value
    return config


def _identity(entry: Any) -> tuple[Any, Any]:
    """Return the name of a used evaluator and its variants; two entries are the same if both are equal."""
    use = entry if isinstance(entry, Mapping) else {"use": entry}
    return str(use.get("name", use.get("use"))), str(use.get("of"))


def _preset_config(use: PresetUse, model: str) -> dict[str, Any]:
    if use.name == SINGLE:
        return {"evaluators": ["protocols.direct"], "reward": {"direct": 1.0}}
    if use.name == MULTI_HEAD:
        share = 1.0 / len(_TABLE_3)
        return {
            "evaluators": list(_RULE_EVALUATORS),
            "reward": {name: share if weight > 0 else -share for name, weight in _TABLE_3.items()},
        }
    _, signal, agents = use.name.split("-")
    config = {"evaluators": list(_RULE_EVALUATORS), "derivers": [], "components": {}, "reward": dict(_TABLE_3)}
    _add_optimizer(config)
    if int(agents) >= 3:
        _add_assessor(config, model)
    if int(agents) >= 4:
        _add_synthesizer(config)
    if signal != "vanilla":
        _add_signal(config, use, signal)
    return config


def _add_optimizer(config: dict[str, Any]) -> None:
    """Add efficiency, and diversity inside a group, of right answers alone: wrong ones are the more diverse."""
    _add_where_right(config, "efficient", "optimizer.efficiency", 0.1)
    _add_where_right(config, "diverse", "optimizer.diversity", 0.1)


def _add_assessor(config: dict[str, Any], model: str) -> None:
    """Add the step reward of right answers alone, since steps can be padded; without a model, by arithmetic alone."""
    components = {"sound": "arithmetic"} if model == "none" else {"sound": "arithmetic", "reasoned": "reasoning"}
    for name, evaluator in components.items():
        _add_where_right(config, name, f"quality.{evaluator}", 0.5 / len(components))


def _add_where_right(config: dict[str, Any], name: str, evaluator: str, weight: float) -> None:
    """Add a component that counts an evaluator's score in proportion to the answer's accuracy, as R_cs does."""
    config["evaluators"] += [evaluator]
    inputs = {"accuracy": "maths.accuracy", evaluator.rpartition(".")[2]: evaluator}
    config["components"] |= {name: {"combiner": "product", "inputs": inputs}}
    config["reward"] |= {name: weight}


def _add_synthesizer(config: dict[str, Any]) -> None:
    """Add R_enhanced: the share of contrasts that score less than the response by accuracy and arithmetic."""
    config["derivers"] += [{"use": "synthesizer", "params": {"kinds": list(_CONTRAST_KINDS)}}]
    config["evaluators"] += ["maths.calculation", *({"use": name, "of": "contrasts"} for name in _CONTRAST_EVALUATORS)]
    by_name = {name.rpartition(".")[2]: name for name in _CONTRAST_EVALUATORS}
    inputs = by_name | {f"{short}-of-contrasts": f"{name}-of-contrasts" for short, name in by_name.items()}
    config["components"] |= {"enhanced": {"combiner": "contrast", "inputs": inputs}}
    config["reward"] |= {"enhanced": 0.25}


def _add_signal(config: dict[str, Any], use: PresetUse, signal: str) -> None:
    if signal == "emb":
        config["evaluators"] += [{"use": "similarity", "params": {"embedder": use.embedder or EMBEDDER}}]
        config["reward"] |= {"similarity": 0.5}
    else:
        config["evaluators"] += [{"use": "ranker", "params": {"ranker": use.ranker or RANKER}}]
        config["reward"] |= {"ranker": 0.5}


PRESET = "preset"
CONFUSIONS = "confusions"
_MAX_BYTES = 1 << 20
_FILE_PARAMS = ("history", "texts")
"""Params of evaluators that name files."""


def read_config(path: str | Path, model: str | None = None) -> Config:
    """Read the config in a YAML file. Raises `ConfigError` with file, line and key.

    `model` replaces the config's own before a preset is expanded, since a preset may contain less without a model.
    Files that its evaluators read (`history`, `texts`), relative to the config's folder, get absolute paths.
    """
    name = Path(path).name
    try:
        document = Document(_read_text(Path(path)))
    except YamlFault as fault:
        location = name if fault.line is None else f"{name}, line {fault.line}"
        raise _error(location, Problem(fault.path, str(fault))) from None
    if document.value is None:
        raise ConfigError(f"{name}: the file is empty; it needs `evaluators: [...]` at least")
    result = _validate(document.value, model)
    if isinstance(result, Config):
        return _with_confusions(_with_absolute_paths(result, Path(path).parent), Path(path).parent)
    raise _error(f"{name}, line {document.line_of(result.path)}", result)


def _with_absolute_paths(config: Config, folder: Path) -> Config:
    """Replace file names relative to the config's folder by absolute paths, so that they are found from any folder.

    A name without such a file stays unchanged.
    """
    uses = []
    for use in config.evaluators:
        absolute = {
            name: path for name in _FILE_PARAMS if (path := _absolute_path(folder, use.params.get(name))) is not None
        }
        uses.append(use.model_copy(update={"params": {**use.params, **absolute}}) if absolute else use)
    return config.model_copy(update={"evaluators": tuple(uses)})


def _with_confusions(config: Config, folder: Path) -> Config:
    """Replace the file that a `consensus` names as `confusions` by its content, so that a run's config is complete.

    Raises `InputError` if a file cannot be read.
    """
    components = dict(config.components)
    for name, component in components.items():
        file = component.params.get(CONFUSIONS)
        if component.combiner == "consensus" and isinstance(file, str):
            content = {CONFUSIONS: read_confusions(folder / file).model_dump(mode="json")}
            components[name] = component.model_copy(update={"params": {**component.params, **content}})
    return config.model_copy(update={"components": components})


def _absolute_path(folder: Path, name: Any) -> str | None:
    """Return the absolute path of a file by its name relative to a folder; None if there is none."""
    try:
        path = (folder / name).resolve(strict=True)
    except (OSError, RuntimeError, TypeError, ValueError):  # missing, a cycle of links, no text, not a valid path
        return None
    return str(path) if path.is_file() else None


def parse_config(mapping: Mapping[str, Any]) -> Config:
    """Validate the config in a mapping. Raises `ConfigError` with the key."""
    result = _validate(mapping)
    if isinstance(result, Config):
        return _with_confusions(result, Path())
    raise _error("config", result)


def line_of_key(path: str | Path, key: str) -> int | None:
    """Return the line of a key such as `reward.tone` or `gates[0].kind` in a config file, or of its nearest parent.

    None if the file has neither. Raises `ConfigError` if it cannot be read.
    """
    try:
        return Document(_read_text(Path(path))).line_of_key(key)
    except YamlFault:
        return None


def _validate(value: Any, model: str | None = None) -> Config | Problem:
    """Return the config, or the error in it."""
    if not isinstance(value, Mapping):
        return Problem((), f"is {describe_value(value)}", "write lines such as `evaluators: [maths.accuracy]`")
    version = value.get("version", 1)
    if version != 1 or isinstance(version, bool):
        return Problem(("version",), f"is {describe_value(version)}", "this jurygraph reads configs of version 1")
    expanded_config = _with_preset(value if model is None else {**value, "model": model})
    if isinstance(expanded_config, Problem):
        return expanded_config
    try:
        return Config.model_validate(expanded_config)
    except ValidationError as error:
        return describe_validation_error(error, Config, expanded_config)


def _with_preset(value: Mapping[str, Any]) -> dict[str, Any] | Problem:
    """Expand the preset of a config, if it names one."""
    settings = {key: setting for key, setting in value.items() if key != PRESET}
    if PRESET not in value:
        return settings
    try:
        use = PresetUse.model_validate(value[PRESET])
    except ValidationError as error:
        problem = describe_validation_error(error, PresetUse, value[PRESET])
        return Problem((PRESET, *problem.path), problem.problem, problem.remedy)
    hint = unknown_preset_hint(use)
    if hint is not None:
        return Problem((PRESET,), f"is {describe_value(use.name)}, which is not a preset", hint)
    field = unused_field(use)
    if field is not None:
        return Problem((PRESET, field), f"is of no use to {use.name}", "leave it out, or name a preset of that signal")
    return expand_preset(use, settings)


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file, which may name a preset; `evaluators` may then be left out."""
    schema, preset = Config.model_json_schema(), PresetUse.model_json_schema()
    properties = {PRESET: preset, **schema["properties"]}
    required = [{"required": [PRESET]}, {"required": schema["required"]}]
    return {**{k: v for k, v in schema.items() if k != "required"}, "properties": properties, "anyOf": required}


def _error(location: str, problem: Problem) -> ConfigError:
    return ConfigError(f"{location}, key {problem.field}: {problem}" if problem.path else f"{location}: {problem}")


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ConfigError(f"{path}: is larger than 1 MB, which no config is; name the config file")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; `jurygraph init DIR` creates one") from None
    except PermissionError:
        raise ConfigError(f"{path}: may not be read; ask for permission to read it") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; name the config file in it") from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path.name}, line {line}: is not UTF-8; save the file as UTF-8") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); name a file that can be read") from None
