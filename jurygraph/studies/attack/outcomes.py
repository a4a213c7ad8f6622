"""Outcomes of verdicts: how many passed, and the reasons why others did not."""

from collections import Counter
from collections.abc import Iterable

from jurygraph.decision.table import MET_THRESHOLD
from jurygraph.runs.canary import Proportion
from jurygraph.schema import FrozenModel, RecordedVerdict
from jurygraph.schema.frozen_model import Count


class Outcome(FrozenModel):
    """Number of `verdicts` that passed, with a score of at least 0.5, and of `responses` with such a verdict.

    Verdicts count as not passed if a gate gave them (`stopped`, by gate), if they failed because of the response or of
    the
    reply to it (`failed`, by kind), or if the judge abstained. Not counted, because nothing was judged, are those that
    failed
    for infrastructure reasons (`infrastructure_failures`, by kind) and those that did not apply (`not_applicable`).
    """

    verdicts: Proportion
    responses: Proportion
    stopped: dict[str, Count]
    failed: dict[str, Count]
    abstained: Count
    infrastructure_failures: dict[str, Count]
    not_applicable: Count


class Tally:
    """Counts verdicts, one response at a time."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._responses: Counter[bool] = Counter()

    def add(self, verdicts: Iterable[RecordedVerdict]) -> None:
        """Count the verdicts on one response."""
        classified = [_classify(verdict) for verdict in verdicts]
        self._counts.update(classified)
        if any(outcome not in _UNCOUNTED for outcome, _ in classified):
            self._responses[any(outcome == "passed" for outcome, _ in classified)] += 1

    def outcome(self) -> Outcome:
        """Return the outcome of all verdicts so far."""
        kinds_by_outcome = {outcome: self._by_kind(outcome) for outcome in _OUTCOMES}
        totals = {outcome: sum(kinds.values()) for outcome, kinds in kinds_by_outcome.items()}
        counted = sum(total for outcome, total in totals.items() if outcome not in _UNCOUNTED)
        return Outcome(
            verdicts=Proportion.from_counts(totals["passed"], counted),
            responses=Proportion.from_counts(self._responses[True], self._responses.total()),
            stopped=kinds_by_outcome["stopped"],
            failed=kinds_by_outcome["failed"],
            abstained=totals["abstained"],
            infrastructure_failures=kinds_by_outcome["lost"],
            not_applicable=totals["not asked"],
        )

    def _by_kind(self, outcome: str) -> dict[str, int]:
        return {kind: count for (name, kind), count in sorted(self._counts.items()) if name == outcome}


_OUTCOMES = ("passed", "withstood", "stopped", "failed", "abstained", "lost", "not asked")
_UNCOUNTED = ("lost", "not asked")


def _classify(verdict: RecordedVerdict) -> tuple[str, str]:
    """Return the outcome of a verdict, and its kind."""
    if verdict.status == "not_applicable":
        return "not asked", ""
    if verdict.failure is not None and verdict.failure.cause == "infrastructure":
        return "lost", verdict.failure.kind
    if verdict.failure is not None or verdict.score is None:
        return ("abstained", "") if verdict.failure is None else ("failed", verdict.failure.kind)
    if verdict.gated_by is not None:
        return "stopped", verdict.gated_by
    return ("passed" if verdict.score >= MET_THRESHOLD else "withstood"), ""
