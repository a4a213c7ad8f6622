"""The part of a jury that is attacked: the questions about a single response that a model answers.

The rest of a survey is kept only as far as these wait for it or depend on it. Facts and checks do not depend on a
model's answer, and a comparison of two responses is another question than the score of a worthless one.
"""

from collections.abc import Iterable, Mapping, Sequence

from jurygraph.decision.recipe import component_names, default_component
from jurygraph.errors import ConfigError, InputError
from jurygraph.graphs.execution import run_isolated_sync
from jurygraph.graphs.planning import build_survey, list_derivations, list_questions, view_task
from jurygraph.graphs.routing import required_material
from jurygraph.jury import Jury
from jurygraph.schema import Config, Criterion, Question, Survey, Task
from jurygraph.schema.safety import GATED_LAYERS


def attack_surveys(jury: Jury, tasks: Sequence[Task]) -> list[Survey]:
    """Return the survey of each task, reduced to the attacked questions and without gates.

    Raises ConfigError if the config has no evaluator to attack or no model for it, PlanError if a task cannot be
    planned, InputError if no task has a question.
    """
    surveys = run_isolated_sync(
        lambda: [_attacked_part(_full_survey(jury, task)) for task in tasks], jury.config.langsmith
    )
    if not any(survey.questions for survey in surveys):
        layers = " or ".join(GATED_LAYERS)
        if not any(one.layer in GATED_LAYERS and one.scope == "response" for one in jury.evaluators.values()):
            hint = "list one that does, such as criteria"
            raise ConfigError(f"evaluators: none is of layer {layers} and judges one response by itself; {hint}")
        subjects = "rubrics, reviewers, or stakeholders with constraints"
        hint = f"give them what the config's evaluators ask about: {subjects}; --tasks names tasks of your own"
        raise InputError(f"none of the tasks has a question of layer {layers}; {hint}")
    used = {question.evaluator for survey in surveys for question in survey.questions}
    if jury.gateway is None and (idle := sorted(name for name in used if jury.evaluators[name].uses_model)):
        raise ConfigError(f"model: it is none, and evaluator {idle[0]!r} asks a model; name one, or use --model")
    return surveys


def attack_config(jury: Jury, surveys: Iterable[Survey]) -> Config:
    """Return the jury's config with only the evaluators and derivers that the surveys use.

    All components have the same weight, because an attack is measured by verdicts, not by rewards.
    """
    evaluators = {question.evaluator for survey in surveys for question in survey.questions}
    derive = {derivation.deriver for survey in surveys for derivation in survey.derivations}
    reduced = jury.config.model_copy(
        update={
            "evaluators": tuple(use for use in jury.config.evaluators if use.known_as in evaluators),
            "derivers": tuple(use for use in jury.config.derivers if use.known_as in derive),
            "components": {},
            "gates": (),
        }
    )
    names = component_names(reduced, {name: one.record for name, one in jury.evaluators.items() if name in evaluators})
    return reduced.model_copy(update={"reward": dict.fromkeys(names, 1.0)})


def merit_questions(config: Config, survey: Survey) -> frozenset[str]:
    """Return the ids of the questions of layers model and residual whose high score is a merit.

    A high score is not a merit if a criterion has a negative weight, or if the config's reward weighs the component of
    the question's evaluator negatively.
    """
    negative = {name for name, weight in config.reward.items() if weight < 0}
    inputs = {
        one.verdicts_of
        for name in negative & config.components.keys()
        for one in config.components[name].inputs.values()
    }
    return frozenset(
        q.id for q in survey.questions if _is_attacked(q) and not _is_penalty(q, survey, negative | inputs)
    )


def _is_penalty(question: Question, survey: Survey, negative: set[str]) -> bool:
    view = survey.views[question.view]
    if isinstance(view.about, Criterion):
        return view.about.weight < 0
    component = default_component(question.evaluator, view.audience)
    return not negative.isdisjoint((component, question.evaluator, question.id))


def _is_attacked(question: Question) -> bool:
    return question.layer in GATED_LAYERS and question.scope == "response"


def _full_survey(jury: Jury, task: Task) -> Survey:
    views = view_task(task, ["task", *(one.audience for one in jury.evaluators.values())])
    uses = {use.known_as: use for use in jury.config.evaluators}
    materials = [deriver.gives for deriver in jury.derivers.values()]
    derivations = list_derivations(jury.derivers, next(view for view in views if view.audience == "task"))
    return build_survey(views, derivations, list_questions(jury.evaluators, uses, views, materials))


def _attacked_part(survey: Survey) -> Survey:
    """Return the attacked questions, and everything they wait for or depend on."""
    predecessors = {q.id: () if q.when is None else (q.when.question,) for q in survey.questions}
    ids = _reachable((q.id for q in survey.questions if _is_attacked(q)), predecessors)
    questions = [q for q in survey.questions if q.id in ids]
    needs = {one.gives: one.needs for one in survey.derivations}
    names = _reachable((name for q in questions for name in required_material(q)), needs)
    derivations = [one for one in survey.derivations if one.gives in names]
    return build_survey(tuple(survey.views.values()), derivations, questions)


def _reachable(names: Iterable[str], predecessors: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the names with all their predecessors, transitively."""
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += predecessors[name]
    return reached
