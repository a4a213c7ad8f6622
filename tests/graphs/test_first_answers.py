"""A run stops early whose evaluator fails by its own code."""

import pytest

from jurygraph.errors import EvaluatorError
from jurygraph.graphs.context import FAILED_VERDICTS_BEFORE_STOP, FirstVerdictsCheck
from jurygraph.schema import Failure, FailureCause, RecordedVerdict


def verdict(cause: FailureCause | None) -> RecordedVerdict:
    if cause is None:
        return RecordedVerdict(score=1.0)
    return RecordedVerdict(
        status="failed", failure=Failure(cause=cause, kind="KeyError", message="'hotel'")
    )


def test_errors_at_each_of_the_first_verdicts_of_an_evaluator_end_the_run() -> None:
    answers = FirstVerdictsCheck()
    answers.note("sound", [verdict(None)])
    answers.note("broken", [verdict("evaluator")] * (FAILED_VERDICTS_BEFORE_STOP - 1))
    with pytest.raises(
        EvaluatorError, match="'broken' failed at each of its first 10 verdicts, with KeyError"
    ):
        answers.note("broken", [verdict("evaluator")])


@pytest.mark.parametrize("cause", [None, "response", "infrastructure"])
def test_an_evaluator_that_once_did_its_work_never_ends_the_run(cause: FailureCause | None) -> None:
    answers = FirstVerdictsCheck()
    answers.note("e", [verdict("evaluator"), verdict(cause), *[verdict("evaluator")] * 50])
    answers.note("e", [verdict("evaluator")] * 50)
