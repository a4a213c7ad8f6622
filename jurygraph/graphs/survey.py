"""The survey of a task: its views, and the derivations and questions about each response, in waves."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.decision.combiners import as_plan_error
from jurygraph.errors import ConfigError, PlanError, name_part
from jurygraph.graphs.routing import DATA, required_material
from jurygraph.graphs.time_limits import call_within_limit
from jurygraph.messages import name_type, nearest_name, quote
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
from jurygraph.schema.plan import SUBMITTED
from jurygraph.schema.task import sort_by_id
from jurygraph.schema.verdict import (
    GATED_LAYERS,
    GROUP_OF_ONE,
    NO_TURN,
    NO_VARIANT,
    RESPONSE_GATES,
    ResponseGate,
)


def view_task(task: Task, audiences: Iterable[Audience]) -> tuple[TaskView, ...]:
    """Return one view for each member of each of the audiences; members in the order of their ids."""
    members: dict[Audience, Sequence[Stakeholder | Criterion | Reviewer | None]] = {
        "task": (None,),
        "everyone": (None,),
        "stakeholder": sort_by_id(task.stakeholders),
        "criterion": sort_by_id(task.rubric.criteria if task.rubric else ()),
        "reviewer": sort_by_id([Reviewer(id=name) for name in task.reviewers]),
    }
    return tuple(
        _make_view(task, audience, member)
        for audience in sorted(set(audiences))
        for member in members[audience]
    )


def _make_view(
    task: Task, audience: Audience, about: Stakeholder | Criterion | Reviewer | None
) -> TaskView:
    """Return the view of one member, without what belongs to the decision: the weights and roles of constraints and of
    criteria, except for the sign of a criterion's weight."""
    if isinstance(about, Stakeholder):
        about = _without_weights(about)
    if isinstance(about, Criterion):
        about = about.model_copy(update={"weight": 1.0 if about.weight > 0 else -1.0, "role": None})
    return TaskView(
        id=task.id,
        audience=audience,
        about=about,
        people=tuple(map(_without_weights, sort_by_id(task.stakeholders)))
        if audience == "everyone"
        else (),
        query=task.query,
        reference=task.reference,
        facts=task.facts,
        group=task.group if audience == "reviewer" else None,
        metadata=task.metadata,
        reference_messages=task.reference_messages,
        reference_actions=task.reference_actions,
        tools=task.tools,
        context=task.context,
    )


def _without_weights(person: Stakeholder) -> Stakeholder:
    """Return the stakeholder with equal restrictiveness for all constraints, sorted by id."""
    constraints = tuple(
        c.model_copy(update={"restrictiveness": 1.0}) for c in sort_by_id(person.constraints)
    )
    return person.model_copy(update={"constraints": constraints})


def list_derivations(derivers: Mapping[str, Deriver], view: TaskView) -> tuple[Derivation, ...]:
    """Return the derivations in the order of the names of their material.

    Raises PlanError where two derivers give material of the same name, or one gives `submitted`, and ConfigError where
    no deriver gives the material that one needs.
    """
    derivations: dict[str, Derivation] = {}
    available = {deriver.gives for deriver in derivers.values()}
    for name, deriver in derivers.items():
        if deriver.gives in derivations or deriver.gives == SUBMITTED:
            raise PlanError(
                f"deriver {name!r} gives {deriver.gives!r}, which another source gives already; leave it out, or let "
                "it give another name"
            )
        derivations[deriver.gives] = Derivation(
            gives=deriver.gives,
            deriver=name,
            version=deriver.version,
            view=view.digest,
            needs=_with_data(
                deriver.needs, deriver.reads_data and deriver.gives != DATA and DATA in available
            ),
            params=dict(call_within_limit(deriver, deriver.params_for, view)),
        )
        _require_material("derivers", deriver.gives, derivations[deriver.gives].needs, available)
    return tuple(derivations[gives] for gives in sorted(derivations))


def _with_data(declared: Sequence[str], needs_data: bool) -> tuple[str, ...]:
    """Return the declared material, with derived data added where it is needed."""
    return (*declared, DATA) if needs_data and DATA not in declared else tuple(declared)


def _part_of(view: TaskView) -> tuple[str, ...]:
    """Return the part of the task that a view is about; empty for a view of the whole task."""
    part = {
        Reviewer: ("reviewers",),
        Stakeholder: ("stakeholders",),
        Criterion: ("rubric", "criteria"),
    }
    return () if view.about is None else (*part[type(view.about)], view.about.id)


Listed = tuple[str, TaskView, Question]
"""The name of an evaluator, a view, and a question as it lists it about that view."""


def ask_evaluators(evaluators: Mapping[str, Evaluator], views: Sequence[TaskView]) -> list[Listed]:
    """Return the questions that the evaluators list about the views of their audience.

    Raises PlanError for an invalid question.
    """
    listed: list[Listed] = []
    for name, evaluator in evaluators.items():
        for view in views:
            if view.audience != evaluator.audience:
                continue
            with name_part(*_part_of(view)), as_plan_error(owner := f"`questions` of {name!r}"):
                own = list(call_within_limit(evaluator, evaluator.questions, view))
            for question in own:
                if not isinstance(question, Question):
                    raise PlanError(
                        f"{owner} returns {name_type(question)}; return a list of `self.question(view, …)`"
                    )
                listed.append((name, view, _check_question(question, evaluator, view)))
    return listed


def configure_questions(
    listed: Iterable[Listed],
    evaluators: Mapping[str, Evaluator],
    uses: Mapping[str, EvaluatorUse],
    available: Collection[str] = (),
) -> tuple[Question, ...]:
    """Return all questions in the order of their ids; `when`, `samples`, `material` and `scope` of the config override
    the evaluator's.

    `available` are the names of the material that derivers produce. A standby question is left out where another
    question covers the same member and subject. Raises PlanError for a question that is repeated or invalid, and
    ConfigError with the key of an evaluator that needs other material.
    """
    questions: dict[str, Question] = {}
    covered: set[tuple[str, str]] = set()
    for name, view, question in listed:
        if question.id in questions:
            raise PlanError(
                f"two questions have the id {question.id!r}: give them different subjects"
            )
        needs = _with_data(question.needs, evaluators[name].reads_data and DATA in available)
        field = "material" if uses[name].material is not None else "scope"
        if getattr(uses[name], field) is not None and needs:
            reason = f"depends on material {needs[0]!r}, which is derived from the response itself"
            hint = f"leave `{field}` out, or ask one that reads the text"
            shown = "variant" if field == "material" else "turn by itself"
            raise PlanError(f"evaluator {name!r} {reason}, so that it sees no {shown}; {hint}")
        if uses[name].scope == "turn" and question.scope != "response":
            problem = f"is about a {question.scope} of responses, which has no turns"
            raise PlanError(f"question {question.id!r} {problem}; leave `scope` out")
        if uses[name].scope == "turn" and evaluators[name].needs_the_end:
            key = f"evaluators[{list(uses).index(name)}].scope"
            problem = f"{quote(name)} judges a conversation at its end, and a turn may be before it"
            raise ConfigError(f"{key}: {problem}; leave `scope` out")
        changes = _configured_changes(uses[name], question, f"evaluators[{list(uses).index(name)}]")
        if changes or needs != question.needs:
            question = question.model_copy(update={**changes, "needs": needs})
        if question.material != SUBMITTED and question.scope != "response":
            problem = f"is about variants, so its scope is response, not {question.scope}"
            raise PlanError(f"question {question.id!r} {problem}")
        questions[question.id] = question
        if not question.standby and question.subject != view.member:
            covered.add(
                (question.view, question.subject)
            )  # one about a whole member covers none of its constraints
    left_out = {
        name for name, q in questions.items() if q.standby and (q.view, q.subject) in covered
    }
    ordered = tuple(questions[name] for name in sorted(questions.keys() - left_out))
    for question in ordered:
        key = f"evaluators[{list(uses).index(question.evaluator)}]"
        _require_material(key, question.id, required_material(question), available)
    return ordered


def _configured_changes(use: EvaluatorUse, question: Question, key: str) -> dict[str, Any]:
    """Return the fields of a question that the config sets. Raises ConfigError if its judges can never disagree."""
    changes: dict[str, Any] = {}
    for field in ("when", "samples", "material", "escalate", "sees", "scope"):
        if (value := getattr(use, field)) is not None:
            changes[field] = value
    if use.all_judges:
        changes["judges"] = use.all_judges
    votes = (
        2
        if use.escalate is None
        else len(use.escalate.first) * changes.get("samples", question.samples)
    )
    if votes < 2 and use.escalate is not None and use.escalate.when == "disagree":
        raise ConfigError(
            f"{key}.escalate: one judge cannot disagree; name several as `first`, or raise `samples`"
        )
    return changes


def list_questions(
    evaluators: Mapping[str, Evaluator],
    uses: Mapping[str, EvaluatorUse],
    views: Sequence[TaskView],
    available: Collection[str] = (),
) -> tuple[Question, ...]:
    """Return all questions of the evaluators about these views, as `configure_questions` does."""
    return configure_questions(ask_evaluators(evaluators, views), evaluators, uses, available)


def _require_material(
    key: str, user: str, needs: Iterable[str], available: Collection[str]
) -> None:
    for name in needs:
        if name not in available:
            suggestion = nearest_name(name, sorted(available))
            hint = (
                f"did you mean {suggestion!r}?"
                if suggestion
                else "list one that does under `derivers`"
            )
            raise ConfigError(
                f"{key}: {user!r} needs material {name!r}, which no deriver gives; {hint}"
            )


def _check_question(question: Question, evaluator: Evaluator, view: TaskView) -> Question:
    if question.evaluator != evaluator.name:
        raise PlanError(
            f"evaluator {evaluator.name!r} lists a question of {question.evaluator!r}; make each with `self.question`"
        )
    if question.view != view.digest:
        raise PlanError(
            f"question {question.id!r} is about another view than the one that its evaluator was given; make it with "
            "`self.question` of that view"
        )
    if question.id in (GROUP_OF_ONE, NO_VARIANT, NO_TURN, *RESPONSE_GATES):
        raise PlanError(
            f"no question may be called {question.id!r}, the name of skipped ones; set another `name`"
        )
    return question


def outline_key(
    views: Sequence[TaskView], derivations: Sequence[Derivation], listed: Sequence[Listed]
) -> Hashable:
    """Return what the outline of a survey is made from besides the config: equal keys give equal outlines.

    The parts are compared as JSON, because 1 and 1.0 are equal and have different digests.
    """
    place = {view.digest: number for number, view in enumerate(views)}
    return (
        tuple((view.audience, view.member) for view in views),
        tuple((place[each.view], each.model_dump_json(exclude=_VIEW)) for each in derivations),
        tuple(
            (name, place[view.digest], question.model_dump_json(exclude=_VIEW))
            for name, view, question in listed
        ),
    )


_VIEW = {"view"}


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
    dependencies = _dependencies(derivations, questions)
    level: dict[str, int] = {}
    try:
        for node in TopologicalSorter(dependencies).static_order():
            level[node] = 1 + max((level[earlier] for earlier in dependencies[node]), default=-1)
    except CycleError as error:
        cycle = " -> ".join(node.partition(":")[2] for node in error.args[1])
        raise PlanError(
            f"these wait for each other, so none can run: {cycle}; leave out one `when`, `needs` or `material` of them"
        ) from error
    waves = (
        Wave(
            materials=tuple(d.gives for d in derivations if level[f"material:{d.gives}"] == wave),
            questions=tuple(q.id for q in questions if level[f"question:{q.id}"] == wave),
        )
        for wave in range(1 + max(level.values(), default=-1))
    )
    return Survey(
        views={view.digest: view for view in views},
        derivations=tuple(derivations),
        questions=tuple(questions),
        waves=tuple(waves),
        gates=tuple(gates) if any(question.layer in GATED_LAYERS for question in questions) else (),
    )


def _dependencies(
    derivations: Sequence[Derivation], questions: Sequence[Question]
) -> dict[str, list[str]]:
    """Return the nodes that each material and question waits for. Raises PlanError for an unknown question."""
    dependencies = {
        f"material:{d.gives}": [f"material:{name}" for name in d.needs] for d in derivations
    }
    ids = dict.fromkeys(question.id for question in questions)
    for question in questions:
        required = [f"material:{name}" for name in required_material(question)]
        if question.when is not None:
            name = question.when.question
            if name not in ids:
                suggestion = nearest_name(name, ids)
                hint = (
                    f"did you mean {suggestion!r}?" if suggestion else "there are " + ", ".join(ids)
                )
                raise PlanError(
                    f"{question.id!r} waits for question {name!r}, which no evaluator asks; {hint}"
                )
            required.append(f"question:{name}")
        dependencies[f"question:{question.id}"] = required
    return dependencies
