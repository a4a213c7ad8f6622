"""Prints what looking things up changed: two runs of the same tasks, the first by the judge without tools.

python examples/investigator/changes.py WITHOUT WITH
"""

import sys
from collections import Counter

import jurygraph as jg

Verdicts = dict[tuple[str, str], jg.RecordedVerdict]
QUOTED = 76
"""The most characters that are printed of a quotation."""


def main(without: str, with_tools: str) -> None:
    before = read_verdicts(without)
    after = read_verdicts(with_tools)
    for key, verdict in after.items():
        response, criterion = key
        old, new = describe(before[key]), describe(verdict)
        if old == new:
            continue
        print(f"{response}, {criterion}: {old} → {new}")
        print(f"  {verdict.reason}")
        evidence = verdict.evidence[-1]  # what was found; before it comes what the plan says
        quote = evidence.quote
        shown = quote if len(quote) <= QUOTED else f"{quote[:QUOTED]}…"
        print(f"  {evidence.source}: “{shown}”")
    same = sum(describe(before[key]) == describe(after[key]) for key in after)
    print(f"{len(after) - same} of {len(after)} verdicts changed")
    for name, run in (("without tools", without), ("with tools", with_tools)):
        print(f"{name}: {count_calls(run)}")


def read_verdicts(path: str) -> Verdicts:
    """Return the verdicts of a run by response and criterion."""
    with jg.Run.open(path) as run:
        return {
            (trace.response_id, str(verdict.subject)): verdict
            for trace in run.traces()
            for verdict in trace.verdicts
        }


def describe(verdict: jg.RecordedVerdict) -> str:
    if verdict.failure is not None:
        return f"no verdict ({verdict.failure.kind})"
    return "met" if verdict.met else "unmet"


def count_calls(path: str) -> str:
    """Return the numbers of model requests and of calls of tools, each counted once."""
    requests: set[str] = set()
    tools: dict[str, str] = {}
    with jg.Run.open(path) as run:
        for trace in run.traces():
            requests.update(call.id for call in trace.calls)
            tools.update((lookup.id, lookup.tool) for lookup in trace.lookups)
    by_name = ", ".join(
        f"{name} {count}" for name, count in sorted(Counter(tools.values()).items())
    )
    calls = f", {len(tools)} calls of tools ({by_name})" if tools else ""
    return f"{len(requests)} model requests{calls}"


if __name__ == "__main__":
    main(*sys.argv[1:])
