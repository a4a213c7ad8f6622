"""Pages of a run, or of one response of it, that stand alone: what `jurygraph report` writes.

A response of a run takes a bounded part of the page, whatever it contains: the 500 that are drawn by default stay below
10 MB in any script.
"""

from collections.abc import Iterable, Iterator

from jurygraph.display import ProgressCallback
from jurygraph.explanation import Explanation
from jurygraph.explanation.terms import find_combiner
from jurygraph.runs.calls import read_calls
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.schema import Trace
from jurygraph.viewer.documents import TemplateContext, render_document
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import run_overview_context
from jurygraph.viewer.shapes import (
    draw_waterfall,
    group_evidence,
    mark_passages,
    split_response_at_quotes,
)
from jurygraph.views.trace import (
    TaskAndResponseView,
    build_task_and_response_view,
    build_trace_view,
)

MAX_REPORT_RESPONSES = 500
"""Responses that a report draws by default: more than anybody reads, and a file of 2 to 4 MB."""
_MAX_LOSSES_LISTED = 5
_MAX_TABLE_ROWS = 100
SELECT_LOWEST_REWARDS_SQL = (
    "SELECT name FROM responses WHERE reward IS NOT NULL ORDER BY reward, number LIMIT ?"
)
_SELECT_FAILED_RESPONSES_SQL = (
    "SELECT name FROM responses WHERE reward IS NULL ORDER BY number LIMIT ?"
)


def render_run_report(run: Run, index: RunIndex, most: int, advance: ProgressCallback) -> str:
    """Return the page of a run with its `most` lowest rewards; `advance` receives the responses that are laid out.

    Raises `TraceMismatch` where a response is not what was written.
    """
    lowest = [name for (name,) in index.fetch_rows(SELECT_LOWEST_REWARDS_SQL, most)]
    failed_responses = [
        name for (name,) in index.fetch_rows(_SELECT_FAILED_RESPONSES_SQL, _MAX_TABLE_ROWS)
    ]
    context = {
        **run_overview_context(index),
        "has_gates": bool(run.config.gates),
        "has_criteria": any(
            find_combiner(spec).counts_criteria
            for decision in run.decisions()
            for spec in decision.specs
        ),
        "most": most,
        "most_rows": _MAX_TABLE_ROWS,
        "most_losses": _MAX_LOSSES_LISTED,
        "worst": _iter_explanations(run, lowest, advance),
        "draw_waterfall": draw_waterfall,
        "without_reward": _iter_traces_with_texts(run, failed_responses),
        "records": index.records,
        "head": run.ledger.record_at(index.records).link.hex(),
    }
    return render_document("report.html", run.folder.resolve().name, context)


def _iter_traces_with_texts(
    run: Run, names: Iterable[str]
) -> Iterator[tuple[Trace, TaskAndResponseView]]:
    for name in names:
        scored = run.find_scored_response(name)
        yield scored.trace, build_task_and_response_view(run, scored)


def _iter_explanations(
    run: Run, names: Iterable[str], advance: ProgressCallback
) -> Iterator[tuple[Explanation, TaskAndResponseView]]:
    """Explain responses one by one: a page holds thousands, of which only what is drawn is kept."""
    for trace, task_and_response in _iter_traces_with_texts(run, names):
        yield run.explain_trace(trace), task_and_response
        advance(1)


def render_response_report(run: Run, name: str) -> str:
    """Return the page of a response, with the prompts and replies behind it, and sums that can be redone by hand.

    Raises `InputError` if there is none, and `TraceMismatch` where it is not what was written.
    """
    scored = run.find_scored_response(name)
    trace = scored.trace
    context = {
        **response_page_context(run, scored, run.explain_trace(trace)),
        "run_name": run.folder.resolve().name,
        "scale": run.decision_of(trace.task_id).scale,
        "calls": read_calls(run, trace, trace.verdicts),
    }
    return render_document("response_document.html", name, context)


def response_page_context(
    run: Run, scored: ScoredResponse, explanation: Explanation
) -> TemplateContext:
    """Return what any page of a response has: what it lost, its texts with their quotations, and its whole group."""
    view = build_trace_view(explanation)
    task_and_response = build_task_and_response_view(run, scored)
    evidence = group_evidence(view)
    return {
        "view": view,
        "drawn": draw_waterfall(explanation),
        "criteria": task_and_response.criteria,
        "query": task_and_response.query,
        "messages": split_response_at_quotes(task_and_response.response, evidence),
        "passages": mark_passages(task_and_response.task, evidence),
        "evidence": evidence,
        "data": scored.response and scored.response.data,
        "others": [member.trace for member in run.group_of_response(scored.trace.response_id)],
    }
