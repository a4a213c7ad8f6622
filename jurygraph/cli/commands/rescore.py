"""`jurygraph rescore`: compute rewards from the same verdicts under other settings."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from jurygraph.cli.options import AsJson, NewRun, RunFolder, option
from jurygraph.cli.output_files import refuse_unwritable, write_output
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import escape_line, format_table, print_message, print_report, shell_quote
from jurygraph.cli.streams import redirect_stdout_to_stderr
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import LearnedPanel, apply_settings, learn_confusions
from jurygraph.runs.workflows.rescoring import rescore as rescore_run
from jurygraph.sources.ratings import confusions_to_json


def rescore(
    run: RunFolder,
    folder: NewRun,
    settings: Annotated[
        list[str] | None, option("KEY=VALUE", "Setting of the config; can be repeated.", "--set")
    ] = None,
    learn: Annotated[
        list[str] | None,
        option(
            "COMPONENT",
            "Learn the confusions of judges in a component with combiner `consensus`; can be repeated.",
            "--learn",
        ),
    ] = None,
    artifact: Annotated[Path | None, option("F", "Write the learned confusions to a JSON file.", "--artifact")] = None,
    json: AsJson = False,
) -> None:
    """Compute a run's rewards again from its verdicts, without a request.

    The new run refers to RUN's verdicts, so keep RUN where it is. You can set weights, rubric, reward, components,
    panel, gates, scale, clip, failure, and the fold of evaluators (`evaluators.0.fold` is that of the first); keys are
    dotted, values are YAML.

    `--learn` fits a consensus of a component's judges to the verdicts of the whole run and computes rewards from it
    (docs/consensus.md). If the judges are too few to be distinguished, their majority is used. A later config can name
    the artifact as `params: {confusions: F}` of such a component.

    \b
    Example:
        jurygraph rescore run --out run2 --set reward.steps=0 --set failure.rule=strict
        jurygraph rescore run --out run3 --learn panel --artifact panel.json
        jurygraph compare run run2
    """
    if artifact is not None:
        if len(learn or []) != 1:
            raise InputError("--artifact: stores the confusions of one component; name one with --learn")
        refuse_unwritable(str(artifact))
    learned: dict[str, LearnedPanel] = {}
    with redirect_stdout_to_stderr(), closing(Run.open(run)) as stored_run:
        config = apply_settings(stored_run.config, settings or [])
        stored_run.allow_modules(config)
        for component in learn or []:
            with progress("learning", stored_run.tasks_scored, "tasks") as report:
                learned[component] = learn_confusions(stored_run, config, component, report)
            config = learned[component].config
        with progress("re-scoring", stored_run.ledger.count_records("trace"), "responses") as report:
            result = rescore_run(stored_run, folder, config, report)
    _write_artifact(artifact, learned)
    content: dict[str, Any] = {"run": str(folder), **result._asdict()}
    if learned:
        content["learned"] = {component: _learned_json(one) for component, one in learned.items()}
    rows = [[name.replace("_", " "), value] for name, value in result._asdict().items()]
    print_report(json, content, [*format_table(["rewards", ""], rows), *_learned_tables(learned)])
    if not json:
        print_message(f"compare:  jurygraph compare {shell_quote(run)} {shell_quote(folder)}")


def _write_artifact(artifact: Path | None, learned: Mapping[str, LearnedPanel]) -> None:
    """Print warnings for each learned component, and write its confusions to the artifact if one is named."""
    for component, result in learned.items():
        for warning in result.warnings:
            print_message(f"{component}: {warning}")
        if result.confusions is None:
            no_artifact = ", and no artifact is written" if artifact else ""
            print_message(f"{component}: the majority of the judges is used{no_artifact}")
        elif artifact is not None:
            write_output(str(artifact), [confusions_to_json(result.confusions)])


def _learned_json(result: LearnedPanel) -> dict[str, Any]:
    judges = {
        name: {"accuracy": quality.accuracy, "leniency": quality.leniency, "strictness": quality.strictness}
        for name, quality in result.judges.items()
    }
    digest = None if result.confusions is None else result.confusions.digest
    return {
        "confusions": digest,
        "responses": result.responses,
        "units": result.units,
        "judges": judges,
        "warnings": list(result.warnings),
    }


def _learned_tables(learned: Mapping[str, LearnedPanel]) -> Iterator[str]:
    """Return a table of the judges of each component whose confusions were learned."""
    head = ["judge", "accuracy", "leniency", "strictness", "verdicts"]
    for component, result in learned.items():
        if result.confusions is not None:
            yield ""
            units = "" if result.units == result.responses else f", {result.units} with each reviewer"
            yield escape_line(f"{component}: learned from {result.responses} responses{units}")
            rows = [[name, q.accuracy, q.leniency, q.strictness, q.labels] for name, q in result.judges.items()]
            yield from format_table(head, rows)
