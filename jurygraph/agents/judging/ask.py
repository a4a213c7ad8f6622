"""The path of everything that asks a model: request → reply → check of quotations → result, or what failed.

Criteria, protocols, comparisons, reviewers, reasoning and extraction take it, and so do the readers of a task. A fault
concerns one question and becomes its failed verdict or material here; an error that ends the run is left alone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from jurygraph.models.request import Fault, Request
from jurygraph.safety.evidence import search_off_loop
from jurygraph.schema import Verdict

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient, ParsedReply

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")


async def ask_model(
    client: "JudgeClient",
    request: Request,
    reply_model: type[T],
    *,
    read: "Callable[[ParsedReply[T]], R]",
    fail: Callable[[Fault], R],
    find_flaw: Callable[[T], str | None] | None = None,
    letters: int = 0,
) -> R:
    """Return what `read` makes of the model's reply, or `fail` of the fault in its place.

    A reply in which `find_flaw` finds one is sent back to the model once. Both functions may search texts of `letters`
    characters in total: in a thread if there are many. Raises the errors that end a run.
    """

    async def check(reply: T) -> str | None:
        return None if find_flaw is None else await search_off_loop(lambda: find_flaw(reply), letters)

    try:
        reply = await client.judge(request, reply_model, check)
    except Fault as fault:
        return fail(fault)
    return await search_off_loop(lambda: read(reply), letters)


def failed_verdict(fault: Fault) -> Verdict:
    """Return the verdict on a question without a usable reply."""
    return Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
