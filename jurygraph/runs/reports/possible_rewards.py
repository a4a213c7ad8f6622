"""The rewards that were possible in a run, whatever its judges might have answered."""

from collections.abc import Mapping

from jurygraph.decision.combiners import Combiner
from jurygraph.decision.decide import GroupVerdicts
from jurygraph.decision.decide import possible_rewards as possible_of_group
from jurygraph.runs.outline import read_groups
from jurygraph.runs.run import Run


def possible_rewards(run: Run, combiners: Mapping[str, Combiner], most: int | None = None) -> list[tuple[float, float]]:
    """Return the least and the greatest reward that each plan of a run allows, in the order of the tasks.

    Tasks with the same questions and weights have one plan; so a table that is judged by one rubric has one entry.
    With `most`, only those of so many plans are returned.
    """
    limits: dict[tuple[str, str], tuple[float, float]] = {}
    for group in read_groups(run):
        plan = group.survey, group.decision
        if plan in limits:
            continue
        if len(limits) == most:
            break
        outline = run.source.survey_outline(group.survey)
        names = [trace.response_id for trace in group.traces]
        judged = GroupVerdicts(run.decision(group.decision), outline.questions, names, group.verdicts(outline))
        low, high = possible_of_group(judged, combiners)
        limits[plan] = float(low.min()), float(high.max())
    return list(limits.values())
