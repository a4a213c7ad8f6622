"""The prepare graph, run once for a batch of tasks: make a frozen plan from each task alone.

An error is the result of its task, which the later nodes leave alone; the other tasks go on. A step that is due for no
task is passed over, since a step of LangGraph costs as much CPU as planning a task does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from jurygraph.agents.checks.spec import find_tensions
from jurygraph.agents.profile import read_profiles
from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.decision.combiners import as_plan_error
from jurygraph.decision.recipe import build_decision, decision_key
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.errors import ConfigError, ModelError, PlanError, name_part
from jurygraph.graphs import annotate_graph
from jurygraph.graphs.routing import DATA, required_material
from jurygraph.graphs.state import (
    AnnotateInput,
    BatchContext,
    PrepareState,
    RunContext,
    TaskPlanning,
    call_within_limit,
)
from jurygraph.messages import name_type, nearest_name, quote, shorten
from jurygraph.schema import (
    Audience,
    Criterion,
    Decision,
    Derivation,
    EvaluatorUse,
    Plan,
    Question,
    Reviewer,
    Stakeholder,
    Survey,
    Task,
    TaskDefaults,
    TaskView,
    Wave,
)
from jurygraph.schema.plan import SUBMITTED, with_planning_results
from jurygraph.schema.task import ProfilesLine, is_text_only, sort_by_id, with_profiles
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


_MAX_SHOWN = 200
Update = dict[str, Any]
Node = Callable[[PrepareState, Runtime[BatchContext]], Awaitable[Command[str]]]


async def plan_tasks(
    tasks: Sequence[tuple[Task, ProfilesLine | None]], context: BatchContext
) -> list[Plan | Exception]:
    """Return the plan of each task of a batch, or its error. Each has its profiles of a PROFILES file, if any.

    Parts that a task lacks are those of the config's `task_defaults`.
    """
    defaults = context.groups[0].config.task_defaults
    start = [_begin(defaults.complete(task), line) for task, line in tasks]
    output = await build().ainvoke(PrepareState(tasks=start), context=context)
    return [
        planning.get("plan") or _locate_error(planning["error"], began["task"], defaults)
        for planning, began in zip(output["tasks"], start, strict=True)
    ]


def _begin(task: Task, line: ProfilesLine | None = None) -> TaskPlanning:
    return TaskPlanning(task=task, profiles_line=line, digest=task.content_digest)


def is_planned_by_code(task: Task, context: RunContext) -> bool:
    """Return whether nothing about a complete task has to be read or annotated first: `plan_by_code` plans it."""
    planning = _begin(task)
    return not (_has_unread_profiles(planning, context) or _lacks_graph(planning, context))


def plan_by_code(task: Task, context: RunContext) -> Plan | Exception:
    """Return the plan of such a task, or its error, as the prepare graph would; the task is all that it sees."""
    planning = _begin(task)
    try:
        if _has_weights(planning, context):
            planning = cast(TaskPlanning, {**planning, **_weigh(planning, context)})
        plan: Plan = _question(planning, context)["plan"]
    except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this group's traces
        return _locate_error(error, task, context.config.task_defaults)
    return plan


def _locate_error(error: Exception, task: Task, defaults: TaskDefaults) -> Exception:
    """Return an error of planning, as a ConfigError with its key if the part is one from `task_defaults`."""
    if not isinstance(error, PlanError) or not error.part:
        return error
    if getattr(task, error.part[0]) is not getattr(defaults, error.part[0]):
        return error
    message = str(error).removeprefix(f"task {task.id!r}: ")
    if not message.startswith(f"{error.part[0]}."):  # else it begins with the field itself
        message = f"{defaults.key_of(error.part)}: {message}"
    located = ConfigError(f"task_defaults.{message}")
    located.__cause__ = error
    return located


def _has_unread_profiles(planning: TaskPlanning, context: RunContext) -> bool:
    """Return whether profiles in text have to be read: else, or if nobody judges stakeholders, they change nothing."""
    has_text = planning["profiles_line"] is not None or any(
        map(is_text_only, planning["task"].stakeholders)
    )
    return has_text and "stakeholder" in _audiences(context)


async def _read_profiles(planning: TaskPlanning, context: RunContext) -> Update:
    client = None if context.config.model == "none" else context.judge_client
    task = planning["task"]
    read = await read_profiles(task, planning["profiles_line"], client)
    return {"profiles": read, "task": with_profiles(task, read)}


def _has_weights(planning: TaskPlanning, context: RunContext) -> bool:
    return bool(planning["task"].stakeholders) and "stakeholder" in _audiences(context)


def _weigh(planning: TaskPlanning, context: RunContext) -> Update:
    task = planning["task"]
    with name_part("stakeholders"):
        weights, difficulty = weigh_stakeholders(
            task, context.config.weights, _audiences(context), find_tensions
        )
    return {"weights": weights, "difficulty": difficulty}


def _lacks_graph(planning: TaskPlanning, context: RunContext) -> bool:
    """Return whether the annotator is needed: for a rubric without edges, if the config enables that and an
    evaluator judges criteria.

    With model none, only evaluators that need no model count. Where no criterion is judged, a graph has no use.
    """
    rubric = planning["task"].rubric
    if (
        context.config.annotation is None
        or rubric is None
        or rubric.edges
        or rubric.annotation is not None
    ):
        return False
    return any(
        evaluator.audience == "criterion"
        and (context.config.model != "none" or not evaluator.uses_model)
        for evaluator in context.evaluators.values()
    )


async def _annotate(planning: TaskPlanning, context: RunContext) -> Update:
    annotated = await annotate_graph.build().ainvoke(
        AnnotateInput(task=planning["task"]), context=context
    )
    return {"rubric": annotated["rubric"]}


def _question(planning: TaskPlanning, context: RunContext) -> Update:
    """Return the plan. Another step to freeze it would cost a task that is planned alone a quarter more CPU."""
    survey = _survey_of(planning, context)
    decision = _decision_of(planning, survey, context)
    return {"plan": _freeze(planning, survey, decision, context)}


def _survey_of(planning: TaskPlanning, context: RunContext) -> Survey:
    views = view_task(planning["task"], ["task", *_audiences(context)])
    derivations = list_derivations(
        context.derivers, next(view for view in views if view.audience == "task")
    )
    listed = ask_evaluators(context.evaluators, views)
    key = outline_key(views, derivations, listed)
    if (outline := context.outlines.get(key)) is not None:
        survey = outline.survey(views)
    else:
        uses = {use.known_as: use for use in context.config.evaluators}
        materials = [derivation.gives for derivation in derivations]
        questions = configure_questions(listed, context.evaluators, uses, materials)
        survey = build_survey(views, derivations, questions, context.config.safety.gates)
        context.outlines.keep(key, survey.outline)
    for question in survey.questions:
        evaluator = context.evaluators[question.evaluator]
        call_within_limit(evaluator, evaluator.check, question)
    return survey


def _decision_of(planning: TaskPlanning, survey: Survey, context: RunContext) -> Decision:
    """Return the decision. Raises ModelError for an incomplete graph, because missing edges would count as licensed."""
    rubric = planning.get("rubric")
    record = None if rubric is None else rubric.annotation
    if record is not None and (record.unanswered or record.unassigned):
        missing = [f"{pair.parent} -> {pair.child} {pair.why}" for pair in record.unanswered]
        missing += [f"{name} {why}" for name, why in record.unassigned.items()]
        how = "`jurygraph annotate` writes down what there is, to be completed and given to --edges-from"
        problem = f"its rubric graph lacks {len(missing)} answers, such as: {shorten(missing[0], _MAX_SHOWN)}"
        raise ModelError(f"task {planning['task'].id!r}: {problem}; {how}")
    task = with_planning_results(planning["task"], rubric=rubric)
    weighed = planning.get("weights", {}), planning.get("difficulty", {})
    key = decision_key(task, survey, *weighed)
    if (decision := context.decisions.get(key)) is None:
        records = {name: evaluator.record for name, evaluator in context.evaluators.items()}
        decision = build_decision(
            task, survey, context.config, records, context.combiners, *weighed
        )
        context.decisions.keep(key, decision)
    return decision


def _freeze(
    planning: TaskPlanning, survey: Survey, decision: Decision, context: RunContext
) -> Plan:
    client = context.judge_client
    rubric = planning.get("rubric")
    if rubric is not None:  # the order of criteria in a file must not change the plan
        rubric = rubric.model_copy(update={"criteria": sort_by_id(rubric.criteria)})
    return Plan(
        task_id=planning["task"].id,
        task_digest=planning["digest"],
        survey=survey,
        decision=decision,
        profiles=planning.get("profiles"),
        rubric=rubric,
        calls=() if client is None else tuple(client.calls[name] for name in sorted(client.calls)),
    )


def _audiences(context: RunContext) -> list[Audience]:
    return [evaluator.audience for evaluator in context.evaluators.values()]


class _Step(NamedTuple):
    """A step that is taken with every task for which it `is_due`; what it takes is added to the task's planning."""

    name: str
    take: Callable[[TaskPlanning, RunContext], Update | Awaitable[Update]]
    is_due: Callable[[TaskPlanning, RunContext], bool] = lambda *_: True

    def places_due(self, state: PrepareState, contexts: Sequence[RunContext]) -> list[int]:
        """Return the places of the tasks for which the step is due; those with an error are left alone."""
        return [
            place
            for place, planning in enumerate(state["tasks"])
            if "error" not in planning and self.is_due(planning, contexts[place])
        ]

    async def try_to_take(self, planning: TaskPlanning, context: RunContext) -> Update:
        try:
            update = self.take(planning, context)
            return await update if isinstance(update, Awaitable) else update
        except Exception as error:  # noqa: BLE001 - raised to the caller who waits for this task's plan
            return {"error": error}


_STEPS = (
    _Step("profiles", _read_profiles, _has_unread_profiles),
    _Step("weigh", _weigh, _has_weights),
    _Step("annotate", _annotate, _lacks_graph),
    _Step("question", _question),
)


def _name_next(steps: Sequence[_Step], state: PrepareState, runtime: Runtime[BatchContext]) -> str:
    """Return the name of the first of the steps that is due for any task, else the end."""
    contexts = runtime.context.groups
    return next((step.name for step in steps if step.places_due(state, contexts)), END)


async def _enter(state: PrepareState, runtime: Runtime[BatchContext]) -> str:
    """Name the first step. It is a coroutine because LangGraph calls others in a thread."""
    return _name_next(_STEPS, state, runtime)


def _node(step: _Step, later: Sequence[_Step]) -> Node:
    """Return a node that takes a step with all tasks at once, and goes to the next of the `later` ones that is due."""

    async def node(state: PrepareState, runtime: Runtime[BatchContext]) -> Command[str]:
        contexts = runtime.context.groups
        tasks = list(state["tasks"])
        due = step.places_due(state, contexts)
        updates = await asyncio.gather(
            *(step.try_to_take(tasks[place], contexts[place]) for place in due)
        )
        for place, update in zip(due, updates, strict=True):
            tasks[place] = cast(TaskPlanning, {**tasks[place], **update})
        updated = PrepareState(tasks=tasks)
        return Command(goto=_name_next(later, updated, runtime), update=updated)

    return node


@cache  # without a checkpointer, a compiled graph holds no state of a run
def build() -> CompiledStateGraph[PrepareState, BatchContext, PrepareState, PrepareState]:
    """Return the compiled graph: profiles → weigh → annotate → question, less what is due for no task."""
    graph = StateGraph(PrepareState, context_schema=BatchContext)
    names = [step.name for step in _STEPS]
    graph.add_conditional_edges(START, _enter, names)
    for number, step in enumerate(_STEPS):
        node = _node(step, _STEPS[number + 1 :])
        destinations = (*names[number + 1 :], END)
        graph.add_node(step.name, node, destinations=destinations)  # type: ignore[call-overload]
    return graph.compile(name="prepare")
