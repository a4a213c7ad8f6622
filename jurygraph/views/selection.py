"""The overview of selected responses, such as those of a training step: what their rewards teach, and what moved them.

An advantage compares the responses of one group, so that spreads are measured within groups.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from statistics import fmean, stdev

from jurygraph.messages import format_count, format_number_for_sentence
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.runs.run import Run
from jurygraph.schema import Trace
from jurygraph.views.rewards import ResponseSelection, make_trace_reader, stored_response_location

_MAX_COUNTS_LISTED = 8


class _SelectionFigures:
    """Counts of the outcomes and labels of responses; their rewards, and the spreads within their groups by name."""

    def __init__(self) -> None:
        self.groups = 0
        self.outcomes = Counter[str]()
        self.labels = Counter[str]()
        self.rewards: list[tuple[float, str]] = []
        self.spreads = defaultdict[str, list[float]](list)

    def add_group(self, run: Run, traces: Iterable[Trace]) -> None:
        self.groups += 1
        judged = []
        for trace in traces:
            self.outcomes[_describe_outcome(trace)] += 1
            for name, value in run.labels_with_session(trace).items():
                self.labels[f"{name}={json_value_to_text(value)}"] += 1
            if trace.reward.value is not None:
                self.rewards.append((trace.reward.value, trace.response_id))
                judged.append(trace.reward)
        if len(judged) > 1:
            self.spreads["reward"].append(stdev(reward.value or 0.0 for reward in judged))
            for terms in zip(*(reward.terms for reward in judged), strict=True):
                points = [term.contribution or 0.0 for term in terms]
                self.spreads[terms[0].name].append(stdev(points))


def describe_selection(run: Run, response_selection: ResponseSelection) -> Iterator[str]:
    """Yield sentences on the selected responses of a run; the lowest and the highest reward come last, with a reason.

    One group at a time is in memory. Raises `InputError` for an unknown label, column or agent.
    """
    read = make_trace_reader(run)
    figures = _SelectionFigures()
    locations = response_selection.select(run, stored_response_location)
    for _, group in groupby(locations, key=itemgetter(0)):
        figures.add_group(run, map(read, group))
    total = figures.outcomes.total()
    groups = format_count(figures.groups, "group")
    yield f"{format_count(total, 'response')} in {groups}: {_join_counts(figures.outcomes)}."
    labels = {label: count for label, count in figures.labels.items() if count < total}
    if labels:  # such as two sessions of a training, or an evaluation at the same step
        yield f"They differ in labels: {_join_counts(Counter(labels))}."
    rewards = figures.rewards
    if rewards:
        mean = format_number_for_sentence(fmean(value for value, _ in rewards))
        equal_count = figures.groups - sum(map(bool, figures.spreads["reward"]))
        yield f"Mean reward: {mean}. No signal, as no rewards differ: {equal_count} of {groups}."
        yield from _describe_spreads(figures.spreads)
        for title, (_, response_id) in (("Lowest", min(rewards)), ("Highest", max(rewards))):
            reward_sentence, reason, *_ = run.explain(response_id).sentences()
            yield f"{title}: {reward_sentence} {reason}"


def _describe_spreads(spreads: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Yield which components moved the rewards of groups most, where two of a group have one."""
    means = [(name, fmean(values)) for name, values in spreads.items() if values]
    means.sort(key=lambda item: (item[0] != "reward", -item[1]))
    parts = [f"{name} {format_number_for_sentence(spread)}" for name, spread in means]
    if parts:
        yield f"Spread within groups (mean sd of weight × value): {', '.join(parts)}."


def _describe_outcome(trace: Trace) -> str:
    """Return the status of a reward, with the first verdict that it lacks."""
    for verdict in trace.verdicts:
        if verdict.status in ("failed", "abstained") and not verdict.superseded:
            kind = f", {verdict.failure.kind}" if verdict.failure else ""
            return f"{trace.reward.status} ({verdict.evaluator} {verdict.status}{kind})"
    return trace.reward.status


def _join_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common(_MAX_COUNTS_LISTED))
