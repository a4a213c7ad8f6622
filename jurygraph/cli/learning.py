"""What `jurygraph rescore --learn` learns of judges, kept and told."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurygraph.cli.text import number, say, table, visible

if TYPE_CHECKING:
    from jurygraph.aggregation.consensus import AnnotatorQuality
    from jurygraph.runs.making.learning import Learned
    from jurygraph.runs.run import Run
    from jurygraph.schema import Config


def taught_by(run: "Run", config: "Config", components: Sequence[str]) -> "tuple[Config, Mapping[str, Learned]]":
    """What a run teaches of these components, one after another, and the config that uses it."""
    from jurygraph.cli.progress import progress
    from jurygraph.runs.making.learning import learn

    taught: dict[str, Learned] = {}
    for component in components:
        with progress("learning", run.tasks_scored, "tasks") as report:
            taught[component] = learn(run, config, component, report)
        config = taught[component].config
    return config, taught


def refuse_artifact(artifact: Path, learn: Sequence[str]) -> None:
    """Before anything is read: a file of confusions is of one component."""
    from jurygraph.cli.delivery import refuse_unwritable
    from jurygraph.errors import InputError

    if len(learn) != 1:
        raise InputError("--artifact: keeps what is learned of one component; name one with --learn")
    refuse_unwritable(str(artifact))


def keep(artifact: Path | None, taught: "Mapping[str, Learned]") -> None:
    from jurygraph.cli.delivery import deliver
    from jurygraph.sources.confusions import written

    for component, one in taught.items():
        for doubt in one.doubts:
            say(f"{component}: {doubt}")
        if one.confusions is None:
            say(
                f"{component}: the majority of the judges stands" + (", and no artifact is written" if artifact else "")
            )
        elif artifact is not None:
            deliver(str(artifact), [written(one.confusions)])


def told(taught: "Mapping[str, Learned]") -> dict[str, Any]:
    """What was learned, as JSON; nothing where nothing was asked."""
    return {"learned": {component: _told(one) for component, one in taught.items()}} if taught else {}


def _told(one: "Learned") -> dict[str, object]:
    """What was learned, as JSON."""
    judges = {
        name: {"accuracy": each.accuracy, "leniency": each.leniency, "strictness": each.strictness}
        for name, each in one.judges.items()
    }
    digest = None if one.confusions is None else one.confusions.digest
    return {"confusions": digest, "responses": one.responses, "judges": judges, "warnings": list(one.doubts)}


def lines(taught: "Mapping[str, Learned]") -> Iterator[str]:
    """A table of the judges of each component that was learned."""
    for component, one in taught.items():
        yield from _lines(component, one)


def _lines(component: str, one: "Learned") -> Iterator[str]:
    if one.confusions is None:
        return
    yield ""
    yield visible(f"{component}: learned from {one.responses} responses")
    head = ["judge", "accuracy (95 %)", "leniency", "strictness", "verdicts"]
    yield from table(
        head,
        [
            [name, _accuracy(each), number(each.leniency), number(each.strictness), str(each.labels)]
            for name, each in one.judges.items()
        ],
    )


def _accuracy(one: "AnnotatorQuality") -> str:
    low, high = one.accuracy_interval
    return f"{number(one.accuracy)} ({number(low)} to {number(high)})"
