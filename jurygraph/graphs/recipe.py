"""The recipe: from the config's components, weights and gates to the frozen specs of a decision."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.agents.roles import Combiner
from jurygraph.errors import ConfigError, PlanError
from jurygraph.graphs.taking import told_of
from jurygraph.schema import (
    Audience,
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
    Seat,
    Spec,
    Survey,
    Task,
)
from jurygraph.sources.complaint import nearest_name

RUBRIC, STAKEHOLDERS = "rubric", "stakeholders"
GATE_ORDER = ("precision", "format", "repetition")
MOST_RESIDUAL = 0.2
"""What a stakeholder's residual checklist may hold of the mass of û_i at most (DecompR)."""
ROUNDING = 1e-9


def short_name(name: str) -> str:
    """The component's name for an evaluator: the last part of its own."""
    return name.rpartition(".")[2]


def component_names(config: Config, seats: Mapping[str, Seat]) -> list[str]:
    """Every component that the config and its evaluators give; `seats` are the evaluators', by their names.

    Raises ConfigError where two share a name.
    """
    givers: dict[str, str] = {}
    for name, seat in seats.items():
        home = home_of(name, seat.audience)
        first = givers.setdefault(home, name)
        if first != name and {seats[first].audience, seat.audience} not in ({"criterion"}, {"stakeholder"}):
            raise ConfigError(f"{first!r} and {name!r} would both give component {home!r}: `name` one otherwise")
    return sorted({*givers, *config.components})


def home_of(evaluator: str, audience: Audience) -> str:
    """The component that an evaluator's verdicts enter unless the config says otherwise."""
    short = short_name(evaluator)
    own = evaluator.replace(".", "-") if short in (RUBRIC, STAKEHOLDERS) else short
    return {"criterion": RUBRIC, "stakeholder": STAKEHOLDERS}.get(audience, own)


def check_recipe(config: Config, seats: Mapping[str, Seat]) -> None:
    """Refuse a recipe that no task could be planned under. Raises ConfigError.

    `seats` are those of the config's evaluators, by name.
    """
    known = component_names(config, seats)
    for name in config.reward:
        _refuse_unknown(f"reward.{name}", name, known)
    _check_weights(list(weigh_components(config, known).values()))
    kinds = [gate.kind for gate in config.gates]
    for place, gate in enumerate(config.gates):
        if kinds.count(gate.kind) > 1:
            raise ConfigError(f"gates: there are two of kind {gate.kind!r}; keep one")
        for name in _read_by(gate):
            _refuse_unknown(f"gates[{place}]", name, known)


def _check_weights(weights: Sequence[float]) -> None:
    if not any(weights):
        raise ConfigError("reward: every weight is 0, so nothing would count; give one component a weight")
    if _overflow(weights):
        raise ConfigError("reward: the sum of the weights is larger than any number; make them smaller")


@np.errstate(over="ignore")
def _overflow(weights: Sequence[float]) -> bool:
    return not np.isfinite(aggregation.total(np.abs(weights)))


def _read_by(gate: Gate) -> tuple[str, ...]:
    """The components that a gate looks at."""
    return (gate.component, *(gate.auxiliary if isinstance(gate, PrecisionShaping) else ()))


def _refuse_unknown(where: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = nearest_name(name, known)
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
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
    survey: Survey,
    config: Config,
    seats: Mapping[str, Seat],
    combiners: Mapping[str, Combiner],
    weights: Mapping[str, float],
    difficulty: Mapping[str, Any],
) -> tuple[Spec, ...]:
    """One spec for every component that this task has, in the order of their names. Raises PlanError.

    `seats` and `combiners` are by name; `weights` and `difficulty` are those of the task's stakeholders.
    """
    freeze = _Freezer(task, survey, config, seats, combiners)
    specs = [freeze.own(name, component) for name, component in config.components.items()]
    homes = {name: home_of(name, seats[name].audience) for name in freeze.asked}
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
            raise PlanError(
                f"task {task.id!r}: the reward counts component {name!r}, but the task has no {why} for it; complete "
                "the task, or leave the component out of `reward` and `gates`"
            )


class _Freezer:
    """Makes the specs of one task."""

    def __init__(
        self,
        task: Task,
        survey: Survey,
        config: Config,
        seats: Mapping[str, Seat],
        combiners: Mapping[str, Combiner],
    ) -> None:
        self.task = task
        self.config = config
        self.seats = seats
        self.combiners = combiners
        self.by_id = {question.id: question for question in survey.questions}
        self.weight = weigh_components(config, component_names(config, seats))
        self.asked: dict[str, dict[str | None, list[Question]]] = {}
        for question in survey.questions:
            member = survey.views[question.view].member
            self.asked.setdefault(question.evaluator, {}).setdefault(member, []).append(question)

    def own(self, name: str, component: ComponentConfig) -> Spec:
        """A component that the config spells out."""
        inputs = {key: self._input(name, key, component.inputs[key]) for key in sorted(component.inputs)}
        return self._spec(name, component.combiner, inputs, component.params)

    def default(
        self, home: str, sources: Sequence[str], weights: Mapping[str, float], difficulty: Mapping[str, Any]
    ) -> Spec:
        """The component of an evaluator, or of all that ask about criteria or stakeholders."""
        audience = self.seats[sources[0]].audience
        if audience == "criterion":
            return self._rubric(sources)
        if audience == "stakeholder":
            return self._stakeholders(sources, weights, difficulty)
        return self._of_one(home, sources[0])

    def _of_one(self, home: str, source: str) -> Spec:
        """The component of one evaluator: an input for each reviewer, for each of its shares, or one for all."""
        seat, asked = self.seats[source], self.asked[source]
        counts = self.weight[home] != 0 or home in {gate.component for gate in self.config.gates}
        stated = InputConfig(of=source, gated=None if counts else "missing")
        where = f"write components: {{{home}: {{inputs: {{{home}: {{of: {source}, gated: ...}}}}}}}}"
        groups = {source: [q for each in asked.values() for q in each]}
        if seat.audience == "reviewer":
            panel, where = self.config.panel, "panel.gated"
            told = {"reduce": panel.reduce, "confident": panel.confidence, "gated": panel.gated or stated.gated}
            stated, groups = stated.model_copy(update=told), {str(member): own for member, own in asked.items()}
        elif seat.shares:
            groups = _by_share(groups[source])
        inputs = {key: self._shared(where, own, stated) for key, own in sorted(groups.items())}
        if seat.shares and seat.audience != "reviewer":
            inputs = {key: one.model_copy(update={"mass": _sum(one.weights)}) for key, one in inputs.items()}
        return self._spec(home, seat.combiner, inputs, {})

    def _shared(self, where: str, asked: Sequence[Question], stated: InputConfig) -> Input:
        """Questions as an input, each with what its evaluator says that it weighs."""
        one = _input(where, asked, stated)
        weights = [self._share(self.by_id[name]) for name in one.questions]
        return one.model_copy(update={"weights": tuple(weights)})

    def _share(self, question: Question) -> float:
        shares = self.seats[question.evaluator].shares
        return shares.get(first_part(question.subject), 1.0)

    def _stakeholders(
        self, sources: Sequence[str], weights: Mapping[str, float], difficulty: Mapping[str, Any]
    ) -> Spec:
        stated = self.config.weights
        inputs = {s: self._member(sources, "weights.gated", s, w, stated.gated) for s, w in sorted(weights.items())}
        inputs = {s: one.model_copy(update={"weights": self._layered(s, one)}) for s, one in inputs.items()}
        params: dict[str, Any] = {}
        if difficulty:
            settings = {"gamma": stated.gamma, "beta": stated.beta, "temperature": stated.temperature}
            params = {"difficulty": difficulty, "calibration": settings}
        for kind in ("hard", "soft"):
            places = {s: self._about(s, one.questions, kind) for s, one in inputs.items()}
            params |= {kind: found} if (found := {s: at for s, at in places.items() if at}) else {}
        params |= {"cap": stated.cap} if "hard" in params else {}
        params |= {"floor": stated.floor} if stated.welfare == "egalitarian" else {}
        return self._spec(STAKEHOLDERS, stated.welfare, inputs, params)

    def _layered(self, member: str, one: Input) -> tuple[float, ...]:
        """What each question weighs: its layer's share, divided among the questions of the layer."""
        shares = self.config.weights.layers
        if not shares:
            return one.weights
        layers = [self.by_id[question].layer for question in one.questions]
        for layer in layers:
            if layer not in shares:
                raise PlanError(
                    f"task {self.task.id!r}: weights.layers gives no share to layer {layer!r}, in which stakeholder "
                    f"{member!r} is asked about; add one"
                )
        return tuple(shares[layer] / layers.count(layer) for layer in layers)

    def _about(self, member: str, questions: Sequence[str], kind: str) -> list[int]:
        """The places of the questions that are about a constraint of this kind."""
        person = next(one for one in self.task.stakeholders if one.id == member)
        constraints = {constraint.id for constraint in person.constraints if constraint.kind == kind}
        return [place for place, name in enumerate(questions) if self.by_id[name].subject in constraints]

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
            raise PlanError(
                f"task {self.task.id!r}: nobody asks about {member!r}; let an evaluator of that audience do so, or "
                "leave it out of the task"
            )
        stated = InputConfig(of=sources[0], mass=abs(weight), gated=gated)
        return _input(where, asked, stated, 1.0 if weight > 0 else -1.0)

    def _input(self, component: str, key: str, stated: InputConfig) -> Input:
        where = f"components.{component}.inputs.{key}"
        if stated.of in self.asked:
            asked = [q for each in self.asked[stated.of].values() for q in each]
            return self._shared(f"{where}.gated", asked, self._heard(stated, stated.of))
        if stated.of in self.by_id:
            question = self.by_id[stated.of]
            return _input(f"{where}.gated", [question], self._heard(stated, question.evaluator))
        near = nearest_name(stated.of, [*self.asked, *self.by_id])
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(self.by_id)}"
        raise PlanError(f"{where}: {stated.of!r} is not asked of task {self.task.id!r}; {hint}")

    def _heard(self, stated: InputConfig, evaluator: str) -> InputConfig:
        """The input with the confidence that the panel asks of reviewers' judges, unless it states its own."""
        if stated.confident is not None or self.seats[evaluator].audience != "reviewer":
            return stated
        return stated.model_copy(update={"confident": self.config.panel.confidence})

    def _spec(self, name: str, combiner: str, inputs: dict[str, Input], params: Mapping[str, Any]) -> Spec:
        made = self.combiners[combiner]
        if made.keeps_columns:
            inputs = {key: one.model_copy(update={"reduce": None}) for key, one in inputs.items()}
        self._check_inputs(name, combiner, inputs)
        try:
            with told_of(f"combiner {combiner!r}"):
                frozen = made.freeze(inputs, params)
                made.fits([self.by_id[name] for one in inputs.values() for name in one.questions], frozen)
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

    def _check_inputs(self, name: str, combiner: str, inputs: Mapping[str, Input]) -> None:
        if _overflow([one.mass for one in inputs.values()]):
            raise PlanError(
                f"task {self.task.id!r}, component {name!r}: the sum of the weights is larger than any number; make "
                "them smaller"
            )
        for key, one in inputs.items() if name == STAKEHOLDERS or combiner == STAKEHOLDERS else ():
            share = self._residual_share(one)
            if share > MOST_RESIDUAL + ROUNDING:
                raise PlanError(
                    f"task {self.task.id!r}: residual questions hold {100 * share:.3g} % of the weight of stakeholder "
                    f"{key!r}, and {100 * MOST_RESIDUAL:g} % is the most; ask it more by facts, checks or a model, "
                    "share the weight out by weights.layers, or ask fewer residual questions"
                )

    def _residual_share(self, stated: Input) -> float:
        """What questions of layer `residual` hold of an input's absolute weight; a folded question weighs once."""
        asked = [self.by_id[name] for name in stated.questions]
        sizes = [
            abs(weight) * (question.samples if stated.reduce is None else 1)
            for question, weight in zip(asked, stated.weights, strict=True)
        ]
        residual = [size if q.layer == "residual" else 0.0 for q, size in zip(asked, sizes, strict=True)]
        return float(aggregation.total(residual) / aggregation.total(sizes))


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
        confident=stated.confident or 0.0,
        mass=stated.mass,
        gated=stated.gated or "missing",
    )


def first_part(subject: str) -> str:
    """What a question's subject belongs to: all of it, or what stands before its first slash."""
    return subject.partition("/")[0]


def _by_share(questions: Iterable[Question]) -> dict[str, list[Question]]:
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(first_part(question.subject), []).append(question)
    return groups


def _sum(weights: Sequence[float]) -> float:
    return float(aggregation.total(weights))


def _penalises(name: str, gates: Iterable[Gate]) -> bool:
    return any(isinstance(gate, RepetitionControl) and gate.component == name for gate in gates)


def decision_of(config: Config, specs: tuple[Spec, ...], combiners: Mapping[str, Combiner]) -> Decision:
    """The decision: the specs, and the rest of the recipe. `combiners` are by name."""
    decision = Decision(
        specs=specs,
        gates=tuple(sorted(config.gates, key=lambda gate: GATE_ORDER.index(gate.kind))),
        scale=config.scale,
        clip=config.clip,
        rule=config.failure.rule,
        min_coverage=config.failure.min_coverage,
        group_rule=config.failure.group_rule,
    )
    fixed = all(combiners[spec.combiner].fixes_weights for spec in decision.counting)
    return decision if fixed else decision.model_copy(update={"weights_fixed": False})
