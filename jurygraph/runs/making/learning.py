"""A panel of judges learned from a whole run: the second pass of a consensus, from verdicts that are there already."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue

from jurygraph.agents.registry import load_combiners
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AnnotatorQuality
from jurygraph.errors import ConfigError, InputError
from jurygraph.graphs.table import lay_out
from jurygraph.judges.consensus.combiner import ConsensusOfJudges
from jurygraph.judges.consensus.learned import confusions_of
from jurygraph.judges.consensus.votes import levels_of, nearest
from jurygraph.runs.integrity.recomputing import Group, groups_of
from jurygraph.runs.making.rescoring import Decisions
from jurygraph.runs.progress import Report
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import Shape
from jurygraph.schema import Config, Spec
from jurygraph.schema.confusions import Confusions

Params = dict[str, JsonValue]


class Vote(NamedTuple):
    """A judge's verdict on a response, as the place of its level."""

    response: str
    judge: str
    level: int


@dataclass(frozen=True)
class Learned:
    """What a run teaches of a panel.

    Attributes:
        config: under which to re-score; where the panel is too small without confusions, so that the majority stands.
        confusions: what was learned; None where the panel is too small.
        judges: how each of them errs; empty where the panel is too small.
        responses: how many were judged.
        doubts: what to know of it, a sentence each; why, where the panel is too small.
    """

    config: Config
    confusions: Confusions | None
    judges: dict[str, AnnotatorQuality]
    responses: int
    doubts: tuple[str, ...]


def learn(run: Run, config: Config, component: str, report: Report) -> Learned:
    """The confusions of the judges of a component, by its verdicts in a run (STABLEVAL, Algorithm 1, converged).

    Raises `ConfigError` where the config has no such component whose combiner is `consensus`, and `InputError` where
    nothing was judged.
    """
    stated = config.components.get(component)
    if stated is None or stated.combiner != ConsensusOfJudges.name:
        there = [name for name, one in config.components.items() if one.combiner == ConsensusOfJudges.name]
        known = f"there are {', '.join(there)}" if there else "the config has none; add one, or --set it"
        raise ConfigError(f"components.{component}: is no component of combiner 'consensus'; {known}")
    params = {key: one for key, one in stated.params.items() if key != "confusions"}
    bare = _with(config, component, params)
    levels: list[float] = []
    votes: list[Vote] = []
    decisions = Decisions(run, bare, load_combiners(bare, run.header.evaluators.values()))
    for group in groups_of(run.source, run.extent):
        decision = decisions.of(group.record.key)
        spec = next(one for one in decision.specs if one.name == component)
        levels = levels_of(spec.params).tolist()
        votes += _votes(group, run.shape_of(group.record.key), spec, decision.rule)
        report(1)
    if not votes:
        raise InputError(f"{run.folder}: nothing of component {component!r} was judged, so there is nothing to learn")
    return _learned(bare, component, params, votes, levels)


def _learned(config: Config, component: str, params: Params, votes: list[Vote], levels: Sequence[float]) -> Learned:
    response, judge, level = (list(one) for one in zip(*sorted(votes), strict=True))
    fitted = consensus.fit(response, judge, level, classes=range(len(levels)))
    why = consensus.too_small(fitted.votes)
    if why is not None:
        return Learned(config, None, {}, len(fitted.items), (why,))
    confusions = confusions_of(fitted, levels)
    own = _with(config, component, {**params, "confusions": confusions.model_dump(mode="json")})
    judges = {str(name): quality for name, quality in fitted.annotators().items()}
    return Learned(own, confusions, judges, len(fitted.items), fitted.warnings)


def _with(config: Config, component: str, params: Params) -> Config:
    own = config.components[component].model_copy(update={"params": params})
    return config.model_copy(update={"components": {**config.components, component: own}})


def _votes(group: Group, shape: Shape, spec: Spec, rule: str) -> Iterator[Vote]:
    """What the judges said of a group, as the component hears it: what a gate settled was said by nobody."""
    names = sorted(trace.key for trace in group.traces)
    table = lay_out(shape.questions, names, group.verdicts(shape))
    levels = levels_of(spec.params)
    for judge, stated in spec.inputs.items():
        cells = table.cells(stated, rule, spec.direction, "counted")
        level = nearest(cells.value, levels)
        for row, column in np.argwhere(cells.live & cells.judged).tolist():
            yield Vote(f"{group.record.key}/{names[row]}", judge, int(level[row, column]))
