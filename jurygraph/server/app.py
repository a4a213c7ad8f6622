"""The routes of the reward server, who may ask, and what a client gets when it gets no reward.

A request is read within its limits, joined to the one that it repeats, and answered before its deadline. Its work goes
on after the deadline: what it stores is there for the next try. No refusal has a reward in it.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from time import perf_counter
from typing import Any

from aiohttp import web

from jurygraph.errors import ConfigError, InputError, JurygraphError, PlanError
from jurygraph.messages import Problem, quote, suggest_known_name
from jurygraph.schema.frozen_model import decode_json_strictly
from jurygraph.server.metrics import RequestMetrics
from jurygraph.server.openapi import openapi_document
from jurygraph.server.protocols import PROTOCOL_CLASSES, EndpointProtocol
from jurygraph.server.requests_in_work import HttpAnswer, HttpRequestInWork, RequestsInWork
from jurygraph.server.reward_service import RewardService
from jurygraph.server.settings import (
    RETRY_AFTER_SECONDS,
    RequestRefusedError,
    build_unavailable_error,
)
from jurygraph.sources.files import is_nested_deeper
from jurygraph.web_access import matches_token, require_origin

log = logging.getLogger(__name__)
_LIVENESS_PATH = "/healthz"
WebHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MAX_IDEMPOTENCY_KEY_LENGTH = 200
"""Characters of an idempotency key."""


class RewardServer:
    """The application of a service. `drain_requests` ends it in good order."""

    def __init__(
        self,
        service: RewardService,
        *,
        allowed_hosts: Collection[str],
        token: str | None,
    ) -> None:
        """Make the application.

        Args:
            service: scores what comes; its jury stays open as long as the server.
            allowed_hosts: the names, with the port, under which the server answers.
            token: what a request has to have in `Authorization: Bearer`; None where only loopback can reach it.
        """
        self._service = service
        self._hosts = allowed_hosts
        self._token = token
        self._requests = RequestsInWork()
        self._metrics = RequestMetrics()
        self._open_requests = 0
        self._is_draining = False
        settings = service.settings
        self.app = web.Application(
            middlewares=[self._serve_safely], client_max_size=settings.max_body_bytes
        )
        self._paths = set()
        for protocol in PROTOCOL_CLASSES:
            self._paths.add(protocol.path)
            request_handler = partial(self._handle_reward_request, protocol(service))
            self.app.router.add_post(protocol.path, request_handler)
        for path, show in (
            (_LIVENESS_PATH, self._show_health),
            ("/readyz", self._show_readiness),
            ("/metrics", self._show_metrics),
            ("/openapi.json", self._show_description),
        ):
            self._paths.add(path)
            self.app.router.add_get(path, show)

    async def drain_requests(self) -> None:
        """Take no more requests, and wait until those in work have ended, at most as long as the deadline."""
        self._is_draining = True
        self._service.cohorts.end_waiting_cohorts()
        if self._requests.unfinished:
            deadline = self._service.settings.deadline
            await asyncio.wait(self._requests.unfinished, timeout=deadline)
        for work in self._requests.unfinished:
            work.cancel()
        await asyncio.gather(*self._requests.unfinished, return_exceptions=True)
        await self._service.close()

    @web.middleware
    async def _serve_safely(self, request: web.Request, handler: WebHandler) -> web.StreamResponse:
        started = perf_counter()
        try:
            require_origin(request, self._hosts, self._token, "jurygraph serve")
            if request.path != _LIVENESS_PATH:  # a probe has no token
                self._require_token(request)
            response = await handler(request)
        except web.HTTPException as refused:
            problem = self._explain_routing_error(request, refused)
            response = _to_http_response(HttpAnswer(refused.status, _error_body(problem)))
        except RequestRefusedError as refused:
            response = _to_http_response(_refusal_reply(refused))
        except web.RequestPayloadError:
            request.content.feed_eof()  # else aiohttp reads on, and logs the error as its own
            problem = "the body is not encoded as its headers say; send plain JSON, or name its compression"
            response = _to_http_response(HttpAnswer(400, _error_body(problem)))
            response.force_close()  # where the next request begins is not known
        path = request.path if request.path in self._paths else "other"
        self._metrics.observe(path, response.status, perf_counter() - started)
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        return response

    def _explain_routing_error(self, request: web.Request, http_error: web.HTTPException) -> str:
        """Return what is wrong with a request that no handler took, and what would be right."""
        if isinstance(http_error, web.HTTPMethodNotAllowed):
            allowed_methods_text = " or ".join(sorted(http_error.allowed_methods - {"HEAD"}))
            return f"{request.path}: is not for {request.method}; use {allowed_methods_text}"
        if isinstance(http_error, web.HTTPNotFound):
            paths = sorted(self._paths)
            return f"there is no {quote(request.path)}; {suggest_known_name(request.path, paths)}"
        return http_error.text or http_error.reason

    def _require_token(self, request: web.Request) -> None:
        if self._token is None:
            return
        auth_scheme, _, given_token = request.headers.get("Authorization", "").partition(" ")
        if auth_scheme.lower() != "bearer":
            raise RequestRefusedError(
                401, "send the server's token as `Authorization: Bearer TOKEN`"
            )
        if not matches_token(given_token.strip(), self._token):
            raise RequestRefusedError(403, "this is not the server's token")

    async def _handle_reward_request(
        self, protocol: EndpointProtocol, request: web.Request
    ) -> web.StreamResponse:
        """Answer a request with rewards, or refuse it."""
        if self._is_draining:
            raise build_unavailable_error("the server ends; send this to the next one")
        open_request_count = max(self._open_requests, len(self._requests.unfinished))
        overload = None
        if open_request_count >= self._service.settings.max_open_requests:
            overload = RequestRefusedError(
                429, f"{open_request_count} requests are in work already", RETRY_AFTER_SECONDS
            )
            if not self._service.cohorts.waiting_member_count:
                raise overload
        self._open_requests += 1
        try:
            key = request.headers.get("Idempotency-Key")
            if key is not None and not 0 < len(key) <= MAX_IDEMPOTENCY_KEY_LENGTH:
                raise RequestRefusedError(
                    400, f"Idempotency-Key: write 1 to {MAX_IDEMPOTENCY_KEY_LENGTH} characters"
                )
            body = await request.read()
            content = _parse_json_body(body, self._service.settings.max_nesting_depth)
            if overload is not None and not self._completes_waiting_cohorts(protocol, content):
                raise overload
            start = partial(self._work, protocol, content)
            waits_for_cohort = protocol.names_cohort(content)
            work = self._requests.open(protocol.path, key, body, start, waits_for_cohort)
            return _to_http_response(await self._wait_for_reply(work))
        finally:
            self._open_requests -= 1

    def _completes_waiting_cohorts(self, protocol: EndpointProtocol, content: Any) -> bool:
        """Return whether others that are in work wait for all that a body submits: they take room until it is there."""
        try:
            submissions = protocol.read(content)
        except JurygraphError:  # it is told so without a judge
            return True
        return all(map(self._service.completes_waiting_cohort, submissions))

    async def _wait_for_reply(self, request: HttpRequestInWork) -> HttpAnswer:
        """Return the reply of a request that is in work. Raises `RequestRefusedError` at its deadline."""
        deadline = self._service.settings.deadline
        request.waiting_client_count += 1
        try:
            await asyncio.wait([request.work], timeout=deadline)
        finally:
            request.waiting_client_count -= 1
        if not request.work.done():
            outage = self._service.outage
            raise build_unavailable_error(
                f"not scored within {deadline:g} s{f' ({outage})' if outage else ''}; "
                "the judge goes on, and the same request gets its answer"
            )
        if request.work.cancelled():
            raise build_unavailable_error("the server ended before this was scored")
        reply = request.work.result()
        if reply.status == 200:
            self._requests.forget_delivered_reply(request)
        return reply

    async def _work(self, protocol: EndpointProtocol, content: Any) -> HttpAnswer:
        """Score what a body submits. Whatever goes wrong is a reply with its status."""
        try:
            submissions = protocol.read(content)
            scoring = [
                self._service.score(submission, protocol.choose_failed_reward_rule(submission))
                for submission in submissions
            ]
            # all of them end: an error of one leaves nothing of the others behind
            scored = await asyncio.gather(*scoring, return_exceptions=True)
            for result in scored:
                if isinstance(result, BaseException):
                    raise result
            return HttpAnswer(200, protocol.write(content, scored))  # type: ignore[arg-type]
        except RequestRefusedError as refused:
            return _refusal_reply(refused)
        except (InputError, PlanError, ConfigError) as error:
            return HttpAnswer(422, _error_body(str(error)))
        except JurygraphError as error:  # the judge gave no reward
            return _refusal_reply(build_unavailable_error(str(error)))
        except Exception:
            log.exception("a request failed: this is a bug in jurygraph, please report it")
            return HttpAnswer(500, _error_body("an error of the server; its log has more"))

    async def _show_health(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "up"})

    async def _show_readiness(self, request: web.Request) -> web.StreamResponse:
        if self._is_draining:
            raise build_unavailable_error("the server ends")
        if self._service.outage is not None:
            raise build_unavailable_error(f"the judge gives no rewards: {self._service.outage}")
        return web.json_response({"status": "ready"})

    async def _show_metrics(self, request: web.Request) -> web.StreamResponse:
        open_request_count = len(self._requests.unfinished)
        return web.Response(text=self._metrics.render(self._service, open_request_count))

    async def _show_description(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(openapi_document())


def _parse_json_body(body: bytes, max_depth: int) -> Any:
    """Return the JSON of a body. Raises `RequestRefusedError` with status 400 for one that is none, or is nested too
    deeply."""
    try:
        text = body.decode()
        content = decode_json_strictly(text)
        is_too_deep = is_nested_deeper(text, content, max_depth)
    except RecursionError:
        is_too_deep = True
    except ValueError as error:  # of UTF-8 or of JSON
        raise RequestRefusedError(400, f"the body is no JSON: {error}") from None
    if is_too_deep:
        raise RequestRefusedError(
            400, f"the body has more than {max_depth} levels of lists and objects"
        )
    if b"\\ud" in body.lower() and not isinstance(content, Problem):
        _refuse_unpaired_surrogates(content)
    if isinstance(content, Problem):
        raise RequestRefusedError(400, f"{content.field or 'the body'}: {content}")
    return content


def _refuse_unpaired_surrogates(content: Any) -> None:
    """Raise `RequestRefusedError` for half of a surrogate pair in any text or name: no record could hold it."""
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RequestRefusedError(
            422,
            "the body holds half of a surrogate pair, which is not a character; "
            "write the whole character",
        ) from None


def _refusal_reply(refusal: RequestRefusedError) -> HttpAnswer:
    return HttpAnswer(refusal.status, _error_body(str(refusal)), refusal.retry_after)


def _error_body(message: str) -> bytes:
    return json.dumps({"error": message}).encode()


def _to_http_response(reply: HttpAnswer) -> web.Response:
    response = web.Response(status=reply.status, body=reply.body, content_type="application/json")
    if reply.retry_after is not None:
        response.headers["Retry-After"] = str(reply.retry_after)
    return response
