"""The server of `jurygraph view`: routes, and who may ask. Pages are read-only, and need nothing from elsewhere.

Bound to loopback it answers requests that name loopback in Host, so that no web page that a browser has open can read a
run by another name of this machine. Bound to anything else it needs a token as well.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from importlib.resources import files
from typing import Any

from aiohttp import web
from jinja2 import Environment

from jurygraph.errors import JurygraphError
from jurygraph.viewer.documents import make_template_environment
from jurygraph.viewer.pages import (
    PAGE_HANDLERS,
    DisplayedRun,
    PageHandler,
    is_partial_page_request,
    refuse_unknown_parameters,
    send_config,
)
from jurygraph.web_access import matches_token, require_origin

RequestHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_COOKIE_NAME = "jurygraph"
_PROTECTIVE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_STATIC_FILE_TYPES = {
    "style.css": "text/css",
    "page.js": "text/javascript",
    "htmx-4.0.1.min.js": "text/javascript",
}
RUNS_APP_KEY = web.AppKey("runs", dict[str, DisplayedRun])
TEMPLATES_APP_KEY = web.AppKey("templates", Environment)


def make_app(
    runs: dict[str, DisplayedRun], *, allowed_hosts: Collection[str], token: str | None
) -> web.Application:
    """Return the application for runs by their letter: `a`, and `b` for a second one.

    Args:
        allowed_hosts: the names, with the port, under which it answers.
        token: what a browser has to show once in `?token=`; None where loopback is all that can reach it.
    """
    app = web.Application(
        middlewares=[_make_request_guard(allowed_hosts, token), _error_page_middleware]
    )
    app[RUNS_APP_KEY] = runs
    app[TEMPLATES_APP_KEY] = make_template_environment()
    app.router.add_get("/", _redirect_to_start)
    app.router.add_get("/favicon.ico", _send_no_icon)
    app.router.add_get("/static/{name}", _send_static)
    app.router.add_get("/{run:[ab]}/config.yaml", _send_config)
    for path, page in PAGE_HANDLERS.items():
        app.router.add_get(f"/{{run:[ab]}}{path}", _serve(page))
    app.cleanup_ctx.append(_check_runs)
    app.on_shutdown.append(_end_scans)
    return app


async def _check_runs(app: web.Application) -> AsyncIterator[None]:
    """Look for changed records while pages are served, all of which then tell of them."""
    displayed_runs = app[RUNS_APP_KEY].values()

    async def check_each() -> None:  # one after another: a check of 100,000 responses takes 45 MB
        for displayed_run in displayed_runs:
            await displayed_run.check_records()

    checks = asyncio.create_task(check_each())
    yield
    await asyncio.gather(checks, return_exceptions=True)


async def _end_scans(app: web.Application) -> None:
    """End the scans of all runs at once, since one may wait for another: before the requests that wait for them."""
    await asyncio.gather(*(run.scans.close() for run in app[RUNS_APP_KEY].values()))


def _make_request_guard(allowed_hosts: Collection[str], token: str | None) -> Any:
    @web.middleware
    async def check_access(request: web.Request, handler: RequestHandler) -> web.StreamResponse:
        require_origin(request, allowed_hosts, token, "jurygraph view")
        request_token = request.query.get("token") or request.cookies.get(_COOKIE_NAME, "")
        if token is not None and not matches_token(request_token, token):
            raise web.HTTPForbidden(
                text="Open the address with its token, as `jurygraph view` printed it."
            )
        response = await handler(request)
        response.headers.setdefault("Content-Security-Policy", _content_security_policy("'none'"))
        response.headers.update(_PROTECTIVE_HEADERS)
        if token is not None and "token" in request.query:
            response.set_cookie(_COOKIE_NAME, token, httponly=True, samesite="Strict")
        return response

    return check_access


def _content_security_policy(allowed_script_source: str) -> str:
    """Return what a page may do: nothing foreign, no inline script or style, no frame; `allowed_script_source` is what
    may run."""
    return (
        f"default-src 'none'; script-src {allowed_script_source}; style-src 'self'; img-src "
        "'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


@web.middleware
async def _error_page_middleware(
    request: web.Request, handler: RequestHandler
) -> web.StreamResponse:
    """Show what a user can mend as a page; what is damaged is named, and nothing else is shown in its place."""
    try:
        return await handler(request)
    except (JurygraphError, web.HTTPNotFound) as error:
        is_missing = isinstance(error, web.HTTPNotFound)
        message = "There is no page at this address." if is_missing else str(error)
        # The frame of all pages, without a run and without scripts.
        frame = {"runs": {}, "path": request.path, "faults": (), "nonce": ""}
        context = {**frame, "message": message, "title": "This cannot be shown"}
        template = "error_note.html" if is_partial_page_request(request) else "error.html"
        text = request.app[TEMPLATES_APP_KEY].get_template(template).render(context)
        return web.Response(text=text, content_type="text/html", status=404 if is_missing else 400)


async def _send_no_icon(request: web.Request) -> web.StreamResponse:
    return web.Response(status=204)


async def _redirect_to_start(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/a/compare" if "b" in request.app[RUNS_APP_KEY] else "/a/")


async def _send_static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name not in _STATIC_FILE_TYPES:
        raise web.HTTPNotFound
    content = files("jurygraph.viewer").joinpath("static", name).read_bytes()
    return web.Response(body=content, content_type=_STATIC_FILE_TYPES[name], charset="utf-8")


def _find_run(request: web.Request) -> tuple[str, DisplayedRun]:
    """Return the run that an address names, with its letter. Raises `InputError` for an unknown parameter."""
    letter = request.match_info["run"]
    runs = request.app[RUNS_APP_KEY]
    if letter not in runs:
        raise web.HTTPNotFound
    refuse_unknown_parameters(request.path.removeprefix(f"/{letter}"), request.query)
    return letter, runs[letter]


async def _send_config(request: web.Request) -> web.StreamResponse:
    _, displayed_run = _find_run(request)
    return send_config(displayed_run, request)


def _serve(page: PageHandler) -> RequestHandler:
    async def handler(request: web.Request) -> web.StreamResponse:
        letter, displayed_run = _find_run(request)
        runs = request.app[RUNS_APP_KEY]
        for run in runs.values():
            run.update()
        template, context = await page(displayed_run, request)
        nonce = secrets.token_urlsafe(16)
        shared_context = {
            "letter": letter,
            "runs": {key: run.name for key, run in runs.items()},
            "opened": displayed_run,
            "reward_scale": displayed_run.figures["reward_scale"],
            "nonce": nonce,
            "path": request.path,
            "faults": [run.fault for run in runs.values() if run.fault],
        }
        text = (
            request.app[TEMPLATES_APP_KEY]
            .get_template(template)
            .render({**shared_context, **context})
        )
        response = web.Response(text=text, content_type="text/html")
        response.headers["Content-Security-Policy"] = _content_security_policy(f"'nonce-{nonce}'")
        if is_partial_page_request(request) and "address" in context:
            response.headers["HX-Push-Url"] = context["address"]
        return response

    return handler
