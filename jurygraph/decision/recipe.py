"""The recipe: from the config's components, weights and gates to the frozen specs of a decision."""

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from jurygraph import aggregation
from jurygraph.decision.combiners import Combiners, ComponentInputs, raise_as_plan_error
from jurygraph.errors import ConfigError, PlanError, add_part_to_plan_errors
from jurygraph.messages import did_you_mean, list_first
from jurygraph.schema import (
    Audience,
    ComponentConfig,
    ComponentInput,
    ComponentSpec,
    Config,
    Decision,
    EvaluatorRecord,
    InputConfig,
    Must,
    PrecisionShaping,
    Question,
    RepetitionControl,
    SkippedQuestionTreatment,
    Survey,
    Task,
)
from jurygraph.schema.frozen_model import JsonFields, ReadOnlyFields
from jurygraph.schema.plan import (
    ImplementationHolder,
    ReductionMethod,
    RewardGate,
)

RUBRIC_COMPONENT_NAME = "rubric"
STAKEHOLDERS_COMPONENT_NAME = "stakeholders"
MAX_RESIDUAL_SHARE = 0.2
"""Maximum share of a stakeholder's residual checklist in the weight of û_i (DecompR)."""
ROUNDING_TOLERANCE = 1e-9
_MAX_LISTED_NAMES = 8


def component_names(config: Config, records: Mapping[str, EvaluatorRecord]) -> list[str]:
    """Return every component of the config and of the evaluators by name. Raises ConfigError if two share a name."""
    evaluators_by_component = _default_evaluators(records, records)
    # All evaluators of criteria share a component, and so do all of stakeholders.
    allowed_audiences = ({"criterion"}, {"stakeholder"})
    for component, names in evaluators_by_component.items():
        audiences = {records[name].audience for name in names}
        if len(names) > 1 and audiences not in allowed_audiences:
            raise ConfigError(
                f"{names[0]!r} and {names[1]!r} would both give component {component!r}: `name` one otherwise"
            )
    return sorted({*evaluators_by_component, *config.components})


def _default_evaluators(
    evaluators: Iterable[str], records: Mapping[str, EvaluatorRecord]
) -> dict[str, list[str]]:
    """Return the evaluators whose verdicts enter each component by default, by its name."""
    evaluators_by_component = defaultdict(list)
    for name in evaluators:
        component = default_component_name(name, records[name].audience)
        evaluators_by_component[component].append(name)
    return evaluators_by_component


def component_sources(
    config: Config, records: Mapping[str, EvaluatorRecord]
) -> dict[str, list[str]]:
    """Return the evaluators that each component is made of, by its name."""
    sources = _default_evaluators(records, records)
    for name, component in config.components.items():
        # a question begins with the name of its evaluator
        evaluators = {re.split("[/@]", use.verdicts_of)[0] for use in component.inputs.values()}
        sources[name] = sorted(evaluators & records.keys())
    return sources


def default_component_name(evaluator: str, audience: Audience) -> str:
    """Return the component that an evaluator's verdicts enter by default."""
    if audience == "criterion":
        return RUBRIC_COMPONENT_NAME
    if audience == "stakeholder":
        return STAKEHOLDERS_COMPONENT_NAME
    last_name_part = evaluator.rpartition(".")[2]
    # The last part may not take the name of a default component.
    return (
        evaluator.replace(".", "-")
        if last_name_part in (RUBRIC_COMPONENT_NAME, STAKEHOLDERS_COMPONENT_NAME)
        else last_name_part
    )


def check_recipe(config: Config, records: Mapping[str, EvaluatorRecord]) -> None:
    """Raise ConfigError for a recipe that cannot be planned for any task; `records` of its evaluators are by name."""
    names = component_names(config, records)
    for name in config.reward:
        if name not in names and name in records:
            component_name = default_component_name(name, records[name].audience)
            raise ConfigError(
                f"reward.{name}: evaluator {name!r} gives the component {component_name!r}; write "
                f"reward.{component_name}"
            )
        _refuse_unknown_component(f"reward.{name}", name, names)
    weights = list(component_weights(config, names).values())
    if not any(weights):
        raise ConfigError(
            "reward: every weight is 0, so nothing would count; give one component a weight"
        )
    if _has_infinite_sum(weights):
        raise ConfigError(
            "reward: the sum of the weights is larger than any number; make them smaller"
        )
    keys = [gate.key for gate in config.gates]
    for index, gate in enumerate(config.gates):
        if keys.count(gate.key) > 1:
            raise ConfigError(f"gates: there are two of kind {gate.key!r}; keep one")
        for name in _components_of_gate(gate):
            _refuse_unknown_component(f"gates[{index}]", name, names)


def refuse_unknown_criteria(
    names: Iterable[str], criteria: Collection[str], config: Config
) -> None:
    """Raise ConfigError for the first of these names in `criteria` that is none of the criteria that are judged."""
    for name in sorted(names):
        if name not in criteria:
            known_names = sorted(criteria)
            hint = did_you_mean(name, known_names)
            if name in config.components or name in config.reward:
                hint = f"it is a component, whose weight is reward.{name}"
            elif hint is None:
                listed_names = ", ".join(list_first(known_names, _MAX_LISTED_NAMES))
                hint = f"there are {listed_names}" if criteria else "no rubric is judged"
            raise ConfigError(f"criteria.{name}: no rubric has a criterion {name!r}; {hint}")


@np.errstate(over="ignore")
def _has_infinite_sum(weights: Sequence[float]) -> bool:
    return not np.isfinite(aggregation.total(np.abs(weights)))


def _components_of_gate(gate: RewardGate) -> tuple[str, ...]:
    if isinstance(gate, PrecisionShaping):
        return (gate.component, *gate.auxiliary)
    return (gate.component,)


def _refuse_unknown_component(where: str, name: str, components: Sequence[str]) -> None:
    if name not in components:
        component_list_text = f"there are {', '.join(components)}"
        if RUBRIC_COMPONENT_NAME in components and where == f"reward.{name}":
            component_list_text += f"; if it is a criterion, its weight is criteria.{name}.weight"
        hint = did_you_mean(name, components) or component_list_text
        raise ConfigError(f"{where}: there is no component {name!r}; {hint}")


def component_weights(config: Config, names: Sequence[str]) -> dict[str, float]:
    """Return every component's signed weight, 0 if `reward` leaves it out. Raises ConfigError without any weight."""
    if config.reward:
        return {name: config.reward.get(name, 0.0) for name in names}
    if len(names) == 1:
        return {names[0]: 1.0}
    raise ConfigError(
        f"reward: say how the components count, for instance {{{names[0]}: 1.0}}; there are {names}"
    )


def build_decision(
    task: Task,
    survey: Survey,
    config: Config,
    records: Mapping[str, EvaluatorRecord],
    combiners: Combiners,
    weights: Mapping[str, float],
    difficulty: ReadOnlyFields,
) -> Decision:
    """Return the decision for this task: one spec for every component, sorted by name, and the rest of the recipe.

    `records` of the evaluators and `combiners` are by name; `weights` and `difficulty` are those of the task's
    stakeholders. Raises PlanError, and ConfigError for an input of a component that is no question of the task.
    """
    builder = _ComponentSpecBuilder(task, survey, config, records, combiners)
    specs = builder.build_component_specs(weights, difficulty)
    musts = builder.build_criterion_musts(specs)
    order = ("precision", "format", "repetition", "must")
    gates = sorted(
        (*config.gates, *(Must(component=spec.name) for spec in musts)),
        key=lambda gate: (order.index(gate.kind), gate.key),
    )
    failure = config.failure.model_dump(include={"rule", "min_coverage", "group_rule"})
    decision = Decision(
        specs=specs,
        musts=musts,
        gates=tuple(gates),
        scale=config.scale,
        clip=config.clip,
        **failure,
    )
    if all(combiners[spec.combiner].has_fixed_weights for spec in decision.effective_specs):
        return decision
    return decision.model_copy(update={"weights_fixed": False})


def decision_key(
    task: Task, survey: Survey, weights: Mapping[str, float], difficulty: ReadOnlyFields
) -> Hashable:
    """Return what `build_decision` reads of a task and its survey: equal keys give equal decisions.

    Numbers that may be 0 are compared as text, because 0.0 and -0.0 are equal and have different digests.
    """
    rubric = task.rubric
    # Texts of criteria and constraints are left out: no decision depends on them, so many tasks can share one.
    criteria = []
    edges = []
    if rubric is not None:
        criteria = [
            (criterion.id, criterion.weight, criterion.must) for criterion in rubric.criteria
        ]
        edges = [edge.model_dump_json() for edge in rubric.edges]
    people = []
    for person in task.stakeholders:
        constraints = [(constraint.id, constraint.kind) for constraint in person.constraints]
        people.append((person.id, tuple(constraints)))
    return (
        survey.without_texts.digest,
        rubric is None,
        tuple(criteria),
        tuple(edges),
        tuple(people),
        repr((weights, difficulty)),
    )


@dataclass
class _ComponentSpecBuilder:
    task: Task
    survey: Survey
    config: Config
    records: Mapping[str, EvaluatorRecord]
    combiners: Combiners

    def __post_init__(self) -> None:
        self.by_id = {question.id: question for question in self.survey.questions}
        self.uses = {use.known_as: use for use in self.config.evaluators}
        self.weight = component_weights(self.config, component_names(self.config, self.records))
        # By evaluator, then by the criterion, stakeholder or reviewer that a question is about, in the survey's order.
        self.questions: dict[str, dict[str | None, list[Question]]] = {}
        for question in self.survey.questions:
            questions_by_member = self.questions.setdefault(question.evaluator, {})
            member = self.survey.views[question.view].member
            questions_by_member.setdefault(member, []).append(question)

    def build_component_specs(
        self, weights: Mapping[str, float], difficulty: ReadOnlyFields
    ) -> tuple[ComponentSpec, ...]:
        """Return the components that the config defines, and the default ones of all other evaluators."""
        specs = []
        for name, component in self.config.components.items():
            inputs = {
                key: self._configured_input(name, key, component)
                for key in sorted(component.inputs)
            }
            self._refuse_lost_weights(name, component.combiner, inputs)
            specs.append(
                self._build_component_spec(name, component.combiner, inputs, component.params)
            )
        evaluators_by_component = _default_evaluators(self.questions, self.records)
        for name in sorted(evaluators_by_component.keys() - self.config.components.keys()):
            evaluators = evaluators_by_component[name]
            audience = self.records[evaluators[0]].audience
            if audience == "criterion":
                specs.append(self._rubric_spec(evaluators))
            elif audience == "stakeholder":
                specs.append(self._stakeholder_spec(evaluators, weights, difficulty))
            else:
                specs.append(self._evaluator_spec(name, evaluators[0]))
        self._refuse_absent_components({spec.name for spec in specs})
        if not any(spec.weight for spec in specs):
            raise PlanError(
                f"task {self.task.id!r}: has nothing that an evaluator is about, and each leaves such tasks out; "
                "complete the task, or leave it out"
            )
        return tuple(sorted(specs, key=lambda spec: spec.name))

    def build_criterion_musts(self, specs: Sequence[ComponentSpec]) -> list[ComponentSpec]:
        """Return each criterion that is a must as a spec of its own.

        Raises PlanError for one that cannot be one, and ConfigError where the config says that it is.
        """
        rubric = self.task.rubric
        criteria = {
            RUBRIC_COMPONENT_NAME: {c.id: c.must for c in rubric.criteria} if rubric else {}
        }
        for evaluator in self.config.evaluators_with_criteria:
            record = self.records[evaluator]
            component = default_component_name(evaluator, record.audience)
            criteria[component] = {name: name in record.musts for name in record.shares}
        musts_of_config = {
            name: settings.must
            for name, settings in self.config.criteria.items()
            if settings.must is not None
        }
        musts = []
        names = {spec.name for spec in specs}
        for spec in specs:
            for name, is_must in criteria.get(spec.name, {}).items():
                if not musts_of_config.get(name, is_must):
                    continue
                problem = None
                if name not in spec.inputs:
                    problem = f"{spec.name!r} is of `components`; make a gate: `{{kind: must, component: NAME}}`"
                elif spec.inputs[name].weights[0] * spec.direction < 0:
                    problem = "it is a penalty; say what has to hold instead"
                elif name in names:
                    problem = "another must or component has its name; rename one"
                if problem and name in musts_of_config:
                    raise ConfigError(f"criteria.{name}.must: {problem}")
                if problem:
                    raise PlanError(
                        f"task {self.task.id!r}: criterion {name!r} cannot be a must: {problem}"
                    )
                names.add(name)
                spec_input = spec.inputs[name].model_copy(update={"input_weight": 1.0})
                musts.append(self._build_component_spec(name, "mean", {name: spec_input}, {}))
        return musts

    def _refuse_absent_components(self, present: set[str]) -> None:
        weighted_names = [name for name, weight in self.weight.items() if weight]
        gate_names = list(chain.from_iterable(map(_components_of_gate, self.config.gates)))
        evaluators_by_component = _default_evaluators(self.records, self.records)
        for name in (*weighted_names, *gate_names):
            if name in present:
                continue
            evaluators = evaluators_by_component.get(name, ())
            uses = [use for use in self.config.evaluators if use.known_as in evaluators]
            # Tasks without what its evaluators are about may go without it.
            may_be_absent = bool(uses) and all(use.if_missing is not None for use in uses)
            if may_be_absent and name not in gate_names:
                continue
            kind = {
                RUBRIC_COMPONENT_NAME: "rubric",
                STAKEHOLDERS_COMPONENT_NAME: "stakeholders",
            }.get(name, "question")
            remedy = "complete the task"
            if name == RUBRIC_COMPONENT_NAME:
                remedy = (
                    "write one in the task, for all tasks in `task_defaults`, or in a column "
                    "(--rubric-column; of a trainer, rubric=)"
                )
                if not may_be_absent:
                    remedy += "; or leave such tasks out of it: `if_missing: not_applicable` at its evaluators"
            if uses and self.records[uses[0].known_as].audience == "reviewer":
                remedy = (
                    "name whom it predicts in the task, or for all tasks in the config, "
                    "`task_defaults: {reviewers: [ann]}`"
                )
            reader = "a gate reads" if may_be_absent else "the reward counts"
            raise PlanError(
                f"task {self.task.id!r}: {reader} component {name!r}, but the task has no {kind} for it; "
                f"{remedy}; or leave the component out of `reward` and `gates`"
            )

    def _configured_input(self, name: str, key: str, component: ComponentConfig) -> ComponentInput:
        where = f"components.{name}.inputs.{key}"
        settings = component.inputs[key]
        if settings.verdicts_of in self.questions:
            questions_by_member = self.questions[settings.verdicts_of]
            questions = list(chain.from_iterable(questions_by_member.values()))
            # A question that counts in no utility counts here all the same.
            weights = {q.id: self._declared_weight(q) or 1.0 for q in questions}
        elif settings.verdicts_of in self.by_id:
            questions = [self.by_id[settings.verdicts_of]]
            weights = {settings.verdicts_of: 1.0}
        else:
            names = [*self.questions, *self.by_id]
            hint = did_you_mean(settings.verdicts_of, names) or f"there are {', '.join(self.by_id)}"
            raise ConfigError(
                f"{where}: task {self.task.id!r} has no question or evaluator {settings.verdicts_of!r}; {hint}"
            )
        defaults: JsonFields = {}
        if settings.if_skipped is None:
            defaults["if_skipped"] = self.combiners[component.combiner].if_skipped
        audience = self.records[questions[0].evaluator].audience
        if settings.min_confidence is None and audience == "reviewer":
            defaults["min_confidence"] = self.config.panel.min_confidence
        settings = self._set_evaluator_fold(questions, settings.model_copy(update=defaults))
        return _build_component_input(f"{where}.if_skipped", questions, settings, weights)

    def _refuse_lost_weights(self, name: str, combiner: str, inputs: ComponentInputs) -> None:
        """Raise PlanError for an input that would count criteria of the task's rubric without their weights.

        A mean may have equal weights, but no penalty among gains; a penalty alone may have a negative weight elsewhere.
        """
        counts_criteria = self.combiners[combiner].counts_criteria
        weights = {}
        if self.task.rubric:
            weights = {criterion.id: criterion.weight for criterion in self.task.rubric.criteria}
        for key, spec_input in inputs.items():
            questions = [self.by_id[question] for question in spec_input.questions]
            criteria = {
                self.survey.views[question.view].member
                for question in questions
                if self.records[question.evaluator].audience == "criterion"
            }
            has_merged_criteria = len(criteria) > 1
            has_penalty = any(weights[str(criterion)] < 0 for criterion in criteria)
            # A rubric's combiner needs the weight of every criterion. Any other does without, unless a penalty is
            # among several criteria.
            loses_weights = has_merged_criteria and has_penalty
            if counts_criteria:
                loses_weights = has_merged_criteria or has_penalty
            if loses_weights:
                raise PlanError(
                    f"task {self.task.id!r}, component {name!r}: combiner {combiner!r} would count the criteria of "
                    f"input {key!r} without their weights; give each of positive weight a component of its own, with "
                    f'the input `{{verdicts_of: "{questions[0].evaluator}@CRITERION"}}`, or use the component '
                    "'rubric', with `rubric.aggregation`"
                )

    def _declared_weight(self, question: Question) -> float:
        name = _subject_root(question)
        weight = self.records[question.evaluator].shares.get(name, 1.0)
        if question.evaluator in self.config.evaluators_with_criteria:
            return self._criterion_weight(name, weight)
        return weight

    def _criterion_weight(self, name: str, weight: float) -> float:
        """Return the weight of a criterion, or the one that the config gives it. Raises PlanError for another sign."""
        criterion = self.config.criteria.get(name)
        if criterion is None or criterion.weight is None:
            return weight
        if (criterion.weight > 0) != (weight > 0):
            # its judge was told whether the criterion is a penalty, so its verdicts say something else
            raise PlanError(
                f"task {self.task.id!r}: criteria.{name}.weight is {criterion.weight:g} and has another sign "
                f"than {weight:g} in the rubric, which changes the question; keep the sign here, or change the rubric"
            )
        return criterion.weight

    def _evaluator_spec(self, component: str, evaluator_name: str) -> ComponentSpec:
        """Return the component of one evaluator: an input for each reviewer, for each of its shares, or one for all."""
        record = self.records[evaluator_name]
        components_with_gate = {gate.component for gate in self.config.gates}
        counts = self.weight[component] != 0 or component in components_with_gate
        # The config has to say how skipped questions count only where they can change the reward.
        if_skipped = None if counts else "left-out"
        settings = InputConfig(verdicts_of=evaluator_name, if_skipped=if_skipped)
        where = (
            f"write components: {{{component}: {{inputs: {{{component}: "
            f"{{verdicts_of: {evaluator_name}, if_skipped: ...}}}}}}}}"
        )
        predicts_reviewers = record.audience == "reviewer"
        has_subject_shares = bool(record.shares) and not predicts_reviewers
        groups = defaultdict(list)
        for member, questions in self.questions[evaluator_name].items():
            for question in questions:
                key = evaluator_name
                if predicts_reviewers:
                    key = str(member)
                elif has_subject_shares:
                    key = _subject_root(question)
                groups[key].append(question)
        if predicts_reviewers:
            panel = self.config.panel
            where = "panel.if_skipped"
            settings = InputConfig(
                verdicts_of=evaluator_name,
                reduce=panel.reduce,
                min_confidence=panel.min_confidence,
                if_skipped=panel.if_skipped or if_skipped,
            )
        inputs = {}
        for key, group in sorted(groups.items()):
            weights = {question.id: self._declared_weight(question) for question in group}
            settings_with_fold = self._set_evaluator_fold(group, settings, settings.reduce)
            spec_input = _build_component_input(where, group, settings_with_fold, weights)
            if has_subject_shares:
                input_weight = float(aggregation.total(spec_input.weights))
                spec_input = spec_input.model_copy(update={"input_weight": input_weight})
            inputs[key] = spec_input
        return self._build_component_spec(component, record.combiner, inputs, {})

    def _rubric_spec(self, evaluator_names: Sequence[str]) -> ComponentSpec:
        rubric = self.task.rubric
        settings = self.config.rubric
        assert rubric is not None  # there are questions about its criteria
        weights = {
            criterion.id: self._criterion_weight(criterion.id, criterion.weight)
            for criterion in rubric.criteria
        }
        inputs = self._inputs_by_member(
            evaluator_names, "rubric.if_skipped", weights, settings.if_skipped
        )
        params = {
            "edges": [edge.model_dump() for edge in rubric.edges],
            **settings.model_dump(include={"kappa", "exact", "met_from"}),
        }
        with add_part_to_plan_errors("rubric"):
            return self._build_component_spec(
                RUBRIC_COMPONENT_NAME, settings.aggregation, inputs, params
            )

    def _stakeholder_spec(
        self,
        evaluator_names: Sequence[str],
        weights: Mapping[str, float],
        difficulty: ReadOnlyFields,
    ) -> ComponentSpec:
        settings = self.config.weights
        inputs = self._inputs_by_member(
            evaluator_names, "weights.if_skipped", weights, settings.if_skipped
        )
        if settings.layers:
            for member, spec_input in inputs.items():
                layered_question_weights = self._question_weights_by_layer(member, spec_input)
                inputs[member] = spec_input.model_copy(update={"weights": layered_question_weights})
        params: JsonFields = {}
        if difficulty:
            calibration = settings.model_dump(include={"gamma", "beta", "temperature"})
            params = {"difficulty": difficulty, "calibration": calibration}
        params |= self._question_positions(inputs)
        if "hard" in params and settings.cap != "none":
            params["cap"] = settings.cap
        if "floor" in self.combiners[settings.welfare].Params.model_fields:
            params["floor"] = settings.floor
        return self._build_component_spec(
            STAKEHOLDERS_COMPONENT_NAME, settings.welfare, inputs, params
        )

    def _question_positions(self, inputs: ComponentInputs) -> dict[str, dict[str, list[int]]]:
        """Return the positions of the questions about constraints, by kind, and of those of weight 0 (`collected`).

        Each by stakeholder that has any.
        """
        kinds = {
            person.id: {c.id: c.kind for c in person.constraints}
            for person in self.task.stakeholders
        }
        positions: dict[str, dict[str, list[int]]] = {}
        for member, spec_input in inputs.items():
            for index, (name, weight) in enumerate(spec_input.weighted_questions):
                found: list[str | None] = [kinds[member].get(self.by_id[name].subject)]
                if weight == 0:
                    found.append("collected")
                for kind in filter(None, found):
                    positions.setdefault(kind, {}).setdefault(member, []).append(index)
        return positions

    def _inputs_by_member(
        self,
        evaluator_names: Sequence[str],
        where: str,
        weights: Mapping[str, float],
        if_skipped: SkippedQuestionTreatment | None,
    ) -> dict[str, ComponentInput]:
        """Return the questions of these evaluators about each criterion or stakeholder as an input, sorted by id."""
        inputs = {}
        for member, weight in sorted(weights.items()):
            questions: list[Question] = []
            for evaluator in evaluator_names:
                questions += self.questions[evaluator].get(member, ())
            if not any(map(self._declared_weight, questions)):
                raise PlanError(
                    f"task {self.task.id!r}: no evaluator has a question about {member!r}; add one of that audience, "
                    "or leave it out of the task"
                )
            settings = InputConfig(
                verdicts_of=evaluator_names[0], input_weight=abs(weight), if_skipped=if_skipped
            )
            sign = 1.0 if weight > 0 else -1.0
            # A question of weight 0 is recorded, and counts in no utility.
            signs = {
                question.id: sign if self._declared_weight(question) else 0.0
                for question in questions
            }
            settings_with_fold = self._set_evaluator_fold(questions, settings)
            inputs[member] = _build_component_input(where, questions, settings_with_fold, signs)
        return inputs

    def _set_evaluator_fold(
        self,
        questions: Iterable[Question],
        settings: InputConfig,
        default: ReductionMethod | None = "mean",
    ) -> InputConfig:
        """Return an input's settings with the `fold` of its evaluators, unless its `reduce` is not the default.

        Raises PlanError if it has questions of evaluators with different folds.
        """
        evaluator_by_fold = {
            self.uses[question.evaluator].fold: question.evaluator for question in questions
        }
        configured_folds = [fold for fold in evaluator_by_fold if fold is not None]
        if not configured_folds or settings.reduce != default:
            return settings
        if len(evaluator_by_fold) > 1:
            first, second = sorted(evaluator_by_fold.values())[:2]
            raise PlanError(
                f"task {self.task.id!r}: {first!r} and {second!r} count in one input and have different folds; give "
                "both the same `fold`"
            )
        return settings.model_copy(update={"reduce": configured_folds[0]})

    def _question_weights_by_layer(
        self, member: str, spec_input: ComponentInput
    ) -> tuple[float, ...]:
        """Return the weight of each question: its layer's share, divided among the questions of it that count."""
        shares = self.config.weights.layers
        layers = [
            self.by_id[question].layer if weight else None
            for question, weight in spec_input.weighted_questions
        ]
        weights = []
        for layer in layers:
            if layer is None:
                weights.append(0.0)
            elif layer in shares:
                weights.append(shares[layer] / layers.count(layer))
            else:
                raise PlanError(
                    f"task {self.task.id!r}: weights.layers gives no share to layer {layer!r}, in which stakeholder "
                    f"{member!r} has questions; add one"
                )
        return tuple(weights)

    def _build_component_spec(
        self, name: str, combiner: str, inputs: ComponentInputs, params: ReadOnlyFields
    ) -> ComponentSpec:
        combiner_implementation = self.combiners[combiner]
        settings: JsonFields = {"vote": self.config.panel.vote}
        if combiner_implementation.needs_all_columns:
            settings = {"reduce": None}
        configured = {}
        for key, spec_input in inputs.items():
            calibration = self._calibration_of_input(key, spec_input)
            turns = self._turn_reduction_fields(combiner, spec_input)
            configured[key] = spec_input.model_copy(update=settings | calibration | turns)
        inputs = configured
        self._check_component_inputs(name, combiner, inputs)
        try:
            with raise_as_plan_error(f"combiner {combiner!r}"):
                if combiner_implementation.fuses_judges:
                    inputs = self._separate_judges(inputs)
                reviewers = self._predicted_reviewers(inputs)
                inputs = combiner_implementation.arrange_inputs(inputs, reviewers, params)
                frozen_params = combiner_implementation.freeze(inputs, params)
                combiner_implementation.validate_questions(
                    self._questions_of_inputs(inputs), frozen_params
                )
        except PlanError as error:
            if error.args and not str(error).startswith("task "):
                error.args = (f"task {self.task.id!r}, component {name!r}: {error}",)
            raise
        weight = self.weight.get(name, 0.0)
        is_penalty = any(
            isinstance(gate, RepetitionControl) and gate.component == name
            for gate in self.config.gates
        )
        lowers_reward = weight < 0 or (weight == 0 and is_penalty)
        spec = ComponentSpec(
            name=name,
            weight=weight,
            direction=-1 if lowers_reward else 1,
            combiner=combiner,
            version=combiner_implementation.version,
            inputs=dict(inputs),
            params=frozen_params,
        )
        spec._implementation = ImplementationHolder(combiner_implementation)
        return spec

    def _separate_judges(self, inputs: ComponentInputs) -> ComponentInputs:
        """Return an input for each of an evaluator's judges, by their names, in the place of one for all of them."""
        separated_judge_inputs: dict[str, ComponentInput] = {}
        for key, spec_input in inputs.items():
            inputs_by_judge = {
                judge: spec_input.model_copy(update={"judge": judge})
                for judge in self.by_id[spec_input.questions[0]].judges
            }
            if not inputs_by_judge:
                inputs_by_judge = {key: spec_input}
            repeated_judges = separated_judge_inputs.keys() & inputs_by_judge.keys()
            if repeated_judges:
                raise PlanError(
                    f"two inputs are the votes of {min(repeated_judges)!r}; leave one out, or rename it"
                )
            separated_judge_inputs |= inputs_by_judge
        return separated_judge_inputs

    def _calibration_of_input(self, key: str, spec_input: ComponentInput) -> JsonFields:
        """Return the calibration of an input's questions. Raises ConfigError where a calibrated score says nothing."""
        maps = {
            name: calibration
            for name, calibration in self.config.calibration.items()
            if name in spec_input.questions
        }
        for name in maps:
            scope = self.by_id[name].scope
            if scope != "response":
                judged = "single turns" if scope == "turn" else "several responses"
                raise ConfigError(
                    f"calibration.{name}: is about {judged}; calibrate questions about one response"
                )
            if spec_input.reduce == "majority":
                raise ConfigError(
                    f"calibration.{name}: input {key!r} counts its votes, and votes are no scores; fold it by its "
                    "mean, or leave the calibration out"
                )
        return {"calibration": maps}

    def _turn_reduction_fields(self, combiner: str, spec_input: ComponentInput) -> JsonFields:
        """Return how an input's questions about turns are reduced. Raises PlanError where none can be reduced."""
        turns = {}
        for name in spec_input.questions:
            question = self.by_id[name]
            if question.scope == "turn":
                turns[name] = self.uses[question.evaluator].turns or "mean"
        if turns and self.combiners[combiner].needs_all_columns:
            raise PlanError(
                f"combiner {combiner!r} reads single verdicts, and the turns of {min(turns)!r} become one value; leave "
                "`scope: turn` out"
            )
        return {"turns": turns} if turns else {}

    def _questions_of_inputs(self, inputs: ComponentInputs) -> list[Question]:
        names = chain.from_iterable(spec_input.questions for spec_input in inputs.values())
        return [self.by_id[name] for name in names]

    def _predicted_reviewers(self, inputs: ComponentInputs) -> dict[str, str | None]:
        """Return the reviewer whom each question predicts, None for nobody in particular."""
        reviewers = {}
        for question in self._questions_of_inputs(inputs):
            predicts_reviewer = self.records[question.evaluator].audience == "reviewer"
            member = self.survey.views[question.view].member
            reviewers[question.id] = member if predicts_reviewer else None
        return reviewers

    def _check_component_inputs(self, name: str, combiner: str, inputs: ComponentInputs) -> None:
        if _has_infinite_sum([spec_input.input_weight for spec_input in inputs.values()]):
            raise PlanError(
                f"task {self.task.id!r}, component {name!r}: the sum of the weights is larger than any number; make "
                "them smaller"
            )
        if STAKEHOLDERS_COMPONENT_NAME not in (name, combiner):
            return
        for key, spec_input in inputs.items():
            sizes = []
            residual_checklist_weights = []
            for question_id, weight in spec_input.weighted_questions:
                question = self.by_id[question_id]
                # a folded question counts once
                column_count = question.seats if spec_input.reduce is None else 1
                size = abs(weight) * column_count
                sizes.append(size)
                residual_checklist_weights.append(size if question.layer == "residual" else 0.0)
            share = float(aggregation.total(residual_checklist_weights) / aggregation.total(sizes))
            if share > MAX_RESIDUAL_SHARE + ROUNDING_TOLERANCE:
                raise PlanError(
                    f"task {self.task.id!r}: residual questions hold {100 * share:.3g} % of the weight of stakeholder "
                    f"{key!r}, and {100 * MAX_RESIDUAL_SHARE:g} % is the most; ask it more by facts, "
                    "checks or a model, "
                    "share the weight out by weights.layers, or ask fewer residual questions"
                )


def _build_component_input(
    where: str, questions: Iterable[Question], settings: InputConfig, weights: Mapping[str, float]
) -> ComponentInput:
    sorted_questions = sorted(questions, key=lambda q: q.id)
    names = [question.id for question in sorted_questions]
    skippable_question_ids = [question.id for question in sorted_questions if question.when]
    if settings.if_skipped is None and skippable_question_ids:
        raise PlanError(
            f"{where}: question {skippable_question_ids[0]!r} may be left out by its `when`: say whether "
            "it is then `left-out`, or counts as `zero`"
        )
    if_skipped = settings.if_skipped
    if if_skipped is None:
        # A response without variants is not excused from questions about them.
        has_variant_questions = any(question.is_about_variants for question in sorted_questions)
        if_skipped = "zero" if has_variant_questions else "left-out"
    return ComponentInput(
        questions=tuple(names),
        weights=tuple(weights[name] for name in names),
        reduce=settings.reduce,
        min_confidence=settings.min_confidence or 0.0,
        input_weight=settings.input_weight,
        if_skipped=if_skipped,
        has_judges=any(question.judges for question in sorted_questions),
    )


def _subject_root(question: Question) -> str:
    """Return the part of a question's subject before its first slash, or all of it."""
    return question.subject.partition("/")[0]
