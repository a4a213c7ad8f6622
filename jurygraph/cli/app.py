"""The commands, by name. Their modules import what is heavy only when they run."""

import typer

from jurygraph.cli import checking, drawing, project, reading, scoring

app = typer.Typer(
    name="jurygraph",
    help="Rewards from judges, checks and people that can be trusted, explained and defended.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

for command in (
    project.init,
    checking.doctor,
    scoring.score,
    reading.show,
    reading.explain,
    reading.export,
    drawing.graph,
    drawing.schema,
):
    app.command()(command)
