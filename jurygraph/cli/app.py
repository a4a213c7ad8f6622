"""All commands by name. The module of a command is imported when the command is first needed."""

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from jurygraph.cli.render.text import print_result


class CommandEntry(NamedTuple):
    """Where a command is defined in `jurygraph.cli.commands`, and the first sentence of its help."""

    module: str
    attribute: str
    summary: str


COMMANDS = {
    "init": CommandEntry("init", "init", "Make a small project that runs as it is."),
    "doctor": CommandEntry("doctor", "doctor", "Say what works here: models, keys, extras, write access."),
    "profiles": CommandEntry("profiles", "profiles", "Have the model read profiles in text as constraints."),
    "annotate": CommandEntry("annotate", "annotate", "Have the model find which criteria license which (GEAR)."),
    "score": CommandEntry("score", "score", "Score responses and keep every reward with all that led to it."),
    "show": CommandEntry("show", "show", "Show a run's rewards, or one response's trace in full."),
    "explain": CommandEntry("show", "explain", "Say in plain sentences where a reward comes from."),
    "verify": CommandEntry("audit", "verify", "Check a run: its records, texts, rewards and seal."),
    "rescore": CommandEntry("rescore", "rescore", "Decide a run's rewards anew from its verdicts, with no call."),
    "compare": CommandEntry("compare", "compare", "Compare two runs: rewards, tests, verdicts that flipped."),
    "consensus": CommandEntry("consensus", "consensus", "Fuse annotators' labels, and keep how far they disagree."),
    "watch": CommandEntry("watch", "watch", "Watch a run's rewards, and tell when they are being gamed."),
    "attack": CommandEntry("attack", "attack", "Attack the config's judge, and measure what passes."),
    "seal": CommandEntry("audit", "seal", "Verify a closed run and sign its head, into seal.json."),
    "close": CommandEntry("audit", "close", "End a run: nothing more is scored into it."),
    "erase": CommandEntry("audit", "erase", "Erase a text for good."),
    "export": CommandEntry("show", "export", "Write a run in another form."),
    "graph": CommandEntry("draw", "graph", "Draw a state machine, or the rubric graph of a task."),
    "schema": CommandEntry("draw", "schema", "Print the JSON Schema of tasks, responses, config or trace."),
    "preset": CommandEntry("preset", "preset", "List the presets, or write one out as a config."),
    "import": CommandEntry("import_data", "import_tasks", "Read a file of another project as TASKS or RATINGS."),
    "prompts": CommandEntry("prompts", "prompts", "What models are told: list, show or render prompts."),
    "study": CommandEntry("study", "study", "Measure runs as the papers do."),
}


class _LazyGroup(TyperGroup):
    """A group that imports a command when it is first needed, and lists all commands without importing them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # None until it is loaded

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; None if there is none."""
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load_command(cmd_name, COMMANDS[cmd_name])
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and summaries of the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _load_command(name: str, entry: CommandEntry) -> Any:
    target = getattr(import_module(f"jurygraph.cli.commands.{entry.module}"), entry.attribute)
    if isinstance(target, typer.Typer):
        return typer.main.get_group(target)
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(name)(target)
    return typer.main.get_command(single)


app = typer.Typer(
    name="jurygraph",
    cls=_LazyGroup,
    help="Rewards from judges, checks and people that can be trusted, explained and defended.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print_result(f"jurygraph {version('jurygraph')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Rewards from judges, checks and people that can be trusted, explained and defended."""
