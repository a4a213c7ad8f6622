"""The limits and rules of a reward server, and the refusals that its clients get."""

from typing import NamedTuple

from jurygraph.errors import JurygraphError
from jurygraph.integrations.failed_rewards import FailedRewardRule


class ServerSettings(NamedTuple):
    """Limits of a server, and the rule for failed rewards.

    Times are in seconds. The deadline is below the trainers' own: slime gives a request up after 120 s, OpenRLHF after
    180. `failed` is a rule, or None for `auto`: each protocol then has the best that its trainer can use.
    """

    failed: FailedRewardRule | None = None
    group_size: int | None = None
    """Members of a cohort on the endpoints whose protocol has none; None where each request is a group."""
    deadline: float = 100.0
    cohort_wait: float = 50.0
    """For how long a cohort waits for its members: the rest of the deadline is for the judge."""
    window: float | None = None
    """For how long requests are collected that are scored together; None for what suits the jury."""
    max_open_requests: int = 1024
    """Requests in work; one more is refused at once."""
    max_body_bytes: int = 16 << 20
    max_nesting_depth: int = 64
    """Levels of lists and objects in a body."""
    max_responses: int = 256
    """Responses of a request, and members of a cohort."""


CODE_BATCH_WINDOW_SECONDS = 0.01
MODEL_BATCH_WINDOW_SECONDS = 0.001
"""Seconds. To start the machine costs as much as a rule-based reward, so that these gain from company. Replies of a
model come one by one, and each of its requests would wait for the whole window."""

RETRY_AFTER_SECONDS = 1
"""Seconds after which a client that was refused for now may come again."""


class RequestRefusedError(JurygraphError):
    """A request that is not answered with rewards: the status of HTTP, and why.

    After `retry_after` seconds the same request may succeed; None where it may not.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


def build_unavailable_error(message: str) -> RequestRefusedError:
    """Return the refusal of a request that is worth sending again."""
    return RequestRefusedError(503, message, RETRY_AFTER_SECONDS)
