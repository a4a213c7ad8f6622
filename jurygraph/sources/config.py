"""Load the config of a jury from a YAML file or a mapping, and expand its preset.

Presets are MACRM with two, three and four agents, each without and with a global signal, and its two baselines. A
config with `preset: macrm-vanilla-3` is equal to one that spells out the preset's settings; its own settings are added
to these. The paper gives the weights of accuracy, format, steps and repetition (Table 3); the components of each agent,
and their weights, are our interpretation.

macrm-SIGNAL-AGENTS   SIGNAL: vanilla (none), rerank (a ranker), emb (similarity of embeddings)
                      AGENTS: 2 (Data Analyzer, Data Optimizer), 3 (and Quality Assessor), 4 (and Data Synthesizer)
macrm-single          one reward model: a single holistic judge
macrm-multi-head      several heads: the flat mean of the rule-based components"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import (
    DECIMAL_COMMA_PATTERN,
    Problem,
    describe_decimal_comma,
    describe_value,
    format_field_path,
    shorten,
    suggest_known_name,
    validate,
)
from jurygraph.messages import FieldPath as FieldPath
from jurygraph.schema import Config
from jurygraph.schema.config import ModelWithShorthand
from jurygraph.schema.frozen_model import Id, JsonFields, JsonMapping, StrictBool, StrPath
from jurygraph.sources.artifacts import read_calibrations, read_confusions
from jurygraph.sources.files import TextFile
from jurygraph.sources.task_tables import locate_table_files

_YAML_TAG_PREFIX = "tag:yaml.org,2002:"
_MAX_YAML_VALUES = 100_000
_YAML_SYNTAX_HINT = (
    "indent lines alike, close quotes and brackets, and quote texts that hold : # * or @"
)


class YamlError(Exception):
    """An error in a document, with its line."""

    def __init__(self, line: int | None, message: str, path: FieldPath = ()) -> None:
        self.line = line
        self.path = path
        super().__init__(message)


class _YamlConstructor(SafeConstructor):
    """Builds values that JSON has: dates stay text, and other types are refused as tags that nobody knows."""


_YamlConstructor.add_constructor(
    f"{_YAML_TAG_PREFIX}timestamp", _YamlConstructor.construct_yaml_str
)
for _type_name in ("binary", "set", "omap", "pairs"):
    _YamlConstructor.add_constructor(
        f"{_YAML_TAG_PREFIX}{_type_name}", _YamlConstructor.construct_undefined
    )


class Document:
    """The value of a YAML text. `line_number_of` returns the line in which a part of it was written."""

    def __init__(self, text: str) -> None:
        self.value: Any = None
        self._lines: dict[FieldPath, int] = {}
        yaml = YAML(typ="safe", pure=True)
        yaml.Constructor = _YamlConstructor
        yaml.composer.warn_double_anchors = False  # YAML 1.2 allows to reuse an anchor's name
        try:
            root = yaml.compose(text)
            if root is not None:
                self._record_line_numbers(root, ())
                self.value = yaml.constructor.construct_document(root)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = None if mark is None else mark.line + 1
            raise YamlError(line, f"is not valid YAML: {_explain_yaml_error(error)}") from None
        except ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise YamlError(
                line,
                f"holds the control character #x{error.character:02x}, which YAML does not; "
                "take it out, or save the file as UTF-8",
            ) from None
        # A LookupError: a text that is not of the type that its tag names, such as `!!bool perhaps`.
        except (YAMLError, ValueError, LookupError) as error:
            problem = shorten(str(error).splitlines()[0], 200)
            raise YamlError(None, f"is not valid YAML: {problem}; {_YAML_SYNTAX_HINT}") from None
        except RecursionError:
            raise YamlError(None, "is nested too deeply; a config has a few levels") from None

    def line_number_of(self, path: FieldPath) -> int:
        """Return the line of the deepest part of the path that exists."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def line_number_of_key(self, key: str) -> int | None:
        """Return the line of a key written as `gates[0].kind`, or of its nearest parent; None if there is neither."""
        lines = {format_field_path(path): line for path, line in self._lines.items() if path}
        while key and key not in lines:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return lines.get(key)

    def _record_line_numbers(self, node: Node, path: FieldPath) -> None:
        """Note the line of every part of a node, and refuse keys that a JSON object could not have."""
        # Where it has a key, that says where it is: a value may begin a line below.
        self._lines.setdefault(path, _line_number(node))
        # An alias counts wherever it stands: a few lines of them can stand for more values than memory holds.
        if len(self._lines) > _MAX_YAML_VALUES:
            raise YamlError(
                _line_number(node), "its aliases expand without end; write the values out"
            )
        if isinstance(node, SequenceNode):
            for index, item in enumerate(node.value):
                self._record_line_numbers(item, (*path, index))
        elif isinstance(node, MappingNode):
            value_before = None
            for key, item in node.value:
                inner = (*path, self._read_mapping_key(key, path, value_before))
                self._lines[inner] = _line_number(key)
                self._record_line_numbers(item, inner)
                value_before = item.value

    def _read_mapping_key(self, key: Node, path: FieldPath, value_before: Any) -> str:
        line = _line_number(key)
        is_scalar = isinstance(key, ScalarNode)
        if not is_scalar or key.tag != f"{_YAML_TAG_PREFIX}str":
            text = shorten(str(key.value)) if is_scalar else "a list or mapping"
            number = f"{value_before},{text}"
            if DECIMAL_COMMA_PATTERN.fullmatch(number):  # {weight: 2,5} has a key 5
                raise YamlError(line, str(describe_decimal_comma((), number)), [*self._lines][-1])
            raise YamlError(line, f"{text} is not text, as a key must be; put it in quotes", path)
        name = str(key.value)
        inner = (*path, name)
        if inner in self._lines:
            raise YamlError(
                line, f"is already in line {self._lines[inner]}; keep one of them", inner
            )
        return name


def _line_number(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _explain_yaml_error(error: MarkedYAMLError) -> str:
    problem = shorten(str(error.problem or error.context or "it cannot be read"), 120)
    if "\\t" in problem:
        return "a tab is used where spaces belong; indent with spaces"
    if "for the tag" in problem:
        return f"{problem.replace(_YAML_TAG_PREFIX, '!!')}; write a plain value"
    if "another document" in problem:
        return "a second document begins; a config is one, so take out the `---`"
    return f"{problem}; {_YAML_SYNTAX_HINT}"


GLOBAL_PRESET_SIGNALS = ("vanilla", "rerank", "emb")
PRESET_AGENT_COUNTS = (2, 3, 4)
PRESETS = (
    *(
        f"macrm-{signal}-{agents}"
        for signal, agents in product(GLOBAL_PRESET_SIGNALS, PRESET_AGENT_COUNTS)
    ),
    "macrm-single",
    "macrm-multi-head",
)

PRESET_KEY = "preset"
_SIGNAL_BY_MODEL_FIELD = {"embedder": "emb", "ranker": "rerank"}
"""The signal that each field of a `PresetUse` gives a model to."""
_CONFUSIONS_KEY = "confusions"
_CALIBRATION_KEY = "calibration"
_MAX_CONFIG_BYTES = 1 << 20
_FILE_PATH_PARAMS = ("history", "texts")
"""Params of evaluators that name files."""


class PresetUse(ModelWithShorthand):
    """A preset by its name, and who gives its global signal: an embedder for `emb`, a ranker for `rerank`.

    `fusion` adds F of MACRM's Eq. 4, three gates, to a preset of several agents; without it F is the identity.
    A bare name stands for `{name: …}`.
    """

    name: Id
    embedder: str | None = None
    ranker: str | None = None
    fusion: StrictBool = False


def expand_preset(use: PresetUse, settings: JsonMapping) -> JsonFields:
    """Return the config of a preset with the config's own `settings` added.

    `reward` and `components` are merged by name, `evaluators` and `derivers` are appended, except for those that
    replace one of the preset's, and any other setting replaces the preset's.
    """
    config = _preset_config(use, str(settings.get("model", "none")))
    for key, value in settings.items():
        if key in ("reward", "components") and isinstance(value, Mapping):
            value = {**config.get(key, {}), **value}
        elif key in ("evaluators", "derivers") and isinstance(value, list | tuple):
            names = [_evaluator_identity(entry) for entry in value]
            entries = list(value)  # the config's own first: an error names its index there
            for entry in config.get(key, []):
                if _evaluator_identity(entry) not in names:
                    entries.append(entry)
            value = entries
        config[key] = value
    return config


def _evaluator_identity(entry: Any) -> tuple[Any, Any]:
    """Return the name of a used evaluator and its variants; two entries are the same if both are equal."""
    use = entry if isinstance(entry, Mapping) else {"use": entry}
    name = use.get("name", use.get("use"))
    return str(name), str(use.get("material"))


def _preset_config(use: PresetUse, model: str) -> JsonFields:
    parts = _load_preset_parts()
    if use.name in parts:
        return dict(parts[use.name])
    _, signal, agents = use.name.split("-")
    assessor_part_name = "assessor-without-model" if model == "none" else "assessor"
    names = ["rules", "optimizer", assessor_part_name, "synthesizer"][: int(agents)]
    if signal in parts:
        names.append(signal)
    config: JsonFields = {"evaluators": [], "derivers": [], "components": {}, "reward": {}}
    for name in names:
        for key, value in parts[name].items():
            if isinstance(value, dict):
                config[key].update(value)
            else:
                config[key].extend(value)
    evaluators = config["evaluators"]
    for field in _SIGNAL_BY_MODEL_FIELD:
        signal_model_name = getattr(use, field)
        if signal_model_name is not None:  # a new entry: that of the preset is cached
            evaluators[-1] = {**evaluators[-1], "params": {field: signal_model_name}}
    if use.fusion:
        config["gates"] = [
            _with_auxiliary_signal(gate, signal, parts) for gate in parts["fusion"]["gates"]
        ]
    return config


def _with_auxiliary_signal(
    gate: JsonMapping, signal: str, parts: Mapping[str, JsonMapping]
) -> JsonFields:
    """Return a gate in which the global signal counts as auxiliary, too."""
    if "auxiliary" not in gate or signal not in parts:
        return dict(gate)
    return {**gate, "auxiliary": [*gate["auxiliary"], *parts[signal]["reward"]]}


@cache
def _load_preset_parts() -> dict[str, JsonFields]:
    file = files("jurygraph.sources").joinpath("presets.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def read_config(path: StrPath, model: Any = None, settings: Sequence[str] = ()) -> Config:
    """Read the config in a YAML file. Raises `ConfigError` with file, line and key.

    `model`, a name or an object, replaces the config's own before a preset is expanded, since a preset may contain less
    without a model; `settings` change the expanded one, as `apply_settings` does. Files that its evaluators read
    (`history`, `texts`), relative to the config's folder, get absolute paths.
    """
    name = Path(path).name
    folder = Path(path).parent
    if name.lower().endswith((".jsonl", ".csv", ".parquet", ".gz")):
        raise ConfigError(
            f"{name}: is no config but a file of rows; name the YAML file of the jury"
        )
    try:
        document = Document(_read_config_text(Path(path)))
    except YamlError as fault:
        location = name if fault.line is None else f"{name}, line {fault.line}"
        raise _config_error(location, Problem(fault.path, str(fault))) from None
    if document.value is None:
        raise ConfigError(f"{name}: the file is empty; it needs `evaluators: [...]` at least")
    result = _with_named_model(_validate_config(document.value, model, folder))
    if isinstance(result, Config):
        if settings:
            result = apply_settings(result, settings, folder)
        return _load_confusions(_with_absolute_paths(result, folder), folder)
    raise _config_error(f"{name}, line {document.line_number_of(result.path)}", result)


def _with_absolute_paths(config: Config, folder: Path) -> Config:
    """Replace file names relative to the config's folder by absolute paths, so that they are found from any folder.

    A name without such a file stays unchanged.
    """
    uses = []
    for use in config.evaluators:
        params = dict(use.params)
        for name in _FILE_PATH_PARAMS:
            if name in params:
                params[name] = _absolute_path(folder, params[name])
        uses.append(use.model_copy(update={"params": params}))
    update: JsonFields = {"evaluators": tuple(uses)}
    if config.workspaces is not None:
        update["workspaces"] = str((folder / config.workspaces).resolve())
    if config.annotation is not None:
        domain = _absolute_path(folder, config.annotation.domain)
        update["annotation"] = config.annotation.model_copy(update={"domain": domain})
    facts = locate_table_files(config.task_defaults.facts, folder)
    if facts is not None:
        update["task_defaults"] = config.task_defaults.model_copy(update={"facts": facts})
    return config.model_copy(update=update)


def _load_confusions(config: Config, folder: Path) -> Config:
    """Replace the file that a `consensus` names as `confusions` by its content, so that a run's config is complete.

    Raises `InputError` if a file cannot be read.
    """
    components = dict(config.components)
    for name, component in components.items():
        file = component.params.get(_CONFUSIONS_KEY)
        if component.combiner == "consensus" and isinstance(file, str):
            confusions = read_confusions(folder / file)
            params = {**component.params, _CONFUSIONS_KEY: confusions.model_dump(mode="json")}
            components[name] = component.model_copy(update={"params": params})
    return config.model_copy(update={"components": components})


def _absolute_path(folder: Path, name: Any) -> Any:
    try:
        path = (folder / name).resolve(strict=True)
    # Missing, a cycle of links, no text, not a valid path.
    except (OSError, RuntimeError, TypeError, ValueError):
        return name
    return str(path) if path.is_file() else name


def parse_config_mapping(mapping: JsonMapping, folder: Path = Path()) -> Config:
    """Validate the config in a mapping, with files relative to a folder. Raises `ConfigError` with the key."""
    result = _validate_config(mapping, None, folder)
    if isinstance(result, Config):
        return _load_confusions(result, folder)
    raise _config_error("config", result)


def apply_settings(config: Config, settings: Iterable[str], folder: Path = Path()) -> Config:
    """Return the config with changed settings, each `key=value`: a dotted key such as rubric.kappa, and a YAML value.

    Names of files are relative to the `folder`. Raises `ConfigError` with the name of a faulty setting.
    """
    content = config.model_dump(mode="json")
    for setting in settings:
        key, equals_sign, text = setting.partition("=")
        if not equals_sign or not key:
            raise ConfigError(f"--set {setting!r}: expected key=value, such as rubric.kappa=2")
        content = _with_config_value(content, key, key.split("."), _parse_yaml_value(key, text))
    return parse_config_mapping(content, folder)


def _with_config_value(content: Any, key: str, steps: Sequence[str], value: Any) -> Any:
    """Return a part of a config, with a value that lies some steps below; `key` is that of the whole config."""
    if not steps:
        return value
    owner = key.removesuffix("." + ".".join(steps)).rpartition(".")[2]
    if isinstance(content, list) and not steps[0].isdecimal():
        hint = (
            f"; the weight of a criterion is criteria.{steps[0]}.weight"
            if owner == "criteria"
            else ""
        )
        raise ConfigError(
            f"--set {key}: {owner!r} is a list, whose entries are counted from 0{hint}"
        )
    if isinstance(content, list):  # of evaluators, which are counted from 0
        if int(steps[0]) > len(content):
            problem = f"the next entry of {owner!r} is {len(content)}, counted from 0"
            raise ConfigError(f"--set {key}: {problem}")
        entries = {str(index): entry for index, entry in enumerate(content)}
        return list(_with_config_value(entries, key, steps, value).values())
    step, *rest = steps
    if not step:
        raise ConfigError(f"--set {key}: expected a key such as rubric.kappa")
    if not isinstance(content, dict):
        hint = "set it as a whole"
        if ".criteria." in key:
            hint = f"the weight of a criterion is criteria.{owner}.weight"
        raise ConfigError(f"--set {key}: {owner!r} has no settings of its own; {hint}")
    return {**content, step: _with_config_value(content.get(step, {}), key, rest, value)}


def _parse_yaml_value(key: str, text: str) -> Any:
    try:
        return Document(text).value
    except YamlError:
        raise ConfigError(
            f"--set {key}={text}: expected a YAML value, such as a number, a word, or {{a: 1}}"
        ) from None


@contextmanager
def locate_config_errors(
    path: Path,
    model: Any = None,
    model_option_name: str = "--model",
    settings: Sequence[str] = (),
) -> Iterator[None]:
    """Add the config's file name, and the line of the key that a message begins with, to a ConfigError raised inside.

    With a `model` given instead of the config's, an error about the key `model` names the argument that gave it; so
    does one about a key that one of the `settings` gave.
    """
    try:
        yield
    except ConfigError as error:
        key, _, reason = str(error).partition(": ")
        if key == "model" and model is not None:
            raise ConfigError(f"{model_option_name}: {reason}") from None
        dotted_key = f"{key}.".replace("[", ".").replace("]", "")
        for setting in settings:
            changed_key = setting.partition("=")[0]
            if dotted_key.startswith(f"{changed_key}."):
                raise ConfigError(f"--set {changed_key}: {reason}") from None
        line = line_number_of_key(path, key)
        if line is None:
            raise ConfigError(f"{path.name}: {error}") from None
        raise ConfigError(f"{path.name}, line {line}, key {key}: {reason}") from None


def line_number_of_key(path: StrPath, key: str) -> int | None:
    """Return the line of a key such as `reward.tone` or `gates[0].kind` in a config file, or of its nearest parent.

    None if the file has neither. Raises `ConfigError` if it cannot be read.
    """
    try:
        return Document(_read_config_text(Path(path))).line_number_of_key(key)
    except YamlError:
        return None


def _validate_config(value: Any, model: Any, folder: Path) -> Config | Problem:
    if not isinstance(value, Mapping):
        return Problem(
            (), f"is {describe_value(value)}", "write lines such as `evaluators: [maths.accuracy]`"
        )
    version = value.get("version", 1)
    if version != 1 or isinstance(version, bool):
        return Problem(
            ("version",),
            f"is {describe_value(version)}",
            "this jurygraph reads configs of version 1",
        )
    expanded_config = _with_expanded_preset(value if model is None else {**value, "model": model})
    if isinstance(expanded_config, Problem):
        return expanded_config
    if isinstance(file := expanded_config.get(_CALIBRATION_KEY), str):
        expanded_config[_CALIBRATION_KEY] = read_calibrations(folder / file)
    return validate(Config, expanded_config)


def _with_named_model(config: Config | Problem) -> Config | Problem:
    """Return the config with the model of an entry of `models`, where its `model` is the name of that entry."""
    if isinstance(config, Problem) or config.model == "none" or config.model not in config.models:
        return config
    use = config.models[config.model]
    if use.calls.model_fields_set:
        problem = f"is models.{config.model}, whose `calls` are not those of all models"
        return Problem(("model",), problem, f"write {use.model}, and what it needs in `calls`")
    return config.model_copy(update={"model": use.model})


def _with_expanded_preset(value: JsonMapping) -> JsonFields | Problem:
    settings = {key: setting for key, setting in value.items() if key != PRESET_KEY}
    if PRESET_KEY not in value:
        return settings
    use = validate(PresetUse, value[PRESET_KEY])
    if isinstance(use, Problem):
        return replace(use, path=(PRESET_KEY, *use.path))
    if use.name not in PRESETS:
        problem = f"is {describe_value(use.name)}, which is not a preset"
        return Problem((PRESET_KEY,), problem, suggest_known_name(use.name, PRESETS))
    for field, signal in _SIGNAL_BY_MODEL_FIELD.items():
        if getattr(use, field) is not None and f"-{signal}-" not in use.name:
            return Problem(
                (PRESET_KEY, field),
                f"is of no use to {use.name}",
                "leave it out, or name a preset of that signal",
            )
    if use.fusion and use.name in _load_preset_parts():
        return Problem(
            (PRESET_KEY, "fusion"),
            f"is of no use to {use.name}",
            "leave it out, or name a preset of several agents",
        )
    return expand_preset(use, settings)


def config_file_schema() -> JsonFields:
    """Return the JSON Schema of a config file, which may name a preset; `evaluators` may then be left out."""
    schema = Config.model_json_schema()
    preset = PresetUse.model_json_schema()
    properties = schema["properties"]
    calibration = {"anyOf": [{"type": "string"}, properties[_CALIBRATION_KEY]]}
    schema["properties"] = {PRESET_KEY: preset, **properties, _CALIBRATION_KEY: calibration}
    required_keys = schema.pop("required")
    schema["anyOf"] = [{"required": [PRESET_KEY]}, {"required": required_keys}]
    return schema


def _config_error(location: str, problem: Problem) -> ConfigError:
    if problem.path:
        location = f"{location}, key {problem.field}"
    return ConfigError(f"{location}: {problem}")


def _read_config_text(path: Path) -> str:
    try:
        with TextFile(path) as file:
            return file.read_whole(_MAX_CONFIG_BYTES, "name the config file")
    except InputError as error:
        raise ConfigError(str(error)) from None
