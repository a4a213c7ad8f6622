"""All commands by name. Heavy modules are imported only when a command runs."""

from typing import Annotated

import typer

from jurygraph.cli.commands import (
    annotate,
    attack,
    audit,
    compare,
    consensus,
    doctor,
    draw,
    import_data,
    init,
    preset,
    profiles,
    prompts,
    rescore,
    score,
    show,
    study,
    watch,
)
from jurygraph.cli.render.text import print_result

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
    init.init,
    doctor.doctor,
    profiles.profiles,
    annotate.annotate,
    score.score,
    show.show,
    show.explain,
    audit.verify,
    rescore.rescore,
    compare.compare,
    consensus.consensus,
    watch.watch,
    attack.attack,
    audit.seal,
    audit.close,
    audit.erase,
    show.export,
    draw.graph,
    draw.schema,
    preset.preset,
):
    app.command()(command)
app.command("import")(import_data.import_tasks)
app.add_typer(prompts.prompts)
app.add_typer(study.study)
