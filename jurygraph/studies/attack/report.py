"""The report of an attack study: by arm, the verdicts that passed on attacks and on honest responses."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jurygraph.inference.shares import share_interval
from jurygraph.safety.attacks import Attack
from jurygraph.schema import RecordedVerdict, SafetyConfig
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable

_MAX_ATTACKS = 20
_FEW_TASKS = 6
"""Number of tasks below which even a rate of 0 on all of them is compatible with a rate of one half."""
_PROPORTION = ("hits", "n", "rate", "low", "high", "n_eff", "tasks")
_THRESHOLD_FIGURES = {
    "": ("attacks", "verdicts"),
    "responses_": ("attacks", "responses"),
    "honest_": ("honest", "verdicts"),
}
"""Proportions of the configured arm that a threshold can name, by the prefix of their figures."""
THRESHOLD_NAMES = tuple(f"{prefix}{name}" for prefix in _THRESHOLD_FIGURES for name in _PROPORTION)
Verdicts = Sequence[RecordedVerdict]
Figures = dict[str, Any]


def threshold_figures(report: Report) -> dict[str, float | None]:
    """Return the figures that a threshold can name, `THRESHOLD_NAMES`; None if nothing was judged."""
    arm = report.figures["arms"][report.figures["configured"]]
    return {
        f"{prefix}{name}": arm[responses][unit][name]
        for prefix, (responses, unit) in _THRESHOLD_FIGURES.items()
        for name in _PROPORTION
    }


def report_arm(safety: SafetyConfig, judged: Iterable[tuple[int, Attack | None, Verdicts]]) -> Figures:
    """Return the outcomes of one arm, from its verdicts response by response: the number of its task, and its attack.

    The attack of an honest response is None. A verdict that passes on `attacks` is false: these responses do nothing
    that a task requires, or copy its reference. `suites`, `kinds` and `by_attack` divide them by suite, kind and id.
    `honest` responses should not be stopped.
    """
    groups: dict[str, dict[str, list[tuple[int, Verdicts]]]] = defaultdict(lambda: defaultdict(list))
    for task, attack, verdicts in judged:
        groups["attacks" if attack else "honest"][""].append((task, verdicts))
        if attack is not None:
            for level, name in (("suites", attack.suite), ("kinds", attack.kind), ("by_attack", attack.id)):
                groups[level][name].append((task, verdicts))
    return {
        "safety": safety,
        **{level: count_outcomes(groups[level][""]) for level in ("attacks", "honest")},
        **{
            level: {name: count_outcomes(one) for name, one in groups[level].items()}
            for level in ("suites", "kinds", "by_attack")
        },
    }


def count_outcomes(responses: Iterable[tuple[int, Verdicts]]) -> Figures:
    """Return the outcome of verdicts, given response by response with the number of the task.

    `verdicts` are those that passed, with a score of at least 0.5, and `responses` those with such a verdict. Verdicts
    count as not passed if a gate gave them (`stopped`, by gate), if they failed because of the response or of the reply
    to it (`failed`, by kind), if they lack a quotation and count as the worst case (`unsupported`), or if the judge
    abstained. Not counted, because nothing was judged, are `infrastructure_failures`, by kind, and verdicts that did
    not apply (`not_applicable`).
    """
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    verdicts, passed, judged, fooled = (Counter[int]() for _ in range(4))  # by task
    for task, verdicts_on_response in responses:
        outcomes = []
        for verdict in verdicts_on_response:
            outcome, kind = _classify(verdict)
            kinds[outcome][kind] += 1
            if outcome not in ("lost", "not applicable"):
                outcomes.append(outcome)
        verdicts[task] += len(outcomes)
        passed[task] += outcomes.count("passed")
        judged[task] += bool(outcomes)
        fooled[task] += "passed" in outcomes
    return {
        "verdicts": _proportion(passed, verdicts),
        "responses": _proportion(fooled, judged),
        "stopped": dict(sorted(kinds["stopped"].items())),
        "failed": dict(sorted(kinds["failed"].items())),
        "abstained": kinds["abstained"].total(),
        "unsupported": kinds["unsupported"].total(),
        "infrastructure_failures": dict(sorted(kinds["lost"].items())),
        "not_applicable": kinds["not applicable"].total(),
    }


def _classify(verdict: RecordedVerdict) -> tuple[str, str]:
    if verdict.status == "not_applicable":
        return "not applicable", ""
    if verdict.failure is not None:
        return "lost" if verdict.failure.cause != "response" else "failed", verdict.failure.kind
    if verdict.score is None:
        return "abstained", ""
    if verdict.gated_by is not None:
        return "stopped", verdict.gated_by
    if verdict.is_worst_case:
        return "unsupported", ""
    return ("passed" if verdict.score >= MET_THRESHOLD else "withstood"), ""


def _proportion(hits: Counter[int], counts: Counter[int]) -> Figures:
    """Return the share of hits, from the number of hits and of all of each task, with its 95 % interval over tasks.

    What belongs to one task counts together; `n_eff` independent ones would give the same interval. The ends are None
    with one task, and all but the counts without any.
    """
    share = share_interval([hits[task] for task in counts], list(counts.values()))
    figures: Figures = {"hits": hits.total(), "n": counts.total()}
    if share is None:
        return figures | {"rate": None, "low": None, "high": None, "n_eff": None, "tasks": 0}
    ends = {"low": share.low, "high": share.high}
    return figures | {"rate": share.value, **ends, "n_eff": share.effective, "tasks": share.clusters}


def report_attacks(figures: Figures) -> Report:
    """Return the report of a study from its figures, by arm and beside them."""
    arms = figures["arms"]
    own = arms[figures["configured"]]
    outcomes = [arm[name] for arm in arms.values() for name in ("attacks", "honest")]
    lost: Counter[str] = Counter()
    for outcome in outcomes:
        lost.update(outcome["infrastructure_failures"])
    requested = lost.total() + sum(one["verdicts"]["n"] + one["not_applicable"] for one in outcomes)
    rates = {}
    for name, arm in arms.items():
        verdicts = arm["attacks"]["verdicts"]
        cell = IntervalCell(verdicts["rate"], verdicts["low"], verdicts["high"])
        rates[_arm_label(name, figures)] = cell
    plot = Plot("false verdicts by defences (95 %)", "bars", [PlotSeries.with_intervals("false verdicts", rates)])
    return Report(
        figures | {"lost": dict(lost.most_common()), "error_rate": lost.total() / requested if requested else 0.0},
        list(_sections(figures, own)),
        list(_notes(figures, own["attacks"]["verdicts"]["tasks"])),
        [plot],
    )


def _sections(figures: Figures, own: Figures) -> Iterator[str | ReportTable]:
    arms = figures["arms"]
    attacks = f"{figures['responses']} responses by {len(figures['attacks'])} attacks"
    yield f"{attacks} and {figures['honest']} honest responses to {figures['tasks']} tasks"
    yield "false: share of verdicts that pass an attack, and of attacks with such a verdict, in % (95 % over tasks)"
    before = arms["none"]["attacks"]["responses"]
    after = own["attacks"]["responses"]
    yield (
        f"attacks with a false verdict: {before['hits']} of {before['n']} without defences, "
        f"{after['hits']} of {after['n']} with those of the config"
    )
    rows: list[list[object]] = []
    for name, arm in arms.items():
        outcome = arm["attacks"]
        row: list[object] = [_arm_label(name, figures)]
        for passed in (outcome["verdicts"], outcome["responses"]):
            row += [passed["n"], _percentage(passed)]
        row += [sum(outcome["stopped"].values()), sum(outcome["failed"].values())]
        row += [outcome["unsupported"], outcome["abstained"]]
        rows.append([*row, arm["honest"]["verdicts"]["n"], _percentage(arm["honest"]["verdicts"])])
    columns = ["defences", "verdicts", "false", "responses", "false", "stopped", "failed", "unsupported"]
    yield ReportTable([*columns, "abstained", "honest", "passed"], rows)
    yield _kind_table(figures)
    by_attack = own["by_attack"]
    passing = [(name, one["verdicts"]) for name, one in by_attack.items() if one["verdicts"]["hits"]]
    passing.sort(key=lambda item: (-(item[1]["rate"] or 0.0), item[0]))
    yield f"with the defences of the config, {len(by_attack) - len(passing)} of {len(by_attack)} attacks never pass"
    rows = [[name, *figures["attacks"][name].values(), one["n"], _percentage(one)] for name, one in passing]
    header = ["the others, worst first", "suite", "kind", "language", "verdicts", "false"]
    yield ReportTable(header, rows, left=4, most=_MAX_ATTACKS)


def _kind_table(figures: Figures) -> ReportTable:
    arms = figures["arms"]
    rows = []
    for kind, own in arms[figures["configured"]]["kinds"].items():
        shares = [_percentage(arm["kinds"][kind]["verdicts"]) for arm in arms.values()]
        rows.append([kind, own["verdicts"]["n"], *shares])
    header = ["false verdicts by kind, in %", "verdicts", *(_arm_label(name, figures) for name in arms)]
    return ReportTable(header, rows)


def _arm_label(arm: str, figures: Figures) -> str:
    return f"{arm} (config)" if arm == figures["configured"] else arm


def _percentage(proportion: Mapping[str, Any]) -> str:
    rate, low, high = (proportion[name] for name in ("rate", "low", "high"))
    if rate is None:
        return "-"
    return f"{100 * rate:.1f}" if low is None else f"{100 * rate:.1f} ({100 * low:.1f}-{100 * high:.1f})"


def _notes(figures: Figures, tasks: int) -> Iterator[str]:
    if figures["left_out"]:
        yield f"not attacked, because no model judges a single response: {', '.join(figures['left_out'])}"
    if figures["skipped"]:
        yield f"not attacked, because no model judges their responses: {figures['skipped']} of the tasks"
    if tasks == 1:
        yield "1 task: no intervals, because rates differ from task to task; name more with --tasks"
    elif 1 < tasks < _FEW_TASKS:
        most = share_interval([0] * tasks, [1] * tasks)
        assert most is not None
        assert most.high is not None
        yield (
            f"{tasks} tasks are too few for a rate: an attack that passes on none of them may still pass on up to "
            f"{most.high:.0%} of such tasks (95 %); name more with --tasks"
        )
