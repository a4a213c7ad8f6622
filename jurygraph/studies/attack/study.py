"""Attack a jury's judge with each of its defences alone, with all of them, and with none."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jurygraph.errors import BudgetExceeded
from jurygraph.graphs.execution import run_isolated_sync
from jurygraph.graphs.routing import KnownResults, VerdictKey
from jurygraph.jury import Group, Jury
from jurygraph.planner import Planner
from jurygraph.safety.attacks import Attack, attack_text
from jurygraph.schema import (
    ComponentInput,
    ComponentSpec,
    Decision,
    Plan,
    RecordedVerdict,
    Response,
    Survey,
    Task,
    Trace,
)
from jurygraph.studies.attack.arms import Arm, arms, largest_arms
from jurygraph.studies.attack.report import ArmReport, ArmTallies, AttackKind, AttackReport, infrastructure_failures
from jurygraph.studies.attack.scope import attack_config, attack_surveys, merit_questions

if TYPE_CHECKING:
    from jurygraph.models.request import AnsweredCall, Request
    from jurygraph.runs.reports.estimate import CallEstimate

Report = Callable[[int], None]
MAX_GROUP_SIZE = 16
"""Maximum number of responses in a group."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Responses to one task, each with its attack; None for an honest response."""

    place: int
    task: Task
    members: Sequence[tuple[Attack | None, Response]]

    @property
    def responses(self) -> list[Response]:
        return [response for _, response in self.members]


class AttackStudy:
    """Judges attacks on every task, and the tasks' honest responses, in every arm (see `arms`).

    Arms with equal prompts share their replies, so that only the effect of the defences on these differs and no request
    is
    sent twice. A study that was interrupted resumes from the cache.
    """

    def __init__(self, jury: Jury, tasks: Sequence[tuple[Task, Sequence[Response]]], attacks: Sequence[Attack]) -> None:
        """Plan the questions of every task. Raises the errors of `surveys_under_attack`."""
        self.arms, self.configured = arms(jury.config.safety)
        self._jury = jury
        self._attacks = attacks
        self._tasks = [task for task, _ in tasks]
        self._surveys = attack_surveys(jury, self._tasks)
        self._config = attack_config(jury, self._surveys)
        self._merit_questions = [merit_questions(jury.config, survey) for survey in self._surveys]
        self._groups = [one for one in _groups(tasks, attacks) if self._surveys[one.place].questions]
        self._known_verdicts: dict[tuple[str, str], dict[VerdictKey, RecordedVerdict]] = defaultdict(dict)

    @property
    def responses(self) -> int:
        """Return the number of responses judged in each arm, including honest ones."""
        return sum(len(group.members) for group in self._groups)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the config's evaluators that the study does not run."""
        used = {use.known_as for use in self._config.evaluators}
        return tuple(use.known_as for use in self._jury.config.evaluators if use.known_as not in used)

    async def forecast(self, report: Report) -> "CallEstimate":
        """Estimate the requests to the model in all arms together; nothing is sent. Without a model the estimate is
        empty.

        `report` is called with the number of responses processed, in each of the arms that send the most requests.
        """
        from jurygraph.runs.reports.estimate import CallEstimate, Estimator  # imported lazily: only needed with a model

        gateway = self._jury.gateway
        if gateway is None:
            return CallEstimate()
        estimator = Estimator(gateway)
        try:
            for arm in largest_arms(self.arms):
                jury = self._jury_under(arm)
                planner, plans = Planner(jury), self._plans(arm, jury)
                for group in self._groups:
                    plan = _model_questions_only(plans[group.place], jury)
                    estimator.add(await planner.aestimate_requests(group.task, group.responses, plan))
                    report(len(group.members))
        finally:
            await gateway.close()
        return estimator.estimate()

    async def run(self, report: Report) -> AttackReport:
        """Judge everything in every arm; `report` is called with the number of responses judged.

        Raises BudgetExceeded if a limit of cost or calls is reached.
        """
        gateway, sink = self._jury.gateway, _InMemorySink()
        try:
            reports = {arm.name: await self._measure_arm(arm, sink, report) for arm in self.arms}
        except BudgetExceeded:
            if gateway is not None:
                await gateway.wait_for_pending()
            raise
        finally:
            if gateway is not None:
                await gateway.close()
        members = [member for group in self._groups for member in group.members]
        honest = sum(attack is None for attack, _ in members)
        return AttackReport(
            configured=self.configured.name,
            tasks=len({group.place for group in self._groups}),
            responses=len(members) - honest,
            honest=honest,
            left_out=self.left_out,
            lost=infrastructure_failures(reports),
            attacks={one.id: AttackKind.of(one) for one in self._attacks},
            arms=reports,
        )

    def _jury_under(self, arm: Arm) -> Jury:
        """Return the jury with the defences of an arm."""
        return Jury(self._config.model_copy(update={"safety": arm.safety}), gateway=self._jury.gateway)

    def _plans(self, arm: Arm, jury: Jury) -> list[Plan]:
        """Return one plan for each task; its decision is the mean, because only verdicts are needed."""
        return [
            Plan(
                task_id=task.id,
                task_digest=task.content_digest,
                survey=survey.model_copy(update={"gates": arm.safety.gates}),
                decision=_mean_decision(survey, jury),
            )
            for task, survey in zip(self._tasks, self._surveys, strict=True)
        ]

    async def _measure_arm(self, arm: Arm, sink: "_InMemorySink", report: Report) -> ArmReport:
        jury, tallies = self._jury_under(arm), ArmTallies()
        plans = self._plans(arm, jury)
        memory = _Memory(self._known_verdicts, jury)
        groups = (
            Group(one.task, one.responses, plans[one.place], memory.recall(one.task, one.responses))
            for one in self._groups
        )
        group_iterator = iter(self._groups)
        try:
            async for traces in jury.ascore_all(groups, sink):
                group = next(group_iterator)
                for (attack, response), trace in zip(group.members, traces, strict=True):
                    _refuse_over_budget(trace)
                    memory.keep(group.task, response, trace)
                    tallies.add(attack, [v for v in trace.verdicts if v.question in self._merit_questions[group.place]])
                report(len(traces))
        finally:
            for evaluator in jury.evaluators.values():  # not the jury itself: the other arms still use its gateway
                run_isolated_sync(evaluator.close, jury.config.langsmith)
        return tallies.report(arm.safety)


class _Memory:
    """Verdicts of earlier arms that also hold in this one: a gate changes which questions are sent, not their answers.

    Verdicts of evaluators that bring their own model hold in every arm, others in arms with the same defences except
    gates.
    """

    def __init__(self, known: dict[tuple[str, str], dict[VerdictKey, RecordedVerdict]], jury: Jury) -> None:
        self._known_verdicts = known
        self._own_model = {name for name, one in jury.evaluators.items() if not one.uses_model}
        self._defences = jury.config.safety.model_copy(update={"gates": ()}).digest

    def recall(self, task: Task, responses: Sequence[Response]) -> KnownResults:
        """Return the known verdicts on these responses."""
        keys = ((defences, _content_key(task, response)) for response in responses for defences in ("", self._defences))
        return KnownResults(
            {shown: verdict for key in keys for shown, verdict in self._known_verdicts[key].items()}, {}
        )

    def keep(self, task: Task, response: Response, trace: Trace) -> None:
        """Store the verdicts of a trace, except infrastructure failures, which are tried again."""
        for one in trace.verdicts:
            if one.responses and (one.failure is None or one.failure.cause == "response"):
                defences = "" if one.evaluator in self._own_model else self._defences
                shown = (one.question, one.about, one.responses, one.sample)
                self._known_verdicts[defences, _content_key(task, response)][shown] = one


def _content_key(task: Task, response: Response) -> str:
    return f"{task.content_digest} {response.content_digest}"


class _InMemorySink:
    """Stores calls as long as the study lasts."""

    def __init__(self) -> None:
        self._calls: dict[str, AnsweredCall] = {}

    def find(self, key: str) -> "AnsweredCall | None":
        return self._calls.get(key)

    async def store(self, request: "Request", answered: "AnsweredCall") -> None:
        self._calls[request.digest] = answered


def _groups(tasks: Sequence[tuple[Task, Sequence[Response]]], attacks: Sequence[Attack]) -> Iterator[_Group]:
    """Yield groups of every attack on every task it applies to, and separate groups of honest responses."""
    for index, (task, honest) in enumerate(tasks):
        texts = ((attack, attack_text(attack, task)) for attack in attacks)
        attacked = [(attack, Response(id=attack.id, text=text)) for attack, text in texts if text is not None]
        for members in (attacked, [(None, response) for response in honest]):
            for start in range(0, len(members), MAX_GROUP_SIZE):
                yield _Group(index, task, members[start : start + MAX_GROUP_SIZE])


def _mean_decision(survey: Survey, jury: Jury) -> Decision:
    questions = tuple(question.id for question in survey.questions)
    all_questions = ComponentInput(questions=questions, weights=(1.0,) * len(questions))
    mean = jury.combiners["mean"]
    return Decision(
        specs=(
            ComponentSpec(
                name="mean", weight=1.0, combiner=mean.name, version=mean.version, inputs={"asked": all_questions}
            ),
        )
    )


def _model_questions_only(plan: Plan, jury: Jury) -> Plan:
    """Return the plan with only the questions for the config's model, without their conditions."""
    questions = [
        question.model_copy(update={"when": None})
        for question in plan.survey.questions
        if jury.evaluators[question.evaluator].uses_model
    ]
    return plan.model_copy(update={"survey": plan.survey.model_copy(update={"questions": tuple(questions)})})


def _refuse_over_budget(trace: Trace) -> None:
    for verdict in trace.verdicts:
        if verdict.failure is not None and verdict.failure.kind == "budget":
            raise BudgetExceeded(verdict.failure.message)
