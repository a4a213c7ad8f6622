"""All commands by name. Heavy modules are imported only when a command runs."""

from typing import Annotated

import typer

from jurygraph.cli import (
    annotating,
    attacking,
    auditing,
    checking,
    comparing,
    consensus,
    drawing,
    importing,
    migrating,
    presetting,
    profiling,
    project,
    prompting,
    reading,
    rescoring,
    scoring,
    studying,
    watching,
)
from jurygraph.cli.text import print_result

app = typer.Typer(
    name="jurygraph",
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


for command in (
    project.init,
    checking.doctor,
    profiling.profiles,
    annotating.annotate,
    scoring.score,
    reading.show,
    reading.explain,
    auditing.verify,
    rescoring.rescore,
    comparing.compare,
    consensus.consensus,
    watching.watch,
    attacking.attack,
    auditing.seal,
    auditing.close,
    auditing.erase,
    migrating.migrate,
    reading.export,
    drawing.graph,
    drawing.schema,
    presetting.preset,
):
    app.command()(command)
app.command("import")(importing.import_tasks)
app.add_typer(prompting.prompts)
app.add_typer(studying.study)
