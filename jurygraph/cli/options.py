"""Arguments and options shared by several commands, so that each has one name and one help text."""

from pathlib import Path
from typing import Annotated

import typer

TasksFile = Annotated[
    str, typer.Argument(metavar="TASKS", help="JSONL file of tasks, .gz too; - for stdin.", show_default=False)
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)]
NewRun = Annotated[Path, typer.Option("-o", "--out", metavar="RUN2", help="Folder of the new run.", show_default=False)]
ConfigFile = Annotated[
    Path | None,
    typer.Option(metavar="F", help="Config.", show_default="jury.yaml next to TASKS, or in the current folder"),
]
ModelName = Annotated[str | None, typer.Option(metavar="M", help="Model, instead of the config's.", show_default=False)]
EdgesFrom = Annotated[
    str | None,
    typer.Option(metavar="GRAPHS", help="TASKS file with reviewed rubric graphs.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate the requests; send and write nothing.")]
FilesOutside = Annotated[
    bool, typer.Option("--allow-files-outside", help="Allow table files outside the folder of the tasks.")
]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, metavar="C", help="Maximum cost of model requests in US dollars.", show_default=False),
]
MaxCalls = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Maximum number of model requests.", show_default=False)
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--gate", metavar="TEXT", help="Conditions on the statistics; exit code 1 if one is missed.", show_default=False
    ),
]
Resamples = Annotated[int, typer.Option(min=1, metavar="N", help="Number of bootstrap resamples.")]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", metavar="F", help="Write a plot: .svg, .png, .pdf (extra `plot`).", show_default=False),
]
OutFile = Annotated[
    str | None, typer.Option("-o", "--out", metavar="F", help="File to write.", show_default="standard output")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
