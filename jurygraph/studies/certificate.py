"""One page about a judge: what the studies measure of its runs, each figure with its interval and its command.

It computes nothing itself. What was not measured says so and why, with the command that would measure it.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.inference.clusters import share_interval
from jurygraph.messages import shell_quote
from jurygraph.runs.run import Run
from jurygraph.studies import credit, reliability
from jurygraph.studies import judge as judge_study
from jurygraph.studies.judge import join_labels, read_judgements, read_labels
from jurygraph.studies.presentations import Presentations, ReadRuns, read_sources
from jurygraph.studies.report import Report, ReportTable, as_interval, format_cell
from jurygraph.studies.stability import measure_signal, measure_stability, variance_digits
from jurygraph.studies.units import unit_of

ATTACKS = "attacks"
PEOPLE = "agreement with people"
_DIGITS = 3
_NEW_RUNS = "jurygraph study stability TASKS --config F --out FOLDER"
_NEW_GRAPHS = "jurygraph annotate TASKS --out F"
_JURY = "name several judges in the config: models, judges"
_MEASURES = {
    "semantic": ("σ²_Sem", "no response has two scored variants"),
    "repeat": ("σ²_Rep", "no input was scored twice"),
    "growth": ("Growth (A.3)", "there is one number of stakeholders alone, or no noise"),
    "growth_same_families": (
        "Growth over the same families",
        "there is one number of stakeholders alone, or no noise",
    ),
    "semantic_to_repeat": (
        "S/R",
        "too few inputs were scored twice (d = Σ (R - 1) ≤ 2), or there is no noise",
    ),
    "wording_alone": ("σ²_Sem - σ²_Rep, wording alone,", "no input was scored twice"),
}
"""The symbols of measures by their names, and why one has no value."""


class CertifiedFigure(NamedTuple):
    """A figure with the ends of its 95 % interval, the number of cases behind it, and the command that gives it.

    Without a value, `why` says why it was not measured, and the command would measure it.
    """

    name: str
    command: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    why: str = ""


CertifiedFigures = Iterator[CertifiedFigure]
MeasureRun = Callable[[Run, ProgressCallback], CertifiedFigures]
ReadPresentations = Callable[[], Presentations]


def _figure(
    name: str,
    cell: object,
    n: int,
    command: str,
    why: str = "not defined for these scores",
    remedy: str | None = None,
) -> CertifiedFigure:
    """Return the figure that a command gives; without a value, the `remedy` (or the command) would measure it."""
    estimate = as_interval(cell)
    if estimate is None or estimate.value is None:
        return CertifiedFigure(name, remedy or command, why=why)
    return CertifiedFigure(name, command, *estimate, n)


def certify(
    runs: Sequence[Path], read: ReadRuns, labels: str | None = None, attacks: Path | None = None
) -> Report:
    """Return the page about runs of one judge, with `figures`, a list of `CertifiedFigure`s.

    `labels` are as for `study judge`, and `attacks` is a file with the output of `jurygraph attack --json`. Raises
    InputError for a run that cannot be read, or labels or attacks of another form.
    """
    # A run that cannot be read is an error, and no figure that is missing.
    judges = dict.fromkeys(chain.from_iterable(read(runs, lambda run, _: run.judges or ["none"])))
    # What the user names a file for has to be measured.
    required = set()
    if labels is not None:
        required.add(PEOPLE)
    if attacks is not None:
        required.add(ATTACKS)
    named = " ".join(map(shell_quote, runs))
    presentations = cache(partial(read_sources, runs, read))
    by_run = partial(_by_run, runs, read)
    people = partial(_people, runs, read, named, labels)
    label_command = f"jurygraph study judge {named} --labels F"
    parts: list[tuple[str, str, Callable[[], CertifiedFigures]]] = [
        ("wording, repeats, drift", _NEW_RUNS, partial(_wording, presentations, named)),
        ("signs", _NEW_RUNS, partial(_signs, presentations, named)),
        ("false credit", "", partial(by_run, _credit, "false credit", _NEW_GRAPHS)),
        (ATTACKS, "jurygraph attack --config F --json", partial(_attacks, attacks)),
        (PEOPLE, label_command, people),
        ("coverage", "", partial(by_run, _coverage, "coverage", "jurygraph score TASKS --out F")),
        ("votes of a jury", "", partial(by_run, _votes, "votes of a jury", _JURY)),
    ]
    figures: list[CertifiedFigure] = []
    sections: list[str | ReportTable] = [f"judge: {', '.join(judges)}; runs: {named}"]
    for subject, command, measure in parts:
        try:
            certified = list(measure())
        except InputError as error:
            if subject in required:
                raise
            certified = [CertifiedFigure(subject, command, why=str(error))]
        figures += certified
        measured = [figure for figure in certified if figure.value is not None]
        if measured:
            commands = dict.fromkeys(figure.command for figure in measured)
            sections.append(f"command: {'; '.join(commands)}")
            rows = []
            for figure in measured:
                digits = variance_digits([figure.value], _DIGITS)
                rows.append((figure.name, format_cell(figure, digits), figure.n))
            sections.append(ReportTable((subject, "value (95 %)", "n"), rows))
    sections.append(_missing_table([figure for figure in figures if figure.value is None]))
    return Report({"runs": list(map(str, runs)), "figures": figures}, sections)


def _missing_table(missing: Sequence[CertifiedFigure]) -> ReportTable:
    """Return what was not measured; what has the same reason and command shares a row."""
    names: dict[tuple[str, str], list[str]] = {}
    for figure in missing:
        names.setdefault((figure.why, figure.command), []).append(figure.name)
    rows = []
    for (why, command), figure_names in names.items():
        rows.append(("; ".join(figure_names), why, command))
    return ReportTable(("not measured", "because", "what would measure it"), rows, left=3)


def _by_run(
    runs: Sequence[Path], read: ReadRuns, measure: MeasureRun, subject: str, command: str
) -> CertifiedFigures:
    """Yield the figures of each run; for a run without any, why there is none, and the command that would give one."""
    for folder in runs:
        try:
            for figures in read([folder], lambda run, advance: list(measure(run, advance))):
                yield from figures
        except InputError as error:
            yield CertifiedFigure(f"{subject}, {folder.name}", command, why=str(error))


def _wording(presentations: ReadPresentations, named: str) -> CertifiedFigures:
    command = f"jurygraph study stability {named}"
    report = measure_stability(presentations()).figures
    # Where there are several judges or bands of quality, the last row of each protocol is of all.
    last_rows = {}
    for row in [*report["noise"], *report["ratios"]]:
        last_rows[row["protocol"], row.get("stakeholders")] = row
    for (protocol, size), row in last_rows.items():
        label = protocol if size is None else f"{protocol}, {size} stakeholders"
        for measure, (symbol, why) in _MEASURES.items():
            if measure in row:
                estimate = row[measure]
                n = estimate.clusters if estimate else 0
                yield _figure(f"{symbol} of {label}", estimate, n, command, why, _NEW_RUNS)
    for row in report["drift"]:
        label = f"share of drifting weights in σ²_Sem of {row['protocol']}, {row['stakeholders']} stakeholders"
        yield _figure(label, row["explained"], row["variants"], command)
    if not report["drift"]:
        remedy = "use protocols.decomposed-adaptive in the config"
        yield CertifiedFigure("drift of weights", remedy, why="the judge gives no weights")


def _signs(presentations: ReadPresentations, named: str) -> CertifiedFigures:
    report = measure_signal(presentations()).figures
    command = f"jurygraph study signal {named}"
    groups = len(report["groups"])
    for name, estimate in report["together"].items():
        label = f"{name} of all groups together, of {report['protocol']}"
        yield _figure(label, estimate, groups, command)


def _credit(run: Run, advance: ProgressCallback) -> CertifiedFigures:
    report = credit.report(credit.read_sheets(run, advance), random_graphs=1).figures
    command = f"jurygraph study credit {shell_quote(run.folder)}"
    for rule in ("flat", "gear"):
        leakage = report["methods"][rule]["leakage"]
        name = f"unearned credit by {rule}, {run.folder.name}"
        yield _figure(name, leakage, leakage["cases"], command)


def _attacks(file: Path | None) -> CertifiedFigures:
    if file is None:
        raise InputError(
            "no attacks are given; save what the command prints, and name the file with --attacks"
        )
    try:
        figures = json.loads(file.read_bytes())
        arm = figures["arms"][figures["configured"]]
        command = f"jurygraph attack --json > {shell_quote(file)}"
        names = {
            "attacks": "attacks that got credit",
            "honest": "honest responses that got credit",
        }
        for level, name in names.items():
            share = arm[level]["responses"]
            estimate = {"value": share["rate"], "low": share["low"], "high": share["high"]}
            yield _figure(name, estimate, share["n"], command)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{file}: is not what `jurygraph attack --json` prints") from None


def _people(
    runs: Sequence[Path], read: ReadRuns, named: str, labels: str | None
) -> CertifiedFigures:
    if labels is None:
        raise InputError("no labels of people are given; name them with --labels")
    judged = read(runs, read_judgements)
    command = f"jurygraph study judge {named} --labels {shell_quote(labels)}"
    report = judge_study.report(join_labels(judged, read_labels(labels, judged))).figures
    for judge in report["judges"]:
        for name in ("accuracy", "kappa", "rank_correlation", "corrected"):
            label = "corrected mean label" if name == "corrected" else name.replace("_", " ")
            yield _figure(f"{label} of {judge['judge']}", judge[name], judge["n"], command)


def _coverage(run: Run, advance: ProgressCallback) -> CertifiedFigures:
    by_unit: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for trace in run.traces():
        if trace.task_id not in units:
            units[trace.task_id] = unit_of(run, trace.task_id)
        by_unit.setdefault(units[trace.task_id], []).append(trace.reward.coverage)
    sums = [sum(values) for values in by_unit.values()]
    sizes = [len(values) for values in by_unit.values()]
    share = share_interval(sums, sizes)
    name = f"judged share of the weight, {run.folder.name}"
    yield _figure(name, share, sum(sizes), f"jurygraph show {shell_quote(run.folder)}")


def _votes(run: Run, advance: ProgressCallback) -> CertifiedFigures:
    report = reliability.report(reliability.read_scores(run, advance)).figures
    if "judges" not in report:
        name = f"votes of a jury, {run.folder.name}"
        yield CertifiedFigure(name, _JURY, why="one judge alone gave scores")
        return
    command = f"jurygraph study reliability {shell_quote(run.folder)}"
    for row in report["judges"]:
        name = f"α of the judges on {row['name']}, {run.folder.name}"
        yield _figure(name, row["alpha"], row["responses"], command)
