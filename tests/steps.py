"""How many steps Python takes for something: the same on every machine, where a clock is not."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_steps(work: Callable[[], object]) -> int:
    """Run `work`, and return how many bytecode instructions it took."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def growth(work_for: Callable[[int], Callable[[], object]], size: int, times: int = 4) -> float:
    """Return how many times as many steps an input takes that is `times` as large as one of `size`.

    Linear work gives about `times`, quadratic work about its square.
    """
    small, large = work_for(size), work_for(size * times)
    small()  # whatever is imported or compiled once is not counted
    return count_steps(large) / count_steps(small)
