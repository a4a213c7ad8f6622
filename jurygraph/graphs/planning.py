"""The steps of prepare: from a task to a survey and a decision. Pure functions of the task and the roster."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.errors import PlanError
from jurygraph.graphs.routing import DATA, GATED_LAYERS, GROUP_OF_ONE, SUBMITTED
from jurygraph.graphs.taking import told_of
from jurygraph.schema import (
    Audience,
    Criterion,
    Derivation,
    EvaluatorUse,
    Question,
    ResponseGate,
    Reviewer,
    Stakeholder,
    Survey,
    Task,
    TaskView,
    Wave,
)
from jurygraph.schema.safety import STOPS
from jurygraph.schema.task import by_id
from jurygraph.sources.complaint import nearest_name


def view_task(task: Task, audiences: Iterable[Audience]) -> tuple[TaskView, ...]:
    """One view for each member of each audience that somebody asks about; members in the order of their ids."""
    members: dict[Audience, Sequence[Stakeholder | Criterion | Reviewer | None]] = {
        "task": (None,),
        "everyone": (None,),
        "stakeholder": by_id(task.stakeholders),
        "criterion": by_id(task.rubric.criteria if task.rubric else ()),
        "reviewer": by_id([Reviewer(id=name) for name in task.reviewers]),
    }
    return tuple(_view(task, audience, member) for audience in sorted(set(audiences)) for member in members[audience])


def _view(task: Task, audience: Audience, about: Stakeholder | Criterion | Reviewer | None) -> TaskView:
    """How much a criterion or constraint counts, and in which role, is the decision's: its view holds the sign of a
    weight alone."""
    if isinstance(about, Stakeholder):
        about = _unweighed(about)
    if isinstance(about, Criterion):
        about = about.model_copy(update={"weight": 1.0 if about.weight > 0 else -1.0, "role": None})
    return TaskView(
        id=task.id,
        audience=audience,
        about=about,
        people=tuple(map(_unweighed, by_id(task.stakeholders))) if audience == "everyone" else (),
        query=task.query,
        reference=task.reference,
        facts=task.facts,
        group=task.group if audience == "reviewer" else None,
        metadata=task.metadata,
    )


def _unweighed(person: Stakeholder) -> Stakeholder:
    """Without what each constraint counts, and in the order of their ids."""
    constraints = tuple(c.model_copy(update={"restrictiveness": 1.0}) for c in by_id(person.constraints))
    return person.model_copy(update={"constraints": constraints})


def list_derivations(derivers: Mapping[str, Deriver], view: TaskView) -> tuple[Derivation, ...]:
    """What the derivers give, in the order of its names."""
    listed: dict[str, Derivation] = {}
    given = {deriver.gives for deriver in derivers.values()}
    for name, deriver in derivers.items():
        if deriver.gives in listed or deriver.gives == SUBMITTED:
            raise PlanError(
                f"deriver {name!r} gives {deriver.gives!r}, which another source gives already; leave it out, or let "
                "it give another name"
            )
        listed[deriver.gives] = Derivation(
            gives=deriver.gives,
            deriver=name,
            version=deriver.version,
            view=view.digest,
            needs=_needs(deriver.needs, deriver.reads_data and deriver.gives != DATA and DATA in given),
            params=dict(deriver.params_for(view)),
        )
    return tuple(listed[gives] for gives in sorted(listed))


def _needs(stated: Sequence[str], data: bool) -> tuple[str, ...]:
    """The material that is needed, and the data that was derived where that is read."""
    return (*stated, DATA) if data and DATA not in stated else tuple(stated)


def list_questions(
    evaluators: Mapping[str, Evaluator],
    uses: Mapping[str, EvaluatorUse],
    views: Sequence[TaskView],
    given: Collection[str] = (),
) -> tuple[Question, ...]:
    """All questions, in the order of their ids; the config's `when`, `samples` and `of` take the place of their own.

    `given` are the names of what derivers give. A question on standby is left out where somebody else asks the same
    member about the same subject.
    """
    questions: dict[str, Question] = {}
    for name, evaluator in evaluators.items():
        changes = {k: v for k in ("when", "samples", "of") if (v := getattr(uses[name], k)) is not None}
        for view in views:
            if view.audience != evaluator.audience:
                continue
            with told_of(f"evaluator {name!r}"):
                listed = evaluator.questions(view)
            for question in listed:
                if question.id in questions:
                    raise PlanError(f"two questions have the id {question.id!r}: tell them apart by their subjects")
                needs = _needs(question.needs, evaluator.reads_data and DATA in given)
                if uses[name].of is not None and needs:
                    raise PlanError(_blind(name, needs))
                changed = question.model_copy(update={**changes, "needs": needs})
                questions[question.id] = _checked(changed, evaluator, view)
    whole = {view.digest: view.member for view in views}  # a question about somebody is about none of its constraints
    asked = {(q.view, q.subject) for q in questions.values() if not q.standby and q.subject != whole[q.view]}
    left_out = {name for name, q in questions.items() if q.standby and (q.view, q.subject) in asked}
    return tuple(questions[name] for name in sorted(questions.keys() - left_out))


def _blind(name: str, needs: Sequence[str]) -> str:
    """What to say of an evaluator that would judge every variant by what was made of the response."""
    rests = f"rests on material {needs[0]!r}, which is made of the response itself"
    return f"evaluator {name!r} {rests}, so that it sees no variant; leave `of` out, or ask one that reads the text"


def _checked(question: Question, evaluator: Evaluator, view: TaskView) -> Question:
    if question.evaluator != evaluator.name:
        raise PlanError(
            f"evaluator {evaluator.name!r} lists a question of {question.evaluator!r}; make each with `self.question`"
        )
    if question.view != view.digest:
        raise PlanError(
            f"question {question.id!r} is about another view than the one that its evaluator was given; make it with "
            "`self.question` of that view"
        )
    if question.id == GROUP_OF_ONE or question.id in STOPS:
        raise PlanError(f"no question is called {question.id!r}, which marks why none is asked: `name` it otherwise")
    if question.of != SUBMITTED and question.scope != "response":
        raise PlanError(f"question {question.id!r} is about variants, so its scope is response, not {question.scope}")
    return question


def survey_of(
    views: Sequence[TaskView],
    derivations: Sequence[Derivation],
    questions: Sequence[Question],
    gates: Sequence[ResponseGate] = (),
) -> Survey:
    """The survey, its waves worked out from `needs`, `of` and `when`, with `gates` where they answer anything."""
    return Survey(
        views={view.digest: view for view in views},
        derivations=tuple(derivations),
        questions=tuple(questions),
        waves=_waves(derivations, questions),
        gates=tuple(gates) if any(question.layer in GATED_LAYERS for question in questions) else (),
    )


def _waves(derivations: Sequence[Derivation], questions: Sequence[Question]) -> tuple[Wave, ...]:
    before = _before(derivations, questions)
    level: dict[str, int] = {}
    try:
        for node in TopologicalSorter(before).static_order():
            level[node] = 1 + max((level[earlier] for earlier in before[node]), default=-1)
    except CycleError as error:
        cycle = " -> ".join(node.partition(":")[2] for node in error.args[1])
        raise PlanError(
            f"these wait for each other, so none can be asked: {cycle}; leave out one `when`, `needs` or `of` of them"
        ) from error
    return tuple(
        Wave(
            materials=tuple(d.gives for d in derivations if level[f"material:{d.gives}"] == wave),
            questions=tuple(q.id for q in questions if level[f"question:{q.id}"] == wave),
        )
        for wave in range(1 + max(level.values(), default=-1))
    )


def _before(derivations: Sequence[Derivation], questions: Sequence[Question]) -> dict[str, list[str]]:
    """What each material and question waits for. PlanError if it waits for something that nobody gives."""
    before = {f"material:{d.gives}": [f"material:{name}" for name in d.needs] for d in derivations}
    for question in questions:
        derived = [*question.needs, *([] if question.of == SUBMITTED else [question.of])]
        gate = [] if question.when is None else [f"question:{question.when.question}"]
        before[f"question:{question.id}"] = [f"material:{name}" for name in derived] + gate
    for node, earlier in before.items():
        for one in earlier:
            if one not in before:
                raise PlanError(_unknown_source(node, one, before))
    return before


def _unknown_source(node: str, wanted: str, known: Iterable[str]) -> str:
    kind, _, name = wanted.partition(":")
    same = [one.partition(":")[2] for one in known if one.startswith(f"{kind}:")]
    near = nearest_name(name, same)
    hint = f"; did you mean {near!r}?" if near else ""
    if kind == "material":
        lacks = f"needs material {name!r}, which no deriver gives{hint or '; list one that does under `derivers`'}"
    else:
        lacks = f"waits for question {name!r}, which nobody asks{hint or '; there are ' + ', '.join(same)}"
    return f"{node.partition(':')[2]!r} {lacks}"
