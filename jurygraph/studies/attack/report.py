"""Report models of an attack study: by arm, the verdicts that passed on attacks and on honest responses."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from jurygraph.safety.attacks import Attack
from jurygraph.schema import FrozenModel, RecordedVerdict, SafetyConfig
from jurygraph.schema.frozen_model import Count, Id, Unit
from jurygraph.studies.attack.outcomes import Outcome, Tally


class AttackKind(FrozenModel):
    """Suite, kind and language of an attack."""

    suite: Id
    kind: Id
    language: str

    @classmethod
    def of(cls, attack: Attack) -> Self:
        """Return suite, kind and language of an attack, without its text."""
        return cls(suite=attack.suite, kind=attack.kind, language=attack.language)


class ArmReport(FrozenModel):
    """One arm: its active defences, and the outcome of verdicts under them.

    A verdict that passes on `attacks` is false: these responses do nothing that a task requires, or copy its reference.
    `suites` and `kinds` have the same by suite and kind, `by_attack` by id of the attack. `honest` are the responses
    that a defence should not stop.
    """

    safety: SafetyConfig
    attacks: Outcome
    honest: Outcome
    suites: dict[str, Outcome]
    kinds: dict[str, Outcome]
    by_attack: dict[str, Outcome]

    @property
    def requested(self) -> int:
        """Return the number of verdicts that were requested."""
        return sum(
            sum(one.infrastructure_failures.values()) + one.verdicts.n + one.not_applicable
            for one in (self.attacks, self.honest)
        )


class Figures(FrozenModel):
    """Every figure of the study that a threshold can name, for the arm with the config's own defences; None if nothing
    was
    judged.
    """

    hits: Count = Field(description="verdicts on attacks that passed, which is false")
    n: Count = Field(description="verdicts on attacks")
    rate: Unit | None = Field(description="false positives among them")
    low: Unit | None = Field(description="its 95 % interval: from")
    high: Unit | None = Field(description="its 95 % interval: to")
    responses_hits: Count = Field(description="attack responses with a verdict that passed")
    responses_n: Count = Field(description="attack responses")
    responses_rate: Unit | None = Field(description="... as a share")
    responses_low: Unit | None = Field(description="its 95 % interval: from")
    responses_high: Unit | None = Field(description="its 95 % interval: to")
    honest_hits: Count = Field(description="verdicts on honest responses that passed")
    honest_n: Count = Field(description="verdicts on honest responses")
    honest_rate: Unit | None = Field(description="... as a share")
    honest_low: Unit | None = Field(description="its 95 % interval: from")
    honest_high: Unit | None = Field(description="its 95 % interval: to")


class AttackReport(FrozenModel):
    """The study: `responses` by attacks to `tasks` tasks, and `honest` responses, judged in every arm.

    `configured` names the arm with the config's own defences. `left_out` are the evaluators that the study does not
    run.
    `lost` counts the verdicts that failed for infrastructure reasons, by kind.
    """

    configured: str
    tasks: Count
    responses: Count
    honest: Count
    left_out: tuple[str, ...]
    lost: dict[str, Count]
    attacks: dict[str, AttackKind]
    arms: dict[str, ArmReport]

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {**self.model_dump(mode="json"), "error_rate": self.error_rate}

    @property
    def configured_arm(self) -> ArmReport:
        """Return the arm with the config's own defences."""
        return self.arms[self.configured]

    @property
    def error_rate(self) -> float:
        """Return the share of all verdicts that failed for infrastructure reasons."""
        total = sum(arm.requested for arm in self.arms.values())
        return sum(self.lost.values()) / total if total else 0.0

    @property
    def figures(self) -> Figures:
        """Return the figures that a threshold can name."""
        attacks, honest = self.configured_arm.attacks, self.configured_arm.honest
        proportions = {"": attacks.verdicts, "responses_": attacks.responses, "honest_": honest.verdicts}
        return Figures.model_validate(
            {f"{prefix}{name}": value for prefix, one in proportions.items() for name, value in one}
        )


class ArmTallies:
    """Counts the verdicts of one arm."""

    def __init__(self) -> None:
        self._tallies: dict[str, dict[str, Tally]] = {level: defaultdict(Tally) for level in _LEVELS}

    def add(self, attack: Attack | None, verdicts: Sequence[RecordedVerdict]) -> None:
        """Count the verdicts on one response: an attack's, or an honest one if `attack` is None."""
        if attack is None:
            self._tallies["honest"][""].add(verdicts)
            return
        for level, name in (("attacks", ""), ("suites", attack.suite), ("kinds", attack.kind), ("each", attack.id)):
            self._tallies[level][name].add(verdicts)

    def report(self, safety: SafetyConfig) -> ArmReport:
        """Return the report on all verdicts so far."""
        outcomes = {level: {name: one.outcome() for name, one in self._tallies[level].items()} for level in _LEVELS}
        totals = {level: outcomes[level].get("", Tally().outcome()) for level in ("attacks", "honest")}
        return ArmReport(
            safety=safety, suites=outcomes["suites"], kinds=outcomes["kinds"], by_attack=outcomes["each"], **totals
        )


_LEVELS = ("attacks", "honest", "suites", "kinds", "each")


def infrastructure_failures(arms: Mapping[str, ArmReport]) -> dict[str, int]:
    """Return the verdicts of all arms that failed for infrastructure reasons, by kind, the most frequent first."""
    counts: Counter[str] = Counter()
    for arm in arms.values():
        counts.update(arm.attacks.infrastructure_failures)
        counts.update(arm.honest.infrastructure_failures)
    return dict(counts.most_common())
