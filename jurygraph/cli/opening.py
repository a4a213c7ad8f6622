"""The jury of a config, opened for a command."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.cli.streams import also_redact

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.runs.run import Run
    from jurygraph.schema import CallsConfig, Config


def open_jury(
    path: Path,
    model: str | None = None,
    dry_run: bool = False,
    revised: Callable[["Config"], "Config"] | None = None,
    **limits: float | None,
) -> "Jury":
    """The jury of a config, `revised` where that is given. Modules that it names may lie beside it."""
    from jurygraph.errors import ConfigError
    from jurygraph.sources import line_of_key, read_config

    config = read_config(path, model)
    config = _domain_beside(config if revised is None else revised(config), path.parent)
    if not config.langsmith:
        send_nothing()
    from jurygraph.jury import Jury  # what it imports may read the environment

    if dry_run:
        config = config.model_copy(update={"calls": _reading_alone(config.calls)})
    try:
        jury = Jury.from_config(config, code_folder=path.resolve().parent, **limits)
        also_redact(() if jury.gateway is None else jury.gateway.backend.secrets)
        return jury
    except ConfigError as error:
        key, _, wrong = str(error).partition(": ")
        line = None if key == "model" and model is not None else line_of_key(path, key)
        message = f"{path.name}: {error}" if line is None else f"{path.name}, line {line}, key {key}: {wrong}"
        raise ConfigError(message) from None


def allow_code_of(run: "Run", revised: "Config | None" = None) -> None:
    """Let the modules be imported that a run's config names, from the folder in which they lay when it was scored.

    A `revised` config may name others; where the run recorded no folder, these are looked for in the current one.
    Raises `InputError` where that folder is gone, and `ConfigError` as `allow_modules_beside` does.
    """
    from importlib.util import find_spec

    from jurygraph.agents.user_modules import allow_modules_beside, code_named_by
    from jurygraph.errors import InputError

    folder = run.source.code_folder or run.code_folder
    configs = [run.source.config, run.config]
    if revised is not None:
        folder, configs = folder or Path(), [*configs, revised]
    if folder is None:
        return
    if folder.is_dir():
        allow_modules_beside(*configs, folder=folder)
        return
    for one in configs:
        for key, name in code_named_by(one):
            if find_spec(name) is None:
                gone = f"{key} names {name!r}, which lay in {folder} when the run was scored, and that is not there"
                raise InputError(f"{run.folder}: {gone}; put it back there, or move both together")


def _domain_beside(config: "Config", folder: Path) -> "Config":
    """The config with the path of a domain file that lies beside it, where there is none of that name here."""
    stated = config.annotation
    if stated is None or Path(stated.domain).exists() or not (folder / stated.domain).is_file():
        return config
    return config.model_copy(update={"annotation": stated.model_copy(update={"domain": str(folder / stated.domain)})})


def notes_of(jury: "Jury") -> list[str]:
    """What the run is for, if not to train on, and what evaluators have to say before they are asked, each once."""
    purpose = [] if jury.purpose is None else [f"purpose: {jury.purpose.told}"]
    return list(dict.fromkeys([*purpose, *(note for one in jury.evaluators.values() for note in one.notes)]))


def _reading_alone(calls: "CallsConfig") -> "CallsConfig":
    """Without a recording, and with the cache only where there is one already."""
    from jurygraph.models.cache import default_folder

    return calls.model_copy(update={"record": None, "cache": calls.cache and default_folder().is_dir()})


def send_nothing() -> None:
    """Keep what is judged on this machine, whatever the environment says: a command owns its process.

    A jury keeps to this by itself, but for threads that a user's code starts, which have no context of ours.
    """
    os.environ.update({"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"})


def found_config(tasks: str) -> Path:
    """The config that lies beside the tasks, or here."""
    from jurygraph.errors import ConfigError
    from jurygraph.sources.files import TextFile

    folders = [Path()] if tasks == "-" else [Path(tasks).parent, Path()]
    for folder in folders:
        if (folder / "jury.yaml").is_file():
            return folder / "jury.yaml"
    if tasks != "-":
        TextFile(tasks).close()  # where the tasks are not there either, that is what is to be said
    raise ConfigError("there is no jury.yaml beside the tasks, nor here; name a config with --config")
