"""Decide an already planned task under another config, without any request and without its evaluators."""

from collections.abc import Mapping

from jurygraph.decision.combiner import Combiner
from jurygraph.decision.recipe import build_decision, build_specs
from jurygraph.decision.weighting import TensionFinder, weigh_stakeholders
from jurygraph.schema import Config, Decision, EvaluatorRecord, Survey, Task


def redecide(
    task: Task,
    survey: Survey,
    config: Config,
    records: Mapping[str, EvaluatorRecord],
    combiners: Mapping[str, Combiner],
    find_tensions: TensionFinder,
) -> Decision:
    """Return the decision that `prepare` would make for a task and its survey under this config.

    Args:
        task: the task as planned, with the constraints and tensions read from its profiles and its graph
            (`as_planned`).
        survey: the survey of its plan.
        config: the config with the weights, recipe, gates and failure rule to apply; call `check_recipe` on it first.
        records: the record of every evaluator of the config, by name.
        combiners: the combiners of the config, by name (`load_combiners`).
        find_tensions: the rule that finds tensions between constraints (`agents.checks.tensions`).

    Raises:
        PlanError: the recipe does not fit the task.
    """
    audiences = [record.audience for record in records.values()]
    weights, difficulty = weigh_stakeholders(task, config.weights, audiences, find_tensions)
    return build_decision(config, build_specs(task, survey, config, records, combiners, weights, difficulty), combiners)
