"""One response as Markdown, to be pasted into an issue: question, answer, sums and verdicts, without its calls.

Texts stand in fences that are longer than any in them, or are escaped: none of them becomes markup.
"""

import re

from jurygraph.explanation.points import describe_reason
from jurygraph.messages import escape_multiline_text, shorten
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.studies.report import Report, ReportTable
from jurygraph.views.trace import (
    TraceView,
    build_task_and_response_view,
    build_trace_view,
    describe_failure,
)

_MAX_TEXT_CHARACTERS = 3000
_REWARD_SUM_COLUMNS = ("term", "weight", "× value", "× number", "= points", "lost")
_VERDICT_COLUMNS = ("verdict on", "by", "score", "reason")


def response_to_markdown(run: Run, name: str) -> str:
    """Return a response as Markdown. Raises as `render_response_report`."""
    scored = run.find_scored_response(name)
    view = build_trace_view(run.explain_trace(scored.trace))
    task_and_response = build_task_and_response_view(run, scored)
    response = task_and_response.response
    answer = None if response is None else response.excerpt(_MAX_TEXT_CHARACTERS)
    sentences = [view.sentences[0]]
    if view.trace.reward.value is None:
        sentences.append(describe_failure(view.trace))
    criteria = []
    task = task_and_response.task
    if task is not None and task.rubric is not None:
        criteria = [f"{criterion.id}: {criterion.text}" for criterion in task.rubric.criteria]
    notes = []  # how values were computed, such as by a majority of judges that differ
    for term in view.lost:
        for line in term.parts or (term,):
            if line.note:
                notes.append(f"{', '.join(line.names)}: {line.note}")
    blocks = [
        Report({}, sentences).to_markdown(),
        _format_code_block("Question", task_and_response.query),
        *([_format_code_block("Reference", task.reference)] if task and task.reference else []),
        _format_code_block("Answer", answer),
        *(_format_code_block("Passage", passage.text) for passage in (task and task.context) or ()),
        Report({}, [_build_reward_sum_table(view)], [*criteria, *notes]).to_markdown(),
        Report({}, [_build_verdict_table(view)]).to_markdown(),
    ]
    return "\n".join(blocks)


def _format_code_block(title: str, text: str | None) -> str:
    """Return the beginning of a text below its title, in a fence that nothing in it can close."""
    content = escape_multiline_text(
        ERASED_PLACEHOLDER if text is None else shorten(text, _MAX_TEXT_CHARACTERS)
    )
    fence = max(["``", *re.findall("`+", content)], key=len) + "`"
    return f"**{title}**\n\n{fence}text\n{content}\n{fence}\n"


def _build_reward_sum_table(view: TraceView) -> ReportTable:
    """Return the terms, each before its parts, what changed their sum, and the reward."""
    reward = view.trace.reward
    rows: list[tuple[object, ...]] = []
    for term in view.lost:
        for line in (term, *term.parts):
            names = ("" if line is term else "of which ") + ", ".join(line.names)
            rows.append((names, line.weight, line.value, len(line.names), line.points, line.lost))
    for change in reward.adjustments:
        rows.append((change.name, "", change.before, "", change.after, ""))
    rows.append(("reward", "", "", "", reward.value, ""))
    return ReportTable(_REWARD_SUM_COLUMNS, rows)


def _build_verdict_table(view: TraceView) -> ReportTable:
    rows = []
    for explained_verdict in view.verdicts:
        verdict = explained_verdict.verdict
        score = explained_verdict.score if verdict.status == "ok" else verdict.status
        judge = verdict.judge or verdict.evaluator
        rows.append((explained_verdict.label, judge, score, describe_reason(explained_verdict)))
    return ReportTable(_VERDICT_COLUMNS, rows, left=len(_VERDICT_COLUMNS))
