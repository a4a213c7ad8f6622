"""Pages of a run, or of one response of it, that stand alone: what `jurygraph report` writes.

A response of a run takes a bounded part of the page, whatever it contains: 2,000 of them stay below 10 MB.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jurygraph.display import ProgressCallback
from jurygraph.runs.calls import RecordedCall, read_calls
from jurygraph.runs.run import Run
from jurygraph.schema import RecordedVerdict, Reward, Trace
from jurygraph.viewer.documents import render_document
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import describe_state, read_agents, read_buckets, read_totals
from jurygraph.viewer.shapes import Waterfall, cut_response, draw_waterfall, number_evidence
from jurygraph.viewer.table import list_facets
from jurygraph.views.trace import describe_loss, view_query, view_trace

MOST = 500
"""Responses that a report draws by default: more than anybody reads, and a file of about 2 MB."""
_MOST_LOSSES = 5
_MOST_ROWS = 100
LOWEST = "SELECT name FROM responses WHERE reward IS NOT NULL ORDER BY reward, number LIMIT ?"
_WITHOUT_REWARD = "SELECT name FROM responses WHERE reward IS NULL ORDER BY number LIMIT ?"


@dataclass(frozen=True, kw_only=True)
class ReportEntry:
    """A response in a report: its reward, what cost most in words, and its losses as bars."""

    response: str
    task: str
    agent: str | None
    reward: Reward
    loss: str
    drawn: Waterfall


def report_run(run: Run, index: RunIndex, most: int, advance: ProgressCallback) -> str:
    """Return the page of a run with its `most` lowest rewards; `advance` receives the responses that are laid out.

    Raises `TraceMismatch` where a response is not what was written.
    """
    totals = read_totals(index)
    ((scored,),) = index.fetch("SELECT count(reward) FROM responses")
    lowest = [name for (name,) in index.fetch(LOWEST, most)]
    without_reward = [name for (name,) in index.fetch(_WITHOUT_REWARD, _MOST_ROWS)]
    context = {
        **totals,
        "run": run,
        "header": run.header,
        "state": describe_state(run),
        "agents": read_agents(index),
        "buckets": read_buckets(index),
        "failures": list_facets(index)["failure"],
        "has_gates": bool(run.config.gates),
        "scored": scored,
        "most": most,
        "most_rows": _MOST_ROWS,
        "most_losses": _MOST_LOSSES,
        "worst": _read_entries(run, lowest, advance),
        "without_reward": _read_entries(run, without_reward, lambda count: None),
        "records": index.records,
        "head": run.ledger.record_at(index.records).link.hex(),
    }
    return render_document("report.html", run.folder.resolve().name, context)


def _read_entries(
    run: Run, names: Iterable[str], advance: ProgressCallback
) -> Iterator[ReportEntry]:
    """Yield the entries one by one: a page holds thousands, of which only what is drawn is kept."""
    for name in names:
        explanation = run.explain(name)
        trace = explanation.trace
        yield ReportEntry(
            response=name,
            task=trace.task_id,
            agent=trace.agent,
            reward=trace.reward,
            loss=describe_loss(explanation),
            drawn=draw_waterfall(explanation.lines),
        )
        advance(1)


def report_response(run: Run, name: str) -> str:
    """Return the page of a response, with the prompts and replies behind it, and sums that can be redone by hand.

    Raises `InputError` if there is none, and `TraceMismatch` where it is not what was written.
    """
    view = view_trace(run.explain(name))
    group = run.group_with(name)
    responses = {scored.trace.response_id: scored.response for scored in group}
    evidence = number_evidence(view)
    quotations = [found for found, _ in evidence]
    context = {
        "run_name": run.folder.resolve().name,
        "view": view,
        "drawn": draw_waterfall(view.lost),
        "scale": run.decision_of(view.trace.task_id).scale,
        "query": view_query(run, view.trace),
        "messages": cut_response(responses[name], quotations),
        "evidence": evidence,
        "calls": _read_all_calls(run, view.trace),
    }
    return render_document("response_document.html", name, context)


def _read_all_calls(run: Run, trace: Trace) -> list[RecordedCall]:
    """Return the calls behind all verdicts of a trace; one that several questions share comes once."""
    by_question: dict[str, list[RecordedVerdict]] = {}
    for verdict in trace.verdicts:
        by_question.setdefault(verdict.question, []).append(verdict)
    calls: dict[str, RecordedCall] = {}
    for verdicts in by_question.values():
        for recorded in read_calls(run, trace, verdicts):
            calls.setdefault(recorded.call.id, recorded)
    return list(calls.values())
