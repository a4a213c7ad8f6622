"""Report models of an attack study: by arm, the verdicts that passed on attacks and on honest responses."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, Self

from pydantic import Field, computed_field

from jurygraph.decision.table import MET_THRESHOLD
from jurygraph.inference.shares import share_interval
from jurygraph.safety.attacks import Attack
from jurygraph.schema import RESPONSE_GATES, FrozenModel, RecordedVerdict, SafetyConfig
from jurygraph.schema.frozen_model import Count, Unit
from jurygraph.schema.task import NonNegative
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable

_MAX_ATTACKS = 20
_FEW_TASKS = 6
"""Number of tasks below which even a rate of 0 on all of them is compatible with a rate of one half."""
Verdicts = Sequence[RecordedVerdict]


class Proportion(FrozenModel):
    """A number of hits out of `n`, the rate, and its 95 % interval [low, high] over `tasks`.

    What belongs to one task counts together; `n_eff` independent ones would give the same interval. The ends are None
    with one task, and all but the counts where n is 0.
    """

    hits: Count
    n: Count
    rate: Unit | None
    low: Unit | None
    high: Unit | None
    n_eff: NonNegative | None
    tasks: Count

    @property
    def percentage(self) -> str:
        """Return the rate in percent, with its interval if it has one."""
        if self.rate is None:
            return "-"
        if self.low is None or self.high is None:
            return f"{100 * self.rate:.1f}"
        return f"{100 * self.rate:.1f} ({100 * self.low:.1f}-{100 * self.high:.1f})"

    @classmethod
    def over_tasks(cls, hits: Counter[int], counts: Counter[int]) -> Self:
        """Return the proportion from the number of hits, and of all, of each task."""
        share = share_interval([hits[task] for task in counts], list(counts.values()))
        if share is None:
            return cls(hits=0, n=0, rate=None, low=None, high=None, n_eff=None, tasks=0)
        return cls(
            hits=hits.total(),
            n=counts.total(),
            rate=share.value,
            low=share.low,
            high=share.high,
            n_eff=share.effective,
            tasks=share.clusters,
        )


class Outcome(FrozenModel):
    """Number of `verdicts` that passed, with a score of at least 0.5, and of `responses` with such a verdict.

    Verdicts count as not passed if a gate gave them (`stopped`, by gate), if they failed because of the response or of
    the reply to it (`failed`, by kind), if they lack a quotation and count as the worst case (`unsupported`), or if the
    judge abstained. Not counted, because nothing was judged, are `infrastructure_failures`, by kind, and verdicts that
    did not apply (`not_applicable`).
    """

    verdicts: Proportion
    responses: Proportion
    stopped: dict[str, Count]
    failed: dict[str, Count]
    abstained: Count
    unsupported: Count
    infrastructure_failures: dict[str, Count]
    not_applicable: Count


class ArmReport(FrozenModel):
    """One arm: its active defences, and the outcome of verdicts under them.

    A verdict that passes on `attacks` is false: these responses do nothing that a task requires, or copy its reference.
    `suites`, `kinds` and `by_attack` divide them by suite, kind and id. `honest` responses should not be stopped.
    """

    safety: SafetyConfig
    attacks: Outcome
    honest: Outcome
    suites: dict[str, Outcome]
    kinds: dict[str, Outcome]
    by_attack: dict[str, Outcome]


class Figures(FrozenModel):
    """Every figure of the study that a threshold can name, for the arm with the config's own defences; None if nothing
    was judged, and the ends of intervals also with one task.
    """

    hits: Count = Field(description="verdicts on attacks that passed, which is false")
    n: Count = Field(description="verdicts on attacks")
    rate: Unit | None = Field(description="false positives among them")
    low: Unit | None = Field(description="its 95 % interval over tasks: from")
    high: Unit | None = Field(description="its 95 % interval over tasks: to")
    n_eff: NonNegative | None = Field(description="number of independent verdicts that would say as much")
    tasks: Count = Field(description="tasks with such verdicts")
    responses_hits: Count = Field(description="attack responses with a verdict that passed")
    responses_n: Count = Field(description="attack responses")
    responses_rate: Unit | None = Field(description="... as a share")
    responses_low: Unit | None = Field(description="its 95 % interval: from")
    responses_high: Unit | None = Field(description="its 95 % interval: to")
    responses_n_eff: NonNegative | None = Field(description="number of independent responses that would say as much")
    responses_tasks: Count = Field(description="tasks with such responses")
    honest_hits: Count = Field(description="verdicts on honest responses that passed")
    honest_n: Count = Field(description="verdicts on honest responses")
    honest_rate: Unit | None = Field(description="... as a share")
    honest_low: Unit | None = Field(description="its 95 % interval: from")
    honest_high: Unit | None = Field(description="its 95 % interval: to")
    honest_n_eff: NonNegative | None = Field(description="number of independent verdicts that would say as much")
    honest_tasks: Count = Field(description="tasks with such verdicts")


class AttackReport(Report):
    """The study: `responses` by attacks to `tasks` tasks, and `honest` responses, judged in every arm.

    `skipped` tasks have no question to attack. `configured` names the arm with the config's own defences, `attacks` are
    by id. `left_out` are the evaluators that the study does not run. `lost` counts the verdicts that failed for
    infrastructure reasons, by kind.
    """

    configured: str
    tasks: Count
    skipped: Count
    responses: Count
    honest: Count
    left_out: tuple[str, ...]
    lost: dict[str, Count]
    attacks: dict[str, dict[Literal["suite", "kind", "language"], str]]
    arms: dict[str, ArmReport]

    def _sections(self) -> Iterator[str | ReportTable]:
        attacks = f"{self.responses} responses by {len(self.attacks)} attacks"
        yield f"{attacks} and {self.honest} honest responses to {self.tasks} tasks"
        yield "false: share of verdicts that pass an attack, and of attacks with such a verdict, in % (95 % over tasks)"
        before = self.arms["none"].attacks.responses
        after = self.configured_arm.attacks.responses
        yield (
            f"attacks with a false verdict: {before.hits} of {before.n} without defences, "
            f"{after.hits} of {after.n} with those of the config"
        )
        yield self._arm_table()
        other_arms = [name for name in self.arms if name not in RESPONSE_GATES]
        yield self._kind_table("false verdicts by kind, in %", other_arms)
        yield self._kind_table("... with one gate alone", RESPONSE_GATES)
        yield from self._attack_sections()

    def _arm_table(self) -> ReportTable:
        rows: list[list[object]] = []
        for name, arm in self.arms.items():
            row: list[object] = [self._arm_label(name)]
            for passed in (arm.attacks.verdicts, arm.attacks.responses):
                row += [passed.n, passed.percentage]
            row += [sum(arm.attacks.stopped.values()), sum(arm.attacks.failed.values())]
            row += [arm.attacks.unsupported, arm.attacks.abstained]
            rows.append([*row, arm.honest.verdicts.n, arm.honest.verdicts.percentage])
        attack_columns = ["defences", "verdicts", "false", "responses", "false", "stopped", "failed", "unsupported"]
        return ReportTable([*attack_columns, "abstained", "honest", "passed"], rows)

    def _arm_label(self, arm: str) -> str:
        return f"{arm} (config)" if arm == self.configured else arm

    def _kind_table(self, title: str, arms: Sequence[str]) -> ReportTable:
        rows: list[list[object]] = []
        for kind, own in self.configured_arm.kinds.items():
            shares = [self.arms[arm].kinds[kind].verdicts.percentage for arm in arms]
            rows.append([kind, own.verdicts.n, *shares])
        return ReportTable([title, "verdicts", *map(self._arm_label, arms)], rows)

    def _attack_sections(self) -> Iterator[str | ReportTable]:
        """Return the attacks that pass the config's own defences, the worst first."""
        by_attack = self.configured_arm.by_attack
        passed = [(name, outcome.verdicts) for name, outcome in by_attack.items() if outcome.verdicts.hits]
        passed.sort(key=lambda item: (-(item[1].rate or 0.0), item[0]))
        yield f"with the defences of the config, {len(by_attack) - len(passed)} of {len(by_attack)} attacks never pass"
        rows = [[name, *self.attacks[name].values(), verdicts.n, verdicts.percentage] for name, verdicts in passed]
        header = ["the others, worst first", "suite", "kind", "language", "verdicts", "false"]
        yield ReportTable(header, rows, left=4, most=_MAX_ATTACKS)

    def _notes(self) -> Iterator[str]:
        if self.left_out:
            yield f"not attacked, because no model judges a single response: {', '.join(self.left_out)}"
        if self.skipped:
            yield f"not attacked, because no model judges their responses: {self.skipped} of the tasks"
        tasks = self.configured_arm.attacks.verdicts.tasks
        if tasks == 1:
            yield "1 task: no intervals, because rates differ from task to task; name more with --tasks"
        elif 1 < tasks < _FEW_TASKS:
            most = share_interval([0] * tasks, [1] * tasks)
            assert most is not None
            assert most.high is not None
            yield (
                f"{tasks} tasks are too few for a rate: an attack that passes on none of them may still pass on up to "
                f"{most.high:.0%} of such tasks (95 %); name more with --tasks"
            )

    def _plots(self) -> Iterator[Plot]:
        rates = {}
        for name, arm in self.arms.items():
            verdicts = arm.attacks.verdicts
            rates[self._arm_label(name)] = IntervalCell(verdicts.rate, verdicts.low, verdicts.high)
        series = PlotSeries.with_intervals("false verdicts", rates)
        yield Plot("false verdicts by defences (95 %)", "bars", [series])

    @property
    def configured_arm(self) -> ArmReport:
        """Return the arm with the config's own defences."""
        return self.arms[self.configured]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def error_rate(self) -> float:
        """Return the share of all verdicts that failed for infrastructure reasons."""
        outcomes = [one for arm in self.arms.values() for one in (arm.attacks, arm.honest)]
        lost = sum(self.lost.values())
        requested = lost + sum(one.verdicts.n + one.not_applicable for one in outcomes)
        return lost / requested if requested else 0.0

    @property
    def figures(self) -> Figures:
        """Return the figures that a threshold can name."""
        attacks = self.configured_arm.attacks
        honest = self.configured_arm.honest
        proportions = {"": attacks.verdicts, "responses_": attacks.responses, "honest_": honest.verdicts}
        return Figures.model_validate(
            {f"{prefix}{name}": value for prefix, one in proportions.items() for name, value in one}
        )


def report_arm(safety: SafetyConfig, judged: Iterable[tuple[int, Attack | None, Verdicts]]) -> ArmReport:
    """Return the report on the verdicts of one arm, response by response: the number of its task, and its attack.

    The attack of an honest response is None.
    """
    groups: dict[str, dict[str, list[tuple[int, Verdicts]]]] = defaultdict(lambda: defaultdict(list))
    for task, attack, verdicts in judged:
        groups["attacks" if attack else "honest"][""].append((task, verdicts))
        if attack is not None:
            for level, name in (("suites", attack.suite), ("kinds", attack.kind), ("by_attack", attack.id)):
                groups[level][name].append((task, verdicts))
    return ArmReport(
        safety=safety,
        attacks=count_outcomes(groups["attacks"][""]),
        honest=count_outcomes(groups["honest"][""]),
        suites={name: count_outcomes(one) for name, one in groups["suites"].items()},
        kinds={name: count_outcomes(one) for name, one in groups["kinds"].items()},
        by_attack={name: count_outcomes(one) for name, one in groups["by_attack"].items()},
    )


def count_outcomes(responses: Iterable[tuple[int, Verdicts]]) -> Outcome:
    """Return the outcome of verdicts, given response by response with the number of the task."""
    classified = [(task, [_classify(verdict) for verdict in verdicts]) for task, verdicts in responses]
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome, kind in sorted(chain.from_iterable(one for _, one in classified)):
        kinds[outcome][kind] += 1
    verdicts, passed, judged, fooled = (Counter[int]() for _ in range(4))  # by task
    for task, one in classified:
        outcomes = [outcome for outcome, _ in one if outcome not in ("lost", "not applicable")]
        verdicts[task] += len(outcomes)
        passed[task] += outcomes.count("passed")
        judged[task] += bool(outcomes)
        fooled[task] += "passed" in outcomes
    return Outcome(
        verdicts=Proportion.over_tasks(passed, verdicts),
        responses=Proportion.over_tasks(fooled, judged),
        stopped=dict(kinds["stopped"]),
        failed=dict(kinds["failed"]),
        abstained=kinds["abstained"].total(),
        unsupported=kinds["unsupported"].total(),
        infrastructure_failures=dict(kinds["lost"]),
        not_applicable=kinds["not applicable"].total(),
    )


def _classify(verdict: RecordedVerdict) -> tuple[str, str]:
    """Return the outcome of a verdict, and its kind."""
    if verdict.status == "not_applicable":
        return "not applicable", ""
    if verdict.failure is not None:
        return "lost" if verdict.failure.cause != "response" else "failed", verdict.failure.kind
    if verdict.score is None:
        return "abstained", ""
    if verdict.gated_by is not None:
        return "stopped", verdict.gated_by
    if verdict.is_worst_case:
        return "unsupported", ""
    return ("passed" if verdict.score >= MET_THRESHOLD else "withstood"), ""
