"""Load the config of a jury from a YAML file or a mapping."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jurygraph.errors import ConfigError
from jurygraph.messages import Problem, describe_validation_error, describe_value
from jurygraph.schema import Config
from jurygraph.sources.presets import PresetUse, expand_preset, unknown_preset_hint, unused_field
from jurygraph.sources.ratings import read_confusions
from jurygraph.sources.yaml_document import Document, YamlFault

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
        return Problem((PRESET,), f"is {describe_value(use.name)}, which is no preset", hint)
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
        raise ConfigError(f"{path}: there is no such file; `jurygraph init DIR` makes one to start from") from None
    except PermissionError:
        raise ConfigError(f"{path}: may not be read; ask for permission to read it") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; name the config file in it") from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path.name}, line {line}: is not UTF-8; save the file as UTF-8") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); name a file that can be read") from None
