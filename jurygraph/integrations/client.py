"""The client of `jurygraph serve`, for trainers whose samples of one group come from many processes.

It sends `POST /v1/score` with a task, or the id of one that the server has plans for, and responses. A server that has
too much work is asked again after the time that it names; the key of a request makes sure that nothing is scored twice.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from time import monotonic
from typing import Any, NamedTuple
from uuid import uuid4

import httpx

from jurygraph.errors import InputError, NoRewardError

log = logging.getLogger(__name__)

REWARD_TIMEOUT_SECONDS = 170.0
"""Seconds after which a reward counts as failed: below the 180 s after which OpenRLHF sends a request again."""
_SECONDS_BEFORE_WARNING = 5.0
"""Seconds for a connection, and those without any after which that is logged."""
_RETRY_PAUSE_SECONDS = 1.0
"""Seconds before a request is sent again, where the server names none."""


class ScoreReply(NamedTuple):
    """The rewards of the responses in their order, None where the server leaves one out, and their traces.

    `filled` is the number of failed rewards of the whole group that got a value, those whose trace has the reward's
    status `failed`, and `factor` that by which the advantages of the others change; None where it depends on their
    values.
    """

    rewards: list[float | None]
    traces: list[dict[str, Any]]
    filled: int = 0
    factor: float | None = 1.0


class RewardClient:
    """Asks the reward server at a URL. It can be pickled, and used in several event loops."""

    def __init__(
        self, url: str, token: str | None = None, reward_timeout: float = REWARD_TIMEOUT_SECONDS
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"url: is {url!r}; write that of `jurygraph serve`, http://…")
        self._url = url.rstrip("/").removesuffix("/v1/score")
        self._token = token
        self._patience = reward_timeout
        self._is_silence_logged = False

    async def score(
        self,
        responses: Sequence[str | Mapping[str, Any]],
        *,
        task: Mapping[str, Any] | None = None,
        task_id: str | None = None,
        step: int | None = None,
        policy: str | None = None,
        cohort_size: int | None = None,
    ) -> ScoreReply:
        """Return the rewards of responses to a task; with `cohort_size` they are members of a group of that size.

        Raises `InputError` for what the server refuses, and `NoRewardError` where it gives no reward.
        """
        fields = {"task": task, "task_id": task_id, "step": step, "policy": policy}
        body: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        body["responses"] = list(responses)
        if cohort_size is not None:
            body["cohort"] = {"size": cohort_size}
        reply = await self._post(body)
        rewards = reply.get("rewards")
        if not isinstance(rewards, list) or len(rewards) != len(responses):
            raise NoRewardError(f"{self._url}: replied without a reward for each response")
        traces = reply.get("traces") or []
        return ScoreReply(rewards, traces, reply.get("filled", 0), reply.get("factor", 1.0))

    def score_blocking(
        self, responses: Sequence[str | Mapping[str, Any]], **settings: Any
    ) -> ScoreReply:
        """Run `score` for callers that no event loop runs."""
        return asyncio.run(self.score(responses, **settings))

    async def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        content = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": uuid4().hex}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        silent_since = monotonic()
        end = silent_since + self._patience
        connect_seconds = min(_SECONDS_BEFORE_WARNING, self._patience)
        timeout = httpx.Timeout(self._patience, connect=connect_seconds)
        # A connection for each request: one that is kept belongs to an event loop, of which trainers have several.
        async with httpx.AsyncClient(verify=_tls_context(), timeout=timeout) as client:
            while True:
                problem, pause_seconds = "", _RETRY_PAUSE_SECONDS
                try:
                    response = await client.post(
                        f"{self._url}/v1/score", content=content, headers=headers
                    )
                except httpx.TransportError as error:
                    problem = f"{type(error).__name__} {error}".strip()
                else:
                    self._is_silence_logged = False
                    reply = _read_json_object(response)
                    if response.status_code == httpx.codes.OK:
                        if reply is None:
                            raise NoRewardError(
                                f"{self._url}: replied without a JSON object; is it `jurygraph serve`?"
                            )
                        return reply
                    problem = str((reply or {}).get("error") or response.reason_phrase)
                    if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
                        is_request_invalid = response.status_code in (400, 401, 403, 404, 413, 422)
                        error_class = InputError if is_request_invalid else NoRewardError
                        raise error_class(f"{self._url}: {response.status_code}: {problem}")
                    pause_seconds = _read_retry_pause(response)
                    silent_since = monotonic() + pause_seconds  # until then nothing is asked
                now = monotonic()
                if now + pause_seconds >= end:
                    raise NoRewardError(
                        f"{self._url}: no reward within {self._patience:g} s: {problem}"
                    )
                self._warn_of_silence(now - silent_since, problem)
                await asyncio.sleep(pause_seconds)

    def _warn_of_silence(self, seconds: float, problem: str) -> None:
        """Log once, until the server answers, that it is not there."""
        if seconds >= _SECONDS_BEFORE_WARNING and not self._is_silence_logged:
            self._is_silence_logged = True
            log.warning(
                "%s: no answer for %.0f s (%s); it is asked again for up to %g s: is `jurygraph serve` started, and is "
                "its URL right?",
                *(self._url, seconds, problem, self._patience),
            )


@cache
def _tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()  # made once, because it takes as long as many requests


def _read_json_object(response: httpx.Response) -> dict[str, Any] | None:
    """Return the JSON object that a server replied with; None for anything else."""
    try:
        content = response.json()
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _read_retry_pause(response: httpx.Response) -> float:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return _RETRY_PAUSE_SECONDS
