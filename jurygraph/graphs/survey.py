"""The survey of a task: its views, and the derivations and questions about each response, in waves."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from jurygraph.agents.registry import prefix_config_errors
from jurygraph.agents.roles import Configurable, Deriver, Evaluator
from jurygraph.decision.combiners import raise_as_plan_error
from jurygraph.errors import ConfigError, PlanError, add_part_to_plan_errors
from jurygraph.graphs.routing import DATA_MATERIAL_NAME, required_material_names
from jurygraph.graphs.user_calls import call_component_method
from jurygraph.messages import describe_type, quote
from jurygraph.schema import (
    Audience,
    Criterion,
    Derivation,
    EvaluatorUse,
    Question,
    Reviewer,
    Stakeholder,
    Survey,
    Task,
    TaskView,
    Wave,
)
from jurygraph.schema.frozen_model import JsonFields, suggest_name
from jurygraph.schema.plan import SUBMITTED_MATERIAL_NAME
from jurygraph.schema.task import TaskBackground, sort_by_id
from jurygraph.schema.verdict import (
    EMPTY_TURN_GATE,
    GATED_LAYERS,
    GROUP_OF_ONE_GATE_NAME,
    MISSING_FIELD_GATE,
    NO_TURN_GATE,
    NO_VARIANT_GATE,
    RESPONSE_GATES,
    ResponseGate,
)
from jurygraph.tools.tool import ToolSet

_RESERVED_QUESTION_IDS = (
    EMPTY_TURN_GATE,
    GROUP_OF_ONE_GATE_NAME,
    MISSING_FIELD_GATE,
    NO_VARIANT_GATE,
    NO_TURN_GATE,
    *RESPONSE_GATES,
)
"""What `gated_by` of a verdict names besides questions."""


def _toolset_fields(owner: Configurable) -> JsonFields:
    """Return the fields of a question or derivation that a plan fixes about its tools."""
    toolset = owner.toolset
    if toolset is None:
        return {}
    return {
        "tools": toolset.specs,
        "max_steps": toolset.max_steps,
        "max_tokens": toolset.max_tokens,
    }


def digests_of_tool_files(
    survey: Survey, toolsets: Iterable[tuple[str, ToolSet]]
) -> dict[str, str]:
    """Return the SHA-256 of each file that tools read for a task, by its field. Raises PlanError for a wrong one."""
    view = next(view for view in survey.views.values() if view.audience == "task")
    files: dict[str, str] = {}
    for _, toolset in toolsets:
        for tool in toolset.tools.values():
            files.update(call_component_method(tool, tool.task_file_digests, view))
    return files


def view_task(task: Task, audiences: Iterable[Audience]) -> tuple[TaskView, ...]:
    """Return one view for each member of each of the audiences; members in the order of their ids."""
    criteria = task.rubric.criteria if task.rubric else ()
    reviewers = [Reviewer(id=name) for name in task.reviewers]
    members = {
        "task": (None,),
        "everyone": (None,),
        "stakeholder": sort_by_id(task.stakeholders),
        "criterion": sort_by_id(criteria),
        "reviewer": sort_by_id(reviewers),
    }
    views = []
    for audience in sorted(set(audiences)):
        views += [_make_task_view(task, audience, member) for member in members[audience]]
    return tuple(views)


def _make_task_view(
    task: Task, audience: Audience, about: Stakeholder | Criterion | Reviewer | None
) -> TaskView:
    """Return the view of one member, without what belongs to the decision: the weights and roles of constraints and of
    criteria, except for the sign of a criterion's weight."""
    if isinstance(about, Stakeholder):
        about = _equalize_constraint_restrictiveness(about)
    if isinstance(about, Criterion):
        sign = 1.0 if about.weight > 0 else -1.0
        about = about.model_copy(update={"weight": sign, "role": None})
    people: tuple[Stakeholder, ...] = ()
    if audience == "everyone":
        people = tuple(map(_equalize_constraint_restrictiveness, sort_by_id(task.stakeholders)))
    fields = {name: getattr(task, name) for name in TaskBackground.model_fields}
    if audience != "reviewer":
        fields["group"] = None
    return TaskView(
        id=task.id, audience=audience, about=about, people=people, query=task.query, **fields
    )


def _equalize_constraint_restrictiveness(person: Stakeholder) -> Stakeholder:
    """Return the stakeholder with equal restrictiveness for all constraints, sorted by id."""
    constraints = tuple(
        c.model_copy(update={"restrictiveness": 1.0}) for c in sort_by_id(person.constraints)
    )
    return person.model_copy(update={"constraints": constraints})


def list_material_derivations(
    derivers: Mapping[str, Deriver], view: TaskView
) -> tuple[Derivation, ...]:
    """Return the derivations in the order of the names of their material.

    Raises PlanError where two derivers give material of the same name, or one gives `submitted`, and ConfigError where
    no deriver gives the material that one needs.
    """
    derivations = {}
    available_material_names = {deriver.gives for deriver in derivers.values()}
    for name, deriver in derivers.items():
        if deriver.gives in derivations or deriver.gives == SUBMITTED_MATERIAL_NAME:
            raise PlanError(
                f"deriver {name!r} gives {deriver.gives!r}, which another source gives already; leave it out, or let "
                "it give another name"
            )
        needs = _add_data_material(
            deriver.needs, deriver, available_material_names - {deriver.gives}
        )
        derivations[deriver.gives] = Derivation(
            gives=deriver.gives,
            deriver=name,
            version=deriver.version,
            view=view.digest,
            needs=needs,
            params=dict(call_component_method(deriver, deriver.params_for, view)),
            **_toolset_fields(deriver),
        )
        _require_deriver_of_material("derivers", deriver.gives, needs, available_material_names)
    return tuple(derivations[material_name] for material_name in sorted(derivations))


def _add_data_material(
    needs: Sequence[str], component: Evaluator | Deriver, available_material_names: Collection[str]
) -> tuple[str, ...]:
    """Return the material that is needed, with the data of others if the component reads data."""
    is_data_available = component.reads_data and DATA_MATERIAL_NAME in available_material_names
    added_names = {DATA_MATERIAL_NAME}.difference(needs) if is_data_available else ()
    return (*needs, *added_names)


def _task_path_of_view(view: TaskView) -> tuple[str, ...]:
    """Return the part of the task that a view is about; empty for a view of the whole task."""
    part = {
        Reviewer: ("reviewers",),
        Stakeholder: ("stakeholders",),
        Criterion: ("rubric", "criteria"),
    }
    return () if view.about is None else (*part[type(view.about)], view.about.id)


ListedQuestion = tuple[str, TaskView, Question]
"""The name of an evaluator, a view, and a question as it lists it about that view."""


def list_questions_of_evaluators(
    evaluators: Mapping[str, Evaluator],
    views: Sequence[TaskView],
    uses: Sequence[EvaluatorUse],
) -> list[ListedQuestion]:
    """Return the questions that the evaluators list about the views of their audience.

    Raises PlanError for an invalid question, and ConfigError for a param that does not fit the task, with its key by
    the `uses` of the config.
    """
    keys = {use.known_as: f"evaluators[{index}]." for index, use in enumerate(uses)}
    listed_questions = []
    for name, evaluator in evaluators.items():
        for view in views:
            if view.audience != evaluator.audience:
                continue
            owner = f"`questions` of {name!r}"
            with (
                add_part_to_plan_errors(*_task_path_of_view(view)),
                prefix_config_errors(keys.get(name, "")),
                raise_as_plan_error(owner),
            ):
                questions = list(evaluator.questions(view))
            for question in questions:
                if not isinstance(question, Question):
                    raise PlanError(
                        f"{owner} returns {describe_type(question)}; return a list of `self.question(view, …)`"
                    )
                _refuse_foreign_question(question, evaluator, view)
                with raise_as_plan_error(f"`describe_missing_fields` of {name!r}"):
                    missing = evaluator.describe_missing_fields(view, question.subject)
                if missing is not None:
                    question = question.model_copy(update={"missing": missing})
                listed_questions.append((name, view, question))
    return listed_questions


def configure_questions(
    listed_questions: Iterable[ListedQuestion],
    evaluators: Mapping[str, Evaluator],
    uses: Mapping[str, EvaluatorUse],
    available_material_names: Collection[str],
) -> tuple[Question, ...]:
    """Return all questions in the order of their ids; `when`, `samples`, `material` and `scope` of the config override
    the evaluator's.

    `available_material_names` are the names of what derivers produce. A standby question is left out where another
    question covers the same member and subject. Raises PlanError for a question that is repeated or invalid, and
    ConfigError with the key of an evaluator that needs other material.
    """
    questions = {}
    covered_views_and_subjects = set()
    keys = {name: f"evaluators[{index}]" for index, name in enumerate(uses)}
    for name, view, question in listed_questions:
        if question.id in questions:
            raise PlanError(
                f"two questions have the id {question.id!r}: give them different subjects"
            )
        use = uses[name]
        evaluator = evaluators[name]
        needs = _add_data_material(question.needs, evaluator, available_material_names)
        _refuse_material_needs(use, name, needs)
        if use.scope == "turn":
            _check_turn_question(name, evaluator, question, keys[name])
        changes = {
            **_configured_question_fields(use, question, keys[name]),
            **_toolset_fields(evaluator),
        }
        if changes or needs != question.needs:
            question = question.model_copy(update={**changes, "needs": needs})
        if question.is_about_variants and question.scope != "response":
            raise PlanError(
                f"question {question.id!r} is about variants, so its scope is response, not {question.scope}"
            )
        questions[question.id] = question
        # one about a whole member covers none of its constraints
        if not question.standby and question.subject != view.member:
            covered_views_and_subjects.add((question.view, question.subject))
    sorted_questions = [
        question
        for _, question in sorted(questions.items())
        if not question.standby
        or (question.view, question.subject) not in covered_views_and_subjects
    ]
    for question in sorted_questions:
        needs = required_material_names(question)
        _require_deriver_of_material(
            keys[question.evaluator], question.id, needs, available_material_names
        )
    return tuple(sorted_questions)


def _refuse_material_needs(use: EvaluatorUse, name: str, needs: Sequence[str]) -> None:
    """Raise PlanError if an evaluator that depends on material is to judge variants, or turns, which have none."""
    field = "material" if use.material is not None else "scope"
    if getattr(use, field) is not None and needs:
        part = "variant" if field == "material" else "turn by itself"
        raise PlanError(
            f"evaluator {name!r} depends on material {needs[0]!r}, which is derived from the response itself, so that "
            f"it sees no {part}; leave `{field}` out, or ask one that reads the text"
        )


def _check_turn_question(name: str, evaluator: Evaluator, question: Question, key: str) -> None:
    """Raise PlanError or ConfigError for a question that cannot be asked about turns."""
    if question.scope != "response":
        raise PlanError(
            f"question {question.id!r} is about a {question.scope} of responses, which has no turns; leave `scope` out"
        )
    if evaluator.judges_whole_conversation:
        raise ConfigError(
            f"{key}.scope: {quote(name)} judges a conversation at its end, and a turn may be before it; leave `scope` "
            "out"
        )


def _configured_question_fields(use: EvaluatorUse, question: Question, key: str) -> JsonFields:
    """Return the fields of a question that the config sets. Raises ConfigError if its judges can never disagree."""
    changes = {}
    for field in ("when", "samples", "material", "escalate", "sees", "scope"):
        value = getattr(use, field)
        if value is not None:
            changes[field] = value
    shown_part = use.sees or question.shown_part
    if use.scope == "turn" and question.layer in GATED_LAYERS and shown_part != "last_reply":
        changes["names_turn"] = True
    if use.all_judges:
        changes["judges"] = use.all_judges
    if use.if_missing is None and question.missing is not None:
        changes["missing"] = (
            None  # it is asked although the task lacks something: its evaluator abstains
        )
    if use.escalate is not None and use.escalate.when == "disagree":
        votes = len(use.escalate.first) * changes.get("samples", question.samples)
        if votes < 2:
            raise ConfigError(
                f"{key}.escalate: one judge cannot disagree; name several as `first`, or raise `samples`"
            )
    return changes


def list_configured_questions(
    evaluators: Mapping[str, Evaluator],
    uses: Mapping[str, EvaluatorUse],
    views: Sequence[TaskView],
    available_material_names: Collection[str] = (),
) -> tuple[Question, ...]:
    """Return all questions of the evaluators about these views, as `configure_questions` does."""
    listed_questions = list_questions_of_evaluators(evaluators, views, tuple(uses.values()))
    return configure_questions(listed_questions, evaluators, uses, available_material_names)


def _require_deriver_of_material(
    key: str, user: str, needs: Iterable[str], available_material_names: Collection[str]
) -> None:
    for name in needs:
        if name not in available_material_names:
            remedy = "list one that does under `derivers`"
            hint = suggest_name(name, available_material_names, remedy)
            raise ConfigError(
                f"{key}: {user!r} needs material {name!r}, which no deriver gives; {hint}"
            )


def _refuse_foreign_question(question: Question, evaluator: Evaluator, view: TaskView) -> None:
    if question.evaluator != evaluator.name:
        raise PlanError(
            f"evaluator {evaluator.name!r} lists a question of {question.evaluator!r}; make each with `self.question`"
        )
    if question.view != view.digest:
        raise PlanError(
            f"question {question.id!r} is about another view than the one that its evaluator was given; make it with "
            "`self.question` of that view"
        )
    if question.id in _RESERVED_QUESTION_IDS:
        raise PlanError(
            f"no question may be called {question.id!r}, the name of skipped ones; set another `name`"
        )


def survey_cache_key(
    views: Sequence[TaskView],
    derivations: Sequence[Derivation],
    listed_questions: Sequence[ListedQuestion],
) -> Hashable:
    """Return what a survey without texts is made from besides the config: equal keys give equal ones.

    The parts are compared as JSON, because 1 and 1.0 are equal and have different digests.
    """
    indices = {view.digest: index for index, view in enumerate(views)}
    members = tuple((view.audience, view.member) for view in views)
    derivation_key_parts = []
    for derivation in derivations:
        content = derivation.model_dump_json(exclude=_FIELDS_OUTSIDE_KEY)
        derivation_key_parts.append((indices[derivation.view], content))
    question_key_parts = []
    for name, view, question in listed_questions:
        content = question.model_dump_json(exclude=_FIELDS_OUTSIDE_KEY)
        question_key_parts.append((name, indices[view.digest], content))
    return members, tuple(derivation_key_parts), tuple(question_key_parts)


_FIELDS_OUTSIDE_KEY = {"view"}


def build_survey(
    views: Sequence[TaskView],
    derivations: Sequence[Derivation],
    questions: Sequence[Question],
    gates: Sequence[ResponseGate] = (),
) -> Survey:
    """Return the survey: its waves follow from `needs`, `material` and `when`; `gates` are kept if any question can be
    gated.

    Raises PlanError where questions or material wait for each other, or for a question that does not exist.
    """
    sorter = TopologicalSorter(_dependencies_by_node(derivations, questions))
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(node.partition(":")[2] for node in error.args[1])
        raise PlanError(
            f"these wait for each other, so none can run: {cycle}; leave out one `when`, `needs` or `material` of them"
        ) from error
    names = [derivation.gives for derivation in derivations]
    ids = [question.id for question in questions]
    waves = []
    while sorter.is_active():
        ready = set(sorter.get_ready())
        materials = tuple(name for name in names if f"material:{name}" in ready)
        wave_question_ids = tuple(name for name in ids if f"question:{name}" in ready)
        waves.append(Wave(materials=materials, questions=wave_question_ids))
        sorter.done(*ready)
    can_be_gated = any(question.layer in GATED_LAYERS for question in questions)
    return Survey(
        views={view.digest: view for view in views},
        derivations=tuple(derivations),
        questions=tuple(questions),
        waves=tuple(waves),
        gates=tuple(gates) if can_be_gated else (),
    )


def _dependencies_by_node(
    derivations: Sequence[Derivation], questions: Sequence[Question]
) -> dict[str, list[str]]:
    """Return the nodes that each material and question waits for. Raises PlanError for an unknown question."""
    dependencies = {}
    for derivation in derivations:
        needs = [f"material:{name}" for name in derivation.needs]
        dependencies[f"material:{derivation.gives}"] = needs
    ids = dict.fromkeys(question.id for question in questions)
    for question in questions:
        dependency_names = [f"material:{name}" for name in required_material_names(question)]
        if question.when is not None:
            name = question.when.question
            if name not in ids:
                hint = suggest_name(name, ids, f"there are {', '.join(ids)}")
                raise PlanError(
                    f"{question.id!r} waits for question {name!r}, which no evaluator asks; {hint}"
                )
            dependency_names.append(f"question:{name}")
        dependencies[f"question:{question.id}"] = dependency_names
    return dependencies
