"""A jury's judge under attack: what passes with each of its defences alone, with all of them, and with none."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jurygraph.errors import BudgetExceeded
from jurygraph.graphs.answering import apart_now
from jurygraph.graphs.routing import Recalled, Shown
from jurygraph.jury import Jury
from jurygraph.safety.attacks import Attack, attack_text
from jurygraph.schema import Decision, Input, Plan, Response, Spec, Survey, Task, Trace, Verdict
from jurygraph.studies.attack.arms import Arm, arms, asking_most
from jurygraph.studies.attack.attacked import config_under_attack, surveys_under_attack, worth_having
from jurygraph.studies.attack.report import ArmReport, ArmTallies, AttackKind, AttackReport, lost_in

if TYPE_CHECKING:
    from jurygraph.jury import Group
    from jurygraph.models.asking import Request
    from jurygraph.models.sink import Answered
    from jurygraph.runs.figures.estimate import Estimate

Report = Callable[[int], None]
TOGETHER = 16
"""Responses in a group, at most."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Responses to one task, each with the attack that it is; None where it is an honest one."""

    place: int
    task: Task
    members: Sequence[tuple[Attack | None, Response]]

    @property
    def responses(self) -> list[Response]:
        return [response for _, response in self.members]


class AttackStudy:
    """Attacks on every task, and the tasks' honest responses, judged by a jury in every arm (see `arms`).

    Arms whose prompts are equal share their replies: what differs between them is what the defences made of these, and
    no request is sent twice. A study that was cut short goes on from the cache.
    """

    def __init__(self, jury: Jury, tasks: Sequence[tuple[Task, Sequence[Response]]], attacks: Sequence[Attack]) -> None:
        """Find out what is asked. Raises as `surveys_under_attack`."""
        self.arms, self.configured = arms(jury.config.safety)
        self._jury = jury
        self._attacks = attacks
        self._tasks = [task for task, _ in tasks]
        self._surveys = surveys_under_attack(jury, self._tasks)
        self._config = config_under_attack(jury, self._surveys)
        self._counting = [worth_having(jury.config, survey) for survey in self._surveys]
        self._groups = [one for one in _groups(tasks, attacks) if self._surveys[one.place].questions]
        self._known: dict[tuple[str, str], dict[Shown, Verdict]] = defaultdict(dict)

    @property
    def responses(self) -> int:
        """How many responses are judged, in every arm anew; honest ones are among them."""
        return sum(len(group.members) for group in self._groups)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The config's evaluators that are not asked."""
        asked = {use.known_as for use in self._config.evaluators}
        return tuple(use.known_as for use in self._jury.config.evaluators if use.known_as not in asked)

    async def forecast(self, report: Report) -> "Estimate":
        """What the model would be asked in all arms together, where there is one. Nothing is sent.

        `report` is told how many responses were looked at, in each of the arms that ask the most.
        """
        from jurygraph.runs.figures.estimate import Estimate, Estimator  # nobody pays for it who asks no model

        gateway = self._jury.gateway
        if gateway is None:
            return Estimate()
        estimator = Estimator(gateway)
        try:
            for arm in asking_most(self.arms):
                jury = self._under(arm)
                plans = self._plans(arm, jury)
                for one in self._groups:
                    plan = _of_the_model_alone(plans[one.place], jury)
                    estimator.add(await jury.arequests(one.task, one.responses, plan))
                    report(len(one.members))
        finally:
            await gateway.close()
        return estimator.estimate()

    async def run(self, report: Report) -> AttackReport:
        """Judge everything in every arm; `report` is told how many responses were judged.

        Raises BudgetExceeded where a limit of cost or calls is reached.
        """
        gateway = self._jury.gateway
        if gateway is not None:
            gateway.sink = _InMemory()
        try:
            found = {arm.name: await self._measured(arm, report) for arm in self.arms}
        except BudgetExceeded:
            if gateway is not None:
                await gateway.settle()
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
            lost=lost_in(found),
            attacks={one.id: AttackKind.of(one) for one in self._attacks},
            arms=found,
        )

    def _under(self, arm: Arm) -> Jury:
        """The jury with these defences."""
        return Jury(self._config.model_copy(update={"safety": arm.safety}), gateway=self._jury.gateway)

    def _plans(self, arm: Arm, jury: Jury) -> list[Plan]:
        """One for each task. Verdicts are all that is wanted; what is decided of them is their mean."""
        return [
            Plan(
                task_id=task.id,
                task_digest=task.content_digest,
                survey=survey.model_copy(update={"gates": arm.safety.gates}),
                decision=_mean_of_all(survey, jury),
            )
            for task, survey in zip(self._tasks, self._surveys, strict=True)
        ]

    async def _measured(self, arm: Arm, report: Report) -> ArmReport:
        jury, tallies = self._under(arm), ArmTallies()
        plans = self._plans(arm, jury)
        memory = _Memory(self._known, jury)
        groups: Iterator[Group] = ((one.task, one.responses, plans[one.place]) for one in self._groups)
        judged = iter(self._groups)
        try:
            async for traces in jury.ascore_all(groups, memory.recall):
                group = next(judged)
                for (attack, response), trace in zip(group.members, traces, strict=True):
                    _refuse_over_budget(trace)
                    memory.keep(group.task, response, trace)
                    tallies.add(attack, [v for v in trace.verdicts if v.question in self._counting[group.place]])
                report(len(traces))
        finally:
            for evaluator in jury.evaluators.values():  # and not the jury: the gateway is for the other arms, too
                apart_now(evaluator.close, jury.config.langsmith)
        return tallies.report(arm.safety)


class _Memory:
    """Verdicts of earlier arms that stand in this one too: a gate changes who is asked, and not what is said.

    Those of evaluators that bring their own model stand in every arm, the others where the defences are the same, gates
    aside.
    """

    def __init__(self, known: dict[tuple[str, str], dict[Shown, Verdict]], jury: Jury) -> None:
        self._known = known
        self._own = {name for name, one in jury.evaluators.items() if not one.asks_model}
        self._defences = jury.config.safety.model_copy(update={"gates": ()}).digest

    def recall(self, task: Task, responses: Sequence[Response], plan: Plan) -> Recalled:
        """What is known of these responses."""
        places = ((of, _contents(task, response)) for response in responses for of in ("", self._defences))
        return Recalled({shown: verdict for place in places for shown, verdict in self._known[place].items()}, {})

    def keep(self, task: Task, response: Response, trace: Trace) -> None:
        """Remember what was said; our own trouble is tried again."""
        for one in trace.verdicts:
            if one.responses and (one.failure is None or one.failure.cause == "response"):
                of = "" if one.evaluator in self._own else self._defences
                shown = (one.question, one.about, one.responses, one.sample)
                self._known[of, _contents(task, response)][shown] = one


def _contents(task: Task, response: Response) -> str:
    return f"{task.content_digest} {response.content_digest}"


class _InMemory:
    """Keeps calls for as long as the study lasts."""

    def __init__(self) -> None:
        self._calls: dict[str, Answered] = {}

    def find(self, key: str) -> "Answered | None":
        return self._calls.get(key)

    async def keep(self, request: "Request", answered: "Answered") -> None:
        self._calls[request.digest] = answered


def _groups(tasks: Sequence[tuple[Task, Sequence[Response]]], attacks: Sequence[Attack]) -> Iterator[_Group]:
    """Every attack on every task that it can be made on; honest responses in groups of their own."""
    for place, (task, honest) in enumerate(tasks):
        texts = ((attack, attack_text(attack, task)) for attack in attacks)
        made = [(attack, Response(id=attack.id, text=text)) for attack, text in texts if text is not None]
        for members in (made, [(None, response) for response in honest]):
            for start in range(0, len(members), TOGETHER):
                yield _Group(place, task, members[start : start + TOGETHER])


def _mean_of_all(survey: Survey, jury: Jury) -> Decision:
    questions = tuple(question.id for question in survey.questions)
    asked = Input(questions=questions, weights=(1.0,) * len(questions))
    mean = jury.combiners["mean"]
    return Decision(
        specs=(Spec(name="mean", weight=1.0, combiner=mean.name, version=mean.version, inputs={"asked": asked}),)
    )


def _of_the_model_alone(plan: Plan, jury: Jury) -> Plan:
    """The plan with nobody asked but the config's model, and that whatever others would have said."""
    asked = [
        question.model_copy(update={"when": None})
        for question in plan.survey.questions
        if jury.evaluators[question.evaluator].asks_model
    ]
    return plan.model_copy(update={"survey": plan.survey.model_copy(update={"questions": tuple(asked)})})


def _refuse_over_budget(trace: Trace) -> None:
    for verdict in trace.verdicts:
        if verdict.failure is not None and verdict.failure.kind == "budget":
            raise BudgetExceeded(verdict.failure.message)
