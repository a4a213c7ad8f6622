"""`jurygraph rescore`: compute rewards from the same verdicts under other settings."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.jury_loading import allow_run_modules
from jurygraph.cli.options import AsJson, NewRun, RunFolder
from jurygraph.cli.render.learning import learn_components, learned_json, learned_table, refuse_artifact, write_artifact
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import (
    format_table,
    print_json,
    print_message,
    print_result_lines,
    shell_quote,
)
from jurygraph.cli.stdout_redirect import redirect_stdout_to_stderr

if TYPE_CHECKING:
    from jurygraph.runs.workflows.rescoring import RescoringResult


def rescore(
    run: RunFolder,
    folder: NewRun,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Setting of the config; can be repeated.", show_default=False),
    ] = None,
    learn: Annotated[
        list[str] | None,
        typer.Option(
            "--learn",
            metavar="COMPONENT",
            help="Learn the confusions of judges in a component with combiner `consensus`; can be repeated.",
            show_default=False,
        ),
    ] = None,
    artifact: Annotated[
        Path | None,
        typer.Option(
            "--artifact", metavar="F", help="Write the learned confusions to a JSON file.", show_default=False
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compute a run's rewards again from its verdicts, without a request.

    The new run refers to RUN's verdicts, so keep RUN where it is. You can set weights, rubric, reward, components,
    panel, gates, scale, clip and failure; keys are dotted, values are YAML.

    `--learn` fits a consensus of a component's judges to the verdicts of the whole run and computes rewards from it
    (docs/consensus.md). If the judges are too few to be distinguished, their majority is used. A later config can name
    the artifact as `params: {confusions: F}` of such a component.

    \b
    Example:
        jurygraph rescore run --out run2 --set reward.steps=0 --set failure.rule=strict
        jurygraph rescore run --out run3 --learn panel --artifact panel.json
        jurygraph compare run run2
    """
    from jurygraph.runs.run import Run
    from jurygraph.runs.workflows.rescoring import apply_settings
    from jurygraph.runs.workflows.rescoring import rescore as rescore_run

    if artifact is not None:
        refuse_artifact(artifact, learn or [])
    with redirect_stdout_to_stderr(), closing(Run.open(run)) as stored_run:
        config = apply_settings(stored_run.config, settings or [])
        allow_run_modules(stored_run, config)
        config, learned = learn_components(stored_run, config, learn or [])
        with progress("re-scoring", stored_run.ledger.count_records("trace"), "responses") as report:
            result = rescore_run(stored_run, folder, config, report)
    write_artifact(artifact, learned)
    if json:
        print_json({"run": str(folder), **result._asdict(), **learned_json(learned)})
        return
    print_result_lines([*_result_table(result), *learned_table(learned)])
    print_message(f"compare:  jurygraph compare {shell_quote(run)} {shell_quote(folder)}")


def _result_table(result: "RescoringResult") -> list[str]:
    return format_table(["rewards", ""], [[name.replace("_", " "), value] for name, value in result._asdict().items()])
