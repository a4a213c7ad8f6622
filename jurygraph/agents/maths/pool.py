"""Symbolic equivalence by math-verify in worker processes (see `worker_pool`), which end what sympy does not end."""

from concurrent.futures import Future
from dataclasses import dataclass

from jurygraph.agents.maths.comparison import Status
from jurygraph.agents.worker_pool import Reply, Work, WorkerPool
from jurygraph.errors import JurygraphError

TEXT_LIMIT = 10_000  # characters of an answer or a reference


class AnswerTooLong(JurygraphError):
    """An answer or reference is longer than 10,000 characters, so it is not sent to a worker."""


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """The result of one comparison, and as its `detail` the deciding rule.

    `equal` and `different` are judgements. `unparsed-answer` and `unparsed-reference`: that side does not read as one
    mathematical value; the reference is checked first. `error`: the worker's comparison failed, and `detail` is the
    exception type (`RecursionError`, `MemoryError`).
    """

    status: Status
    detail: str = ""


def _read_comparison(reply: Reply) -> AnswerComparison:
    if "error" in reply:
        return AnswerComparison("error", reply["error"])
    status, detail = reply["result"]
    return AnswerComparison(status, detail)


_COMPARISONS = Work("maths", "jurygraph.agents.maths.comparison:prepare", _read_comparison, batch=64, cached=4096)


class EquivalencePool(WorkerPool[AnswerComparison]):
    """Compare answers with references in `workers` processes, each comparison limited to `time_limit` seconds."""

    def __init__(self, workers: int = 1, time_limit: float = 2.0) -> None:
        super().__init__(_COMPARISONS, workers, time_limit)

    def compare(self, answer: str, reference: str, unit: str = "") -> "Future[AnswerComparison]":
        """Compare `answer` with `reference`; `unit` is that that the question asks for, or empty.

        The two are not interchangeable, since math-verify is not symmetric.

        The future is that of `submit`; it may also raise AnswerTooLong.
        """
        if max(len(answer), len(reference)) <= TEXT_LIMIT:
            return self.submit({"answer": answer, "reference": reference, "unit": unit})
        self.open()
        future: Future[AnswerComparison] = Future()
        future.set_exception(AnswerTooLong(f"an answer or reference is longer than {TEXT_LIMIT} characters"))
        return future
