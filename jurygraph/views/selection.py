"""The overview of selected responses, such as those of a training step: what their rewards teach, and what moved them.

An advantage compares the responses of one group, so that spreads are measured within groups.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from statistics import fmean, stdev

from jurygraph.messages import format_count, format_number_for_sentence, list_first
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.runs.run import Run
from jurygraph.schema import Trace
from jurygraph.views.rewards import ResponseSelection, make_trace_reader, stored_response_location

_MAX_COUNTS_LISTED = 8
_REWARD = ""
"""The column of the reward; a component may have the name `reward`."""


def describe_selection(run: Run, response_selection: ResponseSelection) -> Iterator[str]:
    """Yield sentences on the selected responses of a run; the lowest and the highest reward come last, with a reason.

    One group at a time is in memory. Raises `InputError` for an unknown label, column or agent.
    """
    read = make_trace_reader(run)
    outcomes = Counter[str]()
    counts_by_label: dict[str, Counter[str]] = defaultdict(Counter)
    rewards: list[tuple[float, str]] = []
    spreads_by_group = []
    selected = response_selection.select(
        run, lambda trace: (*stored_response_location(trace), trace.gates)
    )
    for _, group in groupby(selected, key=itemgetter(0)):
        points = []
        for record, index, gates in group:
            trace = read((record, index))
            outcomes[_describe_outcome(trace, gates)] += 1
            for name, value in run.labels_with_session(trace).items():
                counts_by_label[name][f"{name}={json_value_to_text(value)}"] += 1
            if trace.reward.value is not None:
                rewards.append((trace.reward.value, trace.response_id))
                terms = [term for term in trace.reward.terms if term.weight]
                summands = {term.name: term.contribution or 0.0 for term in terms}
                points.append({_REWARD: trace.reward.value, **summands})
        spreads_by_group.append(_measure_spreads(points))
    total = outcomes.total()
    groups = format_count(len(spreads_by_group), "group")
    yield f"{format_count(total, 'response')} in {groups}: {_join_counts(outcomes)}."
    differing = Counter[str]()
    for counts in counts_by_label.values():
        # such as two sessions of a training, but not a number of each response
        if len(counts) < total and max(counts.values()) < total:
            differing += counts
    if differing:
        yield f"They differ in labels: {_join_counts(differing)}."
    if rewards:
        yield from _describe_rewards(run, rewards, spreads_by_group)


def _measure_spreads(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the sd (ddof 1) of each column of a group's rewards and weight × value; none of a single row."""
    if len(points) < 2:
        return {}
    return {name: stdev(row[name] for row in points) for name in points[0]}


def _describe_rewards(
    run: Run, rewards: Sequence[tuple[float, str]], spreads_by_group: Sequence[Mapping[str, float]]
) -> Iterator[str]:
    mean = format_number_for_sentence(fmean(value for value, _ in rewards))
    reward_spreads = [spreads.get(_REWARD, 0.0) for spreads in spreads_by_group]
    equal_text = f"{reward_spreads.count(0.0)} of {format_count(len(reward_spreads), 'group')}"
    yield f"Mean reward: {mean}. No signal among these responses, as no rewards differ: {equal_text}."
    values_by_name = defaultdict(list)
    for name, spread in chain.from_iterable(spreads.items() for spreads in spreads_by_group):
        values_by_name[name].append(spread)
    spreads = {name: fmean(values) for name, values in values_by_name.items()}
    if spreads:
        names = sorted(spreads, key=lambda name: (name != _REWARD, -spreads[name]))
        parts = [
            f"{name or 'reward'} {format_number_for_sentence(spreads[name])}" for name in names
        ]
        yield f"Spread within groups (mean sd of weight × value): {', '.join(parts)}."
    for (_, response_id), title in {min(rewards): "Lowest", max(rewards): "Highest"}.items():
        reward_sentence, reason, *_ = run.explain(response_id).sentences()
        yield f"{title}: {reward_sentence} {reason}"


def _describe_outcome(trace: Trace, gates: Sequence[str]) -> str:
    """Return the status of a reward, with the gates that changed it and the first verdict that it lacks."""
    causes = [f"gated by {gate}" for gate in gates]
    for verdict in trace.verdicts:
        if verdict.status in ("failed", "abstained") and not verdict.superseded:
            kind = f", {verdict.failure.kind}" if verdict.failure else ""
            causes.append(f"{verdict.evaluator} {verdict.status}{kind}")
            break
    return f"{trace.reward.status} ({'; '.join(causes)})" if causes else trace.reward.status


def _join_counts(counts: Counter[str]) -> str:
    texts = [f"{count} {name}" for name, count in counts.most_common()]
    return ", ".join(list_first(texts, _MAX_COUNTS_LISTED))
