"""The pages: what each reads of a run and its index, and the template that lays it out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.schema import Config
from jurygraph.studies import comparison
from jurygraph.studies.report import Report
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import (
    AgentMean,
    describe_state,
    read_agents,
    read_buckets,
    read_totals,
)
from jurygraph.viewer.shapes import cut_response, draw_waterfall, number_evidence
from jurygraph.viewer.table import TableQuery, list_facets, read_page
from jurygraph.viewer.what_if import (
    WhatIf,
    explain_changed,
    find_turns,
    list_controls,
    rank_agents,
)
from jurygraph.views.trace import TraceView, view_query, view_trace
from jurygraph.views.verdict import view_question

Page = tuple[str, dict[str, Any]]
_MAX_RANKINGS = 256


@dataclass
class OpenRun:
    """A run that is looked at, with its index."""

    run: Run
    index: RunIndex
    other: "OpenRun | None" = None
    """The second run, which this one is compared with."""
    comparison: tuple[tuple[int, int], Report] | None = None
    """The comparison with the other run, and the numbers of records of both when it was made."""

    _rankings: dict[tuple[int, str], dict[str, float]] = field(default_factory=dict, repr=False)

    def rank(self, config: Config) -> dict[str, float]:
        """Return the mean reward of each agent under a config; it is computed once for the present records."""
        key = self.index.records, config.model_dump_json()
        if key not in self._rankings:
            if len(self._rankings) >= _MAX_RANKINGS:
                self._rankings.clear()
            self._rankings[key] = rank_agents(self.run, config)
        return self._rankings[key]

    @property
    def name(self) -> str:
        return self.run.folder.resolve().name

    def update(self) -> None:
        """Take in what was stored since; figures of the whole run are computed again when they are needed."""
        if self.index.update():
            vars(self).pop("agents", None)
            vars(self).pop("buckets", None)

    @property
    def state(self) -> str:
        return describe_state(self.run)

    @cached_property
    def agents(self) -> list[AgentMean]:
        return read_agents(self.index)

    @cached_property
    def buckets(self) -> tuple[float, float, list[int]]:
        return read_buckets(self.index)


def show_run(opened: OpenRun, request: web.Request) -> Page:
    index = opened.index
    context = {
        "title": opened.name,
        **read_totals(index),
        "agents": opened.agents,
        "buckets": opened.buckets,
        "facets": list_facets(index),
        "worst": read_page(index, TableQuery(sort="reward"), rows=5),
        "header": opened.run.header,
    }
    return "run.html", context


def show_table(opened: OpenRun, request: web.Request) -> Page:
    query = TableQuery.from_url(request.query)
    page = read_page(opened.index, query)
    facets = list_facets(opened.index)
    questions = list(opened.index.names("question"))
    context = {"title": "Responses", "page": page, "query": query, "facets": facets}
    return "table.html", {**context, "questions": questions}


def show_ranking(opened: OpenRun, request: web.Request) -> Page:
    """Rank the agents under other settings, and find where a setting makes two of them change places."""
    run = opened.run
    changes = WhatIf.from_url(request.query)
    controls = list_controls(run)
    now = opened.rank(run.config)
    changed = opened.rank(changes.config_of(run)) if changes.settings else None
    scanned = next((each for each in controls if each.key == request.query.get("scan")), None)
    turns = None
    if scanned is not None and not scanned.choices:

        def rank(value: float) -> dict[str, float]:
            tried = WhatIf(settings=(*changes.settings, f"{scanned.key}={value!r}"))
            return opened.rank(tried.config_of(run))

        turns = find_turns(rank, scanned.low, scanned.high)
    context = {
        "title": "Ranking",
        "now": now,
        "changed": changed,
        "changes": changes,
        "controls": controls,
        "scanned": scanned,
        "turns": turns,
    }
    if is_part(request):
        scan = f"scan={scanned.key}&" if scanned else ""
        context["address"] = f"{request.path}?{scan}{changes.to_url()}"
        return "ranking_part.html", context
    return "ranking.html", context


def show_response(opened: OpenRun, request: web.Request) -> Page:
    name = _required(request, "id")
    run = opened.run
    view = view_trace(run.explain(name))
    changes = WhatIf.from_url(request.query)
    changed = None if changes.is_empty else view_trace(explain_changed(run, name, changes))
    context = {
        "title": name,
        "view": view,
        "changes": changes,
        "changed": changed,
        "changed_drawn": None if changed is None else draw_waterfall(changed.lost),
    }
    if is_part(request):
        address = f"{request.path}?{urlencode({'id': name})}"
        context["address"] = address if changes.is_empty else f"{address}&{changes.to_url()}"
        return "what_if.html", context
    return "response.html", {**context, **_describe_response(run, view)}


def _describe_response(run: Run, view: TraceView) -> dict[str, Any]:
    """Return what the page of a response has beside its what-if."""
    group = run.group_with(view.trace.response_id)
    responses = {scored.trace.response_id: scored.response for scored in group}
    evidence = number_evidence(view)
    quotations = [found for found, _ in evidence]
    return {
        "drawn": draw_waterfall(view.lost),
        "query": view_query(run, view.trace),
        "messages": cut_response(responses[view.trace.response_id], quotations),
        "evidence": evidence,
        "others": [scored.trace for scored in group],
        "controls": list_controls(run),
    }


def is_part(request: web.Request) -> bool:
    """Return whether a part of a page is wanted, and not a page."""
    return request.headers.get("HX-Request") == "true"


def show_verdict(opened: OpenRun, request: web.Request) -> Page:
    view = view_question(opened.run, _required(request, "id"), _required(request, "question"))
    return "verdict.html", {"title": f"{view.question} on {view.response_id}", "view": view}


def show_comparison(opened: OpenRun, request: web.Request) -> Page:
    """Compare the second run with the first. Raises `InputError` where they have no response in common."""
    other = opened.other
    if other is None:
        raise InputError("compare: name two runs, `jurygraph view RUN RUN2`")
    report = _compare(opened, other)
    return "compare.html", {"title": "B − A", "other": other, "report": report}


def _compare(before: OpenRun, after: OpenRun) -> Report:
    """Return the comparison of two runs as they are now; it is computed once for their records."""
    state = before.index.records, after.index.records
    if before.comparison is None or before.comparison[0] != state:
        settings = comparison.setting_notes(before.run.header, after.run.header)
        responses = [comparison.read_responses(opened.run) for opened in (before, after)]
        report = comparison.compare(responses[0], responses[1], differing=settings)
        before.comparison = state, report
    return before.comparison[1]


def _required(request: web.Request, name: str) -> str:
    value = request.query.get(name)
    if not value:
        raise InputError(f"{request.path}: the address has no {name!r}; follow a link of the table")
    return value


PAGES: Mapping[str, Callable[[OpenRun, web.Request], Page]] = {
    "/": show_run,
    "/responses": show_table,
    "/response": show_response,
    "/verdict": show_verdict,
    "/compare": show_comparison,
    "/ranking": show_ranking,
}
"""By path below the letter of a run: the function that returns the template and what it lays out."""
