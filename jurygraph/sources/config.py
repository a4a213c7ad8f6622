"""The config of a jury, from a YAML file or a mapping."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from jurygraph.errors import ConfigError
from jurygraph.schema import Config
from jurygraph.sources.complaint import Complaint, complaint, described
from jurygraph.sources.confusions import read_confusions
from jurygraph.sources.presets import PresetUse, expanded, unknown, unused
from jurygraph.sources.yaml_document import Document, YamlFault

PRESET = "preset"
CONFUSIONS = "confusions"
_LARGEST = 1 << 20
_FILES = ("history", "texts")
"""Params of evaluators that name files."""


def read_config(path: str | Path, model: str | None = None) -> Config:
    """The config in a YAML file. Raises `ConfigError` with file, line and key.

    A `model` takes the place of the config's own, before a preset is written out, which may ask less without one. Files
    beside the config that its evaluators read (`history`, `texts`) are then named by their whole paths.
    """
    name = Path(path).name
    try:
        document = Document(_text(Path(path)))
    except YamlFault as fault:
        where = name if fault.line is None else f"{name}, line {fault.line}"
        raise _error(where, Complaint(fault.path, str(fault))) from None
    if document.value is None:
        raise ConfigError(f"{name}: the file is empty; it needs `evaluators: [...]` at least")
    wrong = _wrong(document.value, model)
    if isinstance(wrong, Config):
        return _with_confusions(_with_files_beside(wrong, Path(path).parent), Path(path).parent)
    raise _error(f"{name}, line {document.line_of(wrong.path)}", wrong)


def _with_files_beside(config: Config, folder: Path) -> Config:
    """With whole paths of the files beside the config that params name, so that they are found from any folder; what
    is not there stays as it is written."""
    uses = []
    for use in config.evaluators:
        found = {name: path for name in _FILES if (path := _beside(folder, use.params.get(name))) is not None}
        uses.append(use.model_copy(update={"params": {**use.params, **found}}) if found else use)
    return config.model_copy(update={"evaluators": tuple(uses)})


def _with_confusions(config: Config, folder: Path) -> Config:
    """With what stands in the files that a `consensus` names as its `confusions`, so that a run's config says it all.

    Raises `InputError` where a file cannot be read.
    """
    components = dict(config.components)
    for name, one in components.items():
        file = one.params.get(CONFUSIONS)
        if one.combiner == "consensus" and isinstance(file, str):
            known = {CONFUSIONS: read_confusions(folder / file).model_dump(mode="json")}
            components[name] = one.model_copy(update={"params": {**one.params, **known}})
    return config.model_copy(update={"components": components})


def _beside(folder: Path, name: Any) -> str | None:
    """The whole path of a file by its name as seen from a folder; None where there is none."""
    try:
        path = (folder / name).resolve(strict=True)
    except (OSError, RuntimeError, TypeError, ValueError):  # not there, a circle of links, no text, no path
        return None
    return str(path) if path.is_file() else None


def parse_config(mapping: Mapping[str, Any]) -> Config:
    """The config in a mapping. Raises `ConfigError` with the key."""
    wrong = _wrong(mapping)
    if isinstance(wrong, Config):
        return _with_confusions(wrong, Path())
    raise _error("config", wrong)


def line_of_key(path: str | Path, key: str) -> int | None:
    """The line of a key such as `reward.tone` or `gates[0].kind` in a config file, or of what holds it.

    None where the file has neither. Raises `ConfigError` where it cannot be read.
    """
    try:
        return Document(_text(Path(path))).line_of_key(key)
    except YamlFault:
        return None


def _wrong(value: Any, model: str | None = None) -> Config | Complaint:
    """The config, or what is wrong with it."""
    if not isinstance(value, Mapping):
        return Complaint((), f"is {described(value)}", "write lines such as `evaluators: [maths.accuracy]`")
    version = value.get("version", 1)
    if version != 1 or isinstance(version, bool):
        return Complaint(("version",), f"is {described(version)}", "this jurygraph reads configs of version 1")
    whole = _with_preset(value if model is None else {**value, "model": model})
    if isinstance(whole, Complaint):
        return whole
    try:
        return Config.model_validate(whole)
    except ValidationError as error:
        return complaint(error, Config, whole)


def _with_preset(value: Mapping[str, Any]) -> dict[str, Any] | Complaint:
    """What a config states together with its preset, if it names one."""
    stated = {key: one for key, one in value.items() if key != PRESET}
    if PRESET not in value:
        return stated
    try:
        use = PresetUse.model_validate(value[PRESET])
    except ValidationError as error:
        wrong = complaint(error, PresetUse, value[PRESET])
        return Complaint((PRESET, *wrong.path), wrong.problem, wrong.remedy)
    hint = unknown(use)
    if hint is not None:
        return Complaint((PRESET,), f"is {described(use.name)}, which is no preset", hint)
    field = unused(use)
    if field is not None:
        return Complaint(
            (PRESET, field), f"is of no use to {use.name}", "leave it out, or name a preset of that signal"
        )
    return expanded(use, stated)


def config_schema() -> dict[str, Any]:
    """The JSON Schema of a config as it is written, which may name a preset; `evaluators` may then be left out."""
    schema, preset = Config.model_json_schema(), PresetUse.model_json_schema()
    properties = {PRESET: preset, **schema["properties"]}
    required = [{"required": [PRESET]}, {"required": schema["required"]}]
    return {**{k: v for k, v in schema.items() if k != "required"}, "properties": properties, "anyOf": required}


def _error(where: str, wrong: Complaint) -> ConfigError:
    return ConfigError(f"{where}, key {wrong.field}: {wrong}" if wrong.path else f"{where}: {wrong}")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
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
