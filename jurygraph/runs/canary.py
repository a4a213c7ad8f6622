"""Canaries: known-bad responses mixed into a run, each in a group of its own, which no reward and no export sees.

What is measured with them is the judge: a verdict of a model that finds something good in one is a false positive.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from jurygraph.errors import TraceMismatch
from jurygraph.graphs.routing import GATED_LAYERS
from jurygraph.graphs.table import MET_FROM
from jurygraph.runs.proportions import Proportion
from jurygraph.runs.store.chain import Draft, Record, named
from jurygraph.runs.store.ledger import Ledger
from jurygraph.safety.attacks import Attack, attack_text, load_attacks
from jurygraph.safety.gates import gated
from jurygraph.schema import Call, CanaryConfig, Plan, Response, SafetyConfig, Suite, Task, Trace, Verdict, digest_of
from jurygraph.schema.task import words_of

if TYPE_CHECKING:
    from jurygraph.jury import Jury

KIND = "canary"
_BITS = 13


class Canary(NamedTuple):
    """A known-bad response to a task, and the attack that it is."""

    attack: Attack
    response: Response


class CanaryResult(NamedTuple):
    """What became of a canary: verdicts of models on what is good that were asked for, given, and gave credit."""

    asked: int
    judged: int
    fooled: int


@dataclass
class CanaryTally:
    """Sums over the canaries of a run; `alert` is the rate above which it says so."""

    alert: float
    items: int = 0
    asked: int = 0
    judged: int = 0
    fooled: int = 0

    def add(self, result: CanaryResult) -> None:
        """Count one canary."""
        self.items += 1
        self.asked += result.asked
        self.judged += result.judged
        self.fooled += result.fooled

    @property
    def share(self) -> Proportion:
        """The share of the verdicts given that gave credit."""
        return Proportion.of(self.fooled, self.judged)

    @property
    def alarming(self) -> bool:
        """Whether more of the verdicts gave credit than the config takes without a word."""
        rate = self.share.rate
        return rate is not None and rate > self.alert

    def plain(self) -> dict[str, Any]:
        """As JSON gives it."""
        share = self.share
        found = {"rate": share.rate, "low": share.low, "high": share.high}
        return {**asdict(self), **found, "alarming": self.alarming}


class Canaries:
    """The canaries of a run that is being filled: which tasks still get one, and what became of them (`tally`)."""

    def __init__(self, config: CanaryConfig, safety: SafetyConfig) -> None:
        self.tally = CanaryTally(config.alert)
        self._config = config
        self._safety = safety
        self._known: set[str] = set()

    @classmethod
    def of(cls, jury: "Jury") -> Self | None:
        """Those that a jury's config asks for; without a model there is nobody to fool."""
        config = jury.config
        models = (one for one in jury.evaluators.values() if one.layer in GATED_LAYERS)
        if config.canary is None or all(one.asks_model and config.model == "none" for one in models):
            return None
        return cls(config.canary, config.safety)

    def look_at(self, ledger: Ledger) -> Iterator[Call]:
        """Count those that a run has already: their tasks get no other. Gives the calls behind them."""
        for record in ledger.records(KIND):
            self._known.add(record.key)
            self.tally.add(_stated(record))
            yield from map(Call.model_validate, record.content["calls"])

    def next_for(self, task: Task, plan: Plan) -> Canary | None:
        """The canary of a task that still gets one."""
        return None if task.id in self._known else canary_for(task, plan, self._config, self._safety)

    def kept(self, canary: Canary, trace: Trace) -> Draft:
        """A canary that was judged, as a record to be under the id of its task. What was said stands in its texts."""
        assert trace.plan is not None
        result = result_of(trace.plan, trace.verdicts)
        self.tally.add(result)
        calls = [call.model_dump(mode="json") for call in trace.calls]
        body = {"attack": canary.attack.id, **result._asdict(), "calls": calls}
        said = [verdict.model_dump(mode="json") for verdict in trace.verdicts]
        return Draft(KIND, trace.task_id, body, [canary.response.text.encode(), json.dumps(said).encode()])


def _stated(record: Record) -> CanaryResult:
    return CanaryResult(*(record.content[name] for name in CanaryResult._fields))


def check_canaries(ledger: Ledger, plan_of: Callable[[str], Plan]) -> None:
    """Count the verdicts on each canary again. Raises `TraceMismatch` where a record says otherwise.

    One whose texts, or whose task's, were erased is taken as it is.
    """
    for record in ledger.records(KIND):
        said = ledger.texts({record.seq: record.content["texts"]})[record.seq].get(1)
        task = ledger.require("task", record.key)
        if said is None or not ledger.texts({task.seq: task.content["texts"]})[task.seq]:
            continue
        found = result_of(plan_of(record.key), [Verdict.model_validate(one) for one in json.loads(said)])
        if found != _stated(record):
            raise TraceMismatch(f"{ledger.path}, {named(record)}: its verdicts come to {found}; it has been changed")


def canary_for(task: Task, plan: Plan, config: CanaryConfig, safety: SafetyConfig) -> Canary | None:
    """The canary for a task, where it gets one: always the same for the same task and seed.

    It is one that no standing gate would stop, where there is such a one: what is stopped says nothing of the judge.
    """
    asks_model = any(question.layer in GATED_LAYERS for question in plan.survey.questions)
    drawn = digest_of([config.seed, task.id])
    if not asks_model or int(drawn[:_BITS], 16) >= config.rate * 16**_BITS:
        return None
    texts = [(attack, text) for attack in _attacks(config.suite) if (text := attack_text(attack, task)) is not None]
    if not texts:
        return None
    first = int(drawn[_BITS:], 16) % len(texts)
    turned = texts[first:] + texts[:first]
    query = words_of(task.query)
    passing = (one for one in turned if not gated(one[1], safety.gates, query=query, reference=task.reference))
    attack, text = next(passing, turned[0])
    return Canary(attack, Response(id=f"canary/{attack.id}", text=text))


@lru_cache(maxsize=8)
def _attacks(suite: Suite | Literal["all"]) -> tuple[Attack, ...]:
    return load_attacks(suite)


def result_of(plan: Plan, verdicts: Iterable[Verdict]) -> CanaryResult:
    """What the verdicts on a canary come to; one that failed or was abstained is none that was given.

    Where a high score lowers the reward, nothing good is found, and it does not count.
    """
    entering = [
        (question, spec.direction * weight > 0)
        for spec in plan.decision.specs
        for one in spec.inputs.values()
        for question, weight in zip(one.questions, one.weights, strict=True)
    ]
    bad = {question for question, _ in entering} - {question for question, good in entering if good}
    counted = [one for one in verdicts if one.layer in GATED_LAYERS and one.question not in bad]
    scores = [verdict.score for verdict in counted if verdict.score is not None]
    return CanaryResult(len(counted), len(scores), sum(score >= MET_FROM for score in scores))
