"""What each fault costs whom: a table of a run over `tasks.jsonl.gz`.

python examples/group_trip/faults.py RUN
"""

import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby

from jurygraph import Run, Trace
from jurygraph.schema import Decision

PAID = 0.1
"""Somebody pays for a fault who loses at least so much of a utility."""


def main(folder: str) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends the script quietly
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    run = Run.open(folder)
    for task, group in groupby(run.traces(), key=lambda trace: trace.task_id):
        for line in lines(task, list(group), run.decision_of(task)):
            print(line[:width])


def lines(task: str, traces: list[Trace], decision: Decision) -> Iterator[str]:
    """A group's weights, and its plans: their rewards calibrated and uniform, and who pays for the fault."""
    (spec,) = decision.specs
    weights = ", ".join(f"{name} {one.input_weight:.2f}" for name, one in spec.inputs.items())
    yield f"\n{task}, weights: {weights}"
    yield f"  {'plan':<20} {'calibrated':>10} {'uniform':>8}   who pays, and for what"
    reference = next(trace for trace in traces if trace.agent == "reference")
    for trace in traces:
        paid = "" if trace is reference else payers(reference, trace)
        yield f"  {trace.agent or '-':<20} {trace.reward.value or 0:>10.3f} {uniform(trace):>8.3f}   {paid}"


def uniform(trace: Trace) -> float:
    """The reward if everybody weighed the same: the mean utility."""
    return trace.reward.diagnostics["stakeholders"]["group utility"]


def utilities(trace: Trace) -> Mapping[str, float]:
    return trace.reward.parts["stakeholders"]


def payers(reference: Trace, trace: Trace) -> str:
    """Who loses by a plan, from which utility to which, and the first reason that the trace gives."""
    before, after = utilities(reference), utilities(trace)
    met = {v.question for v in reference.verdicts if v.met}
    wrong = [v for v in trace.verdicts if v.met is False and v.question in met]
    lost = [name for name, utility in after.items() if before[name] - utility >= PAID]
    if not lost:
        return f"all a little: {wrong[0].reason}" if wrong else "nobody"
    told = ", ".join(f"{name} {before[name]:.2f} → {after[name]:.2f}" for name in lost)
    reason = next(v.reason for v in wrong if v.stakeholder == lost[0] and v.layer == "check")
    return f"{told}: {reason}"


if __name__ == "__main__":
    main(sys.argv[1])
