"""Contrasts that a model proposes, and is asked about again: no edit counts because the model says so once."""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from jurygraph.agents.data_synthesizer.edits import Edit, Kind, replaced
from jurygraph.agents.judging.evaluator import shared
from jurygraph.agents.roles import DeriverAsk
from jurygraph.prompts import load_prompt
from jurygraph.schema import Noun

_MOST = 12
_Passage = Annotated[str, Field(min_length=1, max_length=1000)]
_Said = Annotated[str, Field(max_length=1000)]


@dataclass(frozen=True, slots=True)
class Proposed:
    """Edits that were found to make the text worse; what was left out, in words; and the call that proposed them."""

    edits: list[Edit]
    note: str
    call: str


class Proposer:
    """Asks for contrasts, and then which of two texts is the worse one."""

    def __init__(self) -> None:
        self._propose, self._compare = load_prompt("contrast"), load_prompt("contrast-check")
        self.edition = f"{self._propose.edition} {self._compare.edition}"

    async def edits(self, ask: DeriverAsk, kinds: Sequence[Kind]) -> Proposed:
        """The edits that the model proposes and finds worse when it does not know which text is whose. Raises Fault.

        Every passage has to stand in the response, once: of others the model is told once, and then they are left out.
        """
        assert ask.gateway is not None, "asked without a model"
        text, noun = ask.response.text, _proposals(tuple(kinds))
        request = ask.gateway.request(self._propose, noun, {**shared(ask), "edits": tuple(kinds)})
        judged = await ask.gateway.judge(request, noun, lambda reply: _flaw(text, reply))
        proposed: Sequence[Any] = judged.value.contrasts  # type: ignore[attr-defined]
        edits = [_edit(text, one) for one in proposed if not _wrong(text, one)]
        confirmed = await self._confirmed(ask, edits) if edits else []
        lost, doubted = len(proposed) - len(edits), len(edits) - len(confirmed)
        note = "; ".join(part for part in (_told(lost, "changes no passage"), _told(doubted, "is no worse")) if part)
        return Proposed(confirmed, note, judged.call.id)

    async def _confirmed(self, ask: DeriverAsk, edits: Sequence[Edit]) -> list[Edit]:
        """Those of which the model, shown both texts without being told which is whose, says that the edit is worse."""
        worse = await asyncio.gather(*(self._is_worse(ask, edit) for edit in edits))
        return [edit for edit, found in zip(edits, worse, strict=True) if found]

    async def _is_worse(self, ask: DeriverAsk, edit: Edit) -> bool:
        assert ask.gateway is not None, "asked without a model"
        texts, made = _in_some_order(ask.response.text, edit.made(ask.response.text))
        responses = [{"name": name, "text": text} for name, text in zip("AB", texts, strict=True)]
        told = {key: value for key, value in shared(ask).items() if key != "response"}
        request = ask.gateway.request(self._compare, Comparison, {**told, "responses": responses})
        judged = await ask.gateway.judge(request, Comparison)
        return bool(judged.value.worse == made)


def _in_some_order(text: str, made: str) -> tuple[tuple[str, str], Literal["A", "B"]]:
    """The two texts in an order that hangs on the edited one alone, and which of them that is."""
    first = hashlib.sha256(made.encode()).digest()[0] % 2 == 1
    return ((made, text), "A") if first else ((text, made), "B")


def _edit(text: str, one: Any) -> Edit:
    start = text.index(one.passage)
    return replaced(one.kind, start, start + len(one.passage), one.instead, one.says)


def _wrong(text: str, one: Any) -> str | None:
    """Why a proposal is none."""
    times = text.count(one.passage)
    if times != 1:
        return f"the passage {one.passage!r} stands in the response {times} times, and has to stand there once"
    return f"the passage {one.passage!r} is put in its own place" if one.instead == one.passage else None


def _flaws(text: str, reply: Any) -> Iterator[str]:
    return (flaw for one in reply.contrasts if (flaw := _wrong(text, one)))


def _flaw(text: str, reply: Any) -> str | None:
    flaws = list(_flaws(text, reply))
    return f"{'; '.join(flaws)}. So copy each `passage` letter by letter from the response" if flaws else None


def _told(number: int, what: str) -> str:
    return f"{number} proposed that {what}" if number else ""


# A docstring would stand in the schema that a model is given.


@lru_cache(maxsize=64)
def _proposals(kinds: tuple[Kind, ...]) -> type[Noun]:
    fields: Any = {
        "kind": (Literal[kinds], ...),
        "passage": (_Passage, ...),
        "instead": (Annotated[str, Field(max_length=1000)], ...),
        "says": (_Said, ...),
    }
    one = create_model("Contrast", __base__=Noun, **fields)
    several: Any = Annotated[tuple[one, ...], Field(max_length=_MOST)]
    return create_model("Contrasts", __base__=Noun, contrasts=(several, ...))


class Comparison(Noun):
    reason: _Said
    worse: Literal["A", "B", "neither"]
