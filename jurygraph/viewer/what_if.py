"""What-if: a response, or a whole run, decided again under other settings by the code of `rescore`, without a call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import fsum
from typing import Self, get_args
from urllib.parse import urlencode

from multidict import MultiMapping

from jurygraph.decision.decide import compute_rewards
from jurygraph.decision.recipe import STAKEHOLDERS
from jurygraph.errors import InputError
from jurygraph.explanation import Explanation
from jurygraph.explanation.points import revise
from jurygraph.runs.integrity.verification import recompute_rewards
from jurygraph.runs.outline import read_groups
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import (
    apply_settings,
    refuse_other_questions,
    task_decisions,
)
from jurygraph.schema import Config
from jurygraph.schema.plan import Rule

_STEPS = 8
"""Steps from the lowest to the highest value of a setting at which a ranking is computed."""
_BISECTIONS = 10


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """Changes to be tried: settings `key=value` as for `rescore --set`, and scores of questions, `question=score`."""

    settings: tuple[str, ...] = ()
    scores: tuple[tuple[str, float], ...] = ()

    @classmethod
    def from_url(cls, parameters: MultiMapping[str]) -> Self:
        """Return the changes in a URL. Raises `InputError` for a score that is no number in [0, 1]."""
        settings = [text for text in parameters.getall("set", ()) if text.rpartition("=")[2]]
        scores = []
        for text in parameters.getall("score", ()):
            question, _, number = text.rpartition("=")
            if number:
                scores.append((question, _read_score(text, number)))
        return cls(settings=tuple(settings), scores=tuple(scores))

    def to_url(self) -> str:
        """Return the changes as the part of a URL after the id of the response."""
        pairs = [("set", setting) for setting in self.settings]
        pairs += [("score", f"{question}={score:g}") for question, score in self.scores]
        return urlencode(pairs)

    @property
    def is_empty(self) -> bool:
        return not self.settings and not self.scores

    def value_of(self, key: str) -> str:
        """Return the value that a setting is tried with; empty if it is not."""
        for setting in self.settings:
            name, _, value = setting.partition("=")
            if name == key:
                return value
        return ""

    def config_of(self, run: Run) -> Config:
        """Return the config of a run with the settings. Raises `ConfigError` and `InputError` as `rescore` does."""
        config = apply_settings(run.config, self.settings)
        refuse_other_questions(run, config)
        return config


def _read_score(text: str, number: str) -> float:
    try:
        score = float(number)
    except ValueError:
        score = -1.0
    if not 0.0 <= score <= 1.0:
        raise InputError(f"score {text!r}: expected a number from 0 to 1 after the last `=`")
    return score


def explain_changed(run: Run, response: str, changes: WhatIf) -> Explanation:
    """Return the explanation of a response as it would be decided with the changes.

    The bits are those of `rescore`, where only settings change. Raises `InputError` for an unknown response, and as
    `rescore` does.
    """
    group = [scored.trace for scored in run.group_with(response)]
    trace = next(member for member in group if member.response_id == response)
    config = changes.config_of(run)
    combiners = run.load_combiners(config)
    decision = task_decisions(run, config, combiners)(trace.task_id)
    questions = run.survey_outline_of(trace.task_id).questions
    scores = dict(changes.scores)
    members = []
    for member in group:
        verdicts = [
            revise(verdict, scores[verdict.question])
            if verdict.about == response and verdict.question in scores
            else verdict
            for verdict in member.verdicts
        ]
        members.append(member.model_copy(update={"verdicts": tuple(verdicts)}))
    names = [member.response_id for member in members]
    verdicts = [
        verdict
        for member in members
        for verdict in member.verdicts
        if verdict.about == member.response_id
    ]
    rewards = compute_rewards(decision, questions, names, verdicts, combiners)
    decided = [
        member.model_copy(update={"reward": reward})
        for member, reward in zip(members, rewards, strict=True)
    ]
    changed = decided[names.index(response)]
    return Explanation(
        changed, decision, questions, group=lambda: decided, combiners=lambda: combiners
    )


@dataclass(frozen=True, kw_only=True)
class Control:
    """A setting that a page lets try: its key, its present value, and its range or its choices."""

    key: str
    label: str
    value: str
    choices: Sequence[str] = ()
    low: float = 0.0
    high: float = 1.0


def list_controls(run: Run) -> list[Control]:
    """Return the settings of a run that decide how its verdicts count."""
    config = run.config
    decisions = [run.decision(record.key) for record in run.ledger.records("decision")]
    combiners = {spec.combiner for decision in decisions for spec in decision.specs}
    controls = [
        _number(f"reward.{name}", f"weight of {name}", weight, -5.0, 5.0)
        for name, weight in config.reward.items()
    ]
    if "gear" in combiners:
        controls.append(
            _number(
                "rubric.kappa",
                "κ, how strictly prerequisites count",
                config.rubric.kappa,
                0.0,
                10.0,
            )
        )
        aggregations = ("flat", "gear", "hard-local", "hard-transitive")
        controls.append(
            _choice("rubric.aggregation", "rubric", config.rubric.aggregation, aggregations)
        )
    if any(spec.name == STAKEHOLDERS for decision in decisions for spec in decision.specs):
        controls.append(
            _number(
                "weights.temperature",
                "τ, how alike stakeholders count",
                config.weights.temperature,
                0.01,
                100.0,
            )
        )
        controls.append(
            _choice(
                "weights.method",
                "weights of stakeholders",
                config.weights.method,
                ("calibrated", "uniform"),
            )
        )
    controls.append(
        _choice("failure.rule", "what is not judged", config.failure.rule, get_args(Rule))
    )
    return controls


def _number(key: str, label: str, value: float, low: float, high: float) -> Control:
    return Control(key=key, label=label, value=f"{value:g}", low=low, high=high)


def _choice(key: str, label: str, value: str, choices: Sequence[str]) -> Control:
    others = [choice for choice in choices if choice != value]
    return Control(key=key, label=label, value=value, choices=others)


def rank_agents(run: Run, config: Config) -> dict[str, float]:
    """Return the mean reward of each agent under a config, without failed rewards, the best first.

    The rewards are those that `rescore` computes. Raises as `rescore` does.
    """
    combiners = run.load_combiners(config)
    decision_for = task_decisions(run, config, combiners)
    rewards = recompute_rewards(
        run, read_groups(run), lambda group: decision_for(group.record.key), combiners
    )
    by_agent: dict[str, list[float]] = {}
    for trace, reward in rewards:
        if reward["value"] is not None:
            by_agent.setdefault(trace.agent or "", []).append(reward["value"])
    means = {agent: fsum(values) / len(values) for agent, values in by_agent.items()}
    return dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, kw_only=True)
class Overtaking:
    """A value of a setting at which two agents change places: below it `first` is ahead, from it on `second`."""

    value: float
    first: str
    second: str


def find_turns(
    rank: Callable[[float], dict[str, float]], low: float, high: float
) -> list[Overtaking]:
    """Return where agents change places as a setting moves from `low` to `high`, by bisection between a few points.

    Agents that change places and back between two of the points are not found.
    """
    points = [low + (high - low) * step / _STEPS for step in range(_STEPS + 1)]
    means = [rank(point) for point in points]
    turns = []
    for (left, before), (right, after) in pairwise(zip(points, means, strict=True)):
        for first, second in combinations(before, 2):
            if not after.keys() >= {first, second}:
                continue
            if before[first] >= before[second] and after[first] < after[second]:
                turns.append(_bisect(rank, left, right, first, second))
    return sorted(turns, key=lambda turn: turn.value)


def _bisect(
    rank: Callable[[float], dict[str, float]], low: float, high: float, first: str, second: str
) -> Overtaking:
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        means = rank(middle)
        if means[first] < means[second]:
            high = middle
        else:
            low = middle
    return Overtaking(value=high, first=first, second=second)
