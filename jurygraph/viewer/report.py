"""Pages of a run, or of one response of it, that stand alone: what `jurygraph report` writes.

The page of a run begins with what a decision needs: which agent is better, how sure that is, and what was lost by what.
A response takes a bounded part of it, whatever it contains: 500 stay below 10 MB in any script.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from jurygraph.display import ProgressCallback
from jurygraph.explanation import Explanation
from jurygraph.runs.calls import read_calls
from jurygraph.runs.reports.gates import GateCounts
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
from jurygraph.views.agents import RankedAgent
from jurygraph.views.labels import compare_by_label
from jurygraph.views.trace import (
    TaskAndResponseView,
    build_task_and_response_view,
    build_trace_view,
)

DRAWN_RESPONSES = 10
"""Responses that a report draws whole by default."""
_MAX_LISTED_RESPONSES = 500
"""Responses that a report has, drawn or in a line, if no more are to be drawn: more than anybody reads."""
_MAX_RESPONSES_EXPLAINED = 10_000
"""Responses of a run that are all explained for what agents lost by each criterion, in 7 s."""
LossRows = list[tuple[str, list[float]]]
"""By name, the points that each agent lost."""
_MAX_LOSSES_LISTED = 5
_MAX_TABLE_ROWS = 100
SELECT_LOWEST_REWARDS_SQL = (
    "SELECT name FROM responses WHERE reward IS NOT NULL ORDER BY reward, number LIMIT ?"
)
_SELECT_FAILED_RESPONSES_SQL = (
    "SELECT name FROM responses WHERE reward IS NULL ORDER BY number LIMIT ?"
)


def render_run_report(
    run: Run,
    index: RunIndex,
    most: int,
    advance: ProgressCallback,
    template: str = "report.html",
    by: str | None = None,
    heading: str | None = None,
) -> str:
    """Return the page of a run with its `most` lowest rewards drawn; `advance` receives those explained for losses.

    The `template` brief.html is a page of paper for whoever decides, and has losses by criteria alone, the agents `by`
    a label, and a `heading` of one's own.
    Raises `TraceMismatch` where a response is not what was written, and `InputError` where none has the label.
    """
    lowest = index.fetch_rows(SELECT_LOWEST_REWARDS_SQL, max(most, _MAX_LISTED_RESPONSES))
    # one by one: a page holds hundreds, of which only what is drawn is kept
    explanations = (
        (run.explain_trace(trace), texts) for trace, texts in _iter_traces_with_texts(run, lowest)
    )
    failed = index.fetch_rows(_SELECT_FAILED_RESPONSES_SQL, _MAX_TABLE_ROWS)
    overview = run_overview_context(index)
    losses: LossRows = []
    if overview["scored"] <= _MAX_RESPONSES_EXPLAINED:
        losses = measure_losses(run, overview["agents"], advance)
    context = {
        **overview,
        "losses": losses,
        "gates": GateCounts.read(run).describe(),
        "criteria": find_shared_criteria(run, index.names("task"))
        if losses and template == "brief.html"
        else {},
        "by": compare_by_label(run, by) if by else None,
        "heading": heading,
        "most": most,
        "most_rows": _MAX_TABLE_ROWS,
        "most_losses": _MAX_LOSSES_LISTED,
        "most_listed": len(lowest),
        "worst": islice(explanations, most),
        "others": explanations,
        "draw_waterfall": draw_waterfall,
        "without_reward": _iter_traces_with_texts(run, failed),
        "records": index.records,
        "head": run.ledger.record_at(index.records).link.hex(),
    }
    return render_document(template, run.folder.resolve().name, context)


def _iter_traces_with_texts(
    run: Run, rows: Iterable[tuple[str]]
) -> Iterator[tuple[Trace, TaskAndResponseView]]:
    for (name,) in rows:
        scored = run.find_scored_response(name)
        yield scored.trace, build_task_and_response_view(run, scored)


def measure_losses(run: Run, agents: Sequence[RankedAgent], advance: ProgressCallback) -> LossRows:
    """Return by part of a reward, or gate, the points that each agent's rewards lost by it on average, most first.

    Parts that fewer than half of the rewards have, such as the people of one task, are left out; gates are not.
    """
    scored = {agent.agent: agent.scored for agent in agents}
    rewards_with: Counter[str] = Counter()
    means: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(scored, 0.0))
    for trace in run.traces():
        if trace.reward.value is not None:
            agent = trace.agent or ""
            explanation = run.explain_trace(trace)
            share = explanation.explained.decision.scale / scored[agent]
            waterfall = draw_waterfall(explanation)
            for name, lost in waterfall.losses_by_name.items():
                means[name][agent] += lost * share
            rewards_with.update(chain.from_iterable(bar.names for bar in waterfall.bars))
        advance(1)
    for name, count in rewards_with.items():
        if count < sum(scored.values()) / 2:
            del means[name]
    rows = [(name, [*row.values()]) for name, row in means.items()]
    return sorted(rows, key=lambda row: -sum(row[1]))


def find_shared_criteria(run: Run, tasks: Iterable[str]) -> dict[str, str]:
    """Return the words of the criteria of some tasks by their ids, but for ids with other words in another task."""
    words_by_id = defaultdict(set)
    for task in map(run.task, tasks):
        for criterion in task.rubric.criteria if task and task.rubric else ():
            words_by_id[criterion.id].add(criterion.text)
    return {name: words.pop() for name, words in words_by_id.items() if len(words) == 1}


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
        "last_request": task_and_response.last_request,
        "reference": task_and_response.task and task_and_response.task.reference,
        "messages": split_response_at_quotes(task_and_response.response, evidence),
        "passages": mark_passages(task_and_response.task, evidence),
        "evidence": evidence,
        "data": scored.response and scored.response.data,
        "others": [member.trace for member in run.group_of_response(scored.trace.response_id)],
    }
