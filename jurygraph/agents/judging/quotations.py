"""What a judge quotes: which of it stands in the response, and what is wrong with the rest."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from jurygraph.agents.judging.forms import Claim
from jurygraph.safety.evidence import LONG_TEXT, Text, search_off_loop
from jurygraph.schema import Evidence
from jurygraph.sources.complaint import shortened

if TYPE_CHECKING:
    from jurygraph.models.consultation import Flaw

T = TypeVar("T", bound=BaseModel)

_SHOWN, _MOST_SHOWN = 80, 3
NOT_THERE, TOO_WEAK = "not in the response", "too short, or cut within a word or number"
SAYS_NOTHING = "announces an answer, or fills a line, and says nothing"


def off_loop(flaw: Callable[[T], str | None], letters: int) -> "Flaw[T]":
    """A check of a reply's quotations, in a thread where the texts in which they are looked for have many letters."""

    async def in_thread(reply: T) -> str | None:
        return await search_off_loop(lambda: flaw(reply), letters)

    return in_thread if letters >= LONG_TEXT else flaw


def lacking(claim: Claim, text: Text) -> str:
    """What is wrong with a claim that no quotation bears out."""
    return f"and quotes {why_lost(claim.quotes, text)}" if claim.quotes else "and nothing is quoted for it"


def why_lost(quotations: Sequence[str], text: Text) -> str:
    """Why quotations bear nothing: they stand nowhere, anybody might have hit upon them, or they say nothing."""
    reasons: dict[str, list[str]] = {NOT_THERE: [], TOO_WEAK: [], SAYS_NOTHING: []}
    for one in quotations:
        reasons[why_no_support(one, text)].append(one)
    return " and ".join(f"{listed(some)} ({wrong})" for wrong, some in reasons.items() if some)


def why_no_support(quotation: str, text: Text) -> str:
    """Why a quotation that bears no verdict bears none."""
    if text.find(quotation) is None:
        return NOT_THERE
    return SAYS_NOTHING if text.has_nothing_but_filler(quotation) else TOO_WEAK


def taken_over(quotations: Sequence[str]) -> tuple[Evidence, ...]:
    """Quotations as they are, where nobody asks whether they stand anywhere."""
    return tuple(Evidence(quote=quotation) for quotation in quotations)


def sorted_out(quotations: Sequence[str], text: Text) -> tuple[tuple[Evidence, ...], list[str]]:
    """The passages that are quoted, and the quotations that are none."""
    found = {quotation: text.supports(quotation) for quotation in quotations}
    passages = dict.fromkeys(passage for passage in found.values() if passage is not None)
    evidence = tuple(Evidence(quote=one.text, start=one.start, end=one.end, verified=True) for one in passages)
    return evidence, [quotation for quotation, passage in found.items() if passage is None]


def listed(quotations: Sequence[str]) -> str:
    """The first of them, shortened, as messages show them."""
    return ", ".join(f"'{shortened(one, _SHOWN)}'" for one in quotations[:_MOST_SHOWN])
