"""`jurygraph study`: the papers' measurements on runs of one's own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.disagreeing import disagreement
from jurygraph.cli.options import AsJson, PlotFile, Resamples, RunFolder
from jurygraph.cli.text import number, out, out_json, say, table, visible

if TYPE_CHECKING:
    from jurygraph.studies.credit.report import CreditReport, Diagnosis, Estimate, Variant

study = typer.Typer(
    name="study",
    help="Measure runs as the papers do.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_WORST, _LONGEST = 10, 120


class Kinds(StrEnum):
    """The edges whose cases count."""

    all = "all"
    prerequisite = "prerequisite"
    activation = "activation"


@study.callback()
def _studies() -> None:
    """Measure runs as the papers do."""


study.command()(disagreement)


@study.command()
def credit(
    run: RunFolder,
    kinds: Annotated[Kinds, typer.Option(help="Count the cases of these edges alone.")] = Kinds.all,
    seeds: Annotated[int, typer.Option(min=0, metavar="N", help="Random graphs to draw of each rubric.")] = 20,
    resamples: Resamples = 1000,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="Seed of the bootstrap and the random graphs.")] = 0,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Follow false credit over the edges of rubrics (GEAR).

    How much of it leaks, and how much rightful credit is kept: a criterion that is met while its parent is not is a
    leakage case; what a rule leaves of it, as a share of the rubric's whole weight, is leakage. Where both are met,
    what is left of the child's own score is preservation. Flat aggregation, both hard gates and GEAR are compared on
    the run's verdicts, with 95 % bootstrap intervals over responses; so are random and untyped graphs, κ, and exact
    inference. Last come the criteria that lost most, and why. Nothing is asked, and nothing written but the picture.
    `--json` prints every figure and every criterion.

    Exit codes: 0 done; 2 wrong input, such as a run without a rubric that has edges.

    \b
    Example:
        jurygraph study credit run
        jurygraph study credit run --kinds activation --plot credit.svg
    """
    from jurygraph.cli.delivery import deliver_file, refuse_picture
    from jurygraph.cli.progress import progress
    from jurygraph.runs.run import Run
    from jurygraph.studies.credit import ACTIVATION, EDGE_KINDS, PREREQUISITE, CreditStudy, Settings, read_sheets
    from jurygraph.studies.credit.picture import draw

    refuse_picture(plot)
    counted = {Kinds.all: EDGE_KINDS, Kinds.prerequisite: PREREQUISITE, Kinds.activation: ACTIVATION}
    with closing(Run.open(run)) as opened, progress("reading", opened.tasks_scored, "tasks") as report:
        sheets = read_sheets(opened, report)
    measuring = CreditStudy(sheets, Settings(kinds=counted[kinds], seeds=seeds, resamples=resamples, seed=seed))
    with progress("measuring", measuring.size, "passes over a task") as report:
        found = measuring.run(report)
    if json:
        out_json(found.model_dump(mode="json"))
    else:
        for line in _lines(found):
            out(line)
    _say_what_is_missing(found)
    if plot is not None:
        deliver_file(str(plot), lambda draft: draw(found, draft, plot.suffix))


def _say_what_is_missing(found: "CreditReport") -> None:
    for reason, count in found.census.left_out.items():
        say(f"left out, {reason}: {count}")
    if found.census.unjudged:
        edges = f"{found.census.unjudged} of {found.census.edges} edges"
        say(f"no cases: {edges}, one end of which was not judged or does not apply")
    if found.kappa == 0:
        say("the run has κ = 0, with which GEAR is flat aggregation")
    empty = max(one.empty for each in found.methods.values() for one in (each.leakage, each.preservation))
    if empty:
        say(f"{empty} of {found.resamples} resamples held no case, and are left out of an interval")


def _lines(found: "CreditReport") -> Iterator[str]:
    census = found.census
    of = f"{census.examples} responses to {census.rubrics} rubrics, {census.graphs} of them with edges"
    yield f"{of}; κ = {found.kappa:g}"
    draws = f"95 % intervals of {found.resamples} resamples from seed {found.seed}"
    yield f"cases are edges whose child is met: {', '.join(found.kinds)}; {draws}"
    yield ""
    yield from _by_method(found)
    yield ""
    yield from _by_kind(found)
    yield ""
    yield from _ablations(found)
    yield ""
    yield from _exact(found)
    yield ""
    yield from _losses(found)


def _by_method(found: "CreditReport") -> list[str]:
    rows = [
        [name, _interval(one.leakage), _interval(one.preservation), number(one.reward), number(one.change)]
        for name, one in found.methods.items()
    ]
    return table(["rule", "leakage (95 %)", "preservation (95 %)", "mean reward", "against flat"], rows)


def _interval(one: "Estimate") -> str:
    if one.low is None or one.high is None:
        return number(one.value)
    return f"{number(one.value)} ({number(one.low)}-{number(one.high)})"


def _by_kind(found: "CreditReport") -> Iterator[str]:
    """Leakage, then preservation, by kind of edge and over all, a column for each rule."""
    for name, cases in (("leakage", "violated"), ("preservation", "satisfied")):
        columns = [{**one.kinds, "together": one} for one in found.methods.values()]
        rows = [[kind, _cases(columns[0][kind], name), *_values(columns, kind, name)] for kind in columns[0]]
        yield from table([f"{name} by kind of edge", cases, *found.methods], rows)
        if name == "leakage":
            yield ""


def _cases(one: "Diagnosis", name: str) -> str:
    return str(getattr(one, name).cases)


def _values(columns: "Sequence[Mapping[str, Diagnosis]]", kind: str, name: str) -> list[str]:
    return [number(getattr(column[kind], name).value) for column in columns]


def _ablations(found: "CreditReport") -> Iterator[str]:
    ablations = found.ablations
    rows = []
    if ablations.random is not None:
        rows.append(_variant(f"random graphs, {len(ablations.random.each)} seeds", ablations.random.mean))
    rows.append(_variant(f"untyped, λ = {ablations.untyped.retention:.4g}", ablations.untyped))
    rows += [_variant(f"κ = {kappa}", one) for kappa, one in ablations.kappas.items()]
    yield from table(["variant of gear", "leakage", "preservation", "mean reward", "against flat"], rows)
    if ablations.random is not None:
        each, drawn = ablations.random.each.values(), ablations.random
        low, high = min(one.reward for one in each), max(one.reward for one in each)
        yield (
            f"random graphs give mean rewards from {number(low)} to {number(high)}; {drawn.as_annotated} of "
            f"{drawn.graphs} came out as annotated"
        )


def _variant(name: str, one: "Variant") -> list[str]:
    return [name, number(one.leakage), number(one.preservation), number(one.reward), number(one.change)]


def _exact(found: "CreditReport") -> list[str]:
    exact = found.exact
    rows = [
        ["graph-response pairs", str(exact.pairs)],
        ["left out, above 20 criteria", str(exact.too_large)],
        ["left out, not wholly judged", str(exact.unjudged)],
        ["criteria a pair", number(exact.criteria)],
        ["marginal MAE", _small(exact.marginal_mae)],
        ["reward MAE", _small(exact.reward_mae)],
        ["1 - reward correlation", _small(_short_of_one(exact.reward_correlation))],
    ]
    return table(["exact against approximate inference", ""], rows)


def _short_of_one(correlation: float | None) -> float | None:
    return None if correlation is None else max(0.0, 1.0 - correlation)


def _small(value: float | None) -> str:
    """Two digits that count: four decimals would make 0 of most of these."""
    return "-" if value is None else f"{value:.2g}"


def _losses(found: "CreditReport") -> Iterator[str]:
    """The criteria that lost most: how much, and over which edge, in two lines each."""
    if not found.losses:
        yield "no criterion lost anything"
        return
    yield "lost most, as a share of the rubric's whole weight"
    for one in found.losses[:_WORST]:
        lost = f"{number(one.lost)} on average, {number(one.most)} at most (response {one.worst})"
        needs = f"needs {one.parent} ({one.kind}, λ = {one.retention:.4g})"
        yield visible(f"task {one.task}, {one.criterion}: {lost}")
        yield f"    {visible(f'{needs}: {one.reason}' if one.reason else needs, _LONGEST)}"
    if len(found.losses) > _WORST:
        yield f"... and {len(found.losses) - _WORST} more (--json)"
