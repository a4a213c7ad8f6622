"""The recipe: from the config's components, weights and gates to the frozen specs of a decision."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.decision.combiner import Combiner, as_plan_error
from jurygraph.errors import ConfigError, PlanError
from jurygraph.messages import nearest_name
from jurygraph.schema import (
    Audience,
    ComponentConfig,
    ComponentInput,
    ComponentSpec,
    Config,
    Decision,
    EvaluatorRecord,
    InputConfig,
    PrecisionShaping,
    Question,
    RepetitionControl,
    RewardGate,
    SkippedRule,
    Survey,
    Task,
)

RUBRIC, STAKEHOLDERS = "rubric", "stakeholders"
GATE_ORDER = ("precision", "format", "repetition")
MAX_RESIDUAL = 0.2
"""Maximum share of a stakeholder's residual checklist in the weight of û_i (DecompR)."""
ROUNDING = 1e-9


def short_name(name: str) -> str:
    """Return the component's name for an evaluator: the last part of the evaluator's name."""
    return name.rpartition(".")[2]


def component_names(config: Config, records: Mapping[str, EvaluatorRecord]) -> list[str]:
    """Return every component of the config and its evaluators; `records` are the evaluators' by name.

    Raises ConfigError if two share a name.
    """
    evaluator_of: dict[str, str] = {}
    for name, record in records.items():
        home = default_component(name, record.audience)
        first = evaluator_of.setdefault(home, name)
        if first != name and {records[first].audience, record.audience} not in ({"criterion"}, {"stakeholder"}):
            raise ConfigError(f"{first!r} and {name!r} would both give component {home!r}: `name` one otherwise")
    return sorted({*evaluator_of, *config.components})


def default_component(evaluator: str, audience: Audience) -> str:
    """Return the component that an evaluator's verdicts enter by default."""
    short = short_name(evaluator)
    own = evaluator.replace(".", "-") if short in (RUBRIC, STAKEHOLDERS) else short
    return {"criterion": RUBRIC, "stakeholder": STAKEHOLDERS}.get(audience, own)


def check_recipe(config: Config, records: Mapping[str, EvaluatorRecord]) -> None:
    """Raise ConfigError for a recipe that cannot be planned for any task.

    `records` are those of the config's evaluators, by name.
    """
    known = component_names(config, records)
    for name in config.reward:
        _refuse_unknown(f"reward.{name}", name, known)
    _check_weights(list(component_weights(config, known).values()))
    kinds = [gate.kind for gate in config.gates]
    for index, gate in enumerate(config.gates):
        if kinds.count(gate.kind) > 1:
            raise ConfigError(f"gates: there are two of kind {gate.kind!r}; keep one")
        for name in _gate_components(gate):
            _refuse_unknown(f"gates[{index}]", name, known)


def _check_weights(weights: Sequence[float]) -> None:
    if not any(weights):
        raise ConfigError("reward: every weight is 0, so nothing would count; give one component a weight")
    if _overflows(weights):
        raise ConfigError("reward: the sum of the weights is larger than any number; make them smaller")


@np.errstate(over="ignore")
def _overflows(weights: Sequence[float]) -> bool:
    return not np.isfinite(aggregation.total(np.abs(weights)))


def _gate_components(gate: RewardGate) -> tuple[str, ...]:
    """Return the components that a gate depends on."""
    return (gate.component, *(gate.auxiliary if isinstance(gate, PrecisionShaping) else ()))


def _refuse_unknown(where: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = nearest_name(name, known)
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"{where}: there is no component {name!r}; {hint}")


def component_weights(config: Config, names: Sequence[str]) -> dict[str, float]:
    """Return every component's signed weight, 0 if `reward` leaves it out. Raises ConfigError without any weight."""
    if config.reward:
        return {name: config.reward.get(name, 0.0) for name in names}
    if len(names) == 1:
        return {names[0]: 1.0}
    raise ConfigError(f"reward: say how the components count, for instance {{{names[0]}: 1.0}}; there are {names}")


def build_specs(
    task: Task,
    survey: Survey,
    config: Config,
    evaluator_records: Mapping[str, EvaluatorRecord],
    combiners: Mapping[str, Combiner],
    weights: Mapping[str, float],
    difficulty: Mapping[str, Any],
) -> tuple[ComponentSpec, ...]:
    """Return one spec for every component of this task, in the order of their names. Raises PlanError.

    `evaluator_records` and `combiners` are by name; `weights` and `difficulty` are those of the task's stakeholders.
    """
    builder = _SpecBuilder(task, survey, config, evaluator_records, combiners)
    specs = [builder.configured_spec(name, component) for name, component in config.components.items()]
    homes = {name: default_component(name, evaluator_records[name].audience) for name in builder.questions}
    for home in sorted(set(homes.values()) - set(config.components)):
        sources = [name for name, target in homes.items() if target == home]
        specs.append(builder.default_spec(home, sources, weights, difficulty))
    _refuse_absent(task, config.gates, builder.weight, [spec.name for spec in specs])
    return tuple(sorted(specs, key=lambda spec: spec.name))


def _refuse_absent(
    task: Task, gates: Iterable[RewardGate], weight: Mapping[str, float], present: Sequence[str]
) -> None:
    counted = [name for name in weight if weight[name]]
    for name in [*counted, *(name for gate in gates for name in _gate_components(gate))]:
        if name not in present:
            kind = {RUBRIC: "rubric", STAKEHOLDERS: "stakeholders"}.get(name, "question")
            raise PlanError(
                f"task {task.id!r}: the reward counts component {name!r}, but the task has no {kind} for it; complete "
                "the task, or leave the component out of `reward` and `gates`"
            )


class _SpecBuilder:
    """Builds the specs of one task."""

    def __init__(
        self,
        task: Task,
        survey: Survey,
        config: Config,
        records: Mapping[str, EvaluatorRecord],
        combiners: Mapping[str, Combiner],
    ) -> None:
        self.task = task
        self.config = config
        self.records = records
        self.combiners = combiners
        self.by_id = {question.id: question for question in survey.questions}
        self.weight = component_weights(config, component_names(config, records))
        self.questions: dict[str, dict[str | None, list[Question]]] = {}
        for question in survey.questions:
            member = survey.views[question.view].member
            self.questions.setdefault(question.evaluator, {}).setdefault(member, []).append(question)

    def configured_spec(self, name: str, component: ComponentConfig) -> ComponentSpec:
        """Return the spec of a component that the config defines."""
        inputs = {key: self._configured_input(name, key, component.inputs[key]) for key in sorted(component.inputs)}
        return self._build_spec(name, component.combiner, inputs, component.params)

    def default_spec(
        self, home: str, sources: Sequence[str], weights: Mapping[str, float], difficulty: Mapping[str, Any]
    ) -> ComponentSpec:
        """Return the default component of an evaluator, or of all evaluators for criteria or for stakeholders."""
        audience = self.records[sources[0]].audience
        if audience == "criterion":
            return self._rubric_spec(sources)
        if audience == "stakeholder":
            return self._stakeholder_spec(sources, weights, difficulty)
        return self._evaluator_spec(home, sources[0])

    def _evaluator_spec(self, home: str, source: str) -> ComponentSpec:
        """Return the component of one evaluator: an input for each reviewer, for each of its shares, or one for all."""
        record, questions_of = self.records[source], self.questions[source]
        counts = self.weight[home] != 0 or home in {gate.component for gate in self.config.gates}
        input_config = InputConfig(of=source, gated=None if counts else "missing")
        where = f"write components: {{{home}: {{inputs: {{{home}: {{of: {source}, gated: ...}}}}}}}}"
        groups = {source: [q for questions in questions_of.values() for q in questions]}
        if record.audience == "reviewer":
            panel, where = self.config.panel, "panel.gated"
            changes = {
                "reduce": panel.reduce,
                "confident": panel.confidence,
                "gated": panel.gated or input_config.gated,
            }
            input_config, groups = (
                input_config.model_copy(update=changes),
                {str(member): questions for member, questions in questions_of.items()},
            )
        elif record.shares:
            groups = _group_by_share(groups[source])
        inputs = {
            key: self._weighted_input(where, questions, input_config) for key, questions in sorted(groups.items())
        }
        if record.shares and record.audience != "reviewer":
            inputs = {
                key: spec_input.model_copy(update={"input_weight": _sum(spec_input.weights)})
                for key, spec_input in inputs.items()
            }
        return self._build_spec(home, record.combiner, inputs, {})

    def _weighted_input(self, where: str, questions: Sequence[Question], input_config: InputConfig) -> ComponentInput:
        """Return questions as an input, each with the weight that its evaluator declares."""
        spec_input = _build_input(where, questions, input_config)
        weights = [self._share(self.by_id[name]) for name in spec_input.questions]
        return spec_input.model_copy(update={"weights": tuple(weights)})

    def _share(self, question: Question) -> float:
        shares = self.records[question.evaluator].shares
        return shares.get(subject_root(question.subject), 1.0)

    def _stakeholder_spec(
        self, sources: Sequence[str], weights: Mapping[str, float], difficulty: Mapping[str, Any]
    ) -> ComponentSpec:
        weights_config = self.config.weights
        inputs = {
            s: self._member_input(sources, "weights.gated", s, w, weights_config.gated)
            for s, w in sorted(weights.items())
        }
        inputs = {
            s: spec_input.model_copy(update={"weights": self._layer_weights(s, spec_input)})
            for s, spec_input in inputs.items()
        }
        params: dict[str, Any] = {}
        if difficulty:
            settings = {
                "gamma": weights_config.gamma,
                "beta": weights_config.beta,
                "temperature": weights_config.temperature,
            }
            params = {"difficulty": difficulty, "calibration": settings}
        for kind in ("hard", "soft"):
            positions = {
                s: self._constraint_positions(s, spec_input.questions, kind) for s, spec_input in inputs.items()
            }
            params |= {kind: by_member} if (by_member := {s: p for s, p in positions.items() if p}) else {}
        params |= {"cap": weights_config.cap} if "hard" in params else {}
        params |= {"floor": weights_config.floor} if weights_config.welfare == "egalitarian" else {}
        return self._build_spec(STAKEHOLDERS, weights_config.welfare, inputs, params)

    def _layer_weights(self, member: str, spec_input: ComponentInput) -> tuple[float, ...]:
        """Return the weight of each question: its layer's share, divided among the questions of the layer."""
        shares = self.config.weights.layers
        if not shares:
            return spec_input.weights
        layers = [self.by_id[question].layer for question in spec_input.questions]
        for layer in layers:
            if layer not in shares:
                raise PlanError(
                    f"task {self.task.id!r}: weights.layers gives no share to layer {layer!r}, in which stakeholder "
                    f"{member!r} has questions; add one"
                )
        return tuple(shares[layer] / layers.count(layer) for layer in layers)

    def _constraint_positions(self, member: str, questions: Sequence[str], kind: str) -> list[int]:
        """Return the positions of the questions about a constraint of this kind."""
        person = next(stakeholder for stakeholder in self.task.stakeholders if stakeholder.id == member)
        constraints = {constraint.id for constraint in person.constraints if constraint.kind == kind}
        return [position for position, name in enumerate(questions) if self.by_id[name].subject in constraints]

    def _rubric_spec(self, sources: Sequence[str]) -> ComponentSpec:
        rubric = self.task.rubric
        assert rubric is not None  # there are questions about its criteria
        weight = {c.id: c.weight for c in rubric.criteria}
        gated = self.config.rubric.gated
        inputs = {c: self._member_input(sources, "rubric.gated", c, w, gated) for c, w in sorted(weight.items())}
        params = {"edges": [e.model_dump() for e in rubric.edges], "kappa": self.config.rubric.kappa}
        return self._build_spec(RUBRIC, self.config.rubric.aggregation, inputs, params)

    def _member_input(
        self, sources: Sequence[str], where: str, member: str, weight: float, gated: SkippedRule | None
    ) -> ComponentInput:
        """Return the questions of all these evaluators about a criterion or stakeholder as an input."""
        questions = [q for source in sources for q in self.questions[source].get(member, ())]
        if not questions:
            raise PlanError(
                f"task {self.task.id!r}: no evaluator has a question about {member!r}; add one of that audience, or "
                "leave it out of the task"
            )
        input_config = InputConfig(of=sources[0], input_weight=abs(weight), gated=gated)
        return _build_input(where, questions, input_config, 1.0 if weight > 0 else -1.0)

    def _configured_input(self, component: str, key: str, input_config: InputConfig) -> ComponentInput:
        where = f"components.{component}.inputs.{key}"
        if input_config.of in self.questions:
            questions = [q for member_questions in self.questions[input_config.of].values() for q in member_questions]
            return self._weighted_input(
                f"{where}.gated", questions, self._with_confidence(input_config, input_config.of)
            )
        if input_config.of in self.by_id:
            question = self.by_id[input_config.of]
            return _build_input(f"{where}.gated", [question], self._with_confidence(input_config, question.evaluator))
        near = nearest_name(input_config.of, [*self.questions, *self.by_id])
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(self.by_id)}"
        raise PlanError(f"{where}: task {self.task.id!r} has no question or evaluator {input_config.of!r}; {hint}")

    def _with_confidence(self, input_config: InputConfig, evaluator: str) -> InputConfig:
        """Return the input with the panel's minimum confidence for reviewers, unless it has its own."""
        if input_config.confident is not None or self.records[evaluator].audience != "reviewer":
            return input_config
        return input_config.model_copy(update={"confident": self.config.panel.confidence})

    def _build_spec(
        self, name: str, combiner: str, inputs: dict[str, ComponentInput], params: Mapping[str, Any]
    ) -> ComponentSpec:
        implementation = self.combiners[combiner]
        if implementation.needs_all_columns:
            inputs = {key: spec_input.model_copy(update={"reduce": None}) for key, spec_input in inputs.items()}
        self._check_inputs(name, combiner, inputs)
        try:
            with as_plan_error(f"combiner {combiner!r}"):
                frozen = implementation.freeze(inputs, params)
                implementation.check_questions(
                    [self.by_id[name] for spec_input in inputs.values() for name in spec_input.questions], frozen
                )
        except PlanError as error:
            if error.args and not str(error).startswith("task "):
                error.args = (f"task {self.task.id!r}, component {name!r}: {error}",)
            raise
        weight = self.weight[name]
        return ComponentSpec(
            name=name,
            weight=weight,
            direction=-1 if weight < 0 or (weight == 0 and _is_penalty(name, self.config.gates)) else 1,
            combiner=combiner,
            version=implementation.version,
            inputs=inputs,
            params=frozen,
        )

    def _check_inputs(self, name: str, combiner: str, inputs: Mapping[str, ComponentInput]) -> None:
        if _overflows([spec_input.input_weight for spec_input in inputs.values()]):
            raise PlanError(
                f"task {self.task.id!r}, component {name!r}: the sum of the weights is larger than any number; make "
                "them smaller"
            )
        for key, spec_input in inputs.items() if name == STAKEHOLDERS or combiner == STAKEHOLDERS else ():
            share = self._residual_share(spec_input)
            if share > MAX_RESIDUAL + ROUNDING:
                raise PlanError(
                    f"task {self.task.id!r}: residual questions hold {100 * share:.3g} % of the weight of stakeholder "
                    f"{key!r}, and {100 * MAX_RESIDUAL:g} % is the most; ask it more by facts, checks or a model, "
                    "share the weight out by weights.layers, or ask fewer residual questions"
                )

    def _residual_share(self, spec_input: ComponentInput) -> float:
        """Return the share of layer `residual` in an input's absolute weight; a folded question counts once."""
        questions = [self.by_id[name] for name in spec_input.questions]
        sizes = [
            abs(weight) * (question.samples if spec_input.reduce is None else 1)
            for question, weight in zip(questions, spec_input.weights, strict=True)
        ]
        residual = [size if q.layer == "residual" else 0.0 for q, size in zip(questions, sizes, strict=True)]
        return float(aggregation.total(residual) / aggregation.total(sizes))


def _build_input(
    where: str, questions: Iterable[Question], input_config: InputConfig, sign: float = 1.0
) -> ComponentInput:
    ordered = sorted(questions, key=lambda q: q.id)
    if input_config.gated is None and any(q.when for q in ordered):
        raise PlanError(
            f"{where}: question {next(q.id for q in ordered if q.when)!r} may be left out by its `when`: say whether "
            "it then counts as `missing` or as `zero`"
        )
    return ComponentInput(
        questions=tuple(q.id for q in ordered),
        weights=(sign,) * len(ordered),
        reduce=input_config.reduce,
        confident=input_config.confident or 0.0,
        input_weight=input_config.input_weight,
        gated=input_config.gated or "missing",
    )


def subject_root(subject: str) -> str:
    """Return the part of a question's subject before its first slash, or all of it."""
    return subject.partition("/")[0]


def _group_by_share(questions: Iterable[Question]) -> dict[str, list[Question]]:
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(subject_root(question.subject), []).append(question)
    return groups


def _sum(weights: Sequence[float]) -> float:
    return float(aggregation.total(weights))


def _is_penalty(name: str, gates: Iterable[RewardGate]) -> bool:
    return any(isinstance(gate, RepetitionControl) and gate.component == name for gate in gates)


def build_decision(config: Config, specs: tuple[ComponentSpec, ...], combiners: Mapping[str, Combiner]) -> Decision:
    """Return the decision: the specs, and the rest of the recipe. `combiners` are by name."""
    decision = Decision(
        specs=specs,
        gates=tuple(sorted(config.gates, key=lambda gate: GATE_ORDER.index(gate.kind))),
        scale=config.scale,
        clip=config.clip,
        rule=config.failure.rule,
        min_coverage=config.failure.min_coverage,
        group_rule=config.failure.group_rule,
    )
    fixed = all(combiners[spec.combiner].has_fixed_weights for spec in decision.counting_specs)
    return decision if fixed else decision.model_copy(update={"weights_fixed": False})
