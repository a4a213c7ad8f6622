"""Drawings of a run and of an explanation for a notebook: parts of pages, whose style holds inside them alone.

They are called by the `_repr_html_` of `Run` and `Explanation`, which import this module only there.
"""

from contextlib import closing

from jurygraph.errors import TraceMismatch
from jurygraph.explanation import Explanation
from jurygraph.runs.run import Run
from jurygraph.viewer.documents import TemplateContext, render_notebook_fragment
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import describe_progress, run_overview_context
from jurygraph.viewer.report import SELECT_LOWEST_REWARDS_SQL
from jurygraph.viewer.shapes import draw_waterfall

_MAX_NOTEBOOK_RESPONSES = 5000
"""Responses of a run that are read for a drawing, in about a second; of a larger one only its state is shown."""
_MAX_LOSSES_LISTED = 12
_MAX_TABLE_ROWS = 12


def draw_explanation(explanation: Explanation) -> str:
    return render_notebook_fragment({"run": None, **_describe(explanation)})


def draw_run(run: Run) -> str:
    """Return the state of a run, its agents, and what its lowest reward lost. Nothing is written into its folder."""
    responses = run.ledger.count_records("trace")
    context = {
        "run": run,
        "state": describe_progress(run),
        "responses": responses,
        "is_read": responses <= _MAX_NOTEBOOK_RESPONSES,
        "most_rows": _MAX_TABLE_ROWS,
        "trace": None,
    }
    if context["is_read"]:
        with closing(RunIndex(run, is_index_temporary=True)) as index:
            index.update()
            if index.fault:
                raise TraceMismatch(index.fault)
            context |= run_overview_context(index)
            lowest = index.fetch_rows(SELECT_LOWEST_REWARDS_SQL, 1)
        if lowest:
            context |= _describe(run.explain(lowest[0][0]))
    return render_notebook_fragment(context)


def _describe(explanation: Explanation) -> TemplateContext:
    return {
        "trace": explanation.trace,
        "drawn": draw_waterfall(explanation),
        "most_losses": _MAX_LOSSES_LISTED,
    }
