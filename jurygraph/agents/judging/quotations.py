"""What a judge quotes: which of it stands in the response, and what is wrong with the rest."""

from collections.abc import Sequence
from functools import lru_cache

from jurygraph.agents.judging.forms import Claim
from jurygraph.safety.evidence import Text
from jurygraph.schema import Evidence
from jurygraph.sources.complaint import shortened

_SHOWN, _MOST_SHOWN = 80, 3


@lru_cache(maxsize=256)
def folded(text: str) -> Text:
    """A response as quotations are looked for in it; kept, since many items are judged of one response."""
    return Text(text)


def lacking(claim: Claim, text: Text) -> str:
    """What is wrong with a claim that no quotation bears out."""
    return f"and quotes {why_lost(claim.quotes, text)}" if claim.quotes else "and nothing is quoted for it"


def why_lost(quotations: Sequence[str], text: Text) -> str:
    """Why quotations bear nothing: they stand nowhere, or anybody might have hit upon them."""
    nowhere = [one for one in quotations if text.find(one) is None]
    weak = [one for one in quotations if text.find(one) is not None]
    return " and ".join(
        f"{listed(some)} ({wrong})"
        for some, wrong in (
            (nowhere, "not in the response"),
            (weak, "too short, or cut within a word or number"),
        )
        if some
    )


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
