"""`jurygraph rescore`: the same verdicts under other settings."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from jurygraph.cli.printing import kept_off_stdout
from jurygraph.cli.reading import AsJson, RunFolder
from jurygraph.cli.text import number, out, out_json, say, table, word


def rescore(
    run: RunFolder,
    folder: Annotated[Path, typer.Option("--out", metavar="RUN2", help="Folder of the new run.", show_default=False)],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the config; may be repeated.", show_default=False
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Decide a run's rewards anew from its verdicts: other weights, recipe, gates or failure rule, and no call.

    The new run refers to RUN's verdicts, so keep RUN where it is. What can be set: weights, rubric, reward,
    components, panel, gates, scale, clip, failure; a key is dotted, a value is YAML.

    \b
    Example:
        jurygraph rescore run --out run2 --set reward.steps=0 --set failure.rule=strict
        jurygraph compare run run2
    """
    from jurygraph.cli.progress import progress
    from jurygraph.runs.rescoring import rescore as rescored
    from jurygraph.runs.rescoring import with_settings
    from jurygraph.runs.run import Run

    sys.path.append(str(Path.cwd()))  # a config may name combiners of one's own
    with kept_off_stdout(), closing(Run.open(run)) as opened:
        config = with_settings(opened.config, settings or [])
        with progress("re-scoring", opened.ledger.number("trace"), "responses") as report:
            result = rescored(opened, folder, config, report)
    if json:
        out_json({"run": str(folder), **result._asdict()})
        return
    rows = [[str(value) if isinstance(value, int) else number(value)] for value in result]
    for line in table(
        ["rewards", ""], [[name.replace("_", " "), *row] for name, row in zip(result._fields, rows, strict=True)]
    ):
        out(line)
    say(f"side by side:  jurygraph compare {word(run)} {word(folder)}")
