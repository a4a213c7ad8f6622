"""Attack a jury's judge with each of its defences alone, with all of them, and with none.

Attacked are the questions about a single response that a model answers. The rest of a survey is kept only as far as
these wait for it or depend on it. Facts and checks do not depend on a model's answer, and a comparison of two responses
is another question than the score of a worthless one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jurygraph.decision.recipe import component_names, default_component
from jurygraph.errors import RUN_ENDING, ConfigError, InputError
from jurygraph.graphs.execution import run_isolated_sync
from jurygraph.graphs.prepare_graph import build_survey, list_derivations, list_questions, view_task
from jurygraph.graphs.routing import ReusedResults, required_material
from jurygraph.graphs.state import Group
from jurygraph.jury import Jury
from jurygraph.models.request import AnsweredCall, Request
from jurygraph.planner import Planner
from jurygraph.runs.reports.estimate import CallEstimate, Estimator
from jurygraph.safety.attacks import Attack, attack_text
from jurygraph.schema import (
    RESPONSE_GATES,
    Call,
    ComponentInput,
    ComponentSpec,
    Config,
    Criterion,
    Decision,
    Plan,
    Question,
    RecordedVerdict,
    Response,
    SafetyConfig,
    Survey,
    Task,
    Trace,
)
from jurygraph.schema.verdict import GATED_LAYERS, VerdictKey
from jurygraph.studies.attack.report import Figures, report_arm, report_attacks
from jurygraph.studies.report import Report

Advance = Callable[[int], None]
MAX_GROUP_SIZE = 16
"""Maximum number of responses in a group."""

NO_DEFENCES = SafetyConfig(fence=False, reminder=False, whole_reply=False, evidence="off", gates=())
_ENABLED_BY_ARM: dict[str, dict[str, Any]] = {
    "none": {},
    **{name.replace("_", "-"): {name: True} for name in ("fence", "reminder", "whole_reply")},
    "evidence": {"evidence": "required"},
    "preferred": {"evidence": "preferred"},
    "gates": {"gates": RESPONSE_GATES},
}


def arms(configured: SafetyConfig) -> tuple[dict[str, SafetyConfig], str]:
    """Return the active defences of all arms by name, and the name of the arm with the config's own defences.

    The arms are no defence, each defence alone (required evidence, preferred evidence, and the gates), all defences,
    and all with preferred evidence. If the config's own are none of these, that arm comes last, as `configured`.
    """
    known_arms = {name: NO_DEFENCES.model_copy(update=enabled) for name, enabled in _ENABLED_BY_ARM.items()}
    known_arms["all"] = SafetyConfig()
    known_arms["all-preferred"] = SafetyConfig(evidence="preferred")
    own_arm = next((name for name, safety in known_arms.items() if safety == configured), "configured")
    return known_arms | {own_arm: configured}, own_arm


def largest_arms(candidates: Iterable[SafetyConfig]) -> list[SafetyConfig]:
    """Return the arms whose requests include those of all other arms: a gate only ever saves requests."""
    largest: dict[tuple[bool, bool], list[SafetyConfig]] = defaultdict(list)  # by prompt
    for safety in sorted(candidates, key=lambda safety: len(safety.gates)):
        same_prompt = largest[safety.fence, safety.reminder]
        if not any(set(other.gates) <= set(safety.gates) for other in same_prompt):
            same_prompt.append(safety)
    return [safety for same_prompt in largest.values() for safety in same_prompt]


class _AttackGroup(NamedTuple):
    """Responses to the task at `task_index`, each with its attack; None for an honest response."""

    task_index: int
    task: Task
    attacks: Sequence[Attack | None]
    responses: Sequence[Response]


class AttackStudy:
    """Judges attacks on every task, and the tasks' honest responses, in every arm (see `arms`).

    Arms with equal prompts share their replies, so that only the effect of the defences on these differs and no request
    is sent twice. A study that was interrupted resumes from the cache.
    """

    def __init__(self, jury: Jury, tasks: Sequence[tuple[Task, Sequence[Response]]], attacks: Sequence[Attack]) -> None:
        """Plan the questions of every task. Raises the errors of `attack_surveys`."""
        self.arms, self.configured = arms(jury.config.safety)
        self._jury = jury
        self._attacks = attacks
        self._tasks = [task for task, _ in tasks]
        self._surveys = attack_surveys(jury, self._tasks)
        self._config = attack_config(jury, self._surveys)
        self._merit_questions = [merit_questions(jury.config, survey) for survey in self._surveys]
        self._groups = [one for one in _groups(tasks, attacks) if self._surveys[one.task_index].questions]
        self._known_verdicts: dict[tuple[str, str], dict[VerdictKey, RecordedVerdict]] = defaultdict(dict)

    @property
    def responses(self) -> int:
        """Return the number of responses judged in each arm, including honest ones."""
        return sum(len(group.responses) for group in self._groups)

    async def forecast(self, report: Advance) -> CallEstimate:
        """Estimate the requests to the model in all arms together; nothing is sent. Without a model there are none.

        `report` is called with the number of responses processed, in each of the arms that send the most requests.
        """
        gateways = self._jury.gateways
        if not gateways:
            return CallEstimate()
        estimator = Estimator(gateways)
        try:
            for safety in largest_arms(self.arms.values()):
                jury, plans = self._prepare(safety)
                planner = Planner(jury)
                for group in self._groups:
                    plan = _model_questions_only(plans[group.task_index], jury)
                    estimator.add(await planner.aestimate_requests(group.task, group.responses, plan))
                    report(len(group.responses))
        finally:
            await gateways.close()
        return estimator.estimate()

    async def run(self, report: Advance) -> Report:
        """Judge everything in every arm; `report` is called with the number of responses judged.

        The figures are `arms` by name, `configured`, the arm with the config's own defences, the numbers of `tasks`, of
        `responses` by attacks and of `honest` ones, of tasks without a question to attack (`skipped`), the evaluators
        that were not run (`left_out`), the verdicts `lost` to infrastructure by kind, their share of all verdicts
        (`error_rate`), and the `attacks` by id. Raises the errors that end a run.
        """
        gateways = self._jury.gateways
        sink = _InMemorySink()
        try:
            measured = {name: await self._measure_arm(arm, sink, report) for name, arm in self.arms.items()}
        except RUN_ENDING:
            await gateways.wait_for_pending()
            raise
        finally:
            await gateways.close()
        honest = sum(attack is None for group in self._groups for attack in group.attacks)
        used = {use.known_as for use in self._config.evaluators}
        return report_attacks(
            {
                "configured": self.configured,
                "tasks": len({group.task_index for group in self._groups}),
                "skipped": sum(not survey.questions for survey in self._surveys),
                "responses": self.responses - honest,
                "honest": honest,
                "left_out": [use.known_as for use in self._jury.config.evaluators if use.known_as not in used],
                "attacks": {one.id: one.model_dump(include={"suite", "kind", "language"}) for one in self._attacks},
                "arms": measured,
            }
        )

    def _prepare(self, safety: SafetyConfig) -> tuple[Jury, list[Plan]]:
        jury = Jury(self._config.model_copy(update={"safety": safety}), gateway=self._jury.gateways)
        return jury, [_plan(task, survey, jury) for task, survey in zip(self._tasks, self._surveys, strict=True)]

    async def _measure_arm(self, safety: SafetyConfig, sink: "_InMemorySink", report: Advance) -> Figures:
        jury, plans = self._prepare(safety)
        memory = _Memory(self._known_verdicts, jury)
        groups = (
            Group(one.task, one.responses, plans[one.task_index], memory.recall(one.task, one.responses))
            for one in self._groups
        )
        judged = []
        group_iterator = iter(self._groups)
        try:
            async for traces in jury.ascore_many(groups, sink=sink):
                group = next(group_iterator)
                for attack, response, trace in zip(group.attacks, group.responses, traces, strict=True):
                    memory.keep(group.task, response, trace)
                    merits = self._merit_questions[group.task_index]
                    verdicts = [one for one in trace.verdicts if one.question in merits]
                    judged.append((group.task_index, attack, verdicts))
                report(len(traces))
        finally:
            for evaluator in jury.evaluators.values():  # not the jury itself: the other arms still use its gateway
                run_isolated_sync(evaluator.close, jury.config.langsmith)
        return report_arm(safety, judged)


class _Memory:
    """Verdicts of earlier arms that also hold in this one: a gate changes which questions are sent, not their answers.

    Verdicts of evaluators with their own model hold in every arm, others where only the gates differ.
    """

    def __init__(self, known: dict[tuple[str, str], dict[VerdictKey, RecordedVerdict]], jury: Jury) -> None:
        self._known_verdicts = known
        self._own_model = {name for name, one in jury.evaluators.items() if not one.uses_model}
        self._defences = jury.config.safety.model_copy(update={"gates": ()}).digest

    def recall(self, task: Task, responses: Sequence[Response]) -> ReusedResults:
        """Return the known verdicts on these responses."""
        keys = [(defences, _content_key(task, one)) for one in responses for defences in ("", self._defences)]
        return ReusedResults({shown: one for key in keys for shown, one in self._known_verdicts[key].items()}, {})

    def keep(self, task: Task, response: Response, trace: Trace) -> None:
        """Store the verdicts of a trace, except infrastructure failures, which are tried again."""
        for one in trace.verdicts:
            if one.responses and (one.failure is None or one.failure.cause == "response"):
                defences = "" if one.evaluator in self._own_model else self._defences
                self._known_verdicts[defences, _content_key(task, response)][one.key] = one


def _content_key(task: Task, response: Response) -> str:
    return f"{task.content_digest} {response.content_digest}"


class _InMemorySink:
    """Stores calls as long as the study lasts."""

    def __init__(self) -> None:
        self._calls: dict[str, AnsweredCall] = {}

    def find(self, key: str) -> AnsweredCall | None:
        return self._calls.get(key)

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        self._calls[request.digest] = answered

    def store_unanswered(self, request: Request, call: Call) -> None:
        """Store nothing: no prompt of a study is shown."""


def _groups(tasks: Sequence[tuple[Task, Sequence[Response]]], attacks: Sequence[Attack]) -> Iterator[_AttackGroup]:
    """Yield groups of every attack on every task it applies to, and separate groups of honest responses."""
    for index, (task, honest) in enumerate(tasks):
        texts = {attack: text for attack in attacks if (text := attack_text(attack, task)) is not None}
        attacked = [Response(id=attack.id, text=text) for attack, text in texts.items()]
        for authors, responses in ((list(texts), attacked), ([None] * len(honest), honest)):
            for start in range(0, len(responses), MAX_GROUP_SIZE):
                chosen = slice(start, start + MAX_GROUP_SIZE)
                yield _AttackGroup(index, task, authors[chosen], responses[chosen])


def _plan(task: Task, survey: Survey, jury: Jury) -> Plan:
    """Return the plan of a task; its decision is the mean, because only verdicts are needed."""
    questions = tuple(question.id for question in survey.questions)
    all_questions = ComponentInput(questions=questions, weights=(1.0,) * len(questions))
    mean = jury.combiners["mean"]
    spec = ComponentSpec(
        name="mean", weight=1.0, combiner=mean.name, version=mean.version, inputs={"asked": all_questions}
    )
    return Plan(
        task_id=task.id,
        task_digest=task.content_digest,
        survey=survey.model_copy(update={"gates": jury.config.safety.gates}),
        decision=Decision(specs=(spec,)),
    )


def _model_questions_only(plan: Plan, jury: Jury) -> Plan:
    """Return the plan with only the questions for the config's model, without their conditions."""
    questions = tuple(
        question.model_copy(update={"when": None})
        for question in plan.survey.questions
        if jury.evaluators[question.evaluator].uses_model
    )
    return plan.model_copy(update={"survey": plan.survey.model_copy(update={"questions": questions})})


def attack_surveys(jury: Jury, tasks: Sequence[Task]) -> list[Survey]:
    """Return the survey of each task, reduced to the attacked questions and without gates.

    Raises ConfigError if the config has no evaluator to attack or no model for it, PlanError if a task cannot be
    planned, InputError if no task has a question.
    """
    surveys = run_isolated_sync(lambda: [_attacked_survey(jury, task) for task in tasks], jury.config.langsmith)
    if not any(survey.questions for survey in surveys):
        layers = " or ".join(GATED_LAYERS)
        if not any(one.layer in GATED_LAYERS and one.scope == "response" for one in jury.evaluators.values()):
            hint = "list one that does, such as criteria"
            raise ConfigError(f"evaluators: none is of layer {layers} and judges one response by itself; {hint}")
        subjects = "rubrics, reviewers, or stakeholders with constraints"
        hint = f"give them what the config's evaluators ask about: {subjects}; --tasks names tasks of your own"
        raise InputError(f"none of the tasks has a question of layer {layers}; {hint}")
    used = {question.evaluator for survey in surveys for question in survey.questions}
    questioned = {use.known_as for use in jury.config.evaluators if use.judges}
    idle = sorted(name for name in used - questioned if jury.evaluators[name].uses_model)
    if jury.gateway is None and idle:
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


def _attacked_survey(jury: Jury, task: Task) -> Survey:
    """Return the attacked questions about a task, and everything they wait for or depend on."""
    views = view_task(task, ["task", *(one.audience for one in jury.evaluators.values())])
    uses = {use.known_as: use for use in jury.config.evaluators}
    materials = [deriver.gives for deriver in jury.derivers.values()]
    derivations = list_derivations(jury.derivers, next(view for view in views if view.audience == "task"))
    survey = build_survey(views, derivations, list_questions(jury.evaluators, uses, views, materials))
    predecessors = {q.id: () if q.when is None else (q.when.question,) for q in survey.questions}
    ids = _reachable((q.id for q in survey.questions if _is_attacked(q)), predecessors)
    questions = [q for q in survey.questions if q.id in ids]
    needs = {one.gives: one.needs for one in survey.derivations}
    names = _reachable((name for q in questions for name in required_material(q)), needs)
    needed = [one for one in survey.derivations if one.gives in names]
    return build_survey(tuple(survey.views.values()), needed, questions)


def _reachable(names: Iterable[str], predecessors: Mapping[str, Iterable[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += predecessors[name]
    return reached
