"""A consensus as tables, in the order in which one asks: who is how good, who says so, what is unclear, how steady."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jurygraph.cli.text import table, visible

if TYPE_CHECKING:
    from jurygraph.studies.consensus import ConsensusReport
    from jurygraph.studies.consensus.findings import Compared

_FIRST = 10
_NAMES = {"majority": "majority vote", "dawid-skene": "Dawid–Skene (hard)", "stableval": "posterior expected credit"}
_OF = {"items": "items drawn anew", "prompts": "prompts drawn anew", "refits": "refits of resamples"}


def lines(found: "ConsensusReport", compare: bool) -> Iterator[str]:
    """The tables, and with `compare` those of all methods side by side."""
    yield from _heading(found)
    parts = [_agents(found), _comparison(found) if compare else [], _annotators(found), _items(found)]
    parts += [_key_findings(found) if compare else [], _stability(found), _agreement(found)]
    for part in parts:
        if part:
            yield ""
            yield from part


def _heading(found: "ConsensusReport") -> Iterator[str]:
    from jurygraph.studies.consensus.ballots import shown

    counts = found.counts
    credit = ", ".join(f"{shown(one)} ({value:g})" for one, value in zip(found.classes, found.values, strict=True))
    told = {"labels": counts.rows - counts.abstained, "items": counts.items, "annotators": counts.annotators}
    if counts.gold:
        told["items of gold"] = counts.gold
    yield ", ".join(f"{name}: {count}" for name, count in told.items())
    yield visible(f"classes and their credit: {credit}", 400)
    steps = f"{'converged' if found.converged else 'stopped'} after {found.iterations} steps"
    yield f"method {found.method}; preset {found.preset}, {steps}, log-likelihood {found.log_likelihood:.3f}"


def _figure(value: float | None) -> str:
    """Three decimals, as the paper's tables have."""
    return "-" if value is None else f"{value:.3f}"


def _range(ends: Sequence[float | None] | None) -> str:
    low, high = ends or (None, None)
    return "-" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _more(everyone: int) -> list[str]:
    return [f"... and {everyone - _FIRST} more (--json)"] if everyone > _FIRST else []


def _agents(found: "ConsensusReport") -> list[str]:
    ranked = sorted(found.agents.items(), key=lambda one: (-one[1].score, one[0]))
    rows = [[name, _figure(one.score), _range((one.low, one.high)), str(one.items)] for name, one in ranked]
    return table(["agent", "score", f"95 % ({_OF[found.intervals]})", "items"], rows) if rows else []


def _comparison(found: "ConsensusReport") -> list[str]:
    ranked = sorted(found.comparison.items(), key=lambda one: (-one[1].stableval, one[0]))
    rows = [
        [
            name,
            _figure(one.majority),
            _figure(one.dawid_skene),
            _figure(one.stableval),
            f"{round(one.change, 3) + 0.0:+.3f}",
            str(one.items),
            _ranks(one),
        ]
        for name, one in ranked
    ]
    return table(["agent", "MV", "DS", "PEC", "Δ(PEC-MV)", "items", "ranks MV, DS, PEC"], rows) if rows else []


def _ranks(one: "Compared") -> str:
    from jurygraph.aggregation.consensus.stability import METHODS

    return ", ".join(f"{one.ranks[method]:g}" for method in METHODS)


def _key_findings(found: "ConsensusReport") -> list[str]:
    findings = found.findings
    high = f"{findings.highly_ambiguous} ({findings.highly_ambiguous_share:.2%})"
    rows = [
        ["correlation of scores (MV, PEC)", _figure(findings.correlation)],
        ["greatest change of a score", _figure(findings.greatest_change)],
        ["agents with another rank", f"{findings.rank_changes} / {found.counts.agents}"],
        ["mean ambiguity (PEC)", _figure(findings.mean_ambiguity)],
        ["highly ambiguous items (> 0.3)", high],
    ]
    return table(["MV against PEC", ""], rows)


def _annotators(found: "ConsensusReport") -> list[str]:
    ranked = sorted(found.annotators.items(), key=lambda one: (-one[1].accuracy, one[0]))
    rows = [
        [
            name,
            _figure(one.accuracy),
            _range(one.accuracy_interval),
            _figure(one.leniency),
            _figure(one.strictness),
            str(one.labels),
        ]
        for name, one in ranked[:_FIRST]
    ]
    return [
        *table(["annotator", "accuracy", "95 %", "leniency", "strictness", "labels"], rows),
        *_more(len(ranked)),
    ]


def _items(found: "ConsensusReport") -> list[str]:
    from jurygraph.studies.consensus.ballots import shown

    ranked = sorted(found.items.items(), key=lambda one: (-one[1].ambiguity, one[0]))
    rows = []
    for name, one in ranked[:_FIRST]:
        likeliest = max(one.posterior)
        labels = [shown(label) for label, p in zip(found.classes, one.posterior, strict=True) if p == likeliest]
        rows.append([name, _figure(one.ambiguity), _figure(likeliest), " or ".join(labels)])
    return [*table(["most ambiguous items", "ambiguity", "posterior", "class"], rows), *_more(len(ranked))]


def _stability(found: "ConsensusReport") -> list[str]:
    if found.stability is None:
        return []
    rows = [
        [_NAMES[method], *map(_figure, (one.tau_b, one.rank_sd, one.rank_range, one.score_shift))]
        for method, one in found.stability.items()
    ]
    subsets = next(iter(found.stability.values())).subsets
    header = [f"stability ({subsets} subsets)", "mean τ_b", "mean rank sd", "mean rank range", "mean score shift"]
    return table(header, rows)


def _agreement(found: "ConsensusReport") -> list[str]:
    counts = found.counts
    rows = [
        ["items of one voice", f"{found.agreement.unanimous:.1%}"],
        ["pairs of labels that agree, mean over items", f"{found.agreement.pairwise:.1%}"],
        ["items that one vote decides", str(len(found.decided_by_one))],
        [f"items with a tie ({found.ties.rule})", str(len(found.ties.items))],
        ["rows that repeat an item and annotator", str(counts.repeated)],
        ["abstentions, left out", str(counts.abstained)],
    ]
    return table(["agreement", ""], rows)
