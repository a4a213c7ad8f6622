"""Canaries: known-bad responses mixed into a run, not rewarded or exported; crediting one is a false positive."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from jurygraph.errors import TraceMismatch
from jurygraph.inference.shares import Share, share_interval
from jurygraph.runs.store.ledger import Draft, Ledger, Record, record_label
from jurygraph.safety.attacks import Attack, attack_text, load_attacks
from jurygraph.safety.gates import stopping_gate
from jurygraph.schema import Call, CanaryConfig, Plan, RecordedVerdict, Response, SafetyConfig, Task, Trace, digest_of
from jurygraph.schema.task import query_text
from jurygraph.schema.verdict import GATED_LAYERS, MET_THRESHOLD

_DIGITS = 13
"""Number of hexadecimal digits of a task's digest that decide whether it gets a canary."""


class Canary(NamedTuple):
    """A known-bad response to a task, and the attack that it carries out."""

    attack: Attack
    response: Response


class CanaryResult(NamedTuple):
    """Counts of a model's verdicts on a canary: requested, judged, and fooled (gave credit); see `result_of`."""

    requested: int
    judged: int
    fooled: int


@dataclass
class CanaryTally:
    """The results of a run's canaries, one for each task that has one; `alert` is the highest accepted share.

    The run raises an alarm if the false positive rate is higher, beyond chance: if the lower end of its interval is.
    """

    alert: float
    results: list[CanaryResult] = field(default_factory=list)

    def add(self, result: CanaryResult) -> None:
        """Add the counts of one canary."""
        self.results.append(result)

    @property
    def judged(self) -> int:
        """Return the number of judged verdicts."""
        return sum(one.judged for one in self.results)

    @property
    def fooled(self) -> int:
        """Return the number of judged verdicts that gave credit."""
        return sum(one.fooled for one in self.results)

    @property
    def share(self) -> Share | None:
        """Return the share of judged verdicts that gave credit, with its interval over tasks; None without a verdict.

        The verdicts on a canary belong together: they are about one text.
        """
        ordered = sorted(self.results)  # sums must not depend on the order in which the canaries were judged
        return share_interval([one.fooled for one in ordered], [one.judged for one in ordered])

    @property
    def is_alarming(self) -> bool:
        """Return whether the lower end of the interval is above `alert`; it has none with a single canary."""
        share = self.share
        return share is not None and share.low is not None and share.low > self.alert

    def to_json(self) -> dict[str, Any]:
        """Return the tally as a JSON object."""
        share = self.share
        return {
            "alert": self.alert,
            "items": len(self.results),
            "asked": sum(one.requested for one in self.results),
            "judged": self.judged,
            "fooled": self.fooled,
            "rate": share and share.value,
            "low": share and share.low,
            "high": share and share.high,
            "n_eff": share and share.effective,
            "alarming": self.is_alarming,
        }


class Canaries:
    """The canaries of a run that is being scored: the tasks that already have one, and the counts so far (`tally`)."""

    def __init__(self, config: CanaryConfig, safety: SafetyConfig) -> None:
        self.tally = CanaryTally(config.alert)
        self._config = config
        self._safety = safety
        self._known: set[str] = set()

    def load(self, ledger: Ledger) -> Iterator[Call]:
        """Count the canaries that a run already has, whose tasks get no other. Yields the calls behind them."""
        for record in ledger.records("canary"):
            self._known.add(record.key)
            self.tally.add(_stored_result(record))
            yield from map(Call.model_validate, record.content["calls"])

    def next_for(self, task: Task, plan: Plan) -> Canary | None:
        """Return the canary of a task; None where it gets none or already has one."""
        return None if task.id in self._known else canary_for(task, plan, self._config, self._safety)

    def record(self, canary: Canary, trace: Trace) -> Draft:
        """Count a judged canary, and return its record, keyed by the task's id, with response and verdicts as texts."""
        assert trace.plan is not None
        result = count_verdicts(trace.plan, trace.verdicts)
        self.tally.add(result)
        calls = [call.model_dump(mode="json") for call in trace.calls]
        body = {"attack": canary.attack.id, **result._asdict(), "calls": calls}
        verdicts = [verdict.model_dump(mode="json") for verdict in trace.verdicts]
        return Draft("canary", trace.task_id, body, [canary.response.text.encode(), json.dumps(verdicts).encode()])


def _stored_result(record: Record) -> CanaryResult:
    return CanaryResult(*(record.content[name] for name in CanaryResult._fields))


def check_canaries(ledger: Ledger, plan_of: Callable[[str], Plan]) -> None:
    """Recount the verdicts on each canary. Raises `TraceMismatch` where a record has other counts.

    A canary is skipped where its own texts, or those of its task, were erased.
    """
    for record in ledger.records("canary"):
        verdicts_text = ledger.texts_of(record).get(1)
        if verdicts_text is None or not ledger.texts_of(ledger.require("task", record.key)):
            continue
        verdicts = [RecordedVerdict.model_validate(verdict) for verdict in json.loads(verdicts_text)]
        result = count_verdicts(plan_of(record.key), verdicts)
        if result != _stored_result(record):
            raise TraceMismatch(
                f"{ledger.path}, {record_label(record)}: its verdicts come to {result}; it has been changed"
            )


_load_attacks = lru_cache(maxsize=8)(load_attacks)


def canary_for(task: Task, plan: Plan, config: CanaryConfig, safety: SafetyConfig) -> Canary | None:
    """Return the canary for a task, None where it gets none: always the same for the same task and seed.

    An attack that no active response gate stops is preferred, because a stopped response measures nothing of the judge.
    """
    uses_model = any(question.layer in GATED_LAYERS for question in plan.survey.questions)
    hash_digits = digest_of([config.seed, task.id])
    if not uses_model or int(hash_digits[:_DIGITS], 16) >= config.rate * 16**_DIGITS:
        return None
    attacks = ((attack, attack_text(attack, task)) for attack in _load_attacks(config.suite))
    canaries = [
        Canary(attack, Response(id=f"canary/{attack.id}", text=text)) for attack, text in attacks if text is not None
    ]
    if not canaries:
        return None
    first = int(hash_digits[_DIGITS:], 16) % len(canaries)
    candidates = canaries[first:] + canaries[:first]
    query = query_text(task.query)
    for canary in candidates:
        if not stopping_gate(canary.response.text, safety.gates, query=query, reference=task.reference):
            return canary
    return candidates[0]


def count_verdicts(plan: Plan, verdicts: Iterable[RecordedVerdict]) -> CanaryResult:
    """Return the counts of the verdicts on a canary; failed and abstained verdicts do not count as judged.

    Questions for which a high score only lowers the reward are left out: a high score gives no credit there.
    """
    inputs = [
        (question, spec.direction * weight > 0)
        for spec in plan.decision.specs
        for item in spec.inputs.values()
        for question, weight in zip(item.questions, item.weights, strict=True)
    ]
    penalties = {question for question, _ in inputs} - {question for question, good in inputs if good}
    counted = [verdict for verdict in verdicts if verdict.layer in GATED_LAYERS and verdict.question not in penalties]
    scores = [verdict.score for verdict in counted if verdict.score is not None]
    return CanaryResult(len(counted), len(scores), sum(score >= MET_THRESHOLD for score in scores))
