"""What a study of attacks found: by arm, what passed of attacks and of honest responses."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from jurygraph.safety.attacks import Attack
from jurygraph.schema import Noun, SafetyConfig, Verdict
from jurygraph.schema.noun import Count, Id, Unit
from jurygraph.studies.attack.outcomes import Outcome, Tally


class AttackKind(Noun):
    """What an attack is: the suite and kind that it belongs to, and its language."""

    suite: Id
    kind: Id
    language: str

    @classmethod
    def of(cls, attack: Attack) -> Self:
        """The same of an attack, without its words."""
        return cls(suite=attack.suite, kind=attack.kind, language=attack.language)


class ArmReport(Noun):
    """One arm: the defences that stand in it, and what became of verdicts under them.

    What passes of `attacks` is false: their responses do nothing that a task asks for, or copy its reference. `suites`
    and `kinds` have the same by suite and kind, `each` by an attack's id. `honest` are the responses that a defence
    should leave alone.
    """

    safety: SafetyConfig
    attacks: Outcome
    honest: Outcome
    suites: dict[str, Outcome]
    kinds: dict[str, Outcome]
    each: dict[str, Outcome]

    @property
    def asked(self) -> int:
        """How many verdicts were asked for."""
        return sum(sum(one.lost.values()) + one.verdicts.n + one.not_asked for one in (self.attacks, self.honest))


class Figures(Noun):
    """Every figure of the study that a gate can name, all of the arm in which the config's own defences stand; None
    where nothing was judged."""

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


class AttackReport(Noun):
    """The study: `responses` of so many attacks to so many `tasks`, and `honest` ones, judged in every arm.

    `configured` names the arm with the config's own defences. `left_out` are the evaluators that the study did not ask.
    `lost` counts the verdicts that failed by our own trouble, by kind.
    """

    configured: str
    tasks: Count
    responses: Count
    honest: Count
    left_out: tuple[str, ...]
    lost: dict[str, Count]
    attacks: dict[str, AttackKind]
    arms: dict[str, ArmReport]

    def plain(self) -> dict[str, Any]:
        """The report as JSON gives it."""
        return {**self.model_dump(mode="json"), "error_rate": self.error_rate}

    @property
    def own(self) -> ArmReport:
        """The arm of the config's own defences."""
        return self.arms[self.configured]

    @property
    def error_rate(self) -> float:
        """The share of all verdicts that were lost so."""
        asked = sum(arm.asked for arm in self.arms.values())
        return sum(self.lost.values()) / asked if asked else 0.0

    @property
    def figures(self) -> Figures:
        """What a gate can name."""
        attacks, honest = self.own.attacks, self.own.honest
        named = {"": attacks.verdicts, "responses_": attacks.responses, "honest_": honest.verdicts}
        return Figures.model_validate({f"{at}{name}": value for at, one in named.items() for name, value in one})


class ArmTallies:
    """Counts the verdicts of one arm."""

    def __init__(self) -> None:
        self._by: dict[str, dict[str, Tally]] = {level: defaultdict(Tally) for level in _LEVELS}

    def add(self, attack: Attack | None, verdicts: Sequence[Verdict]) -> None:
        """Count the verdicts on one response: that of an attack, or an honest one."""
        if attack is None:
            self._by["honest"][""].add(verdicts)
            return
        for level, name in (("attacks", ""), ("suites", attack.suite), ("kinds", attack.kind), ("each", attack.id)):
            self._by[level][name].add(verdicts)

    def report(self, safety: SafetyConfig) -> ArmReport:
        """All so far."""
        found = {level: {name: one.outcome() for name, one in self._by[level].items()} for level in _LEVELS}
        whole = {level: found[level].get("", Tally().outcome()) for level in ("attacks", "honest")}
        return ArmReport(safety=safety, suites=found["suites"], kinds=found["kinds"], each=found["each"], **whole)


_LEVELS = ("attacks", "honest", "suites", "kinds", "each")


def lost_in(arms: Mapping[str, ArmReport]) -> dict[str, int]:
    """Verdicts of all arms that were lost by our own trouble, by kind, the most frequent first."""
    lost: Counter[str] = Counter()
    for arm in arms.values():
        lost.update(arm.attacks.lost)
        lost.update(arm.honest.lost)
    return dict(lost.most_common())
