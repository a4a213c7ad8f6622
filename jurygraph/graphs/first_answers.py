"""Stop a run early whose evaluator has an error in its own code."""

from collections import Counter
from collections.abc import Iterable

from jurygraph.errors import EvaluatorError
from jurygraph.schema import RecordedVerdict

LOOKED_AT = 10


class FirstAnswers:
    """The first verdicts of each evaluator in a session: whether its code failed at all of them."""

    def __init__(self) -> None:
        self._failed = Counter[str]()
        self._working: set[str] = set()

    def note(self, evaluator: str, verdicts: Iterable[RecordedVerdict]) -> None:
        """Note verdicts of an evaluator. Raises EvaluatorError if its first `LOOKED_AT` are all errors of its code."""
        if evaluator in self._working:
            return
        for verdict in verdicts:
            failure = verdict.failure
            if failure is None or failure.cause != "evaluator":
                self._working.add(evaluator)
                return
            self._failed[evaluator] += 1
            if self._failed[evaluator] == LOOKED_AT:
                problem = f"failed at each of its first {LOOKED_AT} verdicts, with {failure.kind}: {failure.message}"
                raise EvaluatorError(f"evaluator {evaluator!r} {problem}; mend its code")
