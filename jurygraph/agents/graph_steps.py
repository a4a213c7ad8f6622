"""Record the steps of a LangGraph graph that is an evaluator."""

from asyncio import CancelledError
from time import monotonic
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from jurygraph.schema import Step


class StepRecorder(BaseCallbackHandler):
    """Add each node of a graph, and of graphs inside it, to `steps`, in the order in which they start."""

    run_inline = True  # in the order of events, not in threads

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps
        self._started: dict[UUID, tuple[int, float]] = {}

    def on_chain_start(
        self, *args: Any, run_id: UUID, tags: list[str] | None = None, **about: Any
    ) -> None:
        if any(tag.startswith("graph:step:") for tag in tags or ()):
            self._started[run_id] = len(self._steps), monotonic()
            self._steps.append(Step(name=about["name"]))

    def on_chain_end(self, *args: Any, run_id: UUID, **about: Any) -> None:
        if run_id in self._started:
            index, start = self._started.pop(run_id)
            name = self._steps[index].name
            self._steps[index] = Step(name=name, duration=monotonic() - start)

    def on_chain_error(self, error: BaseException, **about: Any) -> None:
        if not isinstance(error, CancelledError):  # a step that was cut off did not end
            self.on_chain_end(**about)
