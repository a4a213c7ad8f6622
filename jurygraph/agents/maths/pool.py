"""Symbolic equivalence by math-verify in worker processes (see `worker_pool`), which end what sympy does not end."""

from dataclasses import dataclass

from jurygraph.agents.maths.comparison import Status
from jurygraph.agents.worker_pool import WorkerPool, WorkFailed
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


class EquivalencePool(WorkerPool):
    """Compare answers with references in `workers` processes, each comparison limited to `time_limit` seconds."""

    def __init__(self, workers: int = 1, time_limit: float = 2.0) -> None:
        prepare = "jurygraph.agents.maths.comparison:prepare"
        super().__init__("maths", prepare, time_limit=time_limit, workers=workers)

    async def compare(self, answer: str, reference: str, unit: str = "") -> AnswerComparison:
        """Compare `answer` with `reference`; `unit` is that that the question asks for, or empty.

        The two are not interchangeable, since math-verify is not symmetric. Raises what `call` raises, but for
        WorkFailed, and AnswerTooLong.
        """
        if max(len(answer), len(reference)) > TEXT_LIMIT:
            raise AnswerTooLong(f"an answer or reference is longer than {TEXT_LIMIT} characters")
        try:
            return AnswerComparison(*await self.call(answer, reference, unit))
        except WorkFailed as error:
            return AnswerComparison("error", error.kind)
