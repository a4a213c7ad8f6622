"""Open the jury of a config for a command."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.cli.streams import add_secrets_to_redact
from jurygraph.errors import ConfigError

if TYPE_CHECKING:
    from jurygraph.jury import Jury
    from jurygraph.schema import Config
    from jurygraph.sources import Shard


@contextmanager
def open_jury(
    path: Path,
    model: str | None = None,
    dry_run: bool = False,
    revise: Callable[["Config"], "Config"] | None = None,
    *,
    settings: Sequence[str] = (),
    max_cost: float | None = None,
    max_calls: int | None = None,
    shard: "Shard | None" = None,
) -> "Iterator[Jury]":
    """Open the jury of a config, after `settings` and `revise` have changed it. Modules may lie in its folder.

    With a `shard`, it keeps to that share of the limits on cost and calls, and of the rates in the config.

    A dry run records nothing, and uses the cache only if it exists already. A ConfigError, also one that is raised
    inside the block, names the file, the line and the key.
    """
    from jurygraph.sources import locate_config_errors, read_config

    config = read_config(path, model, settings)
    if revise is not None:
        config = revise(config)
    if not config.langsmith:
        disable_langsmith_tracing()
    # Imported after tracing is disabled: its imports may read the environment.
    from jurygraph.jury import Jury

    if dry_run:
        from jurygraph.models.cache import default_cache_folder

        is_cache_usable = config.calls.cache and default_cache_folder().is_dir()
        calls = config.calls.model_copy(update={"record": None, "cache": is_cache_usable})
        config = config.model_copy(update={"calls": calls})
    folder = path.resolve().parent
    if shard is not None:
        max_cost = shard.budget_share(max_cost)
        max_calls = shard.call_limit_share(max_calls)
    with (
        locate_config_errors(path, model, settings=settings),
        Jury(config, max_cost=max_cost, max_calls=max_calls, code_folder=folder) as jury,
    ):
        add_secrets_to_redact(jury.gateways.secrets)
        if shard is not None:
            jury.gateways.divide_rate_limits(shard.of)
        yield jury


_FILE_TOOL_NAMES = ("list_files", "read_file", "grep")


def collect_jury_notes(jury: "Jury", is_check: bool = False) -> list[str]:
    """Return the run's purpose, unless it is training, the notes of evaluators, and those on models, once.

    A check of the config, such as a dry run, is told of models that no evaluator asks, too.
    """
    notes = []
    if jury.purpose is not None:
        notes.append(f"purpose: {jury.purpose.description}")
    for evaluator in jury.evaluators.values():
        notes += evaluator.notes
    model_evaluators = [name for name, evaluator in jury.evaluators.items() if evaluator.uses_model]
    if model_evaluators and not jury.gateways:
        notes.append(
            f"model: none, so {', '.join(model_evaluators)} cannot answer; "
            "name a model in the config or with --model"
        )
    for gateway in jury.gateways.values():
        notes += gateway.backend.notes
    if is_check:
        notes += _describe_doubtful_settings(jury)
    with_judges = {use.known_as for use in jury.config.evaluators if use.all_judges}
    if None in jury.gateways and model_evaluators and with_judges.issuperset(model_evaluators):
        notes.append(
            f"model: no evaluator asks {jury.config.model} here, since each names its judges; "
            "change `models`, or leave out `judges`"
        )
    return list(dict.fromkeys(notes))


def disable_langsmith_tracing() -> None:
    """Disable LangSmith tracing for this process, whatever the environment says: a command owns its process.

    A jury disables it for its own calls; threads started by user code do not have its context.
    """
    os.environ.update({"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"})


def find_config(tasks: str) -> Path:
    """Return the config in the folder of the tasks, else in the current folder. Raises ConfigError if there is none."""
    from jurygraph.sources.files import TextFile

    folders = [Path()] if tasks == "-" else [Path(tasks).parent, Path()]
    for folder in folders:
        config = folder / "jury.yaml"
        if config.is_file():
            return config
    if tasks != "-" and not os.path.exists(tasks):
        TextFile(tasks).close()  # if the tasks are missing too, that is the error to report
    raise ConfigError(
        "no jury.yaml next to the tasks or in the current folder; name a config with --config, or make one with "
        "`jurygraph init`"
    )


def describe_rare_majority(evaluator: str) -> str:
    return (
        f"{evaluator}: samples on a scale of many steps often have no majority, and then give no score; "
        "`panel: {reduce: mean}` always decides, and counts a missing sample as the worst score"
    )


def _describe_doubtful_settings(jury: "Jury") -> Iterator[str]:
    config = jury.config
    for name, use in config.models.items():
        if name not in config.judges and use.model != config.model:
            yield f"models.{name}: is a judge of no evaluator; to ask it, list it in `judges`"
    for evaluator_use in config.evaluators:
        name = evaluator_use.known_as
        tool_names = {tool.use for tool in evaluator_use.tools}
        if config.workspaces is None and not tool_names.isdisjoint(_FILE_TOOL_NAMES):
            yield f"{name}: the config names no `workspaces`, so that its tools find no file of a response"
        judges = evaluator_use.judges
        if judges and len(judges) % 2 == 0 and evaluator_use.fold == "majority":
            yield (
                f"{name}: {len(judges)} judges can tie, and a tie counts as the worst case; ask one more, or one less"
            )
        if jury.evaluators[name].rarely_has_majority and config.panel.reduce == "majority":
            yield describe_rare_majority(name)
