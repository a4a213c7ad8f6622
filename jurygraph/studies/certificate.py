"""One page about a judge: what the studies measure of its runs, each figure with its interval and its command.

It computes nothing itself. What was not measured says so and why, with the command that would measure it.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.inference.clusters import share_with_cluster_interval
from jurygraph.messages import shell_quote
from jurygraph.runs.integrity.record_check import require_records_as_written
from jurygraph.runs.reports.gates import GateCounts
from jurygraph.runs.reports.units import unit_name_of_task
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import CONFIG_FILE
from jurygraph.runs.store.header import RunHeader, judge_differences
from jurygraph.sources.files import sha256_of_file
from jurygraph.studies import credit, judge_report, reliability, symbols
from jurygraph.studies.attack import describe_applied_attacks
from jurygraph.studies.conclusions import conclude_agreement
from jurygraph.studies.judge import JudgeStudy
from jurygraph.studies.judgements import RunJudgements, read_judgements
from jurygraph.studies.presentations import Presentations, RunsReader, read_presentations_of_sources
from jurygraph.studies.report import (
    Figures,
    Report,
    ReportSection,
    ReportTable,
    as_interval,
    format_cell,
    group_by,
)
from jurygraph.studies.stability import (
    measure_signal_to_noise,
    measure_stability,
    variance_table_digits,
)

ATTACKS_SECTION = "attacks"
AGREEMENT_SECTION = "agreement with people"
_TABLE_DIGITS = 3
_NEW_RUNS_COMMAND = "jurygraph study stability TASKS --config F --out FOLDER"
_NEW_GRAPHS_COMMAND = "jurygraph annotate TASKS --out F"
_SAMPLES_HINT = "write `samples: 3` beside `use` in the config"
_SEVERAL_JUDGES_HINT = "name several judges in the config: models, judges"
_SYMBOL_AND_REASON_BY_MEASURE = {
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
_FINDING_TEXT_BY_MEASURE = {
    "semantic": "other words for the same move",
    "repeat": "asking again moves",
}


_LABEL_BY_AGREEMENT_FIGURE = {
    "corrected": "corrected mean label",
    "distance": "mean distance from people",
    "rank_correlation": "rank correlation",
}


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
    finding: str = ""
    """What the figure means, for the page's summary, with `{}` for its value; empty for most."""

    unit: str = ""
    """What the value is in, where others of its section are in something else."""

    conclusion: str = ""
    """Whether a judge is good enough, for the beginning of the page; empty for most."""

    @property
    def digits(self) -> int:
        return variance_table_digits([self.value], _TABLE_DIGITS)


CertifiedFigures = Iterator[CertifiedFigure]
RunMeasure = Callable[[Run, ProgressCallback], CertifiedFigures]


def _certified_figure(
    name: str,
    cell: object,
    n: int,
    command: str,
    why: str = "not defined for these scores",
    remedy: str | None = None,
    finding: str = "",
) -> CertifiedFigure:
    """Return the figure that a command gives; without a value, the `remedy` (or the command) would measure it."""
    estimate = as_interval(cell)
    if estimate is None or estimate.value is None:
        return CertifiedFigure(name, remedy or command, why=why)
    return CertifiedFigure(name, command, *estimate, n, finding=finding)


class PeopleStudy(NamedTuple):
    """The command that compares judges with people, what joins the judgements of runs with the labels, and the labels:
    files, or a label of the runs."""

    command: str
    join: Callable[[Sequence[RunJudgements]], list[JudgeStudy]]
    labels: Sequence[str]


class CertifiedRun(NamedTuple):
    """Content of a page about a run, and its judge: the header of the run whose verdicts it has.

    With other `heads`, or another config, it is not the run that was measured.
    """

    judges: Collection[str]
    judge: RunHeader
    gates: GateCounts
    heads: str
    config_digest: str

    @classmethod
    def read(cls, run: Run, advance: ProgressCallback) -> "CertifiedRun":
        """Read a run after its records were checked; the progress of a study is of tasks."""
        require_records_as_written(run, ignore_progress)
        heads = ", ".join(ledger.head.hex() for ledger in run.ledger.members)
        return cls(
            run.judges, run.source.header, GateCounts.read(run), heads, run.header.config_file
        )


def certify(
    runs: Sequence[Path],
    read: RunsReader,
    people: PeopleStudy | None = None,
    attacks: Path | None = None,
) -> Report:
    """Return the page about runs of one judge, with `figures`, a list of `CertifiedFigure`s.

    `people` are those of the labels, if there are some, and `attacks` is a file with the output of
    `jurygraph attack --json`. Raises InputError for a run that cannot be read, or labels or attacks of another form,
    and TraceMismatch for a run whose records were changed.
    """
    # A run that cannot be read, or was changed, is an error, and no figure that is missing.
    certified_runs = dict(zip(runs, read(runs, CertifiedRun.read), strict=True))
    judges = dict.fromkeys(chain.from_iterable(run.judges for run in certified_runs.values()))
    # What the user names a file for has to be measured.
    source_by_section = {AGREEMENT_SECTION: people, ATTACKS_SECTION: attacks}
    quoted_runs = " ".join(map(shell_quote, runs))
    read_presentations = cache(partial(read_presentations_of_sources, runs, read))
    stability_command = f"jurygraph study stability {quoted_runs}"
    measure_runs = partial(_figures_by_run, runs, read)
    parts: list[tuple[str, str, Callable[[], CertifiedFigures]]] = [
        (
            AGREEMENT_SECTION,
            f"jurygraph study judge {quoted_runs} --labels F",
            partial(_people_figures, runs, read, people),
        ),
        (
            ATTACKS_SECTION,
            "jurygraph attack --config F --json",
            partial(_attack_figures, certified_runs, attacks),
        ),
        (
            "false credit",
            "",
            partial(measure_runs, _unearned_credit_figures, "false credit", _NEW_GRAPHS_COMMAND),
        ),
        (
            "wording, repeats and drift",
            _NEW_RUNS_COMMAND,
            partial(_noise_figures, read_presentations, stability_command),
        ),
        ("signs", _NEW_RUNS_COMMAND, partial(_signal_figures, read_presentations, quoted_runs)),
        (
            "coverage",
            "",
            partial(measure_runs, _coverage_figures, "coverage", "jurygraph score TASKS --out F"),
        ),
        (
            "samples and juries",
            "",
            partial(measure_runs, _reliability_figures, "samples and juries", _SAMPLES_HINT),
        ),
    ]
    figures: list[CertifiedFigure] = []
    sections: list[ReportSection] = []
    for subject, command, measure in parts:
        try:
            section_figures = list(measure())
        except InputError as error:
            if source_by_section.get(subject) is not None:
                raise
            section_figures = [CertifiedFigure(subject, command, why=str(error))]
        figures += section_figures
        measured_figures = [figure for figure in section_figures if figure.value is not None]
        for unit, figures_in_unit in group_by(measured_figures, attrgetter("unit")).items():
            rows = [(figure.name, figure, figure.n) for figure in figures_in_unit]
            sections.append(ReportTable((f"{subject}{unit}", "value (95 %)", "n"), rows))
        if measured_figures:
            commands = dict.fromkeys(figure.command for figure in measured_figures)
            sections.append(f"command: {'; '.join(commands)}")
    sections.append(_unmeasured_figures_table(figures))
    name = ", ".join(judges) or "Judged by code alone"
    summary = _summary_sentences(name, figures)
    for folder, run in certified_runs.items():
        sections += [
            f"head of {folder.name}, for `jurygraph verify --expect-head`: {run.heads}",
            f"config.yaml of {folder.name}: SHA-256 {run.config_digest}",
        ]
        summary += [f"In {folder.name}, {sentence}." for sentence in run.gates.describe()]
    for file in [*map(Path, people.labels if people else ()), attacks]:
        if file and file.is_file():  # else it is a label of the runs, whose heads vouch for it
            sections.append(f"{file}: SHA-256 {sha256_of_file(file)}")
    verdicts_on_judges = [figure.conclusion for figure in figures if figure.conclusion]
    if not verdicts_on_judges:
        verdicts_on_judges = [
            f"{name}: whether it judges rightly cannot be concluded, since no labels of people are given "
            "(--labels); the figures say how it behaves."
        ]
    return Report(
        {"runs": list(map(str, runs)), "summary": " ".join(summary), "figures": figures},
        sections,
        conclusion=[*verdicts_on_judges, *summary],
        symbol_meanings=symbols.CERTIFICATE_SYMBOL_MEANINGS,
    )


def _summary_sentences(judges: str, figures: Sequence[CertifiedFigure]) -> list[str]:
    """Return the sentences that a page begins with: what was found, and how much was not measured."""
    measured_figures = [figure for figure in figures if figure.value is not None]
    findings = []
    for figure in measured_figures:
        if figure.finding:
            finding = figure.finding.replace("{}", format_cell(figure))
            findings.append(f"{finding[0].upper()}{finding[1:]}.")
    counts = f"{len(measured_figures)} of {len(figures)} figures were measured"
    return [f"{judges}: {counts}; any other is listed last, with its reason.", *findings]


def _unmeasured_figures_table(figures: Sequence[CertifiedFigure]) -> ReportTable:
    """Return what was not measured; what has the same reason and command shares a row."""
    names = defaultdict(list)
    for figure in figures:
        if figure.value is None:
            names[figure.why, figure.command].append(figure.name)
    rows = [
        ("; ".join(figure_names), why, command) for (why, command), figure_names in names.items()
    ]
    return ReportTable(("not measured", "because", "what would measure it"), rows, left=3)


def _figures_by_run(
    runs: Sequence[Path], read: RunsReader, measure: RunMeasure, subject: str, command: str
) -> CertifiedFigures:
    """Yield the figures of each run; for a run without any, why there is none, and the command that would give one."""
    for folder in runs:
        try:
            for figures in read([folder], lambda run, advance: list(measure(run, advance))):
                yield from figures
        except InputError as error:
            yield CertifiedFigure(f"{subject}, {folder.name}", command, why=str(error))


def _noise_figures(
    read_presentations: Callable[[], Presentations], command: str
) -> CertifiedFigures:
    """Yield measures of noise for each protocol and number of stakeholders, and the share of drifting weights in it."""
    report = measure_stability(read_presentations()).figures
    # with several judges or bands of quality, the last row of a protocol and size is of all
    rows = {}
    for row in [*report["noise"], *report["ratios"]]:
        rows[row["protocol"], row.get("stakeholders")] = row
    sizes = sorted((size or 0, protocol) for protocol, size in rows)
    max_size_by_protocol = {protocol: size for size, protocol in sizes}
    for (protocol, size), row in rows.items():
        label = protocol if size is None else f"{protocol}, {size} stakeholders"
        for measure, (measure_symbol, why) in _SYMBOL_AND_REASON_BY_MEASURE.items():
            if measure in row:
                estimate = row[measure]
                finding = ""
                if (
                    measure in _FINDING_TEXT_BY_MEASURE
                    and estimate
                    and size == max_size_by_protocol[protocol]
                ):
                    finding = (
                        f"{_FINDING_TEXT_BY_MEASURE[measure]} {label} by {estimate.value**0.5:.2g} "
                        "(standard deviation)"
                    )
                yield _certified_figure(
                    f"{measure_symbol} of {label}",
                    estimate,
                    estimate and estimate.clusters,
                    command,
                    why,
                    _NEW_RUNS_COMMAND,
                    finding,
                )
    drift = report["drift"]
    for row in drift:
        label = f"share of drifting weights in σ²_Sem of {row['protocol']}, {row['stakeholders']} stakeholders"
        yield _certified_figure(label, row["explained"], row["variants"], command)
    if not drift:
        remedy = "use protocols.decomposed-adaptive in the config"
        yield CertifiedFigure("drift of weights", remedy, why="the judge gives no weights")


def _signal_figures(
    read_presentations: Callable[[], Presentations], quoted_runs: str
) -> CertifiedFigures:
    report = measure_signal_to_noise(read_presentations()).figures
    command = f"jurygraph study signal {quoted_runs}"
    for name, estimate in report["together"].items():
        label = f"{name} of all groups together, of {report['protocol']}"
        yield _certified_figure(label, estimate, len(report["groups"]), command)


def _unearned_credit_figures(run: Run, advance: ProgressCallback) -> CertifiedFigures:
    report = credit.report(credit.read_rubric_scores(run, advance), random_graph_count=1).figures
    command = f"jurygraph study credit {shell_quote(run.folder)}"
    for rule, counting in (("flat", "with each criterion alone"), ("gear", "with its graph")):
        leakage = report["methods"][rule]["leakage"]
        name = f"unearned credit by {rule}, {run.folder.name}"
        finding = f"{{}} of a rubric's weight is unearned credit {counting} in {run.folder.name}"
        yield _certified_figure(name, leakage, leakage["cases"], command, finding=finding)


def _attack_figures(runs: Mapping[Path, CertifiedRun], file: Path | None) -> CertifiedFigures:
    if file is None:
        raise InputError(
            "no attacks are given; save what the command prints, and name the file with --attacks"
        )
    try:
        figures = json.loads(file.read_bytes())
        _require_attacked_judge(figures, runs)
        arm = figures["arms"][figures["configured"]]
        basis = f"{figures['tasks']} {figures['source']}"
        command = f"{figures['command']} > {shell_quote(file)}"
        for level, unit, noun, success, conditions in (
            (
                "attacks",
                "responses",
                "attacks",
                "passed in one verdict or more",
                f"{basis}; {describe_applied_attacks(figures)}",
            ),
            ("honest", "verdicts", "verdicts on honest responses", "passed", basis),
        ):
            share = arm[level][unit]
            estimate = {"value": share["rate"], "low": share["low"], "high": share["high"]}
            yield _certified_figure(
                f"{noun} that {success}",
                estimate,
                share["n"],
                command,
                finding=f"{{}} of {noun} {success} ({conditions})",
            )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{file}: is not what `jurygraph attack --json` prints ({error}); save that once more"
        ) from None


def _require_attacked_judge(attacks: Figures, runs: Mapping[Path, CertifiedRun]) -> None:
    """Raise InputError, with what differs, if another judge than that of a run was attacked; ValueError without one."""
    if "judge" not in attacks:
        raise ValueError("it is of a version that did not say which judge it attacked")
    attacked_judge = RunHeader.model_validate(attacks["judge"])
    for folder, run in runs.items():
        differences = "; ".join(judge_differences(run.judge, attacked_judge))
        if differences:
            raise InputError(
                f"--attacks: another judge was attacked than that of {folder}: {differences}; "
                f"attack the one of the run, whose config is {folder / CONFIG_FILE}"
            )


def _people_figures(
    runs: Sequence[Path], read: RunsReader, people: PeopleStudy | None
) -> CertifiedFigures:
    if people is None:
        raise InputError("no labels of people are given; name them with --labels")
    report = judge_report.report(people.join(read(runs, read_judgements))).figures
    agreements = {
        row["question"]: row for row in report["ceiling"] if row and row["value"] is not None
    }
    for question, agreement in agreements.items():
        yield _certified_figure(
            f"agreement of two people on {question}",
            agreement,
            agreement["n"],
            people.command,
            finding=f"two people agree about {{}} of the responses that both labelled, on {question}",
        )
    for judge in report["judges"]:
        judge_name = judge["name"]
        if judge["is_turned"]:
            judge_name += " turned round"
        closeness = "accuracy" if judge["distance"] is None else "distance"
        for name in (closeness, "kappa", "rank_correlation", "corrected"):
            label = f"{_LABEL_BY_AGREEMENT_FIGURE.get(name, name)} of {judge_name}"
            figure = _certified_figure(label, judge[name], judge["n"], people.command)
            if judge["distance"] is not None and name in ("distance", "corrected"):
                figure = figure._replace(unit=", in units of the labels")
            if name == closeness:
                conclusion = conclude_agreement(judge_name, judge)
                omissions = judge_report.describe_left_out_labels([judge])
                figure = figure._replace(conclusion=" ".join([conclusion, *omissions]))
            yield figure
        yield from _rate_figures(judge, judge_name, people.command)


def _rate_figures(judge: Figures, judge_name: str, command: str) -> CertifiedFigures:
    """Yield how often a judge of 0 or 1 is right on each of them: a training needs that it refuses what is bad.

    Neither is called good: of labels that name a fault, 1 is the fault.
    """
    if judge["tpr"] is None and judge["tnr"] is None:
        return
    positive_count = round(judge["base_rates"]["people"] * judge["n"])
    for rate, answer, count in (
        ("tpr", 1, positive_count),
        ("tnr", 0, judge["n"] - positive_count),
    ):
        yield _certified_figure(
            f"{rate.upper()} of {judge_name}",
            judge[rate],
            count,
            command,
            why="no label is of these",
            finding=f"{{}} of what people call {answer} is {answer} by {judge_name}",
        )


def _coverage_figures(run: Run, advance: ProgressCallback) -> CertifiedFigures:
    judged, failed, unsupported = [], [], []
    for group in run.group_records():
        unit = unit_name_of_task(run, group.key)
        for trace, _ in run.group(group):
            judged.append((trace.reward.coverage, unit))
            for verdict in trace.verdicts:
                if verdict.superseded or verdict.about != trace.response_id:
                    continue
                failed.append((verdict.status == "failed", unit))
                if verdict.needs_quotation:
                    unsupported.append((verdict.unsupported is not None, unit))
    command = (
        f"jurygraph show {shell_quote(run.folder)} --columns coverage,status,gates,unsupported"
    )
    for name, finding, rows in (
        # coverage counts what a gate set as judged
        ("judged share of the weight", "of the weight was judged or set by a gate", judged),
        ("verdicts that failed", "of the verdicts failed", failed),
        ("unsupported findings", "of the findings had no quotation that counts", unsupported),
    ):
        if rows:
            yield _certified_figure(
                f"{name}, {run.folder.name}",
                share_with_cluster_interval(*zip(*rows, strict=True)),
                len(rows),
                command,
                finding=f"{{}} {finding} in {run.folder.name}",
            )


def _reliability_figures(run: Run, advance: ProgressCallback) -> CertifiedFigures:
    """Yield how far two samples of a question agree, where that is least, and how far judges agree."""
    report = reliability.report(reliability.read_scores(run, advance)).figures
    command = f"jurygraph study reliability {shell_quote(run.folder)}"
    sampled = [question for question in report["questions"] if question["within_response"]]
    if sampled:
        least = min(sampled, key=lambda question: question["within_response"]["value"])
        subject = f"two samples on {least['name']}"
        finding = f"{subject} agree by ICC {{}} in {run.folder.name}, the least of {len(sampled)} questions"
        name = f"correlation of {subject}, {run.folder.name}"
        yield _certified_figure(
            name, least["within_response"], least["responses"], command, finding=finding
        )
    else:
        name = f"correlation of two samples, {run.folder.name}"
        yield CertifiedFigure(name, _SAMPLES_HINT, why="each question was asked once")
    if "judges" not in report:
        yield CertifiedFigure(
            f"votes of a jury, {run.folder.name}",
            _SEVERAL_JUDGES_HINT,
            why="one judge alone gave scores",
        )
        return
    for row in report["judges"]:
        name = f"α of the judges on {row['name']}, {run.folder.name}"
        yield _certified_figure(name, row["alpha"], row["responses"], command)
