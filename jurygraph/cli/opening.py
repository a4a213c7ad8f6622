"""The jury of a config, opened for a command."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.cli.streams import also_redact

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.schema import CallsConfig, Config


def open_jury(
    path: Path,
    model: str | None = None,
    dry_run: bool = False,
    revised: Callable[["Config"], "Config"] | None = None,
    **limits: float | None,
) -> "Jury":
    """The jury of a config, `revised` where that is given; its folder becomes importable, so that it can name
    evaluators that lie beside it.
    """
    from jurygraph.errors import ConfigError
    from jurygraph.sources import line_of_key, read_config

    config = read_config(path, model)
    config = _domain_beside(config if revised is None else revised(config), path.parent)
    if not config.langsmith:
        send_nothing()
    from jurygraph.jury import Jury  # what it imports may read the environment

    sys.path.insert(0, str(path.resolve().parent))
    if dry_run:
        config = config.model_copy(update={"calls": _reading_alone(config.calls)})
    try:
        jury = Jury.from_config(config, **limits)
        also_redact(() if jury.gateway is None else jury.gateway.backend.secrets)
        return jury
    except ConfigError as error:
        key, _, wrong = str(error).partition(": ")
        line = None if key == "model" and model is not None else line_of_key(path, key)
        message = f"{path.name}: {error}" if line is None else f"{path.name}, line {line}, key {key}: {wrong}"
        raise ConfigError(message) from None


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
