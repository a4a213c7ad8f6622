"""The tables and plots of a consensus, from its figures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AnnotatorQuality, Credited
from jurygraph.aggregation.consensus.resampling import METHODS, Method
from jurygraph.messages import shorten
from jurygraph.studies.consensus.votes import VoteColumns, format_label
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable

# three decimals, as in the tables of the paper
_MAX_ROWS = 10
_DIGITS = 3
_MAX_AGENTS = 25
_MAX_NAMED = 12
_MAX_SCALE = 400
_METHOD_NAMES: Mapping[Method, str] = {
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
}
_RATES = ("accuracy", "leniency", "strictness")
Figures = dict[str, Any]


def vote_figures(ballots: VoteColumns, values: Sequence[float], credited: Credited) -> Figures:
    """Return the scale, the sizes of the data, and what is known of the items.

    `values` are the credits of the classes, [K]. In `counts`, `rows` include the `abstained`, and `repeated` rows count
    like any other; `unlabelled` items have only abstentions. Items have the posterior probability of each class, [K],
    and the ambiguity: 1 minus the greatest.
    """
    votes = credited.votes
    items = zip(credited.items, credited.posterior.tolist(), credited.ambiguity().tolist(), strict=True)
    return {
        "classes": ballots.classes,
        "values": values,
        "counts": {
            "rows": len(votes.item_of_row),
            "repeated": votes.repeated_rows,
            "abstained": votes.abstentions,
            "items": len(votes.items),
            "unlabelled": int(np.count_nonzero(~votes.has_label)),
            "annotators": len(votes.annotators),
            "agents": len(set(ballots.agent or ())),
            "gold": len(ballots.gold),
        },
        "agreement": consensus.agreement(votes),
        "items": {str(name): {"posterior": shares, "ambiguity": one} for name, shares, one in items},
    }


def annotator_figures(quality: AnnotatorQuality, intervals: Sequence[Sequence[float]] = ()) -> Figures:
    """Return the error rates of an annotator, with the 95 % `intervals` of refits; None without refits."""
    figures: Figures = {name: getattr(quality, name) for name in (*_RATES, "labels")}
    known = [ends if np.isfinite(ends).all() else None for ends in intervals] or [None] * len(_RATES)
    return figures | {f"{name}_interval": ends for name, ends in zip(_RATES, known, strict=True)}


def totals(figures: Figures) -> Iterator[str]:
    """Yield the sizes of the data, and the scale."""
    counts = figures["counts"]
    sizes = {"labels": counts["rows"] - counts["abstained"], "items": counts["items"]}
    sizes["annotators"] = counts["annotators"]
    if counts["gold"]:
        sizes["gold items"] = counts["gold"]
    yield ", ".join(f"{name}: {count}" for name, count in sizes.items())
    classes = zip(map(format_label, figures["classes"]), figures["values"], strict=True)
    scale = ", ".join(f"{name} ({value:g})" for name, value in classes)
    yield shorten(f"classes and credit: {scale}", _MAX_SCALE)


def annotator_table(annotators: Mapping[str, Figures]) -> ReportTable:
    """Return the annotators, the most accurate first, with the intervals of refits if there are any."""
    is_refitted = any(one["accuracy_interval"] for one in annotators.values())
    rows: list[list[object]] = []
    for name, one in sorted(annotators.items(), key=lambda item: (-item[1]["accuracy"], item[0])):
        interval = [format_range(one["accuracy_interval"])] if is_refitted else []
        rows.append([name, one["accuracy"], *interval, one["leniency"], one["strictness"], one["labels"]])
    interval = ["95 % (refits)"] if is_refitted else []
    header = ("annotator", "accuracy", *interval, "leniency", "strictness", "labels")
    return ReportTable(header, rows, digits=_DIGITS, most=_MAX_ROWS)


def item_table(figures: Figures) -> ReportTable:
    """Return the items, the most ambiguous first."""
    rows = []
    for name, one in sorted(figures["items"].items(), key=lambda item: (-item[1]["ambiguity"], item[0])):
        likeliest = max(one["posterior"])
        shares = zip(figures["classes"], one["posterior"], strict=True)
        labels = " or ".join(format_label(label) for label, share in shares if share == likeliest)
        rows.append([name, one["ambiguity"], likeliest, labels])
    return ReportTable(
        ("most ambiguous items", "ambiguity", "posterior", "class"), rows, digits=_DIGITS, most=_MAX_ROWS
    )


def format_range(interval: Sequence[float | None] | None) -> str:
    """Format the ends of an interval; a dash if there is none."""
    low, high = interval or (None, None)
    return "-" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def report_consensus(figures: Figures, compares_methods: bool) -> Report:
    """Return the report of a fitted consensus; with `compares_methods`, its tables compare all methods."""
    ranked = sorted(figures["agents"].items(), key=lambda item: (-item[1].score, item[0]))
    steps = f"{'converged' if figures['converged'] else 'stopped'} after {figures['iterations']} steps"
    likelihood = f"log-likelihood {figures['log_likelihood']:.3f}"
    method = f"{_METHOD_NAMES[figures['method']]} (method {figures['method']})"
    rows = [[name, one.score, format_range((one.low, one.high)), one.items] for name, one in ranked]
    header = ("agent", "score", f"95 % ({_INTERVAL_SOURCES[figures['intervals']]})", "items")
    sections: list[str | ReportTable] = [
        *totals(figures),
        f"scores by {method}; model fitted with preset {figures['preset']}: {steps}, {likelihood}",
        ReportTable(header, rows, digits=_DIGITS),
    ]
    if compares_methods:
        sections.append(_comparison_table(figures["comparison"]))
    sections += [annotator_table(figures["annotators"]), item_table(figures)]
    if compares_methods:
        sections.append(_findings_table(figures["findings"], figures["counts"]["agents"]))
    sections += [
        *_stability_table("stability ({} subsets)", figures["stability"]),
        *_stability_table("with items drawn too ({} subsets)", figures["stability_with_items"]),
        _agreement_table(figures),
    ]
    return Report(figures, sections, [*figures["warnings"], *figures["limits"]], list(_plots(figures, ranked)))


def _comparison_table(comparison: Mapping[str, Figures]) -> ReportTable:
    rows = []
    for name, one in sorted(comparison.items(), key=lambda item: (-item[1]["stableval"], item[0])):
        change = f"{round(one['change'], 3) + 0.0:+.3f}"
        ranks = ", ".join(f"{one['ranks'][method]:g}" for method in METHODS)
        rows.append([name, one["majority"], one["dawid_skene"], one["stableval"], change, one["items"], ranks])
    header = ("agent", "MV", "DS", "PEC", "Δ(PEC-MV)", "items", "ranks MV, DS, PEC")
    return ReportTable(header, rows, digits=_DIGITS)


def _findings_table(findings: Figures, agents: int) -> ReportTable:
    share = f"{findings['highly_ambiguous']} ({findings['highly_ambiguous_share']:.2%})"
    rows: list[list[object]] = [
        ["correlation of scores (MV, PEC)", findings["correlation"]],
        ["largest change of a score", findings["greatest_change"]],
        ["agents with a changed rank", f"{findings['rank_changes']} / {agents}"],
        ["mean ambiguity (PEC)", findings["mean_ambiguity"]],
        ["highly ambiguous items (> 0.3)", share],
    ]
    return ReportTable(("MV and PEC", ""), rows, digits=_DIGITS)


def _stability_table(title: str, stability: Mapping[Method, Figures] | None) -> Iterator[ReportTable]:
    if stability is not None:
        names = ("tau_b", "rank_sd", "rank_range", "score_shift")
        rows = [[_METHOD_NAMES[method], *(one[name] for name in names)] for method, one in stability.items()]
        subsets = next(iter(stability.values()))["subsets"]
        header = (title.format(subsets), "mean τ_b", "mean rank sd", "mean rank range", "mean score shift")
        yield ReportTable(header, rows, digits=_DIGITS)


def _agreement_table(figures: Figures) -> ReportTable:
    rows: list[list[object]] = [
        ["unanimous items", f"{figures['agreement'].unanimous:.1%}"],
        ["agreeing pairs of labels, mean over items", f"{figures['agreement'].pairwise:.1%}"],
        ["items decided by one vote", len(figures["decided_by_one"])],
        [f"items with a tie ({figures['ties']['rule']})", len(figures["ties"]["items"])],
        ["rows that repeat an item and annotator", figures["counts"]["repeated"]],
        ["omitted abstentions", figures["counts"]["abstained"]],
    ]
    return ReportTable(("agreement", ""), rows)


def _plots(figures: Figures, ranked: Sequence[tuple[str, consensus.AgentScore]]) -> Iterator[Plot]:
    """Return agents with intervals, a map of annotators, the ambiguity of items, and the stability of methods."""
    best = ranked[:_MAX_AGENTS]
    if best:
        scores = {name: IntervalCell(one.score, one.low, one.high) for name, one in best}
        shown = "" if len(best) == len(ranked) else f", the first {len(best)} of {len(ranked)}"
        source = _INTERVAL_SOURCES[figures["intervals"]]
        title = f"agents{shown}: mean credit ({figures['method']}); 95 %, {source}"
        yield Plot(title, "points", [PlotSeries.with_intervals("score", scores)])
    people = figures["annotators"]
    points = [PlotSeries(name, [one["leniency"]], [one["strictness"]]) for name, one in people.items()]
    if len(people) > _MAX_NAMED:
        leniency = [one["leniency"] for one in people.values()]
        points = [PlotSeries("annotators", leniency, [one["strictness"] for one in people.values()])]
    yield Plot("annotators", "points", points, "strictness", "leniency")
    ambiguity = PlotSeries("items", [one["ambiguity"] for one in figures["items"].values()])
    title = f"ambiguity ({figures['method']})"
    marks = [(consensus.HIGH, "highly ambiguous")]
    yield Plot(title, "histogram", [ambiguity], "1 - greatest posterior", "items", marks, has_log_scale=True)
    if figures["stability"] is not None:
        measured = {"subsets of annotators": figures["stability"]}
        measured["items drawn too"] = figures["stability_with_items"] or {}
        series = [
            PlotSeries(kind, [one["tau_b"] for one in by_method.values()], list(by_method))
            for kind, by_method in measured.items()
        ]
        yield Plot("stability: mean τ_b (high: steady)", "points", series)
