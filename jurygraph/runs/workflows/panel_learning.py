"""Learn the confusion matrices of a panel of judges from the verdicts of a whole run, for a consensus component."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import JsonValue

from jurygraph.agents.registry import load_combiners
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AnnotatorQuality
from jurygraph.decision.table import build_table
from jurygraph.errors import ConfigError, InputError
from jurygraph.judges.panel import ConsensusOfJudges, level_values, nearest_level, to_confusions
from jurygraph.runs.outline import StoredGroup, read_groups
from jurygraph.runs.run import ProgressCallback, Run
from jurygraph.runs.store.packing import Shape
from jurygraph.runs.workflows.rescoring import task_decisions
from jurygraph.schema import ComponentSpec, Config
from jurygraph.schema.rating import Confusions

Params = dict[str, JsonValue]
Vote = tuple[str, str, int]
"""A judge's verdict on a response: the response, the judge, and the index of the level."""


@dataclass(frozen=True)
class LearnedPanel:
    """A config for re-scoring with the learned confusion matrices of a panel, and the quality of its judges by name.

    Where the panel is too small, `confusions` is None and `judges` is empty, `config` uses the majority vote, and
    `warnings`, of one sentence each, has the reason. `responses` is the number of judged responses.
    """

    config: Config
    confusions: Confusions | None
    judges: dict[str, AnnotatorQuality]
    responses: int
    warnings: tuple[str, ...]


def learn_confusions(run: Run, config: Config, component: str, report: ProgressCallback) -> LearnedPanel:
    """Return the confusions of a component's judges, fitted to its verdicts in a run (STABLEVAL, Algorithm 1,
    converged).

    `report` receives 1 for each group. Raises `ConfigError` where the config has no such component with combiner
    `consensus`, and `InputError` where nothing of it was judged.
    """
    component_config = config.components.get(component)
    if component_config is None or component_config.combiner != ConsensusOfJudges.name:
        names = ", ".join(name for name, use in config.components.items() if use.combiner == ConsensusOfJudges.name)
        hint = f"there are {names}" if names else "the config has none; add one, or --set it"
        raise ConfigError(f"components.{component}: is not a component with combiner 'consensus'; {hint}")
    params = {key: value for key, value in component_config.params.items() if key != "confusions"}
    config_without = _with_params(config, component, params)
    levels: list[float] = []
    votes: list[Vote] = []
    combiners = load_combiners(config_without, run.header.evaluators.values())
    decision_for = task_decisions(run, config_without, combiners)
    for group in read_groups(run):
        decision = decision_for(group.record.key)
        spec = next(spec for spec in decision.specs if spec.name == component)
        levels = level_values(spec.params).tolist()
        votes += _votes(group, run.survey_shape_of(group.record.key), spec, decision.rule)
        report(1)
    if not votes:
        raise InputError(f"{run.folder}: nothing of component {component!r} was judged, so there is nothing to learn")
    return _fit(config_without, component, params, votes, levels)


def _fit(config: Config, component: str, params: Params, votes: list[Vote], levels: Sequence[float]) -> LearnedPanel:
    response, judge, level = (list(column) for column in zip(*sorted(votes), strict=True))
    fitted = consensus.fit(response, judge, level, classes=range(len(levels)))
    reason = consensus.too_small(fitted.votes)
    if reason is not None:
        return LearnedPanel(config, None, {}, len(fitted.items), (reason,))
    confusions = to_confusions(fitted, levels)
    learned_config = _with_params(config, component, {**params, "confusions": confusions.model_dump(mode="json")})
    judges = {str(name): quality for name, quality in fitted.annotators().items()}
    return LearnedPanel(learned_config, confusions, judges, len(fitted.items), fitted.warnings)


def _with_params(config: Config, component: str, params: Params) -> Config:
    changed = config.components[component].model_copy(update={"params": params})
    return config.model_copy(update={"components": {**config.components, component: changed}})


def _votes(group: StoredGroup, shape: Shape, spec: ComponentSpec, rule: str) -> Iterator[Vote]:
    """Yield the judges' votes on a group, as they enter the component; verdicts set by a gate are left out."""
    names = sorted(trace.response_id for trace in group.traces)
    table = build_table(shape.questions, names, group.verdicts(shape))
    levels = level_values(spec.params)
    for judge, use in spec.inputs.items():
        cells = table.score_matrix(use, rule, spec.direction, "counted")
        level = nearest_level(cells.value, levels)
        for row, column in np.argwhere(cells.applicable & cells.judged).tolist():
            yield f"{group.record.key}/{names[row]}", judge, int(level[row, column])
