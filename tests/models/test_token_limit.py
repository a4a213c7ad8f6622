"""Charges to the limit of tokens per minute: an estimate first, then the provider's counts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from jurygraph.models.gateway import Gateway, request_byte_count
from jurygraph.models.limits import Budget, RequestLimiter, RequestTurn
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.schema import CallsConfig, Message, canonical_json

SCHEMA = {"type": "object", "properties": {"met": {"type": "boolean"}}}
LONGEST = 100


class Charges(RequestLimiter):
    """A limiter that records the tokens reserved and charged for each turn."""

    def __init__(self) -> None:
        super().__init__(4, tokens_per_minute=1e9)
        self.reserved: list[int] = []
        self.charged: list[int] = []
        self.answered = 0

    @asynccontextmanager
    async def turn(self, tokens: int, until: float | None = None) -> AsyncIterator[RequestTurn]:
        self.reserved.append(tokens)
        async with super().turn(tokens, until) as turn:
            try:
                yield turn
            finally:
                self.charged.append(turn.tokens)

    def report_success(self, turn: RequestTurn) -> None:
        self.answered += 1
        super().report_success(turn)


class Bills:
    """A backend that replies at once with these token counts."""

    secrets: tuple[str, ...] = ()
    is_recording = False

    def __init__(self, tokens_in: int | None, tokens_out: int | None) -> None:
        self.reply = Reply(text="yes", finish="stop", tokens_in=tokens_in, tokens_out=tokens_out)

    async def complete(self, request: Request, timeout: float) -> Reply:
        return self.reply

    async def close(self) -> None:
        pass


def make_request(text: str = "Is 7 a prime?", **fields: object) -> Request:
    stated = {
        "provider": "p",
        "model": "m",
        "messages": (Message(role="user", content=text),),
        "form": "text",
    }
    return Request.model_validate({**stated, **fields})


def charges_of(backend: Bills, request: Request, budget: Budget | None = None) -> Charges:
    """Return the charges of one request, whatever its outcome."""
    limiter = Charges()
    limits = CallsConfig(max_tokens=LONGEST, attempts=1)

    async def ask() -> None:
        gateway = Gateway(backend, limiter, limits, budget=budget)  # type: ignore[arg-type]
        with suppress(Fault):
            await gateway.ask(request)
        await gateway.close()

    asyncio.run(ask())
    return limiter


def test_a_request_is_charged_what_the_provider_read_and_wrote() -> None:
    limiter = charges_of(Bills(11, 7), make_request("Is 7 a prime?" * 4))
    assert limiter.reserved == [4 * 13 // 4 + LONGEST]
    assert limiter.charged == [11 + 7]
    assert limiter.answered == 1


@pytest.mark.parametrize(("tokens_in", "tokens_out"), [(None, None), (11, None), (None, 7)])
def test_without_both_token_counts_the_estimate_stays(
    tokens_in: int | None, tokens_out: int | None
) -> None:
    limiter = charges_of(Bills(tokens_in, tokens_out), make_request())
    assert limiter.charged == limiter.reserved == [13 // 4 + LONGEST]
    assert limiter.answered == 1


def test_the_estimate_counts_the_bytes_of_all_messages() -> None:
    two = (Message(role="system", content="Antworte!"), Message(role="user", content="größer"))
    assert request_byte_count(make_request(messages=two)) == 9 + 8


def test_the_estimate_counts_a_schema_that_the_provider_adds() -> None:
    assert request_byte_count(make_request(answer=SCHEMA, form="native")) == 13 + len(
        canonical_json(SCHEMA)
    )
    for form in ("instructed", "text"):
        assert request_byte_count(make_request(answer=SCHEMA, form=form)) == 13
    assert request_byte_count(make_request(form="native")) == 13
