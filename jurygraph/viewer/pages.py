"""The pages: what each reads of a run and its index, and the template that lays it out."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from time import monotonic
from urllib.parse import urlencode

from aiohttp import web

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.explanation.changes import group_verdicts_by_change
from jurygraph.explanation.terms import ExplainedVerdict
from jurygraph.messages import escape_hidden_characters, suggest_known_name
from jurygraph.runs.calls import read_lookups
from jurygraph.runs.integrity.record_check import require_records_as_written
from jurygraph.runs.integrity.verification import verify
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import to_yaml
from jurygraph.schema.frozen_model import JsonMapping
from jurygraph.studies import comparison
from jurygraph.studies.changed_inputs import ChangedInputs, find_changed_inputs
from jurygraph.studies.ranking import (
    DecisionMethods,
    TriedSetting,
    collect_decision_methods,
    describe_untried_weights,
    find_rank_swaps,
    list_settings,
    measure_ranking,
    rank_with_intervals,
)
from jurygraph.studies.report import Report
from jurygraph.viewer.documents import TemplateContext
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import run_overview_context
from jurygraph.viewer.report import response_page_context
from jurygraph.viewer.scans import RunScanQueue
from jurygraph.viewer.shapes import draw_waterfall
from jurygraph.viewer.table import (
    TEXT_PARAMETERS,
    TableQuery,
    build_component_score_grid,
    read_table_page,
)
from jurygraph.viewer.what_if import (
    WhatIfChanges,
    explain_with_changes,
    is_verdict_about_response,
)
from jurygraph.views.agents import conclude_ranking
from jurygraph.views.trace import TraceView
from jurygraph.views.verdict import build_question_view, find_question_words

TemplateAndContext = tuple[str, TemplateContext]
_UPDATE_PAUSE_FACTOR = 20
"""Times as long as an update took until the next one: 5 % of a core at most."""
_MAX_FLIPS_LISTED = 100
_MAX_SELECT_ELEMENTS = 200
"""Questions of a response whose scores can be tried on its page; with more, a form would not fit in an address."""


@dataclass
class DisplayedRun:
    """A run that is looked at, with its index; `update` comes before anything else.

    Attributes:
        figures: what its overview shows, with the `worst` responses.
        decided: the means by which it was decided.
    """

    run: Run
    index: RunIndex
    figures: JsonMapping = field(default_factory=dict)
    decided: DecisionMethods = field(default_factory=DecisionMethods)
    other: "DisplayedRun | None" = None
    """The second run, which this one is compared with."""
    comparison: tuple[tuple[int, int], Report] | None = None
    """The comparison with the other run, and the numbers of records of both when it was made."""

    next_update_time: float = 0.0
    """The time, of a clock that never goes back, before which the pages show the run as it was."""
    fault: str = ""
    """The record that was found to be changed; empty where none was, or none was looked at yet."""

    def __post_init__(self) -> None:
        self.scans = RunScanQueue(self.index)

    async def check_records(self) -> None:
        """Check the records and their texts, apart from the thread of the pages."""
        try:
            await self.scans.check(require_records_as_written)
        except TraceMismatch as error:
            self.fault = str(error)

    @property
    def setting_controls(self) -> list[TriedSetting]:
        """The settings that pages let try."""
        return list(list_settings(self.run.config, self.decided))

    @property
    def untried_weights(self) -> list[str]:
        """Notes on weights that pages do not let try."""
        return describe_untried_weights(self.run.config, self.decided)

    @property
    def name(self) -> str:
        return self.run.folder.resolve().name

    def update(self) -> None:
        """Take in what was stored since the last time, and compute the figures of the whole run again.

        The larger a run is, the longer that takes: it pauses in proportion, or a page that is loaded again and again
        would slow down the writer of a growing run.
        """
        start = monotonic()
        if start < self.next_update_time:
            return
        if self.index.update() or not self.figures:
            self.figures = {
                **run_overview_context(self.index),
                "worst": read_table_page(self.index, TableQuery(sort="reward"), rows=5),
            }
            self.decided = collect_decision_methods(self.run)
            self.fault = self.fault or self.index.fault
        end = monotonic()
        self.next_update_time = end + _UPDATE_PAUSE_FACTOR * (end - start)


async def show_run(displayed_run: DisplayedRun, request: web.Request) -> TemplateAndContext:
    return "run.html", {"title": displayed_run.name, **displayed_run.figures}


async def show_table(displayed_run: DisplayedRun, request: web.Request) -> TemplateAndContext:
    index = displayed_run.index
    where = request.query.getall("where", ())
    query = TableQuery.from_url({"sort": "reward", **request.query}, where)
    page = read_table_page(index, query)
    return "table.html", {
        "title": "Responses",
        "page": page,
        "query": query,
        "grid": build_component_score_grid(index, page) if query.grid else None,
    }


async def show_ranking(displayed_run: DisplayedRun, request: web.Request) -> TemplateAndContext:
    """Rank the agents under other settings, find where one makes two of them change places, and how near that is.

    Only what is tried is decided again, apart from the thread of the pages; the ranking of now is in the index.
    """
    run = displayed_run.run
    changes = WhatIfChanges.from_url(request.query)
    settings = list(list_settings(changes.make_changed_config(run), displayed_run.decided))
    scan = request.query.get("scan", "")
    scanned_setting = next((setting for setting in settings if setting.key == scan), None)
    if scan and scanned_setting is None:
        keys = [setting.key for setting in settings]
        raise InputError(f"there is no setting {scan!r}; {suggest_known_name(scan, keys)}")
    turns = report = None
    agents = displayed_run.figures["agents"]
    tried_settings = changes.settings
    if tried_settings:
        agents = await displayed_run.scans.rank(
            lambda ranker: rank_with_intervals(ranker, tried_settings)
        )
    if scanned_setting is not None and scanned_setting.is_number:
        ends = scanned_setting.low, scanned_setting.high
        turns = await displayed_run.scans.rank(
            lambda ranker: find_rank_swaps(
                ranker.agents, ranker.sums_function(scanned_setting.key, tried_settings), *ends
            )
        )
    if "far" in request.query:
        report = await displayed_run.scans.rank(
            lambda ranker: measure_ranking(ranker, tried_settings)
        )
    context = {
        "title": "Ranking",
        "agents": agents,
        "conclusion": conclude_ranking(agents),
        "changes": changes,
        "scanned": scanned_setting,
        "turns": turns,
        "report": report,
    }
    if is_partial_page_request(request):
        chosen = {name: request.query[name] for name in ("scan", "far") if request.query.get(name)}
        address = [urlencode(chosen), changes.to_url()]
        context["address"] = f"{request.path}?{'&'.join(filter(None, address))}"
        return "ranking_part.html", context
    return "ranking.html", context


async def show_verification(
    displayed_run: DisplayedRun, request: web.Request
) -> TemplateAndContext:
    """Verify the run as `jurygraph verify` does, and say for which head; what was changed is named."""
    fault = result = None
    try:
        result = await displayed_run.scans.check(verify)
    except TraceMismatch as error:
        fault = displayed_run.fault = str(error)
    context = {"title": "Verification", "result": result, "fault": fault}
    return "verification_part.html" if is_partial_page_request(
        request
    ) else "verification.html", context


async def show_response(displayed_run: DisplayedRun, request: web.Request) -> TemplateAndContext:
    """Show a response, and what it would get with changes."""
    name = _require_parameter(request, "id")
    run = displayed_run.run
    scored = run.find_scored_response(name)
    changes = WhatIfChanges.from_url(request.query)
    context: TemplateContext = {
        "title": name,
        "trace": scored.trace,
        "changes": changes,
        "changed": None,
    }
    if not changes.has_no_changes:
        changed = explain_with_changes(run, name, changes)
        context |= {"changed": changed.trace, "changed_drawn": draw_waterfall(changed)}
    if is_partial_page_request(request):
        address = f"{request.path}?{urlencode({'id': name})}"
        context["address"] = address if changes.has_no_changes else f"{address}&{changes.to_url()}"
        return "what_if.html", context
    page = response_page_context(run, scored, run.explain_trace(scored.trace))
    return "response.html", {
        **context,
        **page,
        "neighbours": displayed_run.index.neighbours(name),
        "lookups": read_lookups(run, scored.trace, scored.trace.verdicts),
        "changeable": first_what_if_verdicts(page["view"]),
    }


def first_what_if_verdicts(view: TraceView) -> dict[str, ExplainedVerdict]:
    """Return the first verdict of each question whose score `explain --what-if` tries; none if too many for a form.

    One that was judged goes before those that failed: the score is tried for all judges of the question.
    """
    first: dict[str, ExplainedVerdict] = {}
    verdicts_to_try = chain.from_iterable(group_verdicts_by_change(view.verdicts).values())
    for explained_verdict in sorted(
        verdicts_to_try, key=lambda explained_verdict: explained_verdict.score is None
    ):
        verdict = explained_verdict.verdict
        if is_verdict_about_response(verdict, view.trace.response_id) and not verdict.superseded:
            first.setdefault(verdict.question, explained_verdict)
    return first if len(first) <= _MAX_SELECT_ELEMENTS else {}


def is_partial_page_request(request: web.Request) -> bool:
    """Return whether a part of a page is wanted, and not a page."""
    return request.headers.get("HX-Request") == "true"


async def show_verdict(displayed_run: DisplayedRun, request: web.Request) -> TemplateAndContext:
    view = build_question_view(
        displayed_run.run,
        _require_parameter(request, "id"),
        _require_parameter(request, "question"),
    )
    return "verdict.html", {
        "title": f"{view.question} on {view.response_id}",
        "view": view,
        "words": find_question_words(displayed_run.run, view),
    }


async def show_comparison(displayed_run: DisplayedRun, request: web.Request) -> TemplateAndContext:
    """Compare the second run with the first, once for their records as they are now.

    Raises `InputError` where they have no response in common.
    """
    other = displayed_run.other
    if other is None:
        raise InputError("compare: name two runs, `jurygraph view RUN RUN2`")
    runs = (displayed_run, other)
    state = displayed_run.index.records, other.index.records
    if displayed_run.comparison is None or displayed_run.comparison[0] != state:
        for run in runs:
            run.index.complete()
            await run.scans.call(run.scans.forget)  # both rankings take as much memory again

        def read_inputs() -> tuple[ChangedInputs, tuple[dict[str, float], str]]:
            groups = displayed_run.index.iter_packed_groups()
            # of its own: a ledger belongs to the thread of the pages
            with Run.open(displayed_run.run.folder) as run, Run.open(other.run.folder) as other_run:
                return (
                    find_changed_inputs(run, other_run),
                    comparison.decide_under_other_settings(run, other_run.config, groups),
                )

        changed_inputs, under_b = await displayed_run.scans.call(read_inputs)
        compare = partial(
            comparison.compare,
            displayed_run.index.compared_responses(),
            other.index.compared_responses(),
            changed_inputs=changed_inputs,
            max_flips_listed=_MAX_FLIPS_LISTED,
            under_b=under_b,
        )
        displayed_run.comparison = state, await displayed_run.scans.call(compare)
    report = displayed_run.comparison[1]
    headline = Report({}, comparison.headline_sections(report.figures)).sections
    context = {
        "title": "B − A",
        "report": report,
        "headline": headline,
        "changed_outcomes": comparison.find_changed_outcomes(report.figures),
    }
    return "compare.html", context


def send_config(displayed_run: DisplayedRun, request: web.Request) -> web.Response:
    """Send the config with the settings that are tried, without what has its default."""
    changes = WhatIfChanges.from_url(request.query)
    config = changes.make_changed_config(displayed_run.run)
    fields = config.model_dump(mode="json", exclude_defaults=True)
    if config.gates:  # the default of a `kind` is what says which gate it is
        fields["gates"] = [gate.model_dump(mode="json") for gate in config.gates]
    for model in fields.get("models", {}).values():
        if model.get("calls") == {}:  # as those of the config
            del model["calls"]
    comments = [f"# {escape_hidden_characters(setting)}" for setting in changes.settings]
    heading = f"# The config of {displayed_run.name} with these settings:"
    text = "\n".join([heading, *comments, to_yaml(fields)])
    download_header = {"Content-Disposition": 'attachment; filename="jury.yaml"'}
    return web.Response(text=text, content_type="application/yaml", headers=download_header)


def _require_parameter(request: web.Request, name: str) -> str:
    value = request.query.get(name)
    if not value:
        raise InputError(f"{request.path}: the address has no {name!r}; follow a link of the table")
    return value


_PARAMETERS_BY_PATH: Mapping[str, Sequence[str]] = {
    "/responses": (*TEXT_PARAMETERS, "where", "label.NAME"),
    "/response": ("id", "set", "score", "edge"),
    "/verdict": ("id", "question"),
    "/ranking": ("scan", "far", "set"),
    "/config.yaml": ("set",),  # no config can have scores or edges
}
"""By path below the letter of a run: the parameters of its page; the others have none."""


def refuse_unknown_parameters(path: str, parameters: Iterable[str]) -> None:
    """Raise `InputError` for a name in an address that its page does not know: else it would show something else."""
    page_parameters = _PARAMETERS_BY_PATH.get(path, ())
    for name in parameters:
        is_label = name.startswith("label.") and "label.NAME" in page_parameters
        if name not in (*page_parameters, "token") and not is_label:
            raise InputError(
                f"this page has no parameter {name!r}; {suggest_known_name(name, page_parameters)}"
            )


PageHandler = Callable[[DisplayedRun, web.Request], Awaitable[TemplateAndContext]]

PAGE_HANDLERS: Mapping[str, PageHandler] = {
    "/": show_run,
    "/responses": show_table,
    "/response": show_response,
    "/verdict": show_verdict,
    "/compare": show_comparison,
    "/ranking": show_ranking,
    "/verify": show_verification,
}
"""By path below the letter of a run: the function that returns the template and what it lays out."""
