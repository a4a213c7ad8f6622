"""Tables of a consensus: agents, annotators, ambiguous items, stability and agreement."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jurygraph.cli.render.text import escape_line, format_table

if TYPE_CHECKING:
    from jurygraph.studies.consensus import ConsensusReport
    from jurygraph.studies.consensus.models import AgentComparison

_MAX_ROWS, _DIGITS = 10, 3  # three decimals, as in the tables of the paper
_METHOD_NAMES = {
    "majority": "majority vote",
    "dawid-skene": "Dawid–Skene (hard)",
    "stableval": "posterior expected credit",
}
_INTERVAL_SOURCES = {"items": "resampled items", "prompts": "resampled prompts", "refits": "refitted resamples"}


def consensus_lines(report: "ConsensusReport", with_comparison: bool) -> Iterator[str]:
    """Return the lines of all tables; with `with_comparison`, also the tables that compare all methods."""
    yield from _heading(report)
    parts = [
        _agent_table(report),
        _comparison_table(report) if with_comparison else [],
        _annotator_table(report),
        _item_table(report),
    ]
    parts += [_findings_table(report) if with_comparison else [], _stability_table(report), _agreement_table(report)]
    for part in parts:
        if part:
            yield ""
            yield from part


def _heading(report: "ConsensusReport") -> Iterator[str]:
    from jurygraph.studies.consensus.votes import format_label

    counts = report.counts
    credit = ", ".join(
        f"{format_label(one)} ({value:g})" for one, value in zip(report.classes, report.values, strict=True)
    )
    totals = {"labels": counts.rows - counts.abstained, "items": counts.items, "annotators": counts.annotators}
    if counts.gold:
        totals["gold items"] = counts.gold
    yield ", ".join(f"{name}: {count}" for name, count in totals.items())
    yield escape_line(f"classes and credit: {credit}", 400)
    steps = f"{'converged' if report.converged else 'stopped'} after {report.iterations} steps"
    yield f"method {report.method}; preset {report.preset}, {steps}, log-likelihood {report.log_likelihood:.3f}"


def _format_interval(interval: Sequence[float | None] | None) -> str:
    low, high = interval or (None, None)
    return "-" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _omitted_line(total: int) -> list[str]:
    return [f"... and {total - _MAX_ROWS} more (--json)"] if total > _MAX_ROWS else []


def _agent_table(report: "ConsensusReport") -> list[str]:
    ranked = sorted(report.agents.items(), key=lambda one: (-one[1].score, one[0]))
    rows = [[name, one.score, _format_interval((one.low, one.high)), one.items] for name, one in ranked]
    header = ["agent", "score", f"95 % ({_INTERVAL_SOURCES[report.intervals]})", "items"]
    return format_table(header, rows, digits=_DIGITS) if rows else []


def _comparison_table(report: "ConsensusReport") -> list[str]:
    ranked = sorted(report.comparison.items(), key=lambda one: (-one[1].stableval, one[0]))
    rows = [
        [
            name,
            one.majority,
            one.dawid_skene,
            one.stableval,
            f"{round(one.change, 3) + 0.0:+.3f}",
            one.items,
            _format_ranks(one),
        ]
        for name, one in ranked
    ]
    header = ["agent", "MV", "DS", "PEC", "Δ(PEC-MV)", "items", "ranks MV, DS, PEC"]
    return format_table(header, rows, digits=_DIGITS) if rows else []


def _format_ranks(one: "AgentComparison") -> str:
    from jurygraph.aggregation.consensus.resampling import METHODS

    return ", ".join(f"{one.ranks[method]:g}" for method in METHODS)


def _findings_table(report: "ConsensusReport") -> list[str]:
    findings = report.findings
    high = f"{findings.highly_ambiguous} ({findings.highly_ambiguous_share:.2%})"
    rows: list[list[object]] = [
        ["correlation of scores (MV, PEC)", findings.correlation],
        ["largest change of a score", findings.greatest_change],
        ["agents with a changed rank", f"{findings.rank_changes} / {report.counts.agents}"],
        ["mean ambiguity (PEC)", findings.mean_ambiguity],
        ["highly ambiguous items (> 0.3)", high],
    ]
    return format_table(["MV and PEC", ""], rows, digits=_DIGITS)


def _annotator_table(report: "ConsensusReport") -> list[str]:
    ranked = sorted(report.annotators.items(), key=lambda one: (-one[1].accuracy, one[0]))
    rows = [
        [name, one.accuracy, _format_interval(one.accuracy_interval), one.leniency, one.strictness, one.labels]
        for name, one in ranked[:_MAX_ROWS]
    ]
    return [
        *format_table(["annotator", "accuracy", "95 %", "leniency", "strictness", "labels"], rows, digits=_DIGITS),
        *_omitted_line(len(ranked)),
    ]


def _item_table(report: "ConsensusReport") -> list[str]:
    from jurygraph.studies.consensus.votes import format_label

    ranked = sorted(report.items.items(), key=lambda one: (-one[1].ambiguity, one[0]))
    rows = []
    for name, one in ranked[:_MAX_ROWS]:
        likeliest = max(one.posterior)
        labels = [format_label(label) for label, p in zip(report.classes, one.posterior, strict=True) if p == likeliest]
        rows.append([name, one.ambiguity, likeliest, " or ".join(labels)])
    return [
        *format_table(["most ambiguous items", "ambiguity", "posterior", "class"], rows, digits=_DIGITS),
        *_omitted_line(len(ranked)),
    ]


def _stability_table(report: "ConsensusReport") -> list[str]:
    if report.stability is None:
        return []
    rows = [
        [_METHOD_NAMES[method], one.tau_b, one.rank_sd, one.rank_range, one.score_shift]
        for method, one in report.stability.items()
    ]
    subsets = next(iter(report.stability.values())).subsets
    header = [f"stability ({subsets} subsets)", "mean τ_b", "mean rank sd", "mean rank range", "mean score shift"]
    return format_table(header, rows, digits=_DIGITS)


def _agreement_table(report: "ConsensusReport") -> list[str]:
    counts = report.counts
    rows: list[list[object]] = [
        ["unanimous items", f"{report.agreement.unanimous:.1%}"],
        ["agreeing pairs of labels, mean over items", f"{report.agreement.pairwise:.1%}"],
        ["items decided by one vote", len(report.decided_by_one)],
        [f"items with a tie ({report.ties.rule})", len(report.ties.items)],
        ["rows that repeat an item and annotator", counts.repeated],
        ["omitted abstentions", counts.abstained],
    ]
    return format_table(["agreement", ""], rows)
