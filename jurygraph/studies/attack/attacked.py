"""What of a jury is under attack: the questions about one response by itself that a model answers.

Of the rest of a survey stays what these wait for, or rest on. Facts and checks rest on no model's word, and which of
two responses is the better one is another question than what a worthless one gets.
"""

from collections.abc import Callable, Iterable, Sequence

from jurygraph.errors import ConfigError, InputError
from jurygraph.graphs.answering import apart_now
from jurygraph.graphs.planning import list_derivations, list_questions, survey_of, view_task
from jurygraph.graphs.recipe import component_names, home_of
from jurygraph.graphs.routing import GATED_LAYERS, rests_on
from jurygraph.jury import Jury
from jurygraph.schema import Config, Criterion, Question, Survey, Task


def surveys_under_attack(jury: Jury, tasks: Sequence[Task]) -> list[Survey]:
    """What is asked of each task, without gates. Raises ConfigError where the config asks no model, PlanError where a
    task cannot be asked about, InputError where nothing is asked of any task."""
    surveys = apart_now(lambda: [_cut(_whole(jury, task)) for task in tasks], jury.config.langsmith)
    if not any(survey.questions for survey in surveys):
        layers = " or ".join(GATED_LAYERS)
        if not any(one.layer in GATED_LAYERS and one.scope == "response" for one in jury.evaluators.values()):
            hint = "list one that does, such as criteria"
            raise ConfigError(f"evaluators: none is of layer {layers} and judges one response by itself; {hint}")
        asked_about = "rubrics, reviewers, or stakeholders with constraints"
        hint = f"give them what the config's evaluators ask about: {asked_about}; --tasks names tasks of your own"
        raise InputError(f"none of the tasks has a question of layer {layers}; {hint}")
    asking = {question.evaluator for survey in surveys for question in survey.questions}
    if jury.gateway is None and (idle := sorted(name for name in asking if jury.evaluators[name].asks_model)):
        raise ConfigError(f"model: it is none, and evaluator {idle[0]!r} asks a model; name one, or use --model")
    return surveys


def config_under_attack(jury: Jury, surveys: Iterable[Survey]) -> Config:
    """The jury's config with those alone who are asked in the surveys. Every component counts alike, and none counts
    in an attack: what it takes is verdicts, not rewards."""
    asked = {question.evaluator for survey in surveys for question in survey.questions}
    derive = {derivation.deriver for survey in surveys for derivation in survey.derivations}
    kept = jury.config.model_copy(
        update={
            "evaluators": tuple(use for use in jury.config.evaluators if use.known_as in asked),
            "derivers": tuple(use for use in jury.config.derivers if use.known_as in derive),
            "components": {},
            "gates": (),
        }
    )
    names = component_names(kept, {name: one.seat for name, one in jury.evaluators.items() if name in asked})
    return kept.model_copy(update={"reward": dict.fromkeys(names, 1.0)})


def worth_having(config: Config, survey: Survey) -> frozenset[str]:
    """The ids of the questions of layers model and residual whose high score is a merit.

    It is none where a criterion has a negative weight, and where the config's reward weighs the component negatively
    which the question's evaluator gives.
    """
    bad = {name for name, weight in config.reward.items() if weight < 0}
    read = {one.of for name in bad & config.components.keys() for one in config.components[name].inputs.values()}
    return frozenset(q.id for q in survey.questions if _attacked(q) and not _penalises(q, survey, bad | read))


def _penalises(question: Question, survey: Survey, bad: set[str]) -> bool:
    view = survey.views[question.view]
    if isinstance(view.about, Criterion):
        return view.about.weight < 0
    return not bad.isdisjoint((home_of(question.evaluator, view.audience), question.evaluator, question.id))


def _attacked(question: Question) -> bool:
    return question.layer in GATED_LAYERS and question.scope == "response"


def _whole(jury: Jury, task: Task) -> Survey:
    views = view_task(task, ["task", *(one.audience for one in jury.evaluators.values())])
    uses = {use.known_as: use for use in jury.config.evaluators}
    gives = [deriver.gives for deriver in jury.derivers.values()]
    derivations = list_derivations(jury.derivers, next(view for view in views if view.audience == "task"))
    return survey_of(views, derivations, list_questions(jury.evaluators, uses, views, gives))


def _cut(survey: Survey) -> Survey:
    """What is attacked, and what that waits for or rests on."""
    asked = {question.id: question for question in survey.questions}
    given = {derivation.gives: derivation for derivation in survey.derivations}
    ids = _reached((name for name in asked if _attacked(asked[name])), lambda name: _before(asked[name]))
    names = _reached((one for name in ids for one in rests_on(asked[name])), lambda name: given[name].needs)
    derivations = [given[name] for name in given if name in names]
    return survey_of(tuple(survey.views.values()), derivations, [asked[name] for name in asked if name in ids])


def _before(question: Question) -> list[str]:
    """The question whose verdicts it waits for, if any."""
    return [] if question.when is None else [question.when.question]


def _reached(names: Iterable[str], before: Callable[[str], Iterable[str]]) -> set[str]:
    """These, those before them, and so on."""
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += before(name)
    return reached
