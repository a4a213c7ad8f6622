"""`jurygraph consensus`: fuse annotators' labels, estimate how each annotator errs, and how stable the ranking is."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from jurygraph.aggregation.consensus.gibbs import CHAINS, DRAWS
from jurygraph.aggregation.consensus.resampling import METHODS, Method
from jurygraph.cli.options import AsJson, PlotFile, option
from jurygraph.cli.output_files import refuse_picture, refuse_unwritable, write_output, write_output_with
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import escape_line, omission_line, print_message, print_report, table_section
from jurygraph.errors import InputError
from jurygraph.judges.panel import to_confusions
from jurygraph.sources.ratings import NUMERAL, confusions_to_json, read_gold, read_votes
from jurygraph.studies.consensus import (
    ConsensusReport,
    FittedConsensus,
    Settings,
    VoteColumns,
    collect_votes,
    fit_consensus,
    report,
)
from jurygraph.studies.consensus.bayes import (
    PosteriorReport,
    PosteriorSettings,
    report_posterior,
    sample_posterior,
)
from jurygraph.studies.consensus.study import ONE_UNIT, MethodStability
from jurygraph.studies.consensus.votes import format_label
from jurygraph.studies.plots import draw_consensus

_MAX_ROWS, _DIGITS = 10, 3  # three decimals, as in the tables of the paper
_METHOD_NAMES = {
    "majority": "majority vote",
    "dawid-skene": "Dawid–Skene (hard)",
    "stableval": "posterior expected credit",
}
_INTERVAL_SOURCES = {
    "items": "t over items",
    "prompts": "t over prompts",
    "refits": "t, with refits",
    "resampled-items": "resampled items",
    "resampled-prompts": "resampled prompts",
    "published-refits": "the paper's 10 refits",
}
_ANNOTATOR_INTERVAL_SOURCES = {"refits": "refits", "posterior": "classes taken as known"}


Classes = Annotated[str | None, option("A,B", "All labels, from low to high.", show_default="the numbers in the data")]
Posterior = Annotated[
    Literal["em", "gibbs"],
    option(None, "Fit the model, or sample its full posterior, for credible intervals.", show_default=True),
]
_NOT_COMBINED = {
    "em": ("chains", "draws"),
    "gibbs": ("preset", "method", "compare", "bootstrap", "refit", "subsets", "fraction", "plot"),
}
"""Options that do not apply, by value of --posterior."""
Preset = Annotated[
    Literal["converged", "paper"] | None,
    option(None, "How to fit the model.", show_default="converged; see docs/consensus.md"),
]
_METHOD_DEFAULT = "stableval; majority if the panel is too small"
MethodOption = Annotated[
    Literal["stableval", "dawid-skene", "majority"] | None,
    option(None, "Method for scores of agents and items.", show_default=_METHOD_DEFAULT),
]
Refit = Annotated[
    int | None,
    option("N", "Resamples to refit for intervals; 0: none.", show_default="200 if that takes seconds", min=0),
]
Fraction = Annotated[float, typer.Option(min=0.0, max=1.0, metavar="P", help="Share of the annotators in a subset.")]
Seed = Annotated[
    int | None,
    option("S", "Seed of all draws.", show_default="0; 42 for stability by preset paper", min=0, max=2**32 - 1),
]


def _column(*names: str) -> Any:
    return option("C", f"Column for `{names[0][2:]}`.", *names)


def _draws(help_text: str) -> Any:
    return option("N", help_text, show_default=True, min=0)


def consensus(
    context: typer.Context,
    ratings: Annotated[list[Path], typer.Argument(metavar="RATINGS", help="CSV, JSONL or Parquet files, .gz too.")],
    item: Annotated[str | None, _column("--item")] = None,
    annotator: Annotated[str | None, _column("--annotator", "--reviewer")] = None,
    label: Annotated[str | None, _column("--label", "--score")] = None,
    agent: Annotated[str | None, _column("--agent")] = None,
    group: Annotated[str | None, _column("--group")] = None,
    dimension: Annotated[str | None, option("D", "Use this dimension only.")] = None,
    classes: Classes = None,
    values: Annotated[str | None, option("V,W", "Credit of each class.", show_default="evenly from 0 to 1")] = None,
    gold: Annotated[Path | None, option("F", "Items with a known label, in the same columns.")] = None,
    posterior: Posterior = "em",
    chains: Annotated[int, _draws("Chains of --posterior gibbs.")] = CHAINS,
    draws: Annotated[int, _draws("Draws that each chain keeps.")] = DRAWS,
    preset: Preset = None,
    method: MethodOption = None,
    compare: Annotated[bool, typer.Option("--compare", help="Compare all methods.")] = False,
    bootstrap: Annotated[int, _draws("Resamples for intervals of agents by preset paper; 0: no intervals.")] = 1000,
    refit: Refit = None,
    subsets: Annotated[int, _draws("Subsets of annotators for stability; 0: none.")] = 50,
    fraction: Fraction = 0.7,
    seed: Seed = None,
    jobs: Annotated[int | None, option("N", "Processes.", show_default="one for each CPU", min=1)] = None,
    artifact: Annotated[Path | None, option("F", "Write the confusions as JSON, for later plans.")] = None,
    plot: PlotFile = None,
    json: AsJson = False,
) -> None:
    """Aggregate annotators' labels, with their disagreement (STABLEVAL).

    The confusions of each annotator and the class probabilities of each item are estimated together. An agent's score
    is the mean expected credit of its items. A row of RATINGS is a label: `item`, `annotator` (or `reviewer`), `label`
    (or `score`), and optionally `agent`, `group`, `dimension`. An empty label is an abstention.

    Exit codes: 0 done; 2 invalid input, such as a label that is not a class.

    \b
    Example:
        jurygraph consensus ratings.csv
        jurygraph consensus votes.csv --item id --classes bad,ok,good --compare --plot consensus.svg
        jurygraph consensus ratings.csv --posterior gibbs
    """
    _refuse_other_posterior(context, posterior)
    _refuse_unwritable(artifact, plot, list(map(str, [*ratings, *([gold] if gold else [])])))
    columns = {"item": item, "annotator": annotator, "label": label, "agent": agent, "group": group}
    ballots = _read_ballots(ratings, {name: one for name, one in columns.items() if one}, dimension, classes, gold)
    credit, processes = _parse_values(values) if values is not None else None, jobs or os.cpu_count() or 1
    if posterior == "gibbs":
        sampling = PosteriorSettings(credit, chains, draws, seed or 0, processes)
        _report_posterior(ballots, sampling, json, artifact)
        return
    settings = Settings(preset, method, credit, bootstrap, refit, subsets, fraction, seed, processes)
    fitted = fit_consensus(ballots, settings)
    with progress("stability", 2 * fitted.settings.subsets, "subsets") as advance:
        stability, with_items = fitted.stability(advance), fitted.stability(advance, with_items=True)
    with progress("refitting", fitted.refit_count, "resamples") as advance:
        findings = report(fitted, stability, fitted.refits(advance), with_items)
    print_report(json, findings, _report_lines(findings, compare))
    _print_warnings(fitted)
    _write_files(fitted, findings, artifact, plot)


def _refuse_other_posterior(context: typer.Context, posterior: str) -> None:
    """Raise `InputError` for the first option in the command line that does not apply."""
    for name in _NOT_COMBINED[posterior]:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(f"--{name}: does not apply to --posterior {posterior}; leave one of the two out")


def _report_posterior(ballots: VoteColumns, settings: PosteriorSettings, json: bool, artifact: Path | None) -> None:
    with progress("sampling", settings.chains, "chains") as advance:
        sampled = sample_posterior(ballots, settings, advance)
    findings = report_posterior(ballots, settings, sampled)
    print_report(json, findings, _posterior_lines(findings))
    for warning in findings.warnings:
        print_message(warning)
    if ballots.agent is None:
        print_message("no row has an agent: no scores of agents")
    if artifact is not None:
        write_output(str(artifact), [confusions_to_json(to_confusions(sampled, ballots.classes))])


def _refuse_unwritable(artifact: Path | None, plot: Path | None, sources: Sequence[str]) -> None:
    if artifact is not None and plot is not None and artifact.resolve() == plot.resolve():
        raise InputError(f"{plot}: --artifact and --plot name the same file; name two files")
    refuse_picture(plot, *sources)
    if artifact is not None:
        refuse_unwritable(str(artifact), *sources)


def _print_warnings(fitted: FittedConsensus) -> None:
    for warning in fitted.warnings:
        print_message(warning)
    if fitted.ballots.agent is None:
        print_message("no row has an agent: no scores of agents and no stability")
    elif fitted.no_stability_reason is not None:
        print_message(f"stability was not measured: {fitted.no_stability_reason}")
    elif fitted.units == 1:
        print_message(f"stability with items drawn too was not measured: {ONE_UNIT}")
    if fitted.no_refits_reason is not None:
        problem = "annotators' intervals take the items' classes as known, and are too narrow"
        print_message(f"{problem}: {fitted.no_refits_reason}")


def _read_ballots(
    ratings: Sequence[Path], columns: Mapping[str, str], dimension: str | None, classes: str | None, gold: Path | None
) -> VoteColumns:
    files = [read_votes(path, columns) for path in ratings]
    for file in files:
        for column, hint in file.unread.items():
            if hint is not None:
                print_message(f"{file.path}: column {column!r} is not read; {hint}")
    gold_columns = {name: column for name, column in columns.items() if name in ("item", "agent", "label")}
    gold_labels = read_gold(gold, gold_columns) if gold is not None else {}
    return collect_votes(files, dimension, _split_list(classes) if classes is not None else (), gold_labels)


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _parse_values(text: str) -> list[float]:
    for part in _split_list(text):
        if NUMERAL.fullmatch(part) is None or not math.isfinite(float(part)):
            raise InputError(f"--values: expected the credit of each class, such as 0,0.5,1, got {part!r}")
    return [float(part) for part in _split_list(text)]


def _write_files(fitted: FittedConsensus, findings: ConsensusReport, artifact: Path | None, plot: Path | None) -> None:
    if artifact is not None and fitted.method == "majority" and fitted.settings.method is None:  # the panel is small
        print_message(f"{artifact}: not written, because the majority vote has no confusions; use --method stableval")
    elif artifact is not None:
        write_output(str(artifact), [confusions_to_json(to_confusions(fitted.model, fitted.ballots.classes))])
    if plot is not None:
        write_output_with(str(plot), lambda draft: draw_consensus(findings, draft, plot.suffix))


def _report_lines(report: ConsensusReport, with_comparison: bool) -> Iterator[str]:
    """Return the lines of all tables; with `with_comparison`, also the tables that compare all methods."""
    yield from _heading(report)
    ranked = sorted(report.agents.items(), key=lambda item: (-item[1].score, item[0]))
    rows = [[name, one.score, _format_interval((one.low, one.high)), one.items] for name, one in ranked]
    header = ["agent", "score", f"95 % ({_INTERVAL_SOURCES[report.intervals]})", "items"]
    yield from table_section(header, rows, digits=_DIGITS)
    if with_comparison:
        yield from _comparison_table(report)
    yield from _annotator_table(report, f"95 % ({_ANNOTATOR_INTERVAL_SOURCES[report.annotator_intervals]})")
    yield from _item_table(report)
    if with_comparison:
        yield from _findings_table(report)
    yield from _stability_table("stability ({} subsets)", report.stability)
    yield from _stability_table("with items drawn too ({} subsets)", report.stability_with_items)
    yield from _rank_table("P(rank), items drawn too", report)
    yield from _agreement_table(report)


def _posterior_lines(report: PosteriorReport) -> Iterator[str]:
    """Return the lines of all tables of a sampled posterior."""
    sampling = report.sampling
    yield from _totals(report)
    yield f"full posterior by Gibbs sampling: {sampling.chains} chains of {sampling.draws} draws"
    sizes = zip(("R-hat", "bulk", "tail"), (sampling.r_hat, sampling.bulk_ess, sampling.tail_ess), strict=True)
    worst = {name: "unknown" if size is None else f"{size:.{3 if name == 'R-hat' else 0}f}" for name, size in sizes}
    yield f"largest R-hat {worst['R-hat']}, smallest effective number of draws {worst['bulk']} (tails {worst['tail']})"
    yield f"labels that are guesses, because the item is hard: {sampling.guessing:.1%}"
    ranked = sorted(report.agents.items(), key=lambda item: (-item[1].score, item[0]))
    rows = [
        [
            name,
            one.score,
            *map(_format_interval, ((one.low, one.high), (one.population_low, one.population_high))),
            one.items,
        ]
        for name, one in ranked
    ]
    header = ["agent", "score", "95 % credible (these items)", "95 % credible (population)", "items"]
    yield from table_section(header, rows, digits=_DIGITS)
    yield from _rank_table("P(rank), these items", report)
    yield from _annotator_table(report, "95 % credible")
    yield from _item_table(report)


def _totals(report: ConsensusReport | PosteriorReport) -> Iterator[str]:
    counts = report.counts
    totals = {"labels": counts.rows - counts.abstained, "items": counts.items, "annotators": counts.annotators}
    if counts.gold:
        totals["gold items"] = counts.gold
    yield ", ".join(f"{name}: {count}" for name, count in totals.items())
    classes = zip(map(format_label, report.classes), report.values, strict=True)
    yield escape_line(f"classes and credit: {', '.join(f'{name} ({value:g})' for name, value in classes)}", 400)


def _heading(report: ConsensusReport) -> Iterator[str]:
    yield from _totals(report)
    steps = f"{'converged' if report.converged else 'stopped'} after {report.iterations} steps"
    fit = f"model fitted with preset {report.preset}: {steps}, log-likelihood {report.log_likelihood:.3f}"
    yield f"scores by {_METHOD_NAMES[report.method]} (method {report.method}); {fit}"


def _format_interval(interval: Sequence[float | None] | None) -> str:
    low, high = interval or (None, None)
    return "-" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _comparison_table(report: ConsensusReport) -> Iterator[str]:
    rows = []
    for name, one in sorted(report.comparison.items(), key=lambda item: (-item[1].stableval, item[0])):
        change, ranks = f"{round(one.change, 3) + 0.0:+.3f}", ", ".join(f"{one.ranks[method]:g}" for method in METHODS)
        rows.append([name, one.majority, one.dawid_skene, one.stableval, change, one.items, ranks])
    header = ["agent", "MV", "DS", "PEC", "Δ(PEC-MV)", "items", "ranks MV, DS, PEC"]
    return table_section(header, rows, digits=_DIGITS)


def _findings_table(report: ConsensusReport) -> Iterator[str]:
    findings = report.findings
    rows: list[list[object]] = [
        ["correlation of scores (MV, PEC)", findings.correlation],
        ["largest change of a score", findings.greatest_change],
        ["agents with a changed rank", f"{findings.rank_changes} / {report.counts.agents}"],
        ["mean ambiguity (PEC)", findings.mean_ambiguity],
        ["highly ambiguous items (> 0.3)", f"{findings.highly_ambiguous} ({findings.highly_ambiguous_share:.2%})"],
    ]
    return table_section(["MV and PEC", ""], rows, digits=_DIGITS)


def _annotator_table(report: ConsensusReport | PosteriorReport, interval: str) -> Iterator[str]:
    ranked = sorted(report.annotators.items(), key=lambda item: (-item[1].accuracy, item[0]))
    rows = [
        [name, one.accuracy, _format_interval(one.accuracy_interval), one.leniency, one.strictness, one.labels]
        for name, one in ranked
    ]
    header = ["annotator", "accuracy", interval, "leniency", "strictness", "labels"]
    return table_section(header, rows, digits=_DIGITS, most=_MAX_ROWS)


def _item_table(report: ConsensusReport | PosteriorReport) -> Iterator[str]:
    ranked = sorted(report.items.items(), key=lambda item: (-item[1].ambiguity, item[0]))
    rows = []
    for name, one in ranked[:_MAX_ROWS]:
        likeliest = max(one.posterior)
        labels = [format_label(label) for label, p in zip(report.classes, one.posterior, strict=True) if p == likeliest]
        rows.append([name, one.ambiguity, likeliest, " or ".join(labels)])
    yield from table_section(["most ambiguous items", "ambiguity", "posterior", "class"], rows, digits=_DIGITS)
    yield from omission_line(len(ranked), _MAX_ROWS)


def _stability_table(title: str, stability: Mapping[Method, MethodStability] | None) -> Iterator[str]:
    if stability is not None:
        rows = [
            [_METHOD_NAMES[method], one.tau_b, one.rank_sd, one.rank_range, one.score_shift]
            for method, one in stability.items()
        ]
        subsets = next(iter(stability.values())).subsets
        header = [title.format(subsets), "mean τ_b", "mean rank sd", "mean rank range", "mean score shift"]
        yield from table_section(header, rows, digits=_DIGITS)


def _rank_table(title: str, report: ConsensusReport | PosteriorReport) -> Iterator[str]:
    """Return the lines of P(rank) of the first agents, for the first ranks; none for one agent."""
    scores = {name: one.score for name, one in report.agents.items()}
    ranked = sorted((report.rank_probabilities or {}).items(), key=lambda item: (-scores[item[0]], item[0]))
    ranks = min(_MAX_ROWS, len(scores))
    rows = [[name, *(f"{share:.2f}" for share in shares[:ranks])] for name, shares in ranked]
    return table_section([title, *map(str, range(1, ranks + 1))], rows if ranks > 1 else [], most=_MAX_ROWS)


def _agreement_table(report: ConsensusReport) -> Iterator[str]:
    counts = report.counts
    rows: list[list[object]] = [
        ["unanimous items", f"{report.agreement.unanimous:.1%}"],
        ["agreeing pairs of labels, mean over items", f"{report.agreement.pairwise:.1%}"],
        ["items decided by one vote", len(report.decided_by_one)],
        [f"items with a tie ({report.ties.rule})", len(report.ties.items)],
        ["rows that repeat an item and annotator", counts.repeated],
        ["omitted abstentions", counts.abstained],
    ]
    return table_section(["agreement", ""], rows)
