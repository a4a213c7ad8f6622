"""The recipe: from the config's components, weights and gates to the frozen specs of a decision."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jurygraph.agents.roles import Combiner, Evaluator
from jurygraph.errors import ConfigError, PlanError
from jurygraph.graphs.state import Roster
from jurygraph.schema import (
    ComponentConfig,
    Config,
    Decision,
    Gate,
    Gated,
    Input,
    InputConfig,
    PrecisionShaping,
    Question,
    RepetitionControl,
    Spec,
    Task,
    TaskView,
)

RUBRIC, STAKEHOLDERS = "rubric", "stakeholders"
GATE_ORDER = ("precision", "format", "repetition")


def short_name(name: str) -> str:
    """The component's name for an evaluator: the last part of its own."""
    return name.rpartition(".")[2]


def component_names(config: Config, evaluators: Mapping[str, Evaluator]) -> list[str]:
    """Every component that the config and its evaluators give. ConfigError where two share a name."""
    givers: dict[str, Evaluator] = {}
    for name, evaluator in evaluators.items():
        home = _home(evaluator)
        first = givers.setdefault(home, evaluator)
        if first is not evaluator and {first.audience, evaluator.audience} not in ({"criterion"}, {"stakeholder"}):
            raise ConfigError(f"{first.name!r} and {name!r} would both give component {home!r}: `name` one otherwise")
    return sorted({*givers, *config.components})


def _home(evaluator: Evaluator) -> str:
    """The component that an evaluator's verdicts enter unless the config says otherwise."""
    return {"criterion": RUBRIC, "stakeholder": STAKEHOLDERS}.get(evaluator.audience, short_name(evaluator.name))


def check_recipe(config: Config, evaluators: Mapping[str, Evaluator]) -> None:
    """Refuse a recipe that no task could be planned under. Raises ConfigError."""
    known = component_names(config, evaluators)
    for name in config.reward:
        _refuse_unknown("reward", name, known)
    weights = weigh_components(config, known)
    if not any(weights.values()):
        raise ConfigError("reward: every weight is 0, so nothing would count")
    kinds = [gate.kind for gate in config.gates]
    for gate in config.gates:
        if kinds.count(gate.kind) > 1:
            raise ConfigError(f"gates: there are two of kind {gate.kind!r}")
        for name in _read_by(gate):
            _refuse_unknown(f"gates, kind {gate.kind}", name, known)


def _read_by(gate: Gate) -> tuple[str, ...]:
    """The components that a gate looks at."""
    return (gate.component, *(gate.auxiliary if isinstance(gate, PrecisionShaping) else ()))


def _refuse_unknown(where: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"{where}: there is no component {name!r}; {hint}")


def weigh_components(config: Config, names: Sequence[str]) -> dict[str, float]:
    """The signed weight of every component; one that `reward` leaves out has weight 0. ConfigError if none is given."""
    if config.reward:
        return {name: config.reward.get(name, 0.0) for name in names}
    if len(names) == 1:
        return {names[0]: 1.0}
    raise ConfigError(f"reward: say how the components count, for instance {{{names[0]}: 1.0}}; there are {names}")


def freeze_specs(
    task: Task,
    roster: Roster,
    views: Sequence[TaskView],
    questions: Sequence[Question],
    weights: Mapping[str, float],
    difficulty: Mapping[str, Any],
) -> tuple[Spec, ...]:
    """One spec for every component that this task has, in the order of their names."""
    freeze = _Freezer(task, roster, views, questions)
    config = roster.config
    specs = [freeze.own(name, component) for name, component in config.components.items()]
    homes = {name: _home(roster.evaluators[name]) for name in freeze.asked}
    for home in sorted(set(homes.values()) - set(config.components)):
        sources = [name for name, its in homes.items() if its == home]
        specs.append(freeze.default(home, sources, weights, difficulty))
    _refuse_absent(task, config.gates, freeze.weight, [spec.name for spec in specs])
    return tuple(sorted(specs, key=lambda spec: spec.name))


def _refuse_absent(task: Task, gates: Iterable[Gate], weight: Mapping[str, float], present: Sequence[str]) -> None:
    counted = [name for name in weight if weight[name]]
    for name in [*counted, *(name for gate in gates for name in _read_by(gate))]:
        if name not in present:
            why = {RUBRIC: "rubric", STAKEHOLDERS: "stakeholders"}.get(name, "question")
            raise PlanError(f"task {task.id!r}: the reward counts component {name!r}, but the task has no {why} for it")


class _Freezer:
    """Makes the specs of one task."""

    def __init__(self, task: Task, roster: Roster, views: Sequence[TaskView], questions: Sequence[Question]) -> None:
        self.task = task
        self.config = roster.config
        self.combiners = roster.combiners
        self.by_id = {question.id: question for question in questions}
        self.weight = weigh_components(self.config, component_names(self.config, roster.evaluators))
        self.asked: dict[str, dict[str | None, list[Question]]] = {}
        member = {view.digest: view.member for view in views}
        for question in questions:
            self.asked.setdefault(question.evaluator, {}).setdefault(member[question.view], []).append(question)

    def own(self, name: str, component: ComponentConfig) -> Spec:
        """A component that the config spells out."""
        inputs = {key: self._input(name, key, component.inputs[key]) for key in sorted(component.inputs)}
        return self._spec(name, component.combiner, inputs, component.params)

    def default(
        self, home: str, sources: Sequence[str], weights: Mapping[str, float], difficulty: Mapping[str, Any]
    ) -> Spec:
        """The component of an evaluator, or of all that ask about criteria or stakeholders."""
        if home == RUBRIC:
            return self._rubric(sources)
        if home == STAKEHOLDERS:
            gated = self.config.weights.gated
            inputs = {s: self._member(sources, "weights.gated", s, w, gated) for s, w in sorted(weights.items())}
            return self._spec(home, STAKEHOLDERS, inputs, {"difficulty": difficulty} if difficulty else {})
        counts = self.weight[home] != 0 or home in {gate.component for gate in self.config.gates}
        stated = InputConfig(of=sources[0], gated=None if counts else "missing")
        asked = [q for each in self.asked[sources[0]].values() for q in each]
        where = f"write components: {{{home}: {{inputs: {{{home}: {{of: {sources[0]}, gated: ...}}}}}}}}"
        return self._spec(home, "mean", {sources[0]: _input(where, asked, stated)}, {})

    def _rubric(self, sources: Sequence[str]) -> Spec:
        rubric = self.task.rubric
        assert rubric is not None  # there are questions about its criteria
        weight = {c.id: c.weight for c in rubric.criteria}
        gated = self.config.rubric.gated
        inputs = {c: self._member(sources, "rubric.gated", c, w, gated) for c, w in sorted(weight.items())}
        params = {"edges": [e.model_dump() for e in rubric.edges], "kappa": self.config.rubric.kappa}
        return self._spec(RUBRIC, self.config.rubric.aggregation, inputs, params)

    def _member(self, sources: Sequence[str], where: str, member: str, weight: float, gated: Gated | None) -> Input:
        """What all that ask about a criterion or stakeholder say of it."""
        asked = [q for source in sources for q in self.asked[source].get(member, ())]
        if not asked:
            raise PlanError(f"task {self.task.id!r}: nobody asks about {member!r}")
        stated = InputConfig(of=sources[0], mass=abs(weight), gated=gated)
        return _input(where, asked, stated, 1.0 if weight > 0 else -1.0)

    def _input(self, component: str, key: str, stated: InputConfig) -> Input:
        where = f"components.{component}.inputs.{key}"
        if stated.of in self.asked:
            return _input(f"{where}.gated", [q for each in self.asked[stated.of].values() for q in each], stated)
        if stated.of in self.by_id:
            return _input(f"{where}.gated", [self.by_id[stated.of]], stated)
        near = difflib.get_close_matches(stated.of, [*self.asked, *self.by_id], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise PlanError(f"{where}: {stated.of!r} is not asked of task {self.task.id!r}{hint}")

    def _spec(self, name: str, combiner: str, inputs: dict[str, Input], params: Mapping[str, Any]) -> Spec:
        made: Combiner = self.combiners[combiner]
        try:
            frozen = made.freeze(inputs, params)
        except PlanError as error:
            if error.args and not str(error).startswith("task "):
                error.args = (f"task {self.task.id!r}, component {name!r}: {error}",)
            raise
        weight = self.weight[name]
        return Spec(
            name=name,
            weight=weight,
            direction=-1 if weight < 0 or (weight == 0 and _penalises(name, self.config.gates)) else 1,
            combiner=combiner,
            version=made.version,
            inputs=inputs,
            params=frozen,
        )


def _input(where: str, asked: Iterable[Question], stated: InputConfig, sign: float = 1.0) -> Input:
    questions = sorted(asked, key=lambda q: q.id)
    if stated.gated is None and any(q.when for q in questions):
        raise PlanError(
            f"{where}: question {next(q.id for q in questions if q.when)!r} may be left out by its `when`: say whether "
            "it then counts as `missing` or as `zero`"
        )
    return Input(
        questions=tuple(q.id for q in questions),
        weights=(sign,) * len(questions),
        reduce=stated.reduce,
        mass=stated.mass,
        gated=stated.gated or "missing",
    )


def _penalises(name: str, gates: Iterable[Gate]) -> bool:
    return any(isinstance(gate, RepetitionControl) and gate.component == name for gate in gates)


def decision_of(config: Config, specs: tuple[Spec, ...]) -> Decision:
    """The decision: the specs, and the rest of the recipe."""
    return Decision(
        specs=specs,
        gates=tuple(sorted(config.gates, key=lambda gate: GATE_ORDER.index(gate.kind))),
        scale=config.scale,
        clip=config.clip,
        rule=config.failure.rule,
        min_coverage=config.failure.min_coverage,
        group_rule=config.failure.group_rule,
    )
