"""Confusions of judges that `jurygraph rescore --learn` estimates: learn, store and print them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurygraph.cli.output_files import refuse_unwritable, write_output
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import escape_line, format_number, format_table, print_message
from jurygraph.errors import InputError

if TYPE_CHECKING:
    from jurygraph.aggregation.consensus import AnnotatorQuality
    from jurygraph.runs.run import Run
    from jurygraph.runs.workflows.panel_learning import LearnedPanel
    from jurygraph.schema import Config


def learn_components(
    run: "Run", config: "Config", components: Sequence[str]
) -> "tuple[Config, Mapping[str, LearnedPanel]]":
    """Learn the given components of a run, one after another; return the resulting config and results by component."""
    from jurygraph.runs.workflows.panel_learning import learn_confusions

    learned: dict[str, LearnedPanel] = {}
    for component in components:
        with progress("learning", run.tasks_scored, "tasks") as report:
            learned[component] = learn_confusions(run, config, component, report)
        config = learned[component].config
    return config, learned


def refuse_artifact(artifact: Path, learn: Sequence[str]) -> None:
    """Raise InputError before anything is read if the artifact cannot be written, or several components are learned."""
    if len(learn) != 1:
        raise InputError("--artifact: stores the confusions of one component; name one with --learn")
    refuse_unwritable(str(artifact))


def write_artifact(artifact: Path | None, learned: "Mapping[str, LearnedPanel]") -> None:
    """Print warnings for each learned component, and write its confusions to the artifact if one is named."""
    from jurygraph.sources.ratings import confusions_to_json

    for component, result in learned.items():
        for warning in result.warnings:
            print_message(f"{component}: {warning}")
        if result.confusions is None:
            print_message(
                f"{component}: the majority of the judges is used"
                + (", and no artifact is written" if artifact else "")
            )
        elif artifact is not None:
            write_output(str(artifact), [confusions_to_json(result.confusions)])


def learned_json(learned: "Mapping[str, LearnedPanel]") -> dict[str, Any]:
    """Return the learned results as JSON; an empty object if nothing was learned."""
    return {"learned": {component: _learned_json(one) for component, one in learned.items()}} if learned else {}


def _learned_json(result: "LearnedPanel") -> dict[str, object]:
    """Return the result for one component as JSON."""
    judges = {
        name: {"accuracy": quality.accuracy, "leniency": quality.leniency, "strictness": quality.strictness}
        for name, quality in result.judges.items()
    }
    digest = None if result.confusions is None else result.confusions.digest
    return {"confusions": digest, "responses": result.responses, "judges": judges, "warnings": list(result.warnings)}


def learned_table(learned: "Mapping[str, LearnedPanel]") -> Iterator[str]:
    """Return tables of the judges of each learned component."""
    for component, one in learned.items():
        yield from _judge_table(component, one)


def _judge_table(component: str, result: "LearnedPanel") -> Iterator[str]:
    if result.confusions is None:
        return
    yield ""
    yield escape_line(f"{component}: learned from {result.responses} responses")
    head = ["judge", "accuracy (95 %)", "leniency", "strictness", "verdicts"]
    rows = [[name, _format_accuracy(q), q.leniency, q.strictness, q.labels] for name, q in result.judges.items()]
    yield from format_table(head, rows)


def _format_accuracy(quality: "AnnotatorQuality") -> str:
    low, high = quality.accuracy_interval
    return f"{format_number(quality.accuracy)} ({format_number(low)} to {format_number(high)})"
