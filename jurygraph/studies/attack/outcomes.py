"""What became of verdicts: how many passed, and why the others did not."""

from collections import Counter
from collections.abc import Iterable

from jurygraph.graphs.table import MET_FROM
from jurygraph.runs.proportions import Proportion
from jurygraph.schema import Noun, Verdict
from jurygraph.schema.noun import Count


class Outcome(Noun):
    """How many `verdicts` passed, with a score of at least 0.5, and how many `responses` got one that did.

    One that a gate gave (`stopped`, by gate), that failed for what the response or the reply to it is (`failed`, by
    kind) or in which the judge abstained did not pass, and counts. Not counted, as nothing was judged, are those that
    failed by our own trouble (`lost`, by kind) and those that nobody had to ask for (`not_asked`).
    """

    verdicts: Proportion
    responses: Proportion
    stopped: dict[str, Count]
    failed: dict[str, Count]
    abstained: Count
    lost: dict[str, Count]
    not_asked: Count


class Tally:
    """Counts verdicts, a response at a time."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._responses: Counter[bool] = Counter()

    def add(self, verdicts: Iterable[Verdict]) -> None:
        """Count the verdicts on one response."""
        own = [_fate(verdict) for verdict in verdicts]
        self._counts.update(own)
        if any(fate not in _NOT_COUNTED for fate, _ in own):
            self._responses[any(fate == "passed" for fate, _ in own)] += 1

    def outcome(self) -> Outcome:
        """All so far."""
        of = {fate: self._by_kind(fate) for fate in _FATES}
        totals = {fate: sum(kinds.values()) for fate, kinds in of.items()}
        counted = sum(total for fate, total in totals.items() if fate not in _NOT_COUNTED)
        return Outcome(
            verdicts=Proportion.of(totals["passed"], counted),
            responses=Proportion.of(self._responses[True], self._responses.total()),
            stopped=of["stopped"],
            failed=of["failed"],
            abstained=totals["abstained"],
            lost=of["lost"],
            not_asked=totals["not asked"],
        )

    def _by_kind(self, fate: str) -> dict[str, int]:
        return {kind: count for (its, kind), count in sorted(self._counts.items()) if its == fate}


_FATES = ("passed", "withstood", "stopped", "failed", "abstained", "lost", "not asked")
_NOT_COUNTED = ("lost", "not asked")


def _fate(verdict: Verdict) -> tuple[str, str]:
    """What became of a verdict, and of which kind that is."""
    if verdict.status == "not_applicable":
        return "not asked", ""
    if verdict.failure is not None and verdict.failure.cause == "infrastructure":
        return "lost", verdict.failure.kind
    if verdict.failure is not None or verdict.score is None:
        return ("abstained", "") if verdict.failure is None else ("failed", verdict.failure.kind)
    if verdict.gated_by is not None:
        return "stopped", verdict.gated_by
    return ("passed" if verdict.score >= MET_FROM else "withstood"), ""
