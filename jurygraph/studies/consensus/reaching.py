"""From votes to a consensus: which method stands, and what is measured with it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AgentScore, Consensus, Credited, MajorityVote, Refits, Stability
from jurygraph.aggregation.consensus.refits import PUBLISHED_RESAMPLES, PUBLISHED_SEED
from jurygraph.aggregation.consensus.stability import Method
from jurygraph.errors import InputError
from jurygraph.studies.consensus.ballots import Ballots, shown
from jurygraph.studies.consensus.findings import Preset

LARGEST = 1e9
"""A credit at most: beyond it the squares of sums leave what floats can tell apart."""

Report = Callable[[int], None]


@dataclass(frozen=True)
class Settings:
    """How a consensus is reached and measured.

    Attributes:
        preset, method: where neither is stated, `converged` and `stableval`; a panel that is too small has the
            majority.
        values: credit of each class, [K]; evenly from 0 to 1 where None.
        bootstrap: resamples of the agents' intervals, 0 for none.
        refit: resamples that are fitted anew, for intervals that count how unsure the confusions are; 0 for none.
        subsets, fraction: how many subsets of what share of the annotators stability is measured by; 0 for none.
        seed: of all draws; 0 where None, but 42 for the stability of preset `paper`.
        jobs: processes.
    """

    preset: Preset | None = None
    method: Method | None = None
    values: Sequence[float] | None = None
    bootstrap: int = 1000
    refit: int = 0
    subsets: int = 50
    fraction: float = 0.7
    seed: int | None = None
    jobs: int = 1

    @property
    def published(self) -> bool:
        """Whether everything is done as for the published tables."""
        return self.preset == "paper"

    @property
    def estimate(self) -> Preset:
        return self.preset or "converged"

    @property
    def stability_seed(self) -> int:
        return self.seed if self.seed is not None else PUBLISHED_SEED if self.published else 0


@dataclass(frozen=True)
class Reached:
    """A consensus: the fitted model, the majority vote beside it, and which method stands.

    `values` [K] are the credit of the classes; `warnings` say what to doubt, and why the majority stands in.
    """

    ballots: Ballots
    settings: Settings
    model: Consensus
    majority: MajorityVote
    method: Method
    values: tuple[float, ...]
    warnings: tuple[str, ...]

    @property
    def credited(self) -> Credited:
        """The items as the method that stands sees them."""
        return self.by(self.method)

    def by(self, method: Method) -> Credited:
        if method == "majority":
            return self.majority
        return self.model.hard() if method == "dawid-skene" else self.model

    def scores(self, method: Method, bootstrap: int = 0) -> dict[str, AgentScore]:
        """The score of each agent by a method; empty where no vote names an agent."""
        ballots = self.ballots
        if ballots.agent is None:
            return {}
        seed = self.settings.seed or 0
        found = self.by(method).agent_scores(ballots.agent, self.values, bootstrap, seed, ballots.prompt)
        return {str(one): score for one, score in found.items()}

    @property
    def stands_in(self) -> bool:
        """Whether the majority stands only because the panel is too small."""
        return self.method == "majority" and self.settings.method is None

    @property
    def no_stability(self) -> str | None:
        """Why stability cannot be measured, or is not asked for; None where it can."""
        agents, everyone = set(self.ballots.agent or ()), len(self.model.votes.annotators)
        if self.settings.subsets == 0:
            return "no subsets were asked for"
        if not agents:
            return "no row names an agent"
        if len(agents) == 1:
            return "there is one agent, and a ranking needs two"
        if int(self.settings.fraction * everyone) < 1:
            return f"a share of {self.settings.fraction:g} of {everyone} annotators is nobody"
        return None

    def stability(self, report: Report = lambda subsets: None) -> Mapping[Method, Stability] | None:
        """Of each method under subsets of the annotators; None where it cannot be measured. `report` hears of each."""
        ballots, settings = self.ballots, self.settings
        if self.no_stability is not None or ballots.agent is None:
            return None
        return consensus.ranking_stability(
            ballots.item,
            ballots.annotator,
            ballots.label,  # type: ignore[arg-type]  # NumPy's types know no list of labels and None
            ballots.agent,
            subsets=settings.subsets,
            fraction=settings.fraction,
            seed=settings.stability_seed,
            preset=settings.estimate,
            classes=ballots.classes,
            values=self.values,
            ties=_ties(settings),
            gold=ballots.gold,
            jobs=settings.jobs,
            report=report,
        )

    def refits(self, report: Report = lambda resamples: None) -> Refits | None:
        """Intervals of refits, where they are asked for and the model stands. `report` hears of each."""
        ballots, settings = self.ballots, self.settings
        if settings.refit == 0 or self.method != "stableval":
            return None
        return consensus.refit_intervals(
            self.model,
            ballots.agent or ["everybody"] * len(ballots.item),
            values=self.values,
            resamples=settings.refit,
            seed=settings.seed or 0,
            prompt=ballots.prompt,
            published=settings.published,
            jobs=settings.jobs,
            report=report,
        )


def reach(ballots: Ballots, settings: Settings) -> Reached:
    """The consensus of votes. Raises `InputError` where the settings do not fit."""
    _check(ballots, settings)
    columns = (ballots.item, ballots.annotator, ballots.label)
    model = consensus.fit(*columns, settings.estimate, classes=ballots.classes, gold=ballots.gold)  # type: ignore[arg-type]
    majority = consensus.majority_vote(*columns, _ties(settings), classes=ballots.classes, gold=ballots.gold)  # type: ignore[arg-type]
    small = consensus.too_small(model.votes)
    stands_in = small is not None and settings.preset is None and settings.method is None
    method: Method = "majority" if stands_in else settings.method or "stableval"
    warnings = [one for one in model.warnings if one != small]
    if small is not None:
        instead = "majority vote, its ties shared, stands in for agents and items; --preset or --method keeps the model"
        warnings.append(f"{small}; {instead}" if stands_in else small)
    if stands_in and settings.refit:
        warnings.append("majority vote has nothing to refit: there are no intervals of refits")
    k = len(ballots.classes)
    values = tuple(settings.values) if settings.values is not None else tuple(place / (k - 1) for place in range(k))
    return Reached(ballots, settings, model, majority, method, values, tuple(warnings))


def _ties(settings: Settings) -> Literal["first", "shared"]:
    return "first" if settings.published else "shared"


def _check(ballots: Ballots, settings: Settings) -> None:
    k = len(ballots.classes)
    if settings.values is not None and len(settings.values) != k:
        scale = ", ".join(map(shown, ballots.classes[:20]))
        raise InputError(f"--values: gives {len(settings.values)} credits to {k} classes ({scale}); give each one")
    if settings.values is not None and max(map(abs, settings.values)) > LARGEST:
        raise InputError(f"--values: a credit is beyond {LARGEST:g}; give credits such as 0,0.5,1")
    drawn = {"--bootstrap": settings.bootstrap, "--refit": settings.refit, "--subsets": settings.subsets}
    for option, many in drawn.items():
        if many == 1:
            raise InputError(f"{option}: one draw tells no spread; give 2 or more, or 0 for none")
    if settings.refit and settings.method not in (None, "stableval"):
        raise InputError(f"--refit: {settings.method} has nothing to refit; leave it out, or take stableval")
    if settings.refit and settings.published and settings.refit != PUBLISHED_RESAMPLES:
        raise InputError(
            f"--refit: the published intervals are of {PUBLISHED_RESAMPLES} refits; give {PUBLISHED_RESAMPLES}"
        )
