"""One page about a judge: what the studies measure of its runs, each figure with its interval and its command.

It computes nothing itself. What was not measured says so, with the command that would measure it.
"""

import json
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate, ratio_interval
from jurygraph.studies import judge, reliability
from jurygraph.studies.credit import CreditStudy, read_sheets
from jurygraph.studies.report import IntervalCell, Report, ReportTable
from jurygraph.studies.stability.report import StabilityStudy
from jurygraph.studies.stability.rows import OpenRun, read_sources
from jurygraph.studies.stability.signal import SignalStudy

NOT_MEASURED = "not measured"
ATTACKS = "attacks"
PEOPLE = "agreement with people"


class CertifiedFigure(NamedTuple):
    """A figure with the ends of its 95 % interval, what it is of, how many there are, and the command that gives it.

    Without a value, `why` says why it was not measured, and the command would measure it.
    """

    subject: str
    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    command: str
    why: str = ""


def _figure(subject: str, name: str, found: Any, n: int | None, command: str) -> CertifiedFigure:
    """Return a figure from an estimate, or from a mapping with its value and ends."""
    if isinstance(found, Mapping):
        ends = (found["value"], found["low"], found["high"])
    elif isinstance(found, float):
        ends = (found, None, None)
    else:
        ends = (None, None, None) if found is None else (found.value, found.low, found.high)
    why = "not defined for these scores" if ends[0] is None else ""
    return CertifiedFigure(subject, name, *ends, n, command, why)


def certify(runs: Sequence[Path], open_run: OpenRun, labels: str | None = None, attacks: Path | None = None) -> Report:
    """Return the page about runs of one judge, with `figures`, a list of `CertifiedFigure`s.

    `labels` are as for `study judge`, and `attacks` is a file with the output of `jurygraph attack --json`. Raises
    InputError for a run that cannot be read, or labels or attacks of another form.
    """
    judges = _judges(runs, open_run)  # a run that cannot be read is an error, and no figure that is missing
    given = {subject for subject, source in ((PEOPLE, labels), (ATTACKS, attacks)) if source is not None}
    named = " ".join(shlex.quote(str(folder)) for folder in runs)
    example = "jurygraph study stability TASKS --config F --out FOLDER"
    parts: list[tuple[str, str, Callable[[], Iterator[CertifiedFigure]]]] = [
        ("wording noise, repeat noise, drift", example, partial(_wording, runs, open_run, named)),
        ("signs", example, partial(_signs, runs, open_run, named)),
        ("false credit", "jurygraph annotate TASKS --out F", partial(_credit, runs, open_run)),
        (ATTACKS, "jurygraph attack --config F --json", partial(_attacks, attacks)),
        (PEOPLE, f"jurygraph study judge {named} --labels F", partial(_people, runs, open_run, labels)),
        ("coverage", "jurygraph show RUN", partial(_coverage, runs, open_run)),
        ("votes of a jury", "name several judges in the config: models, judges", partial(_votes, runs, open_run)),
    ]
    figures: list[CertifiedFigure] = []
    sections: list[str | ReportTable] = [f"judge: {', '.join(judges)}; runs: {named}"]
    for subject, command, measure in parts:
        why = "nothing to measure it on"
        found: list[CertifiedFigure] = []
        try:
            found = list(measure())
        except InputError as error:
            if subject in given:
                raise
            why = str(error)
        found = found or [CertifiedFigure(subject, NOT_MEASURED, None, None, None, None, command, why)]
        figures += found
        sections.append(ReportTable((subject, "value (95 %)", "n", "command"), [_row(one) for one in found], digits=3))
    notes = [f"{one.subject}: {NOT_MEASURED}, {one.why}" for one in figures if one.name == NOT_MEASURED]
    return Report({"runs": list(map(str, runs)), "figures": figures}, sections, notes)


def _row(one: CertifiedFigure) -> tuple[object, ...]:
    value: object = NOT_MEASURED if one.value is None else IntervalCell(one.value, one.low, one.high)
    name = one.subject if one.name == NOT_MEASURED else one.name
    return name, "∞" if one.value == math.inf else value, one.n, one.command


def _judges(runs: Sequence[Path], open_run: OpenRun) -> list[str]:
    found: list[str] = []
    for folder in runs:
        with open_run(folder) as (run, _):
            found += run.judges or ["none"]
    return list(dict.fromkeys(found))


def _wording(runs: Sequence[Path], open_run: OpenRun, named: str) -> Iterator[CertifiedFigure]:
    command = f"jurygraph study stability {named}"
    report = StabilityStudy().report(read_sources(runs, open_run)).figures
    for one in report["noise"]:
        for name, symbol in (("semantic", "σ²_Sem"), ("repeat", "σ²_Rep")):
            found: Estimate | None = one[name]
            label = f"{symbol} of {_part(one)}, n={one['stakeholders']}"
            yield _figure("wording", label, found, None if found is None else found.clusters, command)
    for one in report["ratios"]:
        for name, symbol in (("semantic_to_repeat", "S/R"), ("growth", "Growth")):
            found = one[name]
            yield _figure(
                "wording", f"{symbol} of {_part(one)}", found, None if found is None else found.clusters, command
            )
    for one in report["drift"]:
        label = f"share of drifting weights in the variance of {one['protocol']}, n={one['stakeholders']}"
        yield _figure("drift", label, one["explained"], one["variants"], command)
    if not report["drift"]:
        why = "the judge gives no weights"
        yield CertifiedFigure("drift", "drift of weights", None, None, None, None, command, why)


def _part(one: Mapping[str, Any]) -> str:
    return ", ".join([one["protocol"], *([] if one["quality"] == "-" else [f"quality {one['quality']}"])])


def _signs(runs: Sequence[Path], open_run: OpenRun, named: str) -> Iterator[CertifiedFigure]:
    study = SignalStudy()
    report = study.report(read_sources(runs, open_run)).figures
    label = f"share of groups with P(correct sign) below {study.correct:g}, of {report['protocol']}"
    yield _figure("signs", label, report["below"], len(report["groups"]), f"jurygraph study signal {named}")


def _credit(runs: Sequence[Path], open_run: OpenRun) -> Iterator[CertifiedFigure]:
    for folder in runs:
        with open_run(folder) as (run, advance):
            try:
                sheets = read_sheets(run, advance)
            except InputError:
                if len(runs) == 1:
                    raise
                continue
        report = CreditStudy(sheets, random_graphs=0).run(lambda passes: None).figures
        command = f"jurygraph study credit {shlex.quote(str(folder))}"
        for rule in ("flat", "gear"):
            found = report["methods"][rule]["leakage"]
            yield _figure("false credit", f"unearned credit by {rule}, {folder.name}", found, found["cases"], command)


def _attacks(file: Path | None) -> Iterator[CertifiedFigure]:
    if file is None:
        raise InputError("no attacks are given; save what the command prints, and name the file with --attacks")
    try:
        figures = json.loads(file.read_bytes())
        arm = figures["arms"][figures["configured"]]
        for level, name in (("attacks", "attacks that got credit"), ("honest", "honest responses that got credit")):
            found = arm[level]["responses"]
            ends = {"value": found["rate"], "low": found["low"], "high": found["high"]}
            yield _figure("attacks", name, ends, found["n"], f"jurygraph attack --json > {shlex.quote(str(file))}")
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{file}: is not what `jurygraph attack --json` prints") from None


def _people(runs: Sequence[Path], open_run: OpenRun, labels: str | None) -> Iterator[CertifiedFigure]:
    if labels is None:
        raise InputError("no labels of people are given; name them with --labels")
    judged = []
    for folder in runs:
        with open_run(folder) as (run, advance):
            judged.append(judge.read_judgements(run, advance))
    named = " ".join(shlex.quote(str(folder)) for folder in runs)
    command = f"jurygraph study judge {named} --labels {shlex.quote(labels)}"
    report = judge.report(judge.join_labels(judged, judge.read_labels(labels, judged))).figures
    for one in report["judges"]:
        for name in ("accuracy", "kappa", "rank_correlation", "corrected"):
            label = "corrected mean label" if name == "corrected" else name.replace("_", " ")
            yield _figure("people", f"{label} of {one['judge']}", one[name], one["n"], command)


def _coverage(runs: Sequence[Path], open_run: OpenRun) -> Iterator[CertifiedFigure]:
    for folder in runs:
        by_task: dict[str, list[float]] = {}
        with open_run(folder) as (run, _):
            for trace in run.traces():
                by_task.setdefault(trace.task_id, []).append(trace.reward.coverage)
        found = ratio_interval([sum(one) for one in by_task.values()], [len(one) for one in by_task.values()])
        number = sum(len(one) for one in by_task.values())
        command = f"jurygraph show {shlex.quote(str(folder))}"
        yield _figure("coverage", f"judged share of the weight, {folder.name}", found, number, command)


def _votes(runs: Sequence[Path], open_run: OpenRun) -> Iterator[CertifiedFigure]:
    for folder in runs:
        with open_run(folder) as (run, advance):
            report = reliability.report(reliability.read_scores(run, advance)).figures
        command = f"jurygraph study reliability {shlex.quote(str(folder))}"
        for one in report.get("judges", ()):
            yield _figure("votes", f"α of the judges on {one['name']}", one["alpha"], one["responses"], command)
