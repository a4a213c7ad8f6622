"""Judging items of a response in one call: what is asked, what of the reply rests on the response, and the verdicts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import create_model

from jurygraph.agents.judging.forms import Claim, Form, InParts, OnScale
from jurygraph.agents.judging.quotations import folded, lacking, sorted_out, taken_over, why_lost
from jurygraph.models.faults import Fault
from jurygraph.prompts import Prompt
from jurygraph.safety.evidence import Text
from jurygraph.schema import Evidence, Failure, Noun, Verdict

if TYPE_CHECKING:
    from jurygraph.models.consultation import Consultation, Judged


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be judged: its words, its form, the words of its parts, and what values of its scale stand for."""

    text: str
    form: Form
    parts: tuple[str, ...] = ()
    anchors: tuple[tuple[str, str], ...] = ()


class _Shown(NamedTuple):
    """An item as the prompt shows it."""

    name: str
    text: str
    parts: bool
    scale: tuple[str, str] | None


async def judge_items(
    gateway: "Consultation",
    prompt: Prompt,
    items: Mapping[str, Item],
    variables: Mapping[str, Any],
    response: str,
    *,
    sample: int = 0,
    compact: bool = False,
) -> list[Verdict]:
    """A verdict on each item, from one call; `items` are by their names in the reply, which are told as `items`.

    Where the config's `safety.evidence` stands, whatever the model finds in the response needs a quotation that stands
    there: what is quoted from elsewhere is lost, which the model is told once; what is then left without any is a
    failed verdict of cause `response`. `compact` replies hold neither reasons nor quotations.
    """
    noun = _answer(tuple((name, item.form.noun(compact)) for name, item in items.items()))
    told = {**variables, "items": tuple(_shown(*one) for one in items.items()), "compact": compact}
    request = gateway.request(prompt, noun, told, sample=sample, logprobs=not compact)
    sought = None if compact or not gateway.safety.evidence else folded(response)
    try:
        judged = await gateway.judge(request, noun, None if sought is None else _Flaw(items, sought))
    except Fault as fault:
        failed = Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
        return [failed] * len(items)
    return [_verdict(judged, name, item, sought) for name, item in items.items()]


@lru_cache(maxsize=1024)
def _answer(fields: tuple[tuple[str, type[Noun]], ...]) -> type[Noun]:
    """What is to be answered about so many items, each in its form."""
    stated: Any = {name: (form, ...) for name, form in fields}
    return create_model("Verdicts", __base__=Noun, **stated)


def _shown(name: str, item: Item) -> _Shown:
    form = item.form
    parts = zip(form.names, item.parts, strict=True) if isinstance(form, InParts) else ()
    lines = [item.text, *(f"{part}: {text}" for part, text in (*parts, *item.anchors))]
    scale = (f"{form.low:g}", f"{form.high:g}") if isinstance(form, OnScale) else None
    return _Shown(name, "\n".join(lines), isinstance(form, InParts), scale)


class _Flaw:
    """What is wrong with a reply that finds things in a response and quotes for them what does not stand there."""

    def __init__(self, items: Mapping[str, Item], text: Text) -> None:
        self._items, self._text = items, text

    def __call__(self, value: Any) -> str | None:
        wrong = [
            f"{name}: {claim.said}, {lacking(claim, self._text)}"
            for name, item in self._items.items()
            for claim in _unsupported(item, getattr(value, name), self._text)
        ]
        hint = "quote from the response letter by letter, eight letters or more, or decide anew"
        return f"{'; '.join(wrong)}; {hint}" if wrong else None


def _unsupported(item: Item, stated: Any, text: Text) -> list[Claim]:
    """What a reply claims without a quotation that stands in the response."""
    return [claim for claim in item.form.claims(stated) if not any(map(text.supports, claim.quotes))]


def _verdict(judged: "Judged[Any]", name: str, item: Item, text: Text | None) -> Verdict:
    """The verdict on an item; `text` is where quotations are looked for, None where none are asked for."""
    stated = getattr(judged.value, name)
    reason = getattr(stated, "reason", "")
    if text is None:
        return _measured(judged, name, item, reason, taken_over(_quotations(stated)))
    evidence, lost = sorted_out(_quotations(stated), text)
    if lost:
        reason = f"{reason} [lost: {why_lost(lost, text)}]"
    unsupported = _unsupported(item, stated, text)
    if unsupported:
        message = "; ".join(f"{claim.said}, {lacking(claim, text)}" for claim in unsupported)
        failure = Failure(cause="response", kind="unsupported", message=f"the judge says {message}")
        return Verdict(status="failed", failure=failure, reason=reason, evidence=evidence, call=judged.call.id)
    return _measured(judged, name, item, reason, evidence)


def _measured(judged: "Judged[Any]", name: str, item: Item, reason: str, evidence: tuple[Evidence, ...]) -> Verdict:
    found = item.form.measured(getattr(judged.value, name), judged.reply, name)
    return Verdict(
        score=found.score,
        met=found.met,
        native=found.native,
        scale=found.scale,
        confidence=found.confidence,
        reason=reason,
        evidence=evidence,
        call=judged.call.id,
    )


def _quotations(stated: Any) -> list[str]:
    """All quotations of an item's reply, each once."""
    own: Iterator[str] = iter(getattr(stated, "quotes", ()))
    parts = (quote for _, part in stated if hasattr(part, "quotes") for quote in part.quotes)
    return list(dict.fromkeys(quote for quote in (*own, *parts) if quote.strip()))
